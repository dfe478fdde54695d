/* The fields of statistics: the offsets of a consumer, the partition -1 of a topic, the requests of a broker. */
#include "side_by_side.h"

static rd_kafka_t *host;
static char *latest;

static int keep(rd_kafka_t *rk UNUSED, char *json, size_t length UNUSED, void *opaque UNUSED) {
        free(latest);
        latest = json;
        return 1;
}

static rd_kafka_mock_cluster_t *cluster_of(int brokers) {
        rd_kafka_mock_cluster_t *cluster;
        host = start(RD_KAFKA_PRODUCER, conf_of(NULL, NULL));
        cluster = rd_kafka_mock_cluster_new(host, brokers);
        setenv("SBS_BOOTSTRAP", rd_kafka_mock_cluster_bootstraps(cluster), 1);
        rd_kafka_mock_topic_create(cluster, "t", 1, 1);
        return cluster;
}

static void end(rd_kafka_mock_cluster_t *cluster) {
        rd_kafka_mock_cluster_destroy(cluster);
        rd_kafka_destroy(host);
}

static void fill(int messages) {
        rd_kafka_t *rk = producer_of(conf_of("bootstrap.servers", getenv("SBS_BOOTSTRAP"), NULL));
        while (messages-- > 0)
                rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_VALUE("v", 1), RD_KAFKA_V_END);
        rd_kafka_flush(rk, TIMEOUT_MS);
        rd_kafka_destroy(rk);
}

static rd_kafka_t *consumer(const char *stores) {
        rd_kafka_conf_t *conf = conf_of("bootstrap.servers", getenv("SBS_BOOTSTRAP"), "group.id", "g", "enable.auto.commit", "false",
                                        "enable.auto.offset.store", stores, "statistics.interval.ms", "100", NULL);
        rd_kafka_t *rk;
        rd_kafka_conf_set_stats_cb(conf, keep);
        rk = consumer_of(conf);
        rd_kafka_poll_set_consumer(rk);
        return rk;
}

static rd_kafka_topic_partition_list_t *at(int64_t offset) {
        static rd_kafka_topic_partition_list_t *list;
        if (!list)
                rd_kafka_topic_partition_list_add(list = rd_kafka_topic_partition_list_new(1), "t", 0);
        list->elems[0].offset = offset;
        return list;
}

/* Ends a consumer. */
static void leave(rd_kafka_t *rk) {
        rd_kafka_assign(rk, NULL);
        rd_kafka_destroy_flags(rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
}

static int polled(rd_kafka_t *rk) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, 50);
        int is_record = message && !message->err;
        if (message)
                rd_kafka_message_destroy(message);
        return is_record;
}

/* Returns the value of the first field with this name after a position in the statistics; -7777 if there is none. */
static long field(const char *from, const char *name) {
        char quoted[64];
        const char *found;
        snprintf(quoted, sizeof(quoted), "\"%s\":", name);
        found = from ? strstr(from, quoted) : NULL;
        return found ? strtol(found + strlen(quoted), NULL, 10) : -7777;
}

/* Returns the partition's object in the latest statistics. */
static const char *partition(int number) {
        char with_blank[64], without[64];
        const char *found;
        snprintf(with_blank, sizeof(with_blank), "\"partition\":%d,", number);
        snprintf(without, sizeof(without), "\"partition\": %d,", number);
        found = latest ? strstr(latest, "\"partitions\":") : NULL;
        return found && strstr(found, with_blank) ? strstr(found, with_blank) : found ? strstr(found, without) : NULL;
}

static void say_partition(const char *what, int number) {
        static const char *const names[] = {"broker", "leader", "query_offset", "next_offset", "app_offset", "stored_offset", "stored_leader_epoch",
                                            "commited_offset", "committed_offset", "committed_leader_epoch", "eof_offset", "lo_offset", "hi_offset",
                                            "ls_offset", "consumer_lag", "consumer_lag_stored", "leader_epoch"};
        size_t i;
        say("%s, partition %d", what, number);
        for (i = 0; i < sizeof(names) / sizeof(*names); i++)
                say("  %s %ld", names[i], field(partition(number), names[i]));
}

/* Waits for new statistics. */
static void refresh(rd_kafka_t *rk) {
        int i;
        for (i = 0; i < 2; i++) {
                free(latest);
                latest = NULL;
                UNTIL(latest, polled(rk));
        }
}

CASE(offsets_that_are_stored_and_committed) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(1);
        rd_kafka_t *rk;
        int count = 0;
        fill(10);
        rk = consumer("false");
        rd_kafka_assign(rk, at(0));
        UNTIL(count == 10, count += polled(rk));
        UNTIL(field(partition(0), "eof_offset") == 10, polled(rk));
        say_partition("after reading", 0);
        say("commit %s", err(rd_kafka_commit(rk, at(9), 0)));
        say("store %s", err(rd_kafka_offsets_store(rk, at(8))));
        refresh(rk);
        say_partition("after commit and store", 0);
        say_partition("after commit and store", -1);
        /* The original waits forever in rd_kafka_destroy() for a partition with a stored offset; the process ends instead. */
        (void)cluster;
}

CASE(offsets_that_are_stored_by_reading) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(1);
        rd_kafka_t *rk;
        int count = 0;
        fill(10);
        rk = consumer("true");
        rd_kafka_assign(rk, at(0));
        UNTIL(count == 10, count += polled(rk));
        UNTIL(field(partition(0), "eof_offset") == 10, polled(rk));
        refresh(rk);
        say_partition("after reading", 0);
        say("commit %s", err(rd_kafka_commit(rk, NULL, 0)));
        fill(2);
        UNTIL(count == 12, count += polled(rk));
        UNTIL(field(partition(0), "eof_offset") == 12, polled(rk));
        say_partition("after two more", 0);
        leave(rk);
        fill(2);
        rk = consumer("true");
        rd_kafka_assign(rk, at(RD_KAFKA_OFFSET_STORED));
        UNTIL(count == 16, count += polled(rk));
        UNTIL(field(partition(0), "eof_offset") == 14, polled(rk));
        say_partition("of the next consumer", 0);
        leave(rk);
        end(cluster);
}

static void say_requests(void) {
        static const char *const names[] = {"Produce", "Fetch", "ListOffsets", "Metadata", "OffsetCommit", "OffsetFetch", "FindCoordinator",
                                            "JoinGroup", "Heartbeat", "LeaveGroup", "SyncGroup", "SaslHandshake", "ApiVersion", "ApiVersions",
                                            "InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn", "TxnOffsetCommit",
                                            "SaslAuthenticate", "DescribeCluster", "DescribeProducers", "DescribeTransactions",
                                            "ListTransactions", "GetTelemetrySubscriptions", "PushTelemetry", "ShareGroupHeartbeat",
                                            "ShareFetch", "ShareAcknowledge", "CreateTopics", "DeleteTopics", "DescribeConfigs"};
        const char *requests = latest ? strstr(latest, "\"req\":") : NULL;
        char only[4096] = "";
        size_t i;
        if (requests)
                snprintf(only, sizeof(only), "%.*s", (int)strcspn(requests, "}"), requests);
        for (i = 0; i < sizeof(names) / sizeof(*names); i++)
                say("  %s %s", names[i], field(only, names[i]) >= 0 ? "listed" : "absent");
}

CASE(requests_of_a_producer) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(1);
        rd_kafka_conf_t *conf = conf_of("bootstrap.servers", getenv("SBS_BOOTSTRAP"), "statistics.interval.ms", "100", NULL);
        rd_kafka_t *rk;
        rd_kafka_conf_set_stats_cb(conf, keep);
        rk = producer_of(conf);
        rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_VALUE("v", 1), RD_KAFKA_V_END);
        UNTIL(recorded(&reports) && field(partition(0), "txmsgs") == 1, rd_kafka_poll(rk, 50));
        say_requests();
        say_partition("produced to", 0);
        say_partition("produced to", -1);
        rd_kafka_destroy(rk);
        end(cluster);
}

CASE(requests_of_a_consumer) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(1);
        rd_kafka_t *rk;
        fill(1);
        rk = consumer("true");
        rd_kafka_assign(rk, at(0));
        UNTIL(polled(rk), (void)0);
        refresh(rk);
        say_requests();
        leave(rk);
        end(cluster);
}

/* Returns the text of a field in an entry of the brokers; "absent" if there is none. */
static const char *broker_text(const char *entry, const char *name) {
        static char values[4][64];
        static int next;
        char *value = values[next++ % 4], quoted[64];
        const char *found;
        snprintf(quoted, sizeof(quoted), "\"%s\":\"", name);
        found = entry ? strstr(entry, quoted) : NULL;
        if (!found)
                return "absent";
        found += strlen(quoted);
        snprintf(value, sizeof(values[0]), "%.*s", (int)strcspn(found, "\""), found);
        return value;
}

/* Returns the next entry with this name. The original writes a blank before an object. */
static const char *key_of(const char *from, const char *name) {
        char with_blank[128], without[128];
        snprintf(with_blank, sizeof(with_blank), "\"%s\": {", name);
        snprintf(without, sizeof(without), "\"%s\":{", name);
        return strstr(from, with_blank) ? strstr(from, with_blank) : strstr(from, without);
}

/* Returns the entry of a broker in the latest statistics. */
static const char *broker(const char *name) {
        const char *brokers = latest ? strstr(latest, "\"brokers\":") : NULL;
        return brokers ? key_of(brokers, name) : NULL;
}

static void say_broker(const char *name) {
        const char *entry = broker(name);
        say("%s: %s, once %d, name %s, source %s, state %s, address %s", name, entry ? "present" : "absent",
            entry && !key_of(entry + 1, name), broker_text(entry, "name"), broker_text(entry, "source"), broker_text(entry, "state"),
            *broker_text(entry, "nodename") ? "present" : "empty");
        say("  node %ld", entry ? field(entry, "nodeid") : -7777);
}

CASE(brokers_of_a_consumer_with_a_group) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(1);
        rd_kafka_t *rk;
        int64_t low, high;
        char name[128];
        fill(3);
        rk = consumer("false");
        UNTIL(latest, polled(rk));
        /* The original has connected already. */
        say("GroupCoordinator %s", broker("GroupCoordinator") ? "present" : "absent");
        rd_kafka_assign(rk, at(0));
        UNTIL(polled(rk), (void)0);
        say("commit %s", err(rd_kafka_commit(rk, at(1), 0)));
        say("watermarks %s", err(rd_kafka_query_watermark_offsets(rk, "t", 0, &low, &high, TIMEOUT_MS)));
        refresh(rk);
        say_broker("GroupCoordinator");
        snprintf(name, sizeof(name), "%s/1", getenv("SBS_BOOTSTRAP"));
        say_broker(name);
        leave(rk);
        end(cluster);
}

CASE(brokers_of_a_consumer_without_a_group) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(1);
        rd_kafka_conf_t *conf = conf_of("bootstrap.servers", getenv("SBS_BOOTSTRAP"), "statistics.interval.ms", "100", NULL);
        rd_kafka_t *rk;
        rd_kafka_conf_set_stats_cb(conf, keep);
        rk = consumer_of(conf);
        UNTIL(latest, rd_kafka_poll(rk, 50));
        say_broker("GroupCoordinator");
        rd_kafka_destroy(rk);
        end(cluster);
}
