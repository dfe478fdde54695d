/* Administrative calls about access control lists, SCRAM users and elections of leaders, on brokers with an authorizer; objects
 * that outlive their calls, and calls with wrong arguments. */
#include "test.h"

static rd_kafka_AclBinding_t *rule(const char *name, const char *principal) {
        char errstr[64] = "";
        rd_kafka_AclBinding_t *acl =
            rd_kafka_AclBinding_new(RD_KAFKA_RESOURCE_TOPIC, name, RD_KAFKA_RESOURCE_PATTERN_PREFIXED, principal, "*",
                                    RD_KAFKA_ACL_OPERATION_READ, RD_KAFKA_ACL_PERMISSION_TYPE_ALLOW, errstr, sizeof(errstr));
        CHECK(acl && !*errstr);
        return acl;
}

static rd_kafka_AclBindingFilter_t *filter(const char *name) {
        return rd_kafka_AclBindingFilter_new(RD_KAFKA_RESOURCE_TOPIC, name, RD_KAFKA_RESOURCE_PATTERN_ANY, NULL, NULL,
                                             RD_KAFKA_ACL_OPERATION_ANY, RD_KAFKA_ACL_PERMISSION_TYPE_ANY, NULL, 0);
}

static void rules_are_created(rd_kafka_t *rk, rd_kafka_queue_t *queue) {
        rd_kafka_AclBinding_t *acls[2];
        rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_CREATEACLS);
        const rd_kafka_acl_result_t **results;
        rd_kafka_event_t *event;
        size_t cnt = 0;
        char errstr[64] = "";
        CHECK(rd_kafka_AdminOptions_set_validate_only(options, 1, errstr, sizeof(errstr)) == RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(*errstr);
        rd_kafka_AdminOptions_set_opaque(options, options);
        acls[0] = rule("admin-", "User:bob");
        acls[1] = rule("admin-", "bob");
        rd_kafka_CreateAcls(rk, acls, 2, options, queue);
        rd_kafka_AclBinding_destroy_array(acls, 2);
        event = next_event(queue, RD_KAFKA_EVENT_CREATEACLS_RESULT, 0);
        CHECK(rd_kafka_event_opaque(event) == options);
        CHECK(rd_kafka_event_DescribeAcls_result(event) == NULL);
        results = rd_kafka_CreateAcls_result_acls(rd_kafka_event_CreateAcls_result(event), &cnt);
        CHECK(cnt == 2 && rd_kafka_acl_result_error(results[0]) == NULL);
        CHECK(rd_kafka_error_code(rd_kafka_acl_result_error(results[1])) == RD_KAFKA_RESP_ERR_INVALID_REQUEST);
        CHECK(strstr(rd_kafka_error_string(rd_kafka_acl_result_error(results[1])), "bob") != NULL);
        rd_kafka_event_destroy(event);
        rd_kafka_AdminOptions_destroy(options);
}

static void rules_are_described(rd_kafka_t *rk, rd_kafka_queue_t *queue) {
        rd_kafka_AclBindingFilter_t *acl_filter = filter("admin-");
        const rd_kafka_AclBinding_t **acls;
        rd_kafka_event_t *event;
        size_t cnt = 0;
        CHECK(rd_kafka_AclBinding_principal(acl_filter) == NULL && rd_kafka_AclBinding_host(acl_filter) == NULL);
        rd_kafka_DescribeAcls(rk, acl_filter, NULL, queue);
        rd_kafka_AclBinding_destroy(acl_filter);
        event = next_event(queue, RD_KAFKA_EVENT_DESCRIBEACLS_RESULT, 0);
        acls = rd_kafka_DescribeAcls_result_acls(rd_kafka_event_DescribeAcls_result(event), &cnt);
        CHECK(cnt == 1);
        CHECK(rd_kafka_AclBinding_restype(acls[0]) == RD_KAFKA_RESOURCE_TOPIC);
        CHECK(!strcmp(rd_kafka_AclBinding_name(acls[0]), "admin-"));
        CHECK(!strcmp(rd_kafka_AclBinding_principal(acls[0]), "User:bob"));
        CHECK(!strcmp(rd_kafka_AclBinding_host(acls[0]), "*"));
        CHECK(rd_kafka_AclBinding_operation(acls[0]) == RD_KAFKA_ACL_OPERATION_READ);
        CHECK(rd_kafka_AclBinding_permission_type(acls[0]) == RD_KAFKA_ACL_PERMISSION_TYPE_ALLOW);
        CHECK(rd_kafka_AclBinding_resource_pattern_type(acls[0]) == RD_KAFKA_RESOURCE_PATTERN_PREFIXED);
        CHECK(rd_kafka_AclBinding_error(acls[0]) == NULL);
        /* It belongs to the event: to destroy it has no effect. */
        rd_kafka_AclBinding_destroy((rd_kafka_AclBinding_t *)acls[0]);
        CHECK(!strcmp(rd_kafka_AclBinding_name(acls[0]), "admin-"));
        rd_kafka_event_destroy(event);
}

static void rules_are_deleted(rd_kafka_t *rk, rd_kafka_queue_t *queue) {
        rd_kafka_AclBindingFilter_t *filters[2];
        const rd_kafka_DeleteAcls_result_response_t **responses;
        const rd_kafka_AclBinding_t **acls;
        rd_kafka_event_t *event;
        size_t cnt = 0, matching = 77;
        filters[0] = filter("admin-");
        filters[1] = filter("no-such-rule");
        rd_kafka_DeleteAcls(rk, filters, 2, NULL, queue);
        rd_kafka_AclBinding_destroy_array(filters, 2);
        event = next_event(queue, RD_KAFKA_EVENT_DELETEACLS_RESULT, 0);
        responses = rd_kafka_DeleteAcls_result_responses(rd_kafka_event_DeleteAcls_result(event), &cnt);
        CHECK(cnt == 2);
        CHECK(rd_kafka_DeleteAcls_result_response_error(responses[0]) == NULL);
        acls = rd_kafka_DeleteAcls_result_response_matching_acls(responses[0], &matching);
        CHECK(matching == 1 && !strcmp(rd_kafka_AclBinding_principal(acls[0]), "User:bob"));
        rd_kafka_DeleteAcls_result_response_matching_acls(responses[1], &matching);
        CHECK(matching == 0);
        rd_kafka_event_destroy(event);
}

/* What becomes of a rule with these values. */
static const char *refused(int type, const char *name, int pattern, const char *principal, int operation, int permission) {
        static char errstr[64];
        rd_kafka_AclBinding_t *acl = rd_kafka_AclBinding_new(type, name, pattern, principal, principal ? "*" : NULL, operation,
                                                             permission, errstr, sizeof(errstr));
        CHECK(acl == NULL);
        rd_kafka_AclBinding_destroy(acl);
        return errstr;
}

static void impossible_rules_are_refused(void) {
        CHECK(!strcmp(refused(2, NULL, 3, "User:a", 3, 3), "Invalid resource name"));
        CHECK(!strcmp(refused(2, "t", 3, NULL, 3, 3), "Invalid principal"));
        CHECK(!strcmp(refused(RD_KAFKA_RESOURCE_ANY, "t", 3, "User:a", 3, 3), "Invalid resource type"));
        CHECK(!strcmp(refused(99, "t", 3, "User:a", 3, 3), "Invalid resource type"));
        CHECK(!strcmp(refused(2, "t", RD_KAFKA_RESOURCE_PATTERN_MATCH, "User:a", 3, 3), "Invalid resource pattern type"));
        CHECK(!strcmp(refused(2, "t", 3, "User:a", RD_KAFKA_ACL_OPERATION_ANY, 3), "Invalid operation"));
        CHECK(!strcmp(refused(2, "t", 3, "User:a", -1, 3), "Invalid operation"));
        CHECK(!strcmp(refused(2, "t", 3, "User:a", 3, RD_KAFKA_ACL_PERMISSION_TYPE_ANY), "Invalid permission type"));
        CHECK(rd_kafka_AclBinding_name(NULL) == NULL && rd_kafka_AclBinding_restype(NULL) == 0);
        CHECK(!strcmp(rd_kafka_AclOperation_name(RD_KAFKA_ACL_OPERATION_IDEMPOTENT_WRITE), "IDEMPOTENT_WRITE"));
        CHECK(!strcmp(rd_kafka_AclOperation_name(99), "UNSUPPORTED"));
        CHECK(!strcmp(rd_kafka_AclPermissionType_name(RD_KAFKA_ACL_PERMISSION_TYPE_DENY), "DENY"));
        CHECK(!strcmp(rd_kafka_AclPermissionType_name(-1), "UNSUPPORTED"));
        CHECK(!strcmp(rd_kafka_ResourcePatternType_name(RD_KAFKA_RESOURCE_PATTERN_MATCH), "MATCH"));
        CHECK(!strcmp(rd_kafka_ResourcePatternType_name(5), "UNSUPPORTED"));
}

/* Changes credentials; returns the error of the only user. */
static rd_kafka_resp_err_t altered(rd_kafka_t *rk, rd_kafka_queue_t *queue, rd_kafka_UserScramCredentialAlteration_t *alteration) {
        const rd_kafka_AlterUserScramCredentials_result_response_t **responses;
        rd_kafka_resp_err_t err;
        rd_kafka_event_t *event;
        size_t cnt = 0;
        rd_kafka_AlterUserScramCredentials(rk, &alteration, 1, NULL, queue);
        rd_kafka_UserScramCredentialAlteration_destroy(alteration);
        event = next_event(queue, RD_KAFKA_EVENT_ALTERUSERSCRAMCREDENTIALS_RESULT, 0);
        responses =
            rd_kafka_AlterUserScramCredentials_result_responses(rd_kafka_event_AlterUserScramCredentials_result(event), &cnt);
        CHECK(cnt == 1 && !strcmp(rd_kafka_AlterUserScramCredentials_result_response_user(responses[0]), "broker-user"));
        err = rd_kafka_error_code(rd_kafka_AlterUserScramCredentials_result_response_error(responses[0]));
        rd_kafka_event_destroy(event);
        return err;
}

static rd_kafka_UserScramCredentialAlteration_t *upsertion(int iterations, const char *salt) {
        const unsigned char *password = (const unsigned char *)"secret";
        return rd_kafka_UserScramCredentialUpsertion_new("broker-user", RD_KAFKA_SCRAM_MECHANISM_SHA_256, iterations, password, 6,
                                                         (const unsigned char *)salt, salt ? strlen(salt) : 0);
}

static void users_are_set_and_deleted(rd_kafka_t *rk, rd_kafka_queue_t *queue) {
        const char *names[] = {"broker-user", "nobody"};
        const rd_kafka_UserScramCredentialsDescription_t **users;
        const rd_kafka_ScramCredentialInfo_t *info;
        rd_kafka_event_t *event;
        size_t cnt = 0;
        CHECK(altered(rk, queue, upsertion(4096, "salt")) == 0);
        CHECK(altered(rk, queue, upsertion(4096, NULL)) == 0);
        CHECK(altered(rk, queue, upsertion(100, NULL)) == RD_KAFKA_RESP_ERR_UNACCEPTABLE_CREDENTIAL);
        rd_kafka_DescribeUserScramCredentials(rk, names, 2, NULL, queue);
        event = next_event(queue, RD_KAFKA_EVENT_DESCRIBEUSERSCRAMCREDENTIALS_RESULT, 0);
        users = rd_kafka_DescribeUserScramCredentials_result_descriptions(
            rd_kafka_event_DescribeUserScramCredentials_result(event), &cnt);
        CHECK(cnt == 2 && !strcmp(rd_kafka_UserScramCredentialsDescription_user(users[0]), "broker-user"));
        CHECK(rd_kafka_error_code(rd_kafka_UserScramCredentialsDescription_error(users[0])) == 0);
        CHECK(rd_kafka_UserScramCredentialsDescription_scramcredentialinfo_count(users[0]) == 1);
        info = rd_kafka_UserScramCredentialsDescription_scramcredentialinfo(users[0], 0);
        CHECK(rd_kafka_ScramCredentialInfo_mechanism(info) == RD_KAFKA_SCRAM_MECHANISM_SHA_256);
        CHECK(rd_kafka_ScramCredentialInfo_iterations(info) == 4096);
        CHECK(rd_kafka_UserScramCredentialsDescription_scramcredentialinfo(users[0], 1) == NULL);
        CHECK(rd_kafka_error_code(rd_kafka_UserScramCredentialsDescription_error(users[1])) == RD_KAFKA_RESP_ERR_RESOURCE_NOT_FOUND);
        rd_kafka_event_destroy(event);
        CHECK(altered(rk, queue, rd_kafka_UserScramCredentialDeletion_new("broker-user", RD_KAFKA_SCRAM_MECHANISM_SHA_256)) == 0);
        CHECK(altered(rk, queue, rd_kafka_UserScramCredentialDeletion_new("broker-user", RD_KAFKA_SCRAM_MECHANISM_SHA_256)) ==
              RD_KAFKA_RESP_ERR_RESOURCE_NOT_FOUND);
        CHECK(rd_kafka_UserScramCredentialDeletion_new(NULL, RD_KAFKA_SCRAM_MECHANISM_SHA_256) == NULL);
}

static void leaders_are_elected(rd_kafka_t *rk, rd_kafka_queue_t *queue) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(2);
        rd_kafka_NewTopic_t *topic = rd_kafka_NewTopic_new("elections", 1, 1, NULL, 0);
        rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_ELECTLEADERS);
        const rd_kafka_topic_partition_result_t **results;
        rd_kafka_ElectLeaders_t *election;
        rd_kafka_event_t *event;
        size_t cnt = 0;
        rd_kafka_CreateTopics(rk, &topic, 1, NULL, queue);
        rd_kafka_NewTopic_destroy(topic);
        rd_kafka_event_destroy(next_event(queue, RD_KAFKA_EVENT_CREATETOPICS_RESULT, 0));
        CHECK(rd_kafka_AdminOptions_set_operation_timeout(options, 10000, NULL, 0) == 0);
        rd_kafka_topic_partition_list_add(list, "elections", 0);
        rd_kafka_topic_partition_list_add(list, "elections", 7);
        election = rd_kafka_ElectLeaders_new(RD_KAFKA_ELECTION_TYPE_PREFERRED, list);
        rd_kafka_ElectLeaders(rk, election, options, queue);
        rd_kafka_ElectLeaders_destroy(election);
        event = next_event(queue, RD_KAFKA_EVENT_ELECTLEADERS_RESULT, 0);
        results = rd_kafka_ElectLeaders_result_partitions(rd_kafka_event_ElectLeaders_result(event), &cnt);
        CHECK(cnt == 2);
        CHECK(rd_kafka_topic_partition_result_partition(results[0])->partition == 0);
        CHECK(rd_kafka_error_code(rd_kafka_topic_partition_result_error(results[0])) == RD_KAFKA_RESP_ERR_ELECTION_NOT_NEEDED);
        CHECK(!strcmp(rd_kafka_topic_partition_result_partition(results[1])->topic, "elections"));
        CHECK(rd_kafka_error_code(rd_kafka_topic_partition_result_error(results[1])) == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
        rd_kafka_event_destroy(event);
        election = rd_kafka_ElectLeaders_new(RD_KAFKA_ELECTION_TYPE_PREFERRED, NULL);
        rd_kafka_ElectLeaders(rk, election, NULL, queue);
        rd_kafka_ElectLeaders_destroy(election);
        event = next_event(queue, RD_KAFKA_EVENT_ELECTLEADERS_RESULT, 0);
        CHECK(rd_kafka_ElectLeaders_result_partitions(rd_kafka_event_ElectLeaders_result(event), &cnt) == NULL && cnt == 0);
        rd_kafka_event_destroy(event);
        rd_kafka_topic_partition_list_add(list, "elections", 7);
        election = rd_kafka_ElectLeaders_new(RD_KAFKA_ELECTION_TYPE_UNCLEAN, list);
        rd_kafka_ElectLeaders(rk, election, NULL, queue);
        rd_kafka_ElectLeaders_destroy(election);
        event = next_event(queue, RD_KAFKA_EVENT_ELECTLEADERS_RESULT, RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(!strcmp(rd_kafka_event_error_string(event), "Duplicate partitions specified"));
        rd_kafka_event_destroy(event);
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_AdminOptions_destroy(options);
}

static void wrong_arguments_are_events(rd_kafka_t *rk, rd_kafka_queue_t *queue) {
        const char *twice[] = {"a", "a"}, *empty[] = {""};
        rd_kafka_UserScramCredentialAlteration_t *alteration;
        rd_kafka_event_t *event;
        rd_kafka_CreateAcls(rk, NULL, 0, NULL, queue);
        rd_kafka_event_destroy(next_event(queue, RD_KAFKA_EVENT_CREATEACLS_RESULT, RD_KAFKA_RESP_ERR__INVALID_ARG));
        rd_kafka_DescribeAcls(rk, NULL, NULL, queue);
        rd_kafka_event_destroy(next_event(queue, RD_KAFKA_EVENT_DESCRIBEACLS_RESULT, RD_KAFKA_RESP_ERR__INVALID_ARG));
        rd_kafka_DeleteAcls(rk, NULL, 3, NULL, queue);
        rd_kafka_event_destroy(next_event(queue, RD_KAFKA_EVENT_DELETEACLS_RESULT, RD_KAFKA_RESP_ERR__INVALID_ARG));
        rd_kafka_DescribeUserScramCredentials(rk, twice, 2, NULL, queue);
        event = next_event(queue, RD_KAFKA_EVENT_DESCRIBEUSERSCRAMCREDENTIALS_RESULT, RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(strstr(rd_kafka_event_error_string(event), "Duplicate users") != NULL);
        rd_kafka_event_destroy(event);
        rd_kafka_DescribeUserScramCredentials(rk, empty, 1, NULL, queue);
        rd_kafka_event_destroy(
            next_event(queue, RD_KAFKA_EVENT_DESCRIBEUSERSCRAMCREDENTIALS_RESULT, RD_KAFKA_RESP_ERR__INVALID_ARG));
        rd_kafka_AlterUserScramCredentials(rk, NULL, 0, NULL, queue);
        event = next_event(queue, RD_KAFKA_EVENT_ALTERUSERSCRAMCREDENTIALS_RESULT, RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(!strcmp(rd_kafka_event_error_string(event), "At least one alteration is required"));
        rd_kafka_event_destroy(event);
        alteration = rd_kafka_UserScramCredentialUpsertion_new("u", RD_KAFKA_SCRAM_MECHANISM_SHA_512, 4096, NULL, 9, NULL, 9);
        rd_kafka_AlterUserScramCredentials(rk, &alteration, 1, NULL, queue);
        rd_kafka_UserScramCredentialAlteration_destroy_array(&alteration, 1);
        event = next_event(queue, RD_KAFKA_EVENT_ALTERUSERSCRAMCREDENTIALS_RESULT, RD_KAFKA_RESP_ERR__INVALID_ARG);
        CHECK(rd_kafka_event_AlterUserScramCredentials_result(event) != NULL);
        CHECK(strstr(rd_kafka_event_error_string(event), "password") != NULL);
        rd_kafka_event_destroy(event);
        rd_kafka_ElectLeaders(rk, NULL, NULL, queue);
        rd_kafka_event_destroy(next_event(queue, RD_KAFKA_EVENT_ELECTLEADERS_RESULT, RD_KAFKA_RESP_ERR__INVALID_ARG));
}

int main(int argc, char **argv) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_queue_t *queue;
        rd_kafka_t *rk;
        if (argc < 2)
                return 2;
        set(conf, "bootstrap.servers", argv[1]);
        rk = start(RD_KAFKA_PRODUCER, conf);
        queue = rd_kafka_queue_new(rk);
        rules_are_created(rk, queue);
        rules_are_described(rk, queue);
        rules_are_deleted(rk, queue);
        impossible_rules_are_refused();
        users_are_set_and_deleted(rk, queue);
        leaders_are_elected(rk, queue);
        wrong_arguments_are_events(rk, queue);
        CHECK(rd_kafka_queue_length(queue) == 0);
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(rk);
        return bad != 0;
}
