/* Administration of groups: refused calls, descriptions of an empty group, a simple group and a live member, and
 * offsets that are listed, altered and deleted. */
#include "side_by_side.h"

typedef rd_kafka_topic_partition_list_t list_t;

static rd_kafka_t *client(void) { return producer_of(conf_of("bootstrap.servers", bootstrap(), NULL)); }

static rd_kafka_event_t *result_of(rd_kafka_queue_t *queue) {
        rd_kafka_event_t *event;
        UNTIL((event = rd_kafka_queue_poll(queue, 100)), (void)0);
        say("event %s error %s text %s", rd_kafka_event_name(event), err(rd_kafka_event_error(event)), present(rd_kafka_event_error_string(event)));
        return event;
}

static const char *error_name(const rd_kafka_error_t *error) { return error ? rd_kafka_error_name(error) : "none"; }

static void say_groups(const rd_kafka_group_result_t **groups, size_t count) {
        size_t i;
        say("groups: %zu", groups ? count : 0);
        for (i = 0; groups && i < count; i++) {
                say("%s error %s", rd_kafka_group_result_name(groups[i]), error_name(rd_kafka_group_result_error(groups[i])));
                say_partitions("partitions", rd_kafka_group_result_partitions(groups[i]));
        }
}

static void create_topic(rd_kafka_t *rk, const char *name, int partitions) {
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
        rd_kafka_NewTopic_t *topic = rd_kafka_NewTopic_new(name, partitions, 1, NULL, 0);
        rd_kafka_CreateTopics(rk, &topic, 1, NULL, queue);
        rd_kafka_event_destroy(result_of(queue));
        rd_kafka_NewTopic_destroy(topic);
        rd_kafka_queue_destroy(queue);
}

/* ---- Offsets ---- */

static void list_offsets(rd_kafka_t *rk, const char *group, const list_t *partitions, size_t count) {
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
        rd_kafka_ListConsumerGroupOffsets_t *offsets = rd_kafka_ListConsumerGroupOffsets_new(group, partitions);
        rd_kafka_ListConsumerGroupOffsets_t *twice[2] = {offsets, offsets};
        rd_kafka_event_t *event;
        const rd_kafka_ListConsumerGroupOffsets_result_t *result;
        rd_kafka_ListConsumerGroupOffsets(rk, twice, count, NULL, queue);
        event = result_of(queue);
        if ((result = rd_kafka_event_ListConsumerGroupOffsets_result(event)) && !rd_kafka_event_error(event))
                say_groups(rd_kafka_ListConsumerGroupOffsets_result_groups(result, &count), count);
        rd_kafka_event_destroy(event);
        rd_kafka_ListConsumerGroupOffsets_destroy(offsets);
        rd_kafka_queue_destroy(queue);
}

static void alter_offsets(rd_kafka_t *rk, const char *group, const list_t *partitions, size_t count) {
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
        rd_kafka_AlterConsumerGroupOffsets_t *offsets = rd_kafka_AlterConsumerGroupOffsets_new(group, partitions);
        rd_kafka_AlterConsumerGroupOffsets_t *twice[2] = {offsets, offsets};
        rd_kafka_event_t *event;
        const rd_kafka_AlterConsumerGroupOffsets_result_t *result;
        rd_kafka_AlterConsumerGroupOffsets(rk, twice, count, NULL, queue);
        event = result_of(queue);
        if ((result = rd_kafka_event_AlterConsumerGroupOffsets_result(event)) && !rd_kafka_event_error(event))
                say_groups(rd_kafka_AlterConsumerGroupOffsets_result_groups(result, &count), count);
        rd_kafka_event_destroy(event);
        rd_kafka_AlterConsumerGroupOffsets_destroy(offsets);
        rd_kafka_queue_destroy(queue);
}

static void delete_offsets(rd_kafka_t *rk, const char *group, const list_t *partitions, size_t count) {
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
        rd_kafka_DeleteConsumerGroupOffsets_t *offsets = rd_kafka_DeleteConsumerGroupOffsets_new(group, partitions);
        rd_kafka_DeleteConsumerGroupOffsets_t *twice[2] = {offsets, offsets};
        rd_kafka_event_t *event;
        const rd_kafka_DeleteConsumerGroupOffsets_result_t *result;
        rd_kafka_DeleteConsumerGroupOffsets(rk, twice, count, NULL, queue);
        event = result_of(queue);
        if ((result = rd_kafka_event_DeleteConsumerGroupOffsets_result(event)) && !rd_kafka_event_error(event))
                say_groups(rd_kafka_DeleteConsumerGroupOffsets_result_groups(result, &count), count);
        rd_kafka_event_destroy(event);
        rd_kafka_DeleteConsumerGroupOffsets_destroy(offsets);
        rd_kafka_queue_destroy(queue);
}

static void delete_group(rd_kafka_t *rk, const char *group, size_t count) {
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
        rd_kafka_DeleteGroup_t *one = rd_kafka_DeleteGroup_new(group);
        rd_kafka_DeleteGroup_t *twice[2] = {one, one};
        rd_kafka_event_t *event;
        const rd_kafka_DeleteGroups_result_t *result;
        rd_kafka_DeleteGroups(rk, twice, count, NULL, queue);
        event = result_of(queue);
        if ((result = rd_kafka_event_DeleteGroups_result(event)) && !rd_kafka_event_error(event))
                say_groups(rd_kafka_DeleteGroups_result_groups(result, &count), count);
        rd_kafka_event_destroy(event);
        rd_kafka_DeleteGroup_destroy(one);
        rd_kafka_queue_destroy(queue);
}

BROKER_CASE(offsets_of_a_group) {
        rd_kafka_t *rk = client();
        const char *group = topic_name("offsets"), *topic = topic_name("go");
        list_t *list = rd_kafka_topic_partition_list_new(3);
        create_topic(rk, topic, 3);
        say("-- a group that does not exist");
        list_offsets(rk, group, NULL, 1);
        delete_group(rk, group, 1);
        say("-- offsets of a group without members");
        rd_kafka_topic_partition_list_add(list, topic, 1)->offset = 7;
        rd_kafka_topic_partition_list_add(list, topic, 0)->offset = 5;
        alter_offsets(rk, group, list, 1);
        list_offsets(rk, group, NULL, 1);
        rd_kafka_topic_partition_list_add(list, topic, 2);
        list_offsets(rk, group, list, 1);
        say("-- a partition that does not exist");
        rd_kafka_topic_partition_list_add(list, topic, 9)->offset = 1;
        rd_kafka_topic_partition_list_del(list, topic, 2);
        alter_offsets(rk, group, list, 1);
        list_offsets(rk, group, list, 1);
        delete_offsets(rk, group, list, 1);
        list_offsets(rk, group, NULL, 1);
        say("-- the group is deleted");
        delete_group(rk, group, 1);
        delete_group(rk, group, 1);
        delete_offsets(rk, group, list, 1);
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_destroy(rk);
}

BROKER_CASE(wrong_lists_of_group_offsets) {
        rd_kafka_t *rk = client();
        const char *group = topic_name("wrong"), *topic = topic_name("gw");
        list_t *list = rd_kafka_topic_partition_list_new(3);
        create_topic(rk, topic, 2);
        say("-- no partition");
        list_offsets(rk, group, list, 1);
        alter_offsets(rk, group, list, 1);
        delete_offsets(rk, group, list, 1);
        rd_kafka_topic_partition_list_add(list, topic, 0)->offset = 5;
        say("-- no group, and two");
        list_offsets(rk, group, list, 0);
        alter_offsets(rk, group, list, 0);
        delete_offsets(rk, group, list, 0);
        delete_group(rk, group, 0);
        list_offsets(rk, group, list, 2);
        alter_offsets(rk, group, list, 2);
        delete_offsets(rk, group, list, 2);
        delete_group(rk, group, 2);
        say("-- an offset below 0");
        list->elems[0].offset = RD_KAFKA_OFFSET_INVALID;
        alter_offsets(rk, group, list, 1);
        list->elems[0].offset = 5;
        say("-- a partition twice");
        rd_kafka_topic_partition_list_add(list, topic, 0)->offset = 6;
        list_offsets(rk, group, list, 1);
        alter_offsets(rk, group, list, 1);
        delete_offsets(rk, group, list, 1);
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_destroy(rk);
}

CASE(objects_of_group_offsets) {
        list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_ListConsumerGroupOffsets_t *listed = rd_kafka_ListConsumerGroupOffsets_new("g", NULL);
        rd_kafka_topic_partition_list_add(list, "t", 0);
        say("list without partitions %s", listed ? "present" : "NULL");
        rd_kafka_ListConsumerGroupOffsets_destroy(listed);
        misuse("ListConsumerGroupOffsets_new(NULL)") say("%s", rd_kafka_ListConsumerGroupOffsets_new(NULL, NULL) ? "present" : "NULL");
        misuse("AlterConsumerGroupOffsets_new(NULL)") say("%s", rd_kafka_AlterConsumerGroupOffsets_new(NULL, list) ? "present" : "NULL");
        misuse("AlterConsumerGroupOffsets_new without partitions") say("%s", rd_kafka_AlterConsumerGroupOffsets_new("g", NULL) ? "present" : "NULL");
        misuse("DeleteConsumerGroupOffsets_new(NULL)") say("%s", rd_kafka_DeleteConsumerGroupOffsets_new(NULL, list) ? "present" : "NULL");
        misuse("DeleteConsumerGroupOffsets_new without partitions") say("%s", rd_kafka_DeleteConsumerGroupOffsets_new("g", NULL) ? "present" : "NULL");
        misuse("DeleteGroup_new(NULL)") say("%s", rd_kafka_DeleteGroup_new(NULL) ? "present" : "NULL");
        misuse("results of no event") {
                size_t count = 77;
                say("%s", rd_kafka_event_DeleteGroups_result(NULL) ? "present" : "NULL");
                say("%s %zu", rd_kafka_DeleteGroups_result_groups(NULL, &count) ? "present" : "NULL", count);
        }
        rd_kafka_topic_partition_list_destroy(list);
}

/* ---- Groups ---- */

static void say_member(const rd_kafka_MemberDescription_t *member) {
        const char *instance = rd_kafka_MemberDescription_group_instance_id(member);
        const rd_kafka_MemberAssignment_t *assignment = rd_kafka_MemberDescription_assignment(member);
        say("  member client %s instance %s id %s host %s", rd_kafka_MemberDescription_client_id(member), instance ? instance : "NULL",
            present(rd_kafka_MemberDescription_consumer_id(member)), present(rd_kafka_MemberDescription_host(member)));
        say_partitions("  assignment", assignment ? rd_kafka_MemberAssignment_partitions(assignment) : NULL);
        say("  target %s", rd_kafka_MemberDescription_target_assignment(member) ? "present" : "NULL");
}

static void describe(rd_kafka_t *rk, const char **groups, size_t count, int operations) {
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
        rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_DESCRIBECONSUMERGROUPS);
        rd_kafka_event_t *event;
        const rd_kafka_ConsumerGroupDescription_t **described;
        size_t i, k, allowed = 0;
        say_error("operations", rd_kafka_AdminOptions_set_include_authorized_operations(options, operations));
        rd_kafka_DescribeConsumerGroups(rk, groups, count, options, queue);
        event = result_of(queue);
        if (!rd_kafka_event_error(event)) {
                described = rd_kafka_DescribeConsumerGroups_result_groups(rd_kafka_event_DescribeConsumerGroups_result(event), &count);
                for (i = 0; i < count; i++) {
                        const rd_kafka_ConsumerGroupDescription_t *group = described[i];
                        const rd_kafka_AclOperation_t *list = rd_kafka_ConsumerGroupDescription_authorized_operations(group, &allowed);
                        say("group %s error %s state %s type %s simple %d assignor %s coordinator %s operations %s", rd_kafka_ConsumerGroupDescription_group_id(group),
                            error_name(rd_kafka_ConsumerGroupDescription_error(group)), rd_kafka_consumer_group_state_name(rd_kafka_ConsumerGroupDescription_state(group)),
                            rd_kafka_consumer_group_type_name(rd_kafka_ConsumerGroupDescription_type(group)), rd_kafka_ConsumerGroupDescription_is_simple_consumer_group(group),
                            quoted(rd_kafka_ConsumerGroupDescription_partition_assignor(group)), rd_kafka_ConsumerGroupDescription_coordinator(group) ? "present" : "NULL",
                            list && allowed ? "present" : "none");
                        for (k = 0; k < rd_kafka_ConsumerGroupDescription_member_count(group); k++)
                                say_member(rd_kafka_ConsumerGroupDescription_member(group, k));
                        say("  past the last member %s", rd_kafka_ConsumerGroupDescription_member(group, k) ? "present" : "NULL");
                }
        }
        rd_kafka_event_destroy(event);
        rd_kafka_AdminOptions_destroy(options);
        rd_kafka_queue_destroy(queue);
}

static void list_groups(rd_kafka_t *rk, const char *wanted, const rd_kafka_consumer_group_state_t *states, size_t states_count,
                        const rd_kafka_consumer_group_type_t *types, size_t types_count) {
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
        rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPS);
        rd_kafka_event_t *event;
        const rd_kafka_ListConsumerGroups_result_t *result;
        const rd_kafka_ConsumerGroupListing_t **valid;
        size_t i, count = 0;
        if (states)
                say_error("states", rd_kafka_AdminOptions_set_match_consumer_group_states(options, states, states_count));
        if (types)
                say_error("types", rd_kafka_AdminOptions_set_match_consumer_group_types(options, types, types_count));
        rd_kafka_ListConsumerGroups(rk, options, queue);
        event = result_of(queue);
        if ((result = rd_kafka_event_ListConsumerGroups_result(event)) && !rd_kafka_event_error(event)) {
                rd_kafka_ListConsumerGroups_result_errors(result, &count);
                say("errors %zu", count);
                valid = rd_kafka_ListConsumerGroups_result_valid(result, &count);
                for (i = 0; i < count; i++)
                        if (!strcmp(rd_kafka_ConsumerGroupListing_group_id(valid[i]), wanted))
                                say("listed %s simple %d state %s type %s", wanted, rd_kafka_ConsumerGroupListing_is_simple_consumer_group(valid[i]),
                                    rd_kafka_consumer_group_state_name(rd_kafka_ConsumerGroupListing_state(valid[i])),
                                    rd_kafka_consumer_group_type_name(rd_kafka_ConsumerGroupListing_type(valid[i])));
        }
        rd_kafka_event_destroy(event);
        rd_kafka_AdminOptions_destroy(options);
        rd_kafka_queue_destroy(queue);
}

/* The older call, of which only the group that is named is shown: brokers may have others. */
static void list_by_the_older_call(rd_kafka_t *rk, const char *group) {
        const struct rd_kafka_group_list *list = NULL;
        rd_kafka_resp_err_t code = rd_kafka_list_groups(rk, group, &list, 10000);
        int i;
        say("rd_kafka_list_groups %s", err(code));
        for (i = 0; list && i < list->group_cnt; i++) {
                const struct rd_kafka_group_info *info = &list->groups[i];
                if (!strcmp(info->group, group))
                        say("  %s error %s state %s type %s protocol %s members %d broker %s", info->group, err(info->err), quoted(info->state),
                            quoted(info->protocol_type), quoted(info->protocol), info->member_cnt, info->broker.id >= 0 ? "present" : "-1");
        }
        if (list)
                rd_kafka_group_list_destroy(list);
}

static rd_kafka_t *member(const char *group, const char *topic, const char *protocol) {
        rd_kafka_conf_t *conf = conf_of("bootstrap.servers", bootstrap(), "group.id", group, "client.id", "one", "group.protocol", protocol, NULL);
        list_t *topics = rd_kafka_topic_partition_list_new(1), *assigned = NULL;
        rd_kafka_t *rk = consumer_of(conf);
        int count = 0;
        rd_kafka_poll_set_consumer(rk);
        rd_kafka_topic_partition_list_add(topics, topic, RD_KAFKA_PARTITION_UA);
        say("subscribe %s", err(rd_kafka_subscribe(rk, topics)));
        UNTIL(count == 2, {
                rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, 50);
                if (message)
                        rd_kafka_message_destroy(message);
                rd_kafka_assignment(rk, &assigned);
                count = assigned->cnt;
                rd_kafka_topic_partition_list_destroy(assigned);
        });
        rd_kafka_topic_partition_list_destroy(topics);
        return rk;
}

static void group_with_a_member(const char *name, const char *protocol) {
        static const rd_kafka_consumer_group_state_t stable[] = {RD_KAFKA_CONSUMER_GROUP_STATE_STABLE}, empty[] = {RD_KAFKA_CONSUMER_GROUP_STATE_EMPTY};
        static const rd_kafka_consumer_group_type_t classic[] = {RD_KAFKA_CONSUMER_GROUP_TYPE_CLASSIC}, consumer[] = {RD_KAFKA_CONSUMER_GROUP_TYPE_CONSUMER};
        rd_kafka_t *rk = client(), *one;
        const char *group = topic_name(name), *topic = topic_name("gm");
        list_t *list = rd_kafka_topic_partition_list_new(1);
        create_topic(rk, topic, 2);
        one = member(group, topic, protocol);
        describe(rk, &group, 1, 0);
        describe(rk, &group, 1, 1);
        list_groups(rk, group, NULL, 0, NULL, 0);
        list_groups(rk, group, stable, 1, NULL, 0);
        list_groups(rk, group, empty, 1, NULL, 0);
        list_groups(rk, group, NULL, 0, classic, 1);
        list_groups(rk, group, NULL, 0, consumer, 1);
        list_by_the_older_call(rk, group);
        say("-- refused while a member reads the topic");
        delete_group(rk, group, 1);
        rd_kafka_topic_partition_list_add(list, topic, 0)->offset = 3;
        alter_offsets(rk, group, list, 1);
        delete_offsets(rk, group, list, 1);
        say("close %s", err(rd_kafka_consumer_close(one)));
        rd_kafka_destroy(one);
        say("-- without members");
        describe(rk, &group, 1, 0);
        list_by_the_older_call(rk, group);
        delete_group(rk, group, 1);
        describe(rk, &group, 1, 0);
        list_by_the_older_call(rk, group);
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_destroy(rk);
}
BROKER_CASE(classic_group_with_a_member) { group_with_a_member("classic", "classic"); }
BROKER_CASE(group_of_the_consumer_protocol_with_a_member) { group_with_a_member("consumer", "consumer"); }

BROKER_CASE(wrong_names_of_groups) {
        const char *twice[] = {"a", "a"}, *empty = "";
        rd_kafka_t *rk = client();
        say("-- none");
        describe(rk, twice, 0, 0);
        say("-- twice");
        describe(rk, twice, 2, 0);
        say("-- an empty name");
        describe(rk, &empty, 1, 0);
        delete_group(rk, "", 1);
        list_by_the_older_call(rk, "");
        rd_kafka_destroy(rk);
}

CASE(filters_of_listed_groups) {
        static const rd_kafka_consumer_group_state_t twice[] = {RD_KAFKA_CONSUMER_GROUP_STATE_STABLE, RD_KAFKA_CONSUMER_GROUP_STATE_STABLE};
        static const rd_kafka_consumer_group_type_t types[] = {RD_KAFKA_CONSUMER_GROUP_TYPE_CLASSIC, RD_KAFKA_CONSUMER_GROUP_TYPE_CLASSIC};
        rd_kafka_t *rk = producer_of(conf_of("bootstrap.servers", DEAD, NULL));
        int number;
        for (number = -1; number < 8; number++) {
                rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPS);
                rd_kafka_consumer_group_state_t state = (rd_kafka_consumer_group_state_t)number;
                rd_kafka_consumer_group_type_t type = (rd_kafka_consumer_group_type_t)number;
                say("%d: state %s type %s", number, rd_kafka_consumer_group_state_name(state), rd_kafka_consumer_group_type_name(type));
                say_error("state", rd_kafka_AdminOptions_set_match_consumer_group_states(options, &state, 1));
                say_error("type", rd_kafka_AdminOptions_set_match_consumer_group_types(options, &type, 1));
                rd_kafka_AdminOptions_destroy(options);
        }
        {
                rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPS);
                say_error("a state twice", rd_kafka_AdminOptions_set_match_consumer_group_states(options, twice, 2));
                say_error("a type twice", rd_kafka_AdminOptions_set_match_consumer_group_types(options, types, 2));
                say_error("no state", rd_kafka_AdminOptions_set_match_consumer_group_states(options, twice, 0));
                say_error("no type", rd_kafka_AdminOptions_set_match_consumer_group_types(options, types, 0));
                rd_kafka_AdminOptions_destroy(options);
                options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_CREATETOPICS);
                say_error("of another call", rd_kafka_AdminOptions_set_match_consumer_group_states(options, twice, 1));
                say_error("of another call", rd_kafka_AdminOptions_set_require_stable_offsets(options, 1));
                say_error("of another call", rd_kafka_AdminOptions_set_include_authorized_operations(options, 1));
                rd_kafka_AdminOptions_destroy(options);
        }
        rd_kafka_destroy(rk);
}
