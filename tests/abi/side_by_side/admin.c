/* Administrative calls with valid, boundary and misused arguments. */
#include "side_by_side.h"

static rd_kafka_event_t *result_of(rd_kafka_queue_t *queue) {
        rd_kafka_event_t *event;
        UNTIL((event = rd_kafka_queue_poll(queue, 100)), (void)0);
        say("event %s error %s text %s", rd_kafka_event_name(event), err(rd_kafka_event_error(event)), present(rd_kafka_event_error_string(event)));
        return event;
}

static rd_kafka_t *client(void) { return producer_of(conf_of("bootstrap.servers", bootstrap(), NULL)); }

static void say_topics(const char *what, const rd_kafka_topic_result_t **topics, size_t count) {
        size_t i;
        say("%s: %zu", what, topics ? count : 0);
        for (i = 0; topics && i < count; i++)
                say("  %s %s text %s", rd_kafka_topic_result_name(topics[i]), err(rd_kafka_topic_result_error(topics[i])),
                    present(rd_kafka_topic_result_error_string(topics[i])));
}

static void create(rd_kafka_t *rk, rd_kafka_NewTopic_t **topics, size_t count, int validate_only) {
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
        rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_CREATETOPICS);
        rd_kafka_event_t *event;
        const rd_kafka_CreateTopics_result_t *result;
        if (validate_only)
                rd_kafka_AdminOptions_set_validate_only(options, 1, NULL, 0);
        rd_kafka_CreateTopics(rk, topics, count, options, queue);
        event = result_of(queue);
        if ((result = rd_kafka_event_CreateTopics_result(event)))
                say_topics("created", rd_kafka_CreateTopics_result_topics(result, &count), count);
        rd_kafka_event_destroy(event);
        rd_kafka_AdminOptions_destroy(options);
        rd_kafka_queue_destroy(queue);
}

static void create_one(rd_kafka_t *rk, const char *name, int partitions) {
        rd_kafka_NewTopic_t *topic = rd_kafka_NewTopic_new(name, partitions, 1, NULL, 0);
        create(rk, &topic, 1, 0);
        rd_kafka_NewTopic_destroy(topic);
}

static void say_new_topic(const char *name, int partitions, int replicas) {
        char text[256] = "";
        rd_kafka_NewTopic_t *topic = rd_kafka_NewTopic_new(name, partitions, replicas, text, sizeof(text));
        say("new topic %s %d %d: %s text %s", quoted(name), partitions, replicas, topic ? "present" : "NULL", present(text));
        if (topic)
                rd_kafka_NewTopic_destroy(topic);
}

CASE(new_topics) {
        say_new_topic("t", -1, -1);
        say_new_topic("t", 0, 1);
        say_new_topic("t", 1, 0);
        say_new_topic("t", -2, 1);
        say_new_topic("t", 1, -2);
        say_new_topic("t", 100000, 10000);
        say_new_topic("t", 100001, 1);
        say_new_topic("t", 1, 10001);
}

CASE(replica_assignments) {
        static const int32_t brokers[] = {1, 2, 3};
        char text[256] = "";
        rd_kafka_NewTopic_t *topic = rd_kafka_NewTopic_new("t", 2, -1, NULL, 0);
        say("partition 1 first %s %s", err(rd_kafka_NewTopic_set_replica_assignment(topic, 1, (int32_t *)brokers, 3, text, sizeof(text))), present(text));
        say("partition 0 %s", err(rd_kafka_NewTopic_set_replica_assignment(topic, 0, (int32_t *)brokers, 3, text, sizeof(text))));
        say("partition 0 again %s", err(rd_kafka_NewTopic_set_replica_assignment(topic, 0, (int32_t *)brokers, 3, text, sizeof(text))));
        say("partition 1 %s", err(rd_kafka_NewTopic_set_replica_assignment(topic, 1, (int32_t *)brokers, 2, text, sizeof(text))));
        say("config %s", err(rd_kafka_NewTopic_set_config(topic, "retention.ms", "1")));
        say("config twice %s", err(rd_kafka_NewTopic_set_config(topic, "retention.ms", "2")));
        rd_kafka_NewTopic_destroy(topic);
        topic = rd_kafka_NewTopic_new("t", 2, 1, NULL, 0);
        say("with a replication factor %s", err(rd_kafka_NewTopic_set_replica_assignment(topic, 0, (int32_t *)brokers, 3, text, sizeof(text))));
        rd_kafka_NewTopic_destroy(topic);
        misuse("more partitions than the topic has") {
                topic = rd_kafka_NewTopic_new("t", 1, -1, NULL, 0);
                rd_kafka_NewTopic_set_replica_assignment(topic, 0, (int32_t *)brokers, 2, NULL, 0);
                say("%s", err(rd_kafka_NewTopic_set_replica_assignment(topic, 1, (int32_t *)brokers, 2, NULL, 0)));
        }
}

static void say_new_partitions(const char *name, size_t count) {
        char text[256] = "";
        rd_kafka_NewPartitions_t *partitions = rd_kafka_NewPartitions_new(name, count, text, sizeof(text));
        say("new partitions %s %zu: %s text %s", quoted(name), count, partitions ? "present" : "NULL", present(text));
        if (partitions)
                rd_kafka_NewPartitions_destroy(partitions);
}

CASE(new_partitions) {
        static const int32_t brokers[] = {1, 2};
        char text[256] = "";
        rd_kafka_NewPartitions_t *partitions = rd_kafka_NewPartitions_new("t", 4, NULL, 0);
        say_new_partitions("t", 0);
        say_new_partitions("t", 1);
        say_new_partitions("t", 100000);
        say_new_partitions("t", 100001);
        say("assignment 1 first %s %s", err(rd_kafka_NewPartitions_set_replica_assignment(partitions, 1, (int32_t *)brokers, 2, text, sizeof(text))), present(text));
        say("assignment 0 %s", err(rd_kafka_NewPartitions_set_replica_assignment(partitions, 0, (int32_t *)brokers, 2, text, sizeof(text))));
        say("assignment 0 again %s", err(rd_kafka_NewPartitions_set_replica_assignment(partitions, 0, (int32_t *)brokers, 2, text, sizeof(text))));
        say("assignment 1 %s", err(rd_kafka_NewPartitions_set_replica_assignment(partitions, 1, (int32_t *)brokers, 1, text, sizeof(text))));
        rd_kafka_NewPartitions_destroy(partitions);
}

CASE(config_resources) {
        int type;
        for (type = -1; type < 6; type++) {
                rd_kafka_ConfigResource_t *resource = rd_kafka_ConfigResource_new(type, "name");
                say("type %d %s: %s", type, rd_kafka_ResourceType_name(type), resource ? "present" : "NULL");
                if (resource) {
                        size_t count = 77;
                        say("  name %s type %d error %s text %s", rd_kafka_ConfigResource_name(resource), rd_kafka_ConfigResource_type(resource),
                            err(rd_kafka_ConfigResource_error(resource)), present(rd_kafka_ConfigResource_error_string(resource)));
                        say("  configs %s %zu", rd_kafka_ConfigResource_configs(resource, &count) ? "present" : "NULL", count);
                        say("  set %s", err(rd_kafka_ConfigResource_set_config(resource, "a", "b")));
                        say("  set twice %s", err(rd_kafka_ConfigResource_set_config(resource, "a", "c")));
                        say("  set no name %s", err(rd_kafka_ConfigResource_set_config(resource, "", "c")));
                        rd_kafka_ConfigResource_destroy(resource);
                }
        }
        say("empty name %s", rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, "") ? "present" : "NULL");
        say("no name %s", rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, NULL) ? "present" : "NULL");
}

CASE(incremental_operations) {
        rd_kafka_ConfigResource_t *resource = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, "t");
        int type;
        for (type = -1; type < 6; type++)
                say_error("operation", rd_kafka_ConfigResource_add_incremental_config(resource, "a", type, "b"));
        say_error("delete without a value", rd_kafka_ConfigResource_add_incremental_config(resource, "a", RD_KAFKA_ALTER_CONFIG_OP_TYPE_DELETE, NULL));
        say_error("set without a value", rd_kafka_ConfigResource_add_incremental_config(resource, "a", RD_KAFKA_ALTER_CONFIG_OP_TYPE_SET, NULL));
        say_error("no name", rd_kafka_ConfigResource_add_incremental_config(resource, NULL, RD_KAFKA_ALTER_CONFIG_OP_TYPE_SET, "b"));
        say_error("empty name", rd_kafka_ConfigResource_add_incremental_config(resource, "", RD_KAFKA_ALTER_CONFIG_OP_TYPE_SET, "b"));
        rd_kafka_ConfigResource_destroy(resource);
}

BROKER_CASE(topics_validated_and_created_with_assignments) {
        static const int32_t brokers[] = {1};
        rd_kafka_t *rk = client();
        rd_kafka_NewTopic_t *topics[2];
        topics[0] = rd_kafka_NewTopic_new(topic_name("v"), 1, 1, NULL, 0);
        create(rk, topics, 1, 1);
        create(rk, topics, 1, 1);
        create(rk, topics, 0, 0);
        topics[1] = rd_kafka_NewTopic_new(topic_name("w"), 2, -1, NULL, 0);
        rd_kafka_NewTopic_set_replica_assignment(topics[1], 0, (int32_t *)brokers, 1, NULL, 0);
        create(rk, topics, 2, 0);
        rd_kafka_NewTopic_destroy_array(topics, 2);
        rd_kafka_destroy(rk);
}

static void delete(rd_kafka_t *rk, rd_kafka_DeleteTopic_t **topics, size_t count) {
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
        rd_kafka_event_t *event;
        rd_kafka_DeleteTopics(rk, topics, count, NULL, queue);
        event = result_of(queue);
        if (rd_kafka_event_DeleteTopics_result(event))
                say_topics("deleted", rd_kafka_DeleteTopics_result_topics(rd_kafka_event_DeleteTopics_result(event), &count), count);
        rd_kafka_event_destroy(event);
        rd_kafka_queue_destroy(queue);
}

BROKER_CASE(topics_deleted) {
        rd_kafka_t *rk = client();
        rd_kafka_DeleteTopic_t *topics[3] = {rd_kafka_DeleteTopic_new(topic_name("a")), rd_kafka_DeleteTopic_new(topic_name("missing")),
                                             rd_kafka_DeleteTopic_new(topic_name("a"))};
        create_one(rk, topic_name("a"), 1);
        delete(rk, topics, 0);
        delete(rk, topics, 3);
        delete(rk, topics, 2);
        delete(rk, topics, 1);
        rd_kafka_DeleteTopic_destroy_array(topics, 3);
        rd_kafka_destroy(rk);
}

static void extend(rd_kafka_t *rk, rd_kafka_NewPartitions_t **partitions, size_t count) {
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
        rd_kafka_event_t *event;
        rd_kafka_CreatePartitions(rk, partitions, count, NULL, queue);
        event = result_of(queue);
        if (rd_kafka_event_CreatePartitions_result(event))
                say_topics("extended", rd_kafka_CreatePartitions_result_topics(rd_kafka_event_CreatePartitions_result(event), &count), count);
        rd_kafka_event_destroy(event);
        rd_kafka_queue_destroy(queue);
}

BROKER_CASE(partitions_created) {
        rd_kafka_t *rk = client();
        rd_kafka_NewPartitions_t *partitions[3];
        create_one(rk, topic_name("p"), 2);
        partitions[0] = rd_kafka_NewPartitions_new(topic_name("p"), 2, NULL, 0);
        partitions[1] = rd_kafka_NewPartitions_new(topic_name("missing"), 3, NULL, 0);
        partitions[2] = rd_kafka_NewPartitions_new(topic_name("p"), 4, NULL, 0);
        extend(rk, partitions, 0);
        extend(rk, partitions, 2);
        extend(rk, partitions + 2, 1);
        extend(rk, partitions, 3);
        rd_kafka_NewPartitions_destroy_array(partitions, 3);
        partitions[0] = rd_kafka_NewPartitions_new(topic_name("p"), 1, NULL, 0);
        extend(rk, partitions, 1);
        rd_kafka_NewPartitions_destroy(partitions[0]);
        rd_kafka_destroy(rk);
}

static void say_resources(const rd_kafka_ConfigResource_t **resources, size_t count, const char *entry) {
        size_t i, j, entries;
        for (i = 0; i < count; i++) {
                const rd_kafka_ConfigEntry_t **configs = rd_kafka_ConfigResource_configs(resources[i], &entries);
                say("  %s type %d %s text %s", rd_kafka_ConfigResource_name(resources[i]), rd_kafka_ConfigResource_type(resources[i]),
                    err(rd_kafka_ConfigResource_error(resources[i])), present(rd_kafka_ConfigResource_error_string(resources[i])));
                for (j = 0; j < entries; j++)
                        if (!strcmp(rd_kafka_ConfigEntry_name(configs[j]), entry)) {
                                size_t synonyms;
                                rd_kafka_ConfigEntry_synonyms(configs[j], &synonyms);
                                say("    %s=%s source %s read only %d default %d sensitive %d synonym %d synonyms %s", entry, quoted(rd_kafka_ConfigEntry_value(configs[j])),
                                    rd_kafka_ConfigSource_name(rd_kafka_ConfigEntry_source(configs[j])), rd_kafka_ConfigEntry_is_read_only(configs[j]),
                                    rd_kafka_ConfigEntry_is_default(configs[j]), rd_kafka_ConfigEntry_is_sensitive(configs[j]),
                                    rd_kafka_ConfigEntry_is_synonym(configs[j]), synonyms ? "present" : "none");
                        }
        }
}

static void describe(rd_kafka_t *rk, rd_kafka_ConfigResource_t **resources, size_t count, const char *entry) {
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
        rd_kafka_event_t *event;
        const rd_kafka_ConfigResource_t **results;
        rd_kafka_DescribeConfigs(rk, resources, count, NULL, queue);
        event = result_of(queue);
        if (rd_kafka_event_DescribeConfigs_result(event)) {
                results = rd_kafka_DescribeConfigs_result_resources(rd_kafka_event_DescribeConfigs_result(event), &count);
                say_resources(results, count, entry);
        }
        rd_kafka_event_destroy(event);
        rd_kafka_queue_destroy(queue);
}

static void alter(rd_kafka_t *rk, rd_kafka_ConfigResource_t **resources, size_t count) {
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
        rd_kafka_event_t *event;
        const rd_kafka_ConfigResource_t **results;
        rd_kafka_AlterConfigs(rk, resources, count, NULL, queue);
        event = result_of(queue);
        if (rd_kafka_event_AlterConfigs_result(event)) {
                results = rd_kafka_AlterConfigs_result_resources(rd_kafka_event_AlterConfigs_result(event), &count);
                say_resources(results, count, "none");
        }
        rd_kafka_event_destroy(event);
        rd_kafka_queue_destroy(queue);
}

static void alter_incrementally(rd_kafka_t *rk, rd_kafka_ConfigResource_t **resources, size_t count) {
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
        rd_kafka_event_t *event;
        const rd_kafka_ConfigResource_t **results;
        rd_kafka_IncrementalAlterConfigs(rk, resources, count, NULL, queue);
        event = result_of(queue);
        if (rd_kafka_event_IncrementalAlterConfigs_result(event)) {
                results = rd_kafka_IncrementalAlterConfigs_result_resources(rd_kafka_event_IncrementalAlterConfigs_result(event), &count);
                say_resources(results, count, "none");
        }
        rd_kafka_event_destroy(event);
        rd_kafka_queue_destroy(queue);
}

static rd_kafka_ConfigResource_t *topic_resource(const char *name) { return rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic_name(name)); }

BROKER_CASE(configs_described_and_altered) {
        rd_kafka_t *rk = client();
        rd_kafka_ConfigResource_t *resources[2] = {topic_resource("c"), topic_resource("missing")}, *change = topic_resource("c");
        create_one(rk, topic_name("c"), 1);
        describe(rk, resources, 0, "none");
        describe(rk, resources, 2, "retention.ms");
        rd_kafka_ConfigResource_set_config(change, "retention.ms", "5000");
        alter(rk, &change, 0);
        alter(rk, &change, 1);
        describe(rk, resources, 1, "retention.ms");
        rd_kafka_ConfigResource_set_config(change, "no.such.config", "1");
        alter(rk, &change, 1);
        alter(rk, resources, 2);
        describe(rk, resources, 1, "retention.ms");
        rd_kafka_ConfigResource_destroy(change);
        rd_kafka_ConfigResource_destroy_array(resources, 2);
        rd_kafka_destroy(rk);
}

BROKER_CASE(configs_altered_incrementally) {
        rd_kafka_t *rk = client();
        rd_kafka_ConfigResource_t *resources[2] = {topic_resource("i"), topic_resource("missing")}, *same[2] = {resources[0], resources[0]};
        create_one(rk, topic_name("i"), 1);
        alter_incrementally(rk, resources, 0);
        alter_incrementally(rk, resources, 1);
        rd_kafka_error_destroy(rd_kafka_ConfigResource_add_incremental_config(resources[0], "retention.ms", RD_KAFKA_ALTER_CONFIG_OP_TYPE_SET, "7000"));
        rd_kafka_error_destroy(rd_kafka_ConfigResource_add_incremental_config(resources[1], "retention.ms", RD_KAFKA_ALTER_CONFIG_OP_TYPE_SET, "7000"));
        alter_incrementally(rk, resources, 2);
        alter_incrementally(rk, same, 2);
        describe(rk, resources, 1, "retention.ms");
        rd_kafka_ConfigResource_destroy(resources[0]);
        resources[0] = topic_resource("i");
        rd_kafka_error_destroy(rd_kafka_ConfigResource_add_incremental_config(resources[0], "cleanup.policy", RD_KAFKA_ALTER_CONFIG_OP_TYPE_APPEND, "compact"));
        rd_kafka_error_destroy(rd_kafka_ConfigResource_add_incremental_config(resources[0], "retention.ms", RD_KAFKA_ALTER_CONFIG_OP_TYPE_DELETE, NULL));
        alter_incrementally(rk, resources, 1);
        describe(rk, resources, 1, "cleanup.policy");
        describe(rk, resources, 1, "retention.ms");
        rd_kafka_ConfigResource_destroy_array(resources, 2);
        rd_kafka_destroy(rk);
}

BROKER_CASE(configs_of_brokers) {
        rd_kafka_t *rk = client();
        rd_kafka_ConfigResource_t *resources[2] = {rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_BROKER, "1"), rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_BROKER, "nonsense")};
        rd_kafka_ConfigResource_t *both[2] = {resources[0], resources[0]};
        describe(rk, resources, 1, "none");
        describe(rk, resources + 1, 1, "none");
        describe(rk, both, 2, "none");
        rd_kafka_ConfigResource_destroy_array(resources, 2);
        rd_kafka_destroy(rk);
}

BROKER_CASE(cluster_described) {
        rd_kafka_t *rk = client();
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
        rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_DESCRIBECLUSTER);
        const rd_kafka_DescribeCluster_result_t *result;
        rd_kafka_event_t *event;
        size_t count = 77, round;
        for (round = 0; round < 2; round++) {
                rd_kafka_DescribeCluster(rk, round ? options : NULL, queue);
                event = result_of(queue);
                result = rd_kafka_event_DescribeCluster_result(event);
                say("nodes %s %zu", rd_kafka_DescribeCluster_result_nodes(result, &count) ? "present" : "NULL", count);
                say("controller %s cluster id %s", rd_kafka_DescribeCluster_result_controller(result) ? "present" : "NULL", present(rd_kafka_DescribeCluster_result_cluster_id(result)));
                count = 77;
                say("operations %s", rd_kafka_DescribeCluster_result_authorized_operations(result, &count) ? "present" : "NULL");
                say("count %s", count == 77 ? "untouched" : count ? "some" : "0");
                rd_kafka_event_destroy(event);
                say_error("operations asked for", rd_kafka_AdminOptions_set_include_authorized_operations(options, 1));
        }
        say_error("operations 2", rd_kafka_AdminOptions_set_include_authorized_operations(options, 2));
        rd_kafka_AdminOptions_destroy(options);
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
}

static void fill(rd_kafka_t *rk, const char *name) {
        int i;
        for (i = 0; i < 4; i++)
                rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(name), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_TIMESTAMP(1700000000000LL + i * 1000), RD_KAFKA_V_VALUE("abcd" + i, 1), RD_KAFKA_V_END);
        say("flush %s", err(rd_kafka_flush(rk, 20000)));
}

static void delete_records(rd_kafka_t *rk, rd_kafka_topic_partition_list_t *offsets, size_t count) {
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
        rd_kafka_DeleteRecords_t *records = rd_kafka_DeleteRecords_new(offsets);
        rd_kafka_DeleteRecords_t *twice[2] = {records, records};
        rd_kafka_event_t *event;
        rd_kafka_DeleteRecords(rk, twice, count, NULL, queue);
        event = result_of(queue);
        if (!rd_kafka_event_error(event))
                say_partitions("deleted", rd_kafka_DeleteRecords_result_offsets(rd_kafka_event_DeleteRecords_result(event)));
        rd_kafka_event_destroy(event);
        rd_kafka_DeleteRecords_destroy(records);
        rd_kafka_queue_destroy(queue);
}

BROKER_CASE(records_deleted) {
        rd_kafka_t *rk = client();
        rd_kafka_topic_partition_list_t *offsets = rd_kafka_topic_partition_list_new(3);
        create_one(rk, topic_name("r"), 1);
        fill(rk, topic_name("r"));
        delete_records(rk, offsets, 1);
        rd_kafka_topic_partition_list_add(offsets, topic_name("r"), 0)->offset = 2;
        delete_records(rk, offsets, 0);
        delete_records(rk, offsets, 2);
        delete_records(rk, offsets, 1);
        offsets->elems[0].offset = 1;
        delete_records(rk, offsets, 1);
        offsets->elems[0].offset = 99;
        delete_records(rk, offsets, 1);
        offsets->elems[0].offset = -5;
        delete_records(rk, offsets, 1);
        offsets->elems[0].offset = RD_KAFKA_OFFSET_END;
        delete_records(rk, offsets, 1);
        rd_kafka_topic_partition_list_add(offsets, topic_name("r"), 7)->offset = 2;
        rd_kafka_topic_partition_list_add(offsets, topic_name("zz"), 0)->offset = 2;
        delete_records(rk, offsets, 1);
        rd_kafka_topic_partition_list_destroy(offsets);
        rd_kafka_destroy(rk);
}

static void list_offsets(rd_kafka_t *rk, rd_kafka_topic_partition_list_t *offsets) {
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
        rd_kafka_event_t *event;
        const rd_kafka_ListOffsetsResultInfo_t **infos;
        size_t count = 0, i;
        rd_kafka_ListOffsets(rk, offsets, NULL, queue);
        event = result_of(queue);
        if (rd_kafka_event_ListOffsets_result(event)) {
                infos = rd_kafka_ListOffsets_result_infos(rd_kafka_event_ListOffsets_result(event), &count);
                say("infos %zu", count);
                for (i = 0; i < count; i++) {
                        const rd_kafka_topic_partition_t *p = rd_kafka_ListOffsetsResultInfo_topic_partition(infos[i]);
                        say("  %s [%d] offset %s error %s timestamp %lld epoch %d", p->topic, p->partition, offset_name(p->offset), err(p->err),
                            (long long)rd_kafka_ListOffsetsResultInfo_timestamp(infos[i]), rd_kafka_topic_partition_get_leader_epoch(p));
                }
        }
        rd_kafka_event_destroy(event);
        rd_kafka_queue_destroy(queue);
}

BROKER_CASE(offsets_listed) {
        static const int64_t specs[] = {RD_KAFKA_OFFSET_SPEC_EARLIEST, RD_KAFKA_OFFSET_SPEC_LATEST, RD_KAFKA_OFFSET_SPEC_MAX_TIMESTAMP, 0, 1700000001000LL, 1700000001500LL, 1900000000000LL, -77};
        rd_kafka_t *rk = client();
        rd_kafka_topic_partition_list_t *offsets = rd_kafka_topic_partition_list_new(3);
        size_t i;
        create_one(rk, topic_name("o"), 1);
        fill(rk, topic_name("o"));
        list_offsets(rk, offsets);
        rd_kafka_topic_partition_list_add(offsets, topic_name("o"), 0);
        for (i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
                say("spec %lld", (long long)specs[i]);
                offsets->elems[0].offset = specs[i];
                list_offsets(rk, offsets);
        }
        offsets->elems[0].offset = RD_KAFKA_OFFSET_SPEC_LATEST;
        rd_kafka_topic_partition_list_add(offsets, topic_name("o"), 7)->offset = RD_KAFKA_OFFSET_SPEC_LATEST;
        list_offsets(rk, offsets);
        rd_kafka_topic_partition_list_del_by_idx(offsets, 1);
        rd_kafka_topic_partition_list_add(offsets, topic_name("o"), 0)->offset = RD_KAFKA_OFFSET_SPEC_EARLIEST;
        say("the same partition twice");
        list_offsets(rk, offsets);
        rd_kafka_topic_partition_list_destroy(offsets);
        rd_kafka_destroy(rk);
}

/* Every call without arguments and without brokers: each finally returns an event of its type. */
CASE(calls_without_brokers) {
        rd_kafka_t *rk = producer_of(conf_of("bootstrap.servers", DEAD, NULL));
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
        rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_ANY);
        rd_kafka_topic_partition_list_t *offsets = rd_kafka_topic_partition_list_new(1);
        rd_kafka_ConfigResource_t *resource = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, "t");
        rd_kafka_DeleteTopic_t *topic = rd_kafka_DeleteTopic_new("t");
        rd_kafka_NewPartitions_t *partitions = rd_kafka_NewPartitions_new("t", 2, NULL, 0);
        rd_kafka_DeleteRecords_t *records;
        rd_kafka_topic_partition_list_add(offsets, "t", 0)->offset = 1;
        records = rd_kafka_DeleteRecords_new(offsets);
        rd_kafka_AdminOptions_set_request_timeout(options, 400, NULL, 0);
        rd_kafka_DeleteTopics(rk, &topic, 1, options, queue);
        rd_kafka_event_destroy(result_of(queue));
        rd_kafka_CreatePartitions(rk, &partitions, 1, options, queue);
        rd_kafka_event_destroy(result_of(queue));
        rd_kafka_DescribeConfigs(rk, &resource, 1, options, queue);
        rd_kafka_event_destroy(result_of(queue));
        rd_kafka_AlterConfigs(rk, &resource, 1, options, queue);
        rd_kafka_event_destroy(result_of(queue));
        rd_kafka_DeleteRecords(rk, &records, 1, options, queue);
        rd_kafka_event_destroy(result_of(queue));
        rd_kafka_DescribeCluster(rk, options, queue);
        rd_kafka_event_destroy(result_of(queue));
        offsets->elems[0].offset = RD_KAFKA_OFFSET_SPEC_LATEST;
        rd_kafka_ListOffsets(rk, offsets, options, queue);
        rd_kafka_event_destroy(result_of(queue));
        rd_kafka_DeleteRecords_destroy(records);
        rd_kafka_NewPartitions_destroy(partitions);
        rd_kafka_DeleteTopic_destroy(topic);
        rd_kafka_ConfigResource_destroy(resource);
        rd_kafka_topic_partition_list_destroy(offsets);
        rd_kafka_AdminOptions_destroy(options);
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
}
