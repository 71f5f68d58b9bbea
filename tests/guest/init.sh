#!/usr/bin/busybox sh
# Process 1 of the guest: a host with cgroup v2 alone, on which nothing else runs. The kernel hands `suites` over as a
# variable. What is said here goes to the second serial port.
# shellcheck shell=dash
/usr/bin/busybox mount -t devtmpfs dev /dev 2>/dev/null # some kernels have done so
exec >/dev/ttyS1 2>&1
/usr/bin/busybox --install -s /usr/bin # names that are there already stay
export PATH=/usr/bin:/usr/sbin HOME=/root LD_LIBRARY_PATH=
export CMOCKA_MESSAGE_OUTPUT=TAP
mount -t proc proc /proc
mount -t sysfs sys /sys
mkdir -p /dev/shm /dev/pts
mount -t tmpfs shm /dev/shm
mount -t tmpfs run /run
mkdir -p /run/lock
ln -sf /proc/self/fd /dev/fd
mount -t cgroup2 cgroup /sys/fs/cgroup
ip link set lo up
insmod /test/overlay.ko
echo "# guest is up"
uname -a | sed 's/^/# /'
echo "# controllers: $(cat /sys/fs/cgroup/cgroup.controllers)"

began=$(date +%s)
suite() { # NAME SECONDS COMMAND...
    name=$1
    seconds=$2
    shift 2
    # shellcheck disable=SC2154
    case ",$suites," in *",$name,"*) ;; *) return ;; esac
    echo "# suite $name"
    timeout -s KILL "$seconds" "$@"
    echo "# suite $name ended with $?"
    echo "# $(($(date +%s) - began)) s since the start"
}

cd /test || exit
suite cgroup 60 ./sandbox_cgroup_test
suite sandbox 400 ./sandbox_test /test/sandbox_probe
suite worker 120 sh /test/worker.sh
suite daemon 300 sh /test/daemon.sh
suite places 400 sh /test/places.sh
sync
poweroff -f
