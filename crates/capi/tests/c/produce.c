/* Memory rules of producing: each flag, reports by callback and by event, headers, batches, the queue's limit. */
#include "test.h"

static int reports;
static char mine[] = "my own";
static char large[20000];

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
        rd_kafka_headers_t *headers;
        const void *value;
        size_t size;
        rd_kafka_timestamp_type_t kind;
        (void)rk;
        CHECK(opaque == &reports);
        CHECK(message->err == 0);
        CHECK(message->offset >= 0);
        CHECK(rd_kafka_message_status(message) == RD_KAFKA_MSG_STATUS_PERSISTED);
        switch ((int)(long)message->_private) {
        case 1: /* A copy. */
                CHECK(message->payload != mine && message->len == 4 && !memcmp(message->payload, "copy", 4));
                CHECK(message->key_len == 1 && !memcmp(message->key, "k", 1));
                break;
        case 2: /* Freed after this. */
                CHECK(message->len == 4 && !memcmp(message->payload, "free", 4));
                break;
        case 3: /* The application's own pointer. */
                CHECK(message->payload == mine && message->len == strlen(mine));
                break;
        case 4:
                CHECK(rd_kafka_message_timestamp(message, &kind) == 1234567890123 &&
                      kind == RD_KAFKA_TIMESTAMP_CREATE_TIME);
                CHECK(rd_kafka_message_headers(message, &headers) == 0);
                CHECK(rd_kafka_header_get_last(headers, "h", &value, &size) == 0 && size == 2 &&
                      !memcmp(value, "v2", 2));
                break;
        case 5: /* Nothing at all. */
                CHECK(!message->payload && message->len == 0 && !message->key && message->key_len == 0);
                break;
        case 6: /* Empty, which is not nothing. */
                CHECK(message->payload && message->len == 0 && message->key && message->key_len == 0);
                break;
        case 7: /* A large payload, and a key behind it. */
                CHECK(message->len == sizeof(large) && !memcmp(message->payload, large, sizeof(large)));
                CHECK(message->key_len == 3 && !memcmp(message->key, "key", 3));
                break;
        case 8: /* It gets headers now: they go with it. */
                headers = rd_kafka_headers_new(1);
                rd_kafka_header_add(headers, "late", -1, "v", 1);
                rd_kafka_message_set_headers((rd_kafka_message_t *)message, headers);
                headers = NULL;
                CHECK(rd_kafka_message_headers(message, &headers) == 0 && rd_kafka_header_cnt(headers) == 1);
                /* The message of a report does not belong to the application. */
                rd_kafka_message_destroy((rd_kafka_message_t *)message);
                CHECK(message->len == 4 && !memcmp(message->payload, "late", 4));
                break;
        }
        CHECK(rd_kafka_message_latency(message) >= 0 && rd_kafka_message_latency(message) < SCALED_MS(60000) * 1000L);
        CHECK(rd_kafka_message_timestamp(message, &kind) > 0 && kind == RD_KAFKA_TIMESTAMP_CREATE_TIME);
        CHECK(!strcmp(rd_kafka_topic_name(message->rkt), "produce") && message->partition >= 0);
        reports++;
}

static rd_kafka_t *producer(const char *brokers, int events) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        set(conf, "bootstrap.servers", brokers);
        set(conf, "queue.buffering.max.messages", "1000");
        rd_kafka_conf_set_opaque(conf, &reports);
        if (events)
                rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_DR);
        else
                rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
        return start(RD_KAFKA_PRODUCER, conf);
}

/* A message of each kind, which the library stores in different ways. */
static void produce_each(rd_kafka_topic_t *topic) {
        CHECK(rd_kafka_produce(topic, 0, RD_KAFKA_MSG_F_COPY, NULL, 0, NULL, 0, (void *)5) == 0);
        CHECK(rd_kafka_produce(topic, 0, RD_KAFKA_MSG_F_COPY, "", 0, "", 0, (void *)6) == 0);
        CHECK(rd_kafka_produce(topic, 0, RD_KAFKA_MSG_F_COPY, large, sizeof(large), "key", 3, (void *)7) == 0);
        CHECK(rd_kafka_produce(topic, 0, RD_KAFKA_MSG_F_COPY, "late", 4, NULL, 0, (void *)8) == 0);
        CHECK(rd_kafka_produce(topic, 0, 0, mine, strlen(mine), NULL, 0, (void *)3) == 0);
        CHECK(rd_kafka_produce(topic, 0, RD_KAFKA_MSG_F_COPY, "copy", 4, "k", 1, (void *)1) == 0);
}

static void a_refused_payload_stays_the_applications(rd_kafka_topic_t *topic) {
        char *payload = strdup("refused");
        CHECK(rd_kafka_produce(topic, 99, RD_KAFKA_MSG_F_FREE, payload, strlen(payload), NULL, 0, NULL) == -1);
        CHECK(rd_kafka_last_error() == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION && !strcmp(payload, "refused"));
        free(payload);
}

int main(int argc, char **argv) {
        static rd_kafka_message_t many[1100];
        rd_kafka_message_t messages[10];
        rd_kafka_headers_t *headers;
        rd_kafka_topic_t *topic;
        rd_kafka_queue_t *queue;
        rd_kafka_t *rk;
        int i, taken;

        if (argc < 2)
                return 2;
        memset(large, 'l', sizeof(large));
        rk = producer(argv[1], 0);
        topic = rd_kafka_topic_new(rk, "produce", NULL);
        CHECK(rd_kafka_produce(topic, 0, RD_KAFKA_MSG_F_COPY, "copy", 4, "k", 1, (void *)1) == 0);
        CHECK(rd_kafka_produce(topic, 1, RD_KAFKA_MSG_F_FREE, strdup("free"), 4, NULL, 0, (void *)2) == 0);
        CHECK(rd_kafka_produce(topic, 2, 0, mine, strlen(mine), NULL, 0, (void *)3) == 0);
        headers = rd_kafka_headers_new(2);
        rd_kafka_header_add(headers, "h", -1, "v1", -1);
        rd_kafka_header_add(headers, "h", -1, "v2", 2);
        CHECK(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("produce"), RD_KAFKA_V_VALUE("x", 1), RD_KAFKA_V_KEY("k", 1),
                                RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_TIMESTAMP(1234567890123),
                                RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_OPAQUE((void *)4), RD_KAFKA_V_END) == 0);
        CHECK(rd_kafka_producev(rk, RD_KAFKA_V_RKT(topic), RD_KAFKA_V_PARTITION(3), RD_KAFKA_V_VALUE(NULL, 0),
                                RD_KAFKA_V_HEADER("a", NULL, 0), RD_KAFKA_V_END) == 0);
        CHECK(rd_kafka_outq_len(rk) == 5);
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
        CHECK(reports == 5);
        produce_each(topic);
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
        CHECK(reports == 11);
        a_refused_payload_stays_the_applications(topic);
        reports = 5;
        /* A batch, one message of which has an unknown partition: the others are accepted. */
        memset(messages, 0, sizeof(messages));
        for (i = 0; i < 10; i++) {
                messages[i].payload = mine;
                messages[i].len = strlen(mine);
                messages[i].partition = i == 7 ? 99 : i % 4;
        }
        taken = rd_kafka_produce_batch(topic, 0, RD_KAFKA_MSG_F_COPY | RD_KAFKA_MSG_F_PARTITION, messages, 10);
        CHECK(taken == 9);
        CHECK(messages[7].err == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION && messages[6].err == 0);
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
        CHECK(reports == 14);
        /* Without polls the queue is full when the number of reports reaches the limit. */
        for (i = 0; i < 2000; i++)
                if (rd_kafka_produce(topic, 0, RD_KAFKA_MSG_F_COPY, "x", 1, NULL, 0, NULL) == -1)
                        break;
        CHECK(i == 1000 && rd_kafka_last_error() == RD_KAFKA_RESP_ERR__QUEUE_FULL);
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
        CHECK(rd_kafka_outq_len(rk) == 0);
        /* A batch larger than the queue: the first messages are accepted, and each of the others has an error. */
        for (i = 0; i < 1100; i++) {
                many[i].payload = "copy";
                many[i].len = 4;
                many[i].key = "k";
                many[i].key_len = 1;
                many[i]._private = (void *)1;
        }
        reports = 0;
        CHECK(rd_kafka_produce_batch(topic, 2, RD_KAFKA_MSG_F_COPY, many, 1100) == 1000);
        for (i = 0; i < 1100; i++)
                CHECK(many[i].err == (i < 1000 ? 0 : RD_KAFKA_RESP_ERR__QUEUE_FULL));
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
        CHECK(reports == 1000);
        /* Messages that were not flushed are dropped with the client, and their payloads freed. */
        CHECK(rd_kafka_produce(topic, 1, RD_KAFKA_MSG_F_FREE, strdup("free"), 4, NULL, 0, (void *)9) == 0);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
        /* Reports as events. */
        reports = 0;
        rk = producer(argv[1], 1);
        queue = rd_kafka_queue_get_main(rk);
        topic = rd_kafka_topic_new(rk, "produce", NULL);
        for (i = 0; i < 94; i++)
                CHECK(rd_kafka_produce(topic, i % 4, RD_KAFKA_MSG_F_COPY, "copy", 4, "k", 1, (void *)1) == 0);
        produce_each(topic);
        while (reports < 100) {
                rd_kafka_event_t *event = rd_kafka_queue_poll(queue, TIMEOUT_MS);
                const rd_kafka_message_t *message, *shown[100];
                rd_kafka_message_t was[100];
                int count = 0;
                CHECK(event && rd_kafka_event_type(event) == RD_KAFKA_EVENT_DR);
                if (!event)
                        break;
                while (count < 100 && (message = rd_kafka_event_message_next(event))) {
                        on_delivery(rk, message, &reports);
                        was[count] = *message;
                        shown[count++] = message;
                }
                /* The messages do not move until the event is destroyed. */
                for (i = 0; i < count; i++)
                        CHECK(was[i].payload == shown[i]->payload && was[i].offset == shown[i]->offset &&
                              was[i]._private == shown[i]->_private);
                rd_kafka_event_destroy(event);
        }
        CHECK(reports == 100);
        CHECK(rd_kafka_outq_len(rk) == 0);
        rd_kafka_queue_destroy(queue);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
        return bad != 0;
}
