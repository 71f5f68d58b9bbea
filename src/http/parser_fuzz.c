/*
 * Heads and chunked bodies, cut at arbitrary places: whatever the bytes, the verdict and the fields must be the same
 * as when they come in one piece. The first byte seeds the cuts.
 */
#include "http/chunk.h"
#include "http/parser.h"

enum { LIMIT = 16 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t next_cut(uint32_t *seed, size_t left)
{
    *seed = *seed * 1664525 + 1013904223;
    return MIN(left, *seed % 3 ? 1 + (*seed >> 8) % 7 : 1 + (*seed >> 8) % 200);
}

static int parse(struct parser *parser, struct span text, uint32_t seed, size_t *ret_consumed)
{
    int r = PARSER_MORE;

    *ret_consumed = 0;
    while (r == PARSER_MORE && *ret_consumed < text.length) {
        size_t left = text.length - *ret_consumed;
        size_t consumed = 0;
        r = parser_execute(parser, text.data + *ret_consumed, seed ? next_cut(&seed, left) : left, LIMIT, &consumed);
        *ret_consumed += consumed;
    }
    return r;
}

static void check_same_fields(const struct parser *a, const struct parser *b)
{
    if (a->field_count != b->field_count || a->content_length != b->content_length || a->chunked != b->chunked ||
        a->keep_alive != b->keep_alive || !span_equal(a->path, b->path) || !span_equal(a->query, b->query))
        abort();
    for (size_t i = 0; i < a->field_count; i++) {
        struct http_header x = parser_field_at(a, i);
        struct http_header y = parser_field_at(b, i);
        if (!span_equal(x.name, y.name) || !span_equal(x.value, y.value) || !parser_is_token(x.name))
            abort();
        for (size_t at = 0; at < x.value.length; at++)
            if (strchr("\r\n", x.value.data[at])) /* NUL included */
                abort();
    }
}

static enum chunk_result decode(struct span text, uint32_t seed, struct buffer *body, size_t *ret_consumed)
{
    struct chunk_decoder decoder = {0};
    enum chunk_result result = CHUNK_MORE;

    *ret_consumed = 0;
    while (result == CHUNK_MORE && *ret_consumed < text.length) {
        size_t left = text.length - *ret_consumed;
        struct span run;
        size_t consumed;
        result = chunk_decode(&decoder, span_of(text.data + *ret_consumed, seed ? next_cut(&seed, left) : left), &run,
                              &consumed);
        if (buffer_append_span(body, run) < 0)
            abort();
        *ret_consumed += consumed;
    }
    return result;
}

static void fuzz_chunks(struct span text, uint32_t seed)
{
    CLEANUP(buffer_deinit) struct buffer whole = BUFFER_INIT;
    CLEANUP(buffer_deinit) struct buffer cut = BUFFER_INIT;
    size_t whole_end;
    size_t cut_end;
    enum chunk_result a = decode(text, 0, &whole, &whole_end);
    enum chunk_result b = decode(text, seed, &cut, &cut_end);

    if (a != b || whole_end != cut_end || !span_equal(buffer_span(&whole), buffer_span(&cut)))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct parser whole;
    struct parser cut;
    struct span text;
    uint32_t seed;
    size_t whole_end;
    size_t cut_end;
    int a;
    int b;

    if (!size)
        return 0;
    seed = data[0] | 0x100;
    text = span_of((const char *)data + 1, size - 1);
    parser_init(&whole);
    parser_init(&cut);
    a = parse(&whole, text, 0, &whole_end);
    b = parse(&cut, text, seed, &cut_end);
    if (text.length && a == PARSER_REFUSED && b == PARSER_REFUSED) {
        if (whole.refusal != cut.refusal && whole.refusal != 431 && cut.refusal != 431)
            abort();
    } else if (a != b) {
        if (whole.refusal != 431 && cut.refusal != 431) /* a long piece may be found bad before it is found long */
            abort();
    } else if (a == PARSER_DONE) {
        if (whole_end != cut_end)
            abort();
        check_same_fields(&whole, &cut);
        if (whole.chunked)
            fuzz_chunks(span_slice(text, whole_end, text.length), seed);
    }
    parser_deinit(&whole);
    parser_deinit(&cut);
    return 0;
}
