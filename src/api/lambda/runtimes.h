/* The names of runtimes and architectures, in the orders in which the service's refusals list them. */
#pragma once

#include "base/span.h"

/* In the order in which the service lists them (recorded in January 2026); newer ones of the model stand behind it. */
#define RUNTIMES_LISTED                                                                                             \
    "nodejs20.x, python3.14, provided.al2023, python3.12, python3.13, nodejs24.x, nodejs22.x, java25, python3.10, " \
    "python3.11, java21, ruby3.3, ruby3.4, ruby3.2, python3.8, python3.9, java17, nodejs16.x, dotnet10, dotnet8, "  \
    "java11, dotnet6, nodejs18.x, provided.al2, java8.al2"
#define RUNTIMES_NEWER "ruby4.0, nodejs26.x, python3.15, java8.al2023, java11.al2023, java17.al2023"
#define RUNTIMES_DEPRECATED                                                                                     \
    "nodejs, nodejs4.3, nodejs6.10, nodejs8.10, nodejs10.x, nodejs12.x, nodejs14.x, java8, python2.7, "         \
    "python3.6, python3.7, dotnetcore1.0, dotnetcore2.0, dotnetcore2.1, dotnetcore3.1, nodejs4.3-edge, go1.x, " \
    "ruby2.5, ruby2.7, provided"
/* What layers are filtered by; listed in another order than any of the above, with names that never were a runtime's.
 */
#define RUNTIMES_OF_LAYERS                                                                                           \
    "ruby2.6, dotnetcore1.0, python3.7, nodejs8.10, nasa, ruby2.7, python2.7-greengrass, dotnetcore2.0, python3.8, " \
    "java21, dotnet6, dotnetcore2.1, python3.9, java11, nodejs6.10, provided, dotnetcore3.1, dotnet8, java25, "      \
    "java17, "                                                                                                       \
    "nodejs, nodejs4.3, java8.al2, go1.x, dotnet10, nodejs20.x, go1.9, byol, nodejs10.x, provided.al2023, "          \
    "nodejs22.x, python3.10, java8, nodejs12.x, python3.11, nodejs24.x, nodejs8.x, python3.12, nodejs14.x, "         \
    "nodejs8.9, python3.13, python3.14, nodejs16.x, provided.al2, nodejs4.3-edge, nodejs18.x, ruby3.2, python3.4, "  \
    "ruby3.3, ruby3.4, ruby2.5, python3.6, python2.7"

extern const char *const runtime_architectures[]; /* NULL-terminated */

/* Whether `name` is one of the names of a list like the above. */
bool runtime_list_has(struct span list, struct span name);
/* Any runtime of the service model, deprecated ones too. */
bool runtime_is_known(struct span name);
