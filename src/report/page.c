/* A page of terminal text. */
#include "report/page.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/decimal.h"

void gcmp_page_open(struct gcmp_page *page, const struct gradcmp_text_options *text,
                    size_t default_top) {
    struct gradcmp_text_options options = GRADCMP_TEXT_OPTIONS_INIT;
    if (text != NULL) {
        size_t known = text->struct_size < sizeof options ? text->struct_size : sizeof options;
        memcpy(&options, text, known);
    }
    *page = (struct gcmp_page){.color = options.color != 0,
                               .utf8 = options.utf8 != 0,
                               .verbose = options.verbose != 0,
                               .top = options.top == 0 ? default_top : options.top,
                               .width = gcmp_page_width(options.width)};
}

size_t gcmp_page_width(unsigned wanted) {
    if (wanted == 0) {
        return GCMP_PAGE_DEFAULT_WIDTH;
    }
    if (wanted < GCMP_PAGE_MIN_WIDTH) {
        return GCMP_PAGE_MIN_WIDTH;
    }
    return wanted > GCMP_PAGE_MAX_WIDTH ? GCMP_PAGE_MAX_WIDTH : wanted;
}

void gcmp_page_add(struct gcmp_page *page, const char *text) {
    gcmp_text_add(&page->out.text, text);
}

void gcmp_page_addf(struct gcmp_page *page, const char *format, ...) {
    char line[512]; /* formats here take figures and our own words, never names from files */
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    gcmp_text_add(&page->out.text, line);
}

void gcmp_page_end_line(struct gcmp_page *page) {
    gcmp_text_add(&page->out.text, "\n");
    gcmp_out_drain(&page->out);
}

void gcmp_page_ink(struct gcmp_page *page, enum gcmp_ink ink, const char *text) {
    static const char *const codes[] = {[GCMP_INK_BOLD] = "1",
                                        [GCMP_INK_DIM] = "2",
                                        [GCMP_INK_GOOD] = "32",
                                        [GCMP_INK_BAD] = "1;31",
                                        [GCMP_INK_DOUBT] = "33"};
    if (page->color && text[0] != '\0') {
        gcmp_text_addf(&page->out.text, "\033[%sm%s\033[0m", codes[ink], text);
    } else {
        gcmp_text_add(&page->out.text, text);
    }
}

void gcmp_page_heading(struct gcmp_page *page, const char *text) {
    gcmp_page_end_line(page);
    gcmp_page_ink(page, GCMP_INK_BOLD, text);
    gcmp_page_end_line(page);
}

void gcmp_page_name(struct gcmp_page *page, const char *name) {
    gcmp_printable_add(&page->out.text, name, page->utf8);
}

void gcmp_page_name_ink(struct gcmp_page *page, enum gcmp_ink ink, const char *name) {
    struct gcmp_text safe = GCMP_TEXT_INIT;
    gcmp_printable_add(&safe, name, page->utf8);
    gcmp_page_ink(page, ink, safe.bytes == NULL ? "" : safe.bytes);
    page->out.text.failed = page->out.text.failed || safe.failed;
    gcmp_text_free(&safe);
}

void gcmp_page_pad(struct gcmp_page *page, size_t used, size_t columns) {
    for (; used < columns; used++) {
        gcmp_text_add(&page->out.text, " ");
    }
}

void gcmp_page_name_in(struct gcmp_page *page, const char *name, size_t columns) {
    struct gcmp_text safe = GCMP_TEXT_INIT;
    gcmp_printable_add(&safe, name, page->utf8);
    const char *shown = safe.bytes == NULL ? "" : safe.bytes;
    size_t used = gcmp_printable_columns(shown);
    if (used > columns && columns > 3) {
        gcmp_page_add(page, "...");
        gcmp_page_add(page, gcmp_printable_tail(shown, columns - 3));
    } else {
        gcmp_page_add(page, shown);
        gcmp_page_pad(page, used, columns);
    }
    page->out.text.failed = page->out.text.failed || safe.failed;
    gcmp_text_free(&safe);
}

void gcmp_page_wrap(struct gcmp_page *page, size_t column, size_t indent, const char *text) {
    struct gcmp_text safe = GCMP_TEXT_INIT;
    gcmp_printable_add(&safe, text, page->utf8);
    char *word = safe.bytes;
    bool starts_line = true;
    while (word != NULL && *word != '\0') {
        size_t length = strcspn(word, " ");
        char after = word[length];
        word[length] = '\0';
        size_t columns = gcmp_printable_columns(word);
        if (!starts_line && column + 1 + columns > page->width) {
            gcmp_page_end_line(page);
            gcmp_page_pad(page, 0, indent);
            column = indent;
        } else if (!starts_line) {
            gcmp_page_add(page, " ");
            column++;
        }
        gcmp_page_add(page, word);
        column += columns;
        starts_line = false;
        word += length + (after == ' ');
        word += strspn(word, " ");
    }
    gcmp_page_end_line(page);
    page->out.text.failed = page->out.text.failed || safe.failed;
    gcmp_text_free(&safe);
}

static const char *format_number(char out[GCMP_FIGURE_BYTES], double value, int digits) {
    double size = fabs(value);
    if (isnan(value)) {
        snprintf(out, GCMP_FIGURE_BYTES, "-");
    } else if (size >= 999.5 && size < 999999.5) {
        snprintf(out, GCMP_FIGURE_BYTES, "%.0f", value);
    } else {
        snprintf(out, GCMP_FIGURE_BYTES, "%#.*g", digits, value);
        size_t length = strlen(out);
        if (out[length - 1] == '.') {
            out[length - 1] = '\0';
        }
    }
    return out;
}

const char *gcmp_figure(char out[GCMP_FIGURE_BYTES], double value) {
    return format_number(out, value, 3);
}

const char *gcmp_figure_error(char out[GCMP_FIGURE_BYTES], double value) {
    return format_number(out, value, 4);
}

const char *gcmp_figure_factor(char out[GCMP_FIGURE_BYTES], double value) {
    double size = fabs(value);
    if (size != 0.0 && !(size >= 0.001 && size < 1000.0)) { /* NaN too */
        return format_number(out, value, 4);
    }
    snprintf(out, GCMP_FIGURE_BYTES, "%.4f", value);
    return out;
}

const char *gcmp_figure_common(char out[GCMP_FIGURE_BYTES], double value) {
    int digits = gcmp_factor_digits(value);
    if (digits == 4) {
        return gcmp_figure_factor(out, value);
    }
    snprintf(out, GCMP_FIGURE_BYTES, "%.*g", digits, value);
    return out;
}

const char *gcmp_figure_setting(char out[GCMP_FIGURE_BYTES], double value) {
    snprintf(out, GCMP_FIGURE_BYTES, "%.9g", value);
    return out;
}

const char *gcmp_figure_count(char out[GCMP_FIGURE_BYTES], uint64_t value) {
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRIu64, value);
    size_t at = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0) {
            out[at++] = ',';
        }
        out[at++] = digits[i];
    }
    out[at] = '\0';
    return out;
}

const char *gcmp_figure_bytes(char out[GCMP_FIGURE_BYTES], uint64_t bytes) {
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024) {
        snprintf(out, GCMP_FIGURE_BYTES, "%u bytes", (unsigned)bytes);
        return out;
    }
    double value = (double)bytes / 1024.0;
    size_t unit = 0;
    while (value >= 1023.95 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1024.0;
        unit++;
    }
    snprintf(out, GCMP_FIGURE_BYTES, "%.1f %s", value, units[unit]);
    return out;
}

void gcmp_text_add_shape(struct gcmp_text *text, unsigned ndim, const uint64_t *shape) {
    gcmp_text_add(text, "[");
    for (unsigned d = 0; d < ndim; d++) {
        gcmp_text_addf(text, "%s%" PRIu64, d == 0 ? "" : ", ", shape[d]);
    }
    gcmp_text_add(text, "]");
}
