#include "sim/json_reader.h"

#include <math.h>
#include <stdio.h>

/* ---- where a value stands: a walk over text that is known to be well-formed ---- */

struct walk {
    const char *at, *end;
};

static void skip_blanks(struct walk *walk)
{
    while (walk->at < walk->end && strchr(" \t\r\n,:", *walk->at))
        walk->at++;
}

static void skip_string(struct walk *walk)
{
    for (walk->at++; walk->at < walk->end && *walk->at != '"'; walk->at++) {
        if (*walk->at == '\\')
            walk->at++;
    }
    walk->at++;
}

/* Past one value: to the end of its brackets, or of the scalar. */
static void skip_value(struct walk *walk)
{
    int depth = 0;

    skip_blanks(walk);
    do {
        skip_blanks(walk);
        if (walk->at >= walk->end)
            return;
        if (*walk->at == '"') {
            skip_string(walk);
        } else if (strchr("[{", *walk->at)) {
            depth++;
            walk->at++;
        } else if (strchr("]}", *walk->at)) {
            depth--;
            walk->at++;
        } else {
            while (walk->at < walk->end && !strchr(" \t\r\n,:]}", *walk->at))
                walk->at++;
        }
    } while (depth > 0);
}

/* The key at hand, written with escapes or not. */
static bool is_key(const struct walk *walk, const char *key)
{
    struct walk end = *walk;
    json_t *parsed;
    bool same;

    skip_string(&end);
    parsed = json_loadb(walk->at, (size_t)(end.at - walk->at), JSON_DECODE_ANY, NULL);
    same = json_is_string(parsed) && !strcmp(json_string_value(parsed), key);
    json_decref(parsed);
    return same;
}

/* From the start of an object or array to the value of its member or element. */
static void enter(struct walk *walk, const struct json_value *value)
{
    walk->at++;
    skip_blanks(walk);
    if (!value->key) {
        for (size_t i = 0; i < value->index; i++)
            skip_value(walk);
        skip_blanks(walk);
        return;
    }
    while (walk->at < walk->end && *walk->at == '"') {
        bool found = is_key(walk, value->key);
        skip_string(walk);
        skip_blanks(walk);
        if (found)
            return;
        skip_value(walk);
        skip_blanks(walk);
    }
}

static void find(struct walk *walk, const struct json_value *value)
{
    if (!value->parent) {
        skip_blanks(walk);
        return;
    }
    find(walk, value->parent);
    if (value->json)
        enter(walk, value); /* an absent member stands where its object does */
}

static void position(struct span text, const char *at, int *ret_line, int *ret_column)
{
    int line = 1, column = 1;

    for (const char *p = text.data; p < at; p++) {
        if (*p == '\n') {
            line++;
            column = 1;
        } else if (((unsigned char)*p & 0xc0) != 0x80) { /* not the middle of a character */
            column++;
        }
    }
    *ret_line = line;
    *ret_column = column;
}

static void print_path(const struct json_value *value, char *text, size_t size)
{
    size_t length;

    if (!value->parent)
        return;
    print_path(value->parent, text, size);
    length = strlen(text);
    if (value->key)
        snprintf(text + length, size - length, "%s%s", length ? "." : "", value->key);
    else
        snprintf(text + length, size - length, "[%zu]", value->index);
}

/* ---- errors ---- */

void json_reader_fail(struct json_reader *reader, const struct json_value *value, const char *format, ...)
{
    struct walk walk = {reader->text.data, reader->text.data + reader->text.length};
    char sentence[256], path[192] = "";
    int line, column;
    va_list args;

    if (reader->failed)
        return;
    reader->failed = true;
    va_start(args, format);
    vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    find(&walk, value);
    position(reader->text, walk.at, &line, &column);
    print_path(value, path, sizeof(path));
    fault_set(reader->fault, 0, "%d:%d: %s%s%s", line, column, path, *path ? ": " : "", sentence);
}

void json_reader_out_of_memory(struct json_reader *reader)
{
    if (!reader->failed)
        fault_set(reader->fault, ENOMEM, "out of memory");
    reader->failed = true;
}

/* ---- the document ---- */

int json_reader_init(struct json_reader *reader, struct span text, struct arena *arena, struct fault *fault)
{
    json_error_t error;

    *reader = (struct json_reader){.text = text, .arena = arena, .fault = fault};
    reader->root = json_loadb(text.data ? text.data : "", text.length, JSON_REJECT_DUPLICATES, &error);
    if (reader->root)
        return 0;
    if (json_error_code(&error) == json_error_out_of_memory)
        return fault_set(fault, ENOMEM, "out of memory");
    return fault_set(fault, 0, "%d:%d: not JSON: %s", MAX(error.line, 1), MAX(error.column, 1), error.text);
}

void json_reader_deinit(struct json_reader *reader)
{
    json_decref(reader->root);
    reader->root = NULL;
}

struct json_value json_reader_root(const struct json_reader *reader)
{
    return (struct json_value){.json = reader->root};
}

static bool is_among(const char *key, const char *words)
{
    struct span rest = span_from(words);

    while (rest.data) {
        if (span_equal(span_cut(&rest, ' '), span_from(key)))
            return true;
    }
    return false;
}

void json_expect_object(struct json_reader *reader, const struct json_value *value, const char *known)
{
    const char *key;
    json_t *member;

    if (reader->failed)
        return;
    if (!json_is_object(value->json)) {
        json_reader_fail(reader, value, value->json ? "must be an object" : "is missing");
        return;
    }
    json_object_foreach(value->json, key, member)
    {
        struct json_value unknown = {member, value, key, 0};
        if (!is_among(key, known))
            json_reader_fail(reader, &unknown, "is not known here; known are: %s", known);
    }
}

struct json_value json_member(const struct json_value *object, const char *key)
{
    json_t *json = json_object_get(object->json, key);

    return (struct json_value){json_is_null(json) ? NULL : json, object, key, 0};
}

size_t json_length(struct json_reader *reader, const struct json_value *array, size_t maximum)
{
    size_t length = json_array_size(array->json);

    if (reader->failed || !array->json)
        return 0;
    if (!json_is_array(array->json))
        json_reader_fail(reader, array, "must be a list");
    else if (length > maximum)
        json_reader_fail(reader, array, "has %zu elements; the most are %zu", length, maximum);
    return reader->failed ? 0 : length;
}

struct json_value json_element(const struct json_value *array, size_t index)
{
    return (struct json_value){json_array_get(array->json, index), array, NULL, index};
}

double json_number(struct json_reader *reader, const struct json_value *value, double minimum, double maximum,
                   double otherwise)
{
    double number = json_number_value(value->json);

    if (reader->failed || !value->json)
        return otherwise;
    if (!json_is_number(value->json))
        json_reader_fail(reader, value, "must be a number");
    else if (!(number >= minimum && number <= maximum))
        json_reader_fail(reader, value, "must be from %.15g to %.15g", minimum, maximum);
    return reader->failed ? otherwise : number;
}

int64_t json_whole(struct json_reader *reader, const struct json_value *value, int64_t minimum, int64_t maximum,
                   int64_t otherwise)
{
    double number = json_number_value(value->json);

    if (reader->failed || !value->json)
        return otherwise;
    if (!json_is_number(value->json) || number != floor(number))
        json_reader_fail(reader, value, "must be a whole number");
    else if (!(number >= (double)minimum && number <= (double)maximum))
        json_reader_fail(reader, value, "must be from %lld to %lld", (long long)minimum, (long long)maximum);
    return reader->failed ? otherwise : (int64_t)number;
}

bool json_bool(struct json_reader *reader, const struct json_value *value, bool otherwise)
{
    if (reader->failed || !value->json)
        return otherwise;
    if (!json_is_boolean(value->json))
        json_reader_fail(reader, value, "must be true or false");
    return json_is_true(value->json);
}

const char *json_text(struct json_reader *reader, const struct json_value *value)
{
    const char *copy;

    if (reader->failed || !value->json)
        return NULL;
    if (!json_is_string(value->json)) {
        json_reader_fail(reader, value, "must be a string");
        return NULL;
    }
    copy = arena_dup(reader->arena, span_of(json_string_value(value->json), json_string_length(value->json)));
    if (!copy)
        json_reader_out_of_memory(reader);
    else if (strlen(copy) != json_string_length(value->json))
        json_reader_fail(reader, value, "must not contain a NUL");
    return reader->failed ? NULL : copy;
}

const char *json_name(struct json_reader *reader, const struct json_value *value)
{
    const char *copy;

    if (reader->failed || !json_is_integer(value->json))
        return json_text(reader, value);
    copy = arena_printf(reader->arena, "%lld", (long long)json_integer_value(value->json));
    if (!copy)
        json_reader_out_of_memory(reader);
    return copy;
}

int json_word(struct json_reader *reader, const struct json_value *value, const char *const *words, int otherwise)
{
    const char *text = json_text(reader, value);
    char list[128] = "";

    if (!text)
        return otherwise;
    for (int i = 0; words[i]; i++) {
        if (!strcmp(words[i], text))
            return i;
        snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s", i ? " or " : "", words[i]);
    }
    json_reader_fail(reader, value, "must be %s", list);
    return otherwise;
}

void json_require(struct json_reader *reader, const struct json_value *value)
{
    if (!value->json)
        json_reader_fail(reader, value, "is missing");
}
