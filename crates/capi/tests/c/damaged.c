/* A call for an array of messages that meets a record which can't be read: what was collected before it is the application's.
 * Each function is a sentence. */
#include "wire.h"

#define TOPIC "damaged"
#define PRODUCE 0

static unsigned char body[256];
static size_t used;

static void put(int64_t value, int bytes) {
        while (bytes-- > 0)
                body[used++] = (unsigned char)(value >> 8 * bytes);
}

static void put_text(const char *text) {
        put((int)strlen(text) + 1, 1);
        memcpy(body + used, text, strlen(text));
        used += strlen(text);
}

static uint32_t crc32c(const unsigned char *bytes, size_t count) {
        uint32_t sum = ~(uint32_t)0;
        int bit;
        while (count--)
                for (sum ^= *bytes++, bit = 0; bit < 8; bit++)
                        sum = sum >> 1 ^ (sum & 1 ? 0x82f63b78 : 0);
        return ~sum;
}

/* A record without key and headers; its lengths are zigzag numbers of one byte. The length of a damaged value reaches beyond
 * the record. */
static void put_record(int number, int is_damaged) {
        put(2 * 7, 1);
        put(0, 1), put(0, 1), put(2 * number, 1), put(1, 1);
        put(2 * (is_damaged ? 50 : 1), 1), put('x', 1), put(0, 1);
}

/* Appends three records in a batch whose checksum is right; the one with this number is damaged. */
static void append(const char *servers, int damaged) {
        int fd = connected(servers), i;
        size_t batch, sum;
        unsigned char size[4], response[256];
        memset(body, 0, sizeof(body));
        used = 0;
        put(PRODUCE, 2), put(9, 2), put(7, 4), put(1, 2), put('c', 1), put(0, 1);
        /* No transactional ID, acks, timeout, one topic with one partition. */
        put(0, 1), put(-1, 2), put(10000, 4), put(2, 1), put_text(TOPIC), put(2, 1), put(0, 4);
        put(61 + 3 * 8 + 1, 1);
        batch = used;
        put(0, 8), put(61 + 3 * 8 - 12, 4), put(-1, 4), put(2, 1);
        sum = used;
        put(0, 4), put(0, 2), put(2, 4), put(1000, 8), put(1000, 8), put(-1, 8), put(-1, 2), put(-1, 4), put(3, 4);
        for (i = 0; i < 3; i++)
                put_record(i, i == damaged);
        CHECK(used - batch == 61 + 3 * 8);
        i = (int)used;
        used = sum;
        put(crc32c(body + sum + 4, (size_t)i - sum - 4), 4);
        used = (size_t)i;
        put(0, 1), put(0, 1), put(0, 1);
        size[0] = size[1] = 0;
        size[2] = (unsigned char)(used >> 8);
        size[3] = (unsigned char)used;
        CHECK(send(fd, size, 4, 0) == 4 && send(fd, body, used, 0) == (ssize_t)used);
        read_fully(fd, size, 4);
        CHECK(size[0] == 0 && size[1] == 0 && size[2] == 0 && size[3] > 30);
        read_fully(fd, response, size[3]);
        /* Behind the IDs, the topic and the partition: the error code. */
        i = 4 + 1 + 1 + 1 + (int)strlen(TOPIC) + 1 + 4;
        CHECK(response[i] == 0 && response[i + 1] == 0);
        close(fd);
}

static rd_kafka_t *reader(const char *servers, const char *checks) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_t *rk;
        set(conf, "bootstrap.servers", servers);
        set(conf, "log_level", "0");
        set(conf, "group.id", "g");
        set(conf, "enable.auto.commit", "false");
        set(conf, "check.crcs", checks);
        rk = start(RD_KAFKA_CONSUMER, conf);
        rd_kafka_poll_set_consumer(rk);
        rd_kafka_topic_partition_list_add(list, TOPIC, 0)->offset = 0;
        CHECK(rd_kafka_assign(rk, list) == 0);
        rd_kafka_topic_partition_list_destroy(list);
        return rk;
}

/* Three records, then two, a damaged one, and three: the first five come once, and the position stands behind them. */
static void what_was_collected_before_the_damage_stays(const char *servers, const char *checks) {
        rd_kafka_t *rk = reader(servers, checks);
        rd_kafka_queue_t *queue = rd_kafka_queue_get_consumer(rk);
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_message_t *messages[20];
        const int expected = 5;
        int records = 0, damage = 0;
        ssize_t count, i;
        /* The damage is reported again and again. */
        UNTIL(damage >= 2, {
                count = rd_kafka_consume_batch_queue(queue, SCALED_MS(300), messages, 20);
                for (i = 0; i < count; i++) {
                        if (messages[i]->err) {
                                CHECK(messages[i]->err == RD_KAFKA_RESP_ERR__BAD_MSG);
                                CHECK(records == expected);
                                damage++;
                        } else {
                                CHECK(messages[i]->offset == records++);
                        }
                        rd_kafka_message_destroy(messages[i]);
                }
        });
        CHECK(records == expected);
        rd_kafka_topic_partition_list_add(list, TOPIC, 0);
        CHECK(rd_kafka_position(rk, list) == 0 && list->elems[0].offset == expected);
        CHECK(rd_kafka_commit(rk, NULL, 0) == 0);
        CHECK(rd_kafka_committed(rk, list, TIMEOUT_MS) == 0 && list->elems[0].offset == expected);
        /* Behind the damage, everything comes. */
        list->elems[0].offset = 6;
        rd_kafka_error_destroy(rd_kafka_seek_partitions(rk, list, TIMEOUT_MS));
        for (records = 0; records < 3; records += (int)count)
                for (count = rd_kafka_consume_batch_queue(queue, TIMEOUT_MS, messages, (size_t)(3 - records)), i = 0; i < count; i++) {
                        CHECK(messages[i]->err == 0 && messages[i]->offset == 6 + records + i);
                        rd_kafka_message_destroy(messages[i]);
                }
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
}

int main(void) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_t *rk;
        const char *servers;
        rd_kafka_mock_cluster_t *cluster;
        set(conf, "test.mock.num.brokers", "1");
        set(conf, "log_level", "2");
        rk = start(RD_KAFKA_PRODUCER, conf);
        cluster = rd_kafka_handle_mock_cluster(rk);
        servers = rd_kafka_mock_cluster_bootstraps(cluster);
        CHECK(rd_kafka_mock_topic_create(cluster, TOPIC, 1, 1) == 0);
        append(servers, -1);
        append(servers, 2);
        append(servers, -1);
        what_was_collected_before_the_damage_stays(servers, "false");
        what_was_collected_before_the_damage_stays(servers, "true");
        rd_kafka_destroy(rk);
        return bad;
}
