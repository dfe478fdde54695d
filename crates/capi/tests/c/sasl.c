/* Credentials and tokens that a program sets while its client runs, and token requests. With a second argument the
 * brokers authenticate alice with the password alice-secret. All wrong secrets contain "hunter2": the caller
 * searches the logs for it. */
#include "test.h"

static int asked, failed_with, logged;
static const char *token;
static char reason[512];
static pthread_t main_thread;

static void on_log(const rd_kafka_t *rk, int level, const char *facility, const char *text) {
        (void)rk;
        (void)level;
        fprintf(stderr, "%s: %s\n", facility, text);
        __atomic_add_fetch(&logged, 1, __ATOMIC_SEQ_CST);
}

static void on_error(rd_kafka_t *rk, int err, const char *text, void *opaque) {
        (void)rk;
        (void)opaque;
        if (err == RD_KAFKA_RESP_ERR__AUTHENTICATION) {
                snprintf(reason, sizeof(reason), "%s", text);
                __atomic_store_n(&failed_with, err, __ATOMIC_SEQ_CST);
        }
}

static int64_t in_an_hour(void) {
        return ((int64_t)time(NULL) + 3600) * 1000;
}

/* A token without a signature: {"alg":"none"}.{"sub":"alice","exp":4102444800}. */
#define TOKEN "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbGljZSIsImV4cCI6NDEwMjQ0NDgwMH0."

static void on_token(rd_kafka_t *rk, const char *config, void *opaque) {
        char errstr[128] = "";
        CHECK(opaque == &bad && config && !strcmp(config, "for=me"));
        if (token)
                CHECK(!rd_kafka_oauthbearer_set_token(rk, token, in_an_hour(), "alice", NULL, 0, errstr, sizeof(errstr)));
        else
                CHECK(!rd_kafka_oauthbearer_set_token_failure(rk, "no token today"));
        CHECK(!*errstr);
        __atomic_add_fetch(&asked, 1, __ATOMIC_SEQ_CST);
}

static rd_kafka_conf_t *configuration(const char *brokers, const char *mechanism) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        set(conf, "bootstrap.servers", brokers);
        set(conf, "security.protocol", "sasl_plaintext");
        set(conf, "sasl.mechanisms", mechanism);
        set(conf, "debug", "all");
        rd_kafka_conf_set_log_cb(conf, on_log);
        rd_kafka_conf_set_error_cb(conf, on_error);
        rd_kafka_conf_set_opaque(conf, &bad);
        if (strcmp(mechanism, "OAUTHBEARER")) {
                set(conf, "sasl.username", "alice");
                set(conf, "sasl.password", "hunter2");
        } else
                set(conf, "sasl.oauthbearer.config", "for=me");
        return conf;
}

static rd_kafka_resp_err_t produced(rd_kafka_t *rk) {
        CHECK(!rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("sasl"), RD_KAFKA_V_VALUE("x", 1), RD_KAFKA_V_END));
        return rd_kafka_flush(rk, TIMEOUT_MS);
}

static rd_kafka_resp_err_t code_of(rd_kafka_error_t *error) {
        rd_kafka_resp_err_t code = rd_kafka_error_code(error);
        rd_kafka_error_destroy(error);
        return code;
}

static void no_sasl(const char *brokers) {
        char errstr[64];
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_t *rk;
        set(conf, "bootstrap.servers", brokers);
        rd_kafka_conf_enable_sasl_queue(conf, 1);
        rk = start(RD_KAFKA_PRODUCER, conf);
        CHECK(!rd_kafka_queue_get_sasl(rk));
        CHECK(code_of(rd_kafka_sasl_background_callbacks_enable(rk)) == RD_KAFKA_RESP_ERR__NOT_CONFIGURED);
        CHECK(!rd_kafka_sasl_set_credentials(rk, "a", "b"));
        CHECK(code_of(rd_kafka_sasl_set_credentials(rk, NULL, "b")) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_oauthbearer_set_token(rk, "x", in_an_hour(), "a", NULL, 0, errstr, sizeof(errstr)) ==
              RD_KAFKA_RESP_ERR__STATE);
        CHECK(rd_kafka_oauthbearer_set_token_failure(rk, "x") == RD_KAFKA_RESP_ERR__STATE);
        CHECK(!rd_kafka_event_config_string(NULL));
        CHECK(produced(rk) == 0);
        rd_kafka_destroy(rk);
}

static void bad_tokens(const char *brokers) {
        static char large[10000001];
        const char *odd[] = {"a"}, *reserved[] = {"auth", "x"}, *control[] = {"a", "\1"};
        char errstr[128];
        rd_kafka_t *rk = start(RD_KAFKA_PRODUCER, configuration(brokers, "OAUTHBEARER"));
        memset(large, 'x', sizeof(large) - 1);
#define REFUSED(value, end, extensions, size)                                                                          \
        do {                                                                                                           \
                *errstr = 0;                                                                                           \
                CHECK(rd_kafka_oauthbearer_set_token(rk, value, end, "alice", extensions, size, errstr,                \
                                                     sizeof(errstr)) == RD_KAFKA_RESP_ERR__INVALID_ARG);               \
                CHECK(*errstr && !strstr(errstr, "hunter2"));                                                          \
        } while (0)
        REFUSED("hunter2", 1000, NULL, 0);
        REFUSED("hunter2", -1, NULL, 0);
        REFUSED("hunter2\1", in_an_hour(), NULL, 0);
        REFUSED("", in_an_hour(), NULL, 0);
        REFUSED(NULL, in_an_hour(), NULL, 0);
        REFUSED(large, in_an_hour(), NULL, 0);
        REFUSED("hunter2", in_an_hour(), odd, 1);
        REFUSED("hunter2", in_an_hour(), reserved, 2);
        REFUSED("hunter2", in_an_hour(), control, 2);
        REFUSED("hunter2", in_an_hour(), NULL, 2);
        CHECK(rd_kafka_oauthbearer_set_token_failure(rk, NULL) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_oauthbearer_set_token_failure(rk, "") == RD_KAFKA_RESP_ERR__INVALID_ARG);
        rd_kafka_destroy(rk);
}

/* The error names a listener without SASL. */
static void wrong_listener(const char *brokers) {
        rd_kafka_t *rk = start(RD_KAFKA_PRODUCER, configuration(brokers, "SCRAM-SHA-256"));
        failed_with = 0;
        UNTIL(__atomic_load_n(&failed_with, __ATOMIC_SEQ_CST), rd_kafka_poll(rk, 10));
        CHECK(strstr(reason, "does not use SASL"));
        rd_kafka_destroy(rk);
}

static void passwords(const char *brokers, const char *mechanism) {
        rd_kafka_t *rk = start(RD_KAFKA_PRODUCER, configuration(brokers, mechanism));
        failed_with = 0;
        UNTIL(__atomic_load_n(&failed_with, __ATOMIC_SEQ_CST), rd_kafka_poll(rk, 10));
        CHECK(strstr(reason, mechanism) && strstr(reason, "Authentication failed") && !strstr(reason, "hunter2"));
        CHECK(!rd_kafka_sasl_set_credentials(rk, "alice", "alice-secret"));
        CHECK(produced(rk) == 0);
        rd_kafka_destroy(rk);
}

static void tokens(const char *brokers) {
        char errstr[256];
        rd_kafka_conf_t *conf = configuration(brokers, "OAUTHBEARER");
        rd_kafka_queue_t *queue;
        rd_kafka_event_t *event = NULL;
        rd_kafka_t *rk;
        /* The callback, by rd_kafka_poll(). At first it has no token. */
        rd_kafka_conf_set_oauthbearer_token_refresh_cb(conf, on_token);
        rk = start(RD_KAFKA_PRODUCER, conf);
        CHECK(!rd_kafka_queue_get_sasl(rk));
        failed_with = 0;
        UNTIL(__atomic_load_n(&failed_with, __ATOMIC_SEQ_CST), rd_kafka_poll(rk, 10));
        CHECK(asked == 1 && strstr(reason, "no token today"));
        CHECK(!rd_kafka_oauthbearer_set_token(rk, TOKEN, in_an_hour(), "alice", NULL, 0, errstr, sizeof(errstr)));
        CHECK(produced(rk) == 0);
        rd_kafka_destroy(rk);
        /* A separate queue, and its events. */
        conf = configuration(brokers, "OAUTHBEARER");
        rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_OAUTHBEARER_TOKEN_REFRESH);
        rd_kafka_conf_enable_sasl_queue(conf, 1);
        rk = start(RD_KAFKA_CONSUMER, conf);
        queue = rd_kafka_queue_get_sasl(rk);
        CHECK(queue != NULL);
        UNTIL(event, event = rd_kafka_queue_poll(queue, 100));
        CHECK(rd_kafka_event_type(event) == RD_KAFKA_EVENT_OAUTHBEARER_TOKEN_REFRESH);
        CHECK(!strcmp(rd_kafka_event_name(event), "SaslOAuthBearerTokenRefresh"));
        CHECK(!strcmp(rd_kafka_event_config_string(event), "for=me"));
        rd_kafka_event_destroy(event);
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
        /* The background thread. */
        conf = configuration(brokers, "OAUTHBEARER");
        rd_kafka_conf_set_oauthbearer_token_refresh_cb(conf, on_token);
        rd_kafka_conf_enable_sasl_queue(conf, 1);
        token = TOKEN;
        asked = 0;
        rk = start(RD_KAFKA_PRODUCER, conf);
        CHECK(!rd_kafka_sasl_background_callbacks_enable(rk));
        WAIT_FOR(__atomic_load_n(&asked, __ATOMIC_SEQ_CST));
        CHECK(produced(rk) == 0);
        rd_kafka_destroy(rk);
        /* Both sources at once. */
        conf = configuration(brokers, "OAUTHBEARER");
        set(conf, "enable.sasl.oauthbearer.unsecure.jwt", "true");
        set(conf, "sasl.oauthbearer.config", "principal=alice");
        rd_kafka_conf_set_oauthbearer_token_refresh_cb(conf, on_token);
        CHECK(!rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof(errstr)) && strstr(errstr, "mutually exclusive"));
        rd_kafka_conf_set_oauthbearer_token_refresh_cb(conf, NULL);
        rk = start(RD_KAFKA_PRODUCER, conf);
        CHECK(produced(rk) == 0);
        rd_kafka_destroy(rk);
}

int main(int argc, char **argv) {
        main_thread = pthread_self();
        if (argc < 2)
                return 2;
        bad_tokens(argv[1]);
        if (argc > 2) {
                passwords(argv[1], "PLAIN");
                passwords(argv[1], "SCRAM-SHA-256");
                passwords(argv[1], "SCRAM-SHA-512");
                tokens(argv[1]);
        } else {
                no_sasl(argv[1]);
                wrong_listener(argv[1]);
        }
        return bad != 0;
}
