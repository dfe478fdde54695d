/* Broker ids: of a report, of a fetched message, and of the controller, on a cluster of three. */
#include "test.h"

static int reports;
static int32_t reported;

static void on_report(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
        (void)rk;
        (void)opaque;
        reports++;
        reported = rd_kafka_message_broker_id(message);
}

static int produce(rd_kafka_t *rk, int32_t partition) {
        return rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("brokers"), RD_KAFKA_V_PARTITION(partition),
                                 RD_KAFKA_V_VALUE((void *)"value", 5), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                                 RD_KAFKA_V_END);
}

static int unresolved, all_down;

static void on_error(rd_kafka_t *rk, int err, const char *reason, void *opaque) {
        (void)rk, (void)reason, (void)opaque;
        unresolved += err == RD_KAFKA_RESP_ERR__RESOLVE;
        all_down += err == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN;
}

/* An entry that can't be used is an error, and so is a list without any other. */
static void unusable_servers_are_reported(const char *servers, int entries) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_t *rk;
        unresolved = all_down = 0;
        set(conf, "bootstrap.servers", servers);
        set(conf, "log_level", "0");
        rd_kafka_conf_set_error_cb(conf, on_error);
        rk = start(RD_KAFKA_PRODUCER, conf);
        UNTIL(all_down > 0, rd_kafka_poll(rk, 10));
        CHECK(unresolved >= entries);
        rd_kafka_destroy(rk);
}

int main(void) {
        char errstr[256];
        const char *servers;
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_topic_partition_list_t *list;
        rd_kafka_mock_cluster_t *cluster;
        rd_kafka_message_t *message;
        rd_kafka_t *rk, *consumer;
        int32_t controller;
        int i, seen[3];

        set(conf, "test.mock.num.brokers", "3");
        set(conf, "log_level", "2");
        rd_kafka_conf_set_dr_msg_cb(conf, on_report);
        rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof(errstr));
        CHECK(rk != NULL);
        if (!rk)
                return 1;
        cluster = rd_kafka_handle_mock_cluster(rk);
        servers = rd_kafka_mock_cluster_bootstraps(cluster);
        CHECK(rd_kafka_mock_topic_create(cluster, "brokers", 3, 1) == 0);
        for (i = 0; i < 3; i++)
                CHECK(rd_kafka_mock_partition_set_leader(cluster, "brokers", i, 3 - i) == 0);

        controller = rd_kafka_controllerid(rk, TIMEOUT_MS);
        CHECK(controller >= 1 && controller <= 3);
        CHECK(rd_kafka_controllerid(rk, 0) == controller);

        for (i = 0; i < 3; i++) {
                CHECK(produce(rk, i) == 0 && rd_kafka_flush(rk, TIMEOUT_MS) == 0);
                CHECK(reports == i + 1 && reported == 3 - i);
        }
        /* A message that was never sent has no broker; one that may be in flight has the one to which it was sent. */
        CHECK(rd_kafka_mock_broker_set_down(cluster, 3) == 0);
        CHECK(produce(rk, 0) == 0);
        CHECK(rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT) == 0);
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
        CHECK(reports == 4 && (reported == -1 || reported == 3));
        CHECK(rd_kafka_mock_broker_set_up(cluster, 3) == 0);
        CHECK(rd_kafka_message_broker_id(NULL) == -1);

        unusable_servers_are_reported(",,", 0);
        unusable_servers_are_reported("host:abc", 1);
        unusable_servers_are_reported("[::1,a:99999", 2);
        unusable_servers_are_reported("nosuch.invalid:1", 1);

        /* A producer without brokers returns an error at once. */
        conf = rd_kafka_conf_new();
        set(conf, "bootstrap.servers", "127.0.0.1:1");
        set(conf, "log_level", "0");
        consumer = rd_kafka_new(RD_KAFKA_CONSUMER, conf, errstr, sizeof(errstr));
        CHECK(rd_kafka_controllerid(consumer, 0) == -1);
        CHECK(rd_kafka_controllerid(consumer, 100) == -1);
        rd_kafka_destroy(consumer);

        /* With acks=0 there is no response, but the broker is known. */
        {
                rd_kafka_t *quick;
                conf = rd_kafka_conf_new();
                set(conf, "bootstrap.servers", servers);
                set(conf, "acks", "0");
                rd_kafka_conf_set_dr_msg_cb(conf, on_report);
                quick = rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof(errstr));
                reported = -2;
                CHECK(produce(quick, 1) == 0 && rd_kafka_flush(quick, TIMEOUT_MS) == 0 && reported == 2);
                rd_kafka_destroy(quick);
        }

        conf = rd_kafka_conf_new();
        set(conf, "bootstrap.servers", servers);
        set(conf, "group.id", "brokers");
        set(conf, "enable.partition.eof", "true");
        consumer = rd_kafka_new(RD_KAFKA_CONSUMER, conf, errstr, sizeof(errstr));
        list = rd_kafka_topic_partition_list_new(3);
        for (i = 0; i < 3; i++)
                rd_kafka_topic_partition_list_add(list, "brokers", i)->offset = RD_KAFKA_OFFSET_BEGINNING;
        CHECK(rd_kafka_assign(consumer, list) == 0);
        seen[0] = seen[1] = seen[2] = 0;
        while (!(seen[0] && seen[1] && seen[2])) {
                message = rd_kafka_consumer_poll(consumer, TIMEOUT_MS);
                if (!message)
                        break;
                CHECK(rd_kafka_message_broker_id(message) == 3 - message->partition);
                if (!message->err)
                        seen[message->partition] = 1;
                rd_kafka_message_destroy(message);
        }
        CHECK(seen[0] && seen[1] && seen[2]);
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_consumer_close(consumer);
        rd_kafka_destroy(consumer);
        rd_kafka_destroy(rk);
        return bad != 0;
}
