/* Error codes in Produce and ListOffsets responses, and the resulting errors of the application. */
#include "side_by_side.h"

#define PRODUCE 0
#define LIST_OFFSETS 2
#define ALL 1000

static rd_kafka_conf_t *configuration(void) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_conf_set(conf, "test.mock.num.brokers", "1", NULL, 0);
        rd_kafka_conf_set(conf, "log_level", "0", NULL, 0);
        rd_kafka_conf_set(conf, "retry.backoff.ms", "20", NULL, 0);
        rd_kafka_conf_set(conf, "retry.backoff.max.ms", "50", NULL, 0);
        return conf;
}

static rd_kafka_t *client(rd_kafka_type_t type, rd_kafka_conf_t *conf, int api, int code, int count) {
        char errstr[256];
        rd_kafka_resp_err_t codes[ALL];
        rd_kafka_t *rk = rd_kafka_new(type, conf, errstr, sizeof(errstr));
        rd_kafka_mock_cluster_t *cluster = rd_kafka_handle_mock_cluster(rk);
        int i;
        for (i = 0; i < ALL; i++)
                codes[i] = code;
        rd_kafka_mock_topic_create(cluster, "t", 1, 1);
        rd_kafka_mock_topic_set_error(cluster, "gone", RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
        if (count)
                rd_kafka_mock_push_request_errors_array(cluster, api, count, codes);
        return rk;
}

static void on_status(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
        (void)rk;
        say("  report %s status %d", err(message->err), rd_kafka_message_status(message));
        *(int *)opaque = 1;
}

CASE(status_of_refused_messages) {
        /* Every code that Kafka documents for Produce and that ends a message in both libraries. */
        static const int codes[] = {2, 7, 10, 17, 18, 19, 20, 21, 22, 29, 31, 32, 35, 42, 43, 48, 49, 53, 56, 67, 76, 87, 89, 90};
        size_t i;
        int idempotent;
        for (i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
                for (idempotent = 0; idempotent < 2; idempotent++) {
                        rd_kafka_conf_t *conf = configuration();
                        rd_kafka_t *rk;
                        int reported = 0;
                        rd_kafka_conf_set(conf, "retries", "1", NULL, 0);
                        rd_kafka_conf_set(conf, "enable.idempotence", idempotent ? "true" : "false", NULL, 0);
                        rd_kafka_conf_set_dr_msg_cb(conf, on_status);
                        rd_kafka_conf_set_opaque(conf, &reported);
                        rk = client(RD_KAFKA_PRODUCER, conf, PRODUCE, codes[i], 2);
                        say("code %d%s", codes[i], idempotent ? ", idempotent" : "");
                        rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_VALUE("x", 1), RD_KAFKA_V_END);
                        while (!reported)
                                rd_kafka_poll(rk, 100);
                        rd_kafka_destroy(rk);
                }
}

static void times(rd_kafka_t *rk, const char *topic, int partition, int with_known) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(2);
        int code, i;
        if (with_known)
                rd_kafka_topic_partition_list_add(list, "t", 0)->offset = 5;
        rd_kafka_topic_partition_list_add(list, topic, partition)->offset = 6;
        code = rd_kafka_offsets_for_times(rk, list, 10000);
        say("offsets_for_times of %s [%d]%s: %s", topic, partition, with_known ? " and a known one" : "", err(code));
        for (i = 0; i < list->cnt; i++)
                say("  %s [%d] %s %lld", list->elems[i].topic, list->elems[i].partition, err(list->elems[i].err),
                    (long long)list->elems[i].offset);
        rd_kafka_topic_partition_list_destroy(list);
}

static void watermarks(rd_kafka_t *rk, const char *topic, int partition) {
        int64_t low = -5, high = -5;
        int code = rd_kafka_query_watermark_offsets(rk, topic, partition, &low, &high, 10000);
        say("watermarks of %s [%d]: %s %lld %lld", topic, partition, err(code), (long long)low, (long long)high);
}

CASE(offsets_of_what_does_not_exist) {
        rd_kafka_conf_t *conf = configuration();
        rd_kafka_t *rk;
        int with_known;
        rd_kafka_conf_set(conf, "group.id", "g", NULL, 0);
        rk = client(RD_KAFKA_CONSUMER, conf, 0, 0, 0);
        for (with_known = 0; with_known < 2; with_known++) {
                times(rk, "gone", 0, with_known);
                times(rk, "t", 7, with_known);
        }
        watermarks(rk, "gone", 0);
        watermarks(rk, "t", 7);
        rd_kafka_destroy(rk);
}

CASE(offsets_that_brokers_go_on_refusing) {
        static const int codes[] = {3, 6, 7, 29, 56};
        size_t i;
        for (i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
                rd_kafka_conf_t *conf = configuration();
                rd_kafka_t *rk;
                rd_kafka_conf_set(conf, "group.id", "g", NULL, 0);
                rk = client(RD_KAFKA_CONSUMER, conf, LIST_OFFSETS, codes[i], ALL);
                watermarks(rk, "t", 0);
                times(rk, "t", 0, 0);
                rd_kafka_destroy(rk);
        }
}

CASE(refused_start_offset_where_resets_are_errors) {
        rd_kafka_conf_t *conf = configuration();
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_t *rk;
        int seen = 0;
        rd_kafka_conf_set(conf, "group.id", "g", NULL, 0);
        rd_kafka_conf_set(conf, "auto.offset.reset", "error", NULL, 0);
        rk = client(RD_KAFKA_CONSUMER, conf, LIST_OFFSETS, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, ALL);
        rd_kafka_poll_set_consumer(rk);
        rd_kafka_topic_partition_list_add(list, "t", 0)->offset = RD_KAFKA_OFFSET_BEGINNING;
        say("assign: %s", err(rd_kafka_assign(rk, list)));
        while (seen < 2) {
                rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, 1000);
                if (!message)
                        continue;
                say("message %s %s [%d]", err(message->err), message->rkt ? rd_kafka_topic_name(message->rkt) : "NULL",
                    message->partition);
                rd_kafka_message_destroy(message);
                seen++;
        }
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_destroy(rk);
}

/* Creates a topic whose records need keys. */
static void compacted_topic(const char *topic) {
        rd_kafka_t *rk = producer_of(conf_of("bootstrap.servers", bootstrap(), NULL));
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
        rd_kafka_NewTopic_t *new_topic = rd_kafka_NewTopic_new(topic, 1, 1, NULL, 0);
        rd_kafka_event_t *event;
        rd_kafka_NewTopic_set_config(new_topic, "cleanup.policy", "compact");
        rd_kafka_CreateTopics(rk, &new_topic, 1, NULL, queue);
        event = rd_kafka_queue_poll(queue, TIMEOUT_MS);
        say("topic %s", err(rd_kafka_event_error(event)));
        rd_kafka_event_destroy(event);
        rd_kafka_NewTopic_destroy(new_topic);
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
}

static struct recorder refused = RECORDER;

/* The text of librdkafka for the first refused record is empty in some runs. */
static void on_refused(rd_kafka_t *rk UNUSED, const rd_kafka_message_t *message, void *opaque UNUSED) {
        record(&refused, "%.*s: %s %s text %s", (int)message->len, (char *)message->payload, err(message->err),
               status_name(rd_kafka_message_status(message)), rd_kafka_message_produce_errstr(message) ? "given" : "NULL");
}

/* The broker names the records of a batch that it refuses, and refuses the batch because of them. */
static void partly_invalid(const char *name, const char *idempotent) {
        const char *topic = topic_name(name);
        rd_kafka_conf_t *conf = conf_of("bootstrap.servers", bootstrap(), "linger.ms", "300", "enable.idempotence", idempotent, NULL);
        rd_kafka_t *rk;
        int i;
        rd_kafka_conf_set_dr_msg_cb(conf, on_refused);
        compacted_topic(topic);
        rk = start(RD_KAFKA_PRODUCER, conf);
        for (i = 0; i < 4; i++)
                rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_KEY("key", i == 1 ? 0 : 3),
                                  RD_KAFKA_V_VALUE((void *)&"0123"[i], 1), RD_KAFKA_V_END);
        for (i = 0; i < 2; i++)
                rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_KEY(NULL, 0),
                                  RD_KAFKA_V_VALUE((void *)&"45"[i], 1), RD_KAFKA_V_END);
        say("flush %s", err(rd_kafka_flush(rk, TIMEOUT_MS)));
        say("fatal %s", err(rd_kafka_fatal_error(rk, NULL, 0)));
        rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_KEY("key", 3), RD_KAFKA_V_VALUE("last", 4), RD_KAFKA_V_END);
        say("flush %s", err(rd_kafka_flush(rk, TIMEOUT_MS)));
        say_recorded("reports", &refused);
        rd_kafka_destroy(rk);
}
BROKER_CASE(records_without_keys_for_a_compacted_topic) { partly_invalid("compacted", "false"); }
BROKER_CASE(records_without_keys_of_an_idempotent_producer) { partly_invalid("compacted-idempotent", "true"); }
