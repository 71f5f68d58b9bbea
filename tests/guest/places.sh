#!/bin/sh
# Where in the tree the daemon makes its cgroups: as a systemd service, delegated to or not, and in containers. Prints TAP.
# shellcheck disable=SC2119,SC2317 # cases are called by their names
# shellcheck source=SCRIPTDIR/lib.sh
. /test/lib.sh

# Hands controllers down to the children of a directory, as a service manager does before it starts anything there.
hand_down() { # DIRECTORY CONTROLLERS
    for controller in $2; do
        echo "+$controller" >"$1/cgroup.subtree_control" || return
    done
}

service() { # CONTROLLERS: the cgroup of a service is made, and what starts the daemon in it
    unit=$cgroups/system.slice/kiln.service
    mkdir -p "$unit" && hand_down "$cgroups" 'memory pids cpu' && hand_down "$cgroups/system.slice" "$1" &&
        launch="sh /test/enter.sh $unit"
}

# The cgroup directories are made anew for every case.
leave() {
    kill -TERM "$daemon" 2>/dev/null
    await not_running || return
    [ ! -d "$cgroups/machine" ] || echo 1 >"$cgroups/machine/cgroup.kill"
    for directory in system.slice/kiln.service/kiln-daemon system.slice/kiln.service system.slice \
        machine/kiln-daemon machine; do
        [ ! -d "$cgroups/$directory" ] || await rmdir "$cgroups/$directory" || return
    done
    launch=
    rm -rf "$data"
}

functions_work_below() { # DIRECTORY
    new_function 256 60 && answers '{}' '{"count":1,"error":"none"}' && case $(sandbox) in
    "$1"/kiln/*/s*) ;;
    *) echo "the sandbox is at $(sandbox)" && return 1 ;;
    esac
}

memory_is_limited() {
    answers '{"alloc_mib":300}' 'signal: killed' && answers '{}' '{"count":1,"error":"none"}'
}

nothing_survives_a_kill() {
    kill -KILL "$daemon" && await gone
}

a_service_without_delegation_uses_the_root_of_the_tree() {
    service 'memory pids cpu' && start_daemon && has_not_warned && functions_work_below "$cgroups" &&
        memory_is_limited && nothing_survives_a_kill && leave
}

a_delegated_service_uses_its_own_cgroup() {
    service 'memory pids cpu' && /test/delegate "$unit" && start_daemon && has_not_warned &&
        functions_work_below "$unit" && memory_is_limited && [ ! -d "$cgroups/kiln" ] &&
        is "$(cat "$unit/cgroup.procs")" '' && nothing_survives_a_kill && leave
}

a_killed_launcher_leaves_nothing_in_a_delegated_cgroup() {
    service 'memory pids cpu' && /test/delegate "$unit" && start_daemon && functions_work_below "$unit" &&
        kill -KILL "$(launcher)" && await gone && leave
}

launcher() {
    grep -ls '^kiln-launcher$' /proc/[0-9]*/comm | sed 's,[^0-9],,g'
}

without_the_cpu_controller_it_warns_and_works() {
    service 'memory pids' && /test/delegate "$unit" && start_daemon && is "$(grep -ci warn "$log")" 1 &&
        has_warned 'CPU is not shared in proportion to MemorySize' && functions_work_below "$unit" &&
        memory_is_limited && leave
}

in_a_container_others_make_way() {
    mkdir "$cgroups/machine" && hand_down "$cgroups" 'memory pids cpu' && launch="sh /test/enter.sh $cgroups/machine rw" &&
        start_daemon && has_not_warned && functions_work_below "$cgroups/machine" && memory_is_limited &&
        is "$(cat "$cgroups/machine/cgroup.procs")" '' && nothing_survives_a_kill &&
        launch="sh /test/enter.sh $cgroups/machine/kiln-daemon join" && start_daemon && has_not_warned &&
        functions_work_below "$cgroups/machine" && leave
}

with_cgroups_read_only_it_warns_and_works() {
    mkdir "$cgroups/machine" && launch="sh /test/enter.sh $cgroups/machine ro" && start_daemon &&
        has_warned MemorySize && has_warned CPU && has_warned processes && has_warned frozen && new_function 256 60 &&
        answers '{}' '{"count":1,"error":"none"}' && leave
}

plan 6
for case in a_service_without_delegation_uses_the_root_of_the_tree a_delegated_service_uses_its_own_cgroup \
    a_killed_launcher_leaves_nothing_in_a_delegated_cgroup without_the_cpu_controller_it_warns_and_works \
    in_a_container_others_make_way with_cgroups_read_only_it_warns_and_works; do
    check "$case"
done
done_testing
