/* Guarantees of single calls: many seeks at once, a purge that waits, latencies, leaders, configurations of a topic,
 * the callback for consumed messages, fatal errors, and warnings. */
#include "test.h"

static int reports, warnings, consumed, deprecated;
static int64_t latency;
static rd_kafka_resp_err_t reported, told;

static int64_t now_us(void) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void on_report(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
        (void)rk;
        (void)opaque;
        reports++;
        reported = message->err;
        latency = rd_kafka_message_latency(message);
}

static void on_message(rd_kafka_message_t *message, void *opaque) {
        CHECK(opaque == &consumed);
        if (!message->err)
                consumed++;
}

static void on_error(rd_kafka_t *rk, int err, const char *reason, void *opaque) {
        (void)rk;
        (void)reason;
        (void)opaque;
        if (err == RD_KAFKA_RESP_ERR__FATAL)
                told = err;
}

static void on_log(const rd_kafka_t *rk, int level, const char *facility, const char *line) {
        (void)rk;
        if (strcmp(facility, "CONFWARN"))
                return;
        CHECK(level == 4);
        warnings++;
        if (strstr(line, "api.version.request") || strstr(line, "auto.commit.enable"))
                deprecated++;
        else
                fprintf(stderr, "%s\n", line);
}

static rd_kafka_t *client(rd_kafka_type_t type, rd_kafka_conf_t *conf, const char *servers) {
        set(conf, "bootstrap.servers", servers);
        if (type == RD_KAFKA_CONSUMER)
                set(conf, "group.id", "details");
        else
                rd_kafka_conf_set_dr_msg_cb(conf, on_report);
        return start(type, conf);
}

static int produce(rd_kafka_t *rk, int32_t partition) {
        return rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("details"), RD_KAFKA_V_PARTITION(partition),
                                 RD_KAFKA_V_VALUE((void *)"value", 5), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                                 RD_KAFKA_V_END);
}

/* A configuration that causes no warning. */
static void warns_of_nothing_that_works(const char *servers) {
        static const char *names[] = {"enable.auto.commit", "enable.auto.offset.store", "auto.commit.interval.ms",
                                      "consume.callback.max.messages"};
        static const char *values[] = {"false", "false", "1000", "10"};
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        char errstr[256];
        rd_kafka_topic_conf_t *topic_conf = rd_kafka_topic_conf_new();
        int i;
        CHECK(rd_kafka_topic_conf_set(topic_conf, "auto.commit.interval.ms", "100", errstr, sizeof(errstr)) == 0);
        CHECK(rd_kafka_topic_conf_set(topic_conf, "auto.offset.reset", "earliest", errstr, sizeof(errstr)) == 0);
        rd_kafka_conf_set_default_topic_conf(conf, topic_conf);
        for (i = 0; i < 4; i++)
                set(conf, names[i], values[i]);
        rd_kafka_conf_set_log_cb(conf, on_log);
        rd_kafka_destroy(client(RD_KAFKA_CONSUMER, conf, servers));
        CHECK(warnings == 0);
        /* A default topic configuration that replaces topic properties, which are lost. */
        conf = rd_kafka_conf_new();
        set(conf, "auto.offset.reset", "earliest");
        rd_kafka_conf_set_default_topic_conf(conf, rd_kafka_topic_conf_new());
        rd_kafka_conf_set_log_cb(conf, on_log);
        rd_kafka_destroy(client(RD_KAFKA_CONSUMER, conf, servers));
        CHECK(warnings == 1);
        warnings = 0;
        /* Deprecated properties cause a warning, and work. */
        conf = rd_kafka_conf_new();
        set(conf, "api.version.request", "false");
        topic_conf = rd_kafka_topic_conf_new();
        CHECK(rd_kafka_topic_conf_set(topic_conf, "auto.commit.enable", "false", errstr, sizeof(errstr)) == 0);
        rd_kafka_conf_set_default_topic_conf(conf, topic_conf);
        rd_kafka_conf_set_log_cb(conf, on_log);
        rd_kafka_destroy(client(RD_KAFKA_CONSUMER, conf, servers));
        CHECK(deprecated == 2 && warnings == 2);
}

int main(void) {
        char errstr[256];
        const char *servers;
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_topic_conf_t *topic_conf;
        rd_kafka_topic_partition_list_t *list;
        rd_kafka_mock_cluster_t *cluster;
        rd_kafka_message_t *message;
        rd_kafka_topic_t *topic, *again;
        rd_kafka_error_t *error;
        rd_kafka_t *rk, *other;
        int64_t before;
        int i;

        set(conf, "test.mock.num.brokers", "2");
        set(conf, "log_level", "2");
        rk = client(RD_KAFKA_PRODUCER, conf, "");
        cluster = rd_kafka_handle_mock_cluster(rk);
        servers = rd_kafka_mock_cluster_bootstraps(cluster);
        CHECK(rd_kafka_mock_topic_create(cluster, "details", 4, 1) == 0);
        warns_of_nothing_that_works(servers);

        /* The latency is the time between the call and the report. */
        before = now_us();
        CHECK(produce(rk, 0) == 0 && rd_kafka_flush(rk, TIMEOUT_MS) == 0);
        CHECK(reports == 1 && latency > 0 && latency <= now_us() - before);
        for (i = 1; i < 200; i++)
                CHECK(produce(rk, i % 4) == 0);
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0 && reports == 200);

        /* A partition is available if it has a leader. */
        topic_conf = rd_kafka_topic_conf_new();
        rd_kafka_topic_conf_set_opaque(topic_conf, &bad);
        topic = rd_kafka_topic_new(rk, "details", topic_conf);
        for (i = 0; i < 4; i++)
                CHECK(rd_kafka_topic_partition_available(topic, i) == 1);
        CHECK(rd_kafka_topic_partition_available(topic, 4) == 0);
        CHECK(rd_kafka_topic_partition_available(topic, -1) == 0);
        CHECK(rd_kafka_topic_partition_available(NULL, 0) == 0);
        /* The second configuration of a topic is freed; the handle is the same. */
        topic_conf = rd_kafka_topic_conf_new();
        rd_kafka_topic_conf_set_opaque(topic_conf, &reports);
        again = rd_kafka_topic_new(rk, "details", topic_conf);
        CHECK(again == topic && rd_kafka_topic_opaque(again) == rd_kafka_topic_opaque(topic));
        rd_kafka_topic_destroy(again);
        rd_kafka_topic_destroy(topic);
        CHECK(rd_kafka_queue_get_partition(rk, "details", 0) == NULL);

        /* A purge returns when the reports are queued. */
        conf = rd_kafka_conf_new();
        set(conf, "linger.ms", "60000");
        other = client(RD_KAFKA_PRODUCER, conf, servers);
        for (i = 0; i < 20; i++) {
                int count;
                reports = 0;
                for (count = 0; count < 100; count++)
                        CHECK(produce(other, count % 4) == 0);
                CHECK(rd_kafka_purge(other, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT) == 0);
                while (rd_kafka_poll(other, 0) > 0)
                        ;
                CHECK(reports == 100 && reported == RD_KAFKA_RESP_ERR__PURGE_QUEUE);
                CHECK(rd_kafka_outq_len(other) == 0);
        }
        CHECK(produce(other, 0) == 0);
        CHECK(rd_kafka_purge(other, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_NON_BLOCKING) == 0);
        CHECK(rd_kafka_flush(other, TIMEOUT_MS) == 0 && reports == 101);

        /* After a fatal error every call returns it, and one returns its cause. */
        rd_kafka_destroy(other);
        conf = rd_kafka_conf_new();
        set(conf, "log_level", "0");
        rd_kafka_conf_set_error_cb(conf, on_error);
        other = client(RD_KAFKA_PRODUCER, conf, servers);
        CHECK(rd_kafka_fatal_error(other, errstr, sizeof(errstr)) == RD_KAFKA_RESP_ERR_NO_ERROR);
        CHECK(rd_kafka_test_fatal_error(other, RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, "because") == 0);
        CHECK(produce(other, 0) == RD_KAFKA_RESP_ERR__FATAL);
        CHECK(rd_kafka_fatal_error(other, errstr, sizeof(errstr)) == RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
        CHECK(strstr(errstr, "because") != NULL);
        UNTIL(told == RD_KAFKA_RESP_ERR__FATAL, rd_kafka_poll(other, 100));
        rd_kafka_destroy(other);

        /* Many seeks in one call have an error each. */
        conf = rd_kafka_conf_new();
        set(conf, "enable.auto.commit", "false");
        other = client(RD_KAFKA_CONSUMER, conf, servers);
        list = rd_kafka_topic_partition_list_new(6);
        for (i = 0; i < 4; i++)
                rd_kafka_topic_partition_list_add(list, "details", i)->offset = RD_KAFKA_OFFSET_BEGINNING;
        CHECK(rd_kafka_assign(other, list) == 0);
        message = rd_kafka_consumer_poll(other, TIMEOUT_MS);
        CHECK(message && !message->err && message->offset == 0);
        if (message)
                rd_kafka_message_destroy(message);
        for (i = 0; i < 4; i++)
                list->elems[i].offset = 40 + i;
        rd_kafka_topic_partition_list_add(list, "details", 77)->offset = 1;
        rd_kafka_topic_partition_list_add(list, "details", 3)->offset = RD_KAFKA_OFFSET_STORED;
        error = rd_kafka_seek_partitions(other, list, TIMEOUT_MS);
        CHECK(error == NULL);
        for (i = 0; i < 4; i++)
                CHECK(list->elems[i].err == RD_KAFKA_RESP_ERR_NO_ERROR);
        CHECK(list->elems[4].err != RD_KAFKA_RESP_ERR_NO_ERROR);
        CHECK(list->elems[5].err == RD_KAFKA_RESP_ERR__INVALID_ARG);
        {
                int seen[4] = {0, 0, 0, 0};
                for (i = 0; i < 40 && !(seen[0] && seen[1] && seen[2] && seen[3]); i++) {
                        message = rd_kafka_consumer_poll(other, TIMEOUT_MS);
                        if (!message)
                                break;
                        if (!message->err && !seen[message->partition]) {
                                CHECK(message->offset == 40 + message->partition);
                                seen[message->partition] = 1;
                        }
                        rd_kafka_message_destroy(message);
                }
                CHECK(seen[0] && seen[1] && seen[2] && seen[3]);
        }
        CHECK(rd_kafka_seek_partitions(other, list, 0) == NULL);
        CHECK(list->elems[0].err == RD_KAFKA_RESP_ERR__IN_PROGRESS);
        rd_kafka_destroy(other);

        /* The callback for consumed messages is called by rd_kafka_poll(). */
        conf = rd_kafka_conf_new();
        rd_kafka_conf_set_consume_cb(conf, on_message);
        rd_kafka_conf_set_opaque(conf, &consumed);
        other = client(RD_KAFKA_CONSUMER, conf, servers);
        CHECK(rd_kafka_poll_set_consumer(other) == 0);
        rd_kafka_topic_partition_list_destroy(list);
        list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_topic_partition_list_add(list, "details", 1)->offset = RD_KAFKA_OFFSET_BEGINNING;
        CHECK(rd_kafka_assign(other, list) == 0);
        UNTIL(consumed >= 50, rd_kafka_poll(other, 100));
        CHECK(consumed == 50);
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_destroy(other);
        rd_kafka_destroy(rk);
        return bad != 0;
}
