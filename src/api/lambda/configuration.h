/*
 * A version's configuration: from the members of CreateFunction and UpdateFunctionConfiguration to the document that
 * the catalog keeps, and from there to the FunctionConfiguration of answers.
 *
 * What of the service Kiln does not have is refused with a sentence that says so; what has no effect here is kept and
 * shown (README.md lists both).
 */
#pragma once

#include "api/lambda/input.h"

/* Structures of CONFIGURATION_MEMBERS and of CreateFunction. */
extern const struct input_member configuration_vpc_members[];
extern const struct input_member configuration_dead_letter_members[];
extern const struct input_member configuration_environment_members[];
extern const struct input_member configuration_tracing_members[];
extern const struct input_member configuration_file_system_members[];
extern const struct input_member configuration_image_members[];
extern const struct input_member configuration_storage_members[];
extern const struct input_member configuration_snap_start_members[];
extern const struct input_member configuration_logging_members[];
extern const struct input_member configuration_capacity_members[];
extern const struct input_member configuration_durable_members[];
extern const struct input_member configuration_tenancy_members[];

/* The members that CreateFunction and UpdateFunctionConfiguration share, for the shapes of their bodies. */
#define CONFIGURATION_MEMBERS                                                                                   \
    {.name = "Runtime", .kind = INPUT_STRING}, {.name = "Role", .kind = INPUT_STRING},                          \
        {.name = "Handler", .kind = INPUT_STRING}, {.name = "Description", .kind = INPUT_STRING},               \
        {.name = "Timeout", .kind = INPUT_INTEGER}, {.name = "MemorySize", .kind = INPUT_INTEGER},              \
        {.name = "VpcConfig", .kind = INPUT_STRUCTURE, .members = configuration_vpc_members},                   \
        {.name = "DeadLetterConfig", .kind = INPUT_STRUCTURE, .members = configuration_dead_letter_members},    \
        {.name = "Environment", .kind = INPUT_STRUCTURE, .members = configuration_environment_members},         \
        {.name = "KMSKeyArn", .kind = INPUT_STRING},                                                            \
        {.name = "TracingConfig", .kind = INPUT_STRUCTURE, .members = configuration_tracing_members},           \
        {.name = "Layers", .kind = INPUT_LIST, .element = INPUT_STRING},                                        \
        {.name = "FileSystemConfigs",                                                                           \
         .kind = INPUT_LIST,                                                                                    \
         .element = INPUT_STRUCTURE,                                                                            \
         .members = configuration_file_system_members},                                                         \
        {.name = "ImageConfig", .kind = INPUT_STRUCTURE, .members = configuration_image_members},               \
        {.name = "EphemeralStorage", .kind = INPUT_STRUCTURE, .members = configuration_storage_members},        \
        {.name = "SnapStart", .kind = INPUT_STRUCTURE, .members = configuration_snap_start_members},            \
        {.name = "LoggingConfig", .kind = INPUT_STRUCTURE, .members = configuration_logging_members},           \
        {.name = "CapacityProviderConfig", .kind = INPUT_STRUCTURE, .members = configuration_capacity_members}, \
    {                                                                                                           \
        .name = "DurableConfig", .kind = INPUT_STRUCTURE, .members = configuration_durable_members              \
    }

/* The smallest settings, which are also the defaults. */
enum { CONFIGURATION_MEMORY_MINIMUM = 128, CONFIGURATION_STORAGE_MINIMUM = 512 };

/* What the service model says about the members of call->input (ValidationException); Architectures only for bodies
 * that have them. */
void configuration_validate(struct call *call);
/* What the service checks next (InvalidParameterValueException and others), and what Kiln refuses. 0 or a refusal. */
int configuration_check(struct call *call) MUST_USE;

/*
 * The document of a new function, from call->input with defaults, call->function_name and call->package. NULL when out
 * of memory. The caller owns it.
 */
json_t *configuration_make(const struct call *call);
/* A copy of `current` with the members of call->input put in its place, and LastModified now. */
json_t *configuration_update(const struct call *call, const json_t *current);
/* A copy of `current` with another package (and architecture, if call->input has one), and LastModified now. */
json_t *configuration_update_code(const struct call *call, const json_t *current);

/* Takes out of an answer what documents keep and do not show. -ENOMEM. */
int configuration_hide(json_t *answer) MUST_USE;

enum configuration_view {
    CONFIGURATION_FULL,    /* with State and LastUpdateStatus, as Get* and Update* answer */
    CONFIGURATION_CREATED, /* without LastUpdateStatus, as Create* answers */
    CONFIGURATION_LISTED,  /* without both and without RuntimeVersionConfig, as List* answers */
};

/*
 * FunctionConfiguration of a version. `qualifier` is put behind the ARN unless it is empty. NULL when out of memory;
 * the caller owns the result.
 */
json_t *configuration_render(const struct catalog_version *version, struct span qualifier,
                             enum configuration_view view);
/* The key that the caller says its package is encrypted with, for GetFunction's Code; NULL: none. Borrowed. */
const char *configuration_source_key(const struct catalog_version *version);
