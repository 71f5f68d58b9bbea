/*
 * libcurl asks for sockets to be watched and for one timer; both are libuv handles here. It reports finished transfers
 * through a queue; they are first all taken off it and only then told, because on_done may start, cancel or free
 * anything.
 */
#include "http/client.h"

#include "base/arena.h"
#include "base/list.h"
#include "http/parser.h"

#include <curl/curl.h>

enum { TIMEOUT_MS = 30000, RESPONSE_BYTES = 64 * 1024 * 1024, HEADER_BYTES = 1024 * 1024 };

struct http_client {
    uv_loop_t *loop;
    CURLM *multi; /* NULL once freed */
    uv_timer_t timer;
    struct list fetches;  /* under way */
    struct list finished; /* and not told yet */
    size_t fetch_count;
    size_t refs; /* the timer's, each watch's, and one during callbacks */
};

struct http_fetch {
    struct http_client *client;
    struct list_link link;
    CURL *easy;
    struct curl_slist *fields;
    struct buffer body;
    http_fetch_done *on_done;
    void *context;
    size_t max_response_bytes;
    CURLcode outcome;
    int failure; /* -errno found in a callback of libcurl's */
    struct buffer response;
    struct arena arena; /* response headers */
    struct http_header *headers;
    size_t header_count;
    size_t header_capacity;
    size_t header_bytes;
    char error[CURL_ERROR_SIZE];
};

/* One socket that libcurl wants to be told about. */
struct watch {
    uv_poll_t poll;
    struct http_client *client;
    curl_socket_t socket;
};

static void client_unref(struct http_client *client)
{
    if (--client->refs)
        return;
    free(client);
    curl_global_cleanup();
}

static void fetch_free(struct http_fetch *fetch)
{
    curl_easy_cleanup(fetch->easy);
    curl_slist_free_all(fetch->fields);
    buffer_deinit(&fetch->body);
    buffer_deinit(&fetch->response);
    arena_deinit(&fetch->arena);
    free(fetch->headers);
    free(fetch);
}

static void cleanup_fetch(struct http_fetch **fetch)
{
    if (*fetch)
        fetch_free(*fetch);
}

/* --- results ---------------------------------------------------------------------------------------------------- */

static int errno_of(CURLcode outcome)
{
    switch (outcome) {
    case CURLE_OK:
        return 0;
    case CURLE_OPERATION_TIMEDOUT:
        return -ETIMEDOUT;
    case CURLE_COULDNT_CONNECT:
        return -ECONNREFUSED;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
        return -EHOSTUNREACH;
    case CURLE_FILESIZE_EXCEEDED:
        return -EMSGSIZE;
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
        return -ECONNRESET;
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
        return -EPROTO;
    case CURLE_OUT_OF_MEMORY:
        return -ENOMEM;
    default:
        return -EIO;
    }
}

static const char *sentence_of(const struct http_fetch *fetch, int error)
{
    if (!error)
        return "";
    if (error == -EMSGSIZE)
        return "the response is larger than accepted";
    if (error == -ENOMEM)
        return "out of memory";
    return fetch->error[0] ? fetch->error : curl_easy_strerror(fetch->outcome);
}

static void tell_done(struct http_fetch *fetch)
{
    struct http_fetch_result result = {
        .error = fetch->failure ? fetch->failure : errno_of(fetch->outcome),
        .headers = fetch->headers,
        .header_count = fetch->header_count,
        .body = buffer_take(&fetch->response),
    };
    long status = 0;

    curl_easy_getinfo(fetch->easy, CURLINFO_RESPONSE_CODE, &status);
    result.status = (int)status;
    result.sentence = sentence_of(fetch, result.error);
    fetch->on_done(&result, fetch->context);
    buffer_deinit(&result.body);
    fetch_free(fetch);
}

static void collect_finished(struct http_client *client)
{
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(client->multi, &left))) {
        struct http_fetch *fetch;
        CURLcode outcome = message->data.result;
        CURL *easy = message->easy_handle;
        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&fetch);
        curl_multi_remove_handle(client->multi, easy); /* `message` is dead now */
        fetch->outcome = outcome;
        list_remove(&fetch->link);
        list_push_back(&client->finished, &fetch->link);
    }
}

static void tell_finished(struct http_client *client)
{
    struct list_link *link;

    while ((link = list_first(&client->finished))) {
        list_remove(link);
        client->fetch_count--;
        tell_done(CONTAINER_OF(link, struct http_fetch, link));
    }
}

/* --- libcurl's and libuv's callbacks ------------------------------------------------------------------------------ */

static void advance(struct http_client *client, curl_socket_t socket, int events)
{
    int running;

    if (!client->multi)
        return;
    client->refs++;
    curl_multi_socket_action(client->multi, socket, events, &running);
    collect_finished(client);
    tell_finished(client);
    client_unref(client);
}

static void on_timer(uv_timer_t *timer)
{
    advance(timer->data, CURL_SOCKET_TIMEOUT, 0);
}

static int on_curl_timer(CURLM *multi, long timeout_ms, void *context)
{
    struct http_client *client = context;

    (void)multi;
    if (timeout_ms < 0)
        uv_timer_stop(&client->timer);
    else
        uv_timer_start(&client->timer, on_timer, (uint64_t)timeout_ms, 0);
    return 0;
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct watch *watch = CONTAINER_OF(poll, struct watch, poll);
    int flags = 0;

    if (status < 0)
        flags |= CURL_CSELECT_ERR;
    if (events & UV_READABLE)
        flags |= CURL_CSELECT_IN;
    if (events & UV_WRITABLE)
        flags |= CURL_CSELECT_OUT;
    advance(watch->client, watch->socket, flags);
}

static void on_watch_end(uv_handle_t *handle)
{
    struct watch *watch = CONTAINER_OF((uv_poll_t *)handle, struct watch, poll);

    client_unref(watch->client);
    free(watch);
}

static struct watch *watch_new(struct http_client *client, curl_socket_t socket)
{
    CLEANUP(cleanup_free) struct watch *watch = calloc(1, sizeof(*watch));

    if (!watch || uv_poll_init_socket(client->loop, &watch->poll, socket) < 0)
        return NULL;
    watch->client = client;
    watch->socket = socket;
    client->refs++;
    curl_multi_assign(client->multi, socket, watch);
    return TAKE_PTR(watch);
}

static int on_curl_socket(CURL *easy, curl_socket_t socket, int what, void *context, void *socket_context)
{
    struct http_client *client = context;
    struct watch *watch = socket_context;
    int events = (what & CURL_POLL_IN ? UV_READABLE : 0) | (what & CURL_POLL_OUT ? UV_WRITABLE : 0);

    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        if (watch)
            uv_close((uv_handle_t *)&watch->poll, on_watch_end);
        return 0;
    }
    if (!watch)
        watch = watch_new(client, socket);
    return watch && uv_poll_start(&watch->poll, events, on_poll) == 0 ? 0 : -1;
}

static size_t on_body(char *data, size_t size, size_t count, void *context)
{
    struct http_fetch *fetch = context;
    size_t length = size * count;

    if (length > fetch->max_response_bytes - fetch->response.length)
        fetch->failure = -EMSGSIZE;
    else
        fetch->failure = buffer_append(&fetch->response, data, length);
    return fetch->failure ? CURL_WRITEFUNC_ERROR : length;
}

static int add_header(struct http_fetch *fetch, struct span line)
{
    struct span name = span_cut(&line, ':');
    char *copy;

    if (fetch->header_count == fetch->header_capacity) {
        size_t capacity = fetch->header_capacity * 2 + 16;
        struct http_header *headers = realloc(fetch->headers, capacity * sizeof(*headers));
        if (!headers)
            return -ENOMEM;
        fetch->headers = headers;
        fetch->header_capacity = capacity;
    }
    line = span_trim(line);
    copy = arena_alloc(&fetch->arena, name.length + line.length);
    if (!copy)
        return -ENOMEM;
    memcpy(copy, name.data, name.length);
    if (line.length)
        memcpy(copy + name.length, line.data, line.length);
    fetch->headers[fetch->header_count++] =
        (struct http_header){span_of(copy, name.length), span_of(copy + name.length, line.length)};
    return 0;
}

static bool is_line_end(char c)
{
    return c == '\r' || c == '\n';
}

/* Called once for each line; a status line begins another response (after 100 Continue, say). */
static size_t on_header_line(char *data, size_t size, size_t count, void *context)
{
    struct http_fetch *fetch = context;
    struct span line = span_of(data, size * count);

    fetch->header_bytes += line.length;
    if (fetch->header_bytes > HEADER_BYTES)
        fetch->failure = -EMSGSIZE;
    if (span_starts_with(line, SPAN("HTTP/")))
        fetch->header_count = 0;
    while (line.length && is_line_end(line.data[line.length - 1]))
        line.length--;
    if (!fetch->failure && span_find(line, ':') > 0)
        fetch->failure = add_header(fetch, line);
    return fetch->failure ? 0 : size * count;
}

/* --- starting --------------------------------------------------------------------------------------------------- */

static bool has_control(struct span text)
{
    for (size_t i = 0; i < text.length; i++)
        if (((unsigned char)text.data[i] < 0x20 && text.data[i] != '\t') || text.data[i] == 0x7f)
            return true;
    return false;
}

static int append_field(struct http_fetch *fetch, const char *line)
{
    struct curl_slist *list = curl_slist_append(fetch->fields, line);

    if (!list)
        return -ENOMEM;
    fetch->fields = list;
    return 0;
}

static int append_header(struct http_fetch *fetch, const struct http_header *header)
{
    CLEANUP(buffer_deinit) struct buffer line = BUFFER_INIT;
    struct span value = span_trim(header->value);
    int r;

    if (!parser_is_token(header->name) || has_control(value))
        return -EINVAL;
    /* libcurl's way of saying that a value is empty: "Name;". */
    r = value.length ? buffer_printf(&line, "%.*s: %.*s", SPAN_ARG(header->name), SPAN_ARG(value))
                     : buffer_printf(&line, "%.*s;", SPAN_ARG(header->name));
    if (r < 0)
        return r;
    return buffer_terminate(&line) ? append_field(fetch, line.data) : -ENOMEM;
}

static bool is_given(const struct http_fetch_request *request, struct span name)
{
    for (size_t i = 0; i < request->header_count; i++)
        if (span_equal_nocase(request->headers[i].name, name))
            return true;
    return false;
}

static int set_fields(struct http_fetch *fetch, const struct http_fetch_request *request)
{
    int r = append_field(fetch, "Expect:"); /* no waiting for 100 Continue */

    for (size_t i = 0; r == 0 && i < request->header_count; i++)
        r = append_header(fetch, &request->headers[i]);
    if (r == 0 && !is_given(request, SPAN("Content-Type")))
        r = append_field(fetch, "Content-Type:"); /* libcurl would call it a form */
    if (r < 0)
        return r;
    return curl_easy_setopt(fetch->easy, CURLOPT_HTTPHEADER, fetch->fields) ? -ENOMEM : 0;
}

static int set_method(struct http_fetch *fetch, const struct http_fetch_request *request)
{
    struct span method = span_from(request->method ? request->method : "GET");
    bool has_body = request->body || span_equal(method, SPAN("POST")) || span_equal(method, SPAN("PUT"));
    int failed = 0;

    if (!parser_is_token(method))
        return -EINVAL;
    if (span_equal(method, SPAN("HEAD")))
        failed |= curl_easy_setopt(fetch->easy, CURLOPT_NOBODY, 1L) != CURLE_OK;
    if (has_body) {
        size_t length = request->body ? request->body->length : 0;
        const char *data = length ? request->body->data : "";
        failed |= curl_easy_setopt(fetch->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)length) != CURLE_OK;
        failed |= curl_easy_setopt(fetch->easy, CURLOPT_POSTFIELDS, data) != CURLE_OK;
    }
    failed |= curl_easy_setopt(fetch->easy, CURLOPT_CUSTOMREQUEST, method.data) != CURLE_OK;
    return failed ? -ENOMEM : 0;
}

static int check_url(const char *text)
{
    CURLU *url = curl_url();
    char *scheme = NULL;
    int r = 0;

    if (!url)
        return -ENOMEM;
    if (!text || curl_url_set(url, CURLUPART_URL, text, 0) || curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) ||
        (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0))
        r = -EINVAL;
    curl_free(scheme);
    curl_url_cleanup(url);
    return r;
}

static int set_rest(struct http_fetch *fetch, const struct http_fetch_request *request)
{
    CURL *easy = fetch->easy;
    int failed = 0;

    failed |= curl_easy_setopt(easy, CURLOPT_URL, request->url) != CURLE_OK;
    failed |= curl_easy_setopt(easy, CURLOPT_PRIVATE, fetch) != CURLE_OK;
    failed |= curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) != CURLE_OK;
    failed |= curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, fetch->error) != CURLE_OK;
    failed |= curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS,
                               (long)(request->timeout_ms ? request->timeout_ms : TIMEOUT_MS)) != CURLE_OK;
    failed |= curl_easy_setopt(easy, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)fetch->max_response_bytes) != CURLE_OK;
    failed |= curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body) != CURLE_OK;
    failed |= curl_easy_setopt(easy, CURLOPT_WRITEDATA, fetch) != CURLE_OK;
    failed |= curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header_line) != CURLE_OK;
    failed |= curl_easy_setopt(easy, CURLOPT_HEADERDATA, fetch) != CURLE_OK;
    return failed ? -ENOMEM : 0;
}

static int prepare(struct http_fetch *fetch, const struct http_fetch_request *request)
{
    int r = check_url(request->url);

    if (r < 0)
        return r;
    fetch->easy = curl_easy_init();
    if (!fetch->easy)
        return -ENOMEM;
    r = set_rest(fetch, request);
    if (r == 0)
        r = set_method(fetch, request);
    return r < 0 ? r : set_fields(fetch, request);
}

int http_client_fetch(struct http_client *client, const struct http_fetch_request *request, http_fetch_done *on_done,
                      void *context, struct http_fetch **ret_fetch)
{
    CLEANUP(cleanup_fetch) struct http_fetch *fetch = calloc(1, sizeof(*fetch));
    int r;

    if (!fetch)
        return -ENOMEM;
    fetch->client = client;
    fetch->on_done = on_done;
    fetch->context = context;
    fetch->max_response_bytes = request->max_response_bytes ? request->max_response_bytes : (size_t)RESPONSE_BYTES;
    r = prepare(fetch, request);
    if (r < 0)
        return r;
    if (curl_multi_add_handle(client->multi, fetch->easy) != CURLM_OK)
        return -ENOMEM;
    if (request->body)
        fetch->body = buffer_take(request->body);
    list_push_back(&client->fetches, &fetch->link);
    client->fetch_count++;
    if (ret_fetch)
        *ret_fetch = fetch;
    (void)TAKE_PTR(fetch);
    return 0;
}

void http_fetch_cancel(struct http_fetch *fetch)
{
    struct http_client *client = fetch->client;

    curl_multi_remove_handle(client->multi, fetch->easy); /* harmless for one that has finished */
    list_remove(&fetch->link);
    client->fetch_count--;
    fetch_free(fetch);
}

/* --- the client ------------------------------------------------------------------------------------------------- */

static void on_timer_end(uv_handle_t *handle)
{
    client_unref(handle->data);
}

int http_client_new(uv_loop_t *loop, struct http_client **ret_client)
{
    CLEANUP(cleanup_free) struct http_client *client = calloc(1, sizeof(*client));
    int failed = 0;

    if (!client || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return -ENOMEM;
    client->multi = curl_multi_init();
    if (!client->multi) {
        curl_global_cleanup();
        return -ENOMEM;
    }
    client->loop = loop;
    list_init(&client->fetches);
    list_init(&client->finished);
    failed |= curl_multi_setopt(client->multi, CURLMOPT_SOCKETFUNCTION, on_curl_socket) != CURLM_OK;
    failed |= curl_multi_setopt(client->multi, CURLMOPT_SOCKETDATA, client) != CURLM_OK;
    failed |= curl_multi_setopt(client->multi, CURLMOPT_TIMERFUNCTION, on_curl_timer) != CURLM_OK;
    failed |= curl_multi_setopt(client->multi, CURLMOPT_TIMERDATA, client) != CURLM_OK;
    if (failed || uv_timer_init(loop, &client->timer) < 0) {
        curl_multi_cleanup(client->multi);
        curl_global_cleanup();
        return -ENOMEM;
    }
    client->timer.data = client;
    client->refs = 1;
    *ret_client = TAKE_PTR(client);
    return 0;
}

size_t http_client_fetches(const struct http_client *client)
{
    return client->fetch_count;
}

struct http_client *http_client_free(struct http_client *client)
{
    struct list_link *link;

    if (!client)
        return NULL;
    while ((link = list_first(&client->fetches)) || (link = list_first(&client->finished)))
        http_fetch_cancel(CONTAINER_OF(link, struct http_fetch, link));
    curl_multi_cleanup(client->multi);
    client->multi = NULL;
    uv_close((uv_handle_t *)&client->timer, on_timer_end);
    return NULL;
}
