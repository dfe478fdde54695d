/* Properties about the partitions of records without a key, topics, and the name of a server; and the statistics of
 * the older calls. */
#include "test.h"

static int warnings, seen_partitions[4], failures, simple_count = -1;
static rd_kafka_resp_err_t last_error;

static void on_log(const rd_kafka_t *rk, int level, const char *facility, const char *line) {
        (void)rk;
        (void)level;
        if (!strcmp(facility, "CONFWARN")) {
                fprintf(stderr, "%s\n", line);
                warnings++;
        }
}

static void on_report(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
        (void)rk;
        (void)opaque;
        last_error = message->err;
        if (message->err)
                failures++;
        else if (message->partition >= 0 && message->partition < 4)
                seen_partitions[message->partition]++;
}

static int on_statistics(rd_kafka_t *rk, char *json, size_t size, void *opaque) {
        const char *found = strstr(json, "\"simple_cnt\":");
        (void)rk;
        (void)size;
        (void)opaque;
        CHECK(found != NULL);
        if (found)
                simple_count = atoi(found + strlen("\"simple_cnt\":"));
        return 0;
}

static rd_kafka_conf_t *configuration(const char *servers) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        set(conf, "bootstrap.servers", servers);
        rd_kafka_conf_set_log_cb(conf, on_log);
        rd_kafka_conf_set_dr_msg_cb(conf, on_report);
        return conf;
}

/* Sends messages one after the other; returns the number of partitions that contain them. */
static int spread(rd_kafka_t *rk, const char *topic, int count) {
        int i, used = 0;
        memset(seen_partitions, 0, sizeof(seen_partitions));
        for (i = 0; i < count; i++) {
                CHECK(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_VALUE((void *)"x", 1),
                                        RD_KAFKA_V_END) == 0);
                CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
        }
        for (i = 0; i < 4; i++)
                used += seen_partitions[i] > 0;
        return used;
}

static void records_without_a_key_stay_where_they_are_for_as_long_as_is_said(const char *servers) {
        static const char *lingers[] = {NULL, "600000", "0"};
        int i;
        for (i = 0; i < 3; i++) {
                rd_kafka_conf_t *conf = configuration(servers);
                rd_kafka_t *rk;
                set(conf, "linger.ms", "0");
                if (lingers[i])
                        set(conf, "sticky.partitioning.linger.ms", lingers[i]);
                rk = start(RD_KAFKA_PRODUCER, conf);
                if (i == 1)
                        CHECK(spread(rk, "spread", 20) == 1);
                else
                        CHECK(spread(rk, "spread", 20) > 1);
                rd_kafka_destroy(rk);
        }
}

static void a_topic_on_the_black_list_is_not_sent_to_and_listed_nevertheless(const char *servers) {
        static const char *wrong[] = {"[", "fine,(", "*"};
        const struct rd_kafka_metadata *metadata;
        char errstr[256];
        int i, listed = 0;
        rd_kafka_conf_t *conf = configuration(servers);
        rd_kafka_t *rk;
        for (i = 0; i < 3; i++) {
                CHECK(rd_kafka_conf_set(conf, "topic.blacklist", wrong[i], errstr, sizeof(errstr)) ==
                      RD_KAFKA_CONF_INVALID);
                CHECK(strstr(errstr, "topic.blacklist") && strstr(errstr, "regular expression"));
        }
        set(conf, "topic.blacklist", "^nothing$,dden");
        /* Enough for the topic that is shown. */
        set_ms(conf, "message.timeout.ms", SCALED_MS(4000));
        rk = start(RD_KAFKA_PRODUCER, conf);
        failures = 0;
        CHECK(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("hidden"), RD_KAFKA_V_VALUE((void *)"x", 1), RD_KAFKA_V_END) == 0);
        CHECK(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("shown"), RD_KAFKA_V_VALUE((void *)"x", 1), RD_KAFKA_V_END) == 0);
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
        CHECK(failures == 1 && last_error == RD_KAFKA_RESP_ERR__MSG_TIMED_OUT);
        CHECK(rd_kafka_metadata(rk, 1, NULL, &metadata, TIMEOUT_MS) == 0);
        for (i = 0; i < metadata->topic_cnt; i++)
                listed += !strcmp(metadata->topics[i].topic, "hidden");
        CHECK(listed == 1);
        rd_kafka_metadata_destroy(metadata);
        rd_kafka_destroy(rk);
}

static void servers_are_found_under_the_names_of_their_addresses(const char *servers) {
        rd_kafka_conf_t *conf = configuration(servers);
        rd_kafka_t *rk;
        set(conf, "client.dns.lookup", "resolve_canonical_bootstrap_servers_only");
        set(conf, "topic.metadata.refresh.sparse", "false");
        set(conf, "topic.metadata.refresh.interval.ms", "50");
        rk = start(RD_KAFKA_PRODUCER, conf);
        CHECK(spread(rk, "shown", 5) >= 1);
        usleep(200000);
        CHECK(spread(rk, "shown", 5) >= 1);
        rd_kafka_destroy(rk);
}

static void the_statistics_count_what_the_older_calls_began(const char *servers) {
        rd_kafka_conf_t *conf = configuration(servers);
        rd_kafka_topic_t *topic;
        rd_kafka_t *rk;
        set(conf, "statistics.interval.ms", "50");
        rd_kafka_conf_set_stats_cb(conf, on_statistics);
        rk = start(RD_KAFKA_CONSUMER, conf);
        topic = rd_kafka_topic_new(rk, "spread", NULL);
        UNTIL(simple_count == 0, rd_kafka_poll(rk, 50));
        CHECK(rd_kafka_consume_start(topic, 0, RD_KAFKA_OFFSET_BEGINNING) == 0);
        CHECK(rd_kafka_consume_start(topic, 1, RD_KAFKA_OFFSET_BEGINNING) == 0);
        CHECK(rd_kafka_consume_start(topic, 1, RD_KAFKA_OFFSET_BEGINNING) == -1);
        UNTIL(simple_count == 2, rd_kafka_poll(rk, 50));
        CHECK(rd_kafka_consume_stop(topic, 0) == 0 && rd_kafka_consume_stop(topic, 1) == 0);
        CHECK(rd_kafka_consume_start(topic, 0, RD_KAFKA_OFFSET_BEGINNING) == 0);
        UNTIL(simple_count == 3, rd_kafka_poll(rk, 50));
        CHECK(rd_kafka_consume_stop(topic, 0) == 0);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
}

static void a_message_that_blocks_waits_for_the_time_that_is_set(void) {
        rd_kafka_conf_t *conf = configuration("127.0.0.1:1");
        rd_kafka_topic_t *topic;
        rd_kafka_t *rk;
        long began;
        set(conf, "queue.buffering.max.messages", "1");
        set(conf, "max.block.ms", "1300");
        rk = start(RD_KAFKA_PRODUCER, conf);
        topic = rd_kafka_topic_new(rk, "spread", NULL);
        CHECK(rd_kafka_produce(topic, 0, RD_KAFKA_MSG_F_BLOCK, "x", 1, NULL, 0, NULL) == 0);
        began = millis();
        CHECK(rd_kafka_produce(topic, 0, RD_KAFKA_MSG_F_BLOCK, "x", 1, NULL, 0, NULL) == -1);
        CHECK(rd_kafka_last_error() == RD_KAFKA_RESP_ERR__QUEUE_FULL);
        CHECK(millis() - began >= 1300 && millis() - began < SCALED_MS(20000));
        CHECK(rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE) == 0);
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
}

int main(void) {
        rd_kafka_t *owner = start(RD_KAFKA_PRODUCER, rd_kafka_conf_new());
        rd_kafka_mock_cluster_t *cluster = rd_kafka_mock_cluster_new(owner, 1);
        const char *servers = rd_kafka_mock_cluster_bootstraps(cluster);
        CHECK(rd_kafka_mock_topic_create(cluster, "spread", 4, 1) == 0);
        CHECK(rd_kafka_mock_topic_create(cluster, "hidden", 1, 1) == 0);
        CHECK(rd_kafka_mock_topic_create(cluster, "shown", 1, 1) == 0);
        records_without_a_key_stay_where_they_are_for_as_long_as_is_said(servers);
        a_topic_on_the_black_list_is_not_sent_to_and_listed_nevertheless(servers);
        servers_are_found_under_the_names_of_their_addresses(servers);
        the_statistics_count_what_the_older_calls_began(servers);
        a_message_that_blocks_waits_for_the_time_that_is_set();
        CHECK(warnings == 0);
        rd_kafka_mock_cluster_destroy(cluster);
        rd_kafka_destroy(owner);
        return bad != 0;
}
