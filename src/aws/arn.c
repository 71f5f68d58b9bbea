/*
 * The name parser does by hand what the model's patterns say, because every invocation passes through it; a test holds
 * it against the patterns themselves. The patterns make each part optional, so a text can be read in one way only when
 * the parts are tried in order: prefix "arn:...:lambda:", Region, account, "function:", name, qualifier. Where a part
 * could also be the name ("us-east-1", "111122223333", "function"), it is the name exactly when nothing that can be a
 * name follows it.
 */
#include "aws/arn.h"

#include <stdio.h>

int arn_parse(struct span text, struct arn *ret_arn)
{
    struct arn arn;
    struct span rest = text;
    struct span scheme = span_cut(&rest, ':');

    if (!span_equal(scheme, SPAN("arn")))
        return ARN_MALFORMED;
    arn.partition = span_cut(&rest, ':');
    arn.service = span_cut(&rest, ':');
    arn.region = span_cut(&rest, ':');
    arn.account = span_cut(&rest, ':');
    arn.resource = rest;
    if (arn.partition.length == 0 || arn.service.length == 0 || arn.resource.length == 0)
        return ARN_MALFORMED;
    *ret_arn = arn;
    return 0;
}

struct span arn_partition_of_region(struct span region)
{
    static const struct {
        struct span prefix, partition;
    } partitions[] = {
        {{"cn-", 3}, {"aws-cn", 6}},         {{"us-gov-", 7}, {"aws-us-gov", 10}}, {{"us-isob-", 8}, {"aws-iso-b", 9}},
        {{"us-isof-", 8}, {"aws-iso-f", 9}}, {{"us-iso-", 7}, {"aws-iso", 7}},     {{"eu-isoe-", 8}, {"aws-iso-e", 9}},
        {{"eusc-", 5}, {"aws-eusc", 8}},
    };

    for (size_t i = 0; i < ARRAY_SIZE(partitions); i++)
        if (span_starts_with(region, partitions[i].prefix))
            return partitions[i].partition;
    return SPAN("aws");
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

/* [a-zA-Z0-9-_] */
static bool is_name_char(char c)
{
    return is_lower(c) || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '-' || c == '_';
}

static bool all(struct span text, bool (*is)(char c))
{
    for (size_t i = 0; i < text.length; i++)
        if (!is(text.data[i]))
            return false;
    return true;
}

bool arn_is_account_id(struct span text)
{
    return text.length == 12 && all(text, is_digit);
}

/* (eusc-)?[a-z]{2}((-gov)|(-iso([a-z]?)))?-[a-z]+-\d{1} */
bool arn_is_region(struct span text)
{
    struct span rest = text;
    struct span part = span_cut(&rest, '-');

    if (span_equal(part, SPAN("eusc")) && rest.data)
        part = span_cut(&rest, '-');
    if (part.length != 2 || !all(part, is_lower) || !rest.data)
        return false;
    part = span_cut(&rest, '-');
    /* "us-gov-1" is also a Region by the pattern: the group is optional, so look whether one more part follows. */
    if (span_find(rest, '-') >= 0) {
        bool iso = span_starts_with(part, SPAN("iso")) && part.length <= 4 && all(part, is_lower);
        if (!iso && !span_equal(part, SPAN("gov")))
            return false;
        part = span_cut(&rest, '-');
    }
    return part.length > 0 && all(part, is_lower) && rest.length == 1 && is_digit(rest.data[0]);
}

enum qualifier_kind qualifier_kind_of(struct span qualifier)
{
    if (qualifier.length == 0)
        return QUALIFIER_NONE;
    if (span_equal(qualifier, SPAN("$LATEST")))
        return QUALIFIER_LATEST;
    if (all(qualifier, is_digit))
        return QUALIFIER_VERSION;
    return qualifier.length <= 128 && all(qualifier, is_name_char) ? QUALIFIER_ALIAS : QUALIFIER_OTHER;
}

static bool is_namespaced_char(char c)
{
    return is_name_char(c) || c == '.';
}

static bool qualifier_fits(struct span qualifier, enum function_name_form form)
{
    if (form == FUNCTION_NAME_UNQUALIFIED || qualifier.length == 0)
        return false;
    if (form == FUNCTION_NAME_URL)
        return all(qualifier, is_name_char) && !all(qualifier, is_digit);
    if (span_equal(qualifier, SPAN("$LATEST")))
        return true;
    if (form == FUNCTION_NAME_NAMESPACED && span_equal(qualifier, SPAN("$LATEST.PUBLISHED")))
        return true;
    return all(qualifier, is_name_char);
}

/* NAME or NAME:QUALIFIER, without any prefix. */
static bool parse_bare(struct span text, enum function_name_form form, struct function_name *name)
{
    struct span rest = text;
    struct span part = span_cut(&rest, ':');

    if (part.length == 0 || !all(part, form == FUNCTION_NAME_NAMESPACED ? is_namespaced_char : is_name_char))
        return false;
    if (form == FUNCTION_NAME_URL && part.length > 64)
        return false;
    if (rest.data && !qualifier_fits(rest, form))
        return false;
    name->name = part;
    name->qualifier = rest.data ? rest : SPAN_NONE;
    return true;
}

/* Takes "arn:PARTITION:lambda:" off the front: (aws[a-zA-Z-]*)? for the partition. */
static bool cut_arn_prefix(struct span *text, struct span *ret_partition)
{
    struct span rest = *text;
    struct span scheme = span_cut(&rest, ':');
    struct span partition = span_cut(&rest, ':');
    struct span service = span_cut(&rest, ':');

    if (!span_equal(scheme, SPAN("arn")) || !span_equal(service, SPAN("lambda")) || !rest.data)
        return false;
    if (partition.length && !span_starts_with(partition, SPAN("aws")))
        return false;
    for (size_t i = 0; i < partition.length; i++)
        if (!is_name_char(partition.data[i]) || is_digit(partition.data[i]) || partition.data[i] == '_')
            return false;
    *text = rest;
    *ret_partition = partition;
    return true;
}

/*
 * The optional parts in front of the name. Each is taken when it has the part's form and the rest can still be read;
 * else it is left for the name, as a regular expression would after backtracking: the greedy reading comes first.
 */
static bool parse_parts(struct span text, enum function_name_form form, int step, struct function_name *name)
{
    struct span rest = text;
    struct span part;

    if (step == 3)
        return parse_bare(text, form, name);
    part = span_cut(&rest, ':');
    if (rest.data && ((step == 0 && arn_is_region(part)) || (step == 1 && arn_is_account_id(part)) ||
                      (step == 2 && span_equal(part, SPAN("function"))))) {
        struct function_name taken = *name;
        if (step == 0)
            taken.region = part;
        else if (step == 1)
            taken.account = part;
        if (parse_parts(rest, form, step + 1, &taken)) {
            *name = taken;
            return true;
        }
    }
    return parse_parts(text, form, step + 1, name);
}

int function_name_parse(struct span text, enum function_name_form form, struct function_name *ret_name)
{
    struct function_name name = {0};
    struct span rest = text;

    if (cut_arn_prefix(&rest, &name.partition) && parse_parts(rest, form, 0, &name)) {
        *ret_name = name;
        return 0;
    }
    name = (struct function_name){0};
    if (!parse_parts(text, form, 0, &name))
        return FUNCTION_NAME_MALFORMED;
    *ret_name = name;
    return 0;
}

char *arn_build(struct arena *arena, const char *service, struct span region, struct span account, struct span resource)
{
    return arena_printf(arena, "arn:%.*s:%s:%.*s:%.*s:%.*s", SPAN_ARG(arn_partition_of_region(region)), service,
                        SPAN_ARG(region), SPAN_ARG(account), SPAN_ARG(resource));
}

char *arn_build_function(struct arena *arena, struct span region, struct span account, struct span name,
                         struct span qualifier)
{
    return arena_printf(arena, "arn:%.*s:lambda:%.*s:%.*s:function:%.*s%s%.*s",
                        SPAN_ARG(arn_partition_of_region(region)), SPAN_ARG(region), SPAN_ARG(account), SPAN_ARG(name),
                        qualifier.length ? ":" : "", SPAN_ARG(qualifier));
}

char *arn_build_layer(struct arena *arena, struct span region, struct span account, struct span name, uint64_t version)
{
    char suffix[24] = "";

    if (version)
        snprintf(suffix, sizeof(suffix), ":%llu", (unsigned long long)version);
    return arena_printf(arena, "arn:%.*s:lambda:%.*s:%.*s:layer:%.*s%s", SPAN_ARG(arn_partition_of_region(region)),
                        SPAN_ARG(region), SPAN_ARG(account), SPAN_ARG(name), suffix);
}
