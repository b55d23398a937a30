#include "strict_json.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include <simdjson.h>

namespace {

struct large_integer {
    size_t ordinal;  // the number of numbers before it
    size_t offset;   // the offset of its first byte in the widened text
};

}  // namespace

struct strict_json_parser {
    simdjson::dom::parser parser;
    size_t maximum_bytes;
    size_t maximum_name_bytes;
    std::vector<std::string_view> names;
    std::string widened;
    std::vector<large_integer> integers;

    // The extra capacity is for `widen`, which adds two bytes to numbers of 19 or more digits.
    strict_json_parser(size_t bytes, size_t name_bytes)
        : parser(bytes + bytes / 8 + 64), maximum_bytes(bytes), maximum_name_bytes(name_bytes) {}
};

namespace {

constexpr size_t few = 12;

uint8_t type_of(uint64_t word) { return uint8_t(word >> 56); }
uint64_t payload_of(uint64_t word) { return word & 0x00FFFFFFFFFFFFFFull; }

std::string_view text_at(const strict_json_tape &tape, uint64_t word) {
    const uint8_t *start = tape.strings + payload_of(word);
    uint32_t length;
    std::memcpy(&length, start, sizeof length);
    return {reinterpret_cast<const char *>(start + sizeof length), length};
}

size_t after(const strict_json_tape &tape, size_t index) {
    switch (type_of(tape.words[index])) {
    case '{':
    case '[': return size_t(tape.words[index] & 0xFFFFFFFFull);
    case 'l':
    case 'u':
    case 'd': return index + 2;
    default: return index + 1;
    }
}

// Sorts instead of hashing: a sender that knows the hash function could make all names collide.
bool has_duplicates(std::vector<std::string_view> &names) {
    if (names.size() > few) {
        std::sort(names.begin(), names.end());
        return std::adjacent_find(names.begin(), names.end()) != names.end();
    }
    for (size_t i = 1; i < names.size(); i++)
        for (size_t j = 0; j < i; j++)
            if (names[i] == names[j]) return true;
    return false;
}

strict_json_status check_names(
    const strict_json_tape &tape, size_t maximum_bytes, std::vector<std::string_view> &names) {
    size_t end = size_t(payload_of(tape.words[0]));
    for (size_t at = 1; at + 1 < end;) {
        uint8_t type = type_of(tape.words[at]);
        if (type == '{') {
            names.clear();
            for (size_t index = at + 1; type_of(tape.words[index]) != '}'; index = after(tape, index + 1)) {
                names.push_back(text_at(tape, tape.words[index]));
                if (names.back().size() > maximum_bytes) return STRICT_JSON_NAME;
            }
            if (has_duplicates(names)) return STRICT_JSON_DUPLICATE;
        }
        at += (type == 'l' || type == 'u' || type == 'd') ? 2 : 1;
    }
    return STRICT_JSON_OK;
}

size_t skip_space(const uint8_t *bytes, size_t length, size_t at) {
    while (at < length && (bytes[at] == ' ' || bytes[at] == '\n' || bytes[at] == '\r' || bytes[at] == '\t')) at++;
    return at;
}

size_t skip_string(const uint8_t *bytes, size_t length, size_t at) {
    for (at++; at < length; at++) {
        const void *quote = std::memchr(bytes + at, '"', length - at);
        if (!quote) return length;
        at = size_t(static_cast<const uint8_t *>(quote) - bytes);
        // An odd number of backslashes before the quote escapes it.
        size_t before = at;
        while (bytes[before - 1] == '\\') before--;
        if ((at - before) % 2 == 0) return at + 1;
    }
    return length;
}

size_t skip_value(const uint8_t *bytes, size_t length, size_t at) {
    if (at >= length) return length;
    if (bytes[at] == '"') return skip_string(bytes, length, at);
    if (bytes[at] == '{' || bytes[at] == '[') {
        size_t depth = 0;
        while (at < length) {
            uint8_t byte = bytes[at];
            if (byte == '"') {
                at = skip_string(bytes, length, at);
                continue;
            }
            if (byte == '{' || byte == '[') depth++;
            if (byte == '}' || byte == ']') depth--;
            at++;
            if (depth == 0) return at;
        }
        return length;
    }
    while (at < length && !std::strchr(" \n\r\t,]}", bytes[at])) at++;
    return at;
}

// Whether an integer does not fit 64 bits. simdjson rejects it, although it is valid JSON.
bool overflows(std::string_view number) {
    bool negative = number.front() == '-';
    std::string_view digits = number.substr(negative);
    if (digits.empty() || digits.front() == '0') return false;
    if (digits.find_first_not_of("0123456789") != std::string_view::npos) return false;
    std::string_view limit = negative ? "9223372036854775808" : "18446744073709551615";
    return digits.size() != limit.size() ? digits.size() > limit.size() : digits > limit;
}

// Copies the text to `output`, and appends an exponent of zero to each integer that overflows, so that it is
// parsed as a double. Returns false if no integer overflows.
bool widen(const uint8_t *bytes, size_t length, std::string &output, std::vector<large_integer> &integers) {
    size_t numbers = 0;
    output.clear();
    integers.clear();
    for (size_t at = 0; at < length;) {
        size_t start = at;
        bool number = bytes[at] == '-' || (bytes[at] >= '0' && bytes[at] <= '9');
        if (bytes[at] == '"') {
            at = skip_string(bytes, length, at);
        } else if (number) {
            at = skip_value(bytes, length, at);
        } else {
            at++;
        }
        std::string_view piece(reinterpret_cast<const char *>(bytes + start), at - start);
        bool large = number && overflows(piece);
        if (large) integers.push_back({numbers, output.size()});
        output += piece;
        if (large) output += "e0";
        numbers += number;
    }
    return !integers.empty();
}

// For each integer that overflows, stores its offset in the widened text plus one as the payload of its tape
// word. For other doubles the payload is 0.
void note_digits(uint64_t *words, const std::vector<large_integer> &integers) {
    auto next = integers.begin();
    size_t end = size_t(payload_of(words[0]));
    size_t numbers = 0;
    for (size_t at = 1; at + 1 < end && next != integers.end();) {
        uint8_t type = type_of(words[at]);
        bool number = type == 'l' || type == 'u' || type == 'd';
        if (number && numbers++ == next->ordinal) words[at] |= uint64_t(next++->offset + 1);
        at += number ? 2 : 1;
    }
}

}  // namespace

extern "C" strict_json_parser *strict_json_parser_create(
    size_t maximum_bytes, size_t maximum_depth, size_t maximum_name_bytes) {
    auto *parser = new (std::nothrow) strict_json_parser(maximum_bytes, maximum_name_bytes);
    // Small at first. simdjson grows its buffers to the size of the largest document.
    if (parser && parser->parser.allocate(std::min<size_t>(maximum_bytes, 8192), maximum_depth)) {
        delete parser;
        return nullptr;
    }
    return parser;
}

extern "C" void strict_json_parser_destroy(strict_json_parser *parser) { delete parser; }

namespace {

strict_json_status parse(strict_json_parser *parser, const uint8_t *bytes, size_t length, strict_json_tape *tape) {
    if (length > parser->maximum_bytes) return STRICT_JSON_TOO_LARGE;
    if (skip_space(bytes, length, 0) == length) return STRICT_JSON_EMPTY;
    if (length >= 3 && bytes[0] == 0xEF && bytes[1] == 0xBB && bytes[2] == 0xBF) return STRICT_JSON_UTF8;
    auto result = parser->parser.parse(bytes, length, true);
    bool widened =
        result.error() == simdjson::NUMBER_ERROR && widen(bytes, length, parser->widened, parser->integers);
    if (widened) result = parser->parser.parse(parser->widened.data(), parser->widened.size(), true);
    switch (result.error()) {
    case simdjson::SUCCESS: break;
    case simdjson::UTF8_ERROR: return STRICT_JSON_UTF8;
    case simdjson::DEPTH_ERROR: return STRICT_JSON_DEPTH;
    case simdjson::NUMBER_ERROR: return STRICT_JSON_NUMBER;
    case simdjson::CAPACITY: return STRICT_JSON_TOO_LARGE;
    case simdjson::MEMALLOC: return STRICT_JSON_NO_MEMORY;
    case simdjson::EMPTY: return STRICT_JSON_EMPTY;
    default: return STRICT_JSON_SYNTAX;
    }
    if (widened) note_digits(parser->parser.doc.tape.get(), parser->integers);
    tape->words = parser->parser.doc.tape.get();
    tape->digits = widened ? reinterpret_cast<const uint8_t *>(parser->widened.data()) : nullptr;
    tape->strings = parser->parser.doc.string_buf.get();
    return check_names(*tape, parser->maximum_name_bytes, parser->names);
}

}  // namespace

extern "C" strict_json_status strict_json_parse(
    strict_json_parser *parser, const uint8_t *bytes, size_t length, strict_json_tape *tape) {
    // No exception may reach a C or Swift caller.
    try {
        return parse(parser, bytes, length, tape);
    } catch (const std::bad_alloc &) {
        return STRICT_JSON_NO_MEMORY;
    }
}

namespace {

// Calls `found(start)` for each value of the object or array at `offset`. `found` returns the end of the
// value, or 0 to stop.
template <typename Found>
void each_child(const uint8_t *bytes, size_t length, size_t offset, Found found) {
    if (offset >= length) return;
    bool object = bytes[offset] == '{';
    size_t at = skip_space(bytes, length, offset + 1);
    while (at < length && bytes[at] != '}' && bytes[at] != ']') {
        if (object) {
            at = skip_space(bytes, length, skip_string(bytes, length, at));  // the name
            at = skip_space(bytes, length, at + 1);                          // the colon
        }
        at = found(at);
        if (at == 0) return;
        at = skip_space(bytes, length, at);
        if (at < length && bytes[at] == ',') at = skip_space(bytes, length, at + 1);
    }
}

}  // namespace

extern "C" size_t strict_json_children(
    const uint8_t *bytes, size_t length, size_t offset, strict_json_span *spans, size_t capacity) {
    size_t count = 0;
    each_child(bytes, length, offset, [&](size_t start) -> size_t {
        if (count == capacity) return 0;
        size_t end = skip_value(bytes, length, start);
        spans[count++] = {start, end};
        return end;
    });
    return count;
}

extern "C" size_t strict_json_child_start(const uint8_t *bytes, size_t length, size_t offset, size_t index) {
    size_t result = length;
    size_t count = 0;
    each_child(bytes, length, offset, [&](size_t start) -> size_t {
        if (count++ < index) return skip_value(bytes, length, start);
        result = start;
        return 0;
    });
    return result;
}
