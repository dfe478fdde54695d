/* Calls that have no time to wait. */
#include "side_by_side.h"

static int error_count;

static void count_errors(rd_kafka_t *rk, int code, const char *reason, void *opaque) {
        (void)rk, (void)code, (void)reason, (void)opaque;
        error_count++;
}

static void say_list(const char *what, rd_kafka_resp_err_t result, rd_kafka_topic_partition_list_t *list) {
        say("  %s %s; offset %lld, error %s", what, err(result), (long long)list->elems[0].offset,
            err(list->elems[0].err));
}

/* Each query with a timeout of zero. */
static void query(rd_kafka_t *rk, rd_kafka_topic_t *topic, int is_member) {
        const struct rd_kafka_metadata *metadata;
        const struct rd_kafka_group_list *groups;
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        int64_t low = -7, high = -7;
        rd_kafka_topic_partition_list_add(list, "t", 0)->offset = 5;
        list->elems[0].err = RD_KAFKA_RESP_ERR__FAIL;
        say("  watermarks %s", err(rd_kafka_query_watermark_offsets(rk, "t", 0, &low, &high, 0)));
        say("  of another partition %s", err(rd_kafka_query_watermark_offsets(rk, "t", 77, &low, &high, 0)));
        say("  low %lld high %lld", (long long)low, (long long)high);
        say_list("offsets for times", rd_kafka_offsets_for_times(rk, list, 0), list);
        if (is_member) {
                rd_kafka_resp_err_t result = rd_kafka_committed(rk, list, 0);
                /* The response may be there before librdkafka looks at the time. */
                say("  committed %s", !result || result == RD_KAFKA_RESP_ERR__TIMED_OUT ? "ends" : err(result));
                list->elems[0].offset = 0;
                say("  seek %s", err(rd_kafka_seek(topic, 0, 0, 0)));
                say_error("  seek partitions", rd_kafka_seek_partitions(rk, list, 0));
                say("  partition %s", err(list->elems[0].err));
        }
        say("  metadata of all %s", err(rd_kafka_metadata(rk, 1, NULL, &metadata, 0)));
        say("  metadata of known topics %s", err(rd_kafka_metadata(rk, 0, NULL, &metadata, 0)));
        say("  metadata of one %s", err(rd_kafka_metadata(rk, 0, topic, &metadata, 0)));
        say("  groups %s", err(rd_kafka_list_groups(rk, NULL, &groups, 0)));
        say("  one group %s", err(rd_kafka_list_groups(rk, "g", &groups, 0)));
        rd_kafka_topic_partition_list_destroy(list);
}

CASE(queries_without_time_keep_the_connection) {
        int kind, repeat;
        for (kind = 0; kind < 3; kind++) {
                char errstr[256];
                const struct rd_kafka_metadata *metadata;
                rd_kafka_conf_t *conf = rd_kafka_conf_new();
                rd_kafka_topic_t *topic;
                rd_kafka_t *rk;
                int64_t low = -7, high = -7;
                error_count = 0;
                rd_kafka_conf_set(conf, "test.mock.num.brokers", "1", NULL, 0);
                rd_kafka_conf_set(conf, "log_level", "0", NULL, 0);
                if (kind == 2)
                        rd_kafka_conf_set(conf, "group.id", "g", NULL, 0);
                rd_kafka_conf_set_error_cb(conf, count_errors);
                rk = rd_kafka_new(kind ? RD_KAFKA_CONSUMER : RD_KAFKA_PRODUCER, conf, errstr, sizeof(errstr));
                rd_kafka_mock_topic_create(rd_kafka_handle_mock_cluster(rk), "t", 1, 1);
                topic = rd_kafka_topic_new(rk, "t", NULL);
                if (kind == 2) {
                        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
                        rd_kafka_topic_partition_list_add(list, "t", 0)->offset = 0;
                        rd_kafka_assign(rk, list);
                        rd_kafka_topic_partition_list_destroy(list);
                }
                say("%s", kind == 0 ? "producer" : kind == 1 ? "consumer" : "consumer of a group");
                for (repeat = 0; repeat < 3; repeat++) {
                        rd_kafka_resp_err_t result = rd_kafka_metadata(rk, 1, NULL, &metadata, TIMEOUT_MS);
                        say(" metadata in time %s", err(result));
                        if (!result)
                                rd_kafka_metadata_destroy(metadata);
                        say(" watermarks in time %s",
                            err(rd_kafka_query_watermark_offsets(rk, "t", 0, &low, &high, TIMEOUT_MS)));
                        query(rk, topic, kind == 2);
                }
                rd_kafka_poll(rk, 0);
                say("%d errors", error_count);
                rd_kafka_topic_destroy(topic);
                rd_kafka_destroy(rk);
        }
}
