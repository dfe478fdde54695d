/* TLS and SASL in C++: secured FILE, which has the properties of brokers with SCRAM-SHA-512. The CA is passed as bytes, the
 * program checks the brokers' certificates itself, and a wrong password is replaced while the client runs. */
#include <librdkafka/rdkafkacpp.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

/* Called by several threads. */
class Certificates : public RdKafka::SslCertificateVerifyCb {
       public:
        Certificates() : leaves(0), others(0), problems(0), refuses(false) {}

        bool ssl_cert_verify_cb(const std::string &broker, int32_t, int *x509_error, int depth, const char *bytes,
                                size_t size, std::string &errstr) {
                if (broker.find(':') == std::string::npos || size < 100 || bytes[0] != 0x30 || *x509_error)
                        __sync_fetch_and_add(&problems, 1);
                __sync_fetch_and_add(depth == 0 ? &leaves : &others, 1);
                if (refuses)
                        errstr = "not today";
                return !refuses;
        }

        int leaves, others, problems;
        bool refuses;
};

class Errors : public RdKafka::EventCb {
       public:
        void event_cb(RdKafka::Event &event) {
                if (event.type() == RdKafka::Event::EVENT_ERROR && event.err() != RdKafka::ERR__ALL_BROKERS_DOWN) {
                        code = event.err();
                        text = event.str();
                }
        }

        RdKafka::ErrorCode code;
        std::string text;
};

static void check(RdKafka::Conf::ConfResult result, const std::string &errstr) {
        if (result != RdKafka::Conf::CONF_OK) {
                std::cerr << errstr << std::endl;
                exit(1);
        }
}

static void say(const std::string &what, bool is_so) {
        std::cout << what << ": " << (is_so ? "yes" : "no") << std::endl;
}

static RdKafka::Conf *configuration(const char *file, Certificates *certificates, Errors *errors) {
        std::string line, errstr;
        std::ifstream lines(file);
        RdKafka::Conf *conf = RdKafka::Conf::create(RdKafka::Conf::CONF_GLOBAL);
        while (std::getline(lines, line)) {
                std::string::size_type at = line.find('=');
                if (at == std::string::npos)
                        continue;
                std::string name = line.substr(0, at), value = line.substr(at + 1);
                if (name == "ssl.ca.location") {
                        std::ifstream pem(value.c_str());
                        std::stringstream bytes;
                        bytes << pem.rdbuf();
                        std::string ca = bytes.str();
                        check(conf->set_ssl_cert(RdKafka::CERT_CA, RdKafka::CERT_ENC_PEM, ca.data(), ca.size(), errstr), errstr);
                } else {
                        check(conf->set(name, value, errstr), errstr);
                }
        }
        say("junk is not a certificate",
            conf->set_ssl_cert(RdKafka::CERT_PUBLIC_KEY, RdKafka::CERT_ENC_DER, "junk", 4, errstr) == RdKafka::Conf::CONF_INVALID);
        check(conf->set("ssl_cert_verify_cb", certificates, errstr), errstr);
        check(conf->set("event_cb", errors, errstr), errstr);
        return conf;
}

static RdKafka::Producer *started(RdKafka::Conf *conf) {
        std::string errstr;
        RdKafka::Producer *producer = RdKafka::Producer::create(conf, errstr);
        if (!producer) {
                std::cerr << errstr << std::endl;
                exit(1);
        }
        delete conf;
        return producer;
}

static bool fails(RdKafka::Producer *producer, const Errors &errors, RdKafka::ErrorCode code, const std::string &words) {
        for (int i = 0; i < 6000 && errors.code != code; i++)
                producer->poll(10);
        if (errors.text.find(words) == std::string::npos)
                std::cerr << errors.text << std::endl;
        return errors.code == code && errors.text.find(words) != std::string::npos;
}

static RdKafka::ErrorCode produced(RdKafka::Producer *producer) {
        char value[] = "x";
        producer->produce("secured-cxx", 0, RdKafka::Producer::RK_MSG_COPY, value, 1, NULL, 0, 0, NULL);
        return producer->flush(60000);
}

int main(int argc, char **argv) {
        if (argc != 2)
                return 2;
        Certificates certificates;
        Errors errors;
        std::string errstr;
        RdKafka::Producer *producer = started(configuration(argv[1], &certificates, &errors));
        say("a record is sent over SASL_SSL", produced(producer) == RdKafka::ERR_NO_ERROR);
        say("certificates were checked", certificates.leaves > 0 && certificates.others > 0 && certificates.problems == 0);
        delete producer;

        certificates.refuses = true;
        errors.code = RdKafka::ERR_NO_ERROR;
        producer = started(configuration(argv[1], &certificates, &errors));
        say("the program's refusal ends the connection", fails(producer, errors, RdKafka::ERR__SSL, "not today"));
        delete producer;

        certificates.refuses = false;
        errors.code = RdKafka::ERR_NO_ERROR;
        RdKafka::Conf *conf = configuration(argv[1], &certificates, &errors);
        check(conf->set("sasl.password", "another", errstr), errstr);
        producer = started(conf);
        say("a wrong password is named", fails(producer, errors, RdKafka::ERR__AUTHENTICATION, "Authentication failed"));
        delete producer->sasl_set_credentials("alice", "alice-secret");
        say("a right one is used at once", produced(producer) == RdKafka::ERR_NO_ERROR);
        delete producer;
        return 0;
}
