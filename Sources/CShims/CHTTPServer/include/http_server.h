// Functions that need system calls, macros or OpenSSL features that Swift cannot use.
#pragma once
#include <openssl/ssl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#ifdef __linux__
#include <sys/epoll.h>
#endif

// The number of processors of this process; 1 on systems that do not distribute connections among a port's sockets.
int countersign_usable_loops(void);

// Creates `count` sockets that listen on one port; the system distributes connections among them. Returns the
// port, or 0 if the address is not a literal IPv4 or IPv6 address or cannot be bound (see errno).
int countersign_listen(const char *host, uint16_t port, int *sockets, int count);

// Writes the client's address as text. Returns a non-blocking socket, or -1 (see errno).
int countersign_accept(int listener, char *text, size_t capacity);

// Blocks SIGPIPE in the calling thread, so that writing to a closed connection is an ordinary error.
void countersign_ignore_broken_pipes(void);

// Configures malloc to return freed memory to the system, so that memory use shrinks after a flood.
void countersign_return_freed_memory(void);

// Returns free memory between used blocks to the system if this memory has grown by 8 MiB since it was last
// returned. Not thread-safe.
void countersign_return_free_pages(void);

// Lowers the priority of the calling thread on Linux, permanently: a thread may not raise its priority again.
void countersign_run_after_others(void);

// Raises the soft limit of open files, usually 1024, to `count` or as far as allowed.
void countersign_raise_open_files(size_t count);

// The soft limit of open files; LONG_MAX if it is unlimited or unknown.
long countersign_open_files(void);

// Loads a certificate chain and its private key, both PEM. Returns NULL if they are invalid or do not match,
// and sets `problem` to a static message.
SSL_CTX *countersign_tls_context(
    const char *chain, int chain_size, const char *key, int key_size, const char *password,
    const char **problem);

// Adds the certificate of the next name, for clients that send a name. Takes ownership of `next`. Returns 0 if there is
// not enough memory. Not thread-safe.
int countersign_tls_add(SSL_CTX *context, SSL_CTX *next);

void countersign_tls_context_free(SSL_CTX *context);

// Begins TLS on a non-blocking socket. Returns NULL if there is not enough memory.
SSL *countersign_tls_open(SSL_CTX *context, int socket);

enum { COUNTERSIGN_TLS_DONE, COUNTERSIGN_TLS_READ, COUNTERSIGN_TLS_WRITE, COUNTERSIGN_TLS_FAILED };

// Continues the handshake. Returns one of the constants above: done, waiting to read or to write, or failed.
int countersign_tls_handshake(SSL *tls);

enum { COUNTERSIGN_TLS_WAIT = -1 };

// Return the number of bytes, 0 at the end, COUNTERSIGN_TLS_WAIT if the socket is not ready, or -2 after a failure.
ssize_t countersign_tls_read(SSL *tls, void *bytes, size_t count);
ssize_t countersign_tls_write(SSL *tls, const void *bytes, size_t count);

// Sends a close_notify alert (RFC 8446, section 6.1): no more bytes follow.
void countersign_tls_close(SSL *tls);

void countersign_tls_free(SSL *tls);
