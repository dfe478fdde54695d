/*
 * rdkafkacpp_ottla.h: the administrative calls of rdkafka_ottla.h in C++. All of it is in this header, over the C library.
 *
 * Ottla, an Apache Kafka client. Licensed under MIT or Apache-2.0.
 */
#ifndef _RDKAFKACPP_OTTLA_H_
#define _RDKAFKACPP_OTTLA_H_

#include <cstddef>
#include <string>
#include <vector>

#include "rdkafka_ottla.h"
#include "rdkafkacpp.h"

namespace RdKafka {
namespace Ottla {

/** Returns the version of the library's interface; RD_KAFKA_OTTLA_VERSION is that of the header. */
inline int version() {
        return rd_kafka_ottla_version();
}

/** The arguments of a call: rows of fields, as rdkafka_ottla.h has them for each call. */
class Request {
       public:
        Request() : request_(rd_kafka_ottla_request_new()) {}
        ~Request() { rd_kafka_ottla_request_destroy(request_); }

        /** Begins the next row. */
        Request &add() {
                rd_kafka_ottla_request_add(request_);
                return *this;
        }

        /** Sets a field of the last row; begins the first row if there is none. */
        Request &set(const std::string &field, const std::string &value) {
                if (rd_kafka_ottla_request_set(request_, field.c_str(), value.c_str()) && !field.empty()) {
                        rd_kafka_ottla_request_add(request_);
                        rd_kafka_ottla_request_set(request_, field.c_str(), value.c_str());
                }
                return *this;
        }

        /** Returns the C object. */
        const rd_kafka_ottla_request_t *c_ptr() const { return request_; }

       private:
        Request(const Request &);
        Request &operator=(const Request &);

        rd_kafka_ottla_request_t *request_;
};

/** A part of a result. It lives as long as the result. */
class Row {
       public:
        explicit Row(const rd_kafka_ottla_row_t *row) : row_(row) {}

        /** Returns true if the row has the field. */
        bool has(const std::string &field) const { return rd_kafka_ottla_row_get(row_, field.c_str()) != NULL; }

        /** Returns a field; an empty text if the row does not have it. Lists are separated by commas. */
        std::string get(const std::string &field) const {
                const char *value = rd_kafka_ottla_row_get(row_, field.c_str());
                return value ? value : "";
        }

        /** Returns a field that is a whole number; the default if the row does not have it, or if it is none. */
        int64_t number(const std::string &field, int64_t default_value) const {
                return rd_kafka_ottla_row_number(row_, field.c_str(), default_value);
        }

        /** Returns the names of the fields. */
        std::vector<std::string> fields() const {
                std::vector<std::string> names;
                for (const char *name; (name = rd_kafka_ottla_row_field(row_, names.size()));)
                        names.push_back(name);
                return names;
        }

        /** Returns the error of the row; ERR_NO_ERROR after a success. */
        ErrorCode err() const { return static_cast<ErrorCode>(rd_kafka_ottla_row_error(row_)); }

        /** Returns the text of the error of the row; an empty text after a success. */
        std::string errstr() const {
                const char *text = rd_kafka_ottla_row_error_string(row_);
                return text ? text : "";
        }

       private:
        const rd_kafka_ottla_row_t *row_;
};

/** The result of a call. */
class Result {
       public:
        /** Takes the event of a call; NULL stands for a call that could not be made. */
        explicit Result(rd_kafka_event_t *event) : event_(event) {
                size_t cnt = 0;
                const rd_kafka_ottla_row_t **rows = rd_kafka_ottla_event_rows(event, &cnt);
                for (size_t i = 0; rows && i < cnt; i++)
                        rows_.push_back(Row(rows[i]));
        }
        ~Result() {
                if (event_)
                        rd_kafka_event_destroy(event_);
        }

        /** Returns the error of the whole call; rows have errors of their own. */
        ErrorCode err() const {
                return event_ ? static_cast<ErrorCode>(rd_kafka_event_error(event_)) : ERR__INVALID_ARG;
        }

        /** Returns the text of the error of the whole call; an empty text after a success. */
        std::string errstr() const {
                const char *text = event_ ? rd_kafka_event_error_string(event_) : "the handle is not open";
                return text && err() ? text : "";
        }

        /** Returns the rows. */
        const std::vector<Row> &rows() const { return rows_; }

       private:
        Result(const Result &);
        Result &operator=(const Result &);

        rd_kafka_event_t *event_;
        std::vector<Row> rows_;
};

/** A function of rdkafka_ottla.h. */
typedef void Call(rd_kafka_t *, const rd_kafka_ottla_request_t *, const rd_kafka_AdminOptions_t *, rd_kafka_queue_t *);

/** Calls and waits for the result, which the caller deletes. It is never NULL. timeout_ms bounds the call; -1 is the client's own
 *  timeout. With validate_only, calls that have the option change nothing. */
inline Result *call(Call *function, Handle *handle, const Request &request, int timeout_ms, bool validate_only = false) {
        rd_kafka_t *rk = handle ? handle->c_ptr() : NULL;
        if (!rk)
                return new Result(NULL);
        rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_ANY);
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
        if (timeout_ms >= 0)
                rd_kafka_AdminOptions_set_request_timeout(options, timeout_ms, NULL, 0);
        if (validate_only)
                rd_kafka_AdminOptions_set_validate_only(options, 1, NULL, 0);
        function(rk, request.c_ptr(), options, queue);
        rd_kafka_event_t *event = rd_kafka_queue_poll(queue, -1);
        rd_kafka_queue_destroy(queue);
        rd_kafka_AdminOptions_destroy(options);
        return new Result(event);
}

/** Calls rd_kafka_ottla_DescribeClientQuotas(). */
inline Result *describe_client_quotas(Handle *handle, const Request &request, int timeout_ms) {
        return call(rd_kafka_ottla_DescribeClientQuotas, handle, request, timeout_ms);
}

/** Calls rd_kafka_ottla_AlterClientQuotas(). */
inline Result *alter_client_quotas(Handle *handle, const Request &request, int timeout_ms, bool validate_only = false) {
        return call(rd_kafka_ottla_AlterClientQuotas, handle, request, timeout_ms, validate_only);
}

/** Calls rd_kafka_ottla_DescribeLogDirs(). */
inline Result *describe_log_dirs(Handle *handle, const Request &request, int timeout_ms) {
        return call(rd_kafka_ottla_DescribeLogDirs, handle, request, timeout_ms);
}

/** Calls rd_kafka_ottla_AlterReplicaLogDirs(). */
inline Result *alter_replica_log_dirs(Handle *handle, const Request &request, int timeout_ms) {
        return call(rd_kafka_ottla_AlterReplicaLogDirs, handle, request, timeout_ms);
}

/** Calls rd_kafka_ottla_AlterPartitionReassignments(). */
inline Result *alter_partition_reassignments(Handle *handle, const Request &request, int timeout_ms) {
        return call(rd_kafka_ottla_AlterPartitionReassignments, handle, request, timeout_ms);
}

/** Calls rd_kafka_ottla_ListPartitionReassignments(). */
inline Result *list_partition_reassignments(Handle *handle, const Request &request, int timeout_ms) {
        return call(rd_kafka_ottla_ListPartitionReassignments, handle, request, timeout_ms);
}

/** Calls rd_kafka_ottla_DescribeFeatures(). */
inline Result *describe_features(Handle *handle, const Request &request, int timeout_ms) {
        return call(rd_kafka_ottla_DescribeFeatures, handle, request, timeout_ms);
}

/** Calls rd_kafka_ottla_UpdateFeatures(). */
inline Result *update_features(Handle *handle, const Request &request, int timeout_ms, bool validate_only = false) {
        return call(rd_kafka_ottla_UpdateFeatures, handle, request, timeout_ms, validate_only);
}

/** Calls rd_kafka_ottla_CreateDelegationToken(). */
inline Result *create_delegation_token(Handle *handle, const Request &request, int timeout_ms) {
        return call(rd_kafka_ottla_CreateDelegationToken, handle, request, timeout_ms);
}

/** Calls rd_kafka_ottla_RenewDelegationToken(). */
inline Result *renew_delegation_token(Handle *handle, const Request &request, int timeout_ms) {
        return call(rd_kafka_ottla_RenewDelegationToken, handle, request, timeout_ms);
}

/** Calls rd_kafka_ottla_ExpireDelegationToken(). */
inline Result *expire_delegation_token(Handle *handle, const Request &request, int timeout_ms) {
        return call(rd_kafka_ottla_ExpireDelegationToken, handle, request, timeout_ms);
}

/** Calls rd_kafka_ottla_DescribeDelegationTokens(). */
inline Result *describe_delegation_tokens(Handle *handle, const Request &request, int timeout_ms) {
        return call(rd_kafka_ottla_DescribeDelegationTokens, handle, request, timeout_ms);
}

/** Calls rd_kafka_ottla_ListTransactions(). */
inline Result *list_transactions(Handle *handle, const Request &request, int timeout_ms) {
        return call(rd_kafka_ottla_ListTransactions, handle, request, timeout_ms);
}

/** Calls rd_kafka_ottla_DescribeTransactions(). */
inline Result *describe_transactions(Handle *handle, const Request &request, int timeout_ms) {
        return call(rd_kafka_ottla_DescribeTransactions, handle, request, timeout_ms);
}

/** Calls rd_kafka_ottla_DescribeProducers(). */
inline Result *describe_producers(Handle *handle, const Request &request, int timeout_ms) {
        return call(rd_kafka_ottla_DescribeProducers, handle, request, timeout_ms);
}

/** Calls rd_kafka_ottla_FenceProducers(). */
inline Result *fence_producers(Handle *handle, const Request &request, int timeout_ms) {
        return call(rd_kafka_ottla_FenceProducers, handle, request, timeout_ms);
}

/** Calls rd_kafka_ottla_AbortTransaction(). */
inline Result *abort_transaction(Handle *handle, const Request &request, int timeout_ms) {
        return call(rd_kafka_ottla_AbortTransaction, handle, request, timeout_ms);
}

/** Calls rd_kafka_ottla_DescribeUserScramCredentials(). */
inline Result *describe_user_scram_credentials(Handle *handle, const Request &request, int timeout_ms) {
        return call(rd_kafka_ottla_DescribeUserScramCredentials, handle, request, timeout_ms);
}

/** Calls rd_kafka_ottla_AlterUserScramCredentials(). */
inline Result *alter_user_scram_credentials(Handle *handle, const Request &request, int timeout_ms) {
        return call(rd_kafka_ottla_AlterUserScramCredentials, handle, request, timeout_ms);
}

}  // namespace Ottla
}  // namespace RdKafka

#endif /* _RDKAFKACPP_OTTLA_H_ */
