// Certificates for HTTPS, held by GnuTLS, which libmicrohttpd is built on.
#pragma once
#include <stddef.h>

typedef struct countersign_certificate countersign_certificate;

// Reads a chain and its private key, both PEM. NULL when they are not valid or do not belong together; then `problem`
// is GnuTLS's word for why, and stays valid.
countersign_certificate *countersign_certificate_load(
    const char *chain, size_t chain_size, const char *key, size_t key_size, const char *password,
    const char **problem);

void countersign_certificate_free(countersign_certificate *certificate);
