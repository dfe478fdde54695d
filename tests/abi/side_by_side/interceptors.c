/* Interceptors: the calls, their order and arguments, and copies of configurations. */
#include "side_by_side.h"

static struct recorder calls = RECORDER;

static rd_kafka_conf_res_t on_set(rd_kafka_conf_t *conf UNUSED, const char *name, const char *value, char *text, size_t size, void *opaque) {
        record(&calls, "%s: set %s=%s", (char *)opaque, name, value ? value : "NULL");
        if (!strcmp(name, "plug.in"))
                return RD_KAFKA_CONF_OK;
        if (!strcmp(name, "plug.in.bad")) {
                snprintf(text, size, "refused");
                return RD_KAFKA_CONF_INVALID;
        }
        return RD_KAFKA_CONF_UNKNOWN;
}
static rd_kafka_resp_err_t on_dup(rd_kafka_conf_t *copy, const rd_kafka_conf_t *conf UNUSED, size_t count, const char **filter UNUSED, void *opaque);
static rd_kafka_resp_err_t on_destroy_conf(void *opaque) {
        record(&calls, "%s: configuration destroyed", (char *)opaque);
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}
static rd_kafka_resp_err_t on_send(rd_kafka_t *rk UNUSED, rd_kafka_message_t *message, void *opaque) {
        record(&calls, "%s: send %.*s [%d]", (char *)opaque, (int)message->len, (char *)message->payload, message->partition);
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}
static rd_kafka_resp_err_t on_acknowledgement(rd_kafka_t *rk UNUSED, rd_kafka_message_t *message, void *opaque) {
        record(&calls, "%s: acknowledgement %.*s %s", (char *)opaque, (int)message->len, (char *)message->payload, err(message->err));
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}
static rd_kafka_resp_err_t on_destroy(rd_kafka_t *rk UNUSED, void *opaque) {
        record(&calls, "%s: client destroyed", (char *)opaque);
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}
static rd_kafka_resp_err_t on_thread_start(rd_kafka_t *rk UNUSED, rd_kafka_thread_type_t type UNUSED, const char *name UNUSED, void *opaque UNUSED) {
        record(&errors, "thread started");
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}
static rd_kafka_resp_err_t on_new(rd_kafka_t *rk, const rd_kafka_conf_t *conf UNUSED, void *opaque, char *text UNUSED, size_t size UNUSED) {
        record(&calls, "%s: client of type %d", (char *)opaque, rd_kafka_type(rk));
        record(&calls, "add send %s", err(rd_kafka_interceptor_add_on_send(rk, opaque, on_send, opaque)));
        record(&calls, "add send again %s", err(rd_kafka_interceptor_add_on_send(rk, opaque, on_send, opaque)));
        record(&calls, "add acknowledgement %s", err(rd_kafka_interceptor_add_on_acknowledgement(rk, opaque, on_acknowledgement, opaque)));
        record(&calls, "add destroy %s", err(rd_kafka_interceptor_add_on_destroy(rk, opaque, on_destroy, opaque)));
        record(&calls, "add thread start %s", err(rd_kafka_interceptor_add_on_thread_start(rk, opaque, on_thread_start, opaque)));
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static void add(rd_kafka_conf_t *conf, const char *name) {
        void *opaque = (void *)name;
        say("add %s: set %s dup %s destroy %s new %s", name, err(rd_kafka_conf_interceptor_add_on_conf_set(conf, name, on_set, opaque)),
            err(rd_kafka_conf_interceptor_add_on_conf_dup(conf, name, on_dup, opaque)),
            err(rd_kafka_conf_interceptor_add_on_conf_destroy(conf, name, on_destroy_conf, opaque)),
            err(rd_kafka_conf_interceptor_add_on_new(conf, name, on_new, opaque)));
}

static rd_kafka_resp_err_t on_dup(rd_kafka_conf_t *copy, const rd_kafka_conf_t *conf UNUSED, size_t count, const char **filter UNUSED, void *opaque) {
        record(&calls, "%s: duplicated, filter of %zu", (char *)opaque, count);
        if (!strcmp(opaque, "one"))
                rd_kafka_conf_interceptor_add_on_conf_set(copy, "one's copy", on_set, "one's copy");
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

CASE(two_interceptors_of_a_producer) {
        rd_kafka_conf_t *conf = conf_of("bootstrap.servers", DEAD, NULL);
        rd_kafka_t *rk;
        rd_kafka_conf_set_error_cb(conf, NULL);
        add(conf, "one");
        add(conf, "two");
        say("the same again: %s", err(rd_kafka_conf_interceptor_add_on_new(conf, "one", on_new, "one")));
        rk = producer_of(conf);
        rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_VALUE("x", 1), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_END);
        rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE);
        UNTIL(recorded(&reports) == 1, rd_kafka_poll(rk, 50));
        rd_kafka_destroy(rk);
        say_recorded("calls", &calls);
        say("threads %d", recorded(&errors) > 0);
}

static rd_kafka_t *other;
static int waits = 1;

static rd_kafka_resp_err_t on_acknowledgement_of_one(rd_kafka_t *rk, rd_kafka_message_t *message, void *opaque UNUSED) {
        record(&calls, "acknowledgement %.*s, another client %s", (int)message->len, (char *)message->payload, err(rd_kafka_flush(other, TIMEOUT_MS)));
        record(&calls, "its own client %s", err(rd_kafka_flush(rk, 100)));
        record(&calls, "queue %d", rd_kafka_outq_len(rk));
        WAIT_FOR(!__atomic_load_n(&waits, __ATOMIC_SEQ_CST));
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}
static rd_kafka_resp_err_t on_new_of_one(rd_kafka_t *rk, const rd_kafka_conf_t *conf UNUSED, void *opaque, char *text UNUSED, size_t size UNUSED) {
        return rd_kafka_interceptor_add_on_acknowledgement(rk, "one", on_acknowledgement_of_one, opaque);
}

/* An interceptor of acknowledgements may wait: other clients go on, and its own one waits for it. */
static void wait_in_an_interceptor(int has_reports) {
        rd_kafka_conf_t *conf = conf_of("test.mock.num.brokers", "1", NULL);
        rd_kafka_t *host = start(RD_KAFKA_PRODUCER, conf), *rk;
        const char *servers = rd_kafka_mock_cluster_bootstraps(rd_kafka_handle_mock_cluster(host));
        const struct rd_kafka_metadata *metadata;
        rd_kafka_mock_topic_create(rd_kafka_handle_mock_cluster(host), "t", 1, 1);
        conf = conf_of("bootstrap.servers", servers, NULL);
        rd_kafka_conf_interceptor_add_on_new(conf, "one", on_new_of_one, NULL);
        rk = has_reports ? producer_of(conf) : start(RD_KAFKA_PRODUCER, conf);
        other = start(RD_KAFKA_PRODUCER, conf_of("bootstrap.servers", servers, NULL));
        rd_kafka_producev(other, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_VALUE("x", 1), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_END);
        rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_VALUE("x", 1), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_END);
        WAIT_FOR(recorded(&calls) == 3);
        say("flush %s", err(rd_kafka_flush(rk, 200)));
        say("%d reports, queue %d", recorded(&reports), rd_kafka_outq_len(rk));
        rd_kafka_producev(other, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_VALUE("x", 1), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_END);
        say("another client %s", err(rd_kafka_flush(other, TIMEOUT_MS)));
        say("metadata %s", err(rd_kafka_metadata(other, 1, NULL, &metadata, TIMEOUT_MS)));
        rd_kafka_metadata_destroy(metadata);
        __atomic_store_n(&waits, 0, __ATOMIC_SEQ_CST);
        say("flush %s", err(rd_kafka_flush(rk, TIMEOUT_MS)));
        say("%d reports, queue %d", recorded(&reports), rd_kafka_outq_len(rk));
        rd_kafka_destroy(rk);
        rd_kafka_destroy(other);
        rd_kafka_destroy(host);
        say_recorded("calls", &calls);
}

CASE(acknowledgement_that_waits) { wait_in_an_interceptor(1); }
CASE(acknowledgement_that_waits_without_reports) { wait_in_an_interceptor(0); }

static size_t produce_requests(rd_kafka_mock_cluster_t *cluster) {
        size_t count, found = 0, i;
        rd_kafka_mock_request_t **requests = rd_kafka_mock_get_requests(cluster, &count);
        for (i = 0; i < count; i++)
                found += rd_kafka_mock_request_api_key(requests[i]) == 0;
        rd_kafka_mock_request_destroy_array(requests, count);
        return found;
}

/* The interceptors of what is purged have returned when the purge has. */
CASE(acknowledgements_of_purged_messages) {
        rd_kafka_conf_t *conf = conf_of("bootstrap.servers", DEAD, NULL);
        rd_kafka_t *rk;
        int i;
        rd_kafka_conf_interceptor_add_on_new(conf, "one", on_new, (void *)"one");
        rk = producer_of(conf);
        for (i = 0; i < 3; i++)
                rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_VALUE("x", 1), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_END);
        say("purge %s", err(rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE)));
        say("acknowledgements %d, reports %d", recorded_with(&calls, "acknowledgement x"), recorded(&reports));
        rd_kafka_destroy(rk);
}

/* Interceptors get the messages that are lost because the client is destroyed; reports do not. */
CASE(acknowledgement_of_a_message_in_flight) {
        rd_kafka_t *host = start(RD_KAFKA_PRODUCER, conf_of("test.mock.num.brokers", "1", NULL)), *rk;
        rd_kafka_mock_cluster_t *cluster = rd_kafka_handle_mock_cluster(host);
        rd_kafka_conf_t *conf = conf_of("bootstrap.servers", rd_kafka_mock_cluster_bootstraps(cluster), "linger.ms", "0", NULL);
        rd_kafka_mock_topic_create(cluster, "t", 1, 1);
        rd_kafka_conf_interceptor_add_on_new(conf, "one", on_new, (void *)"one");
        rk = producer_of(conf);
        rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_VALUE("x", 1), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_END);
        say("flush %s", err(rd_kafka_flush(rk, TIMEOUT_MS)));
        rd_kafka_mock_broker_set_rtt(cluster, 1, 60000);
        rd_kafka_mock_start_request_tracking(cluster);
        rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_VALUE("y", 1), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_END);
        WAIT_FOR(produce_requests(cluster) == 1);
        rd_kafka_destroy(rk);
        rd_kafka_destroy(host);
        say_recorded("calls", &calls);
        say("reports %d", recorded(&reports));
}

CASE(properties_pass_interceptors) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new(), *copy;
        char text[64] = "";
        char value[64] = "";
        size_t size = sizeof(value);
        add(conf, "one");
        say("linger.ms %s", conf_res(rd_kafka_conf_set(conf, "linger.ms", "7", text, sizeof(text))));
        say("plug.in %s", conf_res(rd_kafka_conf_set(conf, "plug.in", "8", text, sizeof(text))));
        say("plug.in.bad %s %s", conf_res(rd_kafka_conf_set(conf, "plug.in.bad", "8", text, sizeof(text))), quoted(text));
        say("unknown %s", conf_res(rd_kafka_conf_set(conf, "no.such", "8", text, sizeof(text))));
        say("topic property %s", conf_res(rd_kafka_conf_set(conf, "acks", "1", text, sizeof(text))));
        say("get plug.in %s", conf_res(rd_kafka_conf_get(conf, "plug.in", value, &size)));
        copy = rd_kafka_conf_dup(conf);
        size = sizeof(value);
        say("copy linger.ms %s %s", conf_res(rd_kafka_conf_get(copy, "linger.ms", value, &size)), quoted(value));
        say("copy plug.in %s", conf_res(rd_kafka_conf_set(copy, "plug.in", "9", text, sizeof(text))));
        rd_kafka_conf_destroy(conf);
        rd_kafka_conf_destroy(copy);
        say_recorded("calls", &calls);
}

/* An interceptor gets the name that the application used, the name that it is an alias of, and the value if it is valid. */
CASE(names_and_values_that_interceptors_see) {
        static const char *const pairs[][2] = {{"client.id", "x"}, {"bootstrap.servers", "a:1"}, {"enable.auto.commit", "F"},
                                               {"linger.ms", "0x10"}, {"compression.codec", "gzip"}, {"message.max.bytes", "bad"},
                                               {"client.rack", NULL}, {"acks", "1"}, {"partitioner", "random"}, {"debug", "msg,broker"},
                                               {"enabled_events", "5"}, {"plug.in", "1"}};
        static const char *filter[] = {"client", "acks", "partitioner", "plug"};
        rd_kafka_conf_t *conf = rd_kafka_conf_new(), *copy;
        char value[64];
        size_t i, size;
        add(conf, "one");
        for (i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
                record(&calls, "%s:", pairs[i][0]);
                rd_kafka_conf_set(conf, pairs[i][0], pairs[i][1], NULL, 0);
        }
        rd_kafka_conf_set(conf, "client.rack", "r", NULL, 0);
        record(&calls, "a copy:");
        copy = rd_kafka_conf_dup(conf);
        rd_kafka_conf_destroy(copy);
        record(&calls, "a filtered copy:");
        copy = rd_kafka_conf_dup_filter(conf, 4, filter);
        for (i = 0; i < 12; i++) {
                size = sizeof(value);
                *value = '\0';
                say("%s of the filtered copy %s %s", pairs[i][0], conf_res(rd_kafka_conf_get(copy, pairs[i][0], value, &size)), quoted(value));
        }
        rd_kafka_conf_destroy(copy);
        rd_kafka_conf_destroy(conf);
        say_recorded("calls", &calls);
}

CASE(configuration_of_a_client_is_destroyed_with_it) {
        rd_kafka_conf_t *conf = conf_of(NULL, NULL);
        rd_kafka_t *rk;
        add(conf, "one");
        rk = start(RD_KAFKA_CONSUMER, conf);
        record(&calls, "created");
        rd_kafka_destroy(rk);
        say_recorded("calls", &calls);
}

static rd_kafka_resp_err_t failing(rd_kafka_t *rk UNUSED, const rd_kafka_conf_t *conf UNUSED, void *opaque UNUSED, char *text, size_t size) {
        snprintf(text, size, "no");
        return RD_KAFKA_RESP_ERR__FAIL;
}

CASE(failing_interceptor_of_new) {
        rd_kafka_conf_t *conf = conf_of(NULL, NULL);
        rd_kafka_t *rk;
        rd_kafka_conf_interceptor_add_on_new(conf, "failing", failing, NULL);
        rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, NULL, 0);
        say("%s", rk ? "created" : "NULL");
        if (rk)
                rd_kafka_destroy(rk);
        say_recorded_set("logs", &logs);
}

CASE(interceptors_added_twice) {
        rd_kafka_conf_t *conf = conf_of(NULL, NULL);
        say("same name, other function %s %s", err(rd_kafka_conf_interceptor_add_on_new(conf, "n", on_new, "a")), err(rd_kafka_conf_interceptor_add_on_new(conf, "n", failing, "a")));
        rd_kafka_conf_destroy(conf);
}

CRASH_CASE(interceptor_of_a_running_client) {
        rd_kafka_t *rk = producer_of(conf_of("bootstrap.servers", DEAD, NULL));
        say("on a running client %s", err(rd_kafka_interceptor_add_on_send(rk, "late", on_send, "late")));
        say("again %s", err(rd_kafka_interceptor_add_on_send(rk, "late", on_send, "late")));
        rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_VALUE("x", 1), RD_KAFKA_V_END);
        rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE);
        rd_kafka_flush(rk, 5000);
        rd_kafka_destroy(rk);
        say_recorded("calls", &calls);
}
