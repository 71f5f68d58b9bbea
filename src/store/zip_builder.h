/*
 * Zips for tests, byte by byte, so that every field can lie. Stored entries only; the test for compressed ones uses
 * libarchive's writer.
 */
#pragma once

#include "base/buffer.h"

#include <stdint.h>

struct zip_entry {
    struct span name;
    unsigned mode; /* file type and permissions; 0 with `dos` set: none */
    struct span content;
    bool dos;                 /* "made by" DOS: mode is not looked at */
    uint16_t flags;           /* general purpose bits */
    uint32_t claimed_bytes;   /* uncompressed size in both headers, when not 0 */
    uint32_t claimed_crc;     /* when not 0 */
    uint16_t method;          /* 0: stored */
    struct span central_name; /* differs from the local one when not empty */
};

/* Appends a whole archive. */
void zip_build(struct buffer *zip, const struct zip_entry *entries, size_t count);
/* One compressed file of `bytes` zero bytes; zip64 and data descriptors as libarchive's writer makes them. */
void zip_build_zeros(struct buffer *zip, const char *name, uint64_t bytes, bool zip64);
