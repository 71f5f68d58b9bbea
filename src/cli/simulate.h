/* `kiln simulate SCENARIO.json`: what would happen? */
#pragma once

/* Returns the exit status: 0, 2 for a bad option or scenario (one line on standard error), 1 when the result could not
 * be written. */
int simulate_main(int argc, char **argv);
