/* The application's functions for sockets and host names: their arguments, and their permitted results. */
#include "test.h"
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

enum mode {
        GOOD,
        SOCKET_FAILS,
        SOCKET_NO_DESCRIPTOR,
        SOCKET_NO_SOCKET,
        SOCKET_DATAGRAM,
        SOCKET_TWICE,
        CONNECT_FAILS,
        CONNECT_MINUS_ONE,
        CONNECT_NOT,
        CONNECT_CLOSES,
        RESOLVE_FAILS,
        RESOLVE_NOTHING,
        RESOLVE_NONSENSE,
        MODES
};

/* The expected content of the error that the application gets. */
static const char *said[MODES] = {"",
                                  "socket_cb returned -1",
                                  "socket_cb returned 1000000, which is not an open stream socket",
                                  "socket_cb returned 0, which is not an open stream socket",
                                  "which is not an open stream socket",
                                  "which is in use already",
                                  "connect_cb returned 101",
                                  "connect_cb returned -1, which is neither 0 nor an errno",
                                  "the transport did not connect the socket",
                                  "connect_cb closed the socket and returned success",
                                  "resolve_cb returned",
                                  "resolve_cb returned 0 and gave no IPv4 or IPv6 address",
                                  "resolve_cb returned 0 and gave no IPv4 or IPv6 address"};

static enum mode mode;
static int opened, connected, closed, resolved, freed, is_over, first = -1, datagram = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char told[4096];

static void count(int *counter) {
        __atomic_add_fetch(counter, 1, __ATOMIC_SEQ_CST);
}

static int seen(int *counter) {
        return __atomic_load_n(counter, __ATOMIC_SEQ_CST);
}

static int on_socket(int domain, int type, int protocol, void *opaque) {
        int fd;
        CHECK(opaque == &bad && !seen(&is_over));
        CHECK(domain == AF_INET && type == SOCK_STREAM && protocol == IPPROTO_TCP);
        if (mode == SOCKET_FAILS) {
                errno = EMFILE;
                return -1;
        }
        if (mode == SOCKET_NO_DESCRIPTOR)
                return 1000000;
        if (mode == SOCKET_NO_SOCKET)
                return 0;
        if (mode == SOCKET_DATAGRAM)
                return datagram;
        pthread_mutex_lock(&lock);
        if (mode == SOCKET_TWICE && first != -1)
                fd = first;
        else {
                fd = first = socket(domain, type, protocol);
                count(&opened);
        }
        pthread_mutex_unlock(&lock);
        return fd;
}

static int on_connect(int fd, const struct sockaddr *address, int length, const char *id, void *opaque) {
        CHECK(opaque == &bad && !seen(&is_over));
        CHECK(fcntl(fd, F_GETFL) & O_NONBLOCK);
        CHECK(length == sizeof(struct sockaddr_in) && address->sa_family == AF_INET);
        CHECK(((const struct sockaddr_in *)address)->sin_addr.s_addr == htonl(INADDR_LOOPBACK));
        CHECK(!strncmp(id, "localhost:", 10) || !strncmp(id, "127.0.0.1:", 10));
        CHECK(strchr(id, ':') != NULL && strchr(id, '/') == NULL);
        count(&connected);
        if (mode == CONNECT_FAILS)
                return ENETUNREACH;
        if (mode == CONNECT_MINUS_ONE)
                return -1;
        if (mode == CONNECT_NOT)
                return 0;
        if (mode == CONNECT_CLOSES) {
                close(fd);
                return 0;
        }
        return connect(fd, address, length) == -1 ? errno : 0;
}

static int on_close(int fd, void *opaque) {
        CHECK(opaque == &bad && !seen(&is_over));
        pthread_mutex_lock(&lock);
        if (fd == first)
                first = -1;
        pthread_mutex_unlock(&lock);
        count(&closed);
        /* The descriptor is closed already, and its number may be in use again. */
        return mode == CONNECT_CLOSES ? 0 : close(fd);
}

static int on_open(const char *path, int flags, mode_t rights, void *opaque) {
        (void)opaque;
        return open(path, flags, rights);
}

/* Resolves without the system's configuration. */
static int numeric(const char *service, const struct addrinfo *hints, struct addrinfo **list) {
        struct addrinfo own = *hints;
        own.ai_flags |= AI_NUMERICHOST;
        return getaddrinfo("127.0.0.1", service, &own, list);
}

static int on_resolve(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **list,
                      void *opaque) {
        static struct addrinfo circle, brief;
        static struct sockaddr odd;
        CHECK(opaque == &bad && !seen(&is_over));
        if (!node) {
                CHECK(!service && !hints && list && *list);
                if (*list != &circle)
                        freeaddrinfo(*list);
                count(&freed);
                return 0;
        }
        CHECK(!strcmp(node, "localhost") || !strcmp(node, "127.0.0.1"));
        CHECK(service && atoi(service) > 0);
        CHECK(hints && hints->ai_socktype == SOCK_STREAM && hints->ai_family == AF_INET);
        count(&resolved);
        if (mode == RESOLVE_FAILS) {
                errno = ENETDOWN;
                return seen(&resolved) % 2 ? EAI_AGAIN : EAI_SYSTEM;
        }
        if (mode == RESOLVE_NOTHING) {
                *list = NULL;
                return 0;
        }
        if (mode == RESOLVE_NONSENSE) {
                odd.sa_family = 77;
                circle.ai_addr = &odd;
                circle.ai_addrlen = sizeof(odd);
                circle.ai_next = &brief;
                odd.sa_family = AF_INET;
                brief.ai_addr = &odd;
                brief.ai_addrlen = 3;
                brief.ai_next = &circle;
                circle.ai_addrlen = 1;
                *list = &circle;
                return 0;
        }
        return numeric(service, hints, list);
}

static void on_error(rd_kafka_t *rk, int err, const char *reason, void *opaque) {
        size_t used = strlen(told);
        (void)rk;
        CHECK(opaque == &bad && err);
        snprintf(told + used, sizeof(told) - used, "%s\n", reason);
}

/* A client whose bootstrap server is a name, beside others that are counted already. */
static rd_kafka_t *another(rd_kafka_type_t type, const char *brokers) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        char servers[256];
        const char *end = strchr(brokers, ',');
        if (!end)
                end = brokers + strlen(brokers);
        CHECK(!strncmp(brokers, "127.0.0.1:", 10));
        snprintf(servers, sizeof(servers), "localhost:%.*s", (int)(end - brokers) - 10, brokers + 10);
        set(conf, "bootstrap.servers", servers);
        if (type == RD_KAFKA_CONSUMER)
                set(conf, "group.id", "sockets");
        set(conf, "broker.address.family", "v4");
        set(conf, "reconnect.backoff.ms", "10");
        set(conf, "reconnect.backoff.max.ms", "20");
        rd_kafka_conf_set_opaque(conf, &bad);
        rd_kafka_conf_set_socket_cb(conf, on_socket);
        rd_kafka_conf_set_connect_cb(conf, on_connect);
        rd_kafka_conf_set_closesocket_cb(conf, on_close);
        rd_kafka_conf_set_open_cb(conf, on_open);
        rd_kafka_conf_set_resolve_cb(conf, on_resolve);
        rd_kafka_conf_set_error_cb(conf, on_error);
        return start(type, conf);
}

/* The same, without other clients. */
static rd_kafka_t *client(rd_kafka_type_t type, const char *brokers) {
        opened = connected = closed = resolved = freed = is_over = 0;
        first = -1;
        told[0] = '\0';
        return another(type, brokers);
}

static void destroy(rd_kafka_t *rk) {
        rd_kafka_destroy(rk);
        __atomic_store_n(&is_over, 1, __ATOMIC_SEQ_CST);
        CHECK(seen(&opened) == seen(&closed));
}

static void send_one(rd_kafka_t *rk) {
        CHECK(!rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("sockets"), RD_KAFKA_V_PARTITION(0),
                                 RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_VALUE((void *)"value", 5),
                                 RD_KAFKA_V_END));
}

/* The arguments of the callbacks of one client, with the objects that end with it. */
struct life {
        int is_alive;
        int is_intercepted;
};

/* The application's function is slow. */
static void look(void *opaque) {
        struct life *life = opaque;
        CHECK(__atomic_load_n(&life->is_alive, __ATOMIC_SEQ_CST) == 77);
        usleep(200);
        CHECK(__atomic_load_n(&life->is_alive, __ATOMIC_SEQ_CST) == 77);
}

static int slow_socket(int domain, int type, int protocol, void *opaque) {
        look(opaque);
        count(&opened);
        return socket(domain, type, protocol);
}

static int slow_connect(int fd, const struct sockaddr *address, int length, const char *id, void *opaque) {
        (void)id;
        look(opaque);
        return connect(fd, address, length) == -1 ? errno : 0;
}

static int slow_close(int fd, void *opaque) {
        look(opaque);
        count(&closed);
        return close(fd);
}

static int slow_resolve(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **list,
                        void *opaque) {
        look(opaque);
        if (node)
                return numeric(service, hints, list);
        freeaddrinfo(*list);
        return 0;
}

static rd_kafka_resp_err_t slow_sent(rd_kafka_t *rk, int sockfd, const char *name, int32_t id, int16_t api,
                                     int16_t version, int32_t correlation, size_t size, void *opaque) {
        struct life *life = opaque;
        (void)rk, (void)sockfd, (void)name, (void)id, (void)api, (void)version, (void)correlation, (void)size;
        look(opaque);
        CHECK(__atomic_load_n(&life->is_intercepted, __ATOMIC_SEQ_CST));
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t slow_state(rd_kafka_t *rk, int32_t id, const char *protocol, const char *name, int port,
                                      const char *state, void *opaque) {
        struct life *life = opaque;
        (void)rk, (void)id, (void)protocol, (void)name, (void)port, (void)state;
        look(opaque);
        CHECK(__atomic_load_n(&life->is_intercepted, __ATOMIC_SEQ_CST));
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t slow_thread(rd_kafka_t *rk, rd_kafka_thread_type_t type, const char *name, void *opaque) {
        (void)rk, (void)type, (void)name;
        look(opaque);
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t slow_destroy(rd_kafka_t *rk, void *opaque) {
        struct life *life = opaque;
        (void)rk;
        __atomic_store_n(&life->is_intercepted, 0, __ATOMIC_SEQ_CST);
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t slow_new(rd_kafka_t *rk, const rd_kafka_conf_t *conf, void *opaque, char *errstr,
                                    size_t errstr_size) {
        (void)conf, (void)errstr, (void)errstr_size;
        CHECK(!rd_kafka_interceptor_add_on_request_sent(rk, "slow", slow_sent, opaque));
        CHECK(!rd_kafka_interceptor_add_on_broker_state_change(rk, "slow", slow_state, opaque));
        CHECK(!rd_kafka_interceptor_add_on_thread_start(rk, "slow", slow_thread, opaque));
        CHECK(!rd_kafka_interceptor_add_on_thread_exit(rk, "slow", slow_thread, opaque));
        CHECK(!rd_kafka_interceptor_add_on_destroy(rk, "slow", slow_destroy, opaque));
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* Clients that are destroyed at random times. */
static void short_lives(const char *brokers) {
        int i;
        opened = closed = 0;
        for (i = 0; i < 60; i++) {
                struct life *life = malloc(sizeof(*life));
                rd_kafka_conf_t *conf = rd_kafka_conf_new();
                rd_kafka_t *rk;
                char errstr[256];
                life->is_alive = 77;
                life->is_intercepted = 1;
                set(conf, "bootstrap.servers", brokers);
                rd_kafka_conf_set_opaque(conf, life);
                rd_kafka_conf_set_socket_cb(conf, slow_socket);
                rd_kafka_conf_set_connect_cb(conf, slow_connect);
                rd_kafka_conf_set_closesocket_cb(conf, slow_close);
                rd_kafka_conf_set_resolve_cb(conf, slow_resolve);
                CHECK(!rd_kafka_conf_interceptor_add_on_new(conf, "slow", slow_new, life));
                rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof(errstr));
                CHECK(rk != NULL);
                send_one(rk);
                usleep(i * 100);
                if (i % 10 == 9)
                        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
                rd_kafka_destroy(rk);
                __atomic_store_n(&life->is_alive, 0, __ATOMIC_SEQ_CST);
                free(life);
        }
        if (seen(&opened) != seen(&closed) || seen(&opened) == 0) {
                fprintf(stderr, "%d sockets were opened and %d closed\n", seen(&opened), seen(&closed));
                bad++;
        }
}

int main(int argc, char **argv) {
        rd_kafka_topic_partition_list_t *list;
        rd_kafka_message_t *message = NULL;
        rd_kafka_t *rk, *other;
        int fails;

        if (argc < 2)
                return 2;
        datagram = socket(AF_INET, SOCK_DGRAM, 0);

        rk = client(RD_KAFKA_PRODUCER, argv[1]);
        send_one(rk);
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
        CHECK(seen(&opened) >= 1 && seen(&connected) == seen(&opened) && seen(&closed) == 0);
        CHECK(seen(&resolved) >= 1 && seen(&resolved) == seen(&freed));
        destroy(rk);

        rk = client(RD_KAFKA_CONSUMER, argv[1]);
        list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_topic_partition_list_add(list, "sockets", 0)->offset = RD_KAFKA_OFFSET_BEGINNING;
        CHECK(rd_kafka_assign(rk, list) == 0);
        rd_kafka_topic_partition_list_destroy(list);
        message = rd_kafka_consumer_poll(rk, TIMEOUT_MS);
        CHECK(message && !message->err && message->len == 5);
        rd_kafka_message_destroy(message);
        CHECK(seen(&opened) >= 1 && seen(&connected) == seen(&opened));
        destroy(rk);

        for (fails = SOCKET_FAILS; fails < MODES; fails++) {
                mode = (enum mode)fails;
                rk = client(RD_KAFKA_PRODUCER, argv[1]);
                if (mode == SOCKET_TWICE) {
                        /* The first socket is connected; the second one, for the node in the first one's metadata,
                         * is the same. */
                        CHECK(rk != NULL);
                }
                send_one(rk);
                UNTIL(strstr(told, said[mode]), rd_kafka_poll(rk, 20));
                if (!strstr(told, said[mode]))
                        fprintf(stderr, "mode %d: `%s` was not said, but: %s\n", mode, said[mode], told);
                /* A client without errors is not affected. */
                if (mode == CONNECT_NOT) {
                        mode = GOOD;
                        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
                }
                rd_kafka_destroy(rk);
                __atomic_store_n(&is_over, 1, __ATOMIC_SEQ_CST);
                if (mode != SOCKET_DATAGRAM)
                        CHECK(seen(&opened) == seen(&closed));
        }
        /* No descriptor was closed that was not a socket of the client. */
        CHECK(fcntl(datagram, F_GETFD) != -1 && fcntl(0, F_GETFD) != -1);

        mode = GOOD;
        short_lives(argv[1]);
        rk = client(RD_KAFKA_PRODUCER, argv[1]);
        other = another(RD_KAFKA_PRODUCER, argv[1]);
        send_one(rk);
        send_one(other);
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0 && rd_kafka_flush(other, TIMEOUT_MS) == 0);
        rd_kafka_destroy(rk);
        destroy(other);
        return bad != 0;
}
