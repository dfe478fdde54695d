/* Share consumers: refusals, the contract of each call, modes, outcomes, and the end. Each library uses its own mock cluster. */
#include "side_by_side.h"

#define HEARTBEAT 76
#define FETCH 78
#define ACKNOWLEDGE 79

static rd_kafka_t *host;

static rd_kafka_mock_cluster_t *cluster_of(int brokers, int partitions) {
        rd_kafka_mock_cluster_t *cluster;
        host = producer_of(conf_of(NULL, NULL));
        cluster = rd_kafka_mock_cluster_new(host, brokers);
        rd_kafka_mock_set_apiversion(cluster, HEARTBEAT, 1, 1);
        rd_kafka_mock_set_apiversion(cluster, FETCH, 1, 1);
        rd_kafka_mock_set_apiversion(cluster, ACKNOWLEDGE, 1, 1);
        rd_kafka_mock_sharegroup_set_auto_offset_reset(cluster, 1);
        rd_kafka_mock_topic_create(cluster, "t", partitions, 1);
        setenv("SBS_BOOTSTRAP", rd_kafka_mock_cluster_bootstraps(cluster), 1);
        return cluster;
}

static void end(rd_kafka_mock_cluster_t *cluster) {
        rd_kafka_mock_cluster_destroy(cluster);
        rd_kafka_destroy(host);
}

/* Writes `count` messages to a partition. */
static void fill(int partition, int count) {
        rd_kafka_t *producer = producer_of(conf_of("bootstrap.servers", getenv("SBS_BOOTSTRAP"), "linger.ms", "5", NULL));
        int i;
        for (i = 0; i < count; i++) {
                char value[32];
                snprintf(value, sizeof(value), "%d", i);
                rd_kafka_producev(producer, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_PARTITION(partition), RD_KAFKA_V_VALUE(value, strlen(value)),
                                  RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
        }
        rd_kafka_flush(producer, TIMEOUT_MS);
        rd_kafka_destroy(producer);
}

static rd_kafka_conf_t *share_conf(const char *mode) {
        const char *servers = getenv("SBS_BOOTSTRAP");
        return conf_of("bootstrap.servers", servers ? servers : DEAD, "group.id", "g", "share.acknowledgement.mode", mode,
                       "fetch.wait.max.ms", "100", NULL);
}

static rd_kafka_share_t *share_of(rd_kafka_conf_t *conf) {
        char errstr[512] = "";
        rd_kafka_share_t *share = rd_kafka_share_consumer_new(conf, errstr, sizeof(errstr));
        if (!share) {
                say("NO SHARE CONSUMER: %s", errstr);
                exit(0);
        }
        return share;
}

static rd_kafka_resp_err_t subscribe(rd_kafka_share_t *share, const char *one, const char *other) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(2);
        rd_kafka_resp_err_t code;
        if (one)
                rd_kafka_topic_partition_list_add(list, one, RD_KAFKA_PARTITION_UA);
        if (other)
                rd_kafka_topic_partition_list_add(list, other, 3);
        code = rd_kafka_share_subscribe(share, list);
        rd_kafka_topic_partition_list_destroy(list);
        return code;
}

static void say_subscription(rd_kafka_share_t *share) {
        rd_kafka_topic_partition_list_t *list = NULL;
        say("subscription %s", err(rd_kafka_share_subscription(share, &list)));
        say_partitions("subscription", list);
        if (list)
                rd_kafka_topic_partition_list_destroy(list);
}

static void say_text(const char *what, rd_kafka_error_t *error) {
        if (!error) {
                say("%s: no error", what);
                return;
        }
        say("%s: %s fatal %d retriable %d text %s", what, rd_kafka_error_name(error), rd_kafka_error_is_fatal(error),
            rd_kafka_error_is_retriable(error), rd_kafka_error_string(error));
        rd_kafka_error_destroy(error);
}

/* Polls without messages, for the callbacks. */
static void serve(rd_kafka_share_t *share) {
        rd_kafka_messages_t *none = NULL;
        rd_kafka_error_t *error = rd_kafka_share_poll(share, 50, &none);
        if (error)
                say_error("poll", error);
}

/* Polls until messages or an error come. */
static rd_kafka_messages_t *poll_some(rd_kafka_share_t *share) {
        rd_kafka_messages_t *messages = NULL;
        rd_kafka_error_t *error = NULL;
        UNTIL(messages || error, error = rd_kafka_share_poll(share, 200, &messages));
        if (error)
                say_error("poll", error);
        return messages;
}

static void say_messages(const char *what, rd_kafka_messages_t *messages) {
        size_t i;
        say("%s: %zu", what, rd_kafka_messages_count(messages));
        for (i = 0; i < rd_kafka_messages_count(messages); i++) {
                rd_kafka_message_t *message = rd_kafka_messages_get(messages, i);
                say_message("  message", message);
                say("  delivered %d epoch %d", rd_kafka_message_delivery_count(message), rd_kafka_message_leader_epoch(message) >= 0);
        }
}

/* Commits and waits, and prints the outcome. */
static void commit(const char *what, rd_kafka_share_t *share, int timeout) {
        rd_kafka_topic_partition_list_t *list = NULL;
        int i;
        say_error(what, rd_kafka_share_commit_sync(share, timeout, &list));
        say("%s: %d partitions", what, list ? list->cnt : -1);
        for (i = 0; list && i < list->cnt; i++)
                say("  %s [%d] error %s", list->elems[i].topic, list->elems[i].partition, err(list->elems[i].err));
        if (list)
                rd_kafka_topic_partition_list_destroy(list);
}

static struct recorder outcomes = RECORDER;
static rd_kafka_share_t *calls_from_callback;

static void on_outcome(rd_kafka_share_t *share, rd_kafka_share_partition_offsets_list_t *list, rd_kafka_resp_err_t code, void *opaque) {
        size_t i, k;
        for (i = 0; i < rd_kafka_share_partition_offsets_list_count(list); i++) {
                const rd_kafka_share_partition_offsets_t *entry = rd_kafka_share_partition_offsets_list_get(list, i);
                const rd_kafka_topic_partition_t *partition = rd_kafka_share_partition_offsets_partition(entry);
                const int64_t *offsets = rd_kafka_share_partition_offsets_offsets(entry);
                char line[1024];
                int at = snprintf(line, sizeof(line), "%s [%d] %s opaque %s:", partition->topic, partition->partition, err(code), opaque ? "present" : "NULL");
                for (k = 0; k < rd_kafka_share_partition_offsets_offsets_cnt(entry) && at < 1000; k++)
                        at += snprintf(line + at, sizeof(line) - at, " %d", (int)offsets[k]);
                record(&outcomes, "%s", line);
        }
        if (calls_from_callback) {
                rd_kafka_messages_t *messages = NULL;
                rd_kafka_topic_partition_list_t *partitions = NULL;
                calls_from_callback = NULL;
                say_error("poll in the callback", rd_kafka_share_poll(share, 0, &messages));
                say("acknowledge in the callback %s", err(rd_kafka_share_acknowledge_offset(share, "t", 0, 0, 1)));
                say_error("commit_async in the callback", rd_kafka_share_commit_async(share));
                say_error("commit_sync in the callback", rd_kafka_share_commit_sync(share, 100, &partitions));
                say("subscribe in the callback %s", err(subscribe(share, "t", NULL)));
                say("unsubscribe in the callback %s", err(rd_kafka_share_unsubscribe(share)));
                say("closed in the callback %d", rd_kafka_share_consumer_closed(share));
                say_error("callback in the callback", rd_kafka_share_set_acknowledgement_commit_cb(share, NULL, NULL));
                say_error("close in the callback", rd_kafka_share_consumer_close(share));
                say_error("destroy in the callback", rd_kafka_share_destroy(share));
        }
}

CASE(refused_configurations) {
        static const char *const settings[][2] = {
            {"enable.auto.commit", "true"}, {"group.protocol", "consumer"}, {"group.protocol.type", "consumer"}, {"partition.assignment.strategy", "range"},
            {"group.instance.id", "i"}, {"group.remote.assignor", "uniform"}, {"isolation.level", "read_committed"}, {"session.timeout.ms", "45000"},
            {"heartbeat.interval.ms", "3000"}, {"queued.min.messages", "100"}, {"queued.max.messages.kbytes", "100"}, {"fetch.queue.backoff.ms", "100"},
            {"fetch.error.backoff.ms", "100"}, {"enable.partition.eof", "true"}, {"message.copy.max.bytes", "100"}, {"topic.blacklist", "x"},
            {"allow.auto.create.topics", "true"}, {"auto.offset.reset", "earliest"}, {"consume.callback.max.messages", "7"}, {"socket.max.fails", "2"},
            {"enable.auto.offset.store", "true"}, {"auto.commit.interval.ms", "100"}, {"fetch.message.max.bytes", "1000"}, {"max.poll.records", "7"},
            {"max.in.flight", "7"}, {"linger.ms", "7"}, {"check.crcs", "false"}, {"client.rack", "r"}, {"max.poll.interval.ms", "10000"}};
        char errstr[512] = "";
        size_t i;
        rd_kafka_share_t *share = rd_kafka_share_consumer_new(NULL, errstr, sizeof(errstr));
        rd_kafka_conf_t *conf;
        say("no configuration: %s text %s", share ? "created" : "NULL", errstr);
        conf = conf_of("bootstrap.servers", DEAD, NULL);
        share = rd_kafka_share_consumer_new(conf, errstr, sizeof(errstr));
        say("no group: %s text %s last %s", share ? "created" : "NULL", present(errstr), err(rd_kafka_last_error()));
        rd_kafka_conf_destroy(conf);
        for (i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
                conf = share_conf("explicit");
                set(conf, settings[i][0], settings[i][1]);
                *errstr = 0;
                share = rd_kafka_share_consumer_new(conf, errstr, sizeof(errstr));
                say("%s: %s text %s", settings[i][0], share ? "created" : "NULL", errstr);
                if (share)
                        rd_kafka_share_destroy(share);
                else
                        rd_kafka_conf_destroy(conf);
        }
}

static void no_rebalance(rd_kafka_t *rk UNUSED, rd_kafka_resp_err_t code UNUSED, rd_kafka_topic_partition_list_t *list UNUSED, void *opaque UNUSED) {}
static void no_consume(rd_kafka_message_t *message UNUSED, void *opaque UNUSED) {}

CASE(refused_callbacks) {
        int i;
        for (i = 0; i < 6; i++) {
                char errstr[512] = "";
                rd_kafka_share_t *share;
                rd_kafka_conf_t *conf = share_conf("implicit");
                switch (i) {
                case 0: rd_kafka_conf_set_rebalance_cb(conf, no_rebalance); break;
                case 1: rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_REBALANCE); break;
                case 2: rd_kafka_conf_set_offset_commit_cb(conf, no_rebalance); break;
                case 3: rd_kafka_conf_set_consume_cb(conf, no_consume); break;
                case 4: rd_kafka_conf_set_stats_cb(conf, on_stats); break;
                default: rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_ERROR | RD_KAFKA_EVENT_STATS); break;
                }
                share = rd_kafka_share_consumer_new(conf, errstr, sizeof(errstr));
                say("callback %d: %s text %s", i, share ? "created" : "NULL", errstr);
                if (share)
                        say_error("destroy", rd_kafka_share_destroy(share));
                else
                        rd_kafka_conf_destroy(conf);
        }
}

CASE(calls_without_a_subscription) {
        rd_kafka_share_t *share = share_of(share_conf("explicit"));
        rd_kafka_messages_t *messages = NULL;
        say_subscription(share);
        say_text("poll", rd_kafka_share_poll(share, 0, &messages));
        say("messages %s", messages ? "present" : "NULL");
        say("acknowledge of NULL %s", err(rd_kafka_share_acknowledge(share, NULL)));
        say("type of NULL %s", err(rd_kafka_share_acknowledge_type(share, NULL, RD_KAFKA_SHARE_ACKNOWLEDGE_TYPE_REJECT)));
        say("offset of NULL %s", err(rd_kafka_share_acknowledge_offset(share, NULL, 0, 0, 1)));
        say("negative partition %s", err(rd_kafka_share_acknowledge_offset(share, "t", -1, 0, 1)));
        say("negative offset %s", err(rd_kafka_share_acknowledge_offset(share, "t", 0, -1, 1)));
        say("type 0 %s", err(rd_kafka_share_acknowledge_offset(share, "t", 0, 0, (rd_kafka_share_AcknowledgeType_t)0)));
        say("type 4 %s", err(rd_kafka_share_acknowledge_offset(share, "t", 0, 0, (rd_kafka_share_AcknowledgeType_t)4)));
        say("not acquired %s", err(rd_kafka_share_acknowledge_offset(share, "t", 0, 0, 1)));
        say_text("commit_async", rd_kafka_share_commit_async(share));
        commit("commit_sync", share, 100);
        say("unsubscribe %s", err(rd_kafka_share_unsubscribe(share)));
        say("closed %d", rd_kafka_share_consumer_closed(share));
        say_text("close", rd_kafka_share_consumer_close(share));
        say("closed %d", rd_kafka_share_consumer_closed(share));
        say_text("destroy", rd_kafka_share_destroy(share));
}

CASE(implicit_mode_refuses_acknowledgements) {
        rd_kafka_share_t *share = share_of(share_conf("implicit"));
        say("offset %s", err(rd_kafka_share_acknowledge_offset(share, "t", 0, 0, 1)));
        say("type 9 %s", err(rd_kafka_share_acknowledge_offset(share, "t", 0, 0, (rd_kafka_share_AcknowledgeType_t)9)));
        say("negative %s", err(rd_kafka_share_acknowledge_offset(share, "t", -1, 0, 1)));
        say("NULL %s", err(rd_kafka_share_acknowledge(share, NULL)));
        say_text("destroy", rd_kafka_share_destroy(share));
}

CASE(subscriptions) {
        rd_kafka_share_t *share = share_of(share_conf("explicit"));
        say("NULL list");
        misuse("NULL list") { say("subscribe %s", err(rd_kafka_share_subscribe(share_of(share_conf("explicit")), NULL))); }
        say("two %s", err(subscribe(share, "b", "a")));
        say_subscription(share);
        say("twice %s", err(subscribe(share, "a", "a")));
        say("empty name %s", err(subscribe(share, "a", "")));
        say_subscription(share);
        say("pattern %s", err(subscribe(share, "^a.*", NULL)));
        say_subscription(share);
        say("empty list %s", err(subscribe(share, NULL, NULL)));
        say_subscription(share);
        say("again %s", err(subscribe(share, "c", NULL)));
        say("unsubscribe %s", err(rd_kafka_share_unsubscribe(share)));
        say_subscription(share);
        say_text("destroy", rd_kafka_share_destroy(share));
}

CASE(calls_after_the_close) {
        rd_kafka_share_t *share = share_of(share_conf("explicit"));
        rd_kafka_messages_t *messages = NULL;
        rd_kafka_topic_partition_list_t *list = NULL;
        rd_kafka_queue_t *queue = NULL;
        say_text("close", rd_kafka_share_consumer_close(share));
        say_text("poll", rd_kafka_share_poll(share, 0, &messages));
        say_text("commit_async", rd_kafka_share_commit_async(share));
        say_text("commit_sync", rd_kafka_share_commit_sync(share, 100, &list));
        say("acknowledge %s", err(rd_kafka_share_acknowledge(share, NULL)));
        say("offset %s", err(rd_kafka_share_acknowledge_offset(share, "t", 0, 0, 1)));
        say("subscribe %s", err(subscribe(share, "t", NULL)));
        say("unsubscribe %s", err(rd_kafka_share_unsubscribe(share)));
        say_subscription(share);
        say_text("callback", rd_kafka_share_set_acknowledgement_commit_cb(share, on_outcome, NULL));
        say_text("close again", rd_kafka_share_consumer_close(share));
        say_text("close_queue", rd_kafka_share_consumer_close_queue(share, queue));
        say("closed %d", rd_kafka_share_consumer_closed(share));
        say_text("destroy", rd_kafka_share_destroy(share));
}

CASE(nothing_as_an_argument) {
        char errstr[256] = "";
        rd_kafka_messages_t *messages = NULL;
        rd_kafka_topic_partition_list_t *list = NULL;
        say("count %zu", rd_kafka_messages_count(NULL));
        rd_kafka_messages_destroy(NULL);
        misuse("list of offsets") { rd_kafka_share_partition_offsets_list_destroy(NULL); }
        misuse("poll") { say_error("poll", rd_kafka_share_poll(NULL, 0, &messages)); }
        misuse("commit_async") { say_error("commit_async", rd_kafka_share_commit_async(NULL)); }
        misuse("commit_sync") { say_error("commit_sync", rd_kafka_share_commit_sync(NULL, 0, &list)); }
        misuse("close") { say_error("close", rd_kafka_share_consumer_close(NULL)); }
        misuse("acknowledge") { say("acknowledge %s", err(rd_kafka_share_acknowledge(NULL, NULL))); }
        misuse("acknowledge_offset") { say("acknowledge_offset %s", err(rd_kafka_share_acknowledge_offset(NULL, "t", 0, 0, 1))); }
        misuse("subscribe") { say("subscribe %s", err(subscribe(NULL, "t", NULL))); }
        misuse("unsubscribe") { say("unsubscribe %s", err(rd_kafka_share_unsubscribe(NULL))); }
        misuse("callback") { say_error("callback", rd_kafka_share_set_acknowledgement_commit_cb(NULL, NULL, NULL)); }
        misuse("destroy") { say_error("destroy", rd_kafka_share_destroy(NULL)); }
        misuse("destroy_flags") { say_error("destroy_flags", rd_kafka_share_destroy_flags(NULL, 0)); }
        misuse("closed") { say("closed %d", rd_kafka_share_consumer_closed(NULL)); }
        misuse("log queue") { say_error("log queue", rd_kafka_share_set_log_queue(NULL, NULL)); }
        misuse("credentials") { say_error("credentials", rd_kafka_share_sasl_set_credentials(NULL, "u", "p")); }
        misuse("background") { say_error("background", rd_kafka_share_sasl_background_callbacks_enable(NULL)); }
        misuse("token") { say("token %s text %s", err(rd_kafka_share_oauthbearer_set_token(NULL, "x", 0, "me", NULL, 0, errstr, sizeof(errstr))), present(errstr)); }
        misuse("failure") { say("failure %s", err(rd_kafka_share_oauthbearer_set_token_failure(NULL, "x"))); }
        misuse("sasl queue") { say("queue %s", rd_kafka_share_queue_get_sasl(NULL) ? "present" : "NULL"); }
        misuse("delivery count") { say("delivery count %d", rd_kafka_message_delivery_count(NULL)); }
}

CASE(logs_and_credentials) {
        rd_kafka_conf_t *conf = share_conf("explicit");
        rd_kafka_share_t *share = share_of(conf);
        char errstr[256] = "";
        say_text("log queue", rd_kafka_share_set_log_queue(share, NULL));
        say("sasl queue %s", rd_kafka_share_queue_get_sasl(share) ? "present" : "NULL");
        say_error("background", rd_kafka_share_sasl_background_callbacks_enable(share));
        say_error("credentials", rd_kafka_share_sasl_set_credentials(share, "user", "password"));
        say_error("no user", rd_kafka_share_sasl_set_credentials(share, NULL, "password"));
        say("token %s", err(rd_kafka_share_oauthbearer_set_token(share, "x", ((int64_t)time(NULL) + 3600) * 1000, "me", NULL, 0, errstr, sizeof(errstr))));
        say("text %s", errstr);
        say("failure %s", err(rd_kafka_share_oauthbearer_set_token_failure(share, "x")));
        say_error("destroy", rd_kafka_share_destroy(share));
        conf = share_conf("explicit");
        set(conf, "log.queue", "true");
        share = share_of(conf);
        say_text("log queue", rd_kafka_share_set_log_queue(share, NULL));
        say_error("destroy", rd_kafka_share_destroy(share));
}

CASE(tokens) {
        rd_kafka_conf_t *conf = share_conf("explicit");
        rd_kafka_share_t *share;
        rd_kafka_queue_t *queue;
        rd_kafka_event_t *event;
        char errstr[256] = "";
        set(conf, "security.protocol", "sasl_plaintext");
        set(conf, "sasl.mechanisms", "OAUTHBEARER");
        set(conf, "sasl.oauthbearer.config", "for=me");
        rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_OAUTHBEARER_TOKEN_REFRESH);
        rd_kafka_conf_enable_sasl_queue(conf, 1);
        share = share_of(conf);
        queue = rd_kafka_share_queue_get_sasl(share);
        say("queue %s", queue ? "present" : "NULL");
        event = queue ? rd_kafka_queue_poll(queue, TIMEOUT_MS) : NULL;
        say("event %s config %s", rd_kafka_event_name(event), event ? rd_kafka_event_config_string(event) : "NULL");
        if (event)
                rd_kafka_event_destroy(event);
        say("token %s", err(rd_kafka_share_oauthbearer_set_token(share, "x", ((int64_t)time(NULL) + 3600) * 1000, "me", NULL, 0, errstr, sizeof(errstr))));
        say("expired %s", err(rd_kafka_share_oauthbearer_set_token(share, "x", 1000, "me", NULL, 0, errstr, sizeof(errstr))));
        say("text %s", present(errstr));
        say("failure %s", err(rd_kafka_share_oauthbearer_set_token_failure(share, "x")));
        say("no reason %s", err(rd_kafka_share_oauthbearer_set_token_failure(share, NULL)));
        if (queue)
                rd_kafka_queue_destroy(queue);
        say_error("background", rd_kafka_share_sasl_background_callbacks_enable(share));
        say_error("destroy", rd_kafka_share_destroy(share));
}

CASE(explicit_acknowledgements) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(1, 1);
        rd_kafka_messages_t *messages, *none = NULL;
        rd_kafka_share_t *share;
        rd_kafka_message_t *message;
        size_t i;
        fill(0, 5);
        share = share_of(share_conf("explicit"));
        say_error("callback", rd_kafka_share_set_acknowledgement_commit_cb(share, on_outcome, &outcomes));
        say("subscribe %s", err(subscribe(share, "t", NULL)));
        messages = poll_some(share);
        say_messages("first", messages);
        say("past the end %s", rd_kafka_messages_count(messages) == 5 ? "5" : "other");
        say_text("poll with open records", rd_kafka_share_poll(share, 0, &none));
        say("accept %s", err(rd_kafka_share_acknowledge(share, rd_kafka_messages_get(messages, 0))));
        say("release %s", err(rd_kafka_share_acknowledge_type(share, rd_kafka_messages_get(messages, 1), RD_KAFKA_SHARE_ACKNOWLEDGE_TYPE_RELEASE)));
        say("reject %s", err(rd_kafka_share_acknowledge_type(share, rd_kafka_messages_get(messages, 2), RD_KAFKA_SHARE_ACKNOWLEDGE_TYPE_REJECT)));
        say("bad type %s", err(rd_kafka_share_acknowledge_type(share, rd_kafka_messages_get(messages, 3), (rd_kafka_share_AcknowledgeType_t)7)));
        say("by offset %s", err(rd_kafka_share_acknowledge_offset(share, "t", 0, 3, RD_KAFKA_SHARE_ACKNOWLEDGE_TYPE_REJECT)));
        say("once more %s", err(rd_kafka_share_acknowledge_offset(share, "t", 0, 3, RD_KAFKA_SHARE_ACKNOWLEDGE_TYPE_ACCEPT)));
        say("other topic %s", err(rd_kafka_share_acknowledge_offset(share, "u", 0, 3, RD_KAFKA_SHARE_ACKNOWLEDGE_TYPE_ACCEPT)));
        say("other partition %s", err(rd_kafka_share_acknowledge_offset(share, "t", 1, 3, RD_KAFKA_SHARE_ACKNOWLEDGE_TYPE_ACCEPT)));
        say("other offset %s", err(rd_kafka_share_acknowledge_offset(share, "t", 0, 5, RD_KAFKA_SHARE_ACKNOWLEDGE_TYPE_ACCEPT)));
        commit("commit_sync", share, TIMEOUT_MS);
        say_recorded("outcomes", &outcomes);
        say("after the commit %s", err(rd_kafka_share_acknowledge_offset(share, "t", 0, 0, RD_KAFKA_SHARE_ACKNOWLEDGE_TYPE_ACCEPT)));
        commit("nothing to commit", share, TIMEOUT_MS);
        say_text("poll with one open record", rd_kafka_share_poll(share, 0, &none));
        message = rd_kafka_messages_get(messages, 4);
        say("the last %s", err(rd_kafka_share_acknowledge(share, message)));
        rd_kafka_messages_destroy(messages);
        messages = poll_some(share);
        say_messages("released", messages);
        for (i = 0; i < rd_kafka_messages_count(messages); i++)
                rd_kafka_share_acknowledge(share, rd_kafka_messages_get(messages, i));
        say_error("commit_async", rd_kafka_share_commit_async(share));
        UNTIL(recorded(&outcomes) >= 3, serve(share));
        say_recorded("outcomes", &outcomes);
        rd_kafka_messages_destroy(messages);
        say_error("close", rd_kafka_share_consumer_close(share));
        say("closed %d", rd_kafka_share_consumer_closed(share));
        say_error("destroy", rd_kafka_share_destroy(share));
        end(cluster);
}

CASE(implicit_acceptance) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(1, 1);
        rd_kafka_messages_t *messages;
        rd_kafka_share_t *share;
        fill(0, 3);
        share = share_of(share_conf("implicit"));
        say_error("callback", rd_kafka_share_set_acknowledgement_commit_cb(share, on_outcome, NULL));
        subscribe(share, "t", NULL);
        messages = poll_some(share);
        say_messages("first", messages);
        say("acknowledge %s", err(rd_kafka_share_acknowledge(share, rd_kafka_messages_get(messages, 0))));
        rd_kafka_messages_destroy(messages);
        commit("commit_sync", share, TIMEOUT_MS);
        say_recorded("outcomes", &outcomes);
        commit("nothing to commit", share, TIMEOUT_MS);
        fill(0, 2);
        messages = poll_some(share);
        say_messages("second", messages);
        rd_kafka_messages_destroy(messages);
        UNTIL(recorded(&outcomes) >= 2, serve(share));
        say_recorded("outcomes", &outcomes);
        say_error("destroy", rd_kafka_share_destroy(share));
        end(cluster);
}

CASE(close_does_not_accept_the_last_poll) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(1, 1);
        rd_kafka_messages_t *messages;
        rd_kafka_share_t *share;
        fill(0, 3);
        share = share_of(share_conf("implicit"));
        say_error("callback", rd_kafka_share_set_acknowledgement_commit_cb(share, on_outcome, NULL));
        subscribe(share, "t", NULL);
        messages = poll_some(share);
        say("messages %zu", rd_kafka_messages_count(messages));
        say_error("close", rd_kafka_share_consumer_close(share));
        say_recorded("outcomes", &outcomes);
        say_message("after the close", rd_kafka_messages_get(messages, 0));
        rd_kafka_messages_destroy(messages);
        say_error("destroy", rd_kafka_share_destroy(share));
        share = share_of(share_conf("implicit"));
        subscribe(share, "t", NULL);
        messages = poll_some(share);
        say_messages("again", messages);
        rd_kafka_messages_destroy(messages);
        say_error("destroy without close", rd_kafka_share_destroy_flags(share, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE));
        end(cluster);
}

CASE(close_sends_what_was_acknowledged) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(1, 1);
        rd_kafka_messages_t *messages;
        rd_kafka_share_t *share;
        fill(0, 3);
        share = share_of(share_conf("explicit"));
        say_error("callback", rd_kafka_share_set_acknowledgement_commit_cb(share, on_outcome, NULL));
        subscribe(share, "t", NULL);
        messages = poll_some(share);
        say("messages %zu", rd_kafka_messages_count(messages));
        rd_kafka_share_acknowledge(share, rd_kafka_messages_get(messages, 0));
        rd_kafka_share_acknowledge(share, rd_kafka_messages_get(messages, 1));
        say_error("close", rd_kafka_share_consumer_close(share));
        say_recorded("outcomes", &outcomes);
        rd_kafka_messages_destroy(messages);
        say_error("destroy", rd_kafka_share_destroy(share));
        share = share_of(share_conf("explicit"));
        subscribe(share, "t", NULL);
        messages = poll_some(share);
        say_messages("the rest", messages);
        rd_kafka_messages_destroy(messages);
        say_error("destroy", rd_kafka_share_destroy(share));
        end(cluster);
}

/* Queues are made of the client, which only callbacks see. */
static rd_kafka_t *volatile client_below;
static int keep_client(rd_kafka_t *rk, char *json UNUSED, size_t length UNUSED, void *opaque UNUSED) {
        client_below = rk;
        return 0;
}

CASE(close_by_a_queue) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(1, 1);
        rd_kafka_messages_t *messages;
        rd_kafka_share_t *share;
        rd_kafka_queue_t *queue;
        rd_kafka_conf_t *conf = share_conf("explicit");
        set(conf, "statistics.interval.ms", "20");
        rd_kafka_conf_set_stats_cb(conf, keep_client);
        fill(0, 2);
        share = share_of(conf);
        say_error("callback", rd_kafka_share_set_acknowledgement_commit_cb(share, on_outcome, NULL));
        subscribe(share, "t", NULL);
        messages = poll_some(share);
        say("messages %zu", rd_kafka_messages_count(messages));
        rd_kafka_share_acknowledge(share, rd_kafka_messages_get(messages, 0));
        rd_kafka_share_acknowledge(share, rd_kafka_messages_get(messages, 1));
        rd_kafka_messages_destroy(messages);
        UNTIL(client_below, serve(share));
        say("type %d", rd_kafka_type(client_below));
        queue = rd_kafka_queue_new(client_below);
        say_error("close", rd_kafka_share_consumer_close_queue(share, queue));
        say("commit_async"), say_error("commit_async", rd_kafka_share_commit_async(share));
        say_error("close again", rd_kafka_share_consumer_close_queue(share, queue));
        UNTIL(rd_kafka_share_consumer_closed(share) && recorded(&outcomes), rd_kafka_queue_poll_callback(queue, 50));
        say_recorded("outcomes", &outcomes);
        rd_kafka_queue_destroy(queue);
        say_error("destroy", rd_kafka_share_destroy(share));
        end(cluster);
}

CASE(calls_from_the_callback) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(1, 1);
        rd_kafka_messages_t *messages;
        rd_kafka_share_t *share;
        fill(0, 2);
        share = share_of(share_conf("implicit"));
        rd_kafka_share_set_acknowledgement_commit_cb(share, on_outcome, NULL);
        subscribe(share, "t", NULL);
        messages = poll_some(share);
        rd_kafka_messages_destroy(messages);
        calls_from_callback = share;
        commit("commit_sync", share, TIMEOUT_MS);
        say_recorded("outcomes", &outcomes);
        say_error("destroy", rd_kafka_share_destroy(share));
        end(cluster);
}

static void *poll_in_a_thread(void *share) {
        rd_kafka_messages_t *messages = NULL;
        rd_kafka_error_t *error = rd_kafka_share_poll((rd_kafka_share_t *)share, 1500, &messages);
        say_error("poll of the first thread", error);
        return NULL;
}

CASE(second_thread) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(1, 1);
        rd_kafka_share_t *share = share_of(share_conf("explicit"));
        rd_kafka_messages_t *messages = NULL;
        pthread_t thread;
        subscribe(share, "t", NULL);
        pthread_create(&thread, NULL, poll_in_a_thread, share);
        usleep(500000);
        say_error("poll", rd_kafka_share_poll(share, 0, &messages));
        say_error("commit_async", rd_kafka_share_commit_async(share));
        say("acknowledge %s", err(rd_kafka_share_acknowledge_offset(share, "t", 0, 0, 1)));
        say("subscribe %s", err(subscribe(share, "t", NULL)));
        say_error("close", rd_kafka_share_consumer_close(share));
        say_error("destroy", rd_kafka_share_destroy(share));
        pthread_join(thread, NULL);
        say_error("destroy", rd_kafka_share_destroy(share));
        end(cluster);
}

CASE(callback_can_be_removed) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(1, 1);
        rd_kafka_messages_t *messages;
        rd_kafka_share_t *share;
        fill(0, 2);
        share = share_of(share_conf("implicit"));
        say_error("set", rd_kafka_share_set_acknowledgement_commit_cb(share, on_outcome, NULL));
        say_error("removed", rd_kafka_share_set_acknowledgement_commit_cb(share, NULL, NULL));
        subscribe(share, "t", NULL);
        messages = poll_some(share);
        rd_kafka_messages_destroy(messages);
        commit("commit_sync", share, TIMEOUT_MS);
        say_recorded("outcomes", &outcomes);
        say_error("destroy", rd_kafka_share_destroy(share));
        end(cluster);
}

CASE(two_members) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(1, 1);
        rd_kafka_messages_t *messages, *none = NULL;
        rd_kafka_share_t *one, *other;
        fill(0, 3);
        one = share_of(share_conf("explicit"));
        subscribe(one, "t", NULL);
        messages = poll_some(one);
        say("messages %zu", rd_kafka_messages_count(messages));
        other = share_of(share_conf("explicit"));
        subscribe(other, "t", NULL);
        say_error("nothing for the other", rd_kafka_share_poll(other, 1000, &none));
        say("messages %zu", rd_kafka_messages_count(none));
        say("of the other %s", err(rd_kafka_share_acknowledge(other, rd_kafka_messages_get(messages, 0))));
        rd_kafka_messages_destroy(messages);
        say_error("destroy", rd_kafka_share_destroy(one));
        messages = poll_some(other);
        say_messages("released", messages);
        rd_kafka_messages_destroy(messages);
        say_error("destroy", rd_kafka_share_destroy(other));
        end(cluster);
}

CASE(delivery_count_of_other_messages) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(1, 1);
        rd_kafka_t *consumer;
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_message_t *message = NULL;
        fill(0, 1);
        consumer = consumer_of(conf_of("bootstrap.servers", getenv("SBS_BOOTSTRAP"), "group.id", "c", NULL));
        rd_kafka_topic_partition_list_add(list, "t", 0)->offset = 0;
        rd_kafka_assign(consumer, list);
        UNTIL(message, message = rd_kafka_consumer_poll(consumer, 100));
        say("delivery count %d", message ? rd_kafka_message_delivery_count(message) : -7);
        if (message)
                rd_kafka_message_destroy(message);
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_destroy(consumer);
        end(cluster);
}

CASE(errors_of_brokers) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(1, 1);
        rd_kafka_messages_t *messages;
        rd_kafka_share_t *share;
        fill(0, 2);
        share = share_of(share_conf("implicit"));
        say_error("callback", rd_kafka_share_set_acknowledgement_commit_cb(share, on_outcome, NULL));
        subscribe(share, "t", NULL);
        messages = poll_some(share);
        rd_kafka_messages_destroy(messages);
        rd_kafka_mock_push_request_errors(cluster, ACKNOWLEDGE, 1, RD_KAFKA_RESP_ERR_SHARE_SESSION_NOT_FOUND);
        commit("lost session", share, TIMEOUT_MS);
        say_recorded("outcomes", &outcomes);
        say_error("destroy", rd_kafka_share_destroy(share));
        end(cluster);
}

CASE(commit_that_times_out) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(1, 1);
        rd_kafka_messages_t *messages;
        rd_kafka_share_t *share;
        long began;
        fill(0, 2);
        share = share_of(share_conf("implicit"));
        subscribe(share, "t", NULL);
        messages = poll_some(share);
        rd_kafka_messages_destroy(messages);
        rd_kafka_mock_broker_set_rtt(cluster, 1, 3000);
        began = millis();
        commit("slow broker", share, 600);
        say("took %s", took(began, 600));
        rd_kafka_mock_broker_set_rtt(cluster, 1, 0);
        say_error("destroy", rd_kafka_share_destroy(share));
        end(cluster);
}

static void say_fatal(rd_kafka_t *rk, int code, const char *reason UNUSED, void *opaque UNUSED) {
        char text[512];
        record(&errors, "%s fatal %s", err((rd_kafka_resp_err_t)code), err(rd_kafka_fatal_error(rk, text, sizeof(text))));
}

CASE(fatal_error) {
        rd_kafka_mock_cluster_t *cluster = cluster_of(1, 1);
        rd_kafka_messages_t *messages = NULL;
        rd_kafka_error_t *error = NULL;
        rd_kafka_share_t *share;
        rd_kafka_conf_t *conf = share_conf("explicit");
        rd_kafka_conf_set_error_cb(conf, say_fatal);
        share = share_of(conf);
        rd_kafka_mock_push_request_errors(cluster, HEARTBEAT, 1, RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED);
        subscribe(share, "t", NULL);
        UNTIL(error, error = rd_kafka_share_poll(share, 100, &messages));
        say_error("poll", error);
        say_error("poll again", rd_kafka_share_poll(share, 100, &messages));
        say_recorded("errors", &errors);
        say("subscribe %s", err(subscribe(share, "t", NULL)));
        say_error("close", rd_kafka_share_consumer_close(share));
        say_error("destroy", rd_kafka_share_destroy(share));
        end(cluster);
}
