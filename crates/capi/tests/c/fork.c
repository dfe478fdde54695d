/* Forked children have their own clients, whether or not their parent has, or had, clients; the parent's handles
 * return errors in a child, without harm; the parent continues. */
#include "test.h"
#include <errno.h>
#include <sys/wait.h>

#define CHILDREN 10
/* Valgrind takes a second for each. */
#define STARTED (slowness() > 1 ? 3 : CHILDREN)
#define MESSAGES 20

static volatile int is_over;
static int delivered, failed;

static void on_report(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
        (void)rk, (void)opaque;
        if (message->err)
                fprintf(stderr, "%s: %s\n", rd_kafka_topic_name(message->rkt), rd_kafka_message_errstr(message));
        __sync_fetch_and_add(message->err ? &failed : &delivered, 1);
}

static rd_kafka_t *producer(const char *brokers) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        set(conf, "bootstrap.servers", brokers);
        set(conf, "linger.ms", "1");
        set(conf, "compression.type", "lz4");
        rd_kafka_conf_set_dr_msg_cb(conf, on_report);
        return start(RD_KAFKA_PRODUCER, conf);
}

static rd_kafka_t *consumer(const char *brokers, const char *group, const char *topic) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
        rd_kafka_t *rk;
        set(conf, "bootstrap.servers", brokers);
        set(conf, "group.id", group);
        set(conf, "auto.offset.reset", "earliest");
        rk = start(RD_KAFKA_CONSUMER, conf);
        rd_kafka_topic_partition_list_add(topics, topic, 0);
        rd_kafka_topic_partition_list_set_offset(topics, topic, 0, RD_KAFKA_OFFSET_BEGINNING);
        CHECK(!rd_kafka_assign(rk, topics));
        rd_kafka_topic_partition_list_destroy(topics);
        return rk;
}

static int send_to(rd_kafka_t *rk, const char *topic, const char *value) {
        return rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                                 RD_KAFKA_V_VALUE((void *)value, strlen(value)), RD_KAFKA_V_END);
}

/* Produces and consumes with clients of this process alone. */
static void own_clients(const char *brokers, const char *topic) {
        rd_kafka_t *rk = producer(brokers), *reader;
        int i, before = delivered, read = 0;
        for (i = 0; i < MESSAGES; i++)
                CHECK(!send_to(rk, topic, "of a child"));
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
        if (delivered != before + MESSAGES || failed)
                fprintf(stderr, "topic %s: %d delivered, %d failed\n", topic, delivered - before, failed);
        CHECK(delivered == before + MESSAGES && failed == 0);
        reader = consumer(brokers, topic, topic);
        UNTIL(read >= MESSAGES, {
                rd_kafka_message_t *message = rd_kafka_consumer_poll(reader, 100);
                if (message && !message->err)
                        read++;
                if (message)
                        rd_kafka_message_destroy(message);
        });
        CHECK(!rd_kafka_consumer_close(reader));
        rd_kafka_destroy(reader);
        rd_kafka_destroy(rk);
        CHECK(rd_kafka_wait_destroyed(SCALED_MS(10000)) == 0);
        CHECK(rd_kafka_thread_cnt() == 0);
}

/* The results of calls with a parent's client in a child. */
static void inherited(rd_kafka_t *rk, rd_kafka_t *reader, rd_kafka_topic_t *topic, rd_kafka_queue_t *queue,
                      rd_kafka_event_t *event) {
        const struct rd_kafka_metadata *metadata;
        char text[64];
        CHECK(send_to(rk, "fork", "x"));
        CHECK(rd_kafka_produce(topic, 0, RD_KAFKA_MSG_F_COPY, (void *)"x", 1, NULL, 0, NULL) == -1);
        CHECK(rd_kafka_poll(rk, -1) == 0);
        CHECK(rd_kafka_flush(rk, -1));
        CHECK(rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE));
        CHECK(rd_kafka_metadata(rk, 0, topic, &metadata, 1000));
        CHECK(!rd_kafka_consumer_poll(reader, -1));
        CHECK(rd_kafka_commit(reader, NULL, 0));
        CHECK(!rd_kafka_queue_poll(queue, -1));
        CHECK(rd_kafka_queue_length(queue) == 0);
        CHECK(rd_kafka_fatal_error(rk, text, sizeof(text)));
        CHECK(strcmp(rd_kafka_name(rk), "") && strcmp(rd_kafka_topic_name(topic), "fork") == 0);
        rd_kafka_event_destroy(event);
        rd_kafka_queue_destroy(queue);
        rd_kafka_topic_destroy(topic);
        CHECK(rd_kafka_consumer_close(reader));
        rd_kafka_destroy(reader);
        rd_kafka_destroy(rk);
        rd_kafka_destroy(rk);
}

static void wait_for(pid_t *children) {
        int i;
        for (i = 0; i < STARTED; i++) {
                int status = 0;
                CHECK(waitpid(children[i], &status, 0) == children[i]);
                if (!WIFEXITED(status) || WEXITSTATUS(status))
                        fprintf(stderr, "child %d: status %x\n", i, status);
                CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        }
}

/* A parent without clients: before its first, or after its last. */
static void forks_without_clients(const char *brokers, const char *when) {
        pid_t children[CHILDREN];
        char topic[64];
        int i;
        for (i = 0; i < STARTED; i++) {
                children[i] = fork();
                if (!children[i]) {
                        alarm(SCALED_MS(100));
                        sprintf(topic, "fork-%s-%d", when, i);
                        own_clients(brokers, topic);
                        _exit(bad ? 1 : 0);
                }
        }
        wait_for(children);
}

static rd_kafka_t *parents[2];
static int sent, came;

/* Forks while threads of the parent hold locks or wait in the library, at random times. */
static void *produces(void *opaque) {
        (void)opaque;
        while (!is_over) {
                if (send_to(parents[0], "fork", "of the parent"))
                        usleep(1000);
                else
                        __sync_fetch_and_add(&sent, 1);
                if (sent % 100 == 0)
                        usleep(1000);
        }
        return NULL;
}

static void *polls(void *opaque) {
        (void)opaque;
        while (!is_over)
                rd_kafka_poll(parents[0], 100);
        return NULL;
}

static void *consumes(void *opaque) {
        (void)opaque;
        while (!is_over) {
                rd_kafka_message_t *message = rd_kafka_consumer_poll(parents[1], 100);
                if (message && !message->err)
                        __sync_fetch_and_add(&came, 1);
                if (message)
                        rd_kafka_message_destroy(message);
        }
        return NULL;
}

static void *comes_and_goes(void *brokers) {
        while (!is_over)
                rd_kafka_destroy(producer(brokers));
        return NULL;
}

static void forks_with_clients(const char *brokers) {
        void *(*functions[4])(void *) = {produces, polls, consumes, comes_and_goes};
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_event_t *event;
        rd_kafka_queue_t *queue;
        rd_kafka_topic_t *topic;
        rd_kafka_t *quiet;
        pthread_t threads[4];
        pid_t children[CHILDREN];
        int i, before;
        parents[0] = producer(brokers);
        parents[1] = consumer(brokers, "fork", "fork");
        topic = rd_kafka_topic_new(parents[0], "fork", NULL);
        /* An event that is not destroyed. */
        rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_DR);
        set(conf, "bootstrap.servers", brokers);
        quiet = start(RD_KAFKA_PRODUCER, conf);
        queue = rd_kafka_queue_get_main(quiet);
        CHECK(!send_to(quiet, "fork-quiet", "x"));
        event = rd_kafka_queue_poll(queue, TIMEOUT_MS);
        CHECK(event);
        for (i = 0; i < 4; i++)
                CHECK(pthread_create(&threads[i], NULL, functions[i], (void *)brokers) == 0);
        WAIT_FOR(came > 100);
        for (i = 0; i < STARTED; i++) {
                usleep(i * 1300);
                children[i] = fork();
                if (!children[i]) {
                        char name[64];
                        alarm(SCALED_MS(100));
                        delivered = failed = 0;
                        sprintf(name, "fork-with-%d", i);
                        if (i % 2)
                                inherited(parents[0], parents[1], topic, queue, event);
                        own_clients(brokers, name);
                        if (!(i % 2))
                                inherited(parents[0], parents[1], topic, queue, event);
                        _exit(bad ? 1 : 0);
                }
        }
        before = came;
        WAIT_FOR(came > before + 100);
        wait_for(children);
        before = came;
        WAIT_FOR(came > before + 100);
        is_over = 1;
        for (i = 0; i < 4; i++)
                pthread_join(threads[i], NULL);
        CHECK(rd_kafka_flush(parents[0], TIMEOUT_MS) == 0);
        CHECK(delivered == sent && failed == 0);
        rd_kafka_event_destroy(event);
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(quiet);
        rd_kafka_topic_destroy(topic);
        CHECK(!rd_kafka_consumer_close(parents[1]));
        rd_kafka_destroy(parents[1]);
        rd_kafka_destroy(parents[0]);
}

int main(int argc, char **argv) {
        CHECK(argc > 1);
        forks_without_clients(argv[1], "before");
        forks_with_clients(argv[1]);
        CHECK(rd_kafka_wait_destroyed(SCALED_MS(10000)) == 0);
        forks_without_clients(argv[1], "after");
        return bad ? 1 : 0;
}
