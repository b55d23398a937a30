#pragma once
#include "include/certificate.h"

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>

#define COUNTERSIGN_CHAIN 16

struct countersign_certificate {
    gnutls_pcert_st chain[COUNTERSIGN_CHAIN];
    unsigned int count;
    gnutls_privkey_t key;
};
