#include "api/lambda/input.h"

#include "aws/json_check.h"
#include "aws/json_error.h"
#include "base/encode.h"

#include <limits.h>

enum { INPUT_LOOP_BYTES = 256 * 1024 }; /* larger bodies are parsed on the pool */

/* --- kinds --- */

/* The deserialiser's name for a scalar that it did not expect, NULL for structures and lists. */
static const char *scalar_name(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_STRING:
        return "STRING_VALUE";
    case JSON_INTEGER:
    case JSON_REAL:
        return "NUMBER_VALUE";
    case JSON_TRUE:
        return "TRUE_VALUE";
    case JSON_FALSE:
        return "FALSE_VALUE";
    default:
        return NULL;
    }
}

static const char *const kind_names[] = {
    [INPUT_STRING] = "a String",
    [INPUT_INTEGER] = "an Integer",
    [INPUT_DOUBLE] = "a Double",
    [INPUT_BOOLEAN] = "a Boolean",
};

static int refuse_kind(const json_t *value, enum input_kind expected, struct aws_error *error)
{
    const char *name = scalar_name(value);

    if (expected == INPUT_LIST)
        return aws_error_set(error, AWS_ERROR_SERIALIZATION, "Expected list or null");
    if (expected == INPUT_STRUCTURE || expected == INPUT_MAP)
        return name ? aws_error_set(error, AWS_ERROR_SERIALIZATION, "Unexpected value type in payload")
                    : aws_error_set(error, AWS_ERROR_SERIALIZATION, "Start of list found where not expected");
    if (!name)
        return aws_error_set(error, AWS_ERROR_SERIALIZATION, "Start of %s found where not expected",
                             json_is_array(value) ? "list" : "structure or map");
    return aws_error_set(error, AWS_ERROR_SERIALIZATION, "%s can not be converted to %s", name, kind_names[expected]);
}

static bool is_scalar_kind(const json_t *value, enum input_kind kind)
{
    switch (kind) {
    case INPUT_STRING:
        return json_is_string(value);
    case INPUT_INTEGER:
        return (json_is_integer(value) && json_integer_value(value) >= INT_MIN &&
                json_integer_value(value) <= INT_MAX) ||
               (json_is_real(value) && json_real_value(value) > INT_MIN && json_real_value(value) < INT_MAX);
    case INPUT_DOUBLE:
        return json_is_number(value);
    case INPUT_BOOLEAN:
        return json_is_boolean(value);
    default:
        return false;
    }
}

static int check_value(json_t *value, const struct input_member *member, struct aws_error *error);

static int check_list(json_t *list, const struct input_member *member, struct aws_error *error)
{
    const struct input_member element = {.kind = member->element, .members = member->members};
    json_t *value;
    size_t index;
    int r = 0;

    json_array_foreach(list, index, value)
    {
        if (json_is_null(value)) /* kept: the validation says what is wrong with it */
            continue;
        r = check_value(value, &element, error);
        if (r)
            break;
    }
    return r;
}

static int check_map(json_t *map, const struct input_member *member, struct aws_error *error)
{
    const struct input_member element = {.kind = member->element};
    const char *key;
    json_t *value;
    int r = 0;

    json_object_foreach(map, key, value)
    {
        r = json_is_null(value) ? 0 : check_value(value, &element, error);
        if (r)
            break;
    }
    return r;
}

static int check_value(json_t *value, const struct input_member *member, struct aws_error *error)
{
    switch (member->kind) {
    case INPUT_STRUCTURE:
        return json_is_object(value) ? input_check(value, member->members, error)
                                     : refuse_kind(value, member->kind, error);
    case INPUT_LIST:
        return json_is_array(value) ? check_list(value, member, error) : refuse_kind(value, member->kind, error);
    case INPUT_MAP:
        return json_is_object(value) ? check_map(value, member, error) : refuse_kind(value, member->kind, error);
    default:
        return is_scalar_kind(value, member->kind) ? 0 : refuse_kind(value, member->kind, error);
    }
}

static int cut_fraction(json_t *document, const char *name, const json_t *value)
{
    return json_object_set_new(document, name, json_integer((json_int_t)json_real_value(value))) < 0 ? -ENOMEM : 0;
}

static const struct input_member *find_member(const struct input_member *members, const char *name)
{
    for (const struct input_member *member = members; member->name; member++)
        if (!strcmp(member->name, name))
            return member;
    return NULL;
}

int input_check(json_t *document, const struct input_member *members, struct aws_error *error)
{
    const char *name;
    json_t *value;
    void *next;

    json_object_foreach_safe(document, next, name, value)
    {
        const struct input_member *member = find_member(members, name);
        int r;

        if (!member || json_is_null(value)) {
            json_object_del(document, name);
            continue;
        }
        r = check_value(value, member, error);
        if (r == 0 && member->kind == INPUT_INTEGER && json_is_real(value))
            r = cut_fraction(document, member->name, value);
        if (r)
            return r;
    }
    return 0;
}

/* --- bodies --- */

/*
 * What is done to a body, on whichever thread: it touches nothing but itself until it is back on the loop.
 */
struct parsing {
    uv_work_t work;
    struct call *call;
    const struct input_member *members;
    const char *zip_parent;
    struct buffer body;
    int result; /* 0, a class in `error`, -ENOMEM */
    struct aws_error error;
    json_t *document;
    struct buffer zip;
    bool has_zip;
};

static int make_empty(struct parsing *parsing)
{
    parsing->document = json_object();
    return parsing->document ? 0 : -ENOMEM;
}

/* JSON by the letter that cannot be kept: what is wrong with it. */
static const char *describe_unreadable(const json_error_t *why)
{
    switch (json_error_code(why)) {
    case json_error_null_character:
    case json_error_null_byte_in_key:
        return "A string must not hold the character U+0000";
    case json_error_numeric_overflow:
        return "A number is out of range";
    default:
        return "A string is not Unicode";
    }
}

static int refuse_json(struct parsing *parsing, const json_error_t *why)
{
    struct json_fault fault;
    int r = json_check(buffer_span(&parsing->body), &fault);

    if (r == JSON_CHECK_EMPTY)
        return make_empty(parsing);
    if (r == JSON_CHECK_INVALID)
        return aws_error_set(&parsing->error, AWS_ERROR_SERIALIZATION, "%s", fault.message);
    if (json_error_is_memory(why))
        return -ENOMEM;
    return aws_error_set(&parsing->error, AWS_ERROR_SERIALIZATION, "%s\n at [line: %d, column: %d]",
                         describe_unreadable(why), why->line, why->column);
}

/* The object that is to have ZipFile, NULL when it is not there or no object (which input_check then refuses). */
static json_t *find_zip_parent(const struct parsing *parsing)
{
    json_t *parent = parsing->document;

    if (!parsing->zip_parent)
        return NULL;
    if (parsing->zip_parent[0])
        parent = json_object_get(parent, parsing->zip_parent);
    return json_is_object(parent) ? parent : NULL;
}

static int decode_zip(struct parsing *parsing)
{
    json_t *parent = find_zip_parent(parsing);
    json_t *value = json_object_get(parent, "ZipFile");
    struct span text;
    int r;

    if (!value || json_is_null(value))
        return 0;
    if (!json_is_string(value))
        return refuse_kind(value, INPUT_STRING, &parsing->error);
    text = span_of(json_string_value(value), json_string_length(value));
    r = base64_decode(text, &parsing->zip);
    if (r == -EINVAL)
        return aws_error_set(&parsing->error, AWS_ERROR_SERIALIZATION, "The value of ZipFile is not valid Base64.");
    if (r < 0)
        return r;
    parsing->has_zip = true;
    json_object_del(parent, "ZipFile");
    return 0;
}

static int parse(struct parsing *parsing)
{
    json_error_t why = {0};
    int r;

    if (parsing->body.length == 0)
        return make_empty(parsing);
    if (span_find(buffer_span(&parsing->body), '\0') < 0) /* jansson 2.14 passes over one behind a number */
        parsing->document = json_loadb(parsing->body.data, parsing->body.length, JSON_DECODE_ANY, &why);
    if (!parsing->document)
        return refuse_json(parsing, &why);
    buffer_deinit(&parsing->body);
    if (json_is_null(parsing->document))
        return make_empty(parsing);
    if (!json_is_object(parsing->document))
        return refuse_kind(parsing->document, INPUT_STRUCTURE, &parsing->error);
    r = decode_zip(parsing);
    return r ? r : input_check(parsing->document, parsing->members, &parsing->error);
}

static void parsing_free(struct parsing *parsing)
{
    buffer_deinit(&parsing->body);
    buffer_deinit(&parsing->zip);
    aws_error_deinit(&parsing->error);
    json_decref(parsing->document);
    free(parsing);
}

/* Back on the loop: what was made becomes the call's. */
static void finish(struct parsing *parsing)
{
    struct call *call = parsing->call;
    int r = parsing->result;

    aws_error_deinit(&call->error);
    call->error = parsing->error;
    parsing->error = (struct aws_error){0};
    call->input = TAKE_PTR(parsing->document);
    call->zip = buffer_take(&parsing->zip);
    call->has_zip = parsing->has_zip;
    parsing_free(parsing);
    if (r)
        call_end(call, r, "reading the request's body");
    else
        call->next(call);
}

static void on_work(uv_work_t *work)
{
    struct parsing *parsing = CONTAINER_OF(work, struct parsing, work);

    parsing->result = parse(parsing);
}

static void on_worked(uv_work_t *work, int status)
{
    struct parsing *parsing = CONTAINER_OF(work, struct parsing, work);

    if (status < 0)
        parsing->result = status;
    if (parsing->result == 0 && parsing->call->operation->services->ending)
        parsing->result = -ECANCELED;
    finish(parsing);
}

void input_read_body(struct call *call, const struct input_member *members, const char *zip_parent,
                     void (*next)(struct call *call))
{
    struct parsing *parsing = calloc(1, sizeof(*parsing));
    int r = 0;

    if (!parsing) {
        call_end(call, -ENOMEM, "reading the request's body");
        return;
    }
    call->next = next;
    parsing->call = call;
    parsing->members = members;
    parsing->zip_parent = zip_parent;
    parsing->body = buffer_take(&call->operation->body);
    if (parsing->body.length > INPUT_LOOP_BYTES) {
        r = uv_queue_work(call->operation->services->loop, &parsing->work, on_work, on_worked);
        if (r == 0)
            return;
        parsing->result = r;
    } else {
        parsing->result = parse(parsing);
    }
    finish(parsing);
}

/* --- members --- */

const json_t *input_find(const json_t *body, const char *path)
{
    struct span rest = path ? span_from(path) : SPAN_NONE;

    while (body && rest.data) {
        struct span part = span_cut(&rest, '.');
        char name[64];
        snprintf(name, sizeof(name), "%.*s", SPAN_ARG(part));
        body = json_object_get(body, name);
    }
    return body;
}

struct span input_string(const json_t *object, const char *member)
{
    const json_t *value = json_object_get(object, member);

    return json_is_string(value) ? span_of(json_string_value(value), json_string_length(value)) : SPAN_NONE;
}

bool input_has(const json_t *object, const char *member)
{
    return json_object_get(object, member) != NULL;
}

bool input_boolean(const json_t *object, const char *member)
{
    return json_is_true(json_object_get(object, member));
}

int64_t input_integer(const json_t *object, const char *member, int64_t absent)
{
    const json_t *value = json_object_get(object, member);

    return json_is_integer(value) ? json_integer_value(value) : absent;
}

struct span *input_strings(struct call *call, const json_t *list)
{
    struct span *values = arena_alloc(&call->operation->arena, (json_array_size(list) + 1) * sizeof(*values));
    const json_t *value;
    size_t i;

    if (!values)
        call->validation.error = -ENOMEM;
    else
        json_array_foreach(list, i, value) values[i] = span_of(json_string_value(value), json_string_length(value));
    return values;
}

void input_validate_map(struct call *call, json_t *map, const char *path, const struct validation_constraint *keys,
                        const struct validation_constraint *values)
{
    size_t count = json_object_size(map);
    struct span *names = arena_alloc(&call->operation->arena, (count + 1) * sizeof(*names));
    struct span *texts = arena_alloc(&call->operation->arena, (count + 1) * sizeof(*texts));
    const char *name;
    json_t *value;
    size_t i = 0;

    if (!names || !texts) {
        call->validation.error = -ENOMEM;
        return;
    }
    json_object_foreach(map, name, value)
    {
        names[i] = span_from(name);
        texts[i++] = span_of(json_string_value(value), json_string_length(value));
    }
    validate_map(&call->validation, names, texts, count, path, keys, values);
}
