/*
 * A C program of rdkafka.h in a tight loop, with the command line and the result line of the other peers. It is linked once
 * to Ottla's C library and once to librdkafka: nothing else differs.
 *
 *   peer produce|consume|latency --mode MODE --name value ...
 *
 * produce: single (rd_kafka_produce, F_COPY), batch (rd_kafka_produce_batch, 100 at a time), transactions (--transaction N
 * messages each), flushes (as single, with idempotence and a flush after --flush N messages); --reports no, --threads N,
 * --warm yes (one message is sent before those that are measured).
 * consume: callback (rd_kafka_consume_callback_queue), batch (rd_kafka_consume_batch_queue, 1000), poll
 * (rd_kafka_consumer_poll, partitions assigned by hand), member-poll and member-batch (as a member of a group), share-poll
 * (rd_kafka_share_poll with implicit acknowledgement, librdkafka 2.16).
 */
#define _GNU_SOURCE
#include <librdkafka/rdkafka.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BATCH 100

static int argument_count;
static char **arguments;

static char *payloads;
static size_t payloads_length, size;
static long messages, partitions;
/* Messages of a transaction, or between two flushes. */
static long part;
/* The durations of commits or flushes, in microseconds. */
static double *ends;
static long ended;
static int round_robin, reports, threads, batched, in_transactions, flushes;

static rd_kafka_t *client;
static rd_kafka_topic_t *topic;
/* Only the thread that polls writes these, on a cache line of their own: the threads that produce read the others. */
static struct {
        volatile long delivered;
        long failed;
        char rest[112];
} reported __attribute__((aligned(128)));
static uint64_t received, received_bytes, check;
static long producing;

static void die(const char *what) {
        fprintf(stderr, "%s\n", what);
        exit(1);
}

static const char *value(const char *name, const char *otherwise) {
        int i;
        for (i = 2; i + 1 < argument_count; i += 2)
                if (!strcmp(arguments[i] + 2, name))
                        return arguments[i + 1];
        if (!otherwise) {
                fprintf(stderr, "--%s is missing\n", name);
                exit(1);
        }
        return otherwise;
}

static double seconds(void) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void read_payloads(void) {
        FILE *file = fopen(value("payloads", NULL), "rb");
        if (!file)
                die("the payload file can't be read");
        fseek(file, 0, SEEK_END);
        payloads_length = (size_t)ftell(file);
        rewind(file);
        payloads = malloc(payloads_length);
        if (!payloads || fread(payloads, 1, payloads_length, file) != payloads_length || payloads_length < size || !size)
                die("the payload file is too short");
        fclose(file);
}

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
        (void)rk;
        (void)opaque;
        reported.delivered = reported.delivered + 1;
        reported.failed += message->err != 0;
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *text) {
        char errstr[512];
        if (rd_kafka_conf_set(conf, name, text, errstr, sizeof(errstr)) != RD_KAFKA_CONF_OK)
                die(errstr);
}

/* The brokers' addresses, and what the command line sets. */
static void set_given(rd_kafka_conf_t *conf) {
        int i;
        set(conf, "bootstrap.servers", value("bootstrap", NULL));
        for (i = 2; i + 1 < argument_count; i += 2) {
                char *equals = strchr(arguments[i + 1], '=');
                if (!strcmp(arguments[i], "--set") && equals) {
                        *equals = '\0';
                        set(conf, arguments[i + 1], equals + 1);
                        *equals = '=';
                }
        }
}

static void start(rd_kafka_type_t type, rd_kafka_conf_t *conf) {
        char errstr[512];
        set_given(conf);
        client = rd_kafka_new(type, conf, errstr, sizeof(errstr));
        if (!client)
                die(errstr);
        topic = rd_kafka_topic_new(client, value("topic", NULL), NULL);
        if (!topic)
                die("no topic");
}

static void start_producer(void) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        set(conf, "compression.codec", value("codec", NULL));
        set(conf, "acks", value("acks", NULL));
        if (flushes)
                set(conf, "enable.idempotence", "true");
        if (in_transactions) {
                char id[32];
                snprintf(id, sizeof(id), "bench-%d", (int)getpid());
                set(conf, "transactional.id", id);
        }
        if (reports)
                rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
        start(RD_KAFKA_PRODUCER, conf);
}

/* Sends a message and waits for its report: the partitions are known and connected afterwards. */
static void warm_up(void) {
        if (rd_kafka_produce(topic, RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY, payloads, size, NULL, 0, NULL) ||
            rd_kafka_flush(client, 60000))
                die("the first message was not sent");
        reported.delivered = 0;
}

static void must(rd_kafka_error_t *error) {
        if (error)
                die(rd_kafka_error_string(error));
}

/* Ends a transaction, or flushes, and begins the next one. */
static void end_part(long number) {
        double began = seconds();
        if (number > 0 && in_transactions)
                must(rd_kafka_commit_transaction(client, 60000));
        else if (number > 0 && flushes && rd_kafka_flush(client, 60000))
                die("not all was sent within a minute");
        if (number > 0 && ends)
                ends[ended++] = (seconds() - began) * 1e6;
        if (number < messages && in_transactions)
                must(rd_kafka_begin_transaction(client));
}

static int smaller_first(const void *a, const void *b) {
        double left = *(const double *)a, right = *(const double *)b;
        return (left > right) - (left < right);
}

static void report(double began, long done, long errors, uint64_t bytes) {
        printf("{\"version\":\"%s\",\"messages\":%ld,\"errors\":%ld,\"bytes\":%llu,\"seconds\":%.6f",
               rd_kafka_version_str(), done, errors, (unsigned long long)bytes, seconds() - began);
        if (ended) {
                qsort(ends, (size_t)ended, sizeof(*ends), smaller_first);
                printf(",\"p50_us\":%.1f,\"p99_us\":%.1f,\"p999_us\":%.1f", ends[(ended - 1) / 2],
                       ends[(long)((double)(ended - 1) * 0.99)], ends[(long)((double)(ended - 1) * 0.999)]);
        }
        printf("}\n");
        fflush(stdout);
}

/* A single thread produces and polls; with several threads the main thread polls. */
static void wait_for_room(void) {
        if (threads == 1) {
                rd_kafka_poll(client, 10);
        } else {
                struct timespec pause = {0, 1000000};
                nanosleep(&pause, NULL);
        }
}

static int32_t partition_of(long number) {
        return round_robin ? (int32_t)(number % partitions) : RD_KAFKA_PARTITION_UA;
}

static void *produce_share(void *share) {
        long number, count = *(long *)share;
        size_t next = 0;
        rd_kafka_message_t batch[BATCH];
        memset(batch, 0, sizeof(batch));
        for (number = 0; number < count;) {
                long step = 1, i;
                if (batched) {
                        int32_t partition = partition_of(number / BATCH);
                        int taken;
                        step = count - number < BATCH ? count - number : BATCH;
                        for (i = 0; i < step; i++) {
                                next = next + size > payloads_length ? 0 : next;
                                batch[i].payload = payloads + next;
                                batch[i].len = size;
                                next += size;
                        }
                        taken = rd_kafka_produce_batch(topic, partition, RD_KAFKA_MSG_F_COPY, batch, (int)step);
                        while (taken < step) {
                                /* Rejected messages have an error, and are sent again in order. */
                                rd_kafka_message_t again[BATCH];
                                int left = 0;
                                memset(again, 0, sizeof(again));
                                for (i = 0; i < step; i++)
                                        if (batch[i].err)
                                                again[left++] = batch[i];
                                if (left == 0)
                                        break;
                                memcpy(batch, again, sizeof(*again) * (size_t)left);
                                step = left;
                                number += taken;
                                wait_for_room();
                                taken = rd_kafka_produce_batch(topic, partition, RD_KAFKA_MSG_F_COPY, batch, left);
                        }
                } else {
                        if (part && number % part == 0)
                                end_part(number);
                        next = next + size > payloads_length ? 0 : next;
                        while (rd_kafka_produce(topic, partition_of(number), RD_KAFKA_MSG_F_COPY, payloads + next, size, NULL,
                                                0, NULL) == -1)
                                wait_for_room();
                        next += size;
                }
                number += step;
                if (threads == 1 && (number % 1024 < step))
                        rd_kafka_poll(client, 0);
        }
        __atomic_sub_fetch(&producing, 1, __ATOMIC_RELEASE);
        return NULL;
}

static void produce(void) {
        double began;
        batched = !strcmp(value("mode", "single"), "batch");
        in_transactions = !strcmp(value("mode", "single"), "transactions");
        flushes = !strcmp(value("mode", "single"), "flushes");
        part = atol(value(in_transactions ? "transaction" : "flush", flushes || in_transactions ? "1000" : "0"));
        if (part > 0)
                ends = calloc((size_t)(messages / part + 2), sizeof(*ends));
        read_payloads();
        start_producer();
        if (in_transactions)
                must(rd_kafka_init_transactions(client, 60000));
        if (!strcmp(value("warm", "no"), "yes"))
                warm_up();
        began = seconds();
        producing = threads;
        if (threads == 1) {
                produce_share(&messages);
        } else {
                pthread_t *thread = calloc((size_t)threads, sizeof(*thread));
                long share = messages / threads;
                int i;
                messages = share * threads;
                for (i = 0; i < threads; i++)
                        pthread_create(&thread[i], NULL, produce_share, &share);
                while (__atomic_load_n(&producing, __ATOMIC_ACQUIRE) > 0)
                        rd_kafka_poll(client, 10);
                for (i = 0; i < threads; i++)
                        pthread_join(thread[i], NULL);
        }
        end_part(messages);
        if (reports) {
                while (reported.delivered < messages)
                        rd_kafka_poll(client, 100);
        } else {
                if (rd_kafka_flush(client, 60000))
                        die("not all was sent within a minute");
                reported.delivered = messages;
        }
        report(began, reported.delivered, reported.failed, 0);
}

static void latency(void) {
        long warm = messages / 10, number, all = messages + warm;
        double *times = calloc((size_t)messages, sizeof(*times));
        size_t next = 0;
        read_payloads();
        start_producer();
        for (number = 0; number < all; number++) {
                double began = seconds();
                next = next + size > payloads_length ? 0 : next;
                if (rd_kafka_produce(topic, 0, RD_KAFKA_MSG_F_COPY, payloads + next, size, NULL, 0, NULL) == -1)
                        die("not taken");
                while (reported.delivered <= number)
                        rd_kafka_poll(client, 1000);
                if (number >= warm)
                        times[number - warm] = (seconds() - began) * 1e6;
                next += size;
        }
        if (reported.failed)
                die("not delivered");
        qsort(times, (size_t)messages, sizeof(*times), smaller_first);
        printf("{\"version\":\"%s\",\"messages\":%ld,\"errors\":0,\"p50_us\":%.1f,\"p99_us\":%.1f,\"p999_us\":%.1f}\n",
               rd_kafka_version_str(), messages, times[(messages - 1) / 2], times[(long)((double)(messages - 1) * 0.99)],
               times[(long)((double)(messages - 1) * 0.999)]);
}

static void take(rd_kafka_message_t *message, void *opaque) {
        (void)opaque;
        if (!message->err) {
                received++;
                received_bytes += message->len;
                check += message->len ? *(const unsigned char *)message->payload : 0;
        }
}

static int is_member(const char *mode) { return !strncmp(mode, "member-", 7); }

/* Joins a group of its own, by polls of one message or of up to 1000. */
static void consume_as_member(int is_batch, double end) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_queue_t *queue;
        rd_kafka_message_t *batch[1000];
        rd_kafka_poll_set_consumer(client);
        queue = rd_kafka_queue_get_consumer(client);
        rd_kafka_topic_partition_list_add(list, value("topic", NULL), RD_KAFKA_PARTITION_UA);
        if (rd_kafka_subscribe(client, list))
                die("not subscribed");
        while (received < (uint64_t)messages) {
                ssize_t got = 1, at;
                if (is_batch)
                        got = rd_kafka_consume_batch_queue(queue, 1000, batch, 1000);
                else if (!(batch[0] = rd_kafka_consumer_poll(client, 1000)))
                        got = 0;
                for (at = 0; at < got; at++) {
                        take(batch[at], NULL);
                        rd_kafka_message_destroy(batch[at]);
                }
                if (got <= 0 && seconds() > end)
                        break;
        }
}

#ifndef WITHOUT_SHARE_GROUPS
/* A new share group starts at the end unless its setting at the brokers says otherwise. */
static void start_at_the_beginning(const char *group) {
        rd_kafka_queue_t *queue;
        rd_kafka_ConfigResource_t *resource = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_GROUP, group);
        rd_kafka_event_t *event;
        const rd_kafka_ConfigResource_t **results;
        size_t count = 0;
        start(RD_KAFKA_PRODUCER, rd_kafka_conf_new());
        queue = rd_kafka_queue_new(client);
        must(rd_kafka_ConfigResource_add_incremental_config(resource, "share.auto.offset.reset",
                                                            RD_KAFKA_ALTER_CONFIG_OP_TYPE_SET, "earliest"));
        rd_kafka_IncrementalAlterConfigs(client, &resource, 1, NULL, queue);
        event = rd_kafka_queue_poll(queue, 60000);
        if (!event || rd_kafka_event_error(event))
                die("the group can't be configured");
        results = rd_kafka_IncrementalAlterConfigs_result_resources(
            rd_kafka_event_IncrementalAlterConfigs_result(event), &count);
        if (count != 1 || rd_kafka_ConfigResource_error(results[0]))
                die("the group can't be configured");
        rd_kafka_event_destroy(event);
        rd_kafka_ConfigResource_destroy(resource);
        rd_kafka_queue_destroy(queue);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(client);
}

/* A member of a share group of its own; the next poll, and the commit at the end, acknowledge the messages of the last. */
static void consume_in_a_share_group(void) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1), *outcome = NULL;
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_share_t *share;
        char group[32], errstr[512];
        double began, end;
        snprintf(group, sizeof(group), "bench-%d", (int)getpid());
        start_at_the_beginning(group);
        set(conf, "group.id", group);
        set_given(conf);
        share = rd_kafka_share_consumer_new(conf, errstr, sizeof(errstr));
        if (!share)
                die(errstr);
        rd_kafka_topic_partition_list_add(list, value("topic", NULL), RD_KAFKA_PARTITION_UA);
        if (rd_kafka_share_subscribe(share, list))
                die("not subscribed");
        began = seconds();
        end = began + 120;
        while (received < (uint64_t)messages && seconds() < end) {
                rd_kafka_messages_t *polled = NULL;
                size_t at, count;
                must(rd_kafka_share_poll(share, 1000, &polled));
                count = polled ? rd_kafka_messages_count(polled) : 0;
                for (at = 0; at < count; at++)
                        take(rd_kafka_messages_get(polled, at), NULL);
                rd_kafka_messages_destroy(polled);
        }
        must(rd_kafka_share_commit_sync(share, 60000, &outcome));
        report(began, (long)received, 0, received_bytes);
}
#else
static void consume_in_a_share_group(void) { die("this librdkafka has no share consumers"); }
#endif

static void consume(void) {
        const char *mode = value("mode", "callback");
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        char group[32];
        double began, end;
        long i;
        if (!strcmp(mode, "share-poll")) {
                consume_in_a_share_group();
                return;
        }
        /* The members of earlier runs are still in their groups. */
        snprintf(group, sizeof(group), "bench-%d", (int)getpid());
        set(conf, "group.id", group);
        set(conf, "enable.auto.commit", "false");
        set(conf, "auto.offset.reset", "earliest");
        set(conf, "isolation.level", value("isolation", "read_committed"));
        start(RD_KAFKA_CONSUMER, conf);
        began = seconds();
        end = began + 60;
        if (is_member(mode)) {
                consume_as_member(!strcmp(mode, "member-batch"), end);
        } else if (!strcmp(mode, "poll")) {
                rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)partitions);
                rd_kafka_poll_set_consumer(client);
                for (i = 0; i < partitions; i++)
                        rd_kafka_topic_partition_list_add(list, value("topic", NULL), (int32_t)i)->offset =
                            RD_KAFKA_OFFSET_BEGINNING;
                if (rd_kafka_assign(client, list))
                        die("not assigned");
                while (received < (uint64_t)messages) {
                        rd_kafka_message_t *message = rd_kafka_consumer_poll(client, 1000);
                        if (message) {
                                take(message, NULL);
                                rd_kafka_message_destroy(message);
                        } else if (seconds() > end) {
                                break;
                        }
                }
        } else {
                rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
                rd_kafka_message_t *batch[1000];
                for (i = 0; i < partitions; i++)
                        if (rd_kafka_consume_start_queue(topic, (int32_t)i, RD_KAFKA_OFFSET_BEGINNING, queue))
                                die("not started");
                while (received < (uint64_t)messages && seconds() < end) {
                        if (!strcmp(mode, "callback")) {
                                rd_kafka_consume_callback_queue(queue, 1000, take, NULL);
                        } else {
                                ssize_t got = rd_kafka_consume_batch_queue(queue, 1000, batch, 1000), at;
                                for (at = 0; at < got; at++) {
                                        take(batch[at], NULL);
                                        rd_kafka_message_destroy(batch[at]);
                                }
                        }
                }
        }
        report(began, (long)received, 0, received_bytes);
}

int peer_c_main(int argc, char **argv) {
        argument_count = argc;
        arguments = argv;
        if (argc < 2)
                die("usage: peer produce|consume|latency --name value ...");
        messages = atol(value("messages", NULL));
        partitions = atol(value("partitions", NULL));
        size = (size_t)atol(value("size", NULL));
        round_robin = !strcmp(value("spread", "own"), "round-robin");
        reports = strcmp(value("reports", "yes"), "no") != 0;
        threads = atoi(value("threads", "1"));
        if (threads < 1 || partitions < 1 || messages < 1)
                die("threads, partitions and messages are at least 1");
        if (!strcmp(argv[1], "produce"))
                produce();
        else if (!strcmp(argv[1], "consume"))
                consume();
        else if (!strcmp(argv[1], "latency"))
                latency();
        else
                die("there is no such job");
        fflush(stdout);
#ifdef PEER_PROFILED
        /* An instrumented library writes its profile now. */
        exit(0);
#else
        /* Destroying the client is not measured. */
        _Exit(0);
#endif
}

#ifdef PEER_MAIN
int main(int argc, char **argv) {
        return peer_c_main(argc, argv);
}
#endif
