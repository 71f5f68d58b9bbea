/*
 * One pass, one bit a level for the kind of bracket. Strings, which make up most of large payloads, are read eight
 * bytes at a time until a quote, a backslash, a control character or a byte past 0x7f shows up. Nothing is kept for
 * messages: a failure is an offset and what was expected there, and json_explain.c goes over the text again to say it.
 * Good payloads, all but a few, pay nothing for that.
 */
#include "aws/json_check.h"

#include "aws/json_scan.h"

struct scanner {
    const unsigned char *start;
    const unsigned char *at;
    const unsigned char *end;
    enum json_state state;
    unsigned depth;
    uint64_t objects[JSON_CHECK_DEPTH / 64 + 1]; /* bit set: the bracket of that level is a '{' */
    struct json_failure failure;
};

static bool fail_at(struct scanner *scanner, enum json_failure_kind kind, const unsigned char *at)
{
    scanner->failure = (struct json_failure){
        .kind = kind,
        .state = scanner->state,
        .at = (size_t)(at - scanner->start),
        .token = (size_t)(scanner->at - scanner->start),
    };
    return false;
}

static bool is_digit(unsigned char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex_digit(unsigned char c)
{
    return is_digit(c) || ((c | 32) >= 'a' && (c | 32) <= 'f');
}

/* --- strings ----------------------------------------------------------------------------------------------------- */

#define EVERY_BYTE(value) (UINT64_C(0x0101010101010101) * (value))

/* The first byte that is not plain: '"', '\\', below 0x20 or above 0x7f; `end` when all are. */
static const unsigned char *skip_plain(const unsigned char *at, const unsigned char *end)
{
    while (end - at >= 8) {
        uint64_t word, quotes, backslashes, stops;
        memcpy(&word, at, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        word = __builtin_bswap64(word);
#endif
        /* A subtraction borrows into the top bit of bytes that are zero (or, for the last, below 0x20). A borrow can
         * mark a byte wrongly only above one that is marked rightly, and the lowest counts. */
        quotes = (word ^ EVERY_BYTE('"')) - EVERY_BYTE(1);
        backslashes = (word ^ EVERY_BYTE('\\')) - EVERY_BYTE(1);
        stops = (quotes | backslashes | (word - EVERY_BYTE(0x20)) | word) & EVERY_BYTE(0x80);
        if (stops)
            return at + __builtin_ctzll(stops) / 8;
        at += 8;
    }
    while (at < end && *at >= 0x20 && *at < 0x80 && *at != '"' && *at != '\\')
        at++;
    return at;
}

/* The byte after a well-formed sequence (Unicode, table 3-7), NULL with the failure set otherwise. */
static const unsigned char *scan_utf8(struct scanner *scanner, const unsigned char *at)
{
    unsigned char low = 0x80, high = 0xbf;
    int more;

    if (*at >= 0xc2 && *at <= 0xdf)
        more = 1;
    else if (*at >= 0xe0 && *at <= 0xef)
        more = 2;
    else if (*at >= 0xf0 && *at <= 0xf4)
        more = 3;
    else
        return fail_at(scanner, JSON_FAILURE_UTF8_START, at), NULL;
    if (*at == 0xe0)
        low = 0xa0; /* overlong below */
    else if (*at == 0xed)
        high = 0x9f; /* surrogates above */
    else if (*at == 0xf0)
        low = 0x90;
    else if (*at == 0xf4)
        high = 0x8f; /* past U+10FFFF above */
    for (at++; more; more--, at++) {
        if (at == scanner->end)
            return fail_at(scanner, JSON_FAILURE_STRING_END, at), NULL;
        if (*at < low || *at > high)
            return fail_at(scanner, JSON_FAILURE_UTF8_MIDDLE, at), NULL;
        low = 0x80;
        high = 0xbf;
    }
    return at;
}

/* The byte after the escape whose backslash stands at `at`, NULL with the failure set otherwise. */
static const unsigned char *scan_escape(struct scanner *scanner, const unsigned char *at)
{
    if (++at == scanner->end)
        return fail_at(scanner, JSON_FAILURE_ESCAPE_END, at), NULL;
    switch (*at) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't':
        return at + 1;
    case 'u':
        break;
    default:
        return fail_at(scanner, JSON_FAILURE_ESCAPE, at), NULL;
    }
    for (int i = 0; i < 4; i++) {
        if (++at == scanner->end)
            return fail_at(scanner, JSON_FAILURE_ESCAPE_END, at), NULL;
        if (!is_hex_digit(*at))
            return fail_at(scanner, JSON_FAILURE_HEX, at), NULL;
    }
    return at + 1;
}

static bool scan_string(struct scanner *scanner)
{
    const unsigned char *at = scanner->at + 1;

    for (;;) {
        at = skip_plain(at, scanner->end);
        if (at == scanner->end)
            return fail_at(scanner, JSON_FAILURE_STRING_END, at);
        if (*at == '"')
            break;
        if (*at < 0x20)
            return fail_at(scanner, JSON_FAILURE_CONTROL, at);
        at = *at == '\\' ? scan_escape(scanner, at) : scan_utf8(scanner, at);
        if (!at)
            return false;
    }
    scanner->at = at + 1;
    return true;
}

/* --- numbers and words ------------------------------------------------------------------------------------------- */

static const unsigned char *skip_digits(const unsigned char *at, const unsigned char *end)
{
    while (at < end && is_digit(*at))
        at++;
    return at;
}

static bool is_space(unsigned char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static bool scan_number(struct scanner *scanner)
{
    const unsigned char *at = scanner->at, *end = scanner->end, *digits;

    if (*at == '-' && ++at == end)
        return fail_at(scanner, JSON_FAILURE_NUMBER_END, at);
    if (!is_digit(*at))
        return fail_at(scanner, JSON_FAILURE_NUMBER_START, at);
    if (*at == '0' && at + 1 < end && is_digit(at[1]))
        return fail_at(scanner, JSON_FAILURE_ZERO, at + 1);
    at = skip_digits(at, end);
    if (at < end && *at == '.') {
        digits = ++at;
        at = skip_digits(at, end);
        if (at == digits)
            return fail_at(scanner, JSON_FAILURE_FRACTION, at);
    }
    if (at < end && (*at | 32) == 'e') {
        at++;
        if (at < end && (*at == '+' || *at == '-'))
            at++;
        if (at == end)
            return fail_at(scanner, JSON_FAILURE_NUMBER_END, at);
        digits = at;
        at = skip_digits(at, end);
        if (at == digits)
            return fail_at(scanner, JSON_FAILURE_EXPONENT, at);
    }
    if (scanner->depth == 0 && at < end && !is_space(*at))
        return fail_at(scanner, JSON_FAILURE_ROOT_SPACE, at);
    scanner->at = at;
    return true;
}

/* Could be part of a word: after it, true is not true any more. */
static bool is_word(unsigned char c)
{
    return is_digit(c) || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_' || c == '$' || c >= 0x80;
}

static bool scan_word(struct scanner *scanner, struct span word)
{
    size_t left = (size_t)(scanner->end - scanner->at);

    if (left < word.length || memcmp(scanner->at, word.data, word.length) != 0 ||
        (left > word.length && is_word(scanner->at[word.length])))
        return fail_at(scanner, JSON_FAILURE_TOKEN, scanner->at);
    scanner->at += word.length;
    return true;
}

/* --- structure --------------------------------------------------------------------------------------------------- */

static bool in_object(const struct scanner *scanner)
{
    return scanner->objects[scanner->depth / 64] >> scanner->depth % 64 & 1;
}

static bool open_bracket(struct scanner *scanner)
{
    bool object = *scanner->at == '{';
    uint64_t bit;

    if (scanner->depth == JSON_CHECK_DEPTH)
        return fail_at(scanner, JSON_FAILURE_DEPTH, scanner->at);
    scanner->depth++;
    bit = UINT64_C(1) << scanner->depth % 64;
    if (object)
        scanner->objects[scanner->depth / 64] |= bit;
    else
        scanner->objects[scanner->depth / 64] &= ~bit;
    scanner->at++;
    scanner->state = object ? JSON_FIRST_KEY : JSON_FIRST_VALUE;
    return true;
}

static void end_value(struct scanner *scanner)
{
    scanner->state = scanner->depth ? JSON_AFTER_VALUE : JSON_AFTER_ROOT;
}

static bool close_bracket(struct scanner *scanner)
{
    scanner->at++;
    scanner->depth--;
    end_value(scanner);
    return true;
}

static bool scan_value(struct scanner *scanner)
{
    bool good;

    switch (*scanner->at) {
    case '"':
        good = scan_string(scanner);
        break;
    case '{':
    case '[':
        return open_bracket(scanner);
    case '-':
    case '0':
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
    case '7':
    case '8':
    case '9':
        good = scan_number(scanner);
        break;
    case 't':
        good = scan_word(scanner, SPAN("true"));
        break;
    case 'f':
        good = scan_word(scanner, SPAN("false"));
        break;
    case 'n':
        good = scan_word(scanner, SPAN("null"));
        break;
    default:
        return fail_at(scanner, JSON_FAILURE_BYTE, scanner->at);
    }
    if (good)
        end_value(scanner);
    return good;
}

static bool scan_key(struct scanner *scanner)
{
    if (*scanner->at != '"')
        return fail_at(scanner, JSON_FAILURE_BYTE, scanner->at);
    if (!scan_string(scanner))
        return false;
    scanner->state = JSON_COLON;
    return true;
}

static bool scan_separator(struct scanner *scanner)
{
    bool object = in_object(scanner);

    if (*scanner->at == ',') {
        scanner->at++;
        scanner->state = object ? JSON_KEY : JSON_VALUE;
        return true;
    }
    if (*scanner->at == (object ? '}' : ']'))
        return close_bracket(scanner);
    return fail_at(scanner, JSON_FAILURE_BYTE, scanner->at);
}

/* What the state calls for, at a byte that is not white space. */
static bool scan_step(struct scanner *scanner)
{
    switch (scanner->state) {
    case JSON_FIRST_VALUE:
        return *scanner->at == ']' ? close_bracket(scanner) : scan_value(scanner);
    case JSON_VALUE:
        return scan_value(scanner);
    case JSON_FIRST_KEY:
        return *scanner->at == '}' ? close_bracket(scanner) : scan_key(scanner);
    case JSON_KEY:
        return scan_key(scanner);
    case JSON_COLON:
        if (*scanner->at != ':')
            return fail_at(scanner, JSON_FAILURE_BYTE, scanner->at);
        scanner->at++;
        scanner->state = JSON_VALUE;
        return true;
    case JSON_AFTER_VALUE:
        return scan_separator(scanner);
    default:
        return fail_at(scanner, JSON_FAILURE_BYTE, scanner->at);
    }
}

static bool scan(struct scanner *scanner)
{
    bool empty = true;

    for (;;) {
        while (scanner->at < scanner->end && is_space(*scanner->at))
            scanner->at++;
        if (scanner->at == scanner->end) {
            if (scanner->state == JSON_AFTER_ROOT)
                return true;
            fail_at(scanner, JSON_FAILURE_END, scanner->at);
            if (empty)
                scanner->failure.kind = JSON_FAILURE_NONE;
            return false;
        }
        empty = false;
        if (!scan_step(scanner))
            return false;
    }
}

int json_check(struct span text, struct json_fault *fault)
{
    struct scanner scanner = {.state = JSON_VALUE};

    scanner.start = scanner.at = (const unsigned char *)(text.data ? text.data : "");
    scanner.end = scanner.start + text.length;
    if (scan(&scanner))
        return 0;
    if (fault)
        json_explain(text, &scanner.failure, fault);
    return scanner.failure.kind == JSON_FAILURE_NONE ? JSON_CHECK_EMPTY : JSON_CHECK_INVALID;
}
