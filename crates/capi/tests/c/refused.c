/* Topics that the cluster creates, and topics that it refuses. */
#include "test.h"
#include <errno.h>

static int reports;
static rd_kafka_resp_err_t reported;

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
        (void)rk;
        (void)opaque;
        reports++;
        reported = message->err;
}

static rd_kafka_t *producer(const char *property, const char *value, const char *other, const char *other_value) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
        set(conf, "log_level", "0");
        set(conf, property, value);
        if (other)
                set(conf, other, other_value);
        return start(RD_KAFKA_PRODUCER, conf);
}

/* The number of a topic's partitions, among all topics. */
static int partitions_of(rd_kafka_t *rk, const char *name) {
        const struct rd_kafka_metadata *metadata;
        int i, count = 0;
        if (rd_kafka_metadata(rk, 1, NULL, &metadata, TIMEOUT_MS))
                return -1;
        for (i = 0; i < metadata->topic_cnt; i++)
                if (!strcmp(metadata->topics[i].topic, name))
                        count = metadata->topics[i].partition_cnt;
        rd_kafka_metadata_destroy(metadata);
        return count;
}

static int produce(rd_kafka_topic_t *topic, int32_t partition) {
        return rd_kafka_produce(topic, partition, RD_KAFKA_MSG_F_COPY, "x", 1, NULL, 0, NULL);
}

static void a_topic_handle_creates_the_topic(const char *brokers) {
        rd_kafka_t *rk = producer("bootstrap.servers", brokers, NULL, NULL);
        rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, "made by its handle", NULL);
        rd_kafka_topic_t *named = rd_kafka_topic_new(rk, "made-by-its-handle", NULL);
        CHECK(topic && named);
        UNTIL(partitions_of(rk, "made-by-its-handle") > 0, usleep(20000));
        UNTIL(rd_kafka_topic_partition_available(named, 0), usleep(20000));
        rd_kafka_topic_destroy(topic);
        rd_kafka_topic_destroy(named);
        rd_kafka_destroy(rk);
}

static void a_topic_handle_creates_nothing_when_that_is_not_allowed(const char *brokers) {
        rd_kafka_t *rk = producer("bootstrap.servers", brokers, "allow.auto.create.topics", "false");
        rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, "not-allowed", NULL);
        rd_kafka_topic_t *known = rd_kafka_topic_new(rk, "made-by-its-handle", NULL);
        UNTIL(rd_kafka_topic_partition_available(known, 0), usleep(20000));
        usleep(300000);
        CHECK(partitions_of(rk, "not-allowed") == 0);
        rd_kafka_topic_destroy(topic);
        rd_kafka_topic_destroy(known);
        rd_kafka_destroy(rk);
}

static void a_bad_name_fails_the_report_and_then_the_call(const char *brokers) {
        static char longest[513], longer[514];
        const char *names[] = {"bad name!", "a/b", ".", "", longest};
        rd_kafka_t *rk = producer("bootstrap.servers", brokers, NULL, NULL);
        size_t i;
        int taken = 0;
        reports = 0;
        memset(longest, 'a', sizeof(longest) - 1);
        memset(longer, 'a', sizeof(longer) - 1);
        for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
                rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, names[i], NULL);
                CHECK(topic);
                /* The brokers may have refused the name already. */
                taken += produce(topic, 0) == 0;
                CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
                CHECK(reports == taken && (!taken || reported == RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION));
                UNTIL(produce(topic, 0) == -1, taken++; rd_kafka_flush(rk, TIMEOUT_MS));
                errno = 0;
                CHECK(produce(topic, 0) == -1 && errno == ENOENT);
                CHECK(rd_kafka_last_error() == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC);
                rd_kafka_topic_destroy(topic);
        }
        CHECK(taken > 0);
        CHECK(!rd_kafka_topic_new(rk, longer, NULL) && errno == EINVAL);
        rd_kafka_destroy(rk);
}

/* The effect of a topic's error on a message that is produced when the error is known. */
static void a_refused_topic(rd_kafka_resp_err_t error, rd_kafka_resp_err_t at_the_call) {
        rd_kafka_t *rk = producer("test.mock.num.brokers", "1", "topic.metadata.refresh.interval.ms", "100");
        rd_kafka_mock_cluster_t *cluster = rd_kafka_handle_mock_cluster(rk);
        rd_kafka_message_t messages[2];
        rd_kafka_topic_t *topic;
        CHECK(rd_kafka_mock_topic_create(cluster, "t", 2, 1) == 0);
        topic = rd_kafka_topic_new(rk, "t", NULL);
        CHECK(produce(topic, 0) == 0);
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0 && reported == 0);
        rd_kafka_mock_topic_set_error(cluster, "t", error);
        UNTIL(produce(topic, 0) == -1, rd_kafka_poll(rk, 20));
        CHECK(rd_kafka_last_error() == at_the_call);
        CHECK(produce(topic, RD_KAFKA_PARTITION_UA) == -1 && rd_kafka_last_error() == at_the_call);
        CHECK(produce(topic, 9) == -1 && rd_kafka_last_error() == at_the_call);
        CHECK(rd_kafka_producev(rk, RD_KAFKA_V_RKT(topic), RD_KAFKA_V_END) == at_the_call);
        memset(messages, 0, sizeof(messages));
        CHECK(rd_kafka_produce_batch(topic, 0, 0, messages, 2) == 0);
        CHECK(messages[0].err == at_the_call && messages[1].err == at_the_call);
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
        rd_kafka_mock_topic_set_error(cluster, "t", RD_KAFKA_RESP_ERR_NO_ERROR);
        UNTIL(produce(topic, 1) == 0, rd_kafka_poll(rk, 20));
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0 && reported == 0);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
}

static void create_compacted(rd_kafka_t *rk, const char *name) {
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
        rd_kafka_NewTopic_t *topic = rd_kafka_NewTopic_new(name, 1, 1, NULL, 0);
        rd_kafka_event_t *event;
        CHECK(rd_kafka_NewTopic_set_config(topic, "cleanup.policy", "compact") == 0);
        rd_kafka_CreateTopics(rk, &topic, 1, NULL, queue);
        event = rd_kafka_queue_poll(queue, TIMEOUT_MS);
        CHECK(event && !rd_kafka_event_error(event));
        rd_kafka_event_destroy(event);
        rd_kafka_NewTopic_destroy(topic);
        rd_kafka_queue_destroy(queue);
}

static rd_kafka_resp_err_t fates[8];
static int64_t offsets[8];

static void on_fate(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
        (void)rk;
        (void)opaque;
        reports++;
        fates[(size_t)message->_private] = message->err;
        offsets[(size_t)message->_private] = message->offset;
        if (message->err)
                CHECK(rd_kafka_message_status(message) == RD_KAFKA_MSG_STATUS_NOT_PERSISTED);
}

/* Records without a key are invalid in a compacted topic. */
static void invalid_records_fail_with_an_error_of_their_own(const char *brokers, const char *idempotence,
                                                            const char *codec, const char *name) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_t *rk;
        size_t i;
        int round;
        rd_kafka_conf_set_dr_msg_cb(conf, on_fate);
        set(conf, "log_level", "0");
        set(conf, "bootstrap.servers", brokers);
        set(conf, "linger.ms", "60000");
        set(conf, "enable.idempotence", idempotence);
        set(conf, "compression.codec", codec);
        rk = start(RD_KAFKA_PRODUCER, conf);
        create_compacted(rk, name);
        for (round = 0; round < 2; round++) {
                reports = 0;
                for (i = 0; i < 4; i++) {
                        size_t key = !round && (i == 1 || i == 3) ? 0 : 1;
                        CHECK(!rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(name), RD_KAFKA_V_PARTITION(0),
                                                 RD_KAFKA_V_KEY(key ? "k" : NULL, key), RD_KAFKA_V_VALUE("v", 1),
                                                 RD_KAFKA_V_OPAQUE((void *)i), RD_KAFKA_V_END));
                }
                CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0 && reports == 4);
                for (i = 0; i < 4; i++) {
                        CHECK(fates[i] == (round     ? RD_KAFKA_RESP_ERR_NO_ERROR
                                           : i & 1 ? RD_KAFKA_RESP_ERR_INVALID_RECORD
                                                   : RD_KAFKA_RESP_ERR__INVALID_DIFFERENT_RECORD));
                        CHECK(!round || offsets[i] == (int64_t)i);
                }
        }
        rd_kafka_destroy(rk);
}

int main(int argc, char **argv) {
        if (argc < 2)
                return 2;
        a_topic_handle_creates_the_topic(argv[1]);
        a_topic_handle_creates_nothing_when_that_is_not_allowed(argv[1]);
        a_bad_name_fails_the_report_and_then_the_call(argv[1]);
        a_refused_topic(RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
        a_refused_topic(RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION, RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC);
        invalid_records_fail_with_an_error_of_their_own(argv[1], "false", "none", "compacted-1");
        invalid_records_fail_with_an_error_of_their_own(argv[1], "true", "lz4", "compacted-2");
        return bad;
}
