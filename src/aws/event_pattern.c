#include "aws/event_pattern.h"

#include "aws/json_error.h"

enum { DEPTH_MAX = 64 };

/* --- expressions: {"name": argument} in a leaf's list --- */

static bool is_string(const json_t *argument)
{
    return json_is_string(argument);
}

static bool is_boolean(const json_t *argument)
{
    return json_is_boolean(argument);
}

/* The only member of an object of one, NULL otherwise. */
static const json_t *only_member(const json_t *object, const char **ret_name)
{
    void *first = json_object_iter((json_t *)object);

    if (json_object_size(object) != 1)
        return NULL;
    *ret_name = json_object_iter_key(first);
    return json_object_iter_value(first);
}

/* A string, or {"equals-ignore-case": string}. */
static bool is_affix(const json_t *argument)
{
    const char *name;
    const json_t *inner;

    if (is_string(argument))
        return true;
    inner = only_member(argument, &name);
    return inner && !strcmp(name, "equals-ignore-case") && is_string(inner);
}

static bool all_are(const json_t *list, bool (*is)(const json_t *value))
{
    const json_t *value;
    size_t i;

    json_array_foreach(list, i, value)
    {
        if (!is(value))
            return false;
    }
    return json_array_size(list) > 0;
}

static bool is_number(const json_t *value)
{
    return json_is_number(value);
}

/* {"prefix": ...} and its kin within anything-but: a string or several. */
static bool is_negated_expression(const json_t *object)
{
    static const char *const names[] = {"prefix", "suffix", "equals-ignore-case"};
    const char *name;
    const json_t *argument = only_member(object, &name);

    for (size_t i = 0; argument && i < ARRAY_SIZE(names); i++)
        if (!strcmp(name, names[i]))
            return json_is_string(argument) || all_are(argument, is_string);
    return false;
}

static bool is_anything_but(const json_t *argument)
{
    return json_is_string(argument) || json_is_number(argument) || all_are(argument, is_string) ||
           all_are(argument, is_number) || is_negated_expression(argument);
}

static bool is_operator(const json_t *value, const char *const *operators)
{
    const char *text = json_string_value(value);

    for (size_t i = 0; text && operators[i]; i++)
        if (!strcmp(text, operators[i]))
            return true;
    return false;
}

/* ["=", n], one bound, or a lower one and an upper one. */
static bool is_numeric(const json_t *argument)
{
    static const char *const any[] = {"=", ">", ">=", "<", "<=", NULL};
    static const char *const lower[] = {">", ">=", NULL};
    static const char *const upper[] = {"<", "<=", NULL};
    size_t count = json_array_size(argument);

    if (!is_number(json_array_get(argument, 1)))
        return false;
    if (count == 2)
        return is_operator(json_array_get(argument, 0), any);
    return count == 4 && is_operator(json_array_get(argument, 0), lower) &&
           is_operator(json_array_get(argument, 2), upper) && is_number(json_array_get(argument, 3));
}

static bool is_expression(const json_t *object)
{
    static const struct {
        const char *name;
        bool (*takes)(const json_t *argument);
    } expressions[] = {
        {"exists", is_boolean},  {"prefix", is_affix},
        {"suffix", is_affix},    {"equals-ignore-case", is_string},
        {"numeric", is_numeric}, {"anything-but", is_anything_but},
    };
    const char *name;
    const json_t *argument = only_member(object, &name);

    for (size_t i = 0; argument && i < ARRAY_SIZE(expressions); i++)
        if (!strcmp(name, expressions[i].name))
            return expressions[i].takes(argument);
    return false;
}

static bool is_accepted_value(const json_t *value)
{
    return json_is_object(value) ? is_expression(value) : !json_is_array(value);
}

/* --- structure --- */

static bool is_pattern(const json_t *object, unsigned depth);

static bool is_alternatives(const json_t *list, unsigned depth)
{
    const json_t *value;
    size_t i;

    json_array_foreach(list, i, value)
    {
        if (!is_pattern(value, depth))
            return false;
    }
    return json_array_size(list) > 1;
}

static bool is_field(const char *name, const json_t *value, unsigned depth)
{
    if (json_is_object(value))
        return is_pattern(value, depth);
    return all_are(value, is_accepted_value) || (!strcmp(name, "$or") && is_alternatives(value, depth));
}

static bool is_pattern(const json_t *object, unsigned depth)
{
    const char *name;
    json_t *value;

    if (depth > DEPTH_MAX)
        return false;
    json_object_foreach((json_t *)object, name, value)
    {
        if (!is_field(name, value, depth + 1))
            return false;
    }
    return json_object_size(object) > 0;
}

int event_pattern_check(struct span text)
{
    json_error_t error;
    json_t *document;
    bool fits;

    if (span_find(text, '\0') >= 0) /* jansson 2.14 passes over one behind a number */
        return EVENT_PATTERN_INVALID;
    document = json_loadb(text.data ? text.data : "", text.length, JSON_DECODE_ANY, &error);
    if (!document)
        return json_error_is_memory(&error) ? -ENOMEM : EVENT_PATTERN_INVALID;
    fits = is_pattern(document, 0);
    json_decref(document);
    return fits ? 0 : EVENT_PATTERN_INVALID;
}
