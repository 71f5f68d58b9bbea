/* VpcConfig. */
#include "api/lambda/configuration_parts.h"
#include "base/encode.h"

#include <openssl/sha.h>

int vpc_config_check(struct call *call)
{
    const json_t *vpc = json_object_get(call->input, "VpcConfig");
    bool has_subnets = json_array_size(json_object_get(vpc, "SubnetIds")) > 0;
    bool has_groups = json_array_size(json_object_get(vpc, "SecurityGroupIds")) > 0;

    if (has_subnets == has_groups)
        return 0;
    return aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE,
                         "SubnetIds and SecurityIds must coexist or be both empty list.");
}

/* "vpc-" and 17 digits, made of the account and the Region. */
static json_t *make_id(const struct call *call)
{
    enum { ID_DIGITS = 17 };
    const struct operation *operation = call->operation;
    unsigned char digest[SHA256_DIGEST_LENGTH];
    char hex[2 * SHA256_DIGEST_LENGTH + 1];
    char text[128];
    int length = snprintf(text, sizeof(text), "%.*s/%.*s", SPAN_ARG(call->account), SPAN_ARG(operation->region));

    SHA256((const unsigned char *)text, (size_t)length < sizeof(text) ? (size_t)length : sizeof(text) - 1, digest);
    hex_encode(digest, sizeof(digest), hex);
    return json_sprintf("vpc-%.*s", ID_DIGITS, hex);
}

json_t *vpc_config_make(const struct call *call, const json_t *current)
{
    json_t *given = json_object_get(call->input, "VpcConfig");
    json_t *vpc = json_pack("{s:b, s:[], s:[]}", "Ipv6AllowedForDualStack", 0, "SecurityGroupIds", "SubnetIds");
    int r;

    if (!vpc)
        return NULL;
    r = current ? json_object_update(vpc, (json_t *)current) : 0;
    r |= json_object_update(vpc, given);
    r |= json_object_set_new(vpc, "VpcId",
                             json_array_size(json_object_get(vpc, "SubnetIds")) ? make_id(call) : json_string(""));
    if (r == 0)
        return vpc;
    json_decref(vpc);
    return NULL;
}
