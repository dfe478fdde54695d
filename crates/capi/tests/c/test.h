/* What the test programs share: checks that are counted, and time.
 *
 * What has to come is waited for with TIMEOUT_MS, which only a failure uses up; what must not take long is bounded with
 * SCALED_MS. OTTLA_SLOWNESS says how many times slower than usual everything may be, under valgrind for example. */
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

/* How many checks failed: the program's answer. */
static int bad;

#define CHECK(what)                                                                                                    \
        do {                                                                                                           \
                if (!(what)) {                                                                                         \
                        fprintf(stderr, "line %d: %s\n", __LINE__, #what);                                             \
                        bad++;                                                                                         \
                }                                                                                                      \
        } while (0)

UNUSED static int slowness(void) {
        const char *said = getenv("OTTLA_SLOWNESS");
        int times = said ? atoi(said) : 1;
        return times > 0 ? times : 1;
}

/* So many milliseconds, of a machine that is not slow. */
#define SCALED_MS(milliseconds) ((milliseconds)*slowness())
#define TIMEOUT_MS SCALED_MS(60000)

/* Milliseconds of a clock that nobody sets. */
UNUSED static long millis(void) {
        struct timespec time;
        clock_gettime(CLOCK_MONOTONIC, &time);
        return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

/* Does the step, which takes a moment, again and again until the condition holds. It need not go on holding: who is asked
 * next may know less. */
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

/* Sets a property, which has to be right. */
UNUSED static void set(rd_kafka_conf_t *conf, const char *name, const char *value) {
        char errstr[256];
        if (rd_kafka_conf_set(conf, name, value, errstr, sizeof(errstr)) != RD_KAFKA_CONF_OK) {
                fprintf(stderr, "%s\n", errstr);
                bad++;
        }
}

/* Starts a client; without it there is nothing to test. */
UNUSED static rd_kafka_t *start(rd_kafka_type_t type, rd_kafka_conf_t *conf) {
        char errstr[256];
        rd_kafka_t *rk = rd_kafka_new(type, conf, errstr, sizeof(errstr));
        if (!rk) {
                fprintf(stderr, "%s\n", errstr);
                exit(1);
        }
        return rk;
}

/* The next event, which has to be of this type, with this error. */
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
