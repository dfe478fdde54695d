/* Offsets, partitions and requests in the statistics. Each function is a sentence. */
#include "test.h"

static char *latest;

static int keep(rd_kafka_t *rk UNUSED, char *json, size_t length UNUSED, void *opaque UNUSED) {
        free(latest);
        latest = json;
        return 1;
}

/* Returns the value of the first field of this name behind a text; -7777 if there is none. */
static long field(const char *behind, const char *name) {
        char quoted[64];
        const char *from = latest ? strstr(latest, behind) : NULL;
        snprintf(quoted, sizeof(quoted), "\"%s\":", name);
        from = from ? strstr(from, quoted) : NULL;
        return from ? strtol(from + strlen(quoted), NULL, 10) : -7777;
}

#define PARTITION "\"partition\":0,\"broker\""
#define NO_PARTITION "\"partition\":-1,\"broker\""

static void poll_once(rd_kafka_t *rk) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, 50);
        if (message)
                rd_kafka_message_destroy(message);
}

static rd_kafka_t *client(rd_kafka_type_t type, const char *servers) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        set(conf, "bootstrap.servers", servers);
        if (type == RD_KAFKA_CONSUMER) {
                set(conf, "group.id", "statistics");
                set(conf, "enable.auto.commit", "false");
                set(conf, "enable.auto.offset.store", "false");
                set(conf, "statistics.interval.ms", "100");
                rd_kafka_conf_set_stats_cb(conf, keep);
        }
        return start(type, conf);
}

static void lags_are_counted_from_what_is_committed_and_stored(const char *servers) {
        rd_kafka_t *producer = client(RD_KAFKA_PRODUCER, servers), *rk = client(RD_KAFKA_CONSUMER, servers);
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        int i;
        for (i = 0; i < 10; i++)
                CHECK(rd_kafka_producev(producer, RD_KAFKA_V_TOPIC("statistics"), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_VALUE("v", 1),
                                        RD_KAFKA_V_END) == 0);
        CHECK(rd_kafka_flush(producer, TIMEOUT_MS) == 0);
        rd_kafka_poll_set_consumer(rk);
        rd_kafka_topic_partition_list_add(list, "statistics", 0)->offset = 0;
        CHECK(rd_kafka_assign(rk, list) == 0);
        UNTIL(field(PARTITION, "eof_offset") == 10 && field(PARTITION, "app_offset") == 10, poll_once(rk));
        CHECK(field(PARTITION, "consumer_lag") == -1 && field(PARTITION, "consumer_lag_stored") == -1);
        CHECK(rd_kafka_position(rk, list) == 0);
        CHECK(list->elems[0].offset == 10 && rd_kafka_topic_partition_get_leader_epoch(&list->elems[0]) >= 0);
        list->elems[0].offset = 9;
        CHECK(rd_kafka_commit(rk, list, 0) == 0);
        list->elems[0].offset = 8;
        CHECK(rd_kafka_offsets_store(rk, list) == 0);
        UNTIL(field(PARTITION, "stored_offset") == 8 && field(PARTITION, "committed_offset") == 9, poll_once(rk));
        CHECK(field(PARTITION, "commited_offset") == 9);
        CHECK(field(PARTITION, "consumer_lag") == 1 && field(PARTITION, "consumer_lag_stored") == 2);
        CHECK(field(NO_PARTITION, "leader") == -1 && field(NO_PARTITION, "consumer_lag") == -1);
        CHECK(field("\"req\":", "ApiVersion") >= 0 && field("\"req\":", "JoinGroup") == 0);
        CHECK(strstr(latest, "\"ApiVersions\"") == NULL);
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_destroy(rk);
        rd_kafka_destroy(producer);
}

int main(int argc, char **argv) {
        if (argc < 2)
                return 2;
        lags_are_counted_from_what_is_committed_and_stored(argv[1]);
        return bad != 0;
}
