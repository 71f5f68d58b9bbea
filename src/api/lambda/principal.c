#include "api/lambda/principal.h"

#include "aws/arn.h"
#include "aws/pattern.h"

static bool is_label_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
}

/* Labels of small letters, digits and '-', joined by single dots. */
static bool is_domain(struct span text)
{
    while (text.data) {
        struct span label = span_cut(&text, '.');
        if (label.length == 0)
            return false;
        for (size_t i = 0; i < label.length; i++)
            if (!is_label_character(label.data[i]))
                return false;
    }
    return true;
}

/* s3.amazonaws.com, logs.eu-west-1.amazonaws.com, ec2.amazonaws.com.cn, alexa-appkit.amazon.com */
static bool is_service(struct span text)
{
    static const char *const endings[] = {".amazonaws.com", ".amazonaws.com.cn", ".amazon.com"};

    for (size_t i = 0; i < ARRAY_SIZE(endings); i++)
        if (span_ends_with(text, span_from(endings[i])))
            return is_domain(text);
    return false;
}

static bool is_identity(struct span service, struct span resource)
{
    static const char *const identities[] = {"user/", "role/"};
    static const char *const sessions[] = {"assumed-role/", "federated-user/"};
    bool of_sts = span_equal(service, SPAN("sts"));
    const char *const *kinds = of_sts ? sessions : identities;

    if (!of_sts && !span_equal(service, SPAN("iam")))
        return false;
    if (!of_sts && span_equal(resource, SPAN("root")))
        return true;
    for (size_t i = 0; i < 2; i++)
        if (span_starts_with(resource, span_from(kinds[i])) && resource.length > strlen(kinds[i]))
            return true;
    return false;
}

static bool is_identity_arn(struct span text)
{
    struct arn arn;

    return arn_parse(text, &arn) == 0 && arn.region.length == 0 && arn_is_account_id(arn.account) &&
           span_starts_with(arn.partition, SPAN("aws")) && is_identity(arn.service, arn.resource);
}

static bool is_principal(struct span text)
{
    return span_equal(text, SPAN("*")) || arn_is_account_id(text) || is_service(text) || is_identity_arn(text);
}

int principal_check(struct span text, struct aws_error *error)
{
    static const char name_pattern[] = "[\\w+=,.@-]*";
    struct arn arn;

    if (is_principal(text))
        return 0;
    if (arn_parse(text, &arn) != 0 && !pattern_matches(name_pattern, text))
        return aws_error_set(
            error, AWS_ERROR_INVALID_PARAMETER_VALUE,
            "The provided input'%.*s'was invalid. Member must satisfy expression: %s Please check your "
            "input and try again.",
            SPAN_ARG(text), name_pattern);
    return aws_error_set(error, AWS_ERROR_INVALID_PARAMETER_VALUE,
                         "The provided principal was invalid. Please check the principal and try again.");
}

json_t *principal_make(struct span text, struct span region)
{
    struct span partition = arn_partition_of_region(region);

    if (span_equal(text, SPAN("*")))
        return json_string("*");
    if (arn_is_account_id(text))
        return json_pack("{s:o}", "AWS", json_sprintf("arn:%.*s:iam::%.*s:root", SPAN_ARG(partition), SPAN_ARG(text)));
    return json_pack("{s:s%}", is_service(text) ? "Service" : "AWS", text.data, text.length);
}
