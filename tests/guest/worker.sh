#!/bin/sh
# What the worker does with cgroups. Its other tests say nothing about the version of these, and their times (an Init of
# 400 ms, a freeze after 300) are made for a real processor. Prints TAP.
export TEST_BOOTSTRAP=/test/test_bootstrap TEST_RUNTIMES=/test/runtimes
failed=0
pick() { # PROGRAM TEST...
    program=$1
    shift
    for TEST_FILTER in "$@"; do
        export TEST_FILTER
        "/test/$program" || failed=1
    done
}
pick worker_sandbox_test test_frozen_environment_thaws_for_its_event test_out_of_memory_is_killed_and_named \
    test_tmp_is_kept_over_a_reset
pick worker_invoke_sandbox_test test_orphans_die_with_the_reset
exit "$failed"
