/* Shared by json_check.c, which finds out that a text is not JSON, and json_explain.c, which says it as Jackson does.
 */
#pragma once

#include "aws/json_check.h"

/* What the scanner was about to read. */
enum json_state {
    JSON_VALUE,       /* a value: at the root, after ':' or after ',' in an array */
    JSON_FIRST_VALUE, /* after '[': a value or ']' */
    JSON_FIRST_KEY,   /* after '{': a name or '}' */
    JSON_KEY,         /* after ',' in an object */
    JSON_COLON,       /* after a name */
    JSON_AFTER_VALUE, /* ',' or a closing bracket */
    JSON_AFTER_ROOT,  /* nothing but white space */
    JSON_DONE,
};

enum json_failure_kind {
    JSON_FAILURE_NONE,
    JSON_FAILURE_BYTE,         /* this byte cannot stand here; the state says why */
    JSON_FAILURE_END,          /* the text ended between tokens */
    JSON_FAILURE_DEPTH,        /* one bracket too deep */
    JSON_FAILURE_TOKEN,        /* a word begins like true, false or null but is none */
    JSON_FAILURE_NUMBER_START, /* no digit after '-' */
    JSON_FAILURE_ZERO,         /* a digit after a leading zero */
    JSON_FAILURE_FRACTION,     /* no digit after '.' */
    JSON_FAILURE_EXPONENT,     /* no digit after 'e' */
    JSON_FAILURE_NUMBER_END,   /* the text ended within a number */
    JSON_FAILURE_ROOT_SPACE,   /* something right behind a number at the root */
    JSON_FAILURE_STRING_END,   /* the text ended within a string */
    JSON_FAILURE_CONTROL,      /* a control character within a string */
    JSON_FAILURE_ESCAPE,       /* an unknown escape */
    JSON_FAILURE_ESCAPE_END,   /* the text ended within an escape */
    JSON_FAILURE_HEX,          /* no hex digit after \u */
    JSON_FAILURE_UTF8_START,
    JSON_FAILURE_UTF8_MIDDLE,
};

struct json_failure {
    enum json_failure_kind kind;
    enum json_state state;
    size_t at;    /* offset of the offending byte; the length at the end */
    size_t token; /* offset where the token at hand begins */
};

void json_explain(struct span text, const struct json_failure *failure, struct json_fault *fault);
