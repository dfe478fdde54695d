/* Codes with which brokers refuse Produce and ListOffsets requests: statuses of messages, and results of offset queries. */
#include "test.h"

#define PRODUCE 0
#define LIST_OFFSETS 2
#define MANY 1000

static rd_kafka_t *client(rd_kafka_type_t type, rd_kafka_conf_t *conf, int api, int code, size_t count) {
        char errstr[256];
        rd_kafka_resp_err_t codes[MANY];
        rd_kafka_mock_cluster_t *cluster;
        rd_kafka_t *rk;
        size_t i;
        for (i = 0; i < MANY; i++)
                codes[i] = (rd_kafka_resp_err_t)code;
        set(conf, "test.mock.num.brokers", "1");
        set(conf, "log_level", "0");
        set(conf, "retry.backoff.ms", "20");
        set(conf, "retry.backoff.max.ms", "50");
        if (type == RD_KAFKA_CONSUMER)
                set(conf, "group.id", "g");
        rk = rd_kafka_new(type, conf, errstr, sizeof(errstr));
        CHECK(rk != NULL);
        cluster = rd_kafka_handle_mock_cluster(rk);
        CHECK(rd_kafka_mock_topic_create(cluster, "t", 1, 1) == 0);
        rd_kafka_mock_topic_set_error(cluster, "gone", RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
        if (count > 0)
                rd_kafka_mock_push_request_errors_array(cluster, (int16_t)api, count, codes);
        return rk;
}

struct outcome {
        int count, code, status;
};

static void on_status(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
        struct outcome *outcome = opaque;
        CHECK(rk != NULL);
        outcome->count++;
        outcome->code = message->err;
        outcome->status = rd_kafka_message_status(message);
}

static void status_says_whether_the_message_may_be_written(int code, int status) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        struct outcome outcome = {0, 0, 0};
        rd_kafka_t *rk;
        set(conf, "retries", "1");
        rd_kafka_conf_set_dr_msg_cb(conf, on_status);
        rd_kafka_conf_set_opaque(conf, &outcome);
        rk = client(RD_KAFKA_PRODUCER, conf, PRODUCE, code, 2);
        CHECK(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_VALUE("x", 1),
                                RD_KAFKA_V_END) == 0);
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
        CHECK(outcome.count == 1 && outcome.code == code && outcome.status == status);
        rd_kafka_destroy(rk);
}

static void missing_partitions_keep_the_time_that_was_asked_for(void) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(2);
        rd_kafka_t *rk = client(RD_KAFKA_CONSUMER, rd_kafka_conf_new(), 0, 0, 0);
        int64_t low = -5, high = -5;
        rd_kafka_topic_partition_list_add(list, "gone", 0)->offset = 5;
        rd_kafka_topic_partition_list_add(list, "t", 7)->offset = 6;
        CHECK(rd_kafka_offsets_for_times(rk, list, TIMEOUT_MS) == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION);
        CHECK(list->elems[0].err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART && list->elems[0].offset == 5);
        CHECK(list->elems[1].err == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION && list->elems[1].offset == 6);
        CHECK(rd_kafka_query_watermark_offsets(rk, "gone", 0, &low, &high, TIMEOUT_MS) ==
              RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION);
        CHECK(low == -5 && high == -5);
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_destroy(rk);
}

static void refusals_that_go_on_are_reported_before_the_timeout(void) {
        rd_kafka_t *rk = client(RD_KAFKA_CONSUMER, rd_kafka_conf_new(), LIST_OFFSETS,
                                RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION, MANY);
        int64_t low = -5, high = -5;
        long since = millis();
        CHECK(rd_kafka_query_watermark_offsets(rk, "t", 0, &low, &high, TIMEOUT_MS) ==
              RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION);
        CHECK(millis() - since < TIMEOUT_MS / 2 && low == -5 && high == -5);
        rd_kafka_destroy(rk);
}

static void broker_that_does_not_lead_is_asked_once(int code) {
        rd_kafka_t *rk = client(RD_KAFKA_CONSUMER, rd_kafka_conf_new(), 0, 0, 0);
        rd_kafka_mock_cluster_t *cluster = rd_kafka_handle_mock_cluster(rk);
        rd_kafka_mock_request_t **requests;
        int64_t low = -5, high = -5;
        size_t count, i;
        int queries = 0;
        CHECK(rd_kafka_query_watermark_offsets(rk, "t", 0, &low, &high, TIMEOUT_MS) == 0);
        rd_kafka_mock_start_request_tracking(cluster);
        rd_kafka_mock_push_request_errors(cluster, LIST_OFFSETS, 2, code, code);
        CHECK(rd_kafka_query_watermark_offsets(rk, "t", 0, &low, &high, TIMEOUT_MS) == (rd_kafka_resp_err_t)code);
        requests = rd_kafka_mock_get_requests(cluster, &count);
        for (i = 0; i < count; i++)
                queries += rd_kafka_mock_request_api_key(requests[i]) == LIST_OFFSETS;
        CHECK(queries <= 2);
        rd_kafka_mock_request_destroy_array(requests, count);
        /* The metadata are newer by then. */
        UNTIL(rd_kafka_query_watermark_offsets(rk, "t", 0, &low, &high, TIMEOUT_MS) == 0, usleep(1000));
        rd_kafka_destroy(rk);
}

static void query_without_time_says_whether_there_are_brokers(void) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        int64_t low = -5, high = -5;
        rd_kafka_t *rk;
        set(conf, "bootstrap.servers", "127.0.0.1:1");
        set(conf, "log_level", "0");
        rk = start(RD_KAFKA_CONSUMER, conf);
        rd_kafka_topic_partition_list_add(list, "t", 0)->offset = 5;
        CHECK(rd_kafka_offsets_for_times(rk, list, 0) == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN);
        CHECK(list->elems[0].err == RD_KAFKA_RESP_ERR__IN_PROGRESS && list->elems[0].offset == 5);
        CHECK(rd_kafka_query_watermark_offsets(rk, "t", 0, &low, &high, 0) == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN);
        rd_kafka_destroy(rk);
        rk = client(RD_KAFKA_CONSUMER, rd_kafka_conf_new(), 0, 0, 0);
        CHECK(rd_kafka_query_watermark_offsets(rk, "t", 0, &low, &high, TIMEOUT_MS) == 0);
        CHECK(rd_kafka_offsets_for_times(rk, list, 0) == RD_KAFKA_RESP_ERR__TIMED_OUT);
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_destroy(rk);
}

static void refused_start_offset_is_a_reset_error_where_resets_are_errors(void) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        static const int expected[] = {RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED};
        rd_kafka_t *rk;
        int i;
        set(conf, "auto.offset.reset", "error");
        rk = client(RD_KAFKA_CONSUMER, conf, LIST_OFFSETS, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, MANY);
        rd_kafka_poll_set_consumer(rk);
        rd_kafka_topic_partition_list_add(list, "t", 0)->offset = RD_KAFKA_OFFSET_BEGINNING;
        CHECK(rd_kafka_assign(rk, list) == 0);
        for (i = 0; i < 2; i++) {
                rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, TIMEOUT_MS);
                CHECK(message != NULL && message->err == expected[i] && message->partition == 0);
                CHECK(strcmp(rd_kafka_topic_name(message->rkt), "t") == 0);
                rd_kafka_message_destroy(message);
        }
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_destroy(rk);
}

int main(void) {
        status_says_whether_the_message_may_be_written(RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR,
                                                       RD_KAFKA_MSG_STATUS_NOT_PERSISTED);
        status_says_whether_the_message_may_be_written(RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS,
                                                       RD_KAFKA_MSG_STATUS_NOT_PERSISTED);
        status_says_whether_the_message_may_be_written(RD_KAFKA_RESP_ERR_INVALID_TXN_STATE,
                                                       RD_KAFKA_MSG_STATUS_NOT_PERSISTED);
        status_says_whether_the_message_may_be_written(RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND,
                                                       RD_KAFKA_MSG_STATUS_POSSIBLY_PERSISTED);
        status_says_whether_the_message_may_be_written(RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
                                                       RD_KAFKA_MSG_STATUS_POSSIBLY_PERSISTED);
        missing_partitions_keep_the_time_that_was_asked_for();
        refusals_that_go_on_are_reported_before_the_timeout();
        broker_that_does_not_lead_is_asked_once(RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION);
        broker_that_does_not_lead_is_asked_once(RD_KAFKA_RESP_ERR_REPLICA_NOT_AVAILABLE);
        query_without_time_says_whether_there_are_brokers();
        refused_start_offset_is_a_reset_error_where_resets_are_errors();
        return bad != 0;
}
