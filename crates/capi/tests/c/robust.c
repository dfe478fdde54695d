/* Forked children, many clients, calls and destruction inside callbacks, handles that are destroyed or of another
 * kind. */
#include "test.h"
#include <dirent.h>
#include <sys/wait.h>

/* The messages that a delivery report produces, one after the other: each waits for the last one's round trip. */
#define IN_CALLBACKS 100

static int delivered, consumed, destroyed;
static rd_kafka_topic_t *topic;

static rd_kafka_t *client(rd_kafka_type_t type, const char *brokers,
                         void (*dr)(rd_kafka_t *, const rd_kafka_message_t *, void *)) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        set(conf, "bootstrap.servers", brokers);
        if (type == RD_KAFKA_CONSUMER)
                set(conf, "group.id", "robust");
        else
                set(conf, "linger.ms", "0");
        if (type == RD_KAFKA_PRODUCER && dr)
                rd_kafka_conf_set_dr_msg_cb(conf, dr);
        return start(type, conf);
}

static int threads(void) {
        DIR *tasks = opendir("/proc/self/task");
        int count = -2;
        while (readdir(tasks))
                count++;
        closedir(tasks);
        return count;
}

static void forks(const char *brokers) {
        rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, brokers, NULL);
        rd_kafka_t *reader = client(RD_KAFKA_CONSUMER, brokers, NULL);
        const struct rd_kafka_metadata *metadata;
        rd_kafka_topic_t *t = rd_kafka_topic_new(rk, "robust", NULL);
        int status = 0;
        pid_t child = fork();
        if (!child) {
                alarm(SCALED_MS(60));
                CHECK(rd_kafka_produce(t, 0, RD_KAFKA_MSG_F_COPY, (void *)"x", 1, NULL, 0, NULL) == -1);
                CHECK(rd_kafka_poll(rk, -1) == 0);
                CHECK(rd_kafka_flush(rk, -1) != 0);
                CHECK(rd_kafka_metadata(rk, 0, t, &metadata, 1000) != 0);
                CHECK(rd_kafka_consumer_poll(reader, -1) == NULL);
                CHECK(rd_kafka_assign(reader, NULL) != 0);
                CHECK(rd_kafka_commit(reader, NULL, 0) != 0);
                CHECK(rd_kafka_queue_get_main(rk) == NULL);
                CHECK(strcmp(rd_kafka_name(rk), "") != 0);
                rd_kafka_consumer_close(reader);
                rd_kafka_topic_destroy(t);
                rd_kafka_destroy(reader);
                rd_kafka_destroy(rk);
                _exit(bad ? 1 : 0);
        }
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
        /* The parent continues. */
        CHECK(rd_kafka_produce(t, 0, RD_KAFKA_MSG_F_COPY, (void *)"x", 1, NULL, 0, NULL) == 0);
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
        rd_kafka_topic_destroy(t);
        rd_kafka_destroy(reader);
        rd_kafka_destroy(rk);
}

static void two_hundred(const char *brokers) {
        static rd_kafka_t *many[200];
        int i, of_one, of_library;
        many[0] = client(RD_KAFKA_PRODUCER, brokers, NULL);
        of_one = threads();
        of_library = rd_kafka_thread_cnt();
        for (i = 1; i < 200; i++)
                many[i] = client(i % 2 ? RD_KAFKA_CONSUMER : RD_KAFKA_PRODUCER, brokers, NULL);
        CHECK(threads() == of_one);
        CHECK(rd_kafka_thread_cnt() == of_library && of_library < of_one + 1);
        for (i = 0; i < 200; i += 2)
                CHECK(!rd_kafka_producev(many[i], RD_KAFKA_V_TOPIC("robust"), RD_KAFKA_V_VALUE((void *)"x", 1),
                                         RD_KAFKA_V_END));
        for (i = 0; i < 200; i += 2)
                CHECK(rd_kafka_flush(many[i], TIMEOUT_MS) == 0);
        CHECK(threads() == of_one);
        for (i = 0; i < 200; i++)
                rd_kafka_destroy(many[i]);
}

static void on_delivery_again(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
        (void)rk;
        (void)opaque;
        CHECK(!message->err);
        if (++delivered < IN_CALLBACKS)
                CHECK(!rd_kafka_produce(message->rkt, 0, RD_KAFKA_MSG_F_COPY, (void *)"again", 5, NULL, 0, NULL));
}

static void on_delivery_destroy(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
        (void)opaque;
        (void)message;
        CHECK(!destroyed);
        destroyed++;
        rd_kafka_destroy(rk);
}

static void on_message(rd_kafka_message_t *message, void *opaque) {
        rd_kafka_t *rk = opaque;
        rd_kafka_topic_partition_list_t *list;
        if (message->err)
                return;
        consumed++;
        if (consumed == 1) {
                list = rd_kafka_topic_partition_list_new(1);
                rd_kafka_topic_partition_list_add(list, "robust", 0);
                CHECK(rd_kafka_pause_partitions(rk, list) == 0);
                CHECK(rd_kafka_resume_partitions(rk, list) == 0);
                rd_kafka_topic_partition_list_destroy(list);
                CHECK(rd_kafka_seek(topic, 0, 5, 0) == 0);
        } else if (consumed == 2) {
                CHECK(message->offset == 5);
                CHECK(rd_kafka_consume_stop(topic, 0) == 0);
                rd_kafka_topic_destroy(topic);
                topic = NULL;
                rd_kafka_destroy(rk);
        }
}

static void from_callbacks(const char *brokers) {
        rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, brokers, on_delivery_again);
        int i;
        topic = rd_kafka_topic_new(rk, "robust", NULL);
        CHECK(!rd_kafka_produce(topic, 0, RD_KAFKA_MSG_F_COPY, (void *)"x", 1, NULL, 0, NULL));
        UNTIL(delivered >= IN_CALLBACKS, rd_kafka_poll(rk, 100));
        CHECK(delivered == IN_CALLBACKS);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);

        rk = client(RD_KAFKA_PRODUCER, brokers, on_delivery_destroy);
        topic = rd_kafka_topic_new(rk, "robust", NULL);
        for (i = 0; i < 100; i++)
                CHECK(!rd_kafka_produce(topic, 0, RD_KAFKA_MSG_F_COPY, (void *)"x", 1, NULL, 0, NULL));
        UNTIL(destroyed, rd_kafka_poll(rk, 100));
        CHECK(destroyed == 1);
        /* The topic's handle outlives its client, whose handle is invalid now. */
        CHECK(rd_kafka_produce(topic, 0, RD_KAFKA_MSG_F_COPY, (void *)"x", 1, NULL, 0, NULL) == -1);
        CHECK(rd_kafka_poll(rk, 0) == 0);
        CHECK(rd_kafka_flush(rk, 0) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_outq_len(rk) == 0);
        rd_kafka_topic_destroy(topic);

        rk = client(RD_KAFKA_CONSUMER, brokers, NULL);
        topic = rd_kafka_topic_new(rk, "robust", NULL);
        CHECK(rd_kafka_consume_start(topic, 0, 0) == 0);
        UNTIL(!topic, rd_kafka_consume_callback(topic, 0, 100, on_message, rk));
        CHECK(consumed == 2 && !topic);
}

static void of_another_kind(const char *brokers) {
        rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, brokers, NULL);
        rd_kafka_topic_t *t = rd_kafka_topic_new(rk, "robust", NULL);
        rd_kafka_queue_t *queue = rd_kafka_queue_get_main(rk);
        rd_kafka_message_t *message;
        CHECK(rd_kafka_poll((rd_kafka_t *)t, 0) == 0);
        CHECK(rd_kafka_flush((rd_kafka_t *)queue, 0) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_produce((rd_kafka_topic_t *)rk, 0, 0, NULL, 0, NULL, 0, NULL) == -1);
        CHECK(rd_kafka_queue_poll((rd_kafka_queue_t *)t, 0) == NULL);
        message = rd_kafka_consumer_poll(rk, 0);
        CHECK(message && message->err == RD_KAFKA_RESP_ERR__UNKNOWN_GROUP);
        rd_kafka_message_destroy(message);
        CHECK(rd_kafka_assign(rk, NULL) == RD_KAFKA_RESP_ERR__UNKNOWN_GROUP);
        CHECK(rd_kafka_consume_start(t, 0, 0) == -1);
        rd_kafka_destroy((rd_kafka_t *)t);
        rd_kafka_topic_destroy((rd_kafka_topic_t *)rk);
        rd_kafka_queue_destroy((rd_kafka_queue_t *)rk);
        CHECK(!strcmp(rd_kafka_topic_name(t), "robust"));
        rd_kafka_queue_destroy(queue);
        rd_kafka_topic_destroy(t);
        rd_kafka_destroy(rk);
}

int main(int argc, char **argv) {
        if (argc < 2)
                return 2;
        forks(argv[1]);
        two_hundred(argv[1]);
        from_callbacks(argv[1]);
        of_another_kind(argv[1]);
        CHECK(rd_kafka_wait_destroyed(5000) == 0);
        return bad != 0;
}
