/* The C++ interface: configurations, producers, consumers, queues, partitions, metadata and events.
 *
 * The original of librdkafka++ is Debian's: it is a thin layer, and runs here over the same librdkafka as the other programs. */
#include "side_by_side.h"

#include <librdkafka/rdkafkacpp.h>

#include <list>
#include <string>
#include <vector>

using std::string;

static const char *result(RdKafka::Conf::ConfResult code) {
        return code == RdKafka::Conf::CONF_OK ? "OK" : code == RdKafka::Conf::CONF_INVALID ? "INVALID" : "UNKNOWN";
}

static const char *code(RdKafka::ErrorCode number) { return err(static_cast<rd_kafka_resp_err_t>(number)); }

/* Records reports. */
class Reports : public RdKafka::DeliveryReportCb {
       public:
        void dr_cb(RdKafka::Message &message) {
                record(&reports, "%s [%d] %.*s key %s %s text %s offset %s status %d opaque %s", message.topic_name().c_str(), message.partition(),
                       (int)message.len(), (const char *)message.payload(), message.key() ? message.key()->c_str() : "none", code(message.err()),
                       message.errstr().empty() ? "empty" : "present", offset_name(message.offset()), message.status(),
                       message.msg_opaque() ? (const char *)message.msg_opaque() : "none");
        }
};

/* Records events by their type. */
class Events : public RdKafka::EventCb {
       public:
        void event_cb(RdKafka::Event &event) {
                switch (event.type()) {
                case RdKafka::Event::EVENT_ERROR:
                        record(&errors, "error %s fatal %d text %s", code(event.err()), event.fatal(), event.str().empty() ? "empty" : "present");
                        break;
                case RdKafka::Event::EVENT_STATS: record(&statistics, "statistics %c", event.str()[0]); break;
                case RdKafka::Event::EVENT_LOG: record(&logs, "log %d %s", event.severity(), event.fac().c_str()); break;
                default: record(&errors, "event %d", event.type());
                }
        }
};

/* Sends everything to partition 1, or to the partition that the key names. */
class ToOne : public RdKafka::PartitionerCb {
       public:
        int32_t partitioner_cb(const RdKafka::Topic *topic, const string *key, int32_t count, void *opaque) {
                record(&logs, "partitioner of %s key %s partitions %d opaque %s available %d", topic->name().c_str(), key ? key->c_str() : "none", count,
                       opaque ? (const char *)opaque : "none", topic->partition_available(1));
                return 1;
        }
};

static Reports on_reports;
static Events on_events;

static RdKafka::Conf *global(const char *name = NULL, const char *value = NULL) {
        RdKafka::Conf *conf = RdKafka::Conf::create(RdKafka::Conf::CONF_GLOBAL);
        string text;
        conf->set("event_cb", &on_events, text);
        conf->set("test.mock.num.brokers", "1", text);
        if (name && conf->set(name, value, text) != RdKafka::Conf::CONF_OK)
                say("REFUSED: %s=%s", name, value);
        return conf;
}

/* A client of a type, which must be created. */
template <class Client> static Client *created(RdKafka::Conf *conf) {
        string text;
        Client *client = Client::create(conf, text);
        delete conf;
        if (!client) {
                say("NO CLIENT: %s", text.empty() ? "empty" : "present");
                exit(0);
        }
        return client;
}

static RdKafka::Producer *producer(RdKafka::Conf *conf) {
        string text;
        conf->set("dr_cb", &on_reports, text);
        return created<RdKafka::Producer>(conf);
}

static void say_partition(const char *what, const RdKafka::TopicPartition *partition) {
        say("%s: %s [%d] offset %s error %s", what, partition->topic().c_str(), partition->partition(), offset_name(partition->offset()),
            code(partition->err()));
}

static void say_message(const char *what, RdKafka::Message *message) {
        say("%s: %s text %s topic %s [%d] offset %s len %zu key %s", what, code(message->err()), message->errstr().empty() ? "empty" : "present",
            message->topic_name().c_str(), message->partition(), offset_name(message->offset()), message->err() ? 0 : message->len(),
            message->key() ? message->key()->c_str() : "none");
}

CASE(version_and_codes) {
        static const RdKafka::ErrorCode codes[] = {RdKafka::ERR_NO_ERROR, RdKafka::ERR__TIMED_OUT, RdKafka::ERR__QUEUE_FULL,
                                                   RdKafka::ERR_UNKNOWN_TOPIC_OR_PART, RdKafka::ERR__PARTITION_EOF, RdKafka::ERR_UNKNOWN};
        for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++)
                say("%d %s", codes[i], RdKafka::err2str(codes[i]).c_str());
        say("major %d", RdKafka::version() >> 24);
        say("debug %s", RdKafka::get_debug_contexts().find("broker") == string::npos ? "without broker" : "with broker");
        say("left %d", RdKafka::wait_destroyed(0));
}

CASE(configuration_values) {
        static const char *const pairs[][2] = {{"client.id", "one"},  {"linger.ms", "7"},      {"linger.ms", "bad"},        {"no.such", "1"},
                                               {"acks", "1"},         {"", "1"},               {"metadata.broker.list", ""}, {"compression.codec", "lz4"},
                                               {"dr_cb", "1"},        {"partitioner_cb", "1"}, {"auto.offset.reset", "end"}};
        for (int of_topic = 0; of_topic < 2; of_topic++) {
                RdKafka::Conf *conf = RdKafka::Conf::create(of_topic ? RdKafka::Conf::CONF_TOPIC : RdKafka::Conf::CONF_GLOBAL);
                for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
                        string text, value = "untouched";
                        RdKafka::Conf::ConfResult set = conf->set(pairs[i][0], pairs[i][1], text);
                        RdKafka::Conf::ConfResult get = conf->get(pairs[i][0], value);
                        say("%d %s=%s: %s text %s, get %s \"%s\"", of_topic, pairs[i][0], pairs[i][1], result(set), text.empty() ? "empty" : "present",
                            result(get), value.c_str());
                }
                delete conf;
        }
}

CASE(configuration_objects) {
        RdKafka::Conf *conf = RdKafka::Conf::create(RdKafka::Conf::CONF_GLOBAL), *topic = RdKafka::Conf::create(RdKafka::Conf::CONF_TOPIC);
        ToOne to_one;
        string text;
        RdKafka::EventCb *events = NULL;
        RdKafka::DeliveryReportCb *reports = NULL;
        RdKafka::PartitionerCb *partitioner = NULL;
        say("dr_cb %s", result(conf->set("dr_cb", &on_reports, text)));
        say("event_cb %s", result(conf->set("event_cb", &on_events, text)));
        say("event_cb under another name %s", result(conf->set("dr_cb2", &on_events, text)));
        say("dr_cb of a topic %s", result(topic->set("dr_cb", &on_reports, text)));
        say("partitioner_cb %s", result(topic->set("partitioner_cb", &to_one, text)));
        say("partitioner_cb of a client %s", result(conf->set("partitioner_cb", &to_one, text)));
        say("default_topic_conf %s", result(conf->set("default_topic_conf", topic, text)));
        say("get event_cb %s %d", result(conf->get(events)), events == &on_events);
        say("get dr_cb %s %d", result(conf->get(reports)), reports == &on_reports);
        say("get partitioner_cb of a topic %s %d", result(topic->get(partitioner)), partitioner == &to_one);
        say("get partitioner_cb of a client %s", result(conf->get(partitioner)));
        delete topic;
        delete conf;
}

CASE(dumped_configuration) {
        RdKafka::Conf *conf = RdKafka::Conf::create(RdKafka::Conf::CONF_GLOBAL);
        string text;
        conf->set("client.id", "dumped", text);
        std::list<string> *dump = conf->dump();
        string previous;
        int pairs = 0;
        for (std::list<string>::iterator it = dump->begin(); it != dump->end(); ++it, pairs++) {
                if (previous == "client.id" || previous == "linger.ms")
                        say("%s=%s", previous.c_str(), it->c_str());
                previous = *it;
        }
        say("even %d, more than 100 %d", pairs % 2 == 0, pairs > 200);
        delete dump;
        delete conf;
}

CASE(refused_clients) {
        string text;
        RdKafka::Conf *conf = global("group.id", "");
        RdKafka::KafkaConsumer *consumer = RdKafka::KafkaConsumer::create(conf, text);
        say("consumer with an empty group: %s text %s", consumer ? "created" : "NULL", text.empty() ? "empty" : "present");
        delete consumer;
        delete conf;
        conf = RdKafka::Conf::create(RdKafka::Conf::CONF_GLOBAL);
        text.clear();
        consumer = RdKafka::KafkaConsumer::create(conf, text);
        say("consumer without a group: %s text %s", consumer ? "created" : "NULL", text.empty() ? "empty" : "present");
        delete consumer;
        delete conf;
        conf = RdKafka::Conf::create(RdKafka::Conf::CONF_TOPIC);
        text.clear();
        RdKafka::Producer *producer = RdKafka::Producer::create(conf, text);
        say("producer of a topic's configuration: %s text %s", producer ? "created" : "NULL", text.empty() ? "empty" : "present");
        delete producer;
        delete conf;
}

CASE(produced_and_reported) {
        RdKafka::Producer *rk = producer(global());
        string key = "key", text;
        ToOne to_one;
        RdKafka::Conf *conf = RdKafka::Conf::create(RdKafka::Conf::CONF_TOPIC);
        conf->set("partitioner_cb", &to_one, text);
        RdKafka::Topic *topic = RdKafka::Topic::create(rk, "t", conf, text);
        delete conf;
        say("topic %s", topic ? topic->name().c_str() : "NULL");
        say("to a partition %s", code(rk->produce(topic, 2, RdKafka::Producer::RK_MSG_COPY, (void *)"one", 3, &key, (void *)"opaque one")));
        say("by the partitioner %s",
            code(rk->produce(topic, RdKafka::Topic::PARTITION_UA, RdKafka::Producer::RK_MSG_COPY, (void *)"two", 3, "kk", 2, (void *)"opaque two")));
        RdKafka::Headers *headers = RdKafka::Headers::create();
        headers->add("name", "value");
        say("by name %s", code(rk->produce("other", 0, RdKafka::Producer::RK_MSG_COPY, (void *)"three", 5, NULL, 0, 0, headers, NULL)));
        say("queue %d", rk->outq_len() > 0);
        say("flush %s", code(rk->flush(TIMEOUT_MS)));
        say("queue %d", rk->outq_len());
        say_recorded_set("reports", &reports);
        say_recorded_set("partitioner", &logs);
        delete topic;
        delete rk;
}

CASE(purged) {
        RdKafka::Conf *conf = global("linger.ms", "60000");
        string text;
        conf->set("queue.buffering.max.messages", "2", text);
        RdKafka::Producer *rk = producer(conf);
        for (int i = 0; i < 3; i++)
                say("produce %s", code(rk->produce("t", 0, RdKafka::Producer::RK_MSG_COPY, (void *)"x", 1, NULL, 0, 0, NULL)));
        say("too large %s", code(rk->produce("t", 0, RdKafka::Producer::RK_MSG_COPY, &text, 100 * 1000 * 1000, NULL, 0, 0, NULL)));
        say("purge %s", code(rk->purge(RdKafka::Producer::PURGE_QUEUE)));
        UNTIL(recorded(&reports) == 2, rk->poll(50));
        say_recorded("reports", &reports);
        delete rk;
}

CASE(headers_of_messages) {
        RdKafka::Headers *headers = RdKafka::Headers::create(), *copy;
        say("add %s", code(headers->add("a", "1")));
        say("add %s", code(headers->add("b", "two")));
        say("add %s", code(headers->add("a", string())));
        copy = RdKafka::Headers::create(headers->get_all());
        say("size %zu copy %zu", headers->size(), copy->size());
        RdKafka::Headers::Header last = headers->get_last("a");
        say("last a: %s size %zu value %s", code(last.err()), last.value_size(), last.value_string() ? last.value_string() : "NULL");
        say("missing: %s", code(headers->get_last("c").err()));
        say("of a name %zu", headers->get("a").size());
        say("remove %s, again %s", code(headers->remove("a")), code(headers->remove("a")));
        say("size %zu copy %zu", headers->size(), copy->size());
        delete headers;
        delete copy;
}

CASE(partitions) {
        RdKafka::TopicPartition *one = RdKafka::TopicPartition::create("t", 3), *two = RdKafka::TopicPartition::create("t", -1, 17);
        std::vector<RdKafka::TopicPartition *> list;
        say_partition("new", one);
        say_partition("with an offset", two);
        one->set_offset(RdKafka::Topic::OFFSET_BEGINNING);
        say_partition("set", one);
        list.push_back(one);
        list.push_back(two);
        RdKafka::TopicPartition::destroy(list);
        say("left %zu", list.size());
        say("constants %d %lld %lld %lld %lld", RdKafka::Topic::PARTITION_UA, (long long)RdKafka::Topic::OFFSET_BEGINNING,
            (long long)RdKafka::Topic::OFFSET_END, (long long)RdKafka::Topic::OFFSET_STORED, (long long)RdKafka::Topic::OFFSET_INVALID);
        say("tail %lld", (long long)RdKafka::Consumer::OffsetTail(5));
}

/* Creates the topic by producing to it. */
static void fill(RdKafka::Producer *rk, int count) {
        for (int i = 0; i < count; i++)
                rk->produce("t", 0, RdKafka::Producer::RK_MSG_COPY, (void *)"value", 5, "k", 1, 0, NULL);
        rk->flush(TIMEOUT_MS);
}

CASE(metadata) {
        RdKafka::Producer *rk = producer(global());
        RdKafka::Metadata *metadata = NULL;
        string text;
        fill(rk, 1);
        say("all topics %s", code(rk->metadata(true, NULL, &metadata, TIMEOUT_MS)));
        if (!metadata)
                return;
        say("brokers %zu, first has an id %d, a host %d, a port %d", metadata->brokers()->size(), (*metadata->brokers())[0]->id() == 1,
            !(*metadata->brokers())[0]->host().empty(), (*metadata->brokers())[0]->port() > 0);
        say("id of the response %d, name %s", metadata->orig_broker_id(), metadata->orig_broker_name().empty() ? "empty" : "present");
        for (size_t i = 0; i < metadata->topics()->size(); i++) {
                const RdKafka::TopicMetadata *topic = (*metadata->topics())[i];
                say("topic %s partitions %zu error %s", topic->topic().c_str(), topic->partitions()->size(), code(topic->err()));
                for (size_t j = 0; j < topic->partitions()->size(); j++) {
                        const RdKafka::PartitionMetadata *partition = (*topic->partitions())[j];
                        say("  %d leader %d replicas %zu in sync %zu error %s", partition->id(), partition->leader(), partition->replicas()->size(),
                            partition->isrs()->size(), code(partition->err()));
                }
        }
        delete metadata;
        RdKafka::Topic *topic = RdKafka::Topic::create(rk, "t", NULL, text);
        metadata = NULL;
        say("one topic %s", code(rk->metadata(false, topic, &metadata, TIMEOUT_MS)));
        say("topics %zu", metadata ? metadata->topics()->size() : 0);
        delete metadata;
        say("controller %d, cluster %s", rk->controllerid(TIMEOUT_MS) >= 0, rk->clusterid(TIMEOUT_MS).empty() ? "empty" : "present");
        delete topic;
        delete rk;
}

CASE(handles) {
        RdKafka::Producer *rk = producer(global("client.id", "handle"));
        int64_t low = -7, high = -7;
        fill(rk, 3);
        say("name %d, member %s", rk->name().find("handle#producer-") == 0, rk->memberid().empty() ? "empty" : "present");
        say("watermarks %s", code(rk->query_watermark_offsets("t", 0, &low, &high, TIMEOUT_MS)));
        say("  %lld to %lld", (long long)low, (long long)high);
        say("of an unknown partition %s", code(rk->query_watermark_offsets("t", 99, &low, &high, 2000)));
        std::vector<RdKafka::TopicPartition *> list(1, RdKafka::TopicPartition::create("t", 0, 1));
        say("offsets for times %s", code(rk->offsetsForTimes(list, TIMEOUT_MS)));
        say("pause %s", code(rk->pause(list)));
        say("  paused %s", code(list[0]->err()));
        say("resume %s", code(rk->resume(list)));
        string text;
        say("fatal error %s", code(rk->fatal_error(text)));
        say("C pointers %d", rk->c_ptr() != NULL);
        void *memory = rk->mem_malloc(10);
        rk->mem_free(memory);
        RdKafka::TopicPartition::destroy(list);
        delete rk;
}

CASE(queues) {
        RdKafka::Producer *rk = producer(global());
        RdKafka::Queue *queue = RdKafka::Queue::create(rk), *other = RdKafka::Queue::create(rk);
        long began = millis();
        RdKafka::Message *message = queue->consume(400);
        say_message("nothing", message);
        say("took %s", took(began, 400));
        delete message;
        say("forward %s", code(queue->forward(other)));
        say("back %s", code(queue->forward(NULL)));
        say("callbacks %d", queue->poll(0));
        queue->io_event_enable(-1, NULL, 0);
        delete queue;
        delete other;
        delete rk;
}

CASE(simple_consumer) {
        RdKafka::Conf *conf = global();
        string text;
        RdKafka::Consumer *rk = created<RdKafka::Consumer>(conf);
        RdKafka::Topic *topic = RdKafka::Topic::create(rk, "t", NULL, text);
        say("start %s", code(rk->start(topic, 0, RdKafka::Topic::OFFSET_BEGINNING)));
        RdKafka::Message *message = rk->consume(topic, 0, 0);
        say_message("nothing yet", message);
        delete message;
        say("seek %s", code(rk->seek(topic, 0, 0, 0)));
        say("stop %s", code(rk->stop(topic, 0)));
        say("start at an odd offset %s", code(rk->start(topic, -5, 0)));
        message = rk->consume(topic, 7, 0);
        say_message("of another", message);
        delete message;
        delete topic;
        delete rk;
}

BROKER_CASE(consumer) {
        string text, name = topic_name("cxx");
        RdKafka::Conf *conf = RdKafka::Conf::create(RdKafka::Conf::CONF_GLOBAL);
        conf->set("bootstrap.servers", bootstrap(), text);
        RdKafka::Producer *filler = created<RdKafka::Producer>(conf);
        RdKafka::Headers *headers = RdKafka::Headers::create();
        headers->add("h", "1");
        say("produce %s", code(filler->produce(name, 0, RdKafka::Producer::RK_MSG_COPY, (void *)"first", 5, "k", 1, 12345, headers, NULL)));
        say("produce %s", code(filler->produce(name, 0, RdKafka::Producer::RK_MSG_COPY, NULL, 0, NULL, 0, 0, NULL)));
        say("flush %s", code(filler->flush(TIMEOUT_MS)));
        delete filler;
        conf = RdKafka::Conf::create(RdKafka::Conf::CONF_GLOBAL);
        conf->set("bootstrap.servers", bootstrap(), text);
        conf->set("group.id", name, text);
        conf->set("enable.partition.eof", "true", text);
        conf->set("enable.auto.commit", "false", text);
        RdKafka::KafkaConsumer *rk = created<RdKafka::KafkaConsumer>(conf);
        std::vector<RdKafka::TopicPartition *> list(1, RdKafka::TopicPartition::create(name, 0, 0)), now;
        say("assign %s", code(rk->assign(list)));
        say("assignment %s", code(rk->assignment(now)));
        say_partition("  assigned", now[0]);
        for (int i = 0; i < 3; i++) {
                RdKafka::Message *message = NULL;
                UNTIL((message = rk->consume(100)) && message->err() != RdKafka::ERR__TIMED_OUT, delete message);
                say_message("consume", message);
                if (!message->err())
                        say("  timestamp type %d, headers %zu, payload %s", message->timestamp().type, message->headers() ? message->headers()->size() : 0,
                            message->payload() ? "present" : "NULL");
                if (i == 0)
                        say("store %s, commit %s", code(message->offset() == 0 ? RdKafka::ERR_NO_ERROR : RdKafka::ERR_UNKNOWN), code(rk->commitSync(message)));
                delete message;
        }
        RdKafka::Message *message = rk->consume(0);
        say_message("no more", message);
        delete message;
        say("position %s", code(rk->position(now)));
        say_partition("  position", now[0]);
        say("committed %s", code(rk->committed(now, TIMEOUT_MS)));
        say_partition("  committed", now[0]);
        say("commit %s", code(rk->commitSync()));
        say("committed %s", code(rk->committed(now, TIMEOUT_MS)));
        say_partition("  committed", now[0]);
        list[0]->set_offset(1);
        say("seek %s", code(rk->seek(*list[0], TIMEOUT_MS)));
        RdKafka::TopicPartition::destroy(now);
        say("unassign %s", code(rk->unassign()));
        say("assignment %s of %zu", code(rk->assignment(now)), now.size());
        say("close %s", code(rk->close()));
        say("closed %d", rk->closed());
        RdKafka::TopicPartition::destroy(list);
        delete rk;
}

CASE(errors_and_statistics_as_events) {
        RdKafka::Conf *conf = RdKafka::Conf::create(RdKafka::Conf::CONF_GLOBAL);
        string text;
        conf->set("bootstrap.servers", DEAD, text);
        conf->set("statistics.interval.ms", "50", text);
        conf->set("event_cb", &on_events, text);
        RdKafka::Producer *rk = producer(conf);
        UNTIL(recorded_with(&errors, "_ALL_BROKERS_DOWN") && recorded_with(&errors, "_TRANSPORT") && recorded(&statistics), rk->poll(20));
        say_recorded_set("errors", &errors);
        say_recorded_set("statistics", &statistics);
        delete rk;
}
