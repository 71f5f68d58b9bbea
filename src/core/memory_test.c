/* Without memory nothing happens, and nothing is left behind (the sanitizer looks). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/core.h"

#include "base/failing_alloc.h"

static int start_environment(struct core_environment *environment, void *context)
{
    *(struct core_environment **)context = environment;
    return 0;
}

static const struct core_effects EFFECTS = {.start_environment = start_environment};

/* Sets up an account with a function, a version, an alias and PC, and invokes once; -ENOMEM as soon as something fails.
 */
static int use_everything(struct placement **ret_placement, struct core_account **ret_account)
{
    struct core_limits limits = core_limits_default();
    struct core_environment *started = NULL;
    struct placement_worker_config config = {.zone = 0};
    struct placement_worker *worker;
    struct core_function *function;
    struct core_version *version;
    struct core_alias *alias;
    struct core_request request;
    struct counting_throttle throttle;
    struct routing routing = {0};
    int32_t number;
    int r;

    if ((r = placement_new(ret_placement)) < 0 || (r = placement_add_worker(*ret_placement, &config, &worker)) < 0 ||
        (r = core_account_new(&limits, *ret_placement, &EFFECTS, &started, ret_account)) < 0 ||
        (r = core_function_add(*ret_account, SPAN("f"), NULL, &function)) < 0 ||
        (r = core_version_add(function, SPAN("1"), 128, NULL, &version)) < 0)
        return r;
    routing.version = version;
    if ((r = core_alias_add(function, SPAN("live"), &routing, NULL, &alias)) < 0 ||
        (r = core_provisioned_put(*ret_account, &(struct core_qualifier){.alias = alias}, 1, 0, &number)) < 0)
        return r;
    core_request_init(&request, NULL);
    r = core_invoke(*ret_account, &(struct core_qualifier){.version = version}, &request, 0, 0, &throttle);
    core_validate(*ret_account);
    if (r < 0)
        assert_int_equal(request.state, CORE_REQUEST_NEW);
    return r;
}

static void test_every_allocation_may_fail(void **state)
{
    unsigned successes = 0;
    int r;

    (void)state;
    do {
        struct placement *placement = NULL;
        struct core_account *account = NULL;
        failing_alloc_after(successes);
        r = use_everything(&placement, &account);
        assert_int_equal(failing_alloc_stop() > 0, r < 0);
        assert_true(r == -ENOMEM || r == CORE_WAITING);
        core_account_free(account);
        placement_free(placement);
        successes++;
    } while (r < 0);
    assert_in_range(successes, 10, 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
