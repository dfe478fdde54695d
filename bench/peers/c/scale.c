/* What a large cluster, or many clients, cost a process, measured through the C interface with the library that the program
 * finds:
 *
 *   scale brokers BROKERS TOPIC PARTITIONS      a producer sends a message to each partition, each of which another broker leads
 *   scale clients BROKERS TOPIC CLIENTS         producers in one process, each of which sends a message and then has nothing to do
 *   scale partitions BROKERS TOPIC PARTITIONS   a producer sends ten messages to each partition of a topic, in turn
 *   scale topics BROKERS PREFIX TOPICS          a producer sends ten messages to each of the topics PREFIX0, PREFIX1, ..., in turn
 *   scale metadata BROKERS TOPIC PARTITIONS     a client asks for the metadata of the whole cluster, five times
 *   scale consumer BROKERS TOPIC PARTITIONS     a consumer reads a message of each partition, assigned by hand
 *
 * Prints a line: the time in milliseconds from the creation of the first client to the first report, response or message; that to
 * the last one; the CPU milliseconds until then; the same of the next IDLE_SECONDS; the threads of the process; the largest
 * resident size in MiB. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <librdkafka/rdkafka.h>

#define IDLE_SECONDS 4
#define ROUNDS 10
#define TIMEOUT_MS 60000

static const char *brokers, *name;
static int count;
static double began, first;
static long delivered;
static char payload[100];

static double millis(void) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static double cpu_millis(void) {
        struct rusage used;
        getrusage(RUSAGE_SELF, &used);
        return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e3 +
               (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e3;
}

static void die(const char *what) {
        fprintf(stderr, "scale: %s\n", what);
        exit(1);
}

static void note_first(void) {
        if (first == 0)
                first = millis() - began;
}

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
        (void)rk;
        (void)opaque;
        if (message->err)
                die(rd_kafka_err2str(message->err));
        note_first();
        delivered++;
}

static rd_kafka_t *start(rd_kafka_type_t type) {
        const char *settings[][2] = {{"bootstrap.servers", brokers}, {"group.id", "scale"}, {"enable.auto.commit", "false"},
                                     {"auto.offset.reset", "earliest"}, {"log_level", "3"}};
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        char errstr[256];
        rd_kafka_t *rk;
        size_t i;
        for (i = 0; i < sizeof(settings) / sizeof(*settings); i++) {
                int is_of_consumers = i > 0 && i < 4;
                if (is_of_consumers && type == RD_KAFKA_PRODUCER)
                        continue;
                if (rd_kafka_conf_set(conf, settings[i][0], settings[i][1], errstr, sizeof(errstr)) != RD_KAFKA_CONF_OK)
                        die(errstr);
        }
        if (type == RD_KAFKA_PRODUCER)
                rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
        if (!(rk = rd_kafka_new(type, conf, errstr, sizeof(errstr))))
                die(errstr);
        return rk;
}

static void send_one(rd_kafka_t *rk, rd_kafka_topic_t *topic, int partition) {
        while (rd_kafka_produce(topic, partition, RD_KAFKA_MSG_F_COPY, payload, sizeof(payload), NULL, 0, NULL) == -1)
                rd_kafka_poll(rk, 10);
}

static void await_reports(rd_kafka_t *rk, long all) {
        double end = millis() + TIMEOUT_MS;
        while (delivered < all && millis() < end)
                rd_kafka_poll(rk, 10);
        if (delivered < all)
                die("not all messages were reported");
}

/* Sends messages to each partition of a topic, or to each topic. */
static void produce(int rounds, int has_topics) {
        rd_kafka_t *rk = start(RD_KAFKA_PRODUCER);
        rd_kafka_topic_t **topics = calloc((size_t)count, sizeof(*topics));
        int i, round;
        for (i = 0; i < (has_topics ? count : 1); i++) {
                char text[128];
                snprintf(text, sizeof(text), has_topics ? "%s%d" : "%s", name, i);
                topics[i] = rd_kafka_topic_new(rk, text, NULL);
        }
        for (round = 0; round < rounds; round++)
                for (i = 0; i < count; i++)
                        send_one(rk, topics[has_topics ? i : 0], has_topics ? 0 : i);
        await_reports(rk, (long)count * rounds);
}

static void many_clients(void) {
        rd_kafka_t **clients = calloc((size_t)count, sizeof(*clients));
        int i;
        for (i = 0; i < count; i++) {
                clients[i] = start(RD_KAFKA_PRODUCER);
                send_one(clients[i], rd_kafka_topic_new(clients[i], name, NULL), 0);
        }
        for (i = 0; i < count; i++)
                await_reports(clients[i], i + 1);
}

static void metadata(void) {
        rd_kafka_t *rk = start(RD_KAFKA_PRODUCER);
        int i;
        for (i = 0; i < 5; i++) {
                const struct rd_kafka_metadata *all;
                long partitions = 0;
                int topic;
                if (rd_kafka_metadata(rk, 1, NULL, &all, TIMEOUT_MS))
                        die("no metadata");
                note_first();
                for (topic = 0; topic < all->topic_cnt; topic++)
                        partitions += all->topics[topic].partition_cnt;
                if (partitions < count)
                        die("partitions are missing");
                rd_kafka_metadata_destroy(all);
        }
}

static void consume(void) {
        rd_kafka_t *rk = start(RD_KAFKA_CONSUMER);
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(count);
        double end = millis() + TIMEOUT_MS;
        int i, received = 0;
        rd_kafka_poll_set_consumer(rk);
        for (i = 0; i < count; i++)
                rd_kafka_topic_partition_list_add(list, name, i)->offset = 0;
        if (rd_kafka_assign(rk, list))
                die("not assigned");
        while (received < count && millis() < end) {
                rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, 100);
                if (message && !message->err) {
                        note_first();
                        received++;
                }
                if (message)
                        rd_kafka_message_destroy(message);
        }
        if (received < count)
                die("messages are missing");
}

static int threads(void) {
        DIR *folder = opendir("/proc/self/task");
        int found = 0;
        while (folder && readdir(folder))
                found++;
        return found - 2;
}

int main(int argc, char **argv) {
        struct rusage used;
        double all, busy;
        const char *mode;
        if (argc != 5)
                die("MODE BROKERS TOPIC COUNT");
        mode = argv[1];
        brokers = argv[2];
        name = argv[3];
        count = atoi(argv[4]);
        began = millis();
        if (!strcmp(mode, "brokers"))
                produce(1, 0);
        else if (!strcmp(mode, "clients"))
                many_clients();
        else if (!strcmp(mode, "partitions"))
                produce(ROUNDS, 0);
        else if (!strcmp(mode, "topics"))
                produce(ROUNDS, 1);
        else if (!strcmp(mode, "metadata"))
                metadata();
        else if (!strcmp(mode, "consumer"))
                consume();
        else
                die("what is to be measured?");
        all = millis() - began;
        busy = cpu_millis();
        sleep(IDLE_SECONDS);
        getrusage(RUSAGE_SELF, &used);
        printf("%.0f %.0f %.0f %.1f %d %.0f\n", first, all, busy, cpu_millis() - busy, threads(), (double)used.ru_maxrss / 1024);
        fflush(stdout);
        /* Ending hundreds of clients is not measured. */
        _exit(0);
}
