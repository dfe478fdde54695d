/* What a program can observe of lists, messages, events and metadata, as text without anything that differs between runs. */
#include "runner.h"

void add(char *text, size_t room, const char *format, ...) {
        size_t begin = strlen(text);
        va_list args;
        va_start(args, format);
        vsnprintf(text + begin, room - begin, format, args);
        va_end(args);
}

const char *error_name(int code) { return API(rd_kafka_err2name)((rd_kafka_resp_err_t)code); }

const char *quoted(const char *text) {
        static __thread char buffers[4][400];
        static __thread int next;
        char *buffer = buffers[next++ % 4];
        if (!text)
                return "NULL";
        snprintf(buffer, sizeof(buffers[0]), "\"%.300s\"", text);
        return buffer;
}

const char *present(const char *text) { return !text ? "NULL" : *text ? "present" : "empty"; }

/* Offsets that a program names are exact; times of the clock are not. */
static void add_offset(char *text, size_t room, int64_t offset) {
        if (offset > 1000000000000LL && offset < 2000000000000LL)
                add(text, room, "TIME");
        else
                add(text, room, "%lld", (long long)offset);
}

void describe_list(char *text, size_t room, const rd_kafka_topic_partition_list_t *list) {
        int i;
        if (!list) {
                add(text, room, "NULL");
                return;
        }
        add(text, room, "list %d", list->cnt);
        for (i = 0; i < list->cnt && i < 12; i++) {
                const rd_kafka_topic_partition_t *p = &list->elems[i];
                add(text, room, " %s[%d]@", p->topic ? p->topic : "NULL", p->partition);
                add_offset(text, room, p->offset);
                if (p->err)
                        add(text, room, " %s", error_name(p->err));
                if (p->metadata)
                        add(text, room, " metadata %zu", p->metadata_size);
        }
}

static const char *status_name(int status) {
        return status == RD_KAFKA_MSG_STATUS_NOT_PERSISTED         ? "NOT_PERSISTED"
               : status == RD_KAFKA_MSG_STATUS_POSSIBLY_PERSISTED ? "POSSIBLY_PERSISTED"
                                                                   : "PERSISTED";
}

int is_anywhere;

void describe_message(char *text, size_t room, const rd_kafka_message_t *message) {
        rd_kafka_headers_t *headers = NULL;
        char partition[16];
        if (!message) {
                add(text, room, "NULL");
                return;
        }
        snprintf(partition, sizeof(partition), "%d", message->partition);
        add(text, room, "message %s[%s]@", message->rkt ? API(rd_kafka_topic_name)(message->rkt) : "NULL",
            is_anywhere ? "?" : partition);
        if (is_anywhere)
                add(text, room, "?");
        else
                add_offset(text, room, message->offset);
        /* The payload of an error is its text. */
        if (message->err)
                add(text, room, " %s", error_name(message->err));
        if (!message->err || API(rd_kafka_message_status)(message) != RD_KAFKA_MSG_STATUS_NOT_PERSISTED)
                add(text, room, " %s", message->err ? "" : status_name(API(rd_kafka_message_status)(message)));
        if (!message->err)
                add(text, room, " key %s/%zu value %.*s/%zu", message->key ? "present" : "NULL", message->key_len,
                    message->payload ? (int)(message->len < 20 ? message->len : 20) : 0,
                    message->payload ? (const char *)message->payload : "", message->len);
        if (API(rd_kafka_message_headers)(message, &headers) == 0 && headers)
                add(text, room, " headers %zu", API(rd_kafka_header_cnt)(headers));
}

static int is_about_partitions(int type) {
        return type == RD_KAFKA_EVENT_REBALANCE || type == RD_KAFKA_EVENT_OFFSET_COMMIT;
}

static void describe_event(char *text, size_t room, rd_kafka_event_t *event) {
        int type = API(rd_kafka_event_type)(event);
        add(text, room, "event %s %s", API(rd_kafka_event_name)(event), error_name(API(rd_kafka_event_error)(event)));
        if (is_about_partitions(type)) {
                add(text, room, " ");
                describe_list(text, room, API(rd_kafka_event_topic_partition_list)(event));
        }
}

static void describe_metadata(char *text, size_t room, const struct rd_kafka_metadata *metadata) {
        int i, j;
        add(text, room, "metadata brokers %d topics %d", metadata->broker_cnt, metadata->topic_cnt);
        for (i = 0; i < metadata->topic_cnt && i < 4; i++) {
                const struct rd_kafka_metadata_topic *topic = &metadata->topics[i];
                add(text, room, " %s %s", topic->topic, error_name(topic->err));
                for (j = 0; j < topic->partition_cnt && j < 6; j++)
                        add(text, room, " [%d] leader %d replicas %d %s", topic->partitions[j].id, topic->partitions[j].leader,
                            topic->partitions[j].replica_cnt, error_name(topic->partitions[j].err));
        }
}

static void describe_groups(char *text, size_t room, const struct rd_kafka_group_list *groups) {
        int i;
        add(text, room, "groups %d", groups->group_cnt);
        for (i = 0; i < groups->group_cnt && i < 4; i++)
                add(text, room, " %s %s %s %s members %d", groups->groups[i].group, error_name(groups->groups[i].err),
                    quoted(groups->groups[i].state), quoted(groups->groups[i].protocol_type), groups->groups[i].member_cnt);
}

void describe(char *text, size_t room, int kind, void *pointer) {
        const char *name = kinds[kind].name;
        if (!pointer)
                add(text, room, "NULL");
        else if (!strcmp(name, "topic_partition_list"))
                describe_list(text, room, pointer);
        else if (!strcmp(name, "message"))
                describe_message(text, room, pointer);
        else if (!strcmp(name, "event"))
                describe_event(text, room, pointer);
        else if (!strcmp(name, "metadata"))
                describe_metadata(text, room, pointer);
        else if (!strcmp(name, "group_list"))
                describe_groups(text, room, pointer);
        else if (!strcmp(name, "headers"))
                add(text, room, "headers %zu", API(rd_kafka_header_cnt)(pointer));
        else if (!strcmp(name, "messages"))
                add(text, room, "messages %zu", API(rd_kafka_messages_count)(pointer));
        else if (!strcmp(name, "topic_partition")) {
                rd_kafka_topic_partition_t *p = pointer;
                add(text, room, "partition %s[%d]@", p->topic ? p->topic : "NULL", p->partition);
                add_offset(text, room, p->offset);
                add(text, room, " %s", error_name(p->err));
        } else
                add(text, room, "present");
}
