/* Steps that are not one call: they wait until something is there, so that a program does not depend on the speed. */
#include "runner.h"
#include "callbacks.h"

#define WAIT_MS 4000

struct thread {
        pthread_t thread;
        struct block *block;
        int index;
        int is_running;
};
static struct thread threads[3];
static int thread_count;
static pthread_mutex_t meeting = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t met = PTHREAD_COND_INITIALIZER;
static char arrived[16][NAME];
static int arrived_count;

static struct slot *handle(struct step *step, int at, const char *kind) {
        struct slot *slot = at < step->count ? slot_find(step->words[at]) : NULL;
        return slot && slot->kind == kind_named(kind) && slot_usable(slot) ? slot : NULL;
}

static const char *name_of(struct step *step) { return step->name_count ? step->names[0] : "_"; }

static int root_of(const struct slot *slot) { return slot->root >= 0 ? slot->root : slot_index(slot); }

static void *thread_main(void *argument) {
        struct thread *self = argument;
        thread_index = self->index;
        stream = self->block->name;
        block_run(self->block);
        *progress->at[thread_index] = 0;
        return NULL;
}

/* `start NAME` */
static void start(struct step *step) {
        struct block *block = step->count > 1 ? block_named(step->words[1]) : NULL;
        struct thread *thread = &threads[thread_count];
        if (!block || !block->is_thread || thread_count == 3 || thread_index != 0 || callback_depth)
                return;
        thread->block = block;
        thread->index = ++thread_count;
        thread->is_running = 1;
        other_threads++;
        pthread_create(&thread->thread, NULL, thread_main, thread);
}

/* `join`: waits for all threads. */
static void join(struct step *step) {
        int i;
        (void)step;
        if (thread_index != 0 || callback_depth)
                return;
        for (i = 0; i < thread_count; i++)
                if (threads[i].is_running) {
                        pthread_join(threads[i].thread, NULL);
                        threads[i].is_running = 0;
                        other_threads--;
                }
}

/* `meet NAME`: waits until two threads are there, or for a second. */
static void meet(struct step *step) {
        struct timespec until;
        const char *name = step->count > 1 ? step->words[1] : "";
        int i, waits = 1;
        pthread_mutex_lock(&meeting);
        for (i = 0; i < arrived_count; i++)
                if (!strcmp(arrived[i], name)) {
                        *arrived[i] = 0;
                        waits = 0;
                        pthread_cond_broadcast(&met);
                        break;
                }
        if (waits && arrived_count < 16) {
                int mine = arrived_count++;
                snprintf(arrived[mine], NAME, "%s", name);
                clock_gettime(CLOCK_REALTIME, &until);
                until.tv_sec += 1;
                while (*arrived[mine] && !pthread_cond_timedwait(&met, &meeting, &until))
                        ;
                *arrived[mine] = 0;
        }
        pthread_mutex_unlock(&meeting);
}

/* `E = await QUEUE TYPE`: polls until an event of this type is there, 0 for any; other events are dropped. */
static void await(struct step *step) {
        struct slot *queue = handle(step, 1, "queue");
        int type = step->count > 2 ? (int)number(step->words[2]) : 0;
        long ends = millis() + paced(WAIT_MS);
        char text[3000] = "";
        if (!queue) {
                say("%d skipped await", step->line);
                return;
        }
        while (millis() < ends) {
                rd_kafka_event_t *event = API(rd_kafka_queue_poll)(queue->pointer, 100);
                int got = event ? API(rd_kafka_event_type)(event) : 0;
                int is_noise = got == RD_KAFKA_EVENT_LOG || got == RD_KAFKA_EVENT_STATS || got == RD_KAFKA_EVENT_ERROR;
                if (event && (type ? got == type : !is_noise)) {
                        describe(text, sizeof(text), kind_named("event"), event);
                        say("%d ok rd_kafka_queue_poll -> %s", step->line, text);
                        slot_put(name_of(step), event, kind_named("event"), 1, root_of(queue), -1);
                        return;
                }
                if (event)
                        API(rd_kafka_event_destroy)(event);
        }
        say("%d no rd_kafka_queue_poll -> NULL", step->line);
}

/* `reports CLIENT COUNT`: polls until the program has seen this many delivery reports. */
static void reports(struct step *step) {
        struct slot *client = handle(step, 1, "client");
        int count = step->count > 2 ? (int)number(step->words[2]) : 0;
        long ends = millis() + paced(WAIT_MS);
        if (!client)
                return;
        while (reports_seen < count && millis() < ends)
                API(rd_kafka_poll)(client->pointer, 50);
        say("%d %s rd_kafka_poll -> reports", step->line, reports_seen >= count ? "ok" : "no");
}

/* `M = next CLIENT`: polls a consumer until there is a message or an error. */
static void next(struct step *step) {
        struct slot *client = handle(step, 1, "client");
        long ends = millis() + paced(WAIT_MS);
        rd_kafka_message_t *message = NULL;
        char text[3000] = "";
        if (!client) {
                say("%d skipped next", step->line);
                return;
        }
        while (!message && millis() < ends)
                message = API(rd_kafka_consumer_poll)(client->pointer, 100);
        describe_message(text, sizeof(text), message);
        say("%d %s rd_kafka_consumer_poll -> %s", step->line, message && !message->err ? "ok" : "no", text);
        slot_put(name_of(step), message, kind_named("message"), 1, root_of(client), -1);
}

/* `M = shared SHARE`: polls a share consumer until there are messages or an error. */
static void shared(struct step *step) {
        struct slot *share = handle(step, 1, "share");
        long ends = millis() + paced(WAIT_MS);
        rd_kafka_messages_t *messages = NULL;
        rd_kafka_error_t *error = NULL;
        if (!share) {
                say("%d skipped shared", step->line);
                return;
        }
        while (!error && millis() < ends) {
                error = API(rd_kafka_share_poll)(share->pointer, 100, &messages);
                if (messages && API(rd_kafka_messages_count)(messages) > 0)
                        break;
                if (messages)
                        API(rd_kafka_messages_destroy)(messages);
                messages = NULL;
        }
        say("%d %s rd_kafka_share_poll -> %s %s", step->line, messages ? "ok" : "no", messages ? "messages" : "none",
            error ? API(rd_kafka_error_name)(error) : "");
        if (error)
                API(rd_kafka_error_destroy)(error);
        slot_put(name_of(step), messages, kind_named("messages"), 1, root_of(share), -1);
}

/* `offset LIST INDEX OFFSET`: sets a field of an element. */
static void offset(struct step *step) {
        struct slot *list = handle(step, 1, "topic_partition_list");
        rd_kafka_topic_partition_list_t *elements = list ? list->pointer : NULL;
        long index = step->count > 3 ? number(step->words[2]) : -1;
        if (elements && index >= 0 && index < elements->cnt)
                elements->elems[index].offset = number(step->words[3]);
}

/* `bootstrap CONF CLUSTER`, or `bootstrap CONF` for the embedded broker. */
static void bootstrap(struct step *step) {
        struct slot *conf = handle(step, 1, "conf"), *cluster = handle(step, 2, "mock_cluster");
        const char *servers = cluster ? API(rd_kafka_mock_cluster_bootstraps)(cluster->pointer) : getenv("GENERATE_BROKER");
        if (conf && servers)
                API(rd_kafka_conf_set)(conf->pointer, "bootstrap.servers", servers, NULL, 0);
}

/* `requests CLUSTER`: reads what the cluster received. */
static void requests(struct step *step) {
        struct slot *cluster = handle(step, 1, "mock_cluster");
        rd_kafka_mock_request_t **all;
        size_t count = 0, i;
        int is_sound = 1;
        if (!cluster)
                return;
        all = API(rd_kafka_mock_get_requests)(cluster->pointer, &count);
        for (i = 0; i < count; i++)
                is_sound = is_sound && API(rd_kafka_mock_request_id)(all[i]) >= 0 && API(rd_kafka_mock_request_api_key)(all[i]) >= 0 &&
                           API(rd_kafka_mock_request_timestamp)(all[i]) > 0;
        say("%d ok rd_kafka_mock_get_requests -> %s", step->line, is_sound ? "sound" : "wrong");
        if (count > 0) {
                note("rd_kafka_mock_request_id");
                note("rd_kafka_mock_request_api_key");
                note("rd_kafka_mock_request_timestamp");
                note(step->line % 2 ? "rd_kafka_mock_request_destroy" : "rd_kafka_mock_request_destroy_array");
        }
        if (all && step->line % 2) {
                for (i = 0; i < count; i++)
                        API(rd_kafka_mock_request_destroy)(all[i]);
                API(rd_kafka_mem_free)(NULL, all);
        } else if (all) {
                API(rd_kafka_mock_request_destroy_array)(all, count);
        }
}

/* `descriptions`: the list of all errors. */
static void descriptions(struct step *step) {
        const struct rd_kafka_err_desc *all;
        size_t count = 0, i, named = 0;
        API(rd_kafka_get_err_descs)(&all, &count);
        for (i = 0; i < count; i++)
                named += all[i].name != NULL;
        say("%d ok rd_kafka_get_err_descs -> %zu of %zu", step->line, named, count);
}

int builtin_run(struct step *step) {
        static const struct {
                const char *name;
                void (*run)(struct step *);
        } steps[] = {
            {"start", start},         {"join", join},         {"meet", meet},
            {"await", await},         {"reports", reports},   {"next", next},
            {"shared", shared},       {"offset", offset},     {"bootstrap", bootstrap},
            {"requests", requests},   {"descriptions", descriptions},
        };
        size_t i;
        for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
                if (!strcmp(step->words[0], steps[i].name)) {
                        steps[i].run(step);
                        return 1;
                }
        if (!strcmp(step->words[0], "sleep")) {
                usleep((useconds_t)(step->count > 1 ? number(step->words[1]) : 0) * 1000);
                return 1;
        }
        return 0;
}
