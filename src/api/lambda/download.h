/*
 * The URL of a package on Kiln's own endpoint, as GetFunction shows it: good for ten minutes, as on the service, and
 * only for who has been given it (an HMAC over package and time, made with a key of this run of the daemon).
 */
#pragma once

#include "api/operation.h"

/* "http://HOST/_kiln/code/SHA256?Expires=...&Signature=...", HOST as the caller addressed us. In the arena, or NULL. */
const char *download_url(struct operation *operation, const char *sha256);
