/* The program as one of several processes that a launcher (mpirun, srun) started. */
#ifndef CLI_RANKS_H
#define CLI_RANKS_H

#include "gradcmp/gradcmp.h"

/* Run the program; `ranks` is NULL where it is alone. Returns the exit status. */
typedef int (*cli_ranks_fn)(int argc, char **argv, struct gradcmp_ranks *ranks);

/* Call `run` with the processes that were started together, if there are any, and return the exit
 * status for the launcher. Rank 0 alone prints; what the others complain of is brought to it. */
int cli_ranks_run(int argc, char **argv, cli_ranks_fn run);

#endif
