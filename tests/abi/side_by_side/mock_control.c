/* The functions of rdkafka_mock.h that change a cluster or look into it: requests, topics, leaders, brokers, groups. */
#include "side_by_side.h"
#include <librdkafka/rdkafka_mock.h>

static rd_kafka_t *host;

static rd_kafka_mock_cluster_t *cluster_of(int brokers) {
        rd_kafka_mock_cluster_t *cluster;
        host = start(RD_KAFKA_PRODUCER, conf_of(NULL, NULL));
        cluster = rd_kafka_mock_cluster_new(host, brokers);
        setenv("SBS_BOOTSTRAP", rd_kafka_mock_cluster_bootstraps(cluster), 1);
        return cluster;
}

static void end(rd_kafka_mock_cluster_t *cluster) {
        rd_kafka_mock_cluster_destroy(cluster);
        rd_kafka_destroy(host);
}

static rd_kafka_t *producer(void) {
        return producer_of(conf_of("bootstrap.servers", getenv("SBS_BOOTSTRAP"), "linger.ms", "0", "retry.backoff.ms", "20", "retry.backoff.max.ms", "50",
                                   "topic.metadata.refresh.fast.interval.ms", "20", NULL));
}

/* Produces a message, and waits for its report. */
static void deliver(rd_kafka_t *rk, const char *topic, const char *value) {
        int before = recorded(&reports);
        say("produce %s %s", value, err(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_VALUE((void *)value, strlen(value)), RD_KAFKA_V_END)));
        UNTIL(recorded(&reports) > before, rd_kafka_poll(rk, 20));
        say("reports so far %d, without an error %d", recorded(&reports), recorded_with(&reports, "error NO_ERROR"));
}

static int count_of(rd_kafka_mock_cluster_t *cluster, int16_t api, int *broker, int *has_time) {
        size_t count = 0, i;
        int found = 0;
        rd_kafka_mock_request_t **requests = rd_kafka_mock_get_requests(cluster, &count);
        for (i = 0; i < count; i++)
                if (rd_kafka_mock_request_api_key(requests[i]) == api) {
                        found++;
                        *broker = rd_kafka_mock_request_id(requests[i]);
                        *has_time = rd_kafka_mock_request_timestamp(requests[i]) > 0;
                }
        rd_kafka_mock_request_destroy_array(requests, count);
        return found;
}

CASE(tracked_requests) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(1);
        rd_kafka_t *rk = producer();
        int broker = 0, has_time = 0;
        say("handle %d", rd_kafka_mock_cluster_handle(cluster) == host);
        rd_kafka_mock_topic_create(cluster, "t", 1, 1);
        deliver(rk, "t", "untracked");
        say("before the start %d", count_of(cluster, 0, &broker, &has_time));
        rd_kafka_mock_start_request_tracking(cluster);
        deliver(rk, "t", "tracked");
        say("produce requests %d", count_of(cluster, 0, &broker, &has_time));
        say("broker %d time %d", broker, has_time);
        rd_kafka_mock_clear_requests(cluster);
        say("cleared %d", count_of(cluster, 0, &broker, &has_time));
        deliver(rk, "t", "again");
        rd_kafka_mock_stop_request_tracking(cluster);
        say("stopped %d", count_of(cluster, 0, &broker, &has_time));
        {
                size_t count = 0, i;
                rd_kafka_mock_request_t **requests;
                rd_kafka_mock_start_request_tracking(cluster);
                deliver(rk, "t", "one by one");
                requests = rd_kafka_mock_get_requests(cluster, &count);
                for (i = 0; i < count; i++)
                        rd_kafka_mock_request_destroy(requests[i]);
                rd_kafka_mem_free(NULL, requests);
        }
        rd_kafka_destroy(rk);
        end(cluster);
}

CASE(errors_of_a_partition) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(1);
        rd_kafka_t *rk = producer();
        rd_kafka_mock_topic_create(cluster, "t", 2, 1);
        say("pushed %s", err(rd_kafka_mock_partition_push_request_errors(cluster, "t", 0, 0, 1, RD_KAFKA_RESP_ERR_INVALID_RECORD)));
        deliver(rk, "t", "refused");
        deliver(rk, "t", "accepted");
        say_recorded("reports", &reports);
        say("of no topic %s", err(rd_kafka_mock_partition_push_request_errors(cluster, "none", 0, 0, 1, RD_KAFKA_RESP_ERR_INVALID_RECORD)));
        say("of no partition %s", err(rd_kafka_mock_partition_push_request_errors(cluster, "t", 7, 0, 1, RD_KAFKA_RESP_ERR_INVALID_RECORD)));
        rd_kafka_destroy(rk);
        end(cluster);
}

CASE(errors_with_round_trip_times_of_a_broker) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(1);
        rd_kafka_t *rk = producer();
        size_t count = 77;
        rd_kafka_mock_topic_create(cluster, "t", 1, 1);
        deliver(rk, "t", "first");
        say("pushed %s", err(rd_kafka_mock_broker_push_request_error_rtts(cluster, 1, 0, 2, RD_KAFKA_RESP_ERR_NOT_LEADER_OR_FOLLOWER, 10,
                                                                          RD_KAFKA_RESP_ERR_NO_ERROR, 600)));
        say("count %s %zu", err(rd_kafka_mock_broker_error_stack_cnt(cluster, 1, 0, &count)), count);
        {
                long began = millis();
                deliver(rk, "t", "second");
                say("took %s", took(began, 600));
        }
        say("count %s %zu", err(rd_kafka_mock_broker_error_stack_cnt(cluster, 1, 0, &count)), count);
        say("of another broker %s", err(rd_kafka_mock_broker_error_stack_cnt(cluster, 9, 0, &count)));
        say("pushed to another broker %s", err(rd_kafka_mock_broker_push_request_error_rtts(cluster, 9, 0, 1, RD_KAFKA_RESP_ERR_NO_ERROR, 10)));
        rd_kafka_destroy(rk);
        end(cluster);
}

static void watermarks(rd_kafka_t *rk, const char *topic) {
        int64_t low = -7, high = -7;
        say("watermarks %s", err(rd_kafka_query_watermark_offsets(rk, topic, 0, &low, &high, 10000)));
        say("from %lld to %lld", (long long)low, (long long)high);
}

CASE(records_are_deleted) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(1);
        rd_kafka_t *rk = producer();
        rd_kafka_mock_topic_create(cluster, "t", 1, 1);
        deliver(rk, "t", "0");
        deliver(rk, "t", "1");
        deliver(rk, "t", "2");
        watermarks(rk, "t");
        say("before 2 %s", err(rd_kafka_mock_partition_delete_records(cluster, "t", 0, 2)));
        watermarks(rk, "t");
        say("of no topic %s", err(rd_kafka_mock_partition_delete_records(cluster, "none", 0, 2)));
        rd_kafka_destroy(rk);
        end(cluster);
}

static void say_brokers(rd_kafka_t *rk) {
        const struct rd_kafka_metadata *metadata;
        rd_kafka_resp_err_t code = rd_kafka_metadata(rk, 1, NULL, &metadata, 10000);
        int i, k;
        say("metadata %s", err(code));
        if (code)
                return;
        for (i = 0; i < metadata->broker_cnt; i++)
                say("  broker %d host %s", metadata->brokers[i].id, metadata->brokers[i].host);
        for (i = 0; i < metadata->topic_cnt; i++)
                for (k = 0; k < metadata->topics[i].partition_cnt; k++)
                        say("  %s [%d] leader %s", metadata->topics[i].topic, k, metadata->topics[i].partitions[k].leader >= 0 ? "present" : "none");
        rd_kafka_metadata_destroy(metadata);
}

CASE(topics_are_deleted) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(1);
        rd_kafka_t *rk = producer();
        rd_kafka_mock_topic_create(cluster, "gone", 1, 1);
        rd_kafka_mock_topic_create(cluster, "stays", 1, 1);
        say_brokers(rk);
        say("delete %s", err(rd_kafka_mock_topic_delete(cluster, "gone")));
        say_brokers(rk);
        say("delete again %s", err(rd_kafka_mock_topic_delete(cluster, "gone")));
        rd_kafka_destroy(rk);
        end(cluster);
}

CASE(brokers_come_and_go) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(2);
        rd_kafka_t *rk = producer();
        say_brokers(rk);
        say("add 7 %s", err(rd_kafka_mock_broker_add(cluster, 7)));
        say_brokers(rk);
        rd_kafka_mock_set_controller_id(cluster, 2);
        say("controller %d", rd_kafka_controllerid(rk, 10000) >= 0);
        rd_kafka_mock_broker_set_host_port(cluster, 7, "localhost", 12345);
        say_brokers(rk);
        say("remove from metadata %s", err(rd_kafka_mock_broker_remove_from_metadata(cluster, 7)));
        say_brokers(rk);
        say("decommission %s", err(rd_kafka_mock_broker_decommission(cluster, 2)));
        say_brokers(rk);
        rd_kafka_destroy(rk);
        end(cluster);
}

CASE(leaders_of_produce_responses) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(2);
        rd_kafka_t *rk = producer();
        rd_kafka_mock_topic_create(cluster, "t", 1, 2);
        rd_kafka_mock_partition_set_leader(cluster, "t", 0, 1);
        deliver(rk, "t", "first");
        say("pushed %s", err(rd_kafka_mock_partition_push_leader_response(cluster, "t", 0, 1, 5)));
        say("of no topic %s", err(rd_kafka_mock_partition_push_leader_response(cluster, "none", 0, 1, 5)));
        deliver(rk, "t", "second");
        rd_kafka_destroy(rk);
        end(cluster);
}

CASE(settings_of_groups) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(1);
        char *metrics[] = {(char *)"org.apache.kafka.producer"};
        char *members[] = {(char *)"one", (char *)"two"};
        const char *readers[] = {"one"};
        char **ids = NULL;
        size_t count = 77;
        rd_kafka_topic_partition_list_t *lists[2];
        rd_kafka_mock_cgrp_consumer_target_assignment_t *target;
        lists[0] = rd_kafka_topic_partition_list_new(1);
        lists[1] = rd_kafka_topic_partition_list_new(1);
        rd_kafka_topic_partition_list_add(lists[0], "t", 0);
        rd_kafka_mock_topic_create(cluster, "t", 1, 1);
        say("metrics %s", err(rd_kafka_mock_telemetry_set_requested_metrics(cluster, metrics, 1)));
        say("push interval %s", err(rd_kafka_mock_telemetry_set_push_interval(cluster, 10000)));
        rd_kafka_mock_set_group_consumer_session_timeout_ms(cluster, 6000);
        rd_kafka_mock_set_group_consumer_heartbeat_interval_ms(cluster, 1000);
        target = rd_kafka_mock_cgrp_consumer_target_assignment_new(members, 2, lists);
        say("target %s", target ? "present" : "NULL");
        rd_kafka_mock_cgrp_consumer_target_assignment(cluster, "g", target);
        rd_kafka_mock_cgrp_consumer_target_assignment_destroy(target);
        rd_kafka_mock_sharegroup_set_session_timeout(cluster, 6000);
        rd_kafka_mock_sharegroup_set_heartbeat_interval(cluster, 1000);
        rd_kafka_mock_sharegroup_set_max_delivery_attempts(cluster, 3);
        rd_kafka_mock_sharegroup_set_record_lock_duration(cluster, 1000);
        rd_kafka_mock_sharegroup_set_isolation_level(cluster, 1);
        rd_kafka_mock_sharegroup_set_max_size(cluster, 10);
        rd_kafka_mock_sharegroup_set_max_fetch_sessions(cluster, 10);
        rd_kafka_mock_sharegroup_set_max_record_locks(cluster, 100);
        rd_kafka_mock_sharegroup_set_auto_offset_reset(cluster, 1);
        say("share members %s", err(rd_kafka_mock_sharegroup_get_member_ids(cluster, "s", &ids, &count)));
        say("of which there are %zu", count);
        misuse("target of a share group that does not exist")
                rd_kafka_mock_sharegroup_target_assignment(cluster, "s", readers, lists, 1);
        rd_kafka_topic_partition_list_destroy(lists[0]);
        rd_kafka_topic_partition_list_destroy(lists[1]);
        end(cluster);
}
