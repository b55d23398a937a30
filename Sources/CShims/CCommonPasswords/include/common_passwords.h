#pragma once

#include <stdbool.h>

/// The number of leading bytes of a SHA-256 digest that the table has for each common password.
#define COUNTERSIGN_COMMON_PASSWORD_BYTES 5

/// Whether the table has the first bytes of `digest`, the SHA-256 of a password in lower case.
bool countersign_is_common_password(const unsigned char *digest);
