/* The functions of the application that open, connect and close sockets, and resolve names. */
#include "side_by_side.h"
#include <netdb.h>
#include <sys/socket.h>

static int on_socket(int domain, int type, int protocol, void *opaque) {
        record(&logs, "socket type %d opaque %s", type & 15, present(opaque));
        return socket(domain, type, protocol);
}
static int on_connect(int descriptor, const struct sockaddr *address, int length, const char *id, void *opaque) {
        record(&logs, "connect id %s opaque %s length %s", id, present(opaque), length > 0 ? "present" : "none");
        return connect(descriptor, address, (socklen_t)length) ? errno : 0;
}
static int on_close(int descriptor, void *opaque) {
        record(&logs, "close opaque %s", present(opaque));
        return close(descriptor);
}
static int on_resolve(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **result, void *opaque) {
        if (!node && !service) {
                record(&logs, "frees addresses %d", result && *result);
                freeaddrinfo(*result);
                return 0;
        }
        record(&logs, "resolve %s service %s opaque %s", node, service ? service : "NULL", present(opaque));
        return getaddrinfo(node, service, hints, result);
}

static void all_functions(rd_kafka_type_t type) {
        rd_kafka_conf_t *conf = conf_of("bootstrap.servers", DEAD, NULL);
        rd_kafka_t *rk;
        rd_kafka_conf_set_log_cb(conf, NULL);
        rd_kafka_conf_set_opaque(conf, "opaque");
        rd_kafka_conf_set_socket_cb(conf, on_socket);
        rd_kafka_conf_set_connect_cb(conf, on_connect);
        rd_kafka_conf_set_closesocket_cb(conf, on_close);
        rd_kafka_conf_set_resolve_cb(conf, on_resolve);
        rk = start(type, conf);
        WAIT_FOR(recorded_with(&logs, "close") > 0 && recorded_with(&logs, "frees") > 0);
        rd_kafka_destroy(rk);
        say_recorded_set("calls", &logs);
}
CASE(all_functions_of_a_producer) { all_functions(RD_KAFKA_PRODUCER); }
CASE(all_functions_of_a_consumer) { all_functions(RD_KAFKA_CONSUMER); }

static int no_socket(int domain UNUSED, int type UNUSED, int protocol UNUSED, void *opaque UNUSED) {
        record(&logs, "socket");
        errno = EMFILE;
        return -1;
}
static int no_connection(int descriptor UNUSED, const struct sockaddr *address UNUSED, int length UNUSED, const char *id UNUSED, void *opaque UNUSED) {
        record(&logs, "connect");
        return ECONNREFUSED;
}
static int no_address(const char *node, const char *service UNUSED, const struct addrinfo *hints UNUSED, struct addrinfo **result UNUSED, void *opaque UNUSED) {
        if (node)
                record(&logs, "resolve");
        return node ? EAI_NONAME : 0;
}

static void failing(int which) {
        rd_kafka_conf_t *conf = conf_of("bootstrap.servers", DEAD, NULL);
        rd_kafka_t *rk;
        rd_kafka_conf_set_log_cb(conf, NULL);
        if (which == 0)
                rd_kafka_conf_set_socket_cb(conf, no_socket);
        if (which == 1)
                rd_kafka_conf_set_connect_cb(conf, no_connection);
        if (which == 2)
                rd_kafka_conf_set_resolve_cb(conf, no_address);
        rk = producer_of(conf);
        UNTIL(recorded_with(&errors, "_ALL_BROKERS_DOWN") > 0, rd_kafka_poll(rk, 50));
        rd_kafka_destroy(rk);
        say_recorded_set("calls", &logs);
        say_recorded_set("errors", &errors);
}
CASE(failing_socket) { failing(0); }
CASE(failing_connect) { failing(1); }
CASE(failing_resolve) { failing(2); }
