# For the shell scripts that run in the guest: TAP, the daemon, its function and its cgroups.
# shellcheck shell=dash

cgroups=/sys/fs/cgroup
endpoint=http://127.0.0.1:4566
data=/var/lib/kiln
log=/run/kiln.log
number=0
: >/run/answer
: >/run/report
failures=0
launch= # how the daemon is started; words

# ---- TAP ----

plan() {
    echo "1..$1"
}

check() { # NAME [COMMAND]; the name is the command unless given
    number=$((number + 1))
    began=$(date +%s)
    said=$({ "${2:-$1}" && echo passed; } 2>&1)
    if [ "${said##*
}" = passed ]; then
        echo "ok $number - $1 ($(($(date +%s) - began)) s)"
    else
        failures=$((failures + 1))
        echo "not ok $number - $1"
        { echo "$said" && echo "the answer was: $(cat /run/answer)" && cat /run/report && tail -n 20 "$log"; } | sed 's/^/#   /'
    fi
}

fatal() {
    echo "Bail out! $1"
    sed 's/^/# /' "$log" /run/answer
    exit 1
}

done_testing() {
    exit $((failures > 0))
}

is() { # GOT WANTED
    [ "$1" = "$2" ] || { echo "got '$1', not '$2'" && return 1; }
}

await() { # COMMAND...; within 20 s
    for _ in $(seq 200); do
        "$@" >/dev/null && return
        sleep 0.1
    done
    echo "waited in vain for: $*"
    return 1
}

# ---- the daemon ----

start_daemon() { # OPTION...
    : >"$log"
    # shellcheck disable=SC2086
    $launch /test/kiln serve --data-dir "$data" --runtimes-dir /test/runtimes --network none "$@" >>"$log" 2>&1 &
    daemon=$!
    await is_up
}

is_up() {
    curl -sf "$endpoint/_kiln/health"
}

stop_daemon() {
    kill -TERM "$daemon"
    await not_running
}

# Neither the daemon nor its launcher nor an init of a sandbox, but for those that only wait to be reaped.
not_running() {
    # shellcheck disable=SC2013
    for process in $(grep -ls '^kiln' /proc/[0-9]*/comm); do
        ! grep -qs . "${process%comm}cmdline" || { echo "$process is still there" && return 1; }
    done
}

# Nothing is left: no process, no directory.
gone() {
    not_running && ! find "$cgroups" -type d -name kiln 2>/dev/null | grep .
}

has_warned() { # WORDS
    grep -i warn "$log" | grep -F -- "$1"
}

has_not_warned() {
    ! grep -i warn "$log"
}

# ---- the function ----

# Another function in the place of the last one, with environments of its own.
new_function() { # MEMORY_MIB TIMEOUT_S
    curl -s -X DELETE "$endpoint/2015-03-31/functions/hungry" >/run/answer
    sed "s/\"MemorySize\": [0-9]*/\"MemorySize\": $1/; s/\"Timeout\": [0-9]*/\"Timeout\": $2/" /test/create.json |
        curl -s --max-time 60 --data-binary @- "$endpoint/2015-03-31/functions" >/run/answer
    grep -q FunctionArn /run/answer && await is_active && await no_sandbox
}

is_active() {
    curl -s "$endpoint/2015-03-31/functions/hungry" | grep -E '"State": ?"Active"'
}

# The answer is in /run/answer, the tail of the log in /run/report.
invoke() { # EVENT
    curl -s --max-time 100 -H 'X-Amz-Log-Type: Tail' -D /run/headers --data-binary "$1" \
        "$endpoint/2015-03-31/functions/hungry/invocations" >/run/answer || return
    sed -n 's/^x-amz-log-result: *//Ip' /run/headers | tr -d '\r' | base64 -d >/run/report
}

answers() { # EVENT TEXT: the answer has the text in it
    invoke "$1" && { grep -qF -- "$2" /run/answer || { echo "no '$2' in the answer" && return 1; }; }
}

# How many events the process that answered last has had.
count() {
    sed -n 's/.*"count":\([0-9]*\).*/\1/p' /run/answer
}

# ---- cgroups ----

# The directory of the one sandbox that has been fitted.
sandbox() {
    # shellcheck disable=SC2044
    for directory in $(find "$cgroups" -type d -path '*/kiln/*/s[0-9]*' 2>/dev/null); do
        [ "$(cat "$directory/pids.max" 2>/dev/null)" = max ] || { echo "$directory" && return; }
    done
    return 1
}

no_sandbox() {
    ! sandbox
}

figure() { # NAME FILE
    sed -n "s/^$1 //p" "$2"
}

is_frozen() { # DIRECTORY
    [ "$(figure frozen "$1/cgroup.events")" = 1 ]
}
