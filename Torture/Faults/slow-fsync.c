/* slow-fsync.so: LD_PRELOAD shim that makes fsync and fdatasync take SLOW_FSYNC_MS milliseconds longer. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

static int slowly(const char *name, int fd) {
    const char *milliseconds = getenv("SLOW_FSYNC_MS");
    if (milliseconds) usleep((useconds_t)atoi(milliseconds) * 1000);
    return ((int (*)(int))dlsym(RTLD_NEXT, name))(fd);
}

int fsync(int fd) { return slowly("fsync", fd); }
int fdatasync(int fd) { return slowly("fdatasync", fd); }
