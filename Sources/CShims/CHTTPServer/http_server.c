#ifdef __linux__
// For sched_getaffinity and CPU_COUNT.
#define _GNU_SOURCE
#endif
#include "http_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#ifdef __linux__
#include <sched.h>
#endif
#ifdef __GLIBC__
#include <malloc.h>
#endif

static socklen_t read_address(const char *host, uint16_t port, struct sockaddr_storage *address) {
    struct sockaddr_in *v4 = (struct sockaddr_in *)address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)address;
    memset(address, 0, sizeof *address);
    if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        return sizeof *v4;
    }
    if (inet_pton(AF_INET6, host, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
        return sizeof *v6;
    }
    return 0;
}

// Returns a socket bound to the address. The first socket fails if another program listens on the port; the
// others share the port with the first.
static int bound_socket(struct sockaddr_storage *address, socklen_t size, int is_first, int is_shared) {
    const int on = 1;
    int fd = socket(address->ss_family, SOCK_STREAM, 0);
    if (fd < 0) return -1;
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (address->ss_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (!is_first) setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)address, size) != 0) goto failed;
    if (is_first && is_shared) setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    if (listen(fd, 1024) != 0) goto failed;
    return fd;
failed: {
    const int why = errno;
    close(fd);
    errno = why;
    return -1;
}
}

int countersign_usable_loops(void) {
#ifdef __linux__
    cpu_set_t processors;
    if (sched_getaffinity(0, sizeof processors, &processors) == 0) return CPU_COUNT(&processors);
#endif
    return 1;
}

int countersign_listen(const char *host, uint16_t port, int *sockets, int count) {
    struct sockaddr_storage address;
    socklen_t size = read_address(host, port, &address);
    if (size == 0) return 0;
    for (int i = 0; i < count; i++) {
        sockets[i] = bound_socket(&address, size, i == 0, count > 1);
        // If `port` is 0, the system chooses one for the first socket. The other sockets use that port.
        if (sockets[i] >= 0 && (i > 0 || getsockname(sockets[i], (struct sockaddr *)&address, &size) == 0)) continue;
        const int why = errno;
        for (; i >= 0; i--)
            if (sockets[i] >= 0) close(sockets[i]);
        errno = why;
        return 0;
    }
    // The port is at the same offset in both address types.
    return ntohs(((struct sockaddr_in *)&address)->sin_port);
}

int countersign_accept(int listener, char *text, size_t capacity) {
    const int on = 1;
    struct sockaddr_storage address;
    socklen_t size;
    int fd;
    text[0] = 0;
    do {
        size = sizeof address;
#ifdef __linux__
        fd = accept4(listener, (struct sockaddr *)&address, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
#else
        fd = accept(listener, (struct sockaddr *)&address, &size);
#endif
    } while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
    if (fd < 0) return -1;
#ifndef __linux__
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(fd, F_SETFL, O_NONBLOCK);
#endif
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (address.ss_family == AF_INET)
        inet_ntop(AF_INET, &((struct sockaddr_in *)&address)->sin_addr, text, (socklen_t)capacity);
    else if (address.ss_family == AF_INET6)
        inet_ntop(AF_INET6, &((struct sockaddr_in6 *)&address)->sin6_addr, text, (socklen_t)capacity);
    return fd;
}

void countersign_ignore_broken_pipes(void) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
}

void countersign_return_freed_memory(void) {
#ifdef __GLIBC__
    // By default, glibc raises its mmap threshold after freeing a large block, so later ones fragment the
    // heap. It also uses several arenas for each processor, from which memory seldom returns to the system.
    mallopt(M_MMAP_THRESHOLD, 128 * 1024);
    mallopt(M_TRIM_THRESHOLD, 1024 * 1024);
    mallopt(M_ARENA_MAX, 2);
#endif
}

void countersign_return_free_pages(void) {
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
    // `fordblks` also counts pages that were returned, so only its growth counts. malloc_trim locks the heap; calling
    // it for each 8 MiB keeps each call short.
    static size_t known;
    const size_t much = 8u << 20;
    size_t unused = mallinfo2().fordblks;
    if (unused >= known + much) {
        malloc_trim(0);
        unused = mallinfo2().fordblks;
        known = unused;
    }
    if (unused < known) known = unused;
#endif
}

void countersign_run_after_others(void) {
#ifdef __linux__
    // On Linux this sets the priority of one thread, elsewhere that of the whole process.
    setpriority(PRIO_PROCESS, 0, 10);
#endif
}

void countersign_raise_open_files(size_t count) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= count) return;
    limit.rlim_cur = limit.rlim_max < count ? limit.rlim_max : (rlim_t)count;
    setrlimit(RLIMIT_NOFILE, &limit);
}

long countersign_open_files(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= LONG_MAX) return LONG_MAX;
    return (long)limit.rlim_cur;
}
