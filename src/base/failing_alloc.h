/*
 * For tests: makes the n-th allocation of the code under test fail. Linking with failing_alloc_dep replaces malloc,
 * calloc, realloc and aligned_alloc as called by the program's own objects (not by shared libraries, so that cmocka and
 * libc are left alone). The one counter is the process's, which is what a test program wants and the daemon never
 * links.
 */
#pragma once

/* The allocation after `successes` more fails, and every one after it until failing_alloc_stop. */
void failing_alloc_after(unsigned successes);
/* Allocations succeed again. Returns how many were refused since failing_alloc_after. */
unsigned failing_alloc_stop(void);
