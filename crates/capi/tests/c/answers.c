/* Results of a consumer besides messages: the callback of each commit with its metadata, the offsets of its
 * assignment, the last error after an empty poll, headers after they were detached, and the text of events without
 * an error. */
#include "test.h"

static const char *servers;

/* The last call of the commit callback. */
static struct {
        int calls;
        rd_kafka_resp_err_t err;
        int count;
        int64_t offset;
        char metadata[32];
} told;

static void commit_cb(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *offsets, void *opaque) {
        (void)rk;
        (void)opaque;
        told.calls++;
        told.err = err;
        told.count = offsets ? offsets->cnt : -1;
        told.metadata[0] = 0;
        if (told.count > 0) {
                rd_kafka_topic_partition_t *first = &offsets->elems[0];
                told.offset = first->offset;
                if (first->metadata_size < sizeof(told.metadata)) {
                        memcpy(told.metadata, first->metadata, first->metadata_size);
                        told.metadata[first->metadata_size] = 0;
                }
        }
}

static void produce(const char *topic, int count) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_t *rk;
        set(conf, "bootstrap.servers", servers);
        rk = start(RD_KAFKA_PRODUCER, conf);
        while (count--)
                CHECK(!rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(0),
                                         RD_KAFKA_V_VALUE((void *)"value", 5), RD_KAFKA_V_HEADER("name", "kept", 4),
                                         RD_KAFKA_V_END));
        CHECK(!rd_kafka_flush(rk, TIMEOUT_MS));
        rd_kafka_destroy(rk);
}

static rd_kafka_t *consumer(const char *topic) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(4);
        rd_kafka_t *rk;
        set(conf, "bootstrap.servers", servers);
        set(conf, "group.id", topic);
        set(conf, "auto.offset.reset", "earliest");
        set(conf, "enable.auto.commit", "false");
        set(conf, "enable.auto.offset.store", "false");
        rd_kafka_conf_set_offset_commit_cb(conf, commit_cb);
        rk = start(RD_KAFKA_CONSUMER, conf);
        CHECK(!rd_kafka_poll_set_consumer(rk));
        rd_kafka_topic_partition_list_add(list, topic, 0)->offset = 0;
        rd_kafka_topic_partition_list_add(list, topic, 1)->offset = RD_KAFKA_OFFSET_STORED;
        rd_kafka_topic_partition_list_add(list, topic, 2)->offset = RD_KAFKA_OFFSET_INVALID;
        rd_kafka_topic_partition_list_add(list, topic, 3)->offset = RD_KAFKA_OFFSET_TAIL(3);
        CHECK(!rd_kafka_assign(rk, list));
        rd_kafka_topic_partition_list_destroy(list);
        return rk;
}

static void an_assignment_has_the_offsets_that_it_was_made_with(rd_kafka_t *rk) {
        static const int64_t expected[] = {0, RD_KAFKA_OFFSET_STORED, RD_KAFKA_OFFSET_STORED, RD_KAFKA_OFFSET_TAIL(3)};
        rd_kafka_topic_partition_list_t *list = NULL;
        int i;
        CHECK(!rd_kafka_assignment(rk, &list) && list && list->cnt == 4);
        for (i = 0; list && i < list->cnt; i++)
                CHECK(list->elems[i].offset == expected[list->elems[i].partition]);
        rd_kafka_topic_partition_list_destroy(list);
}

static void check_headers(rd_kafka_headers_t *headers) {
        const void *value = NULL;
        size_t size = 0;
        CHECK(!rd_kafka_header_get_last(headers, "name", &value, &size) && size == 4 && !memcmp(value, "kept", 4));
}

static void headers_can_be_detached_and_read_again(rd_kafka_message_t *message, int read_first) {
        rd_kafka_headers_t *first = NULL, *second = NULL, *third = NULL;
        if (read_first)
                CHECK(!rd_kafka_message_headers(message, &first));
        CHECK(!rd_kafka_message_detach_headers(message, &first));
        CHECK(!rd_kafka_message_headers(message, &second));
        CHECK(first != second);
        CHECK(!rd_kafka_message_detach_headers(message, &third));
        CHECK(first != third);
        check_headers(first);
        check_headers(third);
        rd_kafka_headers_destroy(first);
        rd_kafka_headers_destroy(third);
}

static void consume(rd_kafka_t *rk, int count) {
        int got = 0;
        UNTIL(got == count, {
                rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, 100);
                if (message && !message->err) {
                        if (got < 2)
                                headers_can_be_detached_and_read_again(message, got);
                        got++;
                }
                if (message)
                        rd_kafka_message_destroy(message);
        });
}

static void an_empty_poll_sets_the_last_error(rd_kafka_t *rk) {
        char long_name[600];
        int timeout;
        memset(long_name, 'x', sizeof(long_name) - 1);
        long_name[sizeof(long_name) - 1] = 0;
        for (timeout = 0; timeout <= 10; timeout += 10) {
                CHECK(!rd_kafka_topic_new(rk, long_name, NULL));
                CHECK(rd_kafka_last_error() == RD_KAFKA_RESP_ERR__INVALID_ARG);
                CHECK(!rd_kafka_consumer_poll(rk, timeout));
                CHECK(rd_kafka_last_error() == RD_KAFKA_RESP_ERR__TIMED_OUT);
        }
}

/* Polls until the callback is called again. */
static void expect_call(rd_kafka_t *rk, rd_kafka_resp_err_t err, int count, int64_t offset, const char *metadata) {
        int before = told.calls;
        UNTIL(told.calls > before, CHECK(!rd_kafka_consumer_poll(rk, 100)));
        CHECK(told.calls == before + 1);
        CHECK(told.err == err);
        CHECK(told.count == count);
        CHECK(told.offset == offset);
        CHECK(!strcmp(told.metadata, metadata));
}

static void each_commit_calls_the_callback_in_a_later_poll(rd_kafka_t *rk, const char *topic) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_topic_partition_t *one = rd_kafka_topic_partition_list_add(list, topic, 0);
        int before = told.calls;
        one->offset = 3;
        one->metadata = strdup("meta");
        one->metadata_size = 4;
        CHECK(!rd_kafka_commit(rk, list, 0));
        CHECK(told.calls == before);
        expect_call(rk, RD_KAFKA_RESP_ERR_NO_ERROR, 1, 3, "meta");
        one->offset = 4;
        CHECK(!rd_kafka_commit(rk, list, 1));
        expect_call(rk, RD_KAFKA_RESP_ERR_NO_ERROR, 1, 4, "meta");
        one->offset = 5;
        CHECK(!rd_kafka_commit_queue(rk, list, NULL, NULL, NULL));
        expect_call(rk, RD_KAFKA_RESP_ERR_NO_ERROR, 1, 5, "meta");
        /* The callback of a call is called at once, and the general one is not. */
        before = told.calls;
        one->offset = 6;
        CHECK(!rd_kafka_commit_queue(rk, list, NULL, commit_cb, NULL));
        CHECK(told.calls == before + 1 && told.offset == 6 && !strcmp(told.metadata, "meta"));
        CHECK(rd_kafka_commit(rk, NULL, 0) == RD_KAFKA_RESP_ERR__NO_OFFSET);
        expect_call(rk, RD_KAFKA_RESP_ERR__NO_OFFSET, 4, RD_KAFKA_OFFSET_INVALID, "");
        /* A stored offset is not committed over a later one. */
        one->offset = 8;
        CHECK(!rd_kafka_offsets_store(rk, list));
        one->offset = 9;
        CHECK(!rd_kafka_commit(rk, list, 0));
        expect_call(rk, RD_KAFKA_RESP_ERR_NO_ERROR, 1, 9, "meta");
        CHECK(rd_kafka_commit(rk, NULL, 0) == RD_KAFKA_RESP_ERR__NO_OFFSET);
        expect_call(rk, RD_KAFKA_RESP_ERR__NO_OFFSET, 4, RD_KAFKA_OFFSET_INVALID, "");
        CHECK(!rd_kafka_committed(rk, list, TIMEOUT_MS));
        CHECK(one->offset == 9);
        rd_kafka_topic_partition_list_destroy(list);
}

static void an_event_without_an_error_has_a_text(void) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_queue_t *queue;
        rd_kafka_event_t *event;
        rd_kafka_t *rk;
        set(conf, "bootstrap.servers", servers);
        rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_DR);
        rk = start(RD_KAFKA_PRODUCER, conf);
        queue = rd_kafka_queue_get_main(rk);
        CHECK(!rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("answers"), RD_KAFKA_V_VALUE((void *)"value", 5), RD_KAFKA_V_END));
        event = rd_kafka_queue_poll(queue, TIMEOUT_MS);
        CHECK(rd_kafka_event_type(event) == RD_KAFKA_EVENT_DR);
        CHECK(!rd_kafka_event_error(event));
        CHECK(!strcmp(rd_kafka_event_error_string(event), rd_kafka_err2str(RD_KAFKA_RESP_ERR_NO_ERROR)));
        if (event)
                rd_kafka_event_destroy(event);
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
}

int main(int argc, char **argv) {
        rd_kafka_t *rk;
        if (argc < 2)
                return 2;
        servers = argv[1];
        produce("answers", 10);
        rk = consumer("answers");
        an_assignment_has_the_offsets_that_it_was_made_with(rk);
        consume(rk, 10);
        an_assignment_has_the_offsets_that_it_was_made_with(rk);
        an_empty_poll_sets_the_last_error(rk);
        each_commit_calls_the_callback_in_a_later_poll(rk, "answers");
        rd_kafka_consumer_close(rk);
        rd_kafka_destroy(rk);
        an_event_without_an_error_has_a_text();
        return bad != 0;
}
