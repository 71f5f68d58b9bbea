/*
 * What the catalog's reservations come to for core's counting: whether another one is acceptable is core's decision,
 * and does not depend on what runs. Values to look at and to throw away; borrowed from nobody.
 */
#pragma once

#include "api/operation.h"
#include "catalog/catalog.h"
#include "core/counting.h"

/* `ret_function` refers to `ret_account`, which must live as long. */
void counted_describe(const struct operation_services *services, const struct catalog_function *function,
                      struct counting_account *ret_account, struct counting_function *ret_function);
