/* From the words of a step to the arguments of a call, and from out parameters to text and handles. */
#include "runner.h"
#include <fcntl.h>

long number(const char *word) { return (long)strtoull(word, NULL, 0); }

/* Returns the text between quotes, with \n, \\, \" and \xHH; NULL for another word. */
char *unquoted(const char *word, size_t *size) {
        char *text, *into;
        *size = 0;
        if (*word != '"')
                return NULL;
        text = into = malloc(strlen(word) + 1);
        for (word++; *word && *word != '"'; word++) {
                if (*word == '\\' && word[1] == 'x') {
                        char hex[3] = {word[2], word[3], 0};
                        *into++ = (char)strtol(hex, NULL, 16);
                        word += 3;
                } else if (*word == '\\' && word[1]) {
                        word++;
                        *into++ = *word == 'n' ? '\n' : *word;
                } else
                        *into++ = *word;
        }
        *into = 0;
        *size = into - text;
        return text;
}

static void value(struct call *call, long value) { call->values[call->value_count++] = value; }

/* Divides `[a,b]` into words; `NULL` is an array that does not exist. */
static int elements(char *word, char **into, int room) {
        char *rest, *next;
        int count = 0;
        if (*word != '[')
                return strcmp(word, "NULL") ? 0 : -1;
        word = strdup(word);
        word[strcspn(word, "]")] = 0;
        for (next = strtok_r(word + 1, ",", &rest); next && count < room; next = strtok_r(NULL, ",", &rest))
                into[count++] = next;
        return count;
}

/* The flag % permits what a client's `rd_kafka_conf` returns, which is constant. */
static int is_of_kind(const struct slot *slot, const struct parameter *parameter) {
        return slot->kind == parameter->kind || (parameter->flag == '%' && slot->kind == kind_named("conf_view"));
}

static int handle_read(struct call *call, int at, const struct parameter *parameter, const char *word, char *why, size_t room) {
        struct slot *slot;
        if (!strcmp(word, "NULL")) {
                value(call, 0);
                return 1;
        }
        slot = slot_find(word);
        if (!slot || !is_of_kind(slot, parameter) || !slot_usable(slot)) {
                snprintf(why, room, "no %s", word);
                return 0;
        }
        if (strchr("!^", parameter->flag) && (!slot->is_owned || slot_is_busy(slot))) {
                snprintf(why, room, "%s is in use", word);
                return 0;
        }
        call->slots[at] = slot;
        if (call->first < 0)
                call->first = slot_index(slot);
        if (call->root < 0)
                call->root = strcmp(kinds[slot->kind].name, "client") && strcmp(kinds[slot->kind].name, "share")
                                 ? slot->root
                                 : slot_index(slot);
        value(call, (long)slot->pointer);
        return 1;
}

/* An array of handles, texts or numbers, and its length. */
static int array_read(struct call *call, int at, const struct parameter *parameter, char *word, char *why, size_t room) {
        char *words[16];
        int i, count = elements(word, words, 16);
        long *array = calloc(17, sizeof(long));
        call->buffers[at] = array;
        for (i = 0; i < count; i++) {
                size_t size;
                if (!strcmp(parameter->code, "as"))
                        array[i] = (long)unquoted(words[i], &size);
                else if (!strcmp(parameter->code, "ai"))
                        ((int32_t *)array)[i] = (int32_t)number(words[i]);
                else {
                        struct slot *slot = slot_find(words[i]);
                        if (!slot || slot->kind != parameter->kind || !slot_usable(slot) ||
                            (parameter->flag == '!' && !slot->is_owned)) {
                                snprintf(why, room, "no %s", words[i]);
                                return 0;
                        }
                        array[i] = (long)slot->pointer;
                        if (parameter->flag == '!')
                                slot_forget(slot);
                }
        }
        /* The flag < stands for a length in front. */
        if (parameter->flag == '<')
                value(call, count < 0 ? 0 : count);
        value(call, count < 0 ? 0 : (long)array);
        if (parameter->flag != '<')
                value(call, count < 0 ? 0 : count);
        return 1;
}

/* A file that takes what is written to it. */
static FILE *sink(void) {
        static FILE *file;
        if (!file)
                file = fopen("/dev/null", "w");
        return file;
}

/* The writing end of a pipe, for events of queues. */
static int pipe_end(void) {
        static int ends[2];
        if (!ends[1] && pipe2(ends, O_NONBLOCK | O_CLOEXEC))
                _exit(4);
        return ends[1];
}

/* Reads an argument that one word describes. */
static int word_read(struct call *call, int at, const struct parameter *parameter, char *word, char *why, size_t room) {
        const char *code = parameter->code;
        size_t size;
        if (!strcmp(code, "h"))
                return handle_read(call, at, parameter, word, why, room);
        if (!strcmp(code, "ah") || !strcmp(code, "as") || !strcmp(code, "ai"))
                return array_read(call, at, parameter, word, why, room);
        if (!strcmp(code, "i") || !strcmp(code, "p"))
                value(call, number(word));
        else if (!strcmp(code, "flags"))
                value(call, call->flags = (int)number(word));
        else if (!strcmp(code, "t")) {
                long timeout = paced(number(word));
                if (timeout > call->longest)
                        call->longest = timeout;
                value(call, timeout);
        } else if (!strcmp(code, "s"))
                value(call, (long)(call->buffers[at] = unquoted(word, &size)));
        else if (!strcmp(code, "b")) {
                call->buffers[at] = unquoted(word, &size);
                value(call, (long)call->buffers[at]);
                value(call, (long)size);
        } else if (!strcmp(code, "e") || !strcmp(code, "d")) {
                /* A buffer of this many bytes; NULL is none. */
                int is_null = !strcmp(word, "NULL");
                call->cells[at][0] = is_null ? 0 : number(word);
                if (!is_null)
                        call->buffers[at] = calloc(1, call->cells[at][0] + 1);
                value(call, (long)call->buffers[at]);
                value(call, *code == 'e' ? call->cells[at][0] : (long)&call->cells[at][0]);
        } else if (!strncmp(code, "below@", 6)) {
                /* An index; the original does not check it. */
                long count = call->values[0] ? (long)((size_t(*)(void *))symbol(code + 6))((void *)call->values[0]) : 0;
                if (number(word) < 0 || number(word) >= count) {
                        snprintf(why, room, "%s of %ld", word, count);
                        return 0;
                }
                value(call, number(word));
        } else if (!strncmp(code, "cb:", 3))
                value(call, (long)callback_for(code + 3, strcmp(word, "NULL") ? word : NULL));
        else if (!strcmp(code, "amsg")) {
                call->cells[at][0] = number(word);
                call->buffers[at] = calloc(call->cells[at][0] + 1, sizeof(void *));
                value(call, (long)call->buffers[at]);
                value(call, call->cells[at][0]);
        } else {
                snprintf(why, room, "no code %s", code);
                return 0;
        }
        return 1;
}

int arguments_read(struct call *call, char *why, size_t room) {
        int i, word = 1;
        call->first = call->root = -1;
        for (i = 0; i < call->function->count; i++) {
                const struct parameter *parameter = &call->function->parameters[i];
                const char *code = parameter->code;
                if (*code == 'o' || !strcmp(code, "cnt")) {
                        value(call, (long)&call->cells[i][0]);
                        if (!strcmp(code, "obytes") || !strcmp(code, "obuf"))
                                value(call, (long)&call->cells[i][1]);
                } else if (!strcmp(code, "file"))
                        value(call, (long)sink());
                else if (!strcmp(code, "fd"))
                        value(call, pipe_end());
                else if (word >= call->step->count) {
                        snprintf(why, room, "too few arguments");
                        return 0;
                } else if (!word_read(call, i, parameter, call->step->words[word++], why, room))
                        return 0;
        }
        return 1;
}

/* The messages that a call wrote into an array. */
static void messages_after(struct call *call, int at, long count, char *text, size_t room) {
        rd_kafka_message_t **messages = call->buffers[at];
        long i;
        for (i = 0; i < count && i < call->cells[at][0]; i++) {
                add(text, room, "; ");
                describe_message(text, room, messages[i]);
                if (call->function->parameters[at].flag != '~')
                        API(rd_kafka_message_destroy)(messages[i]);
        }
}

static void out_after(struct call *call, int at, int *name, char *text, size_t room) {
        const struct parameter *parameter = &call->function->parameters[at];
        const char *code = parameter->code;
        long cell = call->cells[at][0];
        int is_classed = parameter->flag == '~';
        if (!strcmp(code, "oi32") && !is_classed)
                add(text, room, "; %d", (int32_t)cell);
        else if (!strcmp(code, "oi64") && !is_classed)
                add(text, room, "; %ld", cell);
        else if (!strcmp(code, "ostr"))
                add(text, room, "; %s", is_classed ? present((char *)cell) : quoted((char *)cell));
        else if (!strcmp(code, "obytes"))
                add(text, room, "; %zu bytes %.*s", (size_t)call->cells[at][1], cell ? (int)call->cells[at][1] : 0,
                    cell ? (char *)cell : "");
        else if (!strcmp(code, "obuf"))
                add(text, room, "; %s", cell ? "present" : "NULL");
        else if (!strcmp(code, "oh") || !strcmp(code, "ob")) {
                const char *saved = *name < call->step->name_count ? call->step->names[*name] : "_";
                int is_owned = !strcmp(code, "oh");
                (*name)++;
                add(text, room, "; ");
                describe(text, room, parameter->kind, (void *)cell);
                slot_put(saved, (void *)cell, parameter->kind, is_owned, call->root, is_owned ? -1 : call->first);
        }
}

/* Prints out parameters, keeps the handles in them, and forgets what the call took over. */
void arguments_after(struct call *call, int succeeded, char *text, size_t room) {
        int i, name = !strcmp(call->function->result.code, "new") || !strcmp(call->function->result.code, "get") ||
                      !strcmp(call->function->result.code, "arr") || !strcmp(call->function->result.code, "E");
        for (i = 0; i < call->function->count; i++) {
                const struct parameter *parameter = &call->function->parameters[i];
                if (*parameter->code == 'o' && succeeded)
                        out_after(call, i, &name, text, room);
                else if (!strcmp(parameter->code, "e") && call->buffers[i] && call->cells[i][0] && !succeeded)
                        add(text, room, "; errstr %s", present(call->buffers[i]));
                else if (!strcmp(parameter->code, "d") && succeeded)
                        add(text, room, "; %s of %ld", call->buffers[i] ? quoted(call->buffers[i]) : "", call->cells[i][0]);
                else if (!strcmp(parameter->code, "amsg"))
                        messages_after(call, i, succeeded, text, room);
                else if (parameter->flag == '&' && call->slots[i]) {
                        add(text, room, "; ");
                        describe(text, room, parameter->kind, call->slots[i]->pointer);
                } else if (parameter->flag == '^' && call->slots[i] && (succeeded || !strcmp(kinds[parameter->kind].name, "topic_conf")))
                        slot_forget(call->slots[i]);
        }
}
