/* Any text is either refused with a sentence, or gives credentials that can be found by their keys. */
#include "aws/credentials.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct credentials *credentials = NULL;
    struct fault fault = {0};
    int r = credentials_parse(span_of((const char *)data, size), "file", &credentials, &fault);

    if (r < 0) {
        assert(r == -EINVAL && fault.text[0] && !credentials);
        return 0;
    }
    assert(credentials_count(credentials) > 0);
    for (size_t i = 0; i < credentials_count(credentials); i++) {
        const struct credential *credential = credentials_at(credentials, i);
        assert(credentials_find(credentials, span_from(credential->access_key)) == credential);
        assert(credential->secret_key[0] && credential->profile[0]);
        assert(!credential->account || strlen(credential->account) == 12);
    }
    credentials_free(credentials);
    return 0;
}
