#include "sim/scenario.h"

#include "base/buffer.h"
#include "sim/scenario_read.h"

#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>

enum { LARGEST_FILE = 64 << 20 };

#define LONGEST_S (366 * 86400.0)

/* ---- helpers of all parts ---- */

void *scenario_array(struct json_reader *reader, size_t count, size_t size)
{
    void *array;

    if (reader->failed || !count)
        return NULL;
    array = arena_zalloc(reader->arena, count * size);
    if (!array)
        json_reader_out_of_memory(reader);
    return array;
}

int64_t scenario_read_seconds(struct json_reader *reader, const struct json_value *value, int64_t otherwise)
{
    double seconds = json_number(reader, value, 0, LONGEST_S, -1);

    return seconds < 0 ? otherwise : (int64_t)llround(seconds * (double)NS_PER_S);
}

/* ---- parts of the document ---- */

static void read_account(struct json_reader *reader, const struct json_value *root, struct scenario *scenario)
{
    struct core_limits *limits = &scenario->limits;
    struct json_value account = json_member(root, "account"), member;

    *limits = core_limits_default();
    if (!json_has(&account))
        return;
    json_expect_object(reader, &account,
                       "concurrency unreserved_minimum scaling_rate provisioning_rate provisioning_delay_s "
                       "idle_timeout_s");
    member = json_member(&account, "concurrency");
    limits->concurrency = (int32_t)json_whole(reader, &member, 1, COUNTING_MAXIMUM, limits->concurrency);
    member = json_member(&account, "unreserved_minimum");
    limits->unreserved_minimum =
        (int32_t)json_whole(reader, &member, 0, COUNTING_MAXIMUM, MIN(limits->unreserved_minimum, limits->concurrency));
    member = json_member(&account, "scaling_rate");
    limits->scaling_rate = (int32_t)json_whole(reader, &member, 1, COUNTING_MAXIMUM, limits->scaling_rate);
    member = json_member(&account, "provisioning_rate");
    limits->provisioning_rate = (int32_t)json_whole(reader, &member, 1, COUNTING_MAXIMUM, limits->provisioning_rate);
    member = json_member(&account, "provisioning_delay_s");
    limits->provisioning_delay_ns = scenario_read_seconds(reader, &member, 0);
    member = json_member(&account, "idle_timeout_s");
    limits->idle_timeout_ns = scenario_read_seconds(reader, &member, limits->idle_timeout_ns);
}

/* "workers": how many, each without limit, or a list of them; "zones": over how many zones a number is spread. */
static void read_workers(struct json_reader *reader, const struct json_value *root, struct scenario *scenario)
{
    struct json_value zones_value = json_member(root, "zones"), workers = json_member(root, "workers");
    int64_t zones = json_whole(reader, &zones_value, 1, PLACEMENT_ZONES, 1);
    bool listed = json_is_array(workers.json);
    size_t count =
        listed ? json_length(reader, &workers, 10000) : (size_t)json_whole(reader, &workers, 1, 10000, zones);

    scenario->workers = scenario_array(reader, count, sizeof(*scenario->workers));
    scenario->worker_count = scenario->workers ? count : 0;
    for (size_t i = 0; i < scenario->worker_count; i++) {
        struct scenario_worker *worker = &scenario->workers[i];
        struct json_value value = json_element(&workers, i), member;
        worker->zone = (unsigned)(i % (size_t)zones);
        if (!listed)
            continue;
        json_expect_object(reader, &value, "name zone memory_mib environments");
        member = json_member(&value, "name");
        worker->name = json_name(reader, &member);
        member = json_member(&value, "zone");
        worker->zone = (unsigned)json_whole(reader, &member, 0, zones - 1, worker->zone);
        member = json_member(&value, "memory_mib");
        worker->memory_mib = json_whole(reader, &member, 0, 1LL << 40, 0);
        member = json_member(&value, "environments");
        worker->environments = json_whole(reader, &member, 0, COUNTING_MAXIMUM, 0);
    }
    if (listed && !count)
        json_reader_fail(reader, &workers, "must not be empty");
}

static void read_retry(struct json_reader *reader, const struct json_value *root, struct scenario *scenario)
{
    static const char *const jitters[] = {"none", "full", NULL};
    struct scenario_retry *retry = &scenario->retry;
    struct json_value value = json_member(root, "retry"), member;

    *retry = (struct scenario_retry){.attempts = 1};
    if (!json_has(&value))
        return;
    json_expect_object(reader, &value, "attempts base_ms cap_ms jitter");
    member = json_member(&value, "attempts");
    retry->attempts = (int)json_whole(reader, &member, 1, 1000, 3);
    member = json_member(&value, "base_ms");
    retry->base_ns = (int64_t)(json_number(reader, &member, 0, 1e9, 100) * (double)NS_PER_MS);
    member = json_member(&value, "cap_ms");
    retry->cap_ns = (int64_t)(json_number(reader, &member, 0, 1e9, 20000) * (double)NS_PER_MS);
    member = json_member(&value, "jitter");
    if (json_is_boolean(member.json))
        retry->jitter = json_bool(reader, &member, true);
    else
        retry->jitter = json_word(reader, &member, jitters, 1);
}

static void read_times(struct json_reader *reader, const struct json_value *root, struct scenario *scenario)
{
    struct json_value member = json_member(root, "duration_s");
    const char *start;

    json_require(reader, &member);
    scenario->duration_ns = scenario_read_seconds(reader, &member, 0);
    if (!reader->failed && scenario->duration_ns < NS_PER_MS)
        json_reader_fail(reader, &member, "must be at least 0.001");
    member = json_member(root, "start");
    start = json_text(reader, &member);
    scenario->start_s = schedule_from_civil(2026, 1, 1, 0, 0, 0);
    if (start && schedule_parse_time(span_from(start), &scenario->start_s) < 0)
        json_reader_fail(reader, &member, "must be a time in UTC as in 2026-11-27T00:00:00Z");
    member = json_member(root, "seed");
    scenario->seed = (uint64_t)json_whole(reader, &member, 0, 1LL << 53, 1);
}

static void read_document(struct json_reader *reader, const char *directory, struct scenario *scenario)
{
    static const char *const modes[] = {"shared", "strict", NULL};
    struct json_value root = json_reader_root(reader), member;

    json_expect_object(reader, &root,
                       "description account functions traffic events retry zones workers duration_s start seed "
                       "assignment");
    read_account(reader, &root, scenario);
    member = json_member(&root, "description");
    scenario->description = json_text(reader, &member);
    member = json_member(&root, "assignment");
    scenario->limits.mode = json_word(reader, &member, modes, 0) ? ASSIGNMENT_STRICT : ASSIGNMENT_SHARED;
    read_times(reader, &root, scenario);
    read_workers(reader, &root, scenario);
    read_retry(reader, &root, scenario);
    scenario_read_functions(reader, &root, scenario);
    scenario_read_traffic(reader, &root, directory, scenario);
    scenario_read_events(reader, &root, scenario);
}

int scenario_parse(struct span text, const char *directory, struct scenario **ret_scenario, struct fault *fault)
{
    struct scenario *scenario CLEANUP(scenario_cleanup) = calloc(1, sizeof(*scenario));
    struct json_reader reader;
    int r;

    if (!scenario)
        return fault_set(fault, ENOMEM, "out of memory");
    r = json_reader_init(&reader, text, &scenario->arena, fault);
    if (r < 0)
        return r;
    read_document(&reader, directory, scenario);
    json_reader_deinit(&reader);
    if (reader.failed)
        return -EINVAL;
    *ret_scenario = TAKE_PTR(scenario);
    return 0;
}

static void close_file(FILE **file)
{
    if (*file)
        fclose(*file);
}

static int read_file(const char *path, struct buffer *buffer, struct fault *fault)
{
    FILE *file CLEANUP(close_file) = fopen(path, "re");
    char part[65536];
    size_t length;

    if (!file)
        return fault_set(fault, errno, "%s", strerror(errno));
    while ((length = fread(part, 1, sizeof(part), file)) > 0) {
        if (buffer->length + length > LARGEST_FILE)
            return fault_set(fault, EFBIG, "is larger than %d MB", LARGEST_FILE >> 20);
        if (buffer_append(buffer, part, length) < 0)
            return fault_set(fault, ENOMEM, "out of memory");
    }
    return ferror(file) ? fault_set(fault, errno, "%s", strerror(errno)) : 0;
}

int scenario_load(const char *path, struct scenario **ret_scenario, struct fault *fault)
{
    struct buffer buffer CLEANUP(buffer_deinit) = BUFFER_INIT;
    char copy[PATH_MAX];
    int r;

    snprintf(copy, sizeof(copy), "%s", path);
    r = read_file(path, &buffer, fault);
    if (r == 0) {
        r = scenario_parse(buffer_span(&buffer), dirname(copy), ret_scenario, fault);
        if (r < 0) { /* PATH:LINE:COLUMN, as compilers write it */
            char text[sizeof(fault->text)];
            snprintf(text, sizeof(text), "%s", fault->text);
            return fault_set(fault, -r, "%s:%s", path, text);
        }
    }
    if (r < 0)
        fault_prepend(fault, "%s", path);
    return r;
}

struct scenario *scenario_free(struct scenario *scenario)
{
    if (!scenario)
        return NULL;
    arena_deinit(&scenario->arena);
    free(scenario);
    return NULL;
}

void scenario_cleanup(struct scenario **scenario)
{
    *scenario = scenario_free(*scenario);
}

/* ---- names ---- */

int scenario_find_function(const struct scenario *scenario, struct span name)
{
    for (size_t i = 0; i < scenario->function_count; i++) {
        if (scenario->functions[i].name && span_equal(span_from(scenario->functions[i].name), name))
            return (int)i;
    }
    return -1;
}

int scenario_find_version(const struct scenario_function *function, const char *name)
{
    for (size_t i = 0; i < function->version_count; i++) {
        if (function->versions[i].name && !strcmp(function->versions[i].name, name))
            return (int)i;
    }
    return -1;
}

int scenario_find_alias(const struct scenario_function *function, const char *name)
{
    for (size_t i = 0; i < function->alias_count; i++) {
        if (function->aliases[i].name && !strcmp(function->aliases[i].name, name))
            return (int)i;
    }
    return -1;
}

bool scenario_find_qualifier(const struct scenario *scenario, int function, const char *name,
                             struct scenario_qualifier *ret_qualifier)
{
    const struct scenario_function *found = &scenario->functions[function];
    const char *wanted = name ? name : "$LATEST";

    *ret_qualifier = (struct scenario_qualifier){function, scenario_find_version(found, wanted), -1};
    if (ret_qualifier->version < 0)
        ret_qualifier->alias = scenario_find_alias(found, wanted);
    return ret_qualifier->version >= 0 || ret_qualifier->alias >= 0;
}

const char *scenario_qualifier_name(const struct scenario *scenario, const struct scenario_qualifier *qualifier)
{
    const struct scenario_function *function = &scenario->functions[qualifier->function];

    return qualifier->alias >= 0 ? function->aliases[qualifier->alias].name
                                 : function->versions[qualifier->version].name;
}
