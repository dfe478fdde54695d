/* Share groups of the cluster inside the process: the settings of rd_kafka_mock_sharegroup_*, as members see them
 * whose requests are written by hand; and calls with invalid arguments. */
#include "test.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#define LIMIT_REACHED 133
#define EARLIEST 1

/* A request that is being written, or a response that is being read. */
typedef struct {
        unsigned char bytes[65536];
        size_t at, size;
} buffer;

static void put(buffer *b, uint64_t value, int size) {
        while (size-- > 0)
                b->bytes[b->size++] = (unsigned char)(value >> (8 * size));
}

static void put_bytes(buffer *b, const void *bytes, size_t size) {
        memcpy(b->bytes + b->size, bytes, size);
        b->size += size;
}

/* A text of a flexible version, of less than 127 bytes. */
static void put_text(buffer *b, const char *text) {
        put(b, strlen(text) + 1, 1);
        put_bytes(b, text, strlen(text));
}

static int64_t take(buffer *b, int size) {
        uint64_t value = 0;
        int i;
        if (b->size - b->at < (size_t)size) {
                CHECK(!"the answer is too short");
                return 0;
        }
        for (i = 0; i < size; i++)
                value = value << 8 | b->bytes[b->at++];
        switch (size) {
        case 2:
                return (int16_t)value;
        case 4:
                return (int32_t)value;
        default:
                return (int64_t)value;
        }
}

static size_t take_length(buffer *b) {
        size_t value = 0;
        int shift, next = 0x80;
        for (shift = 0; next & 0x80 && shift < 28; shift += 7) {
                next = (int)take(b, 1);
                value |= (size_t)(next & 0x7f) << shift;
        }
        return value;
}

/* The bytes of a text or of records, which may be NULL. */
static void skip(buffer *b) {
        size_t length = take_length(b);
        if (length > 1)
                b->at += length - 1;
        CHECK(b->at <= b->size);
}

static int connect_to(const char *bootstraps) {
        struct sockaddr_in address;
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        memset(&address, 0, sizeof(address));
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        address.sin_port = htons((uint16_t)atoi(strrchr(bootstraps, ':') + 1));
        if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address))) {
                perror("connect");
                exit(1);
        }
        return fd;
}

static void begin(buffer *b, int16_t api, int16_t version, int is_flexible) {
        b->at = b->size = 0;
        put(b, 0, 4);
        put(b, (uint64_t)api, 2);
        put(b, (uint64_t)version, 2);
        put(b, 7, 4);
        put(b, 0xffff, 2);
        if (is_flexible)
                put(b, 0, 1);
}

/* Sends the request and reads its response, up to the end of the header. */
static void call(int fd, buffer *b, int is_flexible) {
        size_t got = 0, size = b->size - 4;
        buffer length;
        length.at = length.size = 0;
        put(&length, size, 4);
        memcpy(b->bytes, length.bytes, 4);
        CHECK(write(fd, b->bytes, b->size) == (ssize_t)b->size);
        b->at = 0;
        b->size = 4;
        while (got < b->size) {
                ssize_t n = read(fd, b->bytes + got, b->size - got);
                if (n <= 0) {
                        CHECK(!"the connection was closed");
                        exit(1);
                }
                got += (size_t)n;
                if (got == 4 && b->size == 4) {
                        b->size += (size_t)take(b, 4);
                        CHECK(b->size <= sizeof(b->bytes));
                }
        }
        CHECK(take(b, 4) == 7);
        if (is_flexible)
                CHECK(take(b, 1) == 0);
}

/* The response to a heartbeat. */
typedef struct {
        int error, epoch, interval;
        /* -1: the partitions are not mentioned. */
        int partitions;
        unsigned char topic[16];
} heard;

static heard heartbeat(int fd, const char *group, const char *member, int epoch) {
        static buffer b;
        heard answer;
        size_t topics, i;
        memset(&answer, 0, sizeof(answer));
        begin(&b, 76, 1, 1);
        put_text(&b, group);
        put_text(&b, member);
        put(&b, (uint64_t)epoch, 4);
        put(&b, 0, 1);
        put(&b, epoch == -1 ? 0 : 2, 1);
        if (epoch != -1)
                put_text(&b, "t");
        put(&b, 0, 1);
        call(fd, &b, 1);
        take(&b, 4);
        answer.error = (int)take(&b, 2);
        skip(&b);
        skip(&b);
        answer.epoch = (int)take(&b, 4);
        answer.interval = (int)take(&b, 4);
        answer.partitions = -1;
        if ((signed char)take(&b, 1) == 1) {
                answer.partitions = 0;
                topics = take_length(&b);
                for (i = 1; i < topics; i++) {
                        size_t count;
                        memcpy(answer.topic, b.bytes + b.at, 16);
                        b.at += 16;
                        count = take_length(&b) - 1;
                        answer.partitions += (int)count;
                        b.at += 4 * count + 1;
                }
        }
        return answer;
}

/* The result of a ShareFetch: the first range of records. */
typedef struct {
        int error, partition_error, lock;
        int64_t first, last;
        int deliveries;
} fetched;

static fetched fetch(int fd, const char *group, const char *member, int epoch, const unsigned char *topic) {
        static buffer b;
        fetched answer;
        memset(&answer, 0, sizeof(answer));
        answer.first = answer.last = -1;
        begin(&b, 78, 1, 1);
        put_text(&b, group);
        put_text(&b, member);
        put(&b, (uint64_t)epoch, 4);
        put(&b, 20, 4);
        put(&b, 1, 4);
        put(&b, 32768, 4);
        put(&b, 500, 4);
        put(&b, 500, 4);
        put(&b, 2, 1);
        put_bytes(&b, topic, 16);
        put(&b, 2, 1);
        put(&b, 0, 4);
        put(&b, 1, 1);
        put(&b, 0, 2);
        put(&b, 1, 1);
        put(&b, 0, 1);
        call(fd, &b, 1);
        take(&b, 4);
        answer.error = (int)take(&b, 2);
        skip(&b);
        answer.lock = (int)take(&b, 4);
        if (take_length(&b) > 1) {
                b.at += 16;
                CHECK(take_length(&b) == 2);
                CHECK(take(&b, 4) == 0);
                answer.partition_error = (int)take(&b, 2);
                skip(&b);
                take(&b, 2);
                skip(&b);
                b.at += 9;
                skip(&b);
                if (take_length(&b) > 1) {
                        answer.first = take(&b, 8);
                        answer.last = take(&b, 8);
                        answer.deliveries = (int)take(&b, 2);
                }
        }
        return answer;
}

static uint32_t crc32c(const unsigned char *bytes, size_t size) {
        uint32_t crc = 0xffffffff;
        while (size--) {
                int bit;
                crc ^= *bytes++;
                for (bit = 0; bit < 8; bit++)
                        crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
        }
        return ~crc;
}

/* Produces a record of a transaction that never ends. */
static void produce_in_transaction(int fd) {
        static const unsigned char record[] = {14, 0, 0, 0, 1, 2, 'x', 0};
        static buffer b, batch;
        batch.size = 0;
        put(&batch, 0, 8);
        put(&batch, 49 + sizeof(record), 4);
        put(&batch, 0xffffffff, 4);
        put(&batch, 2, 1);
        put(&batch, 0, 4);
        put(&batch, 0x10, 2);
        put(&batch, 0, 4);
        put(&batch, 1000, 8);
        put(&batch, 1000, 8);
        put(&batch, 1, 8);
        put(&batch, 0, 2);
        put(&batch, 0, 4);
        put(&batch, 1, 4);
        put_bytes(&batch, record, sizeof(record));
        {
                buffer crc;
                crc.size = 0;
                put(&crc, crc32c(batch.bytes + 21, batch.size - 21), 4);
                memcpy(batch.bytes + 17, crc.bytes, 4);
        }
        begin(&b, 0, 3, 0);
        put(&b, 2, 2);
        put_bytes(&b, "id", 2);
        put(&b, 0xffff, 2);
        put(&b, 1000, 4);
        put(&b, 1, 4);
        put(&b, 1, 2);
        put_bytes(&b, "t", 1);
        put(&b, 1, 4);
        put(&b, 0, 4);
        put(&b, batch.size, 4);
        put_bytes(&b, batch.bytes, batch.size);
        call(fd, &b, 0);
        CHECK(take(&b, 4) == 1);
        CHECK(take(&b, 2) == 1);
        take(&b, 1);
        CHECK(take(&b, 4) == 1);
        CHECK(take(&b, 4) == 0);
        CHECK(take(&b, 2) == 0);
}

/* Produces this number of record batches of one record to partition 0. */
static void produce(rd_kafka_t *rk, int count) {
        while (count--) {
                CHECK(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_PARTITION(0),
                                        RD_KAFKA_V_VALUE((void *)"value", 5), RD_KAFKA_V_END) == 0);
                CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
        }
}

static void free_ids(char **ids, size_t count) {
        while (count > 0)
                free(ids[--count]);
        free(ids);
}

static size_t members(rd_kafka_mock_cluster_t *cluster, const char *group) {
        char **ids = (char **)&ids;
        size_t count = 99;
        CHECK(rd_kafka_mock_sharegroup_get_member_ids(cluster, group, &ids, &count) == 0);
        CHECK((ids == NULL) == (count == 0));
        free_ids(ids, count);
        return count;
}

/* Members of a group, session timeouts, the limit of members, and assignments. */
static void membership(rd_kafka_mock_cluster_t *cluster, int a, int b, unsigned char *topic) {
        rd_kafka_topic_partition_list_t *lists[2];
        const char *names[2] = {"a", "b"};
        char **ids = (char **)&ids;
        size_t count = 99;
        heard heard_a, heard_b;

        CHECK(rd_kafka_mock_sharegroup_get_member_ids(cluster, "g", &ids, &count) ==
              RD_KAFKA_RESP_ERR_GROUP_ID_NOT_FOUND);
        CHECK(ids == NULL && count == 0);

        rd_kafka_mock_sharegroup_set_heartbeat_interval(cluster, 1234);
        rd_kafka_mock_sharegroup_set_max_size(cluster, 2);
        heard_a = heartbeat(a, "g", "a", 0);
        CHECK(heard_a.error == 0 && heard_a.interval == 1234 && heard_a.partitions == 2);
        memcpy(topic, heard_a.topic, 16);
        heard_b = heartbeat(b, "g", "b", 0);
        CHECK(heard_b.error == 0 && heard_b.partitions == 1);
        CHECK(heartbeat(b, "g", "c", 0).error == RD_KAFKA_RESP_ERR_GROUP_MAX_SIZE_REACHED);
        rd_kafka_mock_sharegroup_set_max_size(cluster, 0);
        rd_kafka_mock_sharegroup_set_heartbeat_interval(cluster, 0);
        CHECK(heartbeat(b, "other", "c", 0).interval == 5000);

        CHECK(rd_kafka_mock_sharegroup_get_member_ids(cluster, "g", &ids, &count) == 0);
        CHECK(count == 2 && !strcmp(ids[0], "a") && !strcmp(ids[1], "b"));
        free_ids(ids, count);

        lists[0] = rd_kafka_topic_partition_list_new(2);
        rd_kafka_topic_partition_list_add(lists[0], "t", 0);
        rd_kafka_topic_partition_list_add(lists[0], "t", 1);
        rd_kafka_topic_partition_list_add(lists[0], "t", 7);
        rd_kafka_topic_partition_list_add(lists[0], "nowhere", 0);
        lists[1] = rd_kafka_topic_partition_list_new(0);
        rd_kafka_mock_sharegroup_target_assignment(cluster, "g", names, lists, 2);
        rd_kafka_topic_partition_list_destroy(lists[1]);
        heard_a = heartbeat(a, "g", "a", heard_a.epoch);
        heard_b = heartbeat(b, "g", "b", heard_b.epoch);
        CHECK(heard_a.partitions == 2 && heard_b.partitions == 0);
        lists[1] = NULL;
        names[1] = "a";
        names[0] = "b";
        rd_kafka_mock_sharegroup_target_assignment(cluster, "g", names, lists, 2);
        heard_a = heartbeat(a, "g", "a", heard_a.epoch);
        heard_b = heartbeat(b, "g", "b", heard_b.epoch);
        CHECK(heard_a.partitions == 0 && heard_b.partitions == 2);
        rd_kafka_mock_sharegroup_target_assignment(cluster, "g", NULL, NULL, 0);
        heard_a = heartbeat(a, "g", "a", heard_a.epoch);
        heard_b = heartbeat(b, "g", "b", heard_b.epoch);
        CHECK(heard_a.partitions == 1 && heard_b.partitions == 1);

        /* Invalid arguments have no effect. */
        rd_kafka_mock_sharegroup_target_assignment(cluster, "g", NULL, lists, 2);
        rd_kafka_mock_sharegroup_target_assignment(cluster, "g", names, NULL, 2);
        rd_kafka_mock_sharegroup_target_assignment(cluster, "g", names, lists, (size_t)-1);
        rd_kafka_mock_sharegroup_target_assignment(cluster, NULL, names, lists, 2);
        rd_kafka_mock_sharegroup_target_assignment(cluster, "nobody", names, lists, 2);
        rd_kafka_mock_sharegroup_target_assignment(NULL, "g", names, lists, 2);
        names[0] = NULL;
        rd_kafka_mock_sharegroup_target_assignment(cluster, "g", names, lists, 2);
        heard_a = heartbeat(a, "g", "a", heard_a.epoch);
        CHECK(heard_a.partitions == 1);
        CHECK(rd_kafka_mock_sharegroup_get_member_ids(cluster, "g", NULL, &count) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_mock_sharegroup_get_member_ids(cluster, "g", &ids, NULL) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_mock_sharegroup_get_member_ids(cluster, NULL, &ids, &count) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_mock_sharegroup_get_member_ids(NULL, "g", &ids, &count) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        rd_kafka_topic_partition_list_destroy(lists[0]);

        CHECK(members(cluster, "g") == 2);
        rd_kafka_mock_sharegroup_set_session_timeout(cluster, 50);
        heartbeat(a, "g", "a", heard_a.epoch);
        heartbeat(b, "g", "b", heard_b.epoch);
        WAIT_FOR(members(cluster, "g") == 0);
}

/* Start offsets of groups, and limits of records, lock durations and deliveries. */
static void records(rd_kafka_mock_cluster_t *cluster, int a, int b, const unsigned char *topic) {
        fetched got;
        int epoch = 0;
        got = fetch(a, "latest", "a", 0, topic);
        CHECK(got.error == 0 && got.partition_error == 0 && got.first == -1 && got.lock == 30000);
        rd_kafka_mock_sharegroup_set_auto_offset_reset(cluster, EARLIEST);
        got = fetch(a, "earliest", "a", 0, topic);
        CHECK(got.first == 0 && got.last == 3 && got.deliveries == 1);

        rd_kafka_mock_sharegroup_set_max_record_locks(cluster, 2);
        rd_kafka_mock_sharegroup_set_record_lock_duration(cluster, 50);
        rd_kafka_mock_sharegroup_set_max_delivery_attempts(cluster, 2);
        got = fetch(a, "limited", "a", epoch++, topic);
        CHECK(got.first == 0 && got.last == 1 && got.deliveries == 1 && got.lock == 50);
        UNTIL(got.first == 0 && got.deliveries == 2, got = fetch(a, "limited", "a", epoch++, topic));
        /* After the second delivery they are archived, and others follow. */
        UNTIL(got.first == 2, got = fetch(a, "limited", "a", epoch++, topic));
        CHECK(got.last == 3 && got.deliveries == 1);
        rd_kafka_mock_sharegroup_set_max_record_locks(cluster, 0);
        rd_kafka_mock_sharegroup_set_record_lock_duration(cluster, 0);
        rd_kafka_mock_sharegroup_set_max_delivery_attempts(cluster, 0);

        rd_kafka_mock_sharegroup_set_isolation_level(cluster, 1);
        produce_in_transaction(b);
        got = fetch(a, "committed", "a", 0, topic);
        CHECK(got.first == 0 && got.last == 3 && got.lock == 30000);
        rd_kafka_mock_sharegroup_set_isolation_level(cluster, 7);
        got = fetch(a, "committed", "a", 1, topic);
        CHECK(got.first == -1);
        rd_kafka_mock_sharegroup_set_isolation_level(cluster, 0);
        got = fetch(a, "committed", "a", 2, topic);
        CHECK(got.first == 4 && got.last == 4);

        rd_kafka_mock_sharegroup_set_max_fetch_sessions(cluster, 1);
        CHECK(fetch(b, "sessions", "b", 0, topic).error == LIMIT_REACHED);
        rd_kafka_mock_sharegroup_set_max_fetch_sessions(cluster, 0);
        got = fetch(b, "sessions", "b", 0, topic);
        CHECK(got.error == 0 && got.first == 0 && got.last == 4);
}

/* Negative values and NULL as the cluster: nothing happens. */
static void misuse(rd_kafka_mock_cluster_t *cluster) {
        rd_kafka_mock_sharegroup_set_session_timeout(cluster, -1);
        rd_kafka_mock_sharegroup_set_heartbeat_interval(cluster, -1);
        rd_kafka_mock_sharegroup_set_max_delivery_attempts(cluster, -1);
        rd_kafka_mock_sharegroup_set_record_lock_duration(cluster, -1);
        rd_kafka_mock_sharegroup_set_isolation_level(cluster, -1);
        rd_kafka_mock_sharegroup_set_max_size(cluster, -1);
        rd_kafka_mock_sharegroup_set_max_fetch_sessions(cluster, -1);
        rd_kafka_mock_sharegroup_set_max_record_locks(cluster, -1);
        rd_kafka_mock_sharegroup_set_auto_offset_reset(cluster, -1);
        rd_kafka_mock_sharegroup_set_auto_offset_reset(cluster, 2);
}

int main(void) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_mock_cluster_t *cluster;
        rd_kafka_t *rk;
        unsigned char topic[16];
        int a, b;

        set(conf, "test.mock.num.brokers", "1");
        set(conf, "log_level", "2");
        set(conf, "linger.ms", "0");
        rk = start(RD_KAFKA_PRODUCER, conf);
        cluster = rd_kafka_handle_mock_cluster(rk);
        CHECK(rd_kafka_mock_topic_create(cluster, "t", 2, 1) == 0);
        produce(rk, 4);
        a = connect_to(rd_kafka_mock_cluster_bootstraps(cluster));
        b = connect_to(rd_kafka_mock_cluster_bootstraps(cluster));
        misuse(NULL);
        misuse(cluster);
        membership(cluster, a, b, topic);
        records(cluster, a, b, topic);
        close(a);
        close(b);
        rd_kafka_destroy(rk);
        if (!bad)
                printf("ok\n");
        return bad != 0;
}
