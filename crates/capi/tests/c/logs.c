/* The log lines of a client: failed connections, contexts of `debug`, and thread names. Each function is a sentence. */
#include "test.h"

static int errors, all_down;

/* Any thread may log. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char lines[4000][400];
static int line_count;

static void on_log(const rd_kafka_t *rk, int level, const char *facility, const char *line) {
        (void)rk;
        pthread_mutex_lock(&lock);
        if (line_count < 4000)
                snprintf(lines[line_count++], sizeof(lines[0]), "%d|%s|%.370s", level, facility, line);
        pthread_mutex_unlock(&lock);
}

static void on_error(rd_kafka_t *rk, int err, const char *reason, void *opaque) {
        (void)rk;
        (void)reason;
        (void)opaque;
        if (err == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN)
                all_down++;
        else
                errors++;
}

/* Returns the number of lines with this beginning and this content. */
static int logged(const char *begin, const char *part) {
        int i, count = 0;
        pthread_mutex_lock(&lock);
        for (i = 0; i < line_count; i++)
                count += !strncmp(lines[i], begin, strlen(begin)) && strstr(lines[i], part) != NULL;
        pthread_mutex_unlock(&lock);
        return count;
}

static void forget(void) {
        pthread_mutex_lock(&lock);
        line_count = 0;
        pthread_mutex_unlock(&lock);
        errors = all_down = 0;
}

static rd_kafka_conf_t *logging(const char *servers) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        if (servers)
                set(conf, "bootstrap.servers", servers);
        rd_kafka_conf_set_log_cb(conf, on_log);
        return conf;
}

static void poll_for(rd_kafka_t *rk, int ms) {
        for (; ms > 0; ms -= 50)
                rd_kafka_poll(rk, 50);
}

/* A consumer that has read the one message of "logs". */
static rd_kafka_t *reader(rd_kafka_conf_t *conf) {
        rd_kafka_t *rk;
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_message_t *message;
        set(conf, "group.id", "logs");
        rk = start(RD_KAFKA_CONSUMER, conf);
        rd_kafka_poll_set_consumer(rk);
        rd_kafka_topic_partition_list_add(list, "logs", 0)->offset = 0;
        CHECK(rd_kafka_assign(rk, list) == 0);
        message = rd_kafka_consumer_poll(rk, TIMEOUT_MS);
        CHECK(message && !message->err);
        if (message)
                rd_kafka_message_destroy(message);
        rd_kafka_topic_partition_list_destroy(list);
        return rk;
}

static int produce(rd_kafka_t *rk) {
        return rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("logs"), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_VALUE((void *)"v", 1),
                                 RD_KAFKA_V_END);
}

static void a_client_without_brokers_is_warned(void) {
        rd_kafka_destroy(start(RD_KAFKA_PRODUCER, logging(NULL)));
        CHECK(logged("5|CONFWARN|[thrd:app]: ", "bootstrap.servers") == 1);
        forget();
}

static void a_broker_that_is_not_there_is_told_once_in_a_line_and_an_error(void) {
        rd_kafka_conf_t *conf = logging("127.0.0.1:1");
        rd_kafka_t *rk;
        rd_kafka_conf_set_error_cb(conf, on_error);
        set(conf, "reconnect.backoff.ms", "50");
        set(conf, "reconnect.backoff.max.ms", "100");
        rk = start(RD_KAFKA_PRODUCER, conf);
        CHECK(produce(rk) == 0);
        poll_for(rk, 1500);
        CHECK(logged("3|FAIL|[thrd:127.0.0.1:1/bootstrap]: 127.0.0.1:1/bootstrap: ", "refused") == 1);
        CHECK(errors == 1 && all_down >= 1);
        rd_kafka_destroy(rk);
        forget();
}

static void without_an_error_callback_a_failure_is_one_line(void) {
        rd_kafka_conf_t *conf = logging("127.0.0.1:1");
        rd_kafka_t *rk;
        set(conf, "log.thread.name", "false");
        rk = start(RD_KAFKA_PRODUCER, conf);
        CHECK(produce(rk) == 0);
        poll_for(rk, 500);
        CHECK(logged("3|FAIL|127.0.0.1:1/bootstrap: ", "refused") == 1);
        CHECK(logged("3|ERROR|127.0.0.1:1/bootstrap: ", "") == 0);
        CHECK(logged("3|ERROR|", "no broker could be reached") >= 1);
        rd_kafka_destroy(rk);
        forget();
}

static void debug_tells_states_requests_and_batches_and_nothing_that_it_was_not_asked_for(const char *servers) {
        rd_kafka_conf_t *conf = logging(servers);
        rd_kafka_t *rk;
        set(conf, "debug", "broker,protocol,msg");
        rk = start(RD_KAFKA_PRODUCER, conf);
        CHECK(produce(rk) == 0);
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
        rd_kafka_destroy(rk);
        CHECK(logged("7|STATE|[thrd:127.0.0.1:", "Broker changed state CONNECT -> APIVERSION_QUERY") >= 1);
        CHECK(logged("7|STATE|[thrd:127.0.0.1:", "Broker changed state APIVERSION_QUERY -> UP") >= 1);
        CHECK(logged("7|SEND|[thrd:127.0.0.1:", "Sent ProduceRequest (v") == 1);
        CHECK(logged("7|RECV|[thrd:127.0.0.1:", "Received ProduceResponse (v") == 1);
        CHECK(logged("7|MSGSET|", "logs [0]: MessageSet with 1 message(s) delivered") == 1);
        CHECK(logged("7|CONF|", "") == 0 && logged("7|TOPIC|", "") == 0);
        CHECK(logged("7|INIT|", "debug broker,msg,protocol") == 1 && logged("7|DESTROY|", "") == 1);
        forget();
}

static void each_context_has_lines_of_its_own(const char *servers) {
        static const char *contexts[] = {"metadata", "feature", "msg", "eos"};
        static const char *begins[] = {"7|METADATA|", "7|APIVERSION|", "7|PRODUCE|", "7|GETPID|"};
        int i, other;
        for (i = 0; i < 4; i++) {
                rd_kafka_conf_t *conf = logging(servers);
                rd_kafka_t *rk;
                set(conf, "debug", contexts[i]);
                set(conf, "enable.idempotence", "true");
                rk = start(RD_KAFKA_PRODUCER, conf);
                CHECK(produce(rk) == 0);
                CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
                rd_kafka_destroy(rk);
                for (other = 0; other < 4; other++)
                        CHECK((logged(begins[other], "") > 0) == (i == other));
                CHECK(logged("7|SEND|", "") == 0);
                forget();
        }
}

static rd_kafka_resp_err_t on_send(rd_kafka_t *rk, rd_kafka_message_t *message, void *opaque) {
        (void)rk;
        (void)message;
        (void)opaque;
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_new(rd_kafka_t *rk, const rd_kafka_conf_t *conf, void *opaque, char *errstr, size_t size) {
        (void)conf;
        (void)opaque;
        (void)errstr;
        (void)size;
        return rd_kafka_interceptor_add_on_send(rk, "looks", on_send, NULL);
}

static void a_mock_cluster_queues_and_interceptors_have_lines_too(void) {
        static const char *contexts[] = {"mock", "queue", "interceptor", "security"};
        int i;
        for (i = 0; i < 4; i++) {
                rd_kafka_conf_t *conf = logging(NULL);
                rd_kafka_queue_t *queue;
                rd_kafka_t *rk;
                set(conf, "test.mock.num.brokers", "1");
                set(conf, "debug", contexts[i]);
                CHECK(rd_kafka_conf_interceptor_add_on_new(conf, "looks", on_new, NULL) == 0);
                rk = start(RD_KAFKA_PRODUCER, conf);
                CHECK(rd_kafka_mock_topic_create(rd_kafka_handle_mock_cluster(rk), "logs", 3, 1) == 0);
                CHECK(produce(rk) == 0);
                CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
                queue = rd_kafka_queue_get_main(rk);
                rd_kafka_queue_forward(queue, NULL);
                rd_kafka_queue_destroy(queue);
                CHECK(rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE) == 0);
                if (i == 0) {
                        WAIT_FOR(logged("7|MOCK|[thrd:mock]: Broker 1: Received ProduceRequestV", " from 127.0.0.1:") == 1);
                        WAIT_FOR(logged("7|MOCK|[thrd:mock]: Broker 1: Sending ProduceResponseV", " to 127.0.0.1:") == 1);
                }
                rd_kafka_destroy(rk);
                CHECK(logged("7|MOCK|[thrd:app]: ", "Created topic \"logs\" with 3 partition(s)") == (i == 0));
                CHECK(logged("5|MOCK|[thrd:app]: ", "is replaced by 127.0.0.1:") == 1);
                CHECK((logged("7|MOCK|", "") > 0) == (i == 0));
                CHECK(logged("7|FORWARD|[thrd:app]: ", "polled itself") == (i == 1));
                CHECK(logged("7|PURGE|[thrd:app]: ", "of 0 message(s)") == (i == 1));
                CHECK(logged("7|INTERCEPT|[thrd:app]: ", "looks is called on_send") == (i == 2));
                CHECK(logged("7|INIT|", contexts[i]) == 1 && logged("7|DESTROY|", "") == 1);
                forget();
        }
}

static void debug_tells_the_configuration_and_what_is_assigned(const char *servers) {
        rd_kafka_conf_t *conf = logging(servers);
        set(conf, "debug", "all");
        set(conf, "group.id", "logs");
        rd_kafka_destroy(reader(conf));
        CHECK(logged("7|INIT|[thrd:app]: ", "initialized") == 1);
        CHECK(logged("7|CONF|[thrd:app]: ", "group.id = logs") == 1);
        CHECK(logged("7|ASSIGN|[thrd:app]: ", "logs [0] offset 0") == 1);
        CHECK(logged("7|RECV|[thrd:127.0.0.1:", "Received FetchResponse (v") >= 1);
        CHECK(logged("7|DESTROY|[thrd:app]: ", "") == 1);
        forget();
}

static void the_level_can_be_lowered_while_it_runs(const char *servers) {
        rd_kafka_conf_t *conf = logging(servers);
        rd_kafka_t *rk;
        set(conf, "debug", "all");
        rk = start(RD_KAFKA_PRODUCER, conf);
        rd_kafka_set_log_level(rk, 6);
        /* A line that was being logged is there before the threads do anything else. */
        CHECK(produce(rk) == 0);
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
        forget();
        CHECK(produce(rk) == 0);
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
        CHECK(logged("7|", "") == 0);
        rd_kafka_destroy(rk);
        forget();
}

static void lines_are_events_with_their_contexts(const char *servers) {
        rd_kafka_conf_t *conf = logging(servers);
        rd_kafka_t *rk;
        rd_kafka_queue_t *queue;
        rd_kafka_event_t *event;
        int sent = 0;
        set(conf, "log.queue", "true");
        set(conf, "debug", "protocol");
        /* The property is the value of rd_kafka_conf_set_events(): RD_KAFKA_EVENT_LOG. */
        set(conf, "enabled_events", "4");
        rk = start(RD_KAFKA_PRODUCER, conf);
        queue = rd_kafka_queue_new(rk);
        CHECK(rd_kafka_set_log_queue(rk, queue) == 0);
        CHECK(produce(rk) == 0);
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
        while ((event = rd_kafka_queue_poll(queue, 100))) {
                const char *facility, *line;
                int level;
                char contexts[64];
                CHECK(rd_kafka_event_type(event) == RD_KAFKA_EVENT_LOG);
                CHECK(rd_kafka_event_log(event, &facility, &line, &level) == 0);
                CHECK(rd_kafka_event_debug_contexts(event, contexts, sizeof(contexts)) == 0);
                if (!strcmp(facility, "SEND")) {
                        CHECK(level == 7 && !strcmp(contexts, "protocol"));
                        sent++;
                }
                rd_kafka_event_destroy(event);
        }
        CHECK(sent > 0 && logged("", "") == 0);
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
        forget();
}

static void nothing_is_logged_once_the_client_is_destroyed(const char *servers) {
        int i;
        for (i = 0; i < 20; i++) {
                rd_kafka_conf_t *conf = logging(servers);
                rd_kafka_t *rk;
                set(conf, "debug", "all");
                rk = start(RD_KAFKA_PRODUCER, conf);
                CHECK(produce(rk) == 0);
                usleep(i * 500);
                rd_kafka_destroy(rk);
                forget();
                usleep(5000);
                CHECK(logged("", "") == 0);
        }
}

static void messages_that_are_lost_are_counted_when_the_client_is_destroyed(void) {
        rd_kafka_t *rk;
        forget();
        rk = start(RD_KAFKA_PRODUCER, logging("127.0.0.1:1"));
        CHECK(produce(rk) == 0);
        CHECK(produce(rk) == 0);
        rd_kafka_destroy(rk);
        CHECK(logged("4|TERMINATE|", "2 messages are still queued or in flight and will be lost") == 1);
}

static void an_offset_that_is_not_there_is_told_when_it_is_reset(const char *servers) {
        rd_kafka_conf_t *conf = logging(servers);
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_t *rk;
        rd_kafka_message_t *message;
        set(conf, "group.id", "logs");
        set(conf, "auto.offset.reset", "earliest");
        rk = start(RD_KAFKA_CONSUMER, conf);
        rd_kafka_poll_set_consumer(rk);
        rd_kafka_topic_partition_list_add(list, "logs", 0)->offset = 999999;
        CHECK(rd_kafka_assign(rk, list) == 0);
        message = rd_kafka_consumer_poll(rk, TIMEOUT_MS);
        CHECK(message && !message->err && message->offset == 0);
        if (message)
                rd_kafka_message_destroy(message);
        CHECK(logged("4|OFFSET|", "logs [0]: offset reset to BEGINNING: offset 999999 is out of range") == 1);
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_destroy(rk);
        forget();
}

static void a_lost_connection_is_told_unless_log_connection_close_says_no(const char *servers,
                                                                          rd_kafka_mock_cluster_t *cluster) {
        static const char *values[] = {"true", "false"};
        int i;
        for (i = 0; i < 2; i++) {
                rd_kafka_conf_t *conf = logging(servers);
                rd_kafka_t *rk;
                set(conf, "log.connection.close", values[i]);
                rd_kafka_conf_set_error_cb(conf, on_error);
                rk = reader(conf);
                rd_kafka_mock_broker_set_down(cluster, 1);
                poll_for(rk, 1000);
                CHECK(logged("6|FAIL|[thrd:127.0.0.1:", "connection lost") == (i == 0));
                CHECK(errors >= 1);
                rd_kafka_mock_broker_set_up(cluster, 1);
                rd_kafka_destroy(rk);
                forget();
        }
}

static int emergencies;

static void on_facility(const rd_kafka_t *rk, int level, const char *facility, const char *line) {
        (void)rk;
        if (!strcmp(facility, "FATAL")) {
                CHECK(level == 0 && strstr(line, "Fatal error: Broker: ") && strstr(line, "because"));
                emergencies++;
        }
}

static void on_any_error(rd_kafka_t *rk, int code, const char *reason, void *opaque) {
        (void)rk;
        (void)opaque;
        CHECK(code == RD_KAFKA_RESP_ERR__FATAL && strstr(reason, "Fatal error: ") == reason);
}

static void a_fatal_error_is_logged_for_applications_with_an_error_callback(void) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_t *rk;
        set(conf, "bootstrap.servers", "127.0.0.1:1");
        rd_kafka_conf_set_log_cb(conf, on_facility);
        rd_kafka_conf_set_error_cb(conf, on_any_error);
        rk = start(RD_KAFKA_PRODUCER, conf);
        CHECK(rd_kafka_test_fatal_error(rk, RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, "because") == 0);
        CHECK(emergencies == 1);
        rd_kafka_destroy(rk);
}

static void brokers_of_another_cluster_are_logged_with_both_cluster_ids(rd_kafka_t *host) {
        rd_kafka_mock_cluster_t *first = rd_kafka_mock_cluster_new(host, 1), *second = rd_kafka_mock_cluster_new(host, 1);
        rd_kafka_conf_t *conf = logging(rd_kafka_mock_cluster_bootstraps(first));
        rd_kafka_t *rk;
        char *known;
        int count;
        forget();
        set(conf, "topic.metadata.refresh.interval.ms", "100");
        set(conf, "reconnect.backoff.max.ms", "100");
        rk = start(RD_KAFKA_PRODUCER, conf);
        known = rd_kafka_clusterid(rk, TIMEOUT_MS);
        CHECK(known != NULL);
        CHECK(logged("4|CLUSTERID|", "") == 0);
        CHECK(rd_kafka_brokers_add(rk, rd_kafka_mock_cluster_bootstraps(second)) == 1);
        CHECK(rd_kafka_mock_broker_set_down(first, 1) == 0);
        UNTIL(logged("4|CLUSTERID|", known) > 0, poll_for(rk, 50));
        /* Several responses of the second cluster are one change. */
        count = logged("4|CLUSTERID|", "");
        poll_for(rk, 500);
        CHECK(logged("4|CLUSTERID|", "") == count);
        rd_kafka_mem_free(rk, known);
        rd_kafka_destroy(rk);
        rd_kafka_mock_cluster_destroy(first);
        rd_kafka_mock_cluster_destroy(second);
}

int main(void) {
        const char *servers;
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_mock_cluster_t *cluster;
        rd_kafka_t *rk;

        set(conf, "test.mock.num.brokers", "1");
        set(conf, "log_level", "2");
        rk = start(RD_KAFKA_PRODUCER, conf);
        cluster = rd_kafka_handle_mock_cluster(rk);
        servers = rd_kafka_mock_cluster_bootstraps(cluster);
        CHECK(rd_kafka_mock_topic_create(cluster, "logs", 1, 1) == 0);
        CHECK(produce(rk) == 0);
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);

        a_client_without_brokers_is_warned();
        a_broker_that_is_not_there_is_told_once_in_a_line_and_an_error();
        without_an_error_callback_a_failure_is_one_line();
        debug_tells_states_requests_and_batches_and_nothing_that_it_was_not_asked_for(servers);
        a_mock_cluster_queues_and_interceptors_have_lines_too();
        each_context_has_lines_of_its_own(servers);
        debug_tells_the_configuration_and_what_is_assigned(servers);
        the_level_can_be_lowered_while_it_runs(servers);
        lines_are_events_with_their_contexts(servers);
        nothing_is_logged_once_the_client_is_destroyed(servers);
        messages_that_are_lost_are_counted_when_the_client_is_destroyed();
        an_offset_that_is_not_there_is_told_when_it_is_reset(servers);
        a_lost_connection_is_told_unless_log_connection_close_says_no(servers, cluster);

        brokers_of_another_cluster_are_logged_with_both_cluster_ids(rk);
        rd_kafka_destroy(rk);
        a_fatal_error_is_logged_for_applications_with_an_error_callback();
        return bad != 0;
}
