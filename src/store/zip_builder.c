#include "store/zip_builder.h"

#include <archive.h>
#include <archive_entry.h>
#include <assert.h>

static void add(struct buffer *zip, const void *data, size_t length)
{
    int r = buffer_append(zip, data, length);

    assert(r == 0);
    (void)r;
}

static void add16(struct buffer *zip, unsigned value)
{
    add(zip, (unsigned char[]){value & 255, value >> 8 & 255}, 2);
}

static void add32(struct buffer *zip, uint32_t value)
{
    add16(zip, value & 0xffff);
    add16(zip, value >> 16);
}

static uint32_t crc32_of(struct span bytes)
{
    uint32_t crc = 0xffffffff;

    for (size_t i = 0; i < bytes.length; i++) {
        crc ^= (unsigned char)bytes.data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
    }
    return ~crc;
}

/* What local and central headers have in common. */
static void add_common(struct buffer *zip, const struct zip_entry *entry, struct span name)
{
    add16(zip, 20);
    add16(zip, entry->flags);
    add16(zip, entry->method);
    add32(zip, 0x58210000); /* a day in 2024 */
    add32(zip, entry->claimed_crc ? entry->claimed_crc : crc32_of(entry->content));
    add32(zip, (uint32_t)entry->content.length);
    add32(zip, entry->claimed_bytes ? entry->claimed_bytes : (uint32_t)entry->content.length);
    add16(zip, (unsigned)name.length);
    add16(zip, 0); /* no extra field */
}

static void add_central(struct buffer *zip, const struct zip_entry *entry, uint32_t offset)
{
    struct span name = entry->central_name.length ? entry->central_name : entry->name;

    add(zip, "PK\1\2", 4);
    add16(zip, entry->dos ? 20 : 3 << 8 | 20);
    add_common(zip, entry, name);
    add16(zip, 0);
    add16(zip, 0);
    add16(zip, 0);
    add32(zip, entry->dos ? 0 : (uint32_t)entry->mode << 16);
    add32(zip, offset);
    add(zip, name.data, name.length);
}

void zip_build(struct buffer *zip, const struct zip_entry *entries, size_t count)
{
    uint32_t *offsets = calloc(count + 1, sizeof(*offsets));
    size_t start = zip->length, central;

    assert(offsets);
    for (size_t i = 0; i < count; i++) {
        offsets[i] = (uint32_t)(zip->length - start);
        add(zip, "PK\3\4", 4);
        add_common(zip, &entries[i], entries[i].name);
        add(zip, entries[i].name.data, entries[i].name.length);
        add(zip, entries[i].content.data, entries[i].content.length);
    }
    central = zip->length;
    for (size_t i = 0; i < count; i++)
        add_central(zip, &entries[i], offsets[i]);
    offsets[count] = (uint32_t)(zip->length - central);
    add(zip, "PK\5\6\0\0\0\0", 8);
    add16(zip, (unsigned)count);
    add16(zip, (unsigned)count);
    add32(zip, offsets[count]);
    add32(zip, (uint32_t)(central - start));
    add16(zip, 0);
    free(offsets);
}

static la_ssize_t write_to_buffer(struct archive *archive, void *context, const void *data, size_t length)
{
    (void)archive;
    add(context, data, length);
    return (la_ssize_t)length;
}

void zip_build_zeros(struct buffer *zip, const char *name, uint64_t bytes, bool zip64)
{
    static const char zeros[65536];
    struct archive *archive = archive_write_new();
    struct archive_entry *entry = archive_entry_new();
    la_ssize_t written;
    int r;

    assert(archive && entry);
    r = archive_write_set_format_zip(archive);
    if (r == ARCHIVE_OK && zip64)
        r = archive_write_set_format_option(archive, "zip", "zip64", "1");
    if (r == ARCHIVE_OK)
        r = archive_write_set_bytes_in_last_block(archive, 1); /* no padding as on a tape */
    if (r == ARCHIVE_OK)
        r = archive_write_open(archive, zip, NULL, write_to_buffer, NULL);
    archive_entry_set_pathname(entry, name);
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_size(entry, (la_int64_t)bytes);
    if (r == ARCHIVE_OK)
        r = archive_write_header(archive, entry);
    assert(r == ARCHIVE_OK);
    while (bytes) {
        written = archive_write_data(archive, zeros, MIN(bytes, sizeof(zeros)));
        assert(written > 0);
        bytes -= (uint64_t)written;
    }
    archive_entry_free(entry);
    r = archive_write_free(archive); /* closes it */
    assert(r == ARCHIVE_OK);
    (void)r;
}
