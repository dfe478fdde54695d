/* A program: one step per line, `[HANDLE[,HANDLE] =] FUNCTION ARGUMENT...`. `thread NAME` and `in NAME` begin the steps of a
 * further thread and of a callback; those before the first of them are the main thread's. */
#include "runner.h"
#include <ctype.h>

struct block blocks[MAX_BLOCKS];
int block_count;

struct block *block_named(const char *name) {
        int i;
        for (i = 0; i < block_count; i++)
                if (!strcmp(blocks[i].name, name))
                        return &blocks[i];
        return NULL;
}

/* Takes the next word, which ends at a blank outside of quotes. */
static char *word(char **rest) {
        char *begin = *rest, *at;
        int is_quoted = 0;
        while (*begin == ' ')
                begin++;
        if (!*begin)
                return NULL;
        for (at = begin; *at && (is_quoted || *at != ' '); at++) {
                if (is_quoted && *at == '\\' && at[1])
                        at++;
                else if (*at == '"')
                        is_quoted = !is_quoted;
        }
        *rest = *at ? at + 1 : at;
        *at = 0;
        return begin;
}

static struct step *step_parse(char *line, int number) {
        struct step *step = calloc(1, sizeof(*step));
        char *rest = line, *next;
        step->line = number;
        while ((next = word(&rest)) && step->count < (int)(sizeof(step->words) / sizeof(step->words[0]))) {
                if (!strcmp(next, "=") && step->count == 1) {
                        char *names = step->words[0], *name, *more;
                        for (name = strtok_r(names, ",", &more); name && step->name_count < 4;
                             name = strtok_r(NULL, ",", &more))
                                step->names[step->name_count++] = name;
                        step->count = 0;
                        continue;
                }
                step->words[step->count++] = next;
        }
        return step;
}

static struct block *block_begin(const char *name, int is_thread) {
        struct block *block = &blocks[block_count < MAX_BLOCKS - 1 ? block_count++ : MAX_BLOCKS - 1];
        memset(block, 0, sizeof(*block));
        snprintf(block->name, sizeof(block->name), "%s", name);
        block->is_thread = is_thread;
        return block;
}

void program_parse(char *text) {
        char *rest, *line;
        int number = 0;
        struct block *block = block_begin("main", 1);
        for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
                number++;
                while (isspace((unsigned char)*line))
                        line++;
                if (!strncmp(line, "thread ", 7))
                        block = block_begin(line + 7, 1);
                else if (!strncmp(line, "in ", 3))
                        block = block_begin(line + 3, 0);
                else if (*line && *line != '#' && block->count < MAX_STEPS)
                        block->steps[block->count++] = step_parse(line, number);
        }
}
