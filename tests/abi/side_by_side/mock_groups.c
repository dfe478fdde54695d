/* Groups on the mock cluster: assignments and epochs of members, session timeouts, errors of coordinators, and the wake-ups
 * of a member whose queue is forwarded. Each library uses its own mock cluster. */
#include "side_by_side.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define OFFSET_COMMIT 8
#define FIND_COORDINATOR 10
#define JOIN_GROUP 11
#define HEARTBEAT 12
#define LEAVE_GROUP 13
#define SYNC_GROUP 14
#define CONSUMER_HEARTBEAT 68

static rd_kafka_t *host;

static rd_kafka_mock_cluster_t *cluster_of(void) {
        rd_kafka_mock_cluster_t *cluster;
        host = producer_of(conf_of(NULL, NULL));
        cluster = rd_kafka_mock_cluster_new(host, 1);
        rd_kafka_mock_group_initial_rebalance_delay_ms(cluster, 0);
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

/* ---- Members of both protocols ---- */

static rd_kafka_conf_t *member_conf(const char *protocol) {
        rd_kafka_conf_t *conf = conf_of("bootstrap.servers", getenv("SBS_BOOTSTRAP"), "group.id", "g", "auto.offset.reset", "earliest",
                                        "topic.metadata.refresh.interval.ms", "1000", NULL);
        if (!strcmp(protocol, "consumer")) {
                set(conf, "group.protocol", "consumer");
        } else {
                set(conf, "partition.assignment.strategy", protocol);
                set(conf, "heartbeat.interval.ms", "100");
                /* The original's mock cluster lets members wait for others for a second less than that. */
                set(conf, "session.timeout.ms", "3000");
        }
        return conf;
}

static struct recorder rebalances = RECORDER;

static void on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t code, rd_kafka_topic_partition_list_t *list, void *opaque UNUSED) {
        int is_assignment = code == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
        record(&rebalances, "%s of %d lost %d", err(code), list->cnt, rd_kafka_assignment_lost(rk));
        if (!strcmp(rd_kafka_rebalance_protocol(rk), "COOPERATIVE"))
                rd_kafka_error_destroy(is_assignment ? rd_kafka_incremental_assign(rk, list) : rd_kafka_incremental_unassign(rk, list));
        else
                rd_kafka_assign(rk, is_assignment ? list : NULL);
}

typedef void rebalance_cb(rd_kafka_t *, rd_kafka_resp_err_t, rd_kafka_topic_partition_list_t *, void *);

static rd_kafka_t *joined(rd_kafka_conf_t *conf, rebalance_cb *callback, const char *const *topics) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(4);
        rd_kafka_t *rk;
        rd_kafka_conf_set_rebalance_cb(conf, callback);
        rk = consumer_of(conf);
        for (; *topics; topics++)
                rd_kafka_topic_partition_list_add(list, *topics, RD_KAFKA_PARTITION_UA);
        say("subscribe %s", err(rd_kafka_subscribe(rk, list)));
        rd_kafka_topic_partition_list_destroy(list);
        return rk;
}

static void poll(rd_kafka_t *rk) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, 20);
        if (!message)
                return;
        if (message->err)
                say("message %s", err(message->err));
        rd_kafka_message_destroy(message);
}

/* The assignment in one line, sorted; returns its size. */
static int assigned(rd_kafka_t *rk, char *line, size_t room) {
        rd_kafka_topic_partition_list_t *list = NULL;
        int i, count = 0;
        *line = 0;
        if (!rd_kafka_assignment(rk, &list)) {
                rd_kafka_topic_partition_list_sort(list, NULL, NULL);
                for (i = 0; i < list->cnt; i++)
                        snprintf(line + strlen(line), room - strlen(line), " %s[%d]", list->elems[i].topic, list->elems[i].partition);
                count = list->cnt;
                rd_kafka_topic_partition_list_destroy(list);
        }
        return count;
}

static const char *const ONE_TOPIC[] = {"t", NULL};
static const char *const THREE_TOPICS[] = {"a", "b", "c", NULL};

/* Topics of 5, 2 and 1 partitions for two members, whose names depend on the run: the lines are sorted. */
static void unequal_topics(const char *protocol) {
        rd_kafka_mock_cluster_t *cluster = cluster_of();
        rd_kafka_t *one, *other;
        char lines[2][512];
        int counts[2] = {0, 0}, is_swapped;
        rd_kafka_mock_topic_create(cluster, "a", 5, 1);
        rd_kafka_mock_topic_create(cluster, "b", 2, 1);
        rd_kafka_mock_topic_create(cluster, "c", 1, 1);
        rd_kafka_mock_set_group_consumer_heartbeat_interval_ms(cluster, 100);
        one = joined(member_conf(protocol), on_rebalance, THREE_TOPICS);
        UNTIL(assigned(one, lines[0], sizeof(lines[0])) == 8, poll(one));
        say("alone:%s", lines[0]);
        other = joined(member_conf(protocol), on_rebalance, THREE_TOPICS);
        UNTIL(counts[0] + counts[1] == 8 && counts[1] && counts[0],
              (poll(one), poll(other), counts[0] = assigned(one, lines[0], 512), counts[1] = assigned(other, lines[1], 512)));
        is_swapped = strcmp(lines[0], lines[1]) > 0;
        say("one:%s", lines[is_swapped]);
        say("other:%s", lines[!is_swapped]);
        say("close %s", err(rd_kafka_consumer_close(other)));
        rd_kafka_destroy(other);
        UNTIL(assigned(one, lines[0], sizeof(lines[0])) == 8, poll(one));
        say("alone again:%s", lines[0]);
        say("close %s", err(rd_kafka_consumer_close(one)));
        rd_kafka_destroy(one);
        end(cluster);
}
CASE(unequal_topics_range) { unequal_topics("range"); }
CASE(unequal_topics_roundrobin) { unequal_topics("roundrobin"); }
CASE(unequal_topics_cooperative_sticky) { unequal_topics("cooperative-sticky"); }
CASE(unequal_topics_consumer_protocol) { unequal_topics("consumer"); }

/* Returns the epoch or generation of a member, which only the serialized metadata of its group contains. */
static int epoch_of(rd_kafka_t *rk) {
        rd_kafka_consumer_group_metadata_t *metadata = rd_kafka_consumer_group_metadata(rk);
        void *buffer = NULL;
        size_t size = 0;
        int32_t epoch = -7;
        rd_kafka_error_t *error = rd_kafka_consumer_group_metadata_write(metadata, &buffer, &size);
        if (error)
                say_error("write", error);
        if (size > 11)
                memcpy(&epoch, (char *)buffer + 7, 4);
        free(buffer);
        rd_kafka_consumer_group_metadata_destroy(metadata);
        return epoch;
}

static void static_member(const char *protocol) {
        rd_kafka_mock_cluster_t *cluster = cluster_with(2);
        rd_kafka_t *rk;
        char line[512];
        int i, before = -7, epoch;
        rd_kafka_mock_set_group_consumer_heartbeat_interval_ms(cluster, 100);
        for (i = 0; i < 3; i++) {
                rd_kafka_conf_t *conf = member_conf(protocol);
                set(conf, "group.instance.id", "i");
                rk = joined(conf, on_rebalance, ONE_TOPIC);
                UNTIL(assigned(rk, line, sizeof(line)) == 2, poll(rk));
                say("assigned:%s", line);
                epoch = epoch_of(rk);
                say("epoch %s", i == 0 ? (epoch > 0 ? "positive" : "none") : epoch == before ? "same" : "another");
                before = epoch;
                say("close %s", err(rd_kafka_consumer_close(rk)));
                rd_kafka_destroy(rk);
        }
        end(cluster);
}
CASE(static_member_returns_classic) { static_member("range"); }
CASE(static_member_returns_consumer_protocol) { static_member("consumer"); }

static int count_of(rd_kafka_mock_cluster_t *cluster, int16_t api) {
        size_t count = 0, i;
        int found = 0;
        rd_kafka_mock_request_t **requests = rd_kafka_mock_get_requests(cluster, &count);
        for (i = 0; i < count; i++)
                found += rd_kafka_mock_request_api_key(requests[i]) == api;
        rd_kafka_mock_request_destroy_array(requests, count);
        return found;
}

/* ---- Errors of a coordinator ---- */

static const char *number_class(int count) { return count == 0 ? "none" : count == 1 ? "one" : "more than one"; }

/* Three heartbeats are answered with an error; the member stays or joins again. */
static void heartbeat_errors(const char *protocol, rd_kafka_resp_err_t code) {
        rd_kafka_mock_cluster_t *cluster = cluster_with(2);
        int16_t api = strcmp(protocol, "consumer") ? HEARTBEAT : CONSUMER_HEARTBEAT;
        rd_kafka_t *rk;
        char line[512];
        size_t left = 3;
        int early;
        long ends;
        rd_kafka_mock_set_group_consumer_heartbeat_interval_ms(cluster, 200);
        rk = joined(member_conf(protocol), on_rebalance, ONE_TOPIC);
        UNTIL(assigned(rk, line, sizeof(line)) == 2, poll(rk));
        rd_kafka_mock_start_request_tracking(cluster);
        rd_kafka_mock_push_request_errors(cluster, api, 3, code, code, code);
        UNTIL(count_of(cluster, api) >= 1, poll(rk));
        for (ends = millis() + 60; millis() < ends;)
                poll(rk);
        early = count_of(cluster, api);
        say("heartbeats at once %s", early <= 2 ? "at most two" : "a storm");
        UNTIL(!rd_kafka_mock_broker_error_stack_cnt(cluster, 1, api, &left) && count_of(cluster, api) >= 5, poll(rk));
        say("heartbeats %s", number_class(count_of(cluster, api)));
        if (code != RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS)
                say("coordinator looked for %s", count_of(cluster, FIND_COORDINATOR) ? "again" : "never");
        say("joins %s", number_class(count_of(cluster, JOIN_GROUP)));
        assigned(rk, line, sizeof(line));
        say("assigned:%s", line);
        say_recorded("rebalances", &rebalances);
        say("close %s", err(rd_kafka_consumer_close(rk)));
        rd_kafka_destroy(rk);
        say_recorded_set("errors", &errors);
        end(cluster);
}
#define HEARTBEAT_ERRORS(code)                                                                                                 \
        CASE(classic_heartbeat_##code) { heartbeat_errors("range", RD_KAFKA_RESP_ERR_##code); }                                \
        CASE(consumer_heartbeat_##code) { heartbeat_errors("consumer", RD_KAFKA_RESP_ERR_##code); }
HEARTBEAT_ERRORS(NOT_COORDINATOR)
HEARTBEAT_ERRORS(COORDINATOR_LOAD_IN_PROGRESS)
HEARTBEAT_ERRORS(COORDINATOR_NOT_AVAILABLE)

/* ---- Requests written by hand ---- */

static char request[4096];
static size_t length;

static void put_i8(int value) { request[length++] = (char)value; }
static void put_i16(int value) { put_i8(value >> 8), put_i8(value); }
static void put_i32(int value) { put_i16(value >> 16), put_i16(value); }
static void put_i64(int value) { put_i32(value < 0 ? -1 : 0), put_i32(value); }
static void put_text(const char *text) {
        put_i16(text ? (int)strlen(text) : -1);
        for (; text && *text; text++)
                put_i8(*text);
}

static void begin(int api, int version) {
        length = 4;
        put_i16(api), put_i16(version), put_i32(1), put_text("hand");
}

static int dial(void) {
        struct sockaddr_in address;
        int port = atoi(strchr(getenv("SBS_BOOTSTRAP"), ':') + 1), fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        memset(&address, 0, sizeof(address));
        address.sin_family = AF_INET;
        address.sin_port = htons((uint16_t)port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (connect(fd, (struct sockaddr *)&address, sizeof(address)))
                abort();
        return fd;
}

static unsigned char response[4096];

static int number_at(int at, int bytes) {
        int value = 0, i;
        for (i = 0; i < bytes; i++)
                value = value << 8 | response[at + i];
        return bytes == 2 ? (int16_t)value : value;
}

static void read_exactly(int fd, unsigned char *into, size_t count) {
        while (count > 0) {
                ssize_t got = read(fd, into, count);
                if (got <= 0) {
                        say("CONNECTION CLOSED");
                        say("end");
                        exit(0);
                }
                into += got, count -= (size_t)got;
        }
}

/* Sends the request, and reads the response without its length and correlation id. */
static void exchange(int fd) {
        size_t total = length;
        length = 0;
        put_i32((int)total - 4);
        length = total;
        if (write(fd, request, total) != (ssize_t)total)
                abort();
        read_exactly(fd, response, 8);
        read_exactly(fd, response, (size_t)(number_at(0, 4) - 4));
}

static int generation;
static char member_id[256];

/* Generations begin with different numbers. */
static const char *generation_name(int before) {
        return generation < 0 ? "none" : generation == before ? "same" : "another";
}

static void join(int fd, int session, const char *id) {
        int at, protocol, leader, before = generation;
        begin(JOIN_GROUP, 2);
        put_text("g"), put_i32(session), put_i32(session), put_text(id), put_text("consumer");
        put_i32(1), put_text("range"), put_i32(0);
        exchange(fd);
        generation = number_at(6, 4);
        say("join %s generation %s", err((rd_kafka_resp_err_t)number_at(4, 2)), generation_name(before));
        protocol = number_at(10, 2);
        at = 12 + (protocol > 0 ? protocol : 0);
        leader = number_at(at, 2);
        at += 2 + (leader > 0 ? leader : 0);
        snprintf(member_id, sizeof(member_id), "%.*s", number_at(at, 2), (char *)response + at + 2);
        say("member %s", *member_id ? "present" : "empty");
}

static void synchronize(int fd, int of_generation, const char *id) {
        begin(SYNC_GROUP, 1);
        put_text("g"), put_i32(of_generation), put_text(id), put_i32(1), put_text(id), put_i32(2), put_i16(0);
        exchange(fd);
        say("sync %s", err((rd_kafka_resp_err_t)number_at(4, 2)));
}

static rd_kafka_resp_err_t answer_to_heartbeat(int fd, int of_generation, const char *id) {
        begin(HEARTBEAT, 1);
        put_text("g"), put_i32(of_generation), put_text(id);
        exchange(fd);
        return (rd_kafka_resp_err_t)number_at(4, 2);
}

static void heartbeat(const char *what, int fd, int of_generation, const char *id) {
        say("heartbeat %s: %s", what, err(answer_to_heartbeat(fd, of_generation, id)));
}

/* Waits for the end of a member's session. A heartbeat of another generation does not prolong it. */
static void end_session(int fd, const char *id) {
        WAIT_FOR(answer_to_heartbeat(fd, generation + 1, id) != RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION);
}

static rd_kafka_resp_err_t answer_to_commit(int fd, int of_generation, const char *id) {
        int topic;
        begin(OFFSET_COMMIT, 5);
        put_text("g"), put_i32(of_generation), put_text(id), put_i32(1), put_text("t"), put_i32(1), put_i32(0), put_i64(1), put_text("");
        exchange(fd);
        topic = number_at(8, 2);
        return (rd_kafka_resp_err_t)number_at(10 + topic + 4 + 4, 2);
}

static void commit_by_hand(const char *what, int fd, int of_generation, const char *id) {
        say("commit %s: %s", what, err(answer_to_commit(fd, of_generation, id)));
}

static void leave_by_hand(const char *what, int fd, const char *id) {
        begin(LEAVE_GROUP, 1);
        put_text("g"), put_text(id);
        exchange(fd);
        say("leave %s: %s", what, err((rd_kafka_resp_err_t)number_at(4, 2)));
}

CASE(answers_to_a_classic_member) {
        rd_kafka_mock_cluster_t *cluster = cluster_with(1);
        int fd = dial();
        char id[256];
        commit_by_hand("without a member", fd, -1, "");
        heartbeat("without a group", fd, 1, "none");
        join(fd, 6000, "");
        strcpy(id, member_id);
        heartbeat("before the sync", fd, generation, id);
        synchronize(fd, generation, id);
        heartbeat("member", fd, generation, id);
        heartbeat("another generation", fd, generation + 1, id);
        heartbeat("unknown member", fd, generation, "none");
        commit_by_hand("member", fd, generation, id);
        commit_by_hand("another generation", fd, generation + 1, id);
        commit_by_hand("unknown member", fd, generation, "none");
        commit_by_hand("without a member", fd, -1, "");
        synchronize(fd, generation + 1, id);
        leave_by_hand("unknown member", fd, "none");
        leave_by_hand("member", fd, id);
        heartbeat("after it left", fd, generation, id);
        commit_by_hand("after it left", fd, generation, id);
        commit_by_hand("without a member", fd, -1, "");
        close(fd);
        end(cluster);
}

CASE(answers_after_a_session_timeout) {
        rd_kafka_mock_cluster_t *cluster = cluster_with(1);
        int fd = dial();
        char id[256];
        join(fd, 1000, "");
        strcpy(id, member_id);
        synchronize(fd, generation, id);
        commit_by_hand("member", fd, generation, id);
        end_session(fd, id);
        commit_by_hand("after the timeout", fd, generation, id);
        heartbeat("after the timeout", fd, generation, id);
        synchronize(fd, generation, id);
        leave_by_hand("after the timeout", fd, id);
        join(fd, 6000, "");
        synchronize(fd, generation, member_id);
        heartbeat("the new member", fd, generation, member_id);
        close(fd);
        end(cluster);
}

CASE(join_after_a_session_timeout) {
        rd_kafka_mock_cluster_t *cluster = cluster_with(1);
        int fd = dial();
        char id[256];
        join(fd, 1000, "");
        strcpy(id, member_id);
        synchronize(fd, generation, id);
        end_session(fd, id);
        join(fd, 6000, id);
        close(fd);
        end(cluster);
}

static void put_compact(const char *text) {
        put_i8(text ? (int)strlen(text) + 1 : 0);
        for (; text && *text; text++)
                put_i8(*text);
}

/* A heartbeat of the consumer protocol; a member that joins or leaves names its instance. Returns the epoch. */
static int beat(const char *what, int fd, const char *id, int epoch, const char *instance, int before) {
        int error, at, text, answered = -7;
        begin(CONSUMER_HEARTBEAT, 1);
        put_i8(0);
        put_compact("g"), put_compact(id), put_i32(epoch), put_compact(instance), put_compact(NULL);
        put_i32(epoch == 0 ? 10000 : -1);
        if (epoch == 0)
                put_i8(2), put_compact("t");
        else
                put_i8(0);
        put_compact(epoch == 0 ? "" : NULL), put_compact(NULL), put_i8(epoch == 0 ? 1 : 0), put_i8(0);
        exchange(fd);
        error = number_at(5, 2);
        at = 7;
        for (text = 0; text < 2; text++)
                at += response[at] ? response[at] : 1;
        if (!error)
                answered = number_at(at, 4);
        say("%s: %s epoch %s", what, err((rd_kafka_resp_err_t)error),
            answered == -7 ? "none" : answered == -2 ? "-2" : answered == -1 ? "-1" : answered == before ? "same" : answered > before ? "higher" : "lower");
        return answered;
}

CASE(answers_to_a_static_member_of_the_consumer_protocol) {
        rd_kafka_mock_cluster_t *cluster = cluster_with(2);
        int fd = dial(), epoch, again;
        beat("unknown member", fd, "a", 5, NULL, 0);
        epoch = beat("join", fd, "a", 0, "i", 0);
        beat("heartbeat", fd, "a", epoch, "i", epoch);
        beat("a future epoch", fd, "a", epoch + 7, "i", epoch);
        beat("another member with the instance", fd, "b", 0, "i", epoch);
        beat("leaves for a while", fd, "a", -2, "i", epoch);
        again = beat("the new member with the instance", fd, "b", 0, "i", epoch);
        beat("heartbeat", fd, "b", again, "i", again);
        beat("the former member", fd, "a", epoch, "i", again);
        beat("leaves for a while", fd, "b", -2, "i", again);
        again = beat("the same member returns", fd, "b", 0, "i", again);
        beat("heartbeat", fd, "b", again, "i", again);
        beat("leaves", fd, "b", -1, "i", again);
        beat("heartbeat", fd, "b", again, "i", again);
        close(fd);
        end(cluster);
}

CASE(answers_to_a_member_of_the_consumer_protocol) {
        rd_kafka_mock_cluster_t *cluster = cluster_with(2);
        int fd = dial(), epoch;
        epoch = beat("join", fd, "a", 0, NULL, 0);
        beat("heartbeat", fd, "a", epoch, NULL, epoch);
        epoch = beat("join again", fd, "a", 0, NULL, epoch);
        beat("leaves for a while without an instance", fd, "a", -2, NULL, epoch);
        beat("leaves", fd, "a", -1, NULL, epoch);
        beat("heartbeat", fd, "a", epoch, NULL, epoch);
        beat("leaves again", fd, "a", -1, NULL, epoch);
        close(fd);
        end(cluster);
}

CASE(consumer_protocol_after_a_session_timeout) {
        rd_kafka_mock_cluster_t *cluster = cluster_with(2);
        int fd = dial(), epoch;
        rd_kafka_resp_err_t first;
        rd_kafka_mock_set_group_consumer_session_timeout_ms(cluster, 1000);
        epoch = beat("join", fd, "a", 0, NULL, 0);
        beat("heartbeat", fd, "a", epoch, NULL, epoch);
        /* A commit of another epoch does not prolong the session. */
        first = answer_to_commit(fd, epoch + 7, "a");
        WAIT_FOR(answer_to_commit(fd, epoch + 7, "a") != first);
        beat("after the timeout", fd, "a", epoch, NULL, epoch);
        commit_by_hand("after the timeout", fd, epoch, "a");
        beat("join again", fd, "a", 0, NULL, epoch);
        close(fd);
        end(cluster);
}

static int commits_when_revoked;

static void on_rebalance_with_commit(rd_kafka_t *rk, rd_kafka_resp_err_t code, rd_kafka_topic_partition_list_t *list, void *opaque) {
        if (code == RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS && commits_when_revoked) {
                list->elems[0].offset = 1;
                record(&rebalances, "commit %s", err(rd_kafka_commit(rk, list, 0)));
                record(&rebalances, "commit without waiting %s", err(rd_kafka_commit(rk, list, 1)));
                commits_when_revoked = 0;
        }
        on_rebalance(rk, code, list, opaque);
}

/* The coordinator counts no heartbeat of the member. */
static void lost_member(int commits_in_callback, rd_kafka_resp_err_t code) {
        rd_kafka_mock_cluster_t *cluster = cluster_with(1);
        rd_kafka_conf_t *conf = member_conf("range");
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_t *rk;
        char line[512];
        int i;
        set(conf, "session.timeout.ms", "1500");
        set(conf, "enable.auto.commit", "false");
        rk = joined(conf, on_rebalance_with_commit, ONE_TOPIC);
        UNTIL(assigned(rk, line, sizeof(line)) == 1, poll(rk));
        rd_kafka_topic_partition_list_add(list, "t", 0)->offset = 1;
        say("commit %s", err(rd_kafka_commit(rk, list, 0)));
        for (i = 0; i < 100; i++)
                rd_kafka_mock_push_request_errors(cluster, HEARTBEAT, 1, code);
        WAIT_FOR(rd_kafka_assignment_lost(rk));
        commits_when_revoked = commits_in_callback;
        if (!commits_in_callback)
                say("commit after the timeout %s", err(rd_kafka_commit(rk, list, 0)));
        rd_kafka_mock_clear_request_errors(cluster, HEARTBEAT);
        UNTIL(recorded_with(&rebalances, "ASSIGN") >= 2, poll(rk));
        /* The original may lose its membership a second time meanwhile. */
        say_recorded_set("rebalances", &rebalances);
        rd_kafka_topic_partition_list_destroy(list);
        say("close %s", err(rd_kafka_consumer_close(rk)));
        rd_kafka_destroy(rk);
        end(cluster);
}
CASE(lost_member_commits) { lost_member(0, RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS); }
CASE(lost_member_commits_when_revoked) { lost_member(1, RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS); }
CASE(lost_member_without_coordinator_commits_when_revoked) { lost_member(1, RD_KAFKA_RESP_ERR_NOT_COORDINATOR); }

/* ---- A forwarded queue ---- */

struct waiter {
        rd_kafka_t *rk;
        rd_kafka_queue_t *queue;
        pthread_t thread;
        const char *result;
        /* The thread's id, when it is about to call. */
        volatile pid_t id;
        /* How often it had fallen asleep when it was looked at, and how often it was seen asleep since. */
        long sleeps;
        int seen;
};

static void *consume(void *opaque) {
        struct waiter *waiter = (struct waiter *)opaque;
        long began = millis();
        rd_kafka_message_t *message;
        waiter->id = (pid_t)syscall(SYS_gettid);
        message = waiter->queue ? rd_kafka_consume_queue(waiter->queue, 2000) : rd_kafka_consumer_poll(waiter->rk, 2000);
        if (message)
                rd_kafka_message_destroy(message);
        waiter->result = message ? "a message" : took(began, 2000);
        return NULL;
}

/* Returns how often a thread has fallen asleep if it sleeps, otherwise 0. */
static long sleeps_of(pid_t id) {
        char path[64], line[256];
        long sleeps = 0;
        int is_asleep = 0;
        FILE *file;
        snprintf(path, sizeof(path), "/proc/self/task/%ld/status", (long)id);
        file = fopen(path, "r");
        while (file && fgets(line, sizeof(line), file)) {
                is_asleep |= !strncmp(line, "State:\tS", 8);
                sscanf(line, "voluntary_ctxt_switches: %ld", &sleeps);
        }
        if (file)
                fclose(file);
        return is_asleep ? sleeps : 0;
}

/* Returns whether a thread sleeps in its call: it has been seen asleep ten times without waking. */
static int is_seen_asleep(struct waiter *waiter) {
        long sleeps = waiter->id ? sleeps_of(waiter->id) : 0;
        waiter->seen = sleeps && sleeps == waiter->sleeps ? waiter->seen + 1 : 0;
        waiter->sleeps = sleeps;
        return waiter->seen == 10;
}

/* Waits in a call, wakes it, and prints when it returned. */
static void wake(const char *what, rd_kafka_t *rk, rd_kafka_queue_t *waits, rd_kafka_queue_t *woken) {
        struct waiter waiter = {rk, waits, 0, NULL, 0, 0, 0};
        pthread_create(&waiter.thread, NULL, consume, &waiter);
        WAIT_FOR(is_seen_asleep(&waiter));
        rd_kafka_queue_yield(woken);
        pthread_join(waiter.thread, NULL);
        say("%s: %s", what, waiter.result);
}

static void forwarded_queue(const char *protocol) {
        rd_kafka_mock_cluster_t *cluster = cluster_with(1);
        rd_kafka_t *rk = joined(member_conf(protocol), on_rebalance, ONE_TOPIC);
        rd_kafka_queue_t *consumer = rd_kafka_queue_get_consumer(rk), *other = rd_kafka_queue_new(rk), *main = rd_kafka_queue_get_main(rk);
        char line[512];
        UNTIL(assigned(rk, line, sizeof(line)) == 1, poll(rk));
        wake("poll, its queue", rk, NULL, consumer);
        wake("consume of its queue", rk, consumer, consumer);
        rd_kafka_queue_forward(consumer, other);
        wake("forwarded: poll, its queue", rk, NULL, consumer);
        wake("forwarded: poll, the other queue", rk, NULL, other);
        wake("forwarded: consume of its queue, its queue", rk, consumer, consumer);
        wake("forwarded: consume of its queue, the other queue", rk, consumer, other);
        wake("forwarded: consume of the other queue, its queue", rk, other, consumer);
        wake("forwarded: consume of the other queue, the other queue", rk, other, other);
        wake("forwarded: poll, the main queue", rk, NULL, main);
        rd_kafka_queue_forward(consumer, NULL);
        wake("returned: poll, its queue", rk, NULL, consumer);
        rd_kafka_queue_destroy(consumer);
        rd_kafka_queue_destroy(other);
        rd_kafka_queue_destroy(main);
        say("close %s", err(rd_kafka_consumer_close(rk)));
        rd_kafka_destroy(rk);
        end(cluster);
}
CASE(forwarded_queue_classic) { forwarded_queue("range"); }
CASE(forwarded_queue_consumer_protocol) { forwarded_queue("consumer"); }
