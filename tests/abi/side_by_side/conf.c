/* Configuration objects: sizes of values, copies, unknown names, dumps, and nested objects. */
#include "side_by_side.h"

CASE(sizes_of_values) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        char value[64];
        size_t size, room;
        set(conf, "client.id", "0123456789");
        for (room = 0; room < 13; room++) {
                memset(value, 'x', sizeof(value));
                value[63] = '\0';
                size = room;
                say("room %zu: %s %s size %zu", room, conf_res(rd_kafka_conf_get(conf, "client.id", value, &size)),
                    room ? quoted(value) : "none", size);
        }
        size = 77;
        say("no buffer: %s size %zu", conf_res(rd_kafka_conf_get(conf, "client.id", NULL, &size)), size);
        size = sizeof(value);
        say("unknown: %s", conf_res(rd_kafka_conf_get(conf, "no.such.property", value, &size)));
        say("no name, empty: %s", conf_res(rd_kafka_conf_get(conf, "", value, &size)));
        rd_kafka_conf_destroy(conf);
}

CASE(unknown_names) {
        static const char *const names[] = {"", " ", "no.such.property", "Client.Id", "CLIENT.ID", "client.id ", " client.id", "client,id",
                                            "topic.acks", "default.topic.config", "acks", "request.required.acks", "opaque", "error_cb",
                                            "interceptors", "plugin.library.paths", "builtin.features", "{topic}.acks"};
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_topic_conf_t *topic = rd_kafka_topic_conf_new();
        char errstr[512];
        size_t i;
        for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
                *errstr = '\0';
                say("global %s: %s text %s", quoted(names[i]), conf_res(rd_kafka_conf_set(conf, names[i], "1", errstr, sizeof(errstr))),
                    present(errstr));
                *errstr = '\0';
                say("topic %s: %s text %s", quoted(names[i]),
                    conf_res(rd_kafka_topic_conf_set(topic, names[i], "1", errstr, sizeof(errstr))), present(errstr));
        }
        rd_kafka_conf_destroy(conf);
        rd_kafka_topic_conf_destroy(topic);
}

CASE(error_buffers) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        char errstr[16];
        memset(errstr, 'x', sizeof(errstr));
        say("no buffer: %s", conf_res(rd_kafka_conf_set(conf, "linger.ms", "abc", NULL, 0)));
        say("size 0: %s, first byte %c", conf_res(rd_kafka_conf_set(conf, "linger.ms", "abc", errstr, 0)), errstr[0]);
        say("size 1: %s, first byte %d, second %c", conf_res(rd_kafka_conf_set(conf, "linger.ms", "abc", errstr, 1)), errstr[0], errstr[1]);
        say("size 16: %s, length %zu", conf_res(rd_kafka_conf_set(conf, "linger.ms", "abc", errstr, 16)), strlen(errstr));
        memset(errstr, 'x', sizeof(errstr));
        say("success: %s, first byte %s", conf_res(rd_kafka_conf_set(conf, "linger.ms", "5", errstr, 16)), errstr[0] == 'x' ? "untouched" : "written");
        rd_kafka_conf_destroy(conf);
}

CASE(copies) {
        static const char *const filter[] = {"client.id", "acks"};
        static const char *const names[] = {"client.id", "linger.ms", "acks", "debug", "bootstrap.servers"};
        rd_kafka_conf_t *conf = rd_kafka_conf_new(), *copies[2];
        char value[128];
        size_t i, which, size;
        set(conf, "client.id", "one");
        set(conf, "linger.ms", "77");
        set(conf, "acks", "1");
        set(conf, "debug", "broker,topic");
        set(conf, "bootstrap.servers", "a,b");
        copies[0] = rd_kafka_conf_dup(conf);
        copies[1] = rd_kafka_conf_dup_filter(conf, 2, (const char **)filter);
        set(conf, "client.id", "two");
        for (which = 0; which < 2; which++) {
                for (i = 0; i < 5; i++) {
                        size = sizeof(value);
                        *value = '\0';
                        say("%s: %s %s %s", which ? "filtered" : "whole", names[i],
                            conf_res(rd_kafka_conf_get(copies[which], names[i], value, &size)), quoted(value));
                }
                rd_kafka_conf_destroy(copies[which]);
        }
        rd_kafka_conf_destroy(conf);
}

CASE(default_topic_conf) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_topic_conf_t *topic = rd_kafka_topic_conf_new(), *inside;
        char value[64] = "";
        size_t size = sizeof(value);
        rd_kafka_t *rk;
        say("before: %s", rd_kafka_conf_get_default_topic_conf(conf) ? "present" : "NULL");
        say("acks before %s", conf_res(rd_kafka_conf_get(conf, "acks", value, &size)));
        size = sizeof(value);
        rd_kafka_topic_conf_set(topic, "acks", "1", NULL, 0);
        rd_kafka_conf_set_default_topic_conf(conf, topic);
        inside = rd_kafka_conf_get_default_topic_conf(conf);
        say("after: %s", inside == topic ? "the same object" : inside ? "another object" : "NULL");
        say("acks %s %s", conf_res(rd_kafka_conf_get(conf, "acks", value, &size)), quoted(value));
        set(conf, "acks", "all");
        size = sizeof(value);
        rd_kafka_topic_conf_get(inside, "acks", value, &size);
        say("acks inside %s", quoted(value));
        rd_kafka_conf_destroy(conf);
        conf = rd_kafka_conf_new();
        set(conf, "acks", "0");
        say("made by a topic's property: %s", rd_kafka_conf_get_default_topic_conf(conf) ? "present" : "NULL");
        topic = rd_kafka_topic_conf_new();
        rd_kafka_conf_set_default_topic_conf(conf, topic);
        size = sizeof(value);
        rd_kafka_conf_get(conf, "acks", value, &size);
        say("acks after another object replaced it: %s", quoted(value));
        rd_kafka_conf_set_log_cb(conf, on_log);
        rk = producer_of(conf);
        topic = rd_kafka_default_topic_conf_dup(rk);
        size = sizeof(value);
        rd_kafka_topic_conf_get(topic, "acks", value, &size);
        say("acks of the client: %s", quoted(value));
        rd_kafka_topic_conf_destroy(topic);
        rd_kafka_destroy(rk);
        say_recorded_set("logs", &logs);
}

CASE(misuse_of_null) {
        misuse("conf_destroy(NULL)") rd_kafka_conf_destroy(NULL);
        misuse("topic_conf_destroy(NULL)") rd_kafka_topic_conf_destroy(NULL);
        misuse("conf_dup(NULL)") say("%p", (void *)rd_kafka_conf_dup(NULL));
        misuse("conf_set(NULL, ...)") say("%s", conf_res(rd_kafka_conf_set(NULL, "linger.ms", "1", NULL, 0)));
        misuse("conf_set(name NULL)") say("%s", conf_res(rd_kafka_conf_set(rd_kafka_conf_new(), NULL, "1", NULL, 0)));
        misuse("conf_get(size NULL)") say("%s", conf_res(rd_kafka_conf_get(rd_kafka_conf_new(), "linger.ms", NULL, NULL)));
        misuse("rd_kafka_new(no conf)") {
                rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, NULL, NULL, 0);
                say("%s", rk ? "a client" : "NULL");
        }
}
