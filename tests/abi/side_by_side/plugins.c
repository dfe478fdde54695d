/* Plug-ins: loading, their properties, and copies of configurations with them. */
#include "side_by_side.h"

/* A configuration with the plug-in of this folder. */
static rd_kafka_conf_t *with_plugin(void) {
        rd_kafka_conf_t *conf = conf_of("bootstrap.servers", DEAD, "plugin.library.paths", getenv("SBS_PLUGIN"), NULL);
        rd_kafka_conf_set_error_cb(conf, NULL);
        return conf;
}

static void say_set(rd_kafka_conf_t *conf, const char *name, const char *value) {
        char errstr[512] = "";
        rd_kafka_conf_res_t result = rd_kafka_conf_set(conf, name, value, errstr, sizeof(errstr));
        say("%s=%s: %s text %s", name, value, conf_res(result), present(errstr));
}

static void say_get(const rd_kafka_conf_t *conf, const char *name) {
        char value[512] = "";
        size_t size = sizeof(value);
        rd_kafka_conf_res_t result = rd_kafka_conf_get(conf, name, value, &size);
        say("get %s: %s %s", name, conf_res(result), strcmp(name, "plugin.library.paths") ? quoted(value) : present(value));
}

/* Creates a client, sends a message through it and destroys it. */
static void use(rd_kafka_conf_t *conf) {
        rd_kafka_t *rk = producer_of(conf);
        rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_VALUE("x", 1), RD_KAFKA_V_END);
        rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE);
        say("flush %s", err(rd_kafka_flush(rk, TIMEOUT_MS)));
        rd_kafka_destroy(rk);
}

CASE(properties_of_a_plugin) {
        rd_kafka_conf_t *conf = with_plugin();
        say_set(conf, "plug.word", "one");
        say_set(conf, "plug.word", "two");
        say_set(conf, "plug.bad", "x");
        say_set(conf, "plug.unknown", "x");
        say_get(conf, "plug.word");
        say_get(conf, "plugin.library.paths");
        use(conf);
}

CASE(configuration_that_is_destroyed) {
        rd_kafka_conf_t *conf = with_plugin();
        say_set(conf, "plug.word", "one");
        rd_kafka_conf_destroy(conf);
}

CASE(copy_takes_the_properties_again) {
        rd_kafka_conf_t *conf = with_plugin(), *copy;
        say_set(conf, "plug.word", "one");
        say_set(conf, "linger.ms", "7");
        copy = rd_kafka_conf_dup(conf);
        say("copied");
        say_set(copy, "plug.word", "two");
        rd_kafka_conf_destroy(conf);
        say("the first is gone");
        use(copy);
}

CASE(copy_of_a_copy) {
        rd_kafka_conf_t *conf = with_plugin(), *copy, *last;
        say_set(conf, "plug.word", "one");
        copy = rd_kafka_conf_dup(conf);
        last = rd_kafka_conf_dup(copy);
        rd_kafka_conf_destroy(copy);
        rd_kafka_conf_destroy(conf);
        use(last);
}

CASE(filtered_copies) {
        static const char *of_plugin[] = {"plug."}, *of_library[] = {"plugin.library.paths"}, *of_both[] = {"plug", "linger"};
        rd_kafka_conf_t *conf = with_plugin(), *copy;
        say_set(conf, "plug.word", "one");
        copy = rd_kafka_conf_dup_filter(conf, 1, of_plugin);
        say("copied without its properties");
        rd_kafka_conf_destroy(copy);
        copy = rd_kafka_conf_dup_filter(conf, 1, of_library);
        say("copied without the library");
        say_set(copy, "plug.word", "two");
        rd_kafka_conf_destroy(copy);
        copy = rd_kafka_conf_dup_filter(conf, 2, of_both);
        say("copied without both");
        say_set(copy, "plug.word", "three");
        rd_kafka_conf_destroy(copy);
        rd_kafka_conf_destroy(conf);
}

CASE(client_of_a_copy_while_the_first_is_used) {
        rd_kafka_conf_t *conf = with_plugin(), *copy;
        say_set(conf, "plug.word", "one");
        copy = rd_kafka_conf_dup(conf);
        say_set(copy, "plug.word", "two");
        use(conf);
        use(copy);
}

CASE(libraries_that_do_not_load) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        say_set(conf, "plugin.library.paths", "/no/such/library");
        say_set(conf, "plugin.library.paths", "");
        say_get(conf, "plugin.library.paths");
        rd_kafka_conf_destroy(conf);
}

CRASH_CASE(one_of_two_libraries_that_does_not_load) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        char both[1200];
        snprintf(both, sizeof(both), "%s;/no/such/library", getenv("SBS_PLUGIN"));
        say("one of two: %s", conf_res(rd_kafka_conf_set(conf, "plugin.library.paths", both, NULL, 0)));
        rd_kafka_conf_destroy(conf);
}

CASE(library_without_the_entry) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        say_set(conf, "plugin.library.paths", "libm.so.6");
        rd_kafka_conf_destroy(conf);
}

CASE(library_named_twice) {
        rd_kafka_conf_t *conf = with_plugin();
        char twice[1200];
        say("again: %s", conf_res(rd_kafka_conf_set(conf, "plugin.library.paths", getenv("SBS_PLUGIN"), NULL, 0)));
        snprintf(twice, sizeof(twice), "%s;%s", getenv("SBS_PLUGIN"), getenv("SBS_PLUGIN"));
        say("twice: %s", conf_res(rd_kafka_conf_set(conf, "plugin.library.paths", twice, NULL, 0)));
        say_set(conf, "plug.word", "one");
        rd_kafka_conf_destroy(conf);
}
