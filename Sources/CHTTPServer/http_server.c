#include "http_server.h"

#include "certificate.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#ifdef __linux__
#include <poll.h>
#endif
#ifdef __GLIBC__
#include <malloc.h>
#endif

// One for all servers of the process: GnuTLS hands over the session, which leads to the connection.
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

struct MHD_Daemon *countersign_mhd_start(
    const char *host, uint16_t port, const countersign_mhd_options *options) {
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr *address;
    // No thread of the library's own: the caller runs it, pass by pass.
    unsigned int flags = MHD_NO_FLAG;
#ifdef __linux__
    flags |= MHD_USE_EPOLL;
#endif
    memset(&v4, 0, sizeof v4);
    memset(&v6, 0, sizeof v6);
    if (inet_pton(AF_INET, host, &v4.sin_addr) == 1) {
        v4.sin_family = AF_INET;
        v4.sin_port = htons(port);
        address = (struct sockaddr *)&v4;
    } else if (inet_pton(AF_INET6, host, &v6.sin6_addr) == 1) {
        v6.sin6_family = AF_INET6;
        v6.sin6_port = htons(port);
        address = (struct sockaddr *)&v6;
        flags |= MHD_USE_IPv6;
    } else {
        return NULL;
    }
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
        flags, port, options->accept, options->context, options->handler, options->context,
        MHD_OPTION_SOCK_ADDR, address,
        MHD_OPTION_CONNECTION_LIMIT, options->connection_limit,
        MHD_OPTION_CONNECTION_TIMEOUT, options->idle_seconds,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, options->header_bytes,
        MHD_OPTION_LISTEN_BACKLOG_SIZE, (unsigned int)1024,
        MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_URI_LOG_CALLBACK, options->request_line, options->context,
        MHD_OPTION_NOTIFY_COMPLETED, options->completed, options->context,
        MHD_OPTION_NOTIFY_CONNECTION, options->connection_changed, options->context,
        MHD_OPTION_ARRAY, options->certificate ? secure : plain,
        MHD_OPTION_END);
}

uint16_t countersign_mhd_port(struct MHD_Daemon *daemon) {
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT);
    return info ? info->port : 0;
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
    // Without these glibc puts large blocks between small ones once a large one was freed, and into as many arenas as
    // there are threads, from which they seldom come back.
    mallopt(M_MMAP_THRESHOLD, 128 * 1024);
    mallopt(M_TRIM_THRESHOLD, 1024 * 1024);
    mallopt(M_ARENA_MAX, 2);
#endif
}

void countersign_return_free_pages(void) {
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
    // What was given back still counts as free. The less there is to give back at once, the shorter others wait for it.
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

void countersign_raise_open_files(size_t count) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= count) return;
    limit.rlim_cur = limit.rlim_max < count ? limit.rlim_max : (rlim_t)count;
    setrlimit(RLIMIT_NOFILE, &limit);
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

void countersign_mhd_wait(
    struct MHD_Daemon *daemon, int wake, int milliseconds, int requests_wait, countersign_mhd_ready *ready) {
    char bytes[256];
    MHD_UNSIGNED_LONG_LONG bound;
    if (MHD_get_timeout(daemon, &bound) == MHD_YES && bound < (MHD_UNSIGNED_LONG_LONG)milliseconds)
        milliseconds = (int)bound;
    if (requests_wait && milliseconds < 10) milliseconds = 10;
#ifdef __linux__
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD);
    struct pollfd waiting[2] = {{info->epoll_fd, POLLIN, 0}, {wake, POLLIN, 0}};
    ready->unused = poll(waiting, 2, milliseconds);
#else
    MHD_socket highest = wake;
    struct timeval limit = {milliseconds / 1000, (milliseconds % 1000) * 1000};
    FD_ZERO(&ready->reading);
    FD_ZERO(&ready->writing);
    FD_ZERO(&ready->failing);
    MHD_get_fdset(daemon, &ready->reading, &ready->writing, &ready->failing, &highest);
    if (wake > highest) highest = wake;
    FD_SET(wake, &ready->reading);
    select(highest + 1, &ready->reading, &ready->writing, &ready->failing, &limit);
#endif
    while (read(wake, bytes, sizeof bytes) == sizeof bytes) {}
}

void countersign_mhd_pass(struct MHD_Daemon *daemon, countersign_mhd_ready *ready) {
#ifdef __linux__
    (void)ready;
    MHD_run(daemon);
#else
    MHD_run_from_select(daemon, &ready->reading, &ready->writing, &ready->failing);
#endif
}
