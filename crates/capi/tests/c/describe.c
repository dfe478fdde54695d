/* Descriptions of a cluster and its topics, on brokers of any kind: nodes, and authorized operations on a cluster
 * without ACLs. */
#include "test.h"

/* The next event, which has to be of this type and no error. */
static rd_kafka_event_t *next(rd_kafka_queue_t *queue, int type) {
        rd_kafka_event_t *event = rd_kafka_queue_poll(queue, TIMEOUT_MS);
        CHECK(rd_kafka_event_type(event) == type && !rd_kafka_event_error(event));
        if (rd_kafka_event_type(event) != type || rd_kafka_event_error(event)) {
                fprintf(stderr, "%s\n", event ? rd_kafka_event_error_string(event) : "nothing came");
                exit(1);
        }
        return event;
}

static rd_kafka_AdminOptions_t *asking(rd_kafka_t *rk, rd_kafka_admin_op_t call, int asks) {
        rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(rk, call);
        char errstr[256];
        CHECK(!rd_kafka_AdminOptions_set_request_timeout(options, TIMEOUT_MS, errstr, sizeof(errstr)));
        CHECK(rd_kafka_AdminOptions_set_include_authorized_operations(options, asks) == NULL);
        return options;
}

static void create_topic(rd_kafka_t *rk, rd_kafka_queue_t *queue) {
        char errstr[256];
        rd_kafka_NewTopic_t *topic = rd_kafka_NewTopic_new("describe", 2, 1, errstr, sizeof(errstr));
        const rd_kafka_topic_result_t **results;
        rd_kafka_event_t *event;
        size_t cnt = 0;
        rd_kafka_CreateTopics(rk, &topic, 1, NULL, queue);
        rd_kafka_NewTopic_destroy(topic);
        event = next(queue, RD_KAFKA_EVENT_CREATETOPICS_RESULT);
        results = rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &cnt);
        CHECK(cnt == 1 && !rd_kafka_topic_result_error(results[0]));
        rd_kafka_event_destroy(event);
}

/* Authorized operations are returned on request: all of them, if there are no ACLs. */
static void cluster_is_described(rd_kafka_t *rk, rd_kafka_queue_t *queue, int asks) {
        static const rd_kafka_AclOperation_t all[] = {
            RD_KAFKA_ACL_OPERATION_CREATE,           RD_KAFKA_ACL_OPERATION_ALTER,
            RD_KAFKA_ACL_OPERATION_DESCRIBE,         RD_KAFKA_ACL_OPERATION_CLUSTER_ACTION,
            RD_KAFKA_ACL_OPERATION_DESCRIBE_CONFIGS, RD_KAFKA_ACL_OPERATION_ALTER_CONFIGS,
            RD_KAFKA_ACL_OPERATION_IDEMPOTENT_WRITE};
        rd_kafka_AdminOptions_t *options = asking(rk, RD_KAFKA_ADMIN_OP_DESCRIBECLUSTER, asks);
        const rd_kafka_DescribeCluster_result_t *cluster;
        const rd_kafka_AclOperation_t *operations;
        const rd_kafka_Node_t **nodes;
        rd_kafka_event_t *event;
        size_t cnt = 99;
        rd_kafka_DescribeCluster(rk, options, queue);
        rd_kafka_AdminOptions_destroy(options);
        event = next(queue, RD_KAFKA_EVENT_DESCRIBECLUSTER_RESULT);
        cluster = rd_kafka_event_DescribeCluster_result(event);
        operations = rd_kafka_DescribeCluster_result_authorized_operations(cluster, &cnt);
        CHECK(asks ? cnt == 7 && !memcmp(operations, all, sizeof(all)) : !cnt && !operations);
        nodes = rd_kafka_DescribeCluster_result_nodes(cluster, &cnt);
        CHECK(cnt > 0 && rd_kafka_Node_port(nodes[0]) > 0 && rd_kafka_Node_host(nodes[0])[0]);
        CHECK(rd_kafka_DescribeCluster_result_cluster_id(cluster)[0]);
        CHECK(rd_kafka_Node_id(rd_kafka_DescribeCluster_result_controller(cluster)) >= 0);
        rd_kafka_event_destroy(event);
}

static int topics_are_described(rd_kafka_t *rk, rd_kafka_queue_t *queue, int asks) {
        static const rd_kafka_AclOperation_t all[] = {
            RD_KAFKA_ACL_OPERATION_READ,   RD_KAFKA_ACL_OPERATION_WRITE,    RD_KAFKA_ACL_OPERATION_CREATE,
            RD_KAFKA_ACL_OPERATION_DELETE, RD_KAFKA_ACL_OPERATION_ALTER,    RD_KAFKA_ACL_OPERATION_DESCRIBE,
            RD_KAFKA_ACL_OPERATION_DESCRIBE_CONFIGS, RD_KAFKA_ACL_OPERATION_ALTER_CONFIGS};
        static const char *names[2] = {"describe", "nobody"};
        rd_kafka_TopicCollection_t *collection = rd_kafka_TopicCollection_of_topic_names(names, 2);
        rd_kafka_AdminOptions_t *options = asking(rk, RD_KAFKA_ADMIN_OP_DESCRIBETOPICS, asks);
        const rd_kafka_TopicDescription_t **topics;
        const rd_kafka_AclOperation_t *operations;
        rd_kafka_event_t *event;
        size_t cnt = 0;
        int is_known;
        rd_kafka_DescribeTopics(rk, collection, options, queue);
        rd_kafka_AdminOptions_destroy(options);
        rd_kafka_TopicCollection_destroy(collection);
        event = next(queue, RD_KAFKA_EVENT_DESCRIBETOPICS_RESULT);
        topics = rd_kafka_DescribeTopics_result_topics(rd_kafka_event_DescribeTopics_result(event), &cnt);
        CHECK(cnt == 2);
        is_known = !rd_kafka_error_code(rd_kafka_TopicDescription_error(topics[0]));
        if (is_known) {
                const rd_kafka_Uuid_t *id = rd_kafka_TopicDescription_topic_id(topics[0]);
                CHECK(rd_kafka_Uuid_most_significant_bits(id) || rd_kafka_Uuid_least_significant_bits(id));
                /* The object belongs to the event: destroying it has no effect. */
                rd_kafka_Uuid_destroy((rd_kafka_Uuid_t *)id);
                CHECK(strlen(rd_kafka_Uuid_base64str(id)) == 22);
                rd_kafka_TopicDescription_partitions(topics[0], &cnt);
                CHECK(cnt == 2);
                cnt = 99;
                operations = rd_kafka_TopicDescription_authorized_operations(topics[0], &cnt);
                CHECK(asks ? cnt == 8 && !memcmp(operations, all, sizeof(all)) : !cnt && !operations);
        }
        CHECK(rd_kafka_error_code(rd_kafka_TopicDescription_error(topics[1])) ==
              RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
        CHECK(rd_kafka_TopicDescription_authorized_operations(topics[1], &cnt) == NULL && cnt == 0);
        rd_kafka_event_destroy(event);
        return is_known;
}

int main(int argc, char **argv) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_queue_t *queue;
        rd_kafka_t *rk;
        int asks;
        if (argc < 2)
                return 2;
        set(conf, "bootstrap.servers", argv[1]);
        rk = start(RD_KAFKA_PRODUCER, conf);
        queue = rd_kafka_queue_new(rk);
        create_topic(rk, queue);
        for (asks = 0; asks < 2; asks++) {
                cluster_is_described(rk, queue, asks);
                /* Brokers learn of a topic one after the other. */
                UNTIL(topics_are_described(rk, queue, asks), usleep(100000));
        }
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
        return bad != 0;
}
