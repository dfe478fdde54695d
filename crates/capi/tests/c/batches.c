/* Calls that collect messages for an array while partitions are revoked, sought or paused: what was collected before is
 * dropped, and nothing comes twice or is left out. */
#include "test.h"

#define TOPIC "batches"
#define RECORDS 6
#define SLOTS 100

static const char *servers;

/* A call that collects messages until the other thread has made its change. */
struct call {
        rd_kafka_queue_t *queue;
        rd_kafka_message_t *messages[SLOTS];
        ssize_t count;
        volatile int is_over;
};

static void *collects(void *opaque) {
        struct call *call = opaque;
        call->count = rd_kafka_consume_batch_queue(call->queue, TIMEOUT_MS, call->messages, SLOTS);
        call->is_over = 1;
        return NULL;
}

enum change { NOTHING, PAUSE, SEEK, ASSIGN, UNASSIGN, INCREMENTAL_UNASSIGN };

/* Writes the offsets of each partition, like "0:0123 1:0123", and destroys the messages. */
static void take(rd_kafka_message_t **messages, ssize_t count, char *text) {
        char offsets[2][SLOTS] = {"", ""};
        ssize_t i;
        for (i = 0; i < count; i++) {
                CHECK(!messages[i]->err);
                sprintf(offsets[messages[i]->partition] + strlen(offsets[messages[i]->partition]), "%d",
                        (int)messages[i]->offset);
                rd_kafka_message_destroy(messages[i]);
        }
        sprintf(text, "%s %s", offsets[0], offsets[1]);
}

/* Changes the second of two partitions while a call collects messages of both, and compares what it returns and the
 * position after it with what is right; likewise of a second call, after the partition was resumed. */
static void change(enum change change, const char *first, int64_t position, const char *second) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_topic_partition_list_t *both = rd_kafka_topic_partition_list_new(2);
        rd_kafka_topic_partition_list_t *one = rd_kafka_topic_partition_list_new(1);
        rd_kafka_message_t *messages[SLOTS];
        struct call call;
        char text[2 * SLOTS];
        pthread_t thread;
        rd_kafka_t *rk;
        size_t got;
        int i;
        set(conf, "bootstrap.servers", servers);
        set(conf, "log_level", "2");
        set(conf, "group.id", "batches");
        set(conf, "enable.auto.commit", "false");
        rk = start(RD_KAFKA_CONSUMER, conf);
        for (i = 0; i < 2; i++)
                rd_kafka_topic_partition_list_add(both, TOPIC, i)->offset = 0;
        rd_kafka_topic_partition_list_add(one, TOPIC, 1)->offset = 2;
        memset(&call, 0, sizeof(call));
        call.queue = rd_kafka_queue_get_consumer(rk);
        CHECK(rd_kafka_assign(rk, both) == 0);
        CHECK(!pthread_create(&thread, NULL, collects, &call));
        /* The array belongs to the call, but its slots are filled as messages arrive. */
        WAIT_FOR(((rd_kafka_message_t * volatile *)call.messages)[2 * RECORDS - 1]);
        if (change == PAUSE)
                CHECK(rd_kafka_pause_partitions(rk, one) == 0);
        if (change == SEEK)
                CHECK(!rd_kafka_seek_partitions(rk, one, TIMEOUT_MS));
        if (change == ASSIGN)
                CHECK(rd_kafka_assign(rk, one) == 0);
        if (change == UNASSIGN)
                CHECK(rd_kafka_assign(rk, NULL) == 0);
        if (change == INCREMENTAL_UNASSIGN)
                CHECK(!rd_kafka_incremental_unassign(rk, one));
        /* After a seek, the call also gets messages of the new position; it ends when it is asked to. */
        if (change == SEEK || change == ASSIGN)
                WAIT_FOR(((rd_kafka_message_t * volatile *)call.messages)[3 * RECORDS - 3]);
        UNTIL(call.is_over, {
                rd_kafka_queue_yield(call.queue);
                usleep(10000);
        });
        pthread_join(thread, NULL);
        take(call.messages, call.count, text);
        if (strcmp(text, first)) {
                fprintf(stderr, "change %d: \"%s\" instead of \"%s\"\n", change, text, first);
                bad++;
        }
        CHECK(rd_kafka_position(rk, one) == 0);
        if (one->elems[0].offset != position) {
                fprintf(stderr, "change %d: position %d instead of %d\n", change, (int)one->elems[0].offset, (int)position);
                bad++;
        }
        if (change == PAUSE) {
                CHECK(rd_kafka_resume_partitions(rk, one) == 0);
                /* A call may meet a yield that was for the one before. */
                for (got = 0; got < strlen(second) - 1;)
                        got += (size_t)rd_kafka_consume_batch_queue(call.queue, TIMEOUT_MS, messages + got, strlen(second) - 1 - got);
                take(messages, got, text);
                if (strcmp(text, second)) {
                        fprintf(stderr, "after change %d: \"%s\" instead of \"%s\"\n", change, text, second);
                        bad++;
                }
        }
        rd_kafka_topic_partition_list_destroy(both);
        rd_kafka_topic_partition_list_destroy(one);
        rd_kafka_queue_destroy(call.queue);
        rd_kafka_destroy(rk);
}

int main(void) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_t *rk;
        int i;
        set(conf, "test.mock.num.brokers", "1");
        set(conf, "log_level", "2");
        rk = start(RD_KAFKA_PRODUCER, conf);
        servers = rd_kafka_mock_cluster_bootstraps(rd_kafka_handle_mock_cluster(rk));
        CHECK(rd_kafka_mock_topic_create(rd_kafka_handle_mock_cluster(rk), TOPIC, 2, 1) == 0);
        for (i = 0; i < 2 * RECORDS; i++)
                CHECK(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(TOPIC), RD_KAFKA_V_PARTITION(i % 2),
                                        RD_KAFKA_V_VALUE("x", 1), RD_KAFKA_V_END) == 0);
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
        change(NOTHING, "012345 012345", RECORDS, "");
        change(PAUSE, "012345 ", RD_KAFKA_OFFSET_INVALID, " 012345");
        change(SEEK, "012345 2345", RECORDS, "");
        change(ASSIGN, " 2345", RECORDS, "");
        change(UNASSIGN, " ", RD_KAFKA_OFFSET_INVALID, "");
        change(INCREMENTAL_UNASSIGN, "012345 ", RD_KAFKA_OFFSET_INVALID, "");
        rd_kafka_destroy(rk);
        return bad != 0;
}
