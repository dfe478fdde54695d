/* Queues: forwarding, cycles, events, and polls after the client is destroyed. */
#include "side_by_side.h"

static rd_kafka_t *quiet(rd_kafka_type_t type, int events) {
        /* Mock brokers refuse no connection: there are no events of errors. A long linger keeps messages in the queue. */
        rd_kafka_conf_t *conf = conf_of("test.mock.num.brokers", "1", "linger.ms", "60000", NULL);
        rd_kafka_conf_set_events(conf, events);
        return start(type, conf);
}

static void purged_message(rd_kafka_t *rk, const char *value) {
        rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_VALUE((void *)value, strlen(value)), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
        rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE);
}

static void say_event(const char *what, rd_kafka_event_t *event) {
        const rd_kafka_message_t *message;
        char line[1024];
        if (!event) {
                say("%s: NULL", what);
                return;
        }
        say("%s: %s type %d messages %zu error %s text %s opaque %s", what, rd_kafka_event_name(event), rd_kafka_event_type(event),
            rd_kafka_event_message_count(event), err(rd_kafka_event_error(event)), present(rd_kafka_event_error_string(event)),
            rd_kafka_event_opaque(event) ? "present" : "NULL");
        while ((message = rd_kafka_event_message_next(event))) {
                snprintf(line, sizeof(line), "%.*s %s", (int)message->len, (const char *)message->payload, err(message->err));
                say("  %s", line);
        }
        rd_kafka_event_destroy(event);
}

static rd_kafka_event_t *next_event(rd_kafka_queue_t *queue) {
        rd_kafka_event_t *event;
        UNTIL((event = rd_kafka_queue_poll(queue, 50)), (void)0);
        return event;
}

CASE(empty_queues) {
        rd_kafka_t *rk = quiet(RD_KAFKA_PRODUCER, 0);
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
        long began = millis();
        say_event("poll", rd_kafka_queue_poll(queue, 400));
        say("took %s", took(began, 400));
        say_event("poll 0", rd_kafka_queue_poll(queue, 0));
        say("length %zu", rd_kafka_queue_length(queue));
        say("callbacks %d", rd_kafka_queue_poll_callback(queue, 0));
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
}

CASE(reports_as_events) {
        rd_kafka_t *rk = quiet(RD_KAFKA_PRODUCER, RD_KAFKA_EVENT_DR);
        rd_kafka_queue_t *queue = rd_kafka_queue_get_main(rk);
        purged_message(rk, "one");
        say_event("event", next_event(queue));
        say("length %zu", rd_kafka_queue_length(queue));
        say("outq %d", rd_kafka_outq_len(rk));
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
}

CASE(messages_of_an_event_as_an_array) {
        rd_kafka_t *rk = quiet(RD_KAFKA_PRODUCER, RD_KAFKA_EVENT_DR);
        rd_kafka_queue_t *queue = rd_kafka_queue_get_main(rk);
        const rd_kafka_message_t *messages[8];
        rd_kafka_event_t *event;
        size_t got;
        rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_VALUE("1", 1), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_END);
        rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_VALUE("2", 1), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_END);
        rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_VALUE("3", 1), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_END);
        rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE);
        event = next_event(queue);
        say("count %zu", rd_kafka_event_message_count(event));
        got = rd_kafka_event_message_array(event, messages, 2);
        say("array of 2: %zu, first %.1s", got, (const char *)messages[0]->payload);
        got = rd_kafka_event_message_array(event, messages, 8);
        say("array of 8: %zu", got);
        say("next %s", rd_kafka_event_message_next(event) ? "present" : "NULL");
        say("count %zu", rd_kafka_event_message_count(event));
        rd_kafka_event_destroy(event);
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
}

CASE(other_fields_of_an_event) {
        rd_kafka_t *rk = quiet(RD_KAFKA_PRODUCER, RD_KAFKA_EVENT_DR);
        rd_kafka_queue_t *queue = rd_kafka_queue_get_main(rk);
        rd_kafka_event_t *event;
        const char *facility = "untouched", *text = "untouched";
        int level = 55, logged;
        purged_message(rk, "one");
        event = next_event(queue);
        logged = rd_kafka_event_log(event, &facility, &text, &level);
        say("log %d facility %s text %s level %d", logged, facility, text, level);
        say("partition %s", rd_kafka_event_topic_partition(event) ? "present" : "NULL");
        say("partitions %s", rd_kafka_event_topic_partition_list(event) ? "present" : "NULL");
        say("fatal %d", rd_kafka_event_error_is_fatal(event));
        say("create topics %s", rd_kafka_event_CreateTopics_result(event) ? "present" : "NULL");
        say("describe configs %s", rd_kafka_event_DescribeConfigs_result(event) ? "present" : "NULL");
        say("token config %s", quoted(rd_kafka_event_config_string(event)));
        rd_kafka_event_destroy(event);
        say("of NULL: %s type %d", quoted(rd_kafka_event_name(NULL)), rd_kafka_event_type(NULL));
        rd_kafka_event_destroy(NULL);
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
}

CASE(callbacks_from_a_queue) {
        rd_kafka_conf_t *conf = conf_of("test.mock.num.brokers", "1", "linger.ms", "60000", NULL);
        rd_kafka_t *rk;
        rd_kafka_queue_t *queue;
        rk = producer_of(conf);
        queue = rd_kafka_queue_get_main(rk);
        purged_message(rk, "one");
        UNTIL(recorded(&reports) == 1, rd_kafka_queue_poll_callback(queue, 50));
        say("reports %d", recorded(&reports));
        purged_message(rk, "two");
        say_event("an event although there is a callback", rd_kafka_queue_poll(queue, 1000));
        say("reports %d", recorded(&reports));
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
}

CASE(forwarded) {
        rd_kafka_t *rk = quiet(RD_KAFKA_PRODUCER, RD_KAFKA_EVENT_DR);
        rd_kafka_queue_t *main_queue = rd_kafka_queue_get_main(rk), *one = rd_kafka_queue_new(rk), *two = rd_kafka_queue_new(rk);
        rd_kafka_queue_forward(main_queue, one);
        purged_message(rk, "one");
        say_event("one", next_event(one));
        rd_kafka_queue_forward(one, two);
        purged_message(rk, "two");
        say_event("two", next_event(two));
        purged_message(rk, "three");
        say_event("polled through the first", next_event(main_queue));
        rd_kafka_queue_forward(one, NULL);
        purged_message(rk, "four");
        say_event("four", next_event(one));
        rd_kafka_queue_forward(main_queue, NULL);
        purged_message(rk, "five");
        say_event("five", next_event(main_queue));
        say("lengths %zu %zu %zu", rd_kafka_queue_length(main_queue), rd_kafka_queue_length(one), rd_kafka_queue_length(two));
        rd_kafka_queue_destroy(one);
        rd_kafka_queue_destroy(two);
        rd_kafka_queue_destroy(main_queue);
        rd_kafka_destroy(rk);
}

CASE(forwarded_with_events_inside) {
        rd_kafka_t *rk = quiet(RD_KAFKA_PRODUCER, RD_KAFKA_EVENT_DR);
        rd_kafka_queue_t *main_queue = rd_kafka_queue_get_main(rk), *one = rd_kafka_queue_new(rk);
        purged_message(rk, "one");
        UNTIL(rd_kafka_queue_length(main_queue) == 1, usleep(5000));
        rd_kafka_queue_forward(main_queue, one);
        say("length %zu", rd_kafka_queue_length(one));
        say_event("one", next_event(one));
        rd_kafka_queue_destroy(main_queue);
        rd_kafka_queue_destroy(one);
        rd_kafka_destroy(rk);
}

CASE(forwarded_to_a_destroyed_queue) {
        rd_kafka_t *rk = quiet(RD_KAFKA_PRODUCER, RD_KAFKA_EVENT_DR);
        rd_kafka_queue_t *main_queue = rd_kafka_queue_get_main(rk), *one = rd_kafka_queue_new(rk);
        rd_kafka_queue_forward(main_queue, one);
        rd_kafka_queue_destroy(one);
        purged_message(rk, "one");
        say_event("polled through the main queue", next_event(main_queue));
        rd_kafka_queue_destroy(main_queue);
        rd_kafka_destroy(rk);
}

CASE(main_queue_forwarded_to_itself) {
        rd_kafka_t *rk = quiet(RD_KAFKA_CONSUMER, 0);
        say("set_consumer %s", err(rd_kafka_poll_set_consumer(rk)));
        rd_kafka_destroy(rk);
        rk = consumer_of(conf_of("group.id", "g", NULL));
        say("set_consumer %s", err(rd_kafka_poll_set_consumer(rk)));
        say("set_consumer again %s", err(rd_kafka_poll_set_consumer(rk)));
        say("poll %d", rd_kafka_poll(rk, 0));
        rd_kafka_destroy(rk);
}

CASE(io_events) {
        rd_kafka_t *rk = quiet(RD_KAFKA_PRODUCER, RD_KAFKA_EVENT_DR);
        rd_kafka_queue_t *queue = rd_kafka_queue_get_main(rk);
        int ends[2];
        char bytes[64];
        ssize_t count = 0;
        if (pipe(ends))
                abort();
        fcntl(ends[0], F_SETFL, O_NONBLOCK);
        rd_kafka_queue_io_event_enable(queue, ends[1], "ab", 2);
        say("nothing yet %d", (int)read(ends[0], bytes, sizeof(bytes)));
        purged_message(rk, "one");
        UNTIL((count = read(ends[0], bytes, sizeof(bytes))) > 0, usleep(5000));
        say("bytes %d: %.2s", (int)count, bytes);
        say_event("event", next_event(queue));
        rd_kafka_queue_io_event_enable(queue, -1, NULL, 0);
        purged_message(rk, "two");
        say_event("event", next_event(queue));
        say("disabled %d", (int)read(ends[0], bytes, sizeof(bytes)));
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
}

static int called;
static void on_event(rd_kafka_t *rk UNUSED, void *opaque) { __atomic_add_fetch((int *)opaque, 1, __ATOMIC_SEQ_CST); }

/* A queue has a descriptor or a callback: setting one, or none, ends the other. */
CASE(descriptor_and_callback_of_a_queue) {
        rd_kafka_t *rk = quiet(RD_KAFKA_PRODUCER, RD_KAFKA_EVENT_DR);
        rd_kafka_queue_t *queue = rd_kafka_queue_get_main(rk);
        int ends[2], i, count = 0;
        char byte;
        if (pipe(ends))
                abort();
        fcntl(ends[0], F_SETFL, O_NONBLOCK);
        for (i = 0; i < 4; i++) {
                if (i % 2 == 0) {
                        rd_kafka_queue_cb_event_enable(queue, on_event, &called);
                        rd_kafka_queue_io_event_enable(queue, i == 0 ? ends[1] : -1, "a", 1);
                } else {
                        rd_kafka_queue_io_event_enable(queue, ends[1], "a", 1);
                        rd_kafka_queue_cb_event_enable(queue, i == 1 ? on_event : NULL, &called);
                }
                purged_message(rk, "one");
                say_event("event", next_event(queue));
                if (i == 0)
                        WAIT_FOR((count = (int)read(ends[0], &byte, 1)) == 1);
                if (i == 1)
                        WAIT_FOR(__atomic_load_n(&called, __ATOMIC_SEQ_CST) == 1);
                say("bytes %d, calls %d", i == 0 ? count : (int)read(ends[0], &byte, 1), __atomic_load_n(&called, __ATOMIC_SEQ_CST));
        }
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
}

CASE(callback_of_a_queue) {
        rd_kafka_t *rk = quiet(RD_KAFKA_PRODUCER, RD_KAFKA_EVENT_DR);
        rd_kafka_queue_t *queue = rd_kafka_queue_get_main(rk);
        rd_kafka_queue_cb_event_enable(queue, on_event, &called);
        purged_message(rk, "one");
        WAIT_FOR(__atomic_load_n(&called, __ATOMIC_SEQ_CST) > 0);
        say("called %d", called);
        say_event("event", next_event(queue));
        rd_kafka_queue_cb_event_enable(queue, NULL, NULL);
        purged_message(rk, "two");
        say_event("event", next_event(queue));
        say("called %d", called);
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
}

static void *yielding(void *queue) {
        usleep(200000);
        rd_kafka_queue_yield(queue);
        return NULL;
}

CASE(yield_ends_a_poll) {
        rd_kafka_t *rk = quiet(RD_KAFKA_PRODUCER, 0);
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
        pthread_t thread;
        long began = millis();
        pthread_create(&thread, NULL, yielding, queue);
        say_event("poll", rd_kafka_queue_poll(queue, 10000));
        say("took %s", took(began, 10000));
        pthread_join(thread, NULL);
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
}

CASE(logs_as_events) {
        rd_kafka_conf_t *conf = conf_of("test.mock.num.brokers", "1", "log.queue", "true", "debug", "conf", NULL);
        rd_kafka_t *rk;
        rd_kafka_queue_t *queue;
        rd_kafka_event_t *event;
        const char *facility, *text;
        int level, logged;
        rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_LOG);
        rd_kafka_conf_set_error_cb(conf, NULL);
        rk = start(RD_KAFKA_PRODUCER, conf);
        queue = rd_kafka_queue_new(rk);
        say("set_log_queue %s", err(rd_kafka_set_log_queue(rk, queue)));
        event = next_event(queue);
        say("event %s", rd_kafka_event_name(event));
        logged = rd_kafka_event_log(event, &facility, &text, &level);
        say("log %d facility %s text %s level %s", logged, present(facility), present(text), level >= 0 && level <= 7 ? "0 to 7" : "other");
        rd_kafka_event_destroy(event);
        say("set_log_queue NULL %s", err(rd_kafka_set_log_queue(rk, NULL)));
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
        rk = quiet(RD_KAFKA_PRODUCER, 0);
        say("without log.queue %s", err(rd_kafka_set_log_queue(rk, NULL)));
        rd_kafka_destroy(rk);
}

CASE(statistics_as_events) {
        rd_kafka_conf_t *conf = conf_of("test.mock.num.brokers", "1", "statistics.interval.ms", "50", NULL);
        rd_kafka_t *rk;
        rd_kafka_queue_t *queue;
        rd_kafka_event_t *event;
        rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_STATS);
        rd_kafka_conf_set_error_cb(conf, NULL);
        rk = start(RD_KAFKA_PRODUCER, conf);
        queue = rd_kafka_queue_get_main(rk);
        event = next_event(queue);
        say("event %s begins with %c", rd_kafka_event_name(event), rd_kafka_event_stats(event)[0]);
        say("client id %d", strstr(rd_kafka_event_stats(event), "\"client_id\"") != NULL);
        rd_kafka_event_destroy(event);
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
}

CASE(errors_as_events) {
        rd_kafka_conf_t *conf = conf_of("bootstrap.servers", DEAD, NULL);
        rd_kafka_t *rk;
        rd_kafka_queue_t *queue;
        rd_kafka_event_t *event;
        rd_kafka_conf_set_error_cb(conf, NULL);
        rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_ERROR);
        rk = start(RD_KAFKA_PRODUCER, conf);
        queue = rd_kafka_queue_get_main(rk);
        {
                int transport = 0, down = 0;
                UNTIL(transport && down, {
                        if ((event = rd_kafka_queue_poll(queue, 50))) {
                                transport |= rd_kafka_event_error(event) == RD_KAFKA_RESP_ERR__TRANSPORT;
                                down |= rd_kafka_event_error(event) == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN;
                                rd_kafka_event_destroy(event);
                        }
                });
                say("_TRANSPORT %d _ALL_BROKERS_DOWN %d", transport, down);
        }
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
}

static void in_background(rd_kafka_t *rk UNUSED, rd_kafka_event_t *event, void *opaque UNUSED) {
        record(&reports, "%s messages %zu", rd_kafka_event_name(event), rd_kafka_event_message_count(event));
        rd_kafka_event_destroy(event);
}

CASE(background_callback) {
        rd_kafka_conf_t *conf = conf_of("test.mock.num.brokers", "1", "linger.ms", "60000", NULL);
        rd_kafka_t *rk;
        rd_kafka_queue_t *main_queue, *background;
        rd_kafka_conf_set_background_event_cb(conf, in_background);
        rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_DR);
        rk = start(RD_KAFKA_PRODUCER, conf);
        main_queue = rd_kafka_queue_get_main(rk);
        background = rd_kafka_queue_get_background(rk);
        say("background queue %s", background ? "present" : "NULL");
        rd_kafka_queue_forward(main_queue, background);
        purged_message(rk, "one");
        WAIT_FOR(recorded(&reports) == 1);
        say_recorded("events", &reports);
        rd_kafka_queue_destroy(background);
        rd_kafka_queue_destroy(main_queue);
        rd_kafka_destroy(rk);
}

static rd_kafka_queue_t *polled;
static void *polling(void *unused UNUSED) {
        rd_kafka_event_t *event = rd_kafka_queue_poll(polled, 700);
        say("another thread's poll: %s", event ? rd_kafka_event_name(event) : "NULL");
        if (event)
                rd_kafka_event_destroy(event);
        rd_kafka_queue_destroy(polled);
        return NULL;
}

/* Without background_event_cb the thread of the background queue calls the callbacks that rd_kafka_poll would call. */
CASE(background_queue_without_a_callback) {
        rd_kafka_t *rk = producer_of(conf_of("bootstrap.servers", DEAD, NULL));
        rd_kafka_queue_t *background = rd_kafka_queue_get_background(rk), *queue = rd_kafka_queue_get_main(rk), *third;
        rd_kafka_queue_forward(queue, background);
        say("produce %s", err(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_VALUE("x", 1), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_END)));
        rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE);
        WAIT_FOR(recorded(&reports) == 1);
        WAIT_FOR(recorded(&errors) >= 1);
        say_recorded("reports", &reports);
        third = rd_kafka_queue_get_background(rk);
        say("again %s", third ? "present" : "NULL");
        rd_kafka_queue_destroy(third);
        rd_kafka_queue_destroy(background);
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
}

CASE(destroyed_while_polled) {
        rd_kafka_t *rk = quiet(RD_KAFKA_PRODUCER, RD_KAFKA_EVENT_DR);
        rd_kafka_queue_t *main_queue = rd_kafka_queue_get_main(rk);
        pthread_t thread;
        polled = rd_kafka_queue_get_main(rk);
        pthread_create(&thread, NULL, polling, NULL);
        usleep(100000);
        rd_kafka_queue_destroy(main_queue);
        pthread_join(thread, NULL);
        rd_kafka_destroy(rk);
        say("destroyed");
}

CASE(queue_of_a_partition) {
        rd_kafka_t *rk = consumer_of(conf_of("group.id", "g", NULL));
        rd_kafka_queue_t *queue = rd_kafka_queue_get_partition(rk, "t", 0);
        say("of an unassigned partition %s", queue ? "present" : "NULL");
        if (queue)
                rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
        rk = quiet(RD_KAFKA_PRODUCER, 0);
        queue = rd_kafka_queue_get_partition(rk, "t", 0);
        say("of a producer %s", queue ? "present" : "NULL");
        rd_kafka_destroy(rk);
        misuse("queue_destroy(NULL)") rd_kafka_queue_destroy(NULL);
        misuse("queue_poll(NULL)") say("%d", rd_kafka_queue_poll(NULL, 0) == NULL);
        misuse("queue_length(NULL)") say("%zu", rd_kafka_queue_length(NULL));
}

/* A misuse that the original does not survive: the length follows the circle. */
CASE(forwarded_in_circles) {
        misuse("to itself") {
                rd_kafka_t *rk = quiet(RD_KAFKA_PRODUCER, RD_KAFKA_EVENT_DR);
                rd_kafka_queue_t *one = rd_kafka_queue_new(rk);
                rd_kafka_queue_forward(one, one);
                say("length %zu", rd_kafka_queue_length(one));
        }
        misuse("three in a circle") {
                rd_kafka_t *rk = quiet(RD_KAFKA_PRODUCER, RD_KAFKA_EVENT_DR);
                rd_kafka_queue_t *one = rd_kafka_queue_new(rk), *two = rd_kafka_queue_new(rk), *three = rd_kafka_queue_new(rk);
                rd_kafka_queue_forward(one, two);
                rd_kafka_queue_forward(two, three);
                rd_kafka_queue_forward(three, one);
                say("length %zu", rd_kafka_queue_length(one));
        }
}

CASE(forwarded_again_and_again) {
        rd_kafka_t *rk = quiet(RD_KAFKA_PRODUCER, RD_KAFKA_EVENT_DR);
        rd_kafka_queue_t *main_queue = rd_kafka_queue_get_main(rk), *queues[3];
        int i;
        for (i = 0; i < 3; i++)
                queues[i] = rd_kafka_queue_new(rk);
        for (i = 0; i < 9; i++) {
                rd_kafka_queue_forward(main_queue, queues[i % 3]);
                purged_message(rk, "one");
                say_event("event", next_event(queues[i % 3]));
                say("others %zu %zu", rd_kafka_queue_length(queues[(i + 1) % 3]), rd_kafka_queue_length(queues[(i + 2) % 3]));
        }
        for (i = 0; i < 3; i++)
                rd_kafka_queue_destroy(queues[i]);
        rd_kafka_queue_destroy(main_queue);
        rd_kafka_destroy(rk);
}

/* A partition's queue that is not forwarded to the consumer's is read alone; forwarded again, the consumer reads the rest. */
CASE(partition_queue_is_read_alone) {
        rd_kafka_t *rk = producer_of(conf_of("test.mock.num.brokers", "1", NULL)), *consumer;
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(2);
        rd_kafka_queue_t *queue, *of_consumer;
        rd_kafka_message_t *message;
        rd_kafka_mock_cluster_t *cluster = rd_kafka_handle_mock_cluster(rk);
        int i;
        rd_kafka_mock_topic_create(cluster, "t", 2, 1);
        for (i = 0; i < 2; i++) {
                rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_PARTITION(i), RD_KAFKA_V_VALUE((void *)&"01"[i], 1), RD_KAFKA_V_END);
                rd_kafka_topic_partition_list_add(list, "t", i)->offset = 0;
        }
        say("flush %s", err(rd_kafka_flush(rk, TIMEOUT_MS)));
        consumer = consumer_of(conf_of("bootstrap.servers", rd_kafka_mock_cluster_bootstraps(cluster), "group.id", "g", "enable.auto.commit", "false", NULL));
        of_consumer = rd_kafka_queue_get_consumer(consumer);
        say("queue of the consumer %s", of_consumer ? "present" : "NULL");
        rd_kafka_assign(consumer, list);
        queue = rd_kafka_queue_get_partition(consumer, "t", 1);
        rd_kafka_queue_forward(queue, NULL);
        UNTIL((message = rd_kafka_consumer_poll(consumer, 100)), (void)0);
        say_message("by the consumer", message);
        rd_kafka_message_destroy(message);
        UNTIL((message = rd_kafka_consume_queue(queue, 100)), (void)0);
        say_message("by the queue", message);
        rd_kafka_message_destroy(message);
        rd_kafka_queue_forward(queue, of_consumer);
        rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_PARTITION(1), RD_KAFKA_V_VALUE("more", 4), RD_KAFKA_V_END);
        UNTIL((message = rd_kafka_consumer_poll(consumer, 100)), (void)0);
        say_message("by the consumer again", message);
        rd_kafka_message_destroy(message);
        rd_kafka_queue_destroy(queue);
        rd_kafka_queue_destroy(of_consumer);
        rd_kafka_assign(consumer, NULL);
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_destroy_flags(consumer, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
        rd_kafka_destroy(rk);
}
