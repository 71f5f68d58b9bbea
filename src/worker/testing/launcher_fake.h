/*
 * A launcher without isolation, for tests that need no privileges: the same header, the same order of events, the same
 * rules about processes, but plain children of the test on the host's network. /var/task is the task directory itself.
 * It says nothing about sandboxes; the same tests run on the real launcher as well.
 */
#pragma once

#include "sandbox/launcher.h"

struct launcher *launcher_fake_new(void);
/* The next `count` requests find the socket full. */
void launcher_fake_refuse(struct launcher *launcher, unsigned count);
/* The last thing written to the sandbox's freeze descriptor: '0', '1', or 0 when nothing was. */
char launcher_fake_frozen(struct launcher *launcher, uint64_t id);
/* The next creation fails. */
void launcher_fake_fail_create(struct launcher *launcher);
/* Every process dies and on_lost follows. */
void launcher_fake_die(struct launcher *launcher);
/* The sandbox's init dies by itself. */
void launcher_fake_end_sandbox(struct launcher *launcher, uint64_t id);
