/* A tracer that wraps functions of the C library by LD_PRELOAD, like Darshan. It logs the opens and reads of worker threads, which are
 * named a<N>w<M>: `accelerator open path`, `accelerator read path offset bytes nanoseconds`. It also logs all writes to checkpoints:
 * `-1 write path bytes`, `-1 fdopen path`, `-1 fwrite path bytes`. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static FILE *trace;

static int current_accelerator(void) {
    char name[16];
    unsigned accelerator, worker;
    pthread_getname_np(pthread_self(), name, sizeof name);
    if (sscanf(name, "a%uw%u", &accelerator, &worker) != 2)
        return -1;
    return (int)accelerator;
}

static int path_of(int fd, char *path, size_t size) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, path, size - 1);
    path[len < 0 ? 0 : len] = 0;
    return len > 0;
}

__attribute__((constructor)) static void open_trace(void) {
    const char *path = getenv("TRACE_FILE");
    trace = path ? fopen(path, "a") : NULL;
}

static long long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

ssize_t pread64(int fd, void *buffer, size_t count, off64_t offset) {
    static ssize_t (*real)(int, void *, size_t, off64_t);
    char path[4096];
    if (!real)
        real = dlsym(RTLD_NEXT, "pread64");
    long long start_ns = now_ns();
    ssize_t bytes = real(fd, buffer, count, offset);
    long long ns = now_ns() - start_ns;
    int reader = current_accelerator();
    if (trace && reader >= 0 && path_of(fd, path, sizeof path))
        fprintf(trace, "%d read %s %lld %zd %lld\n", reader, path, (long long)offset, bytes, ns);
    return bytes;
}

int openat64(int folder, const char *name, int flags, ...) {
    static int (*real)(int, const char *, int, ...);
    char path[4096];
    va_list rest;
    va_start(rest, flags);
    mode_t mode = va_arg(rest, mode_t);
    va_end(rest);
    if (!real)
        real = dlsym(RTLD_NEXT, "openat64");
    int fd = real(folder, name, flags, mode);
    int reader = current_accelerator();
    if (trace && reader >= 0 && fd >= 0 && path_of(fd, path, sizeof path))
        fprintf(trace, "%d open %s\n", reader, path);
    return fd;
}

static int checkpoint_of(int fd, char *path, size_t size) {
    return trace && path_of(fd, path, size) && strstr(path, "/checkpoints/");
}

ssize_t write(int fd, const void *buffer, size_t count) {
    static ssize_t (*real)(int, const void *, size_t);
    char path[4096];
    if (!real)
        real = dlsym(RTLD_NEXT, "write");
    ssize_t bytes = real(fd, buffer, count);
    if (checkpoint_of(fd, path, sizeof path))
        fprintf(trace, "-1 write %s %zd\n", path, bytes);
    return bytes;
}

FILE *fdopen(int fd, const char *mode) {
    static FILE *(*real)(int, const char *);
    char path[4096];
    if (!real)
        real = dlsym(RTLD_NEXT, "fdopen");
    FILE *stream = real(fd, mode);
    if (stream && checkpoint_of(fd, path, sizeof path))
        fprintf(trace, "-1 fdopen %s\n", path);
    return stream;
}

size_t fwrite(const void *buffer, size_t size, size_t count, FILE *stream) {
    static size_t (*real)(const void *, size_t, size_t, FILE *);
    char path[4096];
    if (!real)
        real = dlsym(RTLD_NEXT, "fwrite");
    size_t written = real(buffer, size, count, stream);
    if (checkpoint_of(fileno(stream), path, sizeof path))
        fprintf(trace, "-1 fwrite %s %zu\n", path, written * size);
    return written;
}
