/*
 * The messages of jackson-core's UTF8StreamJsonParser, read off its published source: what it says depends on how far
 * it has read when it gives up, hence the offsets (`read`) below. "Minus one" messages point at the offending byte, the
 * others behind what was read; both as recorded ("Unexpected character" at column 1 for the first byte, "Invalid UTF-8
 * start byte" at column 3 for the second).
 *
 * Where this checker is stricter than Jackson (overlong UTF-8, something after the root value) the nearest of its texts
 * is taken. Line ends cannot occur within strings of a text that was good so far, so counting them is counting lines.
 */
#include "aws/json_scan.h"

#include "base/buffer.h"

#include <stdarg.h>
#include <stdio.h>

#define SOURCE "[Source: REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled); line: %u, column: %u]"
#define VALUES "(JSON String, Number, Array, Object or token 'null', 'true' or 'false')"

enum { TOKEN_BYTES = 256 }; /* the parser cuts longer words */

struct place {
    unsigned line, column;
};

struct explanation {
    struct span text;
    const struct json_failure *failure;
    struct json_fault *fault;
};

/* The place of an offset: lines end with \n, \r or both. */
static struct place place_of(struct span text, size_t offset)
{
    struct place place = {1, 1};

    for (size_t i = 0; i < offset; i++) {
        char c = text.data[i];
        if (c == '\n' || (c == '\r' && !(i + 1 < text.length && text.data[i + 1] == '\n')))
            place = (struct place){place.line + 1, 1};
        else
            place.column++;
    }
    return place;
}

static void PRINTF_LIKE(3, 4) say(struct explanation *explanation, size_t offset, const char *format, ...)
{
    struct json_fault *fault = explanation->fault;
    struct place place = place_of(explanation->text, offset);
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(fault->message, sizeof(fault->message) - 160, format, args);
    va_end(args);
    length = MIN(length, (int)sizeof(fault->message) - 161);
    snprintf(fault->message + length, sizeof(fault->message) - (size_t)length, "\n at " SOURCE, place.line,
             place.column);
    fault->line = place.line;
    fault->column = place.column;
}

/* "'x' (code 120)", "(CTRL-CHAR, code 1)"; bytes past 0x7f are taken as Latin-1 letters, as the parser does. */
struct description {
    char text[48];
};

static struct description describe(unsigned code)
{
    struct description description;
    char *out = description.text;
    size_t room = sizeof(description.text);

    if (code < 0x20 || (code >= 0x7f && code <= 0x9f))
        snprintf(out, room, "(CTRL-CHAR, code %u)", code);
    else if (code < 0x80)
        snprintf(out, room, "'%c' (code %u)", (char)code, code);
    else if (code <= 0xff)
        snprintf(out, room, "'%c%c' (code %u)", (char)(0xc0 | code >> 6), (char)(0x80 | (code & 0x3f)), code);
    else if (code < 0x800)
        snprintf(out, room, "'%c%c' (code %u / 0x%x)", (char)(0xc0 | code >> 6), (char)(0x80 | (code & 0x3f)), code,
                 code);
    else
        snprintf(out, room, "'%c%c%c' (code %u / 0x%x)", (char)(0xe0 | (code >> 12 & 0xf)),
                 (char)(0x80 | (code >> 6 & 0x3f)), (char)(0x80 | (code & 0x3f)), code & 0xffff, code & 0xffff);
    return description;
}

static unsigned byte_at(const struct explanation *explanation, size_t offset)
{
    return (unsigned char)explanation->text.data[offset];
}

static void say_unexpected(struct explanation *explanation, size_t offset, unsigned code, const char *comment)
{
    say(explanation, offset, "Unexpected character (%s): %s", describe(code).text, comment);
}

/* --- brackets that are open -------------------------------------------------------------------------------------- */

struct brackets {
    unsigned depth;
    size_t at[JSON_CHECK_DEPTH + 1]; /* offsets of the open ones, [0] unused */
};

static size_t end_of_string(struct span text, size_t at)
{
    for (at++; at < text.length && text.data[at] != '"'; at++)
        if (text.data[at] == '\\')
            at++;
    return at;
}

/* Goes over what was good so far. */
static void find_brackets(const struct explanation *explanation, struct brackets *brackets)
{
    struct span text = explanation->text;

    brackets->depth = 0;
    for (size_t i = 0; i < explanation->failure->token && i < text.length; i++) {
        if (text.data[i] == '"')
            i = end_of_string(text, i);
        else if (text.data[i] == '{' || text.data[i] == '[')
            brackets->at[++brackets->depth] = i;
        else if (text.data[i] == '}' || text.data[i] == ']')
            brackets->depth--;
    }
}

static const char *name_of(const struct explanation *explanation, const struct brackets *brackets)
{
    if (brackets->depth == 0)
        return "root";
    return explanation->text.data[brackets->at[brackets->depth]] == '{' ? "Object" : "Array";
}

static struct place start_of(const struct explanation *explanation, const struct brackets *brackets)
{
    if (brackets->depth == 0)
        return (struct place){1, 0};
    return place_of(explanation->text, brackets->at[brackets->depth]);
}

/* --- words ------------------------------------------------------------------------------------------------------- */

static bool is_word_start(unsigned c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || (c >= 0xa2 && c <= 0xa5) ||
           c == 0xaa || c == 0xb5 || c == 0xba || (c >= 0xc0 && c != 0xd7 && c != 0xf7);
}

/* Java's identifier parts, "ignorable" control characters included. */
static bool is_word_part(unsigned c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' ||
           c <= 8 || (c >= 0xe && c <= 0x1b) || c == 0x7f;
}

/* The bytes of the sequence at `offset`, 0 when it is broken: then the parser's complaint is about that. */
static size_t sequence(struct explanation *explanation, size_t offset)
{
    struct span text = explanation->text;
    unsigned first = byte_at(explanation, offset);
    size_t length = (first & 0xe0) == 0xc0 ? 2 : (first & 0xf0) == 0xe0 ? 3 : (first & 0xf8) == 0xf0 ? 4 : 0;

    if (first < 0x80)
        return 1;
    if (!length) {
        say(explanation, offset + 1, "Invalid UTF-8 start byte 0x%x", first);
        return 0;
    }
    for (size_t i = 1; i < length; i++) {
        if (offset + i >= text.length) {
            say(explanation, text.length, "Unexpected end-of-input in a value");
            return 0;
        }
        if ((byte_at(explanation, offset + i) & 0xc0) != 0x80) {
            say(explanation, offset + i + 1, "Invalid UTF-8 middle byte 0x%x", byte_at(explanation, offset + i));
            return 0;
        }
    }
    return length;
}

/* "Unrecognized token 'x...'": `matched` bytes are taken as they are, then all that could be part of a word. */
static void say_unrecognized(struct explanation *explanation, size_t offset, size_t matched)
{
    struct span text = explanation->text;
    char word[TOKEN_BYTES + 8];
    size_t length = 0, at = offset + matched;
    const char *cut = "";

    memcpy(word, text.data + offset, matched);
    length = matched;
    if (matched == 1 && byte_at(explanation, offset) >= 0x80) { /* the first byte as a Latin-1 letter */
        word[0] = (char)(0xc0 | byte_at(explanation, offset) >> 6);
        word[1] = (char)(0x80 | (byte_at(explanation, offset) & 0x3f));
        length = 2;
    }
    while (at < text.length) {
        size_t bytes = sequence(explanation, at);
        if (!bytes)
            return;
        if (bytes == 1 && !is_word_part(byte_at(explanation, at))) {
            at++; /* the parser has read it to find out */
            break;
        }
        if (length + bytes > TOKEN_BYTES) {
            cut = "...";
            break;
        }
        memcpy(word + length, text.data + at, bytes);
        length += bytes;
        at += bytes;
    }
    say(explanation, at, "Unrecognized token '%.*s%s': was expecting " VALUES, (int)length, word, cut);
}

/* How much of `word` stands at `offset`. */
static size_t common(struct span text, size_t offset, const char *word)
{
    size_t length = 0;

    while (word[length] && offset + length < text.length && text.data[offset + length] == word[length])
        length++;
    return length;
}

/* NaN and Infinity: known, but not JSON. */
static void explain_non_standard(struct explanation *explanation, size_t offset, const char *word)
{
    size_t matched = common(explanation->text, offset, word);
    size_t after = offset + matched;

    if (word[matched] || (after < explanation->text.length && byte_at(explanation, after) != 0 &&
                          is_word_part(byte_at(explanation, after))))
        say_unrecognized(explanation, offset, matched);
    else
        say(explanation, after, "Non-standard token '%s': enable `JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS` to allow",
            word);
}

/* --- failures ---------------------------------------------------------------------------------------------------- */

static void say_plus(struct explanation *explanation, size_t offset)
{
    if (offset + 1 == explanation->text.length)
        say(explanation, offset + 1, "Unexpected end-of-input in a Number value");
    else
        say(explanation, offset + 1,
            "Unexpected character ('+' (code 43)) in numeric value: JSON spec does not allow numbers to have plus "
            "signs: enable `JsonReadFeature.ALLOW_LEADING_PLUS_SIGN_FOR_NUMBERS` to allow");
}

static void explain_mismatch(struct explanation *explanation, unsigned c)
{
    struct brackets brackets;
    struct place start;

    find_brackets(explanation, &brackets);
    start = start_of(explanation, &brackets);
    say(explanation, explanation->failure->at,
        "Unexpected close marker '%c': expected '%c' (for %s starting at " SOURCE ")", (char)c, c == ']' ? '}' : ']',
        name_of(explanation, &brackets), start.line, start.column);
}

/* A byte where a value should begin. */
static void explain_value(struct explanation *explanation, unsigned c)
{
    size_t at = explanation->failure->at;
    enum json_state state = explanation->failure->state;
    bool fresh = state == JSON_FIRST_VALUE || state == JSON_AFTER_ROOT; /* the parser looks for closing marks first */
    struct brackets brackets;

    find_brackets(explanation, &brackets);
    if ((c == '}' && (fresh || brackets.depth == 0)) || (c == ']' && brackets.depth == 0))
        explain_mismatch(explanation, c);
    else if (c == ',' || c == '}' || (c == ']' && strcmp(name_of(explanation, &brackets), "Array") == 0))
        say_unexpected(explanation, at, c, "expected a value");
    else if (c == 'N')
        explain_non_standard(explanation, at, "NaN");
    else if (c == 'I')
        explain_non_standard(explanation, at, "Infinity");
    else if (c == '+')
        say_plus(explanation, at);
    else if (is_word_start(c))
        say_unrecognized(explanation, at, 1);
    else
        say_unexpected(explanation, at, c, "expected a valid value " VALUES);
}

/* A byte where a name should begin. The parser decodes it first. */
static void explain_key(struct explanation *explanation, unsigned c)
{
    size_t at = explanation->failure->at;
    size_t length = sequence(explanation, at);

    if (!length)
        return;
    if (explanation->failure->state == JSON_FIRST_KEY && c == ']') {
        explain_mismatch(explanation, c);
        return;
    }
    if (length > 1) {
        c &= length == 2 ? 0x1f : length == 3 ? 0x0f : 0x07;
        for (size_t i = 1; i < length; i++)
            c = c << 6 | (byte_at(explanation, at + i) & 0x3f);
    }
    say_unexpected(explanation, at + length - 1, c, "was expecting double-quote to start field name");
}

static void explain_separator(struct explanation *explanation, unsigned c)
{
    struct brackets brackets;
    char comment[64];

    if (c == '}' || c == ']') {
        explain_mismatch(explanation, c);
        return;
    }
    find_brackets(explanation, &brackets);
    snprintf(comment, sizeof(comment), "was expecting comma to separate %s entries", name_of(explanation, &brackets));
    say_unexpected(explanation, explanation->failure->at, c, comment);
}

/* Something follows the root value: the nearest text is the one for FAIL_ON_TRAILING_TOKENS. */
static void explain_trailing(struct explanation *explanation, unsigned c)
{
    static const struct {
        const char *word, *token;
    } words[] = {{"true", "VALUE_TRUE"}, {"false", "VALUE_FALSE"}, {"null", "VALUE_NULL"}};
    const char *token = c == '{'                             ? "START_OBJECT"
                        : c == '['                           ? "START_ARRAY"
                        : c == '"'                           ? "VALUE_STRING"
                        : (c >= '0' && c <= '9') || c == '-' ? "VALUE_NUMBER_INT"
                                                             : NULL;

    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (!words[i].word[common(explanation->text, explanation->failure->at, words[i].word)])
            token = words[i].token;
    if (!token)
        explain_value(explanation, c);
    else
        say(explanation, explanation->failure->at,
            "Trailing token (of type %s) found after value (bound as `com.fasterxml.jackson.databind.JsonNode`): not "
            "allowed as per `DeserializationFeature.FAIL_ON_TRAILING_TOKENS`",
            token);
}

static void explain_byte(struct explanation *explanation)
{
    size_t at = explanation->failure->at;
    unsigned c = byte_at(explanation, at);

    if (c < 0x20) {
        say(explanation, at,
            "Illegal character (%s): only regular white space (\\r, \\n, \\t) is allowed between tokens",
            describe(c).text);
        return;
    }
    if (c == '/') {
        say_unexpected(explanation, at, c,
                       "maybe a (non-standard) comment? (not recognized as one since Feature 'ALLOW_COMMENTS' not "
                       "enabled for parser)");
        return;
    }
    switch (explanation->failure->state) {
    case JSON_KEY:
    case JSON_FIRST_KEY:
        explain_key(explanation, c);
        break;
    case JSON_COLON:
        say_unexpected(explanation, at, c, "was expecting a colon to separate field name and value");
        break;
    case JSON_AFTER_VALUE:
        explain_separator(explanation, c);
        break;
    case JSON_AFTER_ROOT:
        explain_trailing(explanation, c);
        break;
    default:
        explain_value(explanation, c);
    }
}

/* The text ended between tokens: where a closing bracket could have come, the parser says which one is open. */
static void explain_end(struct explanation *explanation)
{
    enum json_state state = explanation->failure->state;
    size_t at = explanation->failure->at;
    struct brackets brackets;
    struct place start;

    find_brackets(explanation, &brackets);
    if (state == JSON_COLON || state == JSON_KEY || state == JSON_VALUE) {
        say(explanation, at, "Unexpected end-of-input within/between %s entries", name_of(explanation, &brackets));
        return;
    }
    start = start_of(explanation, &brackets);
    say(explanation, at, "Unexpected end-of-input: expected close marker for %s (start marker at " SOURCE ")",
        name_of(explanation, &brackets), start.line, start.column);
}

/* The parser names the token before: it has not got any further. */
static const char *token_before(const struct explanation *explanation)
{
    struct span text = span_slice(explanation->text, 0, explanation->failure->token);
    bool fraction = false;
    char last;

    while (text.length && strchr(" \t\r\n,", text.data[text.length - 1]))
        text.length--;
    last = text.length ? text.data[text.length - 1] : '\0';
    switch (last) {
    case '\0':
        return "null";
    case ':':
        return "FIELD_NAME";
    case '[':
        return "START_ARRAY";
    case ']':
        return "END_ARRAY";
    case '}':
        return "END_OBJECT";
    case '"':
        return "VALUE_STRING";
    case 'l':
        return "VALUE_NULL";
    case 'e':
        return span_ends_with(text, SPAN("true")) ? "VALUE_TRUE" : "VALUE_FALSE";
    default:
        for (; text.length && strchr("+-.eE0123456789", text.data[text.length - 1]); text.length--)
            fraction |= strchr(".eE", text.data[text.length - 1]) != NULL;
        return fraction ? "VALUE_NUMBER_FLOAT" : "VALUE_NUMBER_INT";
    }
}

static void say_numeric(struct explanation *explanation, size_t offset, const char *comment)
{
    /* At the end the parser still has the byte before in its hand. */
    size_t at = offset < explanation->text.length ? offset : offset - 1;

    say(explanation, at, "Unexpected character (%s) in numeric value: %s", describe(byte_at(explanation, at)).text,
        comment);
}

static void explain_number_start(struct explanation *explanation)
{
    size_t at = explanation->failure->at;

    if (byte_at(explanation, at) == '.')
        say_unexpected(explanation, at, '.', "expected a valid value " VALUES);
    else if (common(explanation->text, at, "Infinity") > 1)
        explain_non_standard(explanation, at - 1, "-Infinity");
    else
        say_numeric(explanation, at, "expected digit (0-9) to follow minus sign, for valid numeric value");
}

static bool in_name(const struct explanation *explanation)
{
    return explanation->failure->state == JSON_KEY || explanation->failure->state == JSON_FIRST_KEY;
}

/* Names are decoded when they are complete: the place is behind the closing quote, if there is one. */
static size_t place_of_broken_utf8(const struct explanation *explanation)
{
    size_t end;

    if (!in_name(explanation))
        return explanation->failure->at + 1;
    end = end_of_string(explanation->text, explanation->failure->token);
    return MIN(end + 1, explanation->text.length);
}

static void explain_string_end(struct explanation *explanation)
{
    size_t at = explanation->failure->at;

    if (!in_name(explanation))
        say(explanation, at, "Unexpected end-of-input in VALUE_STRING");
    else if (at == explanation->failure->token + 1)
        say(explanation, at, "Unexpected end-of-input: was expecting closing '\"' for name");
    else
        say(explanation, at, "Unexpected end-of-input in field name");
}

/* The parser decodes the character before it complains about it. */
static void explain_escape(struct explanation *explanation)
{
    size_t at = explanation->failure->at;

    if (sequence(explanation, at) > 0)
        say(explanation, at, "Unrecognized character escape %s", describe(byte_at(explanation, at)).text);
}

/* A word that begins like one of the three. */
static void explain_token(struct explanation *explanation)
{
    static const char *const words[] = {"true", "false", "null"};
    size_t at = explanation->failure->at;
    size_t matched = 1;

    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        matched = MAX(matched, common(explanation->text, at, words[i]));
    say_unrecognized(explanation, at, matched);
}

static void explain_none(struct explanation *explanation)
{
    say(explanation, explanation->text.length, "No content to map due to end-of-input");
}

static void explain_depth(struct explanation *explanation)
{
    struct place place = place_of(explanation->text, explanation->failure->at);

    snprintf(explanation->fault->message, sizeof(explanation->fault->message),
             "Document nesting depth (%d) exceeds the maximum allowed (%d, from "
             "`StreamReadConstraints.getMaxNestingDepth()`)",
             JSON_CHECK_DEPTH + 1, JSON_CHECK_DEPTH);
    explanation->fault->line = place.line;
    explanation->fault->column = place.column;
}

void json_explain(struct span text, const struct json_failure *failure, struct json_fault *fault)
{
    struct explanation explanation = {text, failure, fault};
    size_t at = failure->at;

    fault->offset = at;
    switch (failure->kind) {
    case JSON_FAILURE_NONE:
        explain_none(&explanation);
        break;
    case JSON_FAILURE_BYTE:
        explain_byte(&explanation);
        break;
    case JSON_FAILURE_END:
        explain_end(&explanation);
        break;
    case JSON_FAILURE_DEPTH:
        explain_depth(&explanation);
        break;
    case JSON_FAILURE_TOKEN:
        explain_token(&explanation);
        break;
    case JSON_FAILURE_NUMBER_START:
        explain_number_start(&explanation);
        break;
    case JSON_FAILURE_ZERO:
        say(&explanation, at, "Invalid numeric value: Leading zeroes not allowed");
        break;
    case JSON_FAILURE_FRACTION:
        say_numeric(&explanation, at, "Decimal point not followed by a digit");
        break;
    case JSON_FAILURE_EXPONENT:
        say_numeric(&explanation, at, "Exponent indicator not followed by a digit");
        break;
    case JSON_FAILURE_NUMBER_END:
        say(&explanation, at, "Unexpected end-of-input in %s", token_before(&explanation));
        break;
    case JSON_FAILURE_ROOT_SPACE:
        say_unexpected(&explanation, at, byte_at(&explanation, at), "Expected space separating root-level values");
        break;
    case JSON_FAILURE_STRING_END:
        explain_string_end(&explanation);
        break;
    case JSON_FAILURE_CONTROL:
        say(&explanation, at, "Illegal unquoted character (%s): has to be escaped using backslash to be included in %s",
            describe(byte_at(&explanation, at)).text, in_name(&explanation) ? "name" : "string value");
        break;
    case JSON_FAILURE_ESCAPE:
        explain_escape(&explanation);
        break;
    case JSON_FAILURE_ESCAPE_END:
        say(&explanation, at, "Unexpected end-of-input in character escape sequence");
        break;
    case JSON_FAILURE_HEX:
        say_unexpected(&explanation, at, byte_at(&explanation, at),
                       "expected a hex-digit for character escape sequence");
        break;
    case JSON_FAILURE_UTF8_START:
        say(&explanation, place_of_broken_utf8(&explanation), "Invalid UTF-8 start byte 0x%x",
            byte_at(&explanation, at));
        break;
    case JSON_FAILURE_UTF8_MIDDLE:
        say(&explanation, place_of_broken_utf8(&explanation), "Invalid UTF-8 middle byte 0x%x",
            byte_at(&explanation, at));
        break;
    }
}
