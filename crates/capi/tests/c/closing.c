/* The end of waits: a consumer that closes while another thread polls it, or while the application has a rebalance that
 * it does not answer, and threads that wait at one queue when they have to return or when it is forwarded. A session
 * lasts longer than this program waits for anything, so that no time limit of the library can help. */
#include "test.h"

#define TOPIC "closing"
#define THREADS 3
#define OFFSET_COMMIT 8

static const char *servers;
/* What the rebalance callback does not answer; 0: it answers everything. */
static rd_kafka_resp_err_t unanswered;
static volatile int asked, closed, stopped, returned;

static void on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *list, void *opaque) {
        (void)opaque;
        if (err == unanswered)
                asked = 1;
        else
                CHECK(rd_kafka_assign(rk, err == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS ? list : NULL) == 0);
}

static rd_kafka_conf_t *member_conf(void) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        set(conf, "bootstrap.servers", servers);
        set(conf, "log_level", "2");
        set(conf, "group.id", "closing");
        set(conf, "session.timeout.ms", "1800000");
        set(conf, "max.poll.interval.ms", "3600000");
        set(conf, "heartbeat.interval.ms", "100");
        set(conf, "partition.assignment.strategy", "range");
        return conf;
}

static rd_kafka_t *member(rd_kafka_conf_t *conf) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_t *rk = start(RD_KAFKA_CONSUMER, conf);
        asked = closed = stopped = returned = 0;
        rd_kafka_poll_set_consumer(rk);
        rd_kafka_topic_partition_list_add(list, TOPIC, RD_KAFKA_PARTITION_UA);
        CHECK(rd_kafka_subscribe(rk, list) == 0);
        rd_kafka_topic_partition_list_destroy(list);
        return rk;
}

static int assignment_size(rd_kafka_t *rk) {
        rd_kafka_topic_partition_list_t *list = NULL;
        int count = 0;
        if (!rd_kafka_assignment(rk, &list)) {
                count = list->cnt;
                rd_kafka_topic_partition_list_destroy(list);
        }
        return count;
}

/* Polls until there is nothing to wait for any more. */
static void *polls(void *rk) {
        while (!stopped) {
                rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, -1);
                if (message)
                        rd_kafka_message_destroy(message);
        }
        return NULL;
}

static void *closes(void *rk) {
        CHECK(rd_kafka_consumer_close(rk) == 0);
        closed = 1;
        return NULL;
}

/* Closes in a thread of its own, and ends the program if that does not return. */
static void close_in_time(rd_kafka_t *rk) {
        pthread_t thread;
        CHECK(!pthread_create(&thread, NULL, closes, rk));
        stopped = 1;
        WAIT_FOR(closed);
        if (!closed)
                exit(1);
        pthread_join(thread, NULL);
        CHECK(rd_kafka_consumer_closed(rk));
}

static void closes_while_another_thread_polls(int has_callback) {
        rd_kafka_conf_t *conf = member_conf();
        pthread_t poller;
        rd_kafka_t *rk;
        unanswered = 0;
        if (has_callback)
                rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
        rk = member(conf);
        CHECK(!pthread_create(&poller, NULL, polls, rk));
        WAIT_FOR(assignment_size(rk) > 0);
        close_in_time(rk);
        /* Its poll, which has no time limit, returned. */
        pthread_join(poller, NULL);
        rd_kafka_destroy(rk);
}

/* The callback only notes that it was called, as that of a language with an event loop does. */
static void closes_instead_of_answering(void) {
        rd_kafka_conf_t *conf = member_conf();
        pthread_t poller;
        rd_kafka_t *rk;
        unanswered = RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
        rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
        rk = member(conf);
        CHECK(!pthread_create(&poller, NULL, polls, rk));
        WAIT_FOR(asked);
        close_in_time(rk);
        pthread_join(poller, NULL);
        rd_kafka_destroy(rk);
}

/* The thread that got the rebalance as an event closes instead of answering. */
static void closes_with_a_rebalance_event(rd_kafka_resp_err_t last) {
        rd_kafka_conf_t *conf = member_conf();
        rd_kafka_queue_t *queue;
        rd_kafka_event_t *event;
        rd_kafka_t *rk;
        rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_REBALANCE);
        rk = member(conf);
        queue = rd_kafka_queue_get_consumer(rk);
        event = next_event(queue, RD_KAFKA_EVENT_REBALANCE, RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS);
        if (last == RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS) {
                CHECK(rd_kafka_assign(rk, rd_kafka_event_topic_partition_list(event)) == 0);
                rd_kafka_event_destroy(event);
                CHECK(rd_kafka_unsubscribe(rk) == 0);
                event = next_event(queue, RD_KAFKA_EVENT_REBALANCE, last);
                alarm(TIMEOUT_MS / 1000);
                CHECK(rd_kafka_consumer_close(rk) == 0);
                alarm(0);
        } else {
                close_in_time(rk);
        }
        rd_kafka_event_destroy(event);
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
}

/* The number of offset commits that the broker was sent. */
static int commits(rd_kafka_mock_cluster_t *cluster) {
        size_t count = 0, i;
        int found = 0;
        rd_kafka_mock_request_t **requests = rd_kafka_mock_get_requests(cluster, &count);
        for (i = 0; i < count; i++)
                found += rd_kafka_mock_request_api_key(requests[i]) == OFFSET_COMMIT;
        rd_kafka_mock_request_destroy_array(requests, count);
        return found;
}

/* The coordinator does not respond to the last commit, for which the close waits. Destroying the consumer afterwards
 * does not try again. */
static void destroying_does_not_close_again(rd_kafka_mock_cluster_t *cluster) {
        rd_kafka_t *rk = start(RD_KAFKA_CONSUMER, member_conf());
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_message_t *message;
        int sent, i;
        rd_kafka_topic_partition_list_add(list, TOPIC, 0)->offset = 0;
        CHECK(rd_kafka_assign(rk, list) == 0);
        rd_kafka_topic_partition_list_destroy(list);
        /* The first commit finds the coordinator. */
        for (i = 0; i < 2; i++) {
                message = rd_kafka_consumer_poll(rk, TIMEOUT_MS);
                CHECK(message && !message->err);
                if (message)
                        rd_kafka_message_destroy(message);
                CHECK(i == 1 || rd_kafka_commit(rk, NULL, 0) == 0);
        }
        rd_kafka_mock_start_request_tracking(cluster);
        CHECK(rd_kafka_mock_broker_set_rtt(cluster, 1, 3600000) == 0);
        CHECK(rd_kafka_consumer_close(rk) == 0);
        sent = commits(cluster);
        CHECK(sent > 0);
        rd_kafka_destroy(rk);
        CHECK(commits(cluster) == sent);
        rd_kafka_mock_stop_request_tracking(cluster);
        CHECK(rd_kafka_mock_broker_set_rtt(cluster, 1, 0) == 0);
}

static void *waits(void *queue) {
        CHECK(!rd_kafka_queue_poll(queue, -1));
        __sync_fetch_and_add(&returned, 1);
        return NULL;
}

/* All threads that wait at a queue return when it is asked to, also through a queue that is forwarded to it. */
static void every_waiting_poll_returns(int is_forwarded) {
        rd_kafka_t *rk = start(RD_KAFKA_CONSUMER, member_conf());
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk), *to = rd_kafka_queue_new(rk);
        pthread_t threads[THREADS];
        int i;
        returned = 0;
        for (i = 0; i < THREADS; i++)
                CHECK(!pthread_create(&threads[i], NULL, waits, queue));
        /* The threads may wait already, so that they have to notice. */
        usleep(20000);
        if (is_forwarded)
                rd_kafka_queue_forward(queue, to);
        UNTIL(returned == THREADS, {
                rd_kafka_queue_yield(is_forwarded ? to : queue);
                usleep(10000);
        });
        if (returned < THREADS)
                exit(1);
        for (i = 0; i < THREADS; i++)
                pthread_join(threads[i], NULL);
        rd_kafka_queue_destroy(to);
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
}

static void *takes_log_line(void *queue) {
        rd_kafka_event_t *event = rd_kafka_queue_poll(queue, -1);
        CHECK(event && rd_kafka_event_type(event) == RD_KAFKA_EVENT_LOG);
        rd_kafka_event_destroy(event);
        returned = 1;
        return NULL;
}

/* A poll that waits when its queue is forwarded, and no longer is, gets what arrives there. */
static void poll_follows_forwards(int is_undone) {
        rd_kafka_conf_t *conf = member_conf();
        rd_kafka_queue_t *queue, *to;
        pthread_t thread;
        rd_kafka_t *rk;
        set(conf, "log.queue", "true");
        set(conf, "debug", "queue");
        rk = start(RD_KAFKA_CONSUMER, conf);
        queue = rd_kafka_queue_new(rk);
        to = rd_kafka_queue_new(rk);
        returned = 0;
        if (is_undone)
                rd_kafka_queue_forward(queue, to);
        CHECK(!pthread_create(&thread, NULL, takes_log_line, queue));
        usleep(20000);
        rd_kafka_queue_forward(queue, is_undone ? NULL : to);
        /* The lines so far move there. */
        CHECK(rd_kafka_set_log_queue(rk, is_undone ? queue : to) == 0);
        WAIT_FOR(returned);
        if (!returned)
                exit(1);
        pthread_join(thread, NULL);
        rd_kafka_queue_destroy(to);
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
}

int main(void) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_t *rk;
        int i;
        set(conf, "test.mock.num.brokers", "1");
        set(conf, "log_level", "2");
        rk = start(RD_KAFKA_PRODUCER, conf);
        servers = rd_kafka_mock_cluster_bootstraps(rd_kafka_handle_mock_cluster(rk));
        CHECK(rd_kafka_mock_topic_create(rd_kafka_handle_mock_cluster(rk), TOPIC, 4, 1) == 0);
        closes_while_another_thread_polls(0);
        closes_while_another_thread_polls(1);
        closes_instead_of_answering();
        closes_with_a_rebalance_event(RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS);
        closes_with_a_rebalance_event(RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS);
        every_waiting_poll_returns(0);
        every_waiting_poll_returns(1);
        poll_follows_forwards(0);
        poll_follows_forwards(1);
        for (i = 0; i < 2; i++)
                CHECK(!rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(TOPIC), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_VALUE("x", 1),
                                         RD_KAFKA_V_END));
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
        destroying_does_not_close_again(rd_kafka_handle_mock_cluster(rk));
        rd_kafka_destroy(rk);
        return bad != 0;
}
