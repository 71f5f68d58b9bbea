#include "aws/policy.h"

#include "aws/arn.h"

/* --- patterns --- */

/* '*' stands for any text, '?' for any one character. */
static bool matches_wildcards(struct span pattern, struct span text)
{
    size_t star = SIZE_MAX; /* behind the newest '*' */
    size_t retry = 0;       /* where its text ends so far */
    size_t p = 0;
    size_t t = 0;

    while (t < text.length) {
        if (p < pattern.length && pattern.data[p] == '*') {
            star = ++p;
            retry = t;
        } else if (p < pattern.length && (pattern.data[p] == '?' || pattern.data[p] == text.data[t])) {
            p++;
            t++;
        } else if (star != SIZE_MAX) {
            p = star;
            t = ++retry;
        } else {
            return false;
        }
    }
    while (p < pattern.length && pattern.data[p] == '*')
        p++;
    return p == pattern.length;
}

/* arn:partition:service:region:account:resource, the last with any colons of its own. */
static bool matches_arn(struct span pattern, struct span arn)
{
    for (int part = 0; part < 5; part++)
        if (!matches_wildcards(span_cut(&pattern, ':'), span_cut(&arn, ':')))
            return false;
    return pattern.data && arn.data && matches_wildcards(pattern, arn);
}

/* --- conditions --- */

/* What the call has for a condition's key; empty: nothing. */
static struct span find_value(const struct policy_caller *caller, struct span key)
{
    const struct {
        struct span key;
        struct span value;
    } values[] = {
        {SPAN("AWS:SourceArn"), caller->source_arn},
        {SPAN("AWS:SourceAccount"), caller->source_account},
        {SPAN("lambda:EventSourceToken"), caller->event_source_token},
        {SPAN("lambda:FunctionUrlAuthType"), caller->url_auth_type},
        {SPAN("lambda:InvokedViaFunctionUrl"), caller->url_auth_type.length ? SPAN("true") : SPAN("false")},
    };

    for (size_t i = 0; i < ARRAY_SIZE(values); i++)
        if (span_equal_nocase(key, values[i].key))
            return values[i].value;
    return SPAN_NONE;
}

static bool meets_test(const char *operator, struct span wanted, struct span value)
{
    if (value.length == 0)
        return false;
    if (!strcmp(operator, "StringEquals"))
        return span_equal(wanted, value);
    if (!strcmp(operator, "Bool"))
        return span_equal_nocase(wanted, value);
    return !strcmp(operator, "ArnLike") && matches_arn(wanted, value);
}

static bool meets_conditions(json_t *condition, const struct policy_caller *caller)
{
    const char *operator;
    const char *key;
    json_t *tests;
    json_t *wanted;

    json_object_foreach(condition, operator, tests)
    {
        json_object_foreach(tests, key, wanted)
        {
            struct span text = span_of(json_string_value(wanted), json_string_length(wanted));
            if (!meets_test(operator, text, find_value(caller, span_from(key))))
                return false;
        }
    }
    return true;
}

/* --- statements --- */

/* "*", {"Service": NAME} or {"AWS": ARN}. */
static bool is_principal(const json_t *principal, const struct policy_caller *caller)
{
    const char *service = json_string_value(json_object_get(principal, "Service"));
    const char *identity = json_string_value(json_object_get(principal, "AWS"));
    struct arn arn;

    if (json_is_string(principal))
        return !strcmp(json_string_value(principal), "*");
    if (service)
        return span_equal(span_from(service), caller->service);
    return identity && caller->account.length && arn_parse(span_from(identity), &arn) == 0 &&
           span_equal(arn.account, caller->account);
}

/* "*", "lambda:*" or the action itself, whose case does not count. */
static bool is_action(const char *permitted, struct span action)
{
    struct span pattern = span_from(permitted);

    if (pattern.length && pattern.data[pattern.length - 1] == '*')
        return action.length >= pattern.length - 1 &&
               span_equal_nocase(span_slice(pattern, 0, pattern.length - 1), span_slice(action, 0, pattern.length - 1));
    return span_equal_nocase(pattern, action);
}

bool policy_permits(const json_t *statements, struct span action, struct span resource,
                    const struct policy_caller *caller)
{
    json_t *statement;
    size_t i;

    json_array_foreach(statements, i, statement)
    {
        if (is_action(json_string_value(json_object_get(statement, "Action")), action) &&
            span_equal(span_from(json_string_value(json_object_get(statement, "Resource"))), resource) &&
            is_principal(json_object_get(statement, "Principal"), caller) &&
            meets_conditions(json_object_get(statement, "Condition"), caller))
            return true;
    }
    return false;
}
