/*
 * Code packages (of functions and layers) by the SHA-256 of their zip. A package is unpacked once and shared by all
 * that have the same code: DIR/code/<sha256>/ is the content, DIR/code/<sha256>.zip the zip as it was sent. Both appear
 * whole, by rename, and are on disk before on_done says so.
 *
 * All functions are called on the loop's thread; unpacking, hashing and removing run on libuv's pool. on_unpacked comes
 * from the loop, never during a call, and may call any function here.
 *
 * Who needs a package holds a reference: every version (the catalog), every environment, and the receiver of a
 * successful code_unpack. When the last reference is given back, the package is removed from disk. References are only
 * in memory: at start the catalog takes one for each of its versions, then calls code_sweep.
 *
 * What a zip may hold: regular files, directories and symbolic links. A zip with anything else, or with anything that
 * could reach outside its directory, is refused as a whole (CODE_BAD_ENTRY), never cut down to its harmless part:
 *   - names that are absolute, empty, have a ".." component (with \ counted as a separator too), a component over 255
 *     bytes, over 1,024 bytes in all or more than 128 components;
 *   - two entries for one file, or a file and a directory of the same name;
 *   - links that are absolute, climb out, or have ".." behind another component (which could climb out through a
 *     second link), and entries below a link;
 *   - devices, sockets and what else is no file.
 * Permission bits are kept; setuid, setgid and sticky are dropped. Entries without any become readable (0644 or 0664,
 * directories 0755 or 0775, depending on what is missing), directories that only names imply get 0755. A fifo is the
 * mark of a file zipped from a pipe and becomes a file. Names marked as UTF-8 come out composed (NFC), others byte for
 * byte. A name ends at its first zero byte.
 */
#pragma once

#include "base/buffer.h"
#include "base/fault.h"

struct code_store;
struct uv_loop_s;

/* Why a zip was refused. Nothing is left of it. */
enum code_result {
    CODE_NOT_A_ZIP = 1,      /* no zip, cut short, damaged, or packed in a way that we cannot read */
    CODE_EMPTY,              /* a zip without any file */
    CODE_ENCRYPTED,          /* has entries that need a password */
    CODE_BAD_ENTRY,          /* see above */
    CODE_TOO_MANY_ENTRIES,   /* more than max_entries */
    CODE_TOO_LARGE_UNZIPPED, /* contents of max_unpacked_bytes or more ("must be smaller than 262144000 bytes") */
};

enum {
    CODE_UNPACKED_BYTES = 262144000,
    CODE_ENTRIES = 100000,
    CODE_SHA256_HEX_BYTES = 65,
    CODE_SHA256_BASE64_BYTES = 45,
};

struct code_config {
    const char *data_dir;        /* exists and is locked (store_open). Borrowed for the call */
    struct uv_loop_s *loop;      /* borrowed until a turn after the last callback */
    uint64_t max_unpacked_bytes; /* 0: CODE_UNPACKED_BYTES */
    uint64_t max_entries;        /* 0: CODE_ENTRIES */
};

struct code_package {
    char sha256[CODE_SHA256_HEX_BYTES];           /* lower-case hex: the package's name in every call here */
    char sha256_base64[CODE_SHA256_BASE64_BYTES]; /* CodeSha256 */
    uint64_t zip_bytes;                           /* CodeSize */
    uint64_t unpacked_bytes;                      /* contents of its files as written */
};

/*
 * `result` is 0, an enum code_result or -errno (-ENOSPC: disk full, -ECANCELED: the store is closing). On 0 `package`
 * is filled (borrowed for the call) and the receiver owns one reference to it. Otherwise `fault` has a sentence that
 * names the entry; it is never NULL.
 */
typedef void code_on_unpacked(int result, const struct code_package *package, const struct fault *fault, void *context);

/* Makes DIR/code when missing. -errno and a sentence on failure. */
int code_store_open(const struct code_config *config, struct code_store **ret_store, struct fault *fault) MUST_USE;
/*
 * Unpacks under way are given up (on_unpacked gets -ECANCELED, unless they are done anyway) and the memory goes when
 * the last job has come back: the loop must run until it is empty. References need not be given back, and nothing more
 * is removed from disk. Nothing but code_release, from a last on_unpacked, may be called after it. Returns NULL; NULL
 * is allowed.
 */
struct code_store *code_store_close(struct code_store *store);

/*
 * Unpacks a zip. `zip` is taken (buffer_take) and empty after, whatever the outcome. If the package is there already,
 * or on its way, it is not unpacked again. -ENOMEM: on_unpacked is not called.
 */
int code_unpack(struct code_store *store, struct buffer *zip, code_on_unpacked *on_unpacked, void *context) MUST_USE;

/*
 * One more reference, to a package that somebody holds already or (before code_sweep) that a document names.
 * -EINVAL when `sha256` is not 64 lower-case hex digits, -ENOMEM.
 */
int code_retain(struct code_store *store, const char *sha256) MUST_USE;
/*
 * Gives one back. With the last one the package is removed: first make durable that no document names it, so that a
 * crash in between leaves only something to sweep.
 */
void code_release(struct code_store *store, const char *sha256);

/*
 * Once at start, after the references are taken: removes leftovers of interrupted work and packages without a
 * reference (the removing itself goes on behind), and calls on_missing (may be NULL) for each package that has
 * references but is not there; it is called during the call and may not call the store. -errno when the directory
 * cannot be read.
 */
int code_sweep(struct code_store *store, void (*on_missing)(const char *sha256, void *context), void *context) MUST_USE;

/* Appends the absolute path of the package's directory and terminates it (buffer_terminate). 0 or -ENOMEM. */
int code_directory(const struct code_store *store, const char *sha256, struct buffer *path) MUST_USE;
/* The package's zip for reading, at its start; the descriptor is the caller's. -ENOENT when it is not there. */
int code_open_zip(const struct code_store *store, const char *sha256, int *ret_fd, uint64_t *ret_bytes) MUST_USE;
