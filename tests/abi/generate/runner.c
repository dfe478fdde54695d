/* `runner LIBRARY TABLE`: reads programs from its input, each ended by a line `run SECONDS SUFFIX PACE`, and prints the transcript
 * of each, ended by a line `done MICROSECONDS` with the time on a processor. Waits and long timeouts are PACE percent of what the
 * program says. The library is loaded once; a program runs in a child, before the parent has made any handle. */
#include "runner.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

struct progress *progress;
__thread int thread_index = -1;
__thread const char *stream = "library";
__thread int callback_depth;
static int output = 1;
static char suffix[64];
int pace = 100;

long millis(void) {
        struct timespec time;
        clock_gettime(CLOCK_MONOTONIC, &time);
        return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

/* Short timeouts are meant to elapse. */
long paced(long milliseconds) { return milliseconds < 1000 ? milliseconds : milliseconds * pace / 100; }

/* Replaces what differs from run to run: the suffix of names, and ports. */
static void scrub(char *text) {
        char *at = text, *into = text;
        size_t length = strlen(suffix);
        while (*at) {
                if (length && !strncmp(at, suffix, length)) {
                        *into++ = '%';
                        at += length;
                } else if (!strncmp(at, "127.0.0.1:", 10) && at[10] >= '1' && at[10] <= '9' && at[11] >= '0' && at[11] <= '9') {
                        memmove(into, "127.0.0.1:", 10);
                        into += 10;
                        at += 10;
                        while (*at >= '0' && *at <= '9')
                                at++;
                        *into++ = 'P';
                } else if (*at == '\n') {
                        *into++ = ' ';
                        at++;
                } else
                        *into++ = *at++;
        }
        *into = 0;
}

void say(const char *format, ...) {
        char line[4000];
        size_t begin = snprintf(line, sizeof(line), "%s|", stream);
        int kept = errno;
        va_list args;
        va_start(args, format);
        vsnprintf(line + begin, sizeof(line) - begin - 1, format, args);
        va_end(args);
        scrub(line + begin);
        strcat(line, "\n");
        /* One write is not divided, whatever other threads write. */
        if (write(output, line, strlen(line)) < 0)
                _exit(4);
        errno = kept;
}

void note(const char *function) {
        const char *kept = stream;
        stream = "calls";
        say("0 ok %s", function);
        stream = kept;
}

static void program_run(char *text, long seconds) {
        struct rlimit no_core = {0, 0};
        int nothing;
        /* Nothing outlives the parent. */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm((unsigned)seconds + 5);
        setrlimit(RLIMIT_CORE, &no_core);
        /* Not freopen: it would move the position in the parent's input. */
        nothing = open("/dev/null", O_RDWR);
        dup2(nothing, 0);
        dup2(nothing, 2);
        signal(SIGPIPE, SIG_IGN);
        thread_index = 0;
        stream = "main";
        program_parse(text);
        block_run(&blocks[0]);
        slots_destroy_all();
        say("end");
        _exit(0);
}

/* Returns the milliseconds that are left: the end of a handle has a part of the time, because the original often hangs there. */
static long left_until(long ends, long seconds) {
        long left = ends - millis(), since = progress->since;
        long of_handle = since + seconds * 400 - millis();
        return since && of_handle < left ? of_handle : left;
}

/* Forwards what the child prints, until it ends or the deadline has come; returns its time on a processor. */
static long watch(pid_t child, int from, long seconds) {
        struct rusage usage;
        long ends = millis() + seconds * 1000;
        int status, i, is_late = 0;
        char buffer[65536];
        for (;;) {
                struct pollfd waits = {from, POLLIN, 0};
                long left = left_until(ends, seconds);
                ssize_t got;
                if (left <= 0) {
                        is_late = 1;
                        break;
                }
                if (poll(&waits, 1, left < 500 ? (int)left : 500) == 0)
                        continue;
                got = read(from, buffer, sizeof(buffer));
                if (got <= 0)
                        break;
                fwrite(buffer, 1, got, stdout);
        }
        if (is_late)
                kill(-child, SIGKILL);
        wait4(child, &status, 0, &usage);
        kill(-child, SIGKILL);
        close(from);
        for (i = 0; i < 4 && (is_late || WIFSIGNALED(status)); i++)
                if (*progress->at[i])
                        printf("main|%s thread %d in %s\n", is_late ? "HANG" : "CRASH", i, progress->at[i]);
        if (!is_late && WIFSIGNALED(status))
                printf("main|ended by signal %d\n", WTERMSIG(status));
        else if (!is_late && WEXITSTATUS(status))
                printf("main|exits with %d\n", WEXITSTATUS(status));
        return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000L + usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
}

int main(int argc, char **argv) {
        void *library = argc == 3 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
        char *program = NULL, *line = NULL;
        size_t size = 0, room = 0;
        ssize_t length;
        long seconds;
        if (!library) {
                fprintf(stderr, "usage: runner LIBRARY TABLE: %s\n", argc == 3 ? dlerror() : "");
                return 2;
        }
        table_read(argv[2], library);
        progress = mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        program = calloc(1, 1);
        while ((length = getline(&line, &room, stdin)) > 0) {
                int ends[2];
                pid_t child;
                if (sscanf(line, "run %ld %63s %d", &seconds, suffix, &pace) != 3) {
                        program = realloc(program, size + length + 1);
                        memcpy(program + size, line, length + 1);
                        size += length;
                        continue;
                }
                memset(progress, 0, sizeof(*progress));
                if (pipe(ends))
                        return 4;
                fflush(stdout);
                child = fork();
                if (child == 0) {
                        char *at;
                        setpgid(0, 0);
                        close(ends[0]);
                        output = ends[1];
                        while ((at = strchr(program, '%'))) {
                                char *with = malloc(size + 64 + 1);
                                size = sprintf(with, "%.*s%s%s", (int)(at - program), program, suffix, at + 1);
                                program = with;
                        }
                        program_run(program, seconds);
                }
                setpgid(child, child);
                close(ends[1]);
                printf("done %ld\n", watch(child, ends[0], seconds));
                fflush(stdout);
                size = 0;
                *program = 0;
        }
        return 0;
}
