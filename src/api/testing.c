#include "api/testing.h"

#include "api/lambda/lambda.h"
#include "base/encode.h"
#include "store/zip_builder.h"

#include <assert.h>
#include <stdio.h>
#include <sys/stat.h>

static void connect_parts(struct api_world *world)
{
    world->services.loop = &world->catalog.loop;
    world->services.catalog = world->catalog.catalog;
    world->services.code = world->catalog.code;
}

void api_open(struct api_world *world)
{
    *world = (struct api_world){.caller = SPAN(API_ACCOUNT), .service = service_at(0)};
    operation_services_init(&world->services);
    testing_open(&world->catalog);
    testing_load(&world->catalog);
    connect_parts(world);
}

void api_close(struct api_world *world)
{
    testing_close(&world->catalog);
}

void api_restart(struct api_world *world)
{
    testing_shut(&world->catalog);
    testing_reopen(&world->catalog, 0);
    testing_load(&world->catalog);
    connect_parts(world);
}

static void copy_header(struct span value, char *text, size_t size)
{
    snprintf(text, size, "%.*s", SPAN_ARG(value));
}

static void on_send(void *context, int status, const struct http_header *headers, size_t header_count,
                    struct buffer *body)
{
    struct api_call *call = context;
    struct api_answer *answer = &call->answer;

    assert(!answer->answered);
    answer->answered = true;
    answer->status = status;
    for (size_t i = 0; i < header_count; i++) {
        if (span_equal_nocase(headers[i].name, SPAN("x-amzn-ErrorType")))
            copy_header(headers[i].value, answer->error_type, sizeof(answer->error_type));
        if (span_equal_nocase(headers[i].name, SPAN("x-amzn-RequestId")))
            copy_header(headers[i].value, answer->request_id, sizeof(answer->request_id));
    }
    if (body)
        answer->bytes = buffer_take(body);
    if (answer->bytes.length)
        answer->body = json_loadb(answer->bytes.data, answer->bytes.length, JSON_DECODE_ANY, NULL);
}

void api_start(struct api_world *world, const char *method, const char *target, struct span body, struct api_call *call)
{
    struct http_header headers[] = {{SPAN("Host"), SPAN("localhost:4566")}};
    struct span query = span_from(target);
    struct span path = span_cut(&query, '?');
    struct buffer copy = BUFFER_INIT;
    char caller[64];
    struct operation_request request = {
        .service = world->service,
        .method = span_from(method),
        .path = path,
        .query = query.data ? query : SPAN_NONE,
        .account = world->caller,
        .region = SPAN(API_REGION),
        .request_id = SPAN("11111111-2222-3333-4444-555555555555"),
        .headers = headers,
        .header_count = ARRAY_SIZE(headers),
        .body = &copy,
    };
    struct operation_parameter parameters[OPERATION_PARAMETERS_MAX];
    const struct operation_route *route = NULL;
    struct arena arena = {0};
    size_t count = 0;
    int r = body.length ? buffer_append_span(&copy, body) : 0;

    assert(r == 0);
    (void)r;
    *call = (struct api_call){0};
    snprintf(caller, sizeof(caller), "arn:aws:iam::%.*s:root", SPAN_ARG(world->caller));
    request.caller_arn = span_from(caller);
    if (world->service == service_at(0))
        lambda_route(request.method, request.path, request.query, &arena, &route, parameters, &count);
    call->operation = operation_new(&world->services, &request, on_send, call);
    operation_start(call->operation, route, parameters, count);
    arena_deinit(&arena);
}

void api_wait(struct api_world *world, struct api_call *call)
{
    while (!call->answer.answered)
        uv_run(&world->catalog.loop, UV_RUN_ONCE);
}

struct api_answer api_exchange(struct api_world *world, const char *method, const char *target, const char *body)
{
    struct api_call call;

    api_start(world, method, target, span_from(body), &call);
    api_wait(world, &call);
    return call.answer;
}

struct api_answer api_exchange_json(struct api_world *world, const char *method, const char *target, json_t *body)
{
    char *text = json_dumps(body, JSON_COMPACT);
    struct api_answer answer = api_exchange(world, method, target, text);

    free(text);
    json_decref(body);
    return answer;
}

void api_answer_deinit(struct api_answer *answer)
{
    json_decref(answer->body);
    buffer_deinit(&answer->bytes);
    *answer = (struct api_answer){0};
}

const char *api_message(const struct api_answer *answer)
{
    const char *message = json_string_value(json_object_get(answer->body, "message"));

    if (!message)
        message = json_string_value(json_object_get(answer->body, "Message"));
    return message ? message : "";
}

json_t *api_zip(const char *name, const char *content)
{
    struct zip_entry entry = {.name = span_from(name), .mode = S_IFREG | 0644, .content = span_from(content)};
    struct buffer zip = BUFFER_INIT;
    struct buffer text = BUFFER_INIT;
    json_t *value;
    int r;

    zip_build(&zip, &entry, 1);
    r = base64_encode(buffer_span(&zip), &text);
    assert(r == 0);
    (void)r;
    value = json_stringn(text.data, text.length);
    buffer_deinit(&zip);
    buffer_deinit(&text);
    return value;
}

void api_create_function(struct api_world *world, const char *name)
{
    json_t *body = json_pack("{s:s, s:s, s:s, s:s, s:{s:o}}", "FunctionName", name, "Runtime", "python3.12", "Role",
                             "arn:aws:iam::" API_ACCOUNT ":role/r", "Handler", "handler.handler", "Code", "ZipFile",
                             api_zip("handler.py", "pass"));
    struct api_answer answer = api_exchange_json(world, "POST", "/2015-03-31/functions", body);

    assert(answer.status == 201);
    api_answer_deinit(&answer);
    testing_run(&world->catalog);
}
