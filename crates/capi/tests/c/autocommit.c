/* Offsets are committed at the interval, also if an application reads and then calls nothing for a long time. Each
 * function is a sentence. */
#include "test.h"

#define COUNT 10

static rd_kafka_t *client(rd_kafka_type_t type, const char *servers, const char *group, const char *stores) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        set(conf, "bootstrap.servers", servers);
        set(conf, "log_level", "2");
        if (group) {
                set(conf, "group.id", group);
                set(conf, "auto.offset.reset", "earliest");
                set(conf, "auto.commit.interval.ms", "100");
                set(conf, "enable.auto.offset.store", stores);
        }
        return start(type, conf);
}

static rd_kafka_topic_partition_list_t *partition(int64_t offset) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_topic_partition_list_add(list, "autocommit", 0)->offset = offset;
        return list;
}

/* Returns the committed offset of the group as another consumer sees it. */
static int64_t committed(rd_kafka_t *other) {
        rd_kafka_topic_partition_list_t *list = partition(RD_KAFKA_OFFSET_INVALID);
        int64_t offset = RD_KAFKA_OFFSET_INVALID;
        if (rd_kafka_committed(other, list, TIMEOUT_MS) == 0)
                offset = list->elems[0].offset;
        rd_kafka_topic_partition_list_destroy(list);
        return offset;
}

static rd_kafka_t *reader(const char *servers, const char *group, const char *stores) {
        rd_kafka_t *rk = client(RD_KAFKA_CONSUMER, servers, group, stores);
        rd_kafka_topic_partition_list_t *list = partition(0);
        rd_kafka_poll_set_consumer(rk);
        CHECK(rd_kafka_assign(rk, list) == 0);
        rd_kafka_topic_partition_list_destroy(list);
        return rk;
}

static void read_some(rd_kafka_t *rk, int count) {
        for (; count > 0; count--) {
                rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, TIMEOUT_MS);
                CHECK(message && !message->err);
                if (message)
                        rd_kafka_message_destroy(message);
        }
}

static void what_was_read_is_committed_though_nobody_polls(const char *servers) {
        rd_kafka_t *rk = reader(servers, "silent", "true"), *other = client(RD_KAFKA_CONSUMER, servers, "silent", "true");
        read_some(rk, 4);
        UNTIL(committed(other) == 4, usleep(20000));
        /* Consuming continues within one fetched batch, long after the first commit. */
        usleep(300000);
        read_some(rk, 3);
        UNTIL(committed(other) == 7, usleep(20000));
        rd_kafka_destroy(rk);
        rd_kafka_destroy(other);
}

static void what_the_application_stores_is_committed_though_nobody_polls(const char *servers) {
        rd_kafka_t *rk = reader(servers, "stores", "false"), *other = client(RD_KAFKA_CONSUMER, servers, "stores", "true");
        rd_kafka_topic_partition_list_t *list = partition(3);
        read_some(rk, 5);
        usleep(300000);
        CHECK(committed(other) == RD_KAFKA_OFFSET_INVALID);
        CHECK(rd_kafka_offsets_store(rk, list) == 0);
        UNTIL(committed(other) == 3, usleep(20000));
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_destroy(rk);
        rd_kafka_destroy(other);
}

static void a_commit_that_fails_is_made_again_at_the_next_time(rd_kafka_mock_cluster_t *cluster, const char *servers) {
        rd_kafka_t *rk = reader(servers, "again", "true"), *other = client(RD_KAFKA_CONSUMER, servers, "again", "true");
        /* OffsetCommit */
        CHECK(rd_kafka_mock_broker_push_request_error_rtts(cluster, 1, 8, 1, RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED, 0) ==
              0);
        read_some(rk, 2);
        UNTIL(committed(other) == 2, usleep(20000));
        rd_kafka_destroy(rk);
        rd_kafka_destroy(other);
}

static void who_destroys_a_client_before_the_time_has_committed_and_hears_nothing_later(const char *servers) {
        rd_kafka_t *rk = reader(servers, "early", "true"), *other = client(RD_KAFKA_CONSUMER, servers, "early", "true");
        read_some(rk, 6);
        rd_kafka_destroy(rk);
        CHECK(committed(other) == 6);
        usleep(150000);
        rd_kafka_destroy(other);
}

/* The counter of a member's automatic commits. */
static void on_commit(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *list, void *opaque) {
        (void)rk, (void)list;
        *(int *)opaque += err == 0;
}

static rd_kafka_t *member(const char *servers, const char *interval, int *commits) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_t *rk;
        char group[64];
        sprintf(group, "autocommit-%s", interval);
        set(conf, "bootstrap.servers", servers);
        set(conf, "log_level", "2");
        set(conf, "group.id", group);
        set(conf, "auto.offset.reset", "earliest");
        set(conf, "auto.commit.interval.ms", interval);
        rd_kafka_conf_set_opaque(conf, commits);
        rd_kafka_conf_set_offset_commit_cb(conf, on_commit);
        rk = start(RD_KAFKA_CONSUMER, conf);
        rd_kafka_poll_set_consumer(rk);
        rd_kafka_topic_partition_list_add(list, "autocommit_member", RD_KAFKA_PARTITION_UA);
        CHECK(rd_kafka_subscribe(rk, list) == 0);
        rd_kafka_topic_partition_list_destroy(list);
        return rk;
}

/* The one commits many times before the other one does, though both read at the same pace. */
static void member_commits_at_its_own_interval(const char *servers) {
        int often = 0, seldom = 0;
        rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, servers, NULL, NULL);
        rd_kafka_t *one = member(servers, "100", &often), *other = member(servers, "3000", &seldom);
        UNTIL(seldom > 0, {
                rd_kafka_message_t *message;
                CHECK(!rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("autocommit_member"), RD_KAFKA_V_PARTITION(0),
                                         RD_KAFKA_V_VALUE("x", 1), RD_KAFKA_V_END));
                rd_kafka_poll(rk, 0);
                if ((message = rd_kafka_consumer_poll(one, 20)))
                        rd_kafka_message_destroy(message);
                if ((message = rd_kafka_consumer_poll(other, 20)))
                        rd_kafka_message_destroy(message);
        });
        CHECK(often >= 3);
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
        rd_kafka_destroy(one);
        rd_kafka_destroy(other);
        rd_kafka_destroy(rk);
}

int main(void) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_mock_cluster_t *cluster;
        rd_kafka_t *rk;
        const char *servers;
        int i;
        set(conf, "test.mock.num.brokers", "1");
        set(conf, "log_level", "2");
        rk = start(RD_KAFKA_PRODUCER, conf);
        cluster = rd_kafka_handle_mock_cluster(rk);
        servers = rd_kafka_mock_cluster_bootstraps(cluster);
        CHECK(rd_kafka_mock_topic_create(cluster, "autocommit", 1, 1) == 0);
        CHECK(rd_kafka_mock_topic_create(cluster, "autocommit_member", 1, 1) == 0);
        for (i = 0; i < COUNT; i++)
                CHECK(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("autocommit"), RD_KAFKA_V_PARTITION(0),
                                        RD_KAFKA_V_VALUE((void *)"v", 1), RD_KAFKA_V_END) == 0);
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
        what_was_read_is_committed_though_nobody_polls(servers);
        what_the_application_stores_is_committed_though_nobody_polls(servers);
        a_commit_that_fails_is_made_again_at_the_next_time(cluster, servers);
        who_destroys_a_client_before_the_time_has_committed_and_hears_nothing_later(servers);
        member_commits_at_its_own_interval(servers);
        rd_kafka_destroy(rk);
        return bad != 0;
}
