/* The assigned consumer and the older calls: messages, batches, positions, pause, seek, and messages that outlive
 * the consumer. */
#include "test.h"

static int called;

#define COUNT 2000

static rd_kafka_t *client(rd_kafka_type_t type, const char *brokers) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        set(conf, "bootstrap.servers", brokers);
        if (type == RD_KAFKA_CONSUMER) {
                set(conf, "group.id", "test");
                set(conf, "enable.partition.eof", "true");
        }
        return start(type, conf);
}

static void on_message(rd_kafka_message_t *message, void *opaque) {
        CHECK(opaque == &called);
        if (!message->err)
                called++;
}

static rd_kafka_topic_t *fed;
static int feedings;

/* Each message produces another one, which is written before the callback returns. */
static void on_message_of_busy_topic(rd_kafka_message_t *message, void *opaque) {
        if (message->err)
                return;
        CHECK(rd_kafka_produce(fed, 2, RD_KAFKA_MSG_F_COPY, "more", 4, NULL, 0, NULL) == 0);
        CHECK(rd_kafka_flush(opaque, TIMEOUT_MS) == 0);
        usleep(50000);
        if (++feedings == 50)
                rd_kafka_yield(opaque);
}

/* The call returns, although the topic is never read to its end. */
static void callback_returns_on_a_busy_topic(const char *brokers) {
        rd_kafka_t *producer = client(RD_KAFKA_PRODUCER, brokers), *rk = client(RD_KAFKA_CONSUMER, brokers);
        rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, "consume", NULL);
        int i, count = 0;
        fed = rd_kafka_topic_new(producer, "consume", NULL);
        for (i = 0; i < 5; i++)
                CHECK(rd_kafka_produce(fed, 2, RD_KAFKA_MSG_F_COPY, "first", 5, NULL, 0, NULL) == 0);
        CHECK(rd_kafka_flush(producer, TIMEOUT_MS) == 0);
        CHECK(rd_kafka_consume_start(topic, 2, RD_KAFKA_OFFSET_BEGINNING) == 0);
        for (i = 0; i < 100 && count == 0; i++)
                count = rd_kafka_consume_callback(topic, 2, 100, on_message_of_busy_topic, producer);
        CHECK(count >= 1 && count <= 6);
        CHECK(feedings <= 6);
        CHECK(rd_kafka_consume_stop(topic, 2) == 0);
        rd_kafka_topic_destroy(topic);
        rd_kafka_topic_destroy(fed);
        rd_kafka_destroy(producer);
        rd_kafka_destroy(rk);
}

/* The dump names the client, its brokers and its partitions. */
static void is_described(rd_kafka_t *rk) {
        char text[8192];
        size_t length;
        FILE *file = tmpfile();
        CHECK(file != NULL);
        if (!file)
                return;
        rd_kafka_dump(file, rk);
        rd_kafka_dump(NULL, rk);
        rd_kafka_dump(file, NULL);
        rewind(file);
        length = fread(text, 1, sizeof(text) - 1, file);
        text[length] = '\0';
        fclose(file);
        CHECK(!strncmp(text, rd_kafka_name(rk), strlen(rd_kafka_name(rk))));
        CHECK(strstr(text, ": consumer, client.id rdkafka, ") != NULL);
        CHECK(strstr(text, "\n  broker ") != NULL && strstr(text, ": UP for ") != NULL);
        CHECK(strstr(text, "\n  consume [1]: leader ") != NULL && strstr(text, ", next offset 2000, ") != NULL);
        if (bad)
                fputs(text, stderr);
}

int main(int argc, char **argv) {
        static rd_kafka_message_t *kept[COUNT];
        rd_kafka_topic_partition_list_t *list;
        const struct rd_kafka_metadata *metadata;
        rd_kafka_topic_t *topic;
        rd_kafka_queue_t *queue;
        rd_kafka_message_t *message;
        rd_kafka_timestamp_type_t kind;
        rd_kafka_t *rk;
        int64_t low = 0, high = 0;
        char *id;
        int32_t *ids;
        size_t id_count = 0;
        const char *server;
        int i, count, controller, brokers = 1;

        if (argc < 2)
                return 2;
        for (server = argv[1]; (server = strchr(server, ',')); server++)
                brokers++;
        rk = client(RD_KAFKA_PRODUCER, argv[1]);
        topic = rd_kafka_topic_new(rk, "consume", NULL);
        for (i = 0; i < COUNT; i++) {
                char text[32];
                int size = snprintf(text, sizeof(text), "%d", i);
                CHECK(rd_kafka_produce(topic, 1, RD_KAFKA_MSG_F_COPY, text, (size_t)size, "key", 3, NULL) == 0);
        }
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);

        /* The assigned consumer. */
        rk = client(RD_KAFKA_CONSUMER, argv[1]);
        rd_kafka_poll_set_consumer(rk);
        list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_topic_partition_list_add(list, "consume", 1)->offset = RD_KAFKA_OFFSET_BEGINNING;
        CHECK(rd_kafka_assign(rk, list) == 0);
        for (i = 0; i < 1000; i++) {
                message = rd_kafka_consumer_poll(rk, TIMEOUT_MS);
                CHECK(message && !message->err && message->offset == i && message->key_len == 3);
                if (!message)
                        return 1;
                CHECK(rd_kafka_message_timestamp(message, &kind) > 0 && kind == RD_KAFKA_TIMESTAMP_CREATE_TIME);
                kept[i] = message;
        }
        CHECK(rd_kafka_position(rk, list) == 0 && list->elems[0].offset == 1000);
        /* A paused partition returns no messages, and loses none. */
        CHECK(rd_kafka_pause_partitions(rk, list) == 0 && list->elems[0].err == 0);
        CHECK(rd_kafka_consumer_poll(rk, 100) == NULL);
        CHECK(rd_kafka_resume_partitions(rk, list) == 0);
        queue = rd_kafka_queue_get_consumer(rk);
        count = (int)rd_kafka_consume_batch_queue(queue, 10000, kept + 1000, 500);
        CHECK(count == 500 && kept[1000]->offset == 1000 && kept[1499]->offset == 1499);
        topic = rd_kafka_topic_new(rk, "consume", NULL);
        CHECK(rd_kafka_seek(topic, 1, 1900, TIMEOUT_MS) == 0);
        for (i = 1900; i < COUNT; i++) {
                message = rd_kafka_consumer_poll(rk, TIMEOUT_MS);
                CHECK(message && !message->err && message->offset == i);
                rd_kafka_message_destroy(message);
        }
        message = rd_kafka_consumer_poll(rk, TIMEOUT_MS);
        CHECK(message && message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF && message->offset == COUNT);
        CHECK(message && message->rkt && !strcmp(rd_kafka_topic_name(message->rkt), "consume"));
        rd_kafka_message_destroy(message);
        CHECK(rd_kafka_query_watermark_offsets(rk, "consume", 1, &low, &high, TIMEOUT_MS) == 0 && low == 0 && high == COUNT);
        CHECK(rd_kafka_get_watermark_offsets(rk, "consume", 1, &low, &high) == 0 && high == COUNT);
        CHECK(rd_kafka_metadata(rk, 0, topic, &metadata, TIMEOUT_MS) == 0);
        CHECK(metadata->broker_cnt == brokers && metadata->topic_cnt == 1 && metadata->topics[0].partition_cnt == 4);
        rd_kafka_metadata_destroy(metadata);
        id = rd_kafka_clusterid(rk, TIMEOUT_MS);
        CHECK(id && *id);
        rd_kafka_mem_free(rk, id);
        /* Known offsets are returned without a request. */
        id = rd_kafka_clusterid(rk, 0);
        CHECK(id && *id);
        rd_kafka_mem_free(rk, id);
        controller = rd_kafka_controllerid(rk, TIMEOUT_MS);
        CHECK(controller >= 1 && controller <= brokers);
        ids = rd_kafka_brokers_learned_ids(rk, &id_count);
        CHECK(ids && (int)id_count == brokers);
        for (i = 1; ids && i < (int)id_count; i++)
                CHECK(ids[i - 1] < ids[i]);
        free(ids);
        CHECK(!rd_kafka_brokers_learned_ids(rk, NULL));
        is_described(rk);
        rd_kafka_queue_destroy(queue);
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_topic_destroy(topic);
        CHECK(rd_kafka_consumer_close(rk) == 0);
        rd_kafka_destroy(rk);
        /* Messages outlive the consumer, and can be destroyed in any order. */
        for (i = 1499; i >= 0; i--) {
                char text[32];
                int size = snprintf(text, sizeof(text), "%d", i);
                CHECK(kept[i]->len == (size_t)size && !memcmp(kept[i]->payload, text, (size_t)size));
                rd_kafka_message_destroy(kept[i]);
        }

        /* The older calls. */
        rk = client(RD_KAFKA_CONSUMER, argv[1]);
        topic = rd_kafka_topic_new(rk, "consume", NULL);
        CHECK(rd_kafka_consume(topic, 1, 10) == NULL);
        CHECK(rd_kafka_consume_start(topic, 1, RD_KAFKA_OFFSET_TAIL(100)) == 0);
        CHECK(rd_kafka_consume_start(topic, 1, 0) == -1);
        message = rd_kafka_consume(topic, 1, TIMEOUT_MS);
        CHECK(message && message->offset == COUNT - 100);
        rd_kafka_message_destroy(message);
        count = (int)rd_kafka_consume_batch(topic, 1, 10000, kept, 9);
        CHECK(count == 9);
        for (i = 0; i < count; i++)
                rd_kafka_message_destroy(kept[i]);
        while (called < 90)
                if (rd_kafka_consume_callback(topic, 1, 10000, on_message, &called) <= 0)
                        break;
        CHECK(called == 90);
        CHECK(rd_kafka_consume_stop(topic, 1) == 0);
        queue = rd_kafka_queue_new(rk);
        CHECK(rd_kafka_consume_start_queue(topic, 1, 5, queue) == 0);
        message = rd_kafka_consume_queue(queue, TIMEOUT_MS);
        CHECK(message && message->offset == 5);
        rd_kafka_message_destroy(message);
        CHECK(rd_kafka_consume_stop(topic, 1) == 0);
        rd_kafka_queue_destroy(queue);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
        callback_returns_on_a_busy_topic(argv[1]);
        return bad != 0;
}
