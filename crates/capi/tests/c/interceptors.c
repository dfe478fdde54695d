/* Interceptors of configurations and clients, and a plug-in library. */
#include "test.h"

static int of_dup, of_conf_destroy, of_new, of_destroy, of_commit, of_start, of_exit;
static int of_send, of_failed, of_acknowledgement, of_consume;
static int of_io_start, of_io_exit, of_sent, of_received, of_produce_sent, of_produce_received, of_connecting, of_up;
static int of_timed_out, of_lost, of_send_too;
static int is_destroyed;
/* The number of clients that this thread serves. */
static __thread int my_clients;

#define COUNT(what) __atomic_add_fetch(&what, 1, __ATOMIC_SEQ_CST)
#define READ(what) __atomic_load_n(&what, __ATOMIC_SEQ_CST)

static rd_kafka_resp_err_t on_send(rd_kafka_t *rk, rd_kafka_message_t *message, void *opaque) {
        rd_kafka_headers_t *headers = rd_kafka_headers_new(1);
        CHECK(rk != NULL && opaque == &bad && !strcmp(rd_kafka_topic_name(message->rkt), "interceptors"));
        CHECK(rd_kafka_header_add(headers, "trace", -1, "here", -1) == 0);
        rd_kafka_message_set_headers(message, headers);
        of_send++;
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* The same name with another function is another interceptor. */
static rd_kafka_resp_err_t on_send_too(rd_kafka_t *rk, rd_kafka_message_t *message, void *opaque) {
        CHECK(rk != NULL && message != NULL && opaque == &bad);
        of_send_too++;
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_acknowledgement(rd_kafka_t *rk, rd_kafka_message_t *message, void *opaque) {
        CHECK(rk != NULL && opaque == &bad);
        if (message->err)
                of_failed++;
        else {
                CHECK(message->offset >= 0 && message->len == 5);
                CHECK(rd_kafka_message_latency(message) >= 0 && rd_kafka_message_latency(message) < 60000000);
                __atomic_add_fetch(&of_acknowledgement, 1, __ATOMIC_SEQ_CST);
        }
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_consume(rd_kafka_t *rk, rd_kafka_message_t *message, void *opaque) {
        CHECK(rk != NULL && opaque == &bad && !message->err);
        of_consume++;
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_commit(rd_kafka_t *rk, const rd_kafka_topic_partition_list_t *offsets,
                                     rd_kafka_resp_err_t err, void *opaque) {
        CHECK(rk != NULL && opaque == &bad && !err && offsets->cnt == 1);
        of_commit++;
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_destroy(rd_kafka_t *rk, void *opaque) {
        CHECK(rk != NULL && opaque == &bad);
        __atomic_store_n(&is_destroyed, 1, __ATOMIC_SEQ_CST);
        of_destroy++;
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* Threads that serve the client: those of the library, and its own for the background queue and for acknowledgements. */
static int is_name_of_a_broker_thread(const char *name) {
        return !strncmp(name, "ottla-io-", 9) || !strcmp(name, "acknowledgements");
}

static rd_kafka_resp_err_t on_thread_start(rd_kafka_t *rk, rd_kafka_thread_type_t type, const char *name, void *opaque) {
        CHECK(rk != NULL && opaque == &bad);
        if (type == RD_KAFKA_THREAD_BACKGROUND) {
                CHECK(!strcmp(name, "background"));
                COUNT(of_start);
        } else {
                CHECK(type == RD_KAFKA_THREAD_BROKER && is_name_of_a_broker_thread(name));
                COUNT(of_io_start);
                my_clients++;
        }
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_thread_exit(rd_kafka_t *rk, rd_kafka_thread_type_t type, const char *name, void *opaque) {
        CHECK(rk != NULL && opaque == &bad);
        if (type == RD_KAFKA_THREAD_BACKGROUND) {
                CHECK(!strcmp(name, "background"));
                COUNT(of_exit);
        } else {
                CHECK(type == RD_KAFKA_THREAD_BROKER && is_name_of_a_broker_thread(name));
                COUNT(of_io_exit);
                /* The thread is the one that began to serve the client. */
                CHECK(--my_clients >= 0);
        }
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_request_sent(rd_kafka_t *rk, int sockfd, const char *brokername, int32_t brokerid,
                                           int16_t api, int16_t version, int32_t correlation, size_t size,
                                           void *opaque) {
        CHECK(rk != NULL && opaque == &bad && !READ(is_destroyed));
        CHECK(sockfd > 2 && strchr(brokername, ':') && strchr(brokername, '/'));
        CHECK(brokerid >= -1 && version >= 0 && correlation > 0 && size > 12);
        if (api == 0)
                COUNT(of_produce_sent);
        COUNT(of_sent);
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_response_received(rd_kafka_t *rk, int sockfd, const char *brokername, int32_t brokerid,
                                                int16_t api, int16_t version, int32_t correlation, size_t size,
                                                int64_t rtt, rd_kafka_resp_err_t err, void *opaque) {
        CHECK(rk != NULL && opaque == &bad && !READ(is_destroyed));
        CHECK(sockfd == -1 && strchr(brokername, ':') && strchr(brokername, '/'));
        CHECK(brokerid >= -1 && version >= 0 && correlation > 0);
        if (err) {
                CHECK(size == 0 && rtt == -1);
                if (err == RD_KAFKA_RESP_ERR__TIMED_OUT)
                        COUNT(of_timed_out);
                else if (err == RD_KAFKA_RESP_ERR__TRANSPORT)
                        COUNT(of_lost);
                else
                        CHECK(!"another error");
        } else
                CHECK(size >= 8 && rtt >= 0 && rtt < 60000000);
        if (api == 0)
                COUNT(of_produce_received);
        COUNT(of_received);
        CHECK(READ(of_received) <= READ(of_sent));
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_broker_state_change(rd_kafka_t *rk, int32_t brokerid, const char *secproto,
                                                  const char *name, int port, const char *state, void *opaque) {
        CHECK(rk != NULL && opaque == &bad && !READ(is_destroyed));
        CHECK(brokerid >= -1 && !strcmp(secproto, "plaintext") && !strcmp(name, "127.0.0.1") && port > 0);
        if (!strcmp(state, "CONNECT"))
                COUNT(of_connecting);
        else if (!strcmp(state, "UP"))
                COUNT(of_up);
        else
                CHECK(!strcmp(state, "APIVERSION_QUERY") || !strcmp(state, "DOWN"));
        /* The result of an interceptor is logged, and has no effect. */
        return RD_KAFKA_RESP_ERR__FAIL;
}

static rd_kafka_resp_err_t on_new(rd_kafka_t *rk, const rd_kafka_conf_t *conf, void *opaque, char *errstr,
                                  size_t errstr_size) {
        char value[64];
        size_t size = sizeof(value);
        CHECK(rk != NULL && opaque == &bad && errstr != NULL && errstr_size > 0);
        CHECK(rd_kafka_conf_get(conf, "client.id", value, &size) == RD_KAFKA_CONF_OK && !strcmp(value, "seen"));
        CHECK(!rd_kafka_interceptor_add_on_send(rk, "test", on_send, opaque));
        CHECK(rd_kafka_interceptor_add_on_send(rk, "test", on_send, opaque) == RD_KAFKA_RESP_ERR__CONFLICT);
        CHECK(!rd_kafka_interceptor_add_on_send(rk, "test", on_send_too, opaque));
        CHECK(!rd_kafka_interceptor_add_on_acknowledgement(rk, "test", on_acknowledgement, opaque));
        CHECK(!rd_kafka_interceptor_add_on_consume(rk, "test", on_consume, opaque));
        CHECK(!rd_kafka_interceptor_add_on_commit(rk, "test", on_commit, opaque));
        CHECK(!rd_kafka_interceptor_add_on_destroy(rk, "test", on_destroy, opaque));
        CHECK(!rd_kafka_interceptor_add_on_thread_start(rk, "test", on_thread_start, opaque));
        CHECK(!rd_kafka_interceptor_add_on_thread_exit(rk, "test", on_thread_exit, opaque));
        CHECK(!rd_kafka_interceptor_add_on_request_sent(rk, "test", on_request_sent, opaque));
        CHECK(!rd_kafka_interceptor_add_on_response_received(rk, "test", on_response_received, opaque));
        CHECK(!rd_kafka_interceptor_add_on_broker_state_change(rk, "test", on_broker_state_change, opaque));
        __atomic_store_n(&is_destroyed, 0, __ATOMIC_SEQ_CST);
        of_new++;
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_conf_res_t on_conf_set(rd_kafka_conf_t *conf, const char *name, const char *val, char *errstr,
                                       size_t errstr_size, void *opaque) {
        CHECK(conf != NULL && opaque == &bad);
        if (strcmp(name, "mine"))
                return RD_KAFKA_CONF_UNKNOWN;
        if (!strcmp(val, "good"))
                return RD_KAFKA_CONF_OK;
        snprintf(errstr, errstr_size, "not good");
        return RD_KAFKA_CONF_INVALID;
}

static rd_kafka_resp_err_t on_conf_dup(rd_kafka_conf_t *new_conf, const rd_kafka_conf_t *old_conf, size_t filter_cnt,
                                       const char **filter, void *opaque) {
        CHECK(new_conf != old_conf && opaque == &bad);
        CHECK(filter_cnt == 0 || !strcmp(filter[0], "client."));
        of_dup++;
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_conf_destroy(void *opaque) {
        CHECK(opaque == &bad);
        of_conf_destroy++;
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static void on_event(rd_kafka_t *rk, rd_kafka_event_t *event, void *opaque) {
        (void)rk;
        (void)opaque;
        rd_kafka_event_destroy(event);
}

static rd_kafka_conf_t *configuration(const char *brokers) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        set(conf, "bootstrap.servers", brokers);
        set(conf, "client.id", "seen");
        CHECK(!rd_kafka_conf_interceptor_add_on_new(conf, "test", on_new, &bad));
        CHECK(rd_kafka_conf_interceptor_add_on_new(conf, "test", on_new, &bad) == RD_KAFKA_RESP_ERR__CONFLICT);
        CHECK(!rd_kafka_conf_interceptor_add_on_conf_set(conf, "test", on_conf_set, &bad));
        CHECK(!rd_kafka_conf_interceptor_add_on_conf_dup(conf, "test", on_conf_dup, &bad));
        CHECK(!rd_kafka_conf_interceptor_add_on_conf_destroy(conf, "test", on_conf_destroy, &bad));
        return conf;
}

static int loaded;

static void on_plugin_log(const rd_kafka_t *rk, int level, const char *facility, const char *line) {
        (void)rk;
        loaded += level == 7 && !strcmp(facility, "PLUGLOAD") && strstr(line, "/plugin\" is loaded") != NULL;
}

static void plugins(const char *program, const char *brokers) {
        char path[1024], errstr[256];
        rd_kafka_conf_t *conf = rd_kafka_conf_new(), *copy;
        rd_kafka_t *rk;
        CHECK(rd_kafka_conf_set(conf, "plugin.library.paths", "/no/such/library", errstr, sizeof(errstr)) ==
              RD_KAFKA_CONF_INVALID);
        CHECK(strstr(errstr, "/no/such/library"));
        CHECK(rd_kafka_conf_set(conf, "plugin.trace", "x", errstr, sizeof(errstr)) == RD_KAFKA_CONF_UNKNOWN);
        snprintf(path, sizeof(path), "%.*s/plugin", (int)(strrchr(program, '/') - program), program);
        if (rd_kafka_conf_set(conf, "plugin.library.paths", path, errstr, sizeof(errstr))) {
                fprintf(stderr, "%s\n", errstr);
                bad++;
        }
        set(conf, "plugin.trace", "seen");
        CHECK(getenv("PLUGIN_TRACE") && !strcmp(getenv("PLUGIN_TRACE"), "seen"));
        set(conf, "bootstrap.servers", brokers);
        set(conf, "debug", "plugin");
        rd_kafka_conf_set_log_cb(conf, on_plugin_log);
        /* The plug-in of a copy gets the properties that the plug-in of the original accepted, also from a copy of a
         * copy. */
        unsetenv("PLUGIN_TRACE");
        copy = rd_kafka_conf_dup(conf);
        CHECK(getenv("PLUGIN_TRACE") && !strcmp(getenv("PLUGIN_TRACE"), "seen"));
        unsetenv("PLUGIN_TRACE");
        rd_kafka_conf_destroy(conf);
        conf = copy;
        copy = rd_kafka_conf_dup(conf);
        CHECK(getenv("PLUGIN_TRACE") && !strcmp(getenv("PLUGIN_TRACE"), "seen"));
        rd_kafka_conf_destroy(conf);
        rk = rd_kafka_new(RD_KAFKA_PRODUCER, copy, errstr, sizeof(errstr));
        /* A client that is being made has no name yet. */
        CHECK(rk && getenv("PLUGIN_NEW") && !*getenv("PLUGIN_NEW"));
        CHECK(loaded == 1);
        rd_kafka_destroy(rk);
}

/* Responses that are lost: the broker is slow, and then goes down. */
static void lost_answers(void) {
        rd_kafka_conf_t *conf = configuration("");
        rd_kafka_mock_cluster_t *cluster;
        rd_kafka_t *rk;
        int up = READ(of_up), unanswered = READ(of_sent) - READ(of_received), sent = READ(of_produce_sent);
        set(conf, "test.mock.num.brokers", "1");
        /* A timeout that passes, but is long enough for immediate responses. */
        set_ms(conf, "socket.timeout.ms", SCALED_MS(2000));
        rk = start(RD_KAFKA_PRODUCER, conf);
        cluster = rd_kafka_handle_mock_cluster(rk);
        CHECK(!rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("interceptors"), RD_KAFKA_V_PARTITION(0),
                                 RD_KAFKA_V_VALUE((void *)"value", 5), RD_KAFKA_V_END));
        CHECK(!rd_kafka_flush(rk, TIMEOUT_MS));
        CHECK(READ(of_up) > up && READ(of_timed_out) == 0 && READ(of_lost) == 0);
        CHECK(!rd_kafka_mock_broker_set_rtt(cluster, 1, 2 * TIMEOUT_MS));
        CHECK(!rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("interceptors"), RD_KAFKA_V_PARTITION(0),
                                 RD_KAFKA_V_VALUE((void *)"value", 5), RD_KAFKA_V_END));
        WAIT_FOR(READ(of_produce_sent) >= sent + 2);
        WAIT_FOR(READ(of_timed_out) >= 1);
        /* The connection is closed with the request; the next one sends ApiVersions and waits, too. */
        UNTIL(READ(of_lost) >= 1, {
                WAIT_FOR(READ(of_sent) > READ(of_received) + unanswered);
                CHECK(!rd_kafka_mock_broker_set_down(cluster, 1));
                usleep(100000);
                CHECK(!rd_kafka_mock_broker_set_up(cluster, 1));
        });
        /* Every request that was sent has ended in one way or the other, except those whose end is not reported
         * because the client is destroyed. */
        CHECK(!rd_kafka_mock_broker_set_down(cluster, 1));
        WAIT_FOR(READ(of_received) >= READ(of_sent) - unanswered);
        rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
        rd_kafka_destroy(rk);
}

/* Interceptors are added in on_new; if they are added later, some would not be called, which is an error. */
static void added_late(const char *brokers) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        char errstr[256];
        rd_kafka_t *rk;
        set(conf, "bootstrap.servers", brokers);
        rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof(errstr));
#define LATE RD_KAFKA_RESP_ERR__STATE
        CHECK(rd_kafka_interceptor_add_on_send(rk, "late", on_send, &bad) == LATE);
        CHECK(rd_kafka_interceptor_add_on_acknowledgement(rk, "late", on_acknowledgement, &bad) == LATE);
        CHECK(rd_kafka_interceptor_add_on_request_sent(rk, "late", on_request_sent, &bad) == LATE);
        CHECK(rd_kafka_interceptor_add_on_response_received(rk, "late", on_response_received, &bad) == LATE);
        CHECK(rd_kafka_interceptor_add_on_thread_start(rk, "late", on_thread_start, &bad) == LATE);
        CHECK(rd_kafka_interceptor_add_on_thread_exit(rk, "late", on_thread_exit, &bad) == LATE);
        CHECK(rd_kafka_interceptor_add_on_broker_state_change(rk, "late", on_broker_state_change, &bad) == LATE);
        CHECK(!rd_kafka_interceptor_add_on_consume(rk, "late", on_consume, &bad));
        rd_kafka_destroy(rk);
}

int main(int argc, char **argv) {
        rd_kafka_conf_t *conf, *copy;
        rd_kafka_topic_partition_list_t *list;
        rd_kafka_message_t *message;
        rd_kafka_headers_t *headers;
        const char *filter[] = {"client."};
        const void *value;
        char errstr[256];
        size_t size;
        rd_kafka_t *rk;
        int i;

        if (argc < 2)
                return 2;
        plugins(argv[0], argv[1]);
        conf = configuration(argv[1]);
        set(conf, "mine", "good");
        CHECK(rd_kafka_conf_set(conf, "mine", "evil", errstr, sizeof(errstr)) == RD_KAFKA_CONF_INVALID);
        CHECK(!strcmp(errstr, "not good"));
        copy = rd_kafka_conf_dup(conf);
        CHECK(of_dup == 1);
        rd_kafka_conf_destroy(copy);
        copy = rd_kafka_conf_dup_filter(conf, 1, filter);
        CHECK(of_dup == 2);
        rd_kafka_conf_destroy(copy);
        CHECK(of_conf_destroy == 0);
        rd_kafka_conf_set_background_event_cb(conf, on_event);
        rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof(errstr));
        CHECK(rk != NULL && of_new == 1 && of_conf_destroy == 0);
        for (i = 0; i < 10; i++)
                CHECK(!rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("interceptors"), RD_KAFKA_V_PARTITION(0),
                                         RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                                         RD_KAFKA_V_VALUE((void *)"value", 5), RD_KAFKA_V_END));
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
        CHECK(of_send == 10 && of_send_too == 10 && of_failed == 0);
        CHECK(__atomic_load_n(&of_acknowledgement, __ATOMIC_SEQ_CST) == 10);
        CHECK(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("interceptors"), RD_KAFKA_V_PARTITION(99),
                                RD_KAFKA_V_VALUE((void *)"value", 5), RD_KAFKA_V_END) != 0);
        CHECK(of_send == 11 && of_failed == 1);
        /* The background thread starts when it is scheduled. */
        WAIT_FOR(READ(of_start));
        CHECK(READ(of_start) == 1 && READ(of_exit) == 0);
        CHECK(READ(of_sent) >= 3 && READ(of_received) >= 3 && READ(of_produce_sent) >= 1);
        CHECK(READ(of_produce_sent) == READ(of_produce_received));
        CHECK(READ(of_connecting) >= 1 && READ(of_up) >= 1 && READ(of_io_start) >= 1);
        rd_kafka_destroy(rk);
        CHECK(READ(of_io_start) == READ(of_io_exit));
        CHECK(of_exit == 1 && of_destroy == 1 && of_conf_destroy == 1);

        conf = configuration(argv[1]);
        set(conf, "group.id", "interceptors");
        set(conf, "enable.auto.commit", "false");
        set(conf, "enable.partition.eof", "true");
        rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, errstr, sizeof(errstr));
        CHECK(rk != NULL && of_new == 2);
        list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_topic_partition_list_add(list, "interceptors", 0)->offset = RD_KAFKA_OFFSET_BEGINNING;
        CHECK(rd_kafka_assign(rk, list) == 0);
        while (of_consume < 10 && (message = rd_kafka_consumer_poll(rk, TIMEOUT_MS)) != NULL) {
                CHECK(!message->err && !rd_kafka_message_headers(message, &headers));
                CHECK(!rd_kafka_header_get_last(headers, "trace", &value, &size) && size == 4);
                rd_kafka_message_destroy(message);
        }
        CHECK(of_consume == 10);
        /* The end of a partition is not a record. */
        message = rd_kafka_consumer_poll(rk, TIMEOUT_MS);
        CHECK(message && message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF && of_consume == 10);
        rd_kafka_message_destroy(message);
        CHECK(READ(of_up) >= 2 && READ(of_sent) >= 6 && READ(of_produce_sent) == READ(of_produce_received));
        CHECK(rd_kafka_commit(rk, NULL, 0) == 0);
        CHECK(of_commit == 1);
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_consumer_close(rk);
        rd_kafka_destroy(rk);
        CHECK(READ(of_io_start) == READ(of_io_exit));
        CHECK(of_destroy == 2 && of_conf_destroy == 2);
        added_late(argv[1]);
        lost_answers();
        return bad != 0;
}
