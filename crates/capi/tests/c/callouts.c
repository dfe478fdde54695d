/* Log lines, errors and callbacks that a consumer's poll causes are served after the queue is unlocked: none of them
 * blocks, whatever queue it goes to and whatever the callback calls. A poll that blocks ends the program by SIGALRM. */
#include "test.h"

static const char *servers;
static int log_lines;
static int errors;
static int notifications;
static rd_kafka_queue_t *consumer_queue;

/* Log lines about the reset of an offset. */
static int resets;

static void count_line(const char *facility) {
        __sync_fetch_and_add(&log_lines, 1);
        if (!strcmp(facility, "OFFSET"))
                __sync_fetch_and_add(&resets, 1);
}

/* Calls functions that need the locks of the consumer's queue and of the client. */
static void curious_log_cb(const rd_kafka_t *rk, int level, const char *facility, const char *text) {
        rd_kafka_topic_t *topic;
        (void)level;
        (void)text;
        count_line(facility);
        if (consumer_queue)
                rd_kafka_queue_length(consumer_queue);
        rd_kafka_outq_len((rd_kafka_t *)rk);
        if ((topic = rd_kafka_topic_new((rd_kafka_t *)rk, "asked-in-log-cb", NULL)))
                rd_kafka_topic_destroy(topic);
}

static void error_cb(rd_kafka_t *rk, int err, const char *reason, void *opaque) {
        (void)rk;
        (void)err;
        (void)reason;
        (void)opaque;
        errors++;
        if (consumer_queue)
                rd_kafka_queue_length(consumer_queue);
}

static void notify_cb(rd_kafka_t *rk, void *opaque) {
        rd_kafka_queue_t *queue;
        (void)opaque;
        __sync_fetch_and_add(&notifications, 1);
        if (consumer_queue)
                rd_kafka_queue_length(consumer_queue);
        if ((queue = rd_kafka_queue_get_partition(rk, "callouts", 1)))
                rd_kafka_queue_destroy(queue);
}

static rd_kafka_conf_t *conf_of_consumer(const char *brokers) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        set(conf, "bootstrap.servers", brokers);
        set(conf, "group.id", "callouts");
        set(conf, "auto.offset.reset", "earliest");
        return conf;
}

static void assign_at(rd_kafka_t *rk, const char *topic, int64_t offset) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_topic_partition_list_add(list, topic, 0)->offset = offset;
        CHECK(!rd_kafka_assign(rk, list));
        rd_kafka_topic_partition_list_destroy(list);
}

static void produce(const char *topic, int count) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_t *rk;
        set(conf, "bootstrap.servers", servers);
        rk = start(RD_KAFKA_PRODUCER, conf);
        while (count--)
                CHECK(!rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(0),
                                         RD_KAFKA_V_VALUE((void *)"value", 5), RD_KAFKA_V_END));
        CHECK(!rd_kafka_flush(rk, TIMEOUT_MS));
        rd_kafka_destroy(rk);
}

static int poll_once(rd_kafka_t *rk) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, 100);
        int is_record = message && !message->err;
        if (message)
                rd_kafka_message_destroy(message);
        return is_record;
}

/* Polls events; counts log lines. */
static int poll_event(rd_kafka_queue_t *queue) {
        rd_kafka_event_t *event = rd_kafka_queue_poll(queue, 100);
        const char *facility, *text;
        int level, is_record = rd_kafka_event_type(event) == RD_KAFKA_EVENT_FETCH;
        if (!rd_kafka_event_log(event, &facility, &text, &level))
                count_line(facility);
        if (event)
                rd_kafka_event_destroy(event);
        return is_record;
}

/* log.queue: the lines go to the main queue, and from there to the queue that is polled. */
static void lines_of_the_log_queue_reach_the_queue_that_is_polled(int by_events) {
        rd_kafka_conf_t *conf = conf_of_consumer(servers);
        rd_kafka_t *rk;
        int records = 0;
        set(conf, "log.queue", "true");
        if (!by_events)
                rd_kafka_conf_set_log_cb(conf, curious_log_cb);
        rk = start(RD_KAFKA_CONSUMER, conf);
        CHECK(!rd_kafka_set_log_queue(rk, NULL));
        CHECK(!rd_kafka_poll_set_consumer(rk));
        consumer_queue = rd_kafka_queue_get_consumer(rk);
        log_lines = resets = 0;
        assign_at(rk, "callouts", 1000000);
        UNTIL(records && resets, records += by_events ? poll_event(consumer_queue) : poll_once(rk));
        rd_kafka_queue_destroy(consumer_queue);
        consumer_queue = NULL;
        rd_kafka_destroy(rk);
}

static void a_log_callback_may_ask_the_queue_that_is_polled(const char *debug, int by_events) {
        rd_kafka_conf_t *conf = conf_of_consumer(servers);
        rd_kafka_t *rk;
        int records = 0;
        rd_kafka_conf_set_log_cb(conf, curious_log_cb);
        if (debug)
                set(conf, "debug", debug);
        rk = start(RD_KAFKA_CONSUMER, conf);
        CHECK(!rd_kafka_poll_set_consumer(rk));
        consumer_queue = rd_kafka_queue_get_consumer(rk);
        log_lines = resets = 0;
        assign_at(rk, "callouts", 1000000);
        UNTIL(records && resets, records += by_events ? poll_event(consumer_queue) : poll_once(rk));
        CHECK(log_lines > 0);
        rd_kafka_queue_destroy(consumer_queue);
        consumer_queue = NULL;
        rd_kafka_destroy(rk);
}

/* The first Fetch response has an error of its own, not of a partition. */
static void an_error_of_the_whole_response_reaches_the_error_callback(int by_events) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_mock_cluster_t *mock;
        rd_kafka_t *owner, *rk;
        char errstr[256];
        owner = start(RD_KAFKA_PRODUCER, conf);
        mock = rd_kafka_mock_cluster_new(owner, 1);
        CHECK(!rd_kafka_mock_topic_create(mock, "callouts", 1, 1));
        conf = conf_of_consumer(rd_kafka_mock_cluster_bootstraps(mock));
        rd_kafka_conf_set_error_cb(conf, error_cb);
        rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, errstr, sizeof(errstr));
        CHECK(rk);
        CHECK(!rd_kafka_poll_set_consumer(rk));
        consumer_queue = rd_kafka_queue_get_consumer(rk);
        errors = 0;
        rd_kafka_mock_push_request_errors(mock, 1, 1, RD_KAFKA_RESP_ERR_FETCH_SESSION_ID_NOT_FOUND);
        assign_at(rk, "callouts", 0);
        if (by_events) {
                UNTIL(errors, {
                        rd_kafka_event_t *event = rd_kafka_queue_poll(consumer_queue, 100);
                        errors += rd_kafka_event_type(event) == RD_KAFKA_EVENT_ERROR;
                        if (event)
                                rd_kafka_event_destroy(event);
                });
        } else {
                UNTIL(errors, poll_once(rk));
        }
        rd_kafka_queue_destroy(consumer_queue);
        consumer_queue = NULL;
        rd_kafka_destroy(rk);
        rd_kafka_mock_cluster_destroy(mock);
        rd_kafka_destroy(owner);
}

static void a_notification_may_ask_for_the_queues_of_partitions(void) {
        rd_kafka_t *rk = start(RD_KAFKA_CONSUMER, conf_of_consumer(servers));
        rd_kafka_queue_t *partition;
        int records = 0;
        consumer_queue = rd_kafka_queue_get_consumer(rk);
        rd_kafka_queue_cb_event_enable(consumer_queue, notify_cb, NULL);
        notifications = 0;
        assign_at(rk, "callouts", 0);
        UNTIL(records, records += poll_once(rk));
        while (poll_once(rk))
                ;
        /* The consumer waits for records now: a partition whose queue changes notifies it. */
        partition = rd_kafka_queue_get_partition(rk, "callouts", 0);
        CHECK(partition);
        assign_at(rk, "callouts", 0);
        CHECK(notifications > 0);
        rd_kafka_queue_destroy(partition);
        rd_kafka_queue_destroy(consumer_queue);
        consumer_queue = NULL;
        rd_kafka_destroy(rk);
}

/* The one step to run, by its number, or 0 for all. */
static int only;

static int runs(int step) {
        return !only || only == step;
}

int main(int argc, char **argv) {
        if (argc < 2)
                return 2;
        servers = argv[1];
        alarm(2 * TIMEOUT_MS / 1000);
        only = argc > 2 ? atoi(argv[2]) : 0;
        produce("callouts", 10);
        if (runs(1))
                lines_of_the_log_queue_reach_the_queue_that_is_polled(0);
        if (runs(2))
                lines_of_the_log_queue_reach_the_queue_that_is_polled(1);
        if (runs(3))
                a_log_callback_may_ask_the_queue_that_is_polled(NULL, 0);
        if (runs(4))
                a_log_callback_may_ask_the_queue_that_is_polled(NULL, 1);
        if (runs(5))
                a_log_callback_may_ask_the_queue_that_is_polled("all", 0);
        if (runs(6))
                an_error_of_the_whole_response_reaches_the_error_callback(0);
        if (runs(7))
                an_error_of_the_whole_response_reaches_the_error_callback(1);
        if (runs(8))
                a_notification_may_ask_for_the_queues_of_partitions();
        return bad != 0;
}
