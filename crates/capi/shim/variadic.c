/*
 * The functions with a variable number of arguments: stable Rust can call such functions but not be one. Each collects its
 * arguments into an array or a text and calls a function of Rust. The public names are in src/variadic.rs, because
 * the symbols of a C object are not exported from a library that rustc links.
 */
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <stdarg.h>
#include <stdlib.h>

/* A library for Windows exports only the names of a list. */
#ifdef _WIN32
#define HIDDEN
#else
#define HIDDEN __attribute__((visibility("hidden")))
#endif

rd_kafka_error_t *ottla_error_new(rd_kafka_resp_err_t code, const char *text);
rd_kafka_resp_err_t ottla_producev(rd_kafka_t *rk, const rd_kafka_vu_t *vus, size_t cnt);
rd_kafka_resp_err_t ottla_mock_push_errors(rd_kafka_mock_cluster_t *cluster, int32_t broker, const char *topic,
                                           int32_t partition, int16_t api, size_t cnt,
                                           const rd_kafka_resp_err_t *errors, const int *rtts, int scope);

/* The scope of pushed errors: the last argument of ottla_mock_push_errors. */
enum scope { CLUSTER, BROKER, PARTITION };

/* The maximum number of arguments of a message. */
#define MOST_ARGUMENTS 1024
#define MOST_ERRORS 100000

HIDDEN rd_kafka_error_t *ottla_shim_error_new(rd_kafka_resp_err_t code, const char *fmt, ...) {
        char text[1024];
        va_list ap;
        if (!fmt || !*fmt)
                return ottla_error_new(code, NULL);
        va_start(ap, fmt);
        if (vsnprintf(text, sizeof(text), fmt, ap) < 0)
                text[0] = 0;
        va_end(ap);
        return ottla_error_new(code, text);
}

HIDDEN rd_kafka_resp_err_t ottla_shim_producev(rd_kafka_t *rk, ...) {
        rd_kafka_vu_t few[24], *vus = few;
        size_t cnt = 0, room = sizeof(few) / sizeof(*few);
        int is_known = 1;
        rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR_NO_ERROR;
        va_list ap;
        va_start(ap, rk);
        while (is_known) {
                int vtype = va_arg(ap, int);
                if (vtype == RD_KAFKA_VTYPE_END)
                        break;
                if (cnt == room) {
                        rd_kafka_vu_t *more;
                        size_t i;
                        if (room >= MOST_ARGUMENTS) {
                                err = RD_KAFKA_RESP_ERR__INVALID_ARG;
                                break;
                        }
                        more = malloc(sizeof(*more) * room * 2);
                        if (!more) {
                                err = RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE;
                                break;
                        }
                        for (i = 0; i < cnt; i++)
                                more[i] = vus[i];
                        if (vus != few)
                                free(vus);
                        vus = more;
                        room *= 2;
                }
                vus[cnt].vtype = (rd_kafka_vtype_t)vtype;
                switch (vtype) {
                case RD_KAFKA_VTYPE_TOPIC:
                        vus[cnt].u.cstr = va_arg(ap, const char *);
                        break;
                case RD_KAFKA_VTYPE_RKT:
                        vus[cnt].u.rkt = va_arg(ap, rd_kafka_topic_t *);
                        break;
                case RD_KAFKA_VTYPE_PARTITION:
                        vus[cnt].u.i32 = va_arg(ap, int32_t);
                        break;
                case RD_KAFKA_VTYPE_VALUE:
                case RD_KAFKA_VTYPE_KEY:
                        vus[cnt].u.mem.ptr = va_arg(ap, void *);
                        vus[cnt].u.mem.size = va_arg(ap, size_t);
                        break;
                case RD_KAFKA_VTYPE_OPAQUE:
                        vus[cnt].u.ptr = va_arg(ap, void *);
                        break;
                case RD_KAFKA_VTYPE_MSGFLAGS:
                        vus[cnt].u.i = va_arg(ap, int);
                        break;
                case RD_KAFKA_VTYPE_TIMESTAMP:
                        vus[cnt].u.i64 = va_arg(ap, int64_t);
                        break;
                case RD_KAFKA_VTYPE_HEADER:
                        vus[cnt].u.header.name = va_arg(ap, const char *);
                        vus[cnt].u.header.val = va_arg(ap, const void *);
                        vus[cnt].u.header.size = va_arg(ap, ssize_t);
                        break;
                case RD_KAFKA_VTYPE_HEADERS:
                        vus[cnt].u.headers = va_arg(ap, rd_kafka_headers_t *);
                        break;
                default:
                        /* The length is unknown: this argument is the last one, and refused. */
                        is_known = 0;
                        break;
                }
                cnt++;
        }
        va_end(ap);
        if (!err)
                err = ottla_producev(rk, vus, cnt);
        if (vus != few)
                free(vus);
        return err;
}

static rd_kafka_resp_err_t push(rd_kafka_mock_cluster_t *cluster, enum scope scope, int32_t broker, const char *topic,
                                int32_t partition, int16_t api, size_t cnt, va_list *ap) {
        rd_kafka_resp_err_t *errors, err;
        int *rtts;
        size_t i;
        if (cnt > MOST_ERRORS)
                return RD_KAFKA_RESP_ERR__INVALID_ARG;
        errors = malloc(sizeof(*errors) * (cnt + 1));
        rtts = malloc(sizeof(*rtts) * (cnt + 1));
        if (errors && rtts) {
                for (i = 0; i < cnt; i++) {
                        errors[i] = (rd_kafka_resp_err_t)va_arg(*ap, int);
                        rtts[i] = scope == BROKER ? va_arg(*ap, int) : 0;
                }
                err = ottla_mock_push_errors(cluster, broker, topic, partition, api, cnt, errors, rtts,
                                             (int)scope);
        } else {
                err = RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE;
        }
        free(errors);
        free(rtts);
        return err;
}

HIDDEN void ottla_shim_mock_push_request_errors(rd_kafka_mock_cluster_t *cluster, int16_t api, size_t cnt, ...) {
        va_list ap;
        va_start(ap, cnt);
        push(cluster, CLUSTER, -1, NULL, -1, api, cnt, &ap);
        va_end(ap);
}

HIDDEN rd_kafka_resp_err_t ottla_shim_mock_broker_push_request_error_rtts(rd_kafka_mock_cluster_t *cluster,
                                                                          int32_t broker, int16_t api, size_t cnt,
                                                                          ...) {
        rd_kafka_resp_err_t err;
        va_list ap;
        va_start(ap, cnt);
        err = push(cluster, BROKER, broker, NULL, -1, api, cnt, &ap);
        va_end(ap);
        return err;
}

HIDDEN rd_kafka_resp_err_t ottla_shim_mock_partition_push_request_errors(rd_kafka_mock_cluster_t *cluster,
                                                                         const char *topic, int32_t partition,
                                                                         int16_t api, size_t cnt, ...) {
        rd_kafka_resp_err_t err;
        va_list ap;
        va_start(ap, cnt);
        err = push(cluster, PARTITION, -1, topic, partition, api, cnt, &ap);
        va_end(ap);
        return err;
}
