/* Where a zip ends and how much it lists, whatever its numbers say. Every case is a zip of zip_builder.h, changed. */
#include "store/zip_end.h"

#include "store/zip_builder.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { END_BYTES = 22 };

static struct buffer zip_of(size_t count)
{
    static const struct zip_entry entries[] = {{.name = SPAN("a"), .content = SPAN("PK\1\2")},
                                               {.name = SPAN("b/c"), .content = SPAN("x")},
                                               {.name = SPAN("d"), .content = SPAN("")}};
    struct buffer zip = BUFFER_INIT;

    assert_in_range(count, 1, ARRAY_SIZE(entries));
    zip_build(&zip, entries, count);
    return zip;
}

/* Little-endian, `back` bytes before the end of the archive. */
static void put(struct buffer *zip, size_t back, size_t bytes, uint64_t value)
{
    for (size_t i = 0; i < bytes; i++, value >>= 8)
        zip->data[zip->length - back + i] = (char)(value & 255);
}

static void append(struct buffer *zip, struct span text)
{
    assert_int_equal(buffer_append(zip, text.data, text.length), 0);
}

static void assert_count(struct buffer zip, uint64_t count)
{
    assert_int_equal(zip_count_entries(buffer_span(&zip)), count);
    buffer_deinit(&zip);
}

static void test_the_list_is_counted_not_what_the_end_claims(void **state)
{
    struct buffer zip = zip_of(3);

    (void)state;
    assert_count(zip_of(1), 1);
    put(&zip, END_BYTES - 8, 2, 1);
    put(&zip, END_BYTES - 10, 2, 1);
    assert_count(zip, 3);
}

static void test_bytes_in_front_and_wrong_sizes_do_not_matter(void **state)
{
    struct buffer front = BUFFER_INIT, zip = zip_of(3), size = zip_of(3);

    (void)state;
    append(&front, SPAN("#!/bin/sh\nexec unzip\n"));
    append(&front, buffer_span(&zip));
    assert_count(front, 3);
    put(&size, END_BYTES - 12, 4, 1); /* then the offset is right */
    assert_count(size, 3);
    buffer_deinit(&zip);
}

/* As every zip of more than 65,534 entries has it. */
static void test_a_zip64_list_is_counted(void **state)
{
    struct buffer plain = zip_of(3), zip = BUFFER_INIT;
    struct span all = buffer_span(&plain);
    uint64_t offset = all.length;
    char end64[56] = "PK\6\6", locator[20] = "PK\6\7", end[END_BYTES] = "PK\5\6";

    (void)state;
    memset(end + 8, 0xff, 12);
    append(&zip, span_slice(all, 0, all.length - END_BYTES));
    offset = zip.length;
    append(&zip, span_of(end64, sizeof(end64)));
    memcpy(zip.data + zip.length - 56 + 40, all.data + all.length - END_BYTES + 12, 4); /* size */
    memcpy(zip.data + zip.length - 56 + 48, all.data + all.length - END_BYTES + 16, 4); /* offset */
    append(&zip, span_of(locator, sizeof(locator)));
    put(&zip, 12, 8, offset);
    append(&zip, span_of(end, sizeof(end)));
    buffer_deinit(&plain);
    assert_count(zip, 3);
}

static void test_nonsense_counts_nothing(void **state)
{
    struct buffer wild = zip_of(2), disks = zip_of(2), cut = zip_of(2);

    (void)state;
    put(&wild, END_BYTES - 12, 8, UINT64_MAX);
    assert_count(wild, 0);
    put(&disks, END_BYTES - 4, 2, 1);
    assert_count(disks, 0);
    cut.length--;
    assert_count(cut, 0);
    assert_int_equal(zip_count_entries(SPAN("")), 0);
    assert_int_equal(zip_count_entries(SPAN("PK\5\6")), 0);
}

static void test_the_comment_is_cut_off(void **state)
{
    struct buffer zip = zip_of(1);
    size_t length = zip.length;

    (void)state;
    put(&zip, 2, 2, 7);
    assert_int_equal(zip_without_comment(buffer_span(&zip)).length, length); /* one that is not there */
    append(&zip, SPAN("PK\5\6 it"));
    assert_int_equal(zip_without_comment(buffer_span(&zip)).length, length);
    assert_int_equal(zip_without_comment(SPAN("no zip")).length, 6);
    buffer_deinit(&zip);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_list_is_counted_not_what_the_end_claims),
        cmocka_unit_test(test_bytes_in_front_and_wrong_sizes_do_not_matter),
        cmocka_unit_test(test_a_zip64_list_is_counted),
        cmocka_unit_test(test_nonsense_counts_nothing),
        cmocka_unit_test(test_the_comment_is_cut_off),
    };

    return cmocka_run_group_tests_name("zip_end", tests, NULL, NULL);
}
