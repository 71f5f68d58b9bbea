/*
 * A zip in memory to files below a directory. Refuses what code.h says is refused, and never writes outside. Runs on
 * any thread. Internal to store.
 */
#pragma once

#include "base/fault.h"
#include "base/span.h"
#include "store/code.h"

#include <locale.h>
#include <sys/types.h>

enum {
    UNPACK_NAME_BYTES_MAX = 1024,
    UNPACK_COMPONENT_BYTES_MAX = 255,
    UNPACK_DEPTH_MAX = 128,
};

struct unpack_config {
    uint64_t max_bytes;       /* contents must be smaller than this */
    uint64_t max_entries;     /* may be reached */
    locale_t locale;          /* a UTF-8 one, for the names; 0: names outside ASCII are refused */
    const _Atomic bool *stop; /* becomes true: -ECANCELED. May be NULL */
};

/*
 * Unpacks into `directory_fd` (an empty directory of ours), whose own mode is left alone. 0, an enum code_result or
 * -errno; then `fault` has a sentence and whatever was written is to be removed by the caller. Nothing is synced.
 */
int unpack_zip(struct span zip, int directory_fd, const struct unpack_config *config, uint64_t *ret_bytes,
               struct fault *fault) MUST_USE;

/*
 * The parts that decide about names, without I/O.
 *
 * unpack_check_name: `clean` becomes the name without empty and "." components. Returns NULL, or what is wrong with it
 * ("is absolute"). A name of no components (the root itself) gives "".
 * unpack_check_link: whether `target` may be what a link in a directory `depth` levels down holds. NULL or what is
 * wrong.
 */
const char *unpack_check_name(struct span name, char clean[UNPACK_NAME_BYTES_MAX + 1]);
const char *unpack_check_link(struct span target, unsigned depth);
