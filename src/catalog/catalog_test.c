#include "catalog/catalog.h"

#include "catalog/document.h"
#include "catalog/testing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define ACCOUNT SPAN("111122223333")
#define REGION  SPAN("us-east-1")

/* What the observers were told, one word each. */
struct journal {
    struct catalog_observer observer;
    struct buffer text;
};

struct fixture {
    struct testing_world world;
    struct journal journal;
};

static void note(void *context, const char *what, const char *whom)
{
    struct journal *journal = context;

    assert_int_equal(buffer_printf(&journal->text, "%s%s:%s", journal->text.length ? " " : "", what, whom), 0);
}

static void on_function_created(struct catalog_function *function, void *context)
{
    assert_non_null(function->latest->config);
    note(context, "created", function->name);
}

static void on_function_deleted(struct catalog_function *function, void *context)
{
    note(context, "deleted", function->name);
}

static void on_latest_changed(struct catalog_version *latest, struct catalog_version_config *old, void *context)
{
    assert_ptr_not_equal(latest->active, old);
    note(context, "latest", old ? "again" : "first");
}

static void on_version_published(struct catalog_version *version, void *context)
{
    note(context, "published", version->number);
}

static void on_version_deleted(struct catalog_version *version, void *context)
{
    note(context, "unpublished", version->number);
}

static void on_alias_set(struct catalog_alias *alias, void *context)
{
    note(context, "alias", alias->name);
}

static void on_alias_deleted(struct catalog_alias *alias, void *context)
{
    note(context, "unalias", alias->name);
}

static void on_reserved_set(struct catalog_function *function, void *context)
{
    char text[16];

    snprintf(text, sizeof(text), "%d", function->has_reserved ? (int)function->reserved : -1);
    note(context, "reserved", text);
}

static void note_provisioned(void *context, const char *what, const struct catalog_target *target)
{
    char text[64];

    snprintf(text, sizeof(text), "%s=%u", target->alias ? target->alias->name : target->version->number,
             catalog_target_provisioned(target)->requested);
    note(context, what, text);
}

static void on_provisioned_set(const struct catalog_target *target, void *context)
{
    note_provisioned(context, "provisioned", target);
}

static void on_provisioned_deleted(const struct catalog_target *target, void *context)
{
    note_provisioned(context, "unprovisioned", target);
}

static void start_journal(struct fixture *fixture)
{
    struct journal *journal = &fixture->journal;

    buffer_deinit(&journal->text);
    journal->observer = (struct catalog_observer){
        .on_function_created = on_function_created,
        .on_function_deleted = on_function_deleted,
        .on_latest_changed = on_latest_changed,
        .on_version_published = on_version_published,
        .on_version_deleted = on_version_deleted,
        .on_alias_set = on_alias_set,
        .on_alias_deleted = on_alias_deleted,
        .on_reserved_set = on_reserved_set,
        .on_provisioned_set = on_provisioned_set,
        .on_provisioned_deleted = on_provisioned_deleted,
        .context = journal,
    };
    catalog_add_observer(fixture->world.catalog, &journal->observer);
}

/* Compares and empties the journal. */
static void assert_journal(struct fixture *fixture, const char *expected)
{
    struct buffer *text = &fixture->journal.text;

    assert_int_equal(buffer_append(text, "", 1), 0);
    assert_string_equal(text->data, expected);
    buffer_deinit(text);
}

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    testing_open(&fixture->world);
    start_journal(fixture);
    testing_load(&fixture->world);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    testing_close(&fixture->world);
    buffer_deinit(&fixture->journal.text);
    free(fixture);
    return 0;
}

static void restart(struct fixture *fixture)
{
    testing_shut(&fixture->world);
    testing_reopen(&fixture->world, 0);
    start_journal(fixture);
    testing_load(&fixture->world);
}

/* --- mutations of the tests --- */

struct step {
    struct catalog_mutation mutation;
    struct fixture *fixture;
    int (*edit)(struct step *step, struct catalog_change *change);
    const char *name; /* of the function */
    const char *text; /* description, alias, ... */
    const char *number;
    const char *additional;
    double weight;
    struct code_package package;
    unsigned reserved;
    bool has_reserved;
    unsigned provisioned;
    struct catalog_version *version;
    int *order; /* counts builds and ends, when not NULL */
    int built_at;
    int done_at;
    bool done;
    int status;
};

static int on_build(struct catalog_mutation *mutation, struct catalog_change *change)
{
    struct step *step = CONTAINER_OF(mutation, struct step, mutation);

    if (step->order)
        step->built_at = ++*step->order;
    return step->edit(step, change);
}

static void on_done(struct catalog_mutation *mutation, int status)
{
    struct step *step = CONTAINER_OF(mutation, struct step, mutation);

    assert_false(step->done);
    step->done = true;
    step->status = status;
    if (step->order)
        step->done_at = ++*step->order;
}

static void submit(struct step *step, struct fixture *fixture)
{
    step->fixture = fixture;
    step->mutation.build = on_build;
    step->mutation.on_done = on_done;
    assert_int_equal(catalog_submit(fixture->world.catalog, ACCOUNT, REGION, &step->mutation), 0);
}

/* Until the mutation has ended, and not a turn longer. */
static int finish(struct step *step)
{
    while (!step->done)
        uv_run(&step->fixture->world.loop, UV_RUN_ONCE);
    return step->status;
}

static struct catalog_function *find(struct fixture *fixture, const char *name)
{
    return catalog_find_function(fixture->world.catalog, ACCOUNT, REGION, span_from(name));
}

static json_t *make_document(const char *description, unsigned memory)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:{s:i}, s:{s:{s:s}}, s:{s:s, s:s}}", "Runtime", "python3.12",
                     "Role", "arn:aws:iam::111122223333:role/r", "Handler", "handler.handler", "Description",
                     description, "Timeout", 3, "MemorySize", (int)memory, "EphemeralStorage", "Size", 512,
                     "Environment", "Variables", "KEY", "value", "LoggingConfig", "LogFormat", "Text", "LogGroup",
                     "/aws/lambda/f");
}

static struct catalog_configuration configuration_of(const struct step *step, json_t *document)
{
    return (struct catalog_configuration){
        .document = document,
        .code_sha256 = span_from(step->package.sha256),
        .code_bytes = step->package.zip_bytes,
    };
}

static int create(struct step *step, struct catalog_change *change)
{
    json_t *document = make_document(step->text ? step->text : "", 128);
    struct catalog_configuration configuration = configuration_of(step, document);
    int r = catalog_change_create_function(change, span_from(step->name), &configuration, NULL, &step->version);

    json_decref(document);
    return r;
}

static int create_published(struct step *step, struct catalog_change *change)
{
    int r = create(step, change);

    return r ? r : catalog_change_publish(change, step->version->function, NULL, &step->version);
}

static int update(struct step *step, struct catalog_change *change)
{
    struct catalog_function *function = find(step->fixture, step->name);
    json_t *document = make_document(step->text, 256);
    struct catalog_configuration configuration = configuration_of(step, document);
    int r = catalog_change_update_latest(change, function, &configuration);

    json_decref(document);
    return r;
}

static int publish(struct step *step, struct catalog_change *change)
{
    return catalog_change_publish(change, find(step->fixture, step->name), step->text, &step->version);
}

static int set_alias(struct step *step, struct catalog_change *change)
{
    struct catalog_function *function = find(step->fixture, step->name);
    struct catalog_alias_settings settings = {
        .name = step->text,
        .description = "for tests",
        .version = catalog_find_version(function, span_from(step->number)),
        .additional = step->additional ? catalog_find_version(function, span_from(step->additional)) : NULL,
        .additional_weight = step->weight,
    };

    return catalog_change_set_alias(change, function, &settings);
}

static int delete_alias(struct step *step, struct catalog_change *change)
{
    return catalog_change_delete_alias(change,
                                       catalog_find_alias(find(step->fixture, step->name), span_from(step->text)));
}

static int delete_version(struct step *step, struct catalog_change *change)
{
    return catalog_change_delete_version(
        change, catalog_find_version(find(step->fixture, step->name), span_from(step->number)));
}

static int delete_function(struct step *step, struct catalog_change *change)
{
    return catalog_change_delete_function(change, find(step->fixture, step->name));
}

static int set_reserved(struct step *step, struct catalog_change *change)
{
    return catalog_change_set_reserved(change, find(step->fixture, step->name), step->has_reserved, step->reserved);
}

/* Of the version or alias in `text`. */
static int set_provisioned(struct step *step, struct catalog_change *change)
{
    const struct catalog_provisioned provisioned = {step->provisioned, "2026-01-02T03:04:05+0000"};
    struct catalog_target target;

    assert_true(catalog_resolve(find(step->fixture, step->name), span_from(step->text), &target));
    return catalog_change_set_provisioned(change, &target, &provisioned);
}

static int refuse(struct step *step, struct catalog_change *change)
{
    (void)step;
    (void)change;
    return 42;
}

/* Runs one to its end and gives the package back. */
static int run(struct fixture *fixture, struct step step)
{
    int status;

    submit(&step, fixture);
    status = finish(&step);
    if (step.package.sha256[0])
        code_release(fixture->world.code, step.package.sha256);
    return status;
}

/* A settled function. Returns its package's name, without a reference. */
static struct code_package create_function(struct fixture *fixture, const char *name, const char *content)
{
    struct code_package package = testing_package(&fixture->world, content);

    assert_int_equal(run(fixture, (struct step){.edit = create, .name = name, .package = package}), 0);
    testing_run(&fixture->world);
    return package;
}

static void publish_version(struct fixture *fixture, const char *name)
{
    assert_int_equal(run(fixture, (struct step){.edit = publish, .name = name}), 0);
}

/* --- life of a function --- */

static void test_new_function_is_pending_until_settled(void **state)
{
    struct fixture *fixture = *state;
    struct step step = {.edit = create, .name = "f", .package = testing_package(&fixture->world, "1")};
    struct catalog_function *function;
    char first_revision[64];

    submit(&step, fixture);
    assert_null(find(fixture, "f")); /* not before it is durable */
    assert_int_equal(finish(&step), 0);
    function = find(fixture, "f");
    assert_int_equal(function->latest->state, CATALOG_PENDING);
    assert_int_equal(function->latest->update, CATALOG_UPDATE_NONE);
    assert_null(function->latest->active);
    assert_true(catalog_is_settling(function));
    snprintf(first_revision, sizeof(first_revision), "%s", function->latest->config->revision_id);
    assert_journal(fixture, "created:f");

    testing_run(&fixture->world);
    assert_int_equal(function->latest->state, CATALOG_ACTIVE);
    assert_int_equal(function->latest->update, CATALOG_UPDATE_SUCCESSFUL);
    assert_ptr_equal(function->latest->active, function->latest->config);
    assert_string_not_equal(first_revision, function->latest->config->revision_id);
    assert_journal(fixture, "latest:first");
    code_release(fixture->world.code, step.package.sha256);
}

static void test_configuration_is_read_from_its_document(void **state)
{
    struct fixture *fixture = *state;
    struct code_package package = create_function(fixture, "f", "1");
    const struct catalog_version_config *config = find(fixture, "f")->latest->active;

    assert_string_equal(config->account, "111122223333");
    assert_string_equal(config->region, "us-east-1");
    assert_string_equal(config->function_arn, "arn:aws:lambda:us-east-1:111122223333:function:f");
    assert_string_equal(config->version, "$LATEST");
    assert_string_equal(config->runtime, "python3.12");
    assert_string_equal(config->handler, "handler.handler");
    assert_int_equal(config->memory_mib, 128);
    assert_int_equal(config->timeout_s, 3);
    assert_int_equal(config->tmp_mib, 512);
    assert_string_equal(config->log_group, "/aws/lambda/f");
    assert_string_equal(config->code_sha256, package.sha256);
    assert_int_equal(config->variable_count, 1);
    assert_string_equal(config->variables[0].name, "KEY");
    assert_string_equal(config->variables[0].value, "value");
    assert_non_null(strstr(config->code_dir, package.sha256));
}

static void test_update_leaves_old_configuration_in_force_until_settled(void **state)
{
    struct fixture *fixture = *state;
    struct code_package old_package = create_function(fixture, "f", "1");
    struct catalog_function *function = find(fixture, "f");
    struct catalog_version_config *held = catalog_version_config_ref(function->latest->active);
    struct step step = {.edit = update, .name = "f", .text = "", .package = testing_package(&fixture->world, "2")};

    buffer_deinit(&fixture->journal.text);
    submit(&step, fixture);
    assert_int_equal(finish(&step), 0);
    assert_int_equal(function->latest->update, CATALOG_UPDATE_IN_PROGRESS);
    assert_ptr_equal(function->latest->active, held);
    assert_int_equal(function->latest->config->memory_mib, 256);

    testing_run(&fixture->world);
    assert_int_equal(function->latest->update, CATALOG_UPDATE_SUCCESSFUL);
    assert_int_equal(function->latest->active->memory_mib, 256);
    assert_journal(fixture, "latest:again");

    /* An environment that still runs keeps its configuration and its package. */
    assert_int_equal(held->memory_mib, 128);
    assert_true(testing_has_package(&fixture->world, old_package.sha256));
    catalog_version_config_unref(held);
    testing_run(&fixture->world);
    assert_false(testing_has_package(&fixture->world, old_package.sha256));
    code_release(fixture->world.code, step.package.sha256);
}

static void test_deleted_function_leaves_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct code_package package = create_function(fixture, "f", "1");

    publish_version(fixture, "f");
    assert_int_equal(run(fixture, (struct step){.edit = set_alias, .name = "f", .text = "live", .number = "1"}), 0);
    assert_int_equal(
        run(fixture, (struct step){.edit = set_reserved, .name = "f", .has_reserved = true, .reserved = 7}), 0);
    buffer_deinit(&fixture->journal.text);
    assert_int_equal(run(fixture, (struct step){.edit = delete_function, .name = "f"}), 0);
    testing_run(&fixture->world);

    assert_journal(fixture, "unalias:live unpublished:1 deleted:f");
    assert_null(find(fixture, "f"));
    assert_int_equal(catalog_find_scope(fixture->world.catalog, ACCOUNT, REGION)->reserved_total, 0);
    assert_int_equal(catalog_find_scope(fixture->world.catalog, ACCOUNT, REGION)->code_bytes, 0);
    assert_int_equal(catalog_function_count(fixture->world.catalog), 0);
    assert_false(testing_has_package(&fixture->world, package.sha256));
    restart(fixture);
    assert_journal(fixture, "");
    assert_null(find(fixture, "f"));
}

static void test_function_can_be_deleted_before_it_settles(void **state)
{
    struct fixture *fixture = *state;
    struct step first = {.edit = create, .name = "f", .package = testing_package(&fixture->world, "1")};
    struct step second = {.edit = delete_function, .name = "f"};

    submit(&first, fixture);
    submit(&second, fixture); /* before the settling, which is queued when the creation is durable */
    assert_int_equal(finish(&first), 0);
    assert_int_equal(finish(&second), 0);
    testing_run(&fixture->world);
    assert_journal(fixture, "created:f deleted:f");
    assert_null(find(fixture, "f"));
    code_release(fixture->world.code, first.package.sha256);
}

/* --- versions --- */

static void test_published_version_is_a_copy_with_its_own_description(void **state)
{
    struct fixture *fixture = *state;
    struct step step = {.edit = publish, .name = "f", .text = "first"};
    const struct catalog_version *version;

    create_function(fixture, "f", "1");
    submit(&step, fixture);
    assert_int_equal(finish(&step), 0);
    version = catalog_find_version(find(fixture, "f"), SPAN("1"));
    assert_ptr_equal(version, step.version);
    assert_int_equal(version->state, CATALOG_ACTIVE);
    assert_int_equal(version->update, CATALOG_UPDATE_SUCCESSFUL);
    assert_string_equal(version->config->version, "1");
    assert_string_equal(json_string_value(json_object_get(version->config->document, "Description")), "first");
    assert_string_not_equal(version->config->revision_id, find(fixture, "f")->latest->config->revision_id);
}

static void test_version_published_with_its_function_settles_with_it(void **state)
{
    struct fixture *fixture = *state;
    struct step step = {.edit = create_published, .name = "f", .package = testing_package(&fixture->world, "1")};

    submit(&step, fixture);
    assert_int_equal(finish(&step), 0);
    assert_int_equal(step.version->state, CATALOG_PENDING);
    assert_null(step.version->active);
    assert_journal(fixture, "created:f");
    testing_run(&fixture->world);
    assert_int_equal(step.version->state, CATALOG_ACTIVE);
    assert_journal(fixture, "latest:first published:1");
    code_release(fixture->world.code, step.package.sha256);
}

static void test_publishing_again_is_known_to_change_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct code_package package = create_function(fixture, "f", "1");
    struct catalog_function *function = find(fixture, "f");

    assert_null(catalog_find_unchanged(function));
    assert_int_equal(run(fixture, (struct step){.edit = publish, .name = "f", .text = "own words"}), 0);
    assert_ptr_equal(catalog_find_unchanged(function), catalog_find_version(function, SPAN("1")));

    assert_int_equal(code_retain(fixture->world.code, package.sha256), 0);
    assert_int_equal(run(fixture, (struct step){.edit = update, .name = "f", .text = "other", .package = package}), 0);
    testing_run(&fixture->world);
    assert_null(catalog_find_unchanged(function));
}

static void test_change_of_description_alone_counts_as_a_change(void **state)
{
    struct fixture *fixture = *state;
    struct code_package package = create_function(fixture, "f", "1");
    struct catalog_function *function = find(fixture, "f");

    assert_int_equal(code_retain(fixture->world.code, package.sha256), 0);
    assert_int_equal(run(fixture, (struct step){.edit = update, .name = "f", .text = "a", .package = package}), 0);
    testing_run(&fixture->world);
    publish_version(fixture, "f");
    assert_non_null(catalog_find_unchanged(function));
    assert_int_equal(code_retain(fixture->world.code, package.sha256), 0);
    assert_int_equal(run(fixture, (struct step){.edit = update, .name = "f", .text = "b", .package = package}), 0);
    testing_run(&fixture->world);
    assert_null(catalog_find_unchanged(function));
}

static void test_version_numbers_are_never_used_again(void **state)
{
    struct fixture *fixture = *state;

    create_function(fixture, "f", "1");
    publish_version(fixture, "f");
    publish_version(fixture, "f");
    assert_int_equal(run(fixture, (struct step){.edit = delete_version, .name = "f", .number = "2"}), 0);
    restart(fixture);
    assert_null(catalog_find_version(find(fixture, "f"), SPAN("2")));
    publish_version(fixture, "f");
    assert_null(catalog_find_version(find(fixture, "f"), SPAN("2")));
    assert_non_null(catalog_find_version(find(fixture, "f"), SPAN("3")));
}

static void test_versions_stay_in_order_past_nine_and_a_restart(void **state)
{
    struct fixture *fixture = *state;
    unsigned expected = 1;
    char number[8];

    create_function(fixture, "f", "1");
    for (int i = 0; i < 11; i++)
        publish_version(fixture, "f");
    restart(fixture);
    TABLE_FOREACH (item, &find(fixture, "f")->versions) {
        snprintf(number, sizeof(number), "%u", expected++);
        assert_true(span_equal(item->key, span_from(number)));
    }
    assert_int_equal(expected, 12);
}

/* --- aliases, reserved concurrency --- */

static void test_alias_counts_its_references(void **state)
{
    struct fixture *fixture = *state;
    struct catalog_function *function;

    create_function(fixture, "f", "1");
    publish_version(fixture, "f");
    publish_version(fixture, "f");
    function = find(fixture, "f");
    assert_int_equal(
        run(fixture,
            (struct step){
                .edit = set_alias, .name = "f", .text = "live", .number = "1", .additional = "2", .weight = 0.25}),
        0);
    assert_int_equal(catalog_find_version(function, SPAN("1"))->alias_references, 1);
    assert_int_equal(catalog_find_version(function, SPAN("2"))->alias_references, 1);
    assert_int_equal(run(fixture, (struct step){.edit = set_alias, .name = "f", .text = "live", .number = "2"}), 0);
    assert_int_equal(catalog_find_version(function, SPAN("1"))->alias_references, 0);
    assert_int_equal(catalog_find_version(function, SPAN("2"))->alias_references, 1);
    assert_int_equal(run(fixture, (struct step){.edit = delete_alias, .name = "f", .text = "live"}), 0);
    assert_int_equal(catalog_find_version(function, SPAN("2"))->alias_references, 0);
    assert_null(catalog_find_alias(function, SPAN("live")));
}

static void test_qualifiers_resolve_to_versions_and_aliases(void **state)
{
    struct fixture *fixture = *state;
    struct catalog_target target;
    struct catalog_function *function;

    create_function(fixture, "f", "1");
    publish_version(fixture, "f");
    assert_int_equal(run(fixture, (struct step){.edit = set_alias, .name = "f", .text = "live", .number = "1"}), 0);
    function = find(fixture, "f");
    assert_true(catalog_resolve(function, SPAN_NONE, &target));
    assert_ptr_equal(target.version, function->latest);
    assert_true(catalog_resolve(function, SPAN("$LATEST"), &target));
    assert_ptr_equal(target.version, function->latest);
    assert_true(catalog_resolve(function, SPAN("1"), &target));
    assert_string_equal(target.version->number, "1");
    assert_null(target.alias);
    assert_true(catalog_resolve(function, SPAN("live"), &target));
    assert_string_equal(target.version->number, "1");
    assert_string_equal(target.alias->name, "live");
    assert_false(catalog_resolve(function, SPAN("2"), &target));
    assert_false(catalog_resolve(function, SPAN("$latest"), &target));
    assert_null(catalog_find_function(fixture->world.catalog, ACCOUNT, SPAN("eu-west-1"), SPAN("f")));
    assert_null(catalog_find_function(fixture->world.catalog, SPAN("111122223334"), REGION, SPAN("f")));
    assert_null(catalog_find_function(fixture->world.catalog, SPAN_NONE, SPAN_NONE, SPAN_NONE));
}

static void test_reserved_concurrency_adds_up_over_functions(void **state)
{
    struct fixture *fixture = *state;
    const struct catalog_scope *scope;

    create_function(fixture, "f", "1");
    create_function(fixture, "g", "1");
    buffer_deinit(&fixture->journal.text);
    scope = catalog_find_scope(fixture->world.catalog, ACCOUNT, REGION);
    run(fixture, (struct step){.edit = set_reserved, .name = "f", .has_reserved = true, .reserved = 5});
    run(fixture, (struct step){.edit = set_reserved, .name = "g", .has_reserved = true, .reserved = 0});
    assert_int_equal(scope->reserved_total, 5);
    run(fixture, (struct step){.edit = set_reserved, .name = "f", .has_reserved = true, .reserved = 3});
    assert_int_equal(scope->reserved_total, 3);
    run(fixture, (struct step){.edit = set_reserved, .name = "f"});
    run(fixture, (struct step){.edit = set_reserved, .name = "g"});
    assert_int_equal(scope->reserved_total, 0);
    assert_journal(fixture, "reserved:5 reserved:0 reserved:3 reserved:-1 reserved:-1");
}

/* --- provisioned concurrency --- */

static void provide(struct fixture *fixture, const char *qualifier, unsigned count)
{
    assert_int_equal(
        run(fixture, (struct step){.edit = set_provisioned, .name = "f", .text = qualifier, .provisioned = count}), 0);
}

static void reserve(struct fixture *fixture, bool has_reserved, unsigned reserved)
{
    assert_int_equal(
        run(fixture,
            (struct step){.edit = set_reserved, .name = "f", .has_reserved = has_reserved, .reserved = reserved}),
        0);
}

/* Function "f" with version 1 and alias "live" for it. */
static void create_with_alias(struct fixture *fixture)
{
    create_function(fixture, "f", "1");
    publish_version(fixture, "f");
    assert_int_equal(run(fixture, (struct step){.edit = set_alias, .name = "f", .text = "live", .number = "1"}), 0);
    assert_journal(fixture, "created:f latest:first published:1 alias:live");
}

static void test_provisioned_concurrency_adds_up(void **state)
{
    struct fixture *fixture = *state;
    const struct catalog_function *function;

    create_with_alias(fixture);
    function = find(fixture, "f");
    provide(fixture, "1", 5);
    provide(fixture, "live", 7);
    provide(fixture, "1", 3);
    assert_journal(fixture, "provisioned:1=5 provisioned:live=7 provisioned:1=3");
    assert_int_equal(function->provisioned_total, 10);
    assert_int_equal(function->scope->provisioned_total, 10);
    reserve(fixture, true, 20);
    assert_int_equal(function->scope->reserved_total, 20);
    assert_int_equal(function->scope->provisioned_total, 0); /* within the reservation */
    provide(fixture, "1", 4);
    assert_int_equal(function->scope->provisioned_total, 0);
    reserve(fixture, false, 0);
    assert_int_equal(function->scope->reserved_total, 0);
    assert_int_equal(function->scope->provisioned_total, 11);
    provide(fixture, "1", 0);
    provide(fixture, "1", 0);
    assert_int_equal(function->scope->provisioned_total, 7);
    assert_journal(fixture, "reserved:20 provisioned:1=4 reserved:-1 unprovisioned:1=0");
}

static void test_provisioned_concurrency_goes_with_its_alias_version_or_function(void **state)
{
    struct fixture *fixture = *state;
    const struct catalog_scope *scope;

    create_with_alias(fixture);
    scope = find(fixture, "f")->scope;
    provide(fixture, "1", 5);
    provide(fixture, "live", 7);
    buffer_deinit(&fixture->journal.text);
    assert_int_equal(run(fixture, (struct step){.edit = delete_alias, .name = "f", .text = "live"}), 0);
    assert_journal(fixture, "unprovisioned:live=0 unalias:live");
    assert_int_equal(scope->provisioned_total, 5);
    assert_int_equal(run(fixture, (struct step){.edit = delete_version, .name = "f", .number = "1"}), 0);
    assert_journal(fixture, "unprovisioned:1=0 unpublished:1");
    assert_int_equal(scope->provisioned_total, 0);
    publish_version(fixture, "f");
    provide(fixture, "2", 6);
    buffer_deinit(&fixture->journal.text);
    assert_int_equal(run(fixture, (struct step){.edit = delete_function, .name = "f"}), 0);
    assert_journal(fixture, "unprovisioned:2=0 unpublished:2 deleted:f");
    assert_int_equal(scope->provisioned_total, 0);
}

static void test_provisioned_concurrency_is_there_after_a_restart_and_stays_through_edits(void **state)
{
    struct fixture *fixture = *state;
    const struct catalog_function *function;

    create_with_alias(fixture);
    publish_version(fixture, "f");
    provide(fixture, "live", 7);
    provide(fixture, "2", 2);
    assert_int_equal(run(fixture, (struct step){.edit = set_alias, .name = "f", .text = "live", .number = "2"}), 0);
    reserve(fixture, true, 9);
    restart(fixture);
    function = find(fixture, "f");
    assert_int_equal(catalog_find_alias(function, SPAN("live"))->provisioned.requested, 7);
    assert_string_equal(catalog_find_alias(function, SPAN("live"))->provisioned.last_modified,
                        "2026-01-02T03:04:05+0000");
    assert_int_equal(catalog_find_version(function, SPAN("2"))->provisioned.requested, 2);
    assert_int_equal(catalog_find_version(function, SPAN("1"))->provisioned.requested, 0);
    assert_int_equal(function->provisioned_total, 9);
    assert_int_equal(function->scope->provisioned_total, 0);
    assert_int_equal(function->scope->reserved_total, 9);
    assert_non_null(buffer_terminate(&fixture->journal.text));
    assert_non_null(strstr(fixture->journal.text.data, "alias:live reserved:9 provisioned:2=2 provisioned:live=7"));
    buffer_deinit(&fixture->journal.text);
    provide(fixture, "live", 0);
    restart(fixture);
    assert_int_equal(find(fixture, "f")->provisioned_total, 2);
}

static void test_document_with_broken_provisioned_concurrency_is_refused(void **state)
{
    static const char *const bad[] = {
        "{\"requested\":0,\"modified\":\"now\"}",
        "{\"requested\":1}",
        "{\"requested\":\"1\",\"modified\":\"now\"}",
        "{\"requested\":1,\"modified\":\"0123456789012345678901234567890123456789\"}",
        "7",
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        json_t *document = json_pack("{s:s, s:s, s:s}", "version", "1", "description", "", "revision", "r");
        struct document_alias alias;

        assert_int_equal(document_read_alias(document, &alias), 0);
        assert_int_equal(alias.provisioned.requested, 0);
        json_object_set_new(document, "provisioned", json_loads(bad[i], JSON_DECODE_ANY, NULL));
        assert_int_equal(document_read_alias(document, &alias), -EPROTO);
        json_decref(document);
    }
}

/* --- restart --- */

static void test_everything_is_there_after_a_restart(void **state)
{
    struct fixture *fixture = *state;
    struct code_package package = create_function(fixture, "f", "1");
    const struct catalog_alias *alias;
    const struct catalog_function *function;
    char revision[64];

    publish_version(fixture, "f");
    publish_version(fixture, "f");
    run(fixture, (struct step){.edit = set_reserved, .name = "f", .has_reserved = true, .reserved = 9});
    run(fixture,
        (struct step){
            .edit = set_alias, .name = "f", .text = "live", .number = "1", .additional = "2", .weight = 0.125});
    snprintf(revision, sizeof(revision), "%s", find(fixture, "f")->latest->config->revision_id);

    restart(fixture);
    assert_journal(fixture, "created:f latest:first published:1 published:2 alias:live reserved:9");
    function = find(fixture, "f");
    assert_string_equal(function->latest->config->revision_id, revision);
    assert_int_equal(function->next_version, 3);
    assert_int_equal(function->reserved, 9);
    assert_int_equal(function->scope->reserved_total, 9);
    assert_int_equal(function->scope->code_bytes, 3 * package.zip_bytes);
    alias = catalog_find_alias(function, SPAN("live"));
    assert_string_equal(alias->version->number, "1");
    assert_string_equal(alias->additional->number, "2");
    assert_true(alias->additional_weight == 0.125);
    assert_string_equal(alias->description, "for tests");
    assert_int_equal(alias->version->alias_references, 1);
    assert_non_null(catalog_find_unchanged(function));
    assert_true(testing_has_package(&fixture->world, package.sha256));
}

/* Puts the documents of a function that was killed between creation and settling. */
static void put_unsettled(struct fixture *fixture, const char *sha256)
{
    json_t *document = make_document("", 128);
    struct document_version version = {
        .state = CATALOG_PENDING,
        .update = CATALOG_UPDATE_NONE,
        .revision_id = "before-the-crash",
        .code_sha256 = span_from(sha256),
        .configuration = document,
    };
    struct function_facts facts = {.next_version = 1, .tags = json_object()};
    struct store_batch *batch = store_batch_new();
    struct buffer bytes = BUFFER_INIT;

    assert_int_equal(document_write_function(&facts, &bytes), 0);
    assert_int_equal(
        store_batch_put(batch, DOCUMENT_FUNCTIONS, SPAN("111122223333/us-east-1/f"), STORE_ANY, buffer_span(&bytes)),
        0);
    bytes.length = 0;
    assert_int_equal(document_write_version(&version, &bytes), 0);
    assert_int_equal(store_batch_put(batch, DOCUMENT_VERSIONS, SPAN("111122223333/us-east-1/f/$LATEST"), STORE_ANY,
                                     buffer_span(&bytes)),
                     0);
    store_commit(fixture->world.store, batch, NULL, NULL);
    testing_run(&fixture->world);
    buffer_deinit(&bytes);
    json_decref(document);
    json_decref(facts.tags);
}

static void test_unsettled_function_settles_after_a_crash(void **state)
{
    struct fixture *fixture = *state;
    struct code_package package = testing_package(&fixture->world, "1");
    const struct catalog_function *function;

    put_unsettled(fixture, package.sha256);
    restart(fixture);
    function = find(fixture, "f");
    assert_int_equal(function->latest->state, CATALOG_ACTIVE);
    assert_string_not_equal(function->latest->config->revision_id, "before-the-crash");
    assert_journal(fixture, "created:f latest:first");
    restart(fixture);
    assert_int_equal(find(fixture, "f")->latest->state, CATALOG_ACTIVE);
}

static void test_documents_of_a_newer_format_are_refused(void **state)
{
    struct fixture *fixture = *state;
    struct store_batch *batch = store_batch_new();
    struct fault fault = {0};

    assert_int_equal(store_batch_put(batch, DOCUMENT_FUNCTIONS, SPAN("111122223333/us-east-1/f"), STORE_ANY,
                                     SPAN("{\"format\":2,\"next_version\":1,\"tags\":{}}")),
                     0);
    store_commit(fixture->world.store, batch, NULL, NULL);
    testing_run(&fixture->world);
    testing_shut(&fixture->world);
    testing_reopen(&fixture->world, 0);
    assert_int_equal(catalog_load(fixture->world.catalog, &fault), -EPROTO);
    assert_non_null(strstr(fault.text, "111122223333/us-east-1/f"));
}

/* --- lanes --- */

static void test_lane_runs_one_mutation_at_a_time_in_order(void **state)
{
    struct fixture *fixture = *state;
    int order = 0;
    struct step steps[3];

    create_function(fixture, "f", "1");
    for (int i = 0; i < 3; i++) {
        steps[i] = (struct step){.edit = publish, .name = "f", .order = &order};
        submit(&steps[i], fixture);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(finish(&steps[i]), 0);
        assert_int_equal(steps[i].built_at, 2 * i + 1);
        assert_int_equal(steps[i].done_at, 2 * i + 2);
    }
    assert_string_equal(steps[2].version->number, "3");
}

static void test_refused_mutation_changes_nothing_and_frees_the_lane(void **state)
{
    struct fixture *fixture = *state;
    struct step refused = {.edit = refuse};
    struct step next = {.edit = publish, .name = "f"};

    create_function(fixture, "f", "1");
    submit(&refused, fixture);
    assert_true(refused.done); /* nothing to wait for */
    assert_int_equal(refused.status, 42);
    submit(&next, fixture);
    assert_int_equal(finish(&next), 0);
    assert_string_equal(next.version->number, "1");
}

static void test_update_waiting_behind_another_sees_it_in_progress(void **state)
{
    struct fixture *fixture = *state;
    struct code_package package = create_function(fixture, "f", "1");
    struct step first = {.edit = update, .name = "f", .text = "", .package = package};
    struct step second = {.edit = refuse};

    submit(&first, fixture);
    submit(&second, fixture);
    finish(&first);
    /* What its build would have seen: the settling stands behind it in the lane. */
    assert_true(catalog_is_settling(find(fixture, "f")));
    assert_int_equal(finish(&second), 42);
    testing_run(&fixture->world);
    assert_false(catalog_is_settling(find(fixture, "f")));
}

static void test_lanes_of_other_regions_do_not_wait(void **state)
{
    struct fixture *fixture = *state;
    struct step here = {.edit = publish, .name = "f"};
    struct step there = {.edit = refuse, .mutation = {.build = on_build, .on_done = on_done}};

    create_function(fixture, "f", "1");
    submit(&here, fixture);
    assert_int_equal(catalog_submit(fixture->world.catalog, ACCOUNT, SPAN("eu-west-1"), &there.mutation), 0);
    assert_true(there.done);
    assert_false(here.done);
    assert_int_equal(finish(&here), 0);
}

static void test_waiting_mutations_are_cancelled_at_the_end(void **state)
{
    struct fixture *fixture = *state;
    struct step first = {.edit = publish, .name = "f"};
    struct step second = {.edit = publish, .name = "f"};

    create_function(fixture, "f", "1");
    submit(&first, fixture);
    submit(&second, fixture);
    testing_shut(&fixture->world); /* closing the store still ends what can be ended */
    assert_true(first.done);
    assert_int_equal(first.status, 0);
    assert_true(second.done);
    testing_reopen(&fixture->world, 0);
    start_journal(fixture);
    testing_load(&fixture->world);
    assert_non_null(catalog_find_version(find(fixture, "f"), SPAN("1")));
}

static void test_catalog_may_be_freed_while_a_commit_is_under_way(void **state)
{
    struct fixture *fixture = *state;
    struct code_package package = testing_package(&fixture->world, "1");
    struct step step = {.edit = create_published, .name = "f", .package = package};
    struct step late = {.mutation = {.build = on_build, .on_done = on_done}};
    struct catalog *catalog = catalog_ref(fixture->world.catalog);

    submit(&step, fixture);
    fixture->world.catalog = catalog_free(fixture->world.catalog);
    assert_int_equal(step.status, -ECANCELED);
    assert_int_equal(catalog_submit(catalog, ACCOUNT, REGION, &late.mutation), -ECANCELED);
    assert_null(catalog_find_function(catalog, ACCOUNT, REGION, SPAN("f")));
    catalog_unref(catalog);
    code_release(fixture->world.code, package.sha256);
    testing_shut(&fixture->world); /* where the commit ends */

    testing_reopen(&fixture->world, 0);
    start_journal(fixture);
    testing_load(&fixture->world);
    assert_non_null(find(fixture, "f")); /* it became durable, and its package was not taken away */
    assert_true(testing_has_package(&fixture->world, package.sha256));
}

/* --- failures --- */

static void test_failed_commit_changes_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct code_package package = create_function(fixture, "f", "1");
    struct code_package other;
    const struct catalog_function *function;

    publish_version(fixture, "f");
    testing_shut(&fixture->world);
    testing_reopen(&fixture->world, 1); /* every commit fails */
    start_journal(fixture);
    testing_load(&fixture->world);
    buffer_deinit(&fixture->journal.text);
    other = testing_package(&fixture->world, "2");

    assert_int_equal(run(fixture, (struct step){.edit = update, .name = "f", .text = "x", .package = other}), -EAGAIN);
    assert_int_equal(
        run(fixture, (struct step){.edit = create, .name = "g", .package = testing_package(&fixture->world, "3")}),
        -EAGAIN);
    assert_int_equal(run(fixture, (struct step){.edit = publish, .name = "f"}), -EAGAIN);
    assert_int_equal(run(fixture, (struct step){.edit = set_alias, .name = "f", .text = "live", .number = "1"}),
                     -EAGAIN);
    assert_int_equal(run(fixture, (struct step){.edit = set_provisioned, .name = "f", .text = "1", .provisioned = 1}),
                     -EAGAIN);
    assert_int_equal(run(fixture, (struct step){.edit = delete_version, .name = "f", .number = "1"}), -EAGAIN);
    assert_int_equal(run(fixture, (struct step){.edit = delete_function, .name = "f"}), -EAGAIN);
    assert_int_equal(
        run(fixture, (struct step){.edit = set_reserved, .name = "f", .has_reserved = true, .reserved = 1}), -EAGAIN);
    testing_run(&fixture->world);

    assert_journal(fixture, "");
    function = find(fixture, "f");
    assert_string_equal(function->latest->config->code_sha256, package.sha256);
    assert_false(catalog_is_settling(function));
    assert_int_equal(function->versions.count, 1);
    assert_int_equal(function->aliases.count, 0);
    assert_int_equal(function->next_version, 2);
    assert_false(function->has_reserved);
    assert_int_equal(function->provisioned_total, 0);
    assert_null(find(fixture, "g"));
    assert_false(testing_has_package(&fixture->world, other.sha256));
}

static int allocations_left;

static void *failing_malloc(size_t size)
{
    return allocations_left-- > 0 ? malloc(size) : NULL;
}

/* Every allocation of the JSON library fails once; whatever the edit came to, nothing half-made is seen or left. */
static void check_edit_survives_exhaustion(struct fixture *fixture, struct step template)
{
    int status = -1;

    for (int allowed = 0; status != 0; allowed++) {
        struct step step = template;
        unsigned versions = (unsigned)find(fixture, "f")->versions.count;
        uint64_t next = find(fixture, "f")->next_version;

        allocations_left = allowed;
        json_set_alloc_funcs(failing_malloc, free);
        submit(&step, fixture);
        json_set_alloc_funcs(malloc, free);
        status = finish(&step);
        assert_true(allowed > 0 || status != 0);
        if (status == 0)
            break;
        assert_int_equal(status, -ENOMEM);
        assert_int_equal(find(fixture, "f")->versions.count, versions);
        assert_int_equal(find(fixture, "f")->next_version, next);
        assert_true(allowed < 10000);
    }
    testing_run(&fixture->world);
}

static void test_running_out_of_memory_refuses_one_change(void **state)
{
    struct fixture *fixture = *state;

    create_function(fixture, "f", "1");
    check_edit_survives_exhaustion(fixture, (struct step){.edit = publish, .name = "f", .text = "first"});
    check_edit_survives_exhaustion(fixture,
                                   (struct step){.edit = set_alias, .name = "f", .text = "live", .number = "1"});
    check_edit_survives_exhaustion(
        fixture, (struct step){.edit = set_provisioned, .name = "f", .text = "live", .provisioned = 3});
    check_edit_survives_exhaustion(fixture,
                                   (struct step){.edit = set_provisioned, .name = "f", .text = "1", .provisioned = 3});
    assert_int_equal(find(fixture, "f")->provisioned_total, 6);
    assert_int_equal(find(fixture, "f")->versions.count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(test_new_function_is_pending_until_settled),
        TEST(test_configuration_is_read_from_its_document),
        TEST(test_update_leaves_old_configuration_in_force_until_settled),
        TEST(test_deleted_function_leaves_nothing),
        TEST(test_function_can_be_deleted_before_it_settles),
        TEST(test_published_version_is_a_copy_with_its_own_description),
        TEST(test_version_published_with_its_function_settles_with_it),
        TEST(test_publishing_again_is_known_to_change_nothing),
        TEST(test_change_of_description_alone_counts_as_a_change),
        TEST(test_version_numbers_are_never_used_again),
        TEST(test_versions_stay_in_order_past_nine_and_a_restart),
        TEST(test_alias_counts_its_references),
        TEST(test_qualifiers_resolve_to_versions_and_aliases),
        TEST(test_reserved_concurrency_adds_up_over_functions),
        TEST(test_provisioned_concurrency_adds_up),
        TEST(test_provisioned_concurrency_goes_with_its_alias_version_or_function),
        TEST(test_provisioned_concurrency_is_there_after_a_restart_and_stays_through_edits),
        TEST(test_document_with_broken_provisioned_concurrency_is_refused),
        TEST(test_everything_is_there_after_a_restart),
        TEST(test_unsettled_function_settles_after_a_crash),
        TEST(test_documents_of_a_newer_format_are_refused),
        TEST(test_lane_runs_one_mutation_at_a_time_in_order),
        TEST(test_refused_mutation_changes_nothing_and_frees_the_lane),
        TEST(test_update_waiting_behind_another_sees_it_in_progress),
        TEST(test_lanes_of_other_regions_do_not_wait),
        TEST(test_waiting_mutations_are_cancelled_at_the_end),
        TEST(test_catalog_may_be_freed_while_a_commit_is_under_way),
        TEST(test_failed_commit_changes_nothing),
        TEST(test_running_out_of_memory_refuses_one_change),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
