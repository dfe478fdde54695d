/* The cluster inside the process, as an application's tests use it: injected errors, leader changes, brokers that go
 * down, round-trip times, recorded requests; and calls with invalid arguments. */
#include "test.h"

#define PRODUCE 0
#define FETCH 1
#define METADATA 3
#define API_VERSIONS 18

static int64_t now_us(void) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int reports;
static rd_kafka_resp_err_t reported;
static int32_t reported_partition;

static void on_report(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
        (void)rk;
        (void)opaque;
        reports++;
        reported = message->err;
        reported_partition = message->partition;
}

static rd_kafka_t *client(rd_kafka_type_t type, const char *servers, const char *name, const char *value) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        set(conf, "bootstrap.servers", servers);
        set(conf, "log_level", "2");
        if (type == RD_KAFKA_CONSUMER)
                set(conf, "group.id", "test");
        set(conf, "linger.ms", "0");
        set(conf, "retry.backoff.ms", "50");
        set(conf, "reconnect.backoff.ms", "20");
        set(conf, "reconnect.backoff.max.ms", "100");
        if (name)
                set(conf, name, value);
        rd_kafka_conf_set_dr_msg_cb(conf, on_report);
        return start(type, conf);
}

/* Produces one message and returns the error of its report. */
static rd_kafka_resp_err_t produce(rd_kafka_t *rk, const char *topic, int32_t partition) {
        rd_kafka_resp_err_t err;
        reports = 0;
        reported = RD_KAFKA_RESP_ERR__END;
        err = rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(partition),
                                RD_KAFKA_V_VALUE((void *)"value", 5), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                                RD_KAFKA_V_END);
        if (err)
                return err;
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
        CHECK(reports == 1);
        return reported;
}

/* Returns the number of requests of an API since tracking began, to one broker or to all. */
static int requests(rd_kafka_mock_cluster_t *cluster, int16_t api, int32_t broker) {
        size_t cnt = 99, i;
        int count = 0;
        int64_t before = 0;
        rd_kafka_mock_request_t **list = rd_kafka_mock_get_requests(cluster, &cnt);
        CHECK(list != NULL);
        for (i = 0; i < cnt; i++) {
                if (rd_kafka_mock_request_api_key(list[i]) == api &&
                    (broker == -1 || rd_kafka_mock_request_id(list[i]) == broker))
                        count++;
                CHECK(rd_kafka_mock_request_timestamp(list[i]) >= before);
                before = rd_kafka_mock_request_timestamp(list[i]);
                CHECK(before <= now_us() && now_us() - before < 600 * (int64_t)1000000);
        }
        rd_kafka_mock_request_destroy_array(list, cnt);
        return count;
}

static int32_t leader_of(rd_kafka_t *rk, const char *topic, int32_t partition, int *broker_cnt,
                         rd_kafka_resp_err_t *topic_err) {
        const struct rd_kafka_metadata *metadata;
        rd_kafka_topic_t *rkt = rd_kafka_topic_new(rk, topic, NULL);
        int32_t leader = -2;
        if (topic_err)
                *topic_err = 0;
        CHECK(rd_kafka_metadata(rk, 0, rkt, &metadata, TIMEOUT_MS) == 0);
        if (broker_cnt)
                *broker_cnt = metadata->broker_cnt;
        if (metadata->topic_cnt == 1) {
                if (topic_err)
                        *topic_err = metadata->topics[0].err;
                if (metadata->topics[0].partition_cnt > partition)
                        leader = metadata->topics[0].partitions[partition].leader;
        }
        rd_kafka_metadata_destroy(metadata);
        rd_kafka_topic_destroy(rkt);
        return leader;
}

static void errors_are_retried_or_reported(rd_kafka_mock_cluster_t *cluster, const char *servers) {
        rd_kafka_resp_err_t errors[2];
        rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, servers, NULL, NULL);
        size_t left = 99;
        int64_t began;
        CHECK(rd_kafka_mock_topic_create(cluster, "errors", 1, 1) == 0);
        CHECK(rd_kafka_mock_partition_set_leader(cluster, "errors", 0, 1) == 0);
        CHECK(produce(rk, "errors", 0) == 0);

        /* Retriable errors are retried: two refusals, one success. */
        rd_kafka_mock_start_request_tracking(cluster);
        rd_kafka_mock_push_request_errors(cluster, PRODUCE, 2, RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS,
                                          RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS);
        CHECK(produce(rk, "errors", 0) == 0);
        CHECK(requests(cluster, PRODUCE, -1) == 3);
        CHECK(requests(cluster, PRODUCE, 1) == 3 && requests(cluster, PRODUCE, 2) == 0);

        /* Permanent errors are reported at once. */
        rd_kafka_mock_clear_requests(cluster);
        rd_kafka_mock_push_request_errors(cluster, PRODUCE, 1, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
        CHECK(produce(rk, "errors", 0) == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
        CHECK(requests(cluster, PRODUCE, -1) == 1);

        /* An array; a request that is let through; the remaining errors are removed. */
        errors[0] = RD_KAFKA_RESP_ERR_NO_ERROR;
        errors[1] = RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE;
        rd_kafka_mock_push_request_errors_array(cluster, PRODUCE, 2, errors);
        CHECK(produce(rk, "errors", 0) == 0);
        CHECK(produce(rk, "errors", 0) == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
        rd_kafka_mock_push_request_errors_array(cluster, PRODUCE, 1, errors + 1);
        rd_kafka_mock_clear_request_errors(cluster, PRODUCE);
        CHECK(produce(rk, "errors", 0) == 0);

        /* A connection that is closed. */
        rd_kafka_mock_clear_requests(cluster);
        rd_kafka_mock_push_request_errors(cluster, PRODUCE, 1, RD_KAFKA_RESP_ERR__TRANSPORT);
        CHECK(produce(rk, "errors", 0) == 0);
        CHECK(requests(cluster, PRODUCE, -1) == 2);
        CHECK(requests(cluster, API_VERSIONS, 1) >= 1);

        /* A broker's own errors, with a delay, precede the cluster's. */
        rd_kafka_mock_push_request_errors(cluster, PRODUCE, 1, RD_KAFKA_RESP_ERR_INVALID_MSG);
        CHECK(rd_kafka_mock_broker_push_request_error_rtts(cluster, 1, PRODUCE, 2, RD_KAFKA_RESP_ERR_NO_ERROR, 300,
                                                           RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, 0) == 0);
        CHECK(rd_kafka_mock_broker_error_stack_cnt(cluster, 1, PRODUCE, &left) == 0 && left == 2);
        began = now_us();
        CHECK(produce(rk, "errors", 0) == 0);
        CHECK(now_us() - began >= 300000);
        CHECK(rd_kafka_mock_broker_error_stack_cnt(cluster, 1, PRODUCE, &left) == 0 && left == 1);
        CHECK(produce(rk, "errors", 0) == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
        CHECK(rd_kafka_mock_broker_error_stack_cnt(cluster, 1, PRODUCE, &left) == 0 && left == 0);
        rd_kafka_mock_clear_request_errors(cluster, PRODUCE);

        /* Only one partition's part fails. */
        CHECK(rd_kafka_mock_topic_create(cluster, "parts", 2, 1) == 0);
        CHECK(rd_kafka_mock_partition_push_request_errors(cluster, "parts", 1, PRODUCE, 1,
                                                          RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED) == 0);
        CHECK(produce(rk, "parts", 0) == 0);
        CHECK(produce(rk, "parts", 1) == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
        CHECK(produce(rk, "parts", 1) == 0);

        /* Requests after the end of tracking are not counted, earlier ones stay. */
        rd_kafka_mock_clear_requests(cluster);
        CHECK(requests(cluster, PRODUCE, -1) == 0);
        CHECK(produce(rk, "errors", 0) == 0);
        CHECK(requests(cluster, PRODUCE, -1) == 1);
        /* The end of tracking removes the requests. */
        rd_kafka_mock_stop_request_tracking(cluster);
        CHECK(requests(cluster, PRODUCE, -1) == 0);
        CHECK(produce(rk, "errors", 0) == 0);
        CHECK(requests(cluster, PRODUCE, -1) == 0);
        rd_kafka_destroy(rk);
}

static void leaders_move_and_brokers_go(rd_kafka_mock_cluster_t *cluster, const char *servers) {
        rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, servers, NULL, NULL);
        rd_kafka_resp_err_t err;
        int brokers = 0;
        int64_t began;
        CHECK(rd_kafka_mock_topic_create(cluster, "moves", 1, 3) == 0);
        CHECK(rd_kafka_mock_partition_set_leader(cluster, "moves", 0, 2) == 0);
        CHECK(leader_of(rk, "moves", 0, &brokers, NULL) == 2 && brokers == 3);
        CHECK(produce(rk, "moves", 0) == 0);
        rd_kafka_mock_start_request_tracking(cluster);
        CHECK(rd_kafka_mock_partition_set_leader(cluster, "moves", 0, 3) == 0);
        CHECK(produce(rk, "moves", 0) == 0);
        CHECK(requests(cluster, PRODUCE, 3) == 1);
        rd_kafka_mock_stop_request_tracking(cluster);
        CHECK(leader_of(rk, "moves", 0, NULL, NULL) == 3);
        CHECK(rd_kafka_mock_partition_set_leader(cluster, "moves", 0, -1) == 0);
        CHECK(leader_of(rk, "moves", 0, NULL, NULL) == -1);
        CHECK(rd_kafka_mock_partition_set_leader(cluster, "moves", 0, 3) == 0);

        /* A leader and an epoch that are only in the next metadata. A producer that knows no leader would ask for it, too. */
        CHECK(leader_of(rk, "moves", 0, NULL, NULL) == 3);
        CHECK(rd_kafka_mock_partition_push_leader_response(cluster, "moves", 0, 1, 100) == 0);
        CHECK(leader_of(rk, "moves", 0, NULL, NULL) == 1);
        CHECK(leader_of(rk, "moves", 0, NULL, NULL) == 3);
        rd_kafka_destroy(rk);

        /* Round-trip times. */
        rk = client(RD_KAFKA_PRODUCER, servers, NULL, NULL);
        CHECK(produce(rk, "moves", 0) == 0);
        CHECK(rd_kafka_mock_broker_set_rtt(cluster, 3, 250) == 0);
        began = now_us();
        CHECK(produce(rk, "moves", 0) == 0);
        CHECK(now_us() - began >= 250000);
        CHECK(rd_kafka_mock_broker_set_rtt(cluster, -1, 0) == 0);

        /* A broker that is down keeps its partitions: messages wait until it is up again, or until they expire. */
        CHECK(rd_kafka_mock_broker_set_down(cluster, 3) == 0);
        CHECK(leader_of(rk, "moves", 0, &brokers, NULL) == 3 && brokers == 3);
        reports = 0;
        CHECK(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("moves"), RD_KAFKA_V_PARTITION(0),
                                RD_KAFKA_V_VALUE((void *)"wait", 4), RD_KAFKA_V_END) == 0);
        CHECK(rd_kafka_flush(rk, 300) == RD_KAFKA_RESP_ERR__TIMED_OUT && reports == 0);
        CHECK(rd_kafka_mock_broker_set_up(cluster, 3) == 0);
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0 && reports == 1 && reported == 0);
        rd_kafka_destroy(rk);
        rk = client(RD_KAFKA_PRODUCER, servers, "message.timeout.ms", "500");
        CHECK(rd_kafka_mock_broker_set_down(cluster, -1) == 0);
        CHECK(produce(rk, "moves", 0) == RD_KAFKA_RESP_ERR__MSG_TIMED_OUT);
        CHECK(rd_kafka_mock_broker_set_up(cluster, -1) == 0);
        rd_kafka_destroy(rk);

        /* Errors of a topic. */
        rk = client(RD_KAFKA_PRODUCER, servers, NULL, NULL);
        rd_kafka_mock_topic_set_error(cluster, "moves", RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
        leader_of(rk, "moves", 0, NULL, &err);
        CHECK(err == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
        rd_kafka_mock_topic_set_error(cluster, "moves", RD_KAFKA_RESP_ERR_NO_ERROR);
        CHECK(leader_of(rk, "moves", 0, NULL, &err) == 3 && !err);

        /* Brokers that are not in metadata, that are removed, and that are added. */
        CHECK(rd_kafka_mock_broker_remove_from_metadata(cluster, 2) == 0);
        leader_of(rk, "moves", 0, &brokers, NULL);
        CHECK(brokers == 2);
        CHECK(rd_kafka_mock_broker_decommission(cluster, 3) == 0);
        CHECK(leader_of(rk, "moves", 0, &brokers, NULL) == 1 || brokers == 1);
        CHECK(rd_kafka_mock_partition_set_leader(cluster, "moves", 0, 1) == 0);
        /* The producer's next metadata lifts the refusal. */
        UNTIL(produce(rk, "moves", 0) == 0, usleep(20000));
        CHECK(rd_kafka_mock_broker_add(cluster, 7) == 0);
        CHECK(rd_kafka_mock_broker_add(cluster, 0) == 0);
        leader_of(rk, "moves", 0, &brokers, NULL);
        CHECK(brokers == 3);
        CHECK(rd_kafka_mock_partition_set_leader(cluster, "moves", 0, 7) == 0);
        CHECK(produce(rk, "moves", 0) == 0);
        CHECK(rd_kafka_mock_partition_set_leader(cluster, "moves", 0, 0) == 0);
        CHECK(produce(rk, "moves", 0) == 0);
        CHECK(rd_kafka_mock_broker_add(cluster, 7) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_mock_broker_add(cluster, -1) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        rd_kafka_destroy(rk);
}

static void consumers_are_sent_to_followers(rd_kafka_mock_cluster_t *cluster, const char *servers) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, servers, NULL, NULL);
        rd_kafka_message_t *message;
        int64_t low, high;
        int i;
        CHECK(rd_kafka_mock_topic_create(cluster, "follow", 1, 1) == 0);
        CHECK(rd_kafka_mock_partition_set_leader(cluster, "follow", 0, 1) == 0);
        for (i = 0; i < 3; i++)
                CHECK(produce(rk, "follow", 0) == 0);
        rd_kafka_destroy(rk);
        CHECK(rd_kafka_mock_partition_set_follower(cluster, "follow", 0, 2) == 0);
        CHECK(rd_kafka_mock_broker_set_rack(cluster, 2, "near") == 0);
        rd_kafka_mock_start_request_tracking(cluster);
        rd_kafka_mock_clear_requests(cluster);
        rk = client(RD_KAFKA_CONSUMER, servers, "client.rack", "near");
        rd_kafka_topic_partition_list_add(list, "follow", 0)->offset = RD_KAFKA_OFFSET_BEGINNING;
        CHECK(rd_kafka_assign(rk, list) == 0);
        for (i = 0; i < 3; i++) {
                message = rd_kafka_consumer_poll(rk, TIMEOUT_MS);
                CHECK(message && !message->err && message->offset == i);
                if (message)
                        rd_kafka_message_destroy(message);
        }
        CHECK(requests(cluster, FETCH, 2) >= 1);
        rd_kafka_mock_stop_request_tracking(cluster);
        rd_kafka_destroy(rk);

        /* A follower that lags serves the batch at its high watermark, and nothing behind that one. */
        CHECK(rd_kafka_mock_partition_set_follower_wmarks(cluster, "follow", 0, 0, 1) == 0);
        rk = client(RD_KAFKA_CONSUMER, servers, "fetch.error.backoff.ms", "50");
        CHECK(rd_kafka_assign(rk, list) == 0);
        for (i = 0; i < 2; i++) {
                message = rd_kafka_consumer_poll(rk, TIMEOUT_MS);
                CHECK(message && !message->err && message->offset == i);
                rd_kafka_message_destroy(message);
        }
        CHECK(rd_kafka_consumer_poll(rk, 500) == NULL);
        CHECK(rd_kafka_mock_partition_set_follower_wmarks(cluster, "follow", 0, -1, -1) == 0);
        message = rd_kafka_consumer_poll(rk, TIMEOUT_MS);
        CHECK(message && !message->err && message->offset == 2);
        rd_kafka_message_destroy(message);

        /* Records that are deleted. */
        CHECK(rd_kafka_mock_partition_delete_records(cluster, "follow", 0, 2) == 0);
        CHECK(rd_kafka_query_watermark_offsets(rk, "follow", 0, &low, &high, TIMEOUT_MS) == 0 && low == 2 && high == 3);
        CHECK(rd_kafka_mock_partition_delete_records(cluster, "follow", 0, 4) == RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE);
        CHECK(rd_kafka_mock_topic_delete(cluster, "follow") == 0);
        CHECK(rd_kafka_mock_topic_delete(cluster, "follow") == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
        rd_kafka_destroy(rk);
        rd_kafka_topic_partition_list_destroy(list);
}

static void calls_that_make_no_sense(rd_kafka_t *rk, rd_kafka_mock_cluster_t *cluster) {
        size_t cnt = 1;
        CHECK(rd_kafka_mock_cluster_new(NULL, 1) == NULL);
        CHECK(rd_kafka_mock_cluster_new(rk, 0) == NULL);
        CHECK(rd_kafka_mock_cluster_new(rk, -1) == NULL);
        CHECK(rd_kafka_mock_cluster_new(rk, 2147483647) == NULL);
        CHECK(rd_kafka_handle_mock_cluster(NULL) == NULL);
        CHECK(rd_kafka_handle_mock_cluster(rk) == NULL);
        CHECK(rd_kafka_mock_cluster_handle(NULL) == NULL);
        CHECK(rd_kafka_mock_cluster_bootstraps(NULL) == NULL);
        rd_kafka_mock_cluster_destroy(NULL);
        rd_kafka_mock_push_request_errors(NULL, PRODUCE, 1, RD_KAFKA_RESP_ERR_INVALID_MSG);
        rd_kafka_mock_push_request_errors_array(cluster, PRODUCE, 1, NULL);
        rd_kafka_mock_push_request_errors_array(NULL, PRODUCE, 0, NULL);
        rd_kafka_mock_clear_request_errors(NULL, PRODUCE);
        CHECK(rd_kafka_mock_broker_push_request_error_rtts(NULL, 1, PRODUCE, 0) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_mock_broker_push_request_error_rtts(cluster, 99, PRODUCE, 1, RD_KAFKA_RESP_ERR_INVALID_MSG, 0) ==
              RD_KAFKA_RESP_ERR__UNKNOWN_BROKER);
        CHECK(rd_kafka_mock_broker_push_request_error_rtts(cluster, 1, PRODUCE, 1, RD_KAFKA_RESP_ERR_INVALID_MSG, -1) ==
              RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_mock_broker_push_request_error_rtts(cluster, 1, -1, 1, RD_KAFKA_RESP_ERR_INVALID_MSG, 1) ==
              RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_mock_broker_push_request_error_rtts(cluster, 1, PRODUCE, 1, 99999, 1) ==
              RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_mock_broker_push_request_error_rtts(cluster, 1, PRODUCE, (size_t)-1) ==
              RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_mock_broker_error_stack_cnt(cluster, 99, PRODUCE, &cnt) == RD_KAFKA_RESP_ERR__UNKNOWN_BROKER);
        CHECK(rd_kafka_mock_broker_error_stack_cnt(cluster, 1, PRODUCE, NULL) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_mock_broker_error_stack_cnt(cluster, 1, PRODUCE, &cnt) == 0 && cnt == 0);
        CHECK(rd_kafka_mock_partition_push_request_errors(cluster, NULL, 0, PRODUCE, 0) ==
              RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_mock_partition_push_request_errors(cluster, "absent", 5000, PRODUCE, 0) ==
              RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
        CHECK(rd_kafka_mock_topic_create(NULL, "t", 1, 1) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_mock_topic_create(cluster, NULL, 1, 1) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_mock_topic_create(cluster, "errors", 1, 1) == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS);
        CHECK(rd_kafka_mock_topic_create(cluster, "t", 0, 1) == RD_KAFKA_RESP_ERR_INVALID_PARTITIONS);
        CHECK(rd_kafka_mock_topic_create(cluster, "t", -2, 1) == RD_KAFKA_RESP_ERR_INVALID_PARTITIONS);
        CHECK(rd_kafka_mock_topic_create(cluster, "t", 2147483647, 1) == RD_KAFKA_RESP_ERR_INVALID_PARTITIONS);
        CHECK(rd_kafka_mock_topic_create(cluster, "t", 1, 99) == RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR);
        CHECK(rd_kafka_mock_topic_create(cluster, "t", 1, 2147483647) == RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR);
        CHECK(rd_kafka_mock_topic_create(cluster, "no/name", 1, 1) == RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION);
        CHECK(rd_kafka_mock_topic_create(cluster, "", 1, 1) == RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION);
        rd_kafka_mock_topic_set_error(cluster, NULL, RD_KAFKA_RESP_ERR_INVALID_MSG);
        CHECK(rd_kafka_mock_topic_delete(cluster, NULL) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_mock_topic_delete(cluster, "nobody") == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
        CHECK(rd_kafka_mock_partition_delete_records(cluster, "nobody", 0, 0) ==
              RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
        CHECK(rd_kafka_mock_partition_delete_records(cluster, "errors", 0, -1) ==
              RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE);
        CHECK(rd_kafka_mock_partition_set_leader(cluster, "errors", 0, 99) == RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE);
        CHECK(rd_kafka_mock_partition_set_leader(cluster, "errors", 99, 1) == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
        CHECK(rd_kafka_mock_partition_set_leader(cluster, "errors", -1, 1) == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
        CHECK(rd_kafka_mock_partition_set_leader(cluster, "made-here", 3, 1) == 0);
        CHECK(rd_kafka_mock_partition_set_follower(cluster, "errors", 0, 99) == 0);
        CHECK(rd_kafka_mock_partition_set_follower(cluster, "errors", 0, -1) == 0);
        CHECK(rd_kafka_mock_partition_set_follower_wmarks(cluster, "errors", 0, -2, 0) ==
              RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_mock_partition_push_leader_response(cluster, NULL, 0, 1, 1) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_mock_broker_set_down(cluster, 99) == RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE);
        CHECK(rd_kafka_mock_broker_set_up(cluster, -2) == RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE);
        CHECK(rd_kafka_mock_broker_set_rtt(cluster, 99, 1) == RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE);
        CHECK(rd_kafka_mock_broker_set_rtt(cluster, 1, -1) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_mock_broker_set_rack(cluster, 99, "r") == RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE);
        CHECK(rd_kafka_mock_broker_set_rack(cluster, 1, NULL) == 0);
        CHECK(rd_kafka_mock_broker_decommission(cluster, 99) == RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE);
        CHECK(rd_kafka_mock_broker_remove_from_metadata(cluster, 99) == RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE);
        rd_kafka_mock_broker_set_host_port(cluster, 1, NULL, 1);
        rd_kafka_mock_broker_set_host_port(cluster, 1, "127.0.0.1", -1);
        rd_kafka_mock_broker_set_host_port(cluster, 99, "127.0.0.1", 1);
        CHECK(rd_kafka_mock_coordinator_set(cluster, "group", "g", 1) == 0);
        CHECK(rd_kafka_mock_coordinator_set(cluster, "transaction", "t", 99) == 0);
        CHECK(rd_kafka_mock_coordinator_set(cluster, "other", "g", 1) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_mock_coordinator_set(cluster, NULL, "g", 1) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_mock_coordinator_set(cluster, "group", NULL, 1) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_mock_set_apiversion(cluster, -1, 0, 1) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_mock_set_apiversion(cluster, 9999, 0, 1) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_mock_set_apiversion(cluster, PRODUCE, 0, 999) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_mock_set_apiversion(cluster, PRODUCE, 5, 4) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_mock_set_apiversion(NULL, PRODUCE, 0, 1) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        rd_kafka_mock_group_initial_rebalance_delay_ms(NULL, 1);
        rd_kafka_mock_group_initial_rebalance_delay_ms(cluster, -1);
        rd_kafka_mock_group_initial_rebalance_delay_ms(cluster, 100);
        rd_kafka_mock_start_request_tracking(NULL);
        rd_kafka_mock_stop_request_tracking(NULL);
        rd_kafka_mock_clear_requests(NULL);
        CHECK(rd_kafka_mock_get_requests(NULL, &cnt) == NULL && cnt == 0);
        CHECK(rd_kafka_mock_get_requests(cluster, NULL) == NULL);
        rd_kafka_mock_request_destroy(NULL);
        rd_kafka_mock_request_destroy_array(NULL, 5);
        CHECK(rd_kafka_mock_request_id(NULL) == -1 && rd_kafka_mock_request_api_key(NULL) == -1);
        CHECK(rd_kafka_mock_request_timestamp(NULL) == 0);
}

/* An application that only sets a property. */
static void a_client_starts_its_own_cluster(void) {
        rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, "127.0.0.1:1", "test.mock.num.brokers", "2");
        rd_kafka_mock_cluster_t *cluster = rd_kafka_handle_mock_cluster(rk);
        rd_kafka_t *other;
        int brokers = 0;
        CHECK(rk && cluster);
        if (!cluster)
                return;
        CHECK(rd_kafka_mock_cluster_handle(cluster) == rk);
        CHECK(produce(rk, "own", 0) == 0);
        leader_of(rk, "own", 0, &brokers, NULL);
        CHECK(brokers == 2);
        other = client(RD_KAFKA_PRODUCER, rd_kafka_mock_cluster_bootstraps(cluster), NULL, NULL);
        CHECK(produce(other, "own", 1) == 0);
        rd_kafka_destroy(other);
        rd_kafka_mock_push_request_errors(cluster, PRODUCE, 1, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
        CHECK(produce(rk, "own", 0) == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
        /* The cluster ends with its client, not earlier. */
        rd_kafka_mock_cluster_destroy(cluster);
        CHECK(produce(rk, "own", 0) == 0);
        rd_kafka_destroy(rk);
}

static void brokers_that_left_are_forgotten(void) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_mock_cluster_t *cluster;
        const rd_kafka_metadata_t *metadata;
        int32_t *ids;
        size_t count;
        rd_kafka_t *rk;
        set(conf, "test.mock.num.brokers", "3");
        set(conf, "log_level", "0");
        rk = start(RD_KAFKA_PRODUCER, conf);
        cluster = rd_kafka_handle_mock_cluster(rk);
        CHECK(rd_kafka_metadata(rk, 1, NULL, &metadata, TIMEOUT_MS) == 0);
        rd_kafka_metadata_destroy(metadata);
        CHECK(rd_kafka_mock_broker_decommission(cluster, 3) == 0);
        UNTIL(rd_kafka_metadata(rk, 1, NULL, &metadata, TIMEOUT_MS) == 0 && metadata->broker_cnt == 2,
              rd_kafka_metadata_destroy(metadata));
        rd_kafka_metadata_destroy(metadata);
        ids = rd_kafka_brokers_learned_ids(rk, &count);
        CHECK(ids && count == 2 && ids[0] == 1 && ids[1] == 2);
        rd_kafka_mem_free(rk, ids);
        rd_kafka_destroy(rk);
}

static void a_fresh_client_describes_all_topics_and_knows_the_brokers(const char *servers) {
        rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, servers, NULL, NULL);
        const rd_kafka_metadata_t *metadata;
        rd_kafka_topic_t *topic;
        int32_t *ids;
        size_t count;
        int all;
        CHECK(rd_kafka_metadata(rk, 1, NULL, &metadata, TIMEOUT_MS) == 0);
        all = metadata->topic_cnt;
        rd_kafka_metadata_destroy(metadata);
        CHECK(rd_kafka_metadata(rk, 0, NULL, &metadata, TIMEOUT_MS) == 0);
        CHECK(all >= 2 && metadata->topic_cnt == all && metadata->broker_cnt == 3);
        rd_kafka_metadata_destroy(metadata);
        ids = rd_kafka_brokers_learned_ids(rk, &count);
        CHECK(ids && count == 3 && ids[0] == 1 && ids[1] == 2 && ids[2] == 3);
        rd_kafka_mem_free(rk, ids);
        brokers_that_left_are_forgotten();
        /* A client that uses a topic describes that one, unless all are requested. */
        topic = rd_kafka_topic_new(rk, "known", NULL);
        CHECK(rd_kafka_metadata(rk, 0, NULL, &metadata, TIMEOUT_MS) == 0);
        CHECK(metadata->topic_cnt == 1 && !strcmp(metadata->topics[0].topic, "known"));
        rd_kafka_metadata_destroy(metadata);
        CHECK(rd_kafka_metadata(rk, 1, topic, &metadata, TIMEOUT_MS) == 0);
        CHECK(metadata->topic_cnt == all);
        rd_kafka_metadata_destroy(metadata);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
}

static void brokers_report_the_controller_id_that_was_set(rd_kafka_mock_cluster_t *cluster, const char *servers) {
        static const int32_t ids[] = {2, 99, 3};
        int i;
        for (i = 0; i < 3; i++) {
                rd_kafka_t *rk;
                rd_kafka_mock_set_controller_id(cluster, ids[i]);
                rk = client(RD_KAFKA_PRODUCER, servers, NULL, NULL);
                UNTIL(rd_kafka_controllerid(rk, 1000) == ids[i], usleep(1000));
                rd_kafka_destroy(rk);
        }
        rd_kafka_mock_set_controller_id(cluster, 1);
}

int main(void) {
        rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, "", NULL, NULL);
        rd_kafka_mock_cluster_t *cluster = rd_kafka_mock_cluster_new(rk, 3), *second;
        const char *servers;
        int commas = 0;
        CHECK(cluster != NULL);
        if (!cluster)
                return 1;
        CHECK(rd_kafka_mock_cluster_handle(cluster) == rk);
        for (servers = rd_kafka_mock_cluster_bootstraps(cluster); *servers; servers++)
                commas += *servers == ',';
        CHECK(commas == 2);
        servers = rd_kafka_mock_cluster_bootstraps(cluster);
        CHECK(rd_kafka_mock_topic_create(cluster, "known", 1, 1) == 0);
        CHECK(rd_kafka_mock_topic_create(cluster, "other", 1, 1) == 0);
        a_fresh_client_describes_all_topics_and_knows_the_brokers(servers);
        errors_are_retried_or_reported(cluster, servers);
        consumers_are_sent_to_followers(cluster, servers);
        leaders_move_and_brokers_go(cluster, servers);
        brokers_report_the_controller_id_that_was_set(cluster, servers);
        calls_that_make_no_sense(rk, cluster);
        second = rd_kafka_mock_cluster_new(rk, 1);
        CHECK(second && strcmp(rd_kafka_mock_cluster_bootstraps(second), servers));
        rd_kafka_mock_cluster_destroy(second);
        rd_kafka_mock_cluster_destroy(cluster);
        rd_kafka_destroy(rk);
        a_client_starts_its_own_cluster();
        return bad != 0;
}
