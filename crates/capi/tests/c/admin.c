/* Admin calls: topics are created, deleted and described, offsets are listed; calls that fail, that time out, that
 * have invalid arguments, and whose client is destroyed. */
#include "test.h"

static int tag;

#define METADATA 3
#define CREATE_TOPICS 19

static rd_kafka_t *client(rd_kafka_type_t type, const char *servers) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        set(conf, "bootstrap.servers", servers);
        set(conf, "log_level", "2");
        /* The time of calls without options, which all succeed. */
        set_ms(conf, "socket.timeout.ms", SCALED_MS(30000));
        return start(type, conf);
}

static void create(rd_kafka_t *rk, rd_kafka_queue_t *queue, const char *name, int partitions, int replicas,
                   const rd_kafka_AdminOptions_t *options) {
        rd_kafka_NewTopic_t *topic = rd_kafka_NewTopic_new(name, partitions, replicas, NULL, 0);
        CHECK(topic != NULL);
        rd_kafka_CreateTopics(rk, &topic, 1, options, queue);
        rd_kafka_NewTopic_destroy(topic);
}

/* Returns the result of a call about one topic. */
static rd_kafka_resp_err_t created(rd_kafka_queue_t *queue, const char *name) {
        rd_kafka_event_t *event = next_event(queue, RD_KAFKA_EVENT_CREATETOPICS_RESULT, 0);
        const rd_kafka_topic_result_t **topics;
        rd_kafka_resp_err_t err;
        size_t cnt = 0;
        topics = rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &cnt);
        CHECK(cnt == 1 && !strcmp(rd_kafka_topic_result_name(topics[0]), name));
        err = rd_kafka_topic_result_error(topics[0]);
        CHECK((rd_kafka_topic_result_error_string(topics[0]) != NULL) == (err != 0));
        CHECK(rd_kafka_event_DeleteTopics_result(event) == NULL);
        rd_kafka_event_destroy(event);
        return err;
}

static void topics_come_and_go(rd_kafka_t *rk, rd_kafka_queue_t *queue, rd_kafka_mock_cluster_t *cluster) {
        rd_kafka_NewTopic_t *topics[3];
        rd_kafka_DeleteTopic_t *gone[2];
        rd_kafka_NewPartitions_t *more[2];
        rd_kafka_AdminOptions_t *options;
        const rd_kafka_topic_result_t **results;
        const struct rd_kafka_metadata *metadata;
        rd_kafka_topic_t *rkt;
        rd_kafka_event_t *event;
        int32_t brokers[2];
        char errstr[256];
        size_t cnt = 0;

        /* Creates several topics, one of which is invalid; the others are created. */
        topics[0] = rd_kafka_NewTopic_new("one", 3, 2, errstr, sizeof(errstr));
        topics[1] = rd_kafka_NewTopic_new("two", 2, -1, errstr, sizeof(errstr));
        topics[2] = rd_kafka_NewTopic_new("not/a/name", -1, -1, errstr, sizeof(errstr));
        CHECK(rd_kafka_NewTopic_set_config(topics[0], "retention.ms", "3600000") == 0);
        brokers[0] = 3;
        brokers[1] = 1;
        CHECK(rd_kafka_NewTopic_set_replica_assignment(topics[0], 0, brokers, 2, errstr, sizeof(errstr)) ==
              RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_NewTopic_set_replica_assignment(topics[1], 0, brokers, 2, errstr, sizeof(errstr)) == 0);
        CHECK(rd_kafka_NewTopic_set_replica_assignment(topics[1], 0, brokers, 2, errstr, sizeof(errstr)) ==
              RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_NewTopic_set_replica_assignment(topics[1], 1, brokers, 2, errstr, sizeof(errstr)) == 0);
        CHECK(rd_kafka_NewTopic_set_replica_assignment(topics[1], 2, brokers, 2, errstr, sizeof(errstr)) ==
              RD_KAFKA_RESP_ERR__INVALID_ARG);
        options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_CREATETOPICS);
        rd_kafka_AdminOptions_set_opaque(options, &tag);
        CHECK(rd_kafka_AdminOptions_set_operation_timeout(options, 5000, errstr, sizeof(errstr)) == 0);
        rd_kafka_CreateTopics(rk, topics, 3, options, queue);
        rd_kafka_NewTopic_destroy_array(topics, 3);
        event = next_event(queue, RD_KAFKA_EVENT_CREATETOPICS_RESULT, 0);
        CHECK(!strcmp(rd_kafka_event_name(event), "CreateTopicsResult"));
        CHECK(rd_kafka_event_opaque(event) == &tag);
        results = rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &cnt);
        CHECK(cnt == 3);
        CHECK(rd_kafka_topic_result_error(results[0]) == 0 && rd_kafka_topic_result_error(results[1]) == 0);
        CHECK(rd_kafka_topic_result_error(results[2]) == RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION);
        CHECK(!strcmp(rd_kafka_topic_result_name(results[2]), "not/a/name"));
        rd_kafka_event_destroy(event);
        rkt = rd_kafka_topic_new(rk, "two", NULL);
        CHECK(rd_kafka_metadata(rk, 0, rkt, &metadata, TIMEOUT_MS) == 0);
        CHECK(metadata->topics[0].partition_cnt == 2 && metadata->topics[0].partitions[0].leader == 3);
        CHECK(metadata->topics[0].partitions[0].replica_cnt == 2);
        rd_kafka_metadata_destroy(metadata);

        /* Existing topics and too many partitions are refused, and a validated topic is not created. */
        create(rk, queue, "one", 1, 1, NULL);
        CHECK(created(queue, "one") == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS);
        create(rk, queue, "much", 1, 9, NULL);
        CHECK(created(queue, "much") == RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR);
        CHECK(rd_kafka_AdminOptions_set_validate_only(options, 1, errstr, sizeof(errstr)) == 0);
        create(rk, queue, "maybe", 1, 1, options);
        CHECK(created(queue, "maybe") == 0);
        create(rk, queue, "maybe", 1, 1, options);
        CHECK(created(queue, "maybe") == 0);
        rd_kafka_AdminOptions_destroy(options);

        /* More partitions. */
        more[0] = rd_kafka_NewPartitions_new("two", 3, errstr, sizeof(errstr));
        more[1] = rd_kafka_NewPartitions_new("one", 2, errstr, sizeof(errstr));
        brokers[0] = 2;
        CHECK(rd_kafka_NewPartitions_set_replica_assignment(more[0], 1, brokers, 2, errstr, sizeof(errstr)) ==
              RD_KAFKA_RESP_ERR__INVALID_ARG);
        rd_kafka_CreatePartitions(rk, more, 2, NULL, queue);
        rd_kafka_NewPartitions_destroy_array(more, 2);
        event = next_event(queue, RD_KAFKA_EVENT_CREATEPARTITIONS_RESULT, 0);
        results = rd_kafka_CreatePartitions_result_topics(rd_kafka_event_CreatePartitions_result(event), &cnt);
        CHECK(cnt == 2 && rd_kafka_topic_result_error(results[0]) == 0);
        CHECK(rd_kafka_topic_result_error(results[1]) == RD_KAFKA_RESP_ERR_INVALID_PARTITIONS);
        rd_kafka_event_destroy(event);
        CHECK(rd_kafka_metadata(rk, 0, rkt, &metadata, TIMEOUT_MS) == 0);
        CHECK(metadata->topics[0].partition_cnt == 3);
        rd_kafka_metadata_destroy(metadata);
        rd_kafka_topic_destroy(rkt);

        /* Retriable errors are retried. */
        rd_kafka_mock_push_request_errors(cluster, CREATE_TOPICS, 1, RD_KAFKA_RESP_ERR_NOT_CONTROLLER);
        create(rk, queue, "three", 1, 1, NULL);
        CHECK(created(queue, "three") == 0);
        rd_kafka_mock_push_request_errors(cluster, CREATE_TOPICS, 1, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
        create(rk, queue, "four", 1, 1, NULL);
        CHECK(created(queue, "four") == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);

        /* Deletes the topics. */
        gone[0] = rd_kafka_DeleteTopic_new("two");
        gone[1] = rd_kafka_DeleteTopic_new("nobody");
        rd_kafka_DeleteTopics(rk, gone, 2, NULL, queue);
        rd_kafka_DeleteTopic_destroy_array(gone, 2);
        event = next_event(queue, RD_KAFKA_EVENT_DELETETOPICS_RESULT, 0);
        results = rd_kafka_DeleteTopics_result_topics(rd_kafka_event_DeleteTopics_result(event), &cnt);
        CHECK(cnt == 2 && rd_kafka_topic_result_error(results[0]) == 0);
        CHECK(rd_kafka_topic_result_error(results[1]) == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
        rd_kafka_event_destroy(event);
}

static void offsets_are_listed(rd_kafka_t *rk, rd_kafka_queue_t *queue) {
        /* Records that are older than retention.ms would be deleted. */
        const int64_t now = (int64_t)time(NULL) * 1000;
        int64_t specs[5] = {RD_KAFKA_OFFSET_SPEC_EARLIEST, RD_KAFKA_OFFSET_SPEC_LATEST,
                            RD_KAFKA_OFFSET_SPEC_MAX_TIMESTAMP, 2000, 9000};
        static const int64_t offsets[5] = {0, 3, 2, 1, -1};
        int64_t timestamps[5] = {-1, -1, 3000, 2000, -1};
        rd_kafka_topic_partition_list_t *list;
        const rd_kafka_ListOffsetsResultInfo_t **infos;
        rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_LISTOFFSETS);
        rd_kafka_event_t *event;
        char errstr[256];
        size_t cnt = 0;
        int i;
        specs[3] += now;
        specs[4] += now;
        timestamps[2] += now;
        timestamps[3] += now;
        CHECK(rd_kafka_AdminOptions_set_isolation_level(options, RD_KAFKA_ISOLATION_LEVEL_READ_COMMITTED) == NULL);
        CHECK(rd_kafka_AdminOptions_set_request_timeout(options, TIMEOUT_MS, errstr, sizeof(errstr)) == 0);
        for (i = 1; i <= 3; i++)
                CHECK(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("one"), RD_KAFKA_V_PARTITION(1),
                                        RD_KAFKA_V_TIMESTAMP(now + i * 1000), RD_KAFKA_V_VALUE((void *)"v", 1),
                                        RD_KAFKA_V_END) == 0);
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
        for (i = 0; i < 5; i++) {
                const rd_kafka_topic_partition_t *partition;
                list = rd_kafka_topic_partition_list_new(2);
                rd_kafka_topic_partition_list_add(list, "one", 1)->offset = specs[i];
                rd_kafka_topic_partition_list_add(list, "one", 99)->offset = specs[i];
                rd_kafka_ListOffsets(rk, list, options, queue);
                rd_kafka_topic_partition_list_destroy(list);
                event = next_event(queue, RD_KAFKA_EVENT_LISTOFFSETS_RESULT, 0);
                infos = rd_kafka_ListOffsets_result_infos(rd_kafka_event_ListOffsets_result(event), &cnt);
                CHECK(cnt == 2);
                partition = rd_kafka_ListOffsetsResultInfo_topic_partition(infos[0]);
                CHECK(!strcmp(partition->topic, "one") && partition->partition == 1 && !partition->err);
                CHECK(partition->offset == offsets[i]);
                CHECK(rd_kafka_ListOffsetsResultInfo_timestamp(infos[0]) == timestamps[i]);
                partition = rd_kafka_ListOffsetsResultInfo_topic_partition(infos[1]);
                CHECK(partition->partition == 99 && partition->err == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION);
                rd_kafka_event_destroy(event);
        }
        rd_kafka_AdminOptions_destroy(options);
}

static void cluster_is_described(rd_kafka_t *rk, rd_kafka_queue_t *queue) {
        static const char *names[2] = {"one", "nobody"};
        rd_kafka_TopicCollection_t *collection = rd_kafka_TopicCollection_of_topic_names(names, 2);
        const rd_kafka_TopicDescription_t **topics;
        const rd_kafka_TopicPartitionInfo_t **partitions;
        const rd_kafka_DescribeCluster_result_t *result;
        const rd_kafka_Node_t **nodes;
        rd_kafka_Uuid_t *copy;
        rd_kafka_event_t *event;
        size_t cnt = 0;
        rd_kafka_DescribeCluster(rk, NULL, queue);
        event = next_event(queue, RD_KAFKA_EVENT_DESCRIBECLUSTER_RESULT, 0);
        result = rd_kafka_event_DescribeCluster_result(event);
        nodes = rd_kafka_DescribeCluster_result_nodes(result, &cnt);
        CHECK(cnt == 3 && rd_kafka_Node_id(nodes[0]) == 1 && rd_kafka_Node_id(nodes[2]) == 3);
        CHECK(!strcmp(rd_kafka_Node_host(nodes[0]), "127.0.0.1") && rd_kafka_Node_port(nodes[0]) > 0);
        CHECK(rd_kafka_Node_rack(nodes[0]) == NULL && !strcmp(rd_kafka_Node_rack(nodes[1]), "east"));
        CHECK(rd_kafka_Node_id(rd_kafka_DescribeCluster_result_controller(result)) == 1);
        CHECK(*rd_kafka_DescribeCluster_result_cluster_id(result));
        rd_kafka_event_destroy(event);

        rd_kafka_DescribeTopics(rk, collection, NULL, queue);
        rd_kafka_TopicCollection_destroy(collection);
        event = next_event(queue, RD_KAFKA_EVENT_DESCRIBETOPICS_RESULT, 0);
        topics = rd_kafka_DescribeTopics_result_topics(rd_kafka_event_DescribeTopics_result(event), &cnt);
        CHECK(cnt == 2 && !strcmp(rd_kafka_TopicDescription_name(topics[0]), "one"));
        CHECK(rd_kafka_TopicDescription_error(topics[0]) == NULL && !rd_kafka_TopicDescription_is_internal(topics[0]));
        copy = rd_kafka_Uuid_copy(rd_kafka_TopicDescription_topic_id(topics[0]));
        CHECK(strlen(rd_kafka_Uuid_base64str(copy)) == 22 && rd_kafka_Uuid_most_significant_bits(copy) != 0);
        rd_kafka_Uuid_destroy(copy);
        partitions = rd_kafka_TopicDescription_partitions(topics[0], &cnt);
        CHECK(cnt == 3 && rd_kafka_TopicPartitionInfo_partition(partitions[2]) == 2);
        CHECK(rd_kafka_Node_port(rd_kafka_TopicPartitionInfo_leader(partitions[0])) > 0);
        nodes = rd_kafka_TopicPartitionInfo_replicas(partitions[0], &cnt);
        CHECK(cnt == 2 && nodes[0] == rd_kafka_TopicPartitionInfo_leader(partitions[0]));
        rd_kafka_TopicPartitionInfo_isr(partitions[0], &cnt);
        CHECK(cnt == 2);
        CHECK(!strcmp(rd_kafka_TopicDescription_name(topics[1]), "nobody"));
        CHECK(rd_kafka_error_code(rd_kafka_TopicDescription_error(topics[1])) ==
              RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
        rd_kafka_event_destroy(event);
}

/* Authorized operations are requested for clusters and topics (describe.c), and for nothing else. */
static void only_who_describes_asks_what_may_be_done(rd_kafka_t *rk) {
        rd_kafka_AdminOptions_t *options;
        rd_kafka_error_t *error;
        options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_CREATETOPICS);
        error = rd_kafka_AdminOptions_set_include_authorized_operations(options, 1);
        CHECK(rd_kafka_error_code(error) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        rd_kafka_error_destroy(error);
        rd_kafka_AdminOptions_destroy(options);
        options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_ANY);
        error = rd_kafka_AdminOptions_set_include_authorized_operations(options, 2);
        CHECK(rd_kafka_error_code(error) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        rd_kafka_error_destroy(error);
        rd_kafka_AdminOptions_destroy(options);
}

/* Returns the value and the source of a property. */
static const char *value_of(const rd_kafka_ConfigResource_t *resource, const char *name,
                            rd_kafka_ConfigSource_t *source) {
        size_t cnt = 0, i;
        const rd_kafka_ConfigEntry_t **entries = rd_kafka_ConfigResource_configs(resource, &cnt);
        for (i = 0; i < cnt; i++)
                if (!strcmp(rd_kafka_ConfigEntry_name(entries[i]), name)) {
                        if (source)
                                *source = rd_kafka_ConfigEntry_source(entries[i]);
                        CHECK(!rd_kafka_ConfigEntry_is_sensitive(entries[i]));
                        return rd_kafka_ConfigEntry_value(entries[i]);
                }
        return "";
}

static rd_kafka_event_t *describe(rd_kafka_t *rk, rd_kafka_queue_t *queue, rd_kafka_ConfigResource_t *resource,
                                  const rd_kafka_ConfigResource_t **described) {
        const rd_kafka_ConfigResource_t **resources;
        rd_kafka_event_t *event;
        size_t cnt = 0;
        rd_kafka_DescribeConfigs(rk, &resource, 1, NULL, queue);
        event = next_event(queue, RD_KAFKA_EVENT_DESCRIBECONFIGS_RESULT, 0);
        resources = rd_kafka_DescribeConfigs_result_resources(rd_kafka_event_DescribeConfigs_result(event), &cnt);
        CHECK(cnt == 1);
        *described = resources[0];
        return event;
}

static void configurations_are_changed(rd_kafka_t *rk, rd_kafka_queue_t *queue) {
        rd_kafka_ConfigResource_t *resources[2];
        const rd_kafka_ConfigResource_t **changed, *described;
        rd_kafka_ConfigSource_t source = RD_KAFKA_CONFIG_SOURCE_UNKNOWN_CONFIG;
        rd_kafka_error_t *error;
        rd_kafka_event_t *event;
        size_t cnt = 0;
        resources[0] = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, "one");
        event = describe(rk, queue, resources[0], &described);
        CHECK(rd_kafka_ConfigResource_type(described) == RD_KAFKA_RESOURCE_TOPIC);
        CHECK(!strcmp(rd_kafka_ConfigResource_name(described), "one") && !rd_kafka_ConfigResource_error(described));
        CHECK(rd_kafka_ConfigResource_error_string(described) == NULL);
        CHECK(!strcmp(value_of(described, "retention.ms", &source), "3600000"));
        CHECK(source == RD_KAFKA_CONFIG_SOURCE_DYNAMIC_TOPIC_CONFIG);
        CHECK(!strcmp(rd_kafka_ConfigSource_name(source), "DYNAMIC_TOPIC_CONFIG"));
        CHECK(!strcmp(value_of(described, "cleanup.policy", &source), "delete"));
        CHECK(source == RD_KAFKA_CONFIG_SOURCE_DEFAULT_CONFIG);
        rd_kafka_event_destroy(event);

        /* Incremental changes of single properties. */
        error = rd_kafka_ConfigResource_add_incremental_config(resources[0], "cleanup.policy",
                                                               RD_KAFKA_ALTER_CONFIG_OP_TYPE_APPEND, "compact");
        CHECK(!error);
        resources[1] = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, "nobody");
        CHECK(!rd_kafka_ConfigResource_add_incremental_config(resources[1], "retention.ms",
                                                              RD_KAFKA_ALTER_CONFIG_OP_TYPE_DELETE, NULL));
        rd_kafka_ConfigResource_configs(resources[1], &cnt);
        CHECK(cnt == 1);
        rd_kafka_IncrementalAlterConfigs(rk, resources, 2, NULL, queue);
        rd_kafka_ConfigResource_destroy_array(resources, 2);
        event = next_event(queue, RD_KAFKA_EVENT_INCREMENTALALTERCONFIGS_RESULT, 0);
        changed = rd_kafka_IncrementalAlterConfigs_result_resources(
            rd_kafka_event_IncrementalAlterConfigs_result(event), &cnt);
        CHECK(cnt == 2 && rd_kafka_ConfigResource_error(changed[0]) == 0);
        CHECK(rd_kafka_ConfigResource_error(changed[1]) == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
        CHECK(rd_kafka_ConfigResource_error_string(changed[1]) != NULL);
        rd_kafka_event_destroy(event);

        /* Replacing a configuration: properties that are not named get their defaults. */
        resources[0] = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, "one");
        event = describe(rk, queue, resources[0], &described);
        CHECK(!strcmp(value_of(described, "cleanup.policy", NULL), "delete,compact"));
        CHECK(!strcmp(value_of(described, "retention.ms", NULL), "3600000"));
        rd_kafka_event_destroy(event);
        CHECK(rd_kafka_ConfigResource_set_config(resources[0], "max.message.bytes", "5000") == 0);
        rd_kafka_AlterConfigs(rk, resources, 1, NULL, queue);
        event = next_event(queue, RD_KAFKA_EVENT_ALTERCONFIGS_RESULT, 0);
        changed = rd_kafka_AlterConfigs_result_resources(rd_kafka_event_AlterConfigs_result(event), &cnt);
        CHECK(cnt == 1 && rd_kafka_ConfigResource_error(changed[0]) == 0);
        rd_kafka_event_destroy(event);
        event = describe(rk, queue, resources[0], &described);
        CHECK(!strcmp(value_of(described, "cleanup.policy", NULL), "delete"));
        CHECK(!strcmp(value_of(described, "max.message.bytes", NULL), "5000"));
        rd_kafka_event_destroy(event);
        rd_kafka_ConfigResource_destroy(resources[0]);

        /* A broker's own configuration is requested from that broker. */
        resources[0] = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_BROKER, "2");
        event = describe(rk, queue, resources[0], &described);
        CHECK(!strcmp(value_of(described, "broker.id", NULL), "2"));
        rd_kafka_event_destroy(event);

        /* Invalid arguments. */
        resources[1] = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_BROKER, "3");
        rd_kafka_DescribeConfigs(rk, resources, 2, NULL, queue);
        rd_kafka_event_destroy(next_event(queue, RD_KAFKA_EVENT_DESCRIBECONFIGS_RESULT, RD_KAFKA_RESP_ERR__CONFLICT));
        rd_kafka_DescribeConfigs(rk, resources, 0, NULL, queue);
        rd_kafka_event_destroy(next_event(queue, RD_KAFKA_EVENT_DESCRIBECONFIGS_RESULT, RD_KAFKA_RESP_ERR__INVALID_ARG));
        rd_kafka_ConfigResource_destroy(resources[1]);
        resources[1] = resources[0];
        rd_kafka_AlterConfigs(rk, resources, 2, NULL, queue);
        rd_kafka_event_destroy(next_event(queue, RD_KAFKA_EVENT_ALTERCONFIGS_RESULT, RD_KAFKA_RESP_ERR__CONFLICT));
        CHECK(rd_kafka_ConfigResource_set_config(resources[0], NULL, "v") == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_ConfigResource_set_config(resources[0], "n", NULL) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_ConfigResource_set_config(NULL, "n", "v") == RD_KAFKA_RESP_ERR__INVALID_ARG);
        error = rd_kafka_ConfigResource_add_incremental_config(resources[0], "n", RD_KAFKA_ALTER_CONFIG_OP_TYPE_SET,
                                                               NULL);
        CHECK(rd_kafka_error_code(error) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        rd_kafka_error_destroy(error);
        error = rd_kafka_ConfigResource_add_incremental_config(resources[0], "n", (rd_kafka_AlterConfigOpType_t)9, "v");
        CHECK(rd_kafka_error_code(error) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        rd_kafka_error_destroy(error);
        rd_kafka_ConfigResource_destroy(resources[0]);
        CHECK(rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, NULL) == NULL);
        CHECK(rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, "") == NULL);
        CHECK(rd_kafka_ConfigResource_new((rd_kafka_ResourceType_t)77, "a") == NULL);
        CHECK(rd_kafka_ConfigResource_configs(NULL, &cnt) == NULL && cnt == 0);
        CHECK(rd_kafka_ConfigEntry_name(NULL) == NULL && rd_kafka_ConfigEntry_synonyms(NULL, NULL) == NULL);
        CHECK(rd_kafka_ConfigSource_name((rd_kafka_ConfigSource_t)99) != NULL);
        CHECK(!strcmp(rd_kafka_ResourceType_name(RD_KAFKA_RESOURCE_BROKER), "BROKER"));
}

static void records_are_deleted(rd_kafka_t *rk, rd_kafka_queue_t *queue, rd_kafka_mock_cluster_t *cluster) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(4);
        const rd_kafka_topic_partition_list_t *left;
        rd_kafka_DeleteRecords_t *records[2];
        rd_kafka_event_t *event;
        int64_t low, high;
        rd_kafka_topic_partition_list_add(list, "one", 1)->offset = 2;
        rd_kafka_topic_partition_list_add(list, "one", 0)->offset = RD_KAFKA_OFFSET_END;
        rd_kafka_topic_partition_list_add(list, "one", 2)->offset = 50;
        rd_kafka_topic_partition_list_add(list, "one", 99)->offset = 1;
        rd_kafka_topic_partition_list_add(list, "nobody", 0)->offset = 1;
        records[0] = rd_kafka_DeleteRecords_new(list);
        /* The leader has moved, and the client's metadata is out of date. */
        CHECK(rd_kafka_mock_partition_set_leader(cluster, "one", 1, 3) == 0);
        CHECK(rd_kafka_mock_partition_set_leader(cluster, "one", 1, 1) == 0);
        rd_kafka_DeleteRecords(rk, records, 1, NULL, queue);
        event = next_event(queue, RD_KAFKA_EVENT_DELETERECORDS_RESULT, 0);
        left = rd_kafka_DeleteRecords_result_offsets(rd_kafka_event_DeleteRecords_result(event));
        CHECK(left && left->cnt == 5);
        CHECK(left->elems[0].offset == 2 && !left->elems[0].err && left->elems[0].partition == 1);
        CHECK(left->elems[1].offset == 0 && !left->elems[1].err);
        CHECK(left->elems[2].err == RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE);
        CHECK(left->elems[3].err == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION);
        CHECK(left->elems[4].err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART && !strcmp(left->elems[4].topic, "nobody"));
        rd_kafka_event_destroy(event);
        CHECK(rd_kafka_query_watermark_offsets(rk, "one", 1, &low, &high, TIMEOUT_MS) == 0 && low == 2 && high == 3);
        records[1] = records[0];
        rd_kafka_DeleteRecords(rk, records, 2, NULL, queue);
        rd_kafka_event_destroy(next_event(queue, RD_KAFKA_EVENT_DELETERECORDS_RESULT, RD_KAFKA_RESP_ERR__INVALID_ARG));
        rd_kafka_DeleteRecords_destroy(records[0]);
        list->elems[0].offset = RD_KAFKA_OFFSET_BEGINNING;
        records[0] = rd_kafka_DeleteRecords_new(list);
        rd_kafka_DeleteRecords(rk, records, 1, NULL, queue);
        rd_kafka_event_destroy(next_event(queue, RD_KAFKA_EVENT_DELETERECORDS_RESULT, RD_KAFKA_RESP_ERR_NO_ERROR));
        rd_kafka_DeleteRecords_destroy_array(records, 1);
        CHECK(rd_kafka_DeleteRecords_new(NULL) == NULL);
        CHECK(rd_kafka_DeleteRecords_result_offsets(NULL) == NULL);
        rd_kafka_topic_partition_list_destroy(list);
}

static void calls_that_make_no_sense(rd_kafka_t *rk, rd_kafka_queue_t *queue) {
        rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS);
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(2);
        rd_kafka_NewTopic_t *topics[2];
        rd_kafka_DeleteTopic_t *gone[2];
        rd_kafka_NewPartitions_t *more;
        rd_kafka_TopicCollection_t *collection;
        rd_kafka_error_t *error;
        char errstr[256];
        int32_t broker = 1;
        size_t cnt = 7;
        CHECK(rd_kafka_AdminOptions_new(NULL, RD_KAFKA_ADMIN_OP_ANY) == NULL);
        CHECK(rd_kafka_AdminOptions_new(rk, (rd_kafka_admin_op_t)99) == NULL);
        CHECK(rd_kafka_AdminOptions_new(rk, (rd_kafka_admin_op_t)-1) == NULL);
        rd_kafka_AdminOptions_destroy(NULL);
        CHECK(rd_kafka_AdminOptions_set_request_timeout(options, -1, errstr, sizeof(errstr)) ==
              RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(strstr(errstr, "request_timeout") != NULL);
        CHECK(rd_kafka_AdminOptions_set_request_timeout(options, 3600001, NULL, 0) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_AdminOptions_set_request_timeout(NULL, 1, errstr, sizeof(errstr)) ==
              RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_AdminOptions_set_operation_timeout(options, 1, errstr, sizeof(errstr)) ==
              RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_AdminOptions_set_validate_only(options, 1, errstr, sizeof(errstr)) ==
              RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_AdminOptions_set_broker(options, -1, errstr, sizeof(errstr)) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        error = rd_kafka_AdminOptions_set_isolation_level(options, RD_KAFKA_ISOLATION_LEVEL_READ_COMMITTED);
        CHECK(rd_kafka_error_code(error) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        rd_kafka_error_destroy(error);
        rd_kafka_AdminOptions_set_opaque(NULL, &tag);

        CHECK(rd_kafka_NewTopic_new(NULL, 1, 1, errstr, sizeof(errstr)) == NULL);
        rd_kafka_NewTopic_destroy(rd_kafka_NewTopic_new("", 1, 1, errstr, sizeof(errstr)));
        CHECK(rd_kafka_NewTopic_new("t", -2, 1, errstr, sizeof(errstr)) == NULL);
        CHECK(rd_kafka_NewTopic_new("t", 100001, 1, errstr, sizeof(errstr)) == NULL);
        CHECK(rd_kafka_NewTopic_new("t", 1, -2, NULL, 0) == NULL);
        CHECK(rd_kafka_NewTopic_new("t", 1, 65537, errstr, 1) == NULL && errstr[0] == 0);
        CHECK(rd_kafka_NewTopic_set_config(NULL, "a", "b") == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_NewTopic_set_replica_assignment(NULL, 0, &broker, 1, errstr, sizeof(errstr)) ==
              RD_KAFKA_RESP_ERR__INVALID_ARG);
        topics[0] = rd_kafka_NewTopic_new("same", 2, -1, errstr, sizeof(errstr));
        CHECK(rd_kafka_NewTopic_set_config(topics[0], NULL, "b") == RD_KAFKA_RESP_ERR__INVALID_ARG);
        /* The broker's response says what is wrong with it. */
        CHECK(rd_kafka_NewTopic_set_config(topics[0], "a", NULL) == RD_KAFKA_RESP_ERR_NO_ERROR);
        CHECK(rd_kafka_NewTopic_set_replica_assignment(topics[0], 0, NULL, 1, errstr, sizeof(errstr)) ==
              RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_NewTopic_set_replica_assignment(topics[0], 0, &broker, 0, errstr, sizeof(errstr)) ==
              RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_NewTopic_set_replica_assignment(topics[0], -1, &broker, 1, errstr, sizeof(errstr)) ==
              RD_KAFKA_RESP_ERR__INVALID_ARG);
        rd_kafka_CreateTopics(NULL, topics, 1, NULL, queue);
        rd_kafka_CreateTopics(rk, NULL, 1, NULL, queue);
        rd_kafka_event_destroy(next_event(queue, RD_KAFKA_EVENT_CREATETOPICS_RESULT, RD_KAFKA_RESP_ERR__INVALID_ARG));
        rd_kafka_CreateTopics(rk, topics, 0, NULL, queue);
        rd_kafka_event_destroy(next_event(queue, RD_KAFKA_EVENT_CREATETOPICS_RESULT, RD_KAFKA_RESP_ERR__INVALID_ARG));
        topics[1] = NULL;
        rd_kafka_CreateTopics(rk, topics, 2, NULL, queue);
        rd_kafka_event_destroy(next_event(queue, RD_KAFKA_EVENT_CREATETOPICS_RESULT, RD_KAFKA_RESP_ERR__INVALID_ARG));
        /* Not all partitions are assigned. */
        CHECK(rd_kafka_NewTopic_set_replica_assignment(topics[0], 0, &broker, 1, errstr, sizeof(errstr)) == 0);
        rd_kafka_CreateTopics(rk, topics, 1, NULL, queue);
        rd_kafka_event_destroy(next_event(queue, RD_KAFKA_EVENT_CREATETOPICS_RESULT, RD_KAFKA_RESP_ERR__INVALID_ARG));
        rd_kafka_NewTopic_destroy(topics[0]);
        rd_kafka_NewTopic_destroy(NULL);
        rd_kafka_NewTopic_destroy_array(NULL, 3);

        CHECK(rd_kafka_DeleteTopic_new(NULL) == NULL);
        gone[0] = rd_kafka_DeleteTopic_new("same");
        gone[1] = gone[0];
        rd_kafka_DeleteTopics(rk, gone, 2, NULL, queue);
        rd_kafka_event_destroy(next_event(queue, RD_KAFKA_EVENT_DELETETOPICS_RESULT, RD_KAFKA_RESP_ERR__INVALID_ARG));
        rd_kafka_DeleteTopics(rk, gone, 0, NULL, queue);
        rd_kafka_event_destroy(next_event(queue, RD_KAFKA_EVENT_DELETETOPICS_RESULT, RD_KAFKA_RESP_ERR__INVALID_ARG));
        rd_kafka_DeleteTopic_destroy(gone[0]);
        CHECK(rd_kafka_NewPartitions_new("t", 0, errstr, sizeof(errstr)) == NULL);
        CHECK(rd_kafka_NewPartitions_new("t", (size_t)-1, errstr, sizeof(errstr)) == NULL);
        CHECK(rd_kafka_NewPartitions_new(NULL, 1, errstr, sizeof(errstr)) == NULL);
        more = rd_kafka_NewPartitions_new("t", 1, errstr, sizeof(errstr));
        CHECK(rd_kafka_NewPartitions_set_replica_assignment(more, -1, &broker, 1, errstr, sizeof(errstr)) ==
              RD_KAFKA_RESP_ERR__INVALID_ARG);
        rd_kafka_CreatePartitions(rk, &more, 0, NULL, queue);
        rd_kafka_event_destroy(next_event(queue, RD_KAFKA_EVENT_CREATEPARTITIONS_RESULT, RD_KAFKA_RESP_ERR__INVALID_ARG));
        rd_kafka_NewPartitions_destroy(more);

        rd_kafka_ListOffsets(rk, NULL, NULL, queue);
        rd_kafka_event_destroy(next_event(queue, RD_KAFKA_EVENT_LISTOFFSETS_RESULT, RD_KAFKA_RESP_ERR__INVALID_ARG));
        rd_kafka_ListOffsets(rk, list, NULL, queue);
        rd_kafka_event_destroy(next_event(queue, RD_KAFKA_EVENT_LISTOFFSETS_RESULT, 0));
        rd_kafka_topic_partition_list_add(list, "one", 0)->offset = RD_KAFKA_OFFSET_INVALID;
        rd_kafka_ListOffsets(rk, list, NULL, queue);
        rd_kafka_event_destroy(next_event(queue, RD_KAFKA_EVENT_LISTOFFSETS_RESULT, RD_KAFKA_RESP_ERR__INVALID_ARG));
        list->elems[0].offset = RD_KAFKA_OFFSET_SPEC_LATEST;
        rd_kafka_topic_partition_list_add(list, "one", 0)->offset = RD_KAFKA_OFFSET_SPEC_LATEST;
        rd_kafka_ListOffsets(rk, list, NULL, queue);
        rd_kafka_event_destroy(next_event(queue, RD_KAFKA_EVENT_LISTOFFSETS_RESULT, RD_KAFKA_RESP_ERR__INVALID_ARG));
        list->elems[1].partition = -1;
        rd_kafka_ListOffsets(rk, list, NULL, queue);
        rd_kafka_event_destroy(next_event(queue, RD_KAFKA_EVENT_LISTOFFSETS_RESULT, RD_KAFKA_RESP_ERR__INVALID_ARG));
        rd_kafka_topic_partition_list_destroy(list);

        collection = rd_kafka_TopicCollection_of_topic_names(NULL, 0);
        rd_kafka_DescribeTopics(rk, collection, NULL, queue);
        rd_kafka_event_destroy(next_event(queue, RD_KAFKA_EVENT_DESCRIBETOPICS_RESULT, RD_KAFKA_RESP_ERR_NO_ERROR));
        rd_kafka_TopicCollection_destroy(collection);
        CHECK(rd_kafka_TopicCollection_of_topic_names(NULL, 3) == NULL);

        rd_kafka_AdminOptions_destroy(options);

        CHECK(rd_kafka_event_CreateTopics_result(NULL) == NULL);
        CHECK(rd_kafka_CreateTopics_result_topics(NULL, &cnt) == NULL && cnt == 0);
        CHECK(rd_kafka_ListOffsets_result_infos(NULL, NULL) == NULL);
        CHECK(rd_kafka_topic_result_error(NULL) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_topic_result_name(NULL) == NULL && rd_kafka_topic_result_error_string(NULL) == NULL);
        CHECK(rd_kafka_ListOffsetsResultInfo_topic_partition(NULL) == NULL);
        CHECK(rd_kafka_TopicDescription_partitions(NULL, &cnt) == NULL && rd_kafka_TopicDescription_name(NULL) == NULL);
        CHECK(rd_kafka_Node_host(NULL) == NULL && rd_kafka_DescribeCluster_result_controller(NULL) == NULL);
        CHECK(rd_kafka_Uuid_copy(NULL) == NULL && rd_kafka_Uuid_base64str(NULL) == NULL);
        rd_kafka_Uuid_destroy(NULL);
        CHECK(rd_kafka_event_opaque(NULL) == NULL);
}

static void calls_end_whatever_happens(const char *servers, rd_kafka_mock_cluster_t *cluster) {
        rd_kafka_t *rk = client(RD_KAFKA_CONSUMER, servers);
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk), *main_queue = rd_kafka_queue_get_main(rk);
        rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_ANY);
        rd_kafka_AdminOptions_t *second = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_ANY);
        rd_kafka_event_t *kept, *event;
        char errstr[256];
        size_t cnt = 0;

        /* Without a queue the result comes to the main queue; a consumer can make the call, too. */
        create(rk, NULL, "consumers", 1, 1, NULL);
        CHECK(created(main_queue, "consumers") == 0);
        rd_kafka_queue_destroy(main_queue);

        /* A broker id that does not exist, and a cluster without brokers. */
        CHECK(rd_kafka_AdminOptions_set_request_timeout(options, 300, errstr, sizeof(errstr)) == 0);
        CHECK(rd_kafka_AdminOptions_set_broker(options, 99, errstr, sizeof(errstr)) == 0);
        create(rk, queue, "late", 1, 1, options);
        rd_kafka_event_destroy(next_event(queue, RD_KAFKA_EVENT_CREATETOPICS_RESULT, RD_KAFKA_RESP_ERR__TIMED_OUT));
        CHECK(rd_kafka_AdminOptions_set_broker(second, 2, errstr, sizeof(errstr)) == 0);
        create(rk, queue, "late", 1, 1, second);
        CHECK(created(queue, "late") == 0);
        rd_kafka_AdminOptions_destroy(second);
        CHECK(rd_kafka_AdminOptions_set_broker(options, 2, errstr, sizeof(errstr)) == 0);
        CHECK(rd_kafka_mock_broker_set_down(cluster, -1) == 0);
        rd_kafka_DescribeCluster(rk, options, queue);
        kept = next_event(queue, RD_KAFKA_EVENT_DESCRIBECLUSTER_RESULT, RD_KAFKA_RESP_ERR__TIMED_OUT);
        CHECK(rd_kafka_DescribeCluster_result_nodes(rd_kafka_event_DescribeCluster_result(kept), &cnt) == NULL);
        CHECK(rd_kafka_mock_broker_set_up(cluster, -1) == 0);
        rd_kafka_event_destroy(kept);

        /* An event outlives its client; a call in flight ends with it. */
        rd_kafka_AdminOptions_destroy(options);
        rd_kafka_DescribeCluster(rk, NULL, queue);
        kept = next_event(queue, RD_KAFKA_EVENT_DESCRIBECLUSTER_RESULT, 0);
        CHECK(rd_kafka_mock_broker_set_rtt(cluster, -1, 3000) == 0);
        rd_kafka_DescribeCluster(rk, NULL, queue);
        rd_kafka_destroy(rk);
        CHECK(rd_kafka_mock_broker_set_rtt(cluster, -1, 0) == 0);
        CHECK(*rd_kafka_DescribeCluster_result_cluster_id(rd_kafka_event_DescribeCluster_result(kept)));
        rd_kafka_event_destroy(kept);
        event = rd_kafka_queue_poll(queue, 0);
        if (event) {
                CHECK(rd_kafka_event_error(event) == RD_KAFKA_RESP_ERR__DESTROY);
                rd_kafka_event_destroy(event);
        }
        rd_kafka_queue_destroy(queue);
}

int main(void) {
        rd_kafka_t *mock = client(RD_KAFKA_PRODUCER, ""), *rk;
        rd_kafka_mock_cluster_t *cluster = rd_kafka_mock_cluster_new(mock, 3);
        rd_kafka_queue_t *queue;
        const char *servers = rd_kafka_mock_cluster_bootstraps(cluster);
        CHECK(rd_kafka_mock_broker_set_rack(cluster, 2, "east") == 0);
        rk = client(RD_KAFKA_PRODUCER, servers);
        queue = rd_kafka_queue_new(rk);
        topics_come_and_go(rk, queue, cluster);
        offsets_are_listed(rk, queue);
        cluster_is_described(rk, queue);
        only_who_describes_asks_what_may_be_done(rk);
        configurations_are_changed(rk, queue);
        records_are_deleted(rk, queue, cluster);
        calls_that_make_no_sense(rk, queue);
        CHECK(rd_kafka_queue_length(queue) == 0);
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
        calls_end_whatever_happens(servers, cluster);
        rd_kafka_mock_cluster_destroy(cluster);
        rd_kafka_destroy(mock);
        return bad != 0;
}
