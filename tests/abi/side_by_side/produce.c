/* Producing without brokers: the results of the calls, and every order of produce, purge, flush, poll and destroy. */
#include "side_by_side.h"

static rd_kafka_t *producer(const char *name, const char *value) {
        rd_kafka_conf_t *conf = conf_of("bootstrap.servers", DEAD, "linger.ms", "0", name, value, NULL);
        /* Connection errors would be events in the queue, and would change the counts. */
        rd_kafka_conf_set_error_cb(conf, NULL);
        return producer_of(conf);
}

static void produce(rd_kafka_t *rk, const char *value) {
        say("produce %s: %s", value, err(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("topic"), RD_KAFKA_V_VALUE((void *)value, strlen(value)), RD_KAFKA_V_END)));
}

CASE(purge_queue_then_poll) {
        rd_kafka_t *rk = producer(NULL, NULL);
        produce(rk, "one");
        produce(rk, "two");
        say("purge %s", err(rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE)));
        UNTIL(recorded(&reports) == 2, rd_kafka_poll(rk, 50));
        say_recorded("reports", &reports);
        rd_kafka_destroy(rk);
}

CASE(purge_in_flight_and_non_blocking) {
        rd_kafka_t *rk = producer(NULL, NULL);
        produce(rk, "one");
        say("in flight %s", err(rd_kafka_purge(rk, RD_KAFKA_PURGE_F_INFLIGHT)));
        rd_kafka_poll(rk, 100);
        say("reports %d", recorded(&reports));
        say("non blocking alone %s", err(rd_kafka_purge(rk, RD_KAFKA_PURGE_F_NON_BLOCKING)));
        say("nothing %s", err(rd_kafka_purge(rk, 0)));
        say("unknown flags %s", err(rd_kafka_purge(rk, 0x100)));
        say("queue, non blocking %s", err(rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_NON_BLOCKING)));
        UNTIL(recorded(&reports) == 1, rd_kafka_poll(rk, 50));
        say_recorded("reports", &reports);
        rd_kafka_destroy(rk);
}

CASE(purge_of_an_empty_queue) {
        rd_kafka_t *rk = producer(NULL, NULL);
        say("purge %s", err(rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE)));
        say("all %s", err(rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT)));
        rd_kafka_destroy(rk);
        misuse("purge(NULL)") say("%s", err(rd_kafka_purge(NULL, RD_KAFKA_PURGE_F_QUEUE)));
}

CASE(flush_times_out) {
        rd_kafka_t *rk = producer(NULL, NULL);
        long began;
        say("flush of nothing %s", err(rd_kafka_flush(rk, 1000)));
        produce(rk, "one");
        began = millis();
        say("flush %s", err(rd_kafka_flush(rk, 600)));
        say("took %s", took(began, 600));
        began = millis();
        say("flush 0 %s", err(rd_kafka_flush(rk, 0)));
        say("took %s", took(began, 600));
        say_recorded("reports", &reports);
        say("purge %s", err(rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE)));
        say("flush %s", err(rd_kafka_flush(rk, 5000)));
        say_recorded("reports", &reports);
        rd_kafka_destroy(rk);
}

CASE(flush_without_callback_waits_for_polls) {
        rd_kafka_t *rk;
        rd_kafka_conf_t *conf = conf_of("test.mock.num.brokers", "1", "linger.ms", "60000", NULL);
        long began;
        rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_DR);
        rk = start(RD_KAFKA_PRODUCER, conf);
        produce(rk, "one");
        rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE);
        began = millis();
        say("flush with an event that nobody takes: %s", err(rd_kafka_flush(rk, 600)));
        say("took %s", took(began, 600));
        {
                rd_kafka_queue_t *queue = rd_kafka_queue_get_main(rk);
                rd_kafka_event_t *event;
                UNTIL((event = rd_kafka_queue_poll(queue, 50)), (void)0);
                say("event %s messages %zu", rd_kafka_event_name(event), rd_kafka_event_message_count(event));
                rd_kafka_event_destroy(event);
                rd_kafka_queue_destroy(queue);
        }
        say("flush %s", err(rd_kafka_flush(rk, 600)));
        rd_kafka_destroy(rk);
}

CASE(messages_time_out) {
        rd_kafka_t *rk = producer("message.timeout.ms", "400");
        long began = millis();
        produce(rk, "one");
        produce(rk, "two");
        UNTIL(recorded(&reports) == 2, rd_kafka_poll(rk, 50));
        say("took %s", took(began, 400));
        say_recorded("reports", &reports);
        say("flush %s", err(rd_kafka_flush(rk, 5000)));
        rd_kafka_destroy(rk);
}

CASE(no_servers_at_all) {
        rd_kafka_t *rk = producer_of(conf_of("message.timeout.ms", "500", NULL));
        long began = millis();
        produce(rk, "one");
        UNTIL(recorded(&reports) == 1, rd_kafka_poll(rk, 50));
        say("took %s", took(began, 500));
        say_recorded("reports", &reports);
        rd_kafka_destroy(rk);
        say_recorded_set("errors", &errors);
}

CASE(destroy_with_messages) {
        rd_kafka_t *rk = producer(NULL, NULL);
        long began;
        produce(rk, "one");
        began = millis();
        rd_kafka_destroy(rk);
        say("took %s", took(began, 4000));
        say_recorded("reports", &reports);
        say("facility TERMINATE %d", recorded_with(&logs, "TERM") > 0);
}

CASE(queue_full_by_count) {
        rd_kafka_t *rk = producer_of(conf_of("bootstrap.servers", DEAD, "queue.buffering.max.messages", "3", NULL));
        int i;
        for (i = 0; i < 5; i++)
                produce(rk, "x");
        rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE);
        say("after a purge without a poll");
        produce(rk, "y");
        UNTIL(recorded(&reports) == 3, rd_kafka_poll(rk, 50));
        produce(rk, "z");
        rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE);
        say("flush %s", err(rd_kafka_flush(rk, 5000)));
        say_recorded("reports", &reports);
        rd_kafka_destroy(rk);
}

CASE(queue_full_by_size) {
        rd_kafka_t *rk = producer_of(conf_of("bootstrap.servers", DEAD, "queue.buffering.max.kbytes", "1", NULL));
        char *value = calloc(1, 400);
        int i;
        for (i = 0; i < 4; i++)
                say("%s", err(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_VALUE(value, 400), RD_KAFKA_V_END)));
        rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE);
        rd_kafka_flush(rk, 5000);
        free(value);
        rd_kafka_destroy(rk);
}

CASE(queue_full_blocks) {
        rd_kafka_t *rk = producer_of(conf_of("bootstrap.servers", DEAD, "queue.buffering.max.messages", "1", "message.timeout.ms", "700", NULL));
        long began = millis();
        rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, "t", NULL);
        produce(rk, "one");
        say("blocks: %d", rd_kafka_produce(topic, RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY, "x", 1, NULL, 0, NULL));
        say("last error %s errno %s", err(rd_kafka_last_error()), errno_name(errno));
        (void)began;
        rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE);
        rd_kafka_flush(rk, 5000);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
}

CASE(message_too_large) {
        rd_kafka_t *rk = producer("message.max.bytes", "1000");
        rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, "topic", NULL);
        char *value = calloc(1, 2000);
        static const size_t sizes[] = {400, 900, 999, 1000, 1001, 2000};
        size_t i;
        for (i = 0; i < 6; i++) {
                int result = rd_kafka_produce(topic, 0, RD_KAFKA_MSG_F_COPY, value, sizes[i], NULL, 0, NULL);
                say("%zu bytes: %d %s errno %s", sizes[i], result, result ? err(rd_kafka_last_error()) : "", result ? errno_name(errno) : "");
        }
        say("key of 1001: %d %s", rd_kafka_produce(topic, 0, RD_KAFKA_MSG_F_COPY, NULL, 0, value, 1001, NULL), err(rd_kafka_last_error()));
        rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE);
        rd_kafka_flush(rk, 5000);
        say("reports %d", recorded(&reports));
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
        free(value);
}

CASE(bad_partitions) {
        rd_kafka_t *rk = producer("message.timeout.ms", "400");
        rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, "topic", NULL);
        static const int partitions[] = {-2, -1, 0, 7, 2147483647};
        size_t i;
        for (i = 0; i < 5; i++) {
                int result = rd_kafka_produce(topic, partitions[i], RD_KAFKA_MSG_F_COPY, "x", 1, NULL, 0, NULL);
                say("partition %d: %d %s", partitions[i], result, result ? err(rd_kafka_last_error()) : "");
        }
        rd_kafka_flush(rk, 10000);
        say_recorded_set("reports", &reports);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
}

CASE(topic_names) {
        rd_kafka_t *rk = producer("message.timeout.ms", "400");
        char name[600];
        static const size_t lengths[] = {1, 249, 250, 512, 513};
        size_t i;
        for (i = 0; i < 5; i++) {
                rd_kafka_topic_t *topic;
                memset(name, 'n', sizeof(name));
                name[lengths[i]] = '\0';
                errno = 0;
                topic = rd_kafka_topic_new(rk, name, NULL);
                say("length %zu: %s %s %s", lengths[i], topic ? "present" : "NULL", topic ? "" : err(rd_kafka_last_error()), topic ? "" : errno_name(errno));
                if (topic)
                        rd_kafka_topic_destroy(topic);
        }
        say("empty: %s %s", rd_kafka_topic_new(rk, "", NULL) ? "present" : "NULL", err(rd_kafka_last_error()));
        say("producev empty: %s", err(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(""), RD_KAFKA_V_VALUE("x", 1), RD_KAFKA_V_END)));
        say("producev blanks: %s", err(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("a b/c"), RD_KAFKA_V_VALUE("x", 1), RD_KAFKA_V_END)));
        say("producev dots: %s", err(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(".."), RD_KAFKA_V_VALUE("x", 1), RD_KAFKA_V_END)));
        say("producev without a topic: %s", err(rd_kafka_producev(rk, RD_KAFKA_V_VALUE("x", 1), RD_KAFKA_V_END)));
        say("producev with nothing: %s", err(rd_kafka_producev(rk, RD_KAFKA_V_END)));
        rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE);
        rd_kafka_flush(rk, 5000);
        rd_kafka_destroy(rk);
}

CASE(arguments_of_producev) {
        rd_kafka_t *rk = producer(NULL, NULL);
        rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, "handle", NULL);
        rd_kafka_headers_t *headers = rd_kafka_headers_new(1);
        rd_kafka_header_add(headers, "h", -1, "1", -1);
        say("topic handle: %s", err(rd_kafka_producev(rk, RD_KAFKA_V_RKT(topic), RD_KAFKA_V_VALUE("x", 1), RD_KAFKA_V_END)));
        say("both: %s", err(rd_kafka_producev(rk, RD_KAFKA_V_RKT(topic), RD_KAFKA_V_TOPIC("name"), RD_KAFKA_V_VALUE("x", 1), RD_KAFKA_V_END)));
        say("partition: %s", err(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("name"), RD_KAFKA_V_PARTITION(3), RD_KAFKA_V_KEY("k", 1), RD_KAFKA_V_END)));
        say("timestamp: %s", err(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("name"), RD_KAFKA_V_TIMESTAMP(12345), RD_KAFKA_V_OPAQUE(rk), RD_KAFKA_V_END)));
        say("negative timestamp: %s", err(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("name"), RD_KAFKA_V_TIMESTAMP(-5), RD_KAFKA_V_END)));
        say("header: %s", err(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("name"), RD_KAFKA_V_HEADER("a", "b", -1), RD_KAFKA_V_END)));
        say("headers: %s", err(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("name"), RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_END)));
        headers = rd_kafka_headers_new(1);
        say("header and headers: %s",
            err(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("name"), RD_KAFKA_V_HEADER("a", "b", -1), RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_END)));
        say("flags copy and free: %s",
            err(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("name"), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_VALUE("x", 1), RD_KAFKA_V_END)));
        say("unknown tag: %s", err(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("name"), 999, RD_KAFKA_V_END)));
        rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE);
        rd_kafka_flush(rk, 5000);
        say_recorded_set("reports", &reports);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
}

CASE(produceva) {
        rd_kafka_t *rk = producer(NULL, NULL);
        rd_kafka_vu_t arguments[4];
        memset(arguments, 0, sizeof(arguments));
        arguments[0].vtype = RD_KAFKA_VTYPE_TOPIC;
        arguments[0].u.cstr = "name";
        arguments[1].vtype = RD_KAFKA_VTYPE_VALUE;
        arguments[1].u.mem.ptr = "value";
        arguments[1].u.mem.size = 5;
        arguments[2].vtype = RD_KAFKA_VTYPE_OPAQUE;
        arguments[2].u.ptr = rk;
        say_error("three", rd_kafka_produceva(rk, arguments, 3));
        say_error("none", rd_kafka_produceva(rk, arguments, 0));
        arguments[2].vtype = 888;
        say_error("unknown", rd_kafka_produceva(rk, arguments, 3));
        say_error("without a topic", rd_kafka_produceva(rk, arguments + 1, 1));
        rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE);
        rd_kafka_flush(rk, 5000);
        say_recorded("reports", &reports);
        rd_kafka_destroy(rk);
}

CASE(produce_batch) {
        rd_kafka_t *rk = producer_of(conf_of("bootstrap.servers", DEAD, "queue.buffering.max.messages", "3", "message.max.bytes", "1000", NULL));
        rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, "topic", NULL);
        static char large[1500];
        rd_kafka_message_t messages[6];
        int i;
        memset(messages, 0, sizeof(messages));
        for (i = 0; i < 6; i++) {
                messages[i].payload = i == 1 ? large : "value";
                messages[i].len = i == 1 ? sizeof(large) : 5;
                messages[i].partition = i;
        }
        say("accepted %d", rd_kafka_produce_batch(topic, RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY, messages, 6));
        for (i = 0; i < 6; i++)
                say("  %d: %s", i, err(messages[i].err));
        say("none %d", rd_kafka_produce_batch(topic, 0, RD_KAFKA_MSG_F_COPY, messages, 0));
        rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE);
        rd_kafka_flush(rk, 5000);
        say("partitions of their own %d", rd_kafka_produce_batch(topic, 0, RD_KAFKA_MSG_F_COPY | RD_KAFKA_MSG_F_PARTITION, messages, 1));
        rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE);
        rd_kafka_flush(rk, 5000);
        say_recorded_set("reports", &reports);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
}

static int asked;
static int32_t partitioner(const rd_kafka_topic_t *topic UNUSED, const void *key UNUSED, size_t size UNUSED, int32_t count UNUSED, void *opaque UNUSED,
                           void *message UNUSED) {
        asked++;
        return 0;
}

CASE(partitioner_is_not_asked_without_metadata) {
        rd_kafka_t *rk = producer(NULL, NULL);
        rd_kafka_topic_conf_t *conf = rd_kafka_topic_conf_new();
        rd_kafka_topic_t *topic;
        rd_kafka_topic_conf_set_partitioner_cb(conf, partitioner);
        rd_kafka_topic_conf_set_opaque(conf, &asked);
        topic = rd_kafka_topic_new(rk, "topic", conf);
        say("opaque of the topic %d", rd_kafka_topic_opaque(topic) == &asked);
        say("name %s", rd_kafka_topic_name(topic));
        say("available %d", rd_kafka_topic_partition_available(topic, 0));
        say("produce %d", rd_kafka_produce(topic, RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY, "x", 1, NULL, 0, NULL));
        say("asked %d", asked);
        rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE);
        rd_kafka_flush(rk, 5000);
        say_recorded("reports", &reports);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
}

CASE(partitioners) {
        rd_kafka_t *rk = producer(NULL, NULL);
        rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, "topic", NULL);
        static const char *const keys[] = {"", "a", "key", "another key", "\xc3\xa4"};
        size_t i;
        for (i = 0; i < 5; i++) {
                size_t size = strlen(keys[i]);
                say("key %zu: consistent %d consistent_random %d murmur2 %d murmur2_random %d fnv1a %d fnv1a_random %d", i,
                    rd_kafka_msg_partitioner_consistent(topic, keys[i], size, 17, NULL, NULL),
                    size ? rd_kafka_msg_partitioner_consistent_random(topic, keys[i], size, 17, NULL, NULL) : -1,
                    rd_kafka_msg_partitioner_murmur2(topic, keys[i], size, 17, NULL, NULL),
                    rd_kafka_msg_partitioner_murmur2_random(topic, keys[i], size, 17, NULL, NULL),
                    rd_kafka_msg_partitioner_fnv1a(topic, keys[i], size, 17, NULL, NULL),
                    rd_kafka_msg_partitioner_fnv1a_random(topic, keys[i], size, 17, NULL, NULL));
        }
        say("NULL: consistent %d murmur2 %d fnv1a %d", rd_kafka_msg_partitioner_consistent(topic, NULL, 0, 17, NULL, NULL),
            rd_kafka_msg_partitioner_murmur2(topic, NULL, 0, 17, NULL, NULL), rd_kafka_msg_partitioner_fnv1a(topic, NULL, 0, 17, NULL, NULL));
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
}

static void old_report(rd_kafka_t *rk UNUSED, void *payload, size_t size, rd_kafka_resp_err_t code, void *opaque, void *message) {
        record(&reports, "value %.*s error %s opaque %s message %s", (int)size, (char *)payload, err(code), present(opaque ? "x" : NULL), present(message ? "x" : NULL));
}

CASE(old_report_callback) {
        rd_kafka_conf_t *conf = conf_of("bootstrap.servers", DEAD, NULL);
        rd_kafka_t *rk;
        rd_kafka_conf_set_dr_cb(conf, old_report);
        rd_kafka_conf_set_opaque(conf, &reports);
        rk = start(RD_KAFKA_PRODUCER, conf);
        say("produce %s", err(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_VALUE("x", 1), RD_KAFKA_V_OPAQUE(rk), RD_KAFKA_V_END)));
        rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE);
        UNTIL(recorded(&reports) == 1, rd_kafka_poll(rk, 50));
        say_recorded("reports", &reports);
        rd_kafka_destroy(rk);
}

CASE(reports_of_errors_only) {
        rd_kafka_t *rk = producer("delivery.report.only.error", "true");
        produce(rk, "one");
        rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE);
        say("flush %s", err(rd_kafka_flush(rk, 5000)));
        say_recorded("reports", &reports);
        rd_kafka_destroy(rk);
}

CASE(two_handles_of_a_topic) {
        rd_kafka_t *rk = producer(NULL, NULL);
        rd_kafka_topic_conf_t *conf = rd_kafka_topic_conf_new();
        rd_kafka_topic_t *one, *other;
        rd_kafka_topic_conf_set(conf, "message.timeout.ms", "500", NULL, 0);
        one = rd_kafka_topic_new(rk, "t", conf);
        other = rd_kafka_topic_new(rk, "t", NULL);
        say("the same object: %d", one == other);
        say("produce %d", rd_kafka_produce(other, 0, RD_KAFKA_MSG_F_COPY, "x", 1, NULL, 0, NULL));
        UNTIL(recorded(&reports) == 1, rd_kafka_poll(rk, 50));
        say_recorded("reports", &reports);
        rd_kafka_topic_destroy(one);
        rd_kafka_topic_destroy(other);
        rd_kafka_destroy(rk);
}

CASE(topic_conf_errors_at_topic_new) {
        rd_kafka_t *rk = producer(NULL, NULL);
        rd_kafka_topic_conf_t *conf = rd_kafka_topic_conf_new();
        rd_kafka_topic_t *topic;
        rd_kafka_topic_conf_set(conf, "message.timeout.ms", "1", NULL, 0);
        topic = rd_kafka_topic_new(rk, "t", conf);
        say("%s", topic ? "present" : "NULL");
        if (topic)
                rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
        rk = producer("enable.idempotence", "true");
        conf = rd_kafka_topic_conf_new();
        rd_kafka_topic_conf_set(conf, "acks", "1", NULL, 0);
        topic = rd_kafka_topic_new(rk, "t", conf);
        say("idempotent with acks 1: %s %s %s", topic ? "present" : "NULL", err(rd_kafka_last_error()), topic ? "" : errno_name(errno));
        rd_kafka_destroy(rk);
}

CASE(acks_up_to_a_thousand) {
        static const char *const values[] = {"-2", "-1", "0", "1", "2", "1000", "1001", "all", "some"};
        size_t i;
        for (i = 0; i < 9; i++) {
                rd_kafka_conf_t *conf = conf_of("bootstrap.servers", DEAD, NULL);
                char errstr[512] = "", value[32] = "";
                size_t size = sizeof(value);
                rd_kafka_t *rk;
                say("%s: %s", values[i], conf_res(rd_kafka_conf_set(conf, "acks", values[i], errstr, sizeof(errstr))));
                rd_kafka_conf_get(conf, "acks", value, &size);
                rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof(errstr));
                say("value %s, client %s", value, rk ? "present" : "NULL");
                if (rk)
                        rd_kafka_destroy(rk);
                else
                        rd_kafka_conf_destroy(conf);
        }
}

CASE(calls_without_time) {
        rd_kafka_t *rk = producer(NULL, NULL);
        /* Errors of connections are entries too: whether some have come is a matter of speed. */
        say("poll %s flush %s", rd_kafka_poll(rk, 0) >= 0 ? "returns" : "fails", err(rd_kafka_flush(rk, 0)));
        produce(rk, "one");
        say("poll %s flush %s", rd_kafka_poll(rk, 0) >= 0 ? "returns" : "fails", err(rd_kafka_flush(rk, 0)));
        say("purge %s", err(rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE)));
        UNTIL(recorded(&reports) == 1, rd_kafka_poll(rk, 0));
        say("flush %s length %d", err(rd_kafka_flush(rk, 0)), rd_kafka_outq_len(rk));
        say_recorded("reports", &reports);
        rd_kafka_destroy(rk);
}

/* ---- Results of partitioners ---- */

static int32_t chosen_partition;
static int32_t choose(const rd_kafka_topic_t *topic, const void *key, size_t size, int32_t count, void *opaque, void *message) {
        record(&statistics, "asked for %s key %.*s of %d partitions opaque %s message %s", rd_kafka_topic_name(topic), (int)size, size ? (const char *)key : "", count,
               present(opaque ? "x" : NULL), present(message ? "x" : NULL));
        return chosen_partition;
}

/* A producer on one mock broker whose topics have 4 partitions. */
static rd_kafka_t *mocked(const char *name, const char *value) {
        rd_kafka_conf_t *conf = conf_of("test.mock.num.brokers", "1", "linger.ms", "0", "message.timeout.ms", "8000", name, value, NULL);
        rd_kafka_conf_set_error_cb(conf, NULL);
        return producer_of(conf);
}

static void partitioner_returns(int32_t partition) {
        rd_kafka_t *rk = mocked(NULL, NULL);
        rd_kafka_topic_conf_t *conf = rd_kafka_topic_conf_new();
        rd_kafka_topic_t *topic;
        const struct rd_kafka_metadata *metadata;
        chosen_partition = partition;
        rd_kafka_topic_conf_set_partitioner_cb(conf, choose);
        rd_kafka_topic_conf_set_opaque(conf, &asked);
        topic = rd_kafka_topic_new(rk, "topic", conf);
        /* From here on the number of partitions is known; an earlier message would be assigned at an arbitrary time. */
        say("metadata %s", err(rd_kafka_metadata(rk, 0, topic, &metadata, 10000)));
        rd_kafka_metadata_destroy(metadata);
        usleep(300000);
        errno = 0;
        say("produce %d", rd_kafka_produce(topic, RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY, "y", 1, "l", 1, NULL));
        say("producev %s", err(rd_kafka_producev(rk, RD_KAFKA_V_RKT(topic), RD_KAFKA_V_VALUE("z", 1), RD_KAFKA_V_END)));
        say("flush %s", err(rd_kafka_flush(rk, 10000)));
        say_recorded("reports", &reports);
        say_recorded_set("calls", &statistics);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
}
CASE(partitioner_returns_the_first) { partitioner_returns(0); }
CASE(partitioner_returns_the_last) { partitioner_returns(3); }
CASE(partitioner_returns_no_partition) { partitioner_returns(-1); }
CASE(partitioner_returns_minus_two) { partitioner_returns(-2); }
CASE(partitioner_returns_the_count) { partitioner_returns(4); }
CASE(partitioner_returns_the_largest_number) { partitioner_returns(2147483647); }

/* ---- Delivery reports ---- */

static void event_reports(const char *only_error) {
        rd_kafka_conf_t *conf = conf_of("bootstrap.servers", DEAD, "delivery.report.only.error", only_error, NULL);
        rd_kafka_t *rk;
        rd_kafka_queue_t *queue;
        rd_kafka_event_t *event;
        const rd_kafka_message_t *message;
        rd_kafka_conf_set_error_cb(conf, NULL);
        rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_DR);
        rk = start(RD_KAFKA_PRODUCER, conf);
        queue = rd_kafka_queue_get_main(rk);
        say("produce %s", err(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_VALUE("x", 1), RD_KAFKA_V_OPAQUE(rk), RD_KAFKA_V_END)));
        rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE);
        /* Connection errors are events, too. */
        UNTIL((event = rd_kafka_queue_poll(queue, 50)) && rd_kafka_event_type(event) == RD_KAFKA_EVENT_DR, rd_kafka_event_destroy(event));
        say("event %s count %zu", rd_kafka_event_name(event), rd_kafka_event_message_count(event));
        while ((message = rd_kafka_event_message_next(event)))
                say("%.*s %s own opaque %d", (int)message->len, (char *)message->payload, err(message->err), message->_private == rk);
        rd_kafka_event_destroy(event);
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
}
CASE(reports_as_events) { event_reports("false"); }
CASE(reports_as_events_of_errors_only) { event_reports("true"); }

CASE(both_report_callbacks) {
        rd_kafka_conf_t *conf = conf_of("bootstrap.servers", DEAD, NULL);
        rd_kafka_t *rk;
        rd_kafka_conf_set_dr_cb(conf, old_report);
        rk = producer_of(conf);
        produce(rk, "one");
        rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE);
        say("flush %s", err(rd_kafka_flush(rk, 5000)));
        say_recorded("reports", &reports);
        rd_kafka_destroy(rk);
}

CASE(no_report_callback_at_all) {
        rd_kafka_conf_t *conf = conf_of("bootstrap.servers", DEAD, NULL);
        rd_kafka_t *rk;
        rd_kafka_conf_set_error_cb(conf, NULL);
        rk = start(RD_KAFKA_PRODUCER, conf);
        produce(rk, "one");
        rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE);
        UNTIL(rd_kafka_outq_len(rk) == 0, rd_kafka_poll(rk, 10));
        say("flush %s", err(rd_kafka_flush(rk, 5000)));
        rd_kafka_destroy(rk);
}

CASE(reports_of_errors_only_when_delivered) {
        rd_kafka_t *rk = mocked("delivery.report.only.error", "true");
        produce(rk, "one");
        say("flush %s", err(rd_kafka_flush(rk, 10000)));
        say("length %d reports %d", rd_kafka_outq_len(rk), recorded(&reports));
        rd_kafka_destroy(rk);
}

/* ---- After a fatal error ---- */

CASE(produce_after_a_fatal_error) {
        rd_kafka_t *rk = producer("enable.idempotence", "true");
        rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, "topic", NULL);
        rd_kafka_message_t message;
        rd_kafka_vu_t arguments[1];
        char text[64] = "";
        produce(rk, "before");
        say("set %s", err(rd_kafka_test_fatal_error(rk, RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, "a test")));
        say("set again %s", err(rd_kafka_test_fatal_error(rk, RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID, "another")));
        say("fatal %s", err(rd_kafka_fatal_error(rk, text, sizeof(text))));
        produce(rk, "after");
        errno = 0;
        say("produce %d", rd_kafka_produce(topic, 0, RD_KAFKA_MSG_F_COPY, "x", 1, NULL, 0, NULL));
        say("last error %s errno %s", err(rd_kafka_last_error()), errno_name(errno));
        memset(&message, 0, sizeof(message));
        message.payload = "x";
        message.len = 1;
        say("batch %d", rd_kafka_produce_batch(topic, 0, RD_KAFKA_MSG_F_COPY, &message, 1));
        say("message %s", err(message.err));
        memset(arguments, 0, sizeof(arguments));
        arguments[0].vtype = RD_KAFKA_VTYPE_TOPIC;
        arguments[0].u.cstr = "name";
        say_error("produceva", rd_kafka_produceva(rk, arguments, 1));
        say("purge %s", err(rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE)));
        say("flush %s", err(rd_kafka_flush(rk, 5000)));
        say_recorded("reports", &reports);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
}

/* ---- Arguments ---- */

CASE(values_and_keys_of_no_bytes) {
        rd_kafka_t *rk = producer(NULL, NULL);
        rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, "topic", NULL);
        say("NULL, 0: %d", rd_kafka_produce(topic, 0, RD_KAFKA_MSG_F_COPY, NULL, 0, NULL, 0, NULL));
        say("empty: %d", rd_kafka_produce(topic, 1, RD_KAFKA_MSG_F_COPY, "", 0, "", 0, NULL));
        say("no flags: %d", rd_kafka_produce(topic, 2, 0, "kept", 4, "key", 3, rk));
        say("free: %d", rd_kafka_produce(topic, 3, RD_KAFKA_MSG_F_FREE, strdup("given"), 5, NULL, 0, NULL));
        rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE);
        say("flush %s", err(rd_kafka_flush(rk, 5000)));
        say_recorded_set("reports", &reports);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
}

CASE(every_argument_of_produceva) {
        rd_kafka_t *rk = producer(NULL, NULL);
        rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, "handle", NULL);
        rd_kafka_vu_t arguments[9];
        memset(arguments, 0, sizeof(arguments));
        arguments[0].vtype = RD_KAFKA_VTYPE_RKT;
        arguments[0].u.rkt = topic;
        arguments[1].vtype = RD_KAFKA_VTYPE_PARTITION;
        arguments[1].u.i32 = 5;
        arguments[2].vtype = RD_KAFKA_VTYPE_VALUE;
        arguments[2].u.mem.ptr = "value";
        arguments[2].u.mem.size = 5;
        arguments[3].vtype = RD_KAFKA_VTYPE_KEY;
        arguments[3].u.mem.ptr = "key";
        arguments[3].u.mem.size = 3;
        arguments[4].vtype = RD_KAFKA_VTYPE_OPAQUE;
        arguments[4].u.ptr = rk;
        arguments[5].vtype = RD_KAFKA_VTYPE_MSGFLAGS;
        arguments[5].u.i = RD_KAFKA_MSG_F_COPY;
        arguments[6].vtype = RD_KAFKA_VTYPE_TIMESTAMP;
        arguments[6].u.i64 = 1234567;
        arguments[7].vtype = RD_KAFKA_VTYPE_HEADER;
        arguments[7].u.header.name = "name";
        arguments[7].u.header.val = "value";
        arguments[7].u.header.size = 5;
        say_error("all", rd_kafka_produceva(rk, arguments, 8));
        arguments[8] = arguments[2];
        arguments[8].u.mem.ptr = "later";
        say_error("a value twice", rd_kafka_produceva(rk, arguments, 9));
        arguments[1].u.i32 = 2147483647;
        say_error("the largest partition", rd_kafka_produceva(rk, arguments, 8));
        rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE);
        say("flush %s", err(rd_kafka_flush(rk, 5000)));
        say_recorded_set("reports", &reports);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
}

CASE(misuse_of_the_calls_that_produce) {
        misuse("producev(NULL)") say("%s", err(rd_kafka_producev(NULL, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_END)));
        misuse("produce(NULL)") say("%d", rd_kafka_produce(NULL, 0, RD_KAFKA_MSG_F_COPY, "x", 1, NULL, 0, NULL));
        misuse("produceva(NULL)") say_error("produceva", rd_kafka_produceva(NULL, NULL, 0));
        misuse("produce_batch(NULL)") say("%d", rd_kafka_produce_batch(NULL, 0, RD_KAFKA_MSG_F_COPY, NULL, 0));
        misuse("flush(NULL)") say("%s", err(rd_kafka_flush(NULL, 0)));
        misuse("outq_len(NULL)") say("%d", rd_kafka_outq_len(NULL));
}

/* ---- Headers ---- */

static void on_report_with_headers(rd_kafka_t *rk UNUSED, const rd_kafka_message_t *message, void *opaque UNUSED) {
        rd_kafka_headers_t *headers = NULL;
        rd_kafka_resp_err_t code = rd_kafka_message_headers(message, &headers);
        const char *name;
        const void *value;
        size_t size, i;
        record(&reports, "value %.*s headers %s count %zu", (int)message->len, message->payload ? (char *)message->payload : "", err(code),
               headers ? rd_kafka_header_cnt(headers) : 0);
        for (i = 0; headers && !rd_kafka_header_get_all(headers, i, &name, &value, &size); i++)
                record(&reports, "header %s value %s size %zu", name, value ? quoted((const char *)value) : "NULL", size);
        code = rd_kafka_message_detach_headers((rd_kafka_message_t *)message, &headers);
        record(&reports, "detached %s", err(code));
        if (!code)
                rd_kafka_headers_destroy(headers);
        record(&reports, "again %s", err(rd_kafka_message_headers(message, &headers)));
}

static void headers_in_reports(rd_kafka_headers_t *headers) {
        rd_kafka_conf_t *conf = conf_of("bootstrap.servers", DEAD, NULL);
        rd_kafka_t *rk;
        rd_kafka_conf_set_dr_msg_cb(conf, on_report_with_headers);
        rk = start(RD_KAFKA_PRODUCER, conf);
        if (headers)
                say("producev %s", err(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_VALUE("x", 1), RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_END)));
        else
                say("producev %s", err(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_VALUE("x", 1), RD_KAFKA_V_HEADER("one", "1", 1),
                                                         RD_KAFKA_V_HEADER("one", "text", -1), RD_KAFKA_V_HEADER("none", NULL, 0), RD_KAFKA_V_HEADER("", "", 0),
                                                         RD_KAFKA_V_END)));
        rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE);
        say("flush %s", err(rd_kafka_flush(rk, 5000)));
        say_recorded("reports", &reports);
        rd_kafka_destroy(rk);
}
CASE(headers_one_by_one) { headers_in_reports(NULL); }
CASE(headers_as_a_list) {
        rd_kafka_headers_t *headers = rd_kafka_headers_new(0);
        rd_kafka_header_add(headers, "a", 1, "value", 5);
        rd_kafka_header_add(headers, "long name", 4, NULL, 0);
        headers_in_reports(headers);
}
CASE(headers_as_an_empty_list) { headers_in_reports(rd_kafka_headers_new(8)); }

CASE(headers_of_a_refused_message_stay_the_callers) {
        rd_kafka_t *rk = producer("queue.buffering.max.messages", "1");
        rd_kafka_headers_t *headers = rd_kafka_headers_new(1);
        rd_kafka_header_add(headers, "h", -1, "v", -1);
        produce(rk, "one");
        say("full: %s", err(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_END)));
        say("headers %zu", rd_kafka_header_cnt(headers));
        rd_kafka_headers_destroy(headers);
        rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE);
        rd_kafka_flush(rk, 5000);
        rd_kafka_destroy(rk);
}

/* ---- Destroying with and without messages ---- */

static void destroyed(const char *when) {
        rd_kafka_t *rk = producer(NULL, NULL);
        if (strcmp(when, "empty"))
                produce(rk, "one");
        if (!strcmp(when, "purged")) {
                rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE);
                rd_kafka_flush(rk, 5000);
        }
        rd_kafka_destroy(rk);
        say("warned %d", recorded_with(&logs, "4 TERMINATE"));
}
CASE(destroy_warns_of_messages) { destroyed("full"); }
CASE(destroy_of_an_empty_producer_is_silent) { destroyed("empty"); }
CASE(destroy_after_a_purge_is_silent) { destroyed("purged"); }

/* ---- Texts of failed messages ---- */

static void on_text(rd_kafka_t *rk UNUSED, const rd_kafka_message_t *message, void *opaque UNUSED) {
        record(&statistics, "%s %s: errstr is the payload %d, produce_errstr %s", (char *)message->_private, err(message->err),
               message->payload && rd_kafka_message_errstr(message) == message->payload, present(rd_kafka_message_produce_errstr(message)));
}

CASE(texts_of_reports) {
        rd_kafka_conf_t *conf = conf_of("test.mock.num.brokers", "1", "linger.ms", "0", "retries", "0", NULL);
        rd_kafka_mock_cluster_t *cluster;
        rd_kafka_t *rk;
        rd_kafka_conf_set_error_cb(conf, NULL);
        rd_kafka_conf_set_dr_msg_cb(conf, on_text);
        rk = start(RD_KAFKA_PRODUCER, conf);
        cluster = rd_kafka_handle_mock_cluster(rk);
        rd_kafka_mock_topic_create(cluster, "t", 1, 1);
        rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_VALUE("value", 6), RD_KAFKA_V_OPAQUE("delivered"), RD_KAFKA_V_END);
        say("flush %s", err(rd_kafka_flush(rk, TIMEOUT_MS)));
        rd_kafka_mock_push_request_errors(cluster, 0, 1, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
        rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_VALUE("value", 6), RD_KAFKA_V_OPAQUE("refused"), RD_KAFKA_V_END);
        say("flush %s", err(rd_kafka_flush(rk, TIMEOUT_MS)));
        say_recorded("reports", &statistics);
        rd_kafka_destroy(rk);
}
