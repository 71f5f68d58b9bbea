/*
 * For tests: a data directory that is gone afterwards, a store, a code store and a catalog on one loop; packages made
 * of one file; and waiting for what happens on the loop.
 */
#pragma once

#include "catalog/catalog.h"
#include "store/code.h"
#include "store/store.h"

struct testing_world {
    char dir[64];
    uv_loop_t loop;
    struct store *store;
    struct code_store *code;
    struct catalog *catalog;
};

/* Makes the directory and opens everything but the catalog's content (testing_load). */
void testing_open(struct testing_world *world);
/* Opens stores and catalog on the directory that is there. `waiting_bytes` as in store_config: 1 makes every commit
 * fail with -EAGAIN. */
void testing_reopen(struct testing_world *world, size_t waiting_bytes);
/* catalog_load, and the loop until nothing is due any more. */
void testing_load(struct testing_world *world);
/* Ends store, catalog and loop in that order; the directory stays. */
void testing_shut(struct testing_world *world);
/* Removes the directory too. */
void testing_close(struct testing_world *world);
/* Until nothing is due any more. */
void testing_run(struct testing_world *world);
/* A package of one file with this content. The caller owns one reference. */
struct code_package testing_package(struct testing_world *world, const char *content);
/* Whether the package's directory is there. */
bool testing_has_package(const struct testing_world *world, const char *sha256);
