/* Names and descriptions of error codes: programs and alerts compare the labels. */
#include "test.h"

static const struct {
        int code;
        const char *name, *description;
} labels[] = {
    {RD_KAFKA_RESP_ERR__BAD_MSG, "_BAD_MSG", "Local: Bad message format"},
    {RD_KAFKA_RESP_ERR__DESTROY, "_DESTROY", "Local: Broker handle destroyed for termination"},
    {RD_KAFKA_RESP_ERR__FAIL, "_FAIL", "Local: Communication failure with broker"},
    {RD_KAFKA_RESP_ERR__TRANSPORT, "_TRANSPORT", "Local: Broker transport failure"},
    {RD_KAFKA_RESP_ERR__RESOLVE, "_RESOLVE", "Local: Host resolution failure"},
    {RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, "_MSG_TIMED_OUT", "Local: Message timed out"},
    {RD_KAFKA_RESP_ERR__PARTITION_EOF, "_PARTITION_EOF", "Broker: No more messages"},
    {RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, "_ALL_BROKERS_DOWN", "Local: All broker connections are down"},
    {RD_KAFKA_RESP_ERR__INVALID_ARG, "_INVALID_ARG", "Local: Invalid argument or configuration"},
    {RD_KAFKA_RESP_ERR__TIMED_OUT, "_TIMED_OUT", "Local: Timed out"},
    {RD_KAFKA_RESP_ERR__QUEUE_FULL, "_QUEUE_FULL", "Local: Queue full"},
    {RD_KAFKA_RESP_ERR__STATE, "_STATE", "Local: Erroneous state"},
    {RD_KAFKA_RESP_ERR__PURGE_QUEUE, "_PURGE_QUEUE", "Local: Purged in queue"},
    {RD_KAFKA_RESP_ERR__FATAL, "_FATAL", "Local: Fatal error"},
    {RD_KAFKA_RESP_ERR__MAX_POLL_EXCEEDED, "_MAX_POLL_EXCEEDED",
     "Local: Maximum application poll interval (max.poll.interval.ms) exceeded"},
    {RD_KAFKA_RESP_ERR_UNKNOWN, "UNKNOWN", "Unknown broker error"},
    {RD_KAFKA_RESP_ERR_NO_ERROR, "NO_ERROR", "Success"},
    {RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE, "OFFSET_OUT_OF_RANGE", "Broker: Offset out of range"},
    {RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, "UNKNOWN_TOPIC_OR_PART", "Broker: Unknown topic or partition"},
    {RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION, "NOT_LEADER_FOR_PARTITION", "Broker: Not leader for partition"},
    {RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, "MSG_SIZE_TOO_LARGE", "Broker: Message size too large"},
    {RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID, "UNKNOWN_MEMBER_ID", "Broker: Unknown member"},
    {RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, "TOPIC_AUTHORIZATION_FAILED", "Broker: Topic authorization failed"},
    {RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_ID, "UNKNOWN_TOPIC_ID", "Broker: Unknown topic id"},
    {RD_KAFKA_RESP_ERR_SHARE_SESSION_LIMIT_REACHED, "SHARE_SESSION_LIMIT_REACHED",
     "Broker: The limit of share sessions has been reached"},
    /* Numbers that are not error codes; a newer broker may send one. */
    {RD_KAFKA_RESP_ERR__BEGIN, "ERR_-200?", "Err--200?"},
    {RD_KAFKA_RESP_ERR__END, "ERR_-100?", "Err--100?"},
    {-1000000, "ERR_-1000000?", "Err--1000000?"},
    {99, "ERR_99?", "Err-99?"},
    {134, "ERR_134?", "Err-134?"},
};

static void labels_and_names_are_the_established_ones(void) {
        size_t i;
        for (i = 0; i < sizeof(labels) / sizeof(*labels); i++) {
                rd_kafka_resp_err_t code = (rd_kafka_resp_err_t)labels[i].code;
                const char *name = rd_kafka_err2name(code), *description = rd_kafka_err2str(code);
                if (strcmp(name, labels[i].name) || strcmp(description, labels[i].description)) {
                        fprintf(stderr, "%d: %s, %s\n", code, name, description);
                        bad++;
                }
                /* The texts stay valid after further calls. */
                CHECK(rd_kafka_err2name(code) == name && rd_kafka_err2str(code) == description);
        }
}

static void the_table_of_descriptions_starts_at_the_first_code(void) {
        const struct rd_kafka_err_desc *table;
        size_t count, i, described = 0;
        rd_kafka_get_err_descs(&table, &count);
        CHECK(count == RD_KAFKA_RESP_ERR_END_ALL - RD_KAFKA_RESP_ERR__BEGIN);
        for (i = 0; i < count; i++) {
                int code = (int)i + RD_KAFKA_RESP_ERR__BEGIN;
                int is_border = code == RD_KAFKA_RESP_ERR__BEGIN || code == RD_KAFKA_RESP_ERR__END;
                if (!table[i].name) {
                        CHECK(table[i].code == 0 && !table[i].desc);
                        continue;
                }
                CHECK(table[i].code == code && (table[i].desc == NULL) == is_border);
                if (table[i].desc) {
                        const char *start = code > 0 || code == RD_KAFKA_RESP_ERR__PARTITION_EOF ? "Broker: " : "Local: ";
                        described++;
                        CHECK(!strcmp(table[i].desc, rd_kafka_err2str(table[i].code)));
                        CHECK(code == 0 || code == -1 || !strncmp(table[i].desc, start, strlen(start)));
                }
        }
        CHECK(described == 188);
}

int main(void) {
        labels_and_names_are_the_established_ones();
        the_table_of_descriptions_starts_at_the_first_code();
        return bad != 0;
}
