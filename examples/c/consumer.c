/*
 * Prints the messages of a partition up to its end: consumer BROKERS TOPIC [PARTITION]
 *
 *   cc consumer.c -o consumer $(pkg-config --cflags --libs rdkafka)
 */
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
        char errstr[512];
        int partition = argc > 3 ? atoi(argv[3]) : 0, at_end = 0;
        rd_kafka_topic_partition_list_t *partitions;
        rd_kafka_conf_t *conf;
        rd_kafka_t *rk;

        if (argc < 3) {
                fprintf(stderr, "usage: %s BROKERS TOPIC [PARTITION]\n", argv[0]);
                return 2;
        }
        conf = rd_kafka_conf_new();
        if (rd_kafka_conf_set(conf, "bootstrap.servers", argv[1], errstr, sizeof(errstr)) != RD_KAFKA_CONF_OK ||
            rd_kafka_conf_set(conf, "group.id", "example", errstr, sizeof(errstr)) != RD_KAFKA_CONF_OK ||
            rd_kafka_conf_set(conf, "enable.partition.eof", "true", errstr, sizeof(errstr)) != RD_KAFKA_CONF_OK) {
                fprintf(stderr, "%s\n", errstr);
                return 1;
        }
        rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, errstr, sizeof(errstr));
        if (!rk) {
                fprintf(stderr, "%s\n", errstr);
                return 1;
        }
        rd_kafka_poll_set_consumer(rk);
        partitions = rd_kafka_topic_partition_list_new(1);
        rd_kafka_topic_partition_list_add(partitions, argv[2], partition)->offset = RD_KAFKA_OFFSET_BEGINNING;
        rd_kafka_assign(rk, partitions);
        rd_kafka_topic_partition_list_destroy(partitions);
        while (!at_end) {
                rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, 10000);
                if (!message) {
                        fprintf(stderr, "nothing came\n");
                        return 1;
                }
                if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
                        at_end = 1;
                } else if (message->err) {
                        fprintf(stderr, "%s\n", rd_kafka_message_errstr(message));
                } else {
                        printf("%ld: %.*s\n", (long)message->offset, (int)message->len, (const char *)message->payload);
                }
                rd_kafka_message_destroy(message);
        }
        rd_kafka_consumer_close(rk);
        rd_kafka_destroy(rk);
        return 0;
}
