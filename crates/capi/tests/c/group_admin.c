/* Admin calls about groups: offsets are committed, listed and deleted; groups are listed, described and deleted;
 * calls with wrong arguments, and wrong options. */
#include "test.h"

static rd_kafka_t *client(const char *servers) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        set(conf, "bootstrap.servers", servers);
        set(conf, "log_level", "2");
        /* The time of calls without options, which all succeed. */
        set_ms(conf, "socket.timeout.ms", SCALED_MS(30000));
        return start(RD_KAFKA_PRODUCER, conf);
}

static rd_kafka_topic_partition_list_t *partitions(const char *topic, int count, int64_t offset) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(count);
        int i;
        for (i = 0; i < count; i++)
                rd_kafka_topic_partition_list_add(list, topic, i)->offset = offset + i;
        return list;
}

/* Commits offsets 7 and 8 for a group, which creates it. */
static void commit(rd_kafka_t *rk, rd_kafka_queue_t *queue, const char *group, const char *topic) {
        rd_kafka_topic_partition_list_t *list = partitions(topic, 2, 7);
        rd_kafka_AlterConsumerGroupOffsets_t *alter;
        const rd_kafka_topic_partition_list_t *result;
        const rd_kafka_group_result_t **groups;
        rd_kafka_event_t *event;
        size_t cnt = 0;
        rd_kafka_topic_partition_set_leader_epoch(&list->elems[1], 3);
        alter = rd_kafka_AlterConsumerGroupOffsets_new(group, list);
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_AlterConsumerGroupOffsets(rk, &alter, 1, NULL, queue);
        rd_kafka_AlterConsumerGroupOffsets_destroy(alter);
        event = next_event(queue, RD_KAFKA_EVENT_ALTERCONSUMERGROUPOFFSETS_RESULT, 0);
        groups = rd_kafka_AlterConsumerGroupOffsets_result_groups(rd_kafka_event_AlterConsumerGroupOffsets_result(event), &cnt);
        CHECK(cnt == 1 && !strcmp(rd_kafka_group_result_name(groups[0]), group));
        CHECK(rd_kafka_group_result_error(groups[0]) == NULL);
        result = rd_kafka_group_result_partitions(groups[0]);
        CHECK(result && result->cnt == 2 && result->elems[1].offset == 8 && result->elems[1].err == 0);
        rd_kafka_event_destroy(event);
}

/* Returns the committed offset of a group for a partition. */
static int64_t committed(rd_kafka_t *rk, rd_kafka_queue_t *queue, const char *group, const char *topic, int partition,
                         int all) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPOFFSETS);
        rd_kafka_ListConsumerGroupOffsets_t *request;
        const rd_kafka_group_result_t **groups;
        const rd_kafka_topic_partition_list_t *result;
        int64_t offset = -1;
        rd_kafka_event_t *event;
        size_t cnt = 0;
        int i;
        CHECK(rd_kafka_AdminOptions_set_require_stable_offsets(options, 1) == NULL);
        rd_kafka_topic_partition_list_add(list, topic, partition);
        request = rd_kafka_ListConsumerGroupOffsets_new(group, all ? NULL : list);
        rd_kafka_ListConsumerGroupOffsets(rk, &request, 1, options, queue);
        rd_kafka_ListConsumerGroupOffsets_destroy_array(&request, 1);
        event = next_event(queue, RD_KAFKA_EVENT_LISTCONSUMERGROUPOFFSETS_RESULT, 0);
        groups = rd_kafka_ListConsumerGroupOffsets_result_groups(rd_kafka_event_ListConsumerGroupOffsets_result(event), &cnt);
        CHECK(cnt == 1);
        result = rd_kafka_group_result_partitions(groups[0]);
        CHECK(result->cnt == (all ? 2 : 1));
        for (i = 0; i < result->cnt; i++)
                if (result->elems[i].partition == partition) {
                        offset = result->elems[i].offset;
                        CHECK(result->elems[i].err == 0);
                        CHECK(rd_kafka_topic_partition_get_leader_epoch(&result->elems[i]) == (offset == 8 ? 3 : -1));
                }
        rd_kafka_event_destroy(event);
        rd_kafka_AdminOptions_destroy(options);
        rd_kafka_topic_partition_list_destroy(list);
        return offset;
}

/* Returns the state of a group in the result of ListConsumerGroups, or -1. */
static int listed(rd_kafka_t *rk, rd_kafka_queue_t *queue, const char *group, rd_kafka_AdminOptions_t *options) {
        const rd_kafka_ListConsumerGroups_result_t *result;
        const rd_kafka_ConsumerGroupListing_t **groups;
        rd_kafka_event_t *event;
        size_t cnt = 0, errors = 77, i;
        int state = -1;
        rd_kafka_ListConsumerGroups(rk, options, queue);
        event = next_event(queue, RD_KAFKA_EVENT_LISTCONSUMERGROUPS_RESULT, 0);
        result = rd_kafka_event_ListConsumerGroups_result(event);
        CHECK(rd_kafka_event_DescribeConsumerGroups_result(event) == NULL);
        CHECK(rd_kafka_ListConsumerGroups_result_errors(result, &errors) == NULL && errors == 0);
        groups = rd_kafka_ListConsumerGroups_result_valid(result, &cnt);
        for (i = 0; i < cnt; i++)
                if (!strcmp(rd_kafka_ConsumerGroupListing_group_id(groups[i]), group)) {
                        state = rd_kafka_ConsumerGroupListing_state(groups[i]);
                        CHECK(rd_kafka_ConsumerGroupListing_type(groups[i]) == RD_KAFKA_CONSUMER_GROUP_TYPE_CLASSIC);
                        CHECK(rd_kafka_ConsumerGroupListing_is_simple_consumer_group(groups[i]) == 1);
                }
        rd_kafka_event_destroy(event);
        return state;
}

static void groups_are_listed(rd_kafka_t *rk, rd_kafka_queue_t *queue) {
        static const rd_kafka_consumer_group_state_t empty[] = {RD_KAFKA_CONSUMER_GROUP_STATE_EMPTY},
                                                     stable[] = {RD_KAFKA_CONSUMER_GROUP_STATE_STABLE},
                                                     twice[] = {RD_KAFKA_CONSUMER_GROUP_STATE_STABLE, RD_KAFKA_CONSUMER_GROUP_STATE_STABLE},
                                                     none[] = {99};
        static const rd_kafka_consumer_group_type_t consumer[] = {RD_KAFKA_CONSUMER_GROUP_TYPE_CONSUMER},
                                                    unknown[] = {RD_KAFKA_CONSUMER_GROUP_TYPE_UNKNOWN};
        rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPS);
        rd_kafka_error_t *error;
        CHECK(listed(rk, queue, "one", NULL) == RD_KAFKA_CONSUMER_GROUP_STATE_EMPTY);
        CHECK(listed(rk, queue, "strange", options) == -1);
        CHECK(rd_kafka_AdminOptions_set_match_consumer_group_states(options, stable, 1) == NULL);
        CHECK(listed(rk, queue, "one", options) == -1);
        CHECK(rd_kafka_AdminOptions_set_match_consumer_group_states(options, empty, 1) == NULL);
        CHECK(listed(rk, queue, "one", options) == RD_KAFKA_CONSUMER_GROUP_STATE_EMPTY);
        CHECK(rd_kafka_AdminOptions_set_match_consumer_group_types(options, consumer, 1) == NULL);
        CHECK(listed(rk, queue, "one", options) == -1);
        CHECK((error = rd_kafka_AdminOptions_set_match_consumer_group_states(options, twice, 2)) != NULL);
        CHECK(rd_kafka_error_code(error) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        rd_kafka_error_destroy(error);
        CHECK((error = rd_kafka_AdminOptions_set_match_consumer_group_states(options, none, 1)) != NULL);
        rd_kafka_error_destroy(error);
        CHECK((error = rd_kafka_AdminOptions_set_match_consumer_group_types(options, unknown, 1)) != NULL);
        rd_kafka_error_destroy(error);
        CHECK((error = rd_kafka_AdminOptions_set_match_consumer_group_types(options, NULL, 1)) != NULL);
        rd_kafka_error_destroy(error);
        CHECK((error = rd_kafka_AdminOptions_set_require_stable_offsets(options, 1)) != NULL);
        rd_kafka_error_destroy(error);
        rd_kafka_AdminOptions_destroy(options);
}

static void groups_are_described(rd_kafka_t *rk, rd_kafka_queue_t *queue) {
        const char *names[] = {"one", "strange"}, *same[] = {"one", "one"};
        const rd_kafka_ConsumerGroupDescription_t **groups;
        rd_kafka_event_t *event;
        size_t cnt = 0;
        rd_kafka_DescribeConsumerGroups(rk, names, 2, NULL, queue);
        event = next_event(queue, RD_KAFKA_EVENT_DESCRIBECONSUMERGROUPS_RESULT, 0);
        groups = rd_kafka_DescribeConsumerGroups_result_groups(rd_kafka_event_DescribeConsumerGroups_result(event), &cnt);
        CHECK(cnt == 2);
        CHECK(!strcmp(rd_kafka_ConsumerGroupDescription_group_id(groups[0]), "one"));
        CHECK(rd_kafka_ConsumerGroupDescription_error(groups[0]) == NULL);
        CHECK(rd_kafka_ConsumerGroupDescription_state(groups[0]) == RD_KAFKA_CONSUMER_GROUP_STATE_EMPTY);
        CHECK(rd_kafka_ConsumerGroupDescription_type(groups[0]) == RD_KAFKA_CONSUMER_GROUP_TYPE_CLASSIC);
        CHECK(rd_kafka_ConsumerGroupDescription_is_simple_consumer_group(groups[0]) == 1);
        CHECK(!strcmp(rd_kafka_ConsumerGroupDescription_partition_assignor(groups[0]), ""));
        CHECK(rd_kafka_ConsumerGroupDescription_member_count(groups[0]) == 0);
        CHECK(rd_kafka_ConsumerGroupDescription_member(groups[0], 0) == NULL);
        CHECK(rd_kafka_ConsumerGroupDescription_coordinator(groups[0]) != NULL);
        CHECK(rd_kafka_Node_port(rd_kafka_ConsumerGroupDescription_coordinator(groups[0])) != 0);
        CHECK(rd_kafka_ConsumerGroupDescription_authorized_operations(groups[0], &cnt) == NULL && cnt == 0);
        CHECK(rd_kafka_ConsumerGroupDescription_error(groups[1]) == NULL);
        CHECK(rd_kafka_ConsumerGroupDescription_state(groups[1]) == RD_KAFKA_CONSUMER_GROUP_STATE_DEAD);
        rd_kafka_event_destroy(event);

        rd_kafka_DescribeConsumerGroups(rk, same, 2, NULL, queue);
        rd_kafka_event_destroy(next_event(queue, RD_KAFKA_EVENT_DESCRIBECONSUMERGROUPS_RESULT, RD_KAFKA_RESP_ERR__INVALID_ARG));
        rd_kafka_DescribeConsumerGroups(rk, NULL, 0, NULL, queue);
        rd_kafka_event_destroy(next_event(queue, RD_KAFKA_EVENT_DESCRIBECONSUMERGROUPS_RESULT, RD_KAFKA_RESP_ERR__INVALID_ARG));
}

static void groups_are_listed_in_structures(rd_kafka_t *rk) {
        const struct rd_kafka_group_list *list = NULL;
        CHECK(rd_kafka_list_groups(rk, "one", &list, TIMEOUT_MS) == 0);
        CHECK(list && list->group_cnt == 1 && !strcmp(list->groups[0].group, "one"));
        CHECK(list->groups[0].err == 0 && !strcmp(list->groups[0].state, "Empty"));
        CHECK(list->groups[0].member_cnt == 0 && *list->groups[0].broker.host && list->groups[0].broker.port);
        rd_kafka_group_list_destroy(list);
        CHECK(rd_kafka_list_groups(rk, "strange", &list, TIMEOUT_MS) == 0);
        CHECK(list->group_cnt == 0);
        rd_kafka_group_list_destroy(list);
        CHECK(rd_kafka_list_groups(rk, NULL, &list, TIMEOUT_MS) == 0);
        CHECK(list->group_cnt == 2);
        rd_kafka_group_list_destroy(list);
}

static void offsets_are_deleted(rd_kafka_t *rk, rd_kafka_queue_t *queue) {
        rd_kafka_topic_partition_list_t *list = partitions("t", 3, 0);
        const rd_kafka_topic_partition_list_t *result;
        const rd_kafka_group_result_t **groups;
        rd_kafka_DeleteConsumerGroupOffsets_t *request;
        rd_kafka_event_t *event;
        size_t cnt = 0;
        rd_kafka_topic_partition_list_del_by_idx(list, 0);
        request = rd_kafka_DeleteConsumerGroupOffsets_new("one", list);
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_DeleteConsumerGroupOffsets(rk, &request, 1, NULL, queue);
        rd_kafka_DeleteConsumerGroupOffsets_destroy(request);
        event = next_event(queue, RD_KAFKA_EVENT_DELETECONSUMERGROUPOFFSETS_RESULT, 0);
        groups = rd_kafka_DeleteConsumerGroupOffsets_result_groups(rd_kafka_event_DeleteConsumerGroupOffsets_result(event), &cnt);
        CHECK(cnt == 1);
        result = rd_kafka_group_result_partitions(groups[0]);
        CHECK(result->cnt == 2 && result->elems[0].err == 0);
        CHECK(result->elems[1].err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
        rd_kafka_event_destroy(event);
        CHECK(committed(rk, queue, "one", "t", 0, 0) == 7);
        CHECK(committed(rk, queue, "one", "t", 1, 0) == RD_KAFKA_OFFSET_INVALID);
}

static void groups_are_deleted(rd_kafka_t *rk, rd_kafka_queue_t *queue) {
        rd_kafka_DeleteGroup_t *groups[2];
        const rd_kafka_group_result_t **results;
        rd_kafka_event_t *event;
        size_t cnt = 0;
        groups[0] = rd_kafka_DeleteGroup_new("one");
        groups[1] = rd_kafka_DeleteGroup_new("strange");
        rd_kafka_DeleteGroups(rk, groups, 2, NULL, queue);
        event = next_event(queue, RD_KAFKA_EVENT_DELETEGROUPS_RESULT, 0);
        results = rd_kafka_DeleteGroups_result_groups(rd_kafka_event_DeleteGroups_result(event), &cnt);
        CHECK(cnt == 2 && !strcmp(rd_kafka_group_result_name(results[1]), "strange"));
        CHECK(rd_kafka_group_result_error(results[0]) == NULL);
        CHECK(rd_kafka_group_result_partitions(results[0]) == NULL);
        CHECK(rd_kafka_error_code(rd_kafka_group_result_error(results[1])) == RD_KAFKA_RESP_ERR_GROUP_ID_NOT_FOUND);
        rd_kafka_event_destroy(event);
        rd_kafka_DeleteGroups(rk, groups, 0, NULL, queue);
        rd_kafka_event_destroy(next_event(queue, RD_KAFKA_EVENT_DELETEGROUPS_RESULT, RD_KAFKA_RESP_ERR__INVALID_ARG));
        rd_kafka_DeleteGroup_destroy_array(groups, 2);
        CHECK(listed(rk, queue, "one", NULL) == -1);
}

static void wrong_arguments_are_events(rd_kafka_t *rk, rd_kafka_queue_t *queue) {
        const rd_kafka_resp_err_t invalid = RD_KAFKA_RESP_ERR__INVALID_ARG;
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_AlterConsumerGroupOffsets_t *alter;
        rd_kafka_ListConsumerGroupOffsets_t *two[2];
        rd_kafka_DeleteConsumerGroupOffsets_t *delete;
        two[0] = rd_kafka_ListConsumerGroupOffsets_new("one", list);
        two[1] = rd_kafka_ListConsumerGroupOffsets_new("two", NULL);
        rd_kafka_ListConsumerGroupOffsets(rk, two, 1, NULL, queue);
        rd_kafka_event_destroy(next_event(queue, RD_KAFKA_EVENT_LISTCONSUMERGROUPOFFSETS_RESULT, invalid));
        rd_kafka_ListConsumerGroupOffsets(rk, two, 2, NULL, queue);
        rd_kafka_event_destroy(next_event(queue, RD_KAFKA_EVENT_LISTCONSUMERGROUPOFFSETS_RESULT, invalid));
        rd_kafka_ListConsumerGroupOffsets_destroy_array(two, 2);
        rd_kafka_topic_partition_list_add(list, "t", 0)->offset = RD_KAFKA_OFFSET_END;
        alter = rd_kafka_AlterConsumerGroupOffsets_new("one", list);
        rd_kafka_AlterConsumerGroupOffsets(rk, &alter, 1, NULL, queue);
        rd_kafka_event_destroy(next_event(queue, RD_KAFKA_EVENT_ALTERCONSUMERGROUPOFFSETS_RESULT, invalid));
        rd_kafka_AlterConsumerGroupOffsets_destroy_array(&alter, 1);
        rd_kafka_topic_partition_list_add(list, "t", 0);
        delete = rd_kafka_DeleteConsumerGroupOffsets_new("one", list);
        rd_kafka_DeleteConsumerGroupOffsets(rk, &delete, 1, NULL, queue);
        rd_kafka_event_destroy(next_event(queue, RD_KAFKA_EVENT_DELETECONSUMERGROUPOFFSETS_RESULT, invalid));
        rd_kafka_DeleteConsumerGroupOffsets_destroy_array(&delete, 1);
        rd_kafka_topic_partition_list_destroy(list);
        CHECK(rd_kafka_DeleteGroup_new(NULL) == NULL);
        CHECK(rd_kafka_ListConsumerGroupOffsets_new(NULL, NULL) == NULL);
        rd_kafka_DeleteGroup_destroy(NULL);
        rd_kafka_group_list_destroy(NULL);
        CHECK(rd_kafka_ConsumerGroupDescription_member(NULL, 0) == NULL);
        CHECK(rd_kafka_group_result_partitions(NULL) == NULL);
}

static void states_and_types_have_names(void) {
        CHECK(!strcmp(rd_kafka_consumer_group_state_name(RD_KAFKA_CONSUMER_GROUP_STATE_COMPLETING_REBALANCE), "CompletingRebalance"));
        CHECK(rd_kafka_consumer_group_state_name(RD_KAFKA_CONSUMER_GROUP_STATE__CNT) == NULL);
        CHECK(rd_kafka_consumer_group_state_code("stable") == RD_KAFKA_CONSUMER_GROUP_STATE_STABLE);
        CHECK(rd_kafka_consumer_group_state_code("Reconciling") == RD_KAFKA_CONSUMER_GROUP_STATE_UNKNOWN);
        CHECK(!strcmp(rd_kafka_consumer_group_type_name(RD_KAFKA_CONSUMER_GROUP_TYPE_CLASSIC), "Classic"));
        CHECK(rd_kafka_consumer_group_type_name(-1) == NULL);
        CHECK(rd_kafka_consumer_group_type_code("CONSUMER") == RD_KAFKA_CONSUMER_GROUP_TYPE_CONSUMER);
}

int main(void) {
        rd_kafka_t *mock = client(""), *rk;
        rd_kafka_mock_cluster_t *cluster = rd_kafka_mock_cluster_new(mock, 3);
        rd_kafka_queue_t *queue;
        CHECK(rd_kafka_mock_topic_create(cluster, "t", 2, 1) == 0);
        rk = client(rd_kafka_mock_cluster_bootstraps(cluster));
        queue = rd_kafka_queue_new(rk);
        commit(rk, queue, "one", "t");
        commit(rk, queue, "two", "t");
        CHECK(committed(rk, queue, "one", "t", 1, 1) == 8);
        CHECK(committed(rk, queue, "one", "t", 0, 0) == 7);
        groups_are_listed(rk, queue);
        groups_are_described(rk, queue);
        groups_are_listed_in_structures(rk);
        offsets_are_deleted(rk, queue);
        groups_are_deleted(rk, queue);
        wrong_arguments_are_events(rk, queue);
        states_and_types_have_names();
        CHECK(rd_kafka_queue_length(queue) == 0);
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
        rd_kafka_mock_cluster_destroy(cluster);
        rd_kafka_destroy(mock);
        return bad != 0;
}
