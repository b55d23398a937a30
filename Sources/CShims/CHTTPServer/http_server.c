#ifdef __linux__
// For sched_getaffinity and CPU_COUNT.
#define _GNU_SOURCE
#endif
#include "http_server.h"

#include "certificate.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#ifdef __linux__
#include <poll.h>
#include <sched.h>
#endif
#ifdef __GLIBC__
#include <malloc.h>
#endif

// Shared by all servers of the process. GnuTLS passes a session with a pointer to the connection.
static const countersign_certificate *(*certificate_of)(void *socket_context);

static int choose_certificate(
    gnutls_session_t session, const gnutls_datum_t *authorities, int authority_count,
    const gnutls_pk_algorithm_t *algorithms, int algorithm_count, gnutls_pcert_st **chain,
    unsigned int *count, gnutls_privkey_t *key) {
    struct MHD_Connection *connection = gnutls_session_get_ptr(session);
    void *context = connection ? countersign_mhd_socket_context(connection) : NULL;
    const countersign_certificate *certificate = context ? certificate_of(context) : NULL;
    (void)authorities, (void)authority_count, (void)algorithms, (void)algorithm_count;
    if (!certificate) return -1;
    *chain = (gnutls_pcert_st *)certificate->chain;
    *count = certificate->count;
    *key = certificate->key;
    return 0;
}

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
        // The system chooses the port for the first socket if it is 0; the others use the same port.
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

struct MHD_Daemon *countersign_mhd_start(int socket, const countersign_mhd_options *options) {
    // Without a thread of the library: the caller runs it pass by pass.
    unsigned int flags = MHD_NO_FLAG;
#ifdef __linux__
    flags |= MHD_USE_EPOLL;
#endif
    struct MHD_OptionItem plain[] = {{MHD_OPTION_END, 0, NULL}};
    struct MHD_OptionItem secure[] = {
        {MHD_OPTION_HTTPS_PRIORITIES, 0, "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"},
        {MHD_OPTION_HTTPS_CERT_CALLBACK, 0, (void *)(intptr_t)choose_certificate},
        {MHD_OPTION_END, 0, NULL}};
    if (options->certificate) {
        flags |= MHD_USE_TLS;
        certificate_of = options->certificate;
    }
    return MHD_start_daemon(
        flags, 0, options->accept, options->context, options->handler, options->context,
        MHD_OPTION_LISTEN_SOCKET, (MHD_socket)socket,
        MHD_OPTION_CONNECTION_LIMIT, options->connection_limit,
        MHD_OPTION_CONNECTION_TIMEOUT, options->idle_seconds,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, options->header_bytes,
        MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_URI_LOG_CALLBACK, options->request_line, options->context,
        MHD_OPTION_NOTIFY_COMPLETED, options->completed, options->context,
        MHD_OPTION_NOTIFY_CONNECTION, options->connection_changed, options->context,
        MHD_OPTION_ARRAY, options->certificate ? secure : plain,
        MHD_OPTION_END);
}

int countersign_mhd_socket(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info ? info->connect_fd : -1;
}

void *countersign_mhd_socket_context(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

void countersign_mhd_client(struct MHD_Connection *connection, char *text, size_t capacity) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    countersign_mhd_address(info ? info->client_addr : NULL, text, capacity);
}

void countersign_mhd_address(const struct sockaddr *address, char *text, size_t capacity) {
    text[0] = 0;
    if (!address) return;
    if (address->sa_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)address)->sin_addr, text, (socklen_t)capacity);
    else if (address->sa_family == AF_INET6)
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)address)->sin6_addr, text, (socklen_t)capacity);
}

struct MHD_Response *countersign_mhd_response(
    const void *bytes, size_t count, MHD_ContentReaderFreeCallback release, void *owner) {
    return MHD_create_response_from_buffer_with_free_callback_cls(count, (void *)bytes, release, owner);
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
    // `fordblks` also counts returned pages, hence the difference. Small amounts keep malloc_trim and its
    // lock short.
    static size_t known;
    const size_t much = 32u << 20;
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

int countersign_has_free_descriptor(void) {
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return errno != EMFILE && errno != ENFILE;
    close(fd);
    return 1;
}

int countersign_mhd_is_open(enum MHD_ConnectionNotificationCode code) {
    return code == MHD_CONNECTION_NOTIFY_STARTED;
}

size_t countersign_mhd_header_bytes(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    return info ? info->header_size : 0;
}

int countersign_mhd_is_lenient(void) {
    return strncmp(MHD_get_version(), "0.9.", 4) == 0 && strcmp(MHD_get_version(), "0.9.76") < 0;
}

int countersign_has_hung_up(int socket) {
#ifdef __linux__
    struct pollfd ended = {socket, POLLRDHUP, 0};
    return poll(&ended, 1, 0) > 0;
#else
    char byte;
    ssize_t size = recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return size == 0 || (size < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
#endif
}

int countersign_mhd_wait(
    struct MHD_Daemon *daemon, int wake, int milliseconds, int all_wait, countersign_mhd_ready *ready) {
    char bytes[256];
    MHD_UNSIGNED_LONG_LONG bound;
    int found, is_written;
    if (!all_wait && MHD_get_timeout(daemon, &bound) == MHD_YES && bound < (MHD_UNSIGNED_LONG_LONG)milliseconds)
        milliseconds = (int)bound;
#ifdef __linux__
    (void)ready;
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD);
    struct pollfd waiting[2] = {{info->epoll_fd, POLLIN, 0}, {wake, POLLIN, 0}};
    found = poll(waiting, 2, milliseconds);
    is_written = found > 0 && waiting[1].revents != 0;
#else
    MHD_socket highest = wake;
    struct timeval limit = {milliseconds / 1000, (milliseconds % 1000) * 1000};
    FD_ZERO(&ready->reading);
    FD_ZERO(&ready->writing);
    FD_ZERO(&ready->failing);
    MHD_get_fdset(daemon, &ready->reading, &ready->writing, &ready->failing, &highest);
    if (wake > highest) highest = wake;
    FD_SET(wake, &ready->reading);
    found = select(highest + 1, &ready->reading, &ready->writing, &ready->failing, &limit);
    is_written = found > 0 && FD_ISSET(wake, &ready->reading);
#endif
    while (is_written && read(wake, bytes, sizeof bytes) == sizeof bytes) {}
    return found > 0;
}

void countersign_mhd_pass(struct MHD_Daemon *daemon, countersign_mhd_ready *ready) {
#ifdef __linux__
    (void)ready;
    MHD_run(daemon);
#else
    MHD_run_from_select(daemon, &ready->reading, &ready->writing, &ready->failing);
#endif
}
