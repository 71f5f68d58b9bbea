/*
 * Access keys: who may sign, and for which account. Read from a file in the AWS ini format:
 *
 *   [profile-name]
 *   aws_access_key_id = AKIDEXAMPLE
 *   aws_secret_access_key = ...
 *   aws_session_token = ...        optional
 *   aws_account_id = 111122223333  our extension; without it an access key of exactly 12 digits names the account,
 *                                  and any other key belongs to the default account
 *
 * '#' and ';' begin comment lines; other keys are ignored, as are indented continuation lines; a section that comes
 * again adds to the first, the later value winning. A profile without access key and secret (a role, an SSO session) is
 * skipped; with only one of them it is an error.
 */
#pragma once

#include "base/fault.h"
#include "base/span.h"

struct credentials;

struct credential {
    const char *profile;
    const char *access_key;
    const char *secret_key;
    const char *session_token; /* NULL when the key is long-lived */
    const char *account;       /* 12 digits, NULL for the default account */
};

/*
 * Parses the text of a file named `name` (for messages only: "name:3: ..."). 0 with at least one credential; -EINVAL
 * with a fault that gives the line: not "key = value", an unclosed section, a duplicate access key, a bad account id,
 * no credential at all; -ENOMEM.
 */
int credentials_parse(struct span text, const char *name, struct credentials **ret_credentials,
                      struct fault *fault) MUST_USE;
/* Reads and parses a file of at most 1 MiB. Its permissions are the caller's matter. */
int credentials_load(const char *path, struct credentials **ret_credentials, struct fault *fault) MUST_USE;
struct credentials *credentials_free(struct credentials *credentials);

/* Borrowed until credentials_free; NULL when unknown. */
const struct credential *credentials_find(const struct credentials *credentials, struct span access_key);
/* The first one of an account; those without an account of their own are of `default_account`. NULL when none. */
const struct credential *credentials_of_account(const struct credentials *credentials, struct span account,
                                                struct span default_account);
size_t credentials_count(const struct credentials *credentials);
const struct credential *credentials_at(const struct credentials *credentials, size_t index);

/*
 * The account that a bare access key names: the key itself when it is exactly 12 digits, else empty. For `--auth off`,
 * where no file is read.
 */
struct span credentials_account_of_key(struct span access_key);
