#include "certificate.h"

#include <stdlib.h>
#include <string.h>

static int same_key(gnutls_privkey_t key, gnutls_pubkey_t public_key) {
    unsigned char own[64], other[64];
    size_t own_size = sizeof own, other_size = sizeof other;
    gnutls_pubkey_t derived;
    int is_same = 0;
    if (gnutls_pubkey_init(&derived) < 0) return 0;
    if (gnutls_pubkey_import_privkey(derived, key, 0, 0) >= 0 &&
        gnutls_pubkey_get_key_id(derived, GNUTLS_KEYID_USE_SHA256, own, &own_size) >= 0 &&
        gnutls_pubkey_get_key_id(public_key, GNUTLS_KEYID_USE_SHA256, other, &other_size) >= 0)
        is_same = own_size == other_size && memcmp(own, other, own_size) == 0;
    gnutls_pubkey_deinit(derived);
    return is_same;
}

countersign_certificate *countersign_certificate_load(
    const char *chain, size_t chain_size, const char *key, size_t key_size, const char *password,
    const char **problem) {
    gnutls_datum_t chain_text = {(unsigned char *)chain, (unsigned int)chain_size};
    gnutls_datum_t key_text = {(unsigned char *)key, (unsigned int)key_size};
    countersign_certificate *certificate = calloc(1, sizeof *certificate);
    int code = GNUTLS_E_MEMORY_ERROR;
    if (!certificate) goto failed;
    if ((code = gnutls_privkey_init(&certificate->key)) < 0) goto failed;
    code = gnutls_privkey_import_x509_raw(certificate->key, &key_text, GNUTLS_X509_FMT_PEM, password, 0);
    if (code < 0) goto failed;
    certificate->count = COUNTERSIGN_CHAIN;
    code = gnutls_pcert_list_import_x509_raw(
        certificate->chain, &certificate->count, &chain_text, GNUTLS_X509_FMT_PEM,
        GNUTLS_X509_CRT_LIST_IMPORT_FAIL_IF_EXCEED);
    if (code < 0) {
        certificate->count = 0;
        goto failed;
    }
    code = GNUTLS_E_CERTIFICATE_KEY_MISMATCH;
    if (!same_key(certificate->key, certificate->chain[0].pubkey)) goto failed;
    return certificate;
failed:
    // GnuTLS reports a chain that does not fit into the list with this code.
    *problem = code == GNUTLS_E_SHORT_MEMORY_BUFFER ? "the chain has more than 16 certificates" : gnutls_strerror(code);
    countersign_certificate_free(certificate);
    return NULL;
}

void countersign_certificate_free(countersign_certificate *certificate) {
    if (!certificate) return;
    for (unsigned int index = 0; index < certificate->count; index++)
        gnutls_pcert_deinit(&certificate->chain[index]);
    if (certificate->key) gnutls_privkey_deinit(certificate->key);
    free(certificate);
}
