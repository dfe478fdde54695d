/* Calls of a consumer that return though no broker is there, and errors that a poll returns. */
#include "test.h"

static int errors, fatal_errors;
static volatile int over;

static void on_error(rd_kafka_t *rk, int err, const char *reason, void *opaque) {
        (void)rk, (void)reason, (void)opaque;
        errors++;
        fatal_errors += err == RD_KAFKA_RESP_ERR__FATAL;
}

static rd_kafka_t *consumer(int events) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        set(conf, "bootstrap.servers", "127.0.0.1:1");
        set(conf, "log_level", "0");
        set(conf, "group.id", "seeking");
        if (events)
                rd_kafka_conf_set_events(conf, events);
        else
                rd_kafka_conf_set_error_cb(conf, on_error);
        return start(RD_KAFKA_CONSUMER, conf);
}

/* Seeks to each kind of position, without a limit of time. */
static void *seeks(void *rk) {
        int64_t offsets[] = {7, RD_KAFKA_OFFSET_BEGINNING, RD_KAFKA_OFFSET_END, RD_KAFKA_OFFSET_TAIL(3), -3, -5, -999};
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, "seeking", NULL);
        size_t i;
        rd_kafka_topic_partition_list_add(list, "seeking", 0)->offset = 3;
        CHECK(rd_kafka_assign(rk, list) == 0);
        for (i = 0; i < sizeof(offsets) / sizeof(*offsets); i++) {
                CHECK(rd_kafka_seek(topic, 0, offsets[i], -1) == 0);
                list->elems[0].offset = offsets[i];
                CHECK(!rd_kafka_seek_partitions(rk, list, -1));
                CHECK(list->elems[0].err == 0);
        }
        /* The committed offset is where an assignment begins, not a position. */
        CHECK(rd_kafka_seek(topic, 0, RD_KAFKA_OFFSET_STORED, -1) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_seek(topic, 0, RD_KAFKA_OFFSET_STORED, 0) == 0);
        list->elems[0].offset = RD_KAFKA_OFFSET_STORED;
        CHECK(!rd_kafka_seek_partitions(rk, list, -1));
        CHECK(list->elems[0].err == RD_KAFKA_RESP_ERR__INVALID_ARG);
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_topic_destroy(topic);
        over = 1;
        return NULL;
}

static void seek_returns_without_a_broker(void) {
        rd_kafka_t *rk = consumer(0);
        pthread_t thread;
        CHECK(!pthread_create(&thread, NULL, seeks, rk));
        WAIT_FOR(over);
        if (!over)
                exit(1);
        pthread_join(thread, NULL);
        rd_kafka_destroy(rk);
}

/* The poll of a consumer with a group returns the fatal error, once; the error callback does not get it. */
static void fatal_error_is_polled(void) {
        rd_kafka_t *rk = consumer(0);
        rd_kafka_message_t *message;
        CHECK(rd_kafka_poll_set_consumer(rk) == 0);
        CHECK(rd_kafka_test_fatal_error(rk, RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID, "why") == 0);
        message = rd_kafka_consumer_poll(rk, TIMEOUT_MS);
        CHECK(message && message->err == RD_KAFKA_RESP_ERR__FATAL && !message->rkt);
        CHECK(message && strstr(rd_kafka_message_errstr(message), "Fatal error") && strstr(rd_kafka_message_errstr(message), "why"));
        if (message)
                rd_kafka_message_destroy(message);
        UNTIL(errors > 0, CHECK(!rd_kafka_consumer_poll(rk, 10)));
        CHECK(fatal_errors == 0);
        rd_kafka_destroy(rk);
}

/* An application that calls rd_kafka_poll() on the forwarded main queue gets it by the callback. */
static void fatal_error_is_served(void) {
        rd_kafka_t *rk = consumer(0);
        fatal_errors = 0;
        CHECK(rd_kafka_poll_set_consumer(rk) == 0);
        CHECK(rd_kafka_test_fatal_error(rk, RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID, "why") == 0);
        UNTIL(fatal_errors > 0, rd_kafka_poll(rk, 10));
        rd_kafka_destroy(rk);
}

/* As an event, it has the reason instead of the code for all fatal errors. */
static void fatal_error_is_an_event(void) {
        rd_kafka_t *rk = consumer(RD_KAFKA_EVENT_ERROR);
        rd_kafka_queue_t *queue = rd_kafka_queue_get_consumer(rk);
        rd_kafka_event_t *event;
        CHECK(rd_kafka_test_fatal_error(rk, RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID, "why") == 0);
        event = next_event(queue, RD_KAFKA_EVENT_ERROR, RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID);
        CHECK(rd_kafka_event_error_is_fatal(event));
        CHECK(!strcmp(rd_kafka_event_error_string(event), "test_fatal_error: why"));
        rd_kafka_event_destroy(event);
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
}

/* Polls a log queue, and returns 1 for the line about an application that has not polled in time. */
static int is_overdue(rd_kafka_queue_t *queue) {
        rd_kafka_event_t *event = rd_kafka_queue_poll(queue, 100);
        const char *facility = NULL, *text = NULL;
        int level, is = event && !rd_kafka_event_log(event, &facility, &text, &level) && !strcmp(facility, "MAXPOLL");
        rd_kafka_event_destroy(event);
        return is;
}

/* Only polls of queues that messages arrive in count for max.poll.interval.ms. */
static void polls_of_a_log_queue_do_not_count(void) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new(), *own = rd_kafka_conf_new();
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_t *cluster, *rk;
        rd_kafka_queue_t *queue;
        set(conf, "test.mock.num.brokers", "1");
        set(conf, "log_level", "2");
        cluster = start(RD_KAFKA_PRODUCER, conf);
        CHECK(rd_kafka_mock_topic_create(rd_kafka_handle_mock_cluster(cluster), "seeking", 1, 1) == 0);
        set(own, "bootstrap.servers", rd_kafka_mock_cluster_bootstraps(rd_kafka_handle_mock_cluster(cluster)));
        set(own, "group.id", "seeking");
        set(own, "log.queue", "true");
        set(own, "session.timeout.ms", "6000");
        set(own, "max.poll.interval.ms", "6000");
        rk = start(RD_KAFKA_CONSUMER, own);
        queue = rd_kafka_queue_new(rk);
        CHECK(rd_kafka_set_log_queue(rk, queue) == 0);
        rd_kafka_topic_partition_list_add(list, "seeking", RD_KAFKA_PARTITION_UA);
        CHECK(rd_kafka_subscribe(rk, list) == 0);
        rd_kafka_topic_partition_list_destroy(list);
        UNTIL(is_overdue(queue), (void)0);
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
        rd_kafka_destroy(cluster);
}

int main(void) {
        seek_returns_without_a_broker();
        fatal_error_is_polled();
        fatal_error_is_served();
        fatal_error_is_an_event();
        polls_of_a_log_queue_do_not_count();
        return bad != 0;
}
