/* Mistakes of a program that the library can detect, as a table: a sentence, the code and the errno of the result. */
#include "test.h"
#include <errno.h>

#define OK RD_KAFKA_RESP_ERR_NO_ERROR
#define INVALID RD_KAFKA_RESP_ERR__INVALID_ARG

static int rows;
static const char *brokers;
static char errstr[512], text[] = "text";

/* One row. The errno of the call is checked first; errno is 0 before each row. */
static void row(const char *sentence, int answer, int expected, int expected_errno) {
        int is_errno = errno;
        rows++;
        if (answer != expected || (expected_errno && is_errno != expected_errno)) {
                fprintf(stderr, "%s: answered %d (%s), not %d, with errno %d, not %d\n", sentence, answer,
                        rd_kafka_err2name((rd_kafka_resp_err_t)answer), expected, is_errno, expected_errno);
                bad++;
        }
        errno = 0;
}

/* A call that returns -1 and sets the last error. */
static int last(int failed) {
        return failed ? (int)rd_kafka_last_error() : OK;
}

/* A call that returns an error object. */
static int object(rd_kafka_error_t *error) {
        int code = rd_kafka_error_code(error);
        rd_kafka_error_destroy(error);
        return code;
}

static rd_kafka_conf_t *configured(void) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_conf_set(conf, "bootstrap.servers", brokers, NULL, 0);
        rd_kafka_conf_set(conf, "group.id", "table", NULL, 0);
        return conf;
}

static int answer_of(const char *name, const char *value) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        int result = rd_kafka_conf_set(conf, name, value, errstr, sizeof(errstr));
        rd_kafka_conf_destroy(conf);
        return result;
}

/* Returns the value of one property after another one was set. */
static int reads_back(const char *name, const char *value, const char *other) {
        char got[64];
        size_t size = sizeof(got);
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        int same = !rd_kafka_conf_set(conf, name, value, NULL, 0) && !rd_kafka_conf_get(conf, other, got, &size) &&
                   !strcmp(got, value);
        rd_kafka_conf_destroy(conf);
        return same;
}

static void configuration(void) {
        rd_kafka_conf_t *conf;
        rd_kafka_topic_conf_t *topic_conf = rd_kafka_topic_conf_new();
        rd_kafka_t *rk;
        char tiny[4] = "xxx", value[8];
        size_t size;

        row("an unknown property is unknown", answer_of("no.such.thing", "1"), RD_KAFKA_CONF_UNKNOWN, 0);
        row("the sentence names it", strstr(errstr, "no.such.thing") != NULL, 1, 0);
        row("a property without a name is invalid", answer_of(NULL, "1"), RD_KAFKA_CONF_INVALID, 0);
        row("a feature that is not built in can't be set", answer_of("builtin.features", "telepathy"), RD_KAFKA_CONF_INVALID, 0);
        row("nor can what is set by a pointer", answer_of("opaque", "x"), RD_KAFKA_CONF_INVALID, 0);
        row("a property that is set by a call can't be set as text", answer_of("dr_msg_cb", "x"), RD_KAFKA_CONF_INVALID, 0);
        row("a value below the range is invalid", answer_of("linger.ms", "-5"), RD_KAFKA_CONF_INVALID, 0);
        row("a value above the range is invalid", answer_of("linger.ms", "900001"), RD_KAFKA_CONF_INVALID, 0);
        row("a value above 64 bits is invalid", answer_of("linger.ms", "99999999999999999999"), RD_KAFKA_CONF_INVALID, 0);
        row("a word is not a number", answer_of("message.max.bytes", "many"), RD_KAFKA_CONF_INVALID, 0);
        row("a word that is none of the choices is invalid", answer_of("compression.codec", "zip"), RD_KAFKA_CONF_INVALID, 0);
        row("a boolean is true or false", answer_of("enable.idempotence", "maybe"), RD_KAFKA_CONF_INVALID, 0);
        row("a property has two spellings", answer_of("metadata.broker.list", "a:1"), RD_KAFKA_CONF_OK, 0);
        row("the one spelling reads what the other set", reads_back("bootstrap.servers", "a:1", "metadata.broker.list"),
            1, 0);
        row("and the other way round", reads_back("metadata.broker.list", "b:2", "bootstrap.servers"), 1, 0);
        row("so do linger.ms and its older name", reads_back("queue.buffering.max.ms", "7", "linger.ms"), 1, 0);
        row("so do acks and request.required.acks", reads_back("acks", "1", "request.required.acks"), 1, 0);

        conf = rd_kafka_conf_new();
        row("an errstr of NULL is not written to", rd_kafka_conf_set(conf, "no.such.thing", "1", NULL, 100),
            RD_KAFKA_CONF_UNKNOWN, 0);
        row("an errstr of size 0 is not written to", rd_kafka_conf_set(conf, "no.such.thing", "1", tiny, 0),
            RD_KAFKA_CONF_UNKNOWN, 0);
        row("indeed", strcmp(tiny, "xxx"), 0, 0);
        row("an errstr of size 1 is an empty text", rd_kafka_conf_set(conf, "no.such.thing", "1", tiny, 1),
            RD_KAFKA_CONF_UNKNOWN, 0);
        row("indeed", tiny[0] == 0 && tiny[1] == 'x', 1, 0);
        size = 0;
        row("a place of size 0 for a value gets none", rd_kafka_conf_get(conf, "linger.ms", value, &size),
            RD_KAFKA_CONF_OK, 0);
        row("but its size", (int)size, 2, 0);
        row("a place of NULL for the size", rd_kafka_conf_get(conf, "linger.ms", value, NULL), RD_KAFKA_CONF_INVALID, 0);
        row("a property of a client is none of a topic",
            rd_kafka_topic_conf_set(topic_conf, "bootstrap.servers", "a", errstr, sizeof(errstr)), RD_KAFKA_CONF_UNKNOWN,
            0);
        rd_kafka_topic_conf_destroy(topic_conf);
        rd_kafka_topic_conf_destroy(topic_conf);
        row("a topic's configuration after its end", rd_kafka_topic_conf_set(topic_conf, "acks", "1", NULL, 0),
            RD_KAFKA_CONF_INVALID, 0);
        row("the copy of one after its end", rd_kafka_topic_conf_dup(topic_conf) == NULL, 1, 0);
        row("a client that is neither producer nor consumer",
            last(!rd_kafka_new((rd_kafka_type_t)7, conf, errstr, sizeof(errstr))), INVALID, EINVAL);
        row("which left the configuration to its owner", rd_kafka_conf_set(conf, "linger.ms", "1", NULL, 0),
            RD_KAFKA_CONF_OK, 0);

        rk = start(RD_KAFKA_PRODUCER, conf);
        row("a configuration after rd_kafka_new can't be changed", rd_kafka_conf_set(conf, "linger.ms", "1", NULL, 0),
            RD_KAFKA_CONF_INVALID, 0);
        row("nor read", rd_kafka_conf_get(conf, "linger.ms", value, &size), RD_KAFKA_CONF_INVALID, 0);
        row("nor copied", rd_kafka_conf_dup(conf) == NULL, 1, 0);
        row("nor used for another client", last(!rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof(errstr))), INVALID,
            EINVAL);
        row("nor, without an errstr", last(!rd_kafka_new(RD_KAFKA_PRODUCER, conf, NULL, 100)), INVALID, EINVAL);
        rd_kafka_conf_destroy(conf);
        conf = (rd_kafka_conf_t *)rd_kafka_conf(rk);
        row("a client's own configuration can be read", rd_kafka_conf_get(conf, "linger.ms", value, NULL),
            RD_KAFKA_CONF_INVALID, 0);
        size = sizeof(value);
        row("indeed", rd_kafka_conf_get(conf, "linger.ms", value, &size), RD_KAFKA_CONF_OK, 0);
        row("but not changed", rd_kafka_conf_set(conf, "linger.ms", "1", NULL, 0), RD_KAFKA_CONF_INVALID, 0);
        row("nor used for another client", last(!rd_kafka_new(RD_KAFKA_PRODUCER, conf, NULL, 0)), INVALID, EINVAL);
        rd_kafka_conf_destroy(conf);
        row("nor destroyed", rd_kafka_conf_get(conf, "linger.ms", value, &size), RD_KAFKA_CONF_OK, 0);
        rd_kafka_destroy(rk);
        row("it goes with its client", rd_kafka_conf_get(conf, "linger.ms", value, &size), RD_KAFKA_CONF_INVALID, 0);
}

static int reports, report_error, polled_inside, flushed_inside;

static void on_report(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
        (void)opaque;
        reports++;
        report_error = message->err;
        polled_inside += rd_kafka_poll(rk, 0);
        flushed_inside = rd_kafka_flush(rk, 0);
}

static int produce(rd_kafka_topic_t *topic, int32_t partition, int flags, void *payload, size_t len, const void *key,
                   size_t key_len) {
        return last(rd_kafka_produce(topic, partition, flags, payload, len, key, key_len, NULL));
}

static int with_headers(rd_kafka_t *rk, const char *topic, int32_t partition, void *payload, size_t len,
                        rd_kafka_headers_t *headers) {
        rd_kafka_vu_t vus[4];
        vus[0].vtype = RD_KAFKA_VTYPE_TOPIC;
        vus[0].u.cstr = topic;
        vus[1].vtype = RD_KAFKA_VTYPE_PARTITION;
        vus[1].u.i32 = partition;
        vus[2].vtype = RD_KAFKA_VTYPE_VALUE;
        vus[2].u.mem.ptr = payload;
        vus[2].u.mem.size = len;
        vus[3].vtype = RD_KAFKA_VTYPE_HEADERS;
        vus[3].u.headers = headers;
        return object(rd_kafka_produceva(rk, vus, 4));
}

static int add_header(rd_kafka_headers_t *headers) {
        return rd_kafka_header_add(headers, "name", -1, "value", -1);
}

static void headers(rd_kafka_t *rk) {
        rd_kafka_headers_t *list = rd_kafka_headers_new(1);
        row("a header without a name", rd_kafka_header_add(list, NULL, -1, "v", -1), INVALID, 0);
        row("a header of a list that is none", rd_kafka_header_add(NULL, "n", -1, "v", -1), INVALID, 0);
        row("a header with a name", add_header(list), OK, 0);
        row("a message that is refused leaves its headers: partition -2", with_headers(rk, "table", -2, text, 4, list),
            RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, 0);
        row("NULL with a length", with_headers(rk, "table", 0, NULL, 4, list), INVALID, 0);
        row("a size above the limit", with_headers(rk, "table", 0, text, (size_t)-1, list),
            RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, 0);
        row("no topic", with_headers(rk, NULL, 0, text, 4, list), INVALID, 0);
        row("no client", with_headers(NULL, "table", 0, text, 4, list), INVALID, 0);
        row("they are still the application's", add_header(list), OK, 0);
        row("with all they had", (int)rd_kafka_header_cnt(list), 2, 0);
        row("a message that is taken takes its headers", with_headers(rk, "table", 0, text, 4, list), OK, 0);
        row("they can't be used for another one", with_headers(rk, "table", 0, text, 4, list), INVALID, 0);
        rd_kafka_headers_destroy(list);
        rd_kafka_headers_destroy(list);
        row("what was refused is not sent", rd_kafka_flush(rk, TIMEOUT_MS), OK, 0);
        row("after the report they are gone", with_headers(rk, "table", 0, text, 4, list), INVALID, 0);
        row("and can't be added to", add_header(list), INVALID, 0);
        row("nor counted", (int)rd_kafka_header_cnt(list), 0, 0);
        row("nor copied", rd_kafka_headers_copy(list) == NULL, 1, 0);
        rd_kafka_headers_destroy(list);
        list = rd_kafka_headers_new(0);
        rd_kafka_headers_destroy(list);
        rd_kafka_headers_destroy(list);
        row("headers after their end", add_header(list), INVALID, 0);
}

static void producing(int with_reports) {
        rd_kafka_conf_t *conf = configured();
        rd_kafka_topic_t *topic, *other;
        rd_kafka_t *rk, *second;
        rd_kafka_message_t batch[3];
        rd_kafka_vu_t vu;
        char *large = calloc(1, 3000000);
        int i;

        if (with_reports)
                rd_kafka_conf_set_dr_msg_cb(conf, on_report);
        rd_kafka_conf_set(conf, "message.max.bytes", "2000", NULL, 0);
        rk = start(RD_KAFKA_PRODUCER, conf);
        row("a topic without a name", last(!rd_kafka_topic_new(rk, NULL, NULL)), INVALID, EINVAL);
        memset(large, 'x', 513);
        row("a topic with 513 letters", last(!rd_kafka_topic_new(rk, large, NULL)), INVALID, EINVAL);
        memset(large, 0, 513);
        topic = rd_kafka_topic_new(rk, "table", NULL);
        row("a message for partition 0", produce(topic, 0, RD_KAFKA_MSG_F_COPY, text, 4, NULL, 0), OK, 0);
        row("it is sent, so that the partitions are known", rd_kafka_flush(rk, TIMEOUT_MS), OK, 0);
        row("partition -2", produce(topic, -2, RD_KAFKA_MSG_F_COPY, text, 4, NULL, 0),
            RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, ESRCH);
        row("partition -2^31", produce(topic, -2147483647 - 1, RD_KAFKA_MSG_F_COPY, text, 4, NULL, 0),
            RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, ESRCH);
        row("partition 2^31-1", produce(topic, 2147483647, RD_KAFKA_MSG_F_COPY, text, 4, NULL, 0),
            RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, ESRCH);
        row("the first partition that is not there", produce(topic, 4, RD_KAFKA_MSG_F_COPY, text, 4, NULL, 0),
            RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, ESRCH);
        row("a payload of NULL with a length", produce(topic, 0, RD_KAFKA_MSG_F_COPY, NULL, 4, NULL, 0), INVALID, EINVAL);
        row("a key of NULL with a length", produce(topic, 0, RD_KAFKA_MSG_F_COPY, text, 4, NULL, 4), INVALID, EINVAL);
        row("a payload to be copied and freed",
            produce(topic, 0, RD_KAFKA_MSG_F_COPY | RD_KAFKA_MSG_F_FREE, text, 4, NULL, 0), OK, 0);
        row("a payload without bytes", produce(topic, 0, RD_KAFKA_MSG_F_COPY, text, 0, NULL, 0), OK, 0);
        row("no payload at all", produce(topic, 0, RD_KAFKA_MSG_F_COPY, NULL, 0, NULL, 0), OK, 0);
        row("a key without bytes", produce(topic, 0, RD_KAFKA_MSG_F_COPY, text, 4, text, 0), OK, 0);
        row("a payload above message.max.bytes", produce(topic, 0, RD_KAFKA_MSG_F_COPY, large, 3000, NULL, 0),
            RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, EMSGSIZE);
        row("a key above message.max.bytes", produce(topic, 0, RD_KAFKA_MSG_F_COPY, text, 4, large, 3000),
            RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, EMSGSIZE);
        row("a payload above all limits", produce(topic, 0, 0, text, (size_t)-1, NULL, 0),
            RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, EMSGSIZE);
        row("a payload of half of all memory", produce(topic, 0, 0, text, ((size_t)-1) / 2, text, ((size_t)-1) / 2),
            RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, EMSGSIZE);
        row("a payload to be freed that is refused stays its owner's",
            produce(topic, 0, RD_KAFKA_MSG_F_FREE, large, 3000000, NULL, 0), RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE,
            EMSGSIZE);
        large[0] = 'y';
        row("no topic", produce(NULL, 0, RD_KAFKA_MSG_F_COPY, text, 4, NULL, 0), INVALID, EINVAL);
        row("a client for a topic", produce((rd_kafka_topic_t *)rk, 0, RD_KAFKA_MSG_F_COPY, text, 4, NULL, 0), INVALID,
            EINVAL);
        row("a small number for a topic", produce((rd_kafka_topic_t *)16, 0, RD_KAFKA_MSG_F_COPY, text, 4, NULL, 0),
            INVALID, EINVAL);

        row("a batch without messages", rd_kafka_produce_batch(topic, 0, 0, NULL, 3), 0, EINVAL);
        row("a batch of a negative size", rd_kafka_produce_batch(topic, 0, 0, batch, -1), 0, 0);
        memset(batch, 0, sizeof(batch));
        for (i = 0; i < 3; i++) {
                batch[i].payload = text;
                batch[i].len = 4;
        }
        batch[1].partition = -2;
        row("of a batch those that can be are taken",
            rd_kafka_produce_batch(topic, 0, RD_KAFKA_MSG_F_COPY | RD_KAFKA_MSG_F_PARTITION, batch, 3), 2, 0);
        row("and the others told why", batch[1].err, RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, 0);

        row("arguments without a topic", rd_kafka_producev(rk, RD_KAFKA_V_VALUE(text, 4), RD_KAFKA_V_END), INVALID,
            EINVAL);
        row("arguments of a type that is none",
            rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("table"), 99, 1, RD_KAFKA_V_END), INVALID, EINVAL);
        row("arguments for no client", rd_kafka_producev(NULL, RD_KAFKA_V_TOPIC("table"), RD_KAFKA_V_END), INVALID,
            EINVAL);
        row("no arguments", object(rd_kafka_produceva(rk, NULL, 0)), INVALID, 0);
        row("no arguments with a count", object(rd_kafka_produceva(rk, NULL, 5)), INVALID, 0);
        vu.vtype = RD_KAFKA_VTYPE_RKT;
        vu.u.rkt = NULL;
        row("a topic of NULL", object(rd_kafka_produceva(rk, &vu, 1)), INVALID, 0);
        second = start(RD_KAFKA_PRODUCER, configured());
        other = rd_kafka_topic_new(second, "table", NULL);
        vu.u.rkt = other;
        row("a topic of another client", object(rd_kafka_produceva(rk, &vu, 1)), INVALID, 0);
        row("a topic of this client", object(rd_kafka_produceva(second, &vu, 1)), OK, 0);
        headers(rk);

        /* Topics after they were destroyed. */
        rd_kafka_topic_destroy(other);
        rd_kafka_topic_destroy(other);
        rd_kafka_topic_destroy(other);
        row("a client goes on whose topic was destroyed thrice",
            rd_kafka_producev(second, RD_KAFKA_V_TOPIC("table"), RD_KAFKA_V_VALUE(text, 4), RD_KAFKA_V_END), OK, 0);
        row("and sends", rd_kafka_flush(second, TIMEOUT_MS), OK, 0);
        rd_kafka_destroy(second);
        rd_kafka_destroy(second);
        row("a topic after its end", produce(other, 0, RD_KAFKA_MSG_F_COPY, text, 4, NULL, 0), INVALID, EINVAL);
        row("its name", rd_kafka_topic_name(other) == NULL, 1, 0);
        row("a client after its end", rd_kafka_flush(second, 0), INVALID, 0);
        row("its poll", rd_kafka_poll(second, -1), 0, 0);
        row("its topics", last(!rd_kafka_topic_new(second, "table", NULL)), INVALID, EINVAL);
        row("its name", rd_kafka_name(second) == NULL, 1, 0);
        row("its queue", rd_kafka_queue_get_main(second) == NULL, 1, 0);
        row("its messages",
            rd_kafka_producev(second, RD_KAFKA_V_TOPIC("table"), RD_KAFKA_V_VALUE(text, 4), RD_KAFKA_V_END), INVALID,
            EINVAL);
        row("a topic of a client that is gone", object(rd_kafka_produceva(second, &vu, 1)), INVALID, 0);
        row("a topic that is gone", object(rd_kafka_produceva(rk, &vu, 1)), INVALID, 0);

        row("a purge of what is none", rd_kafka_purge(rk, 64), INVALID, 0);
        row("a producer assigns nothing", rd_kafka_assign(rk, NULL), RD_KAFKA_RESP_ERR__UNKNOWN_GROUP, 0);
        row("and consumes nothing", last(rd_kafka_consume_start(topic, 0, 0)), INVALID, EINVAL);
        reports = polled_inside = 0;
        produce(topic, 0, RD_KAFKA_MSG_F_COPY, text, 4, NULL, 0);
        produce(topic, 1, RD_KAFKA_MSG_F_COPY, text, 4, NULL, 0);
        errno = 0;
        row("a flush ends, too, where callbacks poll and flush", rd_kafka_flush(rk, TIMEOUT_MS), OK, 0);
        row("each of them was called once", reports, with_reports ? 2 : 0, 0);
        row("a fatal error", rd_kafka_test_fatal_error(rk, RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, "test"), OK,
            0);
        row("after which nothing is taken", produce(topic, 0, RD_KAFKA_MSG_F_COPY, text, 4, NULL, 0),
            RD_KAFKA_RESP_ERR__FATAL, ECANCELED);
        row("a second one is not taken", rd_kafka_test_fatal_error(rk, RD_KAFKA_RESP_ERR__FAIL, "test"),
            RD_KAFKA_RESP_ERR__PREV_IN_PROGRESS, 0);
        rd_kafka_destroy(rk);
        row("a topic that outlives its client keeps its name", strcmp(rd_kafka_topic_name(topic), "table"), 0, 0);
        row("but takes nothing", produce(topic, 0, RD_KAFKA_MSG_F_COPY, text, 4, NULL, 0) != OK, 1, 0);
        rd_kafka_topic_destroy(topic);
        row("and is gone when it was given up", produce(topic, 0, RD_KAFKA_MSG_F_COPY, text, 4, NULL, 0), INVALID, EINVAL);
        free(large);
}

static void full_queue(void) {
        rd_kafka_conf_t *conf = configured();
        rd_kafka_topic_t *topic;
        rd_kafka_t *rk;
        rd_kafka_conf_set(conf, "bootstrap.servers", "127.0.0.1:1", NULL, 0);
        rd_kafka_conf_set(conf, "queue.buffering.max.messages", "2", NULL, 0);
        rk = start(RD_KAFKA_PRODUCER, conf);
        topic = rd_kafka_topic_new(rk, "table", NULL);
        produce(topic, 0, RD_KAFKA_MSG_F_COPY, text, 4, NULL, 0);
        produce(topic, 0, RD_KAFKA_MSG_F_COPY, text, 4, NULL, 0);
        errno = 0;
        row("a message more than the queue takes", produce(topic, 0, RD_KAFKA_MSG_F_COPY, text, 4, NULL, 0),
            RD_KAFKA_RESP_ERR__QUEUE_FULL, ENOBUFS);
        row("a flush that can't end in time", rd_kafka_flush(rk, 50), RD_KAFKA_RESP_ERR__TIMED_OUT, 0);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
}

static void *poll_queue(void *queue) {
        return rd_kafka_queue_poll(queue, -1);
}

static void *poll_client(void *rk) {
        return rd_kafka_poll(rk, -1) ? rk : NULL;
}

static void *poll_consumer(void *rk) {
        return rd_kafka_consumer_poll(rk, -1);
}

static void doze(int millis) {
        struct timespec time;
        time.tv_sec = 0;
        time.tv_nsec = millis * 1000000L;
        nanosleep(&time, NULL);
}

/* Structures that applications read, after they were destroyed. */
static void given_up(rd_kafka_t *rk, rd_kafka_topic_partition_list_t *list) {
        const struct rd_kafka_metadata *metadata;
        rd_kafka_topic_partition_list_t *assigned;
        rd_kafka_queue_t *queue = rd_kafka_queue_get_main(rk);
        int i;

        row("a list that is gone has no elements", list->cnt > 0, 0, 0);
        row("and gets none", rd_kafka_topic_partition_list_add(list, "table", 0) == NULL, 1, 0);
        rd_kafka_topic_partition_list_add_range(list, "table", 0, 3);
        row("nothing is found there", rd_kafka_topic_partition_list_find(list, "table", 0) == NULL, 1, 0);
        row("nothing is changed", rd_kafka_topic_partition_list_set_offset(list, "table", 0, 1),
            RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, 0);
        row("nothing is removed", rd_kafka_topic_partition_list_del(list, "table", 0), 0, 0);
        row("nor by its place", rd_kafka_topic_partition_list_del_by_idx(list, 0), 0, 0);
        row("it can't be copied", rd_kafka_topic_partition_list_copy(list) == NULL, 1, 0);
        rd_kafka_topic_partition_list_sort(list, NULL, NULL);
        row("it is not an assignment, nor the end of one", rd_kafka_assign(rk, list), INVALID, 0);
        row("the assignment is what it was", rd_kafka_assignment(rk, &assigned), OK, 0);
        row("of one partition", assigned->cnt, 1, 0);
        rd_kafka_topic_partition_list_destroy(assigned);
        row("nothing is added by it", object(rd_kafka_incremental_assign(rk, list)), INVALID, 0);
        row("nothing is taken away", object(rd_kafka_incremental_unassign(rk, list)), INVALID, 0);
        row("nothing paused", rd_kafka_pause_partitions(rk, list), INVALID, 0);
        row("nothing resumed", rd_kafka_resume_partitions(rk, list), INVALID, 0);
        row("nothing sought", object(rd_kafka_seek_partitions(rk, list, 0)), INVALID, 0);
        row("no position told", rd_kafka_position(rk, list), INVALID, 0);
        row("no offset committed, and not those that are stored", rd_kafka_commit(rk, list, 0), INVALID, 0);
        row("nor to a queue", rd_kafka_commit_queue(rk, list, queue, NULL, NULL), INVALID, 0);
        row("nor asked for", rd_kafka_committed(rk, list, 0), INVALID, 0);
        row("nor stored", rd_kafka_offsets_store(rk, list), INVALID, 0);
        row("no time looked for", rd_kafka_offsets_for_times(rk, list, 0), INVALID, 0);
        row("no records deleted", rd_kafka_DeleteRecords_new(list) == NULL, 1, 0);
        for (i = 0; i < 3; i++)
                rd_kafka_topic_partition_list_destroy(list);
        row("metadata", rd_kafka_metadata(rk, 0, NULL, &metadata, TIMEOUT_MS), OK, 0);
        for (i = 0; i < 3; i++)
                rd_kafka_metadata_destroy(metadata);
        row("metadata that is gone has no brokers", metadata->broker_cnt > 0, 0, 0);
        row("nor topics", metadata->topic_cnt, 0, 0);
        rd_kafka_queue_destroy(queue);
}

static void consuming(void) {
        rd_kafka_t *rk = start(RD_KAFKA_CONSUMER, configured());
        rd_kafka_t *second = start(RD_KAFKA_CONSUMER, configured());
        rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, "table", NULL);
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(0);
        rd_kafka_queue_t *queue, *kept;
        rd_kafka_message_t *message, *two[2];
        pthread_t thread;
        void *answer;
        int64_t low, high;

        row("an offset that is none", last(rd_kafka_consume_start(topic, 0, -500)), INVALID, EINVAL);
        row("a partition that is none", last(rd_kafka_consume_start(topic, -2, 0)),
            RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, ESRCH);
        row("no topic", last(rd_kafka_consume_start(NULL, 0, 0)), INVALID, EINVAL);
        row("no queue", last(rd_kafka_consume_start_queue(topic, 0, 0, NULL)), INVALID, EINVAL);
        kept = rd_kafka_queue_new(second);
        row("another client's queue", last(rd_kafka_consume_start_queue(topic, 0, 0, kept)), INVALID, EINVAL);
        rd_kafka_queue_destroy(kept);
        row("nothing was started", last(rd_kafka_consume_stop(topic, 0)), RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, ESRCH);
        row("nothing is consumed of it", rd_kafka_consume(topic, 0, 0) == NULL, 1, 0);
        row("a partition is started", last(rd_kafka_consume_start(topic, 0, 0)), OK, 0);
        row("it can't be started twice", last(rd_kafka_consume_start(topic, 0, 0)), RD_KAFKA_RESP_ERR__CONFLICT, EBUSY);
        message = rd_kafka_consume(topic, 0, TIMEOUT_MS);
        row("a message comes", message ? message->err : -1, OK, 0);
        rd_kafka_message_destroy(message);
        rd_kafka_message_destroy(message);
        row("messages go on coming after one was destroyed twice",
            (int)rd_kafka_consume_batch(topic, 0, 10000, two, 2) > 0, 1, 0);
        rd_kafka_message_destroy(two[0]);
        row("a batch of NULL", (int)rd_kafka_consume_batch(topic, 0, 0, NULL, 5), -1, EINVAL);
        row("it is stopped", last(rd_kafka_consume_stop(topic, 0)), OK, 0);

        rd_kafka_topic_partition_list_add(list, "table", 0)->offset = -500;
        row("an assignment to an offset that is none", rd_kafka_assign(rk, list), INVALID, 0);
        list->elems[0].offset = 0;
        list->elems[0].partition = -2;
        row("an assignment to a partition that is none", rd_kafka_assign(rk, list) != OK, 1, 0);
        list->elems[0].partition = 0;
        row("an assignment", rd_kafka_assign(rk, list), OK, 0);
        row("the same once more, incrementally", object(rd_kafka_incremental_assign(rk, list)),
            RD_KAFKA_RESP_ERR__CONFLICT, 0);
        row("nothing, incrementally", object(rd_kafka_incremental_assign(rk, NULL)), INVALID, 0);
        list->elems[0].partition = 2147483647;
        row("a pause of what is not assigned", rd_kafka_pause_partitions(rk, list), OK, 0);
        row("is told of the partition", list->elems[0].err, RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, 0);
        row("a pause of nothing", rd_kafka_pause_partitions(rk, NULL), INVALID, 0);
        row("the end of an unassigned partition's offsets",
            rd_kafka_get_watermark_offsets(rk, "table", 2147483647, &low, &high), OK, 0);
        row("is not known", low == RD_KAFKA_OFFSET_INVALID && high == RD_KAFKA_OFFSET_INVALID, 1, 0);
        row("an assignment of nobody", rd_kafka_assign(NULL, list), INVALID, 0);
        row("a place of NULL for the assignment", rd_kafka_assignment(rk, NULL), INVALID, 0);
        row("a consumer doesn't produce",
            rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("table"), RD_KAFKA_V_VALUE(text, 4), RD_KAFKA_V_END), INVALID, EINVAL);
        row("nor flush", rd_kafka_flush(rk, 0), RD_KAFKA_RESP_ERR__NOT_IMPLEMENTED, 0);
        rd_kafka_topic_partition_list_destroy(list);
        given_up(rk, list);

        /* Queues after they were destroyed, and while a thread waits for them. */
        queue = rd_kafka_queue_new(second);
        pthread_create(&thread, NULL, poll_queue, queue);
        doze(100);
        rd_kafka_queue_destroy(queue);
        pthread_join(thread, &answer);
        row("a queue that is destroyed while a thread polls it sends the thread home", answer == NULL, 1, 0);
        rd_kafka_queue_destroy(queue);
        rd_kafka_queue_destroy(queue);
        row("a queue after its end", rd_kafka_queue_poll(queue, -1) == NULL, 1, 0);
        row("its length", (int)rd_kafka_queue_length(queue), 0, 0);
        rd_kafka_queue_forward(queue, NULL);
        rd_kafka_queue_io_event_enable(queue, 1, text, 4);
        rd_kafka_queue_yield(queue);
        row("a start to it", last(rd_kafka_consume_start_queue(topic, 0, 0, queue)), INVALID, EINVAL);
        kept = rd_kafka_queue_new(second);
        queue = rd_kafka_queue_get_consumer(second);
        rd_kafka_queue_destroy(queue);
        rd_kafka_queue_destroy(queue);
        rd_kafka_queue_destroy(queue);
        row("a client goes on whose own queue was destroyed thrice", rd_kafka_consumer_poll(second, 0) == NULL, 1, 0);
        pthread_create(&thread, NULL, poll_consumer, second);
        doze(100);
        rd_kafka_destroy(second);
        pthread_join(thread, &answer);
        row("a client that is destroyed while a thread polls it sends the thread home", answer == NULL, 1, 0);
        row("a queue that outlives its client is empty", rd_kafka_queue_poll(kept, -1) == NULL, 1, 0);
        rd_kafka_queue_destroy(kept);
        row("a consumer after its end", rd_kafka_consumer_poll(second, -1) == NULL, 1, 0);
        row("its closing", rd_kafka_consumer_close(second), INVALID, 0);
        second = start(RD_KAFKA_PRODUCER, configured());
        pthread_create(&thread, NULL, poll_client, second);
        doze(100);
        rd_kafka_destroy(second);
        pthread_join(thread, &answer);
        row("so does a producer", answer == NULL, 1, 0);

        rd_kafka_destroy(rk);
        rd_kafka_message_destroy(two[1]);
        rd_kafka_topic_destroy(topic);
}

static void objects(void) {
        rd_kafka_error_t *error = rd_kafka_error_new(RD_KAFKA_RESP_ERR__STATE, "%s", "text");
        rd_kafka_conf_t *conf = configured();
        rd_kafka_t *rk;
        rd_kafka_queue_t *queue;
        rd_kafka_event_t *event;
        row("an error's code", rd_kafka_error_code(error), RD_KAFKA_RESP_ERR__STATE, 0);
        rd_kafka_error_destroy(error);
        rd_kafka_error_destroy(error);
        row("an error after its end is none", rd_kafka_error_code(error), OK, 0);
        row("its text is empty", rd_kafka_error_string(error)[0], 0, 0);
        rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_DR);
        rk = start(RD_KAFKA_PRODUCER, conf);
        queue = rd_kafka_queue_get_main(rk);
        rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("table"), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_VALUE(text, 4),
                          RD_KAFKA_V_END);
        event = rd_kafka_queue_poll(queue, TIMEOUT_MS);
        row("an event comes", rd_kafka_event_type(event), RD_KAFKA_EVENT_DR, 0);
        rd_kafka_event_destroy(event);
        rd_kafka_event_destroy(event);
        row("an event after its end is none", rd_kafka_event_type(event), RD_KAFKA_EVENT_NONE, 0);
        row("it has no message", rd_kafka_event_message_next(event) == NULL, 1, 0);
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
}

int main(int argc, char **argv) {
        if (argc < 2)
                return 2;
        brokers = argv[1];
        configuration();
        producing(0);
        producing(1);
        full_queue();
        consuming();
        objects();
        row("nothing is left", rd_kafka_wait_destroyed(5000), 0, 0);
        if (rows < 200) {
                fprintf(stderr, "only %d rows\n", rows);
                bad++;
        }
        return bad != 0;
}
