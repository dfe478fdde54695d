/* The interpreter of generated programs: it loads a library by path, so that the same program runs with either library.
 *
 *   runner.c      reads programs, forks one child for each, enforces the deadline
 *   table.c       functions and kinds of handles, from a text that xtask writes
 *   program.c     parses a program: threads, blocks of callbacks, steps
 *   slots.c       the named handles of a program and their lifetimes
 *   arguments.c   from the words of a step to the arguments of a call
 *   call.c        one step: the call and its result
 *   describe.c    lists, messages, events and metadata as text
 *   callbacks.c   callbacks, which print their arguments and run a block
 *   variadic.c    functions with a variable number of arguments
 *   steps.c       steps that are not calls: waiting, meeting points, threads
 *
 * A line of a transcript is `STREAM|TEXT`. A thread of a program and each kind of callback has a stream of its own, because the
 * order between them depends on the speed. */
#ifndef RUNNER_H
#define RUNNER_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_FUNCTIONS 800
#define MAX_KINDS 100
#define MAX_PARAMETERS 12
#define MAX_STEPS 600
#define MAX_SLOTS 600
#define MAX_BLOCKS 40
#define NAME 96

/* Calls a function of the library with the type that the header gives it. */
#define API(name) ((__typeof__(&name))symbol(#name))

/* ---- table.c ---- */

struct kind {
        char name[NAME];
        char destroy[NAME]; /* the function that destroys it, or `-` */
        int is_shared;      /* threads may use it at the same time */
};

/* `h:message` is the code h with the flag `:` and the kind of messages. */
struct parameter {
        char code[NAME];
        char flag;
        int kind;
};

struct function {
        char name[NAME];
        void *address;
        struct parameter result;
        struct parameter parameters[MAX_PARAMETERS];
        int count;
};

extern struct kind kinds[MAX_KINDS];
extern int kind_count;
void table_read(const char *path, void *library);
struct function *function_named(const char *name);
int kind_named(const char *name);
void *symbol(const char *name);

/* ---- program.c ---- */

struct step {
        int line;
        char *words[MAX_PARAMETERS + 12];
        int count;
        char *names[4]; /* the handles that it makes */
        int name_count;
};

struct block {
        char name[NAME];
        int is_thread;
        struct step *steps[MAX_STEPS];
        int count;
        int runs; /* of a callback */
};

extern struct block blocks[MAX_BLOCKS];
extern int block_count;
void program_parse(char *text);
struct block *block_named(const char *name);

/* ---- runner.c ---- */

/* Where each thread is; shared with the parent. */
struct progress {
        char at[4][NAME + 32];
        long since; /* when the main thread began to clean up a handle, in milliseconds; 0 before */
};
extern struct progress *progress;
extern __thread int thread_index;       /* -1 in a thread of the library */
extern __thread const char *stream;     /* the stream of this thread at present */
extern __thread int callback_depth;
__attribute__((format(printf, 1, 2))) void say(const char *format, ...);
void note(const char *function); /* a call that the transcript does not show */
long millis(void);
extern int pace; /* percent of waits and long timeouts */
long paced(long milliseconds);

/* ---- slots.c ---- */

struct slot {
        char name[32];
        void *pointer;
        int kind;
        int is_owned;
        int root;   /* the slot of the client that it belongs to, or -1 */
        int parent; /* the slot that a borrowed one is a part of, or -1 */
        int thread;
        int serial;
};

struct slot *slot_find(const char *name);
struct slot *slot_at(int index);
int slot_index(const struct slot *slot);
struct slot *slot_put(const char *name, void *pointer, int kind, int is_owned, int root, int parent);
void slot_forget(struct slot *slot); /* with its parts */
void slots_prepare_destroy(struct slot *slot);
int slot_usable(const struct slot *slot);
int slot_is_busy(const struct slot *slot);
void slots_destroy_all(void);
extern int other_threads; /* running beside the main one */

/* ---- arguments.c ---- */

struct call {
        struct step *step;
        struct function *function;
        long values[MAX_PARAMETERS * 2 + 4];
        int value_count;
        long cells[MAX_PARAMETERS][2];       /* what out parameters point to */
        void *buffers[MAX_PARAMETERS];       /* to be freed */
        struct slot *slots[MAX_PARAMETERS];
        int first;  /* the first handle, or -1 */
        int root;   /* the client of the call, or -1 */
        long longest; /* the largest timeout */
        int flags;  /* of produce */
};

int arguments_read(struct call *call, char *why, size_t room);
void arguments_after(struct call *call, int succeeded, char *text, size_t room);
char *unquoted(const char *word, size_t *size); /* NULL for NULL; allocated */
long number(const char *word);

/* ---- call.c ---- */

void step_run(struct step *step);
void block_run(struct block *block);

/* ---- describe.c ---- */

__attribute__((format(printf, 3, 4))) void add(char *text, size_t room, const char *format, ...);
const char *error_name(int code);
const char *quoted(const char *text);
const char *present(const char *text);
extern int is_anywhere; /* a message got a random partition */
void describe(char *text, size_t room, int kind, void *pointer);
void describe_list(char *text, size_t room, const rd_kafka_topic_partition_list_t *list);
void describe_message(char *text, size_t room, const rd_kafka_message_t *message);

/* ---- callbacks.c ---- */

void *callback_for(const char *name, const char *block);

/* ---- variadic.c, steps.c ---- */

int variadic_run(struct step *step);
int builtin_run(struct step *step);

#endif
