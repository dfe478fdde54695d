/* Messages that wait in a partition are sent in the application's order (rd_kafka_topic_conf_set_msg_order_cmp), or
 * the newest first (queuing.strategy). Each function is a sentence. */
#include "test.h"

#define COUNT 60

static rd_kafka_mock_cluster_t *cluster;
static const char *servers;
static int reports, failed, errors, seen[COUNT], compared, wrong;
static rd_kafka_resp_err_t why;
static rd_kafka_t *nested;
static int nested_sent;

static void on_error(rd_kafka_t *rk, int err, const char *reason, void *opaque) {
        (void)rk;
        (void)err;
        (void)reason;
        (void)opaque;
        errors++;
}

static void on_report(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
        int *count = message->_private;
        (void)rk;
        (void)opaque;
        reports++;
        if (message->err) {
                failed++;
                why = message->err;
        }
        if (count)
                (*count)++;
}

/* By key. Checks that a waiting message has all its fields. */
static int by_key(const rd_kafka_message_t *a, const rd_kafka_message_t *b) {
        compared++;
        wrong += a->err || b->err || a->partition != 0 || a->key_len != 3 || a->len != 5 ||
                 memcmp(a->payload, "value", 5) || (a->_private && !a->rkt);
        return memcmp(a->key, b->key, 3);
}

/* By key, and sometimes calls the library. */
static int by_key_and_calls(const rd_kafka_message_t *a, const rd_kafka_message_t *b) {
        if (nested && nested_sent < 20) {
                nested_sent++;
                if (rd_kafka_producev(nested, RD_KAFKA_V_TOPIC("calls"), RD_KAFKA_V_PARTITION(0),
                                      RD_KAFKA_V_KEY("zzz", 3), RD_KAFKA_V_VALUE((void *)"value", 5), RD_KAFKA_V_END))
                        wrong++;
                rd_kafka_outq_len(nested);
        }
        return memcmp(a->key, b->key, 3);
}

/* An inconsistent order. */
static int contradicts_itself(const rd_kafka_message_t *a, const rd_kafka_message_t *b) {
        static int turn;
        (void)a;
        (void)b;
        return turn++ % 3 - 1;
}

static rd_kafka_conf_t *conf_of(int with_reports) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        set(conf, "bootstrap.servers", servers);
        set(conf, "log_level", "2");
        set(conf, "max.in.flight", "1");
        set(conf, "batch.num.messages", "10");
        set(conf, "reconnect.backoff.ms", "10");
        set(conf, "reconnect.backoff.max.ms", "50");
        rd_kafka_conf_set_error_cb(conf, on_error);
        if (with_reports)
                rd_kafka_conf_set_dr_msg_cb(conf, on_report);
        return conf;
}

static rd_kafka_topic_t *topic_of(rd_kafka_t *rk, const char *name, const char *property, const char *value,
                                  int (*cmp)(const rd_kafka_message_t *, const rd_kafka_message_t *)) {
        rd_kafka_topic_conf_t *conf = rd_kafka_topic_conf_new();
        rd_kafka_topic_t *topic;
        char errstr[256];
        if (property && rd_kafka_topic_conf_set(conf, property, value, errstr, sizeof(errstr))) {
                fprintf(stderr, "%s\n", errstr);
                bad++;
        }
        rd_kafka_topic_conf_set_msg_order_cmp(conf, cmp);
        topic = rd_kafka_topic_new(rk, name, conf);
        CHECK(topic != NULL);
        return topic;
}

static void begin(void) {
        reports = failed = errors = compared = wrong = 0;
        why = 0;
        memset(seen, 0, sizeof(seen));
}

static void send(rd_kafka_topic_t *topic, int number, int with_reports) {
        char key[8];
        snprintf(key, sizeof(key), "%03d", number);
        CHECK(rd_kafka_produce(topic, 0, number % 2 ? RD_KAFKA_MSG_F_COPY : RD_KAFKA_MSG_F_FREE,
                               number % 2 ? (void *)"value" : (void *)strdup("value"), 5, key, 3,
                               with_reports ? &seen[number] : NULL) == 0);
}

/* The keys of a topic's messages in the order of the log. */
static int read_log(const char *name, int *keys, int expected) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_t *rk;
        int count = 0;
        long ends = millis() + TIMEOUT_MS;
        set(conf, "bootstrap.servers", servers);
        set(conf, "log_level", "2");
        set(conf, "group.id", "order");
        rk = start(RD_KAFKA_CONSUMER, conf);
        rd_kafka_topic_partition_list_add(list, name, 0)->offset = 0;
        CHECK(rd_kafka_assign(rk, list) == 0);
        rd_kafka_topic_partition_list_destroy(list);
        while (count < expected && millis() < ends) {
                rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, 100);
                if (!message)
                        continue;
                if (!message->err) {
                        char key[4] = "";
                        memcpy(key, message->key, message->key_len < 3 ? message->key_len : 3);
                        keys[count++] = atoi(key);
                }
                rd_kafka_message_destroy(message);
        }
        rd_kafka_destroy(rk);
        return count;
}

/* A broker that accepts one message, and then goes down: later messages wait. */
static void hold_back(rd_kafka_t *rk, rd_kafka_topic_t *topic) {
        CHECK(rd_kafka_produce(topic, 0, RD_KAFKA_MSG_F_COPY, (void *)"value", 5, "000", 3, NULL) == 0);
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
        while (rd_kafka_poll(rk, 0) > 0)
                ;
        errors = 0;
        CHECK(rd_kafka_mock_broker_set_down(cluster, 1) == 0);
        UNTIL(errors > 0, rd_kafka_poll(rk, 10));
        begin();
}

static void let_go(rd_kafka_t *rk) {
        CHECK(rd_kafka_mock_broker_set_up(cluster, 1) == 0);
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
        CHECK(rd_kafka_outq_len(rk) == 0);
}

/* Produced as 0, 7, 14 and so on while the broker is down; the i-th in the log is `expected(i)`. */
static void produce_and_read(rd_kafka_t *rk, rd_kafka_topic_t *topic, const char *name, int with_reports,
                             int (*expected)(int)) {
        int i, keys[COUNT + 1];
        hold_back(rk, topic);
        for (i = 0; i < COUNT; i++)
                send(topic, i * 7 % COUNT, with_reports);
        CHECK(rd_kafka_outq_len(rk) >= COUNT);
        let_go(rk);
        CHECK(read_log(name, keys, COUNT + 1) == COUNT + 1);
        for (i = 0; i < COUNT; i++)
                if (keys[i + 1] != expected(i)) {
                        fprintf(stderr, "%s: %d in place of %d at %d\n", name, keys[i + 1], expected(i), i);
                        bad++;
                }
        CHECK(wrong == 0 && failed == 0);
        for (i = 0; i < COUNT && with_reports; i++)
                CHECK(seen[i] == 1);
}

static int upwards(int i) {
        return i;
}

static int backwards(int i) {
        return (COUNT - 1 - i) * 7 % COUNT;
}

static void messages_go_in_the_applications_order(void) {
        rd_kafka_t *rk = start(RD_KAFKA_PRODUCER, conf_of(1));
        rd_kafka_topic_t *topic = topic_of(rk, "sorted", NULL, NULL, by_key);
        produce_and_read(rk, topic, "sorted", 1, upwards);
        CHECK(compared > 0 && reports == COUNT);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
}

static void the_order_of_all_topics_holds_also_if_nobody_wants_reports(void) {
        rd_kafka_conf_t *conf = conf_of(0);
        rd_kafka_topic_conf_t *topic_conf = rd_kafka_topic_conf_new();
        rd_kafka_topic_t *topic;
        rd_kafka_t *rk;
        rd_kafka_topic_conf_set_msg_order_cmp(topic_conf, by_key);
        rd_kafka_conf_set_default_topic_conf(conf, topic_conf);
        rk = start(RD_KAFKA_PRODUCER, conf);
        topic = rd_kafka_topic_new(rk, "default", NULL);
        produce_and_read(rk, topic, "default", 0, upwards);
        rd_kafka_topic_destroy(topic);
        /* The order applies to one topic only. */
        topic = topic_of(rk, "own", "compression.codec", "gzip", by_key);
        produce_and_read(rk, topic, "own", 0, upwards);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
}

static void the_newest_go_first(void) {
        rd_kafka_t *rk = start(RD_KAFKA_PRODUCER, conf_of(1));
        rd_kafka_topic_t *topic = topic_of(rk, "newest", "queuing.strategy", "lifo", NULL);
        produce_and_read(rk, topic, "newest", 1, backwards);
        CHECK(compared == 0);
        rd_kafka_topic_destroy(topic);
        /* An order of the application takes precedence. */
        topic = topic_of(rk, "both", "queuing.strategy", "lifo", by_key);
        produce_and_read(rk, topic, "both", 1, upwards);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
}

static void an_order_may_produce_and_may_be_none(void) {
        rd_kafka_t *rk = start(RD_KAFKA_PRODUCER, conf_of(1));
        rd_kafka_topic_t *topic = topic_of(rk, "calls", NULL, NULL, by_key_and_calls);
        int i;
        hold_back(rk, topic);
        nested = rk;
        for (i = 0; i < COUNT; i++)
                send(topic, i * 7 % COUNT, 1);
        let_go(rk);
        nested = NULL;
        CHECK(nested_sent == 20 && reports == COUNT + 20 && failed == 0 && wrong == 0);
        rd_kafka_topic_destroy(topic);

        topic = topic_of(rk, "none", NULL, NULL, contradicts_itself);
        hold_back(rk, topic);
        for (i = 0; i < COUNT; i++)
                send(topic, i, 1);
        let_go(rk);
        for (i = 0; i < COUNT; i++)
                CHECK(seen[i] == 1);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
}

static void what_waits_times_out_is_purged_or_goes_with_the_client_once(void) {
        rd_kafka_t *rk = start(RD_KAFKA_PRODUCER, conf_of(1));
        rd_kafka_topic_t *topic = topic_of(rk, "ends", "message.timeout.ms", "60000", by_key);
        int i;
        hold_back(rk, topic);
        for (i = 0; i < COUNT; i++)
                send(topic, COUNT - 1 - i, 1);
        CHECK(rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE) == 0);
        UNTIL(reports == COUNT, rd_kafka_poll(rk, 10));
        CHECK(failed == COUNT && why == RD_KAFKA_RESP_ERR__PURGE_QUEUE && rd_kafka_outq_len(rk) == 0);
        begin();
        for (i = 0; i < COUNT; i++)
                send(topic, COUNT - 1 - i, 1);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
        CHECK(rd_kafka_mock_broker_set_up(cluster, 1) == 0);

        rk = start(RD_KAFKA_PRODUCER, conf_of(1));
        topic = topic_of(rk, "ends", "message.timeout.ms", "700", by_key);
        hold_back(rk, topic);
        for (i = 0; i < COUNT; i++)
                send(topic, COUNT - 1 - i, 1);
        UNTIL(reports == COUNT, rd_kafka_poll(rk, 10));
        CHECK(failed == COUNT && why == RD_KAFKA_RESP_ERR__MSG_TIMED_OUT && rd_kafka_outq_len(rk) == 0);
        for (i = 0; i < COUNT; i++)
                CHECK(seen[i] == 1);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
        CHECK(rd_kafka_mock_broker_set_up(cluster, 1) == 0);
}

/* As with librdkafka: an application's order is accepted with idempotence, newest first is not. */
static void idempotence_contradicts_the_newest_first(void) {
        rd_kafka_conf_t *conf = conf_of(1);
        rd_kafka_topic_conf_t *topic_conf;
        rd_kafka_topic_t *topic;
        rd_kafka_t *rk;
        char errstr[256];
        set(conf, "enable.idempotence", "true");
        set(conf, "queuing.strategy", "lifo");
        CHECK(rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof(errstr)) == NULL && strstr(errstr, "queuing.strategy"));
        rd_kafka_conf_destroy(conf);

        conf = conf_of(1);
        set(conf, "enable.idempotence", "true");
        rk = start(RD_KAFKA_PRODUCER, conf);
        topic_conf = rd_kafka_topic_conf_new();
        CHECK(rd_kafka_topic_conf_set(topic_conf, "queuing.strategy", "lifo", errstr, sizeof(errstr)) == 0);
        CHECK(rd_kafka_topic_new(rk, "lifo", topic_conf) == NULL);
        CHECK(rd_kafka_last_error() == RD_KAFKA_RESP_ERR__INVALID_ARG);
        rd_kafka_topic_conf_destroy(topic_conf);
        topic = topic_of(rk, "idempotent", NULL, NULL, by_key);
        produce_and_read(rk, topic, "idempotent", 1, upwards);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
}

int main(void) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_t *rk;
        set(conf, "test.mock.num.brokers", "1");
        set(conf, "log_level", "2");
        rk = start(RD_KAFKA_PRODUCER, conf);
        cluster = rd_kafka_handle_mock_cluster(rk);
        servers = rd_kafka_mock_cluster_bootstraps(cluster);
        messages_go_in_the_applications_order();
        the_order_of_all_topics_holds_also_if_nobody_wants_reports();
        the_newest_go_first();
        an_order_may_produce_and_may_be_none();
        what_waits_times_out_is_purged_or_goes_with_the_client_once();
        idempotence_contradicts_the_newest_first();
        rd_kafka_destroy(rk);
        return bad != 0;
}
