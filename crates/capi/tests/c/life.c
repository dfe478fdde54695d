/* The end of clients is bounded in time, whatever is held and whoever can't be reached. */
#define _DEFAULT_SOURCE
#include <arpa/inet.h>
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static int bad;

#define CHECK(what)                                                                                                    \
        do {                                                                                                           \
                if (!(what)) {                                                                                         \
                        fprintf(stderr, "line %d: %s\n", __LINE__, #what);                                             \
                        bad++;                                                                                         \
                }                                                                                                      \
        } while (0)

static long millis(void) {
        struct timeval time;
        gettimeofday(&time, NULL);
        return time.tv_sec * 1000 + time.tv_usec / 1000;
}

/* A server that takes connections and never says a word. */
static int mute(char *address) {
        struct sockaddr_in at;
        socklen_t length = sizeof(at);
        int server = socket(AF_INET, SOCK_STREAM, 0);
        memset(&at, 0, sizeof(at));
        at.sin_family = AF_INET;
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        CHECK(!bind(server, (struct sockaddr *)&at, sizeof(at)) && !listen(server, 16));
        getsockname(server, (struct sockaddr *)&at, &length);
        sprintf(address, "127.0.0.1:%d", ntohs(at.sin_port));
        return server;
}

static rd_kafka_t *start(rd_kafka_type_t type, const char *brokers, int events) {
        char errstr[256];
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_t *rk;
        rd_kafka_conf_set(conf, "bootstrap.servers", brokers, errstr, sizeof(errstr));
        rd_kafka_conf_set(conf, "log_level", "0", errstr, sizeof(errstr));
        if (type == RD_KAFKA_CONSUMER)
                rd_kafka_conf_set(conf, "group.id", "life", errstr, sizeof(errstr));
        rd_kafka_conf_set_events(conf, events);
        rk = rd_kafka_new(type, conf, errstr, sizeof(errstr));
        if (!rk) {
                fprintf(stderr, "%s\n", errstr);
                exit(1);
        }
        return rk;
}

/* Everything that an application can hold is held while its clients are destroyed. */
static void held(const char *brokers, int is_reachable) {
        rd_kafka_t *producer = start(RD_KAFKA_PRODUCER, brokers, RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_ERROR);
        rd_kafka_t *consumer = start(RD_KAFKA_CONSUMER, brokers, 0);
        rd_kafka_topic_t *to = rd_kafka_topic_new(producer, "life", NULL);
        rd_kafka_topic_t *from = rd_kafka_topic_new(consumer, "life", NULL);
        rd_kafka_queue_t *main_queue = rd_kafka_queue_get_main(producer), *own = rd_kafka_queue_new(consumer);
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_event_t *event = NULL;
        rd_kafka_message_t *message = NULL;
        long since;
        int i;
        for (i = 0; i < 1000; i++)
                CHECK(!rd_kafka_produce(to, 0, RD_KAFKA_MSG_F_COPY, (void *)"held", 4, NULL, 0, NULL));
        rd_kafka_topic_partition_list_add(list, "life", 0)->offset = 0;
        CHECK(!rd_kafka_assign(consumer, list));
        rd_kafka_topic_partition_list_destroy(list);
        if (is_reachable) {
                event = rd_kafka_queue_poll(main_queue, 10000);
                CHECK(rd_kafka_event_type(event) == RD_KAFKA_EVENT_DR);
                for (i = 0; i < 100 && !message; i++) {
                        message = rd_kafka_consumer_poll(consumer, 200);
                        if (message && message->err) {
                                rd_kafka_message_destroy(message);
                                message = NULL;
                        }
                }
                CHECK(message && message->len == 4);
        } else {
                usleep(200000);
        }
        since = millis();
        rd_kafka_destroy(producer);
        rd_kafka_destroy(consumer);
        /* With a dead network, too; a busy machine is given its time. */
        CHECK(millis() - since < 8000);
        if (message) {
                CHECK(!memcmp(message->payload, "held", 4) && !strcmp(rd_kafka_topic_name(message->rkt), "life"));
                rd_kafka_message_destroy(message);
        }
        if (event) {
                while (rd_kafka_event_message_next(event))
                        ;
                rd_kafka_event_destroy(event);
        }
        CHECK(!rd_kafka_queue_poll(main_queue, -1) && !rd_kafka_queue_poll(own, -1));
        CHECK(rd_kafka_queue_length(main_queue) == 0);
        rd_kafka_queue_destroy(main_queue);
        rd_kafka_queue_destroy(own);
        CHECK(!strcmp(rd_kafka_topic_name(to), "life") && !strcmp(rd_kafka_topic_name(from), "life"));
        rd_kafka_topic_destroy(to);
        rd_kafka_topic_destroy(from);
        CHECK(rd_kafka_wait_destroyed(5000) == 0);
}

int main(int argc, char **argv) {
        char address[64];
        int server;
        if (argc < 2)
                return 2;
        server = mute(address);
        held(argv[1], 1);
        held("127.0.0.1:1", 0);
        held(address, 0);
        held("no-such-host.invalid:9092", 0);
        close(server);
        return bad != 0;
}
