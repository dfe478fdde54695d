/*
 * Sends messages and prints their delivery reports: producer BROKERS TOPIC [COUNT]
 *
 *   cc producer.c -o producer $(pkg-config --cflags --libs rdkafka)
 */
#include <errno.h>
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int delivered, failed;

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
        (void)rk;
        (void)opaque;
        if (message->err) {
                fprintf(stderr, "not delivered: %s\n", rd_kafka_err2str(message->err));
                failed++;
        } else {
                delivered++;
        }
}

int main(int argc, char **argv) {
        char errstr[512], text[64];
        int i, count = argc > 3 ? atoi(argv[3]) : 10;
        rd_kafka_conf_t *conf;
        rd_kafka_topic_t *topic;
        rd_kafka_t *rk;

        if (argc < 3) {
                fprintf(stderr, "usage: %s BROKERS TOPIC [COUNT]\n", argv[0]);
                return 2;
        }
        conf = rd_kafka_conf_new();
        if (rd_kafka_conf_set(conf, "bootstrap.servers", argv[1], errstr, sizeof(errstr)) != RD_KAFKA_CONF_OK) {
                fprintf(stderr, "%s\n", errstr);
                return 1;
        }
        rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
        rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof(errstr));
        if (!rk) {
                fprintf(stderr, "%s\n", errstr);
                return 1;
        }
        topic = rd_kafka_topic_new(rk, argv[2], NULL);
        for (i = 0; i < count; i++) {
                int size = snprintf(text, sizeof(text), "message %d", i);
                while (rd_kafka_produce(topic, RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY, text, (size_t)size, NULL, 0,
                                        NULL) == -1) {
                        if (rd_kafka_last_error() != RD_KAFKA_RESP_ERR__QUEUE_FULL) {
                                fprintf(stderr, "not taken: %s\n", rd_kafka_err2str(rd_kafka_last_error()));
                                return 1;
                        }
                        /* Delivery reports free space in the queue. */
                        rd_kafka_poll(rk, 100);
                }
                rd_kafka_poll(rk, 0);
        }
        rd_kafka_flush(rk, 30000);
        printf("%d delivered, %d failed, %d left\n", delivered, failed, rd_kafka_outq_len(rk));
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
        return delivered == count ? 0 : 1;
}
