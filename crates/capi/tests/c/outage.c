/* All brokers go down while the client sends no requests. Each function is a sentence. */
#include "test.h"

struct told {
        int transport, all_down, other;
};

static void on_error(rd_kafka_t *rk, int err, const char *reason, void *opaque) {
        struct told *told = opaque;
        (void)rk;
        (void)reason;
        if (err == RD_KAFKA_RESP_ERR__TRANSPORT)
                told->transport++;
        else if (err == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN)
                told->all_down++;
        else
                told->other++;
}

static rd_kafka_t *client(rd_kafka_type_t type, const char *servers, struct told *told) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        set(conf, "bootstrap.servers", servers);
        set(conf, "log_level", "2");
        set(conf, "reconnect.backoff.ms", "20");
        set(conf, "reconnect.backoff.max.ms", "100");
        rd_kafka_conf_set_error_cb(conf, on_error);
        rd_kafka_conf_set_opaque(conf, told);
        return start(type, conf);
}

static void produce(rd_kafka_t *rk) {
        int i;
        for (i = 0; i < 3; i++)
                CHECK(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("outage"), RD_KAFKA_V_PARTITION(i),
                                        RD_KAFKA_V_VALUE((void *)"v", 1), RD_KAFKA_V_END) == 0);
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
}

static void ask(rd_kafka_t *rk) {
        const struct rd_kafka_metadata *metadata = NULL;
        CHECK(rd_kafka_metadata(rk, 1, NULL, &metadata, TIMEOUT_MS) == 0);
        if (metadata)
                rd_kafka_metadata_destroy(metadata);
}

static void poll_for(rd_kafka_t **rk, int count, int ms) {
        long until = millis() + ms;
        int i;
        while (millis() < until)
                for (i = 0; i < count; i++)
                        rd_kafka_poll(rk[i], 10);
}

static int all_were_told(const struct told *told, int count) {
        int i, yes = 1;
        for (i = 0; i < count; i++)
                yes = yes && told[i].all_down > 0;
        return yes;
}

static void clients_that_are_idle_tell_of_each_broker_and_of_all_when_they_go(rd_kafka_mock_cluster_t *cluster) {
        const char *servers = rd_kafka_mock_cluster_bootstraps(cluster);
        struct told told[3];
        rd_kafka_t *rk[3];
        int i;
        memset(told, 0, sizeof(told));
        rk[0] = client(RD_KAFKA_PRODUCER, servers, &told[0]);
        rk[1] = client(RD_KAFKA_PRODUCER, servers, &told[1]);
        rk[2] = client(RD_KAFKA_CONSUMER, servers, &told[2]);
        produce(rk[0]);
        ask(rk[1]);
        ask(rk[2]);
        /* Long enough for a connection to count as idle. */
        poll_for(rk, 3, 1500);
        for (i = 0; i < 3; i++)
                CHECK(told[i].transport + told[i].all_down + told[i].other == 0);
        for (i = 1; i <= 3; i++)
                CHECK(rd_kafka_mock_broker_set_down(cluster, i) == 0);
        UNTIL(all_were_told(told, 3), poll_for(rk, 3, 30));
        CHECK(told[0].transport >= 3 && told[1].transport >= 1 && told[2].transport >= 1);
        for (i = 0; i < 3; i++)
                CHECK(told[i].all_down == 1 && told[i].other == 0);
        for (i = 1; i <= 3; i++)
                CHECK(rd_kafka_mock_broker_set_up(cluster, i) == 0);
        produce(rk[0]);
        for (i = 0; i < 3; i++)
                rd_kafka_destroy(rk[i]);
}

/* Checks that a call has taken the time of default.api.timeout.ms, and not the 60 s of a commit by default. */
static void check_time(int line, long *began) {
        long took = millis() - *began;
        if (took < 600 || took >= SCALED_MS(20000)) {
                fprintf(stderr, "line %d: it took %ld ms\n", line, took);
                bad++;
        }
        *began = millis();
}

static void calls_without_a_timeout_end_after_the_default_that_is_set(void) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        const struct rd_kafka_metadata *metadata = NULL;
        const struct rd_kafka_group_list *groups = NULL;
        rd_kafka_topic_partition_list_t *offsets = rd_kafka_topic_partition_list_new(1);
        rd_kafka_AdminOptions_t *options;
        rd_kafka_queue_t *queue;
        rd_kafka_event_t *event;
        rd_kafka_t *rk, *patient;
        int64_t low, high;
        long began;
        set(conf, "bootstrap.servers", "127.0.0.1:1");
        set(conf, "group.id", "outage");
        set(conf, "log_level", "2");
        set(conf, "default.api.timeout.ms", "700");
        rk = start(RD_KAFKA_CONSUMER, conf);
        queue = rd_kafka_queue_new(rk);
        rd_kafka_topic_partition_list_add(offsets, "outage", 0)->offset = 5;
        began = millis();
        CHECK(rd_kafka_commit(rk, offsets, 0) != 0);
        check_time(__LINE__, &began);
        CHECK(rd_kafka_commit_queue(rk, offsets, queue, NULL, NULL) == 0);
        event = rd_kafka_queue_poll(queue, TIMEOUT_MS);
        CHECK(event && rd_kafka_event_error(event) != 0);
        check_time(__LINE__, &began);
        rd_kafka_event_destroy(event);
        CHECK(rd_kafka_committed(rk, offsets, -1) != 0 || offsets->elems[0].err != 0);
        check_time(__LINE__, &began);
        CHECK(rd_kafka_query_watermark_offsets(rk, "outage", 0, &low, &high, -1) != 0);
        check_time(__LINE__, &began);
        offsets->elems[0].offset = 1000;
        CHECK(rd_kafka_offsets_for_times(rk, offsets, -1) != 0);
        check_time(__LINE__, &began);
        CHECK(rd_kafka_metadata(rk, 1, NULL, &metadata, -1) != 0);
        check_time(__LINE__, &began);
        CHECK(rd_kafka_controllerid(rk, -1) == -1);
        check_time(__LINE__, &began);
        CHECK(rd_kafka_clusterid(rk, -1) == NULL);
        check_time(__LINE__, &began);
        CHECK(rd_kafka_list_groups(rk, NULL, &groups, -1) != 0);
        check_time(__LINE__, &began);
        options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_DESCRIBECLUSTER);
        rd_kafka_DescribeCluster(rk, options, queue);
        event = rd_kafka_queue_poll(queue, TIMEOUT_MS);
        CHECK(event && rd_kafka_event_error(event) != 0);
        check_time(__LINE__, &began);
        rd_kafka_event_destroy(event);
        rd_kafka_AdminOptions_destroy(options);
        /* A timeout of the call takes precedence. */
        conf = rd_kafka_conf_new();
        set(conf, "bootstrap.servers", "127.0.0.1:1");
        set(conf, "log_level", "2");
        set_ms(conf, "default.api.timeout.ms", TIMEOUT_MS);
        patient = start(RD_KAFKA_PRODUCER, conf);
        began = millis();
        CHECK(rd_kafka_metadata(patient, 1, NULL, &metadata, 100) != 0);
        CHECK(millis() - began < TIMEOUT_MS / 2);
        rd_kafka_destroy(patient);
        rd_kafka_queue_destroy(queue);
        rd_kafka_topic_partition_list_destroy(offsets);
        rd_kafka_destroy(rk);
}

int main(void) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_mock_cluster_t *cluster;
        rd_kafka_t *rk;
        int i;
        set(conf, "test.mock.num.brokers", "3");
        set(conf, "log_level", "2");
        rk = start(RD_KAFKA_PRODUCER, conf);
        cluster = rd_kafka_handle_mock_cluster(rk);
        CHECK(rd_kafka_mock_topic_create(cluster, "outage", 3, 1) == 0);
        for (i = 0; i < 3; i++)
                CHECK(rd_kafka_mock_partition_set_leader(cluster, "outage", i, i + 1) == 0);
        clients_that_are_idle_tell_of_each_broker_and_of_all_when_they_go(cluster);
        calls_without_a_timeout_end_after_the_default_that_is_set();
        rd_kafka_destroy(rk);
        return bad != 0;
}
