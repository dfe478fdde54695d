/* The C++ interface: credentials, tokens, and where the application is asked for them. No broker is needed. */
#include "side_by_side.h"

#include <librdkafka/rdkafkacpp.h>

#include <list>
#include <string>

using std::string;

static const char *code(RdKafka::ErrorCode number) { return err(static_cast<rd_kafka_resp_err_t>(number)); }

static int64_t in_an_hour() { return ((int64_t)time(NULL) + 3600) * 1000; }

static string as_set(RdKafka::Conf *conf, const char *name, const char *value) {
        string text;
        if (conf->set(name, value, text) != RdKafka::Conf::CONF_OK)
                say("REFUSED: %s=%s", name, value);
        return text;
}

static RdKafka::Conf *with_mechanism(const char *mechanism) {
        RdKafka::Conf *conf = RdKafka::Conf::create(RdKafka::Conf::CONF_GLOBAL);
        as_set(conf, "bootstrap.servers", "127.0.0.1:1");
        as_set(conf, "security.protocol", "sasl_plaintext");
        as_set(conf, "sasl.mechanisms", mechanism);
        as_set(conf, "log_level", "0");
        if (!strcmp(mechanism, "OAUTHBEARER")) {
                as_set(conf, "sasl.oauthbearer.config", "for=me");
        } else {
                as_set(conf, "sasl.username", "alice");
                as_set(conf, "sasl.password", "secret");
        }
        return conf;
}

static RdKafka::Producer *producer(RdKafka::Conf *conf) {
        string text;
        RdKafka::Producer *made = RdKafka::Producer::create(conf, text);
        delete conf;
        if (!made) {
                say("NO CLIENT: %s", text.empty() ? "empty" : "present");
                exit(0);
        }
        return made;
}

static void say_failure(const char *what, RdKafka::Error *error) {
        say("%s: %s, text %s", what, error ? code(error->code()) : "NULL", error && !error->str().empty() ? "present" : "empty");
        delete error;
}

/* Sets a token when it is asked. */
class Tokens : public RdKafka::OAuthBearerTokenRefreshCb {
       public:
        Tokens() : asked(0) {}
        void oauthbearer_token_refresh_cb(RdKafka::Handle *handle, const string &config) {
                if (!asked)
                        say("asked with %s by a handle that is %s", config.c_str(), handle ? "present" : "NULL");
                string text;
                RdKafka::ErrorCode set = handle->oauthbearer_set_token("x.y.z", in_an_hour(), "me", std::list<string>(), text);
                if (!asked)
                        say("set: %s, text %s", code(set), text.empty() ? "empty" : "present");
                asked++;
        }
        volatile int asked;
};

static Tokens tokens;

CASE(tokens_are_checked_as_in_c) {
        RdKafka::Producer *client = producer(with_mechanism("OAUTHBEARER"));
        const char *pairs[][2] = {{"a", "1"}, {"auth", "x"}, {"a1", "x"}, {"a", "\1"}};
        string text;
        for (size_t i = 0; i < 4; i++) {
                std::list<string> extensions;
                extensions.push_back(pairs[i][0]);
                extensions.push_back(pairs[i][1]);
                text.clear();
                RdKafka::ErrorCode set = client->oauthbearer_set_token("x.y.z", in_an_hour(), "me", extensions, text);
                say("extension %s: %s, text %s", pairs[i][0], code(set), text.empty() ? "empty" : "present");
        }
        std::list<string> odd;
        odd.push_back("a");
        say("odd count: %s", code(client->oauthbearer_set_token("x.y.z", in_an_hour(), "me", odd, text)));
        say("expired: %s", code(client->oauthbearer_set_token("x.y.z", 1000, "me", std::list<string>(), text)));
        say("failure: %s", code(client->oauthbearer_set_token_failure("down")));
        say("failure without a reason: %s", code(client->oauthbearer_set_token_failure("")));
        delete client;
}

CASE(credentials_and_tokens_of_another_mechanism) {
        RdKafka::Producer *client = producer(with_mechanism("PLAIN"));
        string text;
        say_failure("credentials", client->sasl_set_credentials("bob", "another"));
        say_failure("empty credentials", client->sasl_set_credentials("", ""));
        say("token: %s", code(client->oauthbearer_set_token("x.y.z", in_an_hour(), "me", std::list<string>(), text)));
        say("failure: %s", code(client->oauthbearer_set_token_failure("down")));
        delete client;
}

CASE(callback_asks_for_a_token_in_poll) {
        RdKafka::Conf *conf = with_mechanism("OAUTHBEARER");
        string text;
        RdKafka::OAuthBearerTokenRefreshCb *got = NULL;
        say("set %d", conf->set("oauthbearer_token_refresh_cb", &tokens, text));
        say("get %d, the same %d", conf->get(got), got == &tokens);
        RdKafka::Producer *client = producer(conf);
        UNTIL(tokens.asked, client->poll(10));
        delete client;
}

CASE(callback_asks_for_a_token_in_its_own_queue) {
        RdKafka::Conf *conf = with_mechanism("OAUTHBEARER");
        string text;
        conf->set("oauthbearer_token_refresh_cb", &tokens, text);
        say("enable %d", conf->enable_sasl_queue(true, text));
        RdKafka::Producer *client = producer(conf);
        RdKafka::Queue *queue = client->get_sasl_queue();
        say("queue %s", queue ? "present" : "NULL");
        client->poll(300);
        say("asked by poll %d", tokens.asked);
        UNTIL(tokens.asked, delete queue->consume(10));
        say("asked by the queue %d", tokens.asked > 0);
        delete queue;
        delete client;
}

CASE(callback_asks_for_a_token_in_the_background) {
        RdKafka::Conf *conf = with_mechanism("OAUTHBEARER");
        string text;
        conf->set("oauthbearer_token_refresh_cb", &tokens, text);
        conf->enable_sasl_queue(true, text);
        RdKafka::Producer *client = producer(conf);
        RdKafka::Error *enabled = client->sasl_background_callbacks_enable();
        WAIT_FOR(tokens.asked);
        say_failure("background", enabled);
        delete client;
}

CASE(consumer_is_asked_in_the_background) {
        RdKafka::Conf *conf = with_mechanism("OAUTHBEARER");
        string text;
        conf->set("oauthbearer_token_refresh_cb", &tokens, text);
        conf->enable_sasl_queue(true, text);
        as_set(conf, "group.id", "g");
        RdKafka::KafkaConsumer *client = RdKafka::KafkaConsumer::create(conf, text);
        delete conf;
        RdKafka::Error *enabled = client->sasl_background_callbacks_enable();
        WAIT_FOR(tokens.asked);
        say_failure("background", enabled);
        client->close();
        delete client;
}

CASE(without_a_queue_there_is_no_background) {
        RdKafka::Producer *client = producer(with_mechanism("OAUTHBEARER"));
        say_failure("background", client->sasl_background_callbacks_enable());
        delete client;
}
