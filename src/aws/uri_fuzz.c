/* What is encoded decodes to itself; what is decoded encodes to the one canonical form. */
#include "aws/uri.h"

#include <assert.h>

static void check_round_trip(struct arena *arena, struct span text, bool keep_slash)
{
    struct buffer CLEANUP(buffer_deinit) encoded = BUFFER_INIT;
    struct span decoded;

    assert(uri_encode(text, keep_slash, &encoded) == 0);
    assert(uri_decode(arena, buffer_span(&encoded), &decoded) == 0);
    assert(span_equal(decoded, text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = span_of((const char *)data, size);
    struct arena arena = {0};
    struct uri_query query;
    struct uri_path path;
    struct span decoded;

    check_round_trip(&arena, text, false);
    check_round_trip(&arena, text, true);
    if (uri_decode(&arena, text, &decoded) == 0)
        assert(decoded.length <= size);
    if (uri_query_parse(&arena, text, &query) == 0)
        for (size_t i = 0; i < query.count; i++)
            assert(uri_query_get(&query, query.parameters[i].name, NULL));
    if (uri_path_split(&arena, text, &path) == 0)
        assert(path.count <= URI_SEGMENTS);
    arena_deinit(&arena);
    return 0;
}
