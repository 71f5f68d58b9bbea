#include "sandbox/cgroup.h"

#include "base/buffer.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

static const char *const controllers[CGROUP_TREES] = {
    [CGROUP_MEMORY] = "memory", [CGROUP_CPU] = "cpu", [CGROUP_PIDS] = "pids"};

/* Beside kiln/, for processes that are in the way. */
static const char leaf[] = "kiln-daemon";

enum { VACATE_TRIES = 8 };

/* ---- probing ---- */

static bool has_word(struct span text, char separator, const char *word)
{
    struct span rest = text;

    while (rest.data)
        if (span_equal(span_cut(&rest, separator), span_from(word)))
            return true;
    return false;
}

static void set_mount(char path[128], struct span mount)
{
    if (!path[0] && mount.length < 128)
        snprintf(path, 128, "%.*s", SPAN_ARG(mount));
}

/* "36 35 98:0 /root /mount options optional... - type source super-options" */
static void parse_mount(struct span line, struct cgroup_mounts *mounts)
{
    ptrdiff_t dash = span_find_span(line, SPAN(" - "));
    struct span head, tail, root, mount, type;

    if (dash < 0)
        return;
    head = span_slice(line, 0, (size_t)dash);
    tail = span_slice(line, (size_t)dash + 3, line.length);
    for (int i = 0; i < 3; i++)
        span_cut(&head, ' ');
    root = span_cut(&head, ' ');
    mount = span_cut(&head, ' ');
    type = span_cut(&tail, ' ');
    span_cut(&tail, ' ');
    if (!span_equal(root, SPAN("/")))
        return;
    if (span_equal(type, SPAN("cgroup2")))
        set_mount(mounts->paths[CGROUP_UNIFIED], mount);
    if (!span_equal(type, SPAN("cgroup")))
        return;
    for (int i = CGROUP_MEMORY; i < CGROUP_TREES; i++)
        if (has_word(tail, ',', controllers[i]))
            set_mount(mounts->paths[i], mount);
}

void cgroup_parse_mounts(struct span mountinfo, struct cgroup_mounts *ret_mounts)
{
    *ret_mounts = (struct cgroup_mounts){0};
    while (mountinfo.data)
        parse_mount(span_cut(&mountinfo, '\n'), ret_mounts);
}

/* "0::/system.slice/kiln.service"; a path that leaves the root of the cgroup namespace begins with "/..". */
void cgroup_parse_own(struct span text, char ret_path[256])
{
    ret_path[0] = '\0';
    while (text.data) {
        struct span line = span_cut(&text, '\n');
        struct span path = span_slice(line, MIN(line.length, strlen("0::/")), line.length);
        if (!span_starts_with(line, SPAN("0::/")) || span_starts_with(path, SPAN("..")) || path.length >= 256)
            continue;
        snprintf(ret_path, 256, "%.*s", SPAN_ARG(path));
        char *last = strrchr(ret_path, '/') ? strrchr(ret_path, '/') : ret_path;
        if (strcmp(last + (*last == '/'), leaf) == 0)
            *last = '\0';
    }
}

static int read_file(int directory, const char *path, struct buffer *buffer)
{
    CLEANUP(cleanup_close) int fd = openat(directory, path, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    if (fd < 0)
        return -errno;
    do {
        int r = buffer_reserve(buffer, 4096);
        if (r < 0)
            return r;
        n = read(fd, buffer->data + buffer->length, 4096);
        if (n < 0)
            return -errno;
        buffer->length += (size_t)n;
    } while (n > 0);
    return 0;
}

static int write_text(const struct cgroup_host *host, int directory, const char *path, const char *text)
{
    CLEANUP(cleanup_close) int fd = openat(directory, path, O_WRONLY | O_CLOEXEC | host->create_flags, 0644);
    ssize_t n;

    if (fd < 0)
        return -errno;
    do /* memory limits are interrupted by signals while they reclaim */
        n = write(fd, text, strlen(text));
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : 0;
}

static void see_controllers(struct cgroup_host *host, const char *directory)
{
    CLEANUP(buffer_deinit) struct buffer text = BUFFER_INIT;
    char path[96];

    snprintf(path, sizeof(path), "%s/cgroup.controllers", directory);
    if (host->roots[CGROUP_UNIFIED] < 0 || read_file(host->roots[CGROUP_UNIFIED], path, &text) < 0)
        return;
    for (int i = CGROUP_MEMORY; i < CGROUP_TREES; i++)
        host->on_unified[i] =
            has_word(span_trim(span_of(text.data, text.length - (text.length > 0))), ' ', controllers[i]);
}

int cgroup_host_open(const struct cgroup_mounts *mounts, struct cgroup_host *ret_host)
{
    struct cgroup_host host = {.roots = {-1, -1, -1, -1}};

    for (int i = 0; i < CGROUP_TREES; i++) {
        if (!mounts->paths[i][0])
            continue;
        host.roots[i] = open(mounts->paths[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (host.roots[i] < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM)) {
            int error = -errno;
            cgroup_host_deinit(&host);
            return error;
        }
    }
    see_controllers(&host, ".");
    *ret_host = host;
    return 0;
}

/* A mount of the unified tree that only this descriptor reaches. */
static int mount_unified(void)
{
    CLEANUP(cleanup_close) int context = fsopen("cgroup2", FSOPEN_CLOEXEC);

    if (context < 0 || fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return -1;
    return fsmount(context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
}

/* systemd marks what it has delegated: since version 251 in the first way, before in the second. */
static bool is_delegated(int directory)
{
    char value;

    return (fgetxattr(directory, "user.delegate", &value, 1) == 1 && value == '1') ||
           (fgetxattr(directory, "trusted.delegate", &value, 1) == 1 && value == '1');
}

static int enter_delegated(struct cgroup_host *host)
{
    CLEANUP(buffer_deinit) struct buffer text = BUFFER_INIT;
    CLEANUP(cleanup_close) int own = -1;
    char path[256];
    int r = read_file(AT_FDCWD, "/proc/self/cgroup", &text);

    if (r < 0)
        return r;
    cgroup_parse_own(buffer_span(&text), path);
    if (path[0] && host->roots[CGROUP_UNIFIED] >= 0)
        own = openat(host->roots[CGROUP_UNIFIED], path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (own < 0 || !is_delegated(own))
        return 0;
    cleanup_close(&host->roots[CGROUP_UNIFIED]);
    host->roots[CGROUP_UNIFIED] = TAKE_FD(own);
    see_controllers(host, ".");
    return 0;
}

int cgroup_host_probe(struct cgroup_host *ret_host)
{
    CLEANUP(buffer_deinit) struct buffer text = BUFFER_INIT;
    struct cgroup_mounts mounts;
    int r = read_file(AT_FDCWD, "/proc/self/mountinfo", &text);

    if (r < 0)
        return r;
    cgroup_parse_mounts(buffer_span(&text), &mounts);
    r = cgroup_host_open(&mounts, ret_host);
    if (r < 0)
        return r;
    if (ret_host->roots[CGROUP_UNIFIED] < 0) {
        ret_host->roots[CGROUP_UNIFIED] = mount_unified();
        see_controllers(ret_host, ".");
    }
    r = enter_delegated(ret_host);
    if (r < 0)
        cgroup_host_deinit(ret_host);
    return r;
}

void cgroup_host_deinit(struct cgroup_host *host)
{
    for (int i = 0; i < CGROUP_TREES; i++)
        cleanup_close(&host->roots[i]);
}

bool cgroup_host_has(const struct cgroup_host *host, enum cgroup_tree controller)
{
    return host->on_unified[controller] || host->roots[controller] >= 0;
}

/* ---- the instance ---- */

/* A directory may be left from another instance or run. */
static int make_directory(int root, const char *path)
{
    return mkdirat(root, path, 0755) < 0 && errno != EEXIST ? -errno : 0;
}

/* Moves what is in the root of the unified tree to the leaf. One that ends or cannot be moved shows in what follows. */
static void vacate(const struct cgroup_host *host)
{
    CLEANUP(buffer_deinit) struct buffer text = BUFFER_INIT;
    struct span rest;
    char path[64], pid[16];

    if (make_directory(host->roots[CGROUP_UNIFIED], leaf) < 0 ||
        read_file(host->roots[CGROUP_UNIFIED], "cgroup.procs", &text) < 0)
        return;
    snprintf(path, sizeof(path), "%s/cgroup.procs", leaf);
    rest = buffer_span(&text);
    while (rest.data) {
        struct span line = span_cut(&rest, '\n');
        snprintf(pid, sizeof(pid), "%.*s", SPAN_ARG(line));
        if (pid[0] && strcmp(pid, "0") != 0) /* 0: of a pid namespace that is not seen from here */
            (void)!write_text(host, host->roots[CGROUP_UNIFIED], path, pid);
    }
}

/* Hands memory, cpu and pids down from `directory`; one for which this is refused counts as absent. */
static void enable_controllers(struct cgroup_host *host, const char *directory)
{
    char path[96], text[16];

    snprintf(path, sizeof(path), "%s/cgroup.subtree_control", directory);
    for (int i = CGROUP_MEMORY; i < CGROUP_TREES; i++) {
        snprintf(text, sizeof(text), "+%s", controllers[i]);
        if (host->on_unified[i] && write_text(host, host->roots[CGROUP_UNIFIED], path, text) < 0)
            host->on_unified[i] = false;
    }
}

/* The same where processes may be in the way. They may fork while they are being moved, hence the repetition. */
static void enable_root_controllers(struct cgroup_host *host)
{
    for (int i = CGROUP_MEMORY; i < CGROUP_TREES; i++) {
        char text[16];
        snprintf(text, sizeof(text), "+%s", controllers[i]);
        for (int tries = 0; tries < VACATE_TRIES && host->on_unified[i] &&
                            write_text(host, host->roots[CGROUP_UNIFIED], "cgroup.subtree_control", text) == -EBUSY;
             tries++)
            vacate(host);
    }
    enable_controllers(host, ".");
}

/* A tree mounted read-only (containers) or kept from us counts as absent: the host then enforces less, and says so. */
static bool is_out_of_reach(int error)
{
    return error == -EROFS || error == -EACCES || error == -EPERM;
}

static void give_up(struct cgroup_host *host, enum cgroup_tree tree)
{
    cleanup_close(&host->roots[tree]);
    for (int i = CGROUP_MEMORY; i < CGROUP_TREES && tree == CGROUP_UNIFIED; i++)
        host->on_unified[i] = false;
}

/* Another Kiln that ends may remove kiln/, empty as it is, between the two steps: then once more. */
static int make_base(const struct cgroup_host *host, enum cgroup_tree tree)
{
    int r = -ENOENT;

    for (int tries = 0; tries < 10 && r == -ENOENT; tries++) {
        r = make_directory(host->roots[tree], "kiln");
        if (r == 0)
            r = make_directory(host->roots[tree], host->base);
    }
    return r;
}

static int prepare_tree(struct cgroup_host *host, enum cgroup_tree tree, struct fault *fault)
{
    int r = make_base(host, tree);

    if (is_out_of_reach(r)) {
        give_up(host, tree);
        return 0;
    }
    if (r < 0)
        return fault_set(fault, -r, "cannot make the cgroup %s: %s", host->base, strerror(-r));
    if (tree == CGROUP_UNIFIED) {
        enable_root_controllers(host);
        enable_controllers(host, "kiln");
        enable_controllers(host, host->base);
    }
    return 0;
}

/* One way to each controller: v1 trees are dropped where the unified one serves. */
static void drop_unused(struct cgroup_host *host)
{
    for (int i = CGROUP_MEMORY; i < CGROUP_TREES; i++)
        if (host->on_unified[i])
            cleanup_close(&host->roots[i]);
}

int cgroup_host_prepare(struct cgroup_host *host, const char *instance, struct fault *fault)
{
    int r = cgroup_host_clean(host, instance, 2000);

    if (r < 0)
        return fault_set(fault, -r, "cgroups of an earlier run (kiln/%s) cannot be removed: %s", instance,
                         strerror(-r));
    for (int i = 0; r == 0 && i < CGROUP_TREES; i++) {
        if (host->roots[i] < 0)
            continue;
        r = prepare_tree(host, (enum cgroup_tree)i, fault);
        if (i == CGROUP_UNIFIED)
            drop_unused(host);
    }
    return r;
}

static void kill_below(const struct cgroup_host *host)
{
    char path[96];

    snprintf(path, sizeof(path), "%s/cgroup.kill", host->base);
    if (host->roots[CGROUP_UNIFIED] >= 0 && faccessat(host->roots[CGROUP_UNIFIED], path, W_OK, 0) == 0)
        (void)!write_text(host, host->roots[CGROUP_UNIFIED], path, "1");
}

/* Removes the children and then the directory itself. */
static int remove_below(int root, const char *base)
{
    int fd = openat(root, base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    int r = 0;

    if (!directory)
        return errno == ENOENT ? 0 : -errno;
    while ((entry = readdir(directory)))
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.' && unlinkat(fd, entry->d_name, AT_REMOVEDIR) < 0)
            r = -errno;
    closedir(directory);
    if (r == 0 && unlinkat(root, base, AT_REMOVEDIR) < 0 && errno != ENOENT)
        r = -errno;
    if (r == 0)
        (void)!unlinkat(root, "kiln", AT_REMOVEDIR); /* refused while another instance is there */
    return r;
}

int cgroup_host_clean(struct cgroup_host *host, const char *instance, int wait_ms)
{
    int r = 0;

    snprintf(host->base, sizeof(host->base), "kiln/%s", instance);
    kill_below(host);
    for (int waited = 0;; waited += 2) {
        r = 0;
        for (int i = 0; i < CGROUP_TREES; i++) {
            int removed = host->roots[i] < 0 ? 0 : remove_below(host->roots[i], host->base);
            r = removed < 0 ? removed : r;
        }
        if (r != -EBUSY || waited >= wait_ms)
            return r;
        poll(NULL, 0, 2);
    }
}

/* ---- one sandbox ---- */

static int resolve(const struct cgroup_host *host, enum cgroup_tree controller)
{
    return host->on_unified[controller] ? host->roots[CGROUP_UNIFIED] : host->roots[controller];
}

int cgroup_make(const struct cgroup_host *host, const char *name)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/%s", host->base, name);
    for (int i = 0; i < CGROUP_TREES; i++) {
        int r = host->roots[i] < 0 ? 0 : make_directory(host->roots[i], path);
        if (r < 0) {
            (void)!cgroup_remove(host, name);
            return r;
        }
    }
    return 0;
}

int cgroup_remove(const struct cgroup_host *host, const char *name)
{
    char path[128];
    int r = 0;

    snprintf(path, sizeof(path), "%s/%s", host->base, name);
    for (int i = 0; i < CGROUP_TREES; i++)
        if (host->roots[i] >= 0 && unlinkat(host->roots[i], path, AT_REMOVEDIR) < 0 && errno != ENOENT)
            r = -errno;
    return r;
}

int cgroup_open(const struct cgroup_host *host, enum cgroup_tree controller, const char *name, const char *file,
                int flags, int *ret_fd)
{
    int root = resolve(host, controller);
    char path[192];
    int fd;

    if (root < 0)
        return -ENOENT;
    snprintf(path, sizeof(path), "%s/%s/%s", host->base, name, file);
    fd = openat(root, path, flags | O_CLOEXEC, 0644);
    if (fd < 0)
        return -errno;
    *ret_fd = fd;
    return 0;
}

int cgroup_open_unified(const struct cgroup_host *host, const char *name, int *ret_fd)
{
    return cgroup_open(host, CGROUP_UNIFIED, name, ".", O_RDONLY | O_DIRECTORY, ret_fd);
}

/* ---- limits ---- */

enum {
    MIB_PER_VCPU = 1769,   /* Lambda: one vCPU at 1,769 MB */
    CPU_PERIOD_US = 20000, /* a short period keeps small functions from long stalls */
    CPU_QUOTA_MIN_US = 1000,
    MIB = 1024 * 1024,
};

struct setting_list {
    struct cgroup_setting *settings;
    size_t count;
};

static void add(struct setting_list *list, enum cgroup_tree tree, const char *file, bool optional, const char *format,
                ...) PRINTF_LIKE(5, 6);

static void add(struct setting_list *list, enum cgroup_tree tree, const char *file, bool optional, const char *format,
                ...)
{
    struct cgroup_setting *setting = &list->settings[list->count++];
    va_list args;

    *setting = (struct cgroup_setting){.tree = tree, .file = file, .optional = optional};
    va_start(args, format);
    vsnprintf(setting->value, sizeof(setting->value), format, args);
    va_end(args);
}

static void add_memory(const struct cgroup_host *host, const struct cgroup_limits *limits, struct setting_list *list)
{
    uint64_t memory = (uint64_t)limits->memory_mib * MIB, hard = memory + (uint64_t)limits->tmp_mib * MIB;

    if (host->on_unified[CGROUP_MEMORY]) {
        add(list, CGROUP_UNIFIED, "memory.max", false, "%llu", (unsigned long long)hard);
        add(list, CGROUP_UNIFIED, "memory.high", false, "%llu", (unsigned long long)memory);
        add(list, CGROUP_UNIFIED, "memory.swap.max", true, "0");
    } else if (host->roots[CGROUP_MEMORY] >= 0) {
        add(list, CGROUP_MEMORY, "memory.limit_in_bytes", false, "%llu", (unsigned long long)hard);
        add(list, CGROUP_MEMORY, "memory.memsw.limit_in_bytes", true, "%llu", (unsigned long long)hard);
        add(list, CGROUP_MEMORY, "memory.swappiness", true, "0");
    }
}

static void add_cpu(const struct cgroup_host *host, const struct cgroup_limits *limits, struct setting_list *list)
{
    unsigned long long memory = limits->memory_mib;
    unsigned long long quota = MAX(memory * CPU_PERIOD_US / MIB_PER_VCPU, (unsigned long long)CPU_QUOTA_MIN_US);

    if (host->on_unified[CGROUP_CPU]) {
        add(list, CGROUP_UNIFIED, "cpu.weight", false, "%llu", MIN(MAX(memory * 100 / MIB_PER_VCPU, 1ull), 10000ull));
        if (limits->cpu_unlimited)
            add(list, CGROUP_UNIFIED, "cpu.max", false, "max %d", CPU_PERIOD_US);
        else
            add(list, CGROUP_UNIFIED, "cpu.max", false, "%llu %d", quota, CPU_PERIOD_US);
    } else if (host->roots[CGROUP_CPU] >= 0) {
        add(list, CGROUP_CPU, "cpu.shares", false, "%llu", MAX(memory * 1024 / MIB_PER_VCPU, 2ull));
        add(list, CGROUP_CPU, "cpu.cfs_period_us", true, "%d", CPU_PERIOD_US);
        if (limits->cpu_unlimited)
            add(list, CGROUP_CPU, "cpu.cfs_quota_us", true, "-1");
        else
            add(list, CGROUP_CPU, "cpu.cfs_quota_us", true, "%llu", quota);
    }
}

size_t cgroup_settings(const struct cgroup_host *host, const struct cgroup_limits *limits,
                       struct cgroup_setting ret_settings[CGROUP_SETTINGS_MAX])
{
    struct setting_list list = {.settings = ret_settings};

    add_memory(host, limits, &list);
    add_cpu(host, limits, &list);
    if (cgroup_host_has(host, CGROUP_PIDS)) /* init is not the function's */
        add(&list, host->on_unified[CGROUP_PIDS] ? CGROUP_UNIFIED : CGROUP_PIDS, "pids.max", false, "%u",
            limits->processes + 1);
    return list.count;
}

static int write_settings(const struct cgroup_host *host, const char *name, const struct setting_list *list,
                          struct fault *fault)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct cgroup_setting *setting = &list->settings[i];
        char path[192];
        int r;

        snprintf(path, sizeof(path), "%s/%s/%s", host->base, name, setting->file);
        r = write_text(host, host->roots[setting->tree], path, setting->value);
        if (r < 0 && !setting->optional)
            return fault_set(fault, -r, "cannot set %s to %s: %s", setting->file, setting->value, strerror(-r));
    }
    return 0;
}

int cgroup_apply(const struct cgroup_host *host, const char *name, const struct cgroup_limits *limits,
                 struct fault *fault)
{
    struct cgroup_setting settings[CGROUP_SETTINGS_MAX];
    struct setting_list list = {.settings = settings, .count = cgroup_settings(host, limits, settings)};

    return write_settings(host, name, &list, fault);
}

int cgroup_apply_cpu(const struct cgroup_host *host, const char *name, const struct cgroup_limits *limits,
                     struct fault *fault)
{
    struct cgroup_setting settings[CGROUP_SETTINGS_MAX];
    struct setting_list list = {.settings = settings};

    add_cpu(host, limits, &list);
    return write_settings(host, name, &list, fault);
}
