/* The calls of rdkafkacpp_ottla.h: ottla SERVERS. */
#include <librdkafka/rdkafkacpp_ottla.h>

#include <cstdlib>
#include <iostream>
#include <string>

using RdKafka::Ottla::Request;
using RdKafka::Ottla::Result;

static const int TIMEOUT_MS = 20000;

static void say(const std::string &what, bool is_so) {
        std::cout << what << ": " << (is_so ? "yes" : "no") << std::endl;
}

static void quotas(RdKafka::Handle *handle) {
        Request change, of_alice;
        change.set("user", "cpp-alice").set("quota", "consumer_byte_rate").set("value", "1048576");
        of_alice.set("user", "cpp-alice");
        Result *result = RdKafka::Ottla::alter_client_quotas(handle, change, TIMEOUT_MS, true);
        say("a quota is valid", !result->err() && result->rows().size() == 1 && !result->rows()[0].err());
        delete result;
        result = RdKafka::Ottla::describe_client_quotas(handle, of_alice, TIMEOUT_MS);
        say("validation sets no quota", !result->err() && result->rows().empty());
        delete result;
        result = RdKafka::Ottla::alter_client_quotas(handle, change, TIMEOUT_MS);
        say("a quota is set", !result->err() && result->rows()[0].get("user") == "cpp-alice");
        delete result;
        result = RdKafka::Ottla::describe_client_quotas(handle, of_alice, TIMEOUT_MS);
        say("a quota is described", result->rows().size() == 1 && result->rows()[0].number("value", -1) == 1048576 &&
                                        result->rows()[0].fields().size() == 3 && !result->rows()[0].has("ip"));
        delete result;
}

static void users(RdKafka::Handle *handle) {
        Request change, of_both, remove, twice;
        change.set("user", "cpp-bob").set("mechanism", "SCRAM-SHA-512").set("iterations", "8192").set("password", "secret");
        change.add().set("user", "cpp-carol").set("mechanism", "SCRAM-SHA-256");
        change.set("salt", "c2FsdA==").set("salted_password", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=");
        of_both.set("user", "cpp-bob").add().set("user", "cpp-carol");
        Result *result = RdKafka::Ottla::alter_user_scram_credentials(handle, change, TIMEOUT_MS);
        say("two users are set", !result->err() && result->rows().size() == 2 && !result->rows()[0].err() &&
                                     !result->rows()[1].err());
        delete result;
        result = RdKafka::Ottla::describe_user_scram_credentials(handle, of_both, TIMEOUT_MS);
        say("two users are described",
            result->rows().size() == 2 && result->rows()[0].get("mechanism") == "SCRAM-SHA-512" &&
                result->rows()[0].number("iterations", 0) == 8192 && result->rows()[1].number("iterations", 0) == 4096);
        delete result;
        remove.set("user", "cpp-bob").set("mechanism", "SCRAM-SHA-512");
        remove.add().set("user", "cpp-carol").set("mechanism", "SCRAM-SHA-256");
        delete RdKafka::Ottla::alter_user_scram_credentials(handle, remove, TIMEOUT_MS);
        result = RdKafka::Ottla::describe_user_scram_credentials(handle, of_both, TIMEOUT_MS);
        say("users without credentials have errors",
            result->rows().size() == 2 && result->rows()[0].err() == RdKafka::ERR_RESOURCE_NOT_FOUND &&
                !result->rows()[0].errstr().empty());
        delete result;
}

static void wrong(RdKafka::Handle *handle) {
        Request unknown, none;
        unknown.set("usr", "alice");
        Result *result = RdKafka::Ottla::describe_client_quotas(handle, unknown, TIMEOUT_MS);
        say("an unknown field is refused", result->err() == RdKafka::ERR__INVALID_ARG &&
                                               result->errstr().find("\"usr\"") != std::string::npos && result->rows().empty());
        delete result;
        result = RdKafka::Ottla::describe_features(NULL, none, TIMEOUT_MS);
        say("no client is an error", result->err() == RdKafka::ERR__INVALID_ARG && !result->errstr().empty());
        delete result;
        result = RdKafka::Ottla::describe_features(handle, none, -1);
        say("features are described", !result->err() && result->errstr().empty() && !result->rows().empty());
        delete result;
}

int main(int argc, char **argv) {
        std::string errstr;
        RdKafka::Conf *conf = RdKafka::Conf::create(RdKafka::Conf::CONF_GLOBAL);
        if (argc < 2 || conf->set("bootstrap.servers", argv[1], errstr) != RdKafka::Conf::CONF_OK) {
                std::cerr << errstr << std::endl;
                return 1;
        }
        RdKafka::Producer *producer = RdKafka::Producer::create(conf, errstr);
        delete conf;
        if (!producer) {
                std::cerr << errstr << std::endl;
                return 1;
        }
        say("the versions agree", RdKafka::Ottla::version() == RD_KAFKA_OTTLA_VERSION);
        quotas(producer);
        users(producer);
        wrong(producer);
        delete producer;
        return 0;
}
