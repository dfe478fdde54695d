/* Common parts of the programs of this folder: named cases, their transcripts, recorders of events and callbacks, and brokers.
 *
 * A case is a function; `CASE(name) { ... }` registers it. `PROGRAM --list` prints the names, `PROGRAM NAME` runs one case in
 * this process and prints its transcript. `cargo xtask abi --side-by-side` runs every case with Ottla's library and with the
 * original, and compares what they print.
 *
 * A transcript has to be the same on every run: print names and classes, never addresses, times, ids or counts that depend on
 * speed. Print what an application can rely on: return codes, errno, the order of callbacks, offsets, statuses.
 *
 * Pitfalls: `misuse` forks, so a client must not exist yet. A client's threads call log_cb, error events and stats at any time;
 * the recorders therefore keep sets or sequences that the case prints when it has waited for them. */
#ifndef SIDE_BY_SIDE_H
#define SIDE_BY_SIDE_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define UNUSED __attribute__((unused))

/* ---- Cases ---- */

/* The requirements and permissions of a case. The harness reads them from `--list`. */
enum sbs_kind {
        SBS_PLAIN,  /* needs no broker: CI runs it */
        SBS_BROKER, /* starts embedded brokers, or uses those of OTTLA_BOOTSTRAP */
        SBS_CRASH   /* the original may end with a signal: then nothing is compared, but Ottla must survive */
};

struct sbs_case {
        const char *name;
        enum sbs_kind kind;
        void (*run)(void);
};

#define SBS_MAX_CASES 2000
UNUSED static struct sbs_case sbs_cases[SBS_MAX_CASES];
UNUSED static int sbs_case_count;
/* The running case. */
UNUSED static const char *case_name = "";

UNUSED static void sbs_register(const char *name, enum sbs_kind kind, void (*run)(void)) {
        if (sbs_case_count == SBS_MAX_CASES)
                abort();
        sbs_cases[sbs_case_count].name = name;
        sbs_cases[sbs_case_count].kind = kind;
        sbs_cases[sbs_case_count++].run = run;
}

#define SBS_CASE(name, kind)                                                                                                   \
        static void sbs_run_##name(void);                                                                                      \
        __attribute__((constructor)) static void sbs_register_##name(void) {                                                   \
                sbs_register(#name, kind, sbs_run_##name);                                                                     \
        }                                                                                                                      \
        static void sbs_run_##name(void)
#define CASE(name) SBS_CASE(name, SBS_PLAIN)
#define BROKER_CASE(name) SBS_CASE(name, SBS_BROKER)
#define CRASH_CASE(name) SBS_CASE(name, SBS_CRASH)

/* ---- The transcript ---- */

UNUSED static pthread_mutex_t sbs_output = PTHREAD_MUTEX_INITIALIZER;

/* Replaces every `what` in a text that ends after `room` bytes. */
UNUSED static void sbs_scrub(char *text, size_t room, const char *what, const char *with) {
        char *at = text;
        if (!what || !*what)
                return;
        while ((at = strstr(at, what))) {
                size_t rest = strlen(at + strlen(what)) + 1;
                if ((size_t)(at - text) + strlen(with) + rest > room)
                        return;
                memmove(at + strlen(with), at + strlen(what), rest);
                memcpy(at, with, strlen(with));
                at += strlen(with);
        }
}

/* Prints one line of the transcript; a newline is added. Servers and the suffix of topics are replaced by fixed words. */
__attribute__((format(printf, 1, 2))) UNUSED static void say(const char *format, ...) {
        char line[16384];
        va_list args;
        int kept = errno;
        va_start(args, format);
        vsnprintf(line, sizeof(line), format, args);
        va_end(args);
        sbs_scrub(line, sizeof(line), getenv("SBS_BOOTSTRAP"), "BOOTSTRAP");
        sbs_scrub(line, sizeof(line), getenv("SBS_SUFFIX"), "");
        pthread_mutex_lock(&sbs_output);
        fputs(line, stdout);
        fputc('\n', stdout);
        fflush(stdout);
        pthread_mutex_unlock(&sbs_output);
        errno = kept;
}

/* Formats a text: NULL, quoted, or "present" if the libraries word it differently. */
UNUSED static const char *quoted(const char *text) {
        static __thread char buffers[8][1024];
        static __thread int next;
        char *buffer = buffers[next++ % 8];
        if (!text)
                return "NULL";
        snprintf(buffer, sizeof(buffers[0]), "\"%s\"", text);
        return buffer;
}
UNUSED static const char *present(const char *text) { return !text ? "NULL" : *text ? "present" : "empty"; }

UNUSED static const char *err(rd_kafka_resp_err_t code) { return rd_kafka_err2name(code); }

UNUSED static const char *conf_res(rd_kafka_conf_res_t result) {
        return result == RD_KAFKA_CONF_OK ? "OK" : result == RD_KAFKA_CONF_INVALID ? "INVALID" : "UNKNOWN";
}

UNUSED static const char *errno_name(int number) {
        static __thread char buffer[32];
        switch (number) {
        case 0: return "0";
        case EINVAL: return "EINVAL";
        case ENOENT: return "ENOENT";
        case ENOBUFS: return "ENOBUFS";
        case EMSGSIZE: return "EMSGSIZE";
        case ESRCH: return "ESRCH";
        case ETIMEDOUT: return "ETIMEDOUT";
        case EEXIST: return "EEXIST";
        case ECANCELED: return "ECANCELED";
        case EBUSY: return "EBUSY";
        case ENOEXEC: return "ENOEXEC";
        default: snprintf(buffer, sizeof(buffer), "errno %d", number); return buffer;
        }
}

/* Prints an error object, and destroys it. */
UNUSED static void say_error(const char *what, rd_kafka_error_t *error) {
        if (!error) {
                say("%s: no error", what);
                return;
        }
        say("%s: %s fatal %d retriable %d abort %d text %s", what, rd_kafka_error_name(error), rd_kafka_error_is_fatal(error),
            rd_kafka_error_is_retriable(error), rd_kafka_error_txn_requires_abort(error), present(rd_kafka_error_string(error)));
        rd_kafka_error_destroy(error);
}

UNUSED static const char *offset_name(int64_t offset) {
        static __thread char buffers[8][32];
        static __thread int next;
        char *buffer = buffers[next++ % 8];
        switch (offset) {
        case RD_KAFKA_OFFSET_BEGINNING: return "BEGINNING";
        case RD_KAFKA_OFFSET_END: return "END";
        case RD_KAFKA_OFFSET_STORED: return "STORED";
        case RD_KAFKA_OFFSET_INVALID: return "INVALID";
        default: snprintf(buffer, sizeof(buffers[0]), "%lld", (long long)offset); return buffer;
        }
}

UNUSED static void say_partitions(const char *what, const rd_kafka_topic_partition_list_t *list) {
        int i;
        if (!list) {
                say("%s: NULL", what);
                return;
        }
        say("%s: %d", what, list->cnt);
        for (i = 0; i < list->cnt; i++) {
                const rd_kafka_topic_partition_t *p = &list->elems[i];
                say("  %s [%d] offset %s error %s metadata %s/%zu opaque %s epoch %d", p->topic, p->partition,
                    offset_name(p->offset), err(p->err), p->metadata ? "present" : "NULL", p->metadata_size,
                    p->opaque ? "present" : "NULL", rd_kafka_topic_partition_get_leader_epoch(p));
        }
}

/* Calls that may crash the original run in a child; its lines go into the transcript. If only the original crashes, the harness does not compare them. */
#define misuse(label)                                                                                                          \
        for (int sbs_child = sbs_misuse(label); sbs_child; sbs_child = 0, fflush(stdout), _exit(0))
UNUSED static int sbs_misuse(const char *label) {
        pid_t child;
        int status = 0;
        struct rlimit no_core = {0, 0};
        fflush(stdout);
        child = fork();
        if (child == 0) {
                setrlimit(RLIMIT_CORE, &no_core);
                freopen("/dev/null", "w", stderr);
                alarm(20);
                say("misuse %s begins", label);
                return 1;
        }
        if (child < 0 || waitpid(child, &status, 0) != child)
                abort();
        say("misuse %s %s", label, WIFSIGNALED(status) ? "CRASHES" : "ends");
        return 0;
}

/* ---- Time ---- */

/* Milliseconds of the monotonic clock. */
UNUSED static long millis(void) {
        struct timespec time;
        clock_gettime(CLOCK_MONOTONIC, &time);
        return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

/* Classifies the time since `began` for a call with this timeout, which should be 400 ms or more. */
UNUSED static const char *took(long began, long timeout) {
        long spent = millis() - began;
        if (spent < timeout / 2)
                return "at once";
        if (spent < timeout - timeout / 20 - 5)
                return "before the timeout";
        return spent < timeout + 8000 ? "at the timeout" : "late";
}

/* The timeout of waits for an expected event, in milliseconds; only a failure waits this long. */
#define TIMEOUT_MS 10000

/* Repeats the step until the condition holds; prints a line after a timeout. */
#define UNTIL(condition, step)                                                                                                 \
        do {                                                                                                                   \
                long sbs_ends = millis() + TIMEOUT_MS;                                                                           \
                int sbs_holds;                                                                                                 \
                while (!(sbs_holds = !!(condition)) && millis() < sbs_ends) {                                                  \
                        step;                                                                                                  \
                }                                                                                                              \
                if (!sbs_holds)                                                                                                \
                        say("NEVER: %s", #condition);                                                                          \
        } while (0)
#define WAIT_FOR(condition) UNTIL(condition, usleep(5000))

/* ---- Recorders ---- */

/* A list of lines that callbacks of any thread append to, and that the case prints when it is complete. */
struct recorder {
        pthread_mutex_t lock;
        char *lines[4096];
        int count;
};
#define RECORDER {PTHREAD_MUTEX_INITIALIZER, {0}, 0}

__attribute__((format(printf, 2, 3))) UNUSED static void record(struct recorder *recorder, const char *format, ...) {
        char line[4096];
        va_list args;
        va_start(args, format);
        vsnprintf(line, sizeof(line), format, args);
        va_end(args);
        pthread_mutex_lock(&recorder->lock);
        if (recorder->count < 4096)
                recorder->lines[recorder->count++] = strdup(line);
        pthread_mutex_unlock(&recorder->lock);
}

UNUSED static int recorded(struct recorder *recorder) {
        int count;
        pthread_mutex_lock(&recorder->lock);
        count = recorder->count;
        pthread_mutex_unlock(&recorder->lock);
        return count;
}

/* Returns the number of recorded lines that contain the text. */
UNUSED static int recorded_with(struct recorder *recorder, const char *text) {
        int i, count = 0;
        pthread_mutex_lock(&recorder->lock);
        for (i = 0; i < recorder->count; i++)
                count += strstr(recorder->lines[i], text) != NULL;
        pthread_mutex_unlock(&recorder->lock);
        return count;
}

/* Prints the lines in the order of their arrival. */
UNUSED static void say_recorded(const char *what, struct recorder *recorder) {
        int i;
        pthread_mutex_lock(&recorder->lock);
        say("%s:", what);
        for (i = 0; i < recorder->count; i++)
                say("  %s", recorder->lines[i]);
        pthread_mutex_unlock(&recorder->lock);
}

UNUSED static int sbs_compare(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Prints each line once, sorted, if their order and number depend on the speed. */
UNUSED static void say_recorded_set(const char *what, struct recorder *recorder) {
        int i;
        pthread_mutex_lock(&recorder->lock);
        say("%s, each once:", what);
        qsort(recorder->lines, recorder->count, sizeof(char *), sbs_compare);
        for (i = 0; i < recorder->count; i++)
                if (i == 0 || strcmp(recorder->lines[i], recorder->lines[i - 1]))
                        say("  %s", recorder->lines[i]);
        pthread_mutex_unlock(&recorder->lock);
}

/* The recorders of the callbacks below. */
UNUSED static struct recorder reports = RECORDER, errors = RECORDER, logs = RECORDER, statistics = RECORDER;

UNUSED static const char *status_name(rd_kafka_msg_status_t status) {
        return status == RD_KAFKA_MSG_STATUS_NOT_PERSISTED         ? "NOT_PERSISTED"
               : status == RD_KAFKA_MSG_STATUS_POSSIBLY_PERSISTED ? "POSSIBLY_PERSISTED"
                                                                   : "PERSISTED";
}

UNUSED static void describe_report(char *into, size_t room, const rd_kafka_message_t *message) {
        rd_kafka_timestamp_type_t kind;
        int64_t stamp = rd_kafka_message_timestamp(message, &kind);
        snprintf(into, room, "%s [%d] value %.*s key %.*s error %s offset %s status %s opaque %s latency %s timestamp %s/%d broker %s",
                 message->rkt ? rd_kafka_topic_name(message->rkt) : "no topic", message->partition, (int)message->len,
                 message->payload ? (const char *)message->payload : "", (int)message->key_len,
                 message->key ? (const char *)message->key : "", err(message->err), offset_name(message->offset),
                 status_name(rd_kafka_message_status(message)), message->_private ? "present" : "NULL",
                 rd_kafka_message_latency(message) >= 0 ? "present" : "-1", stamp > 0 ? "present" : stamp == 0 ? "0" : "-1", kind,
                 rd_kafka_message_broker_id(message) >= 0 ? "present" : "-1");
}

/* A dr_msg_cb that records every report. */
UNUSED static void on_report(rd_kafka_t *rk UNUSED, const rd_kafka_message_t *message, void *opaque UNUSED) {
        char line[2048];
        describe_report(line, sizeof(line), message);
        record(&reports, "%s", line);
}
UNUSED static void on_error(rd_kafka_t *rk UNUSED, int code, const char *reason, void *opaque UNUSED) {
        record(&errors, "%s reason %s", err((rd_kafka_resp_err_t)code), present(reason));
}
UNUSED static void on_log(const rd_kafka_t *rk UNUSED, int level, const char *facility, const char *text UNUSED) {
        record(&logs, "%d %s", level, facility);
}
UNUSED static int on_stats(rd_kafka_t *rk UNUSED, char *json, size_t length, void *opaque UNUSED) {
        record(&statistics, "statistics %s length %s", json && json[0] == '{' ? "object" : "no object",
               strlen(json) == length ? "right" : "wrong");
        return 0;
}

/* Prints a consumed message without the fields that differ between runs. */
UNUSED static void say_message(const char *what, const rd_kafka_message_t *message) {
        if (!message) {
                say("%s: NULL", what);
                return;
        }
        if (message->err) {
                say("%s: error %s topic %s [%d] offset %s text %s", what, err(message->err),
                    message->rkt ? rd_kafka_topic_name(message->rkt) : "NULL", message->partition, offset_name(message->offset),
                    present(rd_kafka_message_errstr(message)));
                return;
        }
        say("%s: %s [%d] offset %s key %.*s value %.*s", what, message->rkt ? rd_kafka_topic_name(message->rkt) : "NULL",
            message->partition, offset_name(message->offset), (int)message->key_len,
            message->key ? (const char *)message->key : "", (int)message->len,
            message->payload ? (const char *)message->payload : "");
}

/* ---- Clients ---- */

/* Sets a property that must be accepted. */
UNUSED static void set(rd_kafka_conf_t *conf, const char *name, const char *value) {
        char errstr[512] = "";
        if (rd_kafka_conf_set(conf, name, value, errstr, sizeof(errstr)) != RD_KAFKA_CONF_OK)
                say("REFUSED: %s=%s", name, value);
}

/* A configuration with pairs of property and value, ended by NULL; logs, errors and reports go to the recorders. */
UNUSED static rd_kafka_conf_t *conf_of(const char *name, ...) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        va_list args;
        rd_kafka_conf_set_log_cb(conf, on_log);
        rd_kafka_conf_set_error_cb(conf, on_error);
        va_start(args, name);
        for (; name; name = va_arg(args, const char *))
                set(conf, name, va_arg(args, const char *));
        va_end(args);
        return conf;
}

/* Creates a client; if that fails, the case ends with a line about it. */
UNUSED static rd_kafka_t *start(rd_kafka_type_t type, rd_kafka_conf_t *conf) {
        char errstr[512] = "";
        rd_kafka_t *rk = rd_kafka_new(type, conf, errstr, sizeof(errstr));
        if (!rk) {
                say("NO CLIENT: %s", err(rd_kafka_last_error()));
                exit(0);
        }
        return rk;
}
UNUSED static rd_kafka_t *producer_of(rd_kafka_conf_t *conf) {
        rd_kafka_conf_set_dr_msg_cb(conf, on_report);
        return start(RD_KAFKA_PRODUCER, conf);
}
UNUSED static rd_kafka_t *consumer_of(rd_kafka_conf_t *conf) { return start(RD_KAFKA_CONSUMER, conf); }

/* An address that refuses connections at once. */
#define DEAD "127.0.0.1:1"

/* ---- Brokers ---- */

/* Embedded brokers in a separate process, which ends with this one. */
struct brokers {
        pid_t process;
        int input;
        char servers[512];
};

extern char **environ;

/* Starts `ottla broker` with these options, separated by blanks; waits until it accepts connections. */
UNUSED static struct brokers brokers_start(const char *options) {
        struct brokers brokers;
        int in[2], out[2], status;
        char command[2048], line[1024] = "";
        const char *ottla = getenv("OTTLA");
        char *argv[] = {(char *)"sh", (char *)"-c", command, NULL};
        posix_spawn_file_actions_t actions;
        FILE *output;
        memset(&brokers, 0, sizeof(brokers));
        if (!ottla) {
                say("NO BROKER: OTTLA names no program");
                exit(0);
        }
        /* The shell kills the brokers when its pipe closes, which happens whenever this process ends. */
        snprintf(command, sizeof(command), "'%s' broker %s </dev/null 2>/dev/null & exec >&-; read -r line; kill -9 $!", ottla, options);
        if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
                abort();
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, in[0], 0);
        posix_spawn_file_actions_adddup2(&actions, out[1], 1);
        if (posix_spawnp(&brokers.process, "sh", &actions, NULL, argv, environ))
                abort();
        posix_spawn_file_actions_destroy(&actions);
        close(in[0]);
        close(out[1]);
        brokers.input = in[1];
        output = fdopen(out[0], "r");
        while (fgets(line, sizeof(line), output))
                if (sscanf(line, "bootstrap.servers=%500s", brokers.servers) == 1)
                        break;
        /* The brokers may print more; a reader that closes would end them. */
        fcntl(fileno(output), F_SETFD, FD_CLOEXEC);
        if (!*brokers.servers) {
                waitpid(brokers.process, &status, 0);
                say("NO BROKER: %s", options);
                exit(0);
        }
        return brokers;
}

/* Kills the brokers and waits until they have ended. */
UNUSED static void brokers_stop(struct brokers *brokers) {
        int status;
        close(brokers->input);
        waitpid(brokers->process, &status, 0);
}

/* The servers that a case uses: those of OTTLA_BOOTSTRAP, or embedded brokers that end with this process. */
UNUSED static const char *bootstrap(void) {
        static struct brokers brokers;
        const char *given = getenv("OTTLA_BOOTSTRAP");
        if (!given && !brokers.process)
                brokers = brokers_start("--port 0 --partitions 2");
        given = given ? given : brokers.servers;
        setenv("SBS_BOOTSTRAP", given, 1);
        return given;
}

/* Returns a topic name that is unique to this run, because brokers may have topics of other runs. */
UNUSED static const char *topic_name(const char *name) {
        static __thread char buffers[8][256];
        static __thread int next;
        char *buffer = buffers[next++ % 8];
        const char *suffix = getenv("SBS_SUFFIX");
        snprintf(buffer, sizeof(buffers[0]), "%s%s", name, suffix ? suffix : "");
        return buffer;
}

/* ---- The program ---- */

#ifndef SBS_NO_MAIN
int main(int argc, char **argv) {
        static const char *const kinds[] = {"plain", "broker", "crash"};
        int i;
        setenv("LC_ALL", "C", 1);
        if (argc == 2 && !strcmp(argv[1], "--list")) {
                for (i = 0; i < sbs_case_count; i++)
                        printf("%s %s\n", sbs_cases[i].name, kinds[sbs_cases[i].kind]);
                return 0;
        }
        if (argc == 2 && !strcmp(argv[1], "--show")) {
                rd_kafka_conf_properties_show(stdout);
                return 0;
        }
        for (i = 0; argc == 2 && i < sbs_case_count; i++)
                if (!strcmp(argv[1], sbs_cases[i].name)) {
                        struct rlimit no_core = {0, 0};
                        setrlimit(RLIMIT_CORE, &no_core);
                        case_name = sbs_cases[i].name;
                        /* SIGALRM ends a case that hangs. */
                        alarm(getenv("SBS_DEADLINE") ? atoi(getenv("SBS_DEADLINE")) : 0);
                        sbs_cases[i].run();
                        say("end");
                        return 0;
                }
        fprintf(stderr, "usage: %s --list | CASE\n", argv[0]);
        return 2;
}
#endif
#endif
