/* Statistics of members of groups: the object `cgrp` in every state that lasts, and the offsets of assigned partitions. */
#include "side_by_side.h"

#define PARTITIONS 2
/* Brokers of Apache Kafka want heartbeats of the consumer protocol every 5 s, and a rebalance takes several. */
#undef TIMEOUT_MS
#define TIMEOUT_MS 40000

static rd_kafka_t *host;

/* A member whose events the case handles. */
struct member {
        rd_kafka_t *rk;
        rd_kafka_queue_t *queue;
        char *statistics;
        /* The rebalance event that waits for its response. */
        rd_kafka_event_t *asked;
        int records;
        int statistics_seen;
};

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

static void fill(const char *topic, int partition, int messages) {
        rd_kafka_t *rk = producer_of(conf_of("bootstrap.servers", getenv("SBS_BOOTSTRAP"), "linger.ms", "0", NULL));
        while (messages-- > 0)
                rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(partition), RD_KAFKA_V_VALUE((void *)"v", 1), RD_KAFKA_V_END);
        rd_kafka_flush(rk, TIMEOUT_MS);
        rd_kafka_destroy(rk);
}

/* A name of this case alone: all cases may use the same brokers. */
static const char *own(const char *name) {
        char text[256];
        snprintf(text, sizeof(text), "%s-%s", name, case_name);
        return topic_name(text);
}

static struct member member_with(const char *name, const char *value, const char *stores) {
        struct member member = {0};
        rd_kafka_conf_t *conf = conf_of("bootstrap.servers", getenv("SBS_BOOTSTRAP"), "group.id", own("g"), "statistics.interval.ms", "100",
                                        "auto.offset.reset", "earliest", "enable.auto.commit", "false", "enable.auto.offset.store", stores, NULL);
        set(conf, name, value);
        rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_REBALANCE | RD_KAFKA_EVENT_STATS);
        member.rk = start(RD_KAFKA_CONSUMER, conf);
        rd_kafka_poll_set_consumer(member.rk);
        member.queue = rd_kafka_queue_get_consumer(member.rk);
        return member;
}

static void subscribe(struct member *member, const char *topic) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_topic_partition_list_add(list, topic, RD_KAFKA_PARTITION_UA);
        say("subscribe %s", err(rd_kafka_subscribe(member->rk, list)));
        rd_kafka_topic_partition_list_destroy(list);
}

/* Handles one event. */
static void turn(struct member *member) {
        rd_kafka_event_t *event = rd_kafka_queue_poll(member->queue, 20);
        if (!event)
                return;
        switch (rd_kafka_event_type(event)) {
        case RD_KAFKA_EVENT_STATS:
                free(member->statistics);
                member->statistics = strdup(rd_kafka_event_stats(event));
                member->statistics_seen++;
                break;
        case RD_KAFKA_EVENT_REBALANCE:
                member->asked = event;
                return;
        case RD_KAFKA_EVENT_FETCH:
                while (rd_kafka_event_message_next(event))
                        member->records++;
                break;
        default:
                break;
        }
        rd_kafka_event_destroy(event);
}

/* Answers the rebalance event. */
static void answer(struct member *member) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_event_topic_partition_list(member->asked);
        int is_assign = rd_kafka_event_error(member->asked) == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
        rd_kafka_error_t *error = NULL;
        if (!strcmp(rd_kafka_rebalance_protocol(member->rk), "COOPERATIVE"))
                error = is_assign ? rd_kafka_incremental_assign(member->rk, list) : rd_kafka_incremental_unassign(member->rk, list);
        else
                rd_kafka_assign(member->rk, is_assign ? list : NULL);
        if (error) {
                say("answer: %s", err(rd_kafka_error_code(error)));
                rd_kafka_error_destroy(error);
        }
        rd_kafka_event_destroy(member->asked);
        member->asked = NULL;
}

/* Returns the object `cgrp` of the latest statistics. */
static const char *group_of(const struct member *member) { return member->statistics ? strstr(member->statistics, "\"cgrp\":") : NULL; }

static const char *after(const char *from, const char *name) {
        char quoted[64];
        const char *found;
        snprintf(quoted, sizeof(quoted), "\"%s\":", name);
        found = from ? strstr(from, quoted) : NULL;
        if (!found)
                return NULL;
        found += strlen(quoted);
        return found + strspn(found, " ");
}

static long number(const char *from, const char *name) {
        const char *found = after(from, name);
        return found ? strtol(found, NULL, 10) : -7777;
}

static const char *text(const char *from, const char *name) {
        static char values[8][256];
        static int next;
        char *value = values[next++ % 8];
        const char *found = after(from, name);
        if (!found || *found != '"')
                return "absent";
        snprintf(value, sizeof(values[0]), "%.*s", (int)strcspn(found + 1, "\""), found + 1);
        return value;
}

static int is_in(const struct member *member, const char *join_state) {
        return member->statistics && !strcmp(text(group_of(member), "join_state"), join_state);
}

static void refresh(struct member *member) {
        int from = member->statistics_seen;
        UNTIL(member->statistics_seen >= from + 2, turn(member));
}

/* The reason of the last rebalance. The first join of librdkafka has none, or that of new metadata: whichever comes first. */
static const char *reason(const char *group) {
        const char *given = text(group, "rebalance_reason");
        return !*given || !strcmp(given, "Metadata for subscribed topic(s) has changed") ? "none or new metadata" : given;
}

/* Prints the group in statistics that began after this call. */
static void say_group(const char *what, struct member *member) {
        const char *group;
        refresh(member);
        group = group_of(member);
        if (!group) {
                say("%s: no cgrp", what);
                return;
        }
        say("%s: state %s join_state %s", what, text(group, "state"), text(group, "join_state"));
        say("  rebalance_cnt %ld rebalance_age %s stateage %s assignment_size %ld", number(group, "rebalance_cnt"),
            number(group, "rebalance_age") > 0 ? "positive" : "0", number(group, "stateage") > 0 ? "positive" : "0",
            number(group, "assignment_size"));
        say("  rebalance_reason \"%s\"", reason(group));
}

static const char *partition_of(const struct member *member, const char *topic, int partition) {
        char key[64];
        const char *found = member->statistics ? strstr(member->statistics, "\"topics\":") : NULL;
        snprintf(key, sizeof(key), "\"topic\":\"%s\"", topic);
        if (found && !strstr(found, key))
                snprintf(key, sizeof(key), "\"topic\": \"%s\"", topic);
        found = found ? strstr(found, key) : NULL;
        found = found ? strstr(found, "\"partitions\":") : NULL;
        snprintf(key, sizeof(key), "\"partition\":%d,", partition);
        if (found && !strstr(found, key))
                snprintf(key, sizeof(key), "\"partition\": %d,", partition);
        return found ? strstr(found, key) : NULL;
}

static void say_partition(const char *what, struct member *member, const char *topic, int partition) {
        static const char *const names[] = {"query_offset", "next_offset", "app_offset", "stored_offset", "stored_leader_epoch", "commited_offset",
                                            "committed_offset", "committed_leader_epoch", "eof_offset", "lo_offset", "hi_offset", "ls_offset",
                                            "consumer_lag", "consumer_lag_stored", "leader_epoch"};
        const char *entry;
        size_t i;
        refresh(member);
        entry = partition_of(member, topic, partition);
        say("%s: partition %d fetch_state %s desired %.4s", what, partition, text(entry, "fetch_state"), entry ? after(entry, "desired") : "none");
        for (i = 0; i < sizeof(names) / sizeof(*names); i++)
                say("  %s %ld", names[i], number(entry, names[i]));
}

static void close_member(struct member *member) {
        rd_kafka_queue_destroy(member->queue);
        say("close %s", err(rd_kafka_consumer_close(member->rk)));
        rd_kafka_destroy(member->rk);
        free(member->statistics);
}

/* The states of a member from its creation to its end, with each response delayed. */
static void life_of_a_member(const char *name, const char *value, const char *topic) {
        struct member member = member_with(name, value, "true");
        say_group("created", &member);
        subscribe(&member, topic);
        UNTIL(member.asked, turn(&member));
        say_group("asked to assign", &member);
        answer(&member);
        UNTIL(is_in(&member, "steady"), turn(&member));
        say_group("assigned", &member);
        say("unsubscribe %s", err(rd_kafka_unsubscribe(member.rk)));
        UNTIL(member.asked, turn(&member));
        say_group("asked to revoke", &member);
        answer(&member);
        UNTIL(is_in(&member, "init"), turn(&member));
        say_group("unsubscribed", &member);
        close_member(&member);
}

CASE(life_with_range) {
        rd_kafka_mock_cluster_t *cluster = cluster_of();
        life_of_a_member("partition.assignment.strategy", "range", "t");
        end(cluster);
}

CASE(life_with_cooperative_sticky) {
        rd_kafka_mock_cluster_t *cluster = cluster_of();
        life_of_a_member("partition.assignment.strategy", "cooperative-sticky", "t");
        end(cluster);
}

static void create(const char *topic, int partitions) {
        rd_kafka_t *rk = start(RD_KAFKA_PRODUCER, conf_of("bootstrap.servers", bootstrap(), NULL));
        rd_kafka_NewTopic_t *wanted = rd_kafka_NewTopic_new(topic, partitions, 1, NULL, 0);
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
        rd_kafka_event_t *event;
        rd_kafka_CreateTopics(rk, &wanted, 1, NULL, queue);
        event = rd_kafka_queue_poll(queue, TIMEOUT_MS);
        say("create %s", event ? err(rd_kafka_event_error(event)) : "nothing");
        /* Brokers of Apache Kafka learn of it one after the other. */
        if (getenv("OTTLA_BOOTSTRAP"))
                usleep(1000000);
        rd_kafka_event_destroy(event);
        rd_kafka_NewTopic_destroy(wanted);
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
}

BROKER_CASE(life_with_the_consumer_protocol) {
        create(own("t"), PARTITIONS);
        life_of_a_member("group.protocol", "consumer", own("t"));
}

static void both(struct member *one, struct member *other) {
        turn(one);
        turn(other);
}

/* A second member joins, and the first one responds late. */
static void second_member(const char *name, const char *value, const char *topic) {
        struct member one = member_with(name, value, "true"), other;
        subscribe(&one, topic);
        UNTIL(one.asked, turn(&one));
        answer(&one);
        UNTIL(is_in(&one, "steady"), turn(&one));
        other = member_with(name, value, "true");
        subscribe(&other, topic);
        UNTIL(one.asked, both(&one, &other));
        say_group("one is asked to revoke", &one);
        answer(&one);
        UNTIL(one.asked && other.asked, both(&one, &other));
        say_group("one is asked to assign", &one);
        answer(&one);
        answer(&other);
        UNTIL(is_in(&one, "steady") && is_in(&other, "steady"), both(&one, &other));
        say_group("one is assigned", &one);
        say_group("the other is assigned", &other);
        rd_kafka_queue_destroy(one.queue);
        rd_kafka_queue_destroy(other.queue);
        /* The ends are the subject of other cases. */
}

BROKER_CASE(second_member_with_range_on_brokers) {
        create(own("t"), PARTITIONS);
        second_member("partition.assignment.strategy", "range", own("t"));
}

/* The offsets that a member stores, commits and reads, and those that the next member finds. */
static void offsets(const char *name, const char *value, const char *topic) {
        struct member member = member_with(name, value, "true");
        fill(topic, 0, 10);
        subscribe(&member, topic);
        UNTIL(member.asked, turn(&member));
        say_partition("asked", &member, topic, 0);
        answer(&member);
        UNTIL(member.records == 10, turn(&member));
        UNTIL(number(partition_of(&member, topic, 0), "eof_offset") == 10, turn(&member));
        UNTIL(number(partition_of(&member, topic, 1), "eof_offset") == 0, turn(&member));
        say_partition("read", &member, topic, 0);
        say_partition("empty", &member, topic, 1);
        say("commit %s", err(rd_kafka_commit(member.rk, NULL, 0)));
        say_partition("committed", &member, topic, 0);
        fill(topic, 0, 5);
        UNTIL(member.records == 15, turn(&member));
        UNTIL(number(partition_of(&member, topic, 0), "eof_offset") == 15, turn(&member));
        say_partition("read more", &member, topic, 0);
        say("unsubscribe %s", err(rd_kafka_unsubscribe(member.rk)));
        UNTIL(member.asked, turn(&member));
        answer(&member);
        UNTIL(is_in(&member, "init"), turn(&member));
        refresh(&member);
        say("revoked: partition 0 %s", partition_of(&member, topic, 0) ? "present" : "absent");
        close_member(&member);
}

CASE(offsets_with_range) {
        rd_kafka_mock_cluster_t *cluster = cluster_of();
        offsets("partition.assignment.strategy", "range", "t");
        end(cluster);
}

BROKER_CASE(offsets_with_range_on_brokers) {
        create(own("t"), PARTITIONS);
        offsets("partition.assignment.strategy", "range", own("t"));
}

BROKER_CASE(offsets_with_the_consumer_protocol) {
        create(own("t"), PARTITIONS);
        offsets("group.protocol", "consumer", own("t"));
}
