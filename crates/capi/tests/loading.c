/* A host that is not linked to the library loads it, uses it and unloads it, repeatedly. */
#include <dirent.h>
#include <dlfcn.h>
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int entries(const char *folder) {
        DIR *open = opendir(folder);
        int count = -2;
        while (readdir(open))
                count++;
        closedir(open);
        return count;
}

static int fail(const char *what) {
        fprintf(stderr, "%s\n", what);
        return 1;
}

int main(int argc, char **argv) {
        int round, threads = entries("/proc/self/task"), descriptors = 0, waits;
        if (argc < 2)
                return 2;
        for (round = 0; round < 20; round++) {
                void *library = dlopen("librdkafka.so.1", RTLD_NOW | RTLD_LOCAL);
                rd_kafka_t *(*new_client)(rd_kafka_type_t, rd_kafka_conf_t *, char *, size_t);
                rd_kafka_conf_t *(*new_conf)(void);
                rd_kafka_conf_res_t (*set)(rd_kafka_conf_t *, const char *, const char *, char *, size_t);
                rd_kafka_resp_err_t (*producev)(rd_kafka_t *, ...);
                rd_kafka_resp_err_t (*flush)(rd_kafka_t *, int);
                void (*destroy)(rd_kafka_t *);
                rd_kafka_conf_t *conf;
                rd_kafka_t *rk;
                char errstr[256];
                if (!library)
                        return fail(dlerror());
                /* Strict C has no cast from an object's address to a function's. */
                *(void **)&new_client = dlsym(library, "rd_kafka_new");
                *(void **)&new_conf = dlsym(library, "rd_kafka_conf_new");
                *(void **)&set = dlsym(library, "rd_kafka_conf_set");
                *(void **)&producev = dlsym(library, "rd_kafka_producev");
                *(void **)&flush = dlsym(library, "rd_kafka_flush");
                *(void **)&destroy = dlsym(library, "rd_kafka_destroy");
                conf = new_conf();
                if (set(conf, "bootstrap.servers", argv[1], errstr, sizeof(errstr)))
                        return fail(errstr);
                rk = new_client(RD_KAFKA_PRODUCER, conf, errstr, sizeof(errstr));
                if (!rk)
                        return fail(errstr);
                if (producev(rk, RD_KAFKA_V_TOPIC("life"), RD_KAFKA_V_VALUE((void *)"x", 1), RD_KAFKA_V_END))
                        return fail("a message was refused");
                if (flush(rk, 10000))
                        return fail("a message was not sent");
                destroy(rk);
                if (dlclose(library))
                        return fail(dlerror());
                if (round == 0)
                        descriptors = entries("/proc/self/fd");
        }
        /* A thread that has ended may still be listed for a short time. */
        for (waits = 0; waits < 250 && entries("/proc/self/task") > threads; waits++)
                usleep(20000);
        if (entries("/proc/self/task") != threads)
                return fail("threads are left");
        if (entries("/proc/self/fd") > descriptors)
                return fail("descriptors are left");
        return 0;
}
