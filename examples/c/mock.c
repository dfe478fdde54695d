/*
 * A test with brokers in the process: one error is injected, and the message arrives all the same: mock
 *
 *   cc mock.c -o mock $(pkg-config --cflags --libs rdkafka)
 */
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <stdio.h>

/* The ApiKey of Produce requests. */
#define PRODUCE 0

static int delivered;

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
        (void)rk;
        (void)opaque;
        delivered += message->err == RD_KAFKA_RESP_ERR_NO_ERROR;
}

int main(void) {
        char errstr[512];
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_mock_cluster_t *cluster;
        rd_kafka_t *owner, *rk;

        /* The cluster belongs to a client, which is not used otherwise. */
        owner = rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), errstr, sizeof(errstr));
        cluster = owner ? rd_kafka_mock_cluster_new(owner, 3) : NULL;
        if (!cluster) {
                fprintf(stderr, "no cluster: %s\n", errstr);
                return 1;
        }
        rd_kafka_mock_topic_create(cluster, "orders", 2, 3);
        rd_kafka_mock_push_request_errors(cluster, PRODUCE, 1, RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS);

        rd_kafka_conf_set(conf, "bootstrap.servers", rd_kafka_mock_cluster_bootstraps(cluster), errstr, sizeof(errstr));
        rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
        rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof(errstr));
        if (!rk) {
                fprintf(stderr, "%s\n", errstr);
                return 1;
        }
        rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("orders"), RD_KAFKA_V_VALUE("order 0", 7), RD_KAFKA_V_END);
        rd_kafka_flush(rk, 30000);
        rd_kafka_destroy(rk);
        rd_kafka_mock_cluster_destroy(cluster);
        rd_kafka_destroy(owner);
        printf("%d delivered\n", delivered);
        return delivered == 1 ? 0 : 1;
}
