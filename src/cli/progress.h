/* The line that tells how far the work is, and the check for an interrupt. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct cli_progress {
    bool is_shown;  /* the terminal can show it */
    bool is_drawn;  /* a line is on the screen */
    double started; /* seconds of the monotonic clock */
    double drawn;   /* when the line was last drawn */
    uint64_t first_bytes, last_bytes;
};

void cli_progress_start(struct cli_progress *progress, bool is_shown);

/* A gradcmp_progress_fn; `user` is a struct cli_progress. Returns nonzero after an interrupt. */
int cli_progress_step(void *user, uint64_t bytes_done, uint64_t bytes_total);

/* Take the line off the screen. */
void cli_progress_end(struct cli_progress *progress);

/* Format the line: bytes done and in all, percent, rate, time left. */
void cli_progress_format(char out[128], uint64_t done, uint64_t total, double bytes_per_second);

#endif
