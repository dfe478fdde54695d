// Two members of a group in C++: group_members BROKERS TOPIC SETTING=VALUE...
//
// A rebalance callback assigns as the protocol of the group demands. Every record of the topic, which has four
// partitions and RECORDS in each, comes once; commits are kept, and a closed member's partitions go to the other.
#include <librdkafka/rdkafkacpp.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

static const int PARTITIONS = 4;
static const int64_t RECORDS = 100;

static void check(bool holds, const std::string &what) {
        if (holds)
                return;
        std::cerr << "FAILED: " << what << std::endl;
        _Exit(1);
}

class Member : public RdKafka::RebalanceCb, public RdKafka::OffsetCommitCb, public RdKafka::EventCb {
       public:
        Member(const std::vector<std::pair<std::string, std::string>> &settings, const std::string &topic) {
                std::string error;
                std::unique_ptr<RdKafka::Conf> conf(RdKafka::Conf::create(RdKafka::Conf::CONF_GLOBAL));
                for (const auto &setting : settings)
                        check(conf->set(setting.first, setting.second, error) == RdKafka::Conf::CONF_OK, error);
                conf->set("rebalance_cb", static_cast<RdKafka::RebalanceCb *>(this), error);
                conf->set("offset_commit_cb", static_cast<RdKafka::OffsetCommitCb *>(this), error);
                conf->set("event_cb", static_cast<RdKafka::EventCb *>(this), error);
                consumer.reset(RdKafka::KafkaConsumer::create(conf.get(), error));
                check(consumer != nullptr, error);
                check(consumer->subscribe({topic}) == RdKafka::ERR_NO_ERROR, "subscribe");
        }

        void rebalance_cb(RdKafka::KafkaConsumer *from,
                          RdKafka::ErrorCode code,
                          std::vector<RdKafka::TopicPartition *> &partitions) override {
                bool is_assign = code == RdKafka::ERR__ASSIGN_PARTITIONS;
                check(is_assign || code == RdKafka::ERR__REVOKE_PARTITIONS, RdKafka::err2str(code));
                check(is_assign || !from->assignment_lost(), "the assignment is lost");
                for (const auto *partition : partitions)
                        check(is_assign ? held.insert(partition->partition()).second
                                        : held.erase(partition->partition()) == 1,
                              "a rebalance that contradicts the one before");
                std::unique_ptr<RdKafka::Error> error;
                if (from->rebalance_protocol() == "COOPERATIVE")
                        error.reset(is_assign ? from->incremental_assign(partitions)
                                              : from->incremental_unassign(partitions));
                else
                        check((is_assign ? from->assign(partitions) : from->unassign()) == RdKafka::ERR_NO_ERROR,
                              "assign");
                check(error == nullptr, error ? error->str() : "");
        }

        void offset_commit_cb(RdKafka::ErrorCode code, std::vector<RdKafka::TopicPartition *> &) override {
                check(code == RdKafka::ERR_NO_ERROR, RdKafka::err2str(code));
                commits++;
        }

        void event_cb(RdKafka::Event &event) override {
                check(event.type() != RdKafka::Event::EVENT_ERROR, event.str());
        }

        // Consumes for a short time.
        void consume(std::set<std::pair<int32_t, int64_t>> &seen) {
                std::unique_ptr<RdKafka::Message> message(consumer->consume(20));
                if (message->err() == RdKafka::ERR__TIMED_OUT)
                        return;
                check(message->err() == RdKafka::ERR_NO_ERROR, message->errstr());
                check(seen.insert({message->partition(), message->offset()}).second, "a record came twice");
                if (message->offset() + 1 == RECORDS)
                        check(consumer->commitAsync(message.get()) == RdKafka::ERR_NO_ERROR, "commitAsync");
        }

        std::unique_ptr<RdKafka::KafkaConsumer> consumer;
        std::set<int32_t> held;
        int commits = 0;
};

int main(int argc, char **argv) {
        check(argc > 2, "BROKERS TOPIC SETTING=VALUE...");
        std::string topic = argv[2];
        std::vector<std::pair<std::string, std::string>> settings = {{"bootstrap.servers", argv[1]},
                                                                     {"group.id", topic},
                                                                     {"auto.offset.reset", "earliest"},
                                                                     {"enable.auto.commit", "false"}};
        for (int i = 3; i < argc; i++) {
                std::string setting = argv[i];
                size_t at = setting.find('=');
                settings.push_back({setting.substr(0, at), setting.substr(at + 1)});
        }
        auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        auto in_time = [&](const char *what) { check(std::chrono::steady_clock::now() < until, what); };

        std::set<std::pair<int32_t, int64_t>> seen, again;
        Member first(settings, topic);
        while (seen.size() < PARTITIONS * RECORDS || first.commits < PARTITIONS) {
                in_time("the records do not come");
                first.consume(seen);
        }
        std::cout << "one member: " << seen.size() << " records, " << first.held.size() << " partitions, protocol "
                  << first.consumer->rebalance_protocol() << std::endl;

        Member second(settings, topic);
        while (first.held.size() != 2 || second.held.size() != 2) {
                in_time("the second member gets nothing");
                first.consume(again);
                second.consume(again);
        }
        for (int32_t partition : first.held)
                check(!second.held.count(partition), "both have a partition");
        std::vector<RdKafka::TopicPartition *> assigned;
        check(second.consumer->assignment(assigned) == RdKafka::ERR_NO_ERROR && assigned.size() == 2, "assignment");
        RdKafka::TopicPartition::destroy(assigned);
        std::cout << "two members: two partitions each" << std::endl;

        check(first.consumer->close() == RdKafka::ERR_NO_ERROR, "close");
        check(first.consumer->closed() && first.held.empty(), "what is closed has nothing");
        while (second.held.size() != PARTITIONS) {
                in_time("the second member does not get all");
                second.consume(again);
        }
        std::vector<RdKafka::TopicPartition *> offsets;
        for (int32_t partition = 0; partition < PARTITIONS; partition++)
                offsets.push_back(RdKafka::TopicPartition::create(topic, partition));
        check(second.consumer->committed(offsets, 30000) == RdKafka::ERR_NO_ERROR, "committed");
        for (const auto *partition : offsets)
                std::cout << "committed of " << partition->partition() << ": " << partition->offset() << std::endl;
        RdKafka::TopicPartition::destroy(offsets);
        check(second.consumer->close() == RdKafka::ERR_NO_ERROR, "close");
        std::cout << "records that came again: " << again.size() << std::endl;
}
