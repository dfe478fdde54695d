/* Transactional producers: the five calls in right and wrong states, the results of producing, errors in brokers'
 * responses, and properties that depend on each other. The errors come from each library's own mock cluster. */
#include "side_by_side.h"

static rd_kafka_t *host;

/* ---- Helpers ---- */

static rd_kafka_mock_cluster_t *mock_of(int brokers) {
        rd_kafka_mock_cluster_t *cluster;
        host = start(RD_KAFKA_PRODUCER, conf_of(NULL, NULL));
        cluster = rd_kafka_mock_cluster_new(host, brokers);
        rd_kafka_mock_topic_create(cluster, "t", 2, 1);
        setenv("SBS_BOOTSTRAP", rd_kafka_mock_cluster_bootstraps(cluster), 1);
        return cluster;
}

static void mock_end(rd_kafka_mock_cluster_t *cluster) {
        rd_kafka_mock_cluster_destroy(cluster);
        rd_kafka_destroy(host);
}

static rd_kafka_t *transactional(const char *servers, const char *id) {
        return producer_of(conf_of("bootstrap.servers", servers, "transactional.id", id, "transaction.timeout.ms", "20000", NULL));
}

/* The call's outcome without its text. */
static void outcome(const char *what, rd_kafka_error_t *error) {
        if (!error) {
                say("%s: no error", what);
                return;
        }
        say("%s: %s%s%s%s", what, rd_kafka_error_name(error), rd_kafka_error_is_fatal(error) ? " fatal" : "",
            rd_kafka_error_is_retriable(error) ? " retriable" : "", rd_kafka_error_txn_requires_abort(error) ? " abort" : "");
        rd_kafka_error_destroy(error);
}

static rd_kafka_resp_err_t send(rd_kafka_t *rk, const char *topic, int partition, const char *value) {
        return rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(partition), RD_KAFKA_V_VALUE((void *)value, strlen(value)),
                                 RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
}

static void say_fatal(rd_kafka_t *rk) {
        char text[512] = "";
        rd_kafka_resp_err_t code = rd_kafka_fatal_error(rk, text, sizeof(text));
        say("fatal %s text %s", err(code), present(text));
}

/* The five calls, one after the other. */
static void all_calls(rd_kafka_t *rk, rd_kafka_topic_partition_list_t *offsets, rd_kafka_consumer_group_metadata_t *group, int timeout) {
        outcome("send_offsets", rd_kafka_send_offsets_to_transaction(rk, offsets, group, timeout));
        outcome("commit", rd_kafka_commit_transaction(rk, timeout));
        outcome("abort", rd_kafka_abort_transaction(rk, timeout));
        outcome("begin", rd_kafka_begin_transaction(rk));
        outcome("init", rd_kafka_init_transactions(rk, timeout));
}

static rd_kafka_topic_partition_list_t *offsets_of(const char *topic, int64_t offset) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_topic_partition_list_add(list, topic, 0)->offset = offset;
        return list;
}

static void send_offsets(const char *what, rd_kafka_t *rk, const char *topic, int64_t offset, const char *group, int timeout) {
        rd_kafka_topic_partition_list_t *list = offsets_of(topic, offset);
        rd_kafka_consumer_group_metadata_t *metadata = rd_kafka_consumer_group_metadata_new(group);
        outcome(what, rd_kafka_send_offsets_to_transaction(rk, list, metadata, timeout));
        rd_kafka_consumer_group_metadata_destroy(metadata);
        rd_kafka_topic_partition_list_destroy(list);
}

/* Prints the values that a reader sees in a partition, up to its end. */
static void read_all(const char *topic, int partition, const char *isolation) {
        rd_kafka_t *rk = consumer_of(conf_of("bootstrap.servers", getenv("SBS_BOOTSTRAP"), "group.id", "readers", "isolation.level", isolation,
                                             "enable.partition.eof", "true", "enable.auto.commit", "false", NULL));
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        int at_end = 0;
        /* Markers are written after the commit has returned; the end of the partition is behind them. */
        usleep(500000);
        rd_kafka_topic_partition_list_add(list, topic, partition)->offset = RD_KAFKA_OFFSET_BEGINNING;
        say("assign %s", err(rd_kafka_assign(rk, list)));
        UNTIL(at_end, {
                rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, 100);
                if (message) {
                        if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
                                at_end = 1;
                                say("%s: end at %s", isolation, offset_name(message->offset));
                        } else {
                                say_message(isolation, message);
                        }
                        rd_kafka_message_destroy(message);
                }
        });
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_destroy(rk);
}

/* ---- Without a broker ---- */

CASE(calls_of_other_clients) {
        rd_kafka_topic_partition_list_t *list = offsets_of("t", 1);
        rd_kafka_consumer_group_metadata_t *group = rd_kafka_consumer_group_metadata_new("g");
        rd_kafka_t *producer = producer_of(conf_of(NULL, NULL));
        rd_kafka_t *consumer = consumer_of(conf_of("group.id", "g", NULL));
        say("producer without transactional.id");
        all_calls(producer, list, group, 100);
        say("consumer");
        all_calls(consumer, list, group, 100);
        rd_kafka_destroy(producer);
        rd_kafka_destroy(consumer);
        rd_kafka_consumer_group_metadata_destroy(group);
        rd_kafka_topic_partition_list_destroy(list);
}

CASE(calls_before_init) {
        rd_kafka_topic_partition_list_t *list = offsets_of("t", 1);
        rd_kafka_consumer_group_metadata_t *group = rd_kafka_consumer_group_metadata_new("g");
        rd_kafka_t *rk = transactional(DEAD, "id");
        outcome("begin", rd_kafka_begin_transaction(rk));
        outcome("send_offsets", rd_kafka_send_offsets_to_transaction(rk, list, group, 100));
        outcome("send_offsets of NULL", rd_kafka_send_offsets_to_transaction(rk, NULL, group, 100));
        outcome("send_offsets with no group", rd_kafka_send_offsets_to_transaction(rk, list, NULL, 100));
        outcome("commit", rd_kafka_commit_transaction(rk, 100));
        outcome("abort", rd_kafka_abort_transaction(rk, 100));
        say("producev %s", err(send(rk, "t", 0, "x")));
        say("flush %s", err(rd_kafka_flush(rk, 100)));
        say_fatal(rk);
        rd_kafka_destroy(rk);
        rd_kafka_consumer_group_metadata_destroy(group);
        rd_kafka_topic_partition_list_destroy(list);
}

CASE(old_produce_calls_before_init) {
        rd_kafka_t *rk = transactional(DEAD, "id");
        rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, "t", NULL);
        rd_kafka_message_t messages[2];
        memset(messages, 0, sizeof(messages));
        int result, number;
        errno = 0;
        result = rd_kafka_produce(topic, 0, RD_KAFKA_MSG_F_COPY, (void *)"x", 1, NULL, 0, NULL);
        number = errno;
        say("produce %d errno %s last error %s", result, errno_name(number), err(rd_kafka_last_error()));
        messages[0].payload = messages[1].payload = (void *)"y";
        messages[0].len = messages[1].len = 1;
        say("produce_batch %d", rd_kafka_produce_batch(topic, 0, RD_KAFKA_MSG_F_COPY, messages, 2));
        say("its errors %s %s", err(messages[0].err), err(messages[1].err));
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
}

CASE(init_without_brokers) {
        rd_kafka_t *rk = transactional(DEAD, "id");
        long began = millis();
        say_error("init", rd_kafka_init_transactions(rk, 600));
        say("%s", took(began, 600));
        outcome("begin", rd_kafka_begin_transaction(rk));
        outcome("commit", rd_kafka_commit_transaction(rk, 100));
        outcome("abort", rd_kafka_abort_transaction(rk, 100));
        say("producev %s", err(send(rk, "t", 0, "x")));
        outcome("init again", rd_kafka_init_transactions(rk, 100));
        outcome("init at once", rd_kafka_init_transactions(rk, 0));
        rd_kafka_destroy(rk);
}

static void attempt(const char *properties) {
        static const char *const shown[] = {"enable.idempotence",   "acks",         "retries",          "max.in.flight.requests.per.connection",
                                            "message.timeout.ms",   "queuing.strategy", "socket.timeout.ms", "transaction.timeout.ms",
                                            "enable.gapless.guarantee"};
        rd_kafka_conf_t *conf = conf_of(NULL, NULL);
        char *copy = strdup(properties), *part, *saved = NULL, *value, errstr[512] = "";
        rd_kafka_t *rk;
        size_t i;
        for (part = strtok_r(copy, ";", &saved); part; part = strtok_r(NULL, ";", &saved)) {
                value = strchr(part, '=');
                *value++ = '\0';
                set(conf, part, value);
        }
        rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof(errstr));
        say("%s: %s last error %s text %s", properties, rk ? "created" : "NULL", rk ? "any" : err(rd_kafka_last_error()), present(errstr));
        for (i = 0; rk && i < sizeof(shown) / sizeof(*shown); i++) {
                char text[64] = "";
                size_t size = sizeof(text);
                if (rd_kafka_conf_get(rd_kafka_conf(rk), shown[i], text, &size) == RD_KAFKA_CONF_OK)
                        say("  %s = %s", shown[i], text);
        }
        if (rk)
                rd_kafka_destroy(rk);
        else
                rd_kafka_conf_destroy(conf);
        free(copy);
}

CASE(properties) {
        attempt("transactional.id=x");
        attempt("transactional.id=");
        attempt("transactional.id=x;enable.idempotence=false");
        attempt("transactional.id=x;enable.idempotence=true");
        attempt("transactional.id=x;acks=1");
        attempt("transactional.id=x;acks=0");
        attempt("transactional.id=x;acks=all");
        attempt("transactional.id=x;retries=0");
        attempt("transactional.id=x;max.in.flight=6");
        attempt("transactional.id=x;max.in.flight=1");
        attempt("transactional.id=x;queuing.strategy=lifo");
        attempt("transactional.id=x;enable.gapless.guarantee=true");
        attempt("transactional.id=x;transaction.timeout.ms=1000");
        attempt("transactional.id=x;transaction.timeout.ms=5000");
        attempt("transactional.id=x;transaction.timeout.ms=300000");
        attempt("transactional.id=x;transaction.timeout.ms=10000;message.timeout.ms=10000");
        attempt("transactional.id=x;transaction.timeout.ms=10000;message.timeout.ms=10001");
        attempt("transactional.id=x;message.timeout.ms=0");
        attempt("transactional.id=x;transaction.timeout.ms=10000;socket.timeout.ms=9900");
        attempt("transactional.id=x;transaction.timeout.ms=10000;socket.timeout.ms=10100");
        attempt("transactional.id=x;transaction.timeout.ms=10000;socket.timeout.ms=10101");
        attempt("transactional.id=x;linger.ms=100;message.timeout.ms=100");
        attempt("transaction.timeout.ms=10000");
}

/* ---- With brokers ---- */

BROKER_CASE(commit_and_abort) {
        const char *servers = bootstrap(), *topic = topic_name("commit_and_abort");
        rd_kafka_t *rk = transactional(servers, topic);
        outcome("init", rd_kafka_init_transactions(rk, 20000));
        outcome("init again", rd_kafka_init_transactions(rk, 20000));
        outcome("commit before begin", rd_kafka_commit_transaction(rk, 1000));
        outcome("abort before begin", rd_kafka_abort_transaction(rk, 1000));
        say("producev before begin %s", err(send(rk, topic, 0, "early")));
        outcome("begin", rd_kafka_begin_transaction(rk));
        outcome("begin again", rd_kafka_begin_transaction(rk));
        outcome("init inside", rd_kafka_init_transactions(rk, 1000));
        say("producev %s", err(send(rk, topic, 0, "one")));
        say("producev %s", err(send(rk, topic, 0, "two")));
        outcome("commit", rd_kafka_commit_transaction(rk, 20000));
        outcome("commit again", rd_kafka_commit_transaction(rk, 20000));
        say_recorded("reports", &reports);
        outcome("begin", rd_kafka_begin_transaction(rk));
        say("producev %s", err(send(rk, topic, 0, "three")));
        say("flush %s", err(rd_kafka_flush(rk, 20000)));
        outcome("abort", rd_kafka_abort_transaction(rk, 20000));
        outcome("abort again", rd_kafka_abort_transaction(rk, 20000));
        outcome("begin", rd_kafka_begin_transaction(rk));
        say("producev %s", err(send(rk, topic, 0, "four")));
        outcome("commit", rd_kafka_commit_transaction(rk, 20000));
        say_recorded("reports", &reports);
        read_all(topic, 0, "read_committed");
        read_all(topic, 0, "read_uncommitted");
        say_fatal(rk);
        rd_kafka_destroy(rk);
}

BROKER_CASE(empty_transactions) {
        rd_kafka_t *rk = transactional(bootstrap(), topic_name("empty_transactions"));
        outcome("init", rd_kafka_init_transactions(rk, 20000));
        outcome("begin", rd_kafka_begin_transaction(rk));
        outcome("commit", rd_kafka_commit_transaction(rk, 20000));
        outcome("begin", rd_kafka_begin_transaction(rk));
        outcome("abort", rd_kafka_abort_transaction(rk, 20000));
        outcome("begin", rd_kafka_begin_transaction(rk));
        outcome("commit", rd_kafka_commit_transaction(rk, -1));
        rd_kafka_destroy(rk);
}

BROKER_CASE(abort_purges_the_queue) {
        const char *servers = bootstrap(), *topic = topic_name("abort_purges");
        rd_kafka_t *rk = producer_of(conf_of("bootstrap.servers", servers, "transactional.id", topic, "linger.ms", "9000", NULL));
        outcome("init", rd_kafka_init_transactions(rk, 20000));
        outcome("begin", rd_kafka_begin_transaction(rk));
        say("producev %s", err(send(rk, topic, 0, "one")));
        say("producev %s", err(send(rk, topic, 1, "two")));
        outcome("abort", rd_kafka_abort_transaction(rk, 20000));
        say_recorded_set("reports", &reports);
        outcome("begin", rd_kafka_begin_transaction(rk));
        say("producev %s", err(send(rk, topic, 0, "three")));
        outcome("commit", rd_kafka_commit_transaction(rk, 20000));
        say("queued %d", rd_kafka_outq_len(rk));
        read_all(topic, 0, "read_committed");
        rd_kafka_destroy(rk);
}

BROKER_CASE(offsets_of_a_group) {
        const char *servers = bootstrap(), *topic = topic_name("offsets_of_a_group");
        rd_kafka_t *rk = transactional(servers, topic);
        rd_kafka_t *consumer = consumer_of(conf_of("bootstrap.servers", servers, "group.id", topic, NULL));
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(2);
        rd_kafka_consumer_group_metadata_t *group = rd_kafka_consumer_group_metadata(consumer);
        outcome("init", rd_kafka_init_transactions(rk, 20000));
        outcome("begin", rd_kafka_begin_transaction(rk));
        say("producev %s", err(send(rk, topic, 0, "one")));
        say("flush %s", err(rd_kafka_flush(rk, 20000)));
        outcome("an empty list", rd_kafka_send_offsets_to_transaction(rk, list, group, 20000));
        rd_kafka_topic_partition_list_add(list, topic, 0);
        outcome("no offset", rd_kafka_send_offsets_to_transaction(rk, list, group, 20000));
        list->elems[0].offset = 5;
        rd_kafka_topic_partition_list_add(list, topic, 1)->offset = 7;
        outcome("two offsets", rd_kafka_send_offsets_to_transaction(rk, list, group, 20000));
        say_partitions("list", list);
        say("committed %s", err(rd_kafka_committed(consumer, list, 1000)));
        outcome("commit", rd_kafka_commit_transaction(rk, 20000));
        say("committed %s", err(rd_kafka_committed(consumer, list, 20000)));
        say_partitions("committed", list);
        outcome("begin", rd_kafka_begin_transaction(rk));
        list->elems[0].offset = 50;
        list->elems[1].offset = RD_KAFKA_OFFSET_INVALID;
        outcome("one offset", rd_kafka_send_offsets_to_transaction(rk, list, group, 20000));
        outcome("abort", rd_kafka_abort_transaction(rk, 20000));
        say("committed %s", err(rd_kafka_committed(consumer, list, 20000)));
        say_partitions("committed", list);
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_consumer_group_metadata_destroy(group);
        rd_kafka_destroy(consumer);
        rd_kafka_destroy(rk);
}

BROKER_CASE(offsets_of_a_strange_generation) {
        const char *servers = bootstrap(), *topic = topic_name("offsets_of_a_strange_generation");
        rd_kafka_t *rk = transactional(servers, topic);
        rd_kafka_topic_partition_list_t *list = offsets_of(topic, 3);
        rd_kafka_consumer_group_metadata_t *group = rd_kafka_consumer_group_metadata_new_with_genid(topic, 7, "nobody", NULL);
        outcome("init", rd_kafka_init_transactions(rk, 20000));
        outcome("begin", rd_kafka_begin_transaction(rk));
        say("producev %s", err(send(rk, topic, 0, "one")));
        say("flush %s", err(rd_kafka_flush(rk, 20000)));
        outcome("send_offsets", rd_kafka_send_offsets_to_transaction(rk, list, group, 20000));
        outcome("commit", rd_kafka_commit_transaction(rk, 20000));
        say("producev %s", err(send(rk, topic, 0, "two")));
        outcome("abort", rd_kafka_abort_transaction(rk, 20000));
        outcome("begin", rd_kafka_begin_transaction(rk));
        say("producev %s", err(send(rk, topic, 0, "three")));
        outcome("commit", rd_kafka_commit_transaction(rk, 20000));
        read_all(topic, 0, "read_committed");
        rd_kafka_consumer_group_metadata_destroy(group);
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_destroy(rk);
}

BROKER_CASE(a_second_producer_fences_the_first) {
        const char *servers = bootstrap(), *topic = topic_name("a_second_producer");
        rd_kafka_t *one = transactional(servers, topic), *two = transactional(servers, topic);
        outcome("one: init", rd_kafka_init_transactions(one, 20000));
        outcome("one: begin", rd_kafka_begin_transaction(one));
        say("one: producev %s", err(send(one, topic, 0, "of one")));
        say("one: flush %s", err(rd_kafka_flush(one, 20000)));
        outcome("two: init", rd_kafka_init_transactions(two, 20000));
        outcome("two: begin", rd_kafka_begin_transaction(two));
        say("two: producev %s", err(send(two, topic, 0, "of two")));
        outcome("one: commit", rd_kafka_commit_transaction(one, 20000));
        say_fatal(one);
        outcome("one: abort", rd_kafka_abort_transaction(one, 1000));
        outcome("one: begin", rd_kafka_begin_transaction(one));
        say("one: producev %s", err(send(one, topic, 0, "late")));
        outcome("two: commit", rd_kafka_commit_transaction(two, 20000));
        read_all(topic, 0, "read_committed");
        rd_kafka_destroy(one);
        rd_kafka_destroy(two);
}

BROKER_CASE(destroyed_inside_a_transaction) {
        const char *servers = bootstrap(), *topic = topic_name("destroyed_inside");
        rd_kafka_t *rk = transactional(servers, topic);
        outcome("init", rd_kafka_init_transactions(rk, 20000));
        outcome("begin", rd_kafka_begin_transaction(rk));
        say("producev %s", err(send(rk, topic, 0, "of the first")));
        say("flush %s", err(rd_kafka_flush(rk, 20000)));
        rd_kafka_destroy(rk);
        rk = transactional(servers, topic);
        outcome("init", rd_kafka_init_transactions(rk, 20000));
        outcome("begin", rd_kafka_begin_transaction(rk));
        say("producev %s", err(send(rk, topic, 0, "of the second")));
        outcome("commit", rd_kafka_commit_transaction(rk, 20000));
        read_all(topic, 0, "read_committed");
        rd_kafka_destroy(rk);
}

/* ---- Errors of brokers, from each library's mock cluster ---- */

/* `times` requests of `api` get the error; a transaction with a record and an offset is attempted, and, after an
 * error, aborted and attempted again. */
static void with_errors(rd_kafka_mock_cluster_t *cluster, const char *id, int16_t api, rd_kafka_resp_err_t code, int times) {
        rd_kafka_resp_err_t codes[8];
        rd_kafka_t *rk = transactional(getenv("SBS_BOOTSTRAP"), id);
        int i;
        for (i = 0; i < times; i++)
                codes[i] = code;
        say("-- %s", err(code));
        if (api == 22)
                rd_kafka_mock_push_request_errors_array(cluster, api, times, codes);
        outcome("init", rd_kafka_init_transactions(rk, 3000));
        if (api == 22) {
                say_fatal(rk);
                outcome("init again", rd_kafka_init_transactions(rk, 3000));
                rd_kafka_destroy(rk);
                rd_kafka_mock_clear_request_errors(cluster, api);
                return;
        }
        outcome("begin", rd_kafka_begin_transaction(rk));
        rd_kafka_mock_push_request_errors_array(cluster, api, times, codes);
        say("producev %s", err(send(rk, "t", 0, "one")));
        rd_kafka_flush(rk, 5000);
        send_offsets("send_offsets", rk, "t", 3, id, 5000);
        outcome("commit", rd_kafka_commit_transaction(rk, 5000));
        say_fatal(rk);
        rd_kafka_mock_clear_request_errors(cluster, api);
        outcome("abort", rd_kafka_abort_transaction(rk, 5000));
        outcome("begin", rd_kafka_begin_transaction(rk));
        say("producev %s", err(send(rk, "t", 0, "two")));
        outcome("commit", rd_kafka_commit_transaction(rk, 5000));
        rd_kafka_destroy(rk);
}

#define WITH_ERROR(name, api, code, times)                                                                                     \
        CASE(name) {                                                                                                           \
                rd_kafka_mock_cluster_t *cluster = mock_of(1);                                                                 \
                with_errors(cluster, #name, api, RD_KAFKA_RESP_ERR_##code, times);                                             \
                mock_end(cluster);                                                                                             \
        }

#define ERRORS_OF(name, api)                                                                                                   \
        WITH_ERROR(name##_invalid_producer_epoch, api, INVALID_PRODUCER_EPOCH, 1)                                              \
        WITH_ERROR(name##_producer_fenced, api, PRODUCER_FENCED, 1)                                                            \
        WITH_ERROR(name##_concurrent_transactions, api, CONCURRENT_TRANSACTIONS, 2)                                            \
        WITH_ERROR(name##_not_coordinator, api, NOT_COORDINATOR, 2)                                                            \
        WITH_ERROR(name##_coordinator_not_available, api, COORDINATOR_NOT_AVAILABLE, 2)                                        \
        WITH_ERROR(name##_coordinator_load, api, COORDINATOR_LOAD_IN_PROGRESS, 2)                                              \
        WITH_ERROR(name##_id_not_authorized, api, TRANSACTIONAL_ID_AUTHORIZATION_FAILED, 1)                                    \
        WITH_ERROR(name##_cluster_not_authorized, api, CLUSTER_AUTHORIZATION_FAILED, 1)                                        \
        WITH_ERROR(name##_topic_not_authorized, api, TOPIC_AUTHORIZATION_FAILED, 1)                                            \
        WITH_ERROR(name##_group_not_authorized, api, GROUP_AUTHORIZATION_FAILED, 1)                                            \
        WITH_ERROR(name##_invalid_txn_state, api, INVALID_TXN_STATE, 1)                                                        \
        WITH_ERROR(name##_unknown_producer_id, api, UNKNOWN_PRODUCER_ID, 1)                                                    \
        WITH_ERROR(name##_invalid_mapping, api, INVALID_PRODUCER_ID_MAPPING, 1)                                                \
        WITH_ERROR(name##_unknown, api, UNKNOWN, 1)

ERRORS_OF(init, 22)
WITH_ERROR(init_invalid_timeout, 22, INVALID_TRANSACTION_TIMEOUT, 1)
ERRORS_OF(partitions, 24)
WITH_ERROR(partitions_unknown_topic, 24, UNKNOWN_TOPIC_OR_PART, 2)
WITH_ERROR(partitions_not_attempted, 24, OPERATION_NOT_ATTEMPTED, 1)
ERRORS_OF(offsets, 25)
ERRORS_OF(group, 28)
WITH_ERROR(group_illegal_generation, 28, ILLEGAL_GENERATION, 1)
WITH_ERROR(group_unknown_member, 28, UNKNOWN_MEMBER_ID, 1)
WITH_ERROR(group_fenced_instance, 28, FENCED_INSTANCE_ID, 1)
WITH_ERROR(group_unknown_topic, 28, UNKNOWN_TOPIC_OR_PART, 2)
ERRORS_OF(end, 26)
ERRORS_OF(produce, 0)
WITH_ERROR(produce_not_leader, 0, NOT_LEADER_FOR_PARTITION, 2)
WITH_ERROR(produce_too_large, 0, MSG_SIZE_TOO_LARGE, 1)
WITH_ERROR(produce_out_of_order, 0, OUT_OF_ORDER_SEQUENCE_NUMBER, 1)

/* ---- Time and other threads ---- */

CASE(commit_times_out_and_is_resumed) {
        rd_kafka_mock_cluster_t *cluster = mock_of(1);
        rd_kafka_t *rk = transactional(getenv("SBS_BOOTSTRAP"), "id");
        long began;
        outcome("init", rd_kafka_init_transactions(rk, 5000));
        outcome("begin", rd_kafka_begin_transaction(rk));
        say("producev %s", err(send(rk, "t", 0, "one")));
        rd_kafka_flush(rk, 5000);
        rd_kafka_mock_broker_push_request_error_rtts(cluster, 1, 26, 1, RD_KAFKA_RESP_ERR_NO_ERROR, 2500);
        began = millis();
        say_error("commit", rd_kafka_commit_transaction(rk, 800));
        say("%s", took(began, 800));
        outcome("begin", rd_kafka_begin_transaction(rk));
        outcome("abort", rd_kafka_abort_transaction(rk, 500));
        say("producev %s", err(send(rk, "t", 0, "two")));
        outcome("commit again", rd_kafka_commit_transaction(rk, 8000));
        outcome("begin", rd_kafka_begin_transaction(rk));
        outcome("commit", rd_kafka_commit_transaction(rk, 5000));
        rd_kafka_destroy(rk);
        mock_end(cluster);
}

CASE(abort_times_out_and_is_resumed) {
        rd_kafka_mock_cluster_t *cluster = mock_of(1);
        rd_kafka_t *rk = transactional(getenv("SBS_BOOTSTRAP"), "id");
        outcome("init", rd_kafka_init_transactions(rk, 5000));
        outcome("begin", rd_kafka_begin_transaction(rk));
        say("producev %s", err(send(rk, "t", 0, "one")));
        rd_kafka_flush(rk, 5000);
        rd_kafka_mock_broker_push_request_error_rtts(cluster, 1, 26, 1, RD_KAFKA_RESP_ERR_NO_ERROR, 2500);
        say_error("abort", rd_kafka_abort_transaction(rk, 800));
        outcome("commit", rd_kafka_commit_transaction(rk, 500));
        outcome("begin", rd_kafka_begin_transaction(rk));
        outcome("abort again", rd_kafka_abort_transaction(rk, 8000));
        outcome("begin", rd_kafka_begin_transaction(rk));
        rd_kafka_destroy(rk);
        mock_end(cluster);
}

struct caller {
        rd_kafka_t *rk;
        rd_kafka_error_t *error;
};

static void *committing(void *opaque) {
        struct caller *caller = opaque;
        caller->error = rd_kafka_commit_transaction(caller->rk, 8000);
        return NULL;
}

CASE(two_threads_end_the_transaction) {
        rd_kafka_mock_cluster_t *cluster = mock_of(1);
        struct caller caller = {transactional(getenv("SBS_BOOTSTRAP"), "id"), NULL};
        pthread_t thread;
        outcome("init", rd_kafka_init_transactions(caller.rk, 5000));
        outcome("begin", rd_kafka_begin_transaction(caller.rk));
        say("producev %s", err(send(caller.rk, "t", 0, "one")));
        rd_kafka_flush(caller.rk, 5000);
        rd_kafka_mock_broker_push_request_error_rtts(cluster, 1, 26, 1, RD_KAFKA_RESP_ERR_NO_ERROR, 2000);
        pthread_create(&thread, NULL, committing, &caller);
        usleep(700000);
        outcome("commit of another thread", rd_kafka_commit_transaction(caller.rk, 500));
        outcome("abort of another thread", rd_kafka_abort_transaction(caller.rk, 500));
        outcome("begin of another thread", rd_kafka_begin_transaction(caller.rk));
        pthread_join(thread, NULL);
        outcome("commit", caller.error);
        rd_kafka_destroy(caller.rk);
        mock_end(cluster);
}

CASE(a_message_that_fails_makes_commit_fail) {
        rd_kafka_mock_cluster_t *cluster = mock_of(1);
        rd_kafka_t *rk = transactional(getenv("SBS_BOOTSTRAP"), "id");
        outcome("init", rd_kafka_init_transactions(rk, 5000));
        outcome("begin", rd_kafka_begin_transaction(rk));
        rd_kafka_mock_push_request_errors(cluster, 0, 1, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
        say("producev %s", err(send(rk, "t", 0, "one")));
        say_error("commit", rd_kafka_commit_transaction(rk, 5000));
        say_recorded("reports", &reports);
        say_error("commit again", rd_kafka_commit_transaction(rk, 5000));
        say_error("begin", rd_kafka_begin_transaction(rk));
        say("producev %s", err(send(rk, "t", 0, "two")));
        say_error("abort", rd_kafka_abort_transaction(rk, 5000));
        outcome("begin", rd_kafka_begin_transaction(rk));
        say("producev %s", err(send(rk, "t", 0, "three")));
        outcome("commit", rd_kafka_commit_transaction(rk, 5000));
        rd_kafka_destroy(rk);
        mock_end(cluster);
}

CASE(the_coordinator_moves_inside_a_transaction) {
        rd_kafka_mock_cluster_t *cluster = mock_of(3);
        rd_kafka_t *rk = transactional(getenv("SBS_BOOTSTRAP"), "id");
        int node;
        rd_kafka_mock_coordinator_set(cluster, "transaction", "id", 1);
        outcome("init", rd_kafka_init_transactions(rk, 5000));
        for (node = 2; node <= 3; node++) {
                outcome("begin", rd_kafka_begin_transaction(rk));
                say("producev %s", err(send(rk, "t", 0, "one")));
                rd_kafka_flush(rk, 5000);
                rd_kafka_mock_coordinator_set(cluster, "transaction", "id", node);
                outcome("commit", rd_kafka_commit_transaction(rk, 10000));
        }
        rd_kafka_destroy(rk);
        mock_end(cluster);
}

CASE(purge_inside_a_transaction) {
        rd_kafka_mock_cluster_t *cluster = mock_of(1);
        rd_kafka_t *rk = producer_of(
            conf_of("bootstrap.servers", getenv("SBS_BOOTSTRAP"), "transactional.id", "id", "linger.ms", "5000", NULL));
        outcome("init", rd_kafka_init_transactions(rk, 5000));
        outcome("begin", rd_kafka_begin_transaction(rk));
        say("producev %s", err(send(rk, "t", 0, "one")));
        say("purge %s", err(rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE)));
        say("flush %s", err(rd_kafka_flush(rk, 5000)));
        say_recorded("reports", &reports);
        outcome("commit", rd_kafka_commit_transaction(rk, 5000));
        outcome("abort", rd_kafka_abort_transaction(rk, 5000));
        rd_kafka_destroy(rk);
        mock_end(cluster);
}

CASE(reports_as_events) {
        rd_kafka_mock_cluster_t *cluster = mock_of(1);
        rd_kafka_conf_t *conf = conf_of("bootstrap.servers", getenv("SBS_BOOTSTRAP"), "transactional.id", "id", NULL);
        rd_kafka_t *rk;
        rd_kafka_queue_t *queue;
        rd_kafka_event_t *event;
        rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_DR);
        rk = start(RD_KAFKA_PRODUCER, conf);
        queue = rd_kafka_queue_get_main(rk);
        outcome("init", rd_kafka_init_transactions(rk, 5000));
        outcome("begin", rd_kafka_begin_transaction(rk));
        say("producev %s", err(send(rk, "t", 0, "one")));
        outcome("commit while nobody polls", rd_kafka_commit_transaction(rk, 1500));
        event = rd_kafka_queue_poll(queue, 5000);
        say("event %s with %zu", event ? rd_kafka_event_name(event) : "NULL", event ? rd_kafka_event_message_count(event) : 0);
        if (event)
                rd_kafka_event_destroy(event);
        outcome("commit", rd_kafka_commit_transaction(rk, 5000));
        outcome("begin", rd_kafka_begin_transaction(rk));
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
        mock_end(cluster);
}
