/* Mistakes of a program that the library can detect: each row returns an error, and nothing crashes. */
#include "test.h"
#include <errno.h>

int main(int argc, char **argv) {
        char errstr[256], value[64];
        size_t size = sizeof(value);
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_topic_partition_list_t *list;
        rd_kafka_headers_t *headers;
        rd_kafka_error_t *error;
        rd_kafka_topic_t *topic;
        rd_kafka_t *rk;

        if (argc < 2)
                return 2;
        /* Configuration. */
        CHECK(rd_kafka_conf_set(conf, "no.such.thing", "1", errstr, sizeof(errstr)) == RD_KAFKA_CONF_UNKNOWN);
        CHECK(strstr(errstr, "no.such.thing"));
        CHECK(rd_kafka_conf_set(conf, "linger.ms", "-5", errstr, sizeof(errstr)) == RD_KAFKA_CONF_INVALID);
        CHECK(rd_kafka_conf_set(conf, "linger.ms", "-5", NULL, 0) == RD_KAFKA_CONF_INVALID);
        CHECK(rd_kafka_conf_set(NULL, "linger.ms", "5", errstr, sizeof(errstr)) == RD_KAFKA_CONF_INVALID);
        CHECK(rd_kafka_conf_set(conf, "dr_msg_cb", "x", errstr, sizeof(errstr)) == RD_KAFKA_CONF_INVALID);
        memset(errstr, 'x', sizeof(errstr));
        CHECK(rd_kafka_conf_set(conf, "no.such.thing", "1", errstr, 3) == RD_KAFKA_CONF_UNKNOWN);
        CHECK(errstr[2] == 0 && errstr[3] == 'x');
        CHECK(rd_kafka_conf_get(conf, "linger.ms", value, &size) == RD_KAFKA_CONF_OK && !strcmp(value, "5"));
        CHECK(size == 2);
        CHECK(rd_kafka_conf_get(conf, "no.such.thing", value, &size) == RD_KAFKA_CONF_UNKNOWN);
        set(conf, "bootstrap.servers", argv[1]);
        CHECK(rd_kafka_new((rd_kafka_type_t)7, conf, errstr, sizeof(errstr)) == NULL);
        /* The built-in partitioners, as other implementations place these keys. */
        CHECK(rd_kafka_msg_partitioner_consistent(NULL, "123456789", 9, 1000, NULL, NULL) == (int)(0xcbf43926u % 1000));
        CHECK(rd_kafka_msg_partitioner_consistent_random(NULL, "123456789", 9, 1000, NULL, NULL) ==
              (int)(0xcbf43926u % 1000));
        CHECK(rd_kafka_msg_partitioner_murmur2(NULL, "kafka", 5, 1 << 30, NULL, NULL) == (int)(0xd067cf64u & 0x3fffffff));
        CHECK(rd_kafka_msg_partitioner_murmur2_random(NULL, "kafka", 5, 1 << 30, NULL, NULL) ==
              (int)(0xd067cf64u & 0x3fffffff));
        CHECK(rd_kafka_msg_partitioner_fnv1a(NULL, "kafka", 5, 7, NULL, NULL) ==
              rd_kafka_msg_partitioner_fnv1a_random(NULL, "kafka", 5, 7, NULL, NULL));
        for (size = 0; size < 100; size++) {
                int32_t anywhere = rd_kafka_msg_partitioner_random(NULL, NULL, 0, 3, NULL, NULL);
                CHECK(anywhere >= 0 && anywhere < 3);
        }
        CHECK(rd_kafka_msg_partitioner_murmur2(NULL, "kafka", 5, 0, NULL, NULL) == RD_KAFKA_PARTITION_UA);
        size = sizeof(value);
        /* NULL for every argument. */
        CHECK(rd_kafka_produce(NULL, 0, 0, NULL, 0, NULL, 0, NULL) == -1);
        CHECK(rd_kafka_last_error() == RD_KAFKA_RESP_ERR__INVALID_ARG && errno == EINVAL);
        CHECK(rd_kafka_poll(NULL, 0) == 0);
        CHECK(rd_kafka_flush(NULL, 0) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_topic_new(NULL, "t", NULL) == NULL);
        CHECK(rd_kafka_consumer_poll(NULL, 0) == NULL);
        rd_kafka_destroy(NULL);
        rd_kafka_topic_destroy(NULL);
        rd_kafka_queue_destroy(NULL);
        rd_kafka_message_destroy(NULL);
        rd_kafka_event_destroy(NULL);
        rd_kafka_topic_partition_list_destroy(NULL);
        rd_kafka_headers_destroy(NULL);
        rd_kafka_conf_destroy(NULL);
        /* Handles of another kind. */
        CHECK(rd_kafka_poll((rd_kafka_t *)conf, 0) == 0);
        CHECK(rd_kafka_topic_new((rd_kafka_t *)conf, "t", NULL) == NULL);
        /* A producer. */
        rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof(errstr));
        CHECK(rk != NULL);
        CHECK(rd_kafka_topic_new(rk, NULL, NULL) == NULL);
        topic = rd_kafka_topic_new(rk, "misuse", NULL);
        CHECK(topic != NULL && !strcmp(rd_kafka_topic_name(topic), "misuse"));
        CHECK(rd_kafka_produce(topic, -2, 0, NULL, 0, NULL, 0, NULL) == -1);
        CHECK(rd_kafka_last_error() == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION && errno == ESRCH);
        CHECK(rd_kafka_produce(topic, 0, RD_KAFKA_MSG_F_COPY, NULL, 5, NULL, 0, NULL) == -1);
        CHECK(rd_kafka_produce(topic, 0, 0, errstr, (size_t)-1, NULL, 0, NULL) == -1);
        CHECK(rd_kafka_produce_batch(topic, 0, 0, NULL, 5) == 0);
        CHECK(rd_kafka_producev(rk, RD_KAFKA_V_VALUE("x", 1), RD_KAFKA_V_END) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("misuse"), 99, 1, RD_KAFKA_V_END) ==
              RD_KAFKA_RESP_ERR__INVALID_ARG);
        headers = rd_kafka_headers_new(1);
        CHECK(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("misuse"), RD_KAFKA_V_HEADER("a", "b", -1),
                                RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_END) == RD_KAFKA_RESP_ERR__CONFLICT);
        rd_kafka_headers_destroy(headers);
        CHECK(rd_kafka_purge(rk, 64) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_assign(rk, NULL) != RD_KAFKA_RESP_ERR_NO_ERROR);
        CHECK(rd_kafka_unsubscribe(rk) == RD_KAFKA_RESP_ERR__UNKNOWN_GROUP);
        error = rd_kafka_share_poll(NULL, 0, NULL);
        CHECK(rd_kafka_error_code(error) == RD_KAFKA_RESP_ERR__STATE);
        rd_kafka_error_destroy(error);
        error = rd_kafka_error_new(RD_KAFKA_RESP_ERR__STATE, "%s %d", "seven is", 7);
        CHECK(!strcmp(rd_kafka_error_string(error), "seven is 7"));
        CHECK(!strcmp(rd_kafka_error_name(error), "_STATE"));
        rd_kafka_error_destroy(error);
        /* The first fatal error is kept. */
        CHECK(rd_kafka_fatal_error(rk, errstr, sizeof(errstr)) == RD_KAFKA_RESP_ERR_NO_ERROR);
        CHECK(rd_kafka_test_fatal_error(rk, RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, "test") == 0);
        CHECK(rd_kafka_fatal_error(rk, errstr, sizeof(errstr)) == RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
        CHECK(rd_kafka_produce(topic, 0, RD_KAFKA_MSG_F_COPY, "x", 1, NULL, 0, NULL) == -1);
        CHECK(rd_kafka_last_error() == RD_KAFKA_RESP_ERR__FATAL && errno == ECANCELED);
        rd_kafka_destroy(rk);
        /* The topic outlives its client. */
        CHECK(!strcmp(rd_kafka_topic_name(topic), "misuse"));
        CHECK(rd_kafka_produce(topic, 0, RD_KAFKA_MSG_F_COPY, "x", 1, NULL, 0, NULL) == -1);
        rd_kafka_topic_destroy(topic);
        /* Lists. */
        list = rd_kafka_topic_partition_list_new(-5);
        CHECK(rd_kafka_topic_partition_list_add(list, NULL, 0) == NULL);
        rd_kafka_topic_partition_list_add_range(list, "b", 0, 9);
        rd_kafka_topic_partition_list_add(list, "a", 3)->offset = 5;
        CHECK(list->cnt == 11);
        rd_kafka_topic_partition_list_sort(list, NULL, NULL);
        CHECK(!strcmp(list->elems[0].topic, "a") && list->elems[0].offset == 5);
        CHECK(rd_kafka_topic_partition_list_del(list, "b", 4) == 1);
        CHECK(rd_kafka_topic_partition_list_del(list, "b", 4) == 0);
        CHECK(rd_kafka_topic_partition_list_del_by_idx(list, 99) == 0);
        CHECK(rd_kafka_topic_partition_list_find(list, "b", 5)->partition == 5);
        rd_kafka_topic_partition_list_destroy(list);
        CHECK(rd_kafka_wait_destroyed(1000) == 0);
        return bad != 0;
}
