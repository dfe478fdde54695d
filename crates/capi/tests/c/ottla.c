/* The administrative calls of rdkafka_ottla.h, with right and with wrong requests. With the argument "tokens": delegation tokens,
 * on brokers with SASL. */
#include "test.h"

#include <librdkafka/rdkafka_ottla.h>

typedef void call_t(rd_kafka_t *rk, const rd_kafka_ottla_request_t *request, const rd_kafka_AdminOptions_t *options,
                    rd_kafka_queue_t *rkqu);

/* Adds a row with up to five fields to a request; the list of names and values ends with NULL. */
static void add(rd_kafka_ottla_request_t *request, const char *const *fields) {
        CHECK(rd_kafka_ottla_request_add(request) == RD_KAFKA_RESP_ERR_NO_ERROR);
        for (; *fields; fields += 2)
                CHECK(rd_kafka_ottla_request_set(request, fields[0], fields[1]) == RD_KAFKA_RESP_ERR_NO_ERROR);
}

static rd_kafka_t *rk;
static rd_kafka_queue_t *queue;

/* Calls with one row, or with none, and returns the event. */
static rd_kafka_event_t *ask(call_t *call, const char *const *fields, rd_kafka_resp_err_t err) {
        rd_kafka_ottla_request_t *request = NULL;
        if (fields) {
                request = rd_kafka_ottla_request_new();
                add(request, fields);
        }
        call(rk, request, NULL, queue);
        /* The call has copied it. */
        rd_kafka_ottla_request_destroy(request);
        return next_event(queue, RD_KAFKA_OTTLA_EVENT_RESULT, err);
}

/* Returns the only row of an event. */
static const rd_kafka_ottla_row_t *only(rd_kafka_event_t *event) {
        size_t cnt = 77;
        const rd_kafka_ottla_row_t **rows = rd_kafka_ottla_event_rows(event, &cnt);
        CHECK(cnt == 1 && rows);
        return cnt > 0 ? rows[0] : NULL;
}

static int is(const rd_kafka_ottla_row_t *row, const char *field, const char *value) {
        const char *found = rd_kafka_ottla_row_get(row, field);
        if (found && !strcmp(found, value))
                return 1;
        fprintf(stderr, "%s is %s\n", field, found ? found : "(none)");
        return 0;
}

static void quotas_are_set_described_and_removed(void) {
        static const char *const set_quota[] = {"user", "alice", "client-id", "<default>", "quota", "request_percentage", "value", "12.5", NULL};
        static const char *const removed[] = {"user", "alice", "client-id", "<default>", "quota", "request_percentage", NULL};
        static const char *const of_alice[] = {"user", "alice", NULL};
        const rd_kafka_ottla_row_t *row;
        size_t cnt = 77;
        rd_kafka_event_t *event = ask(rd_kafka_ottla_AlterClientQuotas, set_quota, 0);
        row = only(event);
        CHECK(is(row, "user", "alice") && is(row, "client-id", "<default>"));
        CHECK(!rd_kafka_ottla_row_error(row) && !*rd_kafka_ottla_row_error_string(row));
        CHECK(!strcmp(rd_kafka_event_name(event), "OttlaResult"));
        rd_kafka_event_destroy(event);
        event = ask(rd_kafka_ottla_DescribeClientQuotas, of_alice, 0);
        row = only(event);
        CHECK(is(row, "quota", "request_percentage") && is(row, "value", "12.5"));
        CHECK(rd_kafka_ottla_row_get(row, "ip") == NULL && rd_kafka_ottla_row_field(row, 4) == NULL);
        CHECK(rd_kafka_ottla_row_field(row, 0) && !strcmp(rd_kafka_ottla_row_field(row, 3), "value"));
        /* It is not a whole number. */
        CHECK(rd_kafka_ottla_row_number(row, "value", -7) == -7);
        rd_kafka_event_destroy(event);
        rd_kafka_event_destroy(ask(rd_kafka_ottla_AlterClientQuotas, removed, 0));
        event = ask(rd_kafka_ottla_DescribeClientQuotas, NULL, 0);
        CHECK(rd_kafka_ottla_event_rows(event, &cnt) == NULL && cnt == 0);
        rd_kafka_event_destroy(event);
}

static void replicas_are_described_and_moved(void) {
        static const char *const replica[] = {"broker", "1", "topic", "ottla", "partition", "2", NULL};
        static const char *const moved[] = {"topic", "ottla", "partition", "2", "replicas", "1", NULL};
        static const char *const cancelled[] = {"topic", "ottla", "partition", "2", NULL};
        const rd_kafka_ottla_row_t *row;
        char dir[256];
        size_t cnt = 0;
        rd_kafka_event_t *event = ask(rd_kafka_ottla_DescribeLogDirs, replica, 0);
        const rd_kafka_ottla_row_t **rows = rd_kafka_ottla_event_rows(event, &cnt);
        size_t i;
        *dir = '\0';
        for (i = 0; i < cnt; i++) {
                CHECK(rd_kafka_ottla_row_number(rows[i], "broker", -1) == 1 && rd_kafka_ottla_row_get(rows[i], "log_dir"));
                if (rd_kafka_ottla_row_get(rows[i], "topic")) {
                        CHECK(is(rows[i], "topic", "ottla") && rd_kafka_ottla_row_number(rows[i], "partition", -1) == 2);
                        CHECK(rd_kafka_ottla_row_number(rows[i], "size", -1) >= 0 && is(rows[i], "is_future", "false"));
                        snprintf(dir, sizeof(dir), "%s", rd_kafka_ottla_row_get(rows[i], "log_dir"));
                }
        }
        CHECK(*dir == '/');
        rd_kafka_event_destroy(event);
        {
                const char *moving[] = {"topic", "ottla", "partition", "2", "broker", "1", "log_dir", NULL, NULL};
                moving[7] = dir;
                event = ask(rd_kafka_ottla_AlterReplicaLogDirs, moving, 0);
                row = only(event);
                CHECK(is(row, "topic", "ottla") && is(row, "broker", "1") && !rd_kafka_ottla_row_error(row));
                rd_kafka_event_destroy(event);
        }
        event = ask(rd_kafka_ottla_AlterPartitionReassignments, moved, 0);
        row = only(event);
        CHECK(is(row, "topic", "ottla") && is(row, "partition", "2") && !rd_kafka_ottla_row_error(row));
        rd_kafka_event_destroy(event);
        /* The replica is there already, so that nothing is in progress. */
        rd_kafka_event_destroy(ask(rd_kafka_ottla_ListPartitionReassignments, NULL, 0));
        event = ask(rd_kafka_ottla_AlterPartitionReassignments, cancelled, 0);
        CHECK(rd_kafka_ottla_row_error(only(event)) == RD_KAFKA_RESP_ERR_NO_REASSIGNMENT_IN_PROGRESS);
        CHECK(*rd_kafka_ottla_row_error_string(only(event)));
        rd_kafka_event_destroy(event);
}

static void features_are_described_and_updates_checked(void) {
        static const char *const unknown[] = {"feature", "no.such.feature", "version", "1", NULL};
        rd_kafka_event_t *event = ask(rd_kafka_ottla_DescribeFeatures, NULL, 0);
        const rd_kafka_ottla_row_t **rows;
        size_t cnt = 0, i, known = 0;
        rows = rd_kafka_ottla_event_rows(event, &cnt);
        for (i = 0; i < cnt; i++)
                if (!strcmp(rd_kafka_ottla_row_get(rows[i], "feature"), "transaction.version"))
                        known += rd_kafka_ottla_row_number(rows[i], "max_supported", -1) > 0;
        CHECK(known == 1);
        rd_kafka_event_destroy(event);
        event = ask(rd_kafka_ottla_UpdateFeatures, unknown, RD_KAFKA_RESP_ERR_INVALID_UPDATE_VERSION);
        CHECK(strstr(rd_kafka_event_error_string(event), "no.such.feature") != NULL);
        rd_kafka_event_destroy(event);
}

static void transactions_are_found_and_ended(const char *servers) {
        static const char *const ongoing[] = {"state", "Ongoing", NULL};
        static const char *const of_producer[] = {"transactional_id", "ottla-txn", NULL};
        static const char *const of_partition[] = {"topic", "ottla", "partition", "0", NULL};
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_event_t *event;
        const rd_kafka_ottla_row_t *row;
        char id[32], epoch[32];
        rd_kafka_t *producer;
        set(conf, "bootstrap.servers", servers);
        set(conf, "transactional.id", "ottla-txn");
        producer = start(RD_KAFKA_PRODUCER, conf);
        CHECK(!rd_kafka_init_transactions(producer, TIMEOUT_MS) && !rd_kafka_begin_transaction(producer));
        CHECK(!rd_kafka_producev(producer, RD_KAFKA_V_TOPIC("ottla"), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_VALUE("v", 1), RD_KAFKA_V_END));
        CHECK(!rd_kafka_flush(producer, TIMEOUT_MS));
        event = ask(rd_kafka_ottla_ListTransactions, ongoing, 0);
        CHECK(is(only(event), "transactional_id", "ottla-txn") && is(only(event), "coordinator", "1"));
        rd_kafka_event_destroy(event);
        event = ask(rd_kafka_ottla_DescribeTransactions, of_producer, 0);
        row = only(event);
        CHECK(is(row, "state", "Ongoing") && is(row, "partitions", "ottla:0") && rd_kafka_ottla_row_number(row, "start", 0) > 0);
        snprintf(id, sizeof(id), "%s", rd_kafka_ottla_row_get(row, "producer_id"));
        snprintf(epoch, sizeof(epoch), "%s", rd_kafka_ottla_row_get(row, "producer_epoch"));
        rd_kafka_event_destroy(event);
        event = ask(rd_kafka_ottla_DescribeProducers, of_partition, 0);
        CHECK(is(only(event), "producer_id", id) && is(only(event), "transaction_start", "0"));
        rd_kafka_event_destroy(event);
        {
                const char *hanging[] = {"topic", "ottla", "partition", "0", "producer_id", NULL, "producer_epoch", NULL, NULL};
                hanging[5] = id;
                hanging[7] = epoch;
                event = ask(rd_kafka_ottla_AbortTransaction, hanging, 0);
                CHECK(is(only(event), "topic", "ottla") && !rd_kafka_ottla_row_error(only(event)));
                rd_kafka_event_destroy(event);
        }
        event = ask(rd_kafka_ottla_DescribeProducers, of_partition, 0);
        CHECK(rd_kafka_ottla_row_get(only(event), "transaction_start") == NULL);
        rd_kafka_event_destroy(event);
        event = ask(rd_kafka_ottla_FenceProducers, of_producer, 0);
        CHECK(is(only(event), "producer_id", id) && !rd_kafka_ottla_row_error(only(event)));
        rd_kafka_event_destroy(event);
        rd_kafka_destroy(producer);
}

static void users_are_set_described_and_deleted(void) {
        static const char *const with_password[] = {"user", "ottla-user", "mechanism", "SCRAM-SHA-256", "password", "secret", "salt", "c2FsdA==", NULL};
        static const char *const with_iterations[] = {"user", "ottla-user", "mechanism", "SCRAM-SHA-512", "iterations", "8192", "password", "secret", NULL};
        static const char *const salted[] = {"user", "ottla-user", "mechanism", "SCRAM-SHA-512", "salt", "c2FsdA==", "salted_password", "AAECAw==", NULL};
        static const char *const deleted[] = {"user", "ottla-user", "mechanism", "SCRAM-SHA-512", NULL};
        static const char *const named[] = {"user", "ottla-user", NULL};
        const rd_kafka_ottla_row_t **rows;
        size_t cnt = 0;
        rd_kafka_event_t *event = ask(rd_kafka_ottla_AlterUserScramCredentials, with_password, 0);
        CHECK(is(only(event), "user", "ottla-user") && !rd_kafka_ottla_row_error(only(event)));
        rd_kafka_event_destroy(event);
        rd_kafka_event_destroy(ask(rd_kafka_ottla_AlterUserScramCredentials, with_iterations, 0));
        event = ask(rd_kafka_ottla_DescribeUserScramCredentials, named, 0);
        rows = rd_kafka_ottla_event_rows(event, &cnt);
        CHECK(cnt == 2 && is(rows[0], "mechanism", "SCRAM-SHA-256") && is(rows[0], "iterations", "4096"));
        CHECK(cnt == 2 && is(rows[1], "mechanism", "SCRAM-SHA-512") && is(rows[1], "iterations", "8192"));
        rd_kafka_event_destroy(event);
        rd_kafka_event_destroy(ask(rd_kafka_ottla_AlterUserScramCredentials, salted, 0));
        event = ask(rd_kafka_ottla_AlterUserScramCredentials, deleted, 0);
        CHECK(!rd_kafka_ottla_row_error(only(event)));
        rd_kafka_event_destroy(event);
        event = ask(rd_kafka_ottla_AlterUserScramCredentials, deleted, 0);
        CHECK(rd_kafka_ottla_row_error(only(event)) == RD_KAFKA_RESP_ERR_RESOURCE_NOT_FOUND);
        rd_kafka_event_destroy(event);
        event = ask(rd_kafka_ottla_DescribeUserScramCredentials, NULL, 0);
        CHECK(is(only(event), "user", "ottla-user") && is(only(event), "mechanism", "SCRAM-SHA-256"));
        rd_kafka_event_destroy(event);
}

/* Calls with wrong requests are refused as a whole. */
static void wrong_requests_are_refused(void) {
        static const char *const unknown_field[] = {"topci", "ottla", NULL};
        static const char *const no_number[] = {"topic", "ottla", "partition", "two", NULL};
        static const char *const no_partition[] = {"topic", "ottla", NULL};
        static const char *const no_state[] = {"state", "Sleeping", NULL};
        static const char *const no_base64[] = {"hmac", "!!!", NULL};
        static const char *const no_entity[] = {"quota", "consumer_byte_rate", "value", "1", NULL};
        static const char *const no_mechanism[] = {"user", "alice", NULL};
        static const char *const other_mechanism[] = {"user", "alice", "mechanism", "PLAIN", NULL};
        static const char *const no_salt[] = {"user", "alice", "mechanism", "SCRAM-SHA-256", "salted_password", "AAEC", NULL};
        static const char *const no_iterations[] = {"user", "alice", "mechanism", "SCRAM-SHA-256", "iterations", "0", "password", "p", NULL};
        static const char *const no_principal[] = {"owner", "alice", NULL};
        static const struct {
                call_t *call;
                const char *const *fields;
                const char *text;
        } cases[] = {
            {rd_kafka_ottla_ListPartitionReassignments, unknown_field, "unknown field \"topci\"; this call has: topic, partition"},
            {rd_kafka_ottla_DescribeFeatures, unknown_field, "this call has no fields"},
            {rd_kafka_ottla_ListPartitionReassignments, no_number, "row 0: \"partition\" is \"two\""},
            {rd_kafka_ottla_DescribeProducers, no_partition, "row 0: the field \"partition\" is missing"},
            {rd_kafka_ottla_DescribeProducers, NULL, "no rows"},
            {rd_kafka_ottla_AlterClientQuotas, NULL, "no rows"},
            {rd_kafka_ottla_AlterClientQuotas, no_entity, "no entity"},
            {rd_kafka_ottla_ListTransactions, no_state, "must be one of"},
            {rd_kafka_ottla_RenewDelegationToken, no_base64, "not base64"},
            {rd_kafka_ottla_AlterUserScramCredentials, no_mechanism, "row 0: the field \"mechanism\" is missing"},
            {rd_kafka_ottla_AlterUserScramCredentials, other_mechanism, "must be one of"},
            {rd_kafka_ottla_AlterUserScramCredentials, no_salt, "set password, or salted_password with salt"},
            {rd_kafka_ottla_AlterUserScramCredentials, no_iterations, "0 iterations"},
            {rd_kafka_ottla_CreateDelegationToken, no_principal, "not a principal"},
        };
        rd_kafka_ottla_request_t *request = rd_kafka_ottla_request_new();
        rd_kafka_event_t *event;
        size_t i;
        for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                event = ask(cases[i].call, cases[i].fields, RD_KAFKA_RESP_ERR__INVALID_ARG);
                if (!strstr(rd_kafka_event_error_string(event), cases[i].text)) {
                        fprintf(stderr, "case %d: %s\n", (int)i, rd_kafka_event_error_string(event));
                        bad++;
                }
                CHECK(rd_kafka_ottla_event_rows(event, NULL) == NULL);
                rd_kafka_event_destroy(event);
        }
        /* The same partition twice. */
        {
                static const char *const twice[] = {"topic", "ottla", "partition", "0", NULL};
                add(request, twice);
                add(request, twice);
                rd_kafka_ottla_AlterPartitionReassignments(rk, request, NULL, queue);
                event = next_event(queue, RD_KAFKA_OTTLA_EVENT_RESULT, RD_KAFKA_RESP_ERR__INVALID_ARG);
                CHECK(strstr(rd_kafka_event_error_string(event), "row 1: the partition is named twice") != NULL);
                rd_kafka_event_destroy(event);
        }
        CHECK(rd_kafka_ottla_request_set(request, "", "x") == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_ottla_request_set(request, NULL, "x") == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_ottla_request_set(request, "topic", NULL) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_ottla_request_add(NULL) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        rd_kafka_ottla_request_destroy(request);
        /* It is gone. */
        CHECK(rd_kafka_ottla_request_set(request, "topic", "x") == RD_KAFKA_RESP_ERR__INVALID_ARG);
        rd_kafka_ottla_DescribeFeatures(rk, request, NULL, queue);
        event = next_event(queue, RD_KAFKA_OTTLA_EVENT_RESULT, RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(strstr(rd_kafka_event_error_string(event), "destroyed") != NULL);
        rd_kafka_event_destroy(event);
        request = rd_kafka_ottla_request_new();
        /* No row was begun. */
        CHECK(rd_kafka_ottla_request_set(request, "topic", "x") == RD_KAFKA_RESP_ERR__INVALID_ARG);
        rd_kafka_ottla_request_destroy(request);
        rd_kafka_ottla_request_destroy(NULL);
        rd_kafka_ottla_DescribeFeatures(NULL, NULL, NULL, NULL);
        CHECK(rd_kafka_ottla_row_get(NULL, "x") == NULL && rd_kafka_ottla_row_field(NULL, 0) == NULL);
        CHECK(rd_kafka_ottla_row_number(NULL, "x", 5) == 5 && rd_kafka_ottla_row_error_string(NULL) == NULL);
        CHECK(rd_kafka_ottla_row_error(NULL) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_ottla_event_rows(NULL, NULL) == NULL);
}

static void options_have_their_opaque_and_validation(void) {
        static const char *const quota[] = {"ip", "10.0.0.1", "quota", "connection_creation_rate", "value", "5", NULL};
        rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_ANY);
        rd_kafka_ottla_request_t *request = rd_kafka_ottla_request_new();
        rd_kafka_event_t *event;
        size_t cnt = 77;
        CHECK(!rd_kafka_AdminOptions_set_validate_only(options, 1, NULL, 0));
        rd_kafka_AdminOptions_set_opaque(options, &cnt);
        add(request, quota);
        rd_kafka_ottla_AlterClientQuotas(rk, request, options, queue);
        event = next_event(queue, RD_KAFKA_OTTLA_EVENT_RESULT, 0);
        CHECK(rd_kafka_event_opaque(event) == &cnt && is(only(event), "ip", "10.0.0.1"));
        rd_kafka_event_destroy(event);
        event = ask(rd_kafka_ottla_DescribeClientQuotas, NULL, 0);
        CHECK(rd_kafka_ottla_event_rows(event, &cnt) == NULL && cnt == 0);
        rd_kafka_event_destroy(event);
        rd_kafka_ottla_request_destroy(request);
        rd_kafka_AdminOptions_destroy(options);
}

static void tokens_are_created_renewed_described_and_expired(void) {
        static const char *const renewer[] = {"renewer", "User:bob", "max_lifetime_ms", "3600000", NULL};
        rd_kafka_event_t *event = ask(rd_kafka_ottla_CreateDelegationToken, renewer, 0);
        const rd_kafka_ottla_row_t *row = only(event);
        char hmac[512], id[256];
        CHECK(is(row, "owner", "User:alice") && rd_kafka_ottla_row_number(row, "expires", 0) > 0);
        snprintf(hmac, sizeof(hmac), "%s", rd_kafka_ottla_row_get(row, "hmac"));
        snprintf(id, sizeof(id), "%s", rd_kafka_ottla_row_get(row, "token_id"));
        rd_kafka_event_destroy(event);
        {
                const char *renewed[] = {"hmac", NULL, "period_ms", "60000", NULL};
                const char *expired[] = {"hmac", NULL, NULL};
                static const char *const of_alice[] = {"owner", "User:alice", NULL};
                renewed[1] = expired[1] = hmac;
                event = ask(rd_kafka_ottla_RenewDelegationToken, renewed, 0);
                CHECK(rd_kafka_ottla_row_number(only(event), "expires", 0) > 0);
                rd_kafka_event_destroy(event);
                event = ask(rd_kafka_ottla_DescribeDelegationTokens, of_alice, 0);
                CHECK(is(only(event), "token_id", id) && is(only(event), "renewers", "User:bob"));
                rd_kafka_event_destroy(event);
                rd_kafka_event_destroy(ask(rd_kafka_ottla_ExpireDelegationToken, expired, 0));
        }
        event = ask(rd_kafka_ottla_DescribeDelegationTokens, NULL, 0);
        CHECK(rd_kafka_ottla_event_rows(event, NULL) == NULL);
        rd_kafka_event_destroy(event);
}

int main(int argc, char **argv) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_NewTopic_t *topic;
        CHECK(rd_kafka_ottla_version() == RD_KAFKA_OTTLA_VERSION);
        set(conf, "bootstrap.servers", argv[1]);
        if (argc > 2) {
                set(conf, "security.protocol", "sasl_plaintext");
                set(conf, "sasl.mechanisms", "SCRAM-SHA-256");
                set(conf, "sasl.username", "alice");
                set(conf, "sasl.password", "alice-secret");
        }
        rk = start(RD_KAFKA_PRODUCER, conf);
        queue = rd_kafka_queue_new(rk);
        if (argc > 2) {
                tokens_are_created_renewed_described_and_expired();
        } else {
                topic = rd_kafka_NewTopic_new("ottla", 4, 1, NULL, 0);
                rd_kafka_CreateTopics(rk, &topic, 1, NULL, queue);
                rd_kafka_NewTopic_destroy(topic);
                rd_kafka_event_destroy(next_event(queue, RD_KAFKA_EVENT_CREATETOPICS_RESULT, 0));
                quotas_are_set_described_and_removed();
                replicas_are_described_and_moved();
                features_are_described_and_updates_checked();
                users_are_set_described_and_deleted();
                transactions_are_found_and_ended(argv[1]);
                options_have_their_opaque_and_validation();
                wrong_requests_are_refused();
        }
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
        return bad != 0;
}
