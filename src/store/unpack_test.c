#include "store/unpack.h"

#include "base/buffer.h"
#include "store/tree.h"
#include "store/zip_builder.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#define FILE_0644(path, bytes)                                      \
    {                                                               \
        .name = SPAN(path), .mode = 0100644, .content = SPAN(bytes) \
    }
#define LINK(path, target)                                           \
    {                                                                \
        .name = SPAN(path), .mode = 0120777, .content = SPAN(target) \
    }

/* root/box is unpacked into; root/canary is what an escape would aim at. */
struct fixture {
    char root[64];
    int root_fd, box_fd;
    locale_t locale;
    struct unpack_config config;
    struct fault fault;
    uint64_t bytes;
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    strcpy(fixture->root, "/tmp/kiln-unpack-XXXXXX");
    assert_non_null(mkdtemp(fixture->root));
    assert_int_equal(tree_open(AT_FDCWD, fixture->root, &fixture->root_fd), 0);
    assert_int_equal(mkdirat(fixture->root_fd, "canary", 0700), 0);
    assert_int_equal(mkdirat(fixture->root_fd, "box", 0700), 0);
    assert_int_equal(tree_open(fixture->root_fd, "box", &fixture->box_fd), 0);
    fixture->locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    assert_true(fixture->locale != (locale_t)0);
    fixture->config = (struct unpack_config){.max_bytes = 1 << 20, .max_entries = 100, .locale = fixture->locale};
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    /* Nothing has left the box: the canary is still an empty directory, and it and the box are all there is. */
    assert_int_equal(unlinkat(fixture->root_fd, "canary", AT_REMOVEDIR), 0);
    assert_int_equal(tree_remove(fixture->root_fd, "box", NULL), 0);
    close(fixture->box_fd);
    close(fixture->root_fd);
    assert_int_equal(rmdir(fixture->root), 0);
    freelocale(fixture->locale);
    free(fixture);
    return 0;
}

static int unpack(struct fixture *fixture, struct span zip)
{
    return unpack_zip(zip, fixture->box_fd, &fixture->config, &fixture->bytes, &fixture->fault);
}

static int unpack_entries(struct fixture *fixture, const struct zip_entry *entries, size_t count)
{
    struct buffer zip = BUFFER_INIT;
    int r;

    zip_build(&zip, entries, count);
    r = unpack(fixture, buffer_span(&zip));
    buffer_deinit(&zip);
    return r;
}

static void assert_refused(struct fixture *fixture, const struct zip_entry *entries, size_t count, int result,
                           const char *sentence)
{
    assert_int_equal(unpack_entries(fixture, entries, count), result);
    assert_string_equal(fixture->fault.text, sentence);
}

/* A file in the box with this content and these permissions. */
static void assert_file(struct fixture *fixture, const char *path, const char *content, mode_t mode)
{
    char bytes[256];
    int fd = openat(fixture->box_fd, path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    ssize_t length;

    if (fd < 0)
        fail_msg("%s is not there", path);
    length = read(fd, bytes, sizeof(bytes) - 1);
    assert_true(length >= 0);
    bytes[length] = '\0';
    assert_string_equal(bytes, content);
    assert_int_equal(fstat(fd, &status), 0);
    assert_int_equal(status.st_mode & 07777, mode);
    close(fd);
}

static void assert_directory(struct fixture *fixture, const char *path, mode_t mode)
{
    struct stat status;

    assert_int_equal(fstatat(fixture->box_fd, path, &status, AT_SYMLINK_NOFOLLOW), 0);
    assert_true(S_ISDIR(status.st_mode));
    assert_int_equal(status.st_mode & 07777, mode);
}

/* --- names, without I/O --- */

static void refuse_name(struct span name, const char *problem)
{
    char clean[UNPACK_NAME_BYTES_MAX + 1];
    const char *found = unpack_check_name(name, clean);

    if (!found)
        fail_msg("\"%.*s\" was accepted", SPAN_ARG(name));
    assert_string_equal(found, problem);
}

static void accept_name(struct span name, const char *expected)
{
    char clean[UNPACK_NAME_BYTES_MAX + 1];
    const char *found = unpack_check_name(name, clean);

    if (found)
        fail_msg("\"%.*s\" %s", SPAN_ARG(name), found);
    assert_string_equal(clean, expected);
}

static void test_names_that_leave_are_refused(void **state)
{
    static const char out[] = "leads out of the package", absolute[] = "is absolute";

    (void)state;
    refuse_name(SPAN(".."), out);
    refuse_name(SPAN("../x"), out);
    refuse_name(SPAN("a/../x"), out);
    refuse_name(SPAN("a/.."), out);
    refuse_name(SPAN("./../x"), out);
    refuse_name(SPAN("a//..//x"), out);
    refuse_name(SPAN("..\\x"), out);
    refuse_name(SPAN("a\\..\\x"), out);
    refuse_name(SPAN("a/b\\.."), out);
    refuse_name(SPAN("/etc/passwd"), absolute);
    refuse_name(SPAN("//x"), absolute);
    refuse_name(SPAN("/"), absolute);
    refuse_name(SPAN("\\x"), absolute);
    refuse_name(SPAN(""), "has no name");
}

static void test_harmless_names_are_cleaned(void **state)
{
    (void)state;
    accept_name(SPAN("a"), "a");
    accept_name(SPAN("./a//b/./c/"), "a/b/c");
    accept_name(SPAN("."), "");
    accept_name(SPAN("./"), "");
    accept_name(SPAN("..."), "...");
    accept_name(SPAN("..a/b.."), "..a/b..");
    accept_name(SPAN(".hidden"), ".hidden");
    accept_name(SPAN("a\\b"), "a\\b");
    accept_name(SPAN("C:/x"), "C:/x");
    accept_name(SPAN(" \n\t\xff"), " \n\t\xff");
}

static void test_name_limits_and_one_past(void **state)
{
    char name[UNPACK_NAME_BYTES_MAX + 2];

    (void)state;
    memset(name, 'x', sizeof(name));
    accept_name(span_of(name, 255), strndupa(name, 255));
    refuse_name(span_of(name, 256), "has a name that is too long");
    for (size_t i = 200; i < sizeof(name); i += 201)
        name[i] = '/';
    accept_name(span_of(name, UNPACK_NAME_BYTES_MAX), strndupa(name, UNPACK_NAME_BYTES_MAX));
    refuse_name(span_of(name, UNPACK_NAME_BYTES_MAX + 1), "has a name that is too long");
}

static void test_depth_limit_and_one_past(void **state)
{
    char name[2 * UNPACK_DEPTH_MAX + 2];

    (void)state;
    for (size_t i = 0; i < sizeof(name); i++)
        name[i] = i % 2 ? '/' : 'd';
    accept_name(span_of(name, 2 * UNPACK_DEPTH_MAX - 1), strndupa(name, 2 * UNPACK_DEPTH_MAX - 1));
    refuse_name(span_of(name, 2 * UNPACK_DEPTH_MAX + 1), "is too deep");
}

static void refuse_link(struct span target, unsigned depth, const char *problem)
{
    const char *found = unpack_check_link(target, depth);

    if (!found)
        fail_msg("a link to \"%.*s\" was accepted", SPAN_ARG(target));
    assert_string_equal(found, problem);
}

static void test_links_that_leave_are_refused(void **state)
{
    static const char out[] = "is a link that leads out of the package";

    (void)state;
    refuse_link(SPAN(""), 3, "is a link to nothing");
    refuse_link(SPAN("/etc/passwd"), 3, "is a link to an absolute path");
    refuse_link(SPAN("\\etc"), 3, "is a link to an absolute path");
    refuse_link(SPAN(".."), 0, out);
    refuse_link(SPAN("../x"), 0, out);
    refuse_link(SPAN("./../x"), 0, out);
    refuse_link(SPAN("../../x"), 1, out);
    refuse_link(SPAN("..\\x"), 1, out);
    refuse_link(SPAN("a/.."), 3, "is a link with \"..\" behind another component");
    refuse_link(SPAN("../a/../../x"), 3, "is a link with \"..\" behind another component");
}

static void test_links_that_stay_are_accepted(void **state)
{
    (void)state;
    assert_null(unpack_check_link(SPAN("x"), 0));
    assert_null(unpack_check_link(SPAN("a/b/c"), 0));
    assert_null(unpack_check_link(SPAN("./a//b/"), 0));
    assert_null(unpack_check_link(SPAN("."), 0));
    assert_null(unpack_check_link(SPAN(".."), 1));
    assert_null(unpack_check_link(SPAN("../../x"), 2));
}

/* --- refused zips; teardown checks that nothing got out --- */

static void test_entry_that_climbs_is_refused(void **state)
{
    const struct zip_entry entries[] = {FILE_0644("ok", "x"), FILE_0644("../canary/x", "x")};

    assert_refused(*state, entries, 2, CODE_BAD_ENTRY, "entry \"../canary/x\" leads out of the package");
}

static void test_absolute_entry_is_refused(void **state)
{
    const struct zip_entry entries[] = {FILE_0644("/tmp/kiln-escaped", "x")};

    assert_refused(*state, entries, 1, CODE_BAD_ENTRY, "entry \"/tmp/kiln-escaped\" is absolute");
    assert_int_equal(access("/tmp/kiln-escaped", F_OK), -1);
}

static void test_backslashes_do_not_climb(void **state)
{
    const struct zip_entry windows[] = {{.name = SPAN("..\\canary\\x"), .dos = true, .content = SPAN("x")}};
    const struct zip_entry unixy[] = {FILE_0644("a/..\\..\\canary\\x", "x")};

    assert_int_equal(unpack_entries(*state, windows, 1), CODE_BAD_ENTRY);
    assert_int_equal(unpack_entries(*state, unixy, 1), CODE_BAD_ENTRY);
}

static void test_zero_byte_in_a_name_does_not_climb(void **state)
{
    const struct zip_entry entries[] = {FILE_0644("a\0/../../canary/x", "x"), FILE_0644("..\0a", "x")};

    assert_int_equal(unpack_entries(*state, entries, 1), 0);
    assert_file(*state, "a", "x", 0644);
    assert_int_equal(unpack_entries(*state, entries + 1, 1), CODE_BAD_ENTRY);
}

static void test_central_name_cannot_differ_from_what_is_checked(void **state)
{
    const struct zip_entry central[] = {
        {.name = SPAN("good"), .central_name = SPAN("../canary/x"), .mode = 0100644, .content = SPAN("x")}};
    const struct zip_entry local[] = {
        {.name = SPAN("../canary/x"), .central_name = SPAN("good"), .mode = 0100644, .content = SPAN("x")}};

    (void)!unpack_entries(*state, central, 1); /* whichever of the names counts, the canary stays untouched */
    assert_int_equal(unpack_entries(*state, local, 1), CODE_BAD_ENTRY);
}

static void test_links_out_are_refused(void **state)
{
    const struct zip_entry up[] = {LINK("out", "../canary")};
    const struct zip_entry absolute[] = {LINK("out", "/tmp")};
    const struct zip_entry chain[] = {LINK("s", "."), LINK("t", "s/s/../../canary")};

    assert_refused(*state, up, 1, CODE_BAD_ENTRY, "entry \"out\" is a link that leads out of the package");
    assert_refused(*state, absolute, 1, CODE_BAD_ENTRY, "entry \"out\" is a link to an absolute path");
    assert_refused(*state, chain, 2, CODE_BAD_ENTRY, "entry \"t\" is a link with \"..\" behind another component");
}

static void test_write_through_link_is_refused(void **state)
{
    const struct zip_entry link_first[] = {LINK("d", "e"), FILE_0644("d/x", "x")};
    const struct zip_entry link_last[] = {FILE_0644("f/x", "x"), LINK("f", "e")};
    const struct zip_entry onto_link[] = {LINK("g", "h"), FILE_0644("g", "x")};

    assert_refused(*state, link_first, 2, CODE_BAD_ENTRY, "entry \"d\" is a link where something else is already");
    assert_refused(*state, link_last, 2, CODE_BAD_ENTRY, "entry \"f\" is a link where something else is already");
    assert_refused(*state, onto_link, 2, CODE_BAD_ENTRY, "entry \"g\" is a link where something else is already");
}

static void test_link_below_link_is_refused(void **state)
{
    const struct zip_entry entries[] = {LINK("d", "e"), LINK("d/x", "y")};

    assert_refused(*state, entries, 2, CODE_BAD_ENTRY, "entry \"d/x\" is below something that is not a directory");
}

static void test_duplicates_are_refused(void **state)
{
    const struct zip_entry files[] = {FILE_0644("a", "1"), FILE_0644("./a", "2")};
    const struct zip_entry under_file[] = {FILE_0644("b", "1"), FILE_0644("b/c", "2")};
    const struct zip_entry over_directory[] = {FILE_0644("d/c", "1"), FILE_0644("d", "2")};
    const struct zip_entry directory_over_file[] = {FILE_0644("e", "1"), {.name = SPAN("e/"), .mode = 040755}};

    assert_refused(*state, files, 2, CODE_BAD_ENTRY, "entry \"a\" is there twice");
    assert_refused(*state, under_file, 2, CODE_BAD_ENTRY, "entry \"b/c\" is below something that is not a directory");
    assert_refused(*state, over_directory, 2, CODE_BAD_ENTRY, "entry \"d\" is there twice");
    assert_refused(*state, directory_over_file, 2, CODE_BAD_ENTRY,
                   "entry \"e\" is a directory where something else is already");
}

static void test_devices_and_sockets_are_refused(void **state)
{
    static const unsigned kinds[] = {020644, 060644, 0140644, 0160644}; /* character, block, socket, nothing known */

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        const struct zip_entry entries[] = {{.name = SPAN("n"), .mode = kinds[i]}};
        assert_refused(*state, entries, 1, CODE_BAD_ENTRY, "entry \"n\" is neither a file nor a directory nor a link");
    }
}

/* `zip -` reads a pipe and says so in the mode, though what it stores is a file; libarchive knows that. */
static void test_fifo_becomes_a_file(void **state)
{
    const struct zip_entry entries[] = {{.name = SPAN("-"), .mode = 010644, .content = SPAN("piped")}};

    assert_int_equal(unpack_entries(*state, entries, 1), 0);
    assert_file(*state, "-", "piped", 0644);
}

static void test_encrypted_entry_is_refused(void **state)
{
    const struct zip_entry entries[] = {
        {.name = SPAN("secret"), .mode = 0100644, .content = SPAN("0123456789abxx"), .flags = 1}};

    assert_refused(*state, entries, 1, CODE_ENCRYPTED, "entry \"secret\" is encrypted");
}

static void test_hostile_names_are_not_repeated_raw(void **state)
{
    const struct zip_entry entries[] = {FILE_0644("../\x1b[31m\n\xff", "x")};

    assert_refused(*state, entries, 1, CODE_BAD_ENTRY, "entry \"../?[31m??\" leads out of the package");
}

static void test_what_is_no_zip_is_refused(void **state)
{
    static char tar[1024];

    strcpy(tar, "file");
    strcpy(tar + 257, "ustar");
    assert_int_equal(unpack(*state, SPAN("")), CODE_EMPTY);
    assert_int_equal(unpack(*state, SPAN("hello")), CODE_NOT_A_ZIP);
    assert_int_equal(unpack(*state, SPAN("PK\3\4")), CODE_NOT_A_ZIP);
    assert_int_equal(unpack(*state, span_of(tar, sizeof(tar))), CODE_NOT_A_ZIP);
    assert_int_equal(unpack(*state, SPAN("\x1f\x8b\x08\0\0\0\0\0\0\3\3\0\0\0\0\0\0\0\0\0")), CODE_NOT_A_ZIP);
}

/* Cut anywhere, a zip is refused or, where only bytes that do not matter are gone, unpacked whole. */
static void test_every_truncation_is_refused(void **state)
{
    const struct zip_entry entries[] = {FILE_0644("a", "first"), FILE_0644("b", "second")};
    struct buffer zip = BUFFER_INIT;

    zip_build(&zip, entries, 2);
    for (size_t length = 1; length < zip.length; length++)
        assert_int_equal(unpack(*state, span_of(zip.data, length)), CODE_NOT_A_ZIP);
    buffer_deinit(&zip);
}

static void test_zip_without_files_is_empty(void **state)
{
    const struct zip_entry entries[] = {{.name = SPAN("d/"), .mode = 040755}};

    assert_refused(*state, NULL, 0, CODE_EMPTY, "the zip archive holds no file");
    assert_refused(*state, entries, 1, CODE_EMPTY, "the zip archive holds no file");
}

static void test_wrong_checksum_is_refused(void **state)
{
    const struct zip_entry entries[] = {
        {.name = SPAN("a"), .mode = 0100644, .content = SPAN("content"), .claimed_crc = 12345}};

    assert_int_equal(unpack_entries(*state, entries, 1), CODE_NOT_A_ZIP);
}

static void test_unknown_method_is_refused(void **state)
{
    const struct zip_entry entries[] = {{.name = SPAN("a"), .mode = 0100644, .content = SPAN("content"), .method = 77}};

    assert_int_equal(unpack_entries(*state, entries, 1), CODE_NOT_A_ZIP);
}

static void test_lying_size_is_refused(void **state)
{
    const struct zip_entry less[] = {
        {.name = SPAN("a"), .mode = 0100644, .content = SPAN("content"), .claimed_bytes = 3}};
    const struct zip_entry more[] = {
        {.name = SPAN("b"), .mode = 0100644, .content = SPAN("content"), .claimed_bytes = 300}};

    assert_int_equal(unpack_entries(*state, less, 1), CODE_NOT_A_ZIP);
    assert_int_equal(unpack_entries(*state, more, 1), CODE_NOT_A_ZIP);
}

/* Central header says 10 bytes, the deflated data goes on for 4 MB: the limit counts what comes out. */
static void test_bomb_with_a_lying_size_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct buffer zip = BUFFER_INIT;
    char *central;
    int r;

    zip_build_zeros(&zip, "bomb", 4 << 20, false);
    central = memmem(zip.data, zip.length, "PK\1\2", 4);
    assert_non_null(central);
    memcpy(central + 24, "\x0a\0\0\0", 4);
    r = unpack(fixture, buffer_span(&zip));
    assert_true(r == CODE_TOO_LARGE_UNZIPPED || r == CODE_NOT_A_ZIP);
    assert_int_equal(tree_measure(fixture->root_fd, "box", &fixture->bytes), 0);
    assert_true(fixture->bytes < fixture->config.max_bytes);
    buffer_deinit(&zip);
}

/* --- limits --- */

static void test_size_limit_and_one_less(void **state)
{
    struct fixture *fixture = *state;
    const struct zip_entry entries[] = {FILE_0644("a", "12345"), FILE_0644("b", "6789")};

    fixture->config.max_bytes = 9;
    assert_refused(fixture, entries, 2, CODE_TOO_LARGE_UNZIPPED, "the unzipped files take 9 bytes or more");
    assert_int_equal(tree_remove(fixture->box_fd, "a", NULL), 0);
    assert_int_equal(tree_remove(fixture->box_fd, "b", NULL), 0);
    fixture->config.max_bytes = 10;
    assert_int_equal(unpack_entries(fixture, entries, 2), 0);
    assert_int_equal(fixture->bytes, 9);
}

static void test_bomb_stops_at_the_limit(void **state)
{
    struct fixture *fixture = *state;
    struct buffer zip = BUFFER_INIT;
    uint64_t written = 0;

    zip_build_zeros(&zip, "bomb", 300 << 20, false);
    assert_int_equal(unpack(fixture, buffer_span(&zip)), CODE_TOO_LARGE_UNZIPPED);
    assert_int_equal(tree_measure(fixture->root_fd, "box", &written), 0);
    assert_true(written < fixture->config.max_bytes);
    buffer_deinit(&zip);
}

static void test_entry_limit_and_one_past(void **state)
{
    struct fixture *fixture = *state;
    const struct zip_entry entries[] = {FILE_0644("a", ""), FILE_0644("b", ""), FILE_0644("c", "")};

    fixture->config.max_entries = 2;
    assert_refused(fixture, entries, 3, CODE_TOO_MANY_ENTRIES, "the zip archive has 3 entries; at most 2 are unpacked");
    assert_int_equal(faccessat(fixture->box_fd, "a", F_OK, 0), -1); /* seen before anything was written */
    fixture->config.max_entries = 3;
    assert_int_equal(unpack_entries(fixture, entries, 3), 0);
}

static void test_a_comment_of_any_length_is_passed_over(void **state)
{
    static const size_t lengths[] = {1, 16 * 1024, 65535};
    static char comment[65535];
    struct fixture *fixture = *state;
    const struct zip_entry entries[] = {FILE_0644("a", "x")};

    memset(comment, 'c', sizeof(comment));
    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
        struct buffer zip = BUFFER_INIT;
        zip_build(&zip, entries, 1);
        zip.data[zip.length - 2] = (char)(lengths[i] & 255);
        zip.data[zip.length - 1] = (char)(lengths[i] >> 8);
        assert_int_equal(buffer_append(&zip, comment, lengths[i]), 0);
        assert_int_equal(unpack(fixture, buffer_span(&zip)), 0);
        assert_file(fixture, "a", "x", 0644);
        assert_int_equal(unlinkat(fixture->box_fd, "a", 0), 0);
        buffer_deinit(&zip);
    }
}

static void test_names_at_the_limits_unpack(void **state)
{
    struct fixture *fixture = *state;
    char deep[2 * UNPACK_DEPTH_MAX - 1], wide[UNPACK_COMPONENT_BYTES_MAX];
    struct zip_entry entries[] = {{.mode = 0100644, .content = SPAN("x")}, {.mode = 0100644, .content = SPAN("y")}};

    for (size_t i = 0; i < sizeof(deep); i++)
        deep[i] = i % 2 ? '/' : 'd';
    memset(wide, 'w', sizeof(wide));
    entries[0].name = span_of(deep, sizeof(deep));
    entries[1].name = span_of(wide, sizeof(wide));
    assert_int_equal(unpack_entries(fixture, entries, 2), 0);
    assert_file(fixture, strndupa(deep, sizeof(deep)), "x", 0644);
    assert_file(fixture, strndupa(wide, sizeof(wide)), "y", 0644);
}

/* --- what is kept --- */

static void test_permissions_are_kept_whatever_the_umask(void **state)
{
    const struct zip_entry entries[] = {
        {.name = SPAN("bootstrap"), .mode = 0100755, .content = SPAN("#!")},
        {.name = SPAN("private"), .mode = 0100600, .content = SPAN("p")},
        {.name = SPAN("d/"), .mode = 040750},
        {.name = SPAN("implied/f"), .mode = 0100666, .content = SPAN("f")},
        {.name = SPAN("suid"), .mode = 0107755, .content = SPAN("s")},
        {.name = SPAN("sticky/"), .mode = 041777},
    };
    mode_t before = umask(077);

    assert_int_equal(unpack_entries(*state, entries, ARRAY_SIZE(entries)), 0);
    umask(before);
    assert_file(*state, "bootstrap", "#!", 0755);
    assert_file(*state, "private", "p", 0600);
    assert_directory(*state, "d", 0750);
    assert_directory(*state, "implied", 0755);
    assert_file(*state, "implied/f", "f", 0666);
    assert_file(*state, "suid", "s", 0755);
    assert_directory(*state, "sticky", 0777);
}

static void test_entries_without_permissions_become_readable(void **state)
{
    const struct zip_entry entries[] = {
        {.name = SPAN("none"), .mode = 0100000, .content = SPAN("x")},
        {.name = SPAN("nothing"), .mode = 0, .content = SPAN("x")},
        {.name = SPAN("d/"), .mode = 0},
        {.name = SPAN("typed/"), .mode = 040000},
        {.name = SPAN("dos"), .dos = true, .content = SPAN("x")},
        {.name = SPAN("dosdir/"), .dos = true},
    };

    assert_int_equal(unpack_entries(*state, entries, ARRAY_SIZE(entries)), 0);
    assert_file(*state, "none", "x", 0644);
    assert_file(*state, "nothing", "x", 0664);
    assert_directory(*state, "d", 0775);
    assert_directory(*state, "typed", 0755);
    assert_file(*state, "dos", "x", 0664);
    assert_directory(*state, "dosdir", 0775);
}

static void test_content_goes_into_directories_that_end_up_read_only(void **state)
{
    const struct zip_entry entries[] = {
        {.name = SPAN("ro/"), .mode = 040555},
        {.name = SPAN("ro/deep/"), .mode = 040500},
        {.name = SPAN("ro/deep/f"), .mode = 0100444, .content = SPAN("x")},
        {.name = SPAN("ro/deep/"), .mode = 040500},
        LINK("ro/l", "deep/f"),
    };

    assert_int_equal(unpack_entries(*state, entries, ARRAY_SIZE(entries)), 0);
    assert_directory(*state, "ro", 0555);
    assert_directory(*state, "ro/deep", 0500);
    assert_file(*state, "ro/deep/f", "x", 0444);
    assert_file(*state, "ro/l", "x", 0444);
}

static void test_links_inside_are_kept(void **state)
{
    struct fixture *fixture = *state;
    const struct zip_entry entries[] = {
        LINK("node_modules/.bin/tool", "../tool/cli.js"), /* before what it points to */
        FILE_0644("node_modules/tool/cli.js", "js"),
        LINK("lib", "node_modules"),
        LINK("dangling", "nowhere"),
    };
    char target[64] = "";

    assert_int_equal(unpack_entries(fixture, entries, ARRAY_SIZE(entries)), 0);
    assert_file(fixture, "node_modules/.bin/tool", "js", 0644);
    assert_file(fixture, "lib/tool/cli.js", "js", 0644);
    assert_true(readlinkat(fixture->box_fd, "dangling", target, sizeof(target) - 1) > 0);
    assert_string_equal(target, "nowhere");
}

static void test_names_outside_ascii_are_kept(void **state)
{
    const struct zip_entry entries[] = {
        {.name = SPAN("caf\xc3\xa9"), .mode = 0100644, .content = SPAN("utf-8"), .flags = 1 << 11},
        {.name = SPAN("\xe6\x97\xa5/\xe6\x9c\xac"), .mode = 0100644, .content = SPAN("utf-8")},
        {.name = SPAN("latin\xe9"), .mode = 0100644, .content = SPAN("bytes")},
        {.name = SPAN("new\nline"), .mode = 0100644, .content = SPAN("odd")},
    };

    assert_int_equal(unpack_entries(*state, entries, ARRAY_SIZE(entries)), 0);
    assert_file(*state, "caf\xc3\xa9", "utf-8", 0644);
    assert_file(*state, "\xe6\x97\xa5/\xe6\x9c\xac", "utf-8", 0644);
    assert_file(*state, "latin\xe9", "bytes", 0644);
    assert_file(*state, "new\nline", "odd", 0644);
}

static void test_broken_utf8_marked_as_such_is_refused(void **state)
{
    const struct zip_entry entries[] = {
        {.name = SPAN("x\xff\xfe"), .mode = 0100644, .content = SPAN("x"), .flags = 1 << 11}};
    int r = unpack_entries(*state, entries, 1);

    assert_true(r == CODE_BAD_ENTRY || r == CODE_NOT_A_ZIP);
}

static void test_empty_files_and_many_directories_unpack(void **state)
{
    const struct zip_entry entries[] = {FILE_0644("e", ""), FILE_0644("a/b/c/e", ""), FILE_0644("a/b/d/e", "")};

    assert_int_equal(unpack_entries(*state, entries, 3), 0);
    assert_file(*state, "a/b/d/e", "", 0644);
    assert_int_equal(((struct fixture *)*state)->bytes, 0);
}

static void test_prefix_before_the_zip_is_skipped(void **state)
{
    const struct zip_entry entries[] = {FILE_0644("a", "x")};
    struct buffer zip = BUFFER_INIT;

    assert_int_equal(buffer_append_span(&zip, SPAN("#!/bin/sh\nexec something\n")), 0);
    zip_build(&zip, entries, 1);
    assert_int_equal(unpack(*state, buffer_span(&zip)), 0);
    assert_file(*state, "a", "x", 0644);
    buffer_deinit(&zip);
}

static void test_streamed_and_zip64_archives_unpack(void **state)
{
    struct fixture *fixture = *state;
    struct buffer zip = BUFFER_INIT;
    struct stat status;

    zip_build_zeros(&zip, "streamed", 100000, false);
    assert_int_equal(unpack(fixture, buffer_span(&zip)), 0);
    assert_int_equal(fstatat(fixture->box_fd, "streamed", &status, 0), 0);
    assert_int_equal(status.st_size, 100000);
    zip.length = 0;
    zip_build_zeros(&zip, "large", 100000, true);
    assert_int_equal(unpack(fixture, buffer_span(&zip)), 0);
    assert_int_equal(fstatat(fixture->box_fd, "large", &status, 0), 0);
    assert_int_equal(status.st_size, 100000);
    buffer_deinit(&zip);
}

static void test_stop_ends_it(void **state)
{
    struct fixture *fixture = *state;
    const struct zip_entry entries[] = {FILE_0644("a", "x")};
    _Atomic bool stop = true;

    fixture->config.stop = &stop;
    assert_refused(fixture, entries, 1, -ECANCELED, "unpacking was given up");
}

/* As a user without root's rights, who is stopped by modes: what is unpacked can also be removed. */
static int unpack_and_remove_unprivileged(const char *root)
{
    const struct zip_entry entries[] = {
        {.name = SPAN("closed/"), .mode = 040000 | 0100},
        {.name = SPAN("closed/deep/"), .mode = 040555},
        {.name = SPAN("closed/deep/f"), .mode = 0100200, .content = SPAN("x")},
    };
    struct unpack_config config = {.max_bytes = 100, .max_entries = 10};
    struct buffer zip = BUFFER_INIT;
    struct fault fault = {0};
    uint64_t bytes;
    int root_fd, box_fd;

    if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
        return 10;
    if (chdir(root) < 0 || tree_open(AT_FDCWD, ".", &root_fd) < 0 || mkdir("mine", 0700) < 0 ||
        tree_open(root_fd, "mine", &box_fd) < 0)
        return 11;
    zip_build(&zip, entries, ARRAY_SIZE(entries));
    if (unpack_zip(buffer_span(&zip), box_fd, &config, &bytes, &fault) != 0)
        return 12;
    if (tree_sync(box_fd) != 0 || tree_measure(root_fd, "mine", &bytes) != 0)
        return 13;
    buffer_deinit(&zip);
    return tree_remove(root_fd, "mine", NULL) == 0 && access("mine", F_OK) < 0 ? 0 : 14;
}

static void test_closed_directories_can_be_removed_without_privileges(void **state)
{
    struct fixture *fixture = *state;
    pid_t child;
    int status;

    assert_int_equal(chmod(fixture->root, 0777), 0);
    child = fork();
    if (child == 0)
        _exit(unpack_and_remove_unprivileged(fixture->root));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_removal_does_not_follow_links(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(mkdirat(fixture->root_fd, "canary/inside", 0700), 0);
    assert_int_equal(symlinkat("../canary", fixture->box_fd, "link"), 0);
    assert_int_equal(symlinkat("canary", fixture->root_fd, "top"), 0);
    assert_int_equal(tree_remove(fixture->box_fd, "link", NULL), 0);
    assert_int_equal(tree_remove(fixture->root_fd, "top", NULL), 0);
    assert_int_equal(unlinkat(fixture->root_fd, "canary/inside", AT_REMOVEDIR), 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_that_leave_are_refused),
        cmocka_unit_test(test_harmless_names_are_cleaned),
        cmocka_unit_test(test_name_limits_and_one_past),
        cmocka_unit_test(test_depth_limit_and_one_past),
        cmocka_unit_test(test_links_that_leave_are_refused),
        cmocka_unit_test(test_links_that_stay_are_accepted),
        T(test_entry_that_climbs_is_refused),
        T(test_absolute_entry_is_refused),
        T(test_backslashes_do_not_climb),
        T(test_zero_byte_in_a_name_does_not_climb),
        T(test_central_name_cannot_differ_from_what_is_checked),
        T(test_links_out_are_refused),
        T(test_write_through_link_is_refused),
        T(test_link_below_link_is_refused),
        T(test_duplicates_are_refused),
        T(test_devices_and_sockets_are_refused),
        T(test_fifo_becomes_a_file),
        T(test_encrypted_entry_is_refused),
        T(test_hostile_names_are_not_repeated_raw),
        T(test_what_is_no_zip_is_refused),
        T(test_every_truncation_is_refused),
        T(test_zip_without_files_is_empty),
        T(test_wrong_checksum_is_refused),
        T(test_unknown_method_is_refused),
        T(test_lying_size_is_refused),
        T(test_bomb_with_a_lying_size_is_refused),
        T(test_size_limit_and_one_less),
        T(test_bomb_stops_at_the_limit),
        T(test_entry_limit_and_one_past),
        T(test_a_comment_of_any_length_is_passed_over),
        T(test_names_at_the_limits_unpack),
        T(test_permissions_are_kept_whatever_the_umask),
        T(test_entries_without_permissions_become_readable),
        T(test_content_goes_into_directories_that_end_up_read_only),
        T(test_links_inside_are_kept),
        T(test_names_outside_ascii_are_kept),
        T(test_broken_utf8_marked_as_such_is_refused),
        T(test_empty_files_and_many_directories_unpack),
        T(test_prefix_before_the_zip_is_skipped),
        T(test_streamed_and_zip64_archives_unpack),
        T(test_stop_ends_it),
        T(test_closed_directories_can_be_removed_without_privileges),
        T(test_removal_does_not_follow_links),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
