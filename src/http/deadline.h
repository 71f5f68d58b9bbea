/*
 * The server's deadlines. All deadlines of one kind have the same duration, so each kind is a list in the order of
 * time: setting one is two list operations and no timer is started for it; the one timer of the server sleeps until
 * the earliest head. `now_ms` is passed in. A kind whose duration is 0 never expires.
 */
#pragma once

#include "base/list.h"

#include <stdint.h>

enum deadline_kind {
    DEADLINE_NONE,
    DEADLINE_IDLE,   /* between requests */
    DEADLINE_HEADER, /* first byte to end of the headers */
    DEADLINE_BODY,   /* silence while a body is due */
    DEADLINE_WRITE,  /* a response that makes no progress */
    DEADLINE_LINGER, /* dropping what still comes after a last answer */
    DEADLINE_HOLD,   /* an answer that waits for the next one's, so that both are one write */
    DEADLINE_STOP,   /* the rest of a request, or of what is dropped, once the server stops */
    DEADLINE_KINDS,
};

/* Embedded in its owner; deadline_init before use, and cleared before the owner is freed. */
struct deadline {
    struct list_link link;
    uint64_t due_ms;
    enum deadline_kind kind;
};

struct deadlines {
    struct list lists[DEADLINE_KINDS];
    uint64_t durations_ms[DEADLINE_KINDS];
};

void deadlines_init(struct deadlines *deadlines);
void deadline_init(struct deadline *deadline);
/* (Re)starts it from now; a former setting is forgotten. */
void deadline_set(struct deadlines *deadlines, struct deadline *deadline, enum deadline_kind kind, uint64_t now_ms);
void deadline_clear(struct deadline *deadline);
/* Takes one that is due off its list and returns it, its kind still set; NULL when none is. */
struct deadline *deadlines_pop_due(struct deadlines *deadlines, uint64_t now_ms);
/* When the earliest is due, UINT64_MAX when none is set. */
uint64_t deadlines_next_ms(const struct deadlines *deadlines);
