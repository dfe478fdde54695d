/* The application's functions for sockets and files in C++: callbacks BROKERS TOPIC FOLDER. It prints how the
 * library called them, which is the same with every library. */
#include <librdkafka/rdkafkacpp.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string>

/* Opens sockets, or refuses. Several threads call it. */
class Sockets : public RdKafka::SocketCb {
       public:
        Sockets(bool refuses) : opened(0), refused(0), refuses_(refuses) {}

        int socket_cb(int domain, int type, int protocol) {
                if (refuses_) {
                        __sync_fetch_and_add(&refused, 1);
                        errno = EMFILE;
                        return -1;
                }
                int fd = socket(domain, type, protocol);
                if (fd >= 0) {
                        fcntl(fd, F_SETFD, FD_CLOEXEC);
                        __sync_fetch_and_add(&opened, 1);
                }
                return fd;
        }

        int opened, refused;

       private:
        bool refuses_;
};

/* Opens the files of offsets, which are in one folder. */
class Files : public RdKafka::OpenCb {
       public:
        Files(const std::string &folder) : to_read_and_write(0), elsewhere(0), folder_(folder) {}

        int open_cb(const std::string &path, int flags, int mode) {
                if (path.compare(0, folder_.size() + 1, folder_ + "/"))
                        __sync_fetch_and_add(&elsewhere, 1);
                __sync_fetch_and_add(&to_read_and_write, 1);
                return open(path.c_str(), flags, mode);
        }

        int to_read_and_write, elsewhere;

       private:
        std::string folder_;
};

class Events : public RdKafka::EventCb {
       public:
        Events() : errors(0) {}

        void event_cb(RdKafka::Event &event) {
                if (event.type() == RdKafka::Event::EVENT_ERROR)
                        errors++;
        }

        int errors;
};

static void check(RdKafka::Conf::ConfResult result, const std::string &errstr) {
        if (result != RdKafka::Conf::CONF_OK) {
                std::cerr << errstr << std::endl;
                exit(1);
        }
}

template <class T> static T *made(T *object, const std::string &errstr) {
        if (!object) {
                std::cerr << errstr << std::endl;
                exit(1);
        }
        return object;
}

static void say(const std::string &what, bool is_so) {
        std::cout << what << ": " << (is_so ? "yes" : "no") << std::endl;
}

static RdKafka::Conf *configuration(const char *brokers, RdKafka::SocketCb *sockets, RdKafka::EventCb *events) {
        std::string errstr;
        RdKafka::Conf *conf = RdKafka::Conf::create(RdKafka::Conf::CONF_GLOBAL);
        check(conf->set("bootstrap.servers", brokers, errstr), errstr);
        check(conf->set("socket_cb", sockets, errstr), errstr);
        check(conf->set("event_cb", events, errstr), errstr);
        return conf;
}

static void produce(const char *brokers, const char *name) {
        std::string errstr;
        Sockets sockets(false);
        Events events;
        RdKafka::Conf *conf = configuration(brokers, &sockets, &events);
        RdKafka::SocketCb *same = NULL;
        RdKafka::OpenCb *none = NULL;
        say("the socket callback is told", conf->get(same) == RdKafka::Conf::CONF_OK && same == &sockets);
        say("there is no file callback", conf->get(none) == RdKafka::Conf::CONF_OK && !none);
        RdKafka::Producer *producer = made(RdKafka::Producer::create(conf, errstr), errstr);
        RdKafka::Topic *topic = made(RdKafka::Topic::create(producer, name, NULL, errstr), errstr);
        for (int i = 0; i < 10; i++) {
                std::string value(1, static_cast<char>('0' + i));
                producer->produce(topic, 0, RdKafka::Producer::RK_MSG_COPY, const_cast<char *>(value.data()), 1, NULL, NULL);
        }
        say("everything is sent", producer->flush(60000) == RdKafka::ERR_NO_ERROR && producer->outq_len() == 0);
        delete topic;
        delete producer;
        delete conf;
        say("by sockets of the callback", sockets.opened > 0);
}

/* Reads this number of messages; returns the first one, or -1. */
static long read(RdKafka::Consumer *consumer, RdKafka::Topic *topic, int count) {
        long first = -1;
        for (int i = 0; i < count;) {
                RdKafka::Message *message = consumer->consume(topic, 0, 60000);
                if (message->err() != RdKafka::ERR_NO_ERROR && message->err() != RdKafka::ERR__PARTITION_EOF) {
                        std::cerr << message->errstr() << std::endl;
                        exit(1);
                }
                if (message->err() == RdKafka::ERR_NO_ERROR && i++ == 0)
                        first = static_cast<long>(message->offset());
                delete message;
        }
        return first;
}

static void consume(const char *brokers, const char *name, const char *folder) {
        std::string errstr;
        Sockets sockets(false);
        Files files(folder);
        Events events;
        RdKafka::OpenCb *same = NULL;
        RdKafka::Conf *conf = configuration(brokers, &sockets, &events);
        check(conf->set("open_cb", &files, errstr), errstr);
        say("the file callback is told", conf->get(same) == RdKafka::Conf::CONF_OK && same == &files);
        RdKafka::Conf *of_topic = RdKafka::Conf::create(RdKafka::Conf::CONF_TOPIC);
        say("a topic has no socket callback", of_topic->set("socket_cb", &sockets, errstr) != RdKafka::Conf::CONF_OK);
        say("nor a file callback", of_topic->set("open_cb", &files, errstr) != RdKafka::Conf::CONF_OK);
        check(of_topic->set("offset.store.method", "file", errstr), errstr);
        check(of_topic->set("offset.store.path", folder, errstr), errstr);
        check(of_topic->set("auto.offset.reset", "smallest", errstr), errstr);
        for (int round = 0; round < 2; round++) {
                RdKafka::Consumer *consumer = made(RdKafka::Consumer::create(conf, errstr), errstr);
                RdKafka::Topic *topic = made(RdKafka::Topic::create(consumer, name, of_topic, errstr), errstr);
                if (consumer->start(topic, 0, RdKafka::Topic::OFFSET_STORED) != RdKafka::ERR_NO_ERROR)
                        say("it starts", false);
                std::cout << "round " << round << " begins at " << read(consumer, topic, 3) << std::endl;
                consumer->stop(topic, 0);
                consumer->poll(0);
                delete topic;
                delete consumer;
        }
        delete of_topic;
        delete conf;
        say("by sockets of the callback", sockets.opened > 0);
        say("files are opened by the callback", files.to_read_and_write > 1);
        say("all in the folder", files.elsewhere == 0);
}

static void refuse(const char *brokers, const char *name) {
        std::string errstr;
        Sockets sockets(true);
        Events events;
        RdKafka::Conf *conf = configuration(brokers, &sockets, &events);
        check(conf->set("log_level", "0", errstr), errstr);
        RdKafka::Producer *producer = made(RdKafka::Producer::create(conf, errstr), errstr);
        RdKafka::Topic *topic = made(RdKafka::Topic::create(producer, name, NULL, errstr), errstr);
        producer->produce(topic, 0, RdKafka::Producer::RK_MSG_COPY, const_cast<char *>("x"), 1, NULL, NULL);
        for (int i = 0; i < 600 && !events.errors; i++)
                producer->poll(100);
        producer->purge(RdKafka::Producer::PURGE_QUEUE);
        delete topic;
        delete producer;
        delete conf;
        say("a callback without a socket is an error", sockets.refused > 0 && events.errors > 0);
}

int main(int argc, char **argv) {
        if (argc < 4) {
                std::cerr << "usage: " << argv[0] << " BROKERS TOPIC FOLDER" << std::endl;
                return 2;
        }
        produce(argv[1], argv[2]);
        consume(argv[1], argv[2], argv[3]);
        refuse(argv[1], argv[2]);
        return 0;
}
