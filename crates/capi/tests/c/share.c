/* Share consumers: many messages from several leaders, callbacks that call and destroy, messages that outlive their
 * consumer, statistics, a close without brokers, and calls that make no sense. */
#include "test.h"

#define EARLIEST 1
#define PARTITIONS 6
#define MESSAGES 3000

static rd_kafka_mock_cluster_t *cluster;
static rd_kafka_t *host;

static rd_kafka_conf_t *conf_of(const char *group, const char *mode) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        set(conf, "bootstrap.servers", rd_kafka_mock_cluster_bootstraps(cluster));
        set(conf, "group.id", group);
        set(conf, "share.acknowledgement.mode", mode);
        return conf;
}

static rd_kafka_share_t *share_of(rd_kafka_conf_t *conf) {
        char errstr[256];
        rd_kafka_share_t *share = rd_kafka_share_consumer_new(conf, errstr, sizeof(errstr));
        if (!share) {
                fprintf(stderr, "%s\n", errstr);
                exit(1);
        }
        return share;
}

static void subscribe(rd_kafka_share_t *share, const char *topic) {
        rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
        rd_kafka_topic_partition_list_add(topics, topic, RD_KAFKA_PARTITION_UA);
        CHECK(rd_kafka_share_subscribe(share, topics) == RD_KAFKA_RESP_ERR_NO_ERROR);
        rd_kafka_topic_partition_list_destroy(topics);
}

static void no_error(rd_kafka_error_t *error) {
        if (error) {
                fprintf(stderr, "%s\n", rd_kafka_error_string(error));
                bad++;
                rd_kafka_error_destroy(error);
        }
}

static void is_error(rd_kafka_error_t *error, rd_kafka_resp_err_t code) {
        CHECK(rd_kafka_error_code(error) == code);
        rd_kafka_error_destroy(error);
}

static rd_kafka_messages_t *poll_for(rd_kafka_share_t *share, int timeout) {
        rd_kafka_messages_t *messages = NULL;
        no_error(rd_kafka_share_poll(share, timeout, &messages));
        return messages;
}

static rd_kafka_messages_t *poll_some(rd_kafka_share_t *share) {
        rd_kafka_messages_t *messages = NULL;
        UNTIL(messages, messages = poll_for(share, 100));
        return messages;
}

static void fill(const char *topic, int partitions, int count) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_t *producer;
        int i;
        set(conf, "bootstrap.servers", rd_kafka_mock_cluster_bootstraps(cluster));
        producer = start(RD_KAFKA_PRODUCER, conf);
        for (i = 0; i < count; i++)
                CHECK(rd_kafka_producev(producer, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(i % partitions),
                                        RD_KAFKA_V_VALUE(&i, sizeof(i)), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                                        RD_KAFKA_V_HEADER("h", &i, sizeof(i)), RD_KAFKA_V_END) == 0);
        CHECK(rd_kafka_flush(producer, TIMEOUT_MS) == 0);
        rd_kafka_destroy(producer);
}

static int acknowledged, failed;

static void count_outcomes(rd_kafka_share_t *share UNUSED, rd_kafka_share_partition_offsets_list_t *list,
                           rd_kafka_resp_err_t err, void *opaque UNUSED) {
        const rd_kafka_share_partition_offsets_t *entry = rd_kafka_share_partition_offsets_list_get(list, 0);
        int count = (int)rd_kafka_share_partition_offsets_offsets_cnt(entry), i;
        const int64_t *offsets = rd_kafka_share_partition_offsets_offsets(entry);
        CHECK(rd_kafka_share_partition_offsets_list_count(list) == 1);
        CHECK(rd_kafka_share_partition_offsets_list_get(list, 1) == NULL);
        CHECK(rd_kafka_share_partition_offsets_partition(entry)->err == err);
        for (i = 1; i < count; i++)
                CHECK(offsets[i - 1] < offsets[i]);
        *(err ? &failed : &acknowledged) += count;
        /* The list is the library's. */
        rd_kafka_share_partition_offsets_list_destroy(list);
        CHECK(rd_kafka_share_partition_offsets_list_count(list) == 1);
}

/* Each message comes once, from all leaders, in both modes. */
static void many_messages(const char *mode) {
        rd_kafka_share_t *share;
        rd_kafka_conf_t *conf = conf_of(mode, mode);
        char *seen = calloc(1, MESSAGES);
        int is_explicit = !strcmp(mode, "explicit"), count = 0;
        acknowledged = failed = 0;
        set(conf, "max.poll.records", "200");
        share = share_of(conf);
        no_error(rd_kafka_share_set_acknowledgement_commit_cb(share, count_outcomes, NULL));
        subscribe(share, "many");
        UNTIL(count == MESSAGES, {
                rd_kafka_messages_t *messages = poll_for(share, 100);
                size_t i;
                for (i = 0; i < rd_kafka_messages_count(messages); i++) {
                        rd_kafka_message_t *message = rd_kafka_messages_get(messages, i);
                        rd_kafka_headers_t *headers = NULL;
                        int number;
                        memcpy(&number, message->payload, sizeof(number));
                        CHECK(message->len == sizeof(number) && !seen[number]);
                        CHECK(rd_kafka_message_delivery_count(message) == 1);
                        CHECK(rd_kafka_message_headers(message, &headers) == 0 && rd_kafka_header_cnt(headers) == 1);
                        seen[number] = 1;
                        if (is_explicit)
                                CHECK(rd_kafka_share_acknowledge(share, message) == 0);
                }
                count += (int)rd_kafka_messages_count(messages);
                rd_kafka_messages_destroy(messages);
        });
        if (!is_explicit)
                no_error(rd_kafka_share_commit_async(share));
        UNTIL(acknowledged == MESSAGES, rd_kafka_messages_destroy(poll_for(share, 50)));
        CHECK(failed == 0);
        no_error(rd_kafka_share_consumer_close(share));
        no_error(rd_kafka_share_destroy(share));
        free(seen);
}

/* Messages live until their list is destroyed; a message that is destroyed by itself is gone once. */
static void messages_outlive_the_consumer(void) {
        rd_kafka_share_t *share = share_of(conf_of("outlive", "implicit"));
        rd_kafka_messages_t *messages;
        rd_kafka_message_t *message;
        subscribe(share, "few");
        messages = poll_some(share);
        CHECK(rd_kafka_messages_count(messages) > 1);
        CHECK(rd_kafka_messages_get(messages, rd_kafka_messages_count(messages)) == NULL);
        no_error(rd_kafka_share_destroy(share));
        message = rd_kafka_messages_get(messages, 1);
        CHECK(!strcmp(rd_kafka_topic_name(message->rkt), "few") && message->len == sizeof(int));
        CHECK(rd_kafka_message_delivery_count(message) == 1);
        rd_kafka_message_destroy(message);
        rd_kafka_messages_destroy(messages);
        rd_kafka_messages_destroy(messages);
        CHECK(rd_kafka_messages_count(messages) == 0);
        CHECK(rd_kafka_messages_get(messages, 0) == NULL);
}

static rd_kafka_share_t *to_destroy;
static int stats, destroyed;

static int on_stats(rd_kafka_t *rk, char *json, size_t len UNUSED, void *opaque UNUSED) {
        CHECK(strstr(json, "\"type\": \"consumer\"") || strstr(json, "\"type\":\"consumer\""));
        CHECK(rd_kafka_type(rk) == RD_KAFKA_CONSUMER);
        stats++;
        if (to_destroy) {
                rd_kafka_share_t *share = to_destroy;
                to_destroy = NULL;
                no_error(rd_kafka_share_destroy(share));
                destroyed = 1;
        }
        return 0;
}

/* A poll serves the callbacks of the client, which may even destroy the consumer. */
static void callbacks_are_served(void) {
        rd_kafka_conf_t *conf = conf_of("callbacks", "explicit");
        rd_kafka_messages_t *messages = NULL;
        rd_kafka_share_t *share;
        rd_kafka_error_t *error = NULL;
        set(conf, "statistics.interval.ms", "20");
        rd_kafka_conf_set_stats_cb(conf, on_stats);
        share = share_of(conf);
        subscribe(share, "nothing");
        UNTIL(stats >= 3, messages = poll_for(share, 100));
        CHECK(!messages);
        to_destroy = share;
        UNTIL(destroyed, error = rd_kafka_share_poll(share, 1000, &messages));
        is_error(error, RD_KAFKA_RESP_ERR__STATE);
        CHECK(!messages);
        /* It is gone. */
        is_error(rd_kafka_share_poll(share, 0, &messages), RD_KAFKA_RESP_ERR__STATE);
        is_error(rd_kafka_share_destroy(share), RD_KAFKA_RESP_ERR__STATE);
        CHECK(rd_kafka_share_consumer_closed(share) == 0);
        CHECK(rd_kafka_share_subscription(share, NULL) == RD_KAFKA_RESP_ERR__STATE);
}

/* Calls of other consumers with the handle that callbacks get fail. */
static void on_error(rd_kafka_t *rk, int err UNUSED, const char *reason UNUSED, void *opaque) {
        rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
        rd_kafka_message_t *message;
        rd_kafka_topic_partition_list_add(topics, "few", RD_KAFKA_PARTITION_UA);
        CHECK(rd_kafka_subscribe(rk, topics) != 0);
        CHECK(rd_kafka_assign(rk, topics) != 0);
        CHECK(rd_kafka_commit(rk, NULL, 0) != 0);
        CHECK(rd_kafka_consumer_close(rk) != 0);
        message = rd_kafka_consumer_poll(rk, 0);
        CHECK(!message || message->err);
        if (message)
                rd_kafka_message_destroy(message);
        rd_kafka_topic_partition_list_destroy(topics);
        ++*(int *)opaque;
}

static void handle_of_callbacks_is_no_other_consumer(void) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_messages_t *messages;
        rd_kafka_share_t *share;
        int errors = 0;
        set(conf, "bootstrap.servers", "127.0.0.1:1");
        set(conf, "group.id", "g");
        rd_kafka_conf_set_error_cb(conf, on_error);
        rd_kafka_conf_set_opaque(conf, &errors);
        share = share_of(conf);
        subscribe(share, "few");
        UNTIL(errors, messages = poll_for(share, 100));
        (void)messages;
        no_error(rd_kafka_share_destroy(share));
}

/* Closing without a broker that answers takes `socket.timeout.ms` at most, which is 60 s by default. */
static void close_without_brokers(void) {
        rd_kafka_conf_t *conf = conf_of("no brokers", "explicit");
        rd_kafka_messages_t *messages;
        rd_kafka_share_t *share;
        long began;
        size_t i;
        int id;
        set_ms(conf, "socket.timeout.ms", SCALED_MS(1500));
        share = share_of(conf);
        acknowledged = failed = 0;
        no_error(rd_kafka_share_set_acknowledgement_commit_cb(share, count_outcomes, NULL));
        subscribe(share, "few");
        messages = poll_some(share);
        for (i = 0; i < rd_kafka_messages_count(messages); i++)
                CHECK(rd_kafka_share_acknowledge(share, rd_kafka_messages_get(messages, i)) == 0);
        for (id = 1; id <= 3; id++)
                CHECK(rd_kafka_mock_broker_set_down(cluster, id) == 0);
        began = millis();
        no_error(rd_kafka_share_consumer_close(share));
        CHECK(millis() - began < SCALED_MS(30000));
        CHECK(failed == (int)rd_kafka_messages_count(messages) && acknowledged == 0);
        rd_kafka_messages_destroy(messages);
        no_error(rd_kafka_share_destroy(share));
        for (id = 1; id <= 3; id++)
                CHECK(rd_kafka_mock_broker_set_up(cluster, id) == 0);
}

/* A handle of a wrong kind is none, and a configuration is taken over once. */
static void misuse(void) {
        rd_kafka_conf_t *conf = conf_of("misuse", "explicit");
        rd_kafka_share_t *share = share_of(conf), *wrong = (rd_kafka_share_t *)host;
        rd_kafka_messages_t *messages = NULL;
        rd_kafka_message_t foreign;
        char errstr[64];
        CHECK(rd_kafka_share_consumer_new(conf, errstr, sizeof(errstr)) == NULL && *errstr);
        is_error(rd_kafka_share_poll(wrong, 0, &messages), RD_KAFKA_RESP_ERR__STATE);
        is_error(rd_kafka_share_consumer_close(wrong), RD_KAFKA_RESP_ERR__STATE);
        is_error(rd_kafka_share_destroy(wrong), RD_KAFKA_RESP_ERR__STATE);
        CHECK(rd_kafka_name((rd_kafka_t *)share) == NULL);
        CHECK(rd_kafka_messages_count((rd_kafka_messages_t *)share) == 0);
        rd_kafka_messages_destroy((rd_kafka_messages_t *)share);
        is_error(rd_kafka_share_poll(share, 0, NULL), RD_KAFKA_RESP_ERR__INVALID_ARG);
        is_error(rd_kafka_share_commit_sync(share, 0, NULL), RD_KAFKA_RESP_ERR__INVALID_ARG);
        is_error(rd_kafka_share_consumer_close_queue(share, NULL), RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_share_subscription(share, NULL) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_share_subscribe(share, NULL) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        memset(&foreign, 0, sizeof(foreign));
        CHECK(rd_kafka_share_acknowledge(share, &foreign) == RD_KAFKA_RESP_ERR__STATE);
        CHECK(rd_kafka_share_partition_offsets_list_count(NULL) == 0);
        CHECK(rd_kafka_share_partition_offsets_list_get(NULL, 0) == NULL);
        CHECK(rd_kafka_share_partition_offsets_partition(NULL) == NULL);
        CHECK(rd_kafka_share_partition_offsets_offsets(NULL) == NULL);
        CHECK(rd_kafka_share_partition_offsets_offsets_cnt(NULL) == 0);
        no_error(rd_kafka_share_destroy(share));
}

static int errors;

static void on_client_error(rd_kafka_t *rk, int err, const char *reason, void *opaque) {
        (void)rk, (void)err, (void)reason, (void)opaque;
        errors++;
}

static rd_kafka_resp_err_t on_destroy(rd_kafka_t *rk, void *ic_opaque) {
        (void)rk, (void)ic_opaque;
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t
on_new(rd_kafka_t *rk, const rd_kafka_conf_t *conf, void *ic_opaque, char *errstr, size_t errstr_size) {
        (void)conf, (void)ic_opaque, (void)errstr, (void)errstr_size;
        CHECK(rd_kafka_interceptor_add_on_destroy(rk, "share", on_destroy, NULL) == RD_KAFKA_RESP_ERR__NOT_IMPLEMENTED);
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* The first member of the consumer is the client's handle, which programs read. A poll serves callbacks, though the
 * consumer has no subscription; interceptors are refused, and fetches may be smaller than messages. */
static void consumer_is_like_that_of_librdkafka(void) {
        rd_kafka_conf_t *conf = conf_of("like", "implicit");
        rd_kafka_messages_t *messages = NULL;
        rd_kafka_share_t *share;
        errors = 0;
        set(conf, "bootstrap.servers", "127.0.0.1:1");
        set(conf, "client.id", "first");
        set(conf, "log_level", "0");
        set(conf, "fetch.max.bytes", "1000");
        rd_kafka_conf_set_error_cb(conf, on_client_error);
        CHECK(rd_kafka_conf_interceptor_add_on_new(conf, "share", on_new, NULL) == RD_KAFKA_RESP_ERR_NO_ERROR);
        share = share_of(conf);
        CHECK(!strncmp(rd_kafka_name(*(rd_kafka_t **)share), "first", 5));
        UNTIL(errors > 0, {
                is_error(rd_kafka_share_poll(share, 0, &messages), RD_KAFKA_RESP_ERR__STATE);
                usleep(10000);
        });
        no_error(rd_kafka_share_destroy(share));
}

/* A consumer without a group exists, and every use of the group is an error. */
static void consumer_without_a_group(void) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_messages_t *messages = NULL;
        rd_kafka_error_t *error;
        rd_kafka_share_t *share;
        char errstr[256];
        set(conf, "bootstrap.servers", rd_kafka_mock_cluster_bootstraps(cluster));
        share = rd_kafka_share_consumer_new(conf, errstr, sizeof(errstr));
        CHECK(share != NULL);
        rd_kafka_topic_partition_list_add(list, "many", RD_KAFKA_PARTITION_UA);
        CHECK(rd_kafka_share_subscribe(share, list) == RD_KAFKA_RESP_ERR__UNKNOWN_GROUP);
        CHECK(rd_kafka_share_unsubscribe(share) == RD_KAFKA_RESP_ERR__UNKNOWN_GROUP);
        error = rd_kafka_share_poll(share, 0, &messages);
        CHECK(rd_kafka_error_code(error) == RD_KAFKA_RESP_ERR__STATE && !messages);
        rd_kafka_error_destroy(error);
        error = rd_kafka_share_consumer_close(share);
        CHECK(rd_kafka_error_code(error) == RD_KAFKA_RESP_ERR__UNKNOWN_GROUP);
        rd_kafka_error_destroy(error);
        CHECK(!rd_kafka_share_destroy(share));
        rd_kafka_topic_partition_list_destroy(list);
}

int main(void) {
        host = start(RD_KAFKA_PRODUCER, rd_kafka_conf_new());
        cluster = rd_kafka_mock_cluster_new(host, 3);
        rd_kafka_mock_sharegroup_set_auto_offset_reset(cluster, EARLIEST);
        rd_kafka_mock_topic_create(cluster, "many", PARTITIONS, 1);
        rd_kafka_mock_topic_create(cluster, "few", 1, 1);
        rd_kafka_mock_topic_create(cluster, "nothing", 1, 1);
        fill("many", PARTITIONS, MESSAGES);
        fill("few", 1, 10);
        many_messages("implicit");
        many_messages("explicit");
        messages_outlive_the_consumer();
        callbacks_are_served();
        consumer_without_a_group();
        handle_of_callbacks_is_no_other_consumer();
        close_without_brokers();
        misuse();
        consumer_is_like_that_of_librdkafka();
        rd_kafka_mock_cluster_destroy(cluster);
        rd_kafka_destroy(host);
        CHECK(rd_kafka_wait_destroyed(5000) == 0);
        return bad;
}
