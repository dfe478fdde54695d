/* Share groups on the mock cluster: acquisition, redelivery, outcomes and delivery counts of records, members that come and
 * leave, errors of coordinators, and callbacks. Each library uses its own mock cluster. */
#include "side_by_side.h"

#define FIND_COORDINATOR 10
#define SHARE_HEARTBEAT 76
#define SHARE_FETCH 78
#define SHARE_ACKNOWLEDGE 79

static rd_kafka_t *host;

static rd_kafka_mock_cluster_t *cluster_of(void) {
        rd_kafka_mock_cluster_t *cluster;
        host = producer_of(conf_of(NULL, NULL));
        cluster = rd_kafka_mock_cluster_new(host, 1);
        rd_kafka_mock_set_apiversion(cluster, SHARE_HEARTBEAT, 1, 1);
        rd_kafka_mock_set_apiversion(cluster, SHARE_FETCH, 1, 1);
        rd_kafka_mock_set_apiversion(cluster, SHARE_ACKNOWLEDGE, 1, 1);
        rd_kafka_mock_sharegroup_set_auto_offset_reset(cluster, 1);
        setenv("SBS_BOOTSTRAP", rd_kafka_mock_cluster_bootstraps(cluster), 1);
        return cluster;
}

static rd_kafka_mock_cluster_t *cluster_with(int partitions) {
        rd_kafka_mock_cluster_t *cluster = cluster_of();
        rd_kafka_mock_topic_create(cluster, "t", partitions, 1);
        return cluster;
}

static void end(rd_kafka_mock_cluster_t *cluster) {
        rd_kafka_mock_cluster_destroy(cluster);
        rd_kafka_destroy(host);
}

/* Writes `count` messages to a partition of t, one batch per message. */
static void fill(int partition, int count) {
        static int next;
        rd_kafka_t *producer = producer_of(conf_of("bootstrap.servers", getenv("SBS_BOOTSTRAP"), "linger.ms", "0", NULL));
        int i;
        for (i = 0; i < count; i++) {
                char value[32];
                snprintf(value, sizeof(value), "%d", next++);
                rd_kafka_producev(producer, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_PARTITION(partition), RD_KAFKA_V_VALUE(value, strlen(value)),
                                  RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
                rd_kafka_flush(producer, TIMEOUT_MS);
        }
        rd_kafka_destroy(producer);
}

static rd_kafka_share_t *created(rd_kafka_conf_t *conf) {
        char errstr[512] = "";
        rd_kafka_share_t *share = rd_kafka_share_consumer_new(conf, errstr, sizeof(errstr));
        if (!share) {
                say("NO SHARE CONSUMER: %s", errstr);
                exit(0);
        }
        return share;
}

static rd_kafka_conf_t *share_conf(const char *mode) {
        return conf_of("bootstrap.servers", getenv("SBS_BOOTSTRAP"), "group.id", "s", "share.acknowledgement.mode", mode, "fetch.wait.max.ms",
                       "100", NULL);
}

static rd_kafka_share_t *subscribed(const char *mode, const char *topic) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_share_t *share = created(share_conf(mode));
        rd_kafka_topic_partition_list_add(list, topic, RD_KAFKA_PARTITION_UA);
        say("subscribe %s", err(rd_kafka_share_subscribe(share, list)));
        rd_kafka_topic_partition_list_destroy(list);
        return share;
}

#define MOST 64

/* What a member has been given, kept until it is acknowledged. */
struct given {
        rd_kafka_share_t *share;
        rd_kafka_messages_t *polls[MOST];
        rd_kafka_message_t *messages[MOST];
        int poll_count, count;
};

static struct given member(const char *mode) {
        struct given given;
        memset(&given, 0, sizeof(given));
        given.share = subscribed(mode, "t");
        return given;
}

static int by_place(const void *a, const void *b) {
        const rd_kafka_message_t *one = *(rd_kafka_message_t *const *)a, *other = *(rd_kafka_message_t *const *)b;
        return one->partition != other->partition ? one->partition - other->partition : (int)(one->offset - other->offset);
}

static void poll_once(struct given *given, int timeout) {
        rd_kafka_messages_t *messages = NULL;
        size_t i;
        rd_kafka_error_t *error = rd_kafka_share_poll(given->share, timeout, &messages);
        if (error)
                say_error("poll", error);
        if (!messages)
                return;
        for (i = 0; i < rd_kafka_messages_count(messages) && given->count < MOST; i++)
                given->messages[given->count++] = rd_kafka_messages_get(messages, i);
        given->polls[given->poll_count++] = messages;
}

/* Prints the messages in the order of their offsets, and how often each was delivered. */
static void say_given(const char *what, struct given *given) {
        int i;
        qsort(given->messages, given->count, sizeof(given->messages[0]), by_place);
        say("%s: %d", what, given->count);
        for (i = 0; i < given->count; i++)
                say("  [%d] offset %s error %s delivered %d", given->messages[i]->partition, offset_name(given->messages[i]->offset),
                    err(given->messages[i]->err), rd_kafka_message_delivery_count(given->messages[i]));
}

static void forget(struct given *given) {
        int i;
        for (i = 0; i < given->poll_count; i++)
                rd_kafka_messages_destroy(given->polls[i]);
        given->poll_count = given->count = 0;
}

/* Polls until the first messages come, and prints them. */
static void take(const char *what, struct given *given) {
        forget(given);
        UNTIL(given->count > 0, poll_once(given, 200));
        say_given(what, given);
}

/* Polls until the first messages come, or this time has passed, and prints what came. */
static void take_within(const char *what, struct given *given, long time) {
        long ends = millis() + time;
        forget(given);
        while (millis() < ends && !given->count)
                poll_once(given, 100);
        say_given(what, given);
}

static void take_nothing(const char *what, struct given *given) { take_within(what, given, 1000); }

static void acknowledge(struct given *given, int from, int to, rd_kafka_share_AcknowledgeType_t type) {
        for (; from < to; from++)
                if (from < given->count)
                                say("acknowledge %d as %d: %s", from, (int)type,
                            err(rd_kafka_share_acknowledge_type(given->share, given->messages[from], type)));
}

/* Accepts what came with the last poll. */
static void acknowledge_new(struct given *given) {
        rd_kafka_messages_t *last = given->poll_count > 0 ? given->polls[given->poll_count - 1] : NULL;
        size_t i;
        for (i = 0; i < rd_kafka_messages_count(last); i++)
                rd_kafka_share_acknowledge(given->share, rd_kafka_messages_get(last, i));
}

static void commit(struct given *given) {
        rd_kafka_topic_partition_list_t *list = NULL;
        int i;
        say_error("commit", rd_kafka_share_commit_sync(given->share, TIMEOUT_MS, &list));
        if (list)
                rd_kafka_topic_partition_list_sort(list, NULL, NULL);
        for (i = 0; list && i < list->cnt; i++)
                say("  %s [%d] error %s", list->elems[i].topic, list->elems[i].partition, err(list->elems[i].err));
        if (list)
                rd_kafka_topic_partition_list_destroy(list);
}

static void leave(struct given *given) {
        forget(given);
        say_error("destroy", rd_kafka_share_destroy(given->share));
}

static size_t members_of(rd_kafka_mock_cluster_t *cluster, char ids[][128]) {
        char **found = NULL;
        size_t count = 0, i;
        rd_kafka_mock_sharegroup_get_member_ids(cluster, "s", &found, &count);
        for (i = 0; i < count; i++) {
                if (ids)
                        snprintf(ids[i], 128, "%s", found[i]);
                free(found[i]);
        }
        free(found);
        return count;
}

#define ACCEPT RD_KAFKA_SHARE_ACKNOWLEDGE_TYPE_ACCEPT
#define RELEASE RD_KAFKA_SHARE_ACKNOWLEDGE_TYPE_RELEASE
#define REJECT RD_KAFKA_SHARE_ACKNOWLEDGE_TYPE_REJECT

/* Librdkafka's mock cluster gives each partition to one member; see the row about members that share a partition. */
CASE(share_lock_ends_for_another_member) {
        rd_kafka_mock_cluster_t *cluster = cluster_with(1);
        struct given one, other;
        rd_kafka_mock_sharegroup_set_record_lock_duration(cluster, 2000);
        fill(0, 3);
        one = member("explicit");
        take("first", &one);
        other = member("explicit");
        take_within("after the lock", &other, 5000);
        acknowledge(&other, 0, 3, ACCEPT);
        commit(&other);
        acknowledge(&one, 0, 3, ACCEPT);
        commit(&one);
        leave(&one);
        leave(&other);
        end(cluster);
}

CASE(share_several_partitions) {
        rd_kafka_mock_cluster_t *cluster = cluster_with(3);
        struct given one;
        int i;
        for (i = 0; i < 3; i++)
                fill(i, 2);
        one = member("explicit");
        UNTIL(one.count == 6, (poll_once(&one, 200), acknowledge_new(&one)));
        say_given("all", &one);
        leave(&one);
        end(cluster);
}

/* Two members with a partition each; what the first one has is for the second one when it has left. */
CASE(share_two_members) {
        rd_kafka_mock_cluster_t *cluster = cluster_with(2);
        struct given one, other;
        rd_kafka_mock_sharegroup_set_heartbeat_interval(cluster, 100);
        one = member("explicit");
        UNTIL(members_of(cluster, NULL) == 1, poll_once(&one, 50));
        other = member("explicit");
        UNTIL(members_of(cluster, NULL) == 2, (poll_once(&one, 50), poll_once(&other, 50)));
        take_nothing("before the records", &one);
        take_nothing("before the records", &other);
        fill(0, 1);
        take("of partition 0", &one);
        fill(1, 1);
        take("of partition 1", &other);
        acknowledge(&other, 0, 1, ACCEPT);
        commit(&other);
        leave(&one);
        take("released", &other);
        acknowledge(&other, 0, 1, ACCEPT);
        commit(&other);
        leave(&other);
        end(cluster);
}

CASE(share_lock_ends_for_its_own_member) {
        rd_kafka_mock_cluster_t *cluster = cluster_with(1);
        struct given one;
        rd_kafka_mock_sharegroup_set_record_lock_duration(cluster, 500);
        fill(0, 3);
        one = member("explicit");
        take("first", &one);
        usleep(1500000);
        acknowledge(&one, 0, 3, ACCEPT);
        commit(&one);
        take("again", &one);
        acknowledge(&one, 0, 3, ACCEPT);
        commit(&one);
        take_nothing("accepted", &one);
        leave(&one);
        end(cluster);
}

CASE(share_release) {
        rd_kafka_mock_cluster_t *cluster = cluster_with(1);
        struct given one;
        rd_kafka_mock_sharegroup_set_max_delivery_attempts(cluster, 3);
        fill(0, 1);
        one = member("explicit");
        take("first", &one);
        acknowledge(&one, 0, 1, RELEASE);
        commit(&one);
        take("second", &one);
        acknowledge(&one, 0, 1, RELEASE);
        commit(&one);
        take("third", &one);
        acknowledge(&one, 0, 1, RELEASE);
        commit(&one);
        take_nothing("at the limit", &one);
        leave(&one);
        end(cluster);
}

CASE(share_lock_ends_at_the_limit) {
        rd_kafka_mock_cluster_t *cluster = cluster_with(1);
        struct given one;
        rd_kafka_mock_sharegroup_set_max_delivery_attempts(cluster, 1);
        rd_kafka_mock_sharegroup_set_record_lock_duration(cluster, 500);
        fill(0, 1);
        one = member("explicit");
        take("first", &one);
        usleep(1500000);
        acknowledge(&one, 0, 1, ACCEPT);
        commit(&one);
        take_nothing("at the limit", &one);
        fill(0, 1);
        take("next", &one);
        acknowledge(&one, 0, 1, ACCEPT);
        commit(&one);
        leave(&one);
        end(cluster);
}

CASE(share_reject) {
        rd_kafka_mock_cluster_t *cluster = cluster_with(1);
        struct given one;
        fill(0, 1);
        one = member("explicit");
        take("first", &one);
        acknowledge(&one, 0, 1, REJECT);
        commit(&one);
        take_nothing("rejected", &one);
        fill(0, 1);
        take("next", &one);
        acknowledge(&one, 0, 1, ACCEPT);
        leave(&one);
        end(cluster);
}

CASE(share_mixed_outcomes) {
        rd_kafka_mock_cluster_t *cluster = cluster_with(1);
        struct given one, other;
        fill(0, 6);
        one = member("explicit");
        take("first", &one);
        acknowledge(&one, 0, 1, ACCEPT);
        acknowledge(&one, 1, 2, RELEASE);
        acknowledge(&one, 2, 3, REJECT);
        acknowledge(&one, 3, 4, RELEASE);
        acknowledge(&one, 4, 6, ACCEPT);
        commit(&one);
        take("released", &one);
        acknowledge(&one, 0, 1, RELEASE);
        acknowledge(&one, 1, 2, ACCEPT);
        leave(&one);
        other = member("explicit");
        take("of a new member", &other);
        acknowledge(&other, 0, 1, ACCEPT);
        commit(&other);
        leave(&other);
        end(cluster);
}

CASE(share_member_leaves) {
        rd_kafka_mock_cluster_t *cluster = cluster_with(1);
        struct given one, other;
        fill(0, 3);
        one = member("explicit");
        take("first", &one);
        acknowledge(&one, 0, 1, ACCEPT);
        leave(&one);
        other = member("explicit");
        take("released", &other);
        acknowledge(&other, 0, 2, ACCEPT);
        leave(&other);
        end(cluster);
}

CASE(share_member_is_lost) {
        rd_kafka_mock_cluster_t *cluster = cluster_with(1);
        struct given one, other;
        rd_kafka_mock_sharegroup_set_session_timeout(cluster, 1000);
        rd_kafka_mock_sharegroup_set_heartbeat_interval(cluster, 200);
        fill(0, 3);
        one = member("explicit");
        take("first", &one);
        forget(&one);
        say_error("destroy", rd_kafka_share_destroy_flags(one.share, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE));
        other = member("explicit");
        take("released", &other);
        acknowledge(&other, 0, 3, ACCEPT);
        leave(&other);
        end(cluster);
}

CASE(share_implicit_acceptance_by_the_next_poll) {
        rd_kafka_mock_cluster_t *cluster = cluster_with(1);
        struct given one, other;
        fill(0, 2);
        one = member("implicit");
        take("first", &one);
        take_nothing("accepted", &one);
        fill(0, 1);
        take("next", &one);
        commit(&one);
        leave(&one);
        other = member("implicit");
        take_nothing("of a new member", &other);
        leave(&other);
        end(cluster);
}

CASE(share_latest) {
        rd_kafka_mock_cluster_t *cluster = cluster_with(1);
        struct given one;
        rd_kafka_mock_sharegroup_set_auto_offset_reset(cluster, 0);
        fill(0, 2);
        one = member("explicit");
        take_nothing("before the member", &one);
        fill(0, 1);
        take("after", &one);
        acknowledge(&one, 0, 1, ACCEPT);
        leave(&one);
        end(cluster);
}

CASE(share_target_assignment) {
        rd_kafka_mock_cluster_t *cluster = cluster_with(2);
        struct given one;
        char ids[MOST][128];
        const char *id = ids[0];
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_mock_sharegroup_set_heartbeat_interval(cluster, 100);
        one = member("explicit");
        UNTIL(members_of(cluster, ids) == 1, poll_once(&one, 50));
        rd_kafka_topic_partition_list_add(list, "t", 1);
        rd_kafka_mock_sharegroup_target_assignment(cluster, "s", &id, &list, 1);
        rd_kafka_topic_partition_list_destroy(list);
        take_nothing("empty", &one);
        fill(0, 1);
        fill(1, 1);
        take("of partition 1", &one);
        acknowledge(&one, 0, 1, ACCEPT);
        take_nothing("nothing of partition 0", &one);
        leave(&one);
        WAIT_FOR(members_of(cluster, NULL) == 0);
        say("members %zu", members_of(cluster, NULL));
        end(cluster);
}

CASE(share_group_is_full) {
        rd_kafka_mock_cluster_t *cluster = cluster_with(1);
        struct given one, other;
        rd_kafka_mock_sharegroup_set_max_size(cluster, 1);
        fill(0, 1);
        one = member("explicit");
        take("first", &one);
        other = member("explicit");
        {
                rd_kafka_messages_t *messages = NULL;
                rd_kafka_error_t *error = NULL;
                UNTIL(error, error = rd_kafka_share_poll(other.share, 200, &messages));
                say_error("refused", error);
        }
        say("members %zu", members_of(cluster, NULL));
        acknowledge(&one, 0, 1, RELEASE);
        leave(&one);
        leave(&other);
        end(cluster);
}

CASE(share_locks_are_limited) {
        rd_kafka_mock_cluster_t *cluster = cluster_with(1);
        struct given one;
        int total;
        rd_kafka_mock_sharegroup_set_max_record_locks(cluster, 2);
        fill(0, 5);
        one = member("explicit");
        for (total = 0; total < 5; total += one.count) {
                take("within the limit", &one);
                if (!one.count)
                        break;
                acknowledge(&one, 0, one.count, ACCEPT);
                commit(&one);
        }
        leave(&one);
        end(cluster);
}

/* ---- Errors of the coordinator ---- */

static int count_of(rd_kafka_mock_cluster_t *cluster, int16_t api) {
        size_t count = 0, i;
        int found = 0;
        rd_kafka_mock_request_t **requests = rd_kafka_mock_get_requests(cluster, &count);
        for (i = 0; i < count; i++)
                found += rd_kafka_mock_request_api_key(requests[i]) == api;
        rd_kafka_mock_request_destroy_array(requests, count);
        return found;
}

static const char *number_class(int count) { return count == 0 ? "none" : count == 1 ? "one" : "more than one"; }

static void share_heartbeat_errors(rd_kafka_resp_err_t code) {
        rd_kafka_mock_cluster_t *cluster = cluster_with(1);
        struct given one;
        rd_kafka_mock_sharegroup_set_heartbeat_interval(cluster, 200);
        fill(0, 1);
        one = member("explicit");
        take("first", &one);
        acknowledge(&one, 0, 1, ACCEPT);
        rd_kafka_mock_start_request_tracking(cluster);
        rd_kafka_mock_push_request_errors(cluster, SHARE_HEARTBEAT, 3, code, code, code);
        UNTIL(count_of(cluster, SHARE_HEARTBEAT) >= 5, poll_once(&one, 20));
        say("heartbeats %s", number_class(count_of(cluster, SHARE_HEARTBEAT)));
        if (code != RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS)
                say("coordinator looked for %s", count_of(cluster, FIND_COORDINATOR) ? "again" : "never");
        fill(0, 1);
        take("next", &one);
        acknowledge(&one, 0, 1, ACCEPT);
        leave(&one);
        end(cluster);
}
CASE(share_heartbeat_NOT_COORDINATOR) { share_heartbeat_errors(RD_KAFKA_RESP_ERR_NOT_COORDINATOR); }
CASE(share_heartbeat_COORDINATOR_LOAD_IN_PROGRESS) { share_heartbeat_errors(RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS); }
CASE(share_heartbeat_COORDINATOR_NOT_AVAILABLE) { share_heartbeat_errors(RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE); }

/* ---- Callbacks without a subscription, interceptors, and properties ---- */

CASE(share_poll_without_a_subscription_serves_callbacks) {
        rd_kafka_conf_t *conf = conf_of("bootstrap.servers", DEAD, "group.id", "s", "statistics.interval.ms", "50", NULL);
        rd_kafka_share_t *share;
        rd_kafka_messages_t *messages = NULL;
        rd_kafka_error_t *error = NULL;
        rd_kafka_conf_set_stats_cb(conf, on_stats);
        share = created(conf);
        UNTIL(recorded(&statistics) && recorded_with(&errors, "ALL_BROKERS_DOWN"), {
                if (error)
                        rd_kafka_error_destroy(error);
                error = rd_kafka_share_poll(share, 50, &messages);
        });
        say_error("poll", error);
        say_recorded_set("statistics", &statistics);
        say_recorded_set("errors", &errors);
        say_error("destroy", rd_kafka_share_destroy(share));
}

static rd_kafka_resp_err_t on_destroy(rd_kafka_t *rk UNUSED, void *opaque UNUSED) {
        say("on_destroy");
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}
static rd_kafka_resp_err_t on_new(rd_kafka_t *rk, const rd_kafka_conf_t *conf UNUSED, void *opaque UNUSED, char *errstr UNUSED, size_t room UNUSED) {
        say("on_new adds on_destroy %s", err(rd_kafka_interceptor_add_on_destroy(rk, "i", on_destroy, NULL)));
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

CASE(share_interceptors) {
        rd_kafka_conf_t *conf = conf_of("bootstrap.servers", DEAD, "group.id", "s", NULL);
        rd_kafka_share_t *share;
        say("on_new %s", err(rd_kafka_conf_interceptor_add_on_new(conf, "i", on_new, NULL)));
        share = created(conf);
        say_error("destroy", rd_kafka_share_destroy(share));
}

CASE(share_fetch_max_below_message_max) {
        rd_kafka_share_t *share =
            created(conf_of("bootstrap.servers", DEAD, "group.id", "s", "fetch.max.bytes", "1000", "message.max.bytes", "2000", NULL));
        say("created %d", share != NULL);
        say_error("destroy", rd_kafka_share_destroy(share));
}
