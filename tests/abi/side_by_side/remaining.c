/* Functions that no other program here calls: described topics, codes of states, memory, logs, older consumers. */
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

CASE(codes_of_states_and_types) {
        static const char *const names[] = {"Stable", "stable", "PreparingRebalance", "CompletingRebalance", "Dead", "Empty", "Unknown", "Assigning",
                                            "Reconciling", "", "none"};
        static const char *const types[] = {"Consumer", "consumer", "Classic", "CLASSIC", "Unknown", "Share", "", "none"};
        size_t i;
        for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                say("state %s %d", quoted(names[i]), rd_kafka_consumer_group_state_code(names[i]));
        for (i = 0; i < sizeof(types) / sizeof(types[0]); i++)
                say("type %s %d", quoted(types[i]), rd_kafka_consumer_group_type_code(types[i]));
}

CASE(memory_and_logs) {
        rd_kafka_t *rk = producer_of(conf_of("log_level", "7", NULL));
        int *numbers = rd_kafka_mem_calloc(rk, 4, sizeof(int));
        char *text = rd_kafka_mem_malloc(rk, 8);
        say("zeros %d", !numbers[0] && !numbers[1] && !numbers[2] && !numbers[3]);
        strcpy(text, "text");
        rd_kafka_mem_free(rk, numbers);
        rd_kafka_mem_free(rk, text);
        text = rd_kafka_mem_malloc(NULL, 8);
        say("without a client %s", text ? "present" : "NULL");
        rd_kafka_mem_free(NULL, text);
        rd_kafka_set_log_level(rk, 3);
        rd_kafka_yield(rk);
        freopen("/dev/null", "w", stderr);
        rd_kafka_log_print(rk, 6, "FACILITY", "text");
        rd_kafka_log_syslog(rk, 7, "FACILITY", "text");
        rd_kafka_set_logger(rk, NULL);
        {
                FILE *nowhere = fopen("/dev/null", "w");
                rd_kafka_dump(nowhere, rk);
                fclose(nowhere);
        }
        rd_kafka_destroy(rk);
}

CASE(brokers_that_are_known) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(2);
        rd_kafka_t *rk = producer_of(conf_of("bootstrap.servers", getenv("SBS_BOOTSTRAP"), NULL));
        const struct rd_kafka_metadata *metadata;
        size_t count = 0, i;
        int32_t *ids;
        rd_kafka_resp_err_t code = rd_kafka_metadata(rk, 1, NULL, &metadata, 10000);
        say("metadata %s", err(code));
        if (!code)
                rd_kafka_metadata_destroy(metadata);
        UNTIL(count == 2, {
                ids = rd_kafka_brokers_learned_ids(rk, &count);
                for (i = 0; count == 2 && i < count; i++)
                        say("learned %d", ids[i]);
                rd_kafka_mem_free(rk, ids);
                usleep(5000);
        });
        rd_kafka_destroy(rk);
        end(cluster);
}

CASE(configurations_of_topics_are_duplicated) {
        rd_kafka_topic_conf_t *conf = rd_kafka_topic_conf_new(), *copy;
        char errstr[256], value[64];
        size_t size = sizeof(value);
        say("set %s", conf_res(rd_kafka_topic_conf_set(conf, "message.timeout.ms", "1234", errstr, sizeof(errstr))));
        copy = rd_kafka_topic_conf_dup(conf);
        rd_kafka_topic_conf_destroy(conf);
        say("get %s", conf_res(rd_kafka_topic_conf_get(copy, "message.timeout.ms", value, &size)));
        say("value %s", value);
        rd_kafka_topic_conf_destroy(copy);
}

CASE(certificates_that_are_none) {
        static const int kinds[] = {RD_KAFKA_CERT_PUBLIC_KEY, RD_KAFKA_CERT_PRIVATE_KEY, RD_KAFKA_CERT_CA};
        static const int encodings[] = {RD_KAFKA_CERT_ENC_PKCS12, RD_KAFKA_CERT_ENC_DER, RD_KAFKA_CERT_ENC_PEM};
        int i, k;
        for (i = 0; i < 3; i++)
                for (k = 0; k < 3; k++) {
                        rd_kafka_conf_t *conf = rd_kafka_conf_new();
                        char errstr[512] = "";
                        rd_kafka_conf_res_t result =
                            rd_kafka_conf_set_ssl_cert(conf, (rd_kafka_cert_type_t)kinds[i], (rd_kafka_cert_enc_t)encodings[k], "junk", 4, errstr, sizeof(errstr));
                        say("kind %d encoding %d %s text %s", kinds[i], encodings[k], conf_res(result), present(errstr));
                        rd_kafka_conf_destroy(conf);
                }
}

static int check_certificate(rd_kafka_t *rk UNUSED, const char *name UNUSED, int32_t id UNUSED, int *number UNUSED, int depth UNUSED, const char *der UNUSED,
                             size_t size UNUSED, char *errstr UNUSED, size_t errstr_size UNUSED, void *opaque UNUSED) {
        return 1;
}

CASE(check_of_certificates) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new(), *copy;
        char value[64];
        size_t size = sizeof(value);
        say("nothing is set %s", conf_res(rd_kafka_conf_get(conf, "ssl.certificate.verify_cb", value, &size)));
        say("set %s", conf_res(rd_kafka_conf_set_ssl_cert_verify_cb(conf, check_certificate)));
        size = sizeof(value);
        say("it is set %s", conf_res(rd_kafka_conf_get(conf, "ssl.certificate.verify_cb", value, &size)));
        copy = rd_kafka_conf_dup(conf);
        say("reset %s", conf_res(rd_kafka_conf_set_ssl_cert_verify_cb(conf, NULL)));
        size = sizeof(value);
        say("in the copy %s", conf_res(rd_kafka_conf_get(copy, "ssl.certificate.verify_cb", value, &size)));
        say("by its property %s", conf_res(rd_kafka_conf_set(copy, "ssl.certificate.verify_cb", "x", NULL, 0)));
        rd_kafka_conf_destroy(copy);
        rd_kafka_conf_destroy(conf);
}

CASE(pointer_for_an_engine) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        char errstr[512] = "";
        rd_kafka_t *rk;
        int data = 0;
        rd_kafka_conf_set_engine_callback_data(conf, &data);
        rd_kafka_conf_set_engine_callback_data(conf, NULL);
        rd_kafka_conf_set_engine_callback_data(conf, &data);
        rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof(errstr));
        say("a client without an engine %s text %s", rk ? "starts" : "does not start", present(errstr));
        if (rk)
                rd_kafka_destroy(rk);
        else
                rd_kafka_conf_destroy(conf);
}

/* ---- The older consumer ---- */

static struct recorder consumed = RECORDER;

static void on_message(rd_kafka_message_t *message, void *opaque) {
        record(&consumed, "%s %.*s opaque %d", err(message->err), message->err ? 0 : (int)message->len, message->err ? "" : (const char *)message->payload,
               opaque == &consumed);
}

CASE(older_consumer_with_a_queue) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(1);
        rd_kafka_t *rk = producer_of(conf_of("bootstrap.servers", getenv("SBS_BOOTSTRAP"), "linger.ms", "0", NULL)), *reader;
        rd_kafka_queue_t *queue;
        rd_kafka_topic_t *topic;
        int i;
        rd_kafka_mock_topic_create(cluster, "t", 1, 1);
        for (i = 0; i < 3; i++)
                say("produce %s", err(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_VALUE((void *)("abc" + i), 1), RD_KAFKA_V_END)));
        say("flush %s", err(rd_kafka_flush(rk, 10000)));
        reader = consumer_of(conf_of("bootstrap.servers", getenv("SBS_BOOTSTRAP"), "group.id", "g", NULL));
        topic = rd_kafka_topic_new(reader, "t", NULL);
        queue = rd_kafka_queue_new(reader);
        say("start %d", rd_kafka_consume_start_queue(topic, 0, RD_KAFKA_OFFSET_BEGINNING, queue));
        UNTIL(recorded(&consumed) == 3, rd_kafka_consume_callback_queue(queue, 100, on_message, &consumed));
        say_recorded("consumed", &consumed);
        say("stop %d", rd_kafka_consume_stop(topic, 0));
        rd_kafka_queue_destroy(queue);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(reader);
        rd_kafka_destroy(rk);
        end(cluster);
}

CASE(offsets_of_messages_are_stored) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(1);
        rd_kafka_t *rk = producer_of(conf_of("bootstrap.servers", getenv("SBS_BOOTSTRAP"), "linger.ms", "0", NULL)), *reader;
        rd_kafka_consumer_group_metadata_t *metadata;
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_message_t *message = NULL;
        rd_kafka_headers_t *headers = rd_kafka_headers_new(1);
        const void *value = NULL;
        size_t size = 0;
        rd_kafka_mock_topic_create(cluster, "t", 1, 1);
        say("produce %s", err(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_VALUE((void *)"a", 1), RD_KAFKA_V_END)));
        say("flush %s", err(rd_kafka_flush(rk, 10000)));
        reader = consumer_of(conf_of("bootstrap.servers", getenv("SBS_BOOTSTRAP"), "group.id", "g", "enable.auto.offset.store", "false", NULL));
        metadata = rd_kafka_consumer_group_metadata(reader);
        say("group %s", rd_kafka_consumer_group_metadata_group_id(metadata));
        rd_kafka_consumer_group_metadata_destroy(metadata);
        rd_kafka_topic_partition_list_add(list, "t", 0)->offset = RD_KAFKA_OFFSET_BEGINNING;
        say("assign %s", err(rd_kafka_assign(reader, list)));
        UNTIL(message, message = rd_kafka_consumer_poll(reader, 100));
        if (message) {
                say_message("message", message);
                say_error("store", rd_kafka_offset_store_message(message));
                rd_kafka_header_add(headers, "name", -1, "value", 5);
                rd_kafka_message_set_headers(message, headers);
                say("headers %s", err(rd_kafka_message_headers(message, &headers)));
                say("last %s", err(rd_kafka_header_get_last(headers, "name", &value, &size)));
                say("value %.*s", (int)size, (const char *)value);
                rd_kafka_message_destroy(message);
        }
        say("commit %s", err(rd_kafka_commit(reader, NULL, 0)));
        list->elems[0].offset = RD_KAFKA_OFFSET_INVALID;
        say("committed %s", err(rd_kafka_committed(reader, list, 10000)));
        say_partitions("committed", list);
        rd_kafka_topic_partition_list_destroy(list);
        say("close %s", err(rd_kafka_consumer_close(reader)));
        rd_kafka_destroy(reader);
        rd_kafka_destroy(rk);
        end(cluster);
}

CASE(random_partitioner_stays_within_the_partitions) {
        rd_kafka_t *rk = producer_of(conf_of(NULL, NULL));
        rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, "t", NULL);
        int i, wrong = 0;
        for (i = 0; i < 100; i++) {
                int32_t partition = rd_kafka_msg_partitioner_random(topic, "k", 1, 3, NULL, NULL);
                wrong += partition < -1 || partition >= 3;
        }
        say("outside %d", wrong);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
}

/* ---- Events and interceptors ---- */

static struct recorder seen = RECORDER;
/* The Fetch requests without a response. */
static int fetching;

static rd_kafka_resp_err_t on_consume(rd_kafka_t *rk UNUSED, rd_kafka_message_t *message, void *opaque UNUSED) {
        record(&seen, "consume %.*s", (int)message->len, (const char *)message->payload);
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}
static rd_kafka_resp_err_t on_commit(rd_kafka_t *rk UNUSED, const rd_kafka_topic_partition_list_t *offsets, rd_kafka_resp_err_t code, void *opaque UNUSED) {
        record(&seen, "commit %d %s", offsets->cnt, err(code));
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}
static rd_kafka_resp_err_t on_request_sent(rd_kafka_t *rk UNUSED, int fd UNUSED, const char *name UNUSED, int32_t id UNUSED, int16_t api, int16_t version UNUSED,
                                           int32_t correlation UNUSED, size_t size UNUSED, void *opaque UNUSED) {
        if (api == 1) {
                __atomic_add_fetch(&fetching, 1, __ATOMIC_SEQ_CST);
                record(&seen, "request sent");
        }
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}
static rd_kafka_resp_err_t on_response_received(rd_kafka_t *rk UNUSED, int fd UNUSED, const char *name UNUSED, int32_t id UNUSED, int16_t api, int16_t version UNUSED,
                                                int32_t correlation UNUSED, size_t size UNUSED, int64_t rtt, rd_kafka_resp_err_t code, void *opaque UNUSED) {
        if (api == 1) {
                __atomic_sub_fetch(&fetching, 1, __ATOMIC_SEQ_CST);
                record(&seen, "response received %s %d", err(code), rtt >= 0);
        }
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}
static rd_kafka_resp_err_t on_thread_exit(rd_kafka_t *rk UNUSED, rd_kafka_thread_type_t type UNUSED, const char *name UNUSED, void *opaque UNUSED) {
        record(&seen, "thread exit");
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}
static rd_kafka_resp_err_t on_broker_state_change(rd_kafka_t *rk UNUSED, int32_t id UNUSED, const char *protocol, const char *name UNUSED, int port UNUSED,
                                                  const char *state, void *opaque UNUSED) {
        if (!strcmp(state, "UP"))
                record(&seen, "broker %s %s", protocol, state);
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_new(rd_kafka_t *rk, const rd_kafka_conf_t *conf UNUSED, void *opaque, char *errstr UNUSED, size_t size UNUSED) {
        say("consume %s", err(rd_kafka_interceptor_add_on_consume(rk, "all", on_consume, opaque)));
        say("commit %s", err(rd_kafka_interceptor_add_on_commit(rk, "all", on_commit, opaque)));
        say("request sent %s", err(rd_kafka_interceptor_add_on_request_sent(rk, "all", on_request_sent, opaque)));
        say("response received %s", err(rd_kafka_interceptor_add_on_response_received(rk, "all", on_response_received, opaque)));
        say("thread exit %s", err(rd_kafka_interceptor_add_on_thread_exit(rk, "all", on_thread_exit, opaque)));
        say("broker state change %s", err(rd_kafka_interceptor_add_on_broker_state_change(rk, "all", on_broker_state_change, opaque)));
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

CASE(interceptors_of_a_consumer) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(1);
        rd_kafka_t *rk = producer_of(conf_of("bootstrap.servers", getenv("SBS_BOOTSTRAP"), "linger.ms", "0", NULL)), *reader;
        /* The last Fetch is in flight when the consumer ends. */
        rd_kafka_conf_t *conf = conf_of("bootstrap.servers", getenv("SBS_BOOTSTRAP"), "group.id", "g", "fetch.wait.max.ms", "30000", NULL);
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_message_t *message = NULL;
        rd_kafka_mock_topic_create(cluster, "t", 1, 1);
        rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_VALUE((void *)"a", 1), RD_KAFKA_V_END);
        say("flush %s", err(rd_kafka_flush(rk, 10000)));
        rd_kafka_conf_interceptor_add_on_new(conf, "all", on_new, NULL);
        reader = consumer_of(conf);
        rd_kafka_topic_partition_list_add(list, "t", 0)->offset = RD_KAFKA_OFFSET_BEGINNING;
        say("assign %s", err(rd_kafka_assign(reader, list)));
        UNTIL(message, message = rd_kafka_consumer_poll(reader, 100));
        if (message)
                rd_kafka_message_destroy(message);
        UNTIL(__atomic_load_n(&fetching, __ATOMIC_SEQ_CST) > 0, usleep(10000));
        say("commit %s", err(rd_kafka_commit(reader, NULL, 0)));
        rd_kafka_topic_partition_list_destroy(list);
        say("close %s", err(rd_kafka_consumer_close(reader)));
        rd_kafka_destroy(reader);
        rd_kafka_destroy(rk);
        say_recorded_set("seen", &seen);
        end(cluster);
}

CASE(contexts_of_a_log_event) {
        rd_kafka_t *rk = producer_of(conf_of("debug", "conf", "log.queue", "true", NULL));
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
        rd_kafka_event_t *event = NULL;
        char contexts[256] = "";
        say("log queue %s", err(rd_kafka_set_log_queue(rk, queue)));
        UNTIL(event, event = rd_kafka_queue_poll(queue, 100));
        if (event) {
                int result = rd_kafka_event_debug_contexts(event, contexts, sizeof(contexts));
                say("contexts %d %s", result, contexts);
                say("a wrong event %s", rd_kafka_event_DescribeTopics_result(event) ? "present" : "NULL");
                rd_kafka_event_destroy(event);
        }
        rd_kafka_set_log_queue(rk, NULL);
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
}

/* ---- Described topics ---- */

static void say_node(const char *what, const rd_kafka_Node_t *node) {
        say("    %s %s", what, node ? "present" : "NULL");
        if (node)
                say("    id %d host %s port %d rack %s", rd_kafka_Node_id(node) >= 0, present(rd_kafka_Node_host(node)), rd_kafka_Node_port(node) > 0,
                    present(rd_kafka_Node_rack(node)));
}

static void describe(rd_kafka_t *rk, const char **names, size_t count, int operations) {
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
        rd_kafka_TopicCollection_t *topics = rd_kafka_TopicCollection_of_topic_names(names, count);
        rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_DESCRIBETOPICS);
        rd_kafka_event_t *event;
        const rd_kafka_TopicDescription_t **described;
        size_t i, k, partitions, nodes, allowed;
        say_error("operations", rd_kafka_AdminOptions_set_include_authorized_operations(options, operations));
        say_error("isolation level is of another call", rd_kafka_AdminOptions_set_isolation_level(options, RD_KAFKA_ISOLATION_LEVEL_READ_COMMITTED));
        rd_kafka_DescribeTopics(rk, topics, options, queue);
        UNTIL((event = rd_kafka_queue_poll(queue, 100)), (void)0);
        say("event %s error %s", rd_kafka_event_name(event), err(rd_kafka_event_error(event)));
        if (event && !rd_kafka_event_error(event)) {
                described = rd_kafka_DescribeTopics_result_topics(rd_kafka_event_DescribeTopics_result(event), &count);
                for (i = 0; i < count; i++) {
                        const rd_kafka_TopicPartitionInfo_t **infos = rd_kafka_TopicDescription_partitions(described[i], &partitions);
                        const rd_kafka_error_t *error = rd_kafka_TopicDescription_error(described[i]);
                        const rd_kafka_AclOperation_t *list = rd_kafka_TopicDescription_authorized_operations(described[i], &allowed);
                        say("  %s error %s id %s internal %d partitions %zu operations %s", rd_kafka_TopicDescription_name(described[i]),
                            error ? rd_kafka_error_name(error) : "none", rd_kafka_TopicDescription_topic_id(described[i]) ? "present" : "NULL",
                            rd_kafka_TopicDescription_is_internal(described[i]), partitions, list && allowed ? "present" : "none");
                        for (k = 0; k < partitions; k++) {
                                say("   [%d]", rd_kafka_TopicPartitionInfo_partition(infos[k]));
                                say_node("leader", rd_kafka_TopicPartitionInfo_leader(infos[k]));
                                rd_kafka_TopicPartitionInfo_replicas(infos[k], &nodes);
                                say("    replicas %zu", nodes);
                                rd_kafka_TopicPartitionInfo_isr(infos[k], &nodes);
                                say("    in sync %zu", nodes);
                        }
                }
        }
        rd_kafka_event_destroy(event);
        rd_kafka_AdminOptions_destroy(options);
        rd_kafka_TopicCollection_destroy(topics);
        rd_kafka_queue_destroy(queue);
}

BROKER_CASE(topics_described) {
        rd_kafka_t *rk = producer_of(conf_of("bootstrap.servers", bootstrap(), NULL));
        const char *names[2];
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
        rd_kafka_NewTopic_t *topic;
        rd_kafka_event_t *event;
        names[0] = topic_name("described");
        names[1] = topic_name("missing");
        topic = rd_kafka_NewTopic_new(names[0], 2, 1, NULL, 0);
        rd_kafka_CreateTopics(rk, &topic, 1, NULL, queue);
        UNTIL((event = rd_kafka_queue_poll(queue, 100)), (void)0);
        rd_kafka_event_destroy(event);
        rd_kafka_NewTopic_destroy(topic);
        rd_kafka_queue_destroy(queue);
        describe(rk, names, 1, 0);
        describe(rk, names, 2, 1);
        rd_kafka_destroy(rk);
}

CASE(arrays_that_are_destroyed) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_DeleteRecords_t *records[2];
        rd_kafka_DeleteGroup_t *groups[2];
        rd_kafka_ListConsumerGroupOffsets_t *listed[2];
        rd_kafka_AlterConsumerGroupOffsets_t *altered[2];
        rd_kafka_DeleteConsumerGroupOffsets_t *deleted[2];
        int i;
        rd_kafka_topic_partition_list_add(list, "t", 0)->offset = 1;
        for (i = 0; i < 2; i++) {
                records[i] = rd_kafka_DeleteRecords_new(list);
                groups[i] = rd_kafka_DeleteGroup_new("g");
                listed[i] = rd_kafka_ListConsumerGroupOffsets_new("g", list);
                altered[i] = rd_kafka_AlterConsumerGroupOffsets_new("g", list);
                deleted[i] = rd_kafka_DeleteConsumerGroupOffsets_new("g", list);
        }
        rd_kafka_DeleteRecords_destroy_array(records, 2);
        rd_kafka_DeleteGroup_destroy_array(groups, 2);
        rd_kafka_ListConsumerGroupOffsets_destroy_array(listed, 2);
        rd_kafka_AlterConsumerGroupOffsets_destroy_array(altered, 2);
        rd_kafka_DeleteConsumerGroupOffsets_destroy_array(deleted, 2);
        rd_kafka_topic_partition_list_destroy(list);
        say("destroyed");
}
