/* The older consumer with offset.store.method=file: stored offsets are used at the next start, the names of the
 * files, and invalid files. */
#include "test.h"
#include <signal.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

static int errors, warnings;
static int uses_open_cb, refuses, opened_to_read, opened_to_write;
static char last_error[512];
static char folder[] = "/tmp/ottla-offsets-XXXXXX";

#define COUNT 500

static void on_error(rd_kafka_t *rk, int err, const char *reason, void *opaque) {
        (void)rk;
        (void)opaque;
        if (err == RD_KAFKA_RESP_ERR__FS) {
                snprintf(last_error, sizeof(last_error), "%s", reason);
                errors++;
        }
}

static int on_open(const char *path, int flags, mode_t mode, void *opaque) {
        CHECK(opaque == &bad && !strncmp(path, folder, strlen(folder)));
        if (refuses) {
                errno = EACCES;
                return -1;
        }
        if ((flags & O_ACCMODE) == O_RDONLY)
                opened_to_read++;
        else
                opened_to_write++;
        return open(path, flags, mode);
}

static void on_log(const rd_kafka_t *rk, int level, const char *facility, const char *line) {
        (void)rk;
        if (!strcmp(facility, "CONFWARN")) {
                fprintf(stderr, "%d %s\n", level, line);
                warnings++;
        }
}

static void set_of_topic(rd_kafka_topic_conf_t *conf, const char *name, const char *value) {
        char errstr[256];
        if (rd_kafka_topic_conf_set(conf, name, value, errstr, sizeof(errstr)) != RD_KAFKA_CONF_OK) {
                fprintf(stderr, "%s\n", errstr);
                bad++;
        }
}

static void path_of(char *path, size_t size, const char *name) {
        snprintf(path, size, "%s/%s", folder, name);
}

static void write_file(const char *name, const char *content) {
        char path[256];
        FILE *file;
        path_of(path, sizeof(path), name);
        file = fopen(path, "w");
        fputs(content, file);
        fclose(file);
}

/* Returns the offset in a file, or -1. */
static long in_file(const char *name) {
        char path[256];
        long offset = -1;
        FILE *file;
        path_of(path, sizeof(path), name);
        file = fopen(path, "r");
        if (!file)
                return -1;
        if (fscanf(file, "%ld", &offset) != 1)
                offset = -1;
        fclose(file);
        return offset;
}

static rd_kafka_t *client(const char *brokers, const char *group) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        set(conf, "bootstrap.servers", brokers);
        set(conf, "enable.auto.commit", "false");
        if (group)
                set(conf, "group.id", group);
        rd_kafka_conf_set_error_cb(conf, on_error);
        rd_kafka_conf_set_log_cb(conf, on_log);
        if (uses_open_cb) {
                rd_kafka_conf_set_opaque(conf, &bad);
                rd_kafka_conf_set_open_cb(conf, on_open);
        }
        return start(RD_KAFKA_CONSUMER, conf);
}

static rd_kafka_topic_t *topic_of(rd_kafka_t *rk, const char *path, const char *interval, const char *reset) {
        rd_kafka_topic_conf_t *conf = rd_kafka_topic_conf_new();
        set_of_topic(conf, "offset.store.method", "file");
        set_of_topic(conf, "offset.store.path", path);
        set_of_topic(conf, "offset.store.sync.interval.ms", "0");
        set_of_topic(conf, "auto.commit.interval.ms", interval);
        set_of_topic(conf, "auto.offset.reset", reset);
        return rd_kafka_topic_new(rk, "files", conf);
}

/* Reads this number of messages; returns the offset of the first, or -1. */
static long consume(rd_kafka_topic_t *topic, int count) {
        long first = -1;
        int i;
        for (i = 0; i < count; i++) {
                rd_kafka_message_t *message = rd_kafka_consume(topic, 0, TIMEOUT_MS);
                if (!message || message->err) {
                        fprintf(stderr, "%s\n", message ? rd_kafka_message_errstr(message) : "nothing");
                        bad++;
                        if (message)
                                rd_kafka_message_destroy(message);
                        return -1;
                }
                if (first < 0)
                        first = (long)message->offset;
                rd_kafka_message_destroy(message);
        }
        return first;
}

/* Reads until it is killed. */
static int reads_until_killed(const char *brokers, const char *path) {
        rd_kafka_t *rk = client(brokers, NULL);
        rd_kafka_topic_t *topic = topic_of(rk, path, "10", "smallest");
        CHECK(rd_kafka_consume_start(topic, 0, RD_KAFKA_OFFSET_BEGINNING) == 0);
        while (!bad) {
                if (consume(topic, 1) == COUNT - 1)
                        CHECK(rd_kafka_seek(topic, 0, 0, TIMEOUT_MS) == 0);
                usleep(1000);
        }
        return 1;
}

/* A process may be killed at any time: its file contains an offset. */
static void a_crash_leaves_an_offset(char **argv) {
        char path[256];
        int round, i;
        path_of(path, sizeof(path), "killed");
        for (round = 0; round < 5; round++) {
                pid_t child = fork();
                if (child == 0) {
                        execl(argv[0], argv[0], argv[1], path, (char *)NULL);
                        _exit(9);
                }
                WAIT_FOR(in_file("killed") >= 0);
                for (i = 0; i < 100 + round; i++) {
                        CHECK(in_file("killed") >= 0);
                        usleep(1000);
                }
                CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
                CHECK(in_file("killed") >= 0 && in_file("killed") <= COUNT);
        }
}

int main(int argc, char **argv) {
        char errstr[256], path[256];
        rd_kafka_conf_t *conf;
        rd_kafka_topic_t *topic;
        rd_kafka_message_t *message;
        rd_kafka_t *rk;
        int i;

        if (argc == 3)
                return reads_until_killed(argv[1], argv[2]);
        if (argc < 2 || !mkdtemp(folder))
                return 2;
        conf = rd_kafka_conf_new();
        set(conf, "bootstrap.servers", argv[1]);
        rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof(errstr));
        topic = rd_kafka_topic_new(rk, "files", NULL);
        for (i = 0; i < COUNT; i++)
                CHECK(rd_kafka_produce(topic, 0, RD_KAFKA_MSG_F_COPY, (void *)"value", 5, NULL, 0, NULL) == 0);
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);

        /* There is no file at first: the reset determines the start. Stopping writes. */
        rk = client(argv[1], NULL);
        topic = topic_of(rk, folder, "60000", "smallest");
        CHECK(rd_kafka_consume_start(topic, 0, RD_KAFKA_OFFSET_STORED) == 0);
        CHECK(consume(topic, 10) == 0);
        CHECK(in_file("files-0.offset") == -1);
        CHECK(rd_kafka_consume_stop(topic, 0) == 0);
        CHECK(in_file("files-0.offset") == 10);
        /* The next start continues from there, and the interval writes. */
        CHECK(rd_kafka_consume_start(topic, 0, RD_KAFKA_OFFSET_STORED) == 0);
        CHECK(consume(topic, 5) == 10);
        rd_kafka_consume_stop(topic, 0);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
        CHECK(in_file("files-0.offset") == 15);

        /* Another client; the group is in the file's name, with characters that are invalid in names; an offset that
         * the application stores. */
        rk = client(argv[1], "a/b:c");
        topic = topic_of(rk, folder, "10", "smallest");
        CHECK(rd_kafka_consume_start(topic, 0, RD_KAFKA_OFFSET_STORED) == 0);
        CHECK(consume(topic, 20) == 0);
        WAIT_FOR(in_file("files-0-a%2Fb%3Ac.offset") == 20);
        CHECK(rd_kafka_offset_store(topic, 0, 99) == 0);
        /* Destroying writes the last offset. */
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
        CHECK(in_file("files-0-a%2Fb%3Ac.offset") == 100);

        /* The application opens the files. */
        uses_open_cb = 1;
        rk = client(argv[1], NULL);
        topic = topic_of(rk, folder, "60000", "smallest");
        CHECK(rd_kafka_consume_start(topic, 0, RD_KAFKA_OFFSET_STORED) == 0);
        CHECK(consume(topic, 5) == 15);
        CHECK(opened_to_read == 1 && opened_to_write == 0);
        CHECK(rd_kafka_consume_stop(topic, 0) == 0);
        CHECK(opened_to_write >= 1 && in_file("files-0.offset") == 20);
        refuses = 1;
        CHECK(errors == 0);
        CHECK(rd_kafka_consume_start(topic, 0, RD_KAFKA_OFFSET_STORED) == 0);
        CHECK(consume(topic, 1) == 0);
        UNTIL(errors, rd_kafka_poll(rk, 100));
        CHECK(errors == 1 && strstr(last_error, "open_cb returned -1"));
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
        CHECK(in_file("files-0.offset") == 20);
        uses_open_cb = errors = 0;

        /* A path that is not a folder is the file itself; a file of librdkafka is read. */
        write_file("mine", "42\n");
        path_of(path, sizeof(path), "mine");
        rk = client(argv[1], NULL);
        topic = topic_of(rk, path, "60000", "smallest");
        CHECK(rd_kafka_consume_start(topic, 0, RD_KAFKA_OFFSET_STORED) == 0);
        CHECK(consume(topic, 1) == 42);
        CHECK(rd_kafka_consume_stop(topic, 0) == 0 && in_file("mine") == 43);
        /* A start at another offset does not read the file, but writes it. */
        CHECK(rd_kafka_consume_start(topic, 0, 7) == 0);
        CHECK(consume(topic, 1) == 7);
        CHECK(rd_kafka_consume_stop(topic, 0) == 0 && in_file("mine") == 8);

        /* An invalid file is an error, and the reset determines the start; an empty one is none. */
        CHECK(errors == 0);
        for (i = 0; i < 5; i++) {
                static const char *contents[] = {"nonsense\n", "-5\n", "99999999999999999999\n", "12 34\n", ""};
                write_file("mine", contents[i]);
                CHECK(rd_kafka_consume_start(topic, 0, RD_KAFKA_OFFSET_STORED) == 0);
                CHECK(consume(topic, 3) == 0);
                CHECK(rd_kafka_consume_stop(topic, 0) == 0 && in_file("mine") == 3);
                rd_kafka_poll(rk, 0);
                CHECK(errors == (i < 4 ? i + 1 : 4));
        }
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);

        /* A device must not be replaced by a file; and without a file, an `auto.offset.reset` of error is an error. */
        errors = 0;
        rk = client(argv[1], NULL);
        topic = topic_of(rk, "/dev/null", "60000", "error");
        CHECK(rd_kafka_consume_start(topic, 0, RD_KAFKA_OFFSET_STORED) == 0);
        message = rd_kafka_consume(topic, 0, TIMEOUT_MS);
        CHECK(message && message->err == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET && message->partition == 0);
        if (message)
                rd_kafka_message_destroy(message);
        rd_kafka_poll(rk, 0);
        CHECK(errors == 1);
        rd_kafka_consume_stop(topic, 0);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);

        /* An error of writing is reported once. */
        errors = 0;
        path_of(path, sizeof(path), "no/such/folder");
        rk = client(argv[1], NULL);
        topic = topic_of(rk, path, "10", "smallest");
        CHECK(rd_kafka_consume_start(topic, 0, RD_KAFKA_OFFSET_STORED) == 0);
        CHECK(consume(topic, 1) == 0);
        UNTIL(errors, rd_kafka_poll(rk, 10));
        CHECK(consume(topic, 1) == 1);
        rd_kafka_poll(rk, 100);
        CHECK(errors == 1);
        rd_kafka_consume_stop(topic, 0);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);

        /* A topic's own reset also applies to an offset that is out of range; the client's is the end. */
        rk = client(argv[1], NULL);
        topic = topic_of(rk, folder, "60000", "smallest");
        CHECK(rd_kafka_consume_start(topic, 0, COUNT + 1000000) == 0);
        CHECK(consume(topic, 1) == 0);
        rd_kafka_consume_stop(topic, 0);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);

        a_crash_leaves_an_offset(argv);

        CHECK(warnings == 0);
        path_of(path, sizeof(path), "killed.new");
        unlink(path);
        if (!bad) {
                static const char *names[] = {"files-0.offset", "files-0-a%2Fb%3Ac.offset", "mine", "killed"};
                for (i = 0; i < 4; i++) {
                        path_of(path, sizeof(path), names[i]);
                        CHECK(unlink(path) == 0);
                }
                CHECK(rmdir(folder) == 0);
        }
        return bad != 0;
}
