#include "api/service.h"

#include "api/iam/iam.h"
#include "api/lambda/lambda.h"
#include "api/sts/sts.h"

static const struct service services[SERVICE_COUNT] = {
    {.name = "lambda",
     .title = "AWS Lambda",
     .protocol = SERVICE_REST_JSON,
     .version = "2015-03-31",
     .routes = lambda_routes},
    {.name = "sts",
     .title = "AWS STS",
     .protocol = SERVICE_QUERY,
     .version = "2011-06-15",
     .xmlns = "https://sts.amazonaws.com/doc/2011-06-15/",
     .answers_json = true,
     .routes = sts_routes},
    {.name = "iam",
     .title = "AWS IAM",
     .protocol = SERVICE_QUERY,
     .version = "2010-05-08",
     .xmlns = "https://iam.amazonaws.com/doc/2010-05-08/",
     .routes = iam_routes},
};

const struct service *service_at(size_t index)
{
    return &services[index];
}

const struct service *service_find(struct span name)
{
    for (size_t i = 0; i < SERVICE_COUNT; i++)
        if (span_equal(span_from(services[i].name), name))
            return &services[i];
    return NULL;
}

const struct service *service_find_version(struct span version)
{
    for (size_t i = 0; i < SERVICE_COUNT; i++)
        if (services[i].protocol == SERVICE_QUERY && span_equal(span_from(services[i].version), version))
            return &services[i];
    return NULL;
}

size_t service_index(const struct service *service)
{
    return (size_t)(service - services);
}
