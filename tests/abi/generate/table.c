/* The functions and kinds of handles. Lines of the table: `kind NAME DESTROY shared|own` and `function NAME RESULT PARAMETER...`. */
#include "runner.h"
#include <dlfcn.h>

struct kind kinds[MAX_KINDS];
int kind_count;
static struct function functions[MAX_FUNCTIONS];
static int function_count;
static void *library;

void *symbol(const char *name) {
        void *address = dlsym(library, name);
        if (!address) {
                say("NO FUNCTION %s", name);
                _exit(3);
        }
        return address;
}

int kind_named(const char *name) {
        int i;
        for (i = 0; i < kind_count; i++)
                if (!strcmp(kinds[i].name, name))
                        return i;
        return -1;
}

static int by_name(const void *a, const void *b) {
        return strcmp(((const struct function *)a)->name, ((const struct function *)b)->name);
}

struct function *function_named(const char *name) {
        struct function key;
        snprintf(key.name, sizeof(key.name), "%s", name);
        return bsearch(&key, functions, function_count, sizeof(functions[0]), by_name);
}

/* Divides `h!message` into code, flag and kind. */
static void parameter_parse(struct parameter *parameter, const char *word) {
        size_t length = strcspn(word, ":!^&~%<#");
        memset(parameter, 0, sizeof(*parameter));
        snprintf(parameter->code, sizeof(parameter->code), "%.*s", (int)length, word);
        parameter->flag = word[length];
        parameter->kind = -1;
        if (parameter->flag && !strchr("~<", parameter->flag)) {
                parameter->kind = kind_named(word + length + 1);
                if (parameter->kind < 0 && strcmp(parameter->code, "cb")) {
                        fprintf(stderr, "the table has no kind for %s\n", word);
                        exit(2);
                }
                if (!strcmp(parameter->code, "cb"))
                        snprintf(parameter->code, sizeof(parameter->code), "cb:%s", word + length + 1);
        }
}

static void function_parse(char *line) {
        struct function *function = &functions[function_count++];
        char *rest, *word = strtok_r(line, " ", &rest);
        snprintf(function->name, sizeof(function->name), "%s", word);
        function->address = dlsym(library, word);
        parameter_parse(&function->result, strtok_r(NULL, " ", &rest));
        while ((word = strtok_r(NULL, " ", &rest)))
                parameter_parse(&function->parameters[function->count++], word);
}

void table_read(const char *path, void *loaded) {
        char line[1024];
        FILE *file = fopen(path, "r");
        library = loaded;
        if (!file) {
                fprintf(stderr, "%s can't be read\n", path);
                exit(2);
        }
        while (fgets(line, sizeof(line), file)) {
                char shared[16];
                line[strcspn(line, "\n")] = 0;
                if (sscanf(line, "kind %95s %95s %15s", kinds[kind_count].name, kinds[kind_count].destroy, shared) == 3)
                        kinds[kind_count++].is_shared = !strcmp(shared, "shared");
                else if (!strncmp(line, "function ", 9))
                        function_parse(line + 9);
        }
        fclose(file);
        qsort(functions, function_count, sizeof(functions[0]), by_name);
}
