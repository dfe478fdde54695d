/* Topics of one client that differ in their configuration and share everything else. */
#include "test.h"
#include <errno.h>

#define MESSAGES 100

static int statistics, token;

/* The reports of the topics "all", "none", "own", "hasty", "patient". */
static struct {
        int reports, delivered, with_offset, timed_out, purged, in_partition_2;
} seen[5];

static int number_of(const char *name) {
        static const char *names[] = {"all", "none", "own", "hasty", "patient"};
        int i;
        for (i = 0; i < 5; i++)
                if (!strcmp(names[i], name))
                        return i;
        bad++;
        return 0;
}

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
        int topic = number_of(rd_kafka_topic_name(message->rkt));
        (void)rk;
        (void)opaque;
        seen[topic].reports++;
        seen[topic].delivered += message->err == 0;
        seen[topic].with_offset += message->offset >= 0;
        seen[topic].timed_out += message->err == RD_KAFKA_RESP_ERR__MSG_TIMED_OUT;
        seen[topic].purged += message->err == RD_KAFKA_RESP_ERR__PURGE_QUEUE ||
                              message->err == RD_KAFKA_RESP_ERR__PURGE_INFLIGHT;
        seen[topic].in_partition_2 += message->partition == 2;
        CHECK(message->_private == &token);
}

static int on_statistics(rd_kafka_t *rk, char *json, size_t len, void *opaque) {
        (void)rk;
        (void)len;
        (void)opaque;
        if (strstr(json, "\"all\":") && strstr(json, "\"none\":") && strstr(json, "\"own\":"))
                statistics++;
        return 0;
}

static int32_t to_2(const rd_kafka_topic_t *rkt, const void *key, size_t keylen, int32_t count, void *rkt_opaque,
                    void *msg_opaque) {
        CHECK(!strcmp(rd_kafka_topic_name(rkt), "own"));
        CHECK(keylen == 1 && *(const char *)key == 'k');
        CHECK(count == 4);
        CHECK(rkt_opaque == &bad && rd_kafka_topic_opaque(rkt) == &bad);
        CHECK(msg_opaque == &token);
        return 2;
}

static rd_kafka_t *client(rd_kafka_conf_t *conf, const char *brokers) {
        set(conf, "bootstrap.servers", brokers);
        return start(RD_KAFKA_PRODUCER, conf);
}

/* A topic with one or two properties of its own. */
static rd_kafka_topic_t *topic_with(rd_kafka_t *rk, const char *name, const char *property, const char *value,
                                    const char *other, const char *other_value) {
        rd_kafka_topic_conf_t *conf = rd_kafka_topic_conf_new();
        char errstr[256];
        CHECK(rd_kafka_topic_conf_set(conf, property, value, errstr, sizeof(errstr)) == RD_KAFKA_CONF_OK);
        if (other)
                CHECK(rd_kafka_topic_conf_set(conf, other, other_value, errstr, sizeof(errstr)) == RD_KAFKA_CONF_OK);
        errno = 0;
        return rd_kafka_topic_new(rk, name, conf);
}

static rd_kafka_topic_t *own_partitioner(rd_kafka_t *rk) {
        rd_kafka_topic_conf_t *conf = rd_kafka_topic_conf_new();
        rd_kafka_topic_conf_set_partitioner_cb(conf, to_2);
        rd_kafka_topic_conf_set_opaque(conf, &bad);
        return rd_kafka_topic_new(rk, "own", conf);
}

static int produce(rd_kafka_topic_t *topic, int32_t partition) {
        return rd_kafka_produce(topic, partition, RD_KAFKA_MSG_F_COPY, "values of a topic", 17, "k", 1, &token);
}

static void they_share_the_queue_flush_and_statistics(const char *brokers) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_topic_t *all, *none, *own;
        rd_kafka_t *rk;
        int i;
        set(conf, "linger.ms", "60000");
        set(conf, "statistics.interval.ms", "50");
        set(conf, "queue.buffering.max.messages", "300");
        rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
        rd_kafka_conf_set_stats_cb(conf, on_statistics);
        rk = client(conf, brokers);
        all = rd_kafka_topic_new(rk, "all", NULL);
        none = topic_with(rk, "none", "acks", "0", "compression.codec", "gzip");
        own = own_partitioner(rk);
        CHECK(all && none && own);
        for (i = 0; i < MESSAGES; i++) {
                CHECK(produce(all, i % 4) == 0);
                CHECK(produce(none, i % 4) == 0);
                CHECK(produce(own, RD_KAFKA_PARTITION_UA) == 0);
        }
        CHECK(rd_kafka_outq_len(rk) >= 3 * MESSAGES);
        CHECK(produce(none, 0) == -1 && rd_kafka_last_error() == RD_KAFKA_RESP_ERR__QUEUE_FULL);
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
        CHECK(rd_kafka_outq_len(rk) == 0);
        CHECK(seen[0].delivered == MESSAGES && seen[0].with_offset == MESSAGES && seen[0].in_partition_2 == 25);
        CHECK(seen[1].delivered == MESSAGES && seen[1].with_offset == 0);
        CHECK(seen[2].delivered == MESSAGES && seen[2].with_offset == MESSAGES);
        CHECK(seen[2].in_partition_2 == MESSAGES);
        UNTIL(statistics > 0, rd_kafka_poll(rk, 50));
        rd_kafka_topic_destroy(all);
        rd_kafka_topic_destroy(none);
        rd_kafka_topic_destroy(own);
        rd_kafka_destroy(rk);
}

/* There is no broker that accepts messages of either topic. */
static void each_has_its_own_time_and_a_purge_is_of_all(void) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_topic_t *hasty, *patient;
        rd_kafka_mock_cluster_t *cluster;
        rd_kafka_t *rk;
        int i;
        set(conf, "test.mock.num.brokers", "2");
        set(conf, "log_level", "0");
        rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
        rk = start(RD_KAFKA_PRODUCER, conf);
        cluster = rd_kafka_handle_mock_cluster(rk);
        CHECK(rd_kafka_mock_topic_create(cluster, "hasty", 4, 1) == 0);
        CHECK(rd_kafka_mock_topic_create(cluster, "patient", 4, 1) == 0);
        CHECK(rd_kafka_mock_broker_set_down(cluster, -1) == 0);
        hasty = topic_with(rk, "hasty", "message.timeout.ms", "400", NULL, NULL);
        patient = topic_with(rk, "patient", "message.timeout.ms", "0", NULL, NULL);
        for (i = 0; i < MESSAGES; i++)
                CHECK(produce(hasty, i % 4) == 0 && produce(patient, i % 4) == 0);
        UNTIL(seen[3].timed_out == MESSAGES, rd_kafka_poll(rk, 100));
        CHECK(seen[4].reports == 0 && rd_kafka_outq_len(rk) == MESSAGES);
        CHECK(rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT) == 0);
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0 && rd_kafka_outq_len(rk) == 0);
        CHECK(seen[4].purged == MESSAGES && seen[3].reports == MESSAGES);
        rd_kafka_topic_destroy(hasty);
        rd_kafka_topic_destroy(patient);
        rd_kafka_destroy(rk);
}

static void a_configuration_says_all_of_its_topic(const char *brokers) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_topic_conf_t *topic_conf;
        rd_kafka_topic_t *all, *own;
        char value[16];
        size_t size = sizeof(value);
        rd_kafka_t *rk;
        set(conf, "acks", "0");
        rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
        rk = client(conf, brokers);
        /* Properties that are not set have their usual defaults, not the client's values for topics. */
        own = own_partitioner(rk);
        topic_conf = rd_kafka_default_topic_conf_dup(rk);
        CHECK(rd_kafka_topic_conf_get(topic_conf, "acks", value, &size) == RD_KAFKA_CONF_OK && !strcmp(value, "0"));
        all = rd_kafka_topic_new(rk, "all", topic_conf);
        CHECK(produce(own, RD_KAFKA_PARTITION_UA) == 0 && produce(all, 0) == 0);
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
        CHECK(seen[2].delivered == 1 && seen[2].with_offset == 1);
        CHECK(seen[0].delivered == 1 && seen[0].with_offset == 0);
        rd_kafka_topic_destroy(all);
        rd_kafka_topic_destroy(own);
        rd_kafka_destroy(rk);
}

static void a_partitioner_sees_the_pointers_also_without_reports(const char *brokers) {
        rd_kafka_t *rk = client(rd_kafka_conf_new(), brokers);
        rd_kafka_topic_t *own = own_partitioner(rk);
        int i;
        for (i = 0; i < MESSAGES; i++)
                CHECK(produce(own, RD_KAFKA_PARTITION_UA) == 0);
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
        rd_kafka_topic_destroy(own);
        rd_kafka_destroy(rk);
}

static int refused(rd_kafka_topic_t *topic) {
        return !topic && errno == EINVAL && rd_kafka_last_error() == RD_KAFKA_RESP_ERR__INVALID_ARG;
}

static void what_contradicts_the_client_is_refused(const char *brokers) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_topic_t *topic;
        rd_kafka_t *rk;
        set(conf, "enable.idempotence", "true");
        set(conf, "linger.ms", "100");
        set(conf, "log_level", "2");
        rk = client(conf, brokers);
        CHECK(refused(topic_with(rk, "all", "acks", "1", NULL, NULL)));
        CHECK(refused(topic_with(rk, "all", "request.required.acks", "0", NULL, NULL)));
        CHECK(refused(topic_with(rk, "all", "message.timeout.ms", "100", NULL, NULL)));
        CHECK(refused(topic_with(rk, "all", "acks", "2", NULL, NULL)));
        topic = topic_with(rk, "all", "acks", "all", "message.timeout.ms", "30000");
        CHECK(topic && produce(topic, 0) == 0 && rd_kafka_flush(rk, TIMEOUT_MS) == 0);
        /* The topic is known now: the handle has the configuration with which it was created. */
        CHECK(topic_with(rk, "all", "acks", "1", NULL, NULL) == topic);
        rd_kafka_topic_destroy(topic);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
}

int main(int argc, char **argv) {
        if (argc < 2)
                return 2;
        they_share_the_queue_flush_and_statistics(argv[1]);
        if (argc > 2)
                return bad ? 1 : 0;
        each_has_its_own_time_and_a_purge_is_of_all();
        memset(seen, 0, sizeof(seen));
        a_configuration_says_all_of_its_topic(argv[1]);
        a_partitioner_sees_the_pointers_also_without_reports(argv[1]);
        what_contradicts_the_client_is_refused(argv[1]);
        return bad ? 1 : 0;
}
