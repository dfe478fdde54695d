/* SIGPIPE ends a process that does not handle it. The library never raises it, whatever happens to its peers: a
 * broker that resets a connection during a write, a client of the mock cluster that does so, a pipe without a reader
 * that is written when a queue has entries, a standard error that is closed. */
#include "wire.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>

/* The number of resets for which the program waits, and the number of bytes that a connection carries before its
 * reset. */
#define RESETS 12
#define CARRIED 40000

static struct sockaddr_in proxy, broker;
static volatile int resets, is_over;
static int listener;

/* Every connection of the client goes to the proxy. */
static int on_connect(int fd, const struct sockaddr *address, int size, const char *id, void *opaque) {
        (void)address, (void)size, (void)id, (void)opaque;
        return connect(fd, (struct sockaddr *)&proxy, sizeof(proxy)) == -1 ? errno : 0;
}

/* Forwards the available bytes; returns false at the end. */
static int forward(int from, int to, long *bytes) {
        char buffer[4096];
        ssize_t got = recv(from, buffer, sizeof(buffer), 0);
        if (got <= 0 || send(to, buffer, (size_t)got, MSG_NOSIGNAL) != got)
                return 0;
        *bytes += got;
        return 1;
}

/* One connection: carries requests and responses, then sends FIN, and RST while the client still writes. */
static void *serve(void *argument) {
        int client = (int)(intptr_t)argument, server = socket(AF_INET, SOCK_STREAM, 0);
        struct linger reset;
        struct pollfd both[2];
        long sent = 0, received = 0;
        CHECK(connect(server, (struct sockaddr *)&broker, sizeof(broker)) == 0);
        both[0].fd = client, both[1].fd = server;
        both[0].events = both[1].events = POLLIN;
        while (!is_over && sent < CARRIED && poll(both, 2, 100) >= 0) {
                if (both[0].revents && !forward(client, server, &sent))
                        break;
                if (both[1].revents && !forward(server, client, &received))
                        break;
        }
        close(server);
        if (sent >= CARRIED) {
                shutdown(client, SHUT_WR);
                __sync_fetch_and_add(&resets, 1);
        }
        reset.l_onoff = 1, reset.l_linger = 0;
        setsockopt(client, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        close(client);
        return NULL;
}

static void *accept_all(void *opaque) {
        (void)opaque;
        for (;;) {
                pthread_t thread;
                int fd = accept(listener, NULL, NULL);
                if (fd == -1)
                        return NULL;
                pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd);
                pthread_detach(thread);
        }
}

static void listen_as_proxy(const char *servers) {
        socklen_t size = sizeof(proxy);
        memset(&broker, 0, sizeof(broker));
        broker.sin_family = AF_INET;
        broker.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        proxy = broker;
        broker.sin_port = htons((uint16_t)atoi(strchr(servers, ':') + 1));
        listener = socket(AF_INET, SOCK_STREAM, 0);
        CHECK(bind(listener, (struct sockaddr *)&proxy, sizeof(proxy)) == 0);
        CHECK(listen(listener, 100) == 0);
        CHECK(getsockname(listener, (struct sockaddr *)&proxy, &size) == 0);
}

/* A producer with acks=0 writes while its connections are reset. */
static void broker_resets(const char *servers) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        static char value[1000];
        pthread_t thread;
        rd_kafka_t *rk;
        listen_as_proxy(servers);
        CHECK(pthread_create(&thread, NULL, accept_all, NULL) == 0);
        set(conf, "bootstrap.servers", servers);
        set(conf, "acks", "0");
        set(conf, "linger.ms", "0");
        set(conf, "reconnect.backoff.ms", "1");
        set(conf, "reconnect.backoff.max.ms", "2");
        set(conf, "retry.backoff.max.ms", "2");
        set(conf, "retry.backoff.ms", "1");
        set(conf, "log_level", "0");
        rd_kafka_conf_set_connect_cb(conf, on_connect);
        rk = start(RD_KAFKA_PRODUCER, conf);
        UNTIL(resets >= RESETS, {
                rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("sigpipe"), RD_KAFKA_V_VALUE(value, sizeof(value)),
                                  RD_KAFKA_V_END);
                rd_kafka_poll(rk, 0);
                if (rd_kafka_outq_len(rk) > 1000)
                        usleep(1000);
        });
        rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
        rd_kafka_destroy(rk);
        is_over = 1;
        shutdown(listener, SHUT_RDWR);
        pthread_join(thread, NULL);
        close(listener);
}

/* Clients of the mock cluster that send requests, and close before they read. */
static void mock_is_reset(void) {
        /* ApiVersions v0, a hundred per write. */
        static const unsigned char request[] = {0, 0, 0, 11, 0, 18, 0, 0, 0, 0, 0, 1, 0, 1, 'c'};
        static unsigned char many[100 * sizeof(request)];
        rd_kafka_t *rk = start(RD_KAFKA_PRODUCER, rd_kafka_conf_new());
        rd_kafka_mock_cluster_t *cluster = rd_kafka_mock_cluster_new(rk, 1);
        const char *servers = rd_kafka_mock_cluster_bootstraps(cluster);
        int i;
        for (i = 0; i < 100; i++)
                memcpy(many + i * sizeof(request), request, sizeof(request));
        for (i = 0; i < 200; i++) {
                struct linger reset;
                int fd = connected(servers);
                CHECK(send(fd, many, sizeof(many), MSG_NOSIGNAL) == sizeof(many));
                shutdown(fd, SHUT_WR);
                usleep(i * 10);
                reset.l_onoff = 1, reset.l_linger = 0;
                setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
                close(fd);
        }
        rd_kafka_mock_cluster_destroy(cluster);
        rd_kafka_destroy(rk);
}

/* Entries arrive in a queue whose pipe or socket has no reader any more. */
static void queue_has_no_reader(int is_socket) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_queue_t *queue;
        rd_kafka_t *rk;
        int ends[2];
        CHECK((is_socket ? socketpair(AF_UNIX, SOCK_STREAM, 0, ends) : pipe(ends)) == 0);
        rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_DR);
        set(conf, "bootstrap.servers", "127.0.0.1:1");
        rk = start(RD_KAFKA_PRODUCER, conf);
        queue = rd_kafka_queue_get_main(rk);
        rd_kafka_queue_io_event_enable(queue, ends[1], "!", 1);
        close(ends[0]);
        CHECK(!rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_VALUE((void *)"x", 1), RD_KAFKA_V_END));
        rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE);
        WAIT_FOR(rd_kafka_queue_length(queue) > 0);
        /* From a thread of the application, which gets no signal afterwards either. */
        rd_kafka_queue_io_event_enable(queue, -1, NULL, 0);
        rd_kafka_queue_io_event_enable(queue, ends[1], "!", 1);
        rd_kafka_queue_yield(queue);
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
        close(ends[1]);
}

/* The default log goes to a standard error without a reader. */
static void log_has_no_reader(void) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        int ends[2], own = dup(2);
        sigset_t pending;
        CHECK(pipe(ends) == 0);
        close(ends[0]);
        dup2(ends[1], 2);
        set(conf, "bootstrap.servers", "127.0.0.1:1");
        set(conf, "debug", "all");
        rd_kafka_destroy(start(RD_KAFKA_PRODUCER, conf));
        dup2(own, 2);
        close(own), close(ends[1]);
        sigpending(&pending);
        CHECK(!sigismember(&pending, SIGPIPE));
}

int main(int argc, char **argv) {
        CHECK(argc > 1);
        signal(SIGPIPE, SIG_DFL);
        broker_resets(argv[1]);
        mock_is_reset();
        queue_has_no_reader(0);
        queue_has_no_reader(1);
        log_has_no_reader();
        return bad ? 1 : 0;
}
