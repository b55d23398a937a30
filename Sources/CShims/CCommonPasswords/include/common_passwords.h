#pragma once

#include <stdbool.h>

/// How many bytes of a SHA-256 the table holds of each password.
#define COUNTERSIGN_COMMON_PASSWORD_BYTES 5

/// True when the table has a common password whose SHA-256, in lower case, begins with these bytes.
bool countersign_is_common_password(const unsigned char *digest);
