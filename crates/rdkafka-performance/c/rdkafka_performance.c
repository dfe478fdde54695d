/*
 * Measures producing and consuming through rdkafka.h. The flags and the result lines are those of librdkafka's
 * benchmark program. The entry point is ottla_rdkafka_performance(), at the end of the file.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <librdkafka/rdkafka.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_PARTITIONS 1024
/* The number of messages between two readings of the clock and polls for reports. */
#define STRIDE 256

/* The options of the command line. */
static struct {
        int mode; /* 'P', 'C', 'G', 'S' or 0 */
        const char *topic, *brokers, *key, *group, *share, *debug, *codec, *statistics, *pipe, *pattern, *latency_file;
        int partitions[MAX_PARTITIONS], partition_count;
        int64_t count, exit_after, rate;
        size_t size, batch;
        int64_t sequence; /* -1: none */
        int has_size, duplicate, interval_ms, intervals, parse_headers, idle, table, latency, offsets, no_reports, exit_at_end;
        int no_status, verbosity, dump, brokers_said, reset_said, start_said, is_explicit;
        unsigned seed;
        int64_t start;
} option = {.count = -1, .exit_after = -1, .sequence = -1, .interval_ms = 1000, .verbosity = 1,
            .codec = "no", .start = RD_KAFKA_OFFSET_BEGINNING};

/* The counters. Only the thread of main() writes them, because its polls serve the callbacks. */
static struct {
        uint64_t messages, bytes, delivered, delivered_bytes, failed, refused, errors, ends;
        uint64_t shown_messages, shown_bytes;
        int64_t offset, rtt_us;
        uint64_t began_us, ended_us, shown_us;
        uint64_t latency_count;
        double latency_sum, latency_low, latency_high, latency_last;
        double *latencies;
        size_t latency_room;
        int rows;
} count = {.offset = -1};

static volatile sig_atomic_t running = 1;
static rd_kafka_t *client;
static rd_kafka_headers_t *headers;
static FILE *statistics_to, *latency_to;

static void on_signal(int number) {
        (void)number;
        if (!running)
                _exit(1);
        running = 0;
}

static uint64_t clock_us(clockid_t clock) {
        struct timespec now;
        clock_gettime(clock, &now);
        return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static uint64_t now_us(void) {
        return clock_us(CLOCK_MONOTONIC);
}

static int bad(const char *what, const char *why) {
        fprintf(stderr, "%% %s: %s\n", what, why);
        return 1;
}

/* ---- Results ---- */

static void add_latency(double us) {
        if (!count.latency_count || us < count.latency_low)
                count.latency_low = us;
        if (!count.latency_count || us > count.latency_high)
                count.latency_high = us;
        count.latency_last = us;
        count.latency_sum += us;
        if (count.latency_count == count.latency_room) {
                size_t room = count.latency_room ? count.latency_room * 2 : 4096;
                double *grown = realloc(count.latencies, room * sizeof(*grown));
                if (grown) {
                        count.latencies = grown;
                        count.latency_room = room;
                }
        }
        if (count.latency_count < count.latency_room)
                count.latencies[count.latency_count] = us;
        count.latency_count++;
        if (latency_to)
                fprintf(latency_to, "%.0f\n", us);
}

static int smaller_first(const void *a, const void *b) {
        double left = *(const double *)a, right = *(const double *)b;
        return (left > right) - (left < right);
}

static const char *latency_text(void) {
        static char text[128];
        if (!count.latency_count)
                return "";
        snprintf(text, sizeof(text), ", latency curr/avg/lo/hi %.2f/%.2f/%.2f/%.2fms", count.latency_last / 1000,
                 count.latency_sum / (double)count.latency_count / 1000, count.latency_low / 1000,
                 count.latency_high / 1000);
        return text;
}

/* A divisor that is never zero. */
static uint64_t elapsed_us(uint64_t now) {
        uint64_t end = count.ended_us ? count.ended_us : now;
        return count.began_us && end > count.began_us ? end - count.began_us : 1;
}

static uint64_t per_second(uint64_t number, uint64_t us) {
        return (uint64_t)((double)number * 1e6 / (double)us);
}

static void table_row(uint64_t us) {
        int producer = option.mode == 'P';
        if (count.rows++ % 20 == 0) {
                static const char *const producing[] = {"elapsed", "msgs",   "bytes",  "rtt",   "dr",    "dr_m/s",
                                                        "dr_MB/s", "dr_err", "tx_err", "queue", "offset"};
                static const char *const consuming[] = {"elapsed", "msgs", "bytes",  "rtt",
                                                        "m/s",     "MB/s", "rx_err", "offset"};
                size_t i;
                for (i = 0; i < (producer ? 11u : 8u); i++)
                        printf("| %10.10s ", producer ? producing[i] : consuming[i]);
                printf("\n");
        }
        printf("| %10" PRIu64 " | %10" PRIu64 " | %10" PRIu64 " | %10" PRId64 " ", us / 1000, count.messages, count.bytes,
               count.rtt_us / 1000);
        if (producer)
                printf("| %10" PRIu64 " | %10" PRIu64 " | %10.2f | %10" PRIu64 " | %10" PRIu64 " | %10d | %10" PRId64 " \n",
                       count.delivered, per_second(count.delivered, us), (double)count.delivered_bytes / (double)us,
                       count.failed, count.refused, client ? rd_kafka_outq_len(client) : 0, count.offset);
        else
                printf("| %10" PRIu64 " | %10.2f | %10" PRIu64 " | %10" PRId64 " \n", per_second(count.messages, us),
                       (double)count.bytes / (double)us, count.errors, count.offset);
}

static void consumed_line(const char *head, uint64_t messages, uint64_t bytes, uint64_t us) {
        printf("%% %s%" PRIu64 " messages (%" PRIu64 " bytes) consumed in %" PRIu64 "ms: %" PRIu64
               " msgs/s (%.02f MB/s)%s\n",
               head, messages, bytes, us / 1000, per_second(messages, us), (double)bytes / (double)us, latency_text());
}

/* Prints the line of a display interval. */
static void show(uint64_t now) {
        uint64_t us;
        if (!count.began_us || now < count.shown_us + (uint64_t)option.interval_ms * 1000)
                return;
        us = elapsed_us(now);
        if (option.no_status || option.verbosity == 0) {
                /* Only the result is printed. */
        } else if (option.table) {
                table_row(us);
        } else if (option.mode == 'P') {
                printf("%% %" PRIu64 " messages produced (%" PRIu64 " bytes), %" PRIu64 " delivered (offset %" PRId64
                       ", %" PRIu64 " failed) in %" PRIu64 "ms: %" PRIu64 " msgs/s and %.02f MB/s, %" PRIu64
                       " produce failures, %i in queue, %s compression%s\n",
                       count.messages, count.bytes, count.delivered, count.offset, count.failed, us / 1000,
                       per_second(count.messages, us), (double)count.bytes / (double)us, count.refused,
                       rd_kafka_outq_len(client), option.codec, latency_text());
        } else {
                consumed_line("", count.messages, count.bytes, us);
                if (option.intervals)
                        consumed_line("INTERVAL: ", count.messages - count.shown_messages,
                                      count.bytes - count.shown_bytes, now > count.shown_us ? now - count.shown_us : 1);
        }
        count.shown_us = now;
        count.shown_messages = count.messages;
        count.shown_bytes = count.bytes;
        fflush(stdout);
}

static void result(void) {
        uint64_t us = elapsed_us(now_us());
        if (option.table)
                table_row(us);
        if (option.mode == 'P') {
                uint64_t sent = option.no_reports ? count.messages : count.delivered;
                uint64_t bytes = option.no_reports ? count.bytes : count.delivered_bytes;
                printf("%% %" PRIu64 " messages and %" PRIu64 " bytes sent in %" PRIu64 "ms: %" PRIu64
                       " msgs/s and %.02f Mb/s, %" PRIu64 " messages failed, %s compression\n",
                       sent, bytes, us / 1000, per_second(sent, us), (double)bytes / (double)us, count.failed,
                       option.codec);
                if (option.offsets)
                        printf("%% The last message has offset %" PRId64 "\n", count.offset);
        } else {
                consumed_line("", count.messages, count.bytes, us);
        }
        if (count.latency_count) {
                size_t held = count.latency_count < count.latency_room ? count.latency_count : count.latency_room;
                qsort(count.latencies, held, sizeof(*count.latencies), smaller_first);
                printf("%% Latency of %" PRIu64 " messages: avg %.3fms, p50 %.3fms, p99 %.3fms, p99.9 %.3fms, hi %.3fms\n",
                       count.latency_count, count.latency_sum / (double)count.latency_count / 1000,
                       count.latencies[(held - 1) / 2] / 1000, count.latencies[(size_t)((double)(held - 1) * 0.99)] / 1000,
                       count.latencies[(size_t)((double)(held - 1) * 0.999)] / 1000, count.latency_high / 1000);
        }
        fflush(stdout);
}

/* ---- Callbacks ---- */

/* -x: ends the program abruptly when this number of messages was transmitted. */
static void exit_abruptly(uint64_t transmitted) {
        if (option.exit_after < 0 || transmitted < (uint64_t)option.exit_after)
                return;
        printf("%% Hard exit after %" PRIu64 " messages, as requested\n", transmitted);
        exit(0);
}

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
        (void)rk;
        (void)opaque;
        if (message->err) {
                count.failed++;
                if (count.failed == 1 || option.verbosity >= 2)
                        printf("%% Message delivery failed: %s [%" PRId32 "]: %s\n", rd_kafka_topic_name(message->rkt),
                               message->partition, rd_kafka_err2str(message->err));
                return;
        }
        count.delivered++;
        count.delivered_bytes += message->len;
        count.offset = message->offset;
        exit_abruptly(count.delivered);
        if (option.latency && message->_private)
                add_latency((double)(now_us() - (uint64_t)(uintptr_t)message->_private));
        if (option.verbosity >= 3 || (option.offsets && option.verbosity >= 2))
                printf("%% Message delivered to partition %" PRId32 " at offset %" PRId64 "\n", message->partition,
                       message->offset);
}

static void on_message(rd_kafka_message_t *message, void *opaque) {
        (void)opaque;
        if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
                count.ends++;
                if (option.verbosity >= 2)
                        printf("%% End of %s [%" PRId32 "] at offset %" PRId64 "\n", rd_kafka_topic_name(message->rkt),
                               message->partition, message->offset);
                if (option.exit_at_end && count.ends >= (uint64_t)option.partition_count)
                        running = 0;
                return;
        }
        if (message->err) {
                count.errors++;
                printf("%% Consume error: %s [%" PRId32 "] offset %" PRId64 ": %s\n",
                       message->rkt ? rd_kafka_topic_name(message->rkt) : option.topic, message->partition,
                       message->offset, rd_kafka_message_errstr(message));
                if (message->err == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION ||
                    message->err == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC ||
                    message->err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
                        running = 0;
                return;
        }
        if (!count.messages)
                count.began_us = count.shown_us = now_us();
        if (option.count >= 0 && count.messages >= (uint64_t)option.count)
                return; /* the remaining messages of a batch */
        count.messages++;
        count.bytes += message->len;
        count.offset = message->offset;
        if (option.parse_headers) {
                rd_kafka_headers_t *of_message;
                rd_kafka_message_headers(message, &of_message);
        }
        if (option.latency && message->len > 8 && !memcmp(message->payload, "LATENCY:", 8)) {
                char text[32];
                size_t length = message->len - 8 < sizeof(text) - 1 ? message->len - 8 : sizeof(text) - 1;
                memcpy(text, (const char *)message->payload + 8, length);
                text[length] = '\0';
                add_latency((double)clock_us(CLOCK_REALTIME) - strtod(text, NULL));
        }
        if (option.verbosity >= 3 || (option.verbosity >= 2 && count.messages % 1000000 == 0))
                printf("@%" PRId64 ": %.*s: %.*s\n", message->offset, (int)message->key_len,
                       message->key ? (const char *)message->key : "", (int)message->len, (const char *)message->payload);
        if (option.count >= 0 && count.messages >= (uint64_t)option.count) {
                count.ended_us = now_us();
                running = 0;
        }
}

static void on_error(rd_kafka_t *rk, int err, const char *reason, void *opaque) {
        (void)opaque;
        printf("%% ERROR CALLBACK: %s: %s: %s\n", rd_kafka_name(rk), rd_kafka_err2str((rd_kafka_resp_err_t)err), reason);
        fflush(stdout);
}

static void on_throttle(rd_kafka_t *rk, const char *broker, int32_t id, int ms, void *opaque) {
        (void)rk;
        (void)opaque;
        printf("%% THROTTLED %dms by %s (%" PRId32 ")\n", ms, broker, id);
}

static int on_statistics(rd_kafka_t *rk, char *json, size_t length, void *opaque) {
        const char *rtt = json;
        int64_t sum = 0;
        int brokers = 0;
        (void)rk;
        (void)opaque;
        while ((rtt = strstr(rtt, "\"rtt\":"))) {
                const char *average = strstr(rtt, "\"avg\":");
                int64_t us = average ? strtoll(average + 6, NULL, 10) : 0;
                rtt += 6;
                if (us > 0) {
                        sum += us;
                        brokers++;
                }
        }
        if (brokers)
                count.rtt_us = sum / brokers;
        if (option.statistics)
                fprintf(statistics_to ? statistics_to : stdout, "%.*s\n", (int)length, json);
        return 0;
}

/* ---- Producing ---- */

/* Fills the payload with repetitions of the pattern. */
static char *payload_of_pattern(void) {
        const char *pattern = option.pattern && *option.pattern ? option.pattern : "librdkafka_performance";
        size_t length = strlen(pattern), at;
        char *payload;
        if (!option.has_size)
                option.size = option.pattern && *option.pattern ? length : 100;
        payload = malloc(option.size + 1);
        if (!payload)
                return NULL;
        for (at = 0; at < option.size; at++)
                payload[at] = pattern[at % length];
        payload[option.size] = '\0';
        return payload;
}

/* Overwrites the beginning of the payload with text, truncated to its size. */
static void stamp(char *payload, const char *text, int length) {
        size_t fits = (size_t)length < option.size ? (size_t)length : option.size;
        memcpy(payload, text, fits);
}

static int produce(rd_kafka_topic_t *topic) {
        char *payload = payload_of_pattern(), text[48];
        size_t key_length = option.key ? strlen(option.key) : 0;
        int64_t sequence = option.sequence;
        /* A payload that changes has to be copied, because the library reads it later. */
        int flags = option.duplicate ? RD_KAFKA_MSG_F_FREE
                    : sequence >= 0 || option.latency ? RD_KAFKA_MSG_F_COPY
                                                      : 0;
        int next_partition = 0, stopped = 0;
        if (!payload)
                return bad("Payload", strerror(ENOMEM));
        if (option.verbosity > 0 && option.count < 0)
                printf("%% Sending messages of size %zu bytes\n", option.size);
        else if (option.verbosity > 0)
                printf("%% Sending %" PRId64 " messages of size %zu bytes\n", option.count, option.size);
        fflush(stdout);
        count.began_us = count.shown_us = now_us();
        while (running && (option.count < 0 || count.messages < (uint64_t)option.count)) {
                int32_t partition = option.partition_count ? option.partitions[next_partition] : RD_KAFKA_PARTITION_UA;
                char *sent = payload;
                void *opaque = NULL;
                int failed;
                rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR_NO_ERROR;
                if (option.idle) {
                        rd_kafka_poll(client, 100);
                        show(now_us());
                        continue;
                }
                if (option.partition_count > 1)
                        next_partition = (next_partition + 1) % option.partition_count;
                if (option.latency) {
                        int length = snprintf(text, sizeof(text), "LATENCY:%" PRIu64 " ", clock_us(CLOCK_REALTIME));
                        stamp(payload, text, length);
                        opaque = (void *)(uintptr_t)now_us();
                } else if (sequence >= 0) {
                        stamp(payload, text, snprintf(text, sizeof(text), "%" PRId64 ": ", sequence));
                }
                if (option.duplicate) {
                        sent = malloc(option.size + 1);
                        if (!sent) {
                                stopped = bad("Payload", strerror(ENOMEM));
                                break;
                        }
                        memcpy(sent, payload, option.size);
                }
                if (headers) {
                        rd_kafka_headers_t *copy = rd_kafka_headers_copy(headers);
                        err = rd_kafka_producev(client, RD_KAFKA_V_RKT(topic), RD_KAFKA_V_PARTITION(partition),
                                                RD_KAFKA_V_MSGFLAGS(flags), RD_KAFKA_V_VALUE(sent, option.size),
                                                RD_KAFKA_V_KEY(option.key, key_length), RD_KAFKA_V_HEADERS(copy),
                                                RD_KAFKA_V_OPAQUE(opaque), RD_KAFKA_V_END);
                        failed = err != RD_KAFKA_RESP_ERR_NO_ERROR;
                        if (failed)
                                rd_kafka_headers_destroy(copy);
                } else {
                        failed = rd_kafka_produce(topic, partition, flags, sent, option.size, option.key, key_length,
                                                  opaque) == -1;
                        if (failed)
                                err = rd_kafka_last_error();
                }
                if (failed) {
                        if (option.duplicate)
                                free(sent);
                        if (err != RD_KAFKA_RESP_ERR__QUEUE_FULL) {
                                stopped = bad("Produce failed", rd_kafka_err2str(err));
                                break;
                        }
                        /* Delivery reports free space in the queue. */
                        count.refused++;
                        rd_kafka_poll(client, 10);
                        show(now_us());
                        continue;
                }
                count.messages++;
                count.bytes += option.size;
                if (sequence >= 0)
                        sequence++;
                if (option.no_reports)
                        exit_abruptly(count.messages);
                if (option.rate > 0) {
                        uint64_t due = count.began_us + count.messages * 1000000 / (uint64_t)option.rate, now;
                        while (running && (now = now_us()) < due) {
                                uint64_t wait = (due - now) / 1000;
                                if (wait)
                                        rd_kafka_poll(client, (int)(wait < 100 ? wait : 100));
                                else
                                        usleep((useconds_t)(due - now));
                        }
                }
                if (option.rate > 0 || count.messages % STRIDE == 0) {
                        rd_kafka_poll(client, 0);
                        show(now_us());
                }
        }
        while (running && !stopped && rd_kafka_outq_len(client) > 0) {
                rd_kafka_poll(client, 10);
                show(now_us());
        }
        count.ended_us = now_us();
        result();
        if (rd_kafka_outq_len(client) > 0) {
                rd_kafka_purge(client, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
                rd_kafka_flush(client, 1000);
        }
        free(payload);
        return stopped || count.failed > 0 || (option.count > 0 && count.messages < (uint64_t)option.count);
}

/* ---- Consuming ---- */

static int consume(rd_kafka_topic_t *topic) {
        rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
        rd_kafka_message_t **batch = option.batch ? calloc(option.batch, sizeof(*batch)) : NULL;
        int i, started;
        if (option.batch && !batch)
                return bad("Batch", strerror(ENOMEM));
        for (i = 0; i < option.partition_count; i++) {
                if (rd_kafka_consume_start_queue(topic, option.partitions[i], option.start, queue) == -1) {
                        bad("Failed to start consuming", rd_kafka_err2str(rd_kafka_last_error()));
                        running = 0;
                        count.errors++;
                        break;
                }
        }
        started = i;
        while (running) {
                if (batch) {
                        ssize_t got = rd_kafka_consume_batch_queue(queue, 100, batch, option.batch), at;
                        for (at = 0; at < got; at++) {
                                on_message(batch[at], NULL);
                                rd_kafka_message_destroy(batch[at]);
                        }
                } else {
                        rd_kafka_consume_callback_queue(queue, 100, on_message, NULL);
                }
                rd_kafka_poll(client, 0);
                show(now_us());
        }
        if (!count.ended_us)
                count.ended_us = now_us();
        result();
        for (i = 0; i < started; i++)
                rd_kafka_consume_stop(topic, option.partitions[i]);
        rd_kafka_queue_destroy(queue);
        free(batch);
        return count.errors > 0;
}

static int consume_as_group(void) {
        rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
        rd_kafka_resp_err_t err;
        rd_kafka_poll_set_consumer(client);
        rd_kafka_topic_partition_list_add(topics, option.topic, RD_KAFKA_PARTITION_UA);
        err = rd_kafka_subscribe(client, topics);
        rd_kafka_topic_partition_list_destroy(topics);
        if (err)
                return bad("Subscribe failed", rd_kafka_err2str(err));
        while (running) {
                rd_kafka_message_t *message = rd_kafka_consumer_poll(client, 100);
                if (message) {
                        on_message(message, NULL);
                        rd_kafka_message_destroy(message);
                }
                show(now_us());
        }
        if (!count.ended_us)
                count.ended_us = now_us();
        result();
        rd_kafka_consumer_close(client);
        return count.errors > 0;
}

#ifndef WITHOUT_SHARE_GROUPS
/* Sets where the share group starts if it is new: a setting of the group at the brokers. */
static int start_share_group(void) {
        const char *start = option.start == RD_KAFKA_OFFSET_BEGINNING ? "earliest" : "latest";
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_t *admin;
        rd_kafka_queue_t *queue;
        rd_kafka_ConfigResource_t *resource;
        rd_kafka_event_t *event;
        char errstr[512];
        int failed;
        rd_kafka_conf_set(conf, "bootstrap.servers", option.brokers, NULL, 0);
        admin = rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof(errstr));
        if (!admin) {
                rd_kafka_conf_destroy(conf);
                return bad("-o", errstr);
        }
        queue = rd_kafka_queue_new(admin);
        resource = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_GROUP, option.share);
        rd_kafka_error_destroy(rd_kafka_ConfigResource_add_incremental_config(resource, "share.auto.offset.reset",
                                                                              RD_KAFKA_ALTER_CONFIG_OP_TYPE_SET, start));
        rd_kafka_IncrementalAlterConfigs(admin, &resource, 1, NULL, queue);
        event = rd_kafka_queue_poll(queue, 60000);
        failed = !event || rd_kafka_event_error(event);
        if (failed)
                bad("-o", event ? rd_kafka_event_error_string(event) : "no response from the brokers");
        rd_kafka_event_destroy(event);
        rd_kafka_ConfigResource_destroy(resource);
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(admin);
        return failed;
}

static int consume_as_share_group(rd_kafka_conf_t *conf) {
        char errstr[512];
        rd_kafka_topic_partition_list_t *topics, *outcome = NULL;
        rd_kafka_share_t *share = rd_kafka_share_consumer_new(conf, errstr, sizeof(errstr));
        rd_kafka_error_t *error;
        rd_kafka_resp_err_t err;
        if (!share) {
                rd_kafka_conf_destroy(conf);
                return bad("the client can't start", errstr);
        }
        topics = rd_kafka_topic_partition_list_new(1);
        rd_kafka_topic_partition_list_add(topics, option.topic, RD_KAFKA_PARTITION_UA);
        err = rd_kafka_share_subscribe(share, topics);
        rd_kafka_topic_partition_list_destroy(topics);
        if (err)
                bad("Subscribe failed", rd_kafka_err2str(err));
        while (running && !err) {
                rd_kafka_messages_t *messages = NULL;
                size_t i, size;
                error = rd_kafka_share_poll(share, 100, &messages);
                if (error) {
                        bad("Poll failed", rd_kafka_error_string(error));
                        count.errors++;
                        running = !rd_kafka_error_is_fatal(error);
                        rd_kafka_error_destroy(error);
                }
                size = rd_kafka_messages_count(messages);
                for (i = 0; i < size; i++) {
                        rd_kafka_message_t *message = rd_kafka_messages_get(messages, i);
                        on_message(message, NULL);
                        if (option.is_explicit)
                                rd_kafka_share_acknowledge(share, message);
                }
                rd_kafka_messages_destroy(messages);
                show(now_us());
        }
        /* The messages of the last poll are accepted, too. */
        rd_kafka_error_destroy(rd_kafka_share_commit_sync(share, 10000, &outcome));
        if (outcome)
                rd_kafka_topic_partition_list_destroy(outcome);
        if (!count.ended_us)
                count.ended_us = now_us();
        result();
        rd_kafka_error_destroy(rd_kafka_share_destroy(share));
        return err || count.errors > 0;
}
#else
/* Linked to a library that is older than share groups. */
static int start_share_group(void) {
        return 0;
}

static int consume_as_share_group(rd_kafka_conf_t *conf) {
        rd_kafka_conf_destroy(conf);
        return bad("-S", "the library has no share groups");
}
#endif

/* ---- The command line ---- */

static void usage(const char *program) {
        fprintf(stderr,
                "Usage: %s [-C|-P|-G <group>|-S <group>] -t <topic> [-p <partition>] [-b <broker,..>] [options..]\n\n"
                "librdkafka version %s (0x%08x)\n\n"
                "  -C | -P | -G <group>   consume, produce, or consume as a member of a group\n"
                "  -S <group>             consume as a member of a share group\n"
                "  -t <topic>             the topic\n"
                "  -p <num>               partition; can be repeated (default: -P any, -C 0)\n"
                "  -b <brokers>           host[:port],.. (default: an embedded cluster while this program runs)\n"
                "  -c <cnt>               messages to send or receive\n"
                "  -i <ms>                display interval (default 1000)\n"
                "  -u                     print a table instead of lines\n"
                "  -l                     measure latency; for a consumer, the producer must run with -l, too\n"
                "  -A <file>              write the latency of each message to this file, in microseconds; requires -l\n"
                "  -X <prop=value>        set a property; file=<path> reads a file, list prints all, dump prints the values\n"
                "  -d <facs,..>           debug contexts: %s\n"
                "  -T <ms>                print statistics as JSON; -Y <command> gets them as its input\n"
                "  -R <seed>              accepted without effect\n"
                "  -q -v                  print less, more\n\n"
                "Producing:\n"
                "  -s <size>              size of a message (default: the length of -m, else 100)\n"
                "  -k <key>               key of a message\n"
                "  -m <text>              payload of a message, repeated up to its size\n"
                "  -F <start>             start payloads with a number, from this one on; -S <start> is the same\n"
                "  -H <name[=value]>      add a header\n"
                "  -D                     allocate a buffer per message, which the library frees\n"
                "  -a <acks>              -1, 0 or 1\n"
                "  -z <codec>             none, gzip, snappy, lz4 or zstd\n"
                "  -r <rate>              maximum number of messages per second\n"
                "  -x <cnt>               end abruptly after this number of messages\n"
                "  -O                     print the offset of the last message\n"
                "  -N                     no delivery reports\n"
                "  -I                     connect without sending\n\n"
                "Consuming:\n"
                "  -o <offset>            beginning, end, stored, a number, or -<n> before the end; with -S beginning or\n"
                "                         end, which sets where the group starts if it is new\n"
                "  -B <size>              consume batches of this size (default: one callback per message)\n"
                "  -H parse               parse the headers\n"
                "  -M                     also print a line for each interval\n"
                "  -e                     exit at the end of the partitions\n",
                program, rd_kafka_version_str(), (unsigned)rd_kafka_version(), rd_kafka_get_debug_contexts());
}

static int set(rd_kafka_conf_t *conf, const char *name, const char *value) {
        char errstr[512];
        if (!strcmp(name, "bootstrap.servers") || !strcmp(name, "metadata.broker.list") ||
            !strcmp(name, "test.mock.num.brokers")) {
                option.brokers_said = 1;
                option.brokers = strdup(value);
        }
        if (!strcmp(name, "auto.offset.reset") || !strcmp(name, "topic.auto.offset.reset"))
                option.reset_said = 1;
        if (!strcmp(name, "share.acknowledgement.mode"))
                option.is_explicit = !strcmp(value, "explicit");
        if (!strcmp(name, "compression.codec") || !strcmp(name, "compression.type"))
                option.codec = !strcmp(value, "none") ? "no" : strdup(value);
        if (rd_kafka_conf_set(conf, name, value, errstr, sizeof(errstr)) != RD_KAFKA_CONF_OK) {
                fprintf(stderr, "%% %s\n", errstr);
                return 1;
        }
        return 0;
}

/* Sets name=value; spaces around both are ignored. */
static int set_pair(rd_kafka_conf_t *conf, const char *pair) {
        char *copy = strdup(pair), *equals = copy ? strchr(copy, '=') : NULL, *end, *value;
        int failed;
        if (!equals) {
                free(copy);
                return bad("expected -X property=value instead of", pair);
        }
        *equals = '\0';
        value = equals + 1 + strspn(equals + 1, " \t");
        for (end = equals; end > copy && (end[-1] == ' ' || end[-1] == '\t'); end--)
                end[-1] = '\0';
        failed = set(conf, copy + strspn(copy, " \t"), value);
        free(copy);
        return failed;
}

static int set_from_file(rd_kafka_conf_t *conf, const char *path) {
        FILE *file = fopen(path, "r");
        char line[4096];
        int number = 0, failed = 0;
        if (!file)
                return bad(path, strerror(errno));
        while (!failed && fgets(line, sizeof(line), file)) {
                const char *start = line + strspn(line, " \t");
                number++;
                line[strcspn(line, "\r\n")] = '\0';
                if (*start && *start != '#' && set_pair(conf, start)) {
                        fprintf(stderr, "%% %s:%d\n", path, number);
                        failed = 1;
                }
        }
        fclose(file);
        return failed;
}

static int dump(rd_kafka_conf_t *conf) {
        size_t length, i;
        const char **pairs = rd_kafka_conf_dump(conf, &length);
        for (i = 0; i + 1 < length; i += 2)
                printf("%s = %s\n", pairs[i], pairs[i + 1]);
        rd_kafka_conf_dump_free(pairs, length);
        return 0;
}

/* Parses a number from low to high; otherwise prints an error that names the flag. */
static int number(char flag, const char *text, int64_t low, int64_t high, int64_t *value) {
        char *end;
        errno = 0;
        *value = strtoll(text, &end, 10);
        if (errno || end == text || *end || *value < low || *value > high) {
                fprintf(stderr, "%% -%c %s: expected a number from %" PRId64 " to %" PRId64 "\n", flag, text, low, high);
                return 1;
        }
        return 0;
}

static int start_offset(const char *text) {
        int64_t value;
        option.start_said = 1;
        if (!strcmp(text, "beginning"))
                option.start = RD_KAFKA_OFFSET_BEGINNING;
        else if (!strcmp(text, "end"))
                option.start = RD_KAFKA_OFFSET_END;
        else if (!strcmp(text, "stored"))
                option.start = RD_KAFKA_OFFSET_STORED;
        else if (number('o', text, INT64_MIN / 2, INT64_MAX, &value))
                return 1;
        else
                option.start = value < 0 ? RD_KAFKA_OFFSET_TAIL(-value) : value;
        return 0;
}

static int add_header(const char *text) {
        const char *equals = strchr(text, '=');
        if (!headers)
                headers = rd_kafka_headers_new(4);
        return rd_kafka_header_add(headers, text, equals ? equals - text : -1, equals ? equals + 1 : NULL, -1)
                   ? bad("Header", text)
                   : 0;
}

static int acks(rd_kafka_conf_t *conf, const char *text) {
        int64_t value;
        if (!strcmp(text, "all"))
                return set(conf, "acks", "-1");
        if (number('a', text, -1, 1000, &value))
                return 1;
        if (value > 1) {
                fprintf(stderr, "%% -a %s: current brokers accept 0, 1 and -1, so it is sent as -1\n", text);
                text = "-1";
        }
        return set(conf, "acks", text);
}

/* Reads the flags. Returns 0 to continue, 1 after printing an error, 2 if there is nothing else to do. */
static int parse(int argc, char **argv, rd_kafka_conf_t *conf) {
        int flag;
        int64_t value = 0;
        opterr = 0;
        while ((flag = getopt(argc, argv, "PCG:S:t:p:b:s:k:c:fi:MDd:m:F:x:R:a:z:o:X:B:eT:Y:qvIur:lA:OwNH:")) != -1) {
                int wrong = 0;
                switch (flag) {
                case 'P':
                case 'C':
                        option.mode = flag;
                        break;
                case 'G':
                        option.mode = 'G';
                        option.group = optarg;
                        wrong = set(conf, "group.id", optarg);
                        break;
                case 'S': option.share = optarg; break;
                case 't': option.topic = optarg; break;
                case 'p':
                        wrong = number('p', optarg, 0, INT32_MAX, &value);
                        if (!wrong && option.partition_count == MAX_PARTITIONS)
                                wrong = bad("-p", "too many partitions");
                        if (!wrong)
                                option.partitions[option.partition_count++] = (int)value;
                        break;
                case 'b': wrong = set(conf, "bootstrap.servers", optarg); break;
                case 's':
                        wrong = number('s', optarg, 0, 1000000000, &value);
                        option.size = (size_t)value;
                        option.has_size = 1;
                        break;
                case 'k': option.key = optarg; break;
                case 'c': wrong = number('c', optarg, -1, INT64_MAX, &option.count); break;
                case 'f': break;
                case 'i':
                        wrong = number('i', optarg, 1, INT32_MAX, &value);
                        option.interval_ms = (int)value;
                        break;
                case 'M': option.intervals = 1; break;
                case 'D': option.duplicate = 1; break;
                case 'd': wrong = set(conf, "debug", optarg); break;
                case 'm': option.pattern = optarg; break;
                case 'F': wrong = number('F', optarg, 0, INT64_MAX, &option.sequence); break;
                case 'x': wrong = number('x', optarg, 0, INT64_MAX, &option.exit_after); break;
                case 'R':
                        wrong = number('R', optarg, 0, UINT32_MAX, &value);
                        option.seed = (unsigned)value;
                        break;
                case 'a': wrong = acks(conf, optarg); break;
                case 'z': wrong = set(conf, "compression.codec", optarg); break;
                case 'o': wrong = start_offset(optarg); break;
                case 'X':
                        if (!strcmp(optarg, "list") || !strcmp(optarg, "help")) {
                                rd_kafka_conf_properties_show(stdout);
                                return 2;
                        }
                        if (!strcmp(optarg, "dump"))
                                option.dump = 1;
                        else if (!strncmp(optarg, "file=", 5))
                                wrong = set_from_file(conf, optarg + 5);
                        else
                                wrong = set_pair(conf, optarg);
                        break;
                case 'B':
                        wrong = number('B', optarg, 1, 10000000, &value);
                        option.batch = (size_t)value;
                        break;
                case 'e': option.exit_at_end = 1; break;
                case 'T':
                        option.statistics = optarg;
                        wrong = set(conf, "statistics.interval.ms", optarg);
                        break;
                case 'Y': option.pipe = optarg; break;
                case 'q': option.verbosity = option.verbosity > 0 ? option.verbosity - 1 : 0; break;
                case 'v': option.verbosity++; break;
                case 'I': option.idle = 1; break;
                case 'u': option.table = 1; break;
                case 'r': wrong = number('r', optarg, 1, INT32_MAX, &option.rate); break;
                case 'l': option.latency = 1; break;
                case 'A': option.latency_file = optarg; break;
                case 'O': option.offsets = 1; break;
                case 'w': option.no_status = 1; break;
                case 'N': option.no_reports = 1; break;
                case 'H':
                        if (!strcmp(optarg, "parse"))
                                option.parse_headers = 1;
                        else
                                wrong = add_header(optarg);
                        break;
                default:
                        fprintf(stderr, "%% -%c: %s\n\n", optopt,
                                strchr("GStpbskcidmFxRazoXBTYrAH", optopt) ? "the value is missing" : "unknown flag");
                        usage(argv[0]);
                        return 1;
                }
                if (wrong)
                        return 1;
        }
        /* A new group reads from the beginning, as with the original; -X may say otherwise. */
        if (!option.share && !option.reset_said && set(conf, "auto.offset.reset", "earliest"))
                return 1;
        if (option.dump) {
                dump(conf);
                return 2;
        }
        if (optind < argc) {
                bad("unexpected argument", argv[optind]);
                return 1;
        }
        if (option.share && option.mode == 'P') {
                if (number('S', option.share, 0, INT64_MAX, &option.sequence))
                        return 1;
        } else if (option.share) {
                if (option.mode)
                        return bad("-S", "it is a mode of its own; with -P it is the older name of -F");
                option.mode = 'S';
                if (option.exit_at_end)
                        return bad("-e", "a share group has no end");
                if (option.start != RD_KAFKA_OFFSET_BEGINNING && option.start != RD_KAFKA_OFFSET_END)
                        return bad("-o", "a share group starts at beginning or end");
                if (set(conf, "group.id", option.share))
                        return 1;
        }
        if (option.exit_at_end && set(conf, "enable.partition.eof", "true"))
                return 1;
        if (!option.mode || !option.topic) {
                usage(argv[0]);
                return 1;
        }
        if (option.latency_file && !option.latency)
                return bad("-A", "requires -l");
        if (option.latency && option.no_reports && option.mode == 'P')
                return bad("-l", "latency is measured with delivery reports, which -N disables");
        return 0;
}

static int open_outputs(void) {
        if (option.pipe && !(statistics_to = popen(option.pipe, "w")))
                return bad(option.pipe, strerror(errno));
        if (option.latency_file && !(latency_to = fopen(option.latency_file, "w")))
                return bad(option.latency_file, strerror(errno));
        return 0;
}

static int close_outputs(int failed) {
        if (statistics_to)
                pclose(statistics_to);
        if (latency_to && fclose(latency_to))
                failed = bad(option.latency_file, strerror(errno));
        free(count.latencies);
        return failed;
}

int ottla_rdkafka_performance(int argc, char **argv, const char *(*own_brokers)(void)) {
        char errstr[512];
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_topic_t *topic = NULL;
        int done, failed;
        done = parse(argc, argv, conf);
        if (!done && !option.brokers_said) {
                const char *brokers = own_brokers();
                done = !brokers || set(conf, "bootstrap.servers", brokers);
        }
        if (!done)
                done = open_outputs();
        if (done) {
                rd_kafka_conf_destroy(conf);
                return done == 1;
        }
        signal(SIGINT, on_signal);
        signal(SIGTERM, on_signal);
        signal(SIGPIPE, SIG_IGN);
        if (option.mode != 'P' && option.partition_count == 0)
                option.partition_count = 1; /* partition 0 */
        if (option.mode == 'P' && !option.no_reports)
                rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
        rd_kafka_conf_set_error_cb(conf, on_error);
        rd_kafka_conf_set_throttle_cb(conf, on_throttle);
        if (option.statistics)
                rd_kafka_conf_set_stats_cb(conf, on_statistics);
        if (option.mode == 'S') {
                if (option.start_said && start_share_group()) {
                        rd_kafka_conf_destroy(conf);
                        return 1;
                }
                failed = consume_as_share_group(conf);
                return close_outputs(failed);
        }
        client = rd_kafka_new(option.mode == 'P' ? RD_KAFKA_PRODUCER : RD_KAFKA_CONSUMER, conf, errstr, sizeof(errstr));
        if (!client) {
                rd_kafka_conf_destroy(conf);
                return bad("the client can't start", errstr);
        }
        if (option.mode == 'G') {
                failed = consume_as_group();
        } else {
                topic = rd_kafka_topic_new(client, option.topic, NULL);
                if (!topic)
                        failed = bad(option.topic, rd_kafka_err2str(rd_kafka_last_error()));
                else
                        failed = option.mode == 'P' ? produce(topic) : consume(topic);
        }
        if (topic)
                rd_kafka_topic_destroy(topic);
        if (headers)
                rd_kafka_headers_destroy(headers);
        rd_kafka_destroy(client);
        return close_outputs(failed);
}
