#!/bin/sh
# The whole daemon on a host with cgroup v2: what its functions may use, and what is left of it. Prints TAP.
# shellcheck disable=SC2119,SC2317 # cases are called by their names
# shellcheck source=SCRIPTDIR/lib.sh
. /test/lib.sh

memory_within_the_limit_is_granted() {
    answers '{"alloc_mib":400}' '"error":"none"'
}

memory_past_the_limit_kills_and_the_next_starts_clean() {
    answers '{"alloc_mib":600}' Runtime.ExitError && grep -q 'signal: killed' /run/answer &&
        answers '{}' '{"count":1,"error":"none"}'
}

tmp_full_is_enospc_and_nobody_is_killed() {
    answers '{"fill_mib":600}' '"error":"ENOSPC"' && before=$(count) && answers '{}' '"error":"none"' &&
        is "$(count)" $((before + 1))
}

memory_is_all_there_beside_a_full_tmp_and_still_limited() {
    answers '{"alloc_mib":400}' '"error":"none"' && answers '{"alloc_mib":150}' 'signal: killed'
}

a_hanging_function_times_out_and_the_next_starts_clean() {
    answers '{"hang":1}' 'Task timed out after 2.00 seconds' && answers '{}' '{"count":1,"error":"none"}'
}

limits_are_written_to_the_cgroup() {
    answers '{}' '"error":"none"' && directory=$(sandbox) &&
        is "$(cat "$directory/memory.max")" $(((512 + 512) * 1048576)) &&
        is "$(cat "$directory/memory.high")" $((512 * 1048576)) &&
        is "$(cat "$directory/cpu.max")" '5788 20000' && is "$(cat "$directory/cpu.weight")" 28 &&
        is "$(cat "$directory/pids.max")" 1025
}

an_idle_function_is_frozen_and_thawed_by_the_next_invoke() {
    answers '{"spin":1}' '"error":"none"' && before=$(count) && directory=$(sandbox) && await is_frozen "$directory" &&
        used=$(figure usage_usec "$directory/cpu.stat") && sleep 1 &&
        is "$(figure usage_usec "$directory/cpu.stat")" "$used" && answers '{}' '"error":"none"' &&
        is "$(count)" $((before + 1))
}

a_killed_daemon_leaves_nothing_of_a_frozen_function() {
    await is_frozen "$(sandbox)" && kill -KILL "$daemon" && await gone
}

it_starts_again_and_ends_in_order() {
    start_daemon && answers '{}' '{"count":1,"error":"none"}' && stop_daemon && gone
}

start_daemon || fatal 'the daemon does not start'
plan 10
check there_is_nothing_to_warn_of has_not_warned
new_function 512 90 || fatal 'the function cannot be created'
check memory_within_the_limit_is_granted
check memory_past_the_limit_kills_and_the_next_starts_clean
check limits_are_written_to_the_cgroup
check tmp_full_is_enospc_and_nobody_is_killed
check memory_is_all_there_beside_a_full_tmp_and_still_limited
new_function 256 2 || fatal 'the function cannot be created again'
check a_hanging_function_times_out_and_the_next_starts_clean
check an_idle_function_is_frozen_and_thawed_by_the_next_invoke
check a_killed_daemon_leaves_nothing_of_a_frozen_function
check it_starts_again_and_ends_in_order
done_testing
