#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>
#include <openssl/sha.h>
#include <openssl/x509.h>

// Swift does not see macros that are built from other macros.
static const int countersign_evp_pkey_public_key = EVP_PKEY_PUBLIC_KEY;

// SHA-256 without an EVP_MD_CTX for each digest, because allocating one costs more than hashing a short text.
// OpenSSL 3.0 marks these functions as deprecated in favour of EVP.
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wdeprecated-declarations"
static inline int countersign_sha256(const void *bytes, size_t count, unsigned char *digest) {
    SHA256_CTX state;
    return SHA256_Init(&state) && SHA256_Update(&state, bytes, count) && SHA256_Final(digest, &state);
}
#pragma clang diagnostic pop
