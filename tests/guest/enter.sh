#!/bin/sh
# enter.sh DIRECTORY COMMAND...         runs the command in this cgroup, as a service manager would
# enter.sh DIRECTORY rw|ro COMMAND...   the same in a new container, which sees the directory as the root of the tree
# enter.sh DIRECTORY join COMMAND...    the same in the last container, as a runtime's "exec" would
cgroup=$1
shift
echo $$ >"$cgroup/cgroup.procs" || exit
case $1 in
rw | ro)
    # The container has a process that is not the daemon's.
    # shellcheck disable=SC2016
    exec /usr/bin/unshare -C -m sh -c 'umount /sys/fs/cgroup && mount -t cgroup2 -o "$0" cgroup /sys/fs/cgroup || exit
        sleep 1000 &
        echo $! >/run/container
        exec "$@"' "$@"
    ;;
join)
    shift
    exec /usr/bin/nsenter -t "$(cat /run/container)" -C -m "$@"
    ;;
esac
exec "$@"
