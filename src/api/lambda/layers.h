/*
 * Layers: immutable versions of a package under a name, numbered from 1 and never again with the same number. A version
 * is a record of the catalog, NAME:NUMBER, whose document has
 *
 *   {"Package": hex, "CodeSha256", "CodeSize", "UnpackedSize", "Description", "CreatedDate", "CompatibleRuntimes"?,
 *    "CompatibleArchitectures"?, "LicenseInfo"?, "Policy"?: {"RevisionId", "Former"?, "Statements": [...]}}
 *
 * and a layer is a record NAME with {"NextVersion"}, which stays when all of its versions are gone. Shared by the files
 * layer_*.c.
 */
#pragma once

#include "api/lambda/input.h"

/* A layer as a caller names it. Spans are borrowed from the text. */
struct layer_name {
    struct span account; /* the caller's own when the text does not say */
    struct span region;
    struct span name;
    uint64_t version; /* 0: none given */
};

/*
 * Takes the path's LayerName and, `with_version`, VersionNumber: validates the name together with what the call's
 * validation holds already. 0, a refusal, -ENOMEM.
 */
int layer_take_name(struct call *call, bool with_version, struct layer_name *ret_name) MUST_USE;
/* "arn:...:layer:NAME:VERSION", whose form has been validated. False for the service's own (awslayer). */
bool layer_parse_arn(struct span arn, struct layer_name *ret_name) MUST_USE;

/* The version's ARN; the layer's own for version 0. In the arena. Never NULL ("" when out of memory). */
const char *layer_arn(struct call *call, const struct layer_name *name);

/* The version's document, NULL when there is none. */
const json_t *layer_find(const struct call *call, const struct layer_name *name);
/* The number that the layer's next version gets; 1 when there is no such layer. */
uint64_t layer_next_version(const struct catalog_scope *scope, struct span name);
/* The same in a scope (may be NULL). */
const json_t *layer_find_in(const struct catalog_scope *scope, struct span name, uint64_t version);
/* "NAME:VERSION" in the arena. -ENOMEM. */
int layer_record_name(struct call *call, struct span name, uint64_t version, struct span *ret_name) MUST_USE;

/*
 * Whether the call may read the version (`document` NULL: it does not exist): its own account's, or one whose policy
 * allows it to the account. 0, or 403 as for what does not exist either.
 */
int layer_check_access(struct call *call, const struct layer_name *name, const json_t *document) MUST_USE;

/* 403 unless the layer is of the operation's own account and Region: for what no policy can allow to others. */
int layer_check_owner(struct call *call, const struct layer_name *name) MUST_USE;

/* The members that lists show of a version. NULL when out of memory; the caller owns it. */
json_t *layer_render(struct call *call, const struct layer_name *name, const json_t *document);

/* The runtimes and architectures that filters may name. */
void layer_validate_filters(struct call *call);
/* Whether the version is declared compatible with what the query's filters name. */
bool layer_matches_filters(struct call *call, const json_t *document);
