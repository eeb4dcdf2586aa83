/* The list of a checkpoint for people. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "report/facts.h"
#include "report/ls.h"
#include "report/side.h"

enum { LABEL_COLUMNS = 14, MAX_COLUMN = 40 };

/* Widths of the columns that depend on what is listed. */
struct ls_columns {
    size_t state, dtype, shape;
};

static void add_label(struct gcmp_page *page, const char *label) {
    gcmp_page_ink(page, GCMP_INK_DIM, label);
    gcmp_page_pad(page, strlen(label), LABEL_COLUMNS);
}

static void add_row(struct gcmp_page *page, const struct gcmp_side_row *row,
                    const struct gradcmp_catalogue *catalogue) {
    struct gcmp_text value = GCMP_TEXT_INIT;
    row->add(&value, catalogue, page->utf8);
    if (value.bytes != NULL && value.bytes[0] != '\0') {
        add_label(page, row->label);
        gcmp_page_add(page, value.bytes);
        gcmp_page_end_line(page);
    }
    page->out.text.failed = page->out.text.failed || value.failed;
    gcmp_text_free(&value);
}

static uint64_t bytes_of(const struct gcmp_ls_tensor *tensor) {
    uint64_t bytes;
    uint64_t elems = gcmp_shape_elems(tensor->ndim, tensor->shape);
    return __builtin_mul_overflow(elems, gcmp_dtype_bytes((enum gradcmp_dtype)tensor->dtype),
                                  &bytes)
               ? UINT64_MAX
               : bytes;
}

static uint64_t add_saturating(uint64_t a, uint64_t b) {
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* "exp_avg       67 tensors, 1,234 elements, 9.4 MiB" */
static void add_state(struct gcmp_page *page, const struct gcmp_ls *ls, const char *state) {
    char figure[GCMP_FIGURE_BYTES];
    uint64_t elems = 0, bytes = 0;
    size_t count = 0;
    for (size_t i = 0; i < ls->tensor_count; i++) {
        const struct gcmp_ls_tensor *tensor = &ls->tensors[i];
        if (strcmp(tensor->state, state) == 0) {
            count++;
            elems = add_saturating(elems, gcmp_shape_elems(tensor->ndim, tensor->shape));
            bytes = add_saturating(bytes, bytes_of(tensor));
        }
    }
    gcmp_page_name_in(page, state, LABEL_COLUMNS - 1);
    if (count == 0) {
        gcmp_page_add(page, " not listed");
        gcmp_page_end_line(page);
        return;
    }
    gcmp_page_addf(page, " %zu tensor%s", count, count == 1 ? "" : "s");
    gcmp_page_addf(page, ", %s elements", gcmp_figure_count(figure, elems));
    gcmp_page_addf(page, ", %s", gcmp_figure_bytes(figure, bytes));
    gcmp_page_end_line(page);
}

static size_t widen(size_t column, size_t used) {
    return used > column && used <= MAX_COLUMN ? used : column;
}

static size_t shape_text(struct gcmp_text *text, const struct gcmp_ls_tensor *tensor) {
    gcmp_text_clear(text);
    gcmp_text_add_shape(text, tensor->ndim, tensor->shape);
    return text->length_bytes;
}

static struct ls_columns measure(const struct gcmp_ls *ls, struct gcmp_text *scratch) {
    struct ls_columns columns = {strlen("state"), strlen("type"), strlen("shape")};
    for (size_t i = 0; i < ls->tensor_count; i++) {
        const struct gcmp_ls_tensor *tensor = &ls->tensors[i];
        columns.state = widen(columns.state, gcmp_printable_columns(tensor->state));
        columns.dtype =
            widen(columns.dtype, strlen(gradcmp_dtype_name((enum gradcmp_dtype)tensor->dtype)));
        columns.shape = widen(columns.shape, shape_text(scratch, tensor));
    }
    return columns;
}

static void add_titles(struct gcmp_page *page, const struct ls_columns *columns, bool stats) {
    char line[3 * MAX_COLUMN + 120];
    snprintf(line, sizeof line, "   l %-*s %-*s %-*s pieces copies%s name", (int)columns->state,
             "state", (int)columns->dtype, "type", (int)columns->shape, "shape",
             stats ? "       norm    max |x|" : "");
    gcmp_page_ink(page, GCMP_INK_DIM, line);
    gcmp_page_end_line(page);
}

static void add_tensor(struct gcmp_page *page, const struct gcmp_ls_tensor *tensor,
                       const struct ls_columns *columns, struct gcmp_text *scratch) {
    char norm[GCMP_FIGURE_BYTES], max_abs[GCMP_FIGURE_BYTES];
    size_t used = shape_text(scratch, tensor);
    gcmp_page_addf(page, "%4" PRId64 " ", tensor->layer);
    gcmp_page_name_in(page, tensor->state, columns->state);
    gcmp_page_addf(page, " %-*s ", (int)columns->dtype,
                   gradcmp_dtype_name((enum gradcmp_dtype)tensor->dtype));
    gcmp_page_add(page, scratch->bytes == NULL ? "" : scratch->bytes);
    gcmp_page_pad(page, used, columns->shape);
    gcmp_page_addf(page, " %6zu %6zu ", tensor->pieces, tensor->copies);
    if (tensor->has_stats) {
        gcmp_page_addf(page, "%10s %10s ", gcmp_figure_error(norm, tensor->norm),
                       gcmp_figure_error(max_abs, tensor->max_abs));
    }
    gcmp_page_name(page, tensor->name);
    gcmp_page_end_line(page);
    if (page->verbose && tensor->has_stats && tensor->sha256[0] != '\0') {
        gcmp_page_addf(page, "     sha256 %s", tensor->sha256);
        gcmp_page_end_line(page);
    }
}

static void add_settings(struct gcmp_page *page, const struct gcmp_ls *ls) {
    struct gcmp_text value = GCMP_TEXT_INIT;
    if (ls->catalogue->setting_count > 0) {
        gcmp_page_heading(page, "Settings");
    }
    for (size_t i = 0; i < ls->catalogue->setting_count; i++) {
        gcmp_text_clear(&value);
        gcmp_text_add_setting(&value, &ls->catalogue->settings[i], page->utf8);
        gcmp_page_add(page, "  ");
        gcmp_page_name(page, ls->catalogue->settings[i].name);
        gcmp_page_add(page, " = ");
        gcmp_page_add(page, value.bytes == NULL ? "" : value.bytes);
        gcmp_page_end_line(page);
    }
    page->out.text.failed = page->out.text.failed || value.failed;
    gcmp_text_free(&value);
}

static void add_head(struct gcmp_page *page, const struct gcmp_ls *ls) {
    struct gradcmp_catalogue catalogue = *ls->catalogue;
    catalogue.layers = ls->layers; /* that were found, where the arguments say fewer or nothing */
    add_label(page, "checkpoint");
    gcmp_page_name(page, ls->path);
    gcmp_page_end_line(page);
    for (const struct gcmp_side_row *row = gcmp_side_rows; row->label != NULL; row++) {
        add_row(page, row, &catalogue);
    }
    if (page->verbose) {
        add_settings(page, ls);
    }
    gcmp_page_heading(page, "States");
    for (size_t i = 0; i < ls->state_count; i++) {
        add_state(page, ls, ls->states[i]);
    }
}

static void add_tensors(struct gcmp_page *page, const struct gcmp_ls *ls, bool stats) {
    struct gcmp_text scratch = GCMP_TEXT_INIT;
    struct ls_columns columns = measure(ls, &scratch);
    gcmp_page_heading(page, "Tensors, unsharded");
    add_titles(page, &columns, stats);
    for (size_t i = 0; i < ls->tensor_count; i++) {
        add_tensor(page, &ls->tensors[i], &columns, &scratch);
    }
    page->out.text.failed = page->out.text.failed || scratch.failed;
    gcmp_text_free(&scratch);
}

static void add_note(struct gcmp_page *page, const char *note) {
    gcmp_page_add(page, "- ");
    gcmp_page_wrap(page, 2, 2, note);
}

static void add_notes(struct gcmp_page *page, const struct gcmp_ls *ls) {
    if (ls->catalogue->note_count > 0 || ls->left_out != NULL) {
        gcmp_page_heading(page, "Notes");
    }
    for (size_t i = 0; i < ls->catalogue->note_count; i++) {
        add_note(page, ls->catalogue->notes[i]);
    }
    if (ls->left_out != NULL) {
        add_note(page, ls->left_out);
    }
}

enum gradcmp_status gcmp_ls_write_text(const struct gcmp_ls *ls,
                                       const struct gradcmp_ls_options *options,
                                       gradcmp_write_fn write, void *user,
                                       struct gradcmp_error *error) {
    struct gcmp_page page = {.color = options->color != 0,
                             .utf8 = options->utf8 != 0,
                             .verbose = options->verbose != 0,
                             .width = GCMP_PAGE_DEFAULT_WIDTH};
    gcmp_out_begin(&page.out, write, user);
    add_head(&page, ls);
    if (ls->tensor_count > 0) {
        add_tensors(&page, ls, ls->tensors[0].has_stats);
    }
    add_notes(&page, ls);
    return gcmp_out_end(&page.out, error);
}
