/*
 * What a batch holds, for store.c (which makes and queues it) and database.c (which applies it). Internal to store.
 */
#pragma once

#include "base/list.h"
#include "base/span.h"

enum change_kind { CHANGE_PUT, CHANGE_DELETE };

/* One change; the spans point behind the struct, into the same allocation. */
struct change {
    struct list_link link;
    enum change_kind kind;
    uint64_t expected;
    struct span collection;
    struct span key;
    struct span bytes;
};

struct store_batch {
    struct list_link link;
    struct list changes;
    size_t bytes; /* memory it stands for in the queue's limit */
    bool refused; /* result was decided when it was submitted */
    int result;   /* 0, STORE_CONFLICT or -errno */
    void (*on_done)(int result, void *context);
    void *context;
};
