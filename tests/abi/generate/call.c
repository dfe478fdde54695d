/* One step: the call and its result. All arguments are integers or pointers, which both ABIs pass as whole words, so that one type
 * of function serves all of them; surplus arguments are ignored by the callee. */
#include "runner.h"

/* What a call may take longer than its timeout. */
#define GRACE_MS 8000

typedef long (*any_function)(long, long, long, long, long, long, long, long, long, long, long, long, long, long);

/* Numbers that differ between runs are printed as their sign. */
static void add_number(char *text, size_t room, long number, int is_classed) {
        if (is_classed)
                add(text, room, "%s", number < 0 ? "negative" : number ? "positive" : "0");
        else
                add(text, room, "%ld", number);
}

static const char *errno_name(int number) {
        static __thread char other[24];
        switch (number) {
        case EINVAL: return "EINVAL";
        case ENOENT: return "ENOENT";
        case ENOBUFS: return "ENOBUFS";
        case EMSGSIZE: return "EMSGSIZE";
        case ESRCH: return "ESRCH";
        case ETIMEDOUT: return "ETIMEDOUT";
        case ECANCELED: return "ECANCELED";
        case EEXIST: return "EEXIST";
        case EBUSY: return "EBUSY";
        case ENOEXEC: return "ENOEXEC";
        default: snprintf(other, sizeof(other), "errno %d", number); return other;
        }
}

/* An error object, which is kept under a name or destroyed. */
static int add_error(struct call *call, char *text, size_t room, rd_kafka_error_t *error) {
        if (!error) {
                add(text, room, "no error");
                return 1;
        }
        add(text, room, "%s fatal %d retriable %d abort %d", API(rd_kafka_error_name)(error), API(rd_kafka_error_is_fatal)(error),
            API(rd_kafka_error_is_retriable)(error), API(rd_kafka_error_txn_requires_abort)(error));
        if (call->step->name_count && strcmp(call->step->names[0], "_"))
                slot_put(call->step->names[0], error, kind_named("error"), 1, -1, -1);
        else
                API(rd_kafka_error_destroy)(error);
        return 0;
}

/* The elements of an array with a count; the first two get the names of the step. */
static int add_array(struct call *call, char *text, size_t room, void **array) {
        size_t count = 0, i;
        for (i = 0; i < (size_t)call->function->count; i++)
                if (!strcmp(call->function->parameters[i].code, "cnt"))
                        count = (size_t)call->cells[i][0];
        if (call->function->result.flag == '#')
                add(text, room, "array");
        else if (call->function->result.flag == '~')
                add(text, room, "%s", array ? "array" : "NULL");
        else
                add(text, room, "%s of %zu", array ? "array" : "NULL", count);
        for (i = 0; array && call->function->result.kind >= 0 && i < count && i < (size_t)call->step->name_count; i++)
                slot_put(call->step->names[i], array[i], call->function->result.kind, 0, call->root, call->first);
        /* Whether there is something in an array whose length differs is a matter of time. */
        return array != NULL && (count > 0 || (call->function->result.flag && strchr("~#", call->function->result.flag)));
}

static int add_handle(struct call *call, char *text, size_t room, void *pointer) {
        const struct parameter *result = &call->function->result;
        int is_owned = !strcmp(result->code, "new");
        const char *name = call->step->name_count ? call->step->names[0] : "_";
        describe(text, room, result->kind, pointer);
        slot_put(name, pointer, result->kind, is_owned, call->root, is_owned ? -1 : call->first);
        return pointer != NULL;
}

/* Prints the result; returns 0 for a failure, and for batches the number of messages. */
static long add_result(struct call *call, char *text, size_t room, long result, int number) {
        const struct parameter *kind = &call->function->result;
        const char *code = kind->code;
        int is_classed = kind->flag == '~';
        if (!strcmp(code, "v"))
                return add(text, room, "void"), 1;
        if (!strcmp(code, "err"))
                return add(text, room, "%s", error_name((int)result)), (int)result == 0;
        if (!strcmp(code, "conf"))
                return add(text, room, "%s", (int)result == 0 ? "OK" : (int)result == -1 ? "INVALID" : "UNKNOWN"),
                       (int)result == 0;
        if (!strcmp(code, "i") || !strcmp(code, "ierr")) {
                add_number(text, room, (int)result, is_classed);
                /* The functions that set errno do so for -1. */
                if (!strcmp(code, "ierr") && (int)result == -1)
                        add(text, room, " %s %s", errno_name(number), error_name(API(rd_kafka_last_error)()));
                return (int)result >= 0;
        }
        if (!strcmp(code, "i16"))
                return add_number(text, room, (int16_t)result, is_classed), (int16_t)result >= 0;
        if (!strcmp(code, "u16"))
                return add_number(text, room, (uint16_t)result, is_classed), 1;
        if (!strcmp(code, "i64"))
                return add_number(text, room, result, is_classed), result >= 0;
        if (!strcmp(code, "batch")) {
                add_number(text, room, result, 0);
                return result > 0 ? result : 0;
        }
        if (!strcmp(code, "s") || !strcmp(code, "text")) {
                add(text, room, "%s", is_classed ? present((char *)result) : quoted((char *)result));
                if (!strcmp(code, "text") && result)
                        API(rd_kafka_mem_free)(NULL, (void *)result);
                return result != 0;
        }
        if (!strcmp(code, "p"))
                return result >= 0 && result < 100000 ? (add(text, room, "%ld", result), 1) : (add(text, room, "present"), 1);
        if (!strcmp(code, "E"))
                return add_error(call, text, room, (rd_kafka_error_t *)result);
        if (!strcmp(code, "ce"))
                return add(text, room, "%s", result ? error_name(API(rd_kafka_error_code)((rd_kafka_error_t *)result)) : "NULL"),
                       1;
        if (!strcmp(code, "arr"))
                return add_array(call, text, room, (void **)result);
        return add_handle(call, text, room, (void *)result);
}

/* Frees the texts and buffers of a call; a payload may be in use until its report, so that of a message is leaked. */
static void release(struct call *call) {
        int i;
        for (i = 0; i < call->function->count && strcmp(call->function->name, "rd_kafka_produce"); i++)
                free(call->buffers[i]);
}

static void call_run(struct call *call) {
        char text[3000] = "";
        long *v = call->values, result, began, spent;
        int i, number, succeeded;
        struct function *function = call->function;
        for (i = 0; i < function->count; i++)
                if (function->parameters[i].flag == '!' && call->slots[i]) {
                        slots_prepare_destroy(call->slots[i]);
                        slot_forget(call->slots[i]);
                }
        if (!strcmp(function->name, "rd_kafka_produce") && (int32_t)v[1] == -1)
                is_anywhere = 1;
        began = millis();
        errno = 0;
        result = ((any_function)function->address)(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10], v[11], v[12],
                                                   v[13]);
        number = errno;
        spent = millis() - began;
        succeeded = (int)add_result(call, text, sizeof(text), result, number);
        arguments_after(call, succeeded, text, sizeof(text));
        say("%d %s %s -> %s", call->step->line, succeeded ? "ok" : "no", function->name, text);
        if (spent > call->longest + GRACE_MS)
                say("%d LATE %s", call->step->line, function->name);
        release(call);
}

void step_run(struct step *step) {
        struct call call = {0};
        char why[128] = "";
        if (!step->count)
                return;
        if (thread_index >= 0)
                snprintf(progress->at[thread_index], sizeof(progress->at[0]), "%d %s", step->line, step->words[0]);
        if (builtin_run(step) || variadic_run(step))
                return;
        call.step = step;
        call.function = function_named(step->words[0]);
        if (!call.function || !call.function->address)
                say("%d no function %s", step->line, step->words[0]);
        else if (arguments_read(&call, why, sizeof(why)))
                call_run(&call);
        else
                say("%d skipped %s: %s", step->line, step->words[0], why);
}

void block_run(struct block *block) {
        int i;
        for (i = 0; i < block->count; i++)
                step_run(block->steps[i]);
}
