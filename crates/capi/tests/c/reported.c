/* Delivery reports show each message's own payload, key and timestamp, whatever became of its batch: sent or not, compressed,
 * reordered, split, purged or timed out, by callback and by event. */
#include "test.h"

#define COUNT 300
#define FIRST_TIME 1600000000000

static char bytes[40000];
static int seen[COUNT], reports, failed;

/* Sizes from nothing to more than two chunks of a batch. */
static size_t size_of(long number) {
        return number % 50 == 49 ? sizeof(bytes) - 2 : (size_t)(number * 197 % 3000);
}

/* Neighbours have different bytes. */
static const char *payload_of(long number) {
        return bytes + number % 2;
}

static void check(const rd_kafka_message_t *message) {
        long number = (long)message->_private - 1;
        rd_kafka_timestamp_type_t kind;
        char key[30];
        CHECK(number >= 0 && number < COUNT);
        sprintf(key, "key %ld", number);
        if (number % 7 == 0)
                CHECK(!message->payload && message->len == 0);
        else
                CHECK(message->payload && message->len == size_of(number) &&
                      !memcmp(message->payload, payload_of(number), message->len));
        if (number % 3 == 0)
                CHECK(!message->key && message->key_len == 0);
        else
                CHECK(message->key_len == strlen(key) && !memcmp(message->key, key, strlen(key)));
        /* Messages with an error have no timestamp. */
        CHECK(rd_kafka_message_timestamp(message, &kind) == (message->err ? -1 : FIRST_TIME + number));
        seen[number]++;
        failed += message->err != 0;
        reports++;
}

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
        (void)rk;
        (void)opaque;
        check(message);
}

/* Produces all messages. Some are the application's own memory, whose reports do not need the batch. */
static void produce(rd_kafka_t *rk, const char *topic) {
        long number;
        char key[30];
        memset(seen, 0, sizeof(seen));
        reports = failed = 0;
        for (number = 0; number < COUNT; number++) {
                int has_payload = number % 7 != 0, has_key = number % 3 != 0;
                sprintf(key, "key %ld", number);
                CHECK(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(number % 2),
                                        RD_KAFKA_V_MSGFLAGS(number % 5 == 0 ? 0 : RD_KAFKA_MSG_F_COPY),
                                        RD_KAFKA_V_VALUE(has_payload ? (void *)payload_of(number) : NULL,
                                                         has_payload ? size_of(number) : 0),
                                        RD_KAFKA_V_KEY(has_key ? key : NULL, has_key ? strlen(key) : 0),
                                        RD_KAFKA_V_TIMESTAMP(FIRST_TIME + number),
                                        RD_KAFKA_V_OPAQUE((void *)(number + 1)), RD_KAFKA_V_END) == 0);
        }
}

static void check_all(int expected_failures) {
        int number;
        CHECK(reports == COUNT);
        CHECK(failed == expected_failures);
        for (number = 0; number < COUNT; number++)
                CHECK(seen[number] == 1);
}

static rd_kafka_t *producer(const char *brokers, int events, const char *name, const char *value) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        set(conf, "bootstrap.servers", brokers);
        set(conf, "linger.ms", "20");
        if (name)
                set(conf, name, value);
        if (events)
                rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_DR);
        else
                rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
        return start(RD_KAFKA_PRODUCER, conf);
}

static void serve_events(rd_kafka_t *rk) {
        rd_kafka_queue_t *queue = rd_kafka_queue_get_main(rk);
        long ends = millis() + TIMEOUT_MS;
        while (reports < COUNT && millis() < ends) {
                rd_kafka_event_t *event = rd_kafka_queue_poll(queue, 100);
                const rd_kafka_message_t *shown[COUNT];
                int count = 0, i, before = reports;
                while (count < COUNT && event && (shown[count] = rd_kafka_event_message_next(event)))
                        count++;
                /* All messages are there until the event is destroyed. */
                for (i = 0; i < count; i++)
                        check(shown[i]);
                CHECK(reports == before + count);
                rd_kafka_event_destroy(event);
        }
        rd_kafka_queue_destroy(queue);
}

static void delivered(const char *brokers, const char *name, const char *value) {
        int events;
        for (events = 0; events < 2; events++) {
                rd_kafka_t *rk = producer(brokers, events, name, value);
                /* The first messages wait for the topic, the second ones go to their batches at once. */
                int round;
                for (round = 0; round < 2; round++) {
                        produce(rk, "reported");
                        if (events)
                                serve_events(rk);
                        else
                                CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
                        check_all(0);
                }
                rd_kafka_destroy(rk);
        }
}

/* Messages that wait for a topic, which no broker ever tells of. */
static void unreachable(void) {
        rd_kafka_t *rk = producer("127.0.0.1:1", 0, "message.timeout.ms", "200");
        produce(rk, "reported");
        UNTIL(reports == COUNT, rd_kafka_poll(rk, 100));
        check_all(COUNT);
        rd_kafka_destroy(rk);
}

/* Messages whose broker does not respond: in a request, or in their batches with a long linger. They are purged, or time out. */
static void unanswered(const char *linger, int purges) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_mock_cluster_t *cluster;
        rd_kafka_t *rk;
        set(conf, "test.mock.num.brokers", "1");
        set(conf, "linger.ms", linger);
        /* Enough for the messages that are delivered. */
        set_ms(conf, "message.timeout.ms", purges ? 300000 : SCALED_MS(4000));
        set(conf, "compression.codec", purges ? "lz4" : "none");
        rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
        rk = start(RD_KAFKA_PRODUCER, conf);
        cluster = rd_kafka_handle_mock_cluster(rk);
        CHECK(rd_kafka_mock_topic_create(cluster, "unanswered", 2, 1) == 0);
        /* From here on the topic is known. */
        produce(rk, "unanswered");
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
        check_all(0);
        CHECK(rd_kafka_mock_broker_set_rtt(cluster, 1, SCALED_MS(20000)) == 0);
        produce(rk, "unanswered");
        usleep(200000);
        if (purges)
                CHECK(rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT) == 0);
        UNTIL(reports == COUNT, rd_kafka_poll(rk, 100));
        check_all(COUNT);
        rd_kafka_destroy(rk);
}

/* A batch that the broker finds too large is sent in halves. */
static void split(void) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_mock_cluster_t *cluster;
        rd_kafka_t *rk;
        set(conf, "test.mock.num.brokers", "1");
        set(conf, "linger.ms", "100");
        set(conf, "compression.codec", "snappy");
        rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
        rk = start(RD_KAFKA_PRODUCER, conf);
        cluster = rd_kafka_handle_mock_cluster(rk);
        CHECK(rd_kafka_mock_topic_create(cluster, "split", 2, 1) == 0);
        rd_kafka_mock_push_request_errors(cluster, 0, 3, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE,
                                          RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
        produce(rk, "split");
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
        check_all(0);
        rd_kafka_destroy(rk);
}

int main(int argc, char **argv) {
        size_t i;
        if (argc < 2)
                return 2;
        for (i = 0; i < sizeof(bytes); i++)
                bytes[i] = (char)(i % 251 * 7);
        delivered(argv[1], NULL, NULL);
        delivered(argv[1], "compression.codec", "lz4");
        delivered(argv[1], "compression.codec", "zstd");
        delivered(argv[1], "queuing.strategy", "lifo");
        delivered(argv[1], "acks", "0");
        unreachable();
        unanswered("5", 0);
        unanswered("1400", 0);
        unanswered("5", 1);
        unanswered("60000", 1);
        split();
        return bad != 0;
}
