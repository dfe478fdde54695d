/* The common parts of the test programs: checks that are counted, and time.
 *
 * Events that have to come are awaited with TIMEOUT_MS, which only a failure uses up; durations that have to be
 * short are bounded with SCALED_MS. OTTLA_SLOWNESS is the factor by which everything may be slower than usual, under
 * valgrind for example. */
#ifndef OTTLA_TEST_H
#define OTTLA_TEST_H
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define UNUSED __attribute__((unused))

/* The number of failed checks: the program's exit code. */
static int bad;

#define CHECK(what)                                                                                                    \
        do {                                                                                                           \
                if (!(what)) {                                                                                         \
                        fprintf(stderr, "line %d: %s\n", __LINE__, #what);                                             \
                        bad++;                                                                                         \
                }                                                                                                      \
        } while (0)

UNUSED static int slowness(void) {
        const char *factor = getenv("OTTLA_SLOWNESS");
        int times = factor ? atoi(factor) : 1;
        return times > 0 ? times : 1;
}

/* A number of milliseconds, scaled by the slowness of the machine. */
#define SCALED_MS(milliseconds) ((milliseconds)*slowness())
#define TIMEOUT_MS SCALED_MS(60000)

/* Returns milliseconds of the monotonic clock. */
UNUSED static long millis(void) {
        struct timespec time;
        clock_gettime(CLOCK_MONOTONIC, &time);
        return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

/* Repeats the step until the condition holds. It may become false again afterwards: the next broker may have older
 * metadata. */
#define UNTIL(condition, step)                                                                                         \
        do {                                                                                                           \
                long ends = millis() + TIMEOUT_MS;                                                                       \
                int holds;                                                                                             \
                while (!(holds = !!(condition)) && millis() < ends) {                                                  \
                        step;                                                                                          \
                }                                                                                                      \
                if (!holds) {                                                                                          \
                        fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                        \
                        bad++;                                                                                         \
                }                                                                                                      \
        } while (0)

/* Waits until other threads have made the condition hold. */
#define WAIT_FOR(condition) UNTIL(condition, usleep(10000))

/* Sets a property, which has to be valid. */
UNUSED static void set(rd_kafka_conf_t *conf, const char *name, const char *value) {
        char errstr[256];
        if (rd_kafka_conf_set(conf, name, value, errstr, sizeof(errstr)) != RD_KAFKA_CONF_OK) {
                fprintf(stderr, "%s\n", errstr);
                bad++;
        }
}

/* Sets a property to a number of milliseconds. */
UNUSED static void set_ms(rd_kafka_conf_t *conf, const char *name, int milliseconds) {
        char value[16];
        snprintf(value, sizeof(value), "%d", milliseconds);
        set(conf, name, value);
}

/* Starts a client, or exits. */
UNUSED static rd_kafka_t *start(rd_kafka_type_t type, rd_kafka_conf_t *conf) {
        char errstr[256];
        rd_kafka_t *rk = rd_kafka_new(type, conf, errstr, sizeof(errstr));
        if (!rk) {
                fprintf(stderr, "%s\n", errstr);
                exit(1);
        }
        return rk;
}

/* Returns the next event, which has to be of this type, with this error. */
UNUSED static rd_kafka_event_t *next_event(rd_kafka_queue_t *queue, int type, rd_kafka_resp_err_t err) {
        rd_kafka_event_t *event = rd_kafka_queue_poll(queue, TIMEOUT_MS);
        CHECK(event && rd_kafka_event_type(event) == type);
        if (!event)
                exit(1);
        if (rd_kafka_event_error(event) != err) {
                fprintf(stderr, "%s: %s\n", rd_kafka_event_name(event),
                        rd_kafka_event_error(event) ? rd_kafka_event_error_string(event) : "no error");
                bad++;
        }
        CHECK(rd_kafka_event_error_string(event) != NULL);
        return event;
}
#endif
