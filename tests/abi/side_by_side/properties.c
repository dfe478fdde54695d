/* Sets every property of the original to its default, its limits, values beyond them, words in several spellings, invalid
 * and empty values; reads it back, and dumps it.
 *
 * The table is the original's own: the harness writes what rd_kafka_conf_properties_show prints into a file, whose name is in
 * SBS_PROPERTIES. A case is a property in a scope: `global.NAME` or `topic.NAME`. The range of a row decides which values it
 * gets: numbers, words, or text. */
#include "side_by_side.h"

struct property {
        char scope[8], name[64], range[512], initial[256];
};

static struct property properties[400];
static int property_count;

static void trim(char *text) {
        char *from = text + strspn(text, " ");
        size_t length = strlen(from);
        memmove(text, from, length + 1);
        while (length && text[length - 1] == ' ')
                text[--length] = '\0';
}

/* Copies a column of a row. Only the default, the last column that is read, may contain bars: it ends before the column of the importance. */
static int column(const char *row, int number, char *into, size_t room) {
        static const char *const importances[] = {"| low ", "| medium ", "| high "};
        const char *end = NULL;
        int is_default = number == 3;
        size_t i;
        while (number-- > 0) {
                if (!(row = strchr(row, '|')))
                        return 0;
                row++;
        }
        for (i = 0; is_default && !end && i < 3; i++)
                end = strstr(row, importances[i]);
        if (!end && !(end = strchr(row, '|')))
                return 0;
        snprintf(into, room, "%.*s", (int)(end - row), row);
        trim(into);
        return 1;
}

static void run(void);

__attribute__((constructor)) static void read_table(void) {
        const char *path = getenv("SBS_PROPERTIES");
        FILE *file = path ? fopen(path, "r") : NULL;
        char line[8192], scope[8] = "", name[128];
        while (file && fgets(line, sizeof(line), file)) {
                struct property *property = &properties[property_count];
                if (strstr(line, "## Global"))
                        strcpy(scope, "global");
                else if (strstr(line, "## Topic"))
                        strcpy(scope, "topic");
                if (line[0] < 'a' || line[0] > 'z' || !column(line, 0, property->name, sizeof(property->name)) ||
                    !column(line, 2, property->range, sizeof(property->range)) ||
                    !column(line, 3, property->initial, sizeof(property->initial)))
                        continue;
                strcpy(property->scope, scope);
                snprintf(name, sizeof(name), "%s.%s", scope, property->name);
                sbs_register(strdup(name), SBS_PLAIN, run);
                property_count++;
        }
        if (file)
                fclose(file);
}

static const struct property *property;
static int global;

static rd_kafka_conf_res_t get(void *conf, const char *name, char *into, size_t *size) {
        return global ? rd_kafka_conf_get(conf, name, into, size) : rd_kafka_topic_conf_get(conf, name, into, size);
}

static void *new_conf(void) { return global ? (void *)rd_kafka_conf_new() : (void *)rd_kafka_topic_conf_new(); }

static void destroy_conf(void *conf) {
        if (global)
                rd_kafka_conf_destroy(conf);
        else
                rd_kafka_topic_conf_destroy(conf);
}

/* Prints the current value from get, and from the dump if that differs or has none. */
static const char *now(void *conf) {
        static char text[8192];
        char value[4096] = "untouched";
        const char *dumped = NULL;
        size_t size = sizeof(value), count, i;
        rd_kafka_conf_res_t result = get(conf, property->name, value, &size);
        int is_address = result == RD_KAFKA_CONF_OK && !strncmp(value, "0x", 2) && !*property->range;
        const char **dump = global ? rd_kafka_conf_dump(conf, &count) : rd_kafka_topic_conf_dump(conf, &count);
        for (i = 0; i + 1 < count; i += 2)
                if (!strcmp(dump[i], property->name))
                        dumped = dump[i + 1];
        if (is_address)
                snprintf(text, sizeof(text), "get OK an address");
        else if (result != RD_KAFKA_CONF_OK)
                /* The size of a missing value is undefined. */
                snprintf(text, sizeof(text), "get %s %s", conf_res(result), quoted(value));
        else
                snprintf(text, sizeof(text), "get OK %s size %zu", quoted(value), size);
        if (!dumped != (result != RD_KAFKA_CONF_OK) || (dumped && !is_address && strcmp(dumped, value)))
                snprintf(text + strlen(text), sizeof(text) - strlen(text), " dump %s", quoted(dumped));
        rd_kafka_conf_dump_free(dump, count);
        return text;
}

/* The value of a new configuration, as now() prints it. */
static char initial_value[8192];

/* Prints the current value, unless it is the one that the case has printed as the default. */
static const char *changed(void *conf) {
        const char *text = now(conf);
        return strcmp(text, initial_value) ? text : "as the default";
}

static rd_kafka_conf_res_t set_it(void *conf, const char *value, char *errstr, size_t size) {
        return global ? rd_kafka_conf_set(conf, property->name, value, errstr, size)
                      : rd_kafka_topic_conf_set(conf, property->name, value, errstr, size);
}

static void try_value(const char *value) {
        void *conf = new_conf();
        char errstr[512] = "";
        rd_kafka_conf_res_t result = set_it(conf, value, errstr, sizeof(errstr));
        say("%s: %s, text %s; %s", quoted(value), conf_res(result), present(errstr), changed(conf));
        destroy_conf(conf);
}

static void try_number(long long number) {
        char value[32];
        snprintf(value, sizeof(value), "%lld", number);
        try_value(value);
}

/* Sets one value after another. */
static void try_after(const char *first, const char *second) {
        void *conf = new_conf();
        char errstr[512] = "";
        rd_kafka_conf_res_t result;
        set_it(conf, first, errstr, sizeof(errstr));
        errstr[0] = '\0';
        result = set_it(conf, second, errstr, sizeof(errstr));
        say("%s after %s: %s, text %s; %s", quoted(second), quoted(first), conf_res(result), present(errstr), changed(conf));
        destroy_conf(conf);
}

static void try_values(const char *const *values) {
        for (; *values; values++)
                try_value(*values);
}

static void try_numbers(long long low, long long high) {
        static const char *const spellings[] = {"abc",  " ",   "true",  "0",  "-1",   "0x64",  "0X64",  "0x",   "010",
                                                "100 ", " 100", "+100", "--1", "- 1", "1.5", "100.0", ".5",  "1e3",  "100k",
                                                "2147483647",  "2147483648", "99999999999999999999", NULL};
        char value[32];
        try_number(low);
        try_number(high);
        try_number(low - 1);
        try_number(high + 1);
        try_values(spellings);
        snprintf(value, sizeof(value), "%lld", high);
        try_after(value, "");
        try_after(value, "abc");
        try_after(value, NULL);
}

static void try_words(void) {
        static const char *const spellings[] = {"no-such-value", "0", "1", "2", "-1", "t", "f", "T", "yes", "none", "all",
                                                " ", ",", ".", " true", "true ", "none,none", "true,false", NULL};
        char words[512], upper[512], last[64] = "", first[64] = "", value[256], *word;
        int i;
        strcpy(words, property->range);
        for (word = strtok(words, ","); word; word = strtok(NULL, ",")) {
                trim(word);
                try_value(word);
                for (i = 0; word[i]; i++)
                        upper[i] = word[i] >= 'a' && word[i] <= 'z' ? word[i] - 32 : word[i];
                upper[i] = '\0';
                try_value(upper);
                snprintf(*first ? last : first, sizeof(first), "%s", word);
        }
        try_values(spellings);
#define SPELLED(...)                                                                                                           \
        snprintf(value, sizeof(value), __VA_ARGS__);                                                                           \
        try_value(value)
        SPELLED(" %s", first);
        SPELLED("%s ", first);
        SPELLED("%s,", first);
        SPELLED(",%s", first);
        SPELLED("+%s", first);
        SPELLED("-%s", first);
        SPELLED("%s,%s", first, last);
        SPELLED("%s, %s", last, first);
        SPELLED("%s,,%s", first, last);
        SPELLED("%s,-%s", first, first);
        SPELLED("%s,no-such-value", first);
        SPELLED("no-such-value,%s", first);
        try_after(last, first);
        try_after(last, "");
        try_after(last, "no-such-value");
        try_after(last, NULL);
        try_after(last, " ");
}

static void try_texts(void) {
        static const char *const texts[] = {"some text", "a,b", "1", "-1", "true", " ", "   ", ",", " x", "x ", "\tx\t", "\xc3\xa4",
                                            "[", "a:1,,b:2", ",a", "host/path:1", "a:1/path", "SSL://a:9093", "plaintext://a",
                                            "http://a", "a:0", "a:x", "host name:1", "[::1]:9", "a=b", "0.9.0", "0.8.2.2",
                                            "PLAIN", "GSSAPI", "SCRAM-SHA-512", "plain", "0x64", "murmur2",
                                            "Murmur2", "murmur2 ", " murmur2", "range,roundrobin", NULL};
        try_values(texts);
        try_after("x", "");
        try_after("x", NULL);
        try_after("x", "y");
}

/* A function of the application, for properties that take one; it is never called. */
static void application_function(void) {}

/* Sets a property that takes a function or a pointer through its call; returns 0 if there is no such call. */
static int set_by_call(void *conf, const char *name, void *pointer) {
        if (!strcmp(name, "opaque")) {
                if (global)
                        rd_kafka_conf_set_opaque(conf, pointer);
                else
                        rd_kafka_topic_conf_set_opaque(conf, pointer);
                return 1;
        }
#define BY_CALL(property_name, call)                                                                                           \
        if (!strcmp(name, property_name)) {                                                                                    \
                void (*setter)(void *, void *) = (void (*)(void *, void *))(call);                                             \
                setter(conf, pointer);                                                                                         \
                return 1;                                                                                                      \
        }
        BY_CALL("dr_cb", rd_kafka_conf_set_dr_cb)
        BY_CALL("dr_msg_cb", rd_kafka_conf_set_dr_msg_cb)
        BY_CALL("consume_cb", rd_kafka_conf_set_consume_cb)
        BY_CALL("rebalance_cb", rd_kafka_conf_set_rebalance_cb)
        BY_CALL("offset_commit_cb", rd_kafka_conf_set_offset_commit_cb)
        BY_CALL("error_cb", rd_kafka_conf_set_error_cb)
        BY_CALL("throttle_cb", rd_kafka_conf_set_throttle_cb)
        BY_CALL("log_cb", rd_kafka_conf_set_log_cb)
        BY_CALL("stats_cb", rd_kafka_conf_set_stats_cb)
        BY_CALL("background_event_cb", rd_kafka_conf_set_background_event_cb)
        BY_CALL("socket_cb", rd_kafka_conf_set_socket_cb)
        BY_CALL("connect_cb", rd_kafka_conf_set_connect_cb)
        BY_CALL("closesocket_cb", rd_kafka_conf_set_closesocket_cb)
        BY_CALL("open_cb", rd_kafka_conf_set_open_cb)
        BY_CALL("resolve_cb", rd_kafka_conf_set_resolve_cb)
        BY_CALL("partitioner_cb", rd_kafka_topic_conf_set_partitioner_cb)
        BY_CALL("msg_order_cmp", rd_kafka_topic_conf_set_msg_order_cmp)
        return 0;
}

/* Sets a function or a pointer through its call, reads back its address, and resets it. */
static void try_call(void) {
        void *conf = new_conf(), *pointer = (void *)application_function;
        char value[64] = "", address[64];
        size_t size = sizeof(value);
        if (set_by_call(conf, property->name, pointer)) {
                snprintf(address, sizeof(address), "%p", pointer);
                say("by call: %s", now(conf));
                get(conf, property->name, value, &size);
                say("address %s size %s", strcmp(value, address) ? "another" : "right",
                    size == strlen(address) + 1 ? "right" : "wrong");
                set_by_call(conf, property->name, NULL);
                say("NULL by call: %s", now(conf));
        }
        destroy_conf(conf);
}

static void run(void) {
        long long low, high;
        void *conf;
        int i;
        global = !strncmp(case_name, "global.", 7);
        for (i = 0; i < property_count; i++)
                if (!strcmp(properties[i].scope, global ? "global" : "topic") &&
                    !strcmp(properties[i].name, strchr(case_name, '.') + 1))
                        property = &properties[i];
        conf = new_conf();
        snprintf(initial_value, sizeof(initial_value), "%s", now(conf));
        say("default: %s", initial_value);
        destroy_conf(conf);
        try_value(property->initial);
        try_value("");
        try_value(NULL);
        if (sscanf(property->range, "%lld .. %lld", &low, &high) == 2)
                try_numbers(low, high);
        else if (*property->range)
                try_words();
        else {
                try_call();
                try_texts();
        }
}
