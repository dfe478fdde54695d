/* Objects without a client: lists of partitions, headers, UUIDs, versions, timestamps. */
#include "side_by_side.h"

CASE(version) {
        say("version %x %s", rd_kafka_version(), rd_kafka_version_str());
        say("debug contexts %s", rd_kafka_get_debug_contexts());
        say("macro and function agree: %d", rd_kafka_version() == RD_KAFKA_VERSION);
}

CASE(list_add_and_find) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(0);
        rd_kafka_topic_partition_t *one;
        say_partitions("new", list);
        one = rd_kafka_topic_partition_list_add(list, "b", 2);
        one->offset = 7;
        one->opaque = list;
        rd_kafka_topic_partition_list_add(list, "a", RD_KAFKA_PARTITION_UA);
        rd_kafka_topic_partition_list_add(list, "", 0);
        rd_kafka_topic_partition_list_add(list, "a", -5);
        rd_kafka_topic_partition_list_add_range(list, "r", 0, 2);
        rd_kafka_topic_partition_list_add_range(list, "r", 5, 4);
        rd_kafka_topic_partition_list_add(list, "b", 2);
        say_partitions("added", list);
        say("find b 2: %s", rd_kafka_topic_partition_list_find(list, "b", 2) ? "found" : "NULL");
        say("find b 3: %s", rd_kafka_topic_partition_list_find(list, "b", 3) ? "found" : "NULL");
        say("find c 0: %s", rd_kafka_topic_partition_list_find(list, "c", 0) ? "found" : "NULL");
        say("set_offset: %s", err(rd_kafka_topic_partition_list_set_offset(list, "b", 2, 99)));
        say("set_offset of another: %s", err(rd_kafka_topic_partition_list_set_offset(list, "b", 3, 99)));
        say_partitions("offset set", list);
        say("del: %d", rd_kafka_topic_partition_list_del(list, "b", 2));
        say("del of another: %d", rd_kafka_topic_partition_list_del(list, "b", 77));
        say("del_by_idx 0: %d", rd_kafka_topic_partition_list_del_by_idx(list, 0));
        say("del_by_idx -1: %d", rd_kafka_topic_partition_list_del_by_idx(list, -1));
        say("del_by_idx 50: %d", rd_kafka_topic_partition_list_del_by_idx(list, 50));
        say_partitions("deleted", list);
        rd_kafka_topic_partition_list_destroy(list);
}

static int backwards(const void *a, const void *b, void *opaque) {
        const rd_kafka_topic_partition_t *one = a, *other = b;
        (*(int *)opaque)++;
        return other->partition - one->partition;
}

CASE(list_sort_and_copy) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(5), *copy;
        int calls = 0;
        rd_kafka_topic_partition_list_add(list, "b", 1)->offset = 4;
        rd_kafka_topic_partition_list_add(list, "a", 3);
        rd_kafka_topic_partition_list_add(list, "b", 0)->err = RD_KAFKA_RESP_ERR__FAIL;
        rd_kafka_topic_partition_list_add(list, "a", -1);
        rd_kafka_topic_partition_list_add(list, "B", 9);
        rd_kafka_topic_partition_list_sort(list, NULL, NULL);
        say_partitions("sorted", list);
        rd_kafka_topic_partition_list_sort(list, backwards, &calls);
        say("the order was asked for: %d", calls > 0);
        say_partitions("sorted backwards", list);
        list->elems[0].metadata = strdup("text");
        list->elems[0].metadata_size = 4;
        list->elems[0].opaque = list;
        rd_kafka_topic_partition_set_leader_epoch(&list->elems[0], 12);
        copy = rd_kafka_topic_partition_list_copy(list);
        say_partitions("copy", copy);
        say("metadata is a copy: %d", copy->elems[0].metadata != list->elems[0].metadata);
        say("metadata's bytes: %d", copy->elems[0].metadata && !memcmp(copy->elems[0].metadata, "text", 4));
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_topic_partition_list_destroy(copy);
}

CASE(leader_epoch) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_topic_partition_t *one = rd_kafka_topic_partition_list_add(list, "t", 0);
        static const int epochs[] = {-2, -1, 0, 5, 2147483647};
        size_t i;
        say("at first %d", rd_kafka_topic_partition_get_leader_epoch(one));
        for (i = 0; i < 5; i++) {
                rd_kafka_topic_partition_set_leader_epoch(one, epochs[i]);
                say("set %d get %d", epochs[i], rd_kafka_topic_partition_get_leader_epoch(one));
        }
        rd_kafka_topic_partition_set_leader_epoch(one, -1);
        say("set -1 get %d", rd_kafka_topic_partition_get_leader_epoch(one));
        rd_kafka_topic_partition_list_destroy(list);
}

CASE(list_misuse) {
        misuse("destroy(NULL)") rd_kafka_topic_partition_list_destroy(NULL);
        misuse("copy(NULL)") say("%d", rd_kafka_topic_partition_list_copy(NULL) == NULL);
        misuse("add to NULL") say("%d", rd_kafka_topic_partition_list_add(NULL, "t", 0) == NULL);
        misuse("add NULL") {
                rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
                say("%d", rd_kafka_topic_partition_list_add(list, NULL, 0) == NULL);
        }
        misuse("find in NULL") say("%d", rd_kafka_topic_partition_list_find(NULL, "t", 0) == NULL);
        misuse("new(-1)") say_partitions("new(-1)", rd_kafka_topic_partition_list_new(-1));
        misuse("topic_partition_destroy(NULL)") rd_kafka_topic_partition_destroy(NULL);
        misuse("get_leader_epoch(NULL)") say("%d", rd_kafka_topic_partition_get_leader_epoch(NULL));
}

static void say_headers(const char *what, const rd_kafka_headers_t *headers) {
        size_t i, size;
        const char *name;
        const void *value;
        say("%s: %zu", what, rd_kafka_header_cnt(headers));
        for (i = 0; !rd_kafka_header_get_all(headers, i, &name, &value, &size); i++)
                say("  %s = %s size %zu, ends with a zero: %d", quoted(name), value ? quoted(value) : "NULL", size,
                    value && ((const char *)value)[size] == '\0');
}

CASE(headers) {
        rd_kafka_headers_t *headers = rd_kafka_headers_new(0), *copy;
        const void *value = "untouched";
        size_t size = 99;
        say_headers("new", headers);
        say("add: %s", err(rd_kafka_header_add(headers, "name", -1, "value", -1)));
        say("add with lengths: %s", err(rd_kafka_header_add(headers, "name and more", 4, "second and more", 6)));
        say("add NULL: %s", err(rd_kafka_header_add(headers, "null", -1, NULL, 0)));
        say("add NULL with -1: %s", err(rd_kafka_header_add(headers, "null", -1, NULL, -1)));
        say("add empty: %s", err(rd_kafka_header_add(headers, "empty", -1, "", 0)));
        say("add with an empty name: %s", err(rd_kafka_header_add(headers, "", -1, "x", 1)));
        say("add binary: %s", err(rd_kafka_header_add(headers, "binary", -1, "a\0b", 3)));
        say_headers("added", headers);
        say("last: %s", err(rd_kafka_header_get_last(headers, "name", &value, &size)));
        say("value %s size %zu", quoted(value), size);
        size = 99;
        value = "untouched";
        say("last of another: %s", err(rd_kafka_header_get_last(headers, "other", &value, &size)));
        say("value %s size %zu", value ? quoted(value) : "NULL", size);
        value = "untouched";
        say("get 0: %s %s", err(rd_kafka_header_get(headers, 0, "name", &value, &size)), quoted(value));
        say("get 1: %s %s", err(rd_kafka_header_get(headers, 1, "name", &value, &size)), quoted(value));
        say("get 2: %s", err(rd_kafka_header_get(headers, 2, "name", &value, &size)));
        say("NAME: %s", err(rd_kafka_header_get_last(headers, "NAME", &value, &size)));
        copy = rd_kafka_headers_copy(headers);
        say("remove: %s", err(rd_kafka_header_remove(headers, "name")));
        say("remove again: %s", err(rd_kafka_header_remove(headers, "name")));
        say_headers("removed", headers);
        say_headers("copy", copy);
        rd_kafka_headers_destroy(headers);
        rd_kafka_headers_destroy(copy);
}

CASE(headers_misuse) {
        rd_kafka_headers_t *headers = rd_kafka_headers_new(1);
        misuse("destroy(NULL)") rd_kafka_headers_destroy(NULL);
        misuse("copy(NULL)") say("%d", rd_kafka_headers_copy(NULL) == NULL);
        misuse("count of NULL") say("%zu", rd_kafka_header_cnt(NULL));
        misuse("add to NULL") say("%s", err(rd_kafka_header_add(NULL, "a", -1, "b", -1)));
        misuse("add without a name") say("%s", err(rd_kafka_header_add(headers, NULL, -1, "b", -1)));
        misuse("get all of NULL") {
                const char *name;
                const void *value;
                size_t size;
                say("%s", err(rd_kafka_header_get_all(NULL, 0, &name, &value, &size)));
        }
        rd_kafka_headers_destroy(headers);
}

CASE(uuid) {
        static const int64_t halves[][2] = {{0, 0}, {1, 2}, {-1, -1}, {0x0123456789abcdefLL, 0x7edcba9876543210LL}};
        size_t i;
        for (i = 0; i < 4; i++) {
                rd_kafka_Uuid_t *uuid = rd_kafka_Uuid_new(halves[i][0], halves[i][1]), *copy = rd_kafka_Uuid_copy(uuid);
                say("%lld %lld %s %d", (long long)rd_kafka_Uuid_most_significant_bits(copy),
                    (long long)rd_kafka_Uuid_least_significant_bits(copy), rd_kafka_Uuid_base64str(copy),
                    rd_kafka_Uuid_base64str(copy) == rd_kafka_Uuid_base64str(copy));
                rd_kafka_Uuid_destroy(uuid);
                rd_kafka_Uuid_destroy(copy);
        }
        misuse("copy(NULL)") say("%d", rd_kafka_Uuid_copy(NULL) == NULL);
        misuse("destroy(NULL)") rd_kafka_Uuid_destroy(NULL);
}

CASE(names_of_enumerations) {
        int i;
        for (i = 0; i < 6; i++)
                say("resource type %d %s", i, quoted(rd_kafka_ResourceType_name(i)));
        for (i = 0; i < 6; i++)
                say("config source %d %s", i, quoted(rd_kafka_ConfigSource_name(i)));
        misuse("resource type 99") say("%s", quoted(rd_kafka_ResourceType_name(99)));
        misuse("resource type -1") say("%s", quoted(rd_kafka_ResourceType_name(-1)));
        misuse("config source 99") say("%s", quoted(rd_kafka_ConfigSource_name(99)));
}

CASE(new_topic_objects) {
        char errstr[256] = "";
        static const struct {
                const char *name;
                int partitions, factor;
        } topics[] = {{"t", 1, 1}, {"t", -1, -1}, {"t", 0, 1}, {"", 1, 1}, {"t", 1, 0}, {"t", -2, 1}, {"t", 100001, 1}, {"t", 1, 32768}, {NULL, 1, 1}};
        size_t i;
        for (i = 0; i < sizeof(topics) / sizeof(topics[0]); i++) {
                rd_kafka_NewTopic_t *topic;
                *errstr = '\0';
                topic = rd_kafka_NewTopic_new(topics[i].name, topics[i].partitions, topics[i].factor, errstr, sizeof(errstr));
                say("%s %d %d: %s text %s", quoted(topics[i].name), topics[i].partitions, topics[i].factor, topic ? "present" : "NULL",
                    present(errstr));
                if (topic)
                        rd_kafka_NewTopic_destroy(topic);
        }
}

CASE(replica_assignments) {
        char errstr[256] = "";
        int32_t replicas[] = {1, 2, 3};
        rd_kafka_NewTopic_t *topic = rd_kafka_NewTopic_new("t", 2, -1, errstr, sizeof(errstr));
        rd_kafka_NewPartitions_t *more;
        say("partition 1 first: %s %s", err(rd_kafka_NewTopic_set_replica_assignment(topic, 1, replicas, 2, errstr, sizeof(errstr))), present(errstr));
        say("partition 0: %s", err(rd_kafka_NewTopic_set_replica_assignment(topic, 0, replicas, 2, errstr, sizeof(errstr))));
        say("partition 0 again: %s", err(rd_kafka_NewTopic_set_replica_assignment(topic, 0, replicas, 2, errstr, sizeof(errstr))));
        say("partition 1: %s", err(rd_kafka_NewTopic_set_replica_assignment(topic, 1, replicas, 1, errstr, sizeof(errstr))));
        misuse("partition 2 of 2") say("partition 2: %s", err(rd_kafka_NewTopic_set_replica_assignment(topic, 2, replicas, 2, errstr, sizeof(errstr))));
        say("config: %s", err(rd_kafka_NewTopic_set_config(topic, "retention.ms", "5")));
        say("config again: %s", err(rd_kafka_NewTopic_set_config(topic, "retention.ms", "6")));
        rd_kafka_NewTopic_destroy(topic);
        topic = rd_kafka_NewTopic_new("t", 2, 2, errstr, sizeof(errstr));
        say("with a replication factor: %s", err(rd_kafka_NewTopic_set_replica_assignment(topic, 0, replicas, 2, errstr, sizeof(errstr))));
        rd_kafka_NewTopic_destroy(topic);
        more = rd_kafka_NewPartitions_new("t", 0, errstr, sizeof(errstr));
        say("0 partitions: %s", more ? "present" : "NULL");
        if (more)
                rd_kafka_NewPartitions_destroy(more);
        more = rd_kafka_NewPartitions_new("t", 3, errstr, sizeof(errstr));
        say("new partition 0: %s", err(rd_kafka_NewPartitions_set_replica_assignment(more, 0, replicas, 3, errstr, sizeof(errstr))));
        say("new partition 2: %s", err(rd_kafka_NewPartitions_set_replica_assignment(more, 2, replicas, 3, errstr, sizeof(errstr))));
        say("new partition 3: %s", err(rd_kafka_NewPartitions_set_replica_assignment(more, 3, replicas, 3, errstr, sizeof(errstr))));
        rd_kafka_NewPartitions_destroy(more);
}

CASE(config_resources) {
        rd_kafka_ConfigResource_t *resource = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, "t");
        size_t count = 99;
        const rd_kafka_ConfigEntry_t **entries;
        say("type %d name %s error %s text %s", rd_kafka_ConfigResource_type(resource), quoted(rd_kafka_ConfigResource_name(resource)),
            err(rd_kafka_ConfigResource_error(resource)), present(rd_kafka_ConfigResource_error_string(resource)));
        say("set: %s", err(rd_kafka_ConfigResource_set_config(resource, "a", "1")));
        say("set again: %s", err(rd_kafka_ConfigResource_set_config(resource, "a", "2")));
        say("set NULL: %s", err(rd_kafka_ConfigResource_set_config(resource, "b", NULL)));
        say("set empty name: %s", err(rd_kafka_ConfigResource_set_config(resource, "", "x")));
        entries = rd_kafka_ConfigResource_configs(resource, &count);
        say("configs %zu", count);
        while (entries && count--)
                say("  %s=%s", rd_kafka_ConfigEntry_name(entries[count]), quoted(rd_kafka_ConfigEntry_value(entries[count])));
        say_error("incremental", rd_kafka_ConfigResource_add_incremental_config(resource, "c", RD_KAFKA_ALTER_CONFIG_OP_TYPE_SET, "1"));
        say_error("incremental without a value", rd_kafka_ConfigResource_add_incremental_config(resource, "c", RD_KAFKA_ALTER_CONFIG_OP_TYPE_SET, NULL));
        say_error("incremental without a name", rd_kafka_ConfigResource_add_incremental_config(resource, "", RD_KAFKA_ALTER_CONFIG_OP_TYPE_SET, "1"));
        say_error("incremental delete", rd_kafka_ConfigResource_add_incremental_config(resource, "d", RD_KAFKA_ALTER_CONFIG_OP_TYPE_DELETE, NULL));
        say_error("incremental of another operation", rd_kafka_ConfigResource_add_incremental_config(resource, "d", 99, "x"));
        rd_kafka_ConfigResource_destroy(resource);
        resource = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, "");
        say("empty name: %s", resource ? "present" : "NULL");
        resource = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_UNKNOWN, "x");
        say("unknown type: %s", resource ? "present" : "NULL");
}
