/* IAM's records when memory fails; the rules are in tests/conformance/iam.test.mjs. */
#include "api/testing.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define ROLE     "&RoleName=r"
#define DOCUMENT "%7B%22Statement%22%3A%5B%5D%7D"

static int setup(void **state)
{
    struct api_world *world = calloc(1, sizeof(*world));

    api_open(world);
    world->service = service_find(SPAN("iam"));
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    api_close(*state);
    free(*state);
    return 0;
}

static int exchange(struct api_world *world, const char *form)
{
    struct api_answer answer = api_exchange(world, "POST", "/", form);
    int status = answer.status;

    api_answer_deinit(&answer);
    return status;
}

static int allocations_left;

static void *failing_malloc(size_t size)
{
    return allocations_left-- > 0 ? malloc(size) : NULL;
}

/* Gives the JSON library one allocation more each time, until the action succeeds; `undo` (may be NULL) comes between.
 */
static void succeed_at_last(struct api_world *world, const char *form, const char *undo)
{
    int status = 0;

    for (int allowed = 0; status != 200; allowed++) {
        allocations_left = allowed;
        json_set_alloc_funcs(failing_malloc, free);
        status = exchange(world, form);
        json_set_alloc_funcs(malloc, free);
        assert_true(status == 200 || status == 400 || status == 500);
        assert_true(allowed < 2000);
        if (status != 200 && undo)
            exchange(world, undo);
    }
}

static void test_actions_survive_exhaustion_at_any_point(void **state)
{
    struct api_world *world = *state;

    succeed_at_last(world,
                    "Action=CreateRole" ROLE "&AssumeRolePolicyDocument=" DOCUMENT
                    "&Tags.member.1.Key=k&Tags.member.1.Value=v",
                    "Action=DeleteRole" ROLE);
    succeed_at_last(world, "Action=PutRolePolicy" ROLE "&PolicyName=p&PolicyDocument=" DOCUMENT, NULL);
    succeed_at_last(world, "Action=AttachRolePolicy" ROLE "&PolicyArn=arn:aws:iam::aws:policy/P", NULL);
    succeed_at_last(world, "Action=GetRole" ROLE, NULL);
    succeed_at_last(world, "Action=ListRoles", NULL);
    succeed_at_last(world, "Action=ListAttachedRolePolicies" ROLE, NULL);
    succeed_at_last(world, "Action=ListRolePolicies" ROLE, NULL);
    succeed_at_last(world, "Action=CreatePolicy&PolicyName=p&PolicyDocument=" DOCUMENT,
                    "Action=DeletePolicy&PolicyArn=arn:aws:iam::111111111111:policy/p");
    succeed_at_last(world, "Action=ListPolicies", NULL);
    assert_int_equal(exchange(world, "Action=DeleteRole" ROLE), 409);
}

static void test_records_are_there_after_a_restart(void **state)
{
    struct api_world *world = *state;

    assert_int_equal(exchange(world, "Action=CreateRole" ROLE "&AssumeRolePolicyDocument=" DOCUMENT), 200);
    api_restart(world);
    assert_int_equal(exchange(world, "Action=GetRole" ROLE), 200);
    assert_int_equal(exchange(world, "Action=DeleteRole" ROLE), 200);
    api_restart(world);
    assert_int_equal(exchange(world, "Action=GetRole" ROLE), 404);
}

static void test_actions_that_are_not_there_are_refused(void **state)
{
    struct api_world *world = *state;

    assert_int_equal(exchange(world, "Action=CreateUser&UserName=u"), 501);
    assert_int_equal(exchange(world, "UserName=u"), 400);
    assert_int_equal(exchange(world, "Action=%zz"), 400);
    assert_int_equal(exchange(world, "Action=GetRole&RoleName=%ff"), 400);
    assert_int_equal(exchange(world, ""), 400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(test_actions_survive_exhaustion_at_any_point),
        TEST(test_records_are_there_after_a_restart),
        TEST(test_actions_that_are_not_there_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
