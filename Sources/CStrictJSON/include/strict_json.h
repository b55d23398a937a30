// A strict JSON parser (RFC 8259) on simdjson: UTF-8 only, no byte order mark, bounded in size, depth and names, and
// a member name may stand in an object only once.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum strict_json_status {
    STRICT_JSON_OK = 0,
    STRICT_JSON_EMPTY,      // nothing but white space
    STRICT_JSON_SYNTAX,     // not JSON
    STRICT_JSON_UTF8,       // not UTF-8, or a byte order mark
    STRICT_JSON_DEPTH,      // nested deeper than allowed
    STRICT_JSON_NUMBER,     // a number that neither 64 bits nor a finite double can hold
    STRICT_JSON_TOO_LARGE,  // longer than allowed
    STRICT_JSON_DUPLICATE,  // an object has a member twice
    STRICT_JSON_NAME,       // a member's name is longer than allowed
    STRICT_JSON_NO_MEMORY
} strict_json_status;

typedef struct strict_json_parser strict_json_parser;

// A value of the parsed document: its place on simdjson's tape (see simdjson's doc/tape.md).
// Valid until the next parse with the same parser.
typedef struct strict_json_tape {
    const uint64_t *words;
    const uint8_t *strings;
    // Where the digits of integers stand that 64 bits cannot hold: at the payload of their word minus one, up to an `e`.
    // The payload of any other double is 0. NULL if there are none.
    const uint8_t *digits;
} strict_json_tape;

typedef struct strict_json_span {
    size_t start;
    size_t end;
} strict_json_span;

// NULL when memory is short. A parser belongs to one thread at a time.
strict_json_parser *strict_json_parser_create(size_t maximum_bytes, size_t maximum_depth, size_t maximum_name_bytes);
void strict_json_parser_destroy(strict_json_parser *parser);

strict_json_status strict_json_parse(
    strict_json_parser *parser, const uint8_t *bytes, size_t length, strict_json_tape *tape);

// Where the values of the object or array that starts at `offset` stand in the text, in the order of the tape.
// The text must have been parsed without an error. Writes the first `capacity` at most and returns how many.
size_t strict_json_children(
    const uint8_t *bytes, size_t length, size_t offset, strict_json_span *spans, size_t capacity);

// Where the value number `index`, from 0, of the object or array at `offset` begins; `length` if there is none.
size_t strict_json_child_start(const uint8_t *bytes, size_t length, size_t offset, size_t index);

#ifdef __cplusplus
}
#endif
