/*
 * Prints the messages of two partitions up to their ends, with headers: consumer BROKERS TOPIC
 *
 *   c++ consumer.cpp -o consumer $(pkg-config --cflags --libs rdkafka++)
 */
#include <librdkafka/rdkafkacpp.h>

#include <iostream>
#include <string>
#include <vector>

int main(int argc, char **argv) {
        std::string errstr;
        if (argc < 3) {
                std::cerr << "usage: " << argv[0] << " BROKERS TOPIC" << std::endl;
                return 2;
        }
        RdKafka::Conf *conf = RdKafka::Conf::create(RdKafka::Conf::CONF_GLOBAL);
        if (conf->set("bootstrap.servers", argv[1], errstr) != RdKafka::Conf::CONF_OK ||
            conf->set("group.id", "example", errstr) != RdKafka::Conf::CONF_OK ||
            conf->set("enable.partition.eof", "true", errstr) != RdKafka::Conf::CONF_OK) {
                std::cerr << errstr << std::endl;
                return 1;
        }
        RdKafka::KafkaConsumer *consumer = RdKafka::KafkaConsumer::create(conf, errstr);
        if (!consumer) {
                std::cerr << errstr << std::endl;
                return 1;
        }
        RdKafka::Metadata *metadata;
        if (consumer->metadata(true, NULL, &metadata, 10000) == RdKafka::ERR_NO_ERROR) {
                std::cout << metadata->brokers()->size() << " brokers" << std::endl;
                delete metadata;
        }
        /* One partition after the other, so that the output has an order. */
        for (int partition = 0; partition < 2; partition++) {
                std::vector<RdKafka::TopicPartition *> partitions;
                partitions.push_back(
                    RdKafka::TopicPartition::create(argv[2], partition, RdKafka::Topic::OFFSET_BEGINNING));
                consumer->assign(partitions);
                for (bool at_end = false; !at_end;) {
                        RdKafka::Message *message = consumer->consume(10000);
                        if (message->err() == RdKafka::ERR__PARTITION_EOF) {
                                at_end = true;
                        } else if (message->err()) {
                                std::cerr << message->errstr() << std::endl;
                                return 1;
                        } else {
                                std::cout << message->topic_name().substr(0, 2) << " " << message->partition() << " "
                                          << message->offset() << " " << (message->key() ? *message->key() : "-") << ": "
                                          << std::string(static_cast<char *>(message->payload()), message->len());
                                if (message->headers()) {
                                        std::vector<RdKafka::Headers::Header> all = message->headers()->get_all();
                                        for (size_t i = 0; i < all.size(); i++)
                                                std::cout << " " << all[i].key() << "=" << all[i].value_string();
                                }
                                std::cout << std::endl;
                        }
                        delete message;
                }
                consumer->position(partitions);
                std::cout << "position " << partitions[0]->offset() << std::endl;
                RdKafka::TopicPartition::destroy(partitions);
        }
        consumer->close();
        delete consumer;
        delete conf;
        return 0;
}
