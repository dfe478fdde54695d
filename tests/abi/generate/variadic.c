/* Functions whose arguments the table can't describe: a variable number of them, arrays of structs, a length in front. */
#include "runner.h"

struct entry {
        rd_kafka_vu_t vu;
        struct slot *headers;
};

/* Reads `topic="t"`, `partition=0`, `value="v"`, `key=NULL`, `flags=2`, `timestamp=5`, `header=h:"v"`, `headers=h1`, `rkt=t1`,
 * `opaque=7`; another name is a type that does not exist. */
static int entry_read(struct entry *entry, char *word) {
        char *text = strchr(word, '='), *colon;
        size_t size = 0;
        rd_kafka_vu_t *vu = &entry->vu;
        if (!text)
                return 0;
        *text = 0;
        if (!strcmp(word, "topic"))
                vu->vtype = RD_KAFKA_VTYPE_TOPIC, vu->u.cstr = unquoted(text + 1, &size);
        else if (!strcmp(word, "partition"))
                vu->vtype = RD_KAFKA_VTYPE_PARTITION, vu->u.i32 = (int32_t)number(text + 1);
        else if (!strcmp(word, "value") || !strcmp(word, "key")) {
                vu->vtype = *word == 'v' ? RD_KAFKA_VTYPE_VALUE : RD_KAFKA_VTYPE_KEY;
                vu->u.mem.ptr = unquoted(text + 1, &size);
                vu->u.mem.size = size;
        } else if (!strcmp(word, "flags"))
                vu->vtype = RD_KAFKA_VTYPE_MSGFLAGS, vu->u.i = (int)number(text + 1);
        else if (!strcmp(word, "timestamp"))
                vu->vtype = RD_KAFKA_VTYPE_TIMESTAMP, vu->u.i64 = number(text + 1);
        else if (!strcmp(word, "opaque"))
                vu->vtype = RD_KAFKA_VTYPE_OPAQUE, vu->u.ptr = (void *)number(text + 1);
        else if (!strcmp(word, "header") && (colon = strchr(text + 1, ':'))) {
                vu->vtype = RD_KAFKA_VTYPE_HEADER;
                vu->u.header.val = unquoted(colon + 1, &size);
                vu->u.header.size = (ssize_t)size;
                vu->u.header.name = strndup(text + 1, colon - text - 1);
        } else if (!strcmp(word, "headers") || !strcmp(word, "rkt")) {
                int is_topic = !strcmp(word, "rkt");
                struct slot *slot = slot_find(text + 1);
                if (!slot || !slot_usable(slot) || slot->kind != kind_named(is_topic ? "topic" : "headers") ||
                    (!is_topic && !slot->is_owned))
                        return *text = '=', 0;
                vu->vtype = is_topic ? RD_KAFKA_VTYPE_RKT : RD_KAFKA_VTYPE_HEADERS;
                if (is_topic)
                        vu->u.rkt = slot->pointer;
                else
                        vu->u.headers = slot->pointer, entry->headers = slot;
        } else
                vu->vtype = (rd_kafka_vtype_t)number(word), vu->u.i64 = number(text + 1);
        *text = '=';
        return 1;
}

/* Appends the arguments of an entry as they are passed to a function with a variable number of them. */
static int entry_arguments(const struct entry *entry, long *into) {
        const rd_kafka_vu_t *vu = &entry->vu;
        into[0] = vu->vtype;
        switch (vu->vtype) {
        case RD_KAFKA_VTYPE_VALUE:
        case RD_KAFKA_VTYPE_KEY: into[1] = (long)vu->u.mem.ptr, into[2] = (long)vu->u.mem.size; return 3;
        case RD_KAFKA_VTYPE_HEADER:
                into[1] = (long)vu->u.header.name, into[2] = (long)vu->u.header.val, into[3] = vu->u.header.size;
                return 4;
        case RD_KAFKA_VTYPE_PARTITION:
        case RD_KAFKA_VTYPE_MSGFLAGS: into[1] = vu->vtype == RD_KAFKA_VTYPE_PARTITION ? vu->u.i32 : vu->u.i; return 2;
        default: into[1] = (long)vu->u.i64; return 2;
        }
}

static struct slot *handle(const char *word, const char *kind) {
        struct slot *slot = slot_find(word);
        return slot && slot->kind == kind_named(kind) && slot_usable(slot) ? slot : NULL;
}

static void produce(struct step *step, struct slot *client) {
        struct entry entries[10];
        long v[48] = {0};
        int i, count = 0, used = 0, succeeded, is_placed = 0;
        memset(entries, 0, sizeof(entries));
        for (i = 2; i < step->count && count < 10; i++) {
                if (entry_read(&entries[count], step->words[i])) {
                        const rd_kafka_vu_t *vu = &entries[count++].vu;
                        is_placed |= vu->vtype == RD_KAFKA_VTYPE_KEY && vu->u.mem.size > 0;
                        is_placed |= vu->vtype == RD_KAFKA_VTYPE_PARTITION && vu->u.i32 != -1;
                }
        }
        is_anywhere |= !is_placed;
        if (!strcmp(step->words[0], "rd_kafka_produceva")) {
                rd_kafka_vu_t vus[10];
                rd_kafka_error_t *error;
                for (i = 0; i < count; i++)
                        vus[i] = entries[i].vu;
                error = API(rd_kafka_produceva)(client->pointer, vus, count);
                succeeded = !error;
                say("%d %s %s -> %s", step->line, succeeded ? "ok" : "no", step->words[0],
                    error ? API(rd_kafka_error_name)(error) : "no error");
                if (error)
                        API(rd_kafka_error_destroy)(error);
        } else {
                rd_kafka_resp_err_t err;
                for (i = 0; i < count && used < 40; i++)
                        used += entry_arguments(&entries[i], v + used);
                err = API(rd_kafka_producev)(client->pointer, v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10], v[11],
                                             v[12], v[13], v[14], v[15], v[16], v[17], v[18], v[19], v[20], v[21], v[22], v[23],
                                             v[24], v[25], v[26], v[27], v[28], v[29], v[30], v[31], v[32], v[33], v[34], v[35],
                                             v[36], v[37], v[38], v[39], v[40]);
                succeeded = !err;
                say("%d %s %s -> %s", step->line, succeeded ? "ok" : "no", step->words[0], error_name(err));
        }
        for (i = 0; i < count && succeeded; i++)
                if (entries[i].headers && entries[i].headers->pointer)
                        slot_forget(entries[i].headers);
}

/* `rd_kafka_produce_batch TOPIC PARTITION FLAGS COUNT` */
static void produce_batch(struct step *step, struct slot *topic) {
        rd_kafka_message_t messages[8];
        int i, done, count = (int)number(step->words[4]);
        char text[1000] = "";
        memset(messages, 0, sizeof(messages));
        is_anywhere |= number(step->words[2]) == -1;
        count = count > 8 ? 8 : count;
        for (i = 0; i < count; i++) {
                messages[i].payload = strdup("batch");
                messages[i].len = 5;
                messages[i].partition = i % 3;
        }
        done = API(rd_kafka_produce_batch)(topic->pointer, (int32_t)number(step->words[2]), (int)number(step->words[3]), messages,
                                           count);
        for (i = 0; i < count; i++)
                add(text, sizeof(text), " %s", error_name(messages[i].err));
        say("%d %s %s -> %d%s", step->line, done == count ? "ok" : "no", step->words[0], done, text);
}

/* Errors for the next requests of a mock cluster; each is a code, for `rtts` followed by a delay. */
static void push(struct step *step, struct slot *cluster) {
        long v[12] = {0};
        const char *name = step->words[0];
        int i, at = 0, is_topic = !strcmp(name, "rd_kafka_mock_partition_push_request_errors"),
               is_broker = !strcmp(name, "rd_kafka_mock_broker_push_request_error_rtts");
        int first = is_topic ? 5 : is_broker ? 4 : 3;
        rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR_NO_ERROR;
        size_t size;
        if (step->count < first)
                return;
        for (i = first; i < step->count && at < 8; i++)
                v[at++] = number(step->words[i]);
        if (is_topic)
                err = API(rd_kafka_mock_partition_push_request_errors)(cluster->pointer, unquoted(step->words[2], &size),
                                                                       (int32_t)number(step->words[3]),
                                                                       (int16_t)number(step->words[4]), at, v[0], v[1], v[2], v[3],
                                                                       v[4], v[5], v[6], v[7]);
        else if (is_broker)
                err = API(rd_kafka_mock_broker_push_request_error_rtts)(cluster->pointer, (int32_t)number(step->words[2]),
                                                                        (int16_t)number(step->words[3]), at / 2, v[0], v[1], v[2],
                                                                        v[3], v[4], v[5], v[6], v[7]);
        else
                API(rd_kafka_mock_push_request_errors)(cluster->pointer, (int16_t)number(step->words[2]), at, v[0], v[1], v[2], v[3],
                                                       v[4], v[5], v[6], v[7]);
        say("%d %s %s -> %s", step->line, err ? "no" : "ok", name, error_name(err));
}

/* `H = rd_kafka_mock_cgrp_consumer_target_assignment_new CLIENT LIST`: the list for the member that the client is. */
static void target_new(struct step *step, struct slot *client) {
        struct slot *list = step->count > 2 ? handle(step->words[2], "topic_partition_list") : NULL;
        char *member = API(rd_kafka_memberid)(client->pointer);
        rd_kafka_topic_partition_list_t *lists[1] = {list ? list->pointer : NULL};
        void *made;
        if (!list || !member || !step->name_count) {
                say("%d skipped %s", step->line, step->words[0]);
                return;
        }
        made = API(rd_kafka_mock_cgrp_consumer_target_assignment_new)(&member, 1, lists);
        say("%d %s %s -> %s", step->line, made ? "ok" : "no", step->words[0], made ? "present" : "NULL");
        slot_put(step->names[0], made, kind_named("mock_cgrp_consumer_target_assignment"), 1, -1, -1);
}

/* `rd_kafka_mock_sharegroup_target_assignment CLUSTER GROUP LIST`: the list for all members. */
static void share_target(struct step *step, struct slot *cluster) {
        struct slot *list = step->count > 3 ? handle(step->words[3], "topic_partition_list") : NULL;
        size_t size, count = 0, i;
        char **members = NULL, *group = step->count > 2 ? unquoted(step->words[2], &size) : NULL;
        rd_kafka_topic_partition_list_t *lists[16];
        if (!list || !group || API(rd_kafka_mock_sharegroup_get_member_ids)(cluster->pointer, group, &members, &count)) {
                say("%d no %s", step->line, step->words[0]);
                return;
        }
        for (i = 0; i < 16; i++)
                lists[i] = list->pointer;
        API(rd_kafka_mock_sharegroup_target_assignment)(cluster->pointer, group, (const char **)members, lists,
                                                        count < 16 ? count : 16);
        say("%d ok %s -> void", step->line, step->words[0]);
        say("%d ok rd_kafka_mock_sharegroup_get_member_ids -> _", step->line);
}

int variadic_run(struct step *step) {
        static const struct {
                const char *name, *kind;
                void (*run)(struct step *, struct slot *);
        } functions[] = {
            {"rd_kafka_producev", "client", produce},
            {"rd_kafka_produceva", "client", produce},
            {"rd_kafka_produce_batch", "topic", produce_batch},
            {"rd_kafka_mock_push_request_errors", "mock_cluster", push},
            {"rd_kafka_mock_broker_push_request_error_rtts", "mock_cluster", push},
            {"rd_kafka_mock_partition_push_request_errors", "mock_cluster", push},
            {"rd_kafka_mock_cgrp_consumer_target_assignment_new", "client", target_new},
            {"rd_kafka_mock_sharegroup_target_assignment", "mock_cluster", share_target},
        };
        size_t i, size;
        if (!strcmp(step->words[0], "rd_kafka_error_new") && step->count == 3 && step->name_count) {
                char *text = unquoted(step->words[2], &size);
                void *made = API(rd_kafka_error_new)((rd_kafka_resp_err_t)number(step->words[1]), text ? "%s" : NULL, text);
                say("%d ok %s -> present", step->line, step->words[0]);
                slot_put(step->names[0], made, kind_named("error"), 1, -1, -1);
                return 1;
        }
        for (i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
                if (!strcmp(step->words[0], functions[i].name)) {
                        struct slot *slot = step->count > 1 ? handle(step->words[1], functions[i].kind) : NULL;
                        if (slot)
                                functions[i].run(step, slot);
                        else
                                say("%d skipped %s: no %s", step->line, step->words[0], step->count > 1 ? step->words[1] : "");
                        return 1;
                }
        return 0;
}
