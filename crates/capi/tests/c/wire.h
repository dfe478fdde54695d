/* For test programs that speak the protocol themselves. */
#ifndef OTTLA_WIRE_H
#define OTTLA_WIRE_H
#include "test.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>

/* The last response, its length, and the position at which it is read. */
static unsigned char answer[4096];
static size_t length, at;

/* Returns a connection to the first broker of a list. */
UNUSED static int connected(const char *servers) {
        struct sockaddr_in to;
        struct timeval timeout;
        int fd = socket(AF_INET, SOCK_STREAM, 0), port = 0;
        const char *colon = strchr(servers, ':');
        timeout.tv_sec = TIMEOUT_MS / 1000;
        timeout.tv_usec = 0;
        memset(&to, 0, sizeof(to));
        if (colon)
                port = atoi(colon + 1);
        to.sin_family = AF_INET;
        to.sin_port = htons((uint16_t)port);
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        CHECK(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) == 0);
        CHECK(connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0);
        return fd;
}

UNUSED static void read_fully(int fd, unsigned char *into, size_t size) {
        while (size > 0) {
                ssize_t got = recv(fd, into, size, 0);
                CHECK(got > 0);
                if (got <= 0)
                        return;
                into += got;
                size -= (size_t)got;
        }
}

/* Reads a number of this size from the response. */
UNUSED static int64_t number(int bytes) {
        int64_t value = 0;
        CHECK(at + (size_t)bytes <= length);
        if (at + (size_t)bytes > length)
                return -99;
        value = (signed char)answer[at++];
        while (--bytes > 0)
                value = value * 256 + answer[at++];
        return value;
}

/* Sends a request with a flexible header; reads the response up to its body, behind the throttle time. */
UNUSED static void call(int fd, int api, int version, const unsigned char *body, size_t size) {
        static const unsigned char header[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 'c', 0};
        unsigned char request[512];
        size_t total = sizeof(header) + size;
        memcpy(request, header, sizeof(header));
        memcpy(request + sizeof(header), body, size);
        request[2] = (unsigned char)((total - 4) >> 8);
        request[3] = (unsigned char)(total - 4);
        request[5] = (unsigned char)api;
        request[7] = (unsigned char)version;
        CHECK(send(fd, request, total, 0) == (ssize_t)total);
        length = 4;
        memset(answer, 0, sizeof(answer));
        read_fully(fd, answer, 4);
        at = 0;
        length = (size_t)number(4);
        CHECK(length < sizeof(answer));
        if (length >= sizeof(answer))
                length = 0;
        read_fully(fd, answer, length);
        at = 0;
        CHECK(number(4) == 9);
        CHECK(number(1) == 0);
        CHECK(number(4) == 0);
}
#endif
