/* The handle that callbacks get while the client is destroyed: it still has its name and the application's pointer. */
#include "test.h"

static const char *servers;
static int opaque;
static volatile int calls, destroys;

static void check_handle(const rd_kafka_t *rk) {
        CHECK(rd_kafka_opaque(rk) == &opaque);
        CHECK(strstr(rd_kafka_name(rk), "destroying") == rd_kafka_name(rk));
        CHECK(rd_kafka_type(rk) == RD_KAFKA_PRODUCER || rd_kafka_type(rk) == RD_KAFKA_CONSUMER);
        calls++;
}

static void on_log(const rd_kafka_t *rk, int level, const char *facility, const char *text) {
        (void)level, (void)facility, (void)text;
        /* Lines that the client writes before rd_kafka_new() returns are not of interest. */
        if (destroys)
                check_handle(rk);
}

static rd_kafka_resp_err_t on_destroy(rd_kafka_t *rk, void *ic_opaque) {
        (void)ic_opaque;
        check_handle(rk);
        /* The handle was given up already. */
        rd_kafka_destroy(rk);
        check_handle(rk);
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_thread_exit(rd_kafka_t *rk, rd_kafka_thread_type_t type, const char *name, void *ic_opaque) {
        (void)type, (void)name, (void)ic_opaque;
        check_handle(rk);
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_state_change(rd_kafka_t *rk, int32_t broker, const char *secproto, const char *name, int port,
                                           const char *state, void *ic_opaque) {
        (void)broker, (void)secproto, (void)name, (void)port, (void)state, (void)ic_opaque;
        check_handle(rk);
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t
on_new(rd_kafka_t *rk, const rd_kafka_conf_t *conf, void *ic_opaque, char *errstr, size_t errstr_size) {
        (void)conf, (void)ic_opaque, (void)errstr, (void)errstr_size;
        CHECK(rd_kafka_interceptor_add_on_destroy(rk, "destroying", on_destroy, NULL) == 0);
        CHECK(rd_kafka_interceptor_add_on_thread_exit(rk, "destroying", on_thread_exit, NULL) == 0);
        CHECK(rd_kafka_interceptor_add_on_broker_state_change(rk, "destroying", on_state_change, NULL) == 0);
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static void on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *list, void *pointer) {
        CHECK(pointer == &opaque);
        check_handle(rk);
        CHECK(rd_kafka_assign(rk, err == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS ? list : NULL) == 0);
}

static void destroys_client(rd_kafka_type_t type, int flags) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_t *rk;
        set(conf, "bootstrap.servers", servers);
        set(conf, "client.id", "destroying");
        set(conf, "debug", "all");
        rd_kafka_conf_set_log_cb(conf, on_log);
        rd_kafka_conf_set_opaque(conf, &opaque);
        CHECK(rd_kafka_conf_interceptor_add_on_new(conf, "destroying", on_new, NULL) == 0);
        if (type == RD_KAFKA_CONSUMER) {
                set(conf, "group.id", "destroying");
                set(conf, "heartbeat.interval.ms", "100");
                rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
        }
        destroys = 0;
        rk = start(type, conf);
        if (type == RD_KAFKA_CONSUMER) {
                rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
                rd_kafka_topic_partition_list_t *assigned;
                int count = 0;
                rd_kafka_topic_partition_list_add(list, "destroying", RD_KAFKA_PARTITION_UA);
                CHECK(rd_kafka_subscribe(rk, list) == 0);
                rd_kafka_topic_partition_list_destroy(list);
                UNTIL(count > 0, {
                        rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, 100);
                        if (message)
                                rd_kafka_message_destroy(message);
                        CHECK(rd_kafka_assignment(rk, &assigned) == 0);
                        count = assigned->cnt;
                        rd_kafka_topic_partition_list_destroy(assigned);
                });
        }
        calls = 0;
        destroys = 1;
        rd_kafka_destroy_flags(rk, flags);
        CHECK(calls > 2);
}

int main(void) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_t *rk;
        set(conf, "test.mock.num.brokers", "1");
        set(conf, "log_level", "2");
        rk = start(RD_KAFKA_PRODUCER, conf);
        servers = rd_kafka_mock_cluster_bootstraps(rd_kafka_handle_mock_cluster(rk));
        CHECK(rd_kafka_mock_topic_create(rd_kafka_handle_mock_cluster(rk), "destroying", 1, 1) == 0);
        destroys_client(RD_KAFKA_PRODUCER, 0);
        destroys_client(RD_KAFKA_CONSUMER, 0);
        destroys_client(RD_KAFKA_CONSUMER, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
        destroys = 0;
        rd_kafka_destroy(rk);
        return bad != 0;
}
