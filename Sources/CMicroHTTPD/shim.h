// libmicrohttpd's start function is variadic and its result codes are a closed enumeration:
// these wrappers give Swift plain functions and integers.
#pragma once
#include <microhttpd.h>
#include <stdint.h>
