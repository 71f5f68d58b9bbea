/* `kiln serve`: the daemon. */
#pragma once

/* Runs until SIGTERM or SIGINT. Returns the exit status: 0 after an orderly end, 2 when it could not start because of
 * an option, a port or a directory (one line on standard error says which), 1 for everything else. */
int serve_main(int argc, char **argv);
