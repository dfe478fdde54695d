/* Configurations: values, NULL and empty texts, flags, shared configurations, and the checks of a new client. */
#include "test.h"

static char errstr[512];

static rd_kafka_conf_res_t tried(rd_kafka_conf_t *conf, const char *name, const char *value) {
        return rd_kafka_conf_set(conf, name, value, errstr, sizeof(errstr));
}

/* Returns the value, or NULL if there is none. */
static const char *value_of(const rd_kafka_conf_t *conf, const char *name) {
        static char value[1024];
        size_t size = sizeof(value);
        if (rd_kafka_conf_get(conf, name, value, &size))
                return NULL;
        CHECK(size == strlen(value) + 1);
        return value;
}

static int is(const rd_kafka_conf_t *conf, const char *name, const char *expected) {
        const char *value = value_of(conf, name);
        if (value && expected && !strcmp(value, expected))
                return 1;
        if (!value && !expected)
                return 1;
        fprintf(stderr, "%s is %s\n", name, value ? value : "unset");
        return 0;
}

static void flags_accumulate_and_take_signs(void) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        CHECK(is(conf, "debug", ""));
        CHECK(!tried(conf, "debug", "generic") && is(conf, "debug", "generic"));
        CHECK(!tried(conf, "debug", "QUEUE") && is(conf, "debug", "generic,queue"));
        CHECK(!tried(conf, "debug", "+broker") && is(conf, "debug", "generic,broker,queue"));
        CHECK(!tried(conf, "debug", "+topic, -broker") && is(conf, "debug", "generic,topic,queue"));
        CHECK(!tried(conf, "debug", "-generic,-topic,-queue") && is(conf, "debug", ""));
        CHECK(tried(conf, "debug", "nonsense") == RD_KAFKA_CONF_INVALID && strstr(errstr, "nonsense"));
        CHECK(tried(conf, "debug", "") == RD_KAFKA_CONF_INVALID);
        CHECK(!tried(conf, "debug", "all") && strstr(value_of(conf, "debug"), "generic,broker,"));
        CHECK(!tried(conf, "debug", "-broker") && strstr(value_of(conf, "debug"), "generic,topic,"));
        CHECK(!strstr(value_of(conf, "debug"), "all"));
        rd_kafka_conf_destroy(conf);
}

static void texts_can_be_unset_and_others_can_not(void) {
        static const char *others[] = {"linger.ms", "acks", "log.queue", "compression.type", "debug", "batch.size"};
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        size_t i;
        for (i = 0; i < sizeof(others) / sizeof(*others); i++) {
                CHECK(tried(conf, others[i], NULL) == RD_KAFKA_CONF_INVALID && *errstr);
                CHECK(tried(conf, others[i], "") == RD_KAFKA_CONF_INVALID);
        }
        CHECK(!tried(conf, "client.id", "me") && is(conf, "client.id", "me"));
        CHECK(!tried(conf, "client.id", "") && is(conf, "client.id", "rdkafka"));
        CHECK(!tried(conf, "client.id", " me ") && is(conf, "client.id", "me "));
        CHECK(!tried(conf, "client.id", NULL) && is(conf, "client.id", "rdkafka"));
        CHECK(is(conf, "client.rack", ""));
        CHECK(is(conf, "group.id", NULL));
        CHECK(!tried(conf, "group.id", "g") && is(conf, "group.id", "g"));
        CHECK(!tried(conf, "group.id", "") && is(conf, "group.id", NULL));
        CHECK(is(conf, "error_cb", NULL) && is(conf, "no.such.property", NULL));
        rd_kafka_conf_destroy(conf);
}

static void words_of_the_same_meaning_are_shown_as_one(void) {
        static const char *words[][2] = {{"earliest", "smallest"}, {"latest", "largest"},    {"beginning", "smallest"},
                                         {"end", "largest"},       {"smallest", "smallest"}, {"error", "error"}};
        size_t i;
        for (i = 0; i < sizeof(words) / sizeof(*words); i++) {
                rd_kafka_conf_t *conf = rd_kafka_conf_new();
                rd_kafka_topic_conf_t *topic = rd_kafka_topic_conf_new();
                char value[32];
                size_t size = sizeof(value);
                CHECK(!tried(conf, "auto.offset.reset", words[i][0]) && is(conf, "auto.offset.reset", words[i][1]));
                CHECK(!rd_kafka_topic_conf_set(topic, "auto.offset.reset", words[i][0], errstr, sizeof(errstr)));
                CHECK(!rd_kafka_topic_conf_get(topic, "auto.offset.reset", value, &size) && !strcmp(value, words[i][1]));
                rd_kafka_topic_conf_destroy(topic);
                rd_kafka_conf_destroy(conf);
        }
}

static void lists_of_servers_take_any_text(void) {
        static const char *lists[] = {"a:1,,b:2", ",", "a:1/path", "host/path:1", "SSL://a:9093", "a:x", "host name:1"};
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        size_t i;
        for (i = 0; i < sizeof(lists) / sizeof(*lists); i++)
                CHECK(!tried(conf, "bootstrap.servers", lists[i]) && is(conf, "metadata.broker.list", lists[i]));
        rd_kafka_conf_destroy(conf);
}

static int warnings;

static void on_log(const rd_kafka_t *rk, int level, const char *facility, const char *line) {
        (void)rk;
        (void)level;
        (void)line;
        warnings += !strcmp(facility, "CONFWARN");
}

/* Returns whether a client starts; otherwise errstr has the reason. */
static int starts(rd_kafka_type_t type, const char *servers, const char *a, const char *b, const char *c, const char *d) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_t *rk;
        set(conf, "bootstrap.servers", servers);
        if (type == RD_KAFKA_CONSUMER)
                set(conf, "group.id", "g");
        set(conf, a, b);
        if (c)
                set(conf, c, d);
        rd_kafka_conf_set_log_cb(conf, on_log);
        warnings = 0;
        rk = rd_kafka_new(type, conf, errstr, sizeof(errstr));
        if (!rk) {
                CHECK(rd_kafka_last_error() == RD_KAFKA_RESP_ERR__INVALID_ARG);
                rd_kafka_conf_destroy(conf);
                return 0;
        }
        rd_kafka_destroy(rk);
        return 1;
}

static void values_that_contradict_each_other_are_refused(const char *servers) {
        const rd_kafka_type_t c = RD_KAFKA_CONSUMER, p = RD_KAFKA_PRODUCER;
        CHECK(!starts(c, servers, "max.poll.interval.ms", "1000", NULL, NULL) && strstr(errstr, "session.timeout.ms"));
        CHECK(!starts(c, servers, "session.timeout.ms", "600000", NULL, NULL) && strstr(errstr, "max.poll.interval.ms"));
        CHECK(starts(c, servers, "session.timeout.ms", "300000", NULL, NULL));
        CHECK(!starts(c, servers, "fetch.max.bytes", "999999", NULL, NULL) && strstr(errstr, "message.max.bytes"));
        CHECK(starts(c, servers, "fetch.max.bytes", "1000000", NULL, NULL));
        CHECK(!starts(c, servers, "receive.message.max.bytes", "1000", NULL, NULL) && strstr(errstr, "fetch.max.bytes"));
        CHECK(starts(c, servers, "heartbeat.interval.ms", "60000", "session.timeout.ms", "6000"));
        CHECK(!starts(p, servers, "reconnect.backoff.ms", "1000", "reconnect.backoff.max.ms", "10"));
        CHECK(starts(p, servers, "retry.backoff.ms", "1000", "retry.backoff.max.ms", "10") && warnings == 1);
        CHECK(starts(p, servers, "message.max.bytes", "2000000", "queue.buffering.max.kbytes", "1"));
}

static void a_shared_configuration_is_warned_of(const char *servers) {
        CHECK(starts(RD_KAFKA_PRODUCER, servers, "group.id", "g", "fetch.min.bytes", "2") && warnings == 2);
        CHECK(starts(RD_KAFKA_CONSUMER, servers, "linger.ms", "1", NULL, NULL) && warnings == 1);
        /* Properties of a protocol that is not used are ignored. */
        CHECK(starts(RD_KAFKA_PRODUCER, servers, "sasl.mechanism", "PLAIN", "sasl.username", "me") && warnings == 1);
        CHECK(starts(RD_KAFKA_CONSUMER, servers, "ssl.ca.location", "/no/such/file", "ssl.engine.id", "x"));
}

int main(int argc, char **argv) {
        if (argc < 2)
                return 2;
        flags_accumulate_and_take_signs();
        texts_can_be_unset_and_others_can_not();
        words_of_the_same_meaning_are_shown_as_one();
        lists_of_servers_take_any_text();
        values_that_contradict_each_other_are_refused(argv[1]);
        a_shared_configuration_is_warned_of(argv[1]);
        return bad != 0;
}
