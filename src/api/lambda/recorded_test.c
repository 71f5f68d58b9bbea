/*
 * Replays the recorded sequences of tests/data/recorded and compares whole answers: same members present and absent,
 * same values or kinds, same status, class, text and message key. A placeholder of an answer binds to what stands in
 * its place, and must be the same wherever it stands again in its sequence.
 */
#include "api/lambda/lambda.h"
#include "api/testing.h"
#include "aws/uri.h"
#include "core/core.h"

#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* Sequences that cannot be replayed here, or whose newest answer Kiln does not give, with the reason. */
static const struct exception {
    const char *name;
    const char *reason;
} exceptions[] = {
    {"test_mixed_architecture", "needs a host that runs both architectures"},
};

/* A replay: the world, what the placeholders are bound to, and the answers of the steps for "<step N: MEMBER>". */
struct replay {
    struct api_world world;
    const char *sequence;
    json_t *bindings; /* "<name:1>": text */
    json_t *answers;
    size_t step;
    bool allocated; /* provisioned concurrency, as who polls for it finds it */
};

static void failed(const struct replay *replay, const char *what, const char *expected, const char *actual)
{
    fail_msg("%s, step %zu: %s\n  expected %s\n  got      %s", replay->sequence, replay->step, what, expected, actual);
}

/* --- parameters --- */

/* Appends what a placeholder of the parameters stands for; unbound ones get a value made of their name. */
static void append_placeholder(struct replay *replay, const char *placeholder, struct buffer *text)
{
    const char *bound = json_string_value(json_object_get(replay->bindings, placeholder));
    char member[64];
    size_t step;
    size_t from = text->length;

    if (sscanf(placeholder, "<step %zu: %63[^>]>", &step, member) == 2)
        bound = json_string_value(json_object_get(json_array_get(replay->answers, step), member));
    if (bound) {
        assert_int_equal(buffer_append_span(text, span_from(bound)), 0);
        return;
    }
    for (const char *c = placeholder; *c; c++)
        if (*c != '<' && *c != '>')
            assert_int_equal(buffer_append_char(text, *c == ':' || *c == '_' ? '-' : *c), 0);
    json_object_set_new(replay->bindings, placeholder, json_stringn(text->data + from, text->length - from));
}

static json_t *fill_string(struct replay *replay, const char *from)
{
    struct buffer text = BUFFER_INIT;
    json_t *value;

    while (*from) {
        const char *end = *from == '<' ? strchr(from, '>') : NULL;
        if (end) {
            char placeholder[128];
            snprintf(placeholder, sizeof(placeholder), "%.*s", (int)(end - from + 1), from);
            append_placeholder(replay, placeholder, &text);
            from = end + 1;
        } else {
            assert_int_equal(buffer_append_char(&text, *from++), 0);
        }
    }
    value = json_stringn(text.data ? text.data : "", text.length);
    buffer_deinit(&text);
    return value;
}

static json_t *fill(struct replay *replay, json_t *value)
{
    const char *key;
    json_t *member;
    json_t *made;
    size_t i;

    if (json_is_string(value))
        return fill_string(replay, json_string_value(value));
    if (json_is_array(value)) {
        made = json_array();
        json_array_foreach(value, i, member) json_array_append_new(made, fill(replay, member));
        return made;
    }
    if (!json_is_object(value))
        return json_incref(value);
    if (json_object_get(value, "$zip"))
        return api_zip(json_string_value(json_object_get(value, "file")),
                       json_string_value(json_object_get(value, "$zip")));
    made = json_object();
    json_object_foreach(value, key, member) json_object_set_new(made, key, fill(replay, member));
    return made;
}

static void append_encoded(struct buffer *target, const json_t *value)
{
    if (json_is_integer(value))
        assert_int_equal(buffer_printf(target, "%lld", (long long)json_integer_value(value)), 0);
    else
        assert_int_equal(uri_encode(span_from(json_string_value(value)), false, target), 0);
}

static const struct operation_route *find_route(const char *operation)
{
    size_t count;
    const struct operation_route *routes = lambda_routes(&count);

    for (size_t i = 0; i < count; i++)
        if (!strcmp(routes[i].name, operation))
            return &routes[i];
    fail_msg("no operation %s", operation);
    return NULL;
}

/* The path with its labels taken out of the parameters. */
static void write_path(const struct operation_route *route, json_t *params, struct buffer *target)
{
    struct span rest = span_from(route->pattern + 1);

    while (rest.data) {
        struct span part = span_cut(&rest, '/');
        char label[64];
        assert_int_equal(buffer_append_char(target, '/'), 0);
        if (part.data[0] != '{') {
            assert_int_equal(buffer_append_span(target, part), 0);
            continue;
        }
        snprintf(label, sizeof(label), "%.*s", (int)part.length - 2, part.data + 1);
        append_encoded(target, json_object_get(params, label));
        json_object_del(params, label);
    }
}

static void write_query(const struct operation_route *route, json_t *params, struct buffer *target)
{
    const char *name;
    json_t *value;
    char separator = '?';

    if (route->query)
        assert_int_equal(buffer_printf(target, "?%s", route->query), 0);
    if (route->query)
        separator = '&';
    json_object_foreach(params, name, value)
    {
        assert_int_equal(buffer_printf(target, "%c%s=", separator, name), 0);
        append_encoded(target, value);
        separator = '&';
    }
}

/* A string for ZipFile travels as base64. */
static void encode_plain_zip(json_t *params)
{
    json_t *code = json_object_get(params, "Code");
    const char *zip = json_string_value(json_object_get(code, "ZipFile"));

    if (zip && strchr(zip, ' '))
        json_object_set_new(code, "ZipFile", json_string("dGhpcyBpcyBub3QgYSB6aXBmaWxl"));
}

static struct api_answer call_operation(struct replay *replay, const char *operation, json_t *params)
{
    const struct operation_route *route = find_route(operation);
    struct buffer target = BUFFER_INIT;
    struct api_answer answer;

    write_path(route, params, &target);
    encode_plain_zip(params);
    if (strcmp(route->method, "GET") == 0 || strcmp(route->method, "DELETE") == 0) {
        write_query(route, params, &target);
        json_decref(params);
        params = NULL;
    } else if (!strcmp(operation, "PutProvisionedConcurrencyConfig")) {
        json_t *query = json_pack("{s:O}", "Qualifier", json_object_get(params, "Qualifier"));
        write_query(route, query, &target);
        json_decref(query);
        json_object_del(params, "Qualifier");
    }
    assert_non_null(buffer_terminate(&target));
    answer = params ? api_exchange_json(&replay->world, route->method, target.data, params)
                    : api_exchange(&replay->world, route->method, target.data, NULL);
    buffer_deinit(&target);
    return answer;
}

/* --- answers --- */

static bool is_kind_word(const char *text)
{
    static const char *const words[] = {"date", "datetime", "timestamp", "code-sha256", "<code-size>", "<location>"};

    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (!strcmp(text, words[i]))
            return true;
    return false;
}

/* A regular expression in which each placeholder is a group. */
static void write_pattern(const char *expected, struct buffer *pattern)
{
    assert_int_equal(buffer_append_char(pattern, '^'), 0);
    while (*expected) {
        const char *end = *expected == '<' ? strchr(expected, '>') : NULL;
        if (end) {
            assert_int_equal(buffer_append(pattern, "(.*)", 4), 0);
            expected = end + 1;
            continue;
        }
        if (strchr("\\^.$|()[]*+?{}", *expected))
            assert_int_equal(buffer_append_char(pattern, '\\'), 0);
        assert_int_equal(buffer_append_char(pattern, *expected++), 0);
    }
    assert_int_equal(buffer_append_char(pattern, '$'), 0);
    assert_non_null(buffer_terminate(pattern));
}

/* Binds, or compares with what is bound. "<a:len(65)>" is a description of the text, not a name. */
static bool bind_placeholder(struct replay *replay, const char *placeholder, struct span value)
{
    json_t *bound = json_object_get(replay->bindings, placeholder);

    if (strstr(placeholder, ":len("))
        return true;
    if (bound)
        return span_equal(span_from(json_string_value(bound)), value);
    json_object_set_new(replay->bindings, placeholder, json_stringn(value.data, value.length));
    return true;
}

static bool bind_groups(struct replay *replay, const char *expected, const char *actual, const regmatch_t *groups)
{
    bool fits = true;

    for (size_t i = 1; fits && (expected = strchr(expected, '<')); i++) {
        const char *end = strchr(expected, '>');
        char placeholder[128];
        snprintf(placeholder, sizeof(placeholder), "%.*s", (int)(end - expected + 1), expected);
        fits = bind_placeholder(replay, placeholder,
                                span_of(actual + groups[i].rm_so, (size_t)(groups[i].rm_eo - groups[i].rm_so)));
        expected = end;
    }
    return fits;
}

enum { GROUPS_MAX = 16 };

static bool match_text(struct replay *replay, const char *expected, const char *actual)
{
    struct buffer pattern = BUFFER_INIT;
    regmatch_t groups[GROUPS_MAX];
    regex_t regex;
    bool fits;

    if (!strchr(expected, '<'))
        return !strcmp(expected, actual);
    write_pattern(expected, &pattern);
    assert_int_equal(regcomp(&regex, pattern.data, REG_EXTENDED), 0);
    fits = regexec(&regex, actual, GROUPS_MAX, groups, 0) == 0 && bind_groups(replay, expected, actual, groups);
    regfree(&regex);
    buffer_deinit(&pattern);
    return fits;
}

static char *dump(const json_t *value)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);

    return text ? text : strdup("nothing");
}

static void fail_values(const struct replay *replay, const char *what, const json_t *expected, const json_t *actual)
{
    failed(replay, what, dump(expected), dump(actual)); /* the process ends: not freed */
}

static void compare(struct replay *replay, const char *where, json_t *expected, json_t *actual);

static void compare_objects(struct replay *replay, json_t *expected, json_t *actual)
{
    const char *key;
    json_t *value;

    json_object_foreach(expected, key, value) compare(replay, key, value, json_object_get(actual, key));
    json_object_foreach(actual, key, value) if (!json_object_get(expected, key))
        failed(replay, "a member that is not recorded", "nothing", key);
}

static void compare(struct replay *replay, const char *where, json_t *expected, json_t *actual)
{
    size_t i;
    json_t *value;

    if (!actual)
        fail_values(replay, where, expected, actual);
    if (json_is_string(expected) && is_kind_word(json_string_value(expected)))
        return;
    if (json_is_string(expected) && json_is_string(actual)) {
        if (!match_text(replay, json_string_value(expected), json_string_value(actual)))
            fail_values(replay, where, expected, actual);
    } else if (json_is_object(expected) && json_is_object(actual)) {
        compare_objects(replay, expected, actual);
    } else if (json_is_array(expected) && json_is_array(actual)) {
        if (json_array_size(expected) != json_array_size(actual))
            fail_values(replay, where, expected, actual);
        json_array_foreach(expected, i, value) compare(replay, where, value, json_array_get(actual, i));
    } else if (!json_equal(expected, actual)) {
        fail_values(replay, where, expected, actual);
    }
}

static void compare_class(struct replay *replay, const char *code, const struct api_answer *answer)
{
    if (strcmp(code, answer->error_type))
        failed(replay, "error class", code, answer->error_type[0] ? answer->error_type : "no error");
}

/* {"Code", "Message"} or {"Code", "Count", "Errors": [...]}: an error with its text taken apart. */
static void compare_summary(struct replay *replay, json_t *recorded, const struct api_answer *answer)
{
    json_t *errors = json_object_get(recorded, "Errors");
    const char *message = api_message(answer);
    char text[64];
    json_t *error;
    size_t i;

    compare_class(replay, json_string_value(json_object_get(recorded, "Code")), answer);
    if (!errors) {
        json_t *actual = json_string(message);
        compare(replay, "Message", json_object_get(recorded, "Message"), actual);
        json_decref(actual);
        return;
    }
    snprintf(text, sizeof(text), "%zu validation error%s detected: ", json_array_size(errors),
             json_array_size(errors) == 1 ? "" : "s");
    if (!span_starts_with(span_from(message), span_from(text)))
        failed(replay, "number of violations", text, message);
    message += strlen(text);
    json_array_foreach(errors, i, error)
    {
        const char *end = strstr(message, "; Value '");
        struct span part = span_of(message, end ? (size_t)(end - message) : strlen(message));
        json_t *actual = json_stringn(part.data, part.length);
        compare(replay, "violation", error, actual);
        json_decref(actual);
        message = end ? end + 2 : "";
    }
    if (*message)
        failed(replay, "one more violation", "", message);
}

static void compare_error(struct replay *replay, json_t *recorded, const struct api_answer *answer)
{
    json_t *error = json_object_get(recorded, "Error");
    json_t *expected = json_object_get(error, "Message");
    json_t *rest = json_copy(recorded);
    json_t *body = json_copy(answer->body);
    json_t *actual =
        json_is_null(json_object_get(answer->body, "Message")) ? json_null() : json_string(api_message(answer));

    compare_class(replay, json_string_value(json_object_get(error, "Code")), answer);
    compare(replay, "Message", expected, actual);
    json_decref(actual);
    json_object_del(rest, "Error");
    /* "Message" or "message" is recorded beside Error only for some classes; compare the key where it is. */
    if (!json_object_get(rest, "Message") && !json_object_get(rest, "message")) {
        json_object_del(body, "Message");
        json_object_del(body, "message");
    }
    compare_objects(replay, rest, body);
    json_decref(rest);
    json_decref(body);
}

static void compare_answer(struct replay *replay, json_t *recorded, const struct api_answer *answer)
{
    json_t *expected = json_copy(recorded);
    json_t *meta = json_object_get(recorded, "ResponseMetadata");
    json_t *status = json_object_get(meta, "HTTPStatusCode");
    char text[16];

    json_object_del(expected, "ResponseMetadata");
    json_object_del(expected, "StatusCode");
    snprintf(text, sizeof(text), "%d", answer->status);
    if (status && json_integer_value(status) != answer->status)
        failed(replay, "status", dump(status), text);
    if (json_object_get(expected, "Error"))
        compare_error(replay, expected, answer);
    else if (json_object_get(expected, "Code") && json_is_string(json_object_get(expected, "Code")))
        compare_summary(replay, expected, answer);
    else
        compare_objects(replay, expected, answer->body);
    json_decref(expected);
}

/* Whole answers, and errors with their text taken apart. GetAccountSettings was recorded by its members' names only. */
static bool is_comparable(const json_t *recorded, const char *operation, const char *link)
{
    if (!json_is_object(recorded) || !link || !strcmp(operation, "GetAccountSettings"))
        return false;
    return !strcmp(link, "exact") || (!strcmp(link, "derived") && json_is_string(json_object_get(recorded, "Code")));
}

static void replay_step(struct replay *replay, json_t *step)
{
    const char *operation = json_string_value(json_object_get(step, "operation"));
    const char *link = json_string_value(json_object_get(step, "link"));
    json_t *recorded = json_object_get(step, "recorded");
    struct api_answer answer;

    if (json_object_get(step, "skip") || !strcmp(operation, "Invoke")) {
        json_array_append_new(replay->answers, json_null());
        return;
    }
    if (json_object_get(step, "poll")) { /* the client waits until the state has settled */
        testing_run(&replay->world.catalog);
        replay->allocated = true;
    }
    if (!strcmp(operation, "PutProvisionedConcurrencyConfig"))
        replay->allocated = false;
    answer = call_operation(replay, operation, fill(replay, json_object_get(step, "params")));
    json_array_append(replay->answers, answer.body ? answer.body : json_null());
    if (is_comparable(recorded, operation, link))
        compare_answer(replay, recorded, &answer);
    api_answer_deinit(&answer);
}

/* In place of core: everything or nothing. */
static void read_provisioned(const struct catalog_target *target, struct core_provisioned_state *ret_state,
                             void *context)
{
    const struct replay *replay = context;
    int32_t requested = (int32_t)catalog_target_provisioned(target)->requested;

    *ret_state = (struct core_provisioned_state){.status = CORE_PROVISIONED_IN_PROGRESS, .requested = requested};
    if (!replay->allocated)
        return;
    ret_state->status = CORE_PROVISIONED_READY;
    ret_state->allocated = ret_state->available = requested;
}

static void replay_sequence(const char *name, json_t *sequence)
{
    struct replay replay = {.sequence = name};
    json_t *step;

    api_open(&replay.world);
    replay.world.services.read_provisioned = read_provisioned;
    replay.world.services.provisioned_context = &replay;
    replay.answers = json_array();
    replay.bindings =
        json_pack("{s:s, s:s, s:s}", "<partition>", "aws", "<region>", API_REGION, "<wrong-region>", "eu-central-1");
    json_array_foreach(json_object_get(sequence, "steps"), replay.step, step) replay_step(&replay, step);
    json_decref(replay.answers);
    json_decref(replay.bindings);
    api_close(&replay.world);
}

static const char *exception_for(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(exceptions); i++)
        if (strstr(name, exceptions[i].name))
            return exceptions[i].reason;
    return NULL;
}

struct sequence {
    const char *name;
    json_t *content;
};

static void test_sequence(void **state)
{
    const struct sequence *sequence = *state;

    replay_sequence(sequence->name, sequence->content);
}

/* Says so for each sequence that is left out. */
static bool is_left_out(const char *name)
{
    const char *reason = exception_for(name);

    if (reason)
        fprintf(stderr, "NOT REPLAYED: %s: %s\n", name, reason);
    return reason;
}

int main(int argc, char **argv)
{
    json_t *all = json_load_file(argc > 1 ? argv[1] : "", 0, NULL);
    struct sequence *sequences = calloc(json_object_size(all) + 1, sizeof(*sequences));
    struct CMUnitTest *tests = calloc(json_object_size(all) + 1, sizeof(*tests));
    const char *name;
    json_t *content;
    size_t count = 0;
    int r;

    if (!all) {
        fprintf(stderr, "usage: recorded-test FILE.json\n");
        return 2;
    }
    json_object_foreach(all, name, content)
    {
        if ((argc > 2 && !strstr(name, argv[2])) || is_left_out(name))
            continue;
        sequences[count] = (struct sequence){name, content};
        tests[count] = (struct CMUnitTest){name, test_sequence, NULL, NULL, &sequences[count]};
        count++;
    }
    r = _cmocka_run_group_tests("recorded", tests, count, NULL, NULL);
    free(tests);
    free(sequences);
    json_decref(all);
    return r;
}
