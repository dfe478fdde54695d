/*
 * librdkafka++: the classes of rdkafkacpp.h over the functions of rdkafka.h.
 *
 * From top to bottom: helpers, small objects (errors, partitions, headers, messages, metadata), configuration and its
 * callbacks, then the clients. A client is the opaque value of its C object, so that a callback finds its way back.
 */
#include "rdkafkacpp.h"

#include <librdkafka/rdkafka.h>

#include <new>

using namespace RdKafka;

namespace {

ErrorCode code_of(rd_kafka_resp_err_t err) { return static_cast<ErrorCode>(err); }

std::string text_of(const char *text) { return text ? text : ""; }

/** Text that the C library allocated. */
std::string taken(char *text) {
        std::string copy = text_of(text);
        rd_kafka_mem_free(NULL, text);
        return copy;
}

/** Returns NULL if there is no error. */
class ErrorImpl : public Error {
       public:
        explicit ErrorImpl(rd_kafka_error_t *error) : error_(error) {}
        ~ErrorImpl() { rd_kafka_error_destroy(error_); }
        ErrorCode code() const { return code_of(rd_kafka_error_code(error_)); }
        std::string name() const { return text_of(rd_kafka_error_name(error_)); }
        std::string str() const { return text_of(rd_kafka_error_string(error_)); }
        bool is_fatal() const { return rd_kafka_error_is_fatal(error_) != 0; }
        bool is_retriable() const { return rd_kafka_error_is_retriable(error_) != 0; }
        bool txn_requires_abort() const { return rd_kafka_error_txn_requires_abort(error_) != 0; }

       private:
        ErrorImpl(const ErrorImpl &);
        ErrorImpl &operator=(const ErrorImpl &);
        rd_kafka_error_t *error_;
};

Error *error_or_null(rd_kafka_error_t *error) { return error ? new ErrorImpl(error) : NULL; }

/* ---- Partitions ---- */

class TopicPartitionImpl : public TopicPartition {
       public:
        TopicPartitionImpl(const std::string &topic, int partition, int64_t offset)
            : topic_(topic), partition_(partition), offset_(offset), err_(ERR_NO_ERROR), epoch_(-1) {}
        explicit TopicPartitionImpl(const rd_kafka_topic_partition_t *from)
            : topic_(from->topic), partition_(from->partition) {
                update(from);
        }
        const std::string &topic() const { return topic_; }
        int partition() const { return partition_; }
        int64_t offset() const { return offset_; }
        void set_offset(int64_t offset) { offset_ = offset; }
        ErrorCode err() const { return err_; }
        int32_t get_leader_epoch() { return epoch_; }
        void set_leader_epoch(int32_t epoch) { epoch_ = epoch; }
        std::vector<unsigned char> get_metadata() { return metadata_; }
        void set_metadata(std::vector<unsigned char> &metadata) { metadata_ = metadata; }

        void update(const rd_kafka_topic_partition_t *from) {
                const unsigned char *metadata = static_cast<const unsigned char *>(from->metadata);
                offset_ = from->offset;
                err_ = code_of(from->err);
                epoch_ = rd_kafka_topic_partition_get_leader_epoch(from);
                metadata_.clear();
                if (metadata)
                        metadata_.assign(metadata, metadata + from->metadata_size);
        }
        void write(rd_kafka_topic_partition_t *to) const {
                to->offset = offset_;
                rd_kafka_topic_partition_set_leader_epoch(to, epoch_);
                if (!metadata_.empty()) {
                        to->metadata = rd_kafka_mem_malloc(NULL, metadata_.size());
                        if (to->metadata) {
                                memcpy(to->metadata, &metadata_[0], metadata_.size());
                                to->metadata_size = metadata_.size();
                        }
                }
        }

       private:
        std::string topic_;
        int partition_;
        int64_t offset_;
        ErrorCode err_;
        int32_t epoch_;
        std::vector<unsigned char> metadata_;
};

/** A list of the C library, destroyed at the end of the scope. */
class List {
       public:
        explicit List(rd_kafka_topic_partition_list_t *list = NULL) : list_(list) {}
        explicit List(const std::vector<TopicPartition *> &partitions)
            : list_(rd_kafka_topic_partition_list_new(static_cast<int>(partitions.size()))) {
                for (size_t i = 0; i < partitions.size(); i++)
                        add(*partitions[i]);
        }
        ~List() {
                if (list_)
                        rd_kafka_topic_partition_list_destroy(list_);
        }
        void add(const TopicPartition &from) {
                rd_kafka_topic_partition_t *to =
                    rd_kafka_topic_partition_list_add(list_, from.topic().c_str(), from.partition());
                const TopicPartitionImpl *own = dynamic_cast<const TopicPartitionImpl *>(&from);
                if (own)
                        own->write(to);
                else
                        to->offset = from.offset();
        }
        /** Copies the results of a call from the list to the vector from which it was created. */
        void update(std::vector<TopicPartition *> &partitions) const {
                for (int i = 0; list_ && i < list_->cnt && i < static_cast<int>(partitions.size()); i++) {
                        TopicPartitionImpl *own = dynamic_cast<TopicPartitionImpl *>(partitions[i]);
                        if (own)
                                own->update(&list_->elems[i]);
                }
        }
        void into(std::vector<TopicPartition *> &partitions) const {
                for (int i = 0; list_ && i < list_->cnt; i++)
                        partitions.push_back(new TopicPartitionImpl(&list_->elems[i]));
        }
        rd_kafka_topic_partition_list_t *c() { return list_; }
        rd_kafka_topic_partition_list_t **slot() { return &list_; }

       private:
        List(const List &);
        List &operator=(const List &);
        rd_kafka_topic_partition_list_t *list_;
};

/* ---- Headers ---- */

class HeadersImpl : public Headers {
       public:
        /** A message's headers belong to the message. */
        explicit HeadersImpl(rd_kafka_headers_t *headers, bool own = true) : headers_(headers), own_(own) {}
        ~HeadersImpl() {
                if (headers_ && own_)
                        rd_kafka_headers_destroy(headers_);
        }
        ErrorCode add(const std::string &key, const void *value, size_t size) {
                return code_of(rd_kafka_header_add(headers_, key.c_str(), static_cast<ssize_t>(key.size()), value,
                                                   static_cast<ssize_t>(size)));
        }
        ErrorCode add(const std::string &key, const std::string &value) { return add(key, value.c_str(), value.size()); }
        ErrorCode add(const Header &header) { return add(header.key(), header.value(), header.value_size()); }
        ErrorCode remove(const std::string &key) { return code_of(rd_kafka_header_remove(headers_, key.c_str())); }
        std::vector<Header> get(const std::string &key) const {
                std::vector<Header> found;
                const void *value;
                size_t size;
                for (size_t i = 0; !rd_kafka_header_get(headers_, i, key.c_str(), &value, &size); i++)
                        found.push_back(Header(key, value, size));
                return found;
        }
        Header get_last(const std::string &key) const {
                const void *value = NULL;
                size_t size = 0;
                ErrorCode err = code_of(rd_kafka_header_get_last(headers_, key.c_str(), &value, &size));
                return Header(key, value, size, err);
        }
        std::vector<Header> get_all() const {
                std::vector<Header> found;
                const char *key;
                const void *value;
                size_t size;
                for (size_t i = 0; !rd_kafka_header_get_all(headers_, i, &key, &value, &size); i++)
                        found.push_back(Header(key, value, size));
                return found;
        }
        size_t size() const { return rd_kafka_header_cnt(headers_); }
        rd_kafka_headers_t *c() const { return headers_; }
        /** The headers belong to the library now. */
        void release() { headers_ = NULL; }

       private:
        HeadersImpl(const HeadersImpl &);
        HeadersImpl &operator=(const HeadersImpl &);
        rd_kafka_headers_t *headers_;
        bool own_;
};

/* ---- Messages ---- */

class MessageImpl : public Message {
       public:
        /** `own`: the message is destroyed with this object; the message of a callback belongs to the library. */
        MessageImpl(rd_kafka_type_t type, Topic *topic, rd_kafka_message_t *message, bool own)
            : type_(type), topic_(topic), message_(message), own_(own), key_(NULL), headers_(NULL) {}
        /** A message that is only an error. */
        MessageImpl(rd_kafka_type_t type, Topic *topic, rd_kafka_resp_err_t err)
            : type_(type), topic_(topic), message_(&nothing_), own_(false), key_(NULL), headers_(NULL) {
                memset(&nothing_, 0, sizeof(nothing_));
                nothing_.err = err;
        }
        ~MessageImpl() {
                delete key_;
                delete headers_;
                if (own_)
                        rd_kafka_message_destroy(message_);
        }
        std::string errstr() const {
                const char *text = NULL;
                if (type_ == RD_KAFKA_CONSUMER && !message_->err)
                        return std::string();
                if (message_ != &nothing_)
                        text = type_ == RD_KAFKA_PRODUCER ? rd_kafka_message_produce_errstr(message_)
                                                          : rd_kafka_message_errstr(message_);
                return text_of(text ? text : rd_kafka_err2str(message_->err));
        }
        ErrorCode err() const { return code_of(message_->err); }
        Topic *topic() const { return topic_; }
        std::string topic_name() const {
                return message_->rkt ? text_of(rd_kafka_topic_name(message_->rkt)) : std::string();
        }
        int32_t partition() const { return message_->partition; }
        void *payload() const { return message_->payload; }
        size_t len() const { return message_->len; }
        const std::string *key() const {
                if (!key_ && message_->key)
                        key_ = new std::string(static_cast<const char *>(message_->key), message_->key_len);
                return key_;
        }
        const void *key_pointer() const { return message_->key; }
        size_t key_len() const { return message_->key_len; }
        int64_t offset() const { return message_->offset; }
        MessageTimestamp timestamp() const {
                MessageTimestamp answer;
                rd_kafka_timestamp_type_t type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
                answer.timestamp = message_ == &nothing_ ? -1 : rd_kafka_message_timestamp(message_, &type);
                answer.type = static_cast<MessageTimestamp::MessageTimestampType>(type);
                return answer;
        }
        void *msg_opaque() const { return message_->_private; }
        int64_t latency() const { return message_ == &nothing_ ? -1 : rd_kafka_message_latency(message_); }
        rd_kafka_message_s *c_ptr() { return message_; }
        Status status() const {
                return message_ == &nothing_ ? MSG_STATUS_NOT_PERSISTED
                                             : static_cast<Status>(rd_kafka_message_status(message_));
        }
        RdKafka::Headers *headers() { return headers(NULL); }
        RdKafka::Headers *headers(ErrorCode *err) {
                rd_kafka_resp_err_t found = RD_KAFKA_RESP_ERR_NO_ERROR;
                if (!headers_ && message_ != &nothing_) {
                        rd_kafka_headers_t *headers = NULL;
                        found = rd_kafka_message_headers(message_, &headers);
                        if (!found)
                                headers_ = new HeadersImpl(headers, false);
                } else if (!headers_) {
                        found = RD_KAFKA_RESP_ERR__NOENT;
                }
                if (err)
                        *err = code_of(found);
                return headers_;
        }
        int32_t broker_id() const { return message_ == &nothing_ ? -1 : rd_kafka_message_broker_id(message_); }
        int32_t leader_epoch() const { return message_ == &nothing_ ? -1 : rd_kafka_message_leader_epoch(message_); }
        Error *offset_store() {
                if (message_ == &nothing_)
                        return error_or_null(
                            rd_kafka_error_new(RD_KAFKA_RESP_ERR__INVALID_ARG, "%s", "this is not a message of a partition"));
                return error_or_null(rd_kafka_offset_store_message(message_));
        }

       private:
        MessageImpl(const MessageImpl &);
        MessageImpl &operator=(const MessageImpl &);
        rd_kafka_type_t type_;
        Topic *topic_;
        rd_kafka_message_t *message_;
        rd_kafka_message_t nothing_;
        bool own_;
        mutable std::string *key_;
        HeadersImpl *headers_;
};

class EventImpl : public Event {
       public:
        EventImpl(Type type, ErrorCode err, Severity severity, const std::string &fac, const std::string &text)
            : throttle_ms_(0), broker_id_(-1), fatal_(false), type_(type), err_(err), severity_(severity), fac_(fac),
              text_(text) {}
        Type type() const { return type_; }
        ErrorCode err() const { return err_; }
        Severity severity() const { return severity_; }
        std::string fac() const { return fac_; }
        std::string str() const { return text_; }
        int throttle_time() const { return throttle_ms_; }
        std::string broker_name() const { return broker_; }
        int broker_id() const { return broker_id_; }
        bool fatal() const { return fatal_; }

        int throttle_ms_;
        std::string broker_;
        int broker_id_;
        bool fatal_;

       private:
        Type type_;
        ErrorCode err_;
        Severity severity_;
        std::string fac_, text_;
};

/* ---- Metadata ---- */

class BrokerMetadataImpl : public BrokerMetadata {
       public:
        explicit BrokerMetadataImpl(const rd_kafka_metadata_broker_t *broker) : broker_(broker) {}
        int32_t id() const { return broker_->id; }
        std::string host() const { return text_of(broker_->host); }
        int port() const { return broker_->port; }

       private:
        const rd_kafka_metadata_broker_t *broker_;
};

class PartitionMetadataImpl : public PartitionMetadata {
       public:
        explicit PartitionMetadataImpl(const rd_kafka_metadata_partition_t *partition)
            : partition_(partition), replicas_(partition->replicas, partition->replicas + partition->replica_cnt),
              isrs_(partition->isrs, partition->isrs + partition->isr_cnt) {}
        int32_t id() const { return partition_->id; }
        ErrorCode err() const { return code_of(partition_->err); }
        int32_t leader() const { return partition_->leader; }
        const std::vector<int32_t> *replicas() const { return &replicas_; }
        const std::vector<int32_t> *isrs() const { return &isrs_; }

       private:
        const rd_kafka_metadata_partition_t *partition_;
        std::vector<int32_t> replicas_, isrs_;
};

class TopicMetadataImpl : public TopicMetadata {
       public:
        explicit TopicMetadataImpl(const rd_kafka_metadata_topic_t *topic) : topic_(topic) {
                for (int i = 0; i < topic->partition_cnt; i++)
                        partitions_.push_back(new PartitionMetadataImpl(&topic->partitions[i]));
        }
        ~TopicMetadataImpl() {
                for (size_t i = 0; i < partitions_.size(); i++)
                        delete partitions_[i];
        }
        std::string topic() const { return text_of(topic_->topic); }
        const PartitionMetadataVector *partitions() const { return &partitions_; }
        ErrorCode err() const { return code_of(topic_->err); }

       private:
        TopicMetadataImpl(const TopicMetadataImpl &);
        TopicMetadataImpl &operator=(const TopicMetadataImpl &);
        const rd_kafka_metadata_topic_t *topic_;
        PartitionMetadataVector partitions_;
};

class MetadataImpl : public Metadata {
       public:
        explicit MetadataImpl(const rd_kafka_metadata_t *metadata) : metadata_(metadata) {
                for (int i = 0; i < metadata->broker_cnt; i++)
                        brokers_.push_back(new BrokerMetadataImpl(&metadata->brokers[i]));
                for (int i = 0; i < metadata->topic_cnt; i++)
                        topics_.push_back(new TopicMetadataImpl(&metadata->topics[i]));
        }
        ~MetadataImpl() {
                for (size_t i = 0; i < brokers_.size(); i++)
                        delete brokers_[i];
                for (size_t i = 0; i < topics_.size(); i++)
                        delete topics_[i];
                rd_kafka_metadata_destroy(metadata_);
        }
        const BrokerMetadataVector *brokers() const { return &brokers_; }
        const TopicMetadataVector *topics() const { return &topics_; }
        int32_t orig_broker_id() const { return metadata_->orig_broker_id; }
        std::string orig_broker_name() const { return text_of(metadata_->orig_broker_name); }

       private:
        MetadataImpl(const MetadataImpl &);
        MetadataImpl &operator=(const MetadataImpl &);
        const rd_kafka_metadata_t *metadata_;
        BrokerMetadataVector brokers_;
        TopicMetadataVector topics_;
};

/* ---- Configuration ---- */

/** The callbacks of a client or a topic. */
struct Callbacks {
        DeliveryReportCb *dr;
        OAuthBearerTokenRefreshCb *token;
        EventCb *event;
        PartitionerCb *partitioner;
        PartitionerKeyPointerCb *partitioner_key_pointer;
        SocketCb *socket;
        OpenCb *open;
        RebalanceCb *rebalance;
        OffsetCommitCb *commit;
        SslCertificateVerifyCb *certificate;
        ConsumeCb *consume;
        Callbacks()
            : dr(NULL), token(NULL), event(NULL), partitioner(NULL), partitioner_key_pointer(NULL), socket(NULL),
              open(NULL), rebalance(NULL), commit(NULL), certificate(NULL), consume(NULL) {}
};

class ConfImpl : public Conf {
       public:
        explicit ConfImpl(ConfType type)
            : global_(type == CONF_GLOBAL ? rd_kafka_conf_new() : NULL),
              topic_(type == CONF_TOPIC ? rd_kafka_topic_conf_new() : NULL) {}
        ~ConfImpl() {
                if (global_)
                        rd_kafka_conf_destroy(global_);
                if (topic_)
                        rd_kafka_topic_conf_destroy(topic_);
        }

        ConfResult set(const std::string &name, const std::string &value, std::string &errstr) {
                char text[512] = "";
                rd_kafka_conf_res_t result =
                    global_ ? rd_kafka_conf_set(global_, name.c_str(), value.c_str(), text, sizeof(text))
                            : rd_kafka_topic_conf_set(topic_, name.c_str(), value.c_str(), text, sizeof(text));
                if (result != RD_KAFKA_CONF_OK)
                        errstr = text;
                return static_cast<ConfResult>(result);
        }
        ConfResult set(const std::string &name, DeliveryReportCb *callback, std::string &errstr) {
                return keep(name, "dr_cb", CONF_GLOBAL, &Callbacks::dr, callback, errstr);
        }
        ConfResult set(const std::string &name, OAuthBearerTokenRefreshCb *callback, std::string &errstr) {
                return keep(name, "oauthbearer_token_refresh_cb", CONF_GLOBAL, &Callbacks::token, callback, errstr);
        }
        ConfResult set(const std::string &name, EventCb *callback, std::string &errstr) {
                return keep(name, "event_cb", CONF_GLOBAL, &Callbacks::event, callback, errstr);
        }
        ConfResult set(const std::string &name, const Conf *topic_conf, std::string &errstr) {
                const ConfImpl *other = dynamic_cast<const ConfImpl *>(topic_conf);
                if (name != "default_topic_conf")
                        return other_name(name, errstr);
                if (!global_ || !other || !other->topic_) {
                        errstr = "default_topic_conf is a topic's configuration, set on a client's";
                        return CONF_INVALID;
                }
                rd_kafka_conf_set_default_topic_conf(global_, rd_kafka_topic_conf_dup(other->topic_));
                if (other->callbacks.partitioner)
                        callbacks.partitioner = other->callbacks.partitioner;
                if (other->callbacks.partitioner_key_pointer)
                        callbacks.partitioner_key_pointer = other->callbacks.partitioner_key_pointer;
                return CONF_OK;
        }
        ConfResult set(const std::string &name, PartitionerCb *callback, std::string &errstr) {
                return keep(name, "partitioner_cb", CONF_TOPIC, &Callbacks::partitioner, callback, errstr);
        }
        ConfResult set(const std::string &name, PartitionerKeyPointerCb *callback, std::string &errstr) {
                return keep(name, "partitioner_key_pointer_cb", CONF_TOPIC, &Callbacks::partitioner_key_pointer, callback,
                            errstr);
        }
        ConfResult set(const std::string &name, SocketCb *callback, std::string &errstr) {
                return keep(name, "socket_cb", CONF_GLOBAL, &Callbacks::socket, callback, errstr);
        }
        ConfResult set(const std::string &name, OpenCb *callback, std::string &errstr) {
                return keep(name, "open_cb", CONF_GLOBAL, &Callbacks::open, callback, errstr);
        }
        ConfResult set(const std::string &name, RebalanceCb *callback, std::string &errstr) {
                return keep(name, "rebalance_cb", CONF_GLOBAL, &Callbacks::rebalance, callback, errstr);
        }
        ConfResult set(const std::string &name, OffsetCommitCb *callback, std::string &errstr) {
                return keep(name, "offset_commit_cb", CONF_GLOBAL, &Callbacks::commit, callback, errstr);
        }
        ConfResult set(const std::string &name, SslCertificateVerifyCb *callback, std::string &errstr) {
                return keep(name, "ssl_cert_verify_cb", CONF_GLOBAL, &Callbacks::certificate, callback, errstr);
        }
        ConfResult set(const std::string &name, ConsumeCb *callback, std::string &errstr) {
                return keep(name, "consume_cb", CONF_GLOBAL, &Callbacks::consume, callback, errstr);
        }
        ConfResult set_ssl_cert(CertificateType type,
                                CertificateEncoding encoding,
                                const void *buffer,
                                size_t size,
                                std::string &errstr) {
                char text[512] = "";
                if (!global_)
                        return wrong_kind("a certificate", errstr);
                rd_kafka_conf_res_t result = rd_kafka_conf_set_ssl_cert(
                    global_, static_cast<rd_kafka_cert_type_t>(type), static_cast<rd_kafka_cert_enc_t>(encoding), buffer,
                    size, text, sizeof(text));
                if (result != RD_KAFKA_CONF_OK)
                        errstr = text;
                return static_cast<ConfResult>(result);
        }

        ConfResult get(const std::string &name, std::string &value) const {
                if (name == "dr_cb" || name == "event_cb" || name == "partitioner_cb")
                        return CONF_INVALID;
                size_t size = 0;
                rd_kafka_conf_res_t result = read(name, NULL, &size);
                if (result != RD_KAFKA_CONF_OK)
                        return static_cast<ConfResult>(result);
                std::vector<char> text(size + 1);
                size = text.size();
                result = read(name, &text[0], &size);
                if (result == RD_KAFKA_CONF_OK)
                        value = &text[0];
                return static_cast<ConfResult>(result);
        }
        ConfResult get(DeliveryReportCb *&callback) const { return give(callbacks.dr, callback, global_ != NULL); }
        ConfResult get(OAuthBearerTokenRefreshCb *&callback) const {
                return give(callbacks.token, callback, global_ != NULL);
        }
        ConfResult get(EventCb *&callback) const { return give(callbacks.event, callback, global_ != NULL); }
        ConfResult get(PartitionerCb *&callback) const { return give(callbacks.partitioner, callback, topic_ != NULL); }
        ConfResult get(PartitionerKeyPointerCb *&callback) const {
                return give(callbacks.partitioner_key_pointer, callback, topic_ != NULL);
        }
        ConfResult get(SocketCb *&callback) const { return give(callbacks.socket, callback, global_ != NULL); }
        ConfResult get(OpenCb *&callback) const { return give(callbacks.open, callback, global_ != NULL); }
        ConfResult get(RebalanceCb *&callback) const { return give(callbacks.rebalance, callback, global_ != NULL); }
        ConfResult get(OffsetCommitCb *&callback) const { return give(callbacks.commit, callback, global_ != NULL); }
        ConfResult get(SslCertificateVerifyCb *&callback) const {
                return give(callbacks.certificate, callback, global_ != NULL);
        }
        std::list<std::string> *dump() {
                size_t count = 0;
                const char **pairs =
                    global_ ? rd_kafka_conf_dump(global_, &count) : rd_kafka_topic_conf_dump(topic_, &count);
                std::list<std::string> *list = new std::list<std::string>;
                for (size_t i = 0; i < count; i++)
                        list->push_back(text_of(pairs[i]));
                rd_kafka_conf_dump_free(pairs, count);
                return list;
        }
        rd_kafka_conf_s *c_ptr_global() { return global_; }
        rd_kafka_topic_conf_s *c_ptr_topic() { return topic_; }
        ConfResult set_engine_callback_data(void *value, std::string &errstr) {
                if (!global_)
                        return wrong_kind("engine_callback_data", errstr);
                rd_kafka_conf_set_engine_callback_data(global_, value);
                return CONF_OK;
        }
        ConfResult enable_sasl_queue(bool enable, std::string &errstr) {
                if (!global_)
                        return wrong_kind("enable_sasl_queue", errstr);
                rd_kafka_conf_enable_sasl_queue(global_, enable);
                return CONF_OK;
        }

        const rd_kafka_conf_t *global() const { return global_; }
        const rd_kafka_topic_conf_t *topic() const { return topic_; }
        Callbacks callbacks;

       private:
        ConfImpl(const ConfImpl &);
        ConfImpl &operator=(const ConfImpl &);

        static ConfResult other_name(const std::string &name, std::string &errstr) {
                errstr = "the property `" + name + "` takes no such object";
                return CONF_INVALID;
        }
        static ConfResult wrong_kind(const std::string &name, std::string &errstr) {
                errstr = name + " belongs to the configuration of the other kind";
                return CONF_INVALID;
        }
        template <typename Callback>
        ConfResult keep(const std::string &name,
                        const char *expected,
                        ConfType kind,
                        Callback *Callbacks::*place,
                        Callback *callback,
                        std::string &errstr) {
                if (name != expected)
                        return other_name(name, errstr);
                if ((kind == CONF_GLOBAL) != (global_ != NULL))
                        return wrong_kind(name, errstr);
                callbacks.*place = callback;
                return CONF_OK;
        }
        template <typename Callback>
        static ConfResult give(Callback *kept, Callback *&callback, bool right_kind) {
                if (!right_kind)
                        return CONF_INVALID;
                callback = kept;
                return CONF_OK;
        }
        rd_kafka_conf_res_t read(const std::string &name, char *text, size_t *size) const {
                return global_ ? rd_kafka_conf_get(global_, name.c_str(), text, size)
                               : rd_kafka_topic_conf_get(topic_, name.c_str(), text, size);
        }
        rd_kafka_conf_t *global_;
        rd_kafka_topic_conf_t *topic_;
};

/* ---- Topics and queues ---- */

class TopicImpl : public Topic {
       public:
        TopicImpl() : topic_(NULL) {}
        ~TopicImpl() {
                if (topic_)
                        rd_kafka_topic_destroy(topic_);
        }
        std::string name() const { return text_of(rd_kafka_topic_name(topic_)); }
        bool partition_available(int32_t partition) const {
                return rd_kafka_topic_partition_available(topic_, partition) == 1;
        }
        ErrorCode offset_store(int32_t partition, int64_t offset) {
                return code_of(rd_kafka_offset_store(topic_, partition, offset));
        }
        rd_kafka_topic_s *c_ptr() { return topic_; }

        rd_kafka_topic_t *topic_;
        Callbacks callbacks;

       private:
        TopicImpl(const TopicImpl &);
        TopicImpl &operator=(const TopicImpl &);
};

extern "C" int32_t on_partition(const rd_kafka_topic_t *,
                                const void *key,
                                size_t key_length,
                                int32_t partitions,
                                void *topic_opaque,
                                void *message_opaque) {
        TopicImpl *topic = static_cast<TopicImpl *>(topic_opaque);
        if (topic->callbacks.partitioner_key_pointer)
                return topic->callbacks.partitioner_key_pointer->partitioner_cb(topic, key, key_length, partitions,
                                                                                message_opaque);
        std::string text(static_cast<const char *>(key), key ? key_length : 0);
        return topic->callbacks.partitioner->partitioner_cb(topic, key ? &text : NULL, partitions, message_opaque);
}

class QueueImpl : public Queue {
       public:
        explicit QueueImpl(rd_kafka_queue_t *queue) : queue_(queue) {}
        ~QueueImpl() { rd_kafka_queue_destroy(queue_); }
        ErrorCode forward(Queue *to) {
                rd_kafka_queue_forward(queue_, to ? static_cast<QueueImpl *>(to)->queue_ : NULL);
                return ERR_NO_ERROR;
        }
        Message *consume(int timeout_ms) {
                rd_kafka_message_t *message = rd_kafka_consume_queue(queue_, timeout_ms);
                if (!message)
                        return new MessageImpl(RD_KAFKA_CONSUMER, NULL, RD_KAFKA_RESP_ERR__TIMED_OUT);
                return new MessageImpl(RD_KAFKA_CONSUMER, NULL, message, true);
        }
        int poll(int timeout_ms) { return rd_kafka_queue_poll_callback(queue_, timeout_ms); }
        void io_event_enable(int fd, const void *payload, size_t size) {
                rd_kafka_queue_io_event_enable(queue_, fd, payload, size);
        }
        rd_kafka_queue_t *queue_;

       private:
        QueueImpl(const QueueImpl &);
        QueueImpl &operator=(const QueueImpl &);
};

Queue *queue_or_null(rd_kafka_queue_t *queue) { return queue ? new QueueImpl(queue) : NULL; }

rd_kafka_queue_t *c(Queue *queue) { return queue ? static_cast<QueueImpl *>(queue)->queue_ : NULL; }

/* ---- Clients ---- */

class HandleImpl : public virtual Handle {
       public:
        HandleImpl() : rk_(NULL), default_topic_(NULL) {}
        ~HandleImpl() { delete default_topic_; }

        std::string name() const { return text_of(rd_kafka_name(rk_)); }
        std::string memberid() const { return taken(rd_kafka_memberid(rk_)); }
        int poll(int timeout_ms) { return rd_kafka_poll(rk_, timeout_ms); }
        int outq_len() { return rd_kafka_outq_len(rk_); }
        ErrorCode metadata(bool all_topics, const Topic *only, Metadata **metadata, int timeout_ms) {
                const rd_kafka_metadata_t *found = NULL;
                rd_kafka_topic_t *topic = only ? static_cast<const TopicImpl *>(only)->topic_ : NULL;
                rd_kafka_resp_err_t err = rd_kafka_metadata(rk_, all_topics, topic, &found, timeout_ms);
                *metadata = err ? NULL : new MetadataImpl(found);
                return code_of(err);
        }
        ErrorCode pause(std::vector<TopicPartition *> &partitions) {
                List list(partitions);
                rd_kafka_resp_err_t err = rd_kafka_pause_partitions(rk_, list.c());
                list.update(partitions);
                return code_of(err);
        }
        ErrorCode resume(std::vector<TopicPartition *> &partitions) {
                List list(partitions);
                rd_kafka_resp_err_t err = rd_kafka_resume_partitions(rk_, list.c());
                list.update(partitions);
                return code_of(err);
        }
        ErrorCode
        query_watermark_offsets(const std::string &topic, int32_t partition, int64_t *low, int64_t *high, int timeout_ms) {
                return code_of(rd_kafka_query_watermark_offsets(rk_, topic.c_str(), partition, low, high, timeout_ms));
        }
        ErrorCode get_watermark_offsets(const std::string &topic, int32_t partition, int64_t *low, int64_t *high) {
                return code_of(rd_kafka_get_watermark_offsets(rk_, topic.c_str(), partition, low, high));
        }
        ErrorCode offsetsForTimes(std::vector<TopicPartition *> &offsets, int timeout_ms) {
                List list(offsets);
                rd_kafka_resp_err_t err = rd_kafka_offsets_for_times(rk_, list.c(), timeout_ms);
                list.update(offsets);
                return code_of(err);
        }
        Queue *get_partition_queue(const TopicPartition *partition) {
                return queue_or_null(
                    rd_kafka_queue_get_partition(rk_, partition->topic().c_str(), partition->partition()));
        }
        ErrorCode set_log_queue(Queue *queue) { return code_of(rd_kafka_set_log_queue(rk_, ::c(queue))); }
        void yield() { rd_kafka_yield(rk_); }
        std::string clusterid(int timeout_ms) { return taken(rd_kafka_clusterid(rk_, timeout_ms)); }
        rd_kafka_s *c_ptr() { return rk_; }
        int32_t controllerid(int timeout_ms) { return rd_kafka_controllerid(rk_, timeout_ms); }
        ErrorCode fatal_error(std::string &errstr) const {
                char text[512] = "";
                rd_kafka_resp_err_t err = rd_kafka_fatal_error(rk_, text, sizeof(text));
                if (err)
                        errstr = text;
                return code_of(err);
        }
        ErrorCode oauthbearer_set_token(const std::string &token,
                                        int64_t lifetime_ms,
                                        const std::string &principal,
                                        const std::list<std::string> &extensions,
                                        std::string &errstr) {
                char text[512] = "";
                std::vector<const char *> pointers;
                for (std::list<std::string>::const_iterator it = extensions.begin(); it != extensions.end(); ++it)
                        pointers.push_back(it->c_str());
                rd_kafka_resp_err_t err = rd_kafka_oauthbearer_set_token(
                    rk_, token.c_str(), lifetime_ms, principal.c_str(), pointers.empty() ? NULL : &pointers[0],
                    pointers.size(), text, sizeof(text));
                if (err)
                        errstr = text;
                return code_of(err);
        }
        ErrorCode oauthbearer_set_token_failure(const std::string &errstr) {
                return code_of(rd_kafka_oauthbearer_set_token_failure(rk_, errstr.c_str()));
        }
        Error *sasl_background_callbacks_enable() {
                return error_or_null(rd_kafka_sasl_background_callbacks_enable(rk_));
        }
        Queue *get_sasl_queue() { return queue_or_null(rd_kafka_queue_get_sasl(rk_)); }
        Queue *get_background_queue() { return queue_or_null(rd_kafka_queue_get_background(rk_)); }
        void *mem_malloc(size_t size) { return rd_kafka_mem_malloc(rk_, size); }
        void mem_free(void *memory) { rd_kafka_mem_free(rk_, memory); }
        Error *sasl_set_credentials(const std::string &user, const std::string &password) {
                return error_or_null(rd_kafka_sasl_set_credentials(rk_, user.c_str(), password.c_str()));
        }

        /** Starts the C object with a copy of the configuration, whose callbacks are those of this object. */
        bool start(rd_kafka_type_t type, const Conf *conf, std::string &errstr);

        rd_kafka_t *rk_;
        Callbacks callbacks;

       private:
        HandleImpl(const HandleImpl &);
        HandleImpl &operator=(const HandleImpl &);
        /** The topic that is passed to the partitioner of the default topic configuration. */
        TopicImpl *default_topic_;
};

/* Callbacks of C: the opaque value is the client. */

HandleImpl *client(void *opaque) { return static_cast<HandleImpl *>(opaque); }

void tell(HandleImpl *handle, EventImpl &event) { handle->callbacks.event->event_cb(event); }

extern "C" {

void on_delivery(rd_kafka_t *, const rd_kafka_message_t *message, void *opaque) {
        MessageImpl report(RD_KAFKA_PRODUCER, NULL, const_cast<rd_kafka_message_t *>(message), false);
        client(opaque)->callbacks.dr->dr_cb(report);
}

void on_error(rd_kafka_t *rk, int err, const char *reason, void *opaque) {
        char text[512] = "";
        EventImpl event(Event::EVENT_ERROR, static_cast<ErrorCode>(err), Event::EVENT_SEVERITY_ERROR, "",
                        text_of(reason));
        if (err == RD_KAFKA_RESP_ERR__FATAL) {
                rd_kafka_resp_err_t cause = rd_kafka_fatal_error(rk, text, sizeof(text));
                EventImpl fatal(Event::EVENT_ERROR, code_of(cause), Event::EVENT_SEVERITY_ERROR, "", text);
                fatal.fatal_ = true;
                return tell(client(opaque), fatal);
        }
        tell(client(opaque), event);
}

void on_log(const rd_kafka_t *rk, int level, const char *facility, const char *text) {
        HandleImpl *handle = rk ? client(rd_kafka_opaque(rk)) : NULL;
        if (!handle || !handle->callbacks.event)
                return rd_kafka_log_print(rk, level, facility, text);
        EventImpl event(Event::EVENT_LOG, ERR_NO_ERROR, static_cast<Event::Severity>(level), text_of(facility),
                        text_of(text));
        tell(handle, event);
}

int on_statistics(rd_kafka_t *, char *json, size_t length, void *opaque) {
        EventImpl event(Event::EVENT_STATS, ERR_NO_ERROR, Event::EVENT_SEVERITY_INFO, "", std::string(json, length));
        tell(client(opaque), event);
        return 0;
}

void on_throttle(rd_kafka_t *, const char *broker, int32_t id, int ms, void *opaque) {
        EventImpl event(Event::EVENT_THROTTLE, ERR_NO_ERROR, Event::EVENT_SEVERITY_INFO, "", "");
        event.throttle_ms_ = ms;
        event.broker_ = text_of(broker);
        event.broker_id_ = id;
        tell(client(opaque), event);
}

void on_token(rd_kafka_t *, const char *config, void *opaque) {
        client(opaque)->callbacks.token->oauthbearer_token_refresh_cb(client(opaque), text_of(config));
}

int on_socket(int domain, int type, int protocol, void *opaque) {
        return client(opaque)->callbacks.socket->socket_cb(domain, type, protocol);
}

int on_open(const char *path, int flags, mode_t mode, void *opaque) {
        return client(opaque)->callbacks.open->open_cb(text_of(path), flags, static_cast<int>(mode));
}

void on_consume(rd_kafka_message_t *message, void *opaque) {
        MessageImpl consumed(RD_KAFKA_CONSUMER, NULL, message, false);
        client(opaque)->callbacks.consume->consume_cb(consumed, opaque);
}

int on_certificate(rd_kafka_t *,
                   const char *broker,
                   int32_t id,
                   int *x509_error,
                   int depth,
                   const char *buffer,
                   size_t size,
                   char *errstr,
                   size_t errstr_size,
                   void *opaque) {
        std::string text;
        bool trusted = client(opaque)->callbacks.certificate->ssl_cert_verify_cb(text_of(broker), id, x509_error, depth,
                                                                                  buffer, size, text);
        if (!trusted && errstr_size > 0) {
                size_t length = text.size() < errstr_size - 1 ? text.size() : errstr_size - 1;
                memcpy(errstr, text.c_str(), length);
                errstr[length] = '\0';
        }
        return trusted;
}

void on_commit(rd_kafka_t *, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *offsets, void *opaque) {
        std::vector<TopicPartition *> partitions;
        for (int i = 0; offsets && i < offsets->cnt; i++)
                partitions.push_back(new TopicPartitionImpl(&offsets->elems[i]));
        client(opaque)->callbacks.commit->offset_commit_cb(code_of(err), partitions);
        TopicPartition::destroy(partitions);
}

/* The opaque value is the callback itself. */
void on_one_commit(rd_kafka_t *, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *offsets, void *opaque) {
        std::vector<TopicPartition *> partitions;
        for (int i = 0; offsets && i < offsets->cnt; i++)
                partitions.push_back(new TopicPartitionImpl(&offsets->elems[i]));
        static_cast<OffsetCommitCb *>(opaque)->offset_commit_cb(code_of(err), partitions);
        TopicPartition::destroy(partitions);
}

void on_rebalance(rd_kafka_t *, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *list, void *opaque) {
        std::vector<TopicPartition *> partitions;
        for (int i = 0; list && i < list->cnt; i++)
                partitions.push_back(new TopicPartitionImpl(&list->elems[i]));
        client(opaque)->callbacks.rebalance->rebalance_cb(dynamic_cast<KafkaConsumer *>(client(opaque)), code_of(err),
                                                         partitions);
        TopicPartition::destroy(partitions);
}

} // extern "C"

bool HandleImpl::start(rd_kafka_type_t type, const Conf *given, std::string &errstr) {
        const ConfImpl *conf = dynamic_cast<const ConfImpl *>(given);
        if (given && (!conf || !conf->global())) {
                errstr = "a client is made with a configuration of Conf::CONF_GLOBAL";
                return false;
        }
        rd_kafka_conf_t *own = conf ? rd_kafka_conf_dup(conf->global()) : rd_kafka_conf_new();
        if (conf)
                callbacks = conf->callbacks;
        rd_kafka_conf_set_opaque(own, this);
        if (callbacks.dr)
                rd_kafka_conf_set_dr_msg_cb(own, on_delivery);
        if (callbacks.event) {
                rd_kafka_conf_set_error_cb(own, on_error);
                rd_kafka_conf_set_log_cb(own, on_log);
                rd_kafka_conf_set_stats_cb(own, on_statistics);
                rd_kafka_conf_set_throttle_cb(own, on_throttle);
        }
        if (callbacks.token)
                rd_kafka_conf_set_oauthbearer_token_refresh_cb(own, on_token);
        if (callbacks.socket)
                rd_kafka_conf_set_socket_cb(own, on_socket);
        if (callbacks.open)
                rd_kafka_conf_set_open_cb(own, on_open);
        if (callbacks.rebalance)
                rd_kafka_conf_set_rebalance_cb(own, on_rebalance);
        if (callbacks.commit)
                rd_kafka_conf_set_offset_commit_cb(own, on_commit);
        if (callbacks.consume)
                rd_kafka_conf_set_consume_cb(own, on_consume);
        if (callbacks.certificate)
                rd_kafka_conf_set_ssl_cert_verify_cb(own, on_certificate);
        if (callbacks.partitioner || callbacks.partitioner_key_pointer) {
                // Topics by name: the callback gets a topic that has its callbacks and no other state.
                rd_kafka_topic_conf_t *topic = rd_kafka_conf_get_default_topic_conf(own);
                topic = topic ? rd_kafka_topic_conf_dup(topic) : rd_kafka_topic_conf_new();
                default_topic_ = new TopicImpl;
                default_topic_->callbacks = callbacks;
                rd_kafka_topic_conf_set_opaque(topic, default_topic_);
                rd_kafka_topic_conf_set_partitioner_cb(topic, on_partition);
                rd_kafka_conf_set_default_topic_conf(own, topic);
        }
        char text[512] = "";
        rk_ = rd_kafka_new(type, own, text, sizeof(text));
        if (!rk_) {
                rd_kafka_conf_destroy(own);
                errstr = text;
                return false;
        }
        return true;
}

class ProducerImpl : public Producer, public HandleImpl {
       public:
        ~ProducerImpl() {
                if (rk_)
                        rd_kafka_destroy(rk_);
        }
        ErrorCode produce(Topic *topic,
                          int32_t partition,
                          int flags,
                          void *payload,
                          size_t len,
                          const std::string *key,
                          void *opaque) {
                return produce(topic, partition, flags, payload, len, key ? static_cast<const void *>(key->c_str()) : NULL,
                               key ? key->size() : 0, opaque);
        }
        ErrorCode produce(Topic *topic,
                          int32_t partition,
                          int flags,
                          void *payload,
                          size_t len,
                          const void *key,
                          size_t key_len,
                          void *opaque) {
                if (rd_kafka_produce(static_cast<TopicImpl *>(topic)->topic_, partition, flags, payload, len, key, key_len,
                                     opaque) == -1)
                        return code_of(rd_kafka_last_error());
                return ERR_NO_ERROR;
        }
        ErrorCode produce(const std::string topic,
                          int32_t partition,
                          int flags,
                          void *payload,
                          size_t len,
                          const void *key,
                          size_t key_len,
                          int64_t timestamp,
                          void *opaque) {
                return produce(topic, partition, flags, payload, len, key, key_len, timestamp, NULL, opaque);
        }
        ErrorCode produce(const std::string topic,
                          int32_t partition,
                          int flags,
                          void *payload,
                          size_t len,
                          const void *key,
                          size_t key_len,
                          int64_t timestamp,
                          RdKafka::Headers *headers,
                          void *opaque) {
                HeadersImpl *own = static_cast<HeadersImpl *>(headers);
                rd_kafka_vu_t values[9];
                size_t count = 0;
                values[count].vtype = RD_KAFKA_VTYPE_TOPIC;
                values[count++].u.cstr = topic.c_str();
                values[count].vtype = RD_KAFKA_VTYPE_PARTITION;
                values[count++].u.i32 = partition;
                values[count].vtype = RD_KAFKA_VTYPE_MSGFLAGS;
                values[count++].u.i = flags;
                values[count].vtype = RD_KAFKA_VTYPE_VALUE;
                values[count].u.mem.ptr = payload;
                values[count++].u.mem.size = len;
                values[count].vtype = RD_KAFKA_VTYPE_KEY;
                values[count].u.mem.ptr = const_cast<void *>(key);
                values[count++].u.mem.size = key_len;
                values[count].vtype = RD_KAFKA_VTYPE_TIMESTAMP;
                values[count++].u.i64 = timestamp;
                values[count].vtype = RD_KAFKA_VTYPE_OPAQUE;
                values[count++].u.ptr = opaque;
                if (own) {
                        values[count].vtype = RD_KAFKA_VTYPE_HEADERS;
                        values[count++].u.headers = own->c();
                }
                rd_kafka_error_t *error = rd_kafka_produceva(rk_, values, count);
                if (error) {
                        rd_kafka_resp_err_t err = rd_kafka_error_code(error);
                        rd_kafka_error_destroy(error);
                        return code_of(err);
                }
                if (own) {
                        own->release();
                        delete own;
                }
                return ERR_NO_ERROR;
        }
        ErrorCode produce(Topic *topic,
                          int32_t partition,
                          const std::vector<char> *payload,
                          const std::vector<char> *key,
                          void *opaque) {
                bool has_payload = payload && !payload->empty(), has_key = key && !key->empty();
                return produce(topic, partition, RD_KAFKA_MSG_F_COPY,
                               has_payload ? const_cast<char *>(&(*payload)[0]) : NULL, has_payload ? payload->size() : 0,
                               has_key ? static_cast<const void *>(&(*key)[0]) : NULL, has_key ? key->size() : 0, opaque);
        }
        ErrorCode flush(int timeout_ms) { return code_of(rd_kafka_flush(rk_, timeout_ms)); }
        ErrorCode purge(int flags) { return code_of(rd_kafka_purge(rk_, flags)); }
        Error *init_transactions(int timeout_ms) { return error_or_null(rd_kafka_init_transactions(rk_, timeout_ms)); }
        Error *begin_transaction() { return error_or_null(rd_kafka_begin_transaction(rk_)); }
        Error *send_offsets_to_transaction(const std::vector<TopicPartition *> &offsets,
                                           const ConsumerGroupMetadata *group,
                                           int timeout_ms);
        Error *commit_transaction(int timeout_ms) {
                return error_or_null(rd_kafka_commit_transaction(rk_, timeout_ms));
        }
        Error *abort_transaction(int timeout_ms) { return error_or_null(rd_kafka_abort_transaction(rk_, timeout_ms)); }
};

class GroupImpl : public ConsumerGroupMetadata {
       public:
        explicit GroupImpl(rd_kafka_consumer_group_metadata_t *group) : group_(group) {}
        ~GroupImpl() { rd_kafka_consumer_group_metadata_destroy(group_); }
        rd_kafka_consumer_group_metadata_t *group_;

       private:
        GroupImpl(const GroupImpl &);
        GroupImpl &operator=(const GroupImpl &);
};

Error *ProducerImpl::send_offsets_to_transaction(const std::vector<TopicPartition *> &offsets,
                                                 const ConsumerGroupMetadata *group,
                                                 int timeout_ms) {
        List list(offsets);
        const GroupImpl *own = dynamic_cast<const GroupImpl *>(group);
        return error_or_null(
            rd_kafka_send_offsets_to_transaction(rk_, list.c(), own ? own->group_ : NULL, timeout_ms));
}

class KafkaConsumerImpl : public KafkaConsumer, public HandleImpl {
       public:
        ~KafkaConsumerImpl() {
                if (rk_)
                        rd_kafka_destroy_flags(rk_, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
        }
        ErrorCode assignment(std::vector<TopicPartition *> &partitions) {
                List list;
                rd_kafka_resp_err_t err = rd_kafka_assignment(rk_, list.slot());
                if (!err)
                        list.into(partitions);
                return code_of(err);
        }
        ErrorCode subscription(std::vector<std::string> &topics) {
                List list;
                rd_kafka_resp_err_t err = rd_kafka_subscription(rk_, list.slot());
                for (int i = 0; !err && list.c() && i < list.c()->cnt; i++)
                        topics.push_back(list.c()->elems[i].topic);
                return code_of(err);
        }
        ErrorCode subscribe(const std::vector<std::string> &topics) {
                List list(rd_kafka_topic_partition_list_new(static_cast<int>(topics.size())));
                for (size_t i = 0; i < topics.size(); i++)
                        rd_kafka_topic_partition_list_add(list.c(), topics[i].c_str(), RD_KAFKA_PARTITION_UA);
                return code_of(rd_kafka_subscribe(rk_, list.c()));
        }
        ErrorCode unsubscribe() { return code_of(rd_kafka_unsubscribe(rk_)); }
        ErrorCode assign(const std::vector<TopicPartition *> &partitions) {
                List list(partitions);
                return code_of(rd_kafka_assign(rk_, list.c()));
        }
        ErrorCode unassign() { return code_of(rd_kafka_assign(rk_, NULL)); }
        Message *consume(int timeout_ms) {
                rd_kafka_message_t *message = rd_kafka_consumer_poll(rk_, timeout_ms);
                if (!message)
                        return new MessageImpl(RD_KAFKA_CONSUMER, NULL, RD_KAFKA_RESP_ERR__TIMED_OUT);
                return new MessageImpl(RD_KAFKA_CONSUMER, NULL, message, true);
        }
        ErrorCode commitSync() { return code_of(rd_kafka_commit(rk_, NULL, 0)); }
        ErrorCode commitAsync() { return code_of(rd_kafka_commit(rk_, NULL, 1)); }
        ErrorCode commitSync(Message *message) { return code_of(rd_kafka_commit_message(rk_, message->c_ptr(), 0)); }
        ErrorCode commitAsync(Message *message) { return code_of(rd_kafka_commit_message(rk_, message->c_ptr(), 1)); }
        ErrorCode commitSync(std::vector<TopicPartition *> &offsets) {
                List list(offsets);
                rd_kafka_resp_err_t err = rd_kafka_commit(rk_, list.c(), 0);
                if (!err)
                        list.update(offsets);
                return code_of(err);
        }
        ErrorCode commitAsync(const std::vector<TopicPartition *> &offsets) {
                List list(offsets);
                return code_of(rd_kafka_commit(rk_, list.c(), 1));
        }
        ErrorCode commitSync(OffsetCommitCb *callback) {
                return code_of(rd_kafka_commit_queue(rk_, NULL, NULL, on_one_commit, callback));
        }
        ErrorCode commitSync(std::vector<TopicPartition *> &offsets, OffsetCommitCb *callback) {
                List list(offsets);
                return code_of(rd_kafka_commit_queue(rk_, list.c(), NULL, on_one_commit, callback));
        }
        ErrorCode committed(std::vector<TopicPartition *> &partitions, int timeout_ms) {
                List list(partitions);
                rd_kafka_resp_err_t err = rd_kafka_committed(rk_, list.c(), timeout_ms);
                list.update(partitions);
                return code_of(err);
        }
        ErrorCode position(std::vector<TopicPartition *> &partitions) {
                List list(partitions);
                rd_kafka_resp_err_t err = rd_kafka_position(rk_, list.c());
                list.update(partitions);
                return code_of(err);
        }
        ErrorCode close() { return code_of(rd_kafka_consumer_close(rk_)); }
        ErrorCode seek(const TopicPartition &partition, int timeout_ms) {
                List list(rd_kafka_topic_partition_list_new(1));
                list.add(partition);
                rd_kafka_error_t *error = rd_kafka_seek_partitions(rk_, list.c(), timeout_ms);
                rd_kafka_resp_err_t err = error ? rd_kafka_error_code(error) : list.c()->elems[0].err;
                if (error)
                        rd_kafka_error_destroy(error);
                return code_of(err);
        }
        ErrorCode offsets_store(std::vector<TopicPartition *> &offsets) {
                List list(offsets);
                rd_kafka_resp_err_t err = rd_kafka_offsets_store(rk_, list.c());
                list.update(offsets);
                return code_of(err);
        }
        ConsumerGroupMetadata *groupMetadata() {
                rd_kafka_consumer_group_metadata_t *group = rd_kafka_consumer_group_metadata(rk_);
                return group ? new GroupImpl(group) : NULL;
        }
        bool assignment_lost() { return rd_kafka_assignment_lost(rk_) != 0; }
        std::string rebalance_protocol() { return text_of(rd_kafka_rebalance_protocol(rk_)); }
        Error *incremental_assign(const std::vector<TopicPartition *> &partitions) {
                List list(partitions);
                return error_or_null(rd_kafka_incremental_assign(rk_, list.c()));
        }
        Error *incremental_unassign(const std::vector<TopicPartition *> &partitions) {
                List list(partitions);
                return error_or_null(rd_kafka_incremental_unassign(rk_, list.c()));
        }
        Error *close(Queue *queue) { return error_or_null(rd_kafka_consumer_close_queue(rk_, ::c(queue))); }
        bool closed() { return rd_kafka_consumer_closed(rk_) != 0; }
};

/** The callback of consume_callback(). */
struct Consuming {
        ConsumeCb *callback;
        Topic *topic;
        void *opaque;
};

extern "C" void on_one_message(rd_kafka_message_t *message, void *opaque) {
        Consuming *consuming = static_cast<Consuming *>(opaque);
        MessageImpl consumed(RD_KAFKA_CONSUMER, consuming->topic, message, false);
        consuming->callback->consume_cb(consumed, consuming->opaque);
}

class ConsumerImpl : public Consumer, public HandleImpl {
       public:
        ~ConsumerImpl() {
                if (rk_)
                        rd_kafka_destroy(rk_);
        }
        ErrorCode start(Topic *topic, int32_t partition, int64_t offset) {
                return rd_kafka_consume_start(c(topic), partition, offset) == -1 ? code_of(rd_kafka_last_error())
                                                                               : ERR_NO_ERROR;
        }
        ErrorCode start(Topic *topic, int32_t partition, int64_t offset, Queue *queue) {
                return rd_kafka_consume_start_queue(c(topic), partition, offset, ::c(queue)) == -1
                           ? code_of(rd_kafka_last_error())
                           : ERR_NO_ERROR;
        }
        ErrorCode stop(Topic *topic, int32_t partition) {
                return rd_kafka_consume_stop(c(topic), partition) == -1 ? code_of(rd_kafka_last_error()) : ERR_NO_ERROR;
        }
        ErrorCode seek(Topic *topic, int32_t partition, int64_t offset, int timeout_ms) {
                return code_of(rd_kafka_seek(c(topic), partition, offset, timeout_ms));
        }
        Message *consume(Topic *topic, int32_t partition, int timeout_ms) {
                return wrapped(topic, rd_kafka_consume(c(topic), partition, timeout_ms));
        }
        Message *consume(Queue *queue, int timeout_ms) {
                return wrapped(NULL, rd_kafka_consume_queue(::c(queue), timeout_ms));
        }
        int consume_callback(Topic *topic, int32_t partition, int timeout_ms, ConsumeCb *callback, void *opaque) {
                Consuming consuming = {callback, topic, opaque};
                return rd_kafka_consume_callback(c(topic), partition, timeout_ms, on_one_message, &consuming);
        }
        int consume_callback(Queue *queue, int timeout_ms, ConsumeCb *callback, void *opaque) {
                Consuming consuming = {callback, NULL, opaque};
                return rd_kafka_consume_callback_queue(::c(queue), timeout_ms, on_one_message, &consuming);
        }
        using HandleImpl::start;

       private:
        static rd_kafka_topic_t *c(Topic *topic) { return static_cast<TopicImpl *>(topic)->topic_; }
        static Message *wrapped(Topic *topic, rd_kafka_message_t *message) {
                if (!message)
                        return new MessageImpl(RD_KAFKA_CONSUMER, topic, rd_kafka_last_error());
                return new MessageImpl(RD_KAFKA_CONSUMER, topic, message, true);
        }
};

} // namespace

/* ---- What the header promises ---- */

namespace RdKafka {

int version() { return rd_kafka_version(); }
std::string version_str() { return text_of(rd_kafka_version_str()); }
std::string get_debug_contexts() { return text_of(rd_kafka_get_debug_contexts()); }
int wait_destroyed(int timeout_ms) { return rd_kafka_wait_destroyed(timeout_ms); }
void *mem_malloc(size_t size) { return rd_kafka_mem_malloc(NULL, size); }
void mem_free(void *ptr) { rd_kafka_mem_free(NULL, ptr); }
std::string err2str(ErrorCode err) { return text_of(rd_kafka_err2str(static_cast<rd_kafka_resp_err_t>(err))); }

Error *Error::create(ErrorCode code, const std::string *errstr) {
        rd_kafka_resp_err_t err = static_cast<rd_kafka_resp_err_t>(code);
        return new ErrorImpl(rd_kafka_error_new(err, errstr ? "%s" : NULL, errstr ? errstr->c_str() : ""));
}

Conf *Conf::create(ConfType type) { return new ConfImpl(type); }

TopicPartition::~TopicPartition() {}
TopicPartition *TopicPartition::create(const std::string &topic, int partition) {
        return new TopicPartitionImpl(topic, partition, RD_KAFKA_OFFSET_INVALID);
}
TopicPartition *TopicPartition::create(const std::string &topic, int partition, int64_t offset) {
        return new TopicPartitionImpl(topic, partition, offset);
}
void TopicPartition::destroy(std::vector<TopicPartition *> &partitions) {
        for (size_t i = 0; i < partitions.size(); i++)
                delete partitions[i];
        partitions.clear();
}

const int32_t Topic::PARTITION_UA = RD_KAFKA_PARTITION_UA;
const int64_t Topic::OFFSET_BEGINNING = RD_KAFKA_OFFSET_BEGINNING;
const int64_t Topic::OFFSET_END = RD_KAFKA_OFFSET_END;
const int64_t Topic::OFFSET_STORED = RD_KAFKA_OFFSET_STORED;
const int64_t Topic::OFFSET_INVALID = RD_KAFKA_OFFSET_INVALID;

Topic::~Topic() {}
Topic *Topic::create(Handle *base, const std::string &name, const Conf *given, std::string &errstr) {
        const ConfImpl *conf = dynamic_cast<const ConfImpl *>(given);
        if (given && (!conf || !conf->topic())) {
                errstr = "a topic is made with a configuration of Conf::CONF_TOPIC";
                return NULL;
        }
        TopicImpl *topic = new TopicImpl;
        rd_kafka_topic_conf_t *own = conf ? rd_kafka_topic_conf_dup(conf->topic()) : NULL;
        if (conf && (conf->callbacks.partitioner || conf->callbacks.partitioner_key_pointer)) {
                topic->callbacks = conf->callbacks;
                rd_kafka_topic_conf_set_opaque(own, topic);
                rd_kafka_topic_conf_set_partitioner_cb(own, on_partition);
        }
        topic->topic_ = rd_kafka_topic_new(base->c_ptr(), name.c_str(), own);
        if (!topic->topic_) {
                errstr = rd_kafka_err2str(rd_kafka_last_error());
                delete topic;
                return NULL;
        }
        return topic;
}

Headers::~Headers() {}
Headers *Headers::create() { return new HeadersImpl(rd_kafka_headers_new(8)); }
Headers *Headers::create(const std::vector<Header> &headers) {
        Headers *made = new HeadersImpl(rd_kafka_headers_new(headers.size()));
        for (size_t i = 0; i < headers.size(); i++)
                made->add(headers[i]);
        return made;
}

Message::~Message() {}
Queue::~Queue() {}
Queue *Queue::create(Handle *handle) { return queue_or_null(rd_kafka_queue_new(handle->c_ptr())); }
ConsumerGroupMetadata::~ConsumerGroupMetadata() {}
BrokerMetadata::~BrokerMetadata() {}
PartitionMetadata::~PartitionMetadata() {}
TopicMetadata::~TopicMetadata() {}
Metadata::~Metadata() {}

KafkaConsumer::~KafkaConsumer() {}
KafkaConsumer *KafkaConsumer::create(const Conf *conf, std::string &errstr) {
        std::string group;
        if (!conf || conf->get("group.id", group) != Conf::CONF_OK || group.empty()) {
                errstr = "a KafkaConsumer needs the property group.id";
                return NULL;
        }
        KafkaConsumerImpl *consumer = new KafkaConsumerImpl;
        if (!consumer->start(RD_KAFKA_CONSUMER, conf, errstr)) {
                delete consumer;
                return NULL;
        }
        rd_kafka_poll_set_consumer(consumer->rk_);
        return consumer;
}

Consumer::~Consumer() {}
Consumer *Consumer::create(const Conf *conf, std::string &errstr) {
        ConsumerImpl *consumer = new ConsumerImpl;
        if (!consumer->start(RD_KAFKA_CONSUMER, conf, errstr)) {
                delete consumer;
                return NULL;
        }
        return consumer;
}
int64_t Consumer::OffsetTail(int64_t offset) { return RD_KAFKA_OFFSET_TAIL(offset); }

Producer::~Producer() {}
Producer *Producer::create(const Conf *conf, std::string &errstr) {
        ProducerImpl *producer = new ProducerImpl;
        if (!producer->start(RD_KAFKA_PRODUCER, conf, errstr)) {
                delete producer;
                return NULL;
        }
        return producer;
}

} // namespace RdKafka
