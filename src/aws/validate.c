#include "aws/validate.h"

#include "aws/pattern.h"
#include "aws/shapes.h"

void validation_deinit(struct validation *validation)
{
    buffer_deinit(&validation->text);
    *validation = VALIDATION_INIT;
}

static void note(struct validation *validation, int r)
{
    if (r < 0 && !validation->error)
        validation->error = r;
}

static void append(struct validation *validation, struct span text)
{
    note(validation, buffer_append_span(&validation->text, text));
}

static void PRINTF_LIKE(2, 3) append_format(struct validation *validation, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    note(validation, buffer_vprintf(&validation->text, format, args));
    va_end(args);
}

static void begin_entry(struct validation *validation)
{
    if (validation->count++)
        append(validation, SPAN("; "));
}

/* "Value 'x' at 'member' failed to satisfy constraint: Member must " */
static void begin_value(struct validation *validation, struct span value, const char *member)
{
    begin_entry(validation);
    append(validation, SPAN("Value '"));
    append(validation, value);
    append_format(validation, "' at '%s' failed to satisfy constraint: ", member);
}

void validation_add(struct validation *validation, const char *format, ...)
{
    va_list args;

    begin_entry(validation);
    va_start(args, format);
    note(validation, buffer_vprintf(&validation->text, format, args));
    va_end(args);
}

/* --- the constraints' own texts ---------------------------------------------------------------------------------- */

static void say_maximum(struct validation *validation, size_t maximum)
{
    append_format(validation, "Member must have length less than or equal to %zu", maximum);
}

static void say_minimum(struct validation *validation, size_t minimum)
{
    append_format(validation, "Member must have length greater than or equal to %zu", minimum);
}

static void say_pattern(struct validation *validation, const char *pattern)
{
    append_format(validation, "Member must satisfy regular expression pattern: %s", pattern);
}

static void say_values(struct validation *validation, const char *const *values)
{
    append(validation, SPAN("Member must satisfy enum value set: ["));
    for (size_t i = 0; values[i]; i++)
        append_format(validation, "%s%s", i ? ", " : "", values[i]);
    append(validation, SPAN("]"));
}

/* --- single values ----------------------------------------------------------------------------------------------- */

/* Characters of UTF-8 text; bytes that are none count one each. */
static size_t characters(struct span value)
{
    size_t count = 0;

    for (size_t i = 0; i < value.length; count++)
        i += MAX(span_utf8_length(span_slice(value, i, value.length)), (size_t)1);
    return count;
}

static bool is_listed(struct span value, const char *const *values)
{
    for (size_t i = 0; values[i]; i++)
        if (span_equal(value, span_from(values[i])))
            return true;
    return false;
}

static bool satisfies(struct span value, const struct validation_constraint *constraint)
{
    size_t length = characters(value);

    if (length < constraint->minimum || (constraint->maximum && length > constraint->maximum))
        return false;
    if (constraint->pattern && !pattern_matches(constraint->pattern, value))
        return false;
    return !constraint->values || is_listed(value, constraint->values);
}

bool validate_string(struct validation *validation, struct span value, const char *member,
                     const struct validation_constraint *constraint)
{
    bool fits = validate_length(validation, value, member, constraint->minimum, constraint->maximum);

    if (constraint->pattern)
        fits &= validate_pattern(validation, value, member, constraint->pattern);
    if (constraint->values)
        fits &= validate_enum(validation, value, member, constraint->values);
    return fits;
}

bool validate_length(struct validation *validation, struct span value, const char *member, size_t minimum,
                     size_t maximum)
{
    size_t length = characters(value);

    if (maximum && length > maximum) {
        begin_value(validation, value, member);
        say_maximum(validation, maximum);
        return false;
    }
    if (length < minimum) {
        begin_value(validation, value, member);
        say_minimum(validation, minimum);
        return false;
    }
    return true;
}

bool validate_pattern(struct validation *validation, struct span value, const char *member, const char *pattern)
{
    if (pattern_matches(pattern, value))
        return true;
    begin_value(validation, value, member);
    say_pattern(validation, pattern);
    return false;
}

bool validate_enum(struct validation *validation, struct span value, const char *member, const char *const *values)
{
    if (is_listed(value, values))
        return true;
    begin_value(validation, value, member);
    say_values(validation, values);
    return false;
}

bool validate_range(struct validation *validation, int64_t value, const char *member, int64_t minimum, int64_t maximum)
{
    if (value >= minimum && value <= maximum)
        return true;
    validation_add(validation,
                   "Value '%lld' at '%s' failed to satisfy constraint: Member must have value %s than or equal to %lld",
                   (long long)value, member, value < minimum ? "greater" : "less",
                   (long long)(value < minimum ? minimum : maximum));
    return false;
}

bool validate_present(struct validation *validation, bool present, const char *member)
{
    if (!present)
        validation_add(validation, "Value null at '%s' failed to satisfy constraint: Member must not be null", member);
    return present;
}

/* --- lists and maps ---------------------------------------------------------------------------------------------- */

/* Every part of the constraint, in the recorded order, whichever failed. */
static void say_constraint(struct validation *validation, const struct validation_constraint *constraint)
{
    append(validation, SPAN("["));
    if (constraint->maximum) {
        say_maximum(validation, constraint->maximum);
        append(validation, SPAN(", "));
        say_minimum(validation, constraint->minimum);
        append(validation, SPAN(", "));
    }
    if (constraint->pattern) {
        say_pattern(validation, constraint->pattern);
        append(validation, SPAN(", "));
    }
    if (constraint->values) {
        say_values(validation, constraint->values);
        append(validation, SPAN(", "));
    }
    append(validation, SPAN("Member must not be null]"));
}

static void append_element(struct validation *validation, struct span value)
{
    append(validation, value.data ? value : SPAN("null"));
}

/* "Value '[a, b]' at 'member' failed to satisfy constraint: " */
static void begin_list(struct validation *validation, const struct span *values, size_t count, const char *member)
{
    begin_entry(validation);
    append(validation, SPAN("Value '["));
    for (size_t i = 0; i < count; i++) {
        if (i)
            append(validation, SPAN(", "));
        append_element(validation, values[i]);
    }
    append_format(validation, "]' at '%s' failed to satisfy constraint: ", member);
}

/* None is null, whatever else is asked of them. */
static const struct validation_constraint no_constraint;

static bool all_satisfy(const struct span *values, size_t count, const struct validation_constraint *constraint)
{
    for (size_t i = 0; i < count; i++)
        if (!values[i].data || !satisfies(values[i], constraint))
            return false;
    return true;
}

bool validate_list(struct validation *validation, const struct span *values, size_t count, const char *member,
                   size_t minimum, size_t maximum, const struct validation_constraint *constraint)
{
    bool fits = true;

    if (!constraint)
        constraint = &no_constraint;
    if ((maximum && count > maximum) || count < minimum) {
        begin_list(validation, values, count, member);
        if (count < minimum)
            say_minimum(validation, minimum);
        else
            say_maximum(validation, maximum);
        fits = false;
    }
    if (!all_satisfy(values, count, constraint)) {
        begin_list(validation, values, count, member);
        append(validation, SPAN("Member must satisfy constraint: "));
        say_constraint(validation, constraint);
        fits = false;
    }
    return fits;
}

static void begin_map(struct validation *validation, const struct span *keys, const struct span *values, size_t count,
                      const char *member)
{
    begin_entry(validation);
    append(validation, SPAN("Value '{"));
    for (size_t i = 0; i < count; i++) {
        if (i)
            append(validation, SPAN(", "));
        append(validation, keys[i]);
        append(validation, SPAN("="));
        append_element(validation, values[i]);
    }
    append_format(validation, "}' at '%s' failed to satisfy constraint: ", member);
}

bool validate_map(struct validation *validation, const struct span *keys, const struct span *values, size_t count,
                  const char *member, const struct validation_constraint *key_constraint,
                  const struct validation_constraint *value_constraint)
{
    bool fits = true;

    if (!value_constraint)
        value_constraint = &no_constraint;
    if (key_constraint && !all_satisfy(keys, count, key_constraint)) {
        begin_map(validation, keys, values, count, member);
        append(validation, SPAN("Map keys must satisfy constraint: "));
        say_constraint(validation, key_constraint);
        fits = false;
    }
    if (!all_satisfy(values, count, value_constraint)) {
        begin_map(validation, keys, values, count, member);
        append(validation, SPAN("Map value must satisfy constraint: "));
        say_constraint(validation, value_constraint);
        fits = false;
    }
    return fits;
}

/* --- function names ---------------------------------------------------------------------------------------------- */

static const struct validation_constraint function_names[] = {
    [FUNCTION_NAME_PLAIN] = {1, LAMBDA_FUNCTION_NAME_MAXIMUM, LAMBDA_FUNCTION_NAME_PATTERN, NULL},
    [FUNCTION_NAME_NAMESPACED] = {1, LAMBDA_NAMESPACED_FUNCTION_NAME_MAXIMUM, LAMBDA_NAMESPACED_FUNCTION_NAME_PATTERN,
                                  NULL},
    [FUNCTION_NAME_UNQUALIFIED] = {1, LAMBDA_UNQUALIFIED_FUNCTION_NAME_MAXIMUM,
                                   LAMBDA_UNQUALIFIED_FUNCTION_NAME_PATTERN, NULL},
    [FUNCTION_NAME_URL] = {1, LAMBDA_FUNCTION_URL_FUNCTION_NAME_MAXIMUM, LAMBDA_FUNCTION_URL_FUNCTION_NAME_PATTERN,
                           NULL},
};

bool validate_function_name(struct validation *validation, struct span text, enum function_name_form form,
                            const char *member, struct function_name *ret_name)
{
    const struct validation_constraint *constraint = &function_names[form];

    /* A name that parses is ASCII: its bytes are its characters. */
    if (text.length <= constraint->maximum && function_name_parse(text, form, ret_name) == 0)
        return true;
    return validate_string(validation, text, member, constraint);
}

bool validate_qualifier(struct validation *validation, struct span text, const char *member)
{
    const struct validation_constraint constraint = {1, LAMBDA_QUALIFIER_MAXIMUM, LAMBDA_QUALIFIER_PATTERN, NULL};
    enum qualifier_kind kind = qualifier_kind_of(text);

    if (text.length <= LAMBDA_QUALIFIER_MAXIMUM && kind != QUALIFIER_NONE && kind != QUALIFIER_OTHER)
        return true;
    return validate_string(validation, text, member, &constraint);
}

int validation_finish(struct validation *validation, enum aws_error_class error_class, struct aws_error *error)
{
    int r = validation->error;

    if (r == 0 && validation->count)
        r = aws_error_set(error, error_class, "%u validation error%s detected: %.*s", validation->count,
                          validation->count == 1 ? "" : "s", SPAN_ARG(buffer_span(&validation->text)));
    validation_deinit(validation);
    return r;
}
