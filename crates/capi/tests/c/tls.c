/* TLS: certificates and keys that a program passes as bytes, and its own check of the broker's certificate. The second
 * argument is a folder with a CA, another CA, and the certificate and key of a client in PEM and DER; the brokers then
 * require client certificates. */
#include "test.h"

static const char *folder;
static char reason[1024];
static int failed_with;

/* What the program's check of certificates sees, and what it does. */
static struct {
        int calls, order_is_right, error_of_leaf, has_overruled;
        enum { ACCEPTS, REFUSES, OVERRULES } verdict;
} check;

static int reloaded, refused;

static void on_log(const rd_kafka_t *rk, int level, const char *facility, const char *text) {
        (void)rk;
        (void)level;
        if (!strcmp(facility, "SSL"))
                __atomic_add_fetch(strstr(text, "copy.key") ? &refused : &reloaded, 1, __ATOMIC_SEQ_CST);
        fprintf(stderr, "%s: %s\n", facility, text);
}

static void on_error(rd_kafka_t *rk, int err, const char *text, void *opaque) {
        (void)rk;
        CHECK(opaque == &check);
        if (err == RD_KAFKA_RESP_ERR__SSL) {
                snprintf(reason, sizeof(reason), "%s", text);
                __atomic_store_n(&failed_with, err, __ATOMIC_SEQ_CST);
        }
}

/* Called on an I/O thread: for the CA with depth 1, then for the broker's certificate. */
static int on_certificate(rd_kafka_t *rk, const char *broker, int32_t id, int *x509_error, int depth, const char *bytes,
                          size_t size, char *errstr, size_t errstr_size, void *opaque) {
        static int last_depth;
        int calls = __atomic_add_fetch(&check.calls, 1, __ATOMIC_SEQ_CST);
        (void)id;
        CHECK(opaque == &check && rk && strstr(broker, ":") && size > 100 && bytes[0] == 0x30);
        if (depth == 0) {
                check.order_is_right |= calls > 1 && last_depth == 1;
                check.error_of_leaf = *x509_error;
        }
        last_depth = depth;
        if (check.verdict == REFUSES && depth == 0) {
                snprintf(errstr, errstr_size, "not today");
                return 0;
        }
        if (check.verdict == OVERRULES && *x509_error) {
                check.has_overruled = 1;
                *x509_error = 0;
        }
        return 1;
}

/* The bytes of a file of the folder. */
static size_t read_file(const char *name, char *bytes, size_t space) {
        char path[512];
        FILE *file;
        size_t size;
        snprintf(path, sizeof(path), "%s/%s", folder, name);
        file = fopen(path, "rb");
        if (!file) {
                perror(path);
                exit(1);
        }
        size = fread(bytes, 1, space - 1, file);
        fclose(file);
        bytes[size] = 0;
        return size;
}

static void pass(rd_kafka_conf_t *conf, rd_kafka_cert_type_t type, rd_kafka_cert_enc_t encoding, const char *name) {
        char bytes[8192], errstr[512] = "";
        size_t size = read_file(name, bytes, sizeof(bytes));
        if (rd_kafka_conf_set_ssl_cert(conf, type, encoding, bytes, size, errstr, sizeof(errstr)) != RD_KAFKA_CONF_OK) {
                fprintf(stderr, "%s: %s\n", name, errstr);
                bad++;
        }
        /* The buffer was copied. */
        memset(bytes, 0, sizeof(bytes));
}

static rd_kafka_conf_t *configuration(const char *brokers) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        set(conf, "bootstrap.servers", brokers);
        set(conf, "security.protocol", "ssl");
        set(conf, "debug", "all");
        rd_kafka_conf_set_log_cb(conf, on_log);
        rd_kafka_conf_set_error_cb(conf, on_error);
        rd_kafka_conf_set_opaque(conf, &check);
        return conf;
}

/* A configuration whose certificates and key come from buffers. */
static rd_kafka_conf_t *with_buffers(const char *brokers, rd_kafka_cert_enc_t encoding) {
        rd_kafka_conf_t *conf = configuration(brokers);
        int is_pem = encoding == RD_KAFKA_CERT_ENC_PEM;
        pass(conf, RD_KAFKA_CERT_CA, encoding, is_pem ? "ca.pem" : "ca.der");
        pass(conf, RD_KAFKA_CERT_PUBLIC_KEY, encoding, is_pem ? "client.pem" : "client.der");
        pass(conf, RD_KAFKA_CERT_PRIVATE_KEY, encoding, is_pem ? "client.key" : "client.key.der");
        return conf;
}

static void produces(rd_kafka_conf_t *conf) {
        rd_kafka_t *rk = start(RD_KAFKA_PRODUCER, conf);
        CHECK(!rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("tls"), RD_KAFKA_V_VALUE("x", 1), RD_KAFKA_V_END));
        CHECK(rd_kafka_flush(rk, TIMEOUT_MS) == 0);
        rd_kafka_destroy(rk);
}

static void fails(rd_kafka_conf_t *conf, const char *words) {
        rd_kafka_t *rk = start(RD_KAFKA_PRODUCER, conf);
        failed_with = 0;
        UNTIL(__atomic_load_n(&failed_with, __ATOMIC_SEQ_CST), rd_kafka_poll(rk, 10));
        if (!strstr(reason, words)) {
                fprintf(stderr, "\"%s\" is not in: %s\n", words, reason);
                bad++;
        }
        rd_kafka_destroy(rk);
}

static void bytes_of_every_encoding_are_used(const char *brokers) {
        produces(with_buffers(brokers, RD_KAFKA_CERT_ENC_PEM));
        produces(with_buffers(brokers, RD_KAFKA_CERT_ENC_DER));
}

static void missing_and_foreign_certificates_are_named(const char *brokers) {
        rd_kafka_conf_t *conf = configuration(brokers);
        pass(conf, RD_KAFKA_CERT_CA, RD_KAFKA_CERT_ENC_PEM, "ca.pem");
        fails(conf, "requires a client certificate");
        conf = configuration(brokers);
        pass(conf, RD_KAFKA_CERT_CA, RD_KAFKA_CERT_ENC_PEM, "other.pem");
        fails(conf, "not trusted");
        conf = with_buffers(brokers, RD_KAFKA_CERT_ENC_PEM);
        /* A NULL buffer removes what was set. */
        CHECK(rd_kafka_conf_set_ssl_cert(conf, RD_KAFKA_CERT_CA, RD_KAFKA_CERT_ENC_PEM, NULL, 0, NULL, 0) ==
              RD_KAFKA_CONF_OK);
        fails(conf, "not trusted");
}

static void checks_of_the_program_are_obeyed(const char *brokers) {
        rd_kafka_conf_t *conf = with_buffers(brokers, RD_KAFKA_CERT_ENC_DER);
        CHECK(rd_kafka_conf_set_ssl_cert_verify_cb(conf, on_certificate) == RD_KAFKA_CONF_OK);
        check.verdict = ACCEPTS;
        produces(conf);
        CHECK(check.calls >= 2 && check.order_is_right && check.error_of_leaf == 0);
        conf = with_buffers(brokers, RD_KAFKA_CERT_ENC_DER);
        rd_kafka_conf_set_ssl_cert_verify_cb(conf, on_certificate);
        check.verdict = REFUSES;
        fails(conf, "not today");
        /* A certificate of an unknown CA, which the program knows. */
        conf = with_buffers(brokers, RD_KAFKA_CERT_ENC_DER);
        pass(conf, RD_KAFKA_CERT_CA, RD_KAFKA_CERT_ENC_PEM, "other.pem");
        rd_kafka_conf_set_ssl_cert_verify_cb(conf, on_certificate);
        check.verdict = OVERRULES;
        produces(conf);
        CHECK(check.has_overruled);
}

/* Replaces a file by a copy of another one. */
static void copy(const char *from, const char *to) {
        char bytes[8192], path[512], temporary[512];
        size_t size = read_file(from, bytes, sizeof(bytes));
        FILE *file;
        snprintf(path, sizeof(path), "%s/%s", folder, to);
        snprintf(temporary, sizeof(temporary), "%s/new", folder);
        file = fopen(temporary, "wb");
        CHECK(file && fwrite(bytes, 1, size, file) == size && !fclose(file) && !rename(temporary, path));
}

/* Files that change are read again. A log line says so, also of a key that does not fit. */
static void replaced_files_are_logged(const char *brokers) {
        const char *files[][2] = {{"ssl.ca.location", "ca.pem"},
                                  {"ssl.certificate.location", "client.pem"},
                                  {"ssl.key.location", "copy.key"}};
        rd_kafka_conf_t *conf = configuration(brokers);
        rd_kafka_t *rk;
        char path[512];
        int i;
        copy("client.key", "copy.key");
        for (i = 0; i < 3; i++) {
                snprintf(path, sizeof(path), "%s/%s", folder, files[i][1]);
                set(conf, files[i][0], path);
        }
        set(conf, "ssl.reload.interval.ms", "1000");
        rk = start(RD_KAFKA_PRODUCER, conf);
        copy("other.pem", "copy.key");
        UNTIL(__atomic_load_n(&refused, __ATOMIC_SEQ_CST), rd_kafka_poll(rk, 10));
        CHECK(!__atomic_load_n(&reloaded, __ATOMIC_SEQ_CST));
        copy("client.key", "copy.key");
        UNTIL(__atomic_load_n(&reloaded, __ATOMIC_SEQ_CST), rd_kafka_poll(rk, 10));
        rd_kafka_destroy(rk);
}

static void bad_bytes_are_refused(const char *brokers) {
        static const rd_kafka_cert_type_t types[] = {RD_KAFKA_CERT_CA, RD_KAFKA_CERT_PUBLIC_KEY, RD_KAFKA_CERT_PRIVATE_KEY};
        static const char *junk[] = {"junk", "0\202\377\377", "-----BEGIN CERTIFICATE-----\nAAAA\n"};
        char ca[8192], errstr[512];
        rd_kafka_conf_t *conf = configuration(brokers);
        unsigned type, encoding, i;
        for (type = 0; type < 3; type++)
                for (encoding = RD_KAFKA_CERT_ENC_PKCS12; encoding < RD_KAFKA_CERT_ENC__CNT; encoding++)
                        for (i = 0; i < sizeof(junk) / sizeof(*junk); i++) {
                                *errstr = 0;
                                CHECK(rd_kafka_conf_set_ssl_cert(conf, types[type], (rd_kafka_cert_enc_t)encoding, junk[i],
                                                                 strlen(junk[i]), errstr, sizeof(errstr)) ==
                                      RD_KAFKA_CONF_INVALID);
                                CHECK(*errstr);
                        }
        pass(conf, RD_KAFKA_CERT_CA, RD_KAFKA_CERT_ENC_PEM, "ca.pem");
        read_file("ca.pem", ca, sizeof(ca));
        set(conf, "ssl.ca.pem", ca);
        CHECK(!rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof(errstr)) && strstr(errstr, "use one of the two"));
        rd_kafka_conf_destroy(conf);
}

int main(int argc, char **argv) {
        if (argc < 2)
                return 2;
        if (argc == 2) {
                fails(configuration(argv[1]), "plaintext listener");
                return bad != 0;
        }
        folder = argv[2];
        bytes_of_every_encoding_are_used(argv[1]);
        missing_and_foreign_certificates_are_named(argv[1]);
        checks_of_the_program_are_obeyed(argv[1]);
        replaced_files_are_logged(argv[1]);
        bad_bytes_are_refused(argv[1]);
        return bad != 0;
}
