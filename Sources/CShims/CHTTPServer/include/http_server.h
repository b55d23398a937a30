// The parts of libmicrohttpd that Swift cannot call: variadic functions, unions, and waits on descriptors.
#pragma once
#include "certificate.h"
#include <microhttpd.h>
#include <stddef.h>
#include <stdint.h>
#ifndef __linux__
#include <sys/select.h>
#endif

typedef struct countersign_mhd_options {
    unsigned int connection_limit;
    unsigned int idle_seconds;
    size_t header_bytes;
    MHD_AcceptPolicyCallback accept;
    MHD_AccessHandlerCallback handler;
    void *(*request_line)(void *context, const char *uri, struct MHD_Connection *connection);
    MHD_RequestCompletedCallback completed;
    MHD_NotifyConnectionCallback connection_changed;
    // Returns the certificate for the connection with this socket context; NULL serves HTTP.
    const countersign_certificate *(*certificate)(void *socket_context);
    void *context;
} countersign_mhd_options;

// The number of loops that can run in parallel on one port: the processors available to this process. 1 on
// systems that do not distribute connections among the sockets of a port.
int countersign_usable_loops(void);

// Creates `count` sockets that listen on one port; the system distributes connections among them. Returns the
// port, or 0 if the address is not a literal IPv4 or IPv6 address or cannot be bound (see errno).
int countersign_listen(const char *host, uint16_t port, int *sockets, int count);

// Serves the connections of a listening socket and takes ownership of it. Returns NULL on error (see errno).
struct MHD_Daemon *countersign_mhd_start(int socket, const countersign_mhd_options *options);

int countersign_mhd_socket(struct MHD_Connection *connection);

// The number of bytes read from a TCP socket since it was connected; -1 on systems other than Linux.
int64_t countersign_taken_bytes(int socket);

void *countersign_mhd_socket_context(struct MHD_Connection *connection);

// Writes the client's address as text; empty if unknown.
void countersign_mhd_client(struct MHD_Connection *connection, char *text, size_t capacity);

// The same for an address that has no connection yet.
void countersign_mhd_address(const struct sockaddr *address, char *text, size_t capacity);

// A response whose bytes are not copied. `release` is called with `owner` after the response was sent or
// dropped.
struct MHD_Response *countersign_mhd_response(
    const void *bytes, size_t count, MHD_ContentReaderFreeCallback release, void *owner);

// Configures malloc to return freed memory to the system, so that memory use shrinks after a flood.
void countersign_return_freed_memory(void);

// Returns free memory between used blocks to the system if it has grown much since the last call. Not
// thread-safe.
void countersign_return_free_pages(void);

// Lowers the priority of the calling thread, permanently: a thread may not raise its priority again.
void countersign_run_after_others(void);

// Raises the soft limit of open files, usually 1024, to `count` or as far as allowed.
void countersign_raise_open_files(size_t count);

// The soft limit of open files; LONG_MAX if it is unlimited or unknown.
long countersign_open_files(void);

// 0 if the process or the system has no free file descriptor.
int countersign_has_free_descriptor(void);

int countersign_mhd_is_open(enum MHD_ConnectionNotificationCode code);

// Bytes from the request line to the empty line that ends the header; 0 when unknown.
size_t countersign_mhd_header_bytes(struct MHD_Connection *connection);

// Whether this version of the library ignores NUL, a lone CR and a lone LF in a header. It overwrites line
// ends in place, so the skipped bytes show as gaps between the fields.
int countersign_mhd_is_lenient(void);

// The result of a wait, for the next pass.
typedef struct countersign_mhd_ready {
#ifdef __linux__
    int nothing;
#else
    fd_set reading, writing, failing;
#endif
} countersign_mhd_ready;

// Not 0 if the peer has closed the connection or its sending half, or if the connection has failed.
int countersign_has_hung_up(int socket);

// Waits until a connection, a deadline of the library or a byte on `wake` is ready, at most `milliseconds`.
// Reads the bytes on `wake`, which must be non-blocking. With `all_wait` the library's deadline is ignored,
// because it would make the loop poll waiting requests without a pause. Returns 0 after the time-out.
int countersign_mhd_wait(
    struct MHD_Daemon *daemon, int wake, int milliseconds, int all_wait, countersign_mhd_ready *ready);

void countersign_mhd_pass(struct MHD_Daemon *daemon, countersign_mhd_ready *ready);
