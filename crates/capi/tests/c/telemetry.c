/* A mock cluster and the metrics of clients (KIP-714): a client that speaks the protocol itself requests its
 * subscription, and pushes metrics. */
#include "wire.h"

#define GET_TELEMETRY_SUBSCRIPTIONS 71
#define PUSH_TELEMETRY 72

/* Requests the subscription; returns the number of metrics, whose names are read next. */
static int subscription(int fd, unsigned char *id, int *interval) {
        unsigned char body[17];
        memcpy(body, id, 16);
        body[16] = 0;
        call(fd, GET_TELEMETRY_SUBSCRIPTIONS, 0, body, sizeof(body));
        CHECK(number(2) == 0);
        memcpy(id, answer + at, 16);
        at += 16;
        CHECK(number(4) == 0);
        CHECK(number(1) == 5 && number(1) == 4 && number(1) == 3 && number(1) == 1 && number(1) == 2);
        *interval = (int)number(4);
        CHECK(number(4) == 10000);
        CHECK(number(1) == 1);
        return (int)number(1) - 1;
}

static void expect_name(const char *name) {
        size_t size = (size_t)number(1) - 1;
        CHECK(size == strlen(name) && at + size <= length && memcmp(answer + at, name, size) == 0);
        at += size;
}

static int push(int fd, const unsigned char *id, int subscription_id, const char *metrics) {
        unsigned char body[64];
        size_t size = strlen(metrics);
        memset(body, 0, sizeof(body));
        memcpy(body, id, 16);
        body[19] = (unsigned char)subscription_id;
        body[22] = (unsigned char)(size + 1);
        memcpy(body + 23, metrics, size);
        call(fd, PUSH_TELEMETRY, 0, body, 23 + size + 1);
        return (int)number(2);
}

int main(void) {
        static const unsigned char none[16];
        char producer[] = "org.apache.kafka.producer.", all[] = "*";
        char *names[3];
        unsigned char id[16];
        int interval = 0, i;
        rd_kafka_t *rk = start(RD_KAFKA_PRODUCER, rd_kafka_conf_new());
        rd_kafka_mock_cluster_t *cluster = rd_kafka_mock_cluster_new(rk, 1);
        int fd = connected(rd_kafka_mock_cluster_bootstraps(cluster));
        names[0] = producer;
        names[1] = all;
        names[2] = NULL;

        /* No metrics are requested unless an application sets them, and clients get an id. */
        memset(id, 0, sizeof(id));
        CHECK(subscription(fd, id, &interval) == 0 && interval == 300000);
        CHECK(memcmp(id, none, sizeof(id)) != 0);

        CHECK(rd_kafka_mock_telemetry_set_requested_metrics(cluster, names, 2) == 0);
        CHECK(rd_kafka_mock_telemetry_set_push_interval(cluster, 1500) == 0);
        memset(producer, 'x', 3);
        CHECK(subscription(fd, id, &interval) == 2 && interval == 1500);
        expect_name("org.apache.kafka.producer.");
        expect_name("*");

        /* Pushes are accepted at any time, of any subscription. */
        for (i = 0; i < 3; i++)
                CHECK(push(fd, id, i, "") == 0);
        CHECK(push(fd, id, 0, "no metrics") == RD_KAFKA_RESP_ERR_INVALID_RECORD);
        rd_kafka_mock_push_request_errors(cluster, PUSH_TELEMETRY, 1, RD_KAFKA_RESP_ERR_UNKNOWN_SUBSCRIPTION_ID);
        CHECK(push(fd, id, 0, "") == RD_KAFKA_RESP_ERR_UNKNOWN_SUBSCRIPTION_ID);

        CHECK(rd_kafka_mock_telemetry_set_requested_metrics(cluster, NULL, 0) == 0);
        for (i = 0; i >= -1; i--) {
                CHECK(rd_kafka_mock_telemetry_set_push_interval(cluster, i) == 0);
                CHECK(subscription(fd, id, &interval) == 0 && interval == 300000);
        }
        CHECK(rd_kafka_mock_telemetry_set_push_interval(cluster, INT64_MAX) == 0);
        CHECK(subscription(fd, id, &interval) == 0 && interval == INT32_MAX);

        /* Calls with invalid arguments. */
        CHECK(rd_kafka_mock_telemetry_set_requested_metrics(NULL, names, 2) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_mock_telemetry_set_requested_metrics(cluster, NULL, 1) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_mock_telemetry_set_requested_metrics(cluster, names, 3) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_mock_telemetry_set_push_interval(NULL, 1) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(subscription(fd, id, &interval) == 0);

        close(fd);
        rd_kafka_mock_cluster_destroy(cluster);
        rd_kafka_destroy(rk);
        return bad != 0;
}
