/* Creating clients: the refused combinations of properties, and the values that a new client returns. */
#include "side_by_side.h"

/* Creates a client with these properties; `name=value` separated by `;`. */
static void attempt(const char *properties) {
        rd_kafka_type_t type;
        for (type = RD_KAFKA_PRODUCER; type <= RD_KAFKA_CONSUMER; type++) {
                rd_kafka_conf_t *conf = conf_of(NULL, NULL);
                char *copy = strdup(properties), *part, *saved = NULL, *value, errstr[512] = "";
                rd_kafka_t *rk;
                for (part = strtok_r(copy, ";", &saved); part; part = strtok_r(NULL, ";", &saved)) {
                        value = strchr(part, '=');
                        *value++ = '\0';
                        set(conf, part, value);
                }
                errno = 0;
                rk = rd_kafka_new(type, conf, errstr, sizeof(errstr));
                say("%s of %s: %s errno %s last error %s text %s", type == RD_KAFKA_PRODUCER ? "producer" : "consumer", properties,
                    rk ? "created" : "NULL", rk ? "any" : errno_name(errno), rk ? "any" : err(rd_kafka_last_error()), present(errstr));
                if (rk)
                        rd_kafka_destroy(rk);
                else
                        rd_kafka_conf_destroy(conf);
                free(copy);
        }
}

#define ATTEMPT(name, properties)                                                                                              \
        CASE(name) { attempt(properties); }

ATTEMPT(no_properties, "client.id=x")
ATTEMPT(dead_broker, "bootstrap.servers=" DEAD)
ATTEMPT(idempotent_acks_1, "enable.idempotence=true;acks=1")
ATTEMPT(idempotent_acks_0, "enable.idempotence=true;acks=0")
ATTEMPT(idempotent_acks_all, "enable.idempotence=true;acks=all")
ATTEMPT(idempotent_in_flight_6, "enable.idempotence=true;max.in.flight=6")
ATTEMPT(idempotent_in_flight_5, "enable.idempotence=true;max.in.flight=5")
ATTEMPT(idempotent_retries_0, "enable.idempotence=true;retries=0")
ATTEMPT(idempotent_lifo, "enable.idempotence=true;queuing.strategy=lifo")
ATTEMPT(gapless_without_idempotence, "enable.gapless.guarantee=true;enable.idempotence=false")
ATTEMPT(gapless, "enable.gapless.guarantee=true")
ATTEMPT(message_timeout_below_linger, "message.timeout.ms=10;linger.ms=100")
ATTEMPT(message_timeout_equals_linger, "message.timeout.ms=100;linger.ms=100")
ATTEMPT(session_timeout_above_poll_interval, "group.id=g;max.poll.interval.ms=1000;session.timeout.ms=6000")
ATTEMPT(heartbeat_above_session, "group.id=g;session.timeout.ms=6000;heartbeat.interval.ms=7000")
ATTEMPT(fetch_max_below_message_max, "fetch.max.bytes=1000;message.max.bytes=2000")
ATTEMPT(fetch_max_above_receive_max, "fetch.max.bytes=100000000;receive.message.max.bytes=1000000")
ATTEMPT(receive_max_below_fetch_plus_512, "fetch.max.bytes=1000000;receive.message.max.bytes=1000100")
ATTEMPT(fetch_wait_above_socket_timeout, "fetch.wait.max.ms=5000;socket.timeout.ms=2000")
ATTEMPT(socket_timeout_below_wait_plus_1000, "fetch.wait.max.ms=1500;socket.timeout.ms=2000")
ATTEMPT(reconnect_backoff_above_max, "reconnect.backoff.ms=1000;reconnect.backoff.max.ms=100")
ATTEMPT(retry_backoff_above_max, "retry.backoff.ms=2000;retry.backoff.max.ms=100")
ATTEMPT(queued_min_above_max_bytes, "queued.min.messages=10000000;queued.max.messages.kbytes=1")
ATTEMPT(buffered_messages_0_and_kbytes_1, "queue.buffering.max.messages=0;queue.buffering.max.kbytes=1")
ATTEMPT(sticky_linger, "sticky.partitioning.linger.ms=1000;linger.ms=2")
ATTEMPT(batch_size_above_message_max, "batch.size=2000000;message.max.bytes=1000000")
ATTEMPT(group_without_subscription, "group.id=g")
ATTEMPT(empty_group, "group.id=")
ATTEMPT(statistics, "statistics.interval.ms=100")
ATTEMPT(debug_all, "debug=all;log_level=7")
ATTEMPT(bad_plugin, "plugin.library.paths=/no/such/library.so")
ATTEMPT(client_rack, "client.rack=r;client.id=")
ATTEMPT(broker_version_fallback, "api.version.request=false;broker.version.fallback=0.9.0")
ATTEMPT(bad_broker_version_fallback, "api.version.request=false;broker.version.fallback=x.y")
ATTEMPT(compression_levels, "compression.codec=zstd;compression.level=12")
ATTEMPT(old_codec_level, "compression.codec=lz4;compression.level=-1")
ATTEMPT(sasl_without_protocol, "sasl.mechanisms=PLAIN;sasl.username=a;sasl.password=b")
ATTEMPT(ssl_without_protocol, "ssl.ca.location=/no/such/file;security.protocol=plaintext")
ATTEMPT(topic_blacklist, "topic.blacklist=^a,^b")
ATTEMPT(bad_topic_blacklist, "topic.blacklist=^(")
ATTEMPT(bad_servers, "bootstrap.servers=:::")
ATTEMPT(servers_with_protocols, "bootstrap.servers=PLAINTEXT://127.0.0.1:1, SSL://127.0.0.1:2")
ATTEMPT(servers_with_path, "bootstrap.servers=127.0.0.1:1/path,,127.0.0.1:2")
ATTEMPT(server_without_port, "bootstrap.servers=localhost")
ATTEMPT(mock_brokers, "test.mock.num.brokers=2")
ATTEMPT(transaction_timeout, "transaction.timeout.ms=1000")
ATTEMPT(consumer_properties_of_a_producer, "fetch.min.bytes=2;auto.offset.reset=earliest")
ATTEMPT(producer_properties_of_a_consumer, "linger.ms=2;acks=1;compression.codec=gzip")
ATTEMPT(group_protocol_with_session_timeout, "group.id=g;group.protocol=consumer;session.timeout.ms=6000")
ATTEMPT(group_protocol_with_strategy, "group.id=g;group.protocol=consumer;partition.assignment.strategy=range")
ATTEMPT(group_remote_assignor_classic, "group.id=g;group.protocol=classic;group.remote.assignor=uniform")
ATTEMPT(bad_assignor, "group.id=g;partition.assignment.strategy=nonsense")
ATTEMPT(mixed_assignors, "group.id=g;partition.assignment.strategy=range,cooperative-sticky")
ATTEMPT(metadata_age, "metadata.max.age.ms=1;topic.metadata.refresh.interval.ms=-1")
ATTEMPT(dr_only_error, "delivery.report.only.error=true")
ATTEMPT(ip_family, "broker.address.family=v6;bootstrap.servers=" DEAD)
ATTEMPT(connections_idle, "connections.max.idle.ms=1000;socket.timeout.ms=60000")
ATTEMPT(allow_auto_create, "allow.auto.create.topics=true")
ATTEMPT(isolation, "isolation.level=read_uncommitted")
ATTEMPT(queue_backoff, "fetch.queue.backoff.ms=0;fetch.error.backoff.ms=0")

CASE(conf_is_kept_when_refused) {
        rd_kafka_conf_t *conf = conf_of("enable.idempotence", "true", "acks", "1", NULL);
        char value[32] = "", errstr[8];
        size_t size = sizeof(value);
        memset(errstr, 'x', sizeof(errstr));
        say("refused: %s", rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof(errstr)) ? "created" : "NULL");
        say("text length %zu", strnlen(errstr, 8));
        say("still ours: %s %s", conf_res(rd_kafka_conf_get(conf, "acks", value, &size)), quoted(value));
        set(conf, "acks", "all");
        rd_kafka_destroy(start(RD_KAFKA_PRODUCER, conf));
}

CASE(null_error_text) {
        say("refused: %s", rd_kafka_new(RD_KAFKA_PRODUCER, conf_of("enable.idempotence", "true", "acks", "1", NULL), NULL, 0) ? "created" : "NULL");
        say("last error %s errno %s", err(rd_kafka_last_error()), errno_name(errno));
}

CASE(what_a_client_says_of_itself) {
        rd_kafka_type_t type;
        for (type = RD_KAFKA_PRODUCER; type <= RD_KAFKA_CONSUMER; type++) {
                rd_kafka_conf_t *conf = conf_of("client.id", "me", NULL);
                rd_kafka_t *rk;
                char *id, value[64] = "";
                size_t size = sizeof(value);
                rd_kafka_conf_set_opaque(conf, &size);
                rk = start(type, conf);
                say("type %d", rd_kafka_type(rk));
                say("name %s", !strncmp(rd_kafka_name(rk), type ? "me#consumer-" : "me#producer-", 12) ? "client.id#type-number" : rd_kafka_name(rk));
                say("opaque %d", rd_kafka_opaque(rk) == &size);
                say("conf client.id %s %s", conf_res(rd_kafka_conf_get(rd_kafka_conf(rk), "client.id", value, &size)), quoted(value));
                id = rd_kafka_memberid(rk);
                say("member id %s", quoted(id));
                if (id)
                        rd_kafka_mem_free(rk, id);
                id = rd_kafka_clusterid(rk, 0);
                say("cluster id %s", quoted(id));
                say("controller id %d", rd_kafka_controllerid(rk, 0));
                say("messages %d", rd_kafka_outq_len(rk));
                say("fatal %s", err(rd_kafka_fatal_error(rk, value, sizeof(value))));
                say("unsent requests %d", rd_kafka_thread_cnt() > 0);
                say("poll %d", rd_kafka_poll(rk, 0));
                say("default topic conf %s", rd_kafka_default_topic_conf_dup(rk) ? "present" : "NULL");
                say("main queue %s", rd_kafka_queue_get_main(rk) ? "present" : "NULL");
                say("consumer queue %s", rd_kafka_queue_get_consumer(rk) ? "present" : "NULL");
                say("background queue %s", rd_kafka_queue_get_background(rk) ? "present" : "NULL");
                say("sasl queue %s", rd_kafka_queue_get_sasl(rk) ? "present" : "NULL");
                rd_kafka_destroy(rk);
        }
}

CASE(group_consumer_says_its_queue) {
        rd_kafka_t *rk = consumer_of(conf_of("group.id", "g", NULL));
        rd_kafka_queue_t *queue = rd_kafka_queue_get_consumer(rk);
        char *id = rd_kafka_memberid(rk);
        say("consumer queue %s", queue ? "present" : "NULL");
        say("member id %s", quoted(id));
        if (id)
                rd_kafka_mem_free(rk, id);
        if (queue)
                rd_kafka_queue_destroy(queue);
        say("close %s", err(rd_kafka_consumer_close(rk)));
        say("closed %d", rd_kafka_consumer_closed(rk));
        rd_kafka_destroy(rk);
}

CASE(wait_destroyed) {
        rd_kafka_t *rk = producer_of(conf_of(NULL, NULL));
        long began = millis();
        errno = 0;
        say("with a client: %d", rd_kafka_wait_destroyed(400));
        say("took %s", took(began, 400));
        rd_kafka_destroy(rk);
        say("without: %d", rd_kafka_wait_destroyed(5000));
        misuse("destroy(NULL)") rd_kafka_destroy(NULL);
        misuse("destroy_flags(NULL)") rd_kafka_destroy_flags(NULL, 0);
}

CASE(wrong_type) {
        char errstr[256] = "";
        rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), errstr, sizeof(errstr));
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_message_t *message;
        rd_kafka_topic_partition_list_add(list, "t", 0);
        say("subscribe %s", err(rd_kafka_subscribe(rk, list)));
        say("assign %s", err(rd_kafka_assign(rk, list)));
        say("unsubscribe %s", err(rd_kafka_unsubscribe(rk)));
        say("poll_set_consumer %s", err(rd_kafka_poll_set_consumer(rk)));
        message = rd_kafka_consumer_poll(rk, 10);
        say_message("consumer_poll", message);
        say("consumer_close %s", err(rd_kafka_consumer_close(rk)));
        say("commit %s", err(rd_kafka_commit(rk, list, 0)));
        say("committed %s", err(rd_kafka_committed(rk, list, 10)));
        say("position %s", err(rd_kafka_position(rk, list)));
        say("pause %s", err(rd_kafka_pause_partitions(rk, list)));
        say_partitions("after pause", list);
        say("resume %s", err(rd_kafka_resume_partitions(rk, list)));
        say("offsets_store %s", err(rd_kafka_offsets_store(rk, list)));
        say_partitions("after store", list);
        say_error("seek_partitions", rd_kafka_seek_partitions(rk, list, 10));
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_destroy(rk);
}

CASE(producing_with_a_consumer) {
        rd_kafka_t *rk = consumer_of(conf_of(NULL, NULL));
        rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, "t", NULL);
        errno = 0;
        say("produce %d", rd_kafka_produce(topic, 0, RD_KAFKA_MSG_F_COPY, "x", 1, NULL, 0, NULL));
        say("last error %s", err(rd_kafka_last_error()));
        say("flush %s", err(rd_kafka_flush(rk, 0)));
        say("purge %s", err(rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE)));
        say("producev %s", err(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_VALUE("x", 1), RD_KAFKA_V_END)));
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
}
