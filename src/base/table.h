/*
 * Hash table from byte strings to pointers that iterates in the order of insertion, so that whatever walks it is
 * deterministic whatever the hash seed. Keys are borrowed: they must live inside the value or otherwise outlive the
 * entry. Removal keeps the order of the rest. Not safe to change while iterating, except removing the current entry.
 */
#pragma once

#include "base/span.h"

struct table_entry {
    struct span key; /* data NULL: removed */
    uint64_t hash;
    void *value;
};

struct table {
    struct table_entry *entries; /* dense, in order of insertion, with holes after removals */
    size_t used;                 /* entries in use including holes */
    size_t count;                /* live entries */
    size_t capacity;
    uint32_t *slots; /* open addressing: index + 1 into entries, 0 empty */
    size_t slot_count;
};

/* Zero-initialised is a valid empty table. Frees the table, not the values. */
void table_deinit(struct table *table);
/* After it, the next `extra` additions cannot fail: for changes that must not fail half-way. 0 or -ENOMEM. */
int table_reserve(struct table *table, size_t extra) MUST_USE;
/* NULL when absent. */
void *table_get(const struct table *table, struct span key);
/* 0, -EEXIST when the key is there already, -ENOMEM. The key must outlive the entry. */
int table_add(struct table *table, struct span key, void *value) MUST_USE;
/* Adds or replaces; the old value (NULL if none) through ret_old, which may be NULL. -ENOMEM only when adding. */
int table_set(struct table *table, struct span key, void *value, void **ret_old) MUST_USE;
/* Returns the value taken out, NULL when absent. */
void *table_remove(struct table *table, struct span key);

/* Walks the live entries in order: `entry` is a struct table_entry *. */
#define TABLE_FOREACH(entry, table)                                                                           \
    for (struct table_entry *entry = (table)->entries, *entry##_end_ = entry ? entry + (table)->used : entry; \
         entry != entry##_end_; entry++)                                                                      \
        if (entry->key.data)
