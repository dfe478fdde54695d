/* The ceiling of a client's memory: client.memory.max.bytes. Each function is a sentence. */
#include "test.h"

enum { SIZE = 1000, RECORDS = 300 };

static rd_kafka_conf_t *limited(const char *servers, const char *ceiling) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        set(conf, "bootstrap.servers", servers);
        set(conf, "client.memory.max.bytes", ceiling);
        return conf;
}

static int produce(rd_kafka_t *rk, int flags) {
        static char value[SIZE];
        return rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("memory"), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_MSGFLAGS(flags),
                                 RD_KAFKA_V_VALUE(value, SIZE), RD_KAFKA_V_END);
}

static void producer_at_the_ceiling_answers_as_with_a_full_queue(void) {
        rd_kafka_t *rk = start(RD_KAFKA_PRODUCER, limited("broker.invalid:9092", "100000"));
        int sent = 0;
        while (sent < 200 && !produce(rk, RD_KAFKA_MSG_F_COPY))
                sent++;
        CHECK(sent > 30 && sent < 75);
        CHECK(produce(rk, RD_KAFKA_MSG_F_COPY) == RD_KAFKA_RESP_ERR__QUEUE_FULL);
        CHECK(!rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE));
        while (rd_kafka_outq_len(rk) > 0)
                rd_kafka_poll(rk, 100);
        /* The reports make room again. */
        CHECK(produce(rk, RD_KAFKA_MSG_F_COPY) == 0);
        rd_kafka_destroy(rk);
}

/* The library's threads take the reports, so that a produce call that waits for room gets it. */
static void everything_is_delivered_below_the_ceiling(const char *servers) {
        rd_kafka_conf_t *conf = limited(servers, "20000");
        rd_kafka_t *rk;
        int i;
        set(conf, "compression.type", "lz4");
        rk = start(RD_KAFKA_PRODUCER, conf);
        for (i = 0; i < RECORDS; i++)
                CHECK(produce(rk, RD_KAFKA_MSG_F_COPY | RD_KAFKA_MSG_F_BLOCK) == 0);
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0 && rd_kafka_outq_len(rk) == 0);
        rd_kafka_destroy(rk);
}

static void everything_is_read_below_the_ceiling(const char *servers, const char *ceiling) {
        rd_kafka_conf_t *conf = limited(servers, ceiling);
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        int64_t next = 0;
        rd_kafka_t *rk;
        set(conf, "group.id", "memory");
        rk = start(RD_KAFKA_CONSUMER, conf);
        rd_kafka_topic_partition_list_add(list, "memory", 0)->offset = RD_KAFKA_OFFSET_BEGINNING;
        CHECK(!rd_kafka_assign(rk, list));
        rd_kafka_topic_partition_list_destroy(list);
        while (next < RECORDS) {
                rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, TIMEOUT_MS);
                int is_next = message && !message->err && message->offset == next && message->len == SIZE;
                if (message)
                        rd_kafka_message_destroy(message);
                if (!is_next)
                        break;
                next++;
        }
        CHECK(next == RECORDS);
        rd_kafka_destroy(rk);
}

int main(int argc, char **argv) {
        (void)argc;
        producer_at_the_ceiling_answers_as_with_a_full_queue();
        everything_is_delivered_below_the_ceiling(argv[1]);
        everything_is_read_below_the_ceiling(argv[1], "20000");
        everything_is_read_below_the_ceiling(argv[1], "1");
        return bad != 0;
}
