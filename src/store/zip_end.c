/*
 *     ... central directory | zip64 end, its locator (when a number is too large) | end, comment
 *
 * The end is found from behind: the last signature that leaves room for a comment as long as it says and for the
 * directory before it, as libarchive has it. Offsets are wrong where something was put in front of the zip; positions
 * counted back from the end are right then. So both are tried.
 */
#include "store/zip_end.h"

#include "base/macros.h"

enum { END_BYTES = 22, COMMENT_MAX = 65535, END64_BYTES = 56, LOCATOR64_BYTES = 20, HEADER_BYTES = 46 };

static uint64_t number(struct span zip, size_t at, size_t bytes)
{
    uint64_t value = 0;

    while (bytes--)
        value = value << 8 | (unsigned char)zip.data[at + bytes];
    return value;
}

static bool has_signature(struct span zip, uint64_t at, size_t room, const char signature[4])
{
    return zip.length >= room && at <= zip.length - room && memcmp(zip.data + at, signature, 4) == 0;
}

/* Of one disk, and what it tells of fits. */
static bool is_end(struct span zip, size_t at)
{
    return has_signature(zip, at, END_BYTES, "PK\5\6") && number(zip, at + 4, 4) == 0 &&
           number(zip, at + 20, 2) <= zip.length - at - END_BYTES;
}

/* SIZE_MAX when there is none. */
static size_t find_end(struct span zip)
{
    size_t last = zip.length < END_BYTES ? 0 : zip.length - END_BYTES;
    size_t first = last > COMMENT_MAX ? last - COMMENT_MAX : 0;

    for (size_t at = last + 1; at-- > first;)
        if (is_end(zip, at))
            return at;
    return SIZE_MAX;
}

struct span zip_without_comment(struct span zip)
{
    size_t end = find_end(zip);

    return end == SIZE_MAX ? zip : span_slice(zip, 0, end + END_BYTES);
}

static uint64_t count_from(struct span zip, uint64_t at)
{
    uint64_t count = 0;

    for (; has_signature(zip, at, HEADER_BYTES, "PK\1\2"); count++)
        at += HEADER_BYTES + number(zip, at + 28, 2) + number(zip, at + 30, 2) + number(zip, at + 32, 2);
    return count;
}

/* `before` is where the directory should end. */
static uint64_t count_entries(struct span zip, uint64_t before, uint64_t size, uint64_t offset)
{
    uint64_t count = size <= before ? count_from(zip, before - size) : 0;

    return count ? count : count_from(zip, offset);
}

uint64_t zip_count_entries(struct span zip)
{
    size_t end = find_end(zip);
    uint64_t count, end64;

    if (end == SIZE_MAX)
        return 0;
    count = count_entries(zip, end, number(zip, end + 12, 4), number(zip, end + 16, 4));
    if (count || end < LOCATOR64_BYTES || !has_signature(zip, end - LOCATOR64_BYTES, LOCATOR64_BYTES, "PK\6\7"))
        return count;
    end64 = number(zip, end - LOCATOR64_BYTES + 8, 8);
    if (!has_signature(zip, end64, END64_BYTES, "PK\6\6"))
        return 0;
    return count_entries(zip, end64, number(zip, end64 + 40, 8), number(zip, end64 + 48, 8));
}
