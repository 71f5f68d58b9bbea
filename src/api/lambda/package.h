/*
 * Where a function's code comes from: a zip in the request, or an object in S3. Either way it ends as a package in the
 * code store that the call holds.
 */
#pragma once

#include "api/lambda/input.h"

/* Members of CreateFunction's Code; UpdateFunctionCode has them at top. */
#define PACKAGE_MEMBERS                                                                                    \
    {.name = "ZipFile", .kind = INPUT_STRING}, {.name = "S3Bucket", .kind = INPUT_STRING},                 \
        {.name = "S3Key", .kind = INPUT_STRING}, {.name = "S3ObjectVersion", .kind = INPUT_STRING},        \
        {.name = "S3ObjectStorageMode", .kind = INPUT_STRING}, {.name = "ImageUri", .kind = INPUT_STRING}, \
    {                                                                                                      \
        .name = "SourceKMSKeyArn", .kind = INPUT_STRING                                                    \
    }

extern const struct input_member package_members[];

/* What the model says about the members of a code location. `prefix` is "code." or "". */
void package_validate(struct call *call, const json_t *location, const char *prefix);
/* What the service checks next: exactly one source, and none that Kiln lacks. 0 or a refusal. */
int package_check(struct call *call, const json_t *location, bool creating) MUST_USE;
/*
 * Fetches if need be, unpacks, fills call->package and calls `next`, on a later turn. A refusal is answered here.
 */
void package_obtain(struct call *call, const json_t *location, void (*next)(struct call *call));

/* Fetches an object of the S3 endpoint into call->zip and calls `next` on a later turn, or answers (s3.c). */
void s3_fetch_code(struct call *call, const json_t *location, void (*next)(struct call *call));
