/*
 * Sends messages and counts their delivery reports: producer BROKERS TOPIC [COUNT]
 *
 *   c++ producer.cpp -o producer $(pkg-config --cflags --libs rdkafka++)
 */
#include <librdkafka/rdkafkacpp.h>

#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>

class Reports : public RdKafka::DeliveryReportCb {
       public:
        Reports() : delivered(0), failed(0) {}
        void dr_cb(RdKafka::Message &message) {
                if (message.err()) {
                        std::cerr << "not delivered: " << message.errstr() << std::endl;
                        failed++;
                } else if (message.status() == RdKafka::Message::MSG_STATUS_PERSISTED) {
                        delivered++;
                }
        }
        int delivered, failed;
};

/* Even numbers go to partition 0, odd ones to 1. */
class EvenAndOdd : public RdKafka::PartitionerCb {
       public:
        int32_t partitioner_cb(const RdKafka::Topic *, const std::string *key, int32_t partitions, void *) {
                return key ? atoi(key->c_str()) % partitions : 0;
        }
};

int main(int argc, char **argv) {
        std::string errstr;
        Reports reports;
        EvenAndOdd even_and_odd;
        int count = argc > 3 ? atoi(argv[3]) : 10;
        if (argc < 3) {
                std::cerr << "usage: " << argv[0] << " BROKERS TOPIC [COUNT]" << std::endl;
                return 2;
        }
        RdKafka::Conf *conf = RdKafka::Conf::create(RdKafka::Conf::CONF_GLOBAL);
        RdKafka::Conf *topic_conf = RdKafka::Conf::create(RdKafka::Conf::CONF_TOPIC);
        if (conf->set("bootstrap.servers", argv[1], errstr) != RdKafka::Conf::CONF_OK ||
            conf->set("dr_cb", &reports, errstr) != RdKafka::Conf::CONF_OK ||
            topic_conf->set("partitioner_cb", &even_and_odd, errstr) != RdKafka::Conf::CONF_OK) {
                std::cerr << errstr << std::endl;
                return 1;
        }
        RdKafka::Producer *producer = RdKafka::Producer::create(conf, errstr);
        RdKafka::Topic *topic = producer ? RdKafka::Topic::create(producer, argv[2], topic_conf, errstr) : NULL;
        if (!topic) {
                std::cerr << errstr << std::endl;
                return 1;
        }
        for (int i = 0; i < count; i++) {
                std::ostringstream key, text;
                key << i;
                text << "message " << i;
                std::string payload = text.str(), number = key.str();
                RdKafka::ErrorCode err;
                if (i % 2) {
                        err = producer->produce(topic, RdKafka::Topic::PARTITION_UA, RdKafka::Producer::RK_MSG_COPY,
                                                &payload[0], payload.size(), &number, NULL);
                } else {
                        RdKafka::Headers *headers = RdKafka::Headers::create();
                        headers->add("number", number);
                        err = producer->produce(argv[2], 0, RdKafka::Producer::RK_MSG_COPY, &payload[0], payload.size(),
                                                number.data(), number.size(), 0, headers, NULL);
                        if (err)
                                delete headers;
                }
                if (err) {
                        std::cerr << "not taken: " << RdKafka::err2str(err) << std::endl;
                        return 1;
                }
                producer->poll(0);
        }
        producer->flush(30000);
        std::cout << reports.delivered << " delivered, " << reports.failed << " failed, " << producer->outq_len()
                  << " left" << std::endl;
        delete topic;
        delete producer;
        delete topic_conf;
        delete conf;
        return reports.delivered == count ? 0 : 1;
}
