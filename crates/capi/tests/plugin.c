/* A plug-in: it has a property of its own, and sets environment variables as traces. */
#include <librdkafka/rdkafka.h>
#include <stdlib.h>
#include <string.h>

rd_kafka_resp_err_t conf_init(rd_kafka_conf_t *conf, void **plug_opaquep, char *errstr, size_t errstr_size);

static rd_kafka_conf_res_t on_conf_set(rd_kafka_conf_t *conf, const char *name, const char *val, char *errstr,
                                       size_t errstr_size, void *ic_opaque) {
        (void)conf;
        (void)errstr;
        (void)errstr_size;
        (void)ic_opaque;
        if (strcmp(name, "plugin.trace"))
                return RD_KAFKA_CONF_UNKNOWN;
        setenv("PLUGIN_TRACE", val, 1);
        return RD_KAFKA_CONF_OK;
}

static rd_kafka_resp_err_t on_new(rd_kafka_t *rk, const rd_kafka_conf_t *conf, void *ic_opaque, char *errstr,
                                  size_t errstr_size) {
        (void)conf;
        (void)ic_opaque;
        (void)errstr;
        (void)errstr_size;
        setenv("PLUGIN_NEW", rd_kafka_name(rk), 1);
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

rd_kafka_resp_err_t conf_init(rd_kafka_conf_t *conf, void **plug_opaquep, char *errstr, size_t errstr_size) {
        (void)errstr;
        (void)errstr_size;
        *plug_opaquep = NULL;
        rd_kafka_conf_interceptor_add_on_conf_set(conf, "plugin", on_conf_set, NULL);
        return rd_kafka_conf_interceptor_add_on_new(conf, "plugin", on_new, NULL);
}
