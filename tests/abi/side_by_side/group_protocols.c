/* Members of both group protocols on brokers: the rebalance callback, wrong responses to it, patterns, static
 * members, commits. */
#include "side_by_side.h"

#define PARTITIONS 2
/* Brokers of Apache Kafka want heartbeats of the consumer protocol every 5 s, and a rebalance takes several. */
#undef TIMEOUT_MS
#define TIMEOUT_MS 40000

/* A name of this case alone: all cases may use the same brokers. */
static const char *own(const char *name) {
        char text[256];
        snprintf(text, sizeof(text), "%s-%s", name, case_name);
        return topic_name(text);
}

struct member {
        rd_kafka_t *rk;
        const char *name;
        int answered;
        int assigned;
        int wrong_answers;
        int records;
        /* Rebalances are not printed, because their number depends on the speed of the brokers. */
        int is_quiet;
};

static void create(const char *topic) {
        rd_kafka_t *rk = start(RD_KAFKA_PRODUCER, conf_of("bootstrap.servers", bootstrap(), NULL));
        rd_kafka_NewTopic_t *wanted = rd_kafka_NewTopic_new(topic, PARTITIONS, 1, NULL, 0);
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

static void fill(const char *topic, int partition, int messages) {
        rd_kafka_t *rk = producer_of(conf_of("bootstrap.servers", bootstrap(), "linger.ms", "0", NULL));
        while (messages-- > 0)
                rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(partition), RD_KAFKA_V_VALUE((void *)"v", 1), RD_KAFKA_V_END);
        say("flush %s", err(rd_kafka_flush(rk, TIMEOUT_MS)));
        rd_kafka_destroy(rk);
}

static void say_code(const char *what, rd_kafka_error_t *error) {
        say("%s: %s", what, err(error ? rd_kafka_error_code(error) : RD_KAFKA_RESP_ERR_NO_ERROR));
        if (error)
                rd_kafka_error_destroy(error);
}

static void say_list(const char *what, rd_kafka_topic_partition_list_t *list) {
        rd_kafka_topic_partition_list_t *sorted = rd_kafka_topic_partition_list_copy(list);
        rd_kafka_topic_partition_list_sort(sorted, NULL, NULL);
        say_partitions(what, sorted);
        rd_kafka_topic_partition_list_destroy(sorted);
}

static void on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t code, rd_kafka_topic_partition_list_t *list, void *opaque) {
        struct member *member = opaque;
        int is_assign = code == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
        int is_cooperative = !strcmp(rd_kafka_rebalance_protocol(rk), "COOPERATIVE");
        if (!member->is_quiet) {
                say("%s: rebalance %s protocol %s lost %d", member->name, err(code), rd_kafka_rebalance_protocol(rk), rd_kafka_assignment_lost(rk));
                say_list(member->name, list);
        }
        if (member->wrong_answers && is_cooperative) {
                say("wrong assign %s", err(rd_kafka_assign(rk, is_assign ? list : NULL)));
                say_code(is_assign ? "wrong incremental unassign" : "wrong incremental assign",
                         is_assign ? rd_kafka_incremental_unassign(rk, list) : rd_kafka_incremental_assign(rk, list));
        }
        if (is_cooperative) {
                rd_kafka_error_t *error = is_assign ? rd_kafka_incremental_assign(rk, list) : rd_kafka_incremental_unassign(rk, list);
                if (error || !member->is_quiet)
                        say_code("answer", error);
        } else {
                rd_kafka_resp_err_t answered = rd_kafka_assign(rk, is_assign ? list : NULL);
                if (answered || !member->is_quiet)
                        say("answer %s", err(answered));
        }
        member->assigned += is_assign ? list->cnt : -list->cnt;
        member->answered += list->cnt > 0;
}

static rd_kafka_conf_t *conf_with(const char *name, const char *value) {
        rd_kafka_conf_t *conf = conf_of("bootstrap.servers", bootstrap(), "group.id", own("g"), "auto.offset.reset", "earliest",
                                        "topic.metadata.refresh.interval.ms", "500", NULL);
        set(conf, name, value);
        return conf;
}

static void begin(struct member *member, const char *label, rd_kafka_conf_t *conf) {
        memset(member, 0, sizeof(*member));
        member->name = label;
        rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
        rd_kafka_conf_set_opaque(conf, member);
        member->rk = start(RD_KAFKA_CONSUMER, conf);
        rd_kafka_poll_set_consumer(member->rk);
}

static rd_kafka_resp_err_t subscribe(struct member *member, const char *one, const char *other) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(2);
        rd_kafka_resp_err_t code;
        rd_kafka_topic_partition_list_add(list, one, RD_KAFKA_PARTITION_UA);
        if (other)
                rd_kafka_topic_partition_list_add(list, other, RD_KAFKA_PARTITION_UA);
        code = rd_kafka_subscribe(member->rk, list);
        say("%s: subscribe %s", member->name, err(code));
        rd_kafka_topic_partition_list_destroy(list);
        return code;
}

static void turn(struct member *member) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(member->rk, 20);
        if (!message)
                return;
        if (message->err)
                say("%s: message %s", member->name, err(message->err));
        else
                member->records++;
        rd_kafka_message_destroy(message);
}

static void say_assignment(struct member *member) {
        rd_kafka_topic_partition_list_t *list = NULL;
        say("%s: assignment %s", member->name, err(rd_kafka_assignment(member->rk, &list)));
        if (list) {
                say_list(member->name, list);
                rd_kafka_topic_partition_list_destroy(list);
        }
}

static void say_identity(struct member *member) {
        char *id = rd_kafka_memberid(member->rk);
        rd_kafka_consumer_group_metadata_t *metadata = rd_kafka_consumer_group_metadata(member->rk);
        const char *of_metadata = metadata ? rd_kafka_consumer_group_metadata_member_id(metadata) : NULL;
        say("%s: member id %s, in the metadata %s, generation %s", member->name, present(id),
            of_metadata && id && !strcmp(id, of_metadata) ? "the same" : "another",
            metadata && rd_kafka_consumer_group_metadata_generation_id(metadata) > 0 ? "positive" : "none");
        if (metadata)
                rd_kafka_consumer_group_metadata_destroy(metadata);
        if (id)
                rd_kafka_mem_free(member->rk, id);
}

static void close_member(struct member *member) {
        say("%s: close %s", member->name, err(rd_kafka_consumer_close(member->rk)));
        say("%s: protocol %s", member->name, present(rd_kafka_rebalance_protocol(member->rk)));
        rd_kafka_destroy(member->rk);
}

/* One member from its first subscription to its end, with wrong responses first. */
static void life(const char *name, const char *value) {
        const char *topic = own("t");
        rd_kafka_topic_partition_list_t *list;
        struct member one;
        create(topic);
        fill(topic, 0, 5);
        begin(&one, "one", conf_with(name, value));
        one.wrong_answers = 1;
        say_identity(&one);
        subscribe(&one, topic, NULL);
        UNTIL(one.records == 5, turn(&one));
        say_assignment(&one);
        say_identity(&one);
        say("commit %s", err(rd_kafka_commit(one.rk, NULL, 0)));
        list = rd_kafka_topic_partition_list_new(2);
        rd_kafka_topic_partition_list_add(list, topic, 0);
        rd_kafka_topic_partition_list_add(list, topic, 1);
        say("committed %s", err(rd_kafka_committed(one.rk, list, TIMEOUT_MS)));
        say_list("committed", list);
        say("position %s", err(rd_kafka_position(one.rk, list)));
        say_list("position", list);
        rd_kafka_topic_partition_list_destroy(list);
        say("unsubscribe %s", err(rd_kafka_unsubscribe(one.rk)));
        UNTIL(one.assigned == 0, turn(&one));
        say_assignment(&one);
        subscribe(&one, topic, NULL);
        UNTIL(one.assigned == PARTITIONS, turn(&one));
        close_member(&one);
}

BROKER_CASE(life_with_the_consumer_protocol) { life("group.protocol", "consumer"); }
BROKER_CASE(life_with_cooperative_sticky) { life("partition.assignment.strategy", "cooperative-sticky"); }
BROKER_CASE(life_with_range) { life("partition.assignment.strategy", "range"); }

/* A second member joins and leaves. */
static void two(const char *name, const char *value) {
        const char *topic = own("t");
        struct member one, other;
        create(topic);
        begin(&one, "one", conf_with(name, value));
        subscribe(&one, topic, NULL);
        UNTIL(one.assigned == PARTITIONS, turn(&one));
        begin(&other, "other", conf_with(name, value));
        subscribe(&other, topic, NULL);
        UNTIL(one.assigned == 1, turn(&one));
        UNTIL(one.assigned == 1 && other.assigned == 1, {
                turn(&other);
                turn(&one);
        });
        say_assignment(&one);
        say_assignment(&other);
        close_member(&other);
        UNTIL(one.assigned == PARTITIONS, turn(&one));
        close_member(&one);
}

BROKER_CASE(second_member_with_the_consumer_protocol) { two("group.protocol", "consumer"); }

/* A subscription to a topic that does not exist, beside one that does; then the topic is created. */
static void missing(const char *name, const char *value) {
        const char *topic = own("t"), *later = own("later");
        struct member one;
        long settled;
        create(topic);
        begin(&one, "one", conf_with(name, value));
        one.is_quiet = 1;
        subscribe(&one, topic, later);
        UNTIL(one.assigned == PARTITIONS, turn(&one));
        /* An error that repeats would come with each refresh of metadata, every 500 ms. */
        settled = millis() + 3000;
        UNTIL(millis() >= settled, turn(&one));
        say_assignment(&one);
        create(later);
        UNTIL(one.assigned == 2 * PARTITIONS, turn(&one));
        say_assignment(&one);
        close_member(&one);
}

BROKER_CASE(missing_topic_with_the_consumer_protocol) { missing("group.protocol", "consumer"); }
BROKER_CASE(missing_topic_with_cooperative_sticky) { missing("partition.assignment.strategy", "cooperative-sticky"); }
BROKER_CASE(missing_topic_with_range) { missing("partition.assignment.strategy", "range"); }

/* Patterns that mean the same in both protocols. */
static void patterns(const char *name, const char *value) {
        const char *first = own("topic-a"), *second = own("topic-b"), *other = own("other");
        char pattern[256], wider[256];
        const char *suffix = getenv("SBS_SUFFIX");
        struct member one;
        /* The brokers may have topics of other runs. */
        snprintf(pattern, sizeof(pattern), "^topic-.-%s%s", case_name, suffix ? suffix : "");
        snprintf(wider, sizeof(wider), "^(topic|nothing)-.-%s%s", case_name, suffix ? suffix : "");
        create(first);
        create(other);
        begin(&one, "one", conf_with(name, value));
        /* Apache Kafka matches patterns some time after the subscription. */
        one.is_quiet = getenv("OTTLA_BOOTSTRAP") != NULL;
        subscribe(&one, pattern, NULL);
        UNTIL(one.assigned == PARTITIONS, turn(&one));
        say_assignment(&one);
        subscribe(&one, pattern, other);
        UNTIL(one.assigned == 2 * PARTITIONS, turn(&one));
        say_assignment(&one);
        create(second);
        /* The broker looks for new topics when the subscription changes. */
        subscribe(&one, wider, NULL);
        UNTIL(one.assigned == 2 * PARTITIONS && one.answered >= 3, turn(&one));
        say_assignment(&one);
        close_member(&one);
}

BROKER_CASE(patterns_with_the_consumer_protocol) { patterns("group.protocol", "consumer"); }
BROKER_CASE(patterns_with_cooperative_sticky) { patterns("partition.assignment.strategy", "cooperative-sticky"); }

BROKER_CASE(bad_patterns_with_the_consumer_protocol) {
        struct member one;
        char text[512];
        create(own("t"));
        begin(&one, "one", conf_with("group.protocol", "consumer"));
        subscribe(&one, "^t[", NULL);
        /* Libraries that search in C accept patterns that RE2 refuses. */
        if (!subscribe(&one, "^(a)\\1", NULL))
                UNTIL(rd_kafka_fatal_error(one.rk, text, sizeof(text)), turn(&one));
        say("fatal %s", err(rd_kafka_fatal_error(one.rk, text, sizeof(text))));
        rd_kafka_destroy(one.rk);
}

/* The same instance ID twice. */
static void twice(const char *name, const char *value) {
        const char *topic = own("t");
        struct member one, other;
        rd_kafka_conf_t *conf = conf_with(name, value);
        char text[512];
        create(topic);
        set(conf, "group.instance.id", "i");
        begin(&one, "one", conf);
        subscribe(&one, topic, NULL);
        UNTIL(one.assigned == PARTITIONS, turn(&one));
        conf = conf_with(name, value);
        set(conf, "group.instance.id", "i");
        begin(&other, "other", conf);
        subscribe(&other, topic, NULL);
        UNTIL(rd_kafka_fatal_error(one.rk, text, sizeof(text)) || rd_kafka_fatal_error(other.rk, text, sizeof(text)), {
                rd_kafka_message_t *message = rd_kafka_consumer_poll(other.rk, 20);
                if (message)
                        rd_kafka_message_destroy(message);
                message = rd_kafka_consumer_poll(one.rk, 20);
                if (message)
                        rd_kafka_message_destroy(message);
        });
        say("fatal one %s", err(rd_kafka_fatal_error(one.rk, text, sizeof(text))));
        say("fatal other %s", err(rd_kafka_fatal_error(other.rk, text, sizeof(text))));
        rd_kafka_destroy(other.rk);
        rd_kafka_destroy(one.rk);
}

BROKER_CASE(instance_id_twice_with_the_consumer_protocol) { twice("group.protocol", "consumer"); }
