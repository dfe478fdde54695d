/* A plug-in with the properties `plug.word` and `plug.bad`. It prints its calls on the program's standard output. */
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What one configuration has set. */
struct state {
        char word[64];
};

static void trace(const char *what, const char *detail) {
        printf("plug-in %s %s\n", what, detail);
        fflush(stdout);
}

rd_kafka_resp_err_t conf_init(rd_kafka_conf_t *conf, void **opaque, char *errstr, size_t errstr_size);

static rd_kafka_conf_res_t on_set(rd_kafka_conf_t *conf, const char *name, const char *value, char *errstr, size_t size, void *opaque) {
        struct state *state = opaque;
        (void)conf;
        if (!strcmp(name, "plug.bad")) {
                snprintf(errstr, size, "plug.bad is refused");
                return RD_KAFKA_CONF_INVALID;
        }
        if (strcmp(name, "plug.word"))
                return RD_KAFKA_CONF_UNKNOWN;
        snprintf(state->word, sizeof(state->word), "%s", value ? value : "NULL");
        trace("takes", state->word);
        return RD_KAFKA_CONF_OK;
}

static rd_kafka_resp_err_t on_destroy(void *opaque) {
        trace("ends with", ((struct state *)opaque)->word);
        free(opaque);
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_send(rd_kafka_t *rk, rd_kafka_message_t *message, void *opaque) {
        (void)rk;
        (void)message;
        trace("sees a message, word", ((struct state *)opaque)->word);
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_new(rd_kafka_t *rk, const rd_kafka_conf_t *conf, void *opaque, char *errstr, size_t size) {
        (void)conf;
        (void)errstr;
        (void)size;
        trace("sees a client, word", ((struct state *)opaque)->word);
        return rd_kafka_interceptor_add_on_send(rk, "plug-in", on_send, opaque);
}

static rd_kafka_resp_err_t on_dup(rd_kafka_conf_t *copy, const rd_kafka_conf_t *conf, size_t count, const char **filter, void *opaque);

static void add(rd_kafka_conf_t *conf) {
        struct state *state = calloc(1, sizeof(*state));
        rd_kafka_conf_interceptor_add_on_conf_set(conf, "plug-in", on_set, state);
        rd_kafka_conf_interceptor_add_on_conf_dup(conf, "plug-in", on_dup, state);
        rd_kafka_conf_interceptor_add_on_conf_destroy(conf, "plug-in", on_destroy, state);
        rd_kafka_conf_interceptor_add_on_new(conf, "plug-in", on_new, state);
        trace("begins", "");
}

static rd_kafka_resp_err_t on_dup(rd_kafka_conf_t *copy, const rd_kafka_conf_t *conf, size_t count, const char **filter, void *opaque) {
        (void)conf;
        (void)filter;
        (void)opaque;
        trace("is copied", count ? "with a filter" : "");
        add(copy);
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

rd_kafka_resp_err_t conf_init(rd_kafka_conf_t *conf, void **opaque, char *errstr, size_t errstr_size) {
        (void)errstr;
        (void)errstr_size;
        *opaque = NULL;
        add(conf);
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

