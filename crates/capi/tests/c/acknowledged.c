/* Interceptors of acknowledgements run on a thread of their client, in the order of the reports and before them. They may
 * wait and call any function: no other client waits for them. None is called once rd_kafka_destroy() has returned. */
#include "test.h"

#define MESSAGES 20

static rd_kafka_t *host;
static const char *servers;

/* The interceptor does this with each message. */
static void (*act)(rd_kafka_t *rk);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int is_inside, is_released, is_destroyed, is_purged;
/* The messages that interceptors got and that were reported, which are their numbers: 1, 2, .. */
static int acknowledged, reported, later;
static int threads_started, threads_ended;
static __thread int has_started;

static rd_kafka_resp_err_t on_acknowledgement(rd_kafka_t *rk, rd_kafka_message_t *message, void *opaque) {
        (void)opaque;
        CHECK(has_started && !__atomic_load_n(&is_destroyed, __ATOMIC_SEQ_CST));
        /* What is purged from the queue is reported before what is in flight. */
        CHECK(is_purged || (long)message->_private == acknowledged + 1);
        CHECK(reported <= acknowledged);
        if (act)
                act(rk);
        __atomic_add_fetch(&acknowledged, 1, __ATOMIC_SEQ_CST);
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* The second interceptor of each message. */
static rd_kafka_resp_err_t on_later(rd_kafka_t *rk, rd_kafka_message_t *message, void *opaque) {
        (void)rk, (void)message, (void)opaque;
        CHECK(!__atomic_load_n(&is_destroyed, __ATOMIC_SEQ_CST));
        __atomic_add_fetch(&later, 1, __ATOMIC_SEQ_CST);
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_thread_start(rd_kafka_t *rk, rd_kafka_thread_type_t type, const char *name, void *opaque) {
        (void)rk, (void)opaque;
        CHECK(type == RD_KAFKA_THREAD_BROKER);
        has_started = 1;
        if (!strcmp(name, "acknowledgements"))
                threads_started++;
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_thread_exit(rd_kafka_t *rk, rd_kafka_thread_type_t type, const char *name, void *opaque) {
        (void)rk, (void)opaque;
        CHECK(type == RD_KAFKA_THREAD_BROKER && has_started && !__atomic_load_n(&is_destroyed, __ATOMIC_SEQ_CST));
        if (!strcmp(name, "acknowledgements"))
                threads_ended++;
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t
on_new(rd_kafka_t *rk, const rd_kafka_conf_t *conf, void *opaque, char *errstr, size_t errstr_size) {
        (void)conf, (void)errstr, (void)errstr_size;
        CHECK(!rd_kafka_interceptor_add_on_acknowledgement(rk, "acts", on_acknowledgement, opaque));
        CHECK(!rd_kafka_interceptor_add_on_acknowledgement(rk, "later", on_later, opaque));
        CHECK(!rd_kafka_interceptor_add_on_thread_start(rk, "acts", on_thread_start, opaque));
        CHECK(!rd_kafka_interceptor_add_on_thread_exit(rk, "acts", on_thread_exit, opaque));
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static void on_report(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
        (void)rk, (void)opaque;
        CHECK((long)message->_private == reported + 1);
        CHECK(reported < __atomic_load_n(&acknowledged, __ATOMIC_SEQ_CST));
        reported++;
}

static rd_kafka_t *intercepted(int has_reports, const char *brokers, void (*of_interceptor)(rd_kafka_t *rk)) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        act = of_interceptor;
        is_inside = is_released = is_destroyed = is_purged = acknowledged = reported = later = threads_started = threads_ended = 0;
        set(conf, "bootstrap.servers", brokers);
        set(conf, "log_level", "2");
        /* Several reports. */
        set(conf, "batch.num.messages", "3");
        set(conf, "enable.idempotence", "true");
        CHECK(!rd_kafka_conf_interceptor_add_on_new(conf, "test", on_new, NULL));
        if (has_reports)
                rd_kafka_conf_set_dr_msg_cb(conf, on_report);
        return start(RD_KAFKA_PRODUCER, conf);
}

static rd_kafka_t *plain(void) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        set(conf, "bootstrap.servers", servers);
        return start(RD_KAFKA_PRODUCER, conf);
}

static void produce(rd_kafka_t *rk, int messages) {
        long number;
        for (number = 1; number <= messages; number++)
                CHECK(!rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("acknowledged"), RD_KAFKA_V_PARTITION(0),
                                         RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_VALUE((void *)"value", 5),
                                         RD_KAFKA_V_OPAQUE((void *)number), RD_KAFKA_V_END));
}

static void destroy(rd_kafka_t *rk) {
        rd_kafka_destroy(rk);
        __atomic_store_n(&is_destroyed, 1, __ATOMIC_SEQ_CST);
}

/* Waits in the interceptor until it is released. */
static void wait(rd_kafka_t *rk) {
        (void)rk;
        pthread_mutex_lock(&lock);
        is_inside = 1;
        pthread_cond_broadcast(&changed);
        while (!is_released)
                pthread_cond_wait(&changed, &lock);
        pthread_mutex_unlock(&lock);
}

static void wait_until_inside(void) {
        pthread_mutex_lock(&lock);
        while (!is_inside)
                pthread_cond_wait(&changed, &lock);
        pthread_mutex_unlock(&lock);
}

static void release(void) {
        pthread_mutex_lock(&lock);
        is_released = 1;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
}

static void interceptor_that_waits_stops_no_client(int has_reports) {
        rd_kafka_t *rk = intercepted(has_reports, servers, wait), *other;
        const struct rd_kafka_metadata *metadata;
        produce(rk, MESSAGES);
        wait_until_inside();
        /* All clients share the I/O threads, also that of the interceptor. */
        other = plain();
        produce(other, MESSAGES);
        CHECK(!rd_kafka_flush(other, TIMEOUT_MS));
        rd_kafka_destroy(other);
        CHECK(!rd_kafka_metadata(rk, 0, NULL, &metadata, TIMEOUT_MS));
        rd_kafka_metadata_destroy(metadata);
        /* Its messages count until the interceptors have returned. */
        CHECK(rd_kafka_outq_len(rk) == MESSAGES && acknowledged == 0 && reported == 0);
        CHECK(rd_kafka_flush(rk, 10) == RD_KAFKA_RESP_ERR__TIMED_OUT);
        release();
        CHECK(!rd_kafka_flush(rk, TIMEOUT_MS));
        CHECK(acknowledged == MESSAGES && later == MESSAGES && reported == (has_reports ? MESSAGES : 0));
        CHECK(rd_kafka_outq_len(rk) == 0 && threads_started == 1 && threads_ended == 0);
        destroy(rk);
        CHECK(acknowledged == MESSAGES && threads_ended == 1);
}

static rd_kafka_t *others;

/* The messages of an interceptor's own client are not over yet. */
static void flush(rd_kafka_t *rk) {
        produce(others, 1);
        CHECK(!rd_kafka_flush(others, TIMEOUT_MS));
        CHECK(rd_kafka_flush(rk, 10) == RD_KAFKA_RESP_ERR__TIMED_OUT);
        rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE);
}

static void interceptor_flushes_other_clients(void) {
        rd_kafka_t *rk = intercepted(1, servers, flush);
        others = plain();
        produce(rk, 1);
        CHECK(!rd_kafka_flush(rk, TIMEOUT_MS));
        CHECK(acknowledged == 1 && reported == 1);
        destroy(rk);
        rd_kafka_destroy(others);
}

static void *destroy_in_a_thread(void *rk) {
        destroy(rk);
        return NULL;
}

/* The end of a client waits for its interceptors, and gives them all messages, also those that are lost. */
static void end_waits_for_interceptors(void) {
        rd_kafka_t *rk = intercepted(1, servers, wait);
        pthread_t thread;
        produce(rk, MESSAGES);
        wait_until_inside();
        is_purged = 1;
        CHECK(!pthread_create(&thread, NULL, destroy_in_a_thread, rk));
        release();
        CHECK(!pthread_join(thread, NULL));
        CHECK(acknowledged == MESSAGES && later == MESSAGES && reported == 0 && threads_ended == 1);
}

/* rd_kafka_purge() returns after the interceptors of what it purged. */
static void purge_waits_for_interceptors(void) {
        rd_kafka_t *rk = intercepted(0, "127.0.0.1:1", NULL);
        produce(rk, MESSAGES);
        CHECK(!rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT));
        CHECK(acknowledged == MESSAGES && later == MESSAGES);
        destroy(rk);
}

static void destroy_later(rd_kafka_t *rk) {
        wait(rk);
        destroy(rk);
}

/* Nothing is called after a call that destroys the client, which is called from an interceptor. */
static void interceptor_destroys_its_client(void) {
        int threads = rd_kafka_thread_cnt();
        produce(intercepted(1, servers, destroy_later), MESSAGES);
        wait_until_inside();
        release();
        WAIT_FOR(__atomic_load_n(&is_destroyed, __ATOMIC_SEQ_CST));
        WAIT_FOR(rd_kafka_thread_cnt() == threads);
        CHECK(acknowledged == 1 && later == 0 && reported == 0 && threads_ended == 0);
}

int main(void) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        set(conf, "test.mock.num.brokers", "1");
        set(conf, "log_level", "2");
        host = start(RD_KAFKA_PRODUCER, conf);
        servers = rd_kafka_mock_cluster_bootstraps(rd_kafka_handle_mock_cluster(host));
        CHECK(!rd_kafka_mock_topic_create(rd_kafka_handle_mock_cluster(host), "acknowledged", 1, 1));
        interceptor_that_waits_stops_no_client(1);
        interceptor_that_waits_stops_no_client(0);
        interceptor_flushes_other_clients();
        end_waits_for_interceptors();
        purge_waits_for_interceptors();
        interceptor_destroys_its_client();
        rd_kafka_destroy(host);
        return bad != 0;
}
