/* Undocumented behaviour of librdkafka on which programs rely: codes of mistakes, and results of calls without data.
 * Each function is a sentence. */
#include "test.h"

static int reports;

static void on_report(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
        rd_kafka_timestamp_type_t kind = RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME;
        int64_t timestamp = rd_kafka_message_timestamp(message, &kind);
        (void)rk;
        (void)opaque;
        reports++;
        if (message->err)
                CHECK(timestamp == -1 && kind == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE);
        else
                CHECK(timestamp == 12345 && kind == RD_KAFKA_TIMESTAMP_CREATE_TIME);
}

static rd_kafka_t *client(rd_kafka_type_t type, const char *servers) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        set(conf, "bootstrap.servers", servers);
        set(conf, "log_level", "2");
        if (type == RD_KAFKA_CONSUMER)
                set(conf, "group.id", "small print");
        else
                rd_kafka_conf_set_dr_msg_cb(conf, on_report);
        return start(type, conf);
}

static rd_kafka_resp_err_t code_of(rd_kafka_error_t *error) {
        rd_kafka_resp_err_t code = error ? rd_kafka_error_code(error) : RD_KAFKA_RESP_ERR_NO_ERROR;
        if (error)
                rd_kafka_error_destroy(error);
        return code;
}

static rd_kafka_resp_err_t produce(rd_kafka_t *rk) {
        return rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("small"), RD_KAFKA_V_PARTITION(0),
                                 RD_KAFKA_V_VALUE((void *)"value", 5), RD_KAFKA_V_TIMESTAMP(12345),
                                 RD_KAFKA_V_END);
}

/* kcat prints "(controller)" behind a broker by calling without a timeout, after the metadata has arrived. */
static void metadata_tells_the_controller_to_who_asks_without_waiting(const char *servers) {
        rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, servers);
        const struct rd_kafka_metadata *metadata = NULL;
        CHECK(rd_kafka_metadata(rk, 1, NULL, &metadata, TIMEOUT_MS) == 0);
        CHECK(rd_kafka_controllerid(rk, 0) > 0);
        rd_kafka_metadata_destroy(metadata);
        rd_kafka_destroy(rk);
}

static void a_partition_that_is_assigned_twice_is_an_invalid_argument(const char *servers) {
        rd_kafka_t *rk = client(RD_KAFKA_CONSUMER, servers);
        rd_kafka_topic_partition_list_t *twice = rd_kafka_topic_partition_list_new(2);
        rd_kafka_topic_partition_list_t *assigned = NULL;
        rd_kafka_topic_partition_list_add(twice, "small", 0)->offset = 0;
        rd_kafka_topic_partition_list_add(twice, "small", 0)->offset = 1;
        CHECK(rd_kafka_assign(rk, twice) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(code_of(rd_kafka_incremental_assign(rk, twice)) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_assignment(rk, &assigned) == 0 && assigned->cnt == 0);
        rd_kafka_topic_partition_list_destroy(assigned);
        rd_kafka_topic_partition_list_destroy(twice);
        rd_kafka_destroy(rk);
}

static void what_is_not_assigned_can_not_be_taken_away(const char *servers) {
        rd_kafka_t *rk = client(RD_KAFKA_CONSUMER, servers);
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_topic_partition_list_add(list, "small", 0)->offset = 0;
        CHECK(code_of(rd_kafka_incremental_unassign(rk, list)) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(code_of(rd_kafka_incremental_assign(rk, list)) == RD_KAFKA_RESP_ERR_NO_ERROR);
        CHECK(code_of(rd_kafka_incremental_assign(rk, list)) == RD_KAFKA_RESP_ERR__CONFLICT);
        CHECK(code_of(rd_kafka_incremental_unassign(rk, list)) == RD_KAFKA_RESP_ERR_NO_ERROR);
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_destroy(rk);
}

static void watermarks_that_were_never_told_are_invalid_and_no_error(const char *servers) {
        rd_kafka_t *rk = client(RD_KAFKA_CONSUMER, servers);
        int64_t low = 1, high = 1;
        CHECK(rd_kafka_get_watermark_offsets(rk, "small", 0, &low, &high) == RD_KAFKA_RESP_ERR_NO_ERROR);
        CHECK(low == RD_KAFKA_OFFSET_INVALID && high == RD_KAFKA_OFFSET_INVALID);
        rd_kafka_destroy(rk);
}

static void a_message_that_failed_has_no_timestamp(const char *servers, rd_kafka_mock_cluster_t *cluster) {
        rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, servers);
        CHECK(produce(rk) == 0 && rd_kafka_flush(rk, TIMEOUT_MS) == 0 && reports == 1);
        rd_kafka_mock_push_request_errors(cluster, 0, 1, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
        CHECK(produce(rk) == 0 && rd_kafka_flush(rk, TIMEOUT_MS) == 0 && reports == 2);
        CHECK(produce(rk) == 0 && rd_kafka_flush(rk, TIMEOUT_MS) == 0 && reports == 3);
        rd_kafka_destroy(rk);
}

static void a_producer_that_is_paused_sends_nothing_until_it_is_resumed(const char *servers) {
        rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, servers);
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        int i;
        reports = 0;
        rd_kafka_topic_partition_list_add(list, "small", 0);
        /* Before any metadata of the topic, and when messages are in flight already. */
        for (i = 0; i < 2; i++) {
                CHECK(rd_kafka_pause_partitions(rk, list) == 0 && list->elems[0].err == 0);
                CHECK(produce(rk) == 0);
                CHECK(rd_kafka_flush(rk, 700) == RD_KAFKA_RESP_ERR__TIMED_OUT && reports == 2 * i);
                CHECK(rd_kafka_resume_partitions(rk, list) == 0 && list->elems[0].err == 0);
                CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0 && reports == 2 * i + 1);
                CHECK(produce(rk) == 0 && rd_kafka_flush(rk, TIMEOUT_MS) == 0 && reports == 2 * i + 2);
        }
        CHECK(rd_kafka_pause_partitions(rk, list) == 0);
        CHECK(produce(rk) == 0);
        CHECK(rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE) == 0);
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0 && reports == 5);
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_destroy(rk);
}

static void servers_that_are_added_are_found_by_a_client_that_runs(const char *servers) {
        rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, "127.0.0.1:1");
        reports = 0;
        CHECK(produce(rk) == 0);
        CHECK(rd_kafka_flush(rk, 500) == RD_KAFKA_RESP_ERR__TIMED_OUT);
        CHECK(rd_kafka_brokers_add(rk, servers) == 2);
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0 && reports == 1);
        rd_kafka_destroy(rk);
}

/* A member of the group that has read the two messages of "small". */
static rd_kafka_t *reader(const char *servers, const char *group) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_t *rk;
        int i;
        set(conf, "bootstrap.servers", servers);
        set(conf, "group.id", group);
        set(conf, "log_level", "2");
        set(conf, "auto.commit.interval.ms", "60000");
        rk = start(RD_KAFKA_CONSUMER, conf);
        rd_kafka_poll_set_consumer(rk);
        rd_kafka_topic_partition_list_add(list, "small", 0)->offset = 0;
        CHECK(rd_kafka_assign(rk, list) == 0);
        for (i = 0; i < 2; i++) {
                rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, TIMEOUT_MS);
                CHECK(message && !message->err);
                if (message)
                        rd_kafka_message_destroy(message);
        }
        rd_kafka_topic_partition_list_destroy(list);
        return rk;
}

static int64_t committed(const char *servers, const char *group) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_t *rk;
        int64_t offset;
        set(conf, "bootstrap.servers", servers);
        set(conf, "group.id", group);
        rk = start(RD_KAFKA_CONSUMER, conf);
        rd_kafka_topic_partition_list_add(list, "small", 0);
        CHECK(rd_kafka_committed(rk, list, TIMEOUT_MS) == 0);
        offset = list->elems[0].offset;
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_destroy(rk);
        return offset;
}

static void a_consumer_that_is_destroyed_commits_what_it_has_read_unless_it_is_not_to_be_closed(const char *servers) {
        rd_kafka_destroy(reader(servers, "destroyed"));
        CHECK(committed(servers, "destroyed") == 2);
        rd_kafka_destroy_flags(reader(servers, "not closed"), RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
        CHECK(committed(servers, "not closed") == RD_KAFKA_OFFSET_INVALID);
}

static void commits_that_are_under_way_are_waited_for_by_close_and_destroy(const char *servers) {
        rd_kafka_t *rk = reader(servers, "assigned nothing");
        CHECK(rd_kafka_assign(rk, NULL) == 0);
        rd_kafka_destroy(rk);
        CHECK(committed(servers, "assigned nothing") == 2);
        rk = reader(servers, "commits and closes");
        CHECK(rd_kafka_commit(rk, NULL, 1) == 0);
        CHECK(rd_kafka_consumer_close(rk) == 0);
        CHECK(committed(servers, "commits and closes") == 2);
        rd_kafka_destroy(rk);
}

/* librdkafka dumps some properties with values that it refuses to accept: an empty `debug`, certificate stores of
 * Windows, pointers. */
static int is_dumped_but_refused(const char *name) {
        return !strcmp(name, "debug") || !strcmp(name, "ssl.ca.certificate.stores") || !strcmp(name, "log_cb") ||
               !strcmp(name, "default_topic_conf");
}

static void a_dump_can_be_set_again_and_names_no_property_twice(void) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new(), *copy = rd_kafka_conf_new();
        size_t count, i, other;
        const char **dump;
        char errstr[256];
        int has_acks = 0;
        set(conf, "acks", "1");
        set(conf, "client.id", "me");
        dump = rd_kafka_conf_dump(conf, &count);
        for (i = 0; i < count; i += 2) {
                for (other = i + 2; other < count; other += 2)
                        CHECK(strcmp(dump[i], dump[other]));
                if ((rd_kafka_conf_set(copy, dump[i], dump[i + 1], errstr, sizeof(errstr)) == RD_KAFKA_CONF_OK) ==
                    is_dumped_but_refused(dump[i])) {
                        fprintf(stderr, "%s: %s\n", dump[i], errstr);
                        bad++;
                }
                /* These were not explicitly set. */
                CHECK(strcmp(dump[i], "message.timeout.ms") && strcmp(dump[i], "ssl.ca.location"));
        }
        rd_kafka_conf_dump_free(dump, count);
        /* Properties of topics are in the default topic configuration. */
        dump = rd_kafka_topic_conf_dump(rd_kafka_conf_get_default_topic_conf(conf), &count);
        for (i = 0; i < count; i += 2)
                has_acks |= !strcmp(dump[i], "request.required.acks") && !strcmp(dump[i + 1], "1");
        CHECK(has_acks);
        rd_kafka_conf_dump_free(dump, count);
        rd_kafka_conf_destroy(conf);
        rd_kafka_conf_destroy(copy);
}

static void the_librarys_own_test_finds_nothing_wrong(void) {
        CHECK(rd_kafka_unittest() == 0);
}

int main(void) {
        char errstr[256];
        const char *servers;
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_mock_cluster_t *cluster;
        rd_kafka_t *rk;

        set(conf, "test.mock.num.brokers", "2");
        set(conf, "log_level", "2");
        rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof(errstr));
        if (!rk) {
                fprintf(stderr, "%s\n", errstr);
                return 1;
        }
        cluster = rd_kafka_handle_mock_cluster(rk);
        servers = rd_kafka_mock_cluster_bootstraps(cluster);
        CHECK(rd_kafka_mock_topic_create(cluster, "small", 1, 1) == 0);

        the_librarys_own_test_finds_nothing_wrong();
        metadata_tells_the_controller_to_who_asks_without_waiting(servers);
        a_partition_that_is_assigned_twice_is_an_invalid_argument(servers);
        what_is_not_assigned_can_not_be_taken_away(servers);
        watermarks_that_were_never_told_are_invalid_and_no_error(servers);
        a_message_that_failed_has_no_timestamp(servers, cluster);
        a_consumer_that_is_destroyed_commits_what_it_has_read_unless_it_is_not_to_be_closed(servers);
        commits_that_are_under_way_are_waited_for_by_close_and_destroy(servers);
        a_producer_that_is_paused_sends_nothing_until_it_is_resumed(servers);
        servers_that_are_added_are_found_by_a_client_that_runs(servers);
        a_dump_can_be_set_again_and_names_no_property_twice();

        rd_kafka_destroy(rk);
        return bad != 0;
}
