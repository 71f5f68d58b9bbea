/*
 * Two arrays, as in Python's dict: a dense array of entries in order of insertion, and an open-addressing index into
 * it (linear probing). Removal leaves a hole in the entries and keeps the index slot, so that probe chains stay whole;
 * both are squeezed out when the table next grows. The hash is FNV-1a with a final mix and a per-process seed from the
 * kernel: names come from authenticated callers, but a seed costs nothing and defeats prepared collisions.
 */
#include "base/table.h"

#include "base/random.h"

static uint64_t table_seed(void)
{
    /* Written once with the same meaning by whoever comes first; races can only make both use the later value. */
    static uint64_t seed;
    uint64_t value = __atomic_load_n(&seed, __ATOMIC_RELAXED);

    if (!value) {
        uint64_t expected = 0;
        random_bytes(&value, sizeof(value));
        value |= 1;
        if (!__atomic_compare_exchange_n(&seed, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            value = expected;
    }
    return value;
}

static uint64_t hash_key(struct span key)
{
    uint64_t hash = 0xcbf29ce484222325u ^ table_seed();

    for (size_t i = 0; i < key.length; i++)
        hash = (hash ^ (unsigned char)key.data[i]) * 0x100000001b3u;
    hash ^= hash >> 32;
    hash *= 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

void table_deinit(struct table *table)
{
    free(table->entries);
    free(table->slots);
    *table = (struct table){0};
}

static struct table_entry *table_find(const struct table *table, struct span key, uint64_t hash)
{
    if (!table->slot_count)
        return NULL;
    for (size_t slot = hash & (table->slot_count - 1);; slot = (slot + 1) & (table->slot_count - 1)) {
        uint32_t index = table->slots[slot];
        if (!index)
            return NULL;
        struct table_entry *entry = &table->entries[index - 1];
        if (entry->key.data && entry->hash == hash && span_equal(entry->key, key))
            return entry;
    }
}

static void table_index(uint32_t *slots, size_t slot_count, uint64_t hash, size_t index)
{
    size_t slot = hash & (slot_count - 1);

    while (slots[slot])
        slot = (slot + 1) & (slot_count - 1);
    slots[slot] = (uint32_t)index + 1;
}

/* Makes room for at least `extra` more entries, squeezing out holes. */
static int table_grow(struct table *table, size_t extra)
{
    size_t capacity = MAX((size_t)8, MAX(table->count * 2, table->count + extra));
    size_t slot_count = 16;
    struct table_entry *entries;
    uint32_t *slots;
    size_t used = 0;

    while (slot_count < capacity * 2)
        slot_count *= 2;
    if (capacity > UINT32_MAX / 2)
        return -ENOMEM;
    entries = malloc(capacity * sizeof(*entries));
    slots = calloc(slot_count, sizeof(*slots));
    if (!entries || !slots) {
        free(entries);
        free(slots);
        return -ENOMEM;
    }
    TABLE_FOREACH (entry, table) {
        table_index(slots, slot_count, entry->hash, used);
        entries[used++] = *entry;
    }
    free(table->entries);
    free(table->slots);
    table->entries = entries;
    table->used = used;
    table->count = used;
    table->capacity = capacity;
    table->slots = slots;
    table->slot_count = slot_count;
    return 0;
}

int table_reserve(struct table *table, size_t extra)
{
    return table->capacity - table->used >= extra ? 0 : table_grow(table, extra);
}

void *table_get(const struct table *table, struct span key)
{
    struct table_entry *entry = table_find(table, key, hash_key(key));

    return entry ? entry->value : NULL;
}

static int table_append(struct table *table, struct span key, uint64_t hash, void *value)
{
    if (table->used == table->capacity) {
        int r = table_grow(table, 1);
        if (r < 0)
            return r;
    }
    if (!key.data)
        key.data = "";
    table_index(table->slots, table->slot_count, hash, table->used);
    table->entries[table->used++] = (struct table_entry){key, hash, value};
    table->count++;
    return 0;
}

int table_add(struct table *table, struct span key, void *value)
{
    uint64_t hash = hash_key(key);

    if (table_find(table, key, hash))
        return -EEXIST;
    return table_append(table, key, hash, value);
}

int table_set(struct table *table, struct span key, void *value, void **ret_old)
{
    uint64_t hash = hash_key(key);
    struct table_entry *entry = table_find(table, key, hash);

    if (ret_old)
        *ret_old = entry ? entry->value : NULL;
    if (!entry)
        return table_append(table, key, hash, value);
    entry->key = key.data ? key : SPAN("");
    entry->value = value;
    return 0;
}

void *table_remove(struct table *table, struct span key)
{
    struct table_entry *entry = table_find(table, key, hash_key(key));

    if (!entry)
        return NULL;
    entry->key = SPAN_NONE;
    table->count--;
    return entry->value;
}
