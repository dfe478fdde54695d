/* Groups of the consumer protocol (KIP-848) on a mock cluster, with members that speak the protocol themselves:
 * target assignments by hand, session timeouts, heartbeat intervals; and calls with invalid arguments. */
#include "wire.h"

#define CONSUMER_GROUP_HEARTBEAT 68
/* The response does not mention the partitions. */
#define SILENT (-1)

static unsigned char topic_id[16];

/* The last response to a heartbeat. */
static int err, epoch, interval, told, partitions;

static size_t put_text(unsigned char *to, const char *text) {
        to[0] = (unsigned char)(strlen(text) + 1);
        memcpy(to + 1, text, strlen(text));
        return strlen(text) + 1;
}

static size_t put_number(unsigned char *to, int number) {
        to[0] = (unsigned char)((unsigned)number >> 24);
        to[1] = (unsigned char)((unsigned)number >> 16);
        to[2] = (unsigned char)((unsigned)number >> 8);
        to[3] = (unsigned char)number;
        return 4;
}

/* Sends a heartbeat of a member that owns these partitions of the topic, as bits; with epoch 0 it joins. The
 * assigned partitions are bits, too. */
static void heartbeat(int fd, const char *member, int member_epoch, int owned) {
        unsigned char body[256];
        size_t size = 0;
        int i, count = 0, topics;
        size += put_text(body + size, "group");
        size += put_text(body + size, member);
        size += put_number(body + size, member_epoch);
        body[size++] = 0; /* instance id */
        body[size++] = 0; /* rack */
        size += put_number(body + size, member_epoch == 0 ? 60000 : -1);
        if (member_epoch == 0) {
                body[size++] = 2;
                size += put_text(body + size, "t");
        } else {
                body[size++] = 0;
        }
        body[size++] = 0; /* regular expression */
        body[size++] = 0; /* assignor */
        for (i = 0; i < 4; i++)
                count += owned != SILENT && (owned & 1 << i) != 0;
        if (owned == SILENT) {
                body[size++] = 0;
        } else if (count == 0) {
                body[size++] = 1;
        } else {
                body[size++] = 2;
                memcpy(body + size, topic_id, 16);
                size += 16;
                body[size++] = (unsigned char)(count + 1);
                for (i = 0; i < 4; i++) {
                        if (owned & 1 << i)
                                size += put_number(body + size, i);
                }
                body[size++] = 0;
        }
        body[size++] = 0;

        call(fd, CONSUMER_GROUP_HEARTBEAT, 1, body, size);
        err = (int)number(2);
        if (err)
                return;
        CHECK(number(1) == 0); /* no message */
        CHECK(number(1) == (int)strlen(member) + 1);
        at += strlen(member);
        epoch = (int)number(4);
        interval = (int)number(4);
        told = number(1) >= 0;
        partitions = 0;
        if (!told)
                return;
        topics = (int)number(1) - 1;
        CHECK(topics == 0 || topics == 1);
        if (topics == 1) {
                memcpy(topic_id, answer + at, 16);
                at += 16;
                for (count = (int)number(1) - 1; count > 0; count--)
                        partitions |= 1 << number(4);
        }
}

#define EXPECT(want_epoch, want_partitions)                                                                            \
        do {                                                                                                           \
                CHECK(err == 0);                                                                                       \
                CHECK(epoch == (want_epoch));                                                                          \
                CHECK((want_partitions) == SILENT ? !told : told && partitions == (want_partitions));                  \
        } while (0)

static rd_kafka_topic_partition_list_t *list_of(int bits) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(0);
        int i;
        for (i = 0; i < 4; i++) {
                if (bits & 1 << i)
                        rd_kafka_topic_partition_list_add(list, "t", i);
        }
        return list;
}

static void partitions_are_given_by_hand(rd_kafka_mock_cluster_t *cluster, int fd) {
        char a[] = "a", b[] = "b";
        char *members[2];
        rd_kafka_topic_partition_list_t *lists[2];
        rd_kafka_mock_cgrp_consumer_target_assignment_t *target;
        members[0] = a;
        members[1] = b;

        heartbeat(fd, "a", 0, 0);
        EXPECT(2, 15);
        CHECK(interval == 5000);
        heartbeat(fd, "b", 0, 0);
        EXPECT(3, 0);
        heartbeat(fd, "a", 2, 15);
        EXPECT(2, 3);
        heartbeat(fd, "a", 2, 3);
        EXPECT(3, SILENT);
        heartbeat(fd, "b", 3, SILENT);
        EXPECT(3, 12);

        /* The lists may be freed before they are used, and the assignment before it is complete. */
        lists[0] = list_of(8);
        lists[1] = list_of(7);
        target = rd_kafka_mock_cgrp_consumer_target_assignment_new(members, 2, lists);
        CHECK(target != NULL);
        rd_kafka_topic_partition_list_destroy(lists[0]);
        rd_kafka_topic_partition_list_destroy(lists[1]);
        a[0] = b[0] = 'x';
        rd_kafka_mock_cgrp_consumer_target_assignment(cluster, "group", target);
        rd_kafka_mock_cgrp_consumer_target_assignment_destroy(target);
        a[0] = 'a';
        b[0] = 'b';
        heartbeat(fd, "a", 3, 3);
        EXPECT(3, 0);
        heartbeat(fd, "b", 3, 12);
        EXPECT(3, 4);
        heartbeat(fd, "b", 3, 4);
        EXPECT(4, SILENT);
        heartbeat(fd, "a", 3, 0);
        EXPECT(4, 8);
        heartbeat(fd, "b", 4, 4);
        EXPECT(4, 7);

        /* A member without a list gets nothing; neither does one that is not named. */
        lists[0] = NULL;
        target = rd_kafka_mock_cgrp_consumer_target_assignment_new(members, 1, lists);
        rd_kafka_mock_cgrp_consumer_target_assignment(cluster, "group", target);
        heartbeat(fd, "a", 4, 8);
        EXPECT(4, 0);
        heartbeat(fd, "b", 4, 7);
        EXPECT(4, 0);
        heartbeat(fd, "a", 4, 0);
        EXPECT(5, SILENT);
        heartbeat(fd, "b", 4, 0);
        EXPECT(5, SILENT);
        heartbeat(fd, "c", 0, 0);
        EXPECT(6, 0);
        heartbeat(fd, "c", -1, SILENT);
        rd_kafka_mock_cgrp_consumer_target_assignment_destroy(target);

        /* Finally the broker decides again. */
        rd_kafka_mock_cgrp_consumer_target_assignment(cluster, "group", NULL);
        heartbeat(fd, "a", 5, 0);
        CHECK(err == 0 && told && partitions != 0 && partitions != 15);
        CHECK(epoch == 8);
        heartbeat(fd, "b", 5, 0);
        CHECK(err == 0 && told && partitions != 0 && partitions != 15);
        CHECK(epoch == 8);
        heartbeat(fd, "a", -1, SILENT);
        heartbeat(fd, "b", -1, SILENT);
}

static void times_hold_from_the_next_heartbeat_on(rd_kafka_mock_cluster_t *cluster, int fd) {
        rd_kafka_mock_set_group_consumer_heartbeat_interval_ms(cluster, 700);
        rd_kafka_mock_set_group_consumer_session_timeout_ms(cluster, 150);
        heartbeat(fd, "a", 0, 0);
        CHECK(err == 0 && told && partitions == 15 && interval == 700);
        usleep(200000);
        heartbeat(fd, "a", epoch, 15);
        CHECK(err == RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID);

        /* Times that no broker accepts change nothing. */
        rd_kafka_mock_set_group_consumer_session_timeout_ms(cluster, SCALED_MS(60000));
        rd_kafka_mock_set_group_consumer_session_timeout_ms(cluster, 0);
        rd_kafka_mock_set_group_consumer_session_timeout_ms(cluster, -1);
        rd_kafka_mock_set_group_consumer_heartbeat_interval_ms(cluster, 0);
        rd_kafka_mock_set_group_consumer_heartbeat_interval_ms(cluster, -2147483647 - 1);
        heartbeat(fd, "a", 0, 0);
        CHECK(err == 0 && interval == 700);
        usleep(20000);
        heartbeat(fd, "a", epoch, 15);
        CHECK(err == 0);
        heartbeat(fd, "a", epoch + 1, 15);
        CHECK(err == RD_KAFKA_RESP_ERR_FENCED_MEMBER_EPOCH);
}

static void errors_are_injected(rd_kafka_mock_cluster_t *cluster, int fd) {
        rd_kafka_mock_push_request_errors(cluster, CONSUMER_GROUP_HEARTBEAT, 2, RD_KAFKA_RESP_ERR_NOT_COORDINATOR,
                                          RD_KAFKA_RESP_ERR_FENCED_MEMBER_EPOCH);
        heartbeat(fd, "a", epoch, SILENT);
        CHECK(err == RD_KAFKA_RESP_ERR_NOT_COORDINATOR);
        heartbeat(fd, "a", epoch, SILENT);
        CHECK(err == RD_KAFKA_RESP_ERR_FENCED_MEMBER_EPOCH);
        heartbeat(fd, "a", epoch, SILENT);
        CHECK(err == 0);
}

static void calls_that_make_no_sense(rd_kafka_mock_cluster_t *cluster, int fd) {
        char a[] = "a";
        char *members[2];
        rd_kafka_topic_partition_list_t *lists[2];
        rd_kafka_mock_cgrp_consumer_target_assignment_t *target;
        int before = epoch;
        members[0] = a;
        members[1] = NULL;
        lists[0] = list_of(1);
        lists[1] = list_of(2);
        CHECK(rd_kafka_mock_cgrp_consumer_target_assignment_new(members, 2, lists) == NULL);
        CHECK(rd_kafka_mock_cgrp_consumer_target_assignment_new(members, -1, lists) == NULL);
        CHECK(rd_kafka_mock_cgrp_consumer_target_assignment_new(NULL, 1, lists) == NULL);
        CHECK(rd_kafka_mock_cgrp_consumer_target_assignment_new(members, 1, NULL) == NULL);
        rd_kafka_topic_partition_list_destroy(lists[1]);
        CHECK(rd_kafka_mock_cgrp_consumer_target_assignment_new(members, 1, lists + 1) == NULL);

        target = rd_kafka_mock_cgrp_consumer_target_assignment_new(members, 1, lists);
        CHECK(target != NULL);
        rd_kafka_mock_cgrp_consumer_target_assignment(NULL, "group", target);
        rd_kafka_mock_cgrp_consumer_target_assignment(cluster, NULL, target);
        rd_kafka_mock_cgrp_consumer_target_assignment_destroy(target);
        rd_kafka_mock_cgrp_consumer_target_assignment(cluster, "group", target);
        rd_kafka_mock_cgrp_consumer_target_assignment_destroy(target);
        rd_kafka_mock_cgrp_consumer_target_assignment_destroy(NULL);
        rd_kafka_mock_set_group_consumer_session_timeout_ms(NULL, 1);
        rd_kafka_mock_set_group_consumer_heartbeat_interval_ms(NULL, 1);
        heartbeat(fd, "a", before, 15);
        EXPECT(before, SILENT);

        /* A group that does not exist, and a group without members. */
        target = rd_kafka_mock_cgrp_consumer_target_assignment_new(NULL, 0, NULL);
        CHECK(target != NULL);
        rd_kafka_mock_cgrp_consumer_target_assignment(cluster, "nobody's", target);
        rd_kafka_mock_cgrp_consumer_target_assignment(cluster, "group", target);
        rd_kafka_mock_cgrp_consumer_target_assignment_destroy(target);
        heartbeat(fd, "a", before, 15);
        EXPECT(before, 0);
        rd_kafka_topic_partition_list_destroy(lists[0]);
}

int main(void) {
        rd_kafka_t *rk = start(RD_KAFKA_PRODUCER, rd_kafka_conf_new());
        rd_kafka_mock_cluster_t *cluster = rd_kafka_mock_cluster_new(rk, 1);
        int fd = connected(rd_kafka_mock_cluster_bootstraps(cluster));
        CHECK(rd_kafka_mock_topic_create(cluster, "t", 4, 1) == RD_KAFKA_RESP_ERR_NO_ERROR);

        partitions_are_given_by_hand(cluster, fd);
        times_hold_from_the_next_heartbeat_on(cluster, fd);
        errors_are_injected(cluster, fd);
        calls_that_make_no_sense(cluster, fd);

        close(fd);
        rd_kafka_mock_cluster_destroy(cluster);
        rd_kafka_destroy(rk);
        return bad != 0;
}
