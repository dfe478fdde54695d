/* Times of a member of a group, measured through the C interface, with the library that the program finds:
 *
 *   group first BROKERS TOPIC RUNS SETTING=VALUE...           subscribe until the first record, of a new group each time
 *   group commit BROKERS TOPIC RUNS SETTING=VALUE...          synchronous commits beside a thread that polls at the end of
 *                                                             the partitions, and committed() as a bare round trip
 *   group close BROKERS TOPIC RUNS SETTING=VALUE...           rd_kafka_consumer_close
 *   group close-without BROKERS TOPIC PID SIGNAL SETTING=...  the same after this signal to the broker's process
 *   group idle BROKERS TOPIC SECONDS SETTING=VALUE...         times that the threads of the process went to sleep
 *   group join BROKERS TOPIC MEMBERS SETTING=VALUE...         one more member joins: until all have their partitions
 *   group pause BROKERS TOPIC SECONDS SETTING=VALUE...        a second member joins: the longest time without a record of
 *                                                             the partitions that stay, while another program produces
 *
 * Times are in milliseconds. Prints a line `name p50 p99 longest count`, or as the mode says. */
#include <dirent.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <librdkafka/rdkafka.h>

#define TIMEOUT_MS 60000
#define MOST_PARTITIONS 1000

static const char *brokers, *topic;
static char **settings;
static volatile int stops;

static double millis(void) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void die(const char *what) {
        fprintf(stderr, "group: %s\n", what);
        exit(1);
}

static int smaller_first(const void *one, const void *other) {
        double difference = *(const double *)one - *(const double *)other;
        return (difference > 0) - (difference < 0);
}

static void report(const char *name, double *times, int count) {
        qsort(times, (size_t)count, sizeof(*times), smaller_first);
        printf("%s p50 %.2f p99 %.2f longest %.2f count %d\n", name, times[(count - 1) / 2], times[(int)((count - 1) * 0.99)],
               times[count - 1], count);
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value) {
        char errstr[256];
        if (rd_kafka_conf_set(conf, name, value, errstr, sizeof(errstr)) != RD_KAFKA_CONF_OK)
                die(errstr);
}

static rd_kafka_t *member(const char *group) {
        char errstr[256], **setting;
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_t *rk;
        set(conf, "bootstrap.servers", brokers);
        set(conf, "group.id", group);
        set(conf, "auto.offset.reset", "earliest");
        set(conf, "log_level", "2");
        for (setting = settings; *setting; setting++) {
                char name[128], *equals;
                snprintf(name, sizeof(name), "%s", *setting);
                if (!(equals = strchr(name, '=')))
                        die("a setting is NAME=VALUE");
                *equals = '\0';
                set(conf, name, strchr(*setting, '=') + 1);
        }
        if (!(rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, errstr, sizeof(errstr))))
                die(errstr);
        rd_kafka_poll_set_consumer(rk);
        rd_kafka_topic_partition_list_add(list, topic, RD_KAFKA_PARTITION_UA);
        if (rd_kafka_subscribe(rk, list))
                die("not subscribed");
        rd_kafka_topic_partition_list_destroy(list);
        return rk;
}

static const char *new_group(void) {
        static char name[128];
        static int number;
        snprintf(name, sizeof(name), "%s-%d-%d", topic, (int)getpid(), number++);
        return name;
}

/* Polls once. Returns the partition of a record, or -1. */
static int poll_record(rd_kafka_t *rk, int timeout_ms) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, timeout_ms);
        int partition = message && !message->err ? message->partition : -1;
        if (message)
                rd_kafka_message_destroy(message);
        return partition;
}

static int assigned(rd_kafka_t *rk) {
        rd_kafka_topic_partition_list_t *list = NULL;
        int count = 0;
        if (!rd_kafka_assignment(rk, &list) && list) {
                count = list->cnt;
                rd_kafka_topic_partition_list_destroy(list);
        }
        return count;
}

static void wait_for_record(rd_kafka_t *rk) {
        double end = millis() + TIMEOUT_MS;
        while (poll_record(rk, 1000) < 0)
                if (millis() > end)
                        die("there is no record");
}

static void first(int runs) {
        double times[1000];
        int i;
        for (i = 0; i < runs; i++) {
                double began = millis();
                rd_kafka_t *rk = member(new_group());
                wait_for_record(rk);
                times[i] = millis() - began;
                rd_kafka_consumer_close(rk);
                rd_kafka_destroy(rk);
        }
        report("first", times, runs);
}

static void *poll_on(void *rk) {
        while (!stops)
                poll_record(rk, 100000);
        return NULL;
}

static void commit(int runs) {
        static double commits[100000], trips[100000];
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_t *rk = member(new_group());
        pthread_t poller;
        int i;
        rd_kafka_topic_partition_list_add(list, topic, 0)->offset = 1;
        wait_for_record(rk);
        while (poll_record(rk, 1000) >= 0)
                ;
        pthread_create(&poller, NULL, poll_on, rk);
        for (i = 0; i < runs; i++) {
                double began = millis();
                list->elems[0].offset = 1;
                if (rd_kafka_commit(rk, list, 0))
                        die("not committed");
                commits[i] = millis() - began;
                began = millis();
                if (rd_kafka_committed(rk, list, TIMEOUT_MS))
                        die("no committed offset");
                trips[i] = millis() - began;
                usleep(1000);
        }
        report("commit", commits, runs);
        report("committed", trips, runs);
        fflush(stdout);
        _exit(0);
}

static void close_live(int runs) {
        double times[1000];
        int i;
        for (i = 0; i < runs; i++) {
                rd_kafka_t *rk = member(new_group());
                double began;
                wait_for_record(rk);
                began = millis();
                rd_kafka_consumer_close(rk);
                times[i] = millis() - began;
                rd_kafka_destroy(rk);
        }
        report("close", times, runs);
}

static void close_without(int process, int number) {
        rd_kafka_t *rk = member(new_group());
        double began;
        wait_for_record(rk);
        kill(process, number);
        began = millis();
        rd_kafka_consumer_close(rk);
        printf("close after signal %d: %.2f\n", number, millis() - began);
        fflush(stdout);
        _exit(0);
}

/* The sum of the voluntary context switches of all threads, and their number. */
static long switches(int *threads) {
        DIR *tasks = opendir("/proc/self/task");
        struct dirent *task;
        long sum = 0;
        *threads = 0;
        while ((task = readdir(tasks))) {
                char path[300], line[256];
                FILE *status;
                long count;
                snprintf(path, sizeof(path), "/proc/self/task/%s/status", task->d_name);
                if (*task->d_name == '.' || !(status = fopen(path, "r")))
                        continue;
                ++*threads;
                while (fgets(line, sizeof(line), status))
                        if (sscanf(line, "voluntary_ctxt_switches: %ld", &count) == 1)
                                sum += count;
                fclose(status);
        }
        closedir(tasks);
        return sum;
}

static void idle(int duration) {
        rd_kafka_t *rk = member(new_group());
        pthread_t poller;
        long before;
        int threads;
        wait_for_record(rk);
        while (poll_record(rk, 1000) >= 0)
                ;
        pthread_create(&poller, NULL, poll_on, rk);
        sleep(2);
        before = switches(&threads);
        sleep((unsigned)duration);
        /* The sleep itself is one. */
        printf("idle: %.2f wake-ups per second, %d threads\n", (double)(switches(&threads) - before - 1) / duration, threads);
        fflush(stdout);
        _exit(0);
}

static void join(int members) {
        rd_kafka_t *all[1000];
        const char *group = new_group();
        double began = 0, end = millis() + TIMEOUT_MS;
        int count, i, total, threads;
        for (count = 0; count < members; count++)
                all[count] = member(group);
        for (;;) {
                int least = MOST_PARTITIONS, most = 0;
                for (i = 0, total = 0; i < count; i++) {
                        int own = assigned(all[i]);
                        while (poll_record(all[i], 0) >= 0)
                                ;
                        total += own;
                        least = own < least ? own : least;
                        most = own > most ? own : most;
                }
                if (total == 300 && most - least <= 1) {
                        if (count > members)
                                break;
                        switches(&threads);
                        printf("join: %d members with %d threads\n", count, threads);
                        began = millis();
                        all[count++] = member(group);
                }
                if (millis() > end)
                        die("the members do not agree");
                usleep(500);
        }
        printf("join: all agree after %.2f\n", millis() - began);
        fflush(stdout);
        _exit(0);
}

static double last[MOST_PARTITIONS], longest[MOST_PARTITIONS];

static void note(int partition) {
        double now = millis();
        if (partition < 0)
                return;
        if (last[partition] > 0 && now - last[partition] > longest[partition])
                longest[partition] = now - last[partition];
        last[partition] = now;
}

static void poll_for(rd_kafka_t *rk, double duration) {
        double end = millis() + duration;
        while (millis() < end)
                note(poll_record(rk, 10));
}

static void *second(void *group) {
        rd_kafka_t *rk = member(group);
        while (!stops)
                poll_record(rk, 100);
        return NULL;
}

/* The longest gap of the partitions that the list has. */
static double longest_of(const rd_kafka_topic_partition_list_t *list) {
        double most = 0;
        int i;
        for (i = 0; i < list->cnt; i++)
                if (longest[list->elems[i].partition] > most)
                        most = longest[list->elems[i].partition];
        return most;
}

static void pause_of_others(int duration) {
        char group[128];
        rd_kafka_topic_partition_list_t *list;
        rd_kafka_t *rk;
        pthread_t other;
        double quiet;
        int before;
        snprintf(group, sizeof(group), "%s", new_group());
        rk = member(group);
        wait_for_record(rk);
        poll_for(rk, 3000);
        memset(longest, 0, sizeof(longest));
        poll_for(rk, duration * 1e3);
        before = assigned(rk);
        rd_kafka_assignment(rk, &list);
        quiet = longest_of(list);
        memset(longest, 0, sizeof(longest));
        pthread_create(&other, NULL, second, group);
        poll_for(rk, duration * 1e3);
        rd_kafka_assignment(rk, &list);
        if (list->cnt >= before)
                die("there was no rebalance");
        printf("pause: %d of %d partitions stay, longest %.2f; without a rebalance %.2f\n", list->cnt, before, longest_of(list),
               quiet);
        fflush(stdout);
        _exit(0);
}

int main(int argc, char **argv) {
        int number;
        if (argc < 5)
                die("MODE BROKERS TOPIC NUMBER SETTING=VALUE..., see the head of group.c");
        brokers = argv[2];
        topic = argv[3];
        number = atoi(argv[4]);
        settings = argv + 5;
        if (!strcmp(argv[1], "first"))
                first(number);
        else if (!strcmp(argv[1], "commit"))
                commit(number);
        else if (!strcmp(argv[1], "close"))
                close_live(number);
        else if (!strcmp(argv[1], "close-without") && argc > 5) {
                settings = argv + 6;
                close_without(number, atoi(argv[5]));
        } else if (!strcmp(argv[1], "idle"))
                idle(number);
        else if (!strcmp(argv[1], "join"))
                join(number);
        else if (!strcmp(argv[1], "pause"))
                pause_of_others(number);
        else
                die("there is no such mode");
        return 0;
}
