/* Codes and names of errors, error objects, errno, and a thread's last error. */
#include "side_by_side.h"

CASE(names_and_descriptions) {
        const struct rd_kafka_err_desc *descriptions;
        size_t count, i;
        int code;
        rd_kafka_get_err_descs(&descriptions, &count);
        for (i = 0; i < count; i++)
                if (descriptions[i].name)
                        say("%d %s %s", descriptions[i].code, descriptions[i].name, quoted(descriptions[i].desc));
        for (code = -210; code < 150; code++)
                say("%d %s %s", code, err(code), quoted(rd_kafka_err2str(code)));
}

CASE(errno_to_code) {
        static const int numbers[] = {0, EINVAL, EBUSY, ENOENT, ESRCH, ETIMEDOUT, EMSGSIZE, ENOBUFS, ECANCELED, EPIPE, EIO, -1};
        size_t i;
        for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
                say("%s: %s", errno_name(numbers[i]), err(rd_kafka_errno2err(numbers[i])));
        errno = ENOBUFS;
        say("rd_kafka_errno: %s", errno_name(rd_kafka_errno()));
        say("last error of a thread that called nothing: %s", err(rd_kafka_last_error()));
}

CASE(error_objects) {
        rd_kafka_error_t *error = rd_kafka_error_new(RD_KAFKA_RESP_ERR__QUEUE_FULL, "%d of %s", 3, "them");
        say("%s %s %s", err(rd_kafka_error_code(error)), rd_kafka_error_name(error), rd_kafka_error_string(error));
        say_error("made", error);
        error = rd_kafka_error_new(RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE, NULL);
        say("without a text: %s", quoted(rd_kafka_error_string(error)));
        say_error("without a text", error);
        error = rd_kafka_error_new(99999, NULL);
        say("unknown code: %s %s", rd_kafka_error_name(error), quoted(rd_kafka_error_string(error)));
        rd_kafka_error_destroy(error);
        rd_kafka_error_destroy(NULL);
        say("of none: %s %s %s %d %d %d", err(rd_kafka_error_code(NULL)), rd_kafka_error_name(NULL), quoted(rd_kafka_error_string(NULL)),
            rd_kafka_error_is_fatal(NULL), rd_kafka_error_is_retriable(NULL), rd_kafka_error_txn_requires_abort(NULL));
}

CASE(fatal_error_of_a_client) {
        rd_kafka_t *rk = producer_of(conf_of("bootstrap.servers", DEAD, "enable.idempotence", "true", NULL));
        char text[256] = "untouched";
        say("before: %s %s", err(rd_kafka_fatal_error(rk, text, sizeof(text))), quoted(text));
        say("test: %s", err(rd_kafka_test_fatal_error(rk, RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, "a reason")));
        say("again: %s", err(rd_kafka_test_fatal_error(rk, RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID, "another")));
        say("after: %s", err(rd_kafka_fatal_error(rk, text, sizeof(text))));
        say("text mentions the reason: %d", strstr(text, "a reason") != NULL);
        say("no room: %s", err(rd_kafka_fatal_error(rk, NULL, 0)));
        WAIT_FOR((rd_kafka_poll(rk, 10), recorded_with(&errors, "_FATAL")));
        say("produce: %s", err(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("topic"), RD_KAFKA_V_VALUE("v", 1), RD_KAFKA_V_END)));
        say("times a fatal error was reported: %d", recorded_with(&errors, "_FATAL"));
        rd_kafka_destroy(rk);
}
