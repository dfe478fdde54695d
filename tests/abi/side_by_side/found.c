/* Differences that `cargo xtask abi --generate` found, each shrunk to a few calls. */
#include "side_by_side.h"

static rd_kafka_t *client(rd_kafka_type_t type, const char *name, const char *value) {
        rd_kafka_conf_t *conf = conf_of("test.mock.num.brokers", "1", "log_level", "0", NULL);
        rd_kafka_t *rk;
        char errstr[512];
        if (name)
                set(conf, name, value);
        rk = rd_kafka_new(type, conf, errstr, sizeof(errstr));
        if (!rk)
                rd_kafka_conf_destroy(conf);
        return rk;
}

CASE(subscription_without_a_group) {
        rd_kafka_type_t type;
        for (type = RD_KAFKA_PRODUCER; type <= RD_KAFKA_CONSUMER; type++) {
                rd_kafka_t *rk = client(type, NULL, NULL);
                rd_kafka_topic_partition_list_t *list = NULL;
                say("subscription: %s", err(rd_kafka_subscription(rk, &list)));
                rd_kafka_destroy(rk);
        }
}

CASE(watermarks_of_a_producer) {
        rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, NULL, NULL);
        int64_t low = 7, high = 7;
        say("watermarks: %s", err(rd_kafka_get_watermark_offsets(rk, "t", 0, &low, &high)));
        say("low %s high %s", offset_name(low), offset_name(high));
        rd_kafka_destroy(rk);
}

CASE(payload_to_be_copied_and_freed) {
        rd_kafka_t *rk = producer_of(conf_of("test.mock.num.brokers", "1", "log_level", "0", NULL));
        rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, "t", NULL);
        char *payload = strdup("payload");
        int flags = RD_KAFKA_MSG_F_COPY | RD_KAFKA_MSG_F_FREE;
        say("produce: %d", rd_kafka_produce(topic, 0, flags, payload, 7, NULL, 0, NULL));
        say("producev: %s", err(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_MSGFLAGS(flags),
                                                  RD_KAFKA_V_VALUE(payload, 7), RD_KAFKA_V_END)));
        say("flush: %s", err(rd_kafka_flush(rk, TIMEOUT_MS)));
        say("reports: %d", recorded(&reports));
        /* The payload stays the application's. */
        free(payload);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
}

CASE(offsets_without_an_offset_in_any_state) {
        rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, "transactional.id", "x");
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_consumer_group_metadata_t *group = rd_kafka_consumer_group_metadata_new("g");
        say_error("an empty list", rd_kafka_send_offsets_to_transaction(rk, list, group, 1000));
        rd_kafka_topic_partition_list_add(list, "t", 0);
        say_error("no offset", rd_kafka_send_offsets_to_transaction(rk, list, group, 1000));
        list->elems[0].offset = 5;
        say_error("an offset", rd_kafka_send_offsets_to_transaction(rk, list, group, 1000));
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_consumer_group_metadata_destroy(group);
        rd_kafka_destroy(rk);
}

CASE(names_of_clients_skip_failures) {
        rd_kafka_t *first = client(RD_KAFKA_PRODUCER, NULL, NULL);
        rd_kafka_t *failed = client(RD_KAFKA_CONSUMER, "max.poll.interval.ms", "20000");
        rd_kafka_t *second = client(RD_KAFKA_PRODUCER, NULL, NULL);
        say("%s, %s, %s", rd_kafka_name(first), failed ? "a client" : "none", rd_kafka_name(second));
        rd_kafka_destroy(second);
        rd_kafka_destroy(first);
}

static rd_kafka_t *member(rd_kafka_conf_t *conf) {
        rd_kafka_t *rk;
        set(conf, "group.id", "g");
        set(conf, "enable.auto.commit", "false");
        rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, NULL, 0);
        rd_kafka_mock_topic_create(rd_kafka_handle_mock_cluster(rk), "t", 2, 1);
        return rk;
}

static rd_kafka_topic_partition_list_t *one_partition(int32_t partition, int64_t offset) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_topic_partition_list_add(list, "t", partition)->offset = offset;
        return list;
}

static void print_commit(rd_kafka_t *rk UNUSED, rd_kafka_resp_err_t code, rd_kafka_topic_partition_list_t *list, void *opaque UNUSED) {
        say("commit callback: %s, %s", err(code), list ? "a list" : "no list");
}

CASE(calls_after_the_consumer_is_closed) {
        rd_kafka_t *rk = member(conf_of("test.mock.num.brokers", "1", "log_level", "0", NULL));
        rd_kafka_topic_partition_list_t *list = one_partition(0, 0), *got = NULL;
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
        say("close: %s", err(rd_kafka_consumer_close(rk)));
        say("commit: %s", err(rd_kafka_commit(rk, list, 0)));
        say("asynchronous commit: %s", err(rd_kafka_commit(rk, list, 1)));
        say("commit of what is stored: %s", err(rd_kafka_commit(rk, NULL, 0)));
        say("commit with a callback: %s", err(rd_kafka_commit_queue(rk, list, NULL, print_commit, NULL)));
        say("commit without a list: %s", err(rd_kafka_commit_queue(rk, NULL, NULL, print_commit, NULL)));
        say("commit to a queue: %s", err(rd_kafka_commit_queue(rk, list, queue, print_commit, NULL)));
        say("committed: %s", err(rd_kafka_committed(rk, list, 1000)));
        say("subscription: %s", err(rd_kafka_subscription(rk, &got)));
        say("assignment: %s", err(rd_kafka_assignment(rk, &got)));
        say("subscribe: %s", err(rd_kafka_subscribe(rk, list)));
        say("unsubscribe: %s", err(rd_kafka_unsubscribe(rk)));
        say("assign: %s", err(rd_kafka_assign(rk, NULL)));
        say("metadata of the group: %s", rd_kafka_consumer_group_metadata(rk) ? "some" : "none");
        say("member: %s", rd_kafka_memberid(rk) ? "some" : "none");
        say("close: %s", err(rd_kafka_consumer_close(rk)));
        rd_kafka_queue_destroy(queue);
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_destroy(rk);
}

static rd_kafka_resp_err_t call_in_on_new(rd_kafka_t *rk, const rd_kafka_conf_t *conf UNUSED, void *opaque UNUSED, char *errstr UNUSED,
                                          size_t size UNUSED) {
        rd_kafka_topic_partition_list_t *list = one_partition(0, 0), *got = NULL;
        say("name: \"%s\"", rd_kafka_name(rk));
        say("subscribe: %s", err(rd_kafka_subscribe(rk, list)));
        say("subscription: %s", err(rd_kafka_subscription(rk, &got)));
        say("unsubscribe: %s", err(rd_kafka_unsubscribe(rk)));
        say("assignment: %s", err(rd_kafka_assignment(rk, &got)));
        say("commit: %s", err(rd_kafka_commit(rk, list, 0)));
        say("close: %s", err(rd_kafka_consumer_close(rk)));
        say("protocol: %s", rd_kafka_rebalance_protocol(rk) ? "some" : "none");
        say("member: %s", rd_kafka_memberid(rk) ? "some" : "none");
        rd_kafka_topic_partition_list_destroy(list);
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

CASE(calls_in_on_new) {
        rd_kafka_conf_t *conf = conf_of("test.mock.num.brokers", "1", "log_level", "0", NULL);
        rd_kafka_conf_interceptor_add_on_new(conf, "i", call_in_on_new, NULL);
        rd_kafka_destroy(member(conf));
}

static void no_verdict(rd_kafka_share_t *share UNUSED, rd_kafka_share_partition_offsets_list_t *list UNUSED,
                       rd_kafka_resp_err_t code UNUSED, void *opaque UNUSED) {}

CASE(share_consumer_without_a_group) {
        rd_kafka_share_t *share = rd_kafka_share_consumer_new(conf_of("log_level", "0", NULL), NULL, 0);
        rd_kafka_topic_partition_list_t *list = NULL;
        say_error("commit_async", rd_kafka_share_commit_async(share));
        say_error("commit_sync", rd_kafka_share_commit_sync(share, 100, &list));
        say("%s", list ? "a list" : "no list");
        say_error("callback", rd_kafka_share_set_acknowledgement_commit_cb(share, no_verdict, NULL));
        say("acknowledge: %s", err(rd_kafka_share_acknowledge(share, NULL)));
        say("of an offset: %s", err(rd_kafka_share_acknowledge_offset(share, "t", 0, 0, RD_KAFKA_SHARE_ACKNOWLEDGE_TYPE_ACCEPT)));
        say("of a negative one: %s", err(rd_kafka_share_acknowledge_offset(share, "t", -1, -5, RD_KAFKA_SHARE_ACKNOWLEDGE_TYPE_ACCEPT)));
        say_error("close_queue", rd_kafka_share_consumer_close_queue(share, NULL));
        rd_kafka_share_destroy(share);
}

CASE(certificates_without_bytes) {
        static const struct {
                int type, encoding;
                const char *bytes;
        } rows[] = {{0, 2, NULL}, {0, 2, ""}, {1, 1, NULL}, {1, 1, ""}, {2, 0, NULL}, {2, 0, ""}, {2, 2, "junk"}, {0, 7, NULL}, {0, 7, "x"}, {7, 2, NULL}};
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        size_t i;
        for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                const char *bytes = rows[i].bytes;
                int result = rd_kafka_conf_set_ssl_cert(conf, rows[i].type, rows[i].encoding, bytes, bytes ? strlen(bytes) : 0, NULL, 0);
                say("type %d, encoding %d, %s: %d", rows[i].type, rows[i].encoding, bytes ? bytes : "NULL", result);
        }
        rd_kafka_conf_destroy(conf);
}

static void outcomes_of_commits(int with_callback) {
        rd_kafka_conf_t *conf = conf_of("test.mock.num.brokers", "1", "log_level", "0", NULL);
        rd_kafka_topic_partition_list_t *list = one_partition(0, 0);
        rd_kafka_queue_t *queue;
        rd_kafka_event_t *event;
        rd_kafka_t *rk;
        rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_OFFSET_COMMIT);
        if (with_callback)
                rd_kafka_conf_set_offset_commit_cb(conf, print_commit);
        rk = member(conf);
        queue = rd_kafka_queue_get_main(rk);
        rd_kafka_assign(rk, list);
        say("commit: %s", err(rd_kafka_commit(rk, list, 0)));
        event = rd_kafka_queue_poll(queue, 500);
        say("%s callback: %s", with_callback ? "with a" : "without a", event ? rd_kafka_event_name(event) : "no event");
        if (event)
                rd_kafka_event_destroy(event);
        rd_kafka_queue_destroy(queue);
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_destroy(rk);
}

CASE(events_of_commits_need_the_callback) {
        outcomes_of_commits(0);
        outcomes_of_commits(1);
}

CASE(messages_outside_of_a_transaction) {
        int is_transactional;
        for (is_transactional = 0; is_transactional < 2; is_transactional++) {
                rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, is_transactional ? "transactional.id" : NULL, "x");
                rd_kafka_headers_t *headers = rd_kafka_headers_new(1);
                rd_kafka_vu_t arguments[2] = {{0}};
                say("no topic: %s", err(rd_kafka_producev(rk, RD_KAFKA_V_VALUE("a", 1), RD_KAFKA_V_END)));
                say("two kinds of headers: %s", err(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_HEADER("a", "b", 1),
                                                                      RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_END)));
                say("and no topic: %s",
                    err(rd_kafka_producev(rk, RD_KAFKA_V_HEADER("a", "b", 1), RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_END)));
                arguments[0].vtype = RD_KAFKA_VTYPE_HEADER;
                arguments[0].u.header.name = "a";
                arguments[1].vtype = RD_KAFKA_VTYPE_HEADERS;
                arguments[1].u.headers = headers;
                say_error("in an array", rd_kafka_produceva(rk, arguments, 2));
                arguments[0].vtype = 99;
                say_error("an unknown kind", rd_kafka_produceva(rk, arguments, 1));
                say_error("nothing", rd_kafka_produceva(rk, arguments, 0));
                rd_kafka_headers_destroy(headers);
                rd_kafka_destroy(rk);
        }
}

CASE(fatal_error_of_a_producer_without_transactions) {
        rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, NULL, NULL);
        say("fatal error: %s", err(rd_kafka_test_fatal_error(rk, RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, "r")));
        say_error("begin", rd_kafka_begin_transaction(rk));
        say_error("commit", rd_kafka_commit_transaction(rk, 1000));
        rd_kafka_destroy(rk);
}

CASE(arguments_are_checked_before_the_client) {
        rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, NULL, NULL);
        rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, "t", NULL);
        rd_kafka_headers_t *headers = rd_kafka_headers_new(1);
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_LISTOFFSETS);
        say("committed: %s", err(rd_kafka_committed(rk, NULL, 100)));
        say_error("incremental_assign", rd_kafka_incremental_assign(rk, NULL));
        say_error("incremental_unassign", rd_kafka_incremental_unassign(rk, NULL));
        say_error("close_queue", rd_kafka_consumer_close_queue(rk, NULL));
        say("consume_stop: %d", rd_kafka_consume_stop(topic, 1));
        say("%s", err(rd_kafka_last_error()));
        say("header without a name: %s", err(rd_kafka_header_add(headers, NULL, 0, "v", 1)));
        say("operation timeout: %s", err(rd_kafka_AdminOptions_set_operation_timeout(options, 1000, NULL, 0)));
        rd_kafka_conf_set(conf, "no.such.property", "v", NULL, 0);
        say("topic configuration: %s", rd_kafka_conf_get_default_topic_conf(conf) ? "some" : "none");
        rd_kafka_AdminOptions_destroy(options);
        rd_kafka_conf_destroy(conf);
        rd_kafka_headers_destroy(headers);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
}

CASE(seeks_that_do_not_wait) {
        rd_kafka_t *rk = member(conf_of("test.mock.num.brokers", "1", "log_level", "0", NULL));
        rd_kafka_topic_partition_list_t *list = one_partition(0, 0);
        say("assign: %s", err(rd_kafka_assign(rk, list)));
        say_error("seek", rd_kafka_seek_partitions(rk, list, 0));
        say("partition: %s", err(list->elems[0].err));
        say_error("seek and wait", rd_kafka_seek_partitions(rk, list, TIMEOUT_MS));
        say("partition: %s", err(list->elems[0].err));
        rd_kafka_topic_partition_list_del_by_idx(list, 0);
        say_error("nothing to seek", rd_kafka_seek_partitions(rk, list, TIMEOUT_MS));
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_destroy(rk);
}

CASE(starts_without_an_offset) {
        rd_kafka_t *rk = member(conf_of("test.mock.num.brokers", "1", "log_level", "0", NULL));
        rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, "t", NULL);
        say("start: %d", rd_kafka_consume_start(topic, 0, RD_KAFKA_OFFSET_INVALID));
        say("%s", err(rd_kafka_last_error()));
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
}

CASE(offsets_of_partitions_that_can_not_exist) {
        rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, NULL, NULL);
        rd_kafka_topic_partition_list_t *list = one_partition(-1, 0);
        int64_t low, high;
        rd_kafka_mock_topic_create(rd_kafka_handle_mock_cluster(rk), "t", 1, 1);
        say("offsets: %s", err(rd_kafka_offsets_for_times(rk, list, TIMEOUT_MS)));
        say("partition: %s", err(list->elems[0].err));
        rd_kafka_topic_partition_list_add(list, "t", 0)->offset = RD_KAFKA_OFFSET_END;
        rd_kafka_topic_partition_list_add(list, "", 0)->offset = 0;
        say("offsets: %s", err(rd_kafka_offsets_for_times(rk, list, TIMEOUT_MS)));
        say("partitions: %s, %s, %s", err(list->elems[0].err), err(list->elems[1].err), err(list->elems[2].err));
        say("watermarks: %s", err(rd_kafka_query_watermark_offsets(rk, "t", -1, &low, &high, TIMEOUT_MS)));
        say("of no topic: %s", err(rd_kafka_query_watermark_offsets(rk, "", 0, &low, &high, TIMEOUT_MS)));
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_destroy(rk);
}

/* A consumer that reads a partition with three records, from an offset that the application knows the leader epoch of. */
static void read_from_epoch(const char *how, int64_t offset, int32_t epoch, const char *reset) {
        rd_kafka_t *host = client(RD_KAFKA_PRODUCER, NULL, NULL), *rk;
        rd_kafka_mock_cluster_t *cluster = rd_kafka_handle_mock_cluster(host);
        rd_kafka_topic_partition_list_t *list = one_partition(0, offset), *start = one_partition(0, 0), *assigned = NULL;
        rd_kafka_message_t *message;
        int i;
        rd_kafka_mock_topic_create(cluster, "t", 1, 1);
        for (i = 0; i < 3; i++)
                rd_kafka_producev(host, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_VALUE("v", 1), RD_KAFKA_V_END);
        rd_kafka_flush(host, TIMEOUT_MS);
        rk = consumer_of(conf_of("bootstrap.servers", rd_kafka_mock_cluster_bootstraps(cluster), "group.id", "g", "log_level", "0",
                                 "enable.auto.commit", "false", "enable.partition.eof", "true", "auto.offset.reset", reset, NULL));
        say("%s at %s, epoch %d, %s", how, offset_name(offset), epoch, reset);
        rd_kafka_topic_partition_set_leader_epoch(&list->elems[0], epoch);
        if (!strcmp(how, "assign")) {
                say("%s", err(rd_kafka_assign(rk, list)));
        } else if (!strcmp(how, "incremental_assign")) {
                say_error("incremental_assign", rd_kafka_incremental_assign(rk, list));
        } else if (!strcmp(how, "seek")) {
                say("%s", err(rd_kafka_assign(rk, start)));
                say_error("seek", rd_kafka_seek_partitions(rk, list, TIMEOUT_MS));
        } else {
                say("%s", err(rd_kafka_commit(rk, list, 0)));
                start->elems[0].offset = RD_KAFKA_OFFSET_STORED;
                say("%s", err(rd_kafka_assign(rk, start)));
        }
        say("assignment: %s", err(rd_kafka_assignment(rk, &assigned)));
        say("%s epoch %d", offset_name(assigned->elems[0].offset), rd_kafka_topic_partition_get_leader_epoch(&assigned->elems[0]));
        message = rd_kafka_consumer_poll(rk, TIMEOUT_MS);
        say_message("first", message);
        if (message)
                rd_kafka_message_destroy(message);
        rd_kafka_topic_partition_list_destroy(assigned);
        rd_kafka_topic_partition_list_destroy(start);
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_destroy(rk);
        rd_kafka_destroy(host);
}

CASE(epochs_of_start_positions) {
        static const char *const ways[] = {"assign", "incremental_assign", "seek", "commit"};
        int i;
        for (i = 0; i < 4; i++) {
                read_from_epoch(ways[i], 1, 0, "earliest");
                read_from_epoch(ways[i], 10, 0, "earliest");
                read_from_epoch(ways[i], 10, 0, "error");
        }
        for (i = 0; i < 3; i++) {
                read_from_epoch(ways[i], 1, 7, "earliest");
                read_from_epoch(ways[i], 1, 7, "latest");
                read_from_epoch(ways[i], 1, 7, "error");
        }
        read_from_epoch("assign", RD_KAFKA_OFFSET_BEGINNING, 7, "latest");
}

CASE(commits_that_no_poll_serves) {
        int closes;
        for (closes = 0; closes < 2; closes++) {
                rd_kafka_conf_t *conf = conf_of("test.mock.num.brokers", "1", "log_level", "0", NULL);
                rd_kafka_topic_partition_list_t *list = one_partition(0, RD_KAFKA_OFFSET_INVALID);
                rd_kafka_queue_t *queue;
                rd_kafka_t *rk;
                rd_kafka_conf_set_offset_commit_cb(conf, print_commit);
                rk = member(conf);
                queue = rd_kafka_queue_get_consumer(rk);
                say("no offset: %s", err(rd_kafka_commit_queue(rk, list, queue, print_commit, NULL)));
                list->elems[0].offset = 1;
                say("an offset: %s", err(rd_kafka_commit(rk, list, 1)));
                say("poll_set_consumer: %s", err(rd_kafka_poll_set_consumer(rk)));
                rd_kafka_queue_destroy(queue);
                rd_kafka_topic_partition_list_destroy(list);
                if (closes)
                        say("close: %s", err(rd_kafka_consumer_close(rk)));
                rd_kafka_destroy(rk);
        }
}

CASE(requests_of_tokens_are_events) {
        int has_queue;
        for (has_queue = 0; has_queue < 2; has_queue++) {
                rd_kafka_conf_t *conf = conf_of("bootstrap.servers", DEAD, "log_level", "0", "security.protocol", "sasl_plaintext",
                                                "sasl.mechanisms", "OAUTHBEARER", NULL);
                rd_kafka_event_t *event;
                rd_kafka_queue_t *queue;
                rd_kafka_t *rk;
                rd_kafka_conf_enable_sasl_queue(conf, has_queue);
                rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, NULL, 0);
                queue = has_queue ? rd_kafka_queue_get_sasl(rk) : rd_kafka_queue_get_main(rk);
                event = rd_kafka_queue_poll(queue, TIMEOUT_MS);
                say("%s: %s", has_queue ? "of the SASL queue" : "of the main queue", rd_kafka_event_name(event));
                if (event)
                        rd_kafka_event_destroy(event);
                rd_kafka_queue_destroy(queue);
                rd_kafka_destroy(rk);
        }
}

CASE(calls_about_missing_topics_and_brokers) {
        rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, NULL, NULL);
        rd_kafka_mock_cluster_t *cluster = rd_kafka_handle_mock_cluster(rk);
        int32_t partition;
        for (partition = 0; partition < 3; partition++) {
                const struct rd_kafka_metadata *metadata;
                char name[8];
                rd_kafka_topic_t *topic;
                snprintf(name, sizeof(name), "t%d", partition);
                say("%s: %s", name, err(rd_kafka_mock_partition_set_leader(cluster, name, partition, 1)));
                topic = rd_kafka_topic_new(rk, name, NULL);
                if (!rd_kafka_metadata(rk, 0, topic, &metadata, TIMEOUT_MS)) {
                        say("partitions: %d", metadata->topics[0].partition_cnt);
                        rd_kafka_metadata_destroy(metadata);
                }
                rd_kafka_topic_destroy(topic);
        }
        say("a wrong delay of no broker: %s", err(rd_kafka_mock_broker_set_rtt(cluster, 9, -1)));
        say("no property, no configuration: %d", rd_kafka_topic_conf_set(NULL, "no.such.property", NULL, NULL, 0));
        rd_kafka_destroy(rk);
}
