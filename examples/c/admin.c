/*
 * Creates, describes and deletes a topic: admin BROKERS create TOPIC PARTITIONS REPLICAS | describe TOPIC | delete TOPIC
 *
 *   cc admin.c -o admin $(pkg-config --cflags --libs rdkafka)
 */
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static rd_kafka_queue_t *queue;

/* Waits for the result of a call, which is an event; NULL if the whole call failed. */
static rd_kafka_event_t *answer(void) {
        rd_kafka_event_t *event = rd_kafka_queue_poll(queue, -1);
        if (!rd_kafka_event_error(event))
                return event;
        fprintf(stderr, "%s: %s\n", rd_kafka_event_name(event), rd_kafka_event_error_string(event));
        rd_kafka_event_destroy(event);
        return NULL;
}

/* Prints the result of each topic; returns the number of failures. */
static int results(const rd_kafka_topic_result_t **topics, size_t cnt, const char *done) {
        int failed = 0;
        size_t i;
        for (i = 0; i < cnt; i++) {
                rd_kafka_resp_err_t err = rd_kafka_topic_result_error(topics[i]);
                printf("%s: %s\n", rd_kafka_topic_result_name(topics[i]), err ? rd_kafka_err2name(err) : done);
                failed += err != 0;
        }
        return failed;
}

static int create(rd_kafka_t *rk, const char *name, int partitions, int replicas) {
        char errstr[256];
        rd_kafka_NewTopic_t *topic = rd_kafka_NewTopic_new(name, partitions, replicas, errstr, sizeof(errstr));
        rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_CREATETOPICS);
        const rd_kafka_topic_result_t **topics;
        rd_kafka_event_t *event;
        size_t cnt;
        int failed = 1;
        if (!topic) {
                fprintf(stderr, "%s\n", errstr);
        } else {
                rd_kafka_AdminOptions_set_request_timeout(options, 30000, NULL, 0);
                rd_kafka_CreateTopics(rk, &topic, 1, options, queue);
                rd_kafka_NewTopic_destroy(topic);
                event = answer();
                if (event) {
                        topics = rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &cnt);
                        failed = results(topics, cnt, "created");
                        rd_kafka_event_destroy(event);
                }
        }
        rd_kafka_AdminOptions_destroy(options);
        return failed;
}

static int describe(rd_kafka_t *rk, const char *name) {
        rd_kafka_TopicCollection_t *collection = rd_kafka_TopicCollection_of_topic_names(&name, 1);
        const rd_kafka_TopicDescription_t **topics;
        const rd_kafka_TopicPartitionInfo_t **partitions;
        const rd_kafka_error_t *error;
        rd_kafka_event_t *event;
        size_t cnt, replicas, i;
        rd_kafka_DescribeTopics(rk, collection, NULL, queue);
        rd_kafka_TopicCollection_destroy(collection);
        event = answer();
        if (!event)
                return 1;
        topics = rd_kafka_DescribeTopics_result_topics(rd_kafka_event_DescribeTopics_result(event), &cnt);
        error = rd_kafka_TopicDescription_error(topics[0]);
        if (error)
                printf("%s: %s\n", name, rd_kafka_error_name(error));
        partitions = rd_kafka_TopicDescription_partitions(topics[0], &cnt);
        for (i = 0; i < cnt; i++) {
                rd_kafka_TopicPartitionInfo_replicas(partitions[i], &replicas);
                printf("%s [%d]: %d replicas\n", name, rd_kafka_TopicPartitionInfo_partition(partitions[i]),
                       (int)replicas);
        }
        rd_kafka_event_destroy(event);
        return error != NULL;
}

static int delete_topic(rd_kafka_t *rk, const char *name) {
        rd_kafka_DeleteTopic_t *topic = rd_kafka_DeleteTopic_new(name);
        const rd_kafka_topic_result_t **topics;
        rd_kafka_event_t *event;
        size_t cnt;
        int failed;
        rd_kafka_DeleteTopics(rk, &topic, 1, NULL, queue);
        rd_kafka_DeleteTopic_destroy(topic);
        event = answer();
        if (!event)
                return 1;
        topics = rd_kafka_DeleteTopics_result_topics(rd_kafka_event_DeleteTopics_result(event), &cnt);
        failed = results(topics, cnt, "deleted");
        rd_kafka_event_destroy(event);
        return failed;
}

int main(int argc, char **argv) {
        char errstr[512];
        rd_kafka_conf_t *conf;
        rd_kafka_t *rk;
        int failed = 2;

        if (argc < 4) {
                fprintf(stderr, "usage: %s BROKERS create TOPIC PARTITIONS REPLICAS | describe TOPIC | delete TOPIC\n",
                        argv[0]);
                return 2;
        }
        conf = rd_kafka_conf_new();
        if (rd_kafka_conf_set(conf, "bootstrap.servers", argv[1], errstr, sizeof(errstr)) != RD_KAFKA_CONF_OK) {
                fprintf(stderr, "%s\n", errstr);
                return 1;
        }
        rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof(errstr));
        if (!rk) {
                fprintf(stderr, "%s\n", errstr);
                return 1;
        }
        queue = rd_kafka_queue_new(rk);
        if (!strcmp(argv[2], "create"))
                failed = create(rk, argv[3], argc > 4 ? atoi(argv[4]) : -1, argc > 5 ? atoi(argv[5]) : -1);
        else if (!strcmp(argv[2], "describe"))
                failed = describe(rk, argv[3]);
        else if (!strcmp(argv[2], "delete"))
                failed = delete_topic(rk, argv[3]);
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
        return failed;
}
