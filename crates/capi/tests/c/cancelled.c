/* Threads are cancelled while they call the library: each ends at a cancellation point of its own after the call, the process
 * goes on, and the client works as before. */
#include "test.h"

#define THREADS 40

static rd_kafka_t *producer, *consumer;
static const char *topic = "cancelled";
/* The calls that have begun. */
static volatile int calls;

/* Callbacks print, which is a cancellation point. */
static void on_report(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
        FILE *nowhere = opaque;
        (void)rk;
        fprintf(nowhere, "%d\n", message->err);
        fflush(nowhere);
}

static void on_log(const rd_kafka_t *rk, int level, const char *facility, const char *text) {
        FILE *nowhere = rd_kafka_opaque(rk);
        (void)level;
        fprintf(nowhere, "%s: %s\n", facility, text);
        fflush(nowhere);
}

static void produce(void) {
        /* The I/O thread has nothing to do, so that it has to be woken each time. */
        rd_kafka_producev(producer, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_VALUE((void *)"v", 1), RD_KAFKA_V_END);
        rd_kafka_flush(producer, TIMEOUT_MS);
}

static void serve(void) {
        rd_kafka_producev(producer, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_VALUE((void *)"v", 1), RD_KAFKA_V_END);
        rd_kafka_poll(producer, 10);
}

static void consume(void) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(consumer, 1);
        if (message)
                rd_kafka_message_destroy(message);
}

static void print(void) {
        rd_kafka_dump(rd_kafka_opaque(producer), producer);
}

static void create(void) {
        char errstr[256];
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_t *rk;
        set(conf, "bootstrap.servers", "127.0.0.1:1");
        set(conf, "log_level", "0");
        rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof(errstr));
        CHECK(rk != NULL);
        rd_kafka_destroy(rk);
}

typedef void (*call_t)(void);

static void *repeat(void *call) {
        for (;;) {
                __sync_fetch_and_add(&calls, 1);
                (*(call_t *)call)();
                pthread_testcancel();
        }
        return NULL;
}

static void cancel(call_t call) {
        int i;
        for (i = 0; i < THREADS; i++) {
                pthread_t thread;
                void *result = NULL;
                int before = calls;
                CHECK(!pthread_create(&thread, NULL, repeat, &call));
                UNTIL(calls > before + i % 3, sched_yield());
                CHECK(!pthread_cancel(thread));
                CHECK(!pthread_join(thread, &result));
                CHECK(result == PTHREAD_CANCELED);
        }
}

int main(int argc, char **argv) {
        FILE *nowhere = fopen("/dev/null", "w");
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
        int read = 0;
        CHECK(argc > 1);
        set(conf, "bootstrap.servers", argv[1]);
        set(conf, "linger.ms", "0");
        rd_kafka_conf_set_dr_msg_cb(conf, on_report);
        rd_kafka_conf_set_log_cb(conf, on_log);
        rd_kafka_conf_set_opaque(conf, nowhere);
        producer = start(RD_KAFKA_PRODUCER, conf);
        conf = rd_kafka_conf_new();
        set(conf, "bootstrap.servers", argv[1]);
        set(conf, "group.id", topic);
        set(conf, "auto.offset.reset", "earliest");
        consumer = start(RD_KAFKA_CONSUMER, conf);
        rd_kafka_topic_partition_list_add(topics, topic, RD_KAFKA_PARTITION_UA);
        produce();
        CHECK(!rd_kafka_subscribe(consumer, topics));

        cancel(produce);
        cancel(serve);
        cancel(consume);
        cancel(print);
        cancel(create);

        /* Nothing is locked. */
        produce();
        CHECK(rd_kafka_outq_len(producer) == 0);
        UNTIL(read > 0, {
                rd_kafka_message_t *message = rd_kafka_consumer_poll(consumer, 100);
                if (message) {
                        read += !message->err;
                        rd_kafka_message_destroy(message);
                }
        });
        rd_kafka_topic_partition_list_destroy(topics);
        CHECK(!rd_kafka_consumer_close(consumer));
        rd_kafka_destroy(consumer);
        rd_kafka_destroy(producer);
        fclose(nowhere);
        return bad;
}
