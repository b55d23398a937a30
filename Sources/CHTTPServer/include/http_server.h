// What Swift cannot call of libmicrohttpd itself: variadic functions, unions, and waits on descriptors.
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
    // Says who may connect.
    MHD_AcceptPolicyCallback accept;
    MHD_AccessHandlerCallback handler;
    void *(*request_line)(void *context, const char *uri, struct MHD_Connection *connection);
    MHD_RequestCompletedCallback completed;
    MHD_NotifyConnectionCallback connection_changed;
    // The certificate for a connection, told by its socket context; NULL serves HTTP.
    const countersign_certificate *(*certificate)(void *socket_context);
    void *context;
} countersign_mhd_options;

// How many loops on one port find work: one for each processor that this process may use. 1 where the system does not deal out
// the connections to a port among those that listen on it.
int countersign_usable_loops(void);

// Makes so many sockets that listen on one port, among which the system deals out the connections. Returns the port, or 0
// when the address is not a literal IPv4 or IPv6 address, or cannot be bound (see errno).
int countersign_listen(const char *host, uint16_t port, int *sockets, int count);

// Serves what comes to a listening socket, which is closed with the daemon. NULL when that fails (see errno).
struct MHD_Daemon *countersign_mhd_start(int socket, const countersign_mhd_options *options);

int countersign_mhd_socket(struct MHD_Connection *connection);

// How many bytes have been read from a TCP socket since it was connected; -1 where the system does not tell (other than
// Linux).
int64_t countersign_taken_bytes(int socket);

void *countersign_mhd_socket_context(struct MHD_Connection *connection);

// Writes the client's address as text; empty when unknown.
void countersign_mhd_client(struct MHD_Connection *connection, char *text, size_t capacity);

// The same of an address that is not yet a connection.
void countersign_mhd_address(const struct sockaddr *address, char *text, size_t capacity);

// An answer whose bytes stay where they are; `release` gets `owner` once it is sent or given up.
struct MHD_Response *countersign_mhd_response(
    const void *bytes, size_t count, MHD_ContentReaderFreeCallback release, void *owner);

// Gives freed memory back to the system rather than keep it for later: what a flood took is not held forever.
void countersign_return_freed_memory(void);

// Gives back what lies free between blocks in use, if that has grown by much since it last did. By one thread at a time.
void countersign_return_free_pages(void);

// Lets the threads of everybody else run first. Once and for all: a thread may not take its priority back.
void countersign_run_after_others(void);

// Raises the soft limit of open files, which is 1024 in most shells, as far as it goes up to `count`.
void countersign_raise_open_files(size_t count);

// The soft limit of open files; LONG_MAX if it is unlimited or unknown.
long countersign_open_files(void);

// 0 if the process or the system has no free file descriptor.
int countersign_has_free_descriptor(void);

int countersign_mhd_is_open(enum MHD_ConnectionNotificationCode code);

// Bytes from the request line to the empty line that ends the header; 0 when unknown.
size_t countersign_mhd_header_bytes(struct MHD_Connection *connection);

// True for the versions that take NUL, a lone CR and a lone LF in a header without a word. They keep the header as
// it came, with each line end overwritten, so that what they swallowed shows in the distances between fields.
int countersign_mhd_is_lenient(void);

// What a wait has found, for the pass after it.
typedef struct countersign_mhd_ready {
#ifdef __linux__
    int nothing;
#else
    fd_set reading, writing, failing;
#endif
} countersign_mhd_ready;

// Not 0 when the other end has closed the connection, or its half of it, or it has failed.
int countersign_has_hung_up(int socket);

// Waits until a connection, a deadline of the library's or a byte on `wake` wants attention, at most `milliseconds`, and
// reads away the bytes on `wake`, which must not block. With `all_wait` the library's deadline does not count: it would have
// the requests that wait for their answers asked again and again. Returns 0 when nothing came within the time.
int countersign_mhd_wait(
    struct MHD_Daemon *daemon, int wake, int milliseconds, int all_wait, countersign_mhd_ready *ready);

// Lets the library serve all that is ready.
void countersign_mhd_pass(struct MHD_Daemon *daemon, countersign_mhd_ready *ready);
