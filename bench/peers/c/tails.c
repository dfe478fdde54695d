/*
 * The time from produce() to the message's return by consumer_poll(), at a fixed rate: bench/tails.sh runs it with Ottla
 * and with librdkafka.
 *
 *   tails SERVERS TOPIC PARTITIONS RATE WARM-UP SECONDS
 *
 * Prints the median, the percentiles 99 and 99.9 and the maximum in microseconds, and the CPU in nanoseconds per message.
 * The first WARM-UP seconds do not count.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "librdkafka/rdkafka.h"

static const char *servers, *topic;
static int partitions;
static long rate, warm, total;
static double *times;

static void die(const char *what) {
        fprintf(stderr, "tails: %s\n", what);
        exit(1);
}

static long long now_ns(void) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return (long long)now.tv_sec * 1000000000 + now.tv_nsec;
}

static rd_kafka_t *client(rd_kafka_type_t type, const char *const *settings) {
        char error[512];
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_t *created;
        for (; *settings; settings += 2)
                if (rd_kafka_conf_set(conf, settings[0], settings[1], error, sizeof(error)))
                        die(error);
        if (!(created = rd_kafka_new(type, conf, error, sizeof(error))))
                die(error);
        return created;
}

/* Sends the messages on time: all that are due, then sleeps until the next one. */
static void *produce(void *unused) {
        const char *settings[] = {"bootstrap.servers", servers, "linger.ms", "0", "enable.idempotence", "true", NULL};
        rd_kafka_t *producer = client(RD_KAFKA_PRODUCER, settings);
        long long began = now_ns(), at[13];
        long sent;
        (void)unused;
        memset(at, 0, sizeof(at));
        for (sent = 0; sent < total; sent++) {
                long long due = began + sent * 1000000000LL / rate;
                rd_kafka_resp_err_t failed;
                while (now_ns() < due) {
                        struct timespec wait = {0, 0};
                        wait.tv_nsec = due - now_ns();
                        if (wait.tv_nsec > 0)
                                nanosleep(&wait, NULL);
                }
                at[0] = now_ns();
                failed = rd_kafka_producev(producer, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION((int)(sent % partitions)),
                                           RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_VALUE(at, 100), RD_KAFKA_V_END);
                if (failed)
                        die(rd_kafka_err2str(failed));
        }
        rd_kafka_flush(producer, 10000);
        rd_kafka_destroy(producer);
        return NULL;
}

static int by_value(const void *a, const void *b) {
        double left = *(const double *)a, right = *(const double *)b;
        return left < right ? -1 : left > right;
}

int main(int argc, char **argv) {
        const char *settings[] = {"bootstrap.servers", NULL, "group.id", "tails", "enable.auto.commit", "false", NULL};
        rd_kafka_topic_partition_list_t *all = rd_kafka_topic_partition_list_new(1);
        rd_kafka_t *consumer;
        pthread_t thread;
        struct rusage usage;
        long received = 0, counted = 0;
        int i;
        if (argc != 7)
                die("usage: tails SERVERS TOPIC PARTITIONS RATE WARM-UP SECONDS");
        settings[1] = servers = argv[1];
        topic                 = argv[2];
        partitions            = atoi(argv[3]);
        rate                  = atol(argv[4]);
        warm                  = rate * atol(argv[5]);
        total                 = warm + rate * atol(argv[6]);
        if (!(times = malloc(sizeof(*times) * (size_t)(total - warm))))
                die("no memory");
        consumer = client(RD_KAFKA_CONSUMER, settings);
        for (i = 0; i < partitions; i++)
                rd_kafka_topic_partition_list_add(all, topic, i)->offset = 0;
        rd_kafka_assign(consumer, all);
        sleep(2);
        if (pthread_create(&thread, NULL, produce, NULL))
                die("no thread");
        while (received < total) {
                rd_kafka_message_t *message = rd_kafka_consumer_poll(consumer, 10000);
                long long sent_at;
                if (!message)
                        die("nothing was received for 10 s");
                if (message->err)
                        die(rd_kafka_message_errstr(message));
                memcpy(&sent_at, message->payload, sizeof(sent_at));
                if (received++ >= warm)
                        times[counted++] = (double)(now_ns() - sent_at) / 1000;
                rd_kafka_message_destroy(message);
        }
        pthread_join(thread, NULL);
        getrusage(RUSAGE_SELF, &usage);
        qsort(times, (size_t)counted, sizeof(*times), by_value);
        printf("%.0f %.0f %.0f %.0f %.0f\n", times[counted / 2], times[(long)(counted * 0.99)],
               times[(long)(counted * 0.999)], times[counted - 1],
               ((double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e9 +
                (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e3) /
                   (double)total);
        fflush(stdout);
        _exit(0);
}
