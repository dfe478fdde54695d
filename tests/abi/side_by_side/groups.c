/* Members of groups: refused calls, the content of the rebalance callback and event, the responses, and the end.
 * Each library uses its own mock cluster. */
#include "side_by_side.h"

#define PARTITIONS 3

static rd_kafka_t *host;
static int wants_wrong_answers;
/* The original's mock cluster keeps a group that a member has left. */
static const char *group = "g";

static rd_kafka_mock_cluster_t *cluster_of(void) {
        rd_kafka_mock_cluster_t *cluster;
        host = start(RD_KAFKA_PRODUCER, conf_of(NULL, NULL));
        cluster = rd_kafka_mock_cluster_new(host, 1);
        rd_kafka_mock_group_initial_rebalance_delay_ms(cluster, 0);
        rd_kafka_mock_topic_create(cluster, "t", PARTITIONS, 1);
        setenv("SBS_BOOTSTRAP", rd_kafka_mock_cluster_bootstraps(cluster), 1);
        return cluster;
}

static void end(rd_kafka_mock_cluster_t *cluster) {
        rd_kafka_mock_cluster_destroy(cluster);
        rd_kafka_destroy(host);
}

static rd_kafka_conf_t *conf_with(const char *strategy) {
        return conf_of("bootstrap.servers", getenv("SBS_BOOTSTRAP"), "group.id", group, "partition.assignment.strategy", strategy, "auto.offset.reset",
                       "earliest", NULL);
}

static rd_kafka_resp_err_t subscribe(rd_kafka_t *rk, const char *one, const char *other) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(2);
        rd_kafka_resp_err_t code;
        if (one)
                rd_kafka_topic_partition_list_add(list, one, RD_KAFKA_PARTITION_UA);
        if (other)
                rd_kafka_topic_partition_list_add(list, other, RD_KAFKA_PARTITION_UA);
        code = rd_kafka_subscribe(rk, list);
        rd_kafka_topic_partition_list_destroy(list);
        return code;
}

static void say_subscription(rd_kafka_t *rk) {
        rd_kafka_topic_partition_list_t *list = NULL;
        rd_kafka_resp_err_t code = rd_kafka_subscription(rk, &list);
        say("subscription %s", err(code));
        if (list) {
                say_partitions("subscription", list);
                rd_kafka_topic_partition_list_destroy(list);
        }
}

static void say_assignment(rd_kafka_t *rk) {
        rd_kafka_topic_partition_list_t *list = NULL;
        rd_kafka_resp_err_t code = rd_kafka_assignment(rk, &list);
        say("assignment %s", err(code));
        if (list) {
                say_partitions("assignment", list);
                rd_kafka_topic_partition_list_destroy(list);
        }
}

static void say_code(const char *what, rd_kafka_error_t *error) {
        say("%s: %s", what, err(error ? rd_kafka_error_code(error) : RD_KAFKA_RESP_ERR_NO_ERROR));
        if (error)
                rd_kafka_error_destroy(error);
}

static int answered;

static void on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t code, rd_kafka_topic_partition_list_t *list, void *opaque UNUSED) {
        int is_cooperative = !strcmp(rd_kafka_rebalance_protocol(rk), "COOPERATIVE");
        say("rebalance %s protocol %s lost %d", err(code), rd_kafka_rebalance_protocol(rk), rd_kafka_assignment_lost(rk));
        say_partitions("rebalance", list);
        if (code == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
                if (wants_wrong_answers) {
                        if (is_cooperative) {
                                say("wrong assign %s", err(rd_kafka_assign(rk, list)));
                                say("wrong assign of NULL %s", err(rd_kafka_assign(rk, NULL)));
                        } else {
                                say_code("wrong incremental assign", rd_kafka_incremental_assign(rk, list));
                                say_code("wrong incremental unassign", rd_kafka_incremental_unassign(rk, list));
                        }
                        say_assignment(rk);
                }
                if (is_cooperative) {
                        say_code("incremental assign", rd_kafka_incremental_assign(rk, list));
                        say_code("incremental assign again", rd_kafka_incremental_assign(rk, list));
                } else {
                        say("assign %s", err(rd_kafka_assign(rk, list)));
                }
        } else {
                say("commit %s", err(rd_kafka_commit(rk, NULL, 0)));
                /* The original sometimes never returns from another call about the assignment after this, while it closes. */
                if (is_cooperative)
                        say_code("incremental unassign", rd_kafka_incremental_unassign(rk, list));
                else
                        say("assign NULL %s", err(rd_kafka_assign(rk, NULL)));
        }
        if (code == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS)
                say_assignment(rk);
        answered++;
}

static rd_kafka_t *member(const char *strategy) {
        rd_kafka_conf_t *conf = conf_with(strategy);
        rd_kafka_t *rk;
        rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
        rk = start(RD_KAFKA_CONSUMER, conf);
        say("poll_set_consumer %s", err(rd_kafka_poll_set_consumer(rk)));
        say("protocol %s", rd_kafka_rebalance_protocol(rk));
        say("subscribe %s", err(subscribe(rk, "t", NULL)));
        return rk;
}

static void poll_until_answered(rd_kafka_t *rk, int times) {
        UNTIL(answered >= times, {
                rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, 50);
                if (message) {
                        say("message %s", err(message->err));
                        rd_kafka_message_destroy(message);
                }
        });
}

static void after_the_end(rd_kafka_t *rk) {
        rd_kafka_message_t *message;
        say("closed %d", rd_kafka_consumer_closed(rk));
        say("close again %s", err(rd_kafka_consumer_close(rk)));
        say("protocol %s", rd_kafka_rebalance_protocol(rk));
        say("lost %d", rd_kafka_assignment_lost(rk));
        say_assignment(rk);
        message = rd_kafka_consumer_poll(rk, 100);
        say("poll %s", message ? err(message->err) : "NULL");
        if (message)
                rd_kafka_message_destroy(message);
}

CASE(refusals) {
        rd_kafka_t *rk = start(RD_KAFKA_CONSUMER, conf_of("group.id", "g", NULL));
        char *id = rd_kafka_memberid(rk);
        say("member id %s", present(id));
        if (id)
                rd_kafka_mem_free(rk, id);
        say("protocol %s", rd_kafka_rebalance_protocol(rk));
        say("lost %d", rd_kafka_assignment_lost(rk));
        say("empty list %s", err(subscribe(rk, NULL, NULL)));
        say("empty name %s", err(subscribe(rk, "", NULL)));
        say("repeated %s", err(subscribe(rk, "a", "a")));
        say("bad pattern %s", err(subscribe(rk, "^a[", NULL)));
        say_subscription(rk);
        say("good %s", err(subscribe(rk, "b", "a")));
        say_subscription(rk);
        say("again %s", err(subscribe(rk, "^c.*", "a")));
        say_subscription(rk);
        say("unsubscribe %s", err(rd_kafka_unsubscribe(rk)));
        say_subscription(rk);
        say("unsubscribe %s", err(rd_kafka_unsubscribe(rk)));
        say_code("close to no queue", rd_kafka_consumer_close_queue(rk, NULL));
        say("closed %d", rd_kafka_consumer_closed(rk));
        say("close %s", err(rd_kafka_consumer_close(rk)));
        after_the_end(rk);
        rd_kafka_destroy(rk);
}

CASE(without_group) {
        rd_kafka_t *rk = start(RD_KAFKA_CONSUMER, conf_of(NULL, NULL));
        rd_kafka_consumer_group_metadata_t *metadata = rd_kafka_consumer_group_metadata(rk);
        say("subscribe %s", err(subscribe(rk, "a", NULL)));
        say("unsubscribe %s", err(rd_kafka_unsubscribe(rk)));
        say("close %s", err(rd_kafka_consumer_close(rk)));
        say("protocol %s", present(rd_kafka_rebalance_protocol(rk)));
        say("metadata %s", metadata ? "present" : "NULL");
        say("lost %d", rd_kafka_assignment_lost(rk));
        rd_kafka_destroy(rk);
}

static void say_metadata(const char *what, const rd_kafka_consumer_group_metadata_t *metadata) {
        rd_kafka_consumer_group_metadata_t *copy = NULL;
        rd_kafka_error_t *error;
        unsigned char *bytes = NULL;
        char text[256] = "";
        size_t size = 0, i;
        error = rd_kafka_consumer_group_metadata_write(metadata, (void **)&bytes, &size);
        for (i = 0; i < size && i < 100; i++)
                sprintf(text + 2 * i, "%02x", bytes[i]);
        say_code(what, error);
        say("%s", text);
        for (i = 0; i <= size; i++) {
                error = rd_kafka_consumer_group_metadata_read(&copy, bytes, i);
                if (i == size || !error || rd_kafka_error_code(error) != RD_KAFKA_RESP_ERR__BAD_MSG)
                        say("%zu of %zu bytes: %s", i, size, err(error ? rd_kafka_error_code(error) : 0));
                if (error)
                        rd_kafka_error_destroy(error);
                else
                        rd_kafka_consumer_group_metadata_destroy(copy);
        }
        rd_kafka_mem_free(NULL, bytes);
}

CASE(metadata_bytes) {
        rd_kafka_consumer_group_metadata_t *metadata = rd_kafka_consumer_group_metadata_new("group");
        say("generation %d member %s instance %s", (int)rd_kafka_consumer_group_metadata_generation_id(metadata),
            quoted(rd_kafka_consumer_group_metadata_member_id(metadata)), present(rd_kafka_consumer_group_metadata_group_instance_id(metadata)));
        say_metadata("new", metadata);
        rd_kafka_consumer_group_metadata_destroy(metadata);
        metadata = rd_kafka_consumer_group_metadata_new_with_genid("g", 5, "m", NULL);
        say_metadata("with generation", metadata);
        rd_kafka_consumer_group_metadata_destroy(metadata);
        metadata = rd_kafka_consumer_group_metadata_new_with_genid("g", 5, "m", "i");
        say_metadata("with instance", metadata);
        rd_kafka_consumer_group_metadata_destroy(metadata);
}

CASE(eager) {
        rd_kafka_mock_cluster_t *cluster = cluster_of();
        rd_kafka_t *rk;
        wants_wrong_answers = 1;
        rk = member("range");
        poll_until_answered(rk, 1);
        say("unsubscribe %s", err(rd_kafka_unsubscribe(rk)));
        poll_until_answered(rk, 2);
        say_subscription(rk);
        say("close %s", err(rd_kafka_consumer_close(rk)));
        say("answered %d", answered);
        after_the_end(rk);
        rd_kafka_destroy(rk);
        end(cluster);
}

CASE(cooperative) {
        rd_kafka_mock_cluster_t *cluster = cluster_of();
        rd_kafka_t *rk;
        wants_wrong_answers = 1;
        rk = member("cooperative-sticky");
        poll_until_answered(rk, 1);
        say("close %s", err(rd_kafka_consumer_close(rk)));
        say("answered %d", answered);
        after_the_end(rk);
        rd_kafka_destroy(rk);
        end(cluster);
}

CASE(destroyed_without_closing) {
        rd_kafka_mock_cluster_t *cluster = cluster_of();
        rd_kafka_t *rk = member("range");
        poll_until_answered(rk, 1);
        rd_kafka_destroy(rk);
        say("answered %d", answered);
        group = "h";
        rk = member("range");
        poll_until_answered(rk, 3);
        rd_kafka_destroy_flags(rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
        say("answered %d", answered);
        end(cluster);
}

CASE(events) {
        rd_kafka_mock_cluster_t *cluster = cluster_of();
        rd_kafka_conf_t *conf = conf_with("roundrobin");
        rd_kafka_queue_t *queue, *closing;
        rd_kafka_event_t *event;
        rd_kafka_t *rk;
        int count = 0;
        rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_REBALANCE);
        rk = start(RD_KAFKA_CONSUMER, conf);
        queue = rd_kafka_queue_get_consumer(rk);
        say("subscribe %s", err(subscribe(rk, "t", NULL)));
        UNTIL(count, {
                event = rd_kafka_queue_poll(queue, 50);
                if (event && rd_kafka_event_type(event) == RD_KAFKA_EVENT_REBALANCE) {
                        say("%s %s %s", rd_kafka_event_name(event), err(rd_kafka_event_error(event)), rd_kafka_event_error_string(event));
                        say_partitions("event", rd_kafka_event_topic_partition_list(event));
                        say("assign %s", err(rd_kafka_assign(rk, rd_kafka_event_topic_partition_list(event))));
                        count++;
                }
                rd_kafka_event_destroy(event);
        });
        closing = rd_kafka_queue_new(rk);
        say_code("close to a queue", rd_kafka_consumer_close_queue(rk, closing));
        UNTIL(rd_kafka_consumer_closed(rk), {
                event = rd_kafka_queue_poll(closing, 50);
                if (event && rd_kafka_event_type(event) == RD_KAFKA_EVENT_REBALANCE) {
                        say("%s %s", rd_kafka_event_name(event), err(rd_kafka_event_error(event)));
                        say_partitions("event", rd_kafka_event_topic_partition_list(event));
                        say("assign %s", err(rd_kafka_assign(rk, NULL)));
                }
                rd_kafka_event_destroy(event);
        });
        rd_kafka_queue_destroy(closing);
        rd_kafka_queue_destroy(queue);
        after_the_end(rk);
        rd_kafka_destroy(rk);
        end(cluster);
}


/* ---- Commits of a member that closes ---- */

static struct recorder commits = RECORDER;

static void on_commit(rd_kafka_t *rk UNUSED, rd_kafka_resp_err_t code, rd_kafka_topic_partition_list_t *list, void *opaque UNUSED) {
        int i;
        for (i = 0; list && i < list->cnt; i++)
                record(&commits, "commit %s [%d] offset %s", err(code), list->elems[i].partition, offset_name(list->elems[i].offset));
}

/* Reads one message, commits it or not, and closes. */
static void commits_of_a_closing_member(int commits_first) {
        rd_kafka_mock_cluster_t *cluster = cluster_of();
        rd_kafka_conf_t *conf = conf_with("range");
        rd_kafka_message_t *message = NULL;
        rd_kafka_t *rk;
        rd_kafka_mock_topic_create(cluster, "one", 1, 1);
        rk = producer_of(conf_of("bootstrap.servers", getenv("SBS_BOOTSTRAP"), "linger.ms", "0", NULL));
        rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("one"), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_VALUE((void *)"a", 1), RD_KAFKA_V_END);
        say("flush %s", err(rd_kafka_flush(rk, 10000)));
        rd_kafka_destroy(rk);
        set(conf, "auto.commit.interval.ms", "60000");
        rd_kafka_conf_set_offset_commit_cb(conf, on_commit);
        rk = start(RD_KAFKA_CONSUMER, conf);
        rd_kafka_poll_set_consumer(rk);
        say("subscribe %s", err(subscribe(rk, "one", NULL)));
        UNTIL(message, message = rd_kafka_consumer_poll(rk, 50));
        if (message)
                rd_kafka_message_destroy(message);
        if (commits_first)
                say("commit %s", err(rd_kafka_commit(rk, NULL, 0)));
        say("close %s", err(rd_kafka_consumer_close(rk)));
        rd_kafka_destroy(rk);
        say_recorded("commits", &commits);
        end(cluster);
}
CASE(closing_member_commits_what_it_read) { commits_of_a_closing_member(0); }
CASE(closing_member_has_committed_everything) { commits_of_a_closing_member(1); }
