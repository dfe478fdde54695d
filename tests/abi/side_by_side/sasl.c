/* Credentials and tokens for SASL, as far as they need no broker. */
#include "side_by_side.h"

static rd_kafka_conf_t *tokens_of(void) {
        return conf_of("security.protocol", "sasl_plaintext", "sasl.mechanisms", "OAUTHBEARER", "bootstrap.servers", "127.0.0.1:1", "sasl.oauthbearer.config", "for=me", NULL);
}

static int64_t in_an_hour(void) { return ((int64_t)time(NULL) + 3600) * 1000; }

CASE(client_without_sasl) {
        char errstr[256] = "";
        rd_kafka_conf_t *conf = conf_of(NULL, NULL);
        rd_kafka_t *rk;
        rd_kafka_conf_enable_sasl_queue(conf, 1);
        rk = producer_of(conf);
        say("queue %s", rd_kafka_queue_get_sasl(rk) ? "present" : "NULL");
        say_error("background", rd_kafka_sasl_background_callbacks_enable(rk));
        say_error("credentials", rd_kafka_sasl_set_credentials(rk, "user", "password"));
        say_error("no user", rd_kafka_sasl_set_credentials(rk, NULL, "password"));
        say_error("no password", rd_kafka_sasl_set_credentials(rk, "user", NULL));
        say("token %s", err(rd_kafka_oauthbearer_set_token(rk, "x", in_an_hour(), "me", NULL, 0, errstr, sizeof(errstr))));
        say("text %s", errstr);
        say("failure %s", err(rd_kafka_oauthbearer_set_token_failure(rk, "x")));
        rd_kafka_destroy(rk);
}

CASE(queue_of_requests_for_tokens) {
        int enable;
        for (enable = 0; enable <= 1; enable++) {
                rd_kafka_conf_t *conf = tokens_of();
                rd_kafka_queue_t *queue;
                rd_kafka_t *rk;
                rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_OAUTHBEARER_TOKEN_REFRESH);
                rd_kafka_conf_enable_sasl_queue(conf, enable);
                rk = producer_of(conf);
                queue = rd_kafka_queue_get_sasl(rk);
                say("enabled %d: %s", enable, queue ? "present" : "NULL");
                if (queue)
                        rd_kafka_queue_destroy(queue);
                say_error("background", rd_kafka_sasl_background_callbacks_enable(rk));
                rd_kafka_destroy(rk);
        }
}

static void say_token(rd_kafka_t *rk, const char *what, const char *value, int64_t end, const char *principal, const char **extensions, size_t size) {
        char errstr[256] = "";
        rd_kafka_resp_err_t code = rd_kafka_oauthbearer_set_token(rk, value, end, principal, extensions, size, errstr, sizeof(errstr));
        say("%s: %s, text %s", what, err(code), present(errstr));
}

CASE(tokens_are_checked) {
        const char *good[] = {"a", "1", "B", "2 3"}, *odd[] = {"a"}, *reserved[] = {"auth", "x"}, *digit[] = {"a1", "x"}, *control[] = {"a", "\1"};
        rd_kafka_t *rk = producer_of(tokens_of());
        say_token(rk, "good", "x.y.z", in_an_hour(), "me", NULL, 0);
        say_token(rk, "extensions", "x.y.z", in_an_hour(), "me", good, 4);
        say_token(rk, "expired", "x.y.z", 1000, "me", NULL, 0);
        say_token(rk, "negative end", "x.y.z", -1, "me", NULL, 0);
        say_token(rk, "control character", "x\1", in_an_hour(), "me", NULL, 0);
        say_token(rk, "odd count", "x", in_an_hour(), "me", odd, 1);
        say_token(rk, "reserved key", "x", in_an_hour(), "me", reserved, 2);
        say_token(rk, "key with a digit", "x", in_an_hour(), "me", digit, 2);
        say_token(rk, "control character in a value", "x", in_an_hour(), "me", control, 2);
        say("failure %s", err(rd_kafka_oauthbearer_set_token_failure(rk, "down")));
        say("failure without a reason %s", err(rd_kafka_oauthbearer_set_token_failure(rk, "")));
        say("failure with NULL %s", err(rd_kafka_oauthbearer_set_token_failure(rk, NULL)));
        rd_kafka_destroy(rk);
}

static int asked;

static void on_token(rd_kafka_t *rk, const char *config, void *opaque) {
        char errstr[64];
        say("asked: %s opaque %d", quoted(config), opaque == &asked);
        if (!asked++)
                say("set: %s", err(rd_kafka_oauthbearer_set_token(rk, "x.y.z", in_an_hour(), "me", NULL, 0, errstr, sizeof(errstr))));
}

CASE(callback_asks_for_a_token_in_poll) {
        rd_kafka_conf_t *conf = tokens_of();
        rd_kafka_t *rk;
        rd_kafka_conf_set_oauthbearer_token_refresh_cb(conf, on_token);
        rd_kafka_conf_set_opaque(conf, &asked);
        rk = producer_of(conf);
        UNTIL(asked, rd_kafka_poll(rk, 10));
        rd_kafka_destroy(rk);
}

static int asked_in_background, unexpected_events;

static void on_token_in_background(rd_kafka_t *rk, const char *config, void *opaque) {
        on_token(rk, config, opaque);
        asked_in_background++;
}

static void on_background_event(rd_kafka_t *rk UNUSED, rd_kafka_event_t *event, void *opaque UNUSED) {
        if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_OAUTHBEARER_TOKEN_REFRESH)
                unexpected_events++;
        rd_kafka_event_destroy(event);
}

CASE(callback_for_tokens_runs_beside_background_events) {
        rd_kafka_conf_t *conf = tokens_of();
        rd_kafka_error_t *enabled;
        rd_kafka_t *rk;
        rd_kafka_conf_set_oauthbearer_token_refresh_cb(conf, on_token_in_background);
        rd_kafka_conf_set_background_event_cb(conf, on_background_event);
        rd_kafka_conf_enable_sasl_queue(conf, 1);
        rd_kafka_conf_set_opaque(conf, &asked);
        rk = producer_of(conf);
        enabled = rd_kafka_sasl_background_callbacks_enable(rk);
        UNTIL(asked_in_background, usleep(10000));
        say_error("background", enabled);
        say("asked %d, events %d", asked_in_background, unexpected_events);
        rd_kafka_destroy(rk);
}

CASE(event_asks_for_a_token) {
        rd_kafka_conf_t *conf = tokens_of();
        rd_kafka_event_t *event = NULL;
        rd_kafka_queue_t *queue;
        rd_kafka_t *rk;
        rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_OAUTHBEARER_TOKEN_REFRESH);
        rk = producer_of(conf);
        queue = rd_kafka_queue_get_main(rk);
        UNTIL(event, event = rd_kafka_queue_poll(queue, 10));
        say("event %s, type %d, config %s", rd_kafka_event_name(event), rd_kafka_event_type(event), quoted(rd_kafka_event_config_string(event)));
        say("error %s", err(rd_kafka_event_error(event)));
        rd_kafka_event_destroy(event);
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
}

static int failures;

static void on_failure(rd_kafka_t *rk UNUSED, int code, const char *reason, void *opaque UNUSED) {
        if (code == RD_KAFKA_RESP_ERR__AUTHENTICATION) {
                say("error: %s", reason);
                failures++;
        }
}

CASE(failure_is_an_error_event) {
        rd_kafka_conf_t *conf = tokens_of();
        rd_kafka_t *rk;
        rd_kafka_conf_set_error_cb(conf, on_failure);
        rk = producer_of(conf);
        say("failure %s", err(rd_kafka_oauthbearer_set_token_failure(rk, "down")));
        UNTIL(failures, rd_kafka_poll(rk, 10));
        rd_kafka_destroy(rk);
}

static void attempt(const char *what, rd_kafka_conf_t *conf) {
        char errstr[256] = "";
        rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof(errstr));
        say("%s: %s", what, rk ? "created" : "NULL");
        if (rk)
                rd_kafka_destroy(rk);
        else
                rd_kafka_conf_destroy(conf);
}

CASE(configurations) {
        rd_kafka_conf_t *conf;
        attempt("PLAIN without a user", conf_of("security.protocol", "sasl_plaintext", "sasl.mechanisms", "PLAIN", NULL));
        attempt("PLAIN without a password", conf_of("security.protocol", "sasl_plaintext", "sasl.mechanisms", "PLAIN", "sasl.username", "a", NULL));
        attempt("PLAIN", conf_of("security.protocol", "sasl_plaintext", "sasl.mechanism", "PLAIN", "sasl.username", "a", "sasl.password", "b", NULL));
        attempt("SCRAM-SHA-256", conf_of("security.protocol", "SASL_PLAINTEXT", "sasl.mechanisms", "SCRAM-SHA-256", "sasl.username", "a", "sasl.password", "b", NULL));
        attempt("an unknown mechanism", conf_of("security.protocol", "sasl_plaintext", "sasl.mechanisms", "TELEPATHY", NULL));
        attempt("OAUTHBEARER", tokens_of());
        conf = tokens_of();
        set(conf, "enable.sasl.oauthbearer.unsecure.jwt", "true");
        set(conf, "sasl.oauthbearer.config", "principal=me");
        rd_kafka_conf_set_oauthbearer_token_refresh_cb(conf, on_token);
        attempt("two sources of tokens", conf);
}

