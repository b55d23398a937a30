// A strict JSON parser (RFC 8259) on simdjson: UTF-8 only, no byte order mark, limited in size, depth and
// length of names. Member names must be unique within an object.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum strict_json_status {
    STRICT_JSON_OK = 0,
    STRICT_JSON_EMPTY,      // only white space
    STRICT_JSON_SYNTAX,     // not JSON
    STRICT_JSON_UTF8,       // not UTF-8, or a byte order mark
    STRICT_JSON_DEPTH,      // nested deeper than allowed
    STRICT_JSON_NUMBER,     // a number that fits neither 64 bits nor a finite double
    STRICT_JSON_TOO_LARGE,  // longer than allowed
    STRICT_JSON_DUPLICATE,  // an object has the same member twice
    STRICT_JSON_NAME,       // a member's name is longer than allowed
    STRICT_JSON_NO_MEMORY
} strict_json_status;

typedef struct strict_json_parser strict_json_parser;

// The tape of the parsed document (see simdjson's doc/tape.md). Valid until the next parse with the same
// parser.
typedef struct strict_json_tape {
    const uint64_t *words;
    const uint8_t *strings;
    // The digits of integers that do not fit 64 bits. They start at the payload of their word minus one and
    // end before an `e`. For other doubles the payload is 0. NULL without such integers.
    const uint8_t *digits;
} strict_json_tape;

typedef struct strict_json_span {
    size_t start;
    size_t end;
} strict_json_span;

// Returns NULL if there is not enough memory. A parser must not be used by two threads at once.
strict_json_parser *strict_json_parser_create(size_t maximum_bytes, size_t maximum_depth, size_t maximum_name_bytes);
void strict_json_parser_destroy(strict_json_parser *parser);

strict_json_status strict_json_parse(
    strict_json_parser *parser, const uint8_t *bytes, size_t length, strict_json_tape *tape);

// The ranges of the values of the object or array at `offset`, in the order of the tape. The text must have
// been parsed without an error. Writes at most `capacity` ranges and returns their number.
size_t strict_json_children(
    const uint8_t *bytes, size_t length, size_t offset, strict_json_span *spans, size_t capacity);

// The offset of the value with this index, from 0, in the object or array at `offset`; `length` without such
// a value.
size_t strict_json_child_start(const uint8_t *bytes, size_t length, size_t offset, size_t index);

#ifdef __cplusplus
}
#endif
