#include "api/lambda/statements.h"

#include "api/lambda/input.h"

enum { POLICY_BYTES_MAX = 20480 };

int statements_find(const json_t *statements, struct span id)
{
    for (size_t i = 0; i < json_array_size(statements); i++)
        if (span_equal(input_string(json_array_get(statements, i), "Sid"), id))
            return (int)i;
    return -1;
}

int statements_check_id(struct call *call, const json_t *statements, struct span id)
{
    if (statements_find(statements, id) < 0)
        return 0;
    return aws_error_set(
        &call->error, AWS_ERROR_RESOURCE_CONFLICT,
        "The statement id (%.*s) provided already exists. Please provide a new statement id, or remove "
        "the existing statement.",
        SPAN_ARG(id));
}

char *statements_write(json_t *statements)
{
    json_t *document = json_pack("{s:s, s:s, s:O}", "Version", "2012-10-17", "Id", "default", "Statement", statements);
    char *text = document ? json_dumps(document, JSON_COMPACT) : NULL;

    json_decref(document);
    return text;
}

int statements_check_size(struct call *call, json_t *statements)
{
    char *text = statements_write(statements);
    size_t size = text ? strlen(text) : 0;

    if (!text)
        return -ENOMEM;
    free(text);
    if (size <= POLICY_BYTES_MAX)
        return 0;
    return aws_error_set(&call->error, AWS_ERROR_POLICY_LENGTH_EXCEEDED,
                         "The final policy size (%zu) is bigger than the limit (%d).", size, POLICY_BYTES_MAX);
}
