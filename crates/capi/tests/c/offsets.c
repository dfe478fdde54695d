/* Offsets: stored by position or by the application, committed in each way, reported, and used at the next start. */
#include "test.h"

static int told, told_code;
static int64_t told_offset;

static void on_commit(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *offsets, void *opaque) {
        CHECK(rk != NULL && opaque == &told);
        told++;
        told_code = err;
        told_offset = offsets->cnt ? offsets->elems[0].offset : -1;
}

static rd_kafka_t *consumer(const char *brokers, const char *group, const char *name, const char *value, int events) {
        char errstr[256];
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_t *rk;
        set(conf, "bootstrap.servers", brokers);
        if (group)
                set(conf, "group.id", group);
        set(conf, "auto.offset.reset", "beginning");
        if (name)
                set(conf, name, value);
        rd_kafka_conf_set_opaque(conf, &told);
        if (events)
                rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_OFFSET_COMMIT | RD_KAFKA_EVENT_FETCH);
        /* Events of commits need it, too. */
        rd_kafka_conf_set_offset_commit_cb(conf, on_commit);
        rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, errstr, sizeof(errstr));
        CHECK(rk != NULL);
        rd_kafka_poll_set_consumer(rk);
        return rk;
}

static void assign(rd_kafka_t *rk, int64_t offset) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_topic_partition_list_add(list, "offsets", 0)->offset = offset;
        CHECK(rd_kafka_assign(rk, list) == 0);
        rd_kafka_topic_partition_list_destroy(list);
}

static rd_kafka_message_t *next(rd_kafka_t *rk) {
        rd_kafka_message_t *message;
        while ((message = rd_kafka_consumer_poll(rk, TIMEOUT_MS)) != NULL) {
                if (!message->err)
                        return message;
                rd_kafka_message_destroy(message);
        }
        CHECK(!"a message");
        exit(1);
}

static void expect(rd_kafka_t *rk, int64_t offset) {
        rd_kafka_message_t *message = next(rk);
        CHECK(message->offset == offset);
        rd_kafka_message_destroy(message);
}

static int64_t committed(rd_kafka_t *rk, char *metadata) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(2);
        int64_t offset;
        rd_kafka_topic_partition_list_add(list, "offsets", 0);
        rd_kafka_topic_partition_list_add(list, "offsets", 3);
        rd_kafka_topic_partition_set_leader_epoch(&list->elems[1], 5);
        CHECK(rd_kafka_committed(rk, list, TIMEOUT_MS) == 0);
        CHECK(list->elems[0].err == 0 && list->elems[1].err == 0);
        CHECK(list->elems[1].offset == RD_KAFKA_OFFSET_INVALID);
        CHECK(rd_kafka_topic_partition_get_leader_epoch(&list->elems[1]) == -1);
        offset = list->elems[0].offset;
        if (metadata) {
                memcpy(metadata, list->elems[0].metadata, list->elems[0].metadata_size);
                metadata[list->elems[0].metadata_size] = 0;
        }
        rd_kafka_topic_partition_list_destroy(list);
        return offset;
}

/* The application's own pointer and the leader epoch are copied, too. */
static void a_copied_list_has_everything(void) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1), *copy;
        rd_kafka_topic_partition_t *element = rd_kafka_topic_partition_list_add(list, "copied", 7);
        element->offset = 12;
        element->opaque = &told;
        element->err = RD_KAFKA_RESP_ERR__NO_OFFSET;
        element->metadata = malloc(3);
        memcpy(element->metadata, "why", 3);
        element->metadata_size = 3;
        rd_kafka_topic_partition_set_leader_epoch(element, 5);
        copy = rd_kafka_topic_partition_list_copy(list);
        rd_kafka_topic_partition_list_destroy(list);
        element = &copy->elems[0];
        CHECK(copy->cnt == 1 && !strcmp(element->topic, "copied") && element->partition == 7);
        CHECK(element->offset == 12 && element->opaque == &told && element->err == RD_KAFKA_RESP_ERR__NO_OFFSET);
        CHECK(element->metadata_size == 3 && !memcmp(element->metadata, "why", 3));
        CHECK(rd_kafka_topic_partition_get_leader_epoch(element) == 5);
        rd_kafka_topic_partition_list_destroy(copy);
}

static int32_t numbers(const rd_kafka_topic_partition_list_t *list, const char *topic) {
        int32_t all = 0;
        int i;
        for (i = 0; i < list->cnt; i++)
                if (!strcmp(list->elems[i].topic, topic))
                        all = all * 10 + list->elems[i].partition;
        return all;
}

/* Partitions of two topics have the same numbers. */
static void a_list_finds_and_removes_by_topic_and_partition(void) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(0);
        rd_kafka_topic_partition_list_add_range(list, "one", 1, 4);
        rd_kafka_topic_partition_list_add_range(list, "two", 1, 4);
        CHECK(numbers(list, "one") == 1234 && numbers(list, "two") == 1234);
        CHECK(rd_kafka_topic_partition_list_set_offset(list, "two", 3, 30) == 0);
        CHECK(list->elems[2].offset == RD_KAFKA_OFFSET_INVALID && list->elems[6].offset == 30);
        CHECK(rd_kafka_topic_partition_list_find(list, "two", 3) == &list->elems[6]);
        CHECK(!rd_kafka_topic_partition_list_find(list, "three", 3));
        CHECK(rd_kafka_topic_partition_list_del(list, "two", 2) == 1);
        CHECK(rd_kafka_topic_partition_list_del(list, "two", 2) == 0);
        CHECK(rd_kafka_topic_partition_list_del_by_idx(list, 0) == 1);
        CHECK(numbers(list, "one") == 234 && numbers(list, "two") == 134 && list->cnt == 6);
        rd_kafka_topic_partition_list_destroy(list);
}

/* Whichever of its partitions it is. */
static void a_commit_fails_with_one_partition(rd_kafka_t *rk) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(2);
        rd_kafka_topic_partition_list_add(list, "another", 0)->offset = 1;
        rd_kafka_topic_partition_list_add(list, "offsets", 0)->offset = 41;
        CHECK(rd_kafka_commit(rk, list, 0) == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
        CHECK(committed(rk, NULL) == 41);
        rd_kafka_topic_partition_list_destroy(list);
}

int main(int argc, char **argv) {
        rd_kafka_topic_partition_list_t *list;
        rd_kafka_message_t *message;
        rd_kafka_error_t *error;
        rd_kafka_queue_t *queue;
        rd_kafka_event_t *event;
        rd_kafka_topic_t *topic;
        rd_kafka_conf_t *conf;
        rd_kafka_t *rk;
        char text[64];
        int i;

        if (argc < 2)
                return 2;
        a_copied_list_has_everything();
        a_list_finds_and_removes_by_topic_and_partition();
        conf = rd_kafka_conf_new();
        rd_kafka_conf_set(conf, "bootstrap.servers", argv[1], NULL, 0);
        rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, NULL, 0);
        for (i = 0; i < 100; i++)
                CHECK(!rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("offsets"), RD_KAFKA_V_PARTITION(0),
                                         RD_KAFKA_V_VALUE((void *)"x", 1), RD_KAFKA_V_END));
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
        CHECK(rd_kafka_commit(rk, NULL, 0) == RD_KAFKA_RESP_ERR__UNKNOWN_GROUP);
        rd_kafka_destroy(rk);

        /* Offsets of delivered messages are stored, and committed when the consumer is closed. */
        rk = consumer(argv[1], "offsets-a", NULL, NULL, 0);
        assign(rk, RD_KAFKA_OFFSET_STORED);
        CHECK(rd_kafka_commit(rk, NULL, 0) == RD_KAFKA_RESP_ERR__NO_OFFSET);
        for (i = 0; i < 10; i++)
                expect(rk, i);
        CHECK(committed(rk, NULL) == RD_KAFKA_OFFSET_INVALID);
        list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_topic_partition_list_add(list, "offsets", 0)->offset = 3;
        CHECK(rd_kafka_offsets_store(rk, list) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        rd_kafka_topic_partition_list_destroy(list);
        CHECK(rd_kafka_consumer_close(rk) == 0);
        rd_kafka_destroy(rk);

        /* Periodically, without a call. */
        rk = consumer(argv[1], "offsets-a", "auto.commit.interval.ms", "100", 0);
        CHECK(committed(rk, NULL) == 10);
        assign(rk, RD_KAFKA_OFFSET_INVALID);
        expect(rk, 10);
        told = 0;
        expect(rk, 11);
        UNTIL(told, rd_kafka_message_destroy(rd_kafka_consumer_poll(rk, 100)));
        CHECK(told == 1 && told_code == 0 && told_offset >= 12);
        rd_kafka_destroy(rk);

        /* By the application. */
        rk = consumer(argv[1], "offsets-b", "enable.auto.commit", "false", 0);
        told = 0;
        assign(rk, RD_KAFKA_OFFSET_BEGINNING);
        for (i = 0; i < 5; i++)
                expect(rk, i);
        message = next(rk);
        CHECK(rd_kafka_message_leader_epoch(message) >= 0);
        CHECK(rd_kafka_commit_message(rk, message, 0) == 0);
        CHECK(committed(rk, NULL) == 6);
        rd_kafka_message_destroy(message);
        expect(rk, 6);
        CHECK(rd_kafka_commit(rk, NULL, 0) == 0);
        CHECK(committed(rk, NULL) == 7);
        CHECK(rd_kafka_commit(rk, NULL, 0) == RD_KAFKA_RESP_ERR__NO_OFFSET);
        a_commit_fails_with_one_partition(rk);
        list = rd_kafka_topic_partition_list_new(2);
        rd_kafka_topic_partition_list_add(list, "offsets", 0)->offset = 42;
        list->elems[0].metadata = malloc(5);
        memcpy(list->elems[0].metadata, "where", 5);
        list->elems[0].metadata_size = 5;
        rd_kafka_topic_partition_list_add(list, "offsets", 77)->offset = 1;
        /* If one partition fails, the call returns an error; the callback gets the error of each. */
        CHECK(rd_kafka_commit(rk, list, 0) == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
        CHECK(list->elems[0].err == 0 && list->elems[1].err == 0);
        CHECK(committed(rk, text) == 42 && !strcmp(text, "where"));
        /* The five synchronous commits were reported, too. */
        UNTIL(told == 5, rd_kafka_message_destroy(rd_kafka_consumer_poll(rk, 100)));
        told = 0;
        list->elems[0].offset = 43;
        CHECK(rd_kafka_commit(rk, list, 1) == 0);
        UNTIL(told, rd_kafka_message_destroy(rd_kafka_consumer_poll(rk, 100)));
        CHECK(told == 1 && told_code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART && told_offset == 43);
        rd_kafka_topic_partition_list_del_by_idx(list, 1);
        /* To a queue: by its callback, or as an event. */
        queue = rd_kafka_queue_new(rk);
        list->elems[0].offset = 44;
        CHECK(rd_kafka_commit_queue(rk, list, queue, on_commit, &told) == 0);
        CHECK(rd_kafka_queue_poll_callback(queue, TIMEOUT_MS) == 1);
        CHECK(told == 2 && told_offset == 44);
        CHECK(rd_kafka_commit_queue(rk, list, queue, NULL, &bad) == 0);
        event = rd_kafka_queue_poll(queue, TIMEOUT_MS);
        CHECK(rd_kafka_event_type(event) == RD_KAFKA_EVENT_OFFSET_COMMIT);
        CHECK(!strcmp(rd_kafka_event_name(event), "OffsetCommit"));
        CHECK(rd_kafka_event_opaque(event) == &bad && rd_kafka_event_error(event) == 0);
        CHECK(rd_kafka_event_topic_partition_list(event)->elems[0].offset == 44);
        rd_kafka_event_destroy(event);
        list->elems[0].offset = 45;
        CHECK(rd_kafka_commit_queue(rk, list, NULL, on_commit, &told) == 0);
        CHECK(told == 3 && told_offset == 45);
        CHECK(committed(rk, NULL) == 45);
        list->elems[0].offset = RD_KAFKA_OFFSET_INVALID;
        CHECK(rd_kafka_commit(rk, list, 0) == RD_KAFKA_RESP_ERR__NO_OFFSET);
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_queue_destroy(queue);
        rd_kafka_consumer_close(rk);
        rd_kafka_destroy(rk);

        /* Stored by the application. */
        rk = consumer(argv[1], "offsets-c", "enable.auto.offset.store", "false", 0);
        list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_topic_partition_list_add(list, "offsets", 0)->offset = 30;
        CHECK(rd_kafka_offsets_store(rk, list) == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION);
        CHECK(list->elems[0].err == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION);
        assign(rk, RD_KAFKA_OFFSET_BEGINNING);
        message = next(rk);
        CHECK(rd_kafka_commit(rk, NULL, 0) == RD_KAFKA_RESP_ERR__NO_OFFSET);
        error = rd_kafka_offset_store_message(message);
        CHECK(error == NULL);
        rd_kafka_message_destroy(message);
        CHECK(rd_kafka_commit(rk, NULL, 0) == 0 && committed(rk, NULL) == 1);
        CHECK(rd_kafka_offsets_store(rk, list) == 0 && list->elems[0].err == 0);
        CHECK(rd_kafka_commit(rk, NULL, 0) == 0 && committed(rk, NULL) == 30);
        topic = rd_kafka_topic_new(rk, "offsets", NULL);
        CHECK(rd_kafka_offset_store(topic, 0, 30) == 0);
        CHECK(rd_kafka_offset_store(topic, 2, 30) == RD_KAFKA_RESP_ERR__STATE);
        CHECK(rd_kafka_offset_store(topic, -1, 30) == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION);
        error = rd_kafka_offset_store_message(NULL);
        CHECK(rd_kafka_error_code(error) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        rd_kafka_error_destroy(error);
        rd_kafka_topic_destroy(topic);
        /* A seek invalidates the stored offset. */
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_consumer_close(rk);
        rd_kafka_destroy(rk);
        rk = consumer(argv[1], "offsets-c", NULL, NULL, 1);
        CHECK(committed(rk, NULL) == 31);
        /* As an event of the consumer's own queue. */
        queue = rd_kafka_queue_get_consumer(rk);
        list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_topic_partition_list_add(list, "offsets", 0)->offset = 32;
        CHECK(rd_kafka_commit(rk, list, 1) == 0);
        event = rd_kafka_queue_poll(queue, TIMEOUT_MS);
        CHECK(rd_kafka_event_type(event) == RD_KAFKA_EVENT_OFFSET_COMMIT && rd_kafka_event_error(event) == 0);
        rd_kafka_event_destroy(event);
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_queue_destroy(queue);
        rd_kafka_consumer_close(rk);
        rd_kafka_destroy(rk);

        /* Without a group no commits are possible. */
        rk = consumer(argv[1], NULL, NULL, NULL, 0);
        CHECK(rd_kafka_commit(rk, NULL, 0) == RD_KAFKA_RESP_ERR__UNKNOWN_GROUP);
        rd_kafka_destroy(rk);
        return bad != 0;
}
