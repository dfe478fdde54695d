/* Clients of the library's own mock cluster, and of the mock cluster itself: producing and consuming, and errors that brokers are configured to return. Each library uses its own cluster. */
#include "side_by_side.h"

static rd_kafka_t *host;

/* A separate cluster, so that its clients are ordinary ones. */
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

static rd_kafka_conf_t *conf(void) { return conf_of("bootstrap.servers", getenv("SBS_BOOTSTRAP"), NULL); }

static void produce(rd_kafka_t *rk, int partition, const char *value) {
        rd_kafka_resp_err_t code = rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_PARTITION(partition), RD_KAFKA_V_VALUE((void *)value, strlen(value)),
                                                     RD_KAFKA_V_KEY("k", 1), RD_KAFKA_V_END);
        if (code)
                say("produce %s: %s", value, err(code));
}

static rd_kafka_message_t *consume(rd_kafka_t *rk) {
        rd_kafka_message_t *message;
        UNTIL((message = rd_kafka_consumer_poll(rk, 100)), (void)0);
        return message;
}

static void assign(rd_kafka_t *rk, int partition, int64_t offset) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_topic_partition_list_add(list, "t", partition)->offset = offset;
        say("assign %s", err(rd_kafka_assign(rk, list)));
        rd_kafka_topic_partition_list_destroy(list);
}

CASE(delivered) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(3);
        rd_kafka_t *rk = producer_of(conf());
        rd_kafka_mock_topic_create(cluster, "t", 2, 3);
        produce(rk, 0, "one");
        produce(rk, 0, "two");
        produce(rk, 1, "three");
        say("flush %s", err(rd_kafka_flush(rk, 10000)));
        say_recorded_set("reports", &reports);
        rd_kafka_destroy(rk);
        end(cluster);
}

static void delivered_with_acks(const char *acks) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(1);
        rd_kafka_conf_t *configuration = conf();
        rd_kafka_t *rk;
        set(configuration, "acks", acks);
        rk = producer_of(configuration);
        rd_kafka_mock_topic_create(cluster, "t", 1, 1);
        produce(rk, 0, "one");
        say("flush %s", err(rd_kafka_flush(rk, 10000)));
        say_recorded("reports", &reports);
        rd_kafka_destroy(rk);
        end(cluster);
}
CASE(delivered_with_acks_0) { delivered_with_acks("0"); }
CASE(delivered_with_acks_1) { delivered_with_acks("1"); }
CASE(delivered_with_acks_all) { delivered_with_acks("all"); }

CASE(unknown_partition) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(1);
        rd_kafka_t *rk = producer_of(conf());
        rd_kafka_mock_topic_create(cluster, "t", 1, 1);
        produce(rk, 0, "one");
        say("flush %s", err(rd_kafka_flush(rk, 10000)));
        produce(rk, 5, "known to be missing");
        say("flush %s", err(rd_kafka_flush(rk, 10000)));
        say_recorded("reports", &reports);
        rd_kafka_destroy(rk);
        end(cluster);
}

/* Prints the reports so far in one line: value, error and status of each. */
static void outcomes(const char *what, rd_kafka_t *rk) {
        char line[1024] = "";
        int i;
        for (i = 0; i < reports.count; i++) {
                char value[32] = "", error[64] = "", status[32] = "";
                sscanf(strstr(reports.lines[i], "value "), "value %31s", value);
                sscanf(strstr(reports.lines[i], "error "), "error %63s", error);
                sscanf(strstr(reports.lines[i], "status "), "status %31s", status);
                snprintf(line + strlen(line), sizeof(line) - strlen(line), " %s: %s %s;", value, error, status);
        }
        say("%s:%s fatal %s", what, line, err(rd_kafka_fatal_error(rk, NULL, 0)));
}

/* Prints the reports of a producer after these errors of Produce. */
static void produce_errors(const char *retries, size_t count, rd_kafka_resp_err_t code) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(1);
        rd_kafka_conf_t *configuration = conf();
        rd_kafka_t *rk;
        size_t i;
        set(configuration, "retries", retries);
        set(configuration, "retry.backoff.ms", "10");
        set(configuration, "message.timeout.ms", "5000");
        rk = producer_of(configuration);
        rd_kafka_mock_topic_create(cluster, "t", 1, 1);
        for (i = 0; i < count; i++)
                rd_kafka_mock_push_request_errors(cluster, 0 /* Produce */, 1, code);
        produce(rk, 0, "one");
        say("flush %s", err(rd_kafka_flush(rk, 10000)));
        say_recorded("reports", &reports);
        say("fatal %s", err(rd_kafka_fatal_error(rk, NULL, 0)));
        rd_kafka_destroy(rk);
        end(cluster);
}

#define PRODUCE_ERROR(code)                                                                                                    \
        CASE(error_##code) { produce_errors("0", 1, RD_KAFKA_RESP_ERR_##code); }                                               \
        CASE(retried_##code) { produce_errors("3", 2, RD_KAFKA_RESP_ERR_##code); }

PRODUCE_ERROR(NOT_LEADER_FOR_PARTITION)
PRODUCE_ERROR(LEADER_NOT_AVAILABLE)
PRODUCE_ERROR(REQUEST_TIMED_OUT)
PRODUCE_ERROR(NOT_ENOUGH_REPLICAS)
PRODUCE_ERROR(NOT_ENOUGH_REPLICAS_AFTER_APPEND)
PRODUCE_ERROR(TOPIC_AUTHORIZATION_FAILED)
PRODUCE_ERROR(CLUSTER_AUTHORIZATION_FAILED)
PRODUCE_ERROR(MSG_SIZE_TOO_LARGE)
PRODUCE_ERROR(INVALID_MSG)
PRODUCE_ERROR(INVALID_REQUIRED_ACKS)
PRODUCE_ERROR(UNKNOWN_TOPIC_OR_PART)
PRODUCE_ERROR(KAFKA_STORAGE_ERROR)
PRODUCE_ERROR(INVALID_RECORD)
PRODUCE_ERROR(INVALID_TIMESTAMP)
PRODUCE_ERROR(UNSUPPORTED_FOR_MESSAGE_FORMAT)
PRODUCE_ERROR(POLICY_VIOLATION)
PRODUCE_ERROR(THROTTLING_QUOTA_EXCEEDED)

/* Every error code of Kafka in the response to the first Produce request: the results of that message and of the next one. */
static void every_error(int first, int last, const char *retries, const char *idempotence) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(1);
        int code;
        rd_kafka_mock_topic_create(cluster, "t", 1, 1);
        for (code = first; code <= last; code++) {
                rd_kafka_conf_t *configuration = conf();
                rd_kafka_t *rk;
                char what[128];
                set(configuration, "enable.idempotence", idempotence);
                if (retries)
                        set(configuration, "retries", retries);
                set(configuration, "retry.backoff.ms", "10");
                set(configuration, "message.timeout.ms", "5000");
                rk = producer_of(configuration);
                reports.count = 0;
                rd_kafka_mock_push_request_errors(cluster, 0 /* Produce */, 1, (rd_kafka_resp_err_t)code);
                snprintf(what, sizeof(what), "after %s", err((rd_kafka_resp_err_t)code));
                produce(rk, 0, "first");
                rd_kafka_flush(rk, 10000);
                produce(rk, 0, "second");
                rd_kafka_flush(rk, 10000);
                outcomes(what, rk);
                rd_kafka_mock_clear_request_errors(cluster, 0);
                rd_kafka_destroy(rk);
        }
        end(cluster);
}
#define EVERY_ERROR(name, first, last)                                                                                         \
        CASE(every_error_##name) { every_error(first, last, "0", "false"); }                                                   \
        CASE(every_error_with_retries_##name) { every_error(first, last, "3", "false"); }                                      \
        CASE(every_error_idempotent_##name) { every_error(first, last, NULL, "true"); }
EVERY_ERROR(from_1, 1, 20)
EVERY_ERROR(from_21, 21, 44)
EVERY_ERROR(from_45, 45, 70)
EVERY_ERROR(from_71, 71, 100)
EVERY_ERROR(of_no_name, -1, -1)

static void idempotent_errors(rd_kafka_resp_err_t code) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(1);
        rd_kafka_conf_t *configuration = conf();
        rd_kafka_t *rk;
        set(configuration, "enable.idempotence", "true");
        set(configuration, "retry.backoff.ms", "10");
        set(configuration, "message.timeout.ms", "5000");
        rk = producer_of(configuration);
        rd_kafka_mock_topic_create(cluster, "t", 1, 1);
        rd_kafka_mock_push_request_errors(cluster, 0, 1, code);
        produce(rk, 0, "one");
        say("flush %s", err(rd_kafka_flush(rk, 10000)));
        produce(rk, 0, "two");
        say("flush %s", err(rd_kafka_flush(rk, 10000)));
        say_recorded("reports", &reports);
        say("fatal %s", err(rd_kafka_fatal_error(rk, NULL, 0)));
        rd_kafka_destroy(rk);
        end(cluster);
}
/* A retry that the broker reports as a duplicate: the first attempt was written, its response is lost. */
static void duplicate_after(rd_kafka_resp_err_t code) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(1);
        rd_kafka_conf_t *configuration = conf();
        rd_kafka_t *rk;
        set(configuration, "enable.idempotence", "true");
        set(configuration, "retry.backoff.ms", "10");
        rk = producer_of(configuration);
        rd_kafka_mock_topic_create(cluster, "t", 1, 1);
        rd_kafka_mock_push_request_errors(cluster, 0, 2, code, RD_KAFKA_RESP_ERR_DUPLICATE_SEQUENCE_NUMBER);
        produce(rk, 0, "one");
        say("flush %s", err(rd_kafka_flush(rk, 10000)));
        produce(rk, 0, "two");
        say("flush %s", err(rd_kafka_flush(rk, 10000)));
        outcomes("reports", rk);
        rd_kafka_destroy(rk);
        end(cluster);
}
CASE(idempotent_duplicate_after_a_timeout) { duplicate_after(RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT); }
CASE(idempotent_duplicate_after_a_new_leader) { duplicate_after(RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION); }
CASE(idempotent_duplicate_after_too_few_replicas) { duplicate_after(RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND); }

CASE(idempotent_delivered) { idempotent_errors(RD_KAFKA_RESP_ERR_NO_ERROR); }
CASE(idempotent_not_leader) { idempotent_errors(RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION); }
CASE(idempotent_timed_out) { idempotent_errors(RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT); }
CASE(idempotent_unauthorized) { idempotent_errors(RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED); }
CASE(idempotent_duplicate) { idempotent_errors(RD_KAFKA_RESP_ERR_DUPLICATE_SEQUENCE_NUMBER); }
CASE(idempotent_too_large) { idempotent_errors(RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE); }
CASE(idempotent_producer_epoch) { idempotent_errors(RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH); }

CASE(consumed) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(1);
        rd_kafka_t *producer = producer_of(conf()), *consumer;
        rd_kafka_conf_t *configuration = conf();
        rd_kafka_message_t *message;
        int i;
        rd_kafka_mock_topic_create(cluster, "t", 1, 1);
        produce(producer, 0, "one");
        produce(producer, 0, "two");
        rd_kafka_flush(producer, 10000);
        set(configuration, "group.id", "g");
        set(configuration, "enable.partition.eof", "true");
        consumer = consumer_of(configuration);
        assign(consumer, 0, RD_KAFKA_OFFSET_BEGINNING);
        for (i = 0; i < 3; i++) {
                message = consume(consumer);
                say_message("poll", message);
                if (message)
                        rd_kafka_message_destroy(message);
        }
        produce(producer, 0, "three");
        rd_kafka_flush(producer, 10000);
        for (i = 0; i < 2; i++) {
                message = consume(consumer);
                say_message("poll", message);
                if (message)
                        rd_kafka_message_destroy(message);
        }
        say("close %s", err(rd_kafka_consumer_close(consumer)));
        rd_kafka_destroy(consumer);
        rd_kafka_destroy(producer);
        end(cluster);
}

static void offset_out_of_range(const char *reset) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(1);
        rd_kafka_t *producer = producer_of(conf()), *consumer;
        rd_kafka_conf_t *configuration = conf();
        rd_kafka_message_t *message;
        rd_kafka_mock_topic_create(cluster, "t", 1, 1);
        produce(producer, 0, "one");
        rd_kafka_flush(producer, 10000);
        set(configuration, "group.id", "g");
        set(configuration, "enable.partition.eof", "true");
        set(configuration, "auto.offset.reset", reset);
        consumer = consumer_of(configuration);
        assign(consumer, 0, 500);
        message = consume(consumer);
        say_message("poll", message);
        if (message)
                rd_kafka_message_destroy(message);
        rd_kafka_consumer_close(consumer);
        rd_kafka_destroy(consumer);
        rd_kafka_destroy(producer);
        end(cluster);
}
CASE(out_of_range_earliest) { offset_out_of_range("earliest"); }
CASE(out_of_range_latest) { offset_out_of_range("latest"); }
CASE(out_of_range_error) { offset_out_of_range("error"); }

/* Five batches of one record, and a follower with these watermarks. The offsets and errors of 3 seconds. */
static void follower_watermarks(int64_t lo, int64_t hi, int64_t from) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(2);
        rd_kafka_t *producer = producer_of(conf()), *consumer;
        rd_kafka_conf_t *configuration = conf();
        char offsets[256] = "", errors[256] = "";
        int i, length = 0;
        rd_kafka_mock_topic_create(cluster, "t", 1, 2);
        rd_kafka_mock_partition_set_leader(cluster, "t", 0, 1);
        for (i = 0; i < 5; i++) {
                produce(producer, 0, "value");
                rd_kafka_flush(producer, 10000);
        }
        rd_kafka_mock_partition_set_follower(cluster, "t", 0, 2);
        say("watermarks %s", err(rd_kafka_mock_partition_set_follower_wmarks(cluster, "t", 0, lo, hi)));
        set(configuration, "group.id", "g");
        set(configuration, "fetch.wait.max.ms", "100");
        set(configuration, "fetch.error.backoff.ms", "50");
        set(configuration, "enable.partition.eof", "true");
        set(configuration, "auto.offset.reset", "earliest");
        consumer = consumer_of(configuration);
        assign(consumer, 0, from);
        for (i = 0; i < 30; i++) {
                rd_kafka_message_t *message = rd_kafka_consumer_poll(consumer, 100);
                if (!message)
                        continue;
                if (!message->err)
                        length += snprintf(offsets + length, sizeof(offsets) - length, " %d", (int)message->offset);
                else if (!strstr(errors, err(message->err)))
                        strcat(strcat(errors, " "), err(message->err));
                rd_kafka_message_destroy(message);
        }
        say("offsets%s errors%s", offsets, errors);
        rd_kafka_consumer_close(consumer);
        rd_kafka_destroy(consumer);
        rd_kafka_destroy(producer);
        end(cluster);
}
CASE(follower_with_the_log) { follower_watermarks(-1, -1, 0); }
CASE(follower_at_0) { follower_watermarks(0, 0, 0); }
CASE(follower_behind) { follower_watermarks(-1, 2, 0); }
CASE(follower_behind_the_position) { follower_watermarks(-1, 2, 4); }
CASE(follower_behind_the_end) { follower_watermarks(-1, 2, 5); }
CASE(follower_ahead) { follower_watermarks(-1, 9, 0); }
CASE(follower_starts_later) { follower_watermarks(3, -1, 0); }
CASE(follower_starts_later_than_its_end) { follower_watermarks(3, 2, 0); }

CASE(commit_and_committed) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(1);
        rd_kafka_conf_t *configuration = conf();
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_t *rk;
        rd_kafka_mock_topic_create(cluster, "t", 1, 1);
        set(configuration, "group.id", "g");
        rk = consumer_of(configuration);
        rd_kafka_topic_partition_list_add(list, "t", 0)->offset = 7;
        list->elems[0].metadata = strdup("data");
        list->elems[0].metadata_size = 4;
        say("commit %s", err(rd_kafka_commit(rk, list, 0)));
        say_partitions("committing", list);
        rd_kafka_topic_partition_list_destroy(list);
        list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_topic_partition_list_add(list, "t", 0);
        say("committed %s", err(rd_kafka_committed(rk, list, 5000)));
        say_partitions("committed", list);
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_destroy(rk);
        end(cluster);
}

static void on_commit(rd_kafka_t *rk UNUSED, rd_kafka_resp_err_t code, rd_kafka_topic_partition_list_t *offsets, void *opaque UNUSED) {
        record(&statistics, "committed %s %d offset %s metadata %s", err(code), offsets ? offsets->cnt : -1, offsets && offsets->cnt ? offset_name(offsets->elems[0].offset) : "",
               offsets && offsets->cnt && offsets->elems[0].metadata ? "present" : "NULL");
}

static void commit_callback(int async) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(1);
        rd_kafka_conf_t *configuration = conf();
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_t *rk;
        rd_kafka_mock_topic_create(cluster, "t", 1, 1);
        set(configuration, "group.id", "g");
        rd_kafka_conf_set_offset_commit_cb(configuration, on_commit);
        rk = consumer_of(configuration);
        rd_kafka_topic_partition_list_add(list, "t", 0)->offset = 7;
        list->elems[0].metadata = strdup("data");
        list->elems[0].metadata_size = 4;
        say("commit %s", err(rd_kafka_commit(rk, list, async)));
        UNTIL(recorded(&statistics) == 1, {
                rd_kafka_poll(rk, 10);
                rd_kafka_consumer_poll(rk, 10);
        });
        say_recorded("callbacks", &statistics);
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_destroy(rk);
        end(cluster);
}
CASE(commit_callback_of_a_synchronous_commit) { commit_callback(0); }
CASE(commit_callback_of_an_asynchronous_commit) { commit_callback(1); }

CASE(metadata) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(2);
        rd_kafka_t *rk = producer_of(conf());
        const struct rd_kafka_metadata *metadata;
        rd_kafka_resp_err_t code;
        int i, j;
        rd_kafka_mock_topic_create(cluster, "a", 2, 2);
        rd_kafka_mock_topic_create(cluster, "b", 1, 1);
        code = rd_kafka_metadata(rk, 1, NULL, &metadata, 10000);
        say("metadata %s", err(code));
        if (!code) {
                say("brokers %d topics %d originating %s", metadata->broker_cnt, metadata->topic_cnt, present(metadata->orig_broker_name));
                for (i = 0; i < metadata->topic_cnt; i++) {
                        say("topic %s %s", metadata->topics[i].topic, err(metadata->topics[i].err));
                        for (j = 0; j < metadata->topics[i].partition_cnt; j++)
                                say("  [%d] replicas %d isrs %d leader %s %s", metadata->topics[i].partitions[j].id, metadata->topics[i].partitions[j].replica_cnt,
                                    metadata->topics[i].partitions[j].isr_cnt, metadata->topics[i].partitions[j].leader > 0 ? "present" : "none",
                                    err(metadata->topics[i].partitions[j].err));
                }
                rd_kafka_metadata_destroy(metadata);
        }
        say("cluster id %s", present(rd_kafka_clusterid(rk, 5000)));
        say("controller %d", rd_kafka_controllerid(rk, 5000));
        rd_kafka_destroy(rk);
        end(cluster);
}

CASE(watermarks_and_times) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(1);
        rd_kafka_t *rk = producer_of(conf());
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(2);
        int64_t low = -7, high = -7;
        rd_kafka_mock_topic_create(cluster, "t", 1, 1);
        produce(rk, 0, "one");
        produce(rk, 0, "two");
        rd_kafka_flush(rk, 10000);
        say("watermarks %s", err(rd_kafka_query_watermark_offsets(rk, "t", 0, &low, &high, 5000)));
        say("low %lld high %lld", (long long)low, (long long)high);
        say("of another partition %s", err(rd_kafka_query_watermark_offsets(rk, "t", 9, &low, &high, 1000)));
        rd_kafka_topic_partition_list_add(list, "t", 0)->offset = RD_KAFKA_OFFSET_END;
        say("end %s", err(rd_kafka_offsets_for_times(rk, list, 5000)));
        say_partitions("end", list);
        list->elems[0].offset = RD_KAFKA_OFFSET_BEGINNING;
        say("beginning %s", err(rd_kafka_offsets_for_times(rk, list, 5000)));
        say_partitions("beginning", list);
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_destroy(rk);
        end(cluster);
}

/* The client's first cluster stops, and its list contains an address of another one. */
CASE(brokers_of_two_clusters) {
        rd_kafka_mock_cluster_t *first = cluster_of(1), *second = rd_kafka_mock_cluster_new(host, 1);
        rd_kafka_conf_t *configuration = conf();
        rd_kafka_t *rk;
        set(configuration, "topic.metadata.refresh.interval.ms", "100");
        set(configuration, "reconnect.backoff.max.ms", "100");
        rd_kafka_conf_set_log_cb(configuration, on_log);
        rk = producer_of(configuration);
        say("known %s", present(rd_kafka_clusterid(rk, 10000)));
        say("logged %d", recorded_with(&logs, "4 CLUSTERID"));
        say("added %d", rd_kafka_brokers_add(rk, rd_kafka_mock_cluster_bootstraps(second)));
        rd_kafka_mock_broker_set_down(first, 1);
        UNTIL(recorded_with(&logs, "4 CLUSTERID") > 0, rd_kafka_poll(rk, 50));
        say("logged %d", recorded_with(&logs, "4 CLUSTERID") > 0);
        rd_kafka_destroy(rk);
        rd_kafka_mock_cluster_destroy(second);
        end(first);
}

CASE(mock_cluster_arguments) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(2);
        say("broker 1 down %s", err(rd_kafka_mock_broker_set_down(cluster, 1)));
        say("broker 1 up %s", err(rd_kafka_mock_broker_set_up(cluster, 1)));
        say("broker 9 down %s", err(rd_kafka_mock_broker_set_down(cluster, 9)));
        say("rtt %s", err(rd_kafka_mock_broker_set_rtt(cluster, 1, 5)));
        say("rtt of all %s", err(rd_kafka_mock_broker_set_rtt(cluster, -1, 0)));
        say("rack %s", err(rd_kafka_mock_broker_set_rack(cluster, 1, "r")));
        say("topic %s", err(rd_kafka_mock_topic_create(cluster, "t", 2, 2)));
        say("topic again %s", err(rd_kafka_mock_topic_create(cluster, "t", 2, 2)));
        say("topic of 0 partitions %s", err(rd_kafka_mock_topic_create(cluster, "z", 0, 1)));
        say("topic of 9 replicas %s", err(rd_kafka_mock_topic_create(cluster, "y", 1, 9)));
        say("leader %s", err(rd_kafka_mock_partition_set_leader(cluster, "t", 0, 2)));
        say("leader none %s", err(rd_kafka_mock_partition_set_leader(cluster, "t", 0, -1)));
        say("leader of another partition %s", err(rd_kafka_mock_partition_set_leader(cluster, "t", 7, 1)));
        say("leader of another topic %s", err(rd_kafka_mock_partition_set_leader(cluster, "u", 0, 1)));
        say("leader is another broker %s", err(rd_kafka_mock_partition_set_leader(cluster, "t", 0, 9)));
        say("follower %s", err(rd_kafka_mock_partition_set_follower(cluster, "t", 0, 1)));
        say("watermarks %s", err(rd_kafka_mock_partition_set_follower_wmarks(cluster, "t", 0, 1, 2)));
        say("coordinator %s", err(rd_kafka_mock_coordinator_set(cluster, "group", "g", 1)));
        say("coordinator of a transaction %s", err(rd_kafka_mock_coordinator_set(cluster, "transaction", "g", 2)));
        say("coordinator of nonsense %s", err(rd_kafka_mock_coordinator_set(cluster, "nonsense", "g", 2)));
        say("coordinator is another broker %s", err(rd_kafka_mock_coordinator_set(cluster, "group", "g", 9)));
        say("api version %s", err(rd_kafka_mock_set_apiversion(cluster, 3, 1, 5)));
        say("api version of another %s", err(rd_kafka_mock_set_apiversion(cluster, 999, 1, 5)));
        end(cluster);
}

CASE(broker_goes_down_and_comes_back) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(1);
        rd_kafka_conf_t *configuration = conf();
        rd_kafka_t *rk;
        set(configuration, "reconnect.backoff.ms", "10");
        set(configuration, "reconnect.backoff.max.ms", "50");
        rk = producer_of(configuration);
        rd_kafka_mock_topic_create(cluster, "t", 1, 1);
        produce(rk, 0, "one");
        say("flush %s", err(rd_kafka_flush(rk, 10000)));
        rd_kafka_mock_broker_set_down(cluster, 1);
        UNTIL(recorded_with(&errors, "_ALL_BROKERS_DOWN"), rd_kafka_poll(rk, 50));
        produce(rk, 0, "two");
        say("flush while down %s", err(rd_kafka_flush(rk, 500)));
        rd_kafka_mock_broker_set_up(cluster, 1);
        say("flush %s", err(rd_kafka_flush(rk, 20000)));
        say_recorded("reports", &reports);
        rd_kafka_destroy(rk);
        end(cluster);
}

static void on_throttle(rd_kafka_t *rk UNUSED, const char *name, int32_t id, int ms, void *opaque UNUSED) {
        record(&statistics, "throttled %s broker %d for %s", present(name), id, ms > 0 ? "a time" : "0");
}
CASE(callbacks_of_a_producer) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(1);
        rd_kafka_conf_t *configuration = conf();
        rd_kafka_t *rk;
        rd_kafka_conf_set_throttle_cb(configuration, on_throttle);
        rd_kafka_conf_set_stats_cb(configuration, on_stats);
        set(configuration, "statistics.interval.ms", "50");
        rk = producer_of(configuration);
        UNTIL(recorded_with(&statistics, "statistics"), rd_kafka_poll(rk, 20));
        say_recorded_set("callbacks", &statistics);
        rd_kafka_destroy(rk);
        end(cluster);
}

/* ---- Admin calls ---- */

static rd_kafka_event_t *result_of(rd_kafka_queue_t *queue) {
        rd_kafka_event_t *event;
        UNTIL((event = rd_kafka_queue_poll(queue, 100)), (void)0);
        say("event %s error %s text %s", rd_kafka_event_name(event), err(rd_kafka_event_error(event)), present(rd_kafka_event_error_string(event)));
        return event;
}

CASE(admin_options) {
        rd_kafka_t *rk = producer_of(conf_of("bootstrap.servers", DEAD, NULL));
        rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_CREATETOPICS);
        char text[256] = "";
        say("request timeout %s %s", err(rd_kafka_AdminOptions_set_request_timeout(options, 100, text, sizeof(text))), present(text));
        say("request timeout -1 %s", err(rd_kafka_AdminOptions_set_request_timeout(options, -1, text, sizeof(text))));
        say("request timeout -2 %s", err(rd_kafka_AdminOptions_set_request_timeout(options, -2, text, sizeof(text))));
        say("request timeout 3600001 %s", err(rd_kafka_AdminOptions_set_request_timeout(options, 3600001, text, sizeof(text))));
        say("operation timeout %s", err(rd_kafka_AdminOptions_set_operation_timeout(options, 0, text, sizeof(text))));
        say("operation timeout -2 %s", err(rd_kafka_AdminOptions_set_operation_timeout(options, -2, text, sizeof(text))));
        say("validate only %s", err(rd_kafka_AdminOptions_set_validate_only(options, 1, text, sizeof(text))));
        say("validate only 2 %s", err(rd_kafka_AdminOptions_set_validate_only(options, 2, text, sizeof(text))));
        say("broker %s", err(rd_kafka_AdminOptions_set_broker(options, 1, text, sizeof(text))));
        say_error("stable offsets", rd_kafka_AdminOptions_set_require_stable_offsets(options, 1));
        rd_kafka_AdminOptions_destroy(options);
        options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_ALTERCONFIGS);
        say("operation timeout of alter configs %s", err(rd_kafka_AdminOptions_set_operation_timeout(options, 5, text, sizeof(text))));
        rd_kafka_AdminOptions_destroy(options);
        say("unknown operation %s", rd_kafka_AdminOptions_new(rk, 99) ? "present" : "NULL");
        rd_kafka_destroy(rk);
}

static void create_topics(rd_kafka_t *rk, const char *timeout, rd_kafka_NewTopic_t **topics, size_t count) {
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
        rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_CREATETOPICS);
        rd_kafka_event_t *event;
        const rd_kafka_CreateTopics_result_t *result;
        const rd_kafka_topic_result_t **results;
        char text[256];
        size_t i;
        rd_kafka_AdminOptions_set_request_timeout(options, atoi(timeout), text, sizeof(text));
        rd_kafka_AdminOptions_set_opaque(options, &count);
        rd_kafka_CreateTopics(rk, topics, count, options, queue);
        event = result_of(queue);
        say("opaque %d", rd_kafka_event_opaque(event) == &count);
        result = rd_kafka_event_CreateTopics_result(event);
        results = result ? rd_kafka_CreateTopics_result_topics(result, &count) : NULL;
        for (i = 0; results && i < count; i++)
                say("  %s %s text %s", rd_kafka_topic_result_name(results[i]), err(rd_kafka_topic_result_error(results[i])), present(rd_kafka_topic_result_error_string(results[i])));
        rd_kafka_event_destroy(event);
        rd_kafka_AdminOptions_destroy(options);
        rd_kafka_queue_destroy(queue);
}

CASE(admin_without_brokers) {
        rd_kafka_t *rk = producer_of(conf_of("bootstrap.servers", DEAD, NULL));
        rd_kafka_NewTopic_t *topic = rd_kafka_NewTopic_new("new", 1, 1, NULL, 0);
        long began = millis();
        create_topics(rk, "500", &topic, 1);
        say("took %s", took(began, 500));
        create_topics(rk, "500", &topic, 0);
        rd_kafka_NewTopic_destroy(topic);
        rd_kafka_destroy(rk);
}

/* ---- The same with embedded brokers, whose responses are those of Kafka ---- */

BROKER_CASE(admin_creates_topics) {
        rd_kafka_t *rk = producer_of(conf_of("bootstrap.servers", bootstrap(), NULL));
        rd_kafka_NewTopic_t *topics[3];
        topics[0] = rd_kafka_NewTopic_new(topic_name("new"), 2, 1, NULL, 0);
        create_topics(rk, "10000", topics, 1);
        create_topics(rk, "10000", topics, 1);
        topics[1] = rd_kafka_NewTopic_new(topic_name("second"), 1, 1, NULL, 0);
        topics[2] = rd_kafka_NewTopic_new(topic_name("second"), 1, 1, NULL, 0);
        create_topics(rk, "10000", topics + 1, 2);
        rd_kafka_NewTopic_destroy_array(topics, 3);
        topics[0] = rd_kafka_NewTopic_new("a bad name", 2, 1, NULL, 0);
        topics[1] = rd_kafka_NewTopic_new(topic_name("many"), 1, 9, NULL, 0);
        topics[2] = rd_kafka_NewTopic_new(topic_name("config"), 1, 1, NULL, 0);
        rd_kafka_NewTopic_set_config(topics[2], "no.such.config", "1");
        create_topics(rk, "10000", topics, 3);
        rd_kafka_NewTopic_destroy_array(topics, 3);
        rd_kafka_destroy(rk);
}

BROKER_CASE(admin_deletes_topics) {
        rd_kafka_t *rk = producer_of(conf_of("bootstrap.servers", bootstrap(), NULL));
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
        rd_kafka_NewTopic_t *topic = rd_kafka_NewTopic_new(topic_name("old"), 2, 1, NULL, 0);
        rd_kafka_DeleteTopic_t *deleted[2] = {rd_kafka_DeleteTopic_new(topic_name("old")), rd_kafka_DeleteTopic_new(topic_name("missing"))};
        const rd_kafka_topic_result_t **results;
        rd_kafka_event_t *event;
        size_t count, i;
        create_topics(rk, "10000", &topic, 1);
        rd_kafka_DeleteTopics(rk, deleted, 2, NULL, queue);
        event = result_of(queue);
        results = rd_kafka_DeleteTopics_result_topics(rd_kafka_event_DeleteTopics_result(event), &count);
        for (i = 0; i < count; i++)
                say("  %s %s text %s", rd_kafka_topic_result_name(results[i]), err(rd_kafka_topic_result_error(results[i])), present(rd_kafka_topic_result_error_string(results[i])));
        rd_kafka_event_destroy(event);
        rd_kafka_NewTopic_destroy(topic);
        rd_kafka_DeleteTopic_destroy_array(deleted, 2);
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
}

BROKER_CASE(simple_consumer) {
        rd_kafka_t *producer = producer_of(conf_of("bootstrap.servers", bootstrap(), NULL));
        rd_kafka_t *rk = consumer_of(conf_of("bootstrap.servers", bootstrap(), "enable.partition.eof", "true", NULL));
        rd_kafka_topic_t *topic;
        rd_kafka_message_t *message = NULL;
        int i;
        for (i = 0; i < 3; i++)
                rd_kafka_producev(producer, RD_KAFKA_V_TOPIC(topic_name("s")), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_VALUE("abc" + i, 1), RD_KAFKA_V_END);
        say("flush %s", err(rd_kafka_flush(producer, 20000)));
        say_recorded("reports", &reports);
        topic = rd_kafka_topic_new(rk, topic_name("s"), NULL);
        say("start %d", rd_kafka_consume_start(topic, 0, RD_KAFKA_OFFSET_TAIL(2)));
        for (i = 0; i < 3; i++) {
                UNTIL((message = rd_kafka_consume(topic, 0, 100)), (void)0);
                say_message("consume", message);
                if (message)
                        rd_kafka_message_destroy(message);
        }
        say("seek %s", err(rd_kafka_seek(topic, 0, 1, 5000)));
        UNTIL((message = rd_kafka_consume(topic, 0, 100)), (void)0);
        say_message("consume", message);
        if (message)
                rd_kafka_message_destroy(message);
        say("stop %d", rd_kafka_consume_stop(topic, 0));
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
        rd_kafka_destroy(producer);
}

BROKER_CASE(brokers_that_appear_later) {
        char servers[600];
        struct brokers first = brokers_start("--port 0"), later;
        char options[64];
        rd_kafka_t *rk;
        snprintf(servers, sizeof(servers), "%s", first.servers);
        snprintf(options, sizeof(options), "--port %s", strrchr(servers, ':') + 1);
        brokers_stop(&first);
        rk = producer_of(conf_of("bootstrap.servers", servers, "reconnect.backoff.ms", "50", "reconnect.backoff.max.ms", "200", NULL));
        rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_VALUE("x", 1), RD_KAFKA_V_END);
        UNTIL(recorded_with(&errors, "_ALL_BROKERS_DOWN"), rd_kafka_poll(rk, 50));
        say("flush without brokers %s", err(rd_kafka_flush(rk, 500)));
        later = brokers_start(options);
        say("flush with brokers %s", err(rd_kafka_flush(rk, 20000)));
        say_recorded("reports", &reports);
        say_recorded_set("errors", &errors);
        rd_kafka_destroy(rk);
        brokers_stop(&later);
}

BROKER_CASE(brokers_added) {
        rd_kafka_t *rk = producer_of(conf_of(NULL, NULL));
        say("add nothing %d", rd_kafka_brokers_add(rk, ""));
        say("add %d", rd_kafka_brokers_add(rk, bootstrap()));
        say("add again %d", rd_kafka_brokers_add(rk, bootstrap()));
        rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic_name("t")), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_VALUE("x", 1), RD_KAFKA_V_END);
        say("flush %s", err(rd_kafka_flush(rk, 20000)));
        say_recorded("reports", &reports);
        rd_kafka_destroy(rk);
}
