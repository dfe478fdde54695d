/* The list of headers that a message has belongs to the message: interceptors and the application change it there, and
 * what is sent or reported afterwards has the changes. */
#include "test.h"

#define TOPIC "headers"
#define MESSAGES 3

/* The headers that the last report and the last consumed message had, like "a=x trace=1". */
static char reported[256], consumed[256];

/* Writes the headers of a message. */
static void list(const rd_kafka_message_t *message, char *text) {
        rd_kafka_headers_t *headers = NULL;
        const char *name;
        const void *value;
        size_t size, i;
        *text = 0;
        if (rd_kafka_message_headers(message, &headers))
                return;
        for (i = 0; !rd_kafka_header_get_all(headers, i, &name, &value, &size); i++)
                sprintf(text + strlen(text), "%s%s=%.*s", i ? " " : "", name, (int)size, (const char *)value);
}

/* Adds a header to the list of a message, which is the message's own. */
static void add(rd_kafka_message_t *message, const char *name) {
        rd_kafka_headers_t *headers = NULL;
        CHECK(!rd_kafka_message_headers(message, &headers));
        CHECK(rd_kafka_header_add(headers, name, -1, "1", 1) == 0);
}

static rd_kafka_resp_err_t on_send(rd_kafka_t *rk, rd_kafka_message_t *message, void *opaque) {
        rd_kafka_headers_t *headers = NULL;
        (void)rk, (void)opaque;
        if (rd_kafka_message_headers(message, &headers)) {
                headers = rd_kafka_headers_new(1);
                rd_kafka_message_set_headers(message, headers);
        } else {
                CHECK(rd_kafka_header_remove(headers, "gone") == 0);
                CHECK(rd_kafka_header_remove(headers, "gone") == RD_KAFKA_RESP_ERR__NOENT);
        }
        /* The list belongs to the message in both cases. */
        CHECK(rd_kafka_header_add(headers, "trace", -1, "1", 1) == 0);
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_acknowledgement(rd_kafka_t *rk, rd_kafka_message_t *message, void *opaque) {
        (void)rk, (void)opaque;
        add(message, "acknowledged");
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_consume(rd_kafka_t *rk, rd_kafka_message_t *message, void *opaque) {
        (void)rk, (void)opaque;
        add(message, "intercepted");
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t
on_new(rd_kafka_t *rk, const rd_kafka_conf_t *conf, void *opaque, char *errstr, size_t errstr_size) {
        (void)conf, (void)opaque, (void)errstr, (void)errstr_size;
        CHECK(rd_kafka_interceptor_add_on_send(rk, "headers", on_send, NULL) == 0);
        CHECK(rd_kafka_interceptor_add_on_acknowledgement(rk, "headers", on_acknowledgement, NULL) == 0);
        CHECK(rd_kafka_interceptor_add_on_consume(rk, "headers", on_consume, NULL) == 0);
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static void on_report(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
        (void)rk, (void)opaque;
        add((rd_kafka_message_t *)message, "reported");
        list(message, reported);
}

static void produce(rd_kafka_t *rk, rd_kafka_headers_t *headers, const char *expected) {
        rd_kafka_resp_err_t err =
            headers ? rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(TOPIC), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_VALUE("x", 1),
                                        RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_END)
                    : rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(TOPIC), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_VALUE("x", 1),
                                        RD_KAFKA_V_END);
        CHECK(!err);
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
        if (strcmp(reported, expected)) {
                fprintf(stderr, "reported \"%s\" instead of \"%s\"\n", reported, expected);
                bad++;
        }
}

static rd_kafka_headers_t *two(void) {
        rd_kafka_headers_t *headers = rd_kafka_headers_new(2);
        CHECK(rd_kafka_header_add(headers, "a", -1, "x", 1) == 0);
        CHECK(rd_kafka_header_add(headers, "gone", -1, "y", 1) == 0);
        return headers;
}

int main(void) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_topic_partition_list_t *partitions = rd_kafka_topic_partition_list_new(1);
        rd_kafka_mock_cluster_t *cluster;
        rd_kafka_t *rk, *consumer;
        int i;
        set(conf, "test.mock.num.brokers", "1");
        set(conf, "log_level", "2");
        CHECK(rd_kafka_conf_interceptor_add_on_new(conf, "headers", on_new, NULL) == 0);
        rd_kafka_conf_set_dr_msg_cb(conf, on_report);
        rk = start(RD_KAFKA_PRODUCER, conf);
        cluster = rd_kafka_handle_mock_cluster(rk);
        CHECK(rd_kafka_mock_topic_create(cluster, TOPIC, 1, 1) == 0);
        produce(rk, two(), "a=x trace=1 acknowledged=1 reported=1");
        produce(rk, NULL, "trace=1 acknowledged=1 reported=1");
        produce(rk, two(), "a=x trace=1 acknowledged=1 reported=1");

        conf = rd_kafka_conf_new();
        set(conf, "bootstrap.servers", rd_kafka_mock_cluster_bootstraps(cluster));
        set(conf, "group.id", "headers");
        CHECK(rd_kafka_conf_interceptor_add_on_new(conf, "headers", on_new, NULL) == 0);
        consumer = start(RD_KAFKA_CONSUMER, conf);
        rd_kafka_topic_partition_list_add(partitions, TOPIC, 0)->offset = 0;
        CHECK(rd_kafka_assign(consumer, partitions) == 0);
        for (i = 0; i < MESSAGES; i++) {
                rd_kafka_message_t *message = rd_kafka_consumer_poll(consumer, TIMEOUT_MS);
                CHECK(message && !message->err);
                if (!message)
                        break;
                add(message, "mine");
                list(message, consumed);
                CHECK(!strcmp(consumed, i == 1 ? "trace=1 intercepted=1 mine=1" : "a=x trace=1 intercepted=1 mine=1"));
                rd_kafka_message_destroy(message);
        }
        rd_kafka_topic_partition_list_destroy(partitions);
        rd_kafka_destroy(consumer);
        rd_kafka_destroy(rk);
        return bad != 0;
}
