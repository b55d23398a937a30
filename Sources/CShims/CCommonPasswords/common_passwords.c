#include "common_passwords.h"

#include <stdlib.h>
#include <string.h>

// `#embed` is in C23 (6.10.4). scripts/common-passwords.py creates the file, with entries in ascending order.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char table[] = {
#embed "common-passwords.bin"
};

static int compare(const void *left, const void *right) {
    return memcmp(left, right, COUNTERSIGN_COMMON_PASSWORD_BYTES);
}

bool countersign_is_common_password(const unsigned char *digest) {
    return bsearch(digest, table, sizeof(table) / COUNTERSIGN_COMMON_PASSWORD_BYTES,
                   COUNTERSIGN_COMMON_PASSWORD_BYTES, compare) != NULL;
}
