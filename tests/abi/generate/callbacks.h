/* The callbacks of a program. */
#ifndef CALLBACKS_H
#define CALLBACKS_H
#include "runner.h"

struct callback {
        const char *name;
        void *function;
        struct block *block;
};

/* A callback that is running. */
struct frame {
        struct callback *callback;
        const char *stream;
        struct slot *slots[4];
        int count;
        int is_running;
};

extern struct callback callback_table[];
extern int reports_seen; /* delivery reports of all producers */
#endif
