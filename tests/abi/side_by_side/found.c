/* Differences that `cargo xtask abi --generate` found, each shrunk to a few calls. */
#include "side_by_side.h"

static rd_kafka_t *client(rd_kafka_type_t type, const char *name, const char *value) {
        rd_kafka_conf_t *conf = conf_of("test.mock.num.brokers", "1", "log_level", "0", NULL);
        rd_kafka_t *rk;
        char errstr[512];
        if (name)
                set(conf, name, value);
        rk = rd_kafka_new(type, conf, errstr, sizeof(errstr));
        if (!rk)
                rd_kafka_conf_destroy(conf);
        return rk;
}

CASE(subscription_without_a_group) {
        rd_kafka_type_t type;
        for (type = RD_KAFKA_PRODUCER; type <= RD_KAFKA_CONSUMER; type++) {
                rd_kafka_t *rk = client(type, NULL, NULL);
                rd_kafka_topic_partition_list_t *list = NULL;
                say("subscription: %s", err(rd_kafka_subscription(rk, &list)));
                rd_kafka_destroy(rk);
        }
}

CASE(watermarks_of_a_producer) {
        rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, NULL, NULL);
        int64_t low = 7, high = 7;
        say("watermarks: %s", err(rd_kafka_get_watermark_offsets(rk, "t", 0, &low, &high)));
        say("low %s high %s", offset_name(low), offset_name(high));
        rd_kafka_destroy(rk);
}

CASE(payload_to_be_copied_and_freed) {
        rd_kafka_t *rk = producer_of(conf_of("test.mock.num.brokers", "1", "log_level", "0", NULL));
        rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, "t", NULL);
        char *payload = strdup("payload");
        int flags = RD_KAFKA_MSG_F_COPY | RD_KAFKA_MSG_F_FREE;
        say("produce: %d", rd_kafka_produce(topic, 0, flags, payload, 7, NULL, 0, NULL));
        say("producev: %s", err(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_MSGFLAGS(flags),
                                                  RD_KAFKA_V_VALUE(payload, 7), RD_KAFKA_V_END)));
        say("flush: %s", err(rd_kafka_flush(rk, TIMEOUT_MS)));
        say("reports: %d", recorded(&reports));
        /* The payload stays the application's. */
        free(payload);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
}

CASE(offsets_without_an_offset_in_any_state) {
        rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, "transactional.id", "x");
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_consumer_group_metadata_t *group = rd_kafka_consumer_group_metadata_new("g");
        say_error("an empty list", rd_kafka_send_offsets_to_transaction(rk, list, group, 1000));
        rd_kafka_topic_partition_list_add(list, "t", 0);
        say_error("no offset", rd_kafka_send_offsets_to_transaction(rk, list, group, 1000));
        list->elems[0].offset = 5;
        say_error("an offset", rd_kafka_send_offsets_to_transaction(rk, list, group, 1000));
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_consumer_group_metadata_destroy(group);
        rd_kafka_destroy(rk);
}

CASE(names_of_clients_skip_failures) {
        rd_kafka_t *first = client(RD_KAFKA_PRODUCER, NULL, NULL);
        rd_kafka_t *failed = client(RD_KAFKA_CONSUMER, "max.poll.interval.ms", "20000");
        rd_kafka_t *second = client(RD_KAFKA_PRODUCER, NULL, NULL);
        say("%s, %s, %s", rd_kafka_name(first), failed ? "a client" : "none", rd_kafka_name(second));
        rd_kafka_destroy(second);
        rd_kafka_destroy(first);
}
