/* Endings: idle connections, the end of a partition, clients that are destroyed at once, and topics that handles create. */
#include "side_by_side.h"

/* Records lines about failed connections, with their level. */
static void on_failure(const rd_kafka_t *rk UNUSED, int level, const char *facility, const char *text) {
        if (!strcmp(facility, "FAIL"))
                record(&logs, "%d %s%s", level, facility, strstr(text, "Connection max idle time exceeded") ? " idle" : "");
}

static rd_kafka_conf_t *failures(const char *servers, const char *name, const char *value) {
        rd_kafka_conf_t *conf = conf_of("bootstrap.servers", servers, name, value, NULL);
        rd_kafka_conf_set_log_cb(conf, on_failure);
        return conf;
}

/* Waits until a client is connected. */
static void connected(rd_kafka_t *rk) {
        const struct rd_kafka_metadata *metadata = NULL;
        say("metadata %s", err(rd_kafka_metadata(rk, 0, NULL, &metadata, TIMEOUT_MS)));
        if (metadata)
                rd_kafka_metadata_destroy(metadata);
}

BROKER_CASE(connection_that_the_client_closes_when_idle) {
        rd_kafka_conf_t *conf = failures(bootstrap(), "connections.max.idle.ms", "700");
        rd_kafka_t *rk;
        set(conf, "debug", "broker");
        rk = producer_of(conf);
        connected(rk);
        UNTIL(recorded_with(&logs, "idle"), rd_kafka_poll(rk, 50));
        say("closed as idle: 7 FAIL %d, errors %d", recorded_with(&logs, "7 FAIL idle") > 0, recorded(&errors));
        connected(rk);
        rd_kafka_destroy(rk);
}

BROKER_CASE(brokers_that_end_while_a_client_is_idle) {
        struct brokers brokers = brokers_start("--port 0");
        rd_kafka_t *rk;
        setenv("SBS_BOOTSTRAP", brokers.servers, 1);
        rk = producer_of(failures(brokers.servers, NULL, NULL));
        connected(rk);
        rd_kafka_poll(rk, 2000);
        brokers_stop(&brokers);
        UNTIL(recorded_with(&logs, "6 FAIL") && recorded_with(&logs, "3 FAIL") && recorded_with(&errors, "_TRANSPORT") &&
                  recorded_with(&errors, "_ALL_BROKERS_DOWN"),
              rd_kafka_poll(rk, 50));
        say_recorded_set("logs", &logs);
        say_recorded_set("errors", &errors);
        rd_kafka_destroy(rk);
}

CASE(no_errors_of_a_client_destroyed_at_once) {
        int i;
        for (i = 0; i < 20; i++) {
                rd_kafka_conf_t *conf = conf_of("test.mock.num.brokers", "1", NULL);
                rd_kafka_t *rk;
                rd_kafka_conf_set_error_cb(conf, NULL);
                rk = i % 2 ? producer_of(conf) : consumer_of(conf);
                usleep(3000 * i);
                rd_kafka_destroy(rk);
        }
        say("errors %d", recorded_with(&logs, "3 "));
}

BROKER_CASE(end_of_a_partition) {
        const char *topic = topic_name("end");
        rd_kafka_t *rk = producer_of(conf_of("bootstrap.servers", bootstrap(), NULL));
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_message_t *message = NULL;
        int i;
        rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_VALUE("v", 1), RD_KAFKA_V_END);
        say("flush %s", err(rd_kafka_flush(rk, TIMEOUT_MS)));
        rd_kafka_destroy(rk);
        rk = consumer_of(conf_of("bootstrap.servers", bootstrap(), "group.id", topic, "enable.partition.eof", "true", NULL));
        for (i = 0; i < 2; i++) {
                rd_kafka_topic_partition_list_add(list, topic, i)->offset = 0;
                rd_kafka_assign(rk, list);
                do {
                        if (message)
                                rd_kafka_message_destroy(message);
                        message = NULL;
                        UNTIL((message = rd_kafka_consumer_poll(rk, 100)), (void)0);
                } while (message && !message->err);
                if (!message)
                        return;
                say("%s topic %s [%d] offset %s payload %s key %s private %s broker %s epoch %d headers %s", err(message->err),
                    rd_kafka_topic_name(message->rkt), message->partition, offset_name(message->offset),
                    message->payload ? "present" : "NULL", present(message->key), message->_private ? "present" : "NULL",
                    rd_kafka_message_broker_id(message) >= 0 ? "present" : "-1", rd_kafka_message_leader_epoch(message),
                    err(rd_kafka_message_headers(message, &(rd_kafka_headers_t *){NULL})));
                say("text %s timestamp %lld latency %s status %s", present(rd_kafka_message_errstr(message)),
                    (long long)rd_kafka_message_timestamp(message, NULL), rd_kafka_message_latency(message) >= 0 ? "present" : "-1",
                    status_name(rd_kafka_message_status(message)));
                rd_kafka_message_destroy(message);
                message = NULL;
                rd_kafka_topic_partition_list_del_by_idx(list, 0);
        }
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_destroy(rk);
}

/* Returns whether the brokers have the topic, without creating it. */
static int exists(const char *topic) {
        rd_kafka_t *rk = consumer_of(conf_of("bootstrap.servers", bootstrap(), NULL));
        const struct rd_kafka_metadata *metadata = NULL;
        int i, found = 0;
        rd_kafka_metadata(rk, 1, NULL, &metadata, TIMEOUT_MS);
        for (i = 0; metadata && i < metadata->topic_cnt; i++)
                found |= !strcmp(metadata->topics[i].topic, topic);
        if (metadata)
                rd_kafka_metadata_destroy(metadata);
        rd_kafka_destroy(rk);
        return found;
}

static void creates(rd_kafka_type_t type, const char *name, const char *allowed) {
        const char *topic = topic_name(name);
        rd_kafka_conf_t *conf = conf_of("bootstrap.servers", bootstrap(), "allow.auto.create.topics", allowed, NULL);
        rd_kafka_t *rk = type == RD_KAFKA_PRODUCER ? producer_of(conf) : consumer_of(conf);
        rd_kafka_topic_t *object = rd_kafka_topic_new(rk, topic, NULL);
        long ends = millis() + 1500;
        int found = 0;
        while (!found && millis() < ends) {
                rd_kafka_poll(rk, 50);
                found = exists(topic);
        }
        say("%s with allow.auto.create.topics=%s: %s", type == RD_KAFKA_PRODUCER ? "producer" : "consumer", allowed,
            found ? "created" : "absent");
        rd_kafka_topic_destroy(object);
        rd_kafka_destroy(rk);
}
BROKER_CASE(topics_that_handles_create) {
        creates(RD_KAFKA_PRODUCER, "by-producer", "true");
        creates(RD_KAFKA_PRODUCER, "by-forbidden-producer", "false");
        creates(RD_KAFKA_CONSUMER, "by-consumer", "true");
        creates(RD_KAFKA_CONSUMER, "by-forbidden-consumer", "false");
}
