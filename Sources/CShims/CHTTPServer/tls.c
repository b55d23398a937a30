#include "http_server.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <string.h>

#define LONGEST_CHAIN 16
// The maximum number of handshake messages and alerts after the handshake, besides one for each read of data.
#define MOST_MESSAGES 32

// OpenSSL processes any number of key updates within one read. The application data counts them, from 1, and each read
// of data subtracts one; NULL during the handshake.
static void count_message(int is_sent, int version, int type, const void *bytes, size_t size, SSL *tls, void *argument) {
    (void)is_sent, (void)version, (void)bytes, (void)size, (void)argument;
    uintptr_t count = (uintptr_t)SSL_get_app_data(tls);
    if (!count || (type != SSL3_RT_HANDSHAKE && type != SSL3_RT_ALERT)) return;
    SSL_set_app_data(tls, (void *)(count + 1));
    // Ends the read.
    if (count > MOST_MESSAGES) SSL_set_shutdown(tls, SSL_RECEIVED_SHUTDOWN);
}

static int give_password(char *buffer, int size, int is_writing, void *password) {
    (void)is_writing;
    size_t length = password ? strlen(password) : 0;
    if (length > (size_t)size) return -1;
    if (length) memcpy(buffer, password, length);
    return (int)length;
}

// Returns NULL, or the reason why the chain cannot be used.
static const char *load_chain(SSL_CTX *context, BIO *text) {
    for (int count = 0;; count++) {
        X509 *certificate = PEM_read_bio_X509(text, NULL, NULL, NULL);
        if (!certificate) {
            int is_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
            ERR_clear_error();
            return count == 0 ? "it is not a PEM certificate" : is_end ? NULL : "the chain is damaged";
        }
        int is_taken = count < LONGEST_CHAIN && (count == 0 ? SSL_CTX_use_certificate(context, certificate)
                                                            : SSL_CTX_add1_chain_cert(context, certificate));
        X509_free(certificate);
        if (count >= LONGEST_CHAIN) return "the chain has more than 16 certificates";
        if (!is_taken) return "OpenSSL does not accept the certificate";
    }
}

static const char *load_key(SSL_CTX *context, BIO *text, const char *password) {
    EVP_PKEY *key = PEM_read_bio_PrivateKey(text, NULL, give_password, (void *)password);
    if (!key) return "the key is not PEM, or its password is wrong";
    int is_taken = SSL_CTX_use_PrivateKey(context, key) == 1 && SSL_CTX_check_private_key(context) == 1;
    EVP_PKEY_free(key);
    return is_taken ? NULL : "the certificate and the key do not match";
}

SSL_CTX *countersign_tls_context(
    const char *chain, int chain_size, const char *key, int key_size, const char *password,
    const char **problem) {
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    BIO *chain_text = BIO_new_mem_buf(chain, chain_size), *key_text = BIO_new_mem_buf(key, key_size);
    *problem = "there is not enough memory";
    if (context && chain_text && key_text) {
        *problem = load_chain(context, chain_text);
        if (!*problem) *problem = load_key(context, key_text, password);
    }
    BIO_free(chain_text);
    BIO_free(key_text);
    ERR_clear_error();
    if (*problem) {
        SSL_CTX_free(context);
        return NULL;
    }
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    // Renegotiation would bypass the limits on handshakes. Many clients close without a close_notify alert.
    SSL_CTX_set_options(
        context, SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_CIPHER_SERVER_PREFERENCE);
    // Frees the buffers of idle connections.
    SSL_CTX_set_mode(
        context,
        SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_read_ahead(context, 1);
    SSL_CTX_set_msg_callback(context, count_message);
    // Clients resume sessions with tickets, which take no memory here.
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    return context;
}

// The ex_data index at which a context stores the context with the next certificate.
static int next_index = -1;

// Chooses the first certificate for the name that the client sends (RFC 6066, section 3), or else the first of all.
static int choose_certificate(SSL *tls, int *alert, void *argument) {
    (void)alert, (void)argument;
    const char *name = SSL_get_servername(tls, TLSEXT_NAMETYPE_host_name);
    SSL_CTX *context = name ? SSL_get_SSL_CTX(tls) : NULL;
    while (context && X509_check_host(SSL_CTX_get0_certificate(context), name, 0, 0, NULL) != 1)
        context = SSL_CTX_get_ex_data(context, next_index);
    if (context) SSL_set_SSL_CTX(tls, context);
    return SSL_TLSEXT_ERR_OK;
}

static void free_next(void *parent, void *next, CRYPTO_EX_DATA *data, int index, long number, void *argument) {
    (void)parent, (void)data, (void)index, (void)number, (void)argument;
    SSL_CTX_free(next);
}

int countersign_tls_add(SSL_CTX *context, SSL_CTX *next) {
    if (next_index < 0) next_index = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, free_next);
    if (next_index < 0 || !SSL_CTX_set_ex_data(context, next_index, next)) return 0;
    SSL_CTX_set_tlsext_servername_callback(context, choose_certificate);
    return 1;
}

void countersign_tls_context_free(SSL_CTX *context) { SSL_CTX_free(context); }

SSL *countersign_tls_open(SSL_CTX *context, int socket) {
    SSL *tls = SSL_new(context);
    if (tls && SSL_set_fd(tls, socket) != 1) {
        SSL_free(tls);
        return NULL;
    }
    if (tls) SSL_set_accept_state(tls);
    return tls;
}

int countersign_tls_handshake(SSL *tls) {
    ERR_clear_error();
    int result = SSL_do_handshake(tls);
    if (result == 1) {
        SSL_set_app_data(tls, (void *)1);
        return COUNTERSIGN_TLS_DONE;
    }
    switch (SSL_get_error(tls, result)) {
    case SSL_ERROR_WANT_READ: return COUNTERSIGN_TLS_READ;
    case SSL_ERROR_WANT_WRITE: return COUNTERSIGN_TLS_WRITE;
    default: return COUNTERSIGN_TLS_FAILED;
    }
}

static ssize_t outcome(SSL *tls, int result, size_t count) {
    if (result > 0) return (ssize_t)count;
    switch (SSL_get_error(tls, result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE: return COUNTERSIGN_TLS_WAIT;
    case SSL_ERROR_ZERO_RETURN: return 0;
    default: return COUNTERSIGN_TLS_WAIT - 1;
    }
}

ssize_t countersign_tls_read(SSL *tls, void *bytes, size_t count) {
    size_t done = 0;
    ERR_clear_error();
    int result = SSL_read_ex(tls, bytes, count, &done);
    uintptr_t messages = (uintptr_t)SSL_get_app_data(tls);
    if (result > 0 && messages > 1) SSL_set_app_data(tls, (void *)(messages - 1));
    return outcome(tls, result, done);
}

ssize_t countersign_tls_write(SSL *tls, const void *bytes, size_t count) {
    size_t done = 0;
    ERR_clear_error();
    int result = SSL_write_ex(tls, bytes, count, &done);
    return outcome(tls, result, done);
}

void countersign_tls_close(SSL *tls) {
    ERR_clear_error();
    SSL_shutdown(tls);
}

void countersign_tls_free(SSL *tls) { SSL_free(tls); }
