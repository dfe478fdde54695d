/* The life of a client without servers, with servers that refuse connections, and with servers that appear later. */
#include "side_by_side.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#define DEAD_TOO "127.0.0.1:2"

static int connects;

static int on_connect(int socket, const struct sockaddr *address, int length, const char *id UNUSED, void *opaque UNUSED) {
        __sync_fetch_and_add(&connects, 1);
        return connect(socket, address, length) < 0 && errno != EINPROGRESS ? errno : 0;
}

static int is_producer(rd_kafka_type_t type) { return type == RD_KAFKA_PRODUCER; }

static rd_kafka_t *client(rd_kafka_type_t type, const char *servers, const char *name, const char *value) {
        rd_kafka_conf_t *conf = conf_of(name, value, NULL);
        if (servers)
                set(conf, "bootstrap.servers", servers);
        rd_kafka_conf_set_connect_cb(conf, on_connect);
        rd_kafka_conf_set_stats_cb(conf, on_stats);
        return is_producer(type) ? producer_of(conf) : consumer_of(conf);
}

static void produce(rd_kafka_t *rk, const char *topic) {
        say("produce: %s", err(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_VALUE((void *)"one", 3), RD_KAFKA_V_END)));
}

static int all_down(void) { return recorded_with(&errors, "_ALL_BROKERS_DOWN"); }

static void wait_all_down(rd_kafka_t *rk) {
        UNTIL(all_down(), rd_kafka_poll(rk, 20));
        say("_TRANSPORT %d _ALL_BROKERS_DOWN %d connect_cb %d", recorded_with(&errors, "_TRANSPORT") > 0, all_down(), connects > 0);
}

static void end_of(rd_kafka_t *rk) {
        long began = millis();
        rd_kafka_destroy(rk);
        say("destroyed %s", took(began, 4000));
}

/* ---- No servers ---- */

static void nothing_happens(rd_kafka_type_t type) {
        rd_kafka_t *rk = client(type, NULL, NULL, NULL);
        rd_kafka_poll(rk, 300);
        say("errors %d connect_cb %d", recorded(&errors), connects);
        end_of(rk);
        say_recorded_set("logs", &logs);
}
CASE(idle_producer_without_servers) { nothing_happens(RD_KAFKA_PRODUCER); }
CASE(idle_consumer_without_servers) { nothing_happens(RD_KAFKA_CONSUMER); }

CASE(destroyed_at_once_without_servers) {
        end_of(client(RD_KAFKA_PRODUCER, NULL, NULL, NULL));
        end_of(client(RD_KAFKA_CONSUMER, NULL, NULL, NULL));
}

CASE(statistics_without_servers) {
        rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, NULL, "statistics.interval.ms", "100");
        UNTIL(recorded(&statistics) > 1, rd_kafka_poll(rk, 50));
        say_recorded_set("statistics", &statistics);
        end_of(rk);
}

CASE(purge_without_servers) {
        rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, NULL, NULL, NULL);
        produce(rk, "topic");
        say("queue %d", rd_kafka_outq_len(rk));
        say("purge %s", err(rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE)));
        UNTIL(recorded(&reports) == 1, rd_kafka_poll(rk, 50));
        say_recorded("reports", &reports);
        end_of(rk);
}

CASE(flush_without_servers) {
        rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, NULL, NULL, NULL);
        long began;
        say("flush of nothing %s", err(rd_kafka_flush(rk, 1000)));
        produce(rk, "topic");
        began = millis();
        say("flush %s took %s", err(rd_kafka_flush(rk, 500)), took(began, 500));
        end_of(rk);
        say_recorded("reports", &reports);
}

CASE(message_times_out_without_servers) {
        rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, NULL, "message.timeout.ms", "500");
        produce(rk, "topic");
        UNTIL(recorded(&reports) == 1, rd_kafka_poll(rk, 50));
        say("code %d", recorded_with(&reports, "error _MSG_TIMED_OUT"));
        end_of(rk);
}

CASE(consumer_polls_and_closes_without_servers) {
        rd_kafka_t *rk = client(RD_KAFKA_CONSUMER, NULL, "group.id", "g");
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_message_t *message;
        rd_kafka_topic_partition_list_add(list, "topic", 0)->offset = 0;
        say("assign %s", err(rd_kafka_assign(rk, list)));
        message = rd_kafka_consumer_poll(rk, 200);
        say_message("poll", message);
        if (message)
                rd_kafka_message_destroy(message);
        rd_kafka_topic_partition_list_destroy(list);
        say("close %s", err(rd_kafka_consumer_close(rk)));
        end_of(rk);
}

CASE(several_clients_without_servers) {
        rd_kafka_t *rks[4];
        int i;
        for (i = 0; i < 4; i++)
                rks[i] = client(i % 2 ? RD_KAFKA_CONSUMER : RD_KAFKA_PRODUCER, NULL, NULL, NULL);
        produce(rks[0], "topic");
        for (i = 3; i >= 0; i--)
                end_of(rks[i]);
        say("reports %d", recorded(&reports));
}

CASE(servers_added_by_name_without_servers) {
        rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, NULL, NULL, NULL);
        say("nothing %d", rd_kafka_brokers_add(rk, ""));
        say("two %d", rd_kafka_brokers_add(rk, DEAD "," DEAD_TOO));
        wait_all_down(rk);
        end_of(rk);
}

/* ---- Servers that refuse connections ---- */

static void refused(rd_kafka_type_t type, const char *servers) {
        rd_kafka_t *rk = client(type, servers, NULL, NULL);
        wait_all_down(rk);
        end_of(rk);
}
CASE(idle_producer_with_a_dead_server) { refused(RD_KAFKA_PRODUCER, DEAD); }
CASE(idle_consumer_with_a_dead_server) { refused(RD_KAFKA_CONSUMER, DEAD); }
CASE(idle_producer_with_two_dead_servers) { refused(RD_KAFKA_PRODUCER, DEAD "," DEAD_TOO); }
CASE(idle_consumer_with_two_dead_servers) { refused(RD_KAFKA_CONSUMER, DEAD "," DEAD_TOO); }

CASE(attempts_go_on_with_a_dead_server) {
        rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, DEAD, NULL, NULL);
        UNTIL(connects >= 3, rd_kafka_poll(rk, 20));
        say("all down %d", all_down());
        end_of(rk);
}

CASE(dead_server_added_to_a_dead_server) {
        rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, DEAD, NULL, NULL);
        wait_all_down(rk);
        say("added %d", rd_kafka_brokers_add(rk, DEAD_TOO));
        UNTIL(connects >= 4, rd_kafka_poll(rk, 20));
        say("all down %d", all_down());
        end_of(rk);
}

CASE(destroyed_at_once_with_a_dead_server) {
        end_of(client(RD_KAFKA_PRODUCER, DEAD, NULL, NULL));
        end_of(client(RD_KAFKA_CONSUMER, DEAD, NULL, NULL));
}

CASE(several_clients_with_dead_servers) {
        rd_kafka_t *rks[3];
        int i;
        for (i = 0; i < 3; i++) {
                rks[i] = client(RD_KAFKA_PRODUCER, DEAD, NULL, NULL);
                UNTIL(all_down() == i + 1, rd_kafka_poll(rks[i], 20));
        }
        say("all down %d", all_down());
        for (i = 0; i < 3; i++)
                end_of(rks[i]);
}

/* ---- Servers that appear later ---- */

/* A port of this machine that refuses connections until `listens`. */
static int reserve(char *servers, size_t room) {
        struct sockaddr_in address;
        socklen_t length = sizeof(address);
        int bound = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        memset(&address, 0, sizeof(address));
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (bound < 0 || bind(bound, (struct sockaddr *)&address, length) ||
            getsockname(bound, (struct sockaddr *)&address, &length))
                abort();
        snprintf(servers, room, "127.0.0.1:%d", ntohs(address.sin_port));
        return bound;
}

static void port_listens_later(rd_kafka_type_t type) {
        char servers[64];
        int accepted, bound = reserve(servers, sizeof(servers));
        rd_kafka_t *rk = client(type, servers, NULL, NULL);
        wait_all_down(rk);
        if (listen(bound, 8))
                abort();
        accepted = accept(bound, NULL, NULL);
        say("connected %d", accepted >= 0);
        close(accepted);
        close(bound);
        end_of(rk);
}
CASE(port_of_a_producer_listens_later) { port_listens_later(RD_KAFKA_PRODUCER); }
CASE(port_of_a_consumer_listens_later) { port_listens_later(RD_KAFKA_CONSUMER); }

static void delivered(rd_kafka_t *rk, const char *servers) {
        produce(rk, topic_name("life"));
        rd_kafka_poll(rk, 100);
        say("reports %d", recorded(&reports));
        say("added %d", rd_kafka_brokers_add(rk, servers));
        UNTIL(recorded(&reports) == 1, rd_kafka_poll(rk, 50));
        say("delivered %d", recorded_with(&reports, "error NO_ERROR"));
        end_of(rk);
}
BROKER_CASE(added_server_delivers_without_servers) {
        delivered(client(RD_KAFKA_PRODUCER, NULL, NULL, NULL), bootstrap());
}
BROKER_CASE(added_server_delivers_with_a_dead_server) {
        delivered(client(RD_KAFKA_PRODUCER, DEAD, NULL, NULL), bootstrap());
}

BROKER_CASE(idle_producer_connects) {
        rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, bootstrap(), NULL, NULL);
        UNTIL(connects, rd_kafka_poll(rk, 20));
        say("errors %d", recorded(&errors));
        end_of(rk);
}

/* `api.version.request=false`: the client takes the versions of `broker.version.fallback` for granted. */
BROKER_CASE(versions_that_are_not_asked_for) {
        rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, bootstrap(), "api.version.request", "false");
        const char *topic = topic_name("unasked");
        produce(rk, topic);
        UNTIL(recorded(&reports) == 1, rd_kafka_poll(rk, 50));
        say("delivered %d", recorded_with(&reports, "error NO_ERROR"));
        end_of(rk);
}
