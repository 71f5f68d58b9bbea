/*
 * Amazon Resource Names, and the forms in which Lambda accepts a function's name. Everything here points into the text
 * given (already percent-decoded) and is borrowed as long as that is. Nothing allocates but the builders.
 */
#pragma once

#include "base/arena.h"

/* arn:partition:service:region:account:resource; region and account may be empty, resource is the whole rest. */
struct arn {
    struct span partition;
    struct span service;
    struct span region;
    struct span account;
    struct span resource;
};

enum arn_outcome { ARN_MALFORMED = 1 };

/* 0, or ARN_MALFORMED: no "arn:", fewer than six parts, an empty partition, service or resource. */
int arn_parse(struct span text, struct arn *ret_arn) MUST_USE;

/* "aws", "aws-cn", "aws-us-gov" ... by the Region's prefix, as AWS assigns them. */
struct span arn_partition_of_region(struct span region);
/* Twelve decimal digits. */
bool arn_is_account_id(struct span text);
/* By the form the models give: [eusc-]xx[-gov|-iso?]-word-digit. */
bool arn_is_region(struct span text);

enum qualifier_kind {
    QUALIFIER_NONE,    /* empty */
    QUALIFIER_LATEST,  /* $LATEST */
    QUALIFIER_VERSION, /* digits only */
    QUALIFIER_ALIAS,   /* letters, digits, - and _, not digits only, up to 128 */
    QUALIFIER_OTHER,   /* no alias and no version can have this name (say "$latest") */
};

enum qualifier_kind qualifier_kind_of(struct span qualifier);

/*
 * A function named by a caller. Parts that were not given are empty. "arn:aws:lambda:us-east-1:111122223333:function"
 * names a function called "function", as on the service (recorded): "function:" is optional in every form.
 */
struct function_name {
    struct span partition; /* of a full ARN only; may be empty even there */
    struct span region;
    struct span account;
    struct span name;
    struct span qualifier; /* not in the unqualified form */
};

/* Which pattern of the service model a name must satisfy. */
enum function_name_form {
    FUNCTION_NAME_PLAIN,       /* FunctionName: letters, digits, - and _ ; a qualifier may follow */
    FUNCTION_NAME_NAMESPACED,  /* NamespacedFunctionName: also '.', and $LATEST.PUBLISHED */
    FUNCTION_NAME_UNQUALIFIED, /* UnqualifiedFunctionName: no qualifier */
    FUNCTION_NAME_URL,         /* FunctionUrlFunctionName: name up to 64, the qualifier an alias */
};

enum function_name_outcome { FUNCTION_NAME_MALFORMED = 1 };

/*
 * Accepts NAME, NAME:QUALIFIER, ACCOUNT:function:NAME, REGION:ACCOUNT:function:NAME and arn:...:lambda:..., each with a
 * qualifier as the form allows: exactly the texts that the form's pattern matches (shapes.h). Lengths are not checked
 * here. 0 or FUNCTION_NAME_MALFORMED.
 */
int function_name_parse(struct span text, enum function_name_form form, struct function_name *ret_name) MUST_USE;

/*
 * arn:PARTITION:lambda:REGION:ACCOUNT:function:NAME[:QUALIFIER]; the partition follows from the Region. An empty
 * qualifier gives the unqualified ARN. NULL when out of memory.
 */
char *arn_build_function(struct arena *arena, struct span region, struct span account, struct span name,
                         struct span qualifier) MUST_USE;
/* arn:PARTITION:lambda:REGION:ACCOUNT:layer:NAME[:VERSION]; version 0 gives the layer's own ARN. */
char *arn_build_layer(struct arena *arena, struct span region, struct span account, struct span name,
                      uint64_t version) MUST_USE;
/* arn:PARTITION:SERVICE:REGION:ACCOUNT:RESOURCE for everything else. */
char *arn_build(struct arena *arena, const char *service, struct span region, struct span account,
                struct span resource) MUST_USE;
