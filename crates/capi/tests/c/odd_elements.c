/* Administrative calls with one odd element, or with none: they answer per element, and so do calls whose broker refuses
 * an element or can't be reached. */
#include "test.h"

static void offsets_are_altered_once(rd_kafka_t *rk, rd_kafka_queue_t *queue, int code) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        const rd_kafka_topic_partition_list_t *altered;
        rd_kafka_AlterConsumerGroupOffsets_t *alter;
        const rd_kafka_group_result_t **groups;
        rd_kafka_event_t *event;
        size_t count = 0;
        rd_kafka_mock_push_request_errors(rd_kafka_handle_mock_cluster(rk), 8, 1, code);
        rd_kafka_topic_partition_list_add(list, "odd", 0)->offset = 3;
        alter = rd_kafka_AlterConsumerGroupOffsets_new("g", list);
        rd_kafka_AlterConsumerGroupOffsets(rk, &alter, 1, NULL, queue);
        event = next_event(queue, RD_KAFKA_EVENT_ALTERCONSUMERGROUPOFFSETS_RESULT, RD_KAFKA_RESP_ERR_NO_ERROR);
        groups = rd_kafka_AlterConsumerGroupOffsets_result_groups(
                rd_kafka_event_AlterConsumerGroupOffsets_result(event), &count);
        CHECK(count == 1);
        altered = count == 1 ? rd_kafka_group_result_partitions(groups[0]) : NULL;
        CHECK(altered && altered->cnt == 1 && altered->elems[0].err == (rd_kafka_resp_err_t)code);
        rd_kafka_event_destroy(event);
        rd_kafka_AlterConsumerGroupOffsets_destroy(alter);
        rd_kafka_topic_partition_list_destroy(list);
}

static void groups_are_listed_without_brokers(void) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_AdminOptions_t *options;
        const rd_kafka_error_t **errors;
        rd_kafka_queue_t *queue;
        rd_kafka_event_t *event;
        char errstr[128];
        size_t count = 0;
        rd_kafka_t *rk;
        set(conf, "bootstrap.servers", "127.0.0.1:1");
        set(conf, "log_level", "0");
        rk = start(RD_KAFKA_PRODUCER, conf);
        queue = rd_kafka_queue_new(rk);
        options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPS);
        CHECK(!rd_kafka_AdminOptions_set_request_timeout(options, 50, errstr, sizeof(errstr)));
        rd_kafka_ListConsumerGroups(rk, options, queue);
        event = next_event(queue, RD_KAFKA_EVENT_LISTCONSUMERGROUPS_RESULT, RD_KAFKA_RESP_ERR_NO_ERROR);
        errors = rd_kafka_ListConsumerGroups_result_errors(rd_kafka_event_ListConsumerGroups_result(event), &count);
        CHECK(count == 1 && rd_kafka_error_code(errors[0]) == RD_KAFKA_RESP_ERR__TIMED_OUT);
        rd_kafka_event_destroy(event);
        rd_kafka_AdminOptions_destroy(options);
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
}

int main(void) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(3);
        const rd_kafka_topic_partition_list_t *deleted;
        const char *no_names[1] = {NULL};
        rd_kafka_ConfigResource_t *no_configs[1] = {NULL};
        const rd_kafka_ConfigResource_t **resources;
        rd_kafka_ConfigResource_t *resource;
        rd_kafka_TopicCollection_t *topics;
        rd_kafka_DeleteRecords_t *records;
        rd_kafka_NewTopic_t *topic;
        rd_kafka_queue_t *queue;
        rd_kafka_event_t *event;
        char errstr[128];
        size_t count = 7;
        rd_kafka_t *rk;
        set(conf, "test.mock.num.brokers", "1");
        set(conf, "log_level", "2");
        rk = start(RD_KAFKA_PRODUCER, conf);
        queue = rd_kafka_queue_new(rk);
        CHECK(rd_kafka_mock_topic_create(rd_kafka_handle_mock_cluster(rk), "odd", 1, 1) == 0);

        rd_kafka_topic_partition_list_add(list, "odd", 0)->offset = -5;
        rd_kafka_topic_partition_list_add(list, "odd", -3)->offset = 0;
        records = rd_kafka_DeleteRecords_new(list);
        rd_kafka_DeleteRecords(rk, &records, 1, NULL, queue);
        event = next_event(queue, RD_KAFKA_EVENT_DELETERECORDS_RESULT, RD_KAFKA_RESP_ERR_NO_ERROR);
        deleted = rd_kafka_DeleteRecords_result_offsets(rd_kafka_event_DeleteRecords_result(event));
        CHECK(deleted && deleted->cnt == 2);
        CHECK(deleted && deleted->elems[0].err == RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE);
        CHECK(deleted && deleted->elems[1].err == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION);
        rd_kafka_event_destroy(event);
        rd_kafka_DeleteRecords_destroy(records);
        rd_kafka_topic_partition_list_destroy(list);

        topics = rd_kafka_TopicCollection_of_topic_names(no_names, 0);
        rd_kafka_DescribeTopics(rk, topics, NULL, queue);
        event = next_event(queue, RD_KAFKA_EVENT_DESCRIBETOPICS_RESULT, RD_KAFKA_RESP_ERR_NO_ERROR);
        rd_kafka_DescribeTopics_result_topics(rd_kafka_event_DescribeTopics_result(event), &count);
        CHECK(count == 0);
        rd_kafka_event_destroy(event);
        rd_kafka_TopicCollection_destroy(topics);

        /* A resource without changes is one, no resource is none. */
        resource = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, "odd");
        rd_kafka_IncrementalAlterConfigs(rk, &resource, 1, NULL, queue);
        event = next_event(queue, RD_KAFKA_EVENT_INCREMENTALALTERCONFIGS_RESULT, RD_KAFKA_RESP_ERR_NO_ERROR);
        resources = rd_kafka_IncrementalAlterConfigs_result_resources(
                rd_kafka_event_IncrementalAlterConfigs_result(event), &count);
        CHECK(count == 1 && rd_kafka_ConfigResource_error(resources[0]) == RD_KAFKA_RESP_ERR_NO_ERROR);
        rd_kafka_event_destroy(event);
        rd_kafka_ConfigResource_destroy(resource);
        rd_kafka_DescribeConfigs(rk, no_configs, 0, NULL, queue);
        event = next_event(queue, RD_KAFKA_EVENT_DESCRIBECONFIGS_RESULT, RD_KAFKA_RESP_ERR__INVALID_ARG);
        rd_kafka_event_destroy(event);
        rd_kafka_IncrementalAlterConfigs(rk, no_configs, 0, NULL, queue);
        event = next_event(queue, RD_KAFKA_EVENT_INCREMENTALALTERCONFIGS_RESULT, RD_KAFKA_RESP_ERR__INVALID_ARG);
        rd_kafka_event_destroy(event);

        offsets_are_altered_once(rk, queue, RD_KAFKA_RESP_ERR_NO_ERROR);
        offsets_are_altered_once(rk, queue, RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS);
        offsets_are_altered_once(rk, queue, RD_KAFKA_RESP_ERR_NOT_COORDINATOR);
        offsets_are_altered_once(rk, queue, RD_KAFKA_RESP_ERR_NO_ERROR);
        groups_are_listed_without_brokers();

        /* A property without a value is for the broker to refuse. */
        topic = rd_kafka_NewTopic_new("new", 1, 1, errstr, sizeof(errstr));
        CHECK(rd_kafka_NewTopic_set_config(topic, "retention.ms", NULL) == RD_KAFKA_RESP_ERR_NO_ERROR);
        CHECK(rd_kafka_NewTopic_set_config(topic, NULL, "1") == RD_KAFKA_RESP_ERR__INVALID_ARG);
        rd_kafka_NewTopic_destroy(topic);
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
        return bad != 0;
}
