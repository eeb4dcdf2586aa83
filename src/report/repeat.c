/* The command that repeats a report. */
#include "report/repeat.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gradcmp/sys/sweep.h"
#include "report/facts.h"

static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                            "-_./=:,@%+";

/* True where `word` holds nothing that printing would change. */
static bool is_printable(const char *word) {
    struct gcmp_text safe = GCMP_TEXT_INIT;
    gcmp_printable_add(&safe, word, true);
    bool same = safe.bytes != NULL && strcmp(safe.bytes, word) == 0;
    gcmp_text_free(&safe);
    return same;
}

static void add_quoted(struct gcmp_text *text, const char *word) {
    gcmp_text_add(text, "'");
    for (; *word != '\0'; word++) {
        if (*word == '\'') {
            gcmp_text_add(text, "'\\''");
        } else {
            gcmp_text_add_bytes(text, word, 1);
        }
    }
    gcmp_text_add(text, "'");
}

static void add_octal(struct gcmp_text *text, const char *word) {
    gcmp_text_add(text, "$'");
    for (; *word != '\0'; word++) {
        unsigned char byte = (unsigned char)*word;
        if (strchr(plain, byte) != NULL) {
            gcmp_text_add_bytes(text, word, 1);
        } else {
            gcmp_text_addf(text, "\\%03o", byte);
        }
    }
    gcmp_text_add(text, "'");
}

void gcmp_repeat_word(struct gcmp_text *text, const char *word) {
    if (word[0] != '\0' && word[strspn(word, plain)] == '\0') {
        gcmp_text_add(text, word);
    } else if (word[0] == '\0' || is_printable(word)) {
        add_quoted(text, word);
    } else {
        add_octal(text, word);
    }
}

/* The fewest digits from which the same binary64 is read back. */
static void add_real(struct gcmp_text *text, double real) {
    char digits[40];
    for (int precision = 6; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, real);
        if (strtod(digits, NULL) == real) {
            break;
        }
    }
    gcmp_text_addf(text, " %s", digits);
}

void gcmp_repeat_options(struct gcmp_text *text, const struct gradcmp_options *options) {
    struct gcmp_option_value values[GCMP_MAX_OPTION_VALUES];
    size_t count = gcmp_options_listed(options, values);
    for (size_t i = 0; i < count; i++) {
        gcmp_text_addf(text, "%s%s", i == 0 ? "" : " ", values[i].flag);
        switch (values[i].kind) {
        case GCMP_OPTION_TEXT:
            gcmp_text_add(text, " ");
            gcmp_repeat_word(text, values[i].text);
            break;
        case GCMP_OPTION_REAL:
            add_real(text, values[i].real);
            break;
        case GCMP_OPTION_COUNT:
            gcmp_text_addf(text, " %" PRIu64, values[i].count);
            break;
        case GCMP_OPTION_SWITCH:
            break;
        }
    }
}

void gcmp_repeat_line(struct gcmp_page *page, const char *label,
                      const struct gradcmp_options *options) {
    struct gcmp_text text = GCMP_TEXT_INIT;
    gcmp_repeat_options(&text, options);
    if (text.length_bytes > 0) {
        gcmp_page_add(page, label);
        gcmp_page_wrap(page, strlen(label), strlen(label), text.bytes);
    }
    page->out.text.failed = page->out.text.failed || text.failed;
    gcmp_text_free(&text);
}

void gcmp_repeat_option(struct gcmp_text *text, const char *flag, const char *word) {
    gcmp_text_addf(text, "%s%s", text->length_bytes == 0 ? "" : " ", flag);
    if (word != NULL) {
        gcmp_text_add(text, " ");
        gcmp_repeat_word(text, word);
    }
}

enum gradcmp_status gcmp_repeat_keep(struct gcmp_text *text, struct gcmp_arena *arena,
                                     const char **out, struct gradcmp_error *error) {
    bool is_empty = text->length_bytes == 0;
    *out = text->failed || is_empty ? NULL : gcmp_arena_dup(arena, text->bytes);
    bool lacks_memory = text->failed || (*out == NULL && !is_empty);
    gcmp_text_free(text);
    if (lacks_memory) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

/* A path like an option would be taken for one. */
static bool is_like_option(const struct gradcmp_report *report) {
    bool is = report->baseline_path[0] == '-';
    for (size_t i = 0; i < report->pair_count; i++) {
        is = is || report->pairs[i].path[0] == '-';
    }
    return is;
}

void gcmp_repeat_compare(struct gcmp_text *text, const struct gradcmp_report *report) {
    struct gcmp_text options = GCMP_TEXT_INIT;
    gcmp_repeat_options(&options, &report->options);
    gcmp_text_add(text, "gradcmp compare ");
    if (options.length_bytes > 0) {
        gcmp_text_addf(text, "%s ", options.bytes);
    }
    text->failed = text->failed || options.failed;
    gcmp_text_free(&options);
    gcmp_text_add(text, is_like_option(report) ? "-- " : "");
    gcmp_repeat_word(text, report->baseline_path);
    for (size_t i = 0; i < report->pair_count; i++) {
        gcmp_text_add(text, " ");
        gcmp_repeat_word(text, report->pairs[i].path);
    }
}

static void add_word(struct gcmp_text *text, const char *flag, const char *word) {
    if (word != NULL) {
        gcmp_text_addf(text, " %s%s", flag, flag[0] == '\0' ? "" : " ");
        gcmp_repeat_word(text, word);
    }
}

void gcmp_repeat_command(struct gcmp_text *text, const struct gradcmp_report *report) {
    const struct gradcmp_sweep *sweep = report->sweep;
    struct gcmp_text options = GCMP_TEXT_INIT;
    if (sweep == NULL) {
        gcmp_repeat_compare(text, report);
        return;
    }
    gcmp_repeat_options(&options, &report->options);
    gcmp_text_add(text, "gradcmp sweep");
    if (options.length_bytes > 0) {
        gcmp_text_addf(text, " %s", options.bytes);
    }
    add_word(text, "--plan", sweep->plan);
    add_word(text, "--golden", sweep->golden_named);
    add_word(text, "--baseline", sweep->baseline_named);
    add_word(text, sweep->folder != NULL && sweep->folder[0] == '-' ? "--" : "", sweep->folder);
    text->failed = text->failed || options.failed;
    gcmp_text_free(&options);
}
