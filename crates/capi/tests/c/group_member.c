/* A consumer as a group member on a mock cluster: responses to rebalances, the errors of wrong responses, committed
 * offsets, and how a member loses its partitions, leaves and ends. */
#include "test.h"

#define TOPIC "group_member"
#define PARTITIONS 4
#define RECORDS 40
#define HEARTBEAT 12

static rd_kafka_mock_cluster_t *cluster;
static const char *servers;

/* The events that the callbacks of a client received. */
struct seen {
        int assigned, revoked, lost, partitions, commits, committed;
        int wrong_answers;
        rd_kafka_resp_err_t commit_in_revoke, null_commit_in_revoke;
        int closes_in_revoke;
        rd_kafka_resp_err_t close_in_revoke;
};

static void on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *list, void *opaque) {
        struct seen *seen = opaque;
        int is_cooperative = !strcmp(rd_kafka_rebalance_protocol(rk), "COOPERATIVE");
        rd_kafka_error_t *error = NULL;
        if (err == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
                seen->assigned++;
                seen->partitions += list->cnt;
                CHECK(list->cnt == 0 || list->elems[0].offset == RD_KAFKA_OFFSET_INVALID);
                if (is_cooperative) {
                        /* The wrong function is refused, and the assignment stays. */
                        seen->wrong_answers += rd_kafka_assign(rk, list) == RD_KAFKA_RESP_ERR__STATE;
                        error = rd_kafka_incremental_assign(rk, list);
                } else {
                        rd_kafka_error_t *wrong = rd_kafka_incremental_assign(rk, list);
                        seen->wrong_answers += rd_kafka_error_code(wrong) == RD_KAFKA_RESP_ERR__STATE &&
                                               strstr(rd_kafka_error_string(wrong), "rd_kafka_assign()");
                        if (wrong)
                                rd_kafka_error_destroy(wrong);
                        CHECK(rd_kafka_assign(rk, list) == 0);
                }
        } else {
                CHECK(err == RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS);
                seen->revoked++;
                seen->partitions -= list->cnt;
                seen->lost += rd_kafka_assignment_lost(rk);
                seen->null_commit_in_revoke = rd_kafka_commit(rk, NULL, 0);
                if (seen->closes_in_revoke)
                        seen->close_in_revoke = rd_kafka_consumer_close(rk);
                if (is_cooperative && !seen->closes_in_revoke)
                        error = rd_kafka_incremental_unassign(rk, list);
                else
                        CHECK(rd_kafka_assign(rk, NULL) == 0);
                CHECK(!rd_kafka_assignment_lost(rk));
        }
        CHECK(!error);
}

static void on_commit(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *list, void *opaque) {
        struct seen *seen = opaque;
        (void)rk;
        (void)list;
        seen->commits++;
        seen->committed += err == 0;
}

static rd_kafka_conf_t *member_conf(const char *group) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        set(conf, "bootstrap.servers", servers);
        set(conf, "log_level", "2");
        set(conf, "group.id", group);
        set(conf, "auto.offset.reset", "earliest");
        set(conf, "heartbeat.interval.ms", "100");
        return conf;
}

static rd_kafka_topic_partition_list_t *topics(const char *name) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_topic_partition_list_add(list, name, RD_KAFKA_PARTITION_UA);
        return list;
}

static rd_kafka_t *member(rd_kafka_conf_t *conf, struct seen *seen, const char *strategy) {
        rd_kafka_topic_partition_list_t *list = topics(TOPIC);
        rd_kafka_t *rk;
        if (seen) {
                rd_kafka_conf_set_opaque(conf, seen);
                rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
                rd_kafka_conf_set_offset_commit_cb(conf, on_commit);
        }
        set(conf, "partition.assignment.strategy", strategy);
        rk = start(RD_KAFKA_CONSUMER, conf);
        rd_kafka_poll_set_consumer(rk);
        CHECK(rd_kafka_subscribe(rk, list) == 0);
        rd_kafka_topic_partition_list_destroy(list);
        return rk;
}

/* Polls once; returns 1 for a record, and keeps the code of an error. */
static int poll(rd_kafka_t *rk, int timeout_ms, rd_kafka_resp_err_t *error) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, timeout_ms);
        int is_record = message && !message->err;
        if (message && message->err && error)
                *error = message->err;
        if (message)
                rd_kafka_message_destroy(message);
        return is_record;
}

static int assignment_size(rd_kafka_t *rk) {
        rd_kafka_topic_partition_list_t *list = NULL;
        int count = -1;
        CHECK(rd_kafka_assignment(rk, &list) == 0);
        if (list) {
                count = list->cnt;
                rd_kafka_topic_partition_list_destroy(list);
        }
        return count;
}

/* The sum of the committed offsets of a group. */
static int64_t committed(const char *group) {
        rd_kafka_t *rk = start(RD_KAFKA_CONSUMER, member_conf(group));
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(PARTITIONS);
        int64_t sum = 0;
        int i;
        rd_kafka_topic_partition_list_add_range(list, TOPIC, 0, PARTITIONS - 1);
        CHECK(rd_kafka_committed(rk, list, TIMEOUT_MS) == 0);
        for (i = 0; i < list->cnt; i++)
                sum += list->elems[i].offset > 0 ? list->elems[i].offset : 0;
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_destroy(rk);
        return sum;
}

static void library_answers_when_the_application_does_not(void) {
        rd_kafka_t *rk = member(member_conf("plain"), NULL, "range");
        rd_kafka_topic_partition_list_t *list = NULL;
        char *id;
        int count = 0;
        UNTIL(count == RECORDS, count += poll(rk, 100, NULL));
        CHECK(!strcmp(rd_kafka_rebalance_protocol(rk), "EAGER"));
        CHECK(assignment_size(rk) == PARTITIONS);
        CHECK(rd_kafka_subscription(rk, &list) == 0 && list->cnt == 1 && !strcmp(list->elems[0].topic, TOPIC));
        rd_kafka_topic_partition_list_destroy(list);
        id = rd_kafka_memberid(rk);
        CHECK(id && *id);
        rd_kafka_mem_free(rk, id);
        CHECK(!rd_kafka_consumer_closed(rk));
        CHECK(rd_kafka_consumer_close(rk) == 0);
        CHECK(rd_kafka_consumer_closed(rk));
        CHECK(rd_kafka_consumer_close(rk) == RD_KAFKA_RESP_ERR__DESTROY);
        CHECK(!strcmp(rd_kafka_rebalance_protocol(rk), "NONE"));
        rd_kafka_destroy(rk);
        CHECK(committed("plain") == RECORDS);
}

static void callback_answers_in_pairs(const char *strategy, const char *group) {
        struct seen seen = {0}, other_seen = {0};
        rd_kafka_t *rk = member(member_conf(group), &seen, strategy), *other;
        int is_eager = !strcmp(strategy, "range");
        int count = 0;
        long began;
        UNTIL(count == RECORDS, count += poll(rk, 100, NULL));
        CHECK(seen.assigned == 1 && seen.partitions == PARTITIONS && seen.wrong_answers == 1);
        other = member(member_conf(group), &other_seen, strategy);
        UNTIL(seen.partitions == 2 && other_seen.partitions == 2, {
                poll(rk, 20, NULL);
                poll(other, 20, NULL);
        });
        CHECK(seen.revoked >= 1 && seen.lost == 0);
        CHECK(seen.null_commit_in_revoke == 0);
        CHECK(is_eager || seen.revoked == 1);
        CHECK(!strcmp(rd_kafka_rebalance_protocol(rk), is_eager ? "EAGER" : "COOPERATIVE"));
        began = millis();
        CHECK(rd_kafka_consumer_close(other) == 0);
        CHECK(millis() - began < SCALED_MS(30000));
        CHECK(other_seen.partitions == 0 && other_seen.lost == 0);
        UNTIL(seen.partitions == PARTITIONS, poll(rk, 20, NULL));
        rd_kafka_destroy(other);
        /* Destroying closes, too. */
        rd_kafka_destroy(rk);
        CHECK(seen.partitions == 0 && seen.lost == 0 && seen.commits >= 1);
        CHECK(committed(group) == RECORDS);
}

static void destroying_without_closing_calls_nothing(void) {
        struct seen seen = {0};
        rd_kafka_t *rk = member(member_conf("unclosed"), &seen, "range");
        UNTIL(seen.assigned == 1, poll(rk, 20, NULL));
        rd_kafka_destroy_flags(rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
        CHECK(seen.revoked == 0);
}

static void lost_partitions_are_not_committed(void) {
        struct seen seen = {0};
        rd_kafka_conf_t *conf = member_conf("lost");
        rd_kafka_t *rk;
        int count = 0;
        /* The mock cluster still has the member, and waits for it for that time. */
        set_ms(conf, "session.timeout.ms", SCALED_MS(1500));
        rk = member(conf, &seen, "range");
        UNTIL(count == 5, count += poll(rk, 20, NULL));
        CHECK(rd_kafka_mock_broker_push_request_error_rtts(cluster, 1, HEARTBEAT, 1, RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID,
                                                           0) == 0);
        UNTIL(seen.revoked == 1, poll(rk, 20, NULL));
        CHECK(seen.lost == 1);
        CHECK(seen.null_commit_in_revoke == RD_KAFKA_RESP_ERR__ASSIGNMENT_LOST);
        CHECK(committed("lost") == 0);
        UNTIL(seen.partitions == PARTITIONS, poll(rk, 20, NULL));
        rd_kafka_destroy(rk);
}

static void member_that_does_not_poll_leaves_and_comes_back(void) {
        struct seen seen = {0};
        rd_kafka_resp_err_t error = 0;
        rd_kafka_conf_t *conf = member_conf("silent");
        rd_kafka_t *rk;
        set_ms(conf, "session.timeout.ms", SCALED_MS(1500));
        set_ms(conf, "max.poll.interval.ms", SCALED_MS(1500));
        rk = member(conf, &seen, "range");
        UNTIL(seen.assigned == 1, poll(rk, 20, NULL));
        usleep(SCALED_MS(2500) * 1000);
        CHECK(seen.revoked == 0);
        UNTIL(seen.revoked == 1, poll(rk, 20, &error));
        CHECK(error == RD_KAFKA_RESP_ERR__MAX_POLL_EXCEEDED);
        CHECK(seen.lost == 1);
        UNTIL(seen.partitions == PARTITIONS, poll(rk, 20, NULL));
        /* One long poll counts as polling all the time. */
        error = 0;
        while (poll(rk, SCALED_MS(1), NULL)) {
        }
        poll(rk, SCALED_MS(2500), &error);
        poll(rk, 0, &error);
        CHECK(error == 0 && seen.revoked == 1);
        rd_kafka_destroy(rk);
}

static void events_are_answered_and_close_to_a_queue(void) {
        rd_kafka_conf_t *conf = member_conf("events");
        rd_kafka_queue_t *queue, *closing;
        rd_kafka_event_t *event;
        rd_kafka_t *rk;
        int assigned = 0, revoked = 0;
        rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_REBALANCE);
        rk = member(conf, NULL, "roundrobin");
        queue = rd_kafka_queue_get_consumer(rk);
        UNTIL(assigned, {
                event = rd_kafka_queue_poll(queue, 100);
                if (event && rd_kafka_event_type(event) == RD_KAFKA_EVENT_REBALANCE) {
                        CHECK(rd_kafka_event_error(event) == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS);
                        CHECK(rd_kafka_event_topic_partition_list(event)->cnt == PARTITIONS);
                        CHECK(!strcmp(rd_kafka_event_name(event), "Rebalance"));
                        CHECK(rd_kafka_assign(rk, rd_kafka_event_topic_partition_list(event)) == 0);
                        assigned = 1;
                }
                rd_kafka_event_destroy(event);
        });
        rd_kafka_queue_destroy(queue);
        closing = rd_kafka_queue_new(rk);
        {
                rd_kafka_error_t *error = rd_kafka_consumer_close_queue(rk, NULL);
                CHECK(rd_kafka_error_code(error) == RD_KAFKA_RESP_ERR__INVALID_ARG);
                rd_kafka_error_destroy(error);
        }
        CHECK(!rd_kafka_consumer_close_queue(rk, closing));
        CHECK(rd_kafka_consumer_close(rk) == RD_KAFKA_RESP_ERR__IN_PROGRESS);
        UNTIL(rd_kafka_consumer_closed(rk), {
                event = rd_kafka_queue_poll(closing, 20);
                if (event && rd_kafka_event_type(event) == RD_KAFKA_EVENT_REBALANCE) {
                        CHECK(rd_kafka_event_error(event) == RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS);
                        CHECK(rd_kafka_assign(rk, NULL) == 0);
                        revoked = 1;
                }
                rd_kafka_event_destroy(event);
        });
        CHECK(revoked);
        rd_kafka_queue_destroy(closing);
        rd_kafka_destroy(rk);
}

/* A call that has collected messages returns them before it serves a rebalance, which may revoke their partitions.
 * It may return messages of an assignment that it serves afterwards. */
static int batch_of_one_assignment(rd_kafka_queue_t *queue, const struct seen *seen) {
        rd_kafka_message_t *batch[2 * RECORDS];
        int revoked = seen->revoked, assigned = seen->assigned;
        ssize_t got = rd_kafka_consume_batch_queue(queue, 1000, batch, 2 * RECORDS), i;
        CHECK(got >= 0 && (got == 0 || seen->revoked == revoked || seen->assigned > assigned));
        for (i = 0; i < got; i++)
                rd_kafka_message_destroy(batch[i]);
        return (int)got;
}

static void batches_end_before_a_rebalance(void) {
        struct seen seen = {0};
        rd_kafka_t *rk = member(member_conf("batches"), &seen, "range");
        rd_kafka_queue_t *queue = rd_kafka_queue_get_consumer(rk);
        int count = 0;
        UNTIL(seen.assigned == 1, count += poll(rk, 20, NULL));
        CHECK(rd_kafka_mock_broker_push_request_error_rtts(cluster, 1, HEARTBEAT, 1,
                                                           RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS, 0) == 0);
        UNTIL(count >= RECORDS && seen.assigned == 2, count += batch_of_one_assignment(queue, &seen));
        CHECK(seen.revoked == 1 && count == RECORDS);
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
}

static void callback_may_close_its_consumer(void) {
        struct seen seen = {0};
        rd_kafka_t *rk = member(member_conf("recursive"), &seen, "range");
        UNTIL(seen.assigned == 1, poll(rk, 20, NULL));
        seen.closes_in_revoke = 1;
        CHECK(rd_kafka_unsubscribe(rk) == 0);
        UNTIL(seen.revoked == 1, poll(rk, 20, NULL));
        CHECK(seen.close_in_revoke == 0);
        CHECK(rd_kafka_consumer_closed(rk));
        rd_kafka_destroy(rk);
}

static void fenced_member_fails_for_good(void) {
        struct seen seen = {0};
        rd_kafka_conf_t *conf = member_conf("fenced");
        char errstr[256];
        rd_kafka_topic_partition_list_t *list = topics(TOPIC);
        rd_kafka_t *rk;
        set(conf, "group.instance.id", "one");
        rk = member(conf, &seen, "range");
        UNTIL(seen.assigned == 1, poll(rk, 20, NULL));
        CHECK(rd_kafka_mock_broker_push_request_error_rtts(cluster, 1, HEARTBEAT, 1,
                                                           RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID, 0) == 0);
        UNTIL(rd_kafka_fatal_error(rk, errstr, sizeof(errstr)) == RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID, poll(rk, 20, NULL));
        UNTIL(assignment_size(rk) == 0, poll(rk, 20, NULL));
        CHECK(seen.revoked == 0);
        CHECK(rd_kafka_subscribe(rk, list) == RD_KAFKA_RESP_ERR__FATAL);
        CHECK(rd_kafka_commit(rk, NULL, 0) == RD_KAFKA_RESP_ERR__FATAL);
        CHECK(rd_kafka_consumer_close(rk) == RD_KAFKA_RESP_ERR__FATAL);
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_destroy(rk);
}

static void missing_topic_is_reported_once(void) {
        rd_kafka_t *rk = start(RD_KAFKA_CONSUMER, member_conf("missing"));
        rd_kafka_topic_partition_list_t *list = topics("is_not_there");
        long later;
        int errors = 0;
        CHECK(rd_kafka_subscribe(rk, list) == 0);
        later = millis() + 1500;
        UNTIL(errors > 0 && millis() > later, {
                rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, 20);
                if (message) {
                        CHECK(message->err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
                        CHECK(strstr(rd_kafka_message_errstr(message), "Subscribed topic not available: is_not_there"));
                        errors++;
                        rd_kafka_message_destroy(message);
                }
        });
        CHECK(errors == 1);
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_destroy(rk);
}

static void patterns_select_topics(void) {
        rd_kafka_topic_partition_list_t *list = topics("^group_mem"), *back = NULL;
        rd_kafka_t *rk = start(RD_KAFKA_CONSUMER, member_conf("pattern"));
        CHECK(rd_kafka_subscribe(rk, list) == 0);
        UNTIL(assignment_size(rk) == PARTITIONS, poll(rk, 20, NULL));
        CHECK(rd_kafka_subscription(rk, &back) == 0 && back->cnt == 1 && !strcmp(back->elems[0].topic, "^group_mem"));
        rd_kafka_topic_partition_list_destroy(back);
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_destroy(rk);
}

static void bad_assignors_are_refused(void) {
        const char *lists[] = {"range,cooperative-sticky", "no-such-assignor"};
        char errstr[256];
        int i;
        for (i = 0; i < 2; i++) {
                rd_kafka_conf_t *conf = member_conf("assignors");
                set(conf, "partition.assignment.strategy", lists[i]);
                CHECK(!rd_kafka_new(RD_KAFKA_CONSUMER, conf, errstr, sizeof(errstr)));
                CHECK(strstr(errstr, "partition.assignment.strategy"));
                rd_kafka_conf_destroy(conf);
        }
}

static void nonsense_is_refused(void) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_topic_partition_list_t *list = topics(TOPIC), *none = rd_kafka_topic_partition_list_new(0), *back = NULL;
        rd_kafka_t *rk;
        set(conf, "log_level", "2");
        rk = start(RD_KAFKA_CONSUMER, conf);
        CHECK(rd_kafka_subscribe(rk, list) == RD_KAFKA_RESP_ERR__UNKNOWN_GROUP);
        CHECK(rd_kafka_unsubscribe(rk) == RD_KAFKA_RESP_ERR__UNKNOWN_GROUP);
        CHECK(rd_kafka_consumer_close(rk) == RD_KAFKA_RESP_ERR__UNKNOWN_GROUP);
        CHECK(!rd_kafka_rebalance_protocol(rk) && !rd_kafka_consumer_group_metadata(rk));
        rd_kafka_destroy(rk);
        rk = start(RD_KAFKA_CONSUMER, member_conf("refusing"));
        CHECK(rd_kafka_subscribe(rk, NULL) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_subscribe(rk, none) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        rd_kafka_topic_partition_list_add(list, TOPIC, 0);
        CHECK(rd_kafka_subscribe(rk, list) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        rd_kafka_topic_partition_list_add(none, "", RD_KAFKA_PARTITION_UA);
        CHECK(rd_kafka_subscribe(rk, none) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        rd_kafka_topic_partition_list_destroy(none);
        none = topics("^bad[");
        CHECK(rd_kafka_subscribe(rk, none) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_subscription(rk, &back) == 0 && back->cnt == 0);
        rd_kafka_topic_partition_list_destroy(back);
        CHECK(rd_kafka_unsubscribe(rk) == 0);
        CHECK(!strcmp(rd_kafka_rebalance_protocol(rk), "NONE"));
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_topic_partition_list_destroy(none);
        rd_kafka_destroy(rk);
}

static void offsets_are_stored_for_assigned_partitions_only(void) {
        rd_kafka_conf_t *conf = member_conf("stores");
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_t *rk;
        int count = 0;
        rd_kafka_topic_partition_list_add(list, TOPIC, 1)->offset = 3;
        set(conf, "enable.auto.offset.store", "false");
        rk = member(conf, NULL, "range");
        CHECK(rd_kafka_offsets_store(rk, list) != 0);
        UNTIL(count == RECORDS, count += poll(rk, 100, NULL));
        CHECK(rd_kafka_offsets_store(rk, list) == 0);
        CHECK(rd_kafka_consumer_close(rk) == 0);
        CHECK(rd_kafka_offsets_store(rk, list) == RD_KAFKA_RESP_ERR__STATE);
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_destroy(rk);
        CHECK(committed("stores") == 3);
}

static void metadata_names_the_member(void) {
        rd_kafka_t *rk = member(member_conf("named"), NULL, "range");
        rd_kafka_consumer_group_metadata_t *metadata, *copy = NULL;
        void *bytes = NULL;
        size_t size = 0;
        UNTIL(assignment_size(rk) == PARTITIONS, poll(rk, 20, NULL));
        metadata = rd_kafka_consumer_group_metadata(rk);
        CHECK(rd_kafka_consumer_group_metadata_generation_id(metadata) == 1);
        CHECK(*rd_kafka_consumer_group_metadata_member_id(metadata));
        CHECK(!rd_kafka_consumer_group_metadata_write(metadata, &bytes, &size));
        CHECK(!rd_kafka_consumer_group_metadata_read(&copy, bytes, size));
        CHECK(!strcmp(rd_kafka_consumer_group_metadata_group_id(copy), "named"));
        CHECK(!rd_kafka_consumer_group_metadata_group_instance_id(copy));
        rd_kafka_consumer_group_metadata_destroy(copy);
        rd_kafka_consumer_group_metadata_destroy(metadata);
        rd_kafka_mem_free(rk, bytes);
        metadata = rd_kafka_consumer_group_metadata_new_with_genid("g", 5, "m", NULL);
        CHECK(!rd_kafka_consumer_group_metadata_write(metadata, &bytes, &size));
        CHECK(size == 16 && !memcmp(bytes, "CGMDv2:\x05\0\0\0g\0m\0\x01", 16));
        rd_kafka_consumer_group_metadata_destroy(metadata);
        rd_kafka_mem_free(NULL, bytes);
        rd_kafka_destroy(rk);
}

int main(void) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_t *rk;
        int i;
        set(conf, "test.mock.num.brokers", "1");
        set(conf, "log_level", "2");
        rk = start(RD_KAFKA_PRODUCER, conf);
        cluster = rd_kafka_handle_mock_cluster(rk);
        servers = rd_kafka_mock_cluster_bootstraps(cluster);
        CHECK(rd_kafka_mock_topic_create(cluster, TOPIC, PARTITIONS, 1) == 0);
        for (i = 0; i < RECORDS; i++)
                CHECK(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(TOPIC), RD_KAFKA_V_PARTITION(i % PARTITIONS),
                                        RD_KAFKA_V_VALUE((void *)"v", 1), RD_KAFKA_V_END) == 0);
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
        nonsense_is_refused();
        bad_assignors_are_refused();
        patterns_select_topics();
        library_answers_when_the_application_does_not();
        callback_answers_in_pairs("range", "eager");
        callback_answers_in_pairs("cooperative-sticky", "cooperative");
        destroying_without_closing_calls_nothing();
        lost_partitions_are_not_committed();
        member_that_does_not_poll_leaves_and_comes_back();
        events_are_answered_and_close_to_a_queue();
        batches_end_before_a_rebalance();
        callback_may_close_its_consumer();
        fenced_member_fails_for_good();
        missing_topic_is_reported_once();
        offsets_are_stored_for_assigned_partitions_only();
        metadata_names_the_member();
        rd_kafka_destroy(rk);
        return bad != 0;
}
