/* A fit as a table for people. */
#include <math.h>
#include <string.h>

#include "gradcmp/sys/fit.h"
#include "report/page.h"
#include "report/repeat.h"

enum { DEFAULT_ROWS = 200, NAME_COLUMN = 57 };

/* The theory's bound over the fit's, `depth` layers from the loss. */
static double tighter_at(const struct gradcmp_fit *fit, double depth) {
    return fit->theory_k * pow(fit->theory_C, depth) / (fit->k * pow(fit->C, depth));
}

static double depth_of(const struct gradcmp_fit *fit, int64_t layer) {
    return fmax((double)fit->layer_count + 1.0 - (double)layer, 0.0);
}

static const char *standing_word(const struct gradcmp_fit_pair *pair) {
    switch (pair->standing) {
    case GRADCMP_FIT_COUNTS:
        return "counts";
    case GRADCMP_FIT_REPEAT:
        return "repeat";
    case GRADCMP_FIT_QUIET:
        return "quiet";
    case GRADCMP_FIT_IDENTICAL:
        return "identical";
    case GRADCMP_FIT_BAD:
        return "NOT GOOD";
    case GRADCMP_FIT_ERROR:
        break;
    }
    return "ERROR";
}

static void add_pair(struct gcmp_page *page, const struct gradcmp_fit_pair *pair) {
    char figure[GCMP_FIGURE_BYTES];
    const char *word = standing_word(pair);
    enum gcmp_ink ink = pair->standing >= GRADCMP_FIT_BAD    ? GCMP_INK_BAD
                        : pair->is_suspect || pair->is_loose ? GCMP_INK_DOUBT
                                                             : GCMP_INK_GOOD;
    gcmp_page_add(page, "  ");
    gcmp_page_ink(page, ink, word);
    gcmp_page_pad(page, strlen(word), 12);
    const char *noise = gcmp_figure(figure, pair->worst);
    gcmp_page_pad(page, strlen(noise), 8);
    gcmp_page_addf(page, "%s eps  ", noise);
    gcmp_page_name(page, pair->path);
    gcmp_page_end_line(page);
    if (pair->text != NULL) {
        gcmp_page_add(page, "              ");
        gcmp_page_wrap(page, 14, 14, pair->text);
    }
}

static void add_head(struct gcmp_page *page, const struct gradcmp_fit *fit) {
    char count[GCMP_FIGURE_BYTES];
    gcmp_page_ink(page, GCMP_INK_BOLD, "baseline      ");
    gcmp_page_name(page, fit->baseline_path);
    gcmp_page_end_line(page);
    gcmp_page_addf(page, "measured      %s of %s parameters, %llu layers, in %s", fit->state,
                   gcmp_figure_count(count, fit->parameter_count),
                   (unsigned long long)fit->layer_count, gradcmp_dtype_name(fit->dtype));
    gcmp_page_end_line(page);
    if (fit->options != NULL) {
        gcmp_repeat_line(page, "options       ", fit->options);
    }
    gcmp_page_heading(page, "Pairs given as good, with their largest noise (growth taken out)");
    for (size_t i = 0; i < fit->pair_count; i++) {
        add_pair(page, &fit->pairs[i]);
    }
}

static void add_row(struct gcmp_page *page, const struct gradcmp_fit *fit,
                    const struct gradcmp_fit_layer *row) {
    double depth = depth_of(fit, row->layer);
    double fitted = fit->k * pow(fit->C, depth), theory = fit->theory_k * pow(fit->theory_C, depth);
    gcmp_page_addf(page, "  %4lld %6zu %7.3g %7.3g %7.3g %7.3g %8.2f  ", (long long)row->layer,
                   row->parameters, row->median, row->worst, fitted, theory, theory / fitted);
    gcmp_page_name_in(page, row->worst_name == NULL ? "" : row->worst_name,
                      page->width - NAME_COLUMN);
    gcmp_page_end_line(page);
}

static void add_table(struct gcmp_page *page, const struct gradcmp_fit *fit) {
    gcmp_page_heading(page, "Layers from the loss down; noise and bounds in multiples of eps");
    gcmp_page_add(page,
                  "     l  count  median    most  fitted  theory  tighter  noisiest parameter");
    gcmp_page_end_line(page);
    size_t shown =
        page->verbose || fit->layer_row_count < page->top ? fit->layer_row_count : page->top;
    for (size_t i = 0; i < shown; i++) {
        add_row(page, fit, &fit->layers[i]);
    }
    if (shown < fit->layer_row_count) {
        gcmp_page_addf(page, "  and %zu more (--verbose)", fit->layer_row_count - shown);
        gcmp_page_end_line(page);
    }
}

static void add_floors(struct gcmp_page *page, const struct gradcmp_fit *fit) {
    gcmp_page_heading(page, "Floors: rms of the error over the rms of the layer's gradients");
    for (size_t i = 0; i < fit->floor_count; i++) {
        gcmp_page_addf(page, "  %10.3g  ", fit->floors[i].floor);
        gcmp_page_name(page, fit->floors[i].name);
        gcmp_page_end_line(page);
    }
}

static size_t count_standing(const struct gradcmp_fit *fit, enum gradcmp_fit_standing standing) {
    size_t count = 0;
    for (size_t i = 0; i < fit->pair_count; i++) {
        count += fit->pairs[i].standing == standing;
    }
    return count;
}

/* The line that stands alone. */
static void add_refusal(struct gcmp_page *page, const struct gradcmp_fit *fit) {
    size_t bad = count_standing(fit, GRADCMP_FIT_BAD),
           unread = count_standing(fit, GRADCMP_FIT_ERROR);
    gcmp_page_ink(page, GCMP_INK_BAD, "NOT FITTED");
    if (unread > 0) {
        gcmp_page_addf(page, ": %zu of %zu pairs could not be read", unread, fit->pair_count);
    } else if (bad > 0) {
        gcmp_page_addf(page, ": %zu of %zu pairs %s not good", bad, fit->pair_count,
                       bad == 1 ? "is" : "are");
    } else {
        gcmp_page_add(page, ": no difference in any pair, so there is no noise to measure; give a "
                            "run of another layout");
    }
    gcmp_page_end_line(page);
}

static void add_fitted(struct gcmp_page *page, const struct gradcmp_fit *fit) {
    double at_loss = tighter_at(fit, 0.0), at_input = tighter_at(fit, (double)fit->layer_count + 1);
    size_t counting = count_standing(fit, GRADCMP_FIT_COUNTS);
    if (fit->is_looser) {
        gcmp_page_ink(page, GCMP_INK_DOUBT, "FITTED, LOOSER THAN THE THEORY");
    } else {
        gcmp_page_ink(page, GCMP_INK_GOOD, "FITTED");
    }
    gcmp_page_addf(page, ": k %.4g, C %.4g", fit->k, fit->C);
    if (!fit->is_tightened && !fit->is_looser) {
        gcmp_page_add(page, " as in the theory: the pairs are too quiet to judge other layouts by");
    } else {
        gcmp_page_addf(page, " (theory %.4g, %.4g) from %zu %s with noise, margin %.3g; ",
                       fit->theory_k, fit->theory_C, counting, counting == 1 ? "pair" : "pairs",
                       fit->margin);
        gcmp_page_addf(page, "the bound is %.3g times tighter at the loss, %.3g at the input",
                       at_loss, at_input);
    }
    gcmp_page_end_line(page);
}

enum gradcmp_status gradcmp_fit_write_text(const struct gradcmp_fit *fit,
                                           const struct gradcmp_text_options *text,
                                           gradcmp_write_fn write, void *user,
                                           struct gradcmp_error *error) {
    struct gcmp_page page;
    gcmp_page_open(&page, text, DEFAULT_ROWS);
    gcmp_out_begin(&page.out, write, user);
    bool is_fitted = gradcmp_fit_exit_status(fit) == 0;
    add_head(&page, fit);
    if (is_fitted) {
        add_table(&page, fit);
    }
    if (is_fitted && page.verbose) {
        add_floors(&page, fit);
    }
    gcmp_page_end_line(&page);
    if (is_fitted) {
        add_fitted(&page, fit);
    } else {
        add_refusal(&page, fit);
    }
    return gcmp_out_end(&page.out, error);
}
