/* Further differences that `cargo xtask abi --generate` found: interceptors, closed consumers, queries without a leader. */
#include "side_by_side.h"

static rd_kafka_t *cluster_of_one(void) {
        return producer_of(conf_of("test.mock.num.brokers", "1", "log_level", "0", NULL));
}

static const char *servers_of(rd_kafka_t *rk) {
        return rd_kafka_mock_cluster_bootstraps(rd_kafka_handle_mock_cluster(rk));
}

static void write_messages(rd_kafka_t *rk, int count) {
        while (count-- > 0)
                rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_VALUE("m", 1), RD_KAFKA_V_END);
        say("flush: %s", err(rd_kafka_flush(rk, TIMEOUT_MS)));
}

static rd_kafka_topic_partition_list_t *list_of(const char *topic, int32_t partition) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(2);
        rd_kafka_topic_partition_list_add(list, topic, partition);
        return list;
}

static rd_kafka_resp_err_t on_consume(rd_kafka_t *rk, rd_kafka_message_t *message, void *opaque UNUSED) {
        rd_kafka_topic_partition_list_t *list = list_of("t", 0);
        say("interceptor: %s", err(message->err));
        rd_kafka_position(rk, list);
        say("position: %s", offset_name(list->elems[0].offset));
        say("commit: %s", err(rd_kafka_commit(rk, NULL, 0)));
        rd_kafka_topic_partition_list_destroy(list);
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_new(rd_kafka_t *rk, const rd_kafka_conf_t *conf UNUSED, void *opaque, char *text UNUSED, size_t size UNUSED) {
        return rd_kafka_interceptor_add_on_consume(rk, "i", on_consume, opaque);
}

/* What one call of each kind returns. */
static void take(rd_kafka_t *rk, rd_kafka_queue_t *queue, int kind) {
        rd_kafka_message_t *messages[3] = {NULL, NULL, NULL};
        const rd_kafka_message_t *shown;
        rd_kafka_event_t *event;
        ssize_t count = 0, i;
        switch (kind) {
        case 0: count = (messages[0] = rd_kafka_consumer_poll(rk, TIMEOUT_MS)) ? 1 : 0; break;
        case 1: count = rd_kafka_consume_batch_queue(queue, TIMEOUT_MS, messages, 3); break;
        default:
                if (!(event = rd_kafka_queue_poll(queue, TIMEOUT_MS)))
                        break;
                if (kind == 3 && (shown = rd_kafka_event_message_next(event)))
                        say("message at %s, another %d", offset_name(shown->offset), rd_kafka_event_message_next(event) != NULL);
                else if (kind == 4)
                        say("messages: %zu, then %zu", rd_kafka_event_message_array(event, &shown, 1), rd_kafka_event_message_array(event, &shown, 1));
                rd_kafka_event_destroy(event);
        }
        for (i = 0; i < count; i++)
                rd_kafka_message_destroy(messages[i]);
}

static void intercept(int kind) {
        rd_kafka_t *cluster = cluster_of_one();
        rd_kafka_conf_t *conf = conf_of("bootstrap.servers", servers_of(cluster), "log_level", "0", "auto.offset.reset", "earliest",
                                        "enable.partition.eof", "true", "enable.auto.commit", "false", NULL);
        rd_kafka_topic_partition_list_t *list = list_of("t", 0);
        rd_kafka_queue_t *queue;
        rd_kafka_t *rk;
        int i;
        write_messages(cluster, 2);
        set(conf, "group.id", "g");
        rd_kafka_conf_interceptor_add_on_new(conf, "i", on_new, NULL);
        rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, NULL, 0);
        queue = rd_kafka_queue_get_consumer(rk);
        rd_kafka_assign(rk, list);
        /* The end of the partition is not a record. */
        for (i = 0; i < (kind == 1 ? 1 : 3); i++)
                take(rk, queue, kind);
        rd_kafka_position(rk, list);
        say("position in the end: %s", offset_name(list->elems[0].offset));
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
        rd_kafka_destroy(cluster);
}

CASE(interceptors_run_before_the_position) {
        intercept(0);
        intercept(1);
}

CASE(interceptors_of_fetch_events) { intercept(2); }

CASE(interceptors_of_events_that_are_read) {
        intercept(3);
        intercept(4);
}

static rd_kafka_event_t *fetched(rd_kafka_queue_t *queue) {
        rd_kafka_event_t *event = rd_kafka_queue_poll(queue, TIMEOUT_MS);
        while (event && rd_kafka_event_type(event) != RD_KAFKA_EVENT_FETCH) {
                rd_kafka_event_destroy(event);
                event = rd_kafka_queue_poll(queue, TIMEOUT_MS);
        }
        return event;
}

static void show(rd_kafka_t *rk, rd_kafka_event_t *event) {
        rd_kafka_topic_partition_list_t *list = list_of("t", 0);
        const rd_kafka_message_t *message = event ? rd_kafka_event_message_next(event) : NULL;
        say("message: %s", message ? offset_name(message->offset) : "none");
        rd_kafka_position(rk, list);
        say("position: %s", offset_name(list->elems[0].offset));
        say("commit: %s", err(rd_kafka_commit(rk, NULL, 0)));
        rd_kafka_committed(rk, list, TIMEOUT_MS);
        say("committed: %s", offset_name(list->elems[0].offset));
        rd_kafka_topic_partition_list_destroy(list);
}

/* Events that the application holds while it polls others, seeks or revokes. */
CASE(events_that_are_read_later) {
        rd_kafka_t *cluster = cluster_of_one();
        rd_kafka_conf_t *conf = conf_of("bootstrap.servers", servers_of(cluster), "log_level", "0", "auto.offset.reset", "earliest",
                                        "enable.auto.commit", "false", "group.id", "g", NULL);
        rd_kafka_topic_partition_list_t *list = list_of("t", 0);
        rd_kafka_event_t *events[4];
        rd_kafka_queue_t *queue;
        rd_kafka_t *rk;
        int i;
        write_messages(cluster, 4);
        rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, NULL, 0);
        queue = rd_kafka_queue_get_consumer(rk);
        rd_kafka_assign(rk, list);
        for (i = 0; i < 4; i++)
                events[i] = fetched(queue);
        show(rk, NULL);
        show(rk, events[1]);
        show(rk, events[0]);
        list->elems[0].offset = 1;
        rd_kafka_error_destroy(rd_kafka_seek_partitions(rk, list, TIMEOUT_MS));
        show(rk, NULL);
        show(rk, events[2]);
        rd_kafka_assign(rk, NULL);
        say("after the revocation: %d", rd_kafka_event_message_next(events[3]) != NULL);
        for (i = 0; i < 4; i++)
                rd_kafka_event_destroy(events[i]);
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
        rd_kafka_destroy(cluster);
}

static struct recorder commits = RECORDER;

static void on_commit(rd_kafka_t *rk UNUSED, rd_kafka_resp_err_t code, rd_kafka_topic_partition_list_t *list, void *opaque UNUSED) {
        record(&commits, "%s, a list of %d", err(code), list ? list->cnt : -1);
}

CASE(commit_after_close_reports_to_its_queue) {
        int is_listed, kind;
        for (is_listed = 0; is_listed < 2; is_listed++)
                for (kind = 0; kind < 4; kind++) {
                        rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf_of("group.id", "g", "log_level", "0", NULL), NULL, 0);
                        rd_kafka_queue_t *queue = kind ? rd_kafka_queue_new(rk) : rd_kafka_queue_get_background(rk);
                        rd_kafka_topic_partition_list_t *list = list_of("t", 0);
                        int before = recorded(&commits);
                        list->elems[0].offset = 1;
                        rd_kafka_consumer_close(rk);
                        say("commit: %s", err(rd_kafka_commit_queue(rk, is_listed ? list : NULL, queue, on_commit, NULL)));
                        if (kind)
                                say("queue: %zu", rd_kafka_queue_length(queue));
                        if (kind == 0)
                                UNTIL(recorded(&commits) > before, usleep(1000));
                        else if (kind == 1)
                                say("message: %s", rd_kafka_consume_queue(queue, 0) ? "one" : "none");
                        else if (kind == 2)
                                rd_kafka_queue_poll_callback(queue, 0);
                        else
                                say("event: %s", rd_kafka_queue_poll(queue, 0) ? "one" : "none");
                        say("callbacks: %d", recorded(&commits) - before);
                        rd_kafka_topic_partition_list_destroy(list);
                        rd_kafka_queue_destroy(queue);
                        rd_kafka_destroy(rk);
                }
        say_recorded("commits", &commits);
}

static void list_offsets(rd_kafka_t *rk, const char *what, rd_kafka_topic_partition_list_t *list) {
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
        rd_kafka_event_t *event;
        size_t count = 0, i;
        int at;
        for (at = 0; at < list->cnt; at++)
                list->elems[at].offset = RD_KAFKA_OFFSET_SPEC_LATEST;
        rd_kafka_ListOffsets(rk, list, NULL, queue);
        event = rd_kafka_queue_poll(queue, TIMEOUT_MS);
        say("%s: %s", what, err(rd_kafka_event_error(event)));
        if (!rd_kafka_event_error(event)) {
                const rd_kafka_ListOffsetsResultInfo_t **infos =
                    rd_kafka_ListOffsets_result_infos(rd_kafka_event_ListOffsets_result(event), &count);
                for (i = 0; i < count; i++) {
                        const rd_kafka_topic_partition_t *partition = rd_kafka_ListOffsetsResultInfo_topic_partition(infos[i]);
                        say("%s [%d]: %s", partition->topic, partition->partition, err(partition->err));
                }
        }
        rd_kafka_event_destroy(event);
        rd_kafka_queue_destroy(queue);
        rd_kafka_topic_partition_list_destroy(list);
}

CASE(offsets_of_partitions_without_leaders) {
        rd_kafka_t *rk = cluster_of_one();
        rd_kafka_topic_partition_list_t *list = list_of("t", 99);
        write_messages(rk, 1);
        list_offsets(rk, "one partition", list_of("t", 99));
        rd_kafka_topic_partition_list_add(list, "t", 0);
        list_offsets(rk, "one of two partitions", list);
        list = list_of("t", 98);
        rd_kafka_topic_partition_list_add(list, "t", 99);
        list_offsets(rk, "two partitions", list);
        rd_kafka_destroy(rk);
}

static void on_queue(rd_kafka_t *rk UNUSED, void *opaque) { record(opaque, "called"); }

CASE(end_of_a_consumer_is_not_an_event) {
        static struct recorder calls = RECORDER;
        rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf_of("log_level", "0", NULL), NULL, 0);
        rd_kafka_queue_t *queue = rd_kafka_queue_get_partition(rk, "t", 0);
        rd_kafka_queue_cb_event_enable(queue, on_queue, &calls);
        say("message: %s", rd_kafka_consume_queue(queue, 0) ? "one" : "none");
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
        say_recorded("calls", &calls);
}

CASE(close_after_a_fatal_error) {
        rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf_of("log_level", "0", "group.id", "g", NULL), NULL, 0);
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
        say("fatal error: %s", err(rd_kafka_test_fatal_error(rk, RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, "r")));
        say_error("to a queue", rd_kafka_consumer_close_queue(rk, queue));
        say("close: %s", err(rd_kafka_consumer_close(rk)));
        say("closed: %d", rd_kafka_consumer_closed(rk));
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy_flags(rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
}
