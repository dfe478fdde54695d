/* Callbacks of every type. Each prints its arguments into the stream of its type and runs the block that the program gave it; the
 * block finds the arguments as cb_client, cb_message, cb_list, cb_event, cb_topic, cb_share. */
#include "runner.h"
#include "callbacks.h"
#include <sys/socket.h>

/* How often a block runs; callbacks of some types are called at any time. */
#define MAX_RUNS 3

int reports_seen;
static int next_thread = -2;

struct callback *callback_enter(struct frame *frame, const char *name) {
        int i;
        for (i = 0; callback_table[i].name && strcmp(callback_table[i].name, name); i++)
                ;
        memset(frame, 0, sizeof(*frame));
        if (thread_index == -1)
                thread_index = __sync_fetch_and_sub(&next_thread, 1);
        frame->callback = &callback_table[i];
        frame->stream = stream;
        stream = name;
        callback_depth++;
        return frame->callback;
}

static void argument(struct frame *frame, const char *name, void *pointer, const char *kind) {
        if (pointer && frame->count < 4 && frame->is_running)
                frame->slots[frame->count++] = slot_put(name, pointer, kind_named(kind), !strcmp(kind, "event"), -1, -1);
}

/* Decides whether the block runs. */
static void begin(struct frame *frame) {
        struct block *block = frame->callback->block;
        /* A callback that a call in a block causes does not run one. */
        frame->is_running = block && callback_depth == 1 && __sync_fetch_and_add(&block->runs, 1) < MAX_RUNS;
}

static void leave(struct frame *frame) {
        int i;
        if (frame->is_running)
                block_run(frame->callback->block);
        for (i = 0; i < frame->count; i++)
                if (frame->slots[i] && frame->slots[i]->pointer && !frame->slots[i]->is_owned)
                        slot_forget(frame->slots[i]);
        callback_depth--;
        stream = frame->stream;
}

#define ENTER(name)                                                                                                            \
        struct frame frame;                                                                                                    \
        char text[3000] = "";                                                                                                  \
        callback_enter(&frame, #name);                                                                                         \
        begin(&frame)
#define GIVE(name, pointer, kind) argument(&frame, name, (void *)(pointer), kind)
#define LEAVE() leave(&frame)
#define UNUSED __attribute__((unused))

static void on_event(rd_kafka_t *rk, rd_kafka_event_t *event, void *opaque UNUSED) {
        ENTER(event_cb);
        describe(text, sizeof(text), kind_named("event"), event);
        say("%s", text);
        GIVE("cb_client", rk, "client");
        GIVE("cb_event", event, "event");
        if (frame.count < 2 || !frame.slots[1])
                API(rd_kafka_event_destroy)(event);
        LEAVE();
        if (frame.count == 2 && frame.slots[1] && frame.slots[1]->pointer) {
                slot_forget(frame.slots[1]);
                API(rd_kafka_event_destroy)(event);
        }
}
static void on_dr(rd_kafka_t *rk, void *payload UNUSED, size_t length, rd_kafka_resp_err_t err, void *opaque UNUSED,
                  void *msg_opaque UNUSED) {
        ENTER(dr_cb);
        __sync_fetch_and_add(&reports_seen, 1);
        say("%s length %zu%s", error_name(err), length, text);
        GIVE("cb_client", rk, "client");
        LEAVE();
}
static void on_dr_msg(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque UNUSED) {
        ENTER(dr_msg_cb);
        __sync_fetch_and_add(&reports_seen, 1);
        describe_message(text, sizeof(text), message);
        say("%s", text);
        GIVE("cb_client", rk, "client");
        GIVE("cb_message", message, "message");
        GIVE("cb_topic", message->rkt, "topic");
        LEAVE();
}
static void on_consume(rd_kafka_message_t *message, void *opaque UNUSED) {
        ENTER(consume_cb);
        describe_message(text, sizeof(text), message);
        say("%s", text);
        GIVE("cb_message", message, "message");
        GIVE("cb_topic", message->rkt, "topic");
        LEAVE();
}
/* Does what the contract asks of the callback, whatever its block did. */
static void answer_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *list) {
        const char *protocol = API(rd_kafka_rebalance_protocol)(rk);
        int is_assignment = err == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
        rd_kafka_error_t *error;
        if (!protocol || strcmp(protocol, "COOPERATIVE")) {
                API(rd_kafka_assign)(rk, is_assignment ? list : NULL);
                return;
        }
        error = is_assignment ? API(rd_kafka_incremental_assign)(rk, list) : API(rd_kafka_incremental_unassign)(rk, list);
        if (error)
                API(rd_kafka_error_destroy)(error);
}
static void on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *list, void *opaque UNUSED) {
        ENTER(rebalance_cb);
        describe_list(text, sizeof(text), list);
        say("%s %s", error_name(err), text);
        GIVE("cb_client", rk, "client");
        GIVE("cb_list", list, "topic_partition_list");
        LEAVE();
        answer_rebalance(rk, err, list);
}
static void on_commit(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *list, void *opaque UNUSED) {
        ENTER(offset_commit_cb);
        describe_list(text, sizeof(text), list);
        say("%s %s", error_name(err), text);
        GIVE("cb_client", rk, "client");
        GIVE("cb_list", list, "topic_partition_list");
        LEAVE();
}
static void on_error(rd_kafka_t *rk, int err, const char *reason, void *opaque UNUSED) {
        ENTER(error_cb);
        say("%s %s%s", error_name(err), present(reason), text);
        GIVE("cb_client", rk, "client");
        LEAVE();
}
static void on_throttle(rd_kafka_t *rk, const char *broker UNUSED, int32_t id UNUSED, int time UNUSED, void *opaque UNUSED) {
        ENTER(throttle_cb);
        say("throttled%s", text);
        GIVE("cb_client", rk, "client");
        LEAVE();
}
static void on_log(const rd_kafka_t *rk, int level UNUSED, const char *facility UNUSED, const char *line UNUSED) {
        ENTER(log_cb);
        say("log%s", text);
        GIVE("cb_client", rk, "client");
        LEAVE();
}
static int on_stats(rd_kafka_t *rk, char *json, size_t length, void *opaque UNUSED) {
        ENTER(stats_cb);
        say("statistics %s%s", strlen(json) == length ? "right" : "wrong", text);
        GIVE("cb_client", rk, "client");
        LEAVE();
        return 0;
}
static void on_token(rd_kafka_t *rk, const char *config, void *opaque UNUSED) {
        ENTER(oauthbearer_token_refresh_cb);
        say("refresh %s%s", quoted(config), text);
        GIVE("cb_client", rk, "client");
        LEAVE();
}
static int on_socket(int domain, int type, int protocol, void *opaque UNUSED) {
        ENTER(socket_cb);
        say("socket%s", text);
        LEAVE();
        return socket(domain, type, protocol);
}
static int on_connect(int socket, const struct sockaddr *address, int length, const char *id UNUSED, void *opaque UNUSED) {
        ENTER(connect_cb);
        say("connect%s", text);
        LEAVE();
        return connect(socket, address, (socklen_t)length) ? errno : 0;
}
static int on_close(int socket, void *opaque UNUSED) {
        ENTER(closesocket_cb);
        say("close%s", text);
        LEAVE();
        return close(socket);
}
static int32_t on_partition(const rd_kafka_topic_t *rkt, const void *key UNUSED, size_t length UNUSED, int32_t partitions,
                            void *opaque UNUSED, void *msg_opaque UNUSED) {
        ENTER(partitioner);
        say("of %d%s", partitions, text);
        GIVE("cb_topic", rkt, "topic");
        LEAVE();
        return partitions - 1;
}
static int on_order(const rd_kafka_message_t *a UNUSED, const rd_kafka_message_t *b UNUSED) { return 0; }
/* Sorts by partition, descending. */
static int on_compare(const void *a, const void *b, void *opaque UNUSED) {
        return ((const rd_kafka_topic_partition_t *)b)->partition - ((const rd_kafka_topic_partition_t *)a)->partition;
}
static void on_acknowledged(rd_kafka_share_t *share, rd_kafka_share_partition_offsets_list_t *list, rd_kafka_resp_err_t err,
                            void *opaque UNUSED) {
        ENTER(share_acknowledgement_commit_cb);
        say("%s partitions %zu%s", error_name(err), API(rd_kafka_share_partition_offsets_list_count)(list), text);
        GIVE("cb_share", share, "share");
        GIVE("cb_offsets", list, "share_partition_offsets_list");
        LEAVE();
}
static void on_queue(rd_kafka_t *rk, void *opaque UNUSED) {
        ENTER(queue_cb);
        say("queue%s", text);
        GIVE("cb_client", rk, "client");
        LEAVE();
}
static rd_kafka_conf_res_t on_conf_set(rd_kafka_conf_t *conf, const char *name, const char *value, char *errstr UNUSED,
                                       size_t size UNUSED, void *opaque UNUSED) {
        ENTER(on_conf_set);
        say("%s %s%s", name, quoted(value), text);
        GIVE("cb_conf", conf, "conf");
        LEAVE();
        return RD_KAFKA_CONF_UNKNOWN;
}
static rd_kafka_resp_err_t on_conf_dup(rd_kafka_conf_t *conf, const rd_kafka_conf_t *old UNUSED, size_t count,
                                       const char **filter UNUSED, void *opaque UNUSED) {
        ENTER(on_conf_dup);
        say("filters %zu%s", count, text);
        GIVE("cb_conf", conf, "conf");
        LEAVE();
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}
static rd_kafka_resp_err_t on_conf_destroy(void *opaque UNUSED) {
        ENTER(on_conf_destroy);
        say("destroy%s", text);
        LEAVE();
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}
static rd_kafka_resp_err_t on_new(rd_kafka_t *rk, const rd_kafka_conf_t *conf UNUSED, void *opaque UNUSED, char *errstr UNUSED,
                                  size_t size UNUSED) {
        ENTER(on_new);
        say("new%s", text);
        GIVE("cb_client", rk, "client");
        LEAVE();
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}
static rd_kafka_resp_err_t on_destroy(rd_kafka_t *rk UNUSED, void *opaque UNUSED) {
        ENTER(on_destroy);
        say("destroy%s", text);
        LEAVE();
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}
#define ON_MESSAGE(name)                                                                                                       \
        static rd_kafka_resp_err_t name(rd_kafka_t *rk, rd_kafka_message_t *message, void *opaque UNUSED) {                    \
                ENTER(name);                                                                                                   \
                add(text, sizeof(text), "[%d] %s", message->partition, error_name(message->err));                              \
                say("%s", text);                                                                                               \
                GIVE("cb_client", rk, "client");                                                                               \
                GIVE("cb_message", message, "message");                                                                        \
                LEAVE();                                                                                                       \
                return RD_KAFKA_RESP_ERR_NO_ERROR;                                                                             \
        }
ON_MESSAGE(on_send)
ON_MESSAGE(on_acknowledgement)
ON_MESSAGE(on_consume_message)
static rd_kafka_resp_err_t on_committed(rd_kafka_t *rk, const rd_kafka_topic_partition_list_t *list, rd_kafka_resp_err_t err,
                                        void *opaque UNUSED) {
        ENTER(on_commit);
        describe_list(text, sizeof(text), list);
        say("%s %s", error_name(err), text);
        GIVE("cb_client", rk, "client");
        LEAVE();
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}
static rd_kafka_resp_err_t on_request(rd_kafka_t *rk UNUSED, int socket UNUSED, const char *broker UNUSED, int32_t id UNUSED,
                                      int16_t key UNUSED, int16_t version UNUSED, int32_t correlation UNUSED, size_t size UNUSED,
                                      void *opaque UNUSED) {
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}
static rd_kafka_resp_err_t on_response(rd_kafka_t *rk UNUSED, int socket UNUSED, const char *broker UNUSED, int32_t id UNUSED,
                                       int16_t key UNUSED, int16_t version UNUSED, int32_t correlation UNUSED,
                                       size_t size UNUSED, int64_t time UNUSED, rd_kafka_resp_err_t err UNUSED,
                                       void *opaque UNUSED) {
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}
static rd_kafka_resp_err_t on_thread(rd_kafka_t *rk UNUSED, rd_kafka_thread_type_t type UNUSED, const char *name UNUSED,
                                     void *opaque UNUSED) {
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}
static rd_kafka_resp_err_t on_state(rd_kafka_t *rk UNUSED, int32_t id UNUSED, const char *secproto UNUSED,
                                    const char *name UNUSED, int port UNUSED, const char *state UNUSED, void *opaque UNUSED) {
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}
static int on_verify(rd_kafka_t *rk UNUSED, const char *broker UNUSED, int32_t id UNUSED, int *error UNUSED, int depth UNUSED,
                     const char *buffer UNUSED, size_t size UNUSED, char *errstr UNUSED, size_t errstr_size UNUSED,
                     void *opaque UNUSED) {
        return 1;
}

struct callback callback_table[] = {
    {"event_cb", (void *)on_event, NULL},
    {"dr_cb", (void *)on_dr, NULL},
    {"dr_msg_cb", (void *)on_dr_msg, NULL},
    {"consume_cb", (void *)on_consume, NULL},
    {"rebalance_cb", (void *)on_rebalance, NULL},
    {"offset_commit_cb", (void *)on_commit, NULL},
    {"error_cb", (void *)on_error, NULL},
    {"throttle_cb", (void *)on_throttle, NULL},
    {"log_cb", (void *)on_log, NULL},
    {"stats_cb", (void *)on_stats, NULL},
    {"oauthbearer_token_refresh_cb", (void *)on_token, NULL},
    {"socket_cb", (void *)on_socket, NULL},
    {"connect_cb", (void *)on_connect, NULL},
    {"closesocket_cb", (void *)on_close, NULL},
    {"ssl_cert_verify_cb", (void *)on_verify, NULL},
    {"partitioner", (void *)on_partition, NULL},
    {"msg_order_cmp", (void *)on_order, NULL},
    {"cmp", (void *)on_compare, NULL},
    {"share_acknowledgement_commit_cb", (void *)on_acknowledged, NULL},
    {"queue_cb", (void *)on_queue, NULL},
    {"on_conf_set", (void *)on_conf_set, NULL},
    {"on_conf_dup", (void *)on_conf_dup, NULL},
    {"on_conf_destroy", (void *)on_conf_destroy, NULL},
    {"on_new", (void *)on_new, NULL},
    {"on_destroy", (void *)on_destroy, NULL},
    {"on_send", (void *)on_send, NULL},
    {"on_acknowledgement", (void *)on_acknowledgement, NULL},
    {"on_consume_message", (void *)on_consume_message, NULL},
    {"on_commit", (void *)on_committed, NULL},
    {"on_request_sent", (void *)on_request, NULL},
    {"on_response_received", (void *)on_response, NULL},
    {"on_thread_start", (void *)on_thread, NULL},
    {"on_thread_exit", (void *)on_thread, NULL},
    {"on_broker_state_change", (void *)on_state, NULL},
    {NULL, NULL, NULL},
};

/* Returns the callback of a type, which runs this block from now on; NULL for none. */
void *callback_for(const char *name, const char *block) {
        int i;
        if (!block)
                return NULL;
        for (i = 0; callback_table[i].name; i++)
                if (!strcmp(callback_table[i].name, name)) {
                        callback_table[i].block = block_named(block);
                        return callback_table[i].function;
                }
        return NULL;
}
