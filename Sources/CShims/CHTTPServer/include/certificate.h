// Certificates for HTTPS, held by GnuTLS, which libmicrohttpd uses.
#pragma once
#include <stddef.h>

typedef struct countersign_certificate countersign_certificate;

// Loads a chain and its private key, both PEM. Returns NULL if they are invalid or do not match, and sets
// `problem` to GnuTLS's static message.
countersign_certificate *countersign_certificate_load(
    const char *chain, size_t chain_size, const char *key, size_t key_size, const char *password,
    const char **problem);

void countersign_certificate_free(countersign_certificate *certificate);
