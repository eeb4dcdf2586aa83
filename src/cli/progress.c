/* The progress line on standard error. */
#include "cli/progress.h"

#include <stdio.h>
#include <time.h>

#include "cli/interrupt.h"

/* Short work shows nothing; redrawing more often only flickers. */
static const double FIRST_AFTER_SECONDS = 0.5, REDRAW_SECONDS = 0.1;

static double now_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void cli_progress_start(struct cli_progress *progress, bool is_shown) {
    double now = now_seconds();
    *progress = (struct cli_progress){.is_shown = is_shown, .started = now, .drawn = now};
}

static void format_bytes(char out[16], double bytes) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    size_t unit = 0;
    while (bytes >= 1023.95 && unit + 1 < sizeof units / sizeof units[0]) {
        bytes /= 1024.0;
        unit++;
    }
    snprintf(out, 16, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
}

static void format_left(char out[24], double seconds) {
    if (!(seconds < 360000.0)) {
        out[0] = '\0'; /* over 100 hours, or no rate yet: nothing worth telling */
    } else if (seconds < 60.0) {
        snprintf(out, 24, ", %.0f s left", seconds);
    } else if (seconds < 3600.0) {
        snprintf(out, 24, ", %.0f min left", seconds / 60.0);
    } else {
        snprintf(out, 24, ", %.1f h left", seconds / 3600.0);
    }
}

void cli_progress_format(char out[128], uint64_t done, uint64_t total, double bytes_per_second) {
    char done_text[16], total_text[16], rate_text[16], left_text[24];
    double left = total > done ? (double)(total - done) / bytes_per_second : 0.0;
    double percent = total == 0 ? 100.0 : 100.0 * (double)done / (double)total;
    format_bytes(done_text, (double)done);
    format_bytes(total_text, (double)total);
    format_bytes(rate_text, bytes_per_second);
    format_left(left_text, left);
    snprintf(out, 128, "%s of %s, %.0f %%, %s/s%s", done_text, total_text, percent, rate_text,
             left_text);
}

static void draw(struct cli_progress *progress, uint64_t done, uint64_t total, double now) {
    char line[128];
    double seconds = now - progress->started;
    double rate = seconds > 0.0 ? (double)(done - progress->first_bytes) / seconds : 0.0;
    cli_progress_format(line, done, total, rate);
    fprintf(stderr, "\r\033[K%s", line);
    fflush(stderr);
    progress->drawn = now;
    progress->is_drawn = true;
}

int cli_progress_step(void *user, uint64_t bytes_done, uint64_t bytes_total) {
    struct cli_progress *progress = user;
    double now = now_seconds();
    if (bytes_done < progress->last_bytes) { /* the next part of the work counts anew */
        progress->started = now;
        progress->first_bytes = bytes_done;
    }
    progress->last_bytes = bytes_done;
    double wait = progress->is_drawn ? REDRAW_SECONDS : FIRST_AFTER_SECONDS;
    if (progress->is_shown && now - progress->drawn >= wait) {
        draw(progress, bytes_done, bytes_total, now);
    }
    return cli_interrupt_signal() != 0;
}

void cli_progress_end(struct cli_progress *progress) {
    if (progress->is_drawn) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
        progress->is_drawn = false;
    }
}
