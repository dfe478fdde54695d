/* Functions of the application that do not return: rd_kafka_destroy() returns nevertheless, logs the name of the
 * function, and calls no further function when it returns in the end. Each case is a process of its own, because all
 * clients share the threads. */
#include "test.h"
#include <dirent.h>
#include <errno.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum function { SOCKET, CONNECT, CLOSE, RESOLVE, SENT, THREAD, ACKNOWLEDGEMENT, BACKGROUND, QUEUE, LOG, FUNCTIONS };

/* The expected log line. A log callback that is stuck can't be named. */
static const char *said[FUNCTIONS] = {
    "socket_cb",       "connect_cb",         "closesocket_cb",      "resolve_cb",                 "an interceptor of requests",
    "on_thread_start", "on_acknowledgement", "background_event_cb", "a function on an I/O thread", NULL};

static enum function stuck;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int is_inside, is_released, is_over, told;
static pthread_t own;

/* Blocks, if this is the chosen function. */
static void pass(enum function function) {
        pthread_mutex_lock(&lock);
        CHECK(!is_over);
        if (function == stuck) {
                is_inside = 1;
                pthread_cond_broadcast(&changed);
                while (!is_released)
                        pthread_cond_wait(&changed, &lock);
        }
        pthread_mutex_unlock(&lock);
}

static int on_socket(int domain, int type, int protocol, void *opaque) {
        (void)opaque;
        pass(SOCKET);
        return socket(domain, type, protocol);
}

static int on_connect(int fd, const struct sockaddr *address, int length, const char *id, void *opaque) {
        (void)id, (void)opaque;
        pass(CONNECT);
        return connect(fd, address, length) == -1 ? errno : 0;
}

static int on_close(int fd, void *opaque) {
        (void)opaque;
        pass(CLOSE);
        return close(fd);
}

static int on_resolve(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **list,
                      void *opaque) {
        struct addrinfo own;
        (void)opaque;
        if (!node) {
                freeaddrinfo(*list);
                return 0;
        }
        own = *hints;
        own.ai_flags |= AI_NUMERICHOST;
        pass(RESOLVE);
        /* A list that is returned after the client was destroyed. */
        return stuck == RESOLVE ? EAI_AGAIN : getaddrinfo("127.0.0.1", service, &own, list);
}

static rd_kafka_resp_err_t on_sent(rd_kafka_t *rk, int sockfd, const char *name, int32_t id, int16_t api,
                                   int16_t version, int32_t correlation, size_t size, void *opaque) {
        (void)rk, (void)sockfd, (void)name, (void)id, (void)api, (void)version, (void)correlation, (void)size;
        (void)opaque;
        pass(SENT);
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_thread(rd_kafka_t *rk, rd_kafka_thread_type_t type, const char *name, void *opaque) {
        (void)rk, (void)type, (void)name, (void)opaque;
        pass(THREAD);
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_acknowledgement(rd_kafka_t *rk, rd_kafka_message_t *message, void *opaque) {
        (void)rk, (void)message, (void)opaque;
        pass(ACKNOWLEDGEMENT);
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_new(rd_kafka_t *rk, const rd_kafka_conf_t *conf, void *opaque, char *errstr,
                                  size_t errstr_size) {
        (void)conf, (void)errstr, (void)errstr_size;
        /* A second one, which is not called any more when the first one returns. */
        CHECK(!rd_kafka_interceptor_add_on_request_sent(rk, "first", on_sent, opaque));
        CHECK(!rd_kafka_interceptor_add_on_request_sent(rk, "second", on_sent, opaque));
        if (stuck == ACKNOWLEDGEMENT) {
                CHECK(!rd_kafka_interceptor_add_on_acknowledgement(rk, "first", on_acknowledgement, opaque));
                CHECK(!rd_kafka_interceptor_add_on_acknowledgement(rk, "second", on_acknowledgement, opaque));
        }
        CHECK(!rd_kafka_interceptor_add_on_thread_start(rk, "first", on_thread, opaque));
        CHECK(!rd_kafka_interceptor_add_on_thread_exit(rk, "first", on_thread, opaque));
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static void on_background(rd_kafka_t *rk, rd_kafka_event_t *event, void *opaque) {
        (void)rk, (void)opaque;
        rd_kafka_event_destroy(event);
        pass(BACKGROUND);
}

static void on_queue(rd_kafka_t *rk, void *opaque) {
        (void)rk, (void)opaque;
        pass(QUEUE);
}

static void on_log(const rd_kafka_t *rk, int level, const char *facility, const char *line) {
        (void)rk;
        CHECK(!is_over);
        /* At level 7 the line only says that the client ends. */
        if (!strcmp(facility, "DESTROY") && level < 7) {
                CHECK(level == 4 && said[stuck] && strstr(line, said[stuck]) && strstr(line, "did not return"));
                told++;
        }
        if (!pthread_equal(pthread_self(), own))
                pass(LOG);
}

static rd_kafka_t *client(const char *brokers, int plain) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        char servers[256];
        int length = strcspn(brokers, ",");
        snprintf(servers, sizeof(servers), "%.*s", length, brokers);
        set(conf, "bootstrap.servers", servers);
        if (!plain) {
                rd_kafka_conf_set_socket_cb(conf, on_socket);
                rd_kafka_conf_set_connect_cb(conf, on_connect);
                rd_kafka_conf_set_closesocket_cb(conf, on_close);
                rd_kafka_conf_set_resolve_cb(conf, on_resolve);
                rd_kafka_conf_set_log_cb(conf, on_log);
                if (stuck == SENT || stuck == THREAD || stuck == ACKNOWLEDGEMENT)
                        CHECK(!rd_kafka_conf_interceptor_add_on_new(conf, "stuck", on_new, NULL));
                if (stuck == BACKGROUND)
                        rd_kafka_conf_set_background_event_cb(conf, on_background);
                if (stuck == BACKGROUND || stuck == QUEUE)
                        rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_DR);
                if (stuck == LOG)
                        set(conf, "debug", "broker");
        }
        return start(RD_KAFKA_PRODUCER, conf);
}

static void send_one(rd_kafka_t *rk) {
        CHECK(!rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("stuck"), RD_KAFKA_V_PARTITION(0),
                                 RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_VALUE((void *)"value", 5),
                                 RD_KAFKA_V_END));
}

static int threads(void) {
        DIR *open = opendir("/proc/self/task");
        int count = -2;
        while (readdir(open))
                count++;
        closedir(open);
        return count;
}

static int run(const char *brokers) {
        long since;
        rd_kafka_t *rk = client(brokers, 0);
        rd_kafka_queue_t *queue = NULL;
        if (stuck == QUEUE) {
                queue = rd_kafka_queue_get_main(rk);
                rd_kafka_queue_cb_event_enable(queue, on_queue, NULL);
        }
        if (stuck == BACKGROUND) {
                rd_kafka_queue_t *background;
                queue = rd_kafka_queue_get_main(rk);
                background = rd_kafka_queue_get_background(rk);
                rd_kafka_queue_forward(queue, background);
                rd_kafka_queue_destroy(background);
        }
        send_one(rk);
        if (stuck == CLOSE)
                CHECK(!rd_kafka_flush(rk, TIMEOUT_MS));
        else {
                pthread_mutex_lock(&lock);
                while (!is_inside)
                        pthread_cond_wait(&changed, &lock);
                pthread_mutex_unlock(&lock);
        }
        if (queue)
                rd_kafka_queue_destroy(queue);

        since = millis();
        rd_kafka_destroy(rk);
        CHECK(millis() - since < SCALED_MS(20000));
        pthread_mutex_lock(&lock);
        is_over = 1;
        CHECK(is_inside && told == (said[stuck] != NULL));
        pthread_mutex_unlock(&lock);

        /* The next client gets other threads. */
        rk = client(brokers, 1);
        send_one(rk);
        CHECK(!rd_kafka_flush(rk, TIMEOUT_MS));
        rd_kafka_destroy(rk);

        pthread_mutex_lock(&lock);
        is_released = 1;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
        WAIT_FOR(threads() == 1);
        return bad != 0;
}

int main(int argc, char **argv) {
        pid_t children[FUNCTIONS];
        int function, failed = 0, status;
        if (argc < 2)
                return 2;
        for (function = 0; function < FUNCTIONS; function++) {
                children[function] = fork();
                if (!children[function]) {
                        stuck = function;
                        own = pthread_self();
                        /* The program ends in any case. */
                        alarm(3 * TIMEOUT_MS / 1000);
                        exit(run(argv[1]));
                }
        }
        for (function = 0; function < FUNCTIONS; function++) {
                if (waitpid(children[function], &status, 0) != children[function] || !WIFEXITED(status) ||
                    WEXITSTATUS(status)) {
                        fprintf(stderr, "function %d: status %d\n", function, status);
                        failed = 1;
                }
        }
        return failed;
}
