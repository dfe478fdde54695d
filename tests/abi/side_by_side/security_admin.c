/* Administration of access control lists, SCRAM users and leaders: what is refused, and what brokers respond. */
#include "side_by_side.h"

typedef rd_kafka_topic_partition_list_t list_t;

static rd_kafka_t *client(void) { return producer_of(conf_of("bootstrap.servers", bootstrap(), NULL)); }

/* A client of brokers with an authorizer whose super user it is. */
static rd_kafka_t *super_user(void) {
        static struct brokers brokers;
        if (getenv("OTTLA_BOOTSTRAP"))
                return client();
        brokers = brokers_start("--port 0 --partitions 2 --super-user ANONYMOUS");
        setenv("SBS_BOOTSTRAP", brokers.servers, 1);
        return producer_of(conf_of("bootstrap.servers", brokers.servers, NULL));
}

static rd_kafka_event_t *result_of(rd_kafka_queue_t *queue) {
        rd_kafka_event_t *event;
        UNTIL((event = rd_kafka_queue_poll(queue, 100)), (void)0);
        say("event %s error %s text %s", rd_kafka_event_name(event), err(rd_kafka_event_error(event)), present(rd_kafka_event_error_string(event)));
        return event;
}

static const char *shown(const rd_kafka_error_t *error) {
        static __thread char buffers[4][128];
        static __thread int next;
        char *buffer = buffers[next++ % 4];
        if (!error)
                return "NULL";
        snprintf(buffer, sizeof(buffers[0]), "%s text %s", rd_kafka_error_name(error), present(rd_kafka_error_string(error)));
        return buffer;
}

static void say_acl(const rd_kafka_AclBinding_t *acl) {
        say("  %d %s %s for %s from %s: %s %s, error %s", rd_kafka_AclBinding_restype(acl), quoted(rd_kafka_AclBinding_name(acl)),
            rd_kafka_ResourcePatternType_name(rd_kafka_AclBinding_resource_pattern_type(acl)),
            quoted(rd_kafka_AclBinding_principal(acl)), quoted(rd_kafka_AclBinding_host(acl)),
            rd_kafka_AclOperation_name(rd_kafka_AclBinding_operation(acl)),
            rd_kafka_AclPermissionType_name(rd_kafka_AclBinding_permission_type(acl)), shown(rd_kafka_AclBinding_error(acl)));
}

/* ---- Access control lists ---- */

static rd_kafka_AclBinding_t *rule(const char *name, int pattern, const char *principal) {
        char errstr[128] = "";
        rd_kafka_AclBinding_t *acl = rd_kafka_AclBinding_new(RD_KAFKA_RESOURCE_TOPIC, name, pattern, principal, "*",
                                                             RD_KAFKA_ACL_OPERATION_READ, RD_KAFKA_ACL_PERMISSION_TYPE_ALLOW, errstr, sizeof(errstr));
        if (!acl)
                say("no rule: %s", errstr);
        return acl;
}

static rd_kafka_AclBindingFilter_t *filter(const char *name, int pattern) {
        return rd_kafka_AclBindingFilter_new(RD_KAFKA_RESOURCE_TOPIC, name, pattern, NULL, NULL, RD_KAFKA_ACL_OPERATION_ANY, RD_KAFKA_ACL_PERMISSION_TYPE_ANY, NULL, 0);
}

static void create(rd_kafka_t *rk, rd_kafka_AclBinding_t **acls, size_t count) {
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
        rd_kafka_event_t *event;
        const rd_kafka_CreateAcls_result_t *result;
        const rd_kafka_acl_result_t **results;
        size_t i, given = 0;
        rd_kafka_CreateAcls(rk, acls, count, NULL, queue);
        event = result_of(queue);
        if ((result = rd_kafka_event_CreateAcls_result(event)) && !rd_kafka_event_error(event)) {
                results = rd_kafka_CreateAcls_result_acls(result, &given);
                say("results: %zu", given);
                for (i = 0; i < given; i++)
                        say("  error %s", shown(rd_kafka_acl_result_error(results[i])));
        }
        rd_kafka_event_destroy(event);
        rd_kafka_queue_destroy(queue);
}

static void describe(rd_kafka_t *rk, rd_kafka_AclBindingFilter_t *wanted) {
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
        rd_kafka_event_t *event;
        const rd_kafka_DescribeAcls_result_t *result;
        const rd_kafka_AclBinding_t **acls;
        size_t i, count = 0;
        rd_kafka_DescribeAcls(rk, wanted, NULL, queue);
        event = result_of(queue);
        if ((result = rd_kafka_event_DescribeAcls_result(event)) && !rd_kafka_event_error(event)) {
                acls = rd_kafka_DescribeAcls_result_acls(result, &count);
                say("rules: %zu", count);
                for (i = 0; i < count; i++)
                        say_acl(acls[i]);
        }
        rd_kafka_event_destroy(event);
        rd_kafka_queue_destroy(queue);
}

static void delete(rd_kafka_t *rk, rd_kafka_AclBindingFilter_t **filters, size_t count) {
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
        rd_kafka_event_t *event;
        const rd_kafka_DeleteAcls_result_t *result;
        const rd_kafka_DeleteAcls_result_response_t **responses;
        const rd_kafka_AclBinding_t **acls;
        size_t i, k, given = 0, matching = 0;
        rd_kafka_DeleteAcls(rk, filters, count, NULL, queue);
        event = result_of(queue);
        if ((result = rd_kafka_event_DeleteAcls_result(event)) && !rd_kafka_event_error(event)) {
                responses = rd_kafka_DeleteAcls_result_responses(result, &given);
                say("responses: %zu", given);
                for (i = 0; i < given; i++) {
                        acls = rd_kafka_DeleteAcls_result_response_matching_acls(responses[i], &matching);
                        say(" error %s, matching %zu", shown(rd_kafka_DeleteAcls_result_response_error(responses[i])), matching);
                        for (k = 0; k < matching; k++)
                                say_acl(acls[k]);
                }
        }
        rd_kafka_event_destroy(event);
        rd_kafka_queue_destroy(queue);
}

BROKER_CASE(rules_of_an_authorizer) {
        rd_kafka_t *rk = super_user();
        const char *name = topic_name("acl");
        rd_kafka_AclBinding_t *acls[3];
        rd_kafka_AclBindingFilter_t *filters[2];
        acls[0] = rule(name, RD_KAFKA_RESOURCE_PATTERN_LITERAL, "User:bob");
        acls[1] = rule(name, RD_KAFKA_RESOURCE_PATTERN_LITERAL, "bob");
        acls[2] = rule(name, RD_KAFKA_RESOURCE_PATTERN_PREFIXED, "User:eve");
        say_acl(acls[2]);
        create(rk, acls, 3);
        say("-- again");
        create(rk, acls, 1);
        filters[0] = filter(name, RD_KAFKA_RESOURCE_PATTERN_ANY);
        filters[1] = filter(name, RD_KAFKA_RESOURCE_PATTERN_MATCH);
        say("-- described");
        describe(rk, filters[0]);
        describe(rk, filters[1]);
        describe(rk, acls[2]);
        say("-- deleted");
        delete (rk, filters, 2);
        delete (rk, filters, 1);
        describe(rk, filters[0]);
        rd_kafka_AclBinding_destroy_array(acls, 3);
        rd_kafka_AclBinding_destroy(filters[0]);
        rd_kafka_AclBinding_destroy(filters[1]);
        rd_kafka_destroy(rk);
}

BROKER_CASE(rules_without_an_authorizer) {
        rd_kafka_t *rk = client();
        rd_kafka_AclBinding_t *acl = rule("t", RD_KAFKA_RESOURCE_PATTERN_LITERAL, "User:bob");
        rd_kafka_AclBindingFilter_t *all = filter(NULL, RD_KAFKA_RESOURCE_PATTERN_ANY);
        create(rk, &acl, 1);
        describe(rk, all);
        delete (rk, &all, 1);
        rd_kafka_AclBinding_destroy(acl);
        rd_kafka_AclBinding_destroy(all);
        rd_kafka_destroy(rk);
}

/* Prints what becomes of a rule, and of a filter, with these values. */
static void attempt(const char *label, int type, const char *name, int pattern, const char *principal, const char *host, int operation, int permission) {
        char errstr[128] = "";
        rd_kafka_AclBinding_t *acl = rd_kafka_AclBinding_new(type, name, pattern, principal, host, operation, permission, errstr, sizeof(errstr));
        say("%s: rule %s \"%s\"", label, acl ? "present" : "NULL", errstr);
        if (acl)
                rd_kafka_AclBinding_destroy(acl);
        *errstr = '\0';
        acl = rd_kafka_AclBindingFilter_new(type, name, pattern, principal, host, operation, permission, errstr, sizeof(errstr));
        say("%s: filter %s \"%s\"", label, acl ? "present" : "NULL", errstr);
        if (acl) {
                say_acl(acl);
                rd_kafka_AclBinding_destroy(acl);
        }
}

CASE(values_of_rules_and_filters) {
        attempt("right", 2, "t", 3, "User:a", "*", 3, 3);
        attempt("no name", 2, NULL, 3, "User:a", "*", 3, 3);
        attempt("no principal", 2, "t", 3, NULL, "*", 3, 3);
        attempt("no host", 2, "t", 3, "User:a", NULL, 3, 3);
        attempt("empty texts", 2, "", 3, "", "", 3, 3);
        attempt("type 0", 0, "t", 3, "User:a", "*", 3, 3);
        attempt("type any", 1, "t", 3, "User:a", "*", 3, 3);
        attempt("type 5", 5, "t", 3, "User:a", "*", 3, 3);
        attempt("type 6", 6, "t", 3, "User:a", "*", 3, 3);
        attempt("pattern 0", 2, "t", 0, "User:a", "*", 3, 3);
        attempt("pattern any", 2, "t", 1, "User:a", "*", 3, 3);
        attempt("pattern match", 2, "t", 2, "User:a", "*", 3, 3);
        attempt("pattern 5", 2, "t", 5, "User:a", "*", 3, 3);
        attempt("operation 0", 2, "t", 3, "User:a", "*", 0, 3);
        attempt("operation any", 2, "t", 3, "User:a", "*", 1, 3);
        attempt("operation 13", 2, "t", 3, "User:a", "*", 13, 3);
        attempt("permission 0", 2, "t", 3, "User:a", "*", 3, 0);
        attempt("permission any", 2, "t", 3, "User:a", "*", 3, 1);
        attempt("permission 4", 2, "t", 3, "User:a", "*", 3, 4);
        attempt("everything wrong", -1, NULL, -1, NULL, NULL, -1, -1);
}

CASE(names_of_enumerations) {
        int i;
        for (i = -1; i < 15; i++)
                say("%d: %s %s %s", i, rd_kafka_ResourcePatternType_name(i), rd_kafka_AclOperation_name(i), rd_kafka_AclPermissionType_name(i));
}

CASE(security_results_of_no_event) {
        misuse("results of NULL") {
                say("%s %s %s", present((const char *)rd_kafka_event_CreateAcls_result(NULL)), present((const char *)rd_kafka_event_DescribeAcls_result(NULL)), present((const char *)rd_kafka_event_DeleteAcls_result(NULL)));
                say("%s %s %s", present((const char *)rd_kafka_event_DescribeUserScramCredentials_result(NULL)), present((const char *)rd_kafka_event_AlterUserScramCredentials_result(NULL)), present((const char *)rd_kafka_event_ElectLeaders_result(NULL)));
        }
        misuse("AclBinding_name(NULL)") say("%s", quoted(rd_kafka_AclBinding_name(NULL)));
        misuse("AclBinding_destroy(NULL)") rd_kafka_AclBinding_destroy(NULL);
        misuse("UserScramCredentialDeletion_new(NULL)") say("%s", rd_kafka_UserScramCredentialDeletion_new(NULL, RD_KAFKA_SCRAM_MECHANISM_SHA_256) ? "present" : "NULL");
}

/* ---- Users ---- */

typedef rd_kafka_UserScramCredentialAlteration_t alteration_t;

static alteration_t *upsertion(const char *user, int mechanism, int iterations, const char *password) {
        return rd_kafka_UserScramCredentialUpsertion_new(user, mechanism, iterations, (const unsigned char *)password, strlen(password), NULL, 0);
}

static void alter(rd_kafka_t *rk, alteration_t **alterations, size_t count) {
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
        rd_kafka_event_t *event;
        const rd_kafka_AlterUserScramCredentials_result_t *result;
        const rd_kafka_AlterUserScramCredentials_result_response_t **responses;
        size_t i, given = 0;
        rd_kafka_AlterUserScramCredentials(rk, alterations, count, NULL, queue);
        event = result_of(queue);
        if ((result = rd_kafka_event_AlterUserScramCredentials_result(event)) && !rd_kafka_event_error(event)) {
                responses = rd_kafka_AlterUserScramCredentials_result_responses(result, &given);
                say("responses: %zu", given);
                for (i = 0; i < given; i++)
                        say("  %s error %s", rd_kafka_AlterUserScramCredentials_result_response_user(responses[i]), shown(rd_kafka_AlterUserScramCredentials_result_response_error(responses[i])));
        }
        rd_kafka_event_destroy(event);
        rd_kafka_queue_destroy(queue);
        if (count)
                rd_kafka_UserScramCredentialAlteration_destroy_array(alterations, count);
}

static void users(rd_kafka_t *rk, const char **names, size_t count) {
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
        rd_kafka_event_t *event;
        const rd_kafka_DescribeUserScramCredentials_result_t *result;
        const rd_kafka_UserScramCredentialsDescription_t **all;
        const rd_kafka_ScramCredentialInfo_t *info;
        size_t i, k, given = 0;
        rd_kafka_DescribeUserScramCredentials(rk, names, count, NULL, queue);
        event = result_of(queue);
        if ((result = rd_kafka_event_DescribeUserScramCredentials_result(event)) && !rd_kafka_event_error(event)) {
                all = rd_kafka_DescribeUserScramCredentials_result_descriptions(result, &given);
                say("users: %zu", given);
                for (i = 0; i < given; i++) {
                        say("  %s error %s", rd_kafka_UserScramCredentialsDescription_user(all[i]), shown(rd_kafka_UserScramCredentialsDescription_error(all[i])));
                        for (k = 0; k < rd_kafka_UserScramCredentialsDescription_scramcredentialinfo_count(all[i]); k++) {
                                info = rd_kafka_UserScramCredentialsDescription_scramcredentialinfo(all[i], k);
                                say("    mechanism %d iterations %d", rd_kafka_ScramCredentialInfo_mechanism(info), rd_kafka_ScramCredentialInfo_iterations(info));
                        }
                }
        }
        rd_kafka_event_destroy(event);
        rd_kafka_queue_destroy(queue);
}

BROKER_CASE(scram_users) {
        rd_kafka_t *rk = client();
        const char *name = topic_name("scram-a"), *other = topic_name("scram-b"), *names[2];
        alteration_t *alterations[2];
        names[0] = name;
        names[1] = other;
        say("-- set");
        alterations[0] = upsertion(name, RD_KAFKA_SCRAM_MECHANISM_SHA_256, 4096, "secret");
        alterations[1] = upsertion(name, RD_KAFKA_SCRAM_MECHANISM_SHA_512, 8192, "secret");
        alter(rk, alterations, 2);
        users(rk, names, 1);
        say("-- unknown");
        users(rk, names, 2);
        say("-- refused by the broker");
        alterations[0] = upsertion(other, RD_KAFKA_SCRAM_MECHANISM_SHA_256, 100, "secret");
        alter(rk, alterations, 1);
        alterations[0] = upsertion(other, RD_KAFKA_SCRAM_MECHANISM_SHA_256, 16385, "secret");
        alter(rk, alterations, 1);
        alterations[0] = rd_kafka_UserScramCredentialDeletion_new(other, RD_KAFKA_SCRAM_MECHANISM_SHA_256);
        alter(rk, alterations, 1);
        say("-- twice");
        alterations[0] = rd_kafka_UserScramCredentialDeletion_new(name, RD_KAFKA_SCRAM_MECHANISM_SHA_256);
        alterations[1] = upsertion(name, RD_KAFKA_SCRAM_MECHANISM_SHA_256, 4096, "secret");
        alter(rk, alterations, 2);
        names[1] = name;
        users(rk, names, 2);
        say("-- deleted");
        alterations[0] = rd_kafka_UserScramCredentialDeletion_new(name, RD_KAFKA_SCRAM_MECHANISM_SHA_256);
        alterations[1] = rd_kafka_UserScramCredentialDeletion_new(name, RD_KAFKA_SCRAM_MECHANISM_SHA_512);
        alter(rk, alterations, 2);
        users(rk, names, 1);
        rd_kafka_destroy(rk);
}

BROKER_CASE(wrong_alterations_of_users) {
        rd_kafka_t *rk = client();
        const char *empty[] = {"a", ""};
        alteration_t *alteration;
        alter(rk, NULL, 0);
        alteration = upsertion("", RD_KAFKA_SCRAM_MECHANISM_SHA_256, 4096, "secret");
        alter(rk, &alteration, 1);
        alteration = upsertion("u", RD_KAFKA_SCRAM_MECHANISM_UNKNOWN, 4096, "secret");
        alter(rk, &alteration, 1);
        alteration = upsertion("u", RD_KAFKA_SCRAM_MECHANISM_SHA_256, 0, "secret");
        alter(rk, &alteration, 1);
        alteration = upsertion("u", RD_KAFKA_SCRAM_MECHANISM_SHA_256, 4096, "");
        alter(rk, &alteration, 1);
        rd_kafka_UserScramCredentialAlteration_destroy(upsertion("u", RD_KAFKA_SCRAM_MECHANISM_SHA_256, 4096, "secret"));
        users(rk, empty, 2);
        rd_kafka_destroy(rk);
}

/* ---- Elections ---- */

static void create_topic(rd_kafka_t *rk, const char *name, int partitions) {
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
        rd_kafka_NewTopic_t *topic = rd_kafka_NewTopic_new(name, partitions, 1, NULL, 0);
        rd_kafka_CreateTopics(rk, &topic, 1, NULL, queue);
        rd_kafka_event_destroy(result_of(queue));
        rd_kafka_NewTopic_destroy(topic);
        rd_kafka_queue_destroy(queue);
}

static void elect(rd_kafka_t *rk, int type, list_t *list) {
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
        rd_kafka_ElectLeaders_t *election = rd_kafka_ElectLeaders_new(type, list);
        rd_kafka_event_t *event;
        const rd_kafka_ElectLeaders_result_t *result;
        const rd_kafka_topic_partition_result_t **results;
        size_t i, count = 0;
        rd_kafka_ElectLeaders(rk, election, NULL, queue);
        rd_kafka_ElectLeaders_destroy(election);
        event = result_of(queue);
        if ((result = rd_kafka_event_ElectLeaders_result(event)) && !rd_kafka_event_error(event)) {
                results = rd_kafka_ElectLeaders_result_partitions(result, &count);
                say("partitions: %zu", count);
                for (i = 0; i < count; i++) {
                        const rd_kafka_topic_partition_t *one = rd_kafka_topic_partition_result_partition(results[i]);
                        say("  %s [%d] %s error %s", one->topic, one->partition, err(one->err), shown(rd_kafka_topic_partition_result_error(results[i])));
                }
        }
        rd_kafka_event_destroy(event);
        rd_kafka_queue_destroy(queue);
}

BROKER_CASE(elections) {
        rd_kafka_t *rk = client();
        const char *topic = topic_name("el");
        list_t *list = rd_kafka_topic_partition_list_new(3);
        create_topic(rk, topic, 2);
        say("-- all");
        elect(rk, RD_KAFKA_ELECTION_TYPE_PREFERRED, NULL);
        say("-- not needed, and unknown");
        rd_kafka_topic_partition_list_add(list, topic, 1);
        rd_kafka_topic_partition_list_add(list, topic, 9);
        elect(rk, RD_KAFKA_ELECTION_TYPE_PREFERRED, list);
        elect(rk, RD_KAFKA_ELECTION_TYPE_UNCLEAN, list);
        say("-- a partition twice");
        rd_kafka_topic_partition_list_add(list, topic, 1);
        elect(rk, RD_KAFKA_ELECTION_TYPE_PREFERRED, list);
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_destroy(rk);
}
