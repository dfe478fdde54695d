/* Offsets that the topic does not have: of one that is deleted and recreated while a consumer reads it, and out of range. Each
 * function is a sentence. */
#include "test.h"

static rd_kafka_t *producer;

static void wait_for(rd_kafka_queue_t *queue, int type) {
        rd_kafka_event_destroy(next_event(queue, type, 0));
}

static void create(const char *topic) {
        rd_kafka_queue_t *queue = rd_kafka_queue_new(producer);
        char errstr[256];
        rd_kafka_NewTopic_t *fresh = rd_kafka_NewTopic_new(topic, 1, 1, errstr, sizeof(errstr));
        rd_kafka_CreateTopics(producer, &fresh, 1, NULL, queue);
        rd_kafka_NewTopic_destroy(fresh);
        wait_for(queue, RD_KAFKA_EVENT_CREATETOPICS_RESULT);
        rd_kafka_queue_destroy(queue);
}

static void recreate(const char *topic) {
        rd_kafka_queue_t *queue = rd_kafka_queue_new(producer);
        rd_kafka_DeleteTopic_t *gone = rd_kafka_DeleteTopic_new(topic);
        rd_kafka_DeleteTopics(producer, &gone, 1, NULL, queue);
        rd_kafka_DeleteTopic_destroy(gone);
        wait_for(queue, RD_KAFKA_EVENT_DELETETOPICS_RESULT);
        rd_kafka_queue_destroy(queue);
        create(topic);
}

static void write_to(const char *topic, int count) {
        while (count--)
                CHECK(rd_kafka_producev(producer, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_VALUE("x", 1),
                                        RD_KAFKA_V_END) == 0);
        CHECK(rd_kafka_flush(producer, TIMEOUT_MS) == 0);
}

static rd_kafka_t *reader(const char *servers, const char *topic, const char *stores, int64_t from) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_t *rk;
        set(conf, "bootstrap.servers", servers);
        set(conf, "log_level", "2");
        set(conf, "group.id", topic);
        set(conf, "auto.offset.reset", "earliest");
        set(conf, "enable.auto.commit", "false");
        set(conf, "enable.auto.offset.store", stores);
        set(conf, "topic.metadata.refresh.interval.ms", "200");
        rk = start(RD_KAFKA_CONSUMER, conf);
        rd_kafka_poll_set_consumer(rk);
        rd_kafka_topic_partition_list_add(list, topic, 0)->offset = from;
        CHECK(rd_kafka_assign(rk, list) == 0);
        rd_kafka_topic_partition_list_destroy(list);
        return rk;
}

static void read_some(rd_kafka_t *rk, int count) {
        while (count > 0) {
                rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, TIMEOUT_MS);
                CHECK(message != NULL);
                if (!message)
                        return;
                /* The deletion may be reported, and nothing else. */
                CHECK(message->err == 0 || message->err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
                count -= message->err == 0;
                rd_kafka_message_destroy(message);
        }
}

static void what_was_committed_of_the_old_topic_holds_no_commit_of_the_new_one_back(const char *servers) {
        rd_kafka_t *rk;
        create("recreated");
        write_to("recreated", 20);
        rk = reader(servers, "recreated", "true", RD_KAFKA_OFFSET_BEGINNING);
        read_some(rk, 20);
        CHECK(rd_kafka_commit(rk, NULL, 0) == 0);
        CHECK(rd_kafka_commit(rk, NULL, 0) == RD_KAFKA_RESP_ERR__NO_OFFSET);
        recreate("recreated");
        write_to("recreated", 5);
        read_some(rk, 5);
        CHECK(rd_kafka_commit(rk, NULL, 0) == 0);
        rd_kafka_destroy(rk);
}

static void what_was_stored_of_the_old_topic_is_not_committed_for_the_new_one(const char *servers) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_t *rk;
        create("stored");
        write_to("stored", 20);
        rk = reader(servers, "stored", "false", RD_KAFKA_OFFSET_BEGINNING);
        read_some(rk, 20);
        rd_kafka_topic_partition_list_add(list, "stored", 0)->offset = 15;
        CHECK(rd_kafka_offsets_store(rk, list) == 0);
        recreate("stored");
        write_to("stored", 5);
        read_some(rk, 5);
        CHECK(rd_kafka_commit(rk, NULL, 0) == RD_KAFKA_RESP_ERR__NO_OFFSET);
        list->elems[0].offset = 3;
        CHECK(rd_kafka_offsets_store(rk, list) == 0);
        CHECK(rd_kafka_commit(rk, NULL, 0) == 0);
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_destroy(rk);
}

/* Polls until there is a message without an error. */
static rd_kafka_message_t *next_message(rd_kafka_t *rk) {
        rd_kafka_message_t *message;
        while ((message = rd_kafka_consumer_poll(rk, TIMEOUT_MS)) && message->err) {
                CHECK(message->err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
                rd_kafka_message_destroy(message);
        }
        CHECK(message != NULL);
        return message;
}

/* The committed offset of partition 0. */
static int64_t committed(rd_kafka_t *rk, const char *topic) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        int64_t offset;
        rd_kafka_topic_partition_list_add(list, topic, 0);
        CHECK(rd_kafka_committed(rk, list, TIMEOUT_MS) == 0);
        offset = list->elems[0].offset;
        rd_kafka_topic_partition_list_destroy(list);
        return offset;
}

static void a_message_of_the_old_topic_is_not_stored_for_the_new_one(const char *servers) {
        rd_kafka_t *rk;
        rd_kafka_message_t *old, *fresh;
        rd_kafka_error_t *error;
        create("kept");
        write_to("kept", 20);
        rk = reader(servers, "kept", "false", 15);
        old = next_message(rk);
        error = rd_kafka_offset_store_message(old);
        CHECK(error == NULL);
        recreate("kept");
        write_to("kept", 5);
        do {
                fresh = next_message(rk);
                if (fresh && fresh->offset >= 5)
                        rd_kafka_message_destroy(fresh);
        } while (fresh && fresh->offset >= 5);
        error = rd_kafka_offset_store_message(old);
        CHECK(rd_kafka_error_code(error) == RD_KAFKA_RESP_ERR__STATE);
        rd_kafka_error_destroy(error);
        CHECK(rd_kafka_commit(rk, NULL, 0) == RD_KAFKA_RESP_ERR__NO_OFFSET);
        error = rd_kafka_offset_store_message(fresh);
        CHECK(error == NULL);
        CHECK(rd_kafka_commit(rk, NULL, 0) == 0 && committed(rk, "kept") == fresh->offset + 1);
        rd_kafka_message_destroy(old);
        rd_kafka_message_destroy(fresh);
        rd_kafka_destroy(rk);
}

static void a_message_of_the_old_topic_is_not_committed_for_the_new_one(const char *servers) {
        rd_kafka_t *rk;
        rd_kafka_message_t *old, *fresh, made;
        create("committed");
        write_to("committed", 20);
        rk = reader(servers, "committed", "false", 15);
        old = next_message(rk);
        CHECK(rd_kafka_commit_message(rk, old, 0) == 0 && committed(rk, "committed") == old->offset + 1);
        recreate("committed");
        write_to("committed", 5);
        do {
                fresh = next_message(rk);
                if (fresh && fresh->offset >= 5)
                        rd_kafka_message_destroy(fresh);
        } while (fresh && fresh->offset >= 5);
        CHECK(rd_kafka_commit_message(rk, old, 0) == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
        CHECK(committed(rk, "committed") == RD_KAFKA_OFFSET_INVALID);
        CHECK(rd_kafka_commit_message(rk, old, 1) == 0);
        CHECK(rd_kafka_commit_message(rk, fresh, 0) == 0 && committed(rk, "committed") == fresh->offset + 1);
        /* What the application writes itself is about the topic that exists now. */
        memset(&made, 0, sizeof(made));
        made.rkt = old->rkt;
        made.offset = 2;
        CHECK(rd_kafka_commit_message(rk, &made, 0) == 0 && committed(rk, "committed") == 3);
        made = *old;
        made.offset = 3;
        CHECK(rd_kafka_commit_message(rk, &made, 0) == 0 && committed(rk, "committed") == 4);
        rd_kafka_message_destroy(old);
        rd_kafka_message_destroy(fresh);
        rd_kafka_destroy(rk);
}

static void an_offset_out_of_range_is_reset_without_an_error(const char *servers) {
        rd_kafka_t *rk;
        rd_kafka_message_t *message;
        int64_t expected = 0;
        create("range");
        write_to("range", 5);
        rk = reader(servers, "range", "true", 1000);
        for (; expected < 5; expected++) {
                message = rd_kafka_consumer_poll(rk, TIMEOUT_MS);
                CHECK(message && message->err == 0 && message->offset == expected);
                if (message)
                        rd_kafka_message_destroy(message);
        }
        rd_kafka_destroy(rk);
}

int main(void) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_mock_cluster_t *cluster;
        const char *servers;
        set(conf, "log_level", "2");
        set(conf, "test.mock.num.brokers", "1");
        producer = start(RD_KAFKA_PRODUCER, conf);
        cluster = rd_kafka_handle_mock_cluster(producer);
        CHECK(cluster != NULL);
        servers = rd_kafka_mock_cluster_bootstraps(cluster);
        what_was_committed_of_the_old_topic_holds_no_commit_of_the_new_one_back(servers);
        what_was_stored_of_the_old_topic_is_not_committed_for_the_new_one(servers);
        a_message_of_the_old_topic_is_not_stored_for_the_new_one(servers);
        a_message_of_the_old_topic_is_not_committed_for_the_new_one(servers);
        an_offset_out_of_range_is_reset_without_an_error(servers);
        rd_kafka_destroy(producer);
        return bad;
}
