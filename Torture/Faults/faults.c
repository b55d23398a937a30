/* faults.so: LD_PRELOAD shim that injects faults into a process, so that a test can show that it detects them.
 * FAULT_DROP=text: writes to files whose path contains the text succeed and do nothing. FAULT_BLOCKING_LOCKS=1: flock() ignores
 * LOCK_NB and blocks. FAULT_FSYNC=lie: fsync() and fdatasync() succeed and do nothing; =fail: they fail with EIO.
 * Build: cc -O2 -shared -fPIC -o faults.so faults.c -ldl */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/types.h>
#include <unistd.h>

static int is_dropped(int file) {
    const char *text = getenv("FAULT_DROP");
    char link[64], path[PATH_MAX];
    if (!text) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    return strstr(path, text) != NULL;
}

ssize_t write(int file, const void *bytes, size_t count) {
    static ssize_t (*real)(int, const void *, size_t);
    if (!real) real = dlsym(RTLD_NEXT, "write");
    return is_dropped(file) ? (ssize_t)count : real(file, bytes, count);
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t offset) {
    static ssize_t (*real)(int, const void *, size_t, off_t);
    if (!real) real = dlsym(RTLD_NEXT, "pwrite");
    return is_dropped(file) ? (ssize_t)count : real(file, bytes, count, offset);
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t offset) {
    static ssize_t (*real)(int, const void *, size_t, off64_t);
    if (!real) real = dlsym(RTLD_NEXT, "pwrite64");
    return is_dropped(file) ? (ssize_t)count : real(file, bytes, count, offset);
}

int flock(int file, int operation) {
    static int (*real)(int, int);
    if (!real) real = dlsym(RTLD_NEXT, "flock");
    return real(file, getenv("FAULT_BLOCKING_LOCKS") ? operation & ~LOCK_NB : operation);
}

static int synchronize(int file, const char *name) {
    const char *fault = getenv("FAULT_FSYNC");
    int (*real)(int) = dlsym(RTLD_NEXT, name);
    if (fault && !strcmp(fault, "lie")) return 0;
    if (fault && !strcmp(fault, "fail")) {
        errno = EIO;
        return -1;
    }
    return real(file);
}

int fsync(int file) { return synchronize(file, "fsync"); }
int fdatasync(int file) { return synchronize(file, "fdatasync"); }
