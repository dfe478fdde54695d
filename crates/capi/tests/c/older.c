/* The effect of a topic's configuration on the older calls that read it. */
#include "test.h"

#define COUNT 40

static rd_kafka_t *client(rd_kafka_type_t type, const char *brokers, const char *group) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        set(conf, "bootstrap.servers", brokers);
        if (group) {
                /* The property applies to the group, not to the older calls. */
                set(conf, "group.id", group);
                set(conf, "auto.commit.interval.ms", "20");
        }
        if (type == RD_KAFKA_CONSUMER) {
                set(conf, "auto.offset.reset", "earliest");
                set(conf, "consume.callback.max.messages", "7");
                /* One batch each, so that several fetches are necessary. */
                set(conf, "max.partition.fetch.bytes", "1");
        } else {
                set(conf, "linger.ms", "60000");
        }
        return start(type, conf);
}

/* A topic with up to two properties of its own. */
static rd_kafka_topic_t *topic_of(rd_kafka_t *rk, const char *property, const char *value, const char *other,
                                  const char *other_value) {
        rd_kafka_topic_conf_t *conf = rd_kafka_topic_conf_new();
        char errstr[256];
        CHECK(!rd_kafka_topic_conf_set(conf, property, value, errstr, sizeof(errstr)));
        if (other)
                CHECK(!rd_kafka_topic_conf_set(conf, other, other_value, errstr, sizeof(errstr)));
        return rd_kafka_topic_new(rk, "older", conf);
}

static int64_t committed(rd_kafka_t *rk) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        int64_t offset;
        rd_kafka_topic_partition_list_add(list, "older", 0);
        CHECK(rd_kafka_committed(rk, list, TIMEOUT_MS) == 0);
        offset = list->elems[0].offset;
        rd_kafka_topic_partition_list_destroy(list);
        return offset;
}

/* Reads this number of messages, and waits a little after each. */
static void consume(rd_kafka_topic_t *topic, int count, int wait_ms) {
        int i;
        for (i = 0; i < count; i++) {
                rd_kafka_message_t *message = rd_kafka_consume(topic, 0, TIMEOUT_MS);
                CHECK(message && !message->err);
                if (message)
                        rd_kafka_message_destroy(message);
                usleep(wait_ms * 1000);
        }
}

static void on_message(rd_kafka_message_t *message, void *opaque) {
        if (!message->err)
                (*(int *)opaque)++;
}

static void the_topic_says_how_often_its_offsets_are_committed(const char *brokers) {
        rd_kafka_t *rk = client(RD_KAFKA_CONSUMER, brokers, "older-often");
        rd_kafka_topic_t *topic = topic_of(rk, "auto.commit.interval.ms", "50", "auto.offset.reset", "smallest");
        CHECK(rd_kafka_consume_start(topic, 0, RD_KAFKA_OFFSET_STORED) == 0);
        /* It reads all the time, and does not wait for messages. */
        consume(topic, COUNT / 2, 10);
        WAIT_FOR(committed(rk) > 0);
        CHECK(rd_kafka_consume_stop(topic, 0) == 0);
        CHECK(committed(rk) == COUNT / 2);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);

        /* By default once a minute, and at the end. */
        rk = client(RD_KAFKA_CONSUMER, brokers, "older-seldom");
        topic = topic_of(rk, "auto.offset.reset", "smallest", NULL, NULL);
        CHECK(rd_kafka_consume_start(topic, 0, RD_KAFKA_OFFSET_STORED) == 0);
        consume(topic, 10, 10);
        CHECK(committed(rk) == RD_KAFKA_OFFSET_INVALID);
        CHECK(rd_kafka_consume_stop(topic, 0) == 0);
        CHECK(committed(rk) == 10);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);

        /* Never, because the application named the offset. */
        rk = client(RD_KAFKA_CONSUMER, brokers, "older-named");
        topic = topic_of(rk, "auto.commit.interval.ms", "10", NULL, NULL);
        CHECK(rd_kafka_consume_start(topic, 0, 0) == 0);
        consume(topic, 10, 10);
        CHECK(rd_kafka_consume_stop(topic, 0) == 0);
        CHECK(committed(rk) == RD_KAFKA_OFFSET_INVALID);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);

        /* Never, because of the topic's configuration. */
        rk = client(RD_KAFKA_CONSUMER, brokers, "older-never");
        topic = topic_of(rk, "auto.commit.enable", "false", "auto.offset.reset", "smallest");
        CHECK(rd_kafka_consume_start(topic, 0, RD_KAFKA_OFFSET_STORED) == 0);
        consume(topic, 10, 10);
        CHECK(rd_kafka_consume_stop(topic, 0) == 0);
        CHECK(committed(rk) == RD_KAFKA_OFFSET_INVALID);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
}

static void the_topic_says_how_many_messages_a_callback_gets_at_once(const char *brokers) {
        rd_kafka_t *rk = client(RD_KAFKA_CONSUMER, brokers, NULL);
        rd_kafka_topic_t *topic = topic_of(rk, "consume.callback.max.messages", "3", NULL, NULL);
        int count = 0;
        CHECK(rd_kafka_consume_start(topic, 0, 0) == 0);
        consume(topic, 1, 100);
        CHECK(rd_kafka_consume_callback(topic, 0, TIMEOUT_MS, on_message, &count) == 3 && count == 3);
        CHECK(rd_kafka_consume_stop(topic, 0) == 0);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);

        /* Without a property of its own, the topic uses the client's. */
        rk = client(RD_KAFKA_CONSUMER, brokers, NULL);
        topic = rd_kafka_topic_new(rk, "older", NULL);
        CHECK(rd_kafka_consume_start(topic, 0, 0) == 0);
        consume(topic, 1, 100);
        CHECK(rd_kafka_consume_callback(topic, 0, TIMEOUT_MS, on_message, &count) == 7);
        CHECK(rd_kafka_consume_stop(topic, 0) == 0);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
}

static void the_topic_says_where_to_go_on(const char *brokers) {
        rd_kafka_t *rk = client(RD_KAFKA_CONSUMER, brokers, NULL);
        rd_kafka_topic_t *topic = topic_of(rk, "auto.offset.reset", "error", NULL, NULL);
        rd_kafka_message_t *message;
        CHECK(rd_kafka_consume_start(topic, 0, 100000) == 0);
        message = rd_kafka_consume(topic, 0, TIMEOUT_MS);
        CHECK(message && message->err == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET);
        if (message)
                rd_kafka_message_destroy(message);
        CHECK(rd_kafka_consume_stop(topic, 0) == 0);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
}

int main(int argc, char **argv) {
        rd_kafka_t *rk;
        int i;
        if (argc < 2)
                return 2;
        rk = client(RD_KAFKA_PRODUCER, argv[1], NULL);
        for (i = 0; i < COUNT; i++) {
                CHECK(!rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("older"), RD_KAFKA_V_PARTITION(0),
                                         RD_KAFKA_V_VALUE((void *)"x", 1), RD_KAFKA_V_END));
                if (i % 10 == 9)
                        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
        }
        rd_kafka_destroy(rk);
        the_topic_says_how_often_its_offsets_are_committed(argv[1]);
        the_topic_says_how_many_messages_a_callback_gets_at_once(argv[1]);
        the_topic_says_where_to_go_on(argv[1]);
        return bad != 0;
}
