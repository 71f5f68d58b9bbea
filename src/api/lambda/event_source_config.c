/*
 * What each kind of source allows, requires and has by default, and how a body becomes a mapping's configuration. Order
 * of the refusals: what the kind does not have, what it lacks, where to start, sizes, filters, destinations.
 */
#include "api/lambda/event_source.h"
#include "aws/event_pattern.h"
#include "base/clock.h"

/* --- the kinds --- */

enum {
    SQS = 1 << 0,
    KINESIS = 1 << 1,
    DYNAMODB = 1 << 2,
    MSK = 1 << 3,
    SELF_MANAGED_KAFKA = 1 << 4,
    MQ = 1 << 5,
    DOCUMENTDB = 1 << 6,
    STREAMS = KINESIS | DYNAMODB,
    KAFKA = MSK | SELF_MANAGED_KAFKA,
};

struct event_source {
    unsigned kind;
    const char *service;  /* of its ARN; NULL: it has none */
    const char *resource; /* what the ARN's resource begins with; NULL: anything */
    const char *within;   /* what it must hold after that; NULL: nothing */
    const char *reason;
    const char *result;
    int batch_size;
};

static const char user_initiated[] = "USER_INITIATED";
static const char user_action[] = "User action";
static const char nothing_processed[] = "No records processed";

static const struct event_source sources[] = {
    {SQS, "sqs", NULL, NULL, user_initiated, NULL, 10},
    {KINESIS, "kinesis", "stream/", NULL, user_action, nothing_processed, 100},
    {DYNAMODB, "dynamodb", "table/", "/stream/", user_action, nothing_processed, 100},
    {MSK, "kafka", NULL, NULL, user_initiated, nothing_processed, 100},
    {SELF_MANAGED_KAFKA, NULL, NULL, NULL, user_initiated, nothing_processed, 100},
    {MQ, "mq", "broker:", NULL, user_initiated, nothing_processed, 100},
    {DOCUMENTDB, "rds", "cluster:", NULL, user_initiated, nothing_processed, 100},
};

static const struct event_source *source_of_kind(unsigned kind)
{
    for (size_t i = 0; i < ARRAY_SIZE(sources); i++)
        if (sources[i].kind == kind)
            return &sources[i];
    return NULL;
}

static bool is_source_arn(const struct event_source *source, const struct arn *arn)
{
    if (!source->service || !span_equal(arn->service, span_from(source->service)))
        return false;
    if (source->resource && !span_starts_with(arn->resource, span_from(source->resource)))
        return false;
    return !source->within || span_find_span(arn->resource, span_from(source->within)) >= 0;
}

const struct event_source *event_source_of(const json_t *configuration)
{
    struct arn arn;

    if (input_has(configuration, "SelfManagedEventSource"))
        return source_of_kind(SELF_MANAGED_KAFKA);
    if (arn_parse(input_string(configuration, "EventSourceArn"), &arn) != 0)
        return NULL;
    for (size_t i = 0; i < ARRAY_SIZE(sources); i++)
        if (is_source_arn(&sources[i], &arn))
            return &sources[i];
    return NULL;
}

const char *event_source_reason(const struct event_source *source)
{
    return source->reason;
}

const char *event_source_result(const struct event_source *source)
{
    return source->result;
}

static bool is_fifo(const json_t *configuration)
{
    return span_ends_with(input_string(configuration, "EventSourceArn"), SPAN(".fifo"));
}

/* --- refusals --- */

static int refuse(struct call *call, const char *sentence)
{
    return aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE, "%s", sentence);
}

static int refuse_starting_null(struct call *call)
{
    return refuse(call, "1 validation error detected: Value null at 'startingPosition' failed to satisfy constraint: "
                        "Member must not be null.");
}

static bool is_empty(const json_t *value)
{
    return !value || (json_is_object(value) && !json_object_size(value)) ||
           (json_is_array(value) && !json_array_size(value));
}

/* --- which members which kind has --- */

static int check_supported(struct call *call, const struct event_source *source)
{
    static const struct {
        const char *member;
        const char *shown;
        unsigned kinds;
    } rules[] = {
        {"ScalingConfig", "scalingConfig", SQS},
        {"ParallelizationFactor", "parallelizationFactor", STREAMS},
        {"StartingPosition", "startingPosition", STREAMS | KAFKA | DOCUMENTDB},
        {"StartingPositionTimestamp", "startingPositionTimestamp", STREAMS | KAFKA | DOCUMENTDB},
        {"MaximumRecordAgeInSeconds", "maximumRecordAgeInSeconds", STREAMS | KAFKA},
        {"BisectBatchOnFunctionError", "bisectBatchOnFunctionError", STREAMS | KAFKA},
        {"MaximumRetryAttempts", "maximumRetryAttempts", STREAMS | KAFKA},
        {"TumblingWindowInSeconds", "tumblingWindowInSeconds", STREAMS},
        {"Topics", "topics", KAFKA},
        {"Queues", "queues", MQ},
        {"SourceAccessConfigurations", "sourceAccessConfigurations", KAFKA | MQ | DOCUMENTDB},
        {"FunctionResponseTypes", "functionResponseTypes", SQS | STREAMS | KAFKA},
        {"AmazonManagedKafkaEventSourceConfig", "amazonManagedKafkaEventSourceConfig", MSK},
        {"SelfManagedKafkaEventSourceConfig", "selfManagedKafkaEventSourceConfig", SELF_MANAGED_KAFKA},
        {"DocumentDBEventSourceConfig", "documentDBEventSourceConfig", DOCUMENTDB},
        {"ProvisionedPollerConfig", "provisionedPollerConfig", SQS | KAFKA},
        {"LoggingConfig", "loggingConfig", KAFKA},
        {"FilterCriteria", "filterCriteria", SQS | STREAMS | KAFKA | MQ},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
        if (is_empty(json_object_get(call->input, rules[i].member)) || (rules[i].kinds & source->kind))
            continue;
        if (source->kind == SQS && !strcmp(rules[i].member, "StartingPosition"))
            return refuse(call, "StartingPosition is not valid for SQS event sources.");
        return aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE,
                             "Unsupported '%s' parameter for given event source mapping type.", rules[i].shown);
    }
    return 0;
}

static int check_required(struct call *call, const struct event_source *source)
{
    static const struct {
        const char *member;
        const char *shown;
        unsigned kinds;
    } rules[] = {
        {"SourceAccessConfigurations", "sourceAccessConfigurations", SELF_MANAGED_KAFKA | MQ | DOCUMENTDB},
        {"Topics", "topics", KAFKA},
        {"Queues", "queues", MQ},
        {"DocumentDBEventSourceConfig", "documentDBEventSourceConfig", DOCUMENTDB},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
        if ((rules[i].kinds & source->kind) && is_empty(json_object_get(call->input, rules[i].member)))
            return aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE, "Required '%s' parameter is missing.",
                                 rules[i].shown);
    return 0;
}

/* --- where to start --- */

static int check_timestamp(struct call *call, struct span position)
{
    double now_s = (double)clock_wall_ns() / (double)NS_PER_S;
    const json_t *timestamp = json_object_get(call->input, "StartingPositionTimestamp");

    if (!span_equal(position, SPAN("AT_TIMESTAMP")))
        return timestamp ? refuse(call, "StartingPositionTimestamp needs the starting position AT_TIMESTAMP.") : 0;
    if (!timestamp)
        return refuse(call, "Need to specify a timestamp");
    if (json_number_value(timestamp) > now_s)
        return refuse(call, "StartingPositionTimestamp cannot be in the future.");
    return 0;
}

static int check_start(struct call *call, const struct event_source *source)
{
    struct span position = input_string(call->input, "StartingPosition");

    if (!position.length && (source->kind & (STREAMS | DOCUMENTDB)))
        return refuse_starting_null(call);
    if (source->kind == DYNAMODB && span_equal(position, SPAN("AT_TIMESTAMP")))
        return aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE,
                             "Unsupported starting position for arn type: %.*s",
                             SPAN_ARG(input_string(call->input, "EventSourceArn")));
    return check_timestamp(call, position);
}

/* --- sizes: of the configuration as it comes to be --- */

enum { FIFO_BATCH_MAX = 10, WINDOWLESS_BATCH_MAX = 10, RECORD_AGE_MIN = 60, SQS_POLLERS_MIN = 2, FILTERS_MAX = 5 };

static int check_batch(struct call *call, const struct event_source *source, const json_t *configuration)
{
    int64_t size = input_integer(configuration, "BatchSize", 0);
    int64_t window = input_integer(configuration, "MaximumBatchingWindowInSeconds", 0);

    if (source->kind != SQS)
        return 0;
    if (is_fifo(configuration) && window > 0)
        return refuse(call, "Batching window is not supported for FIFO queues");
    if (is_fifo(configuration) && size > FIFO_BATCH_MAX)
        return refuse(call, "Maximum batch size must be between 1 and 10 inclusive");
    if (size > WINDOWLESS_BATCH_MAX && window == 0)
        return refuse(call, "Maximum batch window in seconds must be greater than 0 if maximum batch size is greater "
                            "than 10");
    return 0;
}

static int check_age(struct call *call, const json_t *configuration)
{
    int64_t age = input_integer(configuration, "MaximumRecordAgeInSeconds", -1);

    if (age != -1 && age < RECORD_AGE_MIN)
        return refuse(call, "MaximumRecordAgeInSeconds must be either -1 (forever) or between 60 and 604800 "
                            "(inclusive)");
    return 0;
}

static int check_pollers(struct call *call, const struct event_source *source, const json_t *configuration)
{
    const json_t *pollers = json_object_get(configuration, "ProvisionedPollerConfig");
    int64_t minimum = input_integer(pollers, "MinimumPollers", 0);
    int64_t maximum = input_integer(pollers, "MaximumPollers", 0);

    if (!pollers)
        return 0;
    if (input_has(configuration, "ScalingConfig"))
        return refuse(call, "ScalingConfig and ProvisionedPollerConfig cannot be used together.");
    if (source->kind == SQS && (minimum < SQS_POLLERS_MIN || maximum < SQS_POLLERS_MIN))
        return refuse(call, "MinimumPollers and MaximumPollers must be at least 2 for SQS event sources.");
    if (minimum > maximum)
        return refuse(call, "MinimumPollers must not be greater than MaximumPollers.");
    return 0;
}

/* --- filters and destinations --- */

static int check_filters(struct call *call)
{
    const json_t *filters = json_object_get(json_object_get(call->input, "FilterCriteria"), "Filters");
    const json_t *filter;
    size_t i;

    if (json_array_size(filters) > FILTERS_MAX)
        return refuse(call, "The number of filters exceeds the limit of 5.");
    json_array_foreach(filters, i, filter)
    {
        int r = event_pattern_check(input_string(filter, "Pattern"));
        if (r < 0)
            return r;
        if (r > 0)
            return refuse(call, "Invalid filter pattern definition.");
    }
    return 0;
}

static bool is_destination(struct span destination)
{
    static const char *const services[] = {"sqs", "sns", "s3"};
    struct arn arn;

    if (span_starts_with(destination, SPAN("kafka://")))
        return true;
    for (size_t i = 0; arn_parse(destination, &arn) == 0 && i < ARRAY_SIZE(services); i++)
        if (span_equal(arn.service, span_from(services[i])))
            return true;
    return false;
}

/* For failures alone, and not of queues or brokers. */
static int check_destination(struct call *call, const struct event_source *source)
{
    const json_t *config = json_object_get(call->input, "DestinationConfig");
    struct span destination = input_string(json_object_get(config, "OnFailure"), "Destination");

    if (is_empty(config))
        return 0;
    if (input_has(config, "OnSuccess") || !(source->kind & (STREAMS | KAFKA)))
        return refuse(call, "Unsupported DestinationConfig parameter for given event source mapping type.");
    if (destination.length && !is_destination(destination))
        return aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE,
                             "The provided destination config DestinationConfig(onSuccess=null, "
                             "onFailure=OnFailure(destination=%.*s)) is invalid.",
                             SPAN_ARG(destination));
    return 0;
}

/* A group is joined once and for all. */
static int check_consumer_group(struct call *call, const json_t *current, const char *member)
{
    struct span wanted = input_string(json_object_get(call->input, member), "ConsumerGroupId");

    if (wanted.length && !span_equal(wanted, input_string(json_object_get(current, member), "ConsumerGroupId")))
        return refuse(call, "The consumer group ID of an event source mapping cannot be changed.");
    return 0;
}

/* --- the configuration --- */

/* Sets a member to a value that is taken; remembers failure. */
static void put(json_t *configuration, const char *member, json_t *value, bool *failed)
{
    if (json_object_set_new(configuration, member, value) < 0)
        *failed = true;
}

static json_t *make_defaults(const struct event_source *source)
{
    json_t *configuration = json_pack("{s:i}", "BatchSize", source->batch_size);
    bool failed = !configuration;

    if (source->kind & (SQS | STREAMS)) {
        put(configuration, "MaximumBatchingWindowInSeconds", json_integer(0), &failed);
        put(configuration, "FunctionResponseTypes", json_array(), &failed);
    }
    if (source->kind & STREAMS) {
        put(configuration, "BisectBatchOnFunctionError", json_false(), &failed);
        put(configuration, "DestinationConfig", json_pack("{s:{}}", "OnFailure"), &failed);
        put(configuration, "MaximumRecordAgeInSeconds", json_integer(-1), &failed);
        put(configuration, "MaximumRetryAttempts", json_integer(-1), &failed);
        put(configuration, "ParallelizationFactor", json_integer(1), &failed);
        put(configuration, "TumblingWindowInSeconds", json_integer(0), &failed);
    }
    if (source->kind & KAFKA)
        put(configuration, "StartingPosition", json_string("TRIM_HORIZON"), &failed);
    if (failed) {
        json_decref(configuration);
        return NULL;
    }
    return configuration;
}

/* The input's members take the place of what is there; those that are no part of a configuration stay out. */
static int merge(json_t *configuration, const json_t *input)
{
    static const char *const apart[] = {"FunctionName", "Enabled", "Tags"};
    int r = json_object_update(configuration, (json_t *)input);

    for (size_t i = 0; i < ARRAY_SIZE(apart); i++)
        json_object_del(configuration, apart[i]);
    return r < 0 ? -ENOMEM : 0;
}

/* Members whose empty form takes the setting away. */
static void remove_emptied(json_t *configuration)
{
    static const char *const removable[] = {"FilterCriteria", "ScalingConfig", "ProvisionedPollerConfig",
                                            "MetricsConfig",  "LoggingConfig", "SourceAccessConfigurations"};

    if (is_empty(json_object_get(json_object_get(configuration, "FilterCriteria"), "Filters")))
        json_object_del(configuration, "FilterCriteria");
    for (size_t i = 0; i < ARRAY_SIZE(removable); i++)
        if (is_empty(json_object_get(configuration, removable[i])))
            json_object_del(configuration, removable[i]);
    if (!input_string(configuration, "KMSKeyArn").length)
        json_object_del(configuration, "KMSKeyArn");
}

/* {"OnFailure": {}} for none where the kind shows it (recorded), else nothing. */
static void settle_destination(json_t *configuration, const struct event_source *source, bool *failed)
{
    const json_t *config = json_object_get(configuration, "DestinationConfig");

    if (!config || input_string(json_object_get(config, "OnFailure"), "Destination").length)
        return;
    if (source->kind & STREAMS)
        put(configuration, "DestinationConfig", json_pack("{s:{}}", "OnFailure"), failed);
    else
        json_object_del(configuration, "DestinationConfig");
}

/* A part of the defaults stays where the input has another part of the structure. */
static void settle_pollers(json_t *configuration, const struct event_source *source, bool *failed)
{
    json_t *pollers = json_object_get(configuration, "ProvisionedPollerConfig");

    if (!pollers)
        return;
    pollers = json_copy(pollers);
    if (!input_has(pollers, "MinimumPollers"))
        put(pollers, "MinimumPollers", json_integer(source->kind == SQS ? SQS_POLLERS_MIN : 1), failed);
    if (!input_has(pollers, "MaximumPollers"))
        put(pollers, "MaximumPollers", json_integer(200), failed);
    put(configuration, "ProvisionedPollerConfig", pollers, failed);
}

/* The group that was given, else the one before, else the mapping's UUID (recorded). */
static void settle_consumer_group(json_t *configuration, const json_t *current, const char *member, const char *uuid,
                                  bool *failed)
{
    const json_t *given = json_object_get(configuration, member);
    const json_t *before = json_object_get(json_object_get(current, member), "ConsumerGroupId");
    json_t *config = given ? json_copy((json_t *)given) : json_object();

    if (!input_has(config, "ConsumerGroupId"))
        put(config, "ConsumerGroupId", before ? json_incref((json_t *)before) : json_string(uuid), failed);
    put(configuration, member, config, failed);
}

static void settle_document_db(json_t *configuration, bool *failed)
{
    json_t *config = json_copy(json_object_get(configuration, "DocumentDBEventSourceConfig"));

    if (!input_has(config, "FullDocument"))
        put(config, "FullDocument", json_string("Default"), failed);
    put(configuration, "DocumentDBEventSourceConfig", config, failed);
}

static int settle(json_t *configuration, const json_t *current, const struct event_source *source, const char *uuid)
{
    bool failed = false;

    remove_emptied(configuration);
    settle_destination(configuration, source, &failed);
    settle_pollers(configuration, source, &failed);
    if (source->kind == MSK)
        settle_consumer_group(configuration, current, "AmazonManagedKafkaEventSourceConfig", uuid, &failed);
    if (source->kind == SELF_MANAGED_KAFKA)
        settle_consumer_group(configuration, current, "SelfManagedKafkaEventSourceConfig", uuid, &failed);
    if (source->kind == DOCUMENTDB)
        settle_document_db(configuration, &failed);
    return failed ? -ENOMEM : 0;
}

/* --- the whole --- */

static int check_input(struct call *call, const json_t *current, const struct event_source *source)
{
    int r = check_destination(call, source);

    if (r == 0)
        r = check_supported(call, source);
    if (r == 0 && !current)
        r = check_required(call, source);
    if (r == 0 && !current)
        r = check_start(call, source);
    if (r == 0 && current)
        r = check_consumer_group(call, current, "AmazonManagedKafkaEventSourceConfig");
    if (r == 0 && current)
        r = check_consumer_group(call, current, "SelfManagedKafkaEventSourceConfig");
    return r;
}

static int check_configuration(struct call *call, const struct event_source *source, const json_t *configuration)
{
    int r = check_batch(call, source, configuration);

    if (r == 0)
        r = check_age(call, configuration);
    if (r == 0)
        r = check_pollers(call, source, configuration);
    return r ? r : check_filters(call);
}

static int recognise(struct call *call, const json_t *current, const struct event_source **ret_source)
{
    const json_t *from = current ? current : call->input;

    if (input_has(from, "SelfManagedEventSource") && input_has(from, "EventSourceArn"))
        return refuse(call, "EventSourceArn and SelfManagedEventSource cannot be used together.");
    *ret_source = event_source_of(from);
    return *ret_source ? 0 : refuse(call, "Unrecognized event source.");
}

int event_source_configure(struct call *call, const json_t *current, const char *uuid, json_t **ret_configuration)
{
    const struct event_source *source;
    json_t *configuration;
    int r = recognise(call, current, &source);

    if (r == 0)
        r = check_input(call, current, source);
    if (r)
        return r;
    configuration = current ? json_copy((json_t *)current) : make_defaults(source);
    r = configuration ? merge(configuration, call->input) : -ENOMEM;
    if (r == 0)
        r = settle(configuration, current, source, uuid);
    if (r == 0)
        r = check_configuration(call, source, configuration);
    if (r == 0)
        *ret_configuration = configuration;
    else
        json_decref(configuration);
    return r;
}

/* --- duplicates --- */

static const json_t *servers_of(const json_t *configuration)
{
    return input_find(json_object_get(configuration, "SelfManagedEventSource"), "Endpoints.KAFKA_BOOTSTRAP_SERVERS");
}

static bool lists_meet(const json_t *one, const json_t *other)
{
    const json_t *a;
    const json_t *b;
    size_t i;
    size_t j;

    json_array_foreach(one, i, a) json_array_foreach(other, j, b) if (json_equal((json_t *)a, (json_t *)b)) return true;
    return false;
}

/* A topic of one of the same servers is the same source, whatever the other servers are (recorded). */
static bool is_same_source(const json_t *one, const json_t *other)
{
    const struct event_source *source = event_source_of(one);

    if (source != event_source_of(other) ||
        !json_equal(json_object_get(one, "FunctionArn"), json_object_get(other, "FunctionArn")))
        return false;
    if (source->kind == SELF_MANAGED_KAFKA) {
        if (!lists_meet(servers_of(one), servers_of(other)))
            return false;
    } else if (!json_equal(json_object_get(one, "EventSourceArn"), json_object_get(other, "EventSourceArn"))) {
        return false;
    }
    if (source->kind & KAFKA)
        return lists_meet(json_object_get(one, "Topics"), json_object_get(other, "Topics"));
    return source->kind != MQ || lists_meet(json_object_get(one, "Queues"), json_object_get(other, "Queues"));
}

/* The strings of a list with commas between them, in the arena. */
static const char *join(struct call *call, const json_t *list)
{
    struct arena *arena = &call->operation->arena;
    const char *text = "";
    const json_t *value;
    size_t i;

    json_array_foreach(list, i, value)
    {
        text = arena_printf(arena, "%s%s%s", text, i ? "," : "", json_string_value(value));
        if (!text)
            return "";
    }
    return text;
}

static int refuse_duplicate(struct call *call, const json_t *configuration, const char *uuid)
{
    const struct event_source *source = event_source_of(configuration);
    const char *arn = json_string_value(json_object_get(configuration, "EventSourceArn"));
    const char *function_arn = json_string_value(json_object_get(configuration, "FunctionArn"));
    struct function_name function = {0};
    bool named = function_name_parse(span_from(function_arn), FUNCTION_NAME_NAMESPACED, &function) == 0;

    if (!named)
        return -EINVAL;
    if (source->kind & KAFKA)
        return aws_error_set(&call->error, AWS_ERROR_RESOURCE_CONFLICT,
                             "An event source mapping with event source (\"%s\"), function (\"%s\"), topics (\"%s\") "
                             "already exists. Please update or delete the existing mapping with UUID %s",
                             arn ? arn : join(call, servers_of(configuration)), function_arn,
                             join(call, json_object_get(configuration, "Topics")), uuid);
    if (source->kind == SQS)
        return aws_error_set(
            &call->error, AWS_ERROR_RESOURCE_CONFLICT,
            "An event source mapping with SQS arn (\" %s \") and function (\" %.*s \") already exists. "
            "Please update or delete the existing mapping with UUID %s",
            arn, SPAN_ARG(function.name), uuid);
    return aws_error_set(&call->error, AWS_ERROR_RESOURCE_CONFLICT,
                         "The event source arn (\" %s \") and function (\" %.*s \") provided mapping already exists. "
                         "Please update or delete the existing mapping with UUID %s",
                         arn, SPAN_ARG(function.name), uuid);
}

int event_source_check_unique(struct call *call, const struct catalog_scope *scope, struct span uuid,
                              const json_t *configuration)
{
    TABLE_FOREACH (item, &scope->records[CATALOG_EVENT_SOURCE_MAPPING]) {
        const struct catalog_record *record = item->value;
        if (!span_equal(item->key, uuid) &&
            is_same_source(configuration, json_object_get(record->document, "configuration")))
            return refuse_duplicate(call, configuration, record->name);
    }
    return 0;
}
