/* Statistics, throttling, log lines, background events and yielding. */
#include "test.h"

static int logged, seen_stats, delivered, notified, in_background;
static volatile int throttled, unthrottled;
static char *kept;
static pthread_t main_thread;

static void on_log(const rd_kafka_t *rk, int level, const char *fac, const char *buf) {
        (void)rk;
        (void)level;
        fprintf(stderr, "%s: %s\n", fac, buf);
        logged++;
}

static int on_stats(rd_kafka_t *rk, char *json, size_t len, void *opaque) {
        CHECK(opaque == &bad);
        CHECK(strlen(json) == len && strstr(json, "\"type\":") && strstr(json, rd_kafka_name(rk)));
        if (!seen_stats++) {
                kept = json;
                return 1;
        }
        return 0;
}

static void on_throttle(rd_kafka_t *rk, const char *name, int32_t id, int ms, void *opaque) {
        (void)rk;
        CHECK(opaque == &bad && strchr(name, ':') && strchr(name, '/') && id >= 0 && ms >= 0);
        if (ms)
                throttled = ms;
        else
                unthrottled++;
}

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
        (void)opaque;
        CHECK(!message->err);
        delivered++;
        if (message->_private)
                rd_kafka_yield(rk);
}

static void on_notify(rd_kafka_t *rk, void *opaque) {
        (void)rk;
        CHECK(opaque == &notified);
        notified++;
}

static void on_event(rd_kafka_t *rk, rd_kafka_event_t *event, void *opaque) {
        CHECK(opaque == &bad && rk != NULL && !pthread_equal(pthread_self(), main_thread));
        if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_DR)
                __atomic_add_fetch(&in_background, (int)rd_kafka_event_message_count(event), __ATOMIC_SEQ_CST);
        rd_kafka_event_destroy(event);
}

static rd_kafka_conf_t *configuration(const char *brokers) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        set(conf, "bootstrap.servers", brokers);
        rd_kafka_conf_set_opaque(conf, &bad);
        rd_kafka_conf_set_log_cb(conf, on_log);
        return conf;
}

static void send_to(rd_kafka_t *rk, int count, void *opaque) {
        int i;
        for (i = 0; i < count; i++)
                CHECK(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("events"), RD_KAFKA_V_PARTITION(0),
                                        RD_KAFKA_V_VALUE((void *)"x", 1), RD_KAFKA_V_OPAQUE(opaque),
                                        RD_KAFKA_V_END) == 0);
}

/* The broker throttles if there is a second argument. */
static void by_callbacks(const char *brokers, int throttles) {
        rd_kafka_conf_t *conf = configuration(brokers);
        rd_kafka_queue_t *queue, *background;
        rd_kafka_t *rk;
        set(conf, "statistics.interval.ms", "50");
        set(conf, "linger.ms", "5");
        rd_kafka_conf_set_stats_cb(conf, on_stats);
        rd_kafka_conf_set_throttle_cb(conf, on_throttle);
        rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
        rk = start(RD_KAFKA_PRODUCER, conf);
        CHECK(rd_kafka_thread_cnt() > 0);
        background = rd_kafka_queue_get_background(rk);
        CHECK(background && rd_kafka_queue_length(background) == 0);
        rd_kafka_queue_destroy(background);
        queue = rd_kafka_queue_get_main(rk);
        rd_kafka_queue_cb_event_enable(queue, on_notify, &notified);
        send_to(rk, 10, NULL);
        UNTIL(seen_stats >= 3 && delivered >= 10, rd_kafka_poll(rk, 50));
        if (throttles) {
                /* The end of throttling is reported with the next response. */
                UNTIL(throttled && unthrottled, (rd_kafka_poll(rk, 500), send_to(rk, 1, NULL)));
                CHECK(throttled == 120);
        }
        CHECK(notified > 0);
        CHECK(kept && kept[0] == '{');
        rd_kafka_mem_free(rk, kept);
        rd_kafka_queue_cb_event_enable(queue, NULL, NULL);
        rd_kafka_flush(rk, TIMEOUT_MS);
        /* A callback that yields ends its poll. */
        delivered = 0;
        send_to(rk, 5, &bad);
        UNTIL(delivered == 5, {
                int before = delivered;
                rd_kafka_poll(rk, 1000);
                CHECK(delivered <= before + 1);
        });
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
        CHECK(logged == 0);
}

static void by_events(const char *brokers) {
        rd_kafka_conf_t *conf = configuration(brokers);
        rd_kafka_queue_t *queue, *logs;
        rd_kafka_event_t *event;
        rd_kafka_t *rk;
        const char *fac, *text;
        char contexts[64];
        int level;
        set(conf, "statistics.interval.ms", "50");
        set(conf, "log.queue", "true");
        /* A producer has no such queue, which is an error. */
        set(conf, "group.id", "nobody");
        rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_STATS | RD_KAFKA_EVENT_LOG | RD_KAFKA_EVENT_ERROR);
        rk = start(RD_KAFKA_PRODUCER, conf);
        queue = rd_kafka_queue_get_main(rk);
        event = rd_kafka_queue_poll(queue, TIMEOUT_MS);
        CHECK(rd_kafka_event_type(event) == RD_KAFKA_EVENT_STATS);
        if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_STATS) {
                CHECK(!strcmp(rd_kafka_event_name(event), "Stats"));
                CHECK(rd_kafka_event_stats(event)[0] == '{');
                CHECK(rd_kafka_event_error(event) == 0);
                CHECK(rd_kafka_event_message_next(event) == NULL);
                CHECK(rd_kafka_event_topic_partition_list(event) == NULL);
                CHECK(rd_kafka_event_topic_partition(event) == NULL);
                CHECK(rd_kafka_event_log(event, &fac, &text, &level) == -1);
                CHECK(rd_kafka_event_debug_contexts(event, contexts, sizeof(contexts)) == -1);
        }
        rd_kafka_event_destroy(event);
        /* The lines waited for a queue. */
        logs = rd_kafka_queue_new(rk);
        CHECK(rd_kafka_set_log_queue(rk, logs) == RD_KAFKA_RESP_ERR_NO_ERROR);
        event = rd_kafka_queue_poll(logs, TIMEOUT_MS);
        CHECK(rd_kafka_event_type(event) == RD_KAFKA_EVENT_LOG);
        CHECK(rd_kafka_event_log(event, &fac, &text, &level) == 0);
        CHECK(!strcmp(fac, "CONFWARN") && strstr(text, "group.id") && level == 4);
        CHECK(rd_kafka_event_debug_contexts(event, contexts, sizeof(contexts)) == 0 && !contexts[0]);
        CHECK(rd_kafka_event_stats(event) == NULL);
        rd_kafka_event_destroy(event);
        CHECK(rd_kafka_set_log_queue(rk, NULL) == RD_KAFKA_RESP_ERR_NO_ERROR);
        rd_kafka_queue_destroy(logs);
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
        CHECK(logged == 0);
        /* Without the property there is no such queue. */
        rk = start(RD_KAFKA_PRODUCER, configuration(brokers));
        CHECK(rd_kafka_set_log_queue(rk, NULL) == RD_KAFKA_RESP_ERR__NOT_CONFIGURED);
        rd_kafka_destroy(rk);
}

static void in_the_background(const char *brokers) {
        rd_kafka_conf_t *conf = configuration(brokers);
        rd_kafka_queue_t *queue, *background;
        rd_kafka_t *rk;
        int threads;
        long before;
        rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_DR);
        rd_kafka_conf_set_background_event_cb(conf, on_event);
        rk = start(RD_KAFKA_PRODUCER, conf);
        queue = rd_kafka_queue_get_main(rk);
        background = rd_kafka_queue_get_background(rk);
        CHECK(background != NULL);
        rd_kafka_queue_forward(queue, background);
        send_to(rk, 100, NULL);
        WAIT_FOR(__atomic_load_n(&in_background, __ATOMIC_SEQ_CST) >= 100);
        CHECK(__atomic_load_n(&in_background, __ATOMIC_SEQ_CST) == 100);
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
        threads = rd_kafka_thread_cnt();
        rd_kafka_queue_destroy(background);
        rd_kafka_queue_destroy(queue);
        before = millis();
        rd_kafka_destroy(rk);
        /* The call does not wait until requests time out, which takes 60 seconds. */
        CHECK(millis() - before < SCALED_MS(30000));
        CHECK(rd_kafka_thread_cnt() < threads);
}

static void of_a_consumer(const char *brokers) {
        rd_kafka_conf_t *conf = configuration(brokers);
        rd_kafka_t *rk;
        seen_stats = 0;
        set(conf, "statistics.interval.ms", "50");
        set(conf, "group.id", "events");
        rd_kafka_conf_set_stats_cb(conf, on_stats);
        rk = start(RD_KAFKA_CONSUMER, conf);
        rd_kafka_poll_set_consumer(rk);
        UNTIL(seen_stats >= 2, rd_kafka_message_destroy(rd_kafka_consumer_poll(rk, 50)));
        free(kept);
        rd_kafka_consumer_close(rk);
        rd_kafka_destroy(rk);
        CHECK(logged == 0);
}

static int64_t position_of(rd_kafka_t *rk) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        int64_t offset;
        rd_kafka_topic_partition_list_add(list, "unread", 0);
        CHECK(rd_kafka_position(rk, list) == RD_KAFKA_RESP_ERR_NO_ERROR);
        offset = list->elems[0].offset;
        rd_kafka_topic_partition_list_destroy(list);
        return offset;
}

/* An event that is destroyed unread moves no position, so that no commit includes its message. */
static void unread(const char *brokers) {
        rd_kafka_conf_t *conf = configuration(brokers);
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_t *rk = start(RD_KAFKA_PRODUCER, configuration(brokers));
        const rd_kafka_message_t *message;
        rd_kafka_event_t *event;
        rd_kafka_queue_t *queue;
        int i;
        for (i = 0; i < 3; i++)
                CHECK(!rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("unread"), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_VALUE("v", 1), RD_KAFKA_V_END));
        CHECK(!rd_kafka_flush(rk, TIMEOUT_MS));
        rd_kafka_destroy(rk);
        set(conf, "group.id", "unread");
        set(conf, "enable.auto.commit", "false");
        rk = start(RD_KAFKA_CONSUMER, conf);
        queue = rd_kafka_queue_get_consumer(rk);
        rd_kafka_topic_partition_list_add(list, "unread", 0)->offset = 0;
        CHECK(!rd_kafka_assign(rk, list));
        event = rd_kafka_queue_poll(queue, TIMEOUT_MS);
        CHECK(rd_kafka_event_type(event) == RD_KAFKA_EVENT_FETCH && rd_kafka_event_message_count(event) == 1);
        CHECK(position_of(rk) == RD_KAFKA_OFFSET_INVALID);
        rd_kafka_event_destroy(event);
        CHECK(position_of(rk) == RD_KAFKA_OFFSET_INVALID);
        CHECK(rd_kafka_commit(rk, NULL, 0) == RD_KAFKA_RESP_ERR__NO_OFFSET);
        event = rd_kafka_queue_poll(queue, TIMEOUT_MS);
        CHECK((message = rd_kafka_event_message_next(event)) && message->offset == 1 && position_of(rk) == 2);
        CHECK(!rd_kafka_event_message_next(event) && position_of(rk) == 2);
        rd_kafka_event_destroy(event);
        event = rd_kafka_queue_poll(queue, TIMEOUT_MS);
        CHECK(rd_kafka_event_message_array(event, &message, 1) == 1 && message->offset == 2 && position_of(rk) == 3);
        rd_kafka_event_destroy(event);
        CHECK(!rd_kafka_commit(rk, NULL, 0));
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_queue_destroy(queue);
        rd_kafka_consumer_close(rk);
        rd_kafka_destroy(rk);
}

/* A yield that finds no poll ends the next one. */
static void yielded_before_the_poll(const char *brokers) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_t *rk;
        rd_kafka_queue_t *queue;
        long since = millis();
        set(conf, "bootstrap.servers", brokers);
        rk = start(RD_KAFKA_PRODUCER, conf);
        queue = rd_kafka_queue_new(rk);
        rd_kafka_queue_yield(queue);
        CHECK(rd_kafka_queue_poll(queue, TIMEOUT_MS) == NULL && millis() - since < TIMEOUT_MS / 2);
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
}

int main(int argc, char **argv) {
        if (argc < 2)
                return 2;
        main_thread = pthread_self();
        by_callbacks(argv[1], argc > 2);
        by_events(argv[1]);
        in_the_background(argv[1]);
        of_a_consumer(argv[1]);
        unread(argv[1]);
        yielded_before_the_poll(argv[1]);
        CHECK(rd_kafka_wait_destroyed(5000) == 0);
        return bad != 0;
}
