/* Administrative calls with one odd element, or with none: they answer per element, and an empty list has an empty
 * result. */
#include "test.h"

int main(void) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(3);
        const rd_kafka_topic_partition_list_t *deleted;
        const char *no_names[1] = {NULL};
        rd_kafka_ConfigResource_t *no_configs[1] = {NULL};
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

        rd_kafka_DescribeConfigs(rk, no_configs, 0, NULL, queue);
        event = next_event(queue, RD_KAFKA_EVENT_DESCRIBECONFIGS_RESULT, RD_KAFKA_RESP_ERR_NO_ERROR);
        count = 7;
        rd_kafka_DescribeConfigs_result_resources(rd_kafka_event_DescribeConfigs_result(event), &count);
        CHECK(count == 0);
        rd_kafka_event_destroy(event);
        rd_kafka_IncrementalAlterConfigs(rk, no_configs, 0, NULL, queue);
        event = next_event(queue, RD_KAFKA_EVENT_INCREMENTALALTERCONFIGS_RESULT, RD_KAFKA_RESP_ERR_NO_ERROR);
        rd_kafka_event_destroy(event);

        /* A property without a value is for the broker to refuse. */
        topic = rd_kafka_NewTopic_new("new", 1, 1, errstr, sizeof(errstr));
        CHECK(rd_kafka_NewTopic_set_config(topic, "retention.ms", NULL) == RD_KAFKA_RESP_ERR_NO_ERROR);
        CHECK(rd_kafka_NewTopic_set_config(topic, NULL, "1") == RD_KAFKA_RESP_ERR__INVALID_ARG);
        rd_kafka_NewTopic_destroy(topic);
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
        return bad != 0;
}
