/*
 * The order inside plan_fit is the security argument, so it is spelled out there and tested: mounts need privileges and
 * come first; the change of uid clears the permitted set (not in a user namespace, hence the explicit drop) and the
 * parent-death signal, so the signal is set again after it; the filter comes last because it forbids most of the above.
 * The bounding set, which takes CAP_SETPCAP, is emptied once in the launcher and inherited.
 *
 * Files of /etc that change at run time on some hosts (resolv.conf) are copied when the launcher starts: a bind would
 * pin the old inode in the same way, and a bind of the whole directory would show too much.
 */
#include "sandbox/plan.h"

#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

enum { HOSTS_MAX = 64 * 1024 };

#define READ_ONLY_CODE (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

void plan_deinit(struct plan *plan)
{
    arena_deinit(&plan->strings);
    plan->count = 0;
}

static struct plan_op *add(struct plan *plan, enum plan_action action, const char *target, const char *source,
                           uint64_t value)
{
    if (plan->count == PLAN_OPS_MAX) {
        plan->error = plan->error ? plan->error : -E2BIG;
        return &plan->ops[PLAN_OPS_MAX];
    }
    plan->ops[plan->count] = (struct plan_op){.action = action, .target = target, .source = source, .value = value};
    return &plan->ops[plan->count++];
}

static const char *print(struct plan *plan, const char *format, ...) PRINTF_LIKE(2, 3);

static const char *print(struct plan *plan, const char *format, ...)
{
    char text[512];
    va_list args;
    const char *copy;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    copy = arena_dup(&plan->strings, span_from(text));
    if (!copy)
        plan->error = -ENOMEM;
    return copy;
}

/* ---- the host ---- */

/* What of the host a function may see, besides /usr. Account names, keys and the host's own services stay out. */
static const char *const shown[] = {
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc/host.conf",
    "/etc/gai.conf",
    "/etc/resolv.conf",
    "/etc/nsswitch.conf",
    "/etc/services",
    "/etc/protocols",
    "/etc/localtime",
    "/etc/timezone",
    "/etc/mime.types",
    "/etc/os-release",
    "/etc/debian_version",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/pki/tls/certs",
    "/etc/pki/ca-trust",
    "/etc/pki/java",
    "/etc/ca-certificates",
    "/etc/crypto-policies",
    "/etc/alternatives",
    "/etc/fonts",
};

static int probe_entry(struct plan_host *host, const char *path)
{
    struct plan_entry *entry = &host->entries[host->entry_count];
    char link[512];
    struct stat status;
    ssize_t length;

    if (host->entry_count == PLAN_ENTRIES_MAX || lstat(path, &status) < 0)
        return 0;
    *entry = (struct plan_entry){.path = arena_dup(&host->strings, span_from(path))};
    if (!entry->path)
        return -ENOMEM;
    if (S_ISLNK(status.st_mode)) {
        length = readlink(path, link, sizeof(link));
        if (length <= 0 || length == (ssize_t)sizeof(link))
            return 0;
        entry->kind = PLAN_ENTRY_SYMLINK;
        entry->link = arena_dup(&host->strings, span_of(link, (size_t)length));
        if (!entry->link)
            return -ENOMEM;
    } else if (S_ISDIR(status.st_mode)) {
        entry->kind = PLAN_ENTRY_DIRECTORY;
    } else if (S_ISREG(status.st_mode)) {
        entry->kind = PLAN_ENTRY_FILE;
    } else {
        return 0;
    }
    host->entry_count++;
    return 0;
}

/* Debian's JVMs keep their configuration in /etc/java-17-openjdk and the like. */
static int probe_java(struct plan_host *host)
{
    glob_t found;
    int r = 0;

    if (glob("/etc/java-*", 0, NULL, &found) != 0)
        return 0;
    for (size_t i = 0; r == 0 && i < found.gl_pathc; i++)
        r = probe_entry(host, found.gl_pathv[i]);
    globfree(&found);
    return r;
}

/* The host's names; ours are added in plan_base. */
static int probe_hosts(struct plan_host *host)
{
    CLEANUP(cleanup_close) int fd = open("/etc/hosts", O_RDONLY | O_CLOEXEC);
    char *text = arena_alloc(&host->strings, HOSTS_MAX + 1);
    ssize_t n;

    if (!text)
        return -ENOMEM;
    n = fd < 0 ? 0 : read(fd, text, HOSTS_MAX);
    text[MAX(n, 0)] = '\0';
    host->hosts = text;
    return 0;
}

int plan_probe(bool rootless, const char *data_dir, struct plan_host *ret_host)
{
    int r = 0;

    *ret_host = (struct plan_host){.rootless = rootless, .data_dir = data_dir};
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(shown); i++)
        r = probe_entry(ret_host, shown[i]);
    if (r == 0)
        r = probe_java(ret_host);
    if (r == 0)
        r = probe_hosts(ret_host);
    if (r < 0)
        plan_host_deinit(ret_host);
    return r;
}

void plan_host_deinit(struct plan_host *host)
{
    arena_deinit(&host->strings);
    host->entry_count = 0;
}

/* ---- base ---- */

static const char *const directories[] = {"/dev",         "/dev/shm", "/etc",     "/mnt",     "/opt",
                                          "/proc",        "/run",     "/sys",     "/var",     "/var/task",
                                          "/var/runtime", "/var/lib", "/etc/ssl", "/etc/pki", "/etc/pki/tls"};

static bool is_below(const char *path, const char *directory)
{
    size_t length = strlen(directory);

    return strncmp(path, directory, length) == 0 && path[length] == '/';
}

/* A link is kept as it is where its end is shown too; a file elsewhere (resolv.conf of systemd-resolved) is copied. */
static bool link_stays_visible(const struct plan_entry *entry)
{
    const char *link = entry->link;

    while (strncmp(link, "../", 3) == 0)
        link += 3;
    if (*link == '/')
        link++;
    return strncmp(link, "usr/", 4) == 0 || (strchr(entry->path + 1, '/') == NULL && strncmp(link, "lib", 3) == 0);
}

static void plan_entry(struct plan *plan, const struct plan_host *host, const struct plan_entry *entry)
{
    switch (entry->kind) {
    case PLAN_ENTRY_DIRECTORY:
        add(plan, PLAN_DIRECTORY, entry->path, NULL, 0755);
        add(plan, PLAN_BIND, entry->path, entry->path, READ_ONLY_CODE);
        if (host->data_dir && (is_below(host->data_dir, entry->path) || strcmp(host->data_dir, entry->path) == 0))
            add(plan, PLAN_TMPFS, host->data_dir, "size=4k,mode=755", READ_ONLY_CODE)->optional = true;
        break;
    case PLAN_ENTRY_SYMLINK:
        if (link_stays_visible(entry))
            add(plan, PLAN_SYMLINK, entry->path, entry->link, 0);
        else
            add(plan, PLAN_COPY, entry->path, entry->path, 0)->optional = true;
        break;
    case PLAN_ENTRY_FILE:
        add(plan, PLAN_COPY, entry->path, entry->path, 0)->optional = true;
        break;
    case PLAN_ENTRY_ABSENT:
        break;
    }
}

/* The names that subscribers of the Telemetry API listen at, as documented. They stand for the loopback, where
 * everything that listens inside can be reached, and come first: nothing of the host's may take their place. */
static void plan_hosts(struct plan *plan, const struct plan_host *host)
{
    const char *hosts = host->hosts && host->hosts[0] ? host->hosts : "127.0.0.1\tlocalhost\n::1\tlocalhost\n";
    const char *text = arena_printf(&plan->strings, "127.0.0.1\tsandbox.localdomain sandbox\n%s%s",
                                    host->more_hosts ? host->more_hosts : "", hosts);

    if (!text)
        plan->error = -ENOMEM;
    else
        add(plan, PLAN_FILE, "/etc/hosts", text, 0);
}

static void plan_devices(struct plan *plan, bool rootless)
{
    static const struct {
        const char *path;
        unsigned minor, major;
    } devices[] = {{"/dev/null", 3, 1},   {"/dev/zero", 5, 1},    {"/dev/full", 7, 1},
                   {"/dev/random", 8, 1}, {"/dev/urandom", 9, 1}, {"/dev/tty", 0, 5}};

    for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
        /* A user namespace may not make devices, only show the host's. */
        if (rootless)
            add(plan, PLAN_BIND_FILE, devices[i].path, devices[i].path, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
        else
            add(plan, PLAN_DEVICE, devices[i].path, NULL, makedev(devices[i].major, devices[i].minor));
    }
    add(plan, PLAN_SYMLINK, "/dev/fd", "/proc/self/fd", 0);
    add(plan, PLAN_SYMLINK, "/dev/stdin", "/proc/self/fd/0", 0);
    add(plan, PLAN_SYMLINK, "/dev/stdout", "/proc/self/fd/1", 0);
    add(plan, PLAN_SYMLINK, "/dev/stderr", "/proc/self/fd/2", 0);
}

int plan_base(const struct plan_host *host, struct plan *ret_plan)
{
    *ret_plan = (struct plan){0};
    for (size_t i = 0; i < ARRAY_SIZE(directories); i++)
        add(ret_plan, PLAN_DIRECTORY, directories[i], NULL, 0755);
    add(ret_plan, PLAN_DIRECTORY, "/tmp", NULL, 01777);
    for (size_t i = 0; i < host->entry_count; i++)
        if (!host->resolv_conf || strcmp(host->entries[i].path, "/etc/resolv.conf") != 0)
            plan_entry(ret_plan, host, &host->entries[i]);
    if (host->resolv_conf)
        add(ret_plan, PLAN_FILE, "/etc/resolv.conf", host->resolv_conf, 0);
    add(ret_plan, PLAN_SYMLINK, "/etc/passwd", "../run/passwd", 0);
    add(ret_plan, PLAN_SYMLINK, "/etc/group", "../run/group", 0);
    plan_hosts(ret_plan, host);
    plan_devices(ret_plan, host->rootless);
    add(ret_plan, PLAN_DROP_BOUNDING, NULL, NULL, 0); /* the launcher executes nothing itself */
    return ret_plan->error;
}

/* ---- shell ---- */

/* Files of /proc that concern the host and not the sandbox. No uid of a sandbox could write them; some could be read.
 */
static const char *const masked[] = {"/proc/kcore",         "/proc/keys",        "/proc/key-users", "/proc/timer_list",
                                     "/proc/sysrq-trigger", "/proc/sched_debug", "/proc/kmsg",      "/proc/kallsyms",
                                     "/proc/acpi",          "/proc/scsi",        "/proc/bus",       "/proc/fs",
                                     "/proc/irq",           "/proc/driver",      "/proc/interrupts"};

enum { OOM_SCORE = 500 };

/*
 * Programs ask for the name of their user (os.userInfo of Node fails without); every sandbox has a uid of its own,
 * which the files for all of them cannot know. The name is one of the service's (recorded); the host's account names
 * are none of a function's business.
 */
static void plan_accounts(struct plan *plan, const struct plan_identity *identity)
{
    add(plan, PLAN_TMPFS, "/run", "size=16k,mode=755", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
    add(plan, PLAN_FILE, "/run/passwd",
        print(plan,
              "root:x:0:0:root:/root:/sbin/nologin\nnobody:x:65534:65534:nobody:/:/sbin/nologin\n"
              "sbx_user1051:x:%u:%u::/home/sbx_user1051:/sbin/nologin\n",
              identity->uid, identity->gid),
        0);
    add(plan, PLAN_FILE, "/run/group", print(plan, "root:x:0:\nnogroup:x:65534:\nsbx_user1051:x:%u:\n", identity->gid),
        0);
    add(plan, PLAN_READ_ONLY, "/run", NULL, 0);
}

int plan_shell(const struct plan_identity *identity, struct plan *ret_plan)
{
    *ret_plan = (struct plan){0};
    add(ret_plan, PLAN_HOSTNAME, NULL,
        print(ret_plan, "169-254-%u-%u", identity->index / 254 % 256, identity->index % 254 + 1), 0);
    add(ret_plan, PLAN_PROC, "/proc", NULL, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
    plan_accounts(ret_plan, identity);
    add(ret_plan, PLAN_OOM_SCORE, NULL, NULL, OOM_SCORE);
    add(ret_plan, PLAN_READ_ONLY, "/proc/sys", NULL, 0);
    for (size_t i = 0; i < ARRAY_SIZE(masked); i++)
        add(ret_plan, PLAN_MASK, masked[i], NULL, 0)->optional = true;
    return ret_plan->error;
}

/* ---- fit ---- */

/* ext4 makes an inode for every 16 KiB; an inode of tmpfs costs kernel memory, which counts as the function's. */
enum { TMP_INODES_PER_MIB = 64 };

static void limit(struct plan *plan, int resource, uint64_t value)
{
    add(plan, PLAN_RLIMIT, NULL, NULL, (uint64_t)resource)->limit = value;
}

static void plan_limits(struct plan *plan, bool limit_by_uid)
{
    limit(plan, RLIMIT_NOFILE, PLAN_FILES_MAX);
    limit(plan, RLIMIT_CORE, 0);
    limit(plan, RLIMIT_MSGQUEUE, 819200);
    limit(plan, RLIMIT_MEMLOCK, 65536);
    if (limit_by_uid) /* init counts too */
        limit(plan, RLIMIT_NPROC, PLAN_PROCESSES_MAX + 1);
}

int plan_fit(const struct plan_fit *fit, struct plan *ret_plan)
{
    const uint64_t data_attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

    *ret_plan = (struct plan){0};
    add(ret_plan, PLAN_TMPFS, "/tmp",
        print(ret_plan, "size=%um,nr_inodes=%u,mode=1777", fit->tmp_mib, fit->tmp_mib * TMP_INODES_PER_MIB),
        data_attributes);
    add(ret_plan, PLAN_TMPFS, "/dev/shm", print(ret_plan, "size=%um,mode=1777", fit->memory_mib),
        data_attributes | MOUNT_ATTR_NOEXEC);
    add(ret_plan, PLAN_ATTACH, "/var/task", NULL, PLAN_ATTACH_TASK);
    if (fit->has_opt)
        add(ret_plan, PLAN_ATTACH, "/opt", NULL, PLAN_ATTACH_OPT);
    if (fit->has_runtime)
        add(ret_plan, PLAN_ATTACH, "/var/runtime", NULL, PLAN_ATTACH_RUNTIME);
    plan_limits(ret_plan, fit->limit_by_uid);
    add(ret_plan, PLAN_SESSION, NULL, NULL, 0);
    add(ret_plan, PLAN_NO_NEW_PRIVILEGES, NULL, NULL, 0);
    add(ret_plan, PLAN_IDS, NULL, NULL, fit->identity.uid)->limit = fit->identity.gid;
    add(ret_plan, PLAN_DROP_CAPABILITIES, NULL, NULL, 0);
    add(ret_plan, PLAN_UNDUMPABLE, NULL, NULL, 0);
    add(ret_plan, PLAN_DEATH_SIGNAL, NULL, NULL, 0);
    add(ret_plan, PLAN_SECCOMP, NULL, NULL, 0);
    return ret_plan->error;
}
