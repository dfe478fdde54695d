/* A transactional producer on a mock cluster: commits serve reports and end the linger, callbacks may call any
 * function, calls from other threads and wrong arguments are refused, and fencing is fatal for a producer. */
#include "test.h"

#define TOPIC "transactional"

static rd_kafka_mock_cluster_t *cluster;
static const char *servers;
static int reports, destroys_in_report;
static rd_kafka_resp_err_t commit_in_report;

static void on_report(rd_kafka_t *rk, const rd_kafka_message_t *message UNUSED, void *opaque UNUSED) {
        rd_kafka_error_t *error = rd_kafka_commit_transaction(rk, 100);
        commit_in_report = error ? rd_kafka_error_code(error) : RD_KAFKA_RESP_ERR_NO_ERROR;
        if (error)
                rd_kafka_error_destroy(error);
        /* Several threads may serve reports. */
        __atomic_add_fetch(&reports, 1, __ATOMIC_SEQ_CST);
        if (destroys_in_report)
                rd_kafka_destroy(rk);
}

/* The code of an error object, which is destroyed. */
static rd_kafka_resp_err_t code_of(rd_kafka_error_t *error) {
        rd_kafka_resp_err_t code = error ? rd_kafka_error_code(error) : RD_KAFKA_RESP_ERR_NO_ERROR;
        if (error) {
                CHECK(*rd_kafka_error_string(error));
                rd_kafka_error_destroy(error);
        }
        return code;
}

static rd_kafka_t *producer(const char *id) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_t *rk;
        set(conf, "bootstrap.servers", servers);
        set(conf, "transactional.id", id);
        set(conf, "linger.ms", "20000");
        set(conf, "log_level", "2");
        rd_kafka_conf_set_dr_msg_cb(conf, on_report);
        rk = start(RD_KAFKA_PRODUCER, conf);
        CHECK(code_of(rd_kafka_init_transactions(rk, -1)) == 0);
        return rk;
}

static void begin_with_message(rd_kafka_t *rk) {
        CHECK(code_of(rd_kafka_begin_transaction(rk)) == 0);
        CHECK(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(TOPIC), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_VALUE((void *)"v", 1),
                                RD_KAFKA_V_END) == 0);
}

static void commit_serves_reports_and_ends_the_linger(void) {
        rd_kafka_t *rk = producer("serves");
        long began = millis();
        reports = 0;
        begin_with_message(rk);
        CHECK(code_of(rd_kafka_commit_transaction(rk, -1)) == 0);
        CHECK(reports == 1);
        /* The report was served while the commit was in progress. */
        CHECK(commit_in_report == RD_KAFKA_RESP_ERR__PREV_IN_PROGRESS);
        begin_with_message(rk);
        CHECK(code_of(rd_kafka_abort_transaction(rk, -1)) == 0);
        CHECK(reports == 2 && commit_in_report == RD_KAFKA_RESP_ERR__CONFLICT);
        CHECK(millis() - began < SCALED_MS(15000));
        rd_kafka_destroy(rk);
}

/* Bindings of other languages do not expect callbacks in calls other than commit and abort. */
static void only_the_ends_of_transactions_serve(void) {
        rd_kafka_t *rk = producer("quiet");
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_consumer_group_metadata_t *group = rd_kafka_consumer_group_metadata_new("g");
        rd_kafka_topic_partition_list_add(list, TOPIC, 0)->offset = 3;
        reports = 0;
        begin_with_message(rk);
        CHECK(rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE) == 0);
        CHECK(code_of(rd_kafka_begin_transaction(rk)) != 0);
        CHECK(code_of(rd_kafka_init_transactions(rk, TIMEOUT_MS)) != 0);
        CHECK(code_of(rd_kafka_send_offsets_to_transaction(rk, list, group, TIMEOUT_MS)) == 0);
        CHECK(reports == 0 && rd_kafka_outq_len(rk) == 1);
        CHECK(code_of(rd_kafka_abort_transaction(rk, -1)) == 0);
        CHECK(reports == 1);
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_consumer_group_metadata_destroy(group);
        rd_kafka_destroy(rk);
}

static void report_may_destroy_its_client(void) {
        rd_kafka_t *rk = producer("destroys");
        reports = 0;
        begin_with_message(rk);
        destroys_in_report = 1;
        CHECK(code_of(rd_kafka_commit_transaction(rk, SCALED_MS(5000))) != 0);
        destroys_in_report = 0;
        CHECK(reports == 1);
}

static void wrong_arguments_are_refused(void) {
        rd_kafka_t *rk = producer("arguments");
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_consumer_group_metadata_t *group = rd_kafka_consumer_group_metadata_new("g");
        rd_kafka_topic_partition_list_add(list, TOPIC, 0)->offset = 3;
        CHECK(code_of(rd_kafka_init_transactions(NULL, 0)) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(code_of(rd_kafka_begin_transaction(NULL)) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(code_of(rd_kafka_commit_transaction(NULL, 0)) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(code_of(rd_kafka_abort_transaction(NULL, 0)) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(code_of(rd_kafka_send_offsets_to_transaction(NULL, list, group, 0)) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(code_of(rd_kafka_send_offsets_to_transaction(rk, NULL, group, 0)) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(code_of(rd_kafka_send_offsets_to_transaction(rk, list, NULL, 0)) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(code_of(rd_kafka_send_offsets_to_transaction(rk, list, group, 1000)) == RD_KAFKA_RESP_ERR__STATE);
        CHECK(code_of(rd_kafka_begin_transaction(rk)) == 0);
        CHECK(code_of(rd_kafka_send_offsets_to_transaction(rk, list, group, TIMEOUT_MS)) == 0);
        CHECK(code_of(rd_kafka_commit_transaction(rk, TIMEOUT_MS)) == 0);
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_consumer_group_metadata_destroy(group);
        rd_kafka_destroy(rk);
}

static void fenced_producer_fails_for_good(void) {
        rd_kafka_t *one = producer("fenced"), *two = producer("fenced");
        char text[512] = "";
        rd_kafka_error_t *error;
        begin_with_message(one);
        error = rd_kafka_commit_transaction(one, TIMEOUT_MS);
        CHECK(error && rd_kafka_error_code(error) == RD_KAFKA_RESP_ERR__FENCED && rd_kafka_error_is_fatal(error));
        CHECK(!rd_kafka_error_is_retriable(error) && !rd_kafka_error_txn_requires_abort(error));
        rd_kafka_error_destroy(error);
        CHECK(rd_kafka_fatal_error(one, text, sizeof(text)) == RD_KAFKA_RESP_ERR__FENCED && *text);
        CHECK(code_of(rd_kafka_abort_transaction(one, 1000)) == RD_KAFKA_RESP_ERR__FENCED);
        begin_with_message(two);
        CHECK(code_of(rd_kafka_commit_transaction(two, TIMEOUT_MS)) == 0);
        rd_kafka_destroy(one);
        rd_kafka_destroy(two);
}

/* ---- Calls of many threads ---- */

struct crowd {
        rd_kafka_t *rk;
        unsigned seed;
        int sent, bad;
};

static int is_documented(rd_kafka_resp_err_t code) {
        return code == RD_KAFKA_RESP_ERR_NO_ERROR || code == RD_KAFKA_RESP_ERR__STATE || code == RD_KAFKA_RESP_ERR__CONFLICT ||
               code == RD_KAFKA_RESP_ERR__PREV_IN_PROGRESS || code == RD_KAFKA_RESP_ERR__TIMED_OUT;
}

static void *call_anything(void *opaque) {
        struct crowd *crowd = opaque;
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_consumer_group_metadata_t *group = rd_kafka_consumer_group_metadata_new("g");
        int i;
        rd_kafka_topic_partition_list_add(list, TOPIC, 0)->offset = 3;
        for (i = 0; i < 150; i++) {
                int timeout = rand_r(&crowd->seed) % 40;
                long began = millis();
                rd_kafka_error_t *error = NULL;
                switch (rand_r(&crowd->seed) % 8) {
                case 0:
                        error = rd_kafka_init_transactions(crowd->rk, timeout);
                        break;
                case 1:
                case 2:
                        error = rd_kafka_begin_transaction(crowd->rk);
                        break;
                case 3:
                        error = rd_kafka_send_offsets_to_transaction(crowd->rk, list, group, timeout);
                        break;
                case 4:
                        error = rd_kafka_abort_transaction(crowd->rk, timeout);
                        break;
                case 5:
                        error = rd_kafka_commit_transaction(crowd->rk, timeout);
                        break;
                default:
                        crowd->sent += rd_kafka_producev(crowd->rk, RD_KAFKA_V_TOPIC(TOPIC), RD_KAFKA_V_PARTITION(0),
                                                         RD_KAFKA_V_VALUE((void *)"v", 1), RD_KAFKA_V_END) == 0;
                }
                crowd->bad += error && !is_documented(rd_kafka_error_code(error));
                code_of(error);
                CHECK(millis() - began < TIMEOUT_MS);
        }
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_consumer_group_metadata_destroy(group);
        return NULL;
}

/* Whatever they call, each message gets one report, no error but the documented ones comes, and the producer goes on. */
static void threads_may_call_anything(void) {
        rd_kafka_t *rk = producer("crowd");
        struct crowd crowds[4];
        pthread_t threads[4];
        int i, sent = 0, tries;
        rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR__CONFLICT;
        reports = 0;
        for (i = 0; i < 4; i++) {
                crowds[i].rk = rk;
                crowds[i].seed = 7u + (unsigned)i;
                crowds[i].sent = crowds[i].bad = 0;
                CHECK(pthread_create(&threads[i], NULL, call_anything, &crowds[i]) == 0);
        }
        for (i = 0; i < 4; i++) {
                CHECK(pthread_join(threads[i], NULL) == 0);
                CHECK(crowds[i].bad == 0);
                sent += crowds[i].sent;
        }
        /* What is unfinished ends: whichever call fits. */
        for (tries = 0; tries < 20 && code != RD_KAFKA_RESP_ERR_NO_ERROR; tries++) {
                code_of(rd_kafka_commit_transaction(rk, TIMEOUT_MS));
                code_of(rd_kafka_abort_transaction(rk, TIMEOUT_MS));
                code = code_of(rd_kafka_begin_transaction(rk));
        }
        CHECK(code == 0);
        CHECK(code_of(rd_kafka_abort_transaction(rk, TIMEOUT_MS)) == 0);
        begin_with_message(rk);
        CHECK(code_of(rd_kafka_commit_transaction(rk, TIMEOUT_MS)) == 0);
        CHECK(reports == sent + 1);
        rd_kafka_destroy(rk);
}

int main(void) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_t *rk;
        set(conf, "test.mock.num.brokers", "1");
        set(conf, "log_level", "2");
        rk = start(RD_KAFKA_PRODUCER, conf);
        cluster = rd_kafka_handle_mock_cluster(rk);
        servers = rd_kafka_mock_cluster_bootstraps(cluster);
        CHECK(rd_kafka_mock_topic_create(cluster, TOPIC, 1, 1) == 0);
        commit_serves_reports_and_ends_the_linger();
        only_the_ends_of_transactions_serve();
        report_may_destroy_its_client();
        wrong_arguments_are_refused();
        fenced_producer_fails_for_good();
        threads_may_call_anything();
        rd_kafka_destroy(rk);
        return bad != 0;
}
