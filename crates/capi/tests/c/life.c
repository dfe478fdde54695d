/* Destroying clients takes a bounded time, whatever objects the application holds and whichever brokers are
 * unreachable. */
#include "test.h"
#include <arpa/inet.h>
#include <sys/socket.h>

/* A server that accepts connections and never responds. */
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

static rd_kafka_t *client(rd_kafka_type_t type, const char *brokers, int events) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        set(conf, "bootstrap.servers", brokers);
        set(conf, "log_level", "0");
        if (type == RD_KAFKA_CONSUMER)
                set(conf, "group.id", "life");
        rd_kafka_conf_set_events(conf, events);
        return start(type, conf);
}

/* The application holds all kinds of objects while its clients are destroyed. */
static void held(const char *brokers, int is_reachable) {
        rd_kafka_t *producer = client(RD_KAFKA_PRODUCER, brokers, RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_ERROR);
        rd_kafka_t *consumer = client(RD_KAFKA_CONSUMER, brokers, 0);
        rd_kafka_topic_t *to = rd_kafka_topic_new(producer, "life", NULL);
        rd_kafka_topic_t *from = rd_kafka_topic_new(consumer, "life", NULL);
        rd_kafka_queue_t *main_queue = rd_kafka_queue_get_main(producer), *own = rd_kafka_queue_new(consumer);
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_event_t *event = NULL;
        rd_kafka_message_t *message = NULL;
        long since;
        int i;
        CHECK(rd_kafka_wait_destroyed(1) == -1 && rd_kafka_last_error() == RD_KAFKA_RESP_ERR__TIMED_OUT);
        for (i = 0; i < 1000; i++)
                CHECK(!rd_kafka_produce(to, 0, RD_KAFKA_MSG_F_COPY, (void *)"held", 4, NULL, 0, NULL));
        rd_kafka_topic_partition_list_add(list, "life", 0)->offset = 0;
        CHECK(!rd_kafka_assign(consumer, list));
        rd_kafka_topic_partition_list_destroy(list);
        if (is_reachable) {
                event = rd_kafka_queue_poll(main_queue, TIMEOUT_MS);
                CHECK(rd_kafka_event_type(event) == RD_KAFKA_EVENT_DR);
                while ((message = rd_kafka_consumer_poll(consumer, TIMEOUT_MS)) != NULL && message->err)
                        rd_kafka_message_destroy(message);
                CHECK(message && message->len == 4);
        } else {
                usleep(200000);
        }
        since = millis();
        rd_kafka_destroy(producer);
        rd_kafka_destroy(consumer);
        /* With a dead network, too: the call does not wait until requests time out, which takes 60 seconds. */
        CHECK(millis() - since < SCALED_MS(30000));
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
