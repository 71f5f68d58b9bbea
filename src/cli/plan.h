/* `kiln plan SCENARIO.json`: how much RC and PC does this traffic need? */
#pragma once

/* Returns the exit status: 0, 2 for a bad option or scenario (one line on standard error), 1 when the result could not
 * be written. */
int plan_main(int argc, char **argv);
