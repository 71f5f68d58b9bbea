#include "catalog/catalog.h"
#include "catalog/document.h"
#include "catalog/testing.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define ACCOUNT SPAN("111122223333")
#define REGION  SPAN("us-east-1")

/* Records to put (a text) and to delete (NULL), all in one change. */
struct step {
    struct catalog_mutation mutation;
    enum catalog_record_kind kind;
    struct {
        const char *name;
        const char *text;
    } edits[3];
    bool done;
    int status;
};

static int on_build(struct catalog_mutation *mutation, struct catalog_change *change)
{
    struct step *step = CONTAINER_OF(mutation, struct step, mutation);
    int r = 0;

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(step->edits) && step->edits[i].name; i++) {
        struct span name = span_from(step->edits[i].name);
        json_t *document;
        if (!step->edits[i].text) {
            r = catalog_change_delete_record(change, step->kind, name);
            continue;
        }
        document = json_pack("{s:s}", "text", step->edits[i].text);
        r = document ? catalog_change_put_record(change, step->kind, name, document) : -ENOMEM;
        json_decref(document);
    }
    return r;
}

static void on_done(struct catalog_mutation *mutation, int status)
{
    struct step *step = CONTAINER_OF(mutation, struct step, mutation);

    step->done = true;
    step->status = status;
}

static int run_in(struct testing_world *world, struct span region, struct step step)
{
    step.mutation.build = on_build;
    step.mutation.on_done = on_done;
    assert_int_equal(catalog_submit(world->catalog, ACCOUNT, region, &step.mutation), 0);
    while (!step.done)
        uv_run(&world->loop, UV_RUN_ONCE);
    return step.status;
}

static int run(struct testing_world *world, struct step step)
{
    return run_in(world, REGION, step);
}

/* "" when there is none. */
static const char *find_in(struct testing_world *world, struct span region, enum catalog_record_kind kind,
                           const char *name)
{
    const struct catalog_scope *scope = catalog_find_scope(world->catalog, ACCOUNT, region);
    const json_t *document = catalog_find_record(scope, kind, span_from(name));

    return document ? json_string_value(json_object_get(document, "text")) : "";
}

static const char *find(struct testing_world *world, const char *name)
{
    return find_in(world, REGION, CATALOG_EVENT_SOURCE_MAPPING, name);
}

static void restart(struct testing_world *world, size_t waiting_bytes)
{
    testing_shut(world);
    testing_reopen(world, waiting_bytes);
    testing_load(world);
}

static int setup(void **state)
{
    struct testing_world *world = calloc(1, sizeof(*world));

    testing_open(world);
    testing_load(world);
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    testing_close(*state);
    free(*state);
    return 0;
}

static void test_records_are_made_replaced_and_deleted(void **state)
{
    struct testing_world *world = *state;

    assert_string_equal(find(world, "a"), "");
    assert_int_equal(run(world, (struct step){.edits = {{"a", "1"}, {"b", "2"}}}), 0);
    assert_string_equal(find(world, "a"), "1");
    assert_string_equal(find(world, "b"), "2");
    assert_int_equal(run(world, (struct step){.edits = {{"a", "3"}, {"b", NULL}, {"c", "4"}}}), 0);
    assert_string_equal(find(world, "a"), "3");
    assert_string_equal(find(world, "b"), "");
    assert_string_equal(find(world, "c"), "4");
}

static void test_kinds_and_regions_are_apart(void **state)
{
    struct testing_world *world = *state;

    assert_int_equal(run(world, (struct step){.edits = {{"a", "1"}}}), 0);
    assert_int_equal(run_in(world, CATALOG_GLOBAL, (struct step){.kind = CATALOG_ROLE, .edits = {{"a", "2"}}}), 0);
    assert_string_equal(find_in(world, CATALOG_GLOBAL, CATALOG_ROLE, "a"), "2");
    assert_string_equal(find_in(world, CATALOG_GLOBAL, CATALOG_EVENT_SOURCE_MAPPING, "a"), "");
    assert_string_equal(find_in(world, REGION, CATALOG_ROLE, "a"), "");
    assert_string_equal(find(world, "a"), "1");
}

static void test_records_are_there_after_a_restart(void **state)
{
    struct testing_world *world = *state;

    assert_int_equal(run(world, (struct step){.edits = {{"a", "1"}, {"b", "2"}, {"c", "3"}}}), 0);
    assert_int_equal(run(world, (struct step){.edits = {{"b", NULL}, {"c", "4"}}}), 0);
    assert_int_equal(run_in(world, CATALOG_GLOBAL, (struct step){.kind = CATALOG_ROLE, .edits = {{"r", "5"}}}), 0);
    restart(world, 0);
    assert_string_equal(find(world, "a"), "1");
    assert_string_equal(find(world, "b"), "");
    assert_string_equal(find(world, "c"), "4");
    assert_string_equal(find_in(world, CATALOG_GLOBAL, CATALOG_ROLE, "r"), "5");
    assert_int_equal(run(world, (struct step){.edits = {{"a", NULL}}}), 0);
    restart(world, 0);
    assert_string_equal(find(world, "a"), "");
}

static void test_failed_commit_changes_nothing(void **state)
{
    struct testing_world *world = *state;

    assert_int_equal(run(world, (struct step){.edits = {{"a", "1"}, {"b", "2"}}}), 0);
    restart(world, 1); /* every commit fails */
    assert_int_equal(run(world, (struct step){.edits = {{"a", "3"}, {"b", NULL}, {"c", "4"}}}), -EAGAIN);
    assert_string_equal(find(world, "a"), "1");
    assert_string_equal(find(world, "b"), "2");
    assert_string_equal(find(world, "c"), "");
    restart(world, 0);
    assert_string_equal(find(world, "a"), "1");
    assert_string_equal(find(world, "b"), "2");
    assert_string_equal(find(world, "c"), "");
}

/* --- records with a package --- */

/* One layer version "l:1" to put or to delete. */
struct layer_step {
    struct catalog_mutation mutation;
    const struct code_package *package; /* NULL: delete */
    bool done;
    int status;
};

static int on_layer_build(struct catalog_mutation *mutation, struct catalog_change *change)
{
    struct layer_step *step = CONTAINER_OF(mutation, struct layer_step, mutation);
    json_t *document;
    int r;

    if (!step->package)
        return catalog_change_delete_record(change, CATALOG_LAYER_VERSION, SPAN("l:1"));
    document =
        json_pack("{s:s, s:I}", "Package", step->package->sha256, "CodeSize", (json_int_t)step->package->zip_bytes);
    r = catalog_change_put_record(change, CATALOG_LAYER_VERSION, SPAN("l:1"), document);
    json_decref(document);
    return r;
}

static void on_layer_done(struct catalog_mutation *mutation, int status)
{
    struct layer_step *step = CONTAINER_OF(mutation, struct layer_step, mutation);

    step->done = true;
    step->status = status;
}

/* Submits without waiting; the step must live until it is done. */
static void submit_layer(struct testing_world *world, struct layer_step *step)
{
    step->mutation.build = on_layer_build;
    step->mutation.on_done = on_layer_done;
    assert_int_equal(catalog_submit(world->catalog, ACCOUNT, REGION, &step->mutation), 0);
}

static int run_layer(struct testing_world *world, const struct code_package *package)
{
    struct layer_step step = {.package = package};

    submit_layer(world, &step);
    while (!step.done)
        uv_run(&world->loop, UV_RUN_ONCE);
    testing_run(world);
    return step.status;
}

static uint64_t code_bytes(struct testing_world *world)
{
    return catalog_find_scope(world->catalog, ACCOUNT, REGION)->code_bytes;
}

static void test_package_is_held_and_counted_while_its_record_is_there(void **state)
{
    struct testing_world *world = *state;
    struct code_package package = testing_package(world, "layer");

    assert_int_equal(run_layer(world, &package), 0);
    code_release(world->code, package.sha256);
    testing_run(world);
    assert_true(testing_has_package(world, package.sha256));
    assert_int_equal(run_layer(world, &package), 0); /* the same once more: a change of other members */
    assert_int_equal(code_bytes(world), package.zip_bytes);
    restart(world, 0);
    assert_true(testing_has_package(world, package.sha256));
    assert_int_equal(code_bytes(world), package.zip_bytes);
    assert_int_equal(run_layer(world, NULL), 0);
    assert_false(testing_has_package(world, package.sha256));
    assert_int_equal(code_bytes(world), 0);
}

static void test_failed_commit_gives_the_package_back(void **state)
{
    struct testing_world *world = *state;
    struct code_package package;

    restart(world, 1); /* every commit fails */
    package = testing_package(world, "layer");
    assert_int_equal(run_layer(world, &package), -EAGAIN);
    assert_int_equal(code_bytes(world), 0);
    code_release(world->code, package.sha256);
    testing_run(world);
    assert_false(testing_has_package(world, package.sha256));
}

/* The program ends while the change is at the store, which may yet make it durable. */
static void test_package_stays_when_the_end_comes_before_the_answer(void **state)
{
    struct testing_world *world = *state;
    struct code_package package = testing_package(world, "layer");
    struct layer_step step = {.package = &package};

    submit_layer(world, &step);
    world->catalog = catalog_free(world->catalog);
    assert_true(step.done);
    assert_int_equal(step.status, -ECANCELED);
    testing_shut(world);
    testing_reopen(world, 0);
    testing_load(world);
    assert_true(testing_has_package(world, package.sha256));
    assert_int_equal(code_bytes(world), package.zip_bytes);
}

static void test_records_of_a_newer_format_are_refused(void **state)
{
    struct testing_world *world = *state;
    struct store_batch *batch = store_batch_new();
    struct fault fault = {0};

    assert_int_equal(store_batch_put(batch, SPAN("roles"), SPAN("111122223333/global/r"), STORE_ANY,
                                     SPAN("{\"format\":99,\"record\":{}}")),
                     0);
    store_commit(world->store, batch, NULL, NULL);
    testing_run(world);
    testing_shut(world);
    testing_reopen(world, 0);
    assert_int_equal(catalog_load(world->catalog, &fault), -EPROTO);
    assert_non_null(strstr(fault.text, "roles"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(test_records_are_made_replaced_and_deleted),
        TEST(test_kinds_and_regions_are_apart),
        TEST(test_records_are_there_after_a_restart),
        TEST(test_failed_commit_changes_nothing),
        TEST(test_records_of_a_newer_format_are_refused),
        TEST(test_package_is_held_and_counted_while_its_record_is_there),
        TEST(test_failed_commit_gives_the_package_back),
        TEST(test_package_stays_when_the_end_comes_before_the_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
