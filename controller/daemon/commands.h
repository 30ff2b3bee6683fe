/* commands.h - the subcommands of the one binary. Each takes "tallyman NAME" as argv[0] and gives
 * the exit status: 0 done, 1 it failed, 2 the command line or the input is wrong. */
#pragma once

int command_run(int argc, char **argv);
int command_plan(int argc, char **argv);
int command_explain(int argc, char **argv);
int command_simulate(int argc, char **argv);
int command_replay(int argc, char **argv);

/* "1.0.0-beta" and the like; static. */
const char *tallyman_version(void);
/* The linker's id of this very program, as hexadecimal digits; "unknown" where it gave none.
 * Static.
 */
const char *tallyman_build(void);
