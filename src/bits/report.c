/* The report: groups in a table, the first difference of each, the last line alone. */
#include "bits/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/json.h"
#include "report/page.h"
#include "report/printable.h"

/* --- words --- */

static const char *how_name(uint8_t how) {
    static const char *const names[] = {"same",
                                        "value",
                                        "type",
                                        "shape",
                                        "missing_in_a",
                                        "missing_in_b",
                                        "copies_differ_in_a",
                                        "copies_differ_in_b",
                                        "left_out",
                                        "missing_in_ranks_of_a",
                                        "missing_in_ranks_of_b"};
    return names[how];
}

static void add_index(struct gcmp_text *text, const struct gcmp_bits_finding *finding) {
    for (unsigned d = 0; finding->index != NULL && d < finding->ndim; d++) {
        gcmp_text_addf(text, "%s%llu%s", d == 0 ? "[" : ", ", (unsigned long long)finding->index[d],
                       d + 1 == finding->ndim ? "]" : "");
    }
}

static void add_sentence(struct gcmp_text *text, const struct gcmp_bits_finding *finding) {
    gcmp_text_add(text, finding->path);
    add_index(text, finding);
    switch ((enum gcmp_bits_how)finding->how) {
    case GCMP_BITS_MISSING_IN_A:
        gcmp_text_add(text, ": only in B");
        return;
    case GCMP_BITS_MISSING_IN_B:
        gcmp_text_add(text, ": only in A");
        return;
    case GCMP_BITS_LOST_BY_RANKS_OF_A:
        gcmp_text_add(text, ": not in every rank of A");
        return;
    case GCMP_BITS_LOST_BY_RANKS_OF_B:
        gcmp_text_add(text, ": not in every rank of B");
        return;
    case GCMP_BITS_LEFT_OUT:
        gcmp_text_add(text, ": left out");
        return;
    case GCMP_BITS_BY_COPY_A:
        gcmp_text_add(text, ": copies differ in A");
        break;
    case GCMP_BITS_BY_COPY_B:
        gcmp_text_add(text, ": a copy in B differs from A");
        break;
    default:
        break;
    }
    gcmp_text_addf(text, ": %s != %s", finding->a, finding->b);
    if (finding->has_ulp && finding->is_pattern) {
        gcmp_text_addf(text, " (%llu ulp)", (unsigned long long)finding->ulp);
    }
}

char *gcmp_bits_sentence(struct gcmp_arena *arena, const struct gcmp_bits_finding *finding) {
    struct gcmp_text text = GCMP_TEXT_INIT;
    add_sentence(&text, finding);
    char *out = text.failed ? NULL : gcmp_arena_text(arena, text.bytes, text.length_bytes);
    gcmp_text_free(&text);
    return out;
}

/* --- text --- */

static void share(struct gcmp_page *page, const struct gcmp_bits_group_result *group) {
    char different[GCMP_FIGURE_BYTES], elems[GCMP_FIGURE_BYTES];
    if (group->different_elems == 0) {
        return;
    }
    gcmp_page_addf(page, ", %s of %s (%.2g%%)",
                   gcmp_figure_count(different, group->different_elems),
                   gcmp_figure_count(elems, group->elems),
                   100.0 * (double)group->different_elems / (double)group->elems);
}

static void text_group(struct gcmp_page *page, const struct gcmp_bits_result *result,
                       unsigned index) {
    const struct gcmp_bits_group_result *group = &result->groups[index];
    const char *name = gcmp_bits_group_name((enum gcmp_bits_group)index);
    char items[GCMP_FIGURE_BYTES];
    gcmp_page_addf(page, "  %-11s %9s  ", name, gcmp_figure_count(items, group->items));
    if (group->different == 0) {
        gcmp_page_ink(page, GCMP_INK_GOOD, "identical");
    } else if (index == GCMP_BITS_LAYOUT) {
        gcmp_page_ink(page, GCMP_INK_DOUBT, "left out");
    } else {
        gcmp_page_ink(page, GCMP_INK_BAD, index == GCMP_BITS_KEYS ? "missing" : "differs");
        gcmp_page_addf(page, ": %s", gcmp_figure_count(items, group->different));
        share(page, group);
        gcmp_page_addf(page, "%s%s", group->look == NULL ? "" : ", ",
                       group->look == NULL ? "" : group->look);
    }
    gcmp_page_end_line(page);
}

/* "PATH: what differs" on one line where it fits; else what differs comes below the path. */
static void add_fitting(struct gcmp_page *page, char *sentence, const char *path) {
    enum { COLUMN = 14 };
    char *colon = sentence == NULL ? NULL : strstr(sentence, ": ");
    if (colon == NULL || COLUMN + gcmp_printable_columns(sentence) <= page->width) {
        gcmp_page_name(page, sentence == NULL ? path : sentence);
        gcmp_page_end_line(page);
        return;
    }
    colon[1] = '\0';
    gcmp_page_name(page, sentence);
    gcmp_page_end_line(page);
    gcmp_page_pad(page, 0, COLUMN);
    gcmp_page_wrap(page, COLUMN, COLUMN, colon + 2);
}

static void text_findings(struct gcmp_page *page, const struct gcmp_bits_result *result) {
    size_t shown = 0, limit = page->verbose ? result->finding_count : page->top;
    struct gcmp_text line = GCMP_TEXT_INIT;
    for (size_t i = 0; i < result->finding_count; i++) {
        const struct gcmp_bits_finding *finding = &result->findings[i];
        bool is_first = result->groups[finding->group].first == finding;
        if (shown >= limit && !is_first) {
            continue;
        }
        if (shown++ == 0) {
            gcmp_page_heading(page, "Differences");
        }
        gcmp_text_clear(&line);
        add_sentence(&line, finding);
        if (finding->look != NULL) {
            char different[GCMP_FIGURE_BYTES], elems[GCMP_FIGURE_BYTES];
            gcmp_text_addf(&line, ", %s of %s, %s",
                           gcmp_figure_count(different, finding->different),
                           gcmp_figure_count(elems, finding->elems), finding->look);
        }
        gcmp_page_addf(page, "  %-11s ", gcmp_bits_group_name(finding->group));
        add_fitting(page, line.failed ? NULL : line.bytes, finding->path);
    }
    page->out.text.failed = page->out.text.failed || line.failed;
    if (shown < result->finding_count) {
        gcmp_page_addf(page, "  and %zu more (--top N, --verbose)", result->finding_count - shown);
        gcmp_page_end_line(page);
    }
    gcmp_text_free(&line);
}

static void text_words(struct gcmp_page *page, const char *title, const char *const *words,
                       size_t count) {
    struct gcmp_text text = GCMP_TEXT_INIT;
    for (size_t i = 0; i < count; i++) {
        gcmp_text_addf(&text, "%s%s", i == 0 ? "" : ", ", words[i]);
    }
    if (count > 0 && !text.failed) {
        gcmp_page_addf(page, "%-12s", title);
        gcmp_page_wrap(page, 12, 12, text.bytes);
    }
    page->out.text.failed = page->out.text.failed || text.failed;
    gcmp_text_free(&text);
}

/* What could not be read, and at which byte; its file before that, unless it is the side itself. */
static void add_error(struct gcmp_text *text, const struct gcmp_bits_result *result,
                      bool with_file) {
    const struct gradcmp_error *error = &result->error;
    if (with_file && error->path[0] != '\0' && strcmp(error->path, result->b) != 0) {
        gcmp_text_addf(text, "%s: ", error->path);
    }
    gcmp_text_add(text, error->message);
    if (error->offset_bytes != GRADCMP_NO_OFFSET) {
        gcmp_text_addf(text, " (byte 0x%llx)", (unsigned long long)error->offset_bytes);
    }
}

static void text_error(struct gcmp_page *page, const struct gcmp_bits_result *result) {
    struct gcmp_text text = GCMP_TEXT_INIT;
    add_error(&text, result, true);
    gcmp_page_add(page, "            ");
    gcmp_page_ink(page, GCMP_INK_BAD, "error: ");
    gcmp_page_wrap(page, 19, 12, text.failed ? result->error.message : text.bytes);
    gcmp_text_free(&text);
}

static void text_result(struct gcmp_page *page, const struct gcmp_bits_findings *content,
                        const struct gcmp_bits_result *result) {
    gcmp_page_add(page, "A           ");
    gcmp_page_name(page, result->a);
    gcmp_page_end_line(page);
    gcmp_page_add(page, "B           ");
    gcmp_page_name(page, result->b);
    gcmp_page_end_line(page);
    if (result->iteration >= 0 && content->by_iteration) {
        gcmp_page_addf(page, "iteration   %lld", (long long)result->iteration);
        gcmp_page_end_line(page);
    }
    if (result->error.code != GRADCMP_OK) {
        text_error(page, result);
        return;
    }
    for (unsigned i = 0; i < GCMP_BITS_GROUPS; i++) {
        if (result->groups[i].items > 0) {
            text_group(page, result, i);
        }
    }
    text_findings(page, result);
    text_words(page, "ignored", result->ignored, result->ignored_count);
    text_words(page, "note", result->notes, result->note_count);
}

/* Of many iterations only those that both have and that are not identical are shown in full. */
static bool is_shown(const struct gcmp_page *page, const struct gcmp_bits_findings *content,
                     const struct gcmp_bits_result *result) {
    return !content->by_iteration || page->verbose ||
           (strcmp(result->verdict, "differs") == 0 && !result->is_lost) ||
           strcmp(result->verdict, "error") == 0;
}

static void write_text(const struct gradcmp_evidence *evidence, struct gcmp_page *page) {
    const struct gcmp_bits_findings *content = evidence->content;
    size_t identical = 0;
    for (size_t i = 0; i < content->count; i++) {
        if (is_shown(page, content, &content->results[i])) {
            text_result(page, content, &content->results[i]);
            gcmp_page_end_line(page);
        } else {
            identical += !content->results[i].is_lost;
        }
        gcmp_out_drain(&page->out);
    }
    if (identical > 0) {
        gcmp_page_addf(page, "%zu iterations are identical", identical);
        gcmp_page_end_line(page);
    }
    text_words(page, "note", evidence->notes, evidence->note_count);
    gcmp_page_name(page, evidence->summary);
    gcmp_page_end_line(page);
}

/* --- JSON --- */

static void json_side(struct gcmp_emitter *json, const char *key, const char *text, char kind) {
    if (text == NULL || kind == '0') {
        gcmp_emit_null(json, key);
        return;
    }
    double number = kind == 'n' ? strtod(text, NULL) : 0.0;
    size_t bytes = strlen(text);
    if (kind == 'n' && strpbrk(text, ".einf") == NULL && bytes < 19) {
        gcmp_emit_integer(json, key, strtoll(text, NULL, 10));
    } else if (kind == 'n' && strncmp(text, "nan", 3) != 0 && bytes < 26 &&
               strpbrk(text, ".e") != NULL) {
        gcmp_emit_real(json, key, number);
    } else if (kind == 's' && bytes > 1 && text[bytes - 1] == '"') {
        char *inside = strndup(text + 1, bytes - 2); /* without the quotes */
        gcmp_emit_text(json, key, inside == NULL ? text : inside);
        free(inside);
    } else {
        gcmp_emit_text(json, key, text);
    }
}

static void json_finding(struct gcmp_emitter *json, const char *key,
                         const struct gcmp_bits_finding *finding) {
    gcmp_emit_open_object(json, key, false);
    gcmp_emit_text(json, "path", finding->path);
    gcmp_emit_text(json, "kind", how_name(finding->how));
    if (finding->index != NULL) {
        gcmp_emit_sizes(json, "index", finding->index, finding->ndim);
    } else {
        gcmp_emit_null(json, "index");
    }
    json_side(json, "a", finding->a, finding->a_kind);
    json_side(json, "b", finding->b, finding->b_kind);
    if (finding->has_ulp) {
        gcmp_emit_count(json, "ulp", finding->ulp);
    } else {
        gcmp_emit_null(json, "ulp");
    }
    gcmp_emit_text(json, "looks_like", finding->look);
    if (finding->index != NULL) {
        gcmp_emit_count(json, "elements", finding->elems);
        gcmp_emit_count(json, "different_elements", finding->different);
    }
    gcmp_emit_close(json);
}

static void json_group(struct gcmp_emitter *json, const struct gcmp_bits_group_result *group,
                       unsigned index) {
    gcmp_emit_open_object(json, NULL, false);
    gcmp_emit_text(json, "name", gcmp_bits_group_name((enum gcmp_bits_group)index));
    gcmp_emit_text(json, "verdict", group->different == 0 ? "identical" : "differs");
    gcmp_emit_count(json, "items", group->items);
    gcmp_emit_count(json, "different", group->different);
    gcmp_emit_count(json, "elements", group->elems);
    gcmp_emit_count(json, "different_elements", group->different_elems);
    gcmp_emit_text(json, "looks_like", group->look);
    if (group->first == NULL) {
        gcmp_emit_null(json, "first");
    } else {
        json_finding(json, "first", group->first);
    }
    gcmp_emit_close(json);
}

static void json_words(struct gcmp_emitter *json, const char *key, const char *const *words,
                       size_t count) {
    gcmp_emit_open_array(json, key, false);
    for (size_t i = 0; i < count; i++) {
        gcmp_emit_text(json, NULL, words[i]);
    }
    gcmp_emit_close(json);
}

/* What was found of one pair. */
static void json_result(struct gcmp_emitter *json, const struct gcmp_bits_result *result) {
    gcmp_emit_open_array(json, "groups", true);
    for (unsigned i = 0; i < GCMP_BITS_GROUPS; i++) {
        if (result->groups[i].items > 0) {
            json_group(json, &result->groups[i], i);
        }
    }
    gcmp_emit_close(json);
    gcmp_emit_open_array(json, "differences", true);
    for (size_t i = 0; i < result->finding_count; i++) {
        json_finding(json, NULL, &result->findings[i]);
    }
    gcmp_emit_close(json);
    json_words(json, "ignored", result->ignored, result->ignored_count);
    json_words(json, "notes", result->notes, result->note_count);
}

static void json_candidate(struct gcmp_emitter *json, const struct gcmp_bits_result *result) {
    gcmp_emit_open_object(json, NULL, true);
    gcmp_emit_text(json, "a", result->a);
    gcmp_emit_text(json, "path", result->b);
    if (result->iteration >= 0) {
        gcmp_emit_integer(json, "iteration", result->iteration);
    } else {
        gcmp_emit_null(json, "iteration");
    }
    gcmp_emit_text(json, "verdict", result->verdict);
    if (result->error.code != GRADCMP_OK) {
        gcmp_emit_open_object(json, "error", false);
        gcmp_emit_text(json, "file", result->error.path);
        if (result->error.offset_bytes == GRADCMP_NO_OFFSET) {
            gcmp_emit_null(json, "offset");
        } else {
            gcmp_emit_count(json, "offset", result->error.offset_bytes);
        }
        gcmp_emit_text(json, "message", result->error.message);
        gcmp_emit_close(json);
    }
    json_result(json, result);
    gcmp_emit_close(json);
}

/* How bad a result is; an iteration that differs tells more than one that is not there. */
enum badness { IDENTICAL, OTHER_LAYOUT, LOST, DIFFERENT, UNREAD };

static enum badness badness(const struct gcmp_bits_result *result) {
    return strcmp(result->verdict, "error") == 0                     ? UNREAD
           : result->is_lost                                         ? LOST
           : strcmp(result->verdict, "differs") == 0                 ? DIFFERENT
           : strcmp(result->verdict, "identical_except_layout") == 0 ? OTHER_LAYOUT
                                                                     : IDENTICAL;
}

/* The first result of the worst verdict; of runs' folders the first iteration that differs. */
static const struct gcmp_bits_result *leading(const struct gcmp_bits_findings *content) {
    const struct gcmp_bits_result *worst = NULL;
    for (size_t i = 0; i < content->count; i++) {
        if (worst == NULL || badness(&content->results[i]) > badness(worst)) {
            worst = &content->results[i];
        }
    }
    return worst;
}

static void write_json(const struct gradcmp_evidence *evidence, struct gcmp_emitter *json) {
    const struct gcmp_bits_findings *content = evidence->content;
    const struct gcmp_bits_result *first = leading(content);
    gcmp_emit_text(json, "summary", evidence->summary);
    gcmp_emit_open_object(json, "options", false);
    json_words(json, "ignore", content->ignores, content->ignore_count);
    gcmp_emit_bool(json, "no_default_ignore", content->no_default_ignores);
    gcmp_emit_text(json, "hash", content->hash_file);
    gcmp_emit_close(json);
    if (first != NULL) {
        gcmp_emit_text(json, "a", first->a);
        gcmp_emit_text(json, "b", first->b);
        if (content->by_iteration) {
            bool differs = badness(first) >= LOST;
            if (differs) {
                gcmp_emit_integer(json, "first_different_iteration", first->iteration);
            } else {
                gcmp_emit_null(json, "first_different_iteration");
            }
        }
        json_result(json, first);
    }
    if (content->hash_file != NULL) {
        gcmp_emit_bool(json, "hash_written", content->hash_written);
        gcmp_emit_count(json, "hash_entries", content->hash_entries);
    }
    json_words(json, "run_notes", evidence->notes, evidence->note_count);
    gcmp_emit_open_array(json, "candidates", true);
    for (size_t i = 0; i < content->count && content->count > 1; i++) {
        json_candidate(json, &content->results[i]);
    }
    gcmp_emit_close(json);
}

const struct gradcmp_evidence_writers gcmp_bits_writers = {.text = write_text, .json = write_json};

/* --- conclusions --- */

static enum gradcmp_status add_case(struct gradcmp_evidence *evidence, const char *group,
                                    const char *name, enum gradcmp_case_outcome outcome,
                                    const char *text) {
    if (group == NULL || name == NULL) {
        return GRADCMP_ERROR_MEMORY;
    }
    struct gradcmp_case *entry = &evidence->cases[evidence->case_count++];
    *entry = (struct gradcmp_case){.group = group, .name = name, .outcome = outcome, .text = text};
    return GRADCMP_OK;
}

static enum gradcmp_status add_error_case(struct gradcmp_evidence *evidence,
                                          const struct gcmp_bits_result *result) {
    struct gcmp_text text = GCMP_TEXT_INIT;
    add_error(&text, result, false);
    const char *own = text.failed ? NULL : gcmp_arena_dup(evidence->arena, text.bytes);
    gcmp_text_free(&text);
    if (own == NULL) {
        return GRADCMP_ERROR_MEMORY;
    }
    GCMP_TRY(add_case(evidence, result->b, "read", GRADCMP_CASE_ERROR, own));
    const char *path = result->error.path;
    evidence->cases[evidence->case_count - 1].file = path[0] == '\0' ? result->b : path;
    return GRADCMP_OK;
}

static enum gradcmp_status add_cases(struct gradcmp_evidence *evidence,
                                     const struct gcmp_bits_result *result) {
    struct gcmp_arena *arena = evidence->arena;
    if (result->error.code != GRADCMP_OK) {
        return add_error_case(evidence, result);
    }
    for (unsigned i = 0; i < GCMP_BITS_GROUPS; i++) {
        const struct gcmp_bits_group_result *group = &result->groups[i];
        if (group->items == 0) {
            continue;
        }
        const char *text = group->first == NULL ? NULL : gcmp_bits_sentence(arena, group->first);
        if (group->first != NULL && text == NULL) {
            return GRADCMP_ERROR_MEMORY;
        }
        enum gradcmp_case_outcome outcome = group->different == 0   ? GRADCMP_CASE_PASS
                                            : i == GCMP_BITS_LAYOUT ? GRADCMP_CASE_SKIPPED
                                                                    : GRADCMP_CASE_FAIL;
        GCMP_TRY(add_case(evidence, result->b, gcmp_bits_group_name((enum gcmp_bits_group)i),
                          outcome, text));
    }
    return GRADCMP_OK;
}

static const struct gcmp_bits_finding *first_finding(const struct gcmp_bits_result *result) {
    for (unsigned i = 0; i < GCMP_BITS_GROUPS; i++) {
        if (result->groups[i].first != NULL && i != GCMP_BITS_LAYOUT) {
            return result->groups[i].first;
        }
    }
    return NULL;
}

/* The groups that differ, and the first difference of all. */
static void summarise_different(struct gcmp_text *text, const struct gcmp_bits_result *result) {
    const struct gcmp_bits_finding *first = first_finding(result);
    bool is_next = false;
    for (unsigned i = 0; i < GCMP_BITS_GROUPS; i++) {
        if (result->groups[i].different > 0 && i != GCMP_BITS_LAYOUT) {
            gcmp_text_addf(text, "%s%s", is_next ? ", " : ": ",
                           gcmp_bits_group_name((enum gcmp_bits_group)i));
            is_next = true;
        }
    }
    if (first != NULL) {
        gcmp_text_add(text, "; ");
        add_sentence(text, first);
        gcmp_text_addf(text, "%s%s", first->look == NULL ? "" : ", ",
                       first->look == NULL ? "" : first->look);
    }
}

static void summarise_error(struct gcmp_text *text, const struct gcmp_bits_result *result) {
    size_t side_bytes = strlen(result->b);
    bool is_below = strncmp(result->error.path, result->b, side_bytes) == 0 &&
                    result->error.path[side_bytes] != '\0';
    gcmp_text_addf(text, ": %s%s", is_below ? "" : result->b, is_below ? "" : ": ");
    add_error(text, result, true);
}

static void summarise_identical(struct gcmp_text *text, const struct gcmp_bits_findings *content,
                                const struct gcmp_bits_result *only) {
    uint64_t items = 0, elems = 0;
    for (size_t i = 0; i < content->count; i++) {
        const struct gcmp_bits_result *result = &content->results[i];
        for (unsigned k = 0; k < GCMP_BITS_KEYS && (content->by_iteration || result == only); k++) {
            items += result->groups[k].items;
            elems += result->groups[k].elems;
        }
    }
    gcmp_text_add(text, ": ");
    if (content->by_iteration) {
        gcmp_text_addf(text, "%zu iterations, ", content->count);
    }
    gcmp_text_addf(text, "%llu items", (unsigned long long)items);
    if (elems > 0) { /* none of fingerprints */
        gcmp_text_addf(text, ", %llu elements", (unsigned long long)elems);
    }
}

/* Iterations that runs lack: which is the first, and how many there are. */
static void summarise_lost(struct gcmp_text *text, const struct gcmp_bits_findings *content,
                           bool is_all) {
    const struct gcmp_bits_result *first = NULL;
    size_t lost = 0, identical = 0;
    for (size_t i = 0; i < content->count; i++) {
        const struct gcmp_bits_result *result = &content->results[i];
        first = first == NULL && result->is_lost ? result : first;
        lost += result->is_lost;
        identical += badness(result) < LOST;
    }
    if (first == NULL) {
        return;
    }
    gcmp_text_addf(text, "%s %s is not in %s", is_all ? ":" : ";", first->findings[0].path,
                   first->b);
    if (lost > 1) {
        gcmp_text_addf(text, " (and %zu more)", lost - 1);
    }
    if (is_all) {
        gcmp_text_addf(text, "; the other %zu are identical", identical);
    }
}

static char *summarise(struct gradcmp_evidence *evidence, const struct gcmp_bits_result *result) {
    const struct gcmp_bits_findings *content = evidence->content;
    struct gcmp_text text = GCMP_TEXT_INIT;
    enum badness worst = badness(result);
    gcmp_text_add(&text, evidence->verdict);
    if (content->by_iteration && worst >= DIFFERENT) {
        gcmp_text_addf(&text, " from iteration %lld on", (long long)result->iteration);
    }
    switch (worst) {
    case UNREAD:
        summarise_error(&text, result);
        break;
    case DIFFERENT:
        summarise_different(&text, result);
        break;
    case LOST:
        break;
    default:
        summarise_identical(&text, content, result);
    }
    summarise_lost(&text, content, worst == LOST);
    char *out =
        text.failed ? NULL : gcmp_arena_text(evidence->arena, text.bytes, text.length_bytes);
    gcmp_text_free(&text);
    return out;
}

enum gradcmp_status gcmp_bits_conclude(struct gradcmp_evidence *evidence,
                                       struct gradcmp_error *error) {
    const struct gcmp_bits_findings *content = evidence->content;
    const struct gcmp_bits_result *worst = leading(content);
    evidence->cases = gcmp_arena_alloc(evidence->arena, content->count * GCMP_BITS_GROUPS + 1,
                                       sizeof *evidence->cases);
    if (evidence->cases == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < content->count; i++) {
        if (add_cases(evidence, &content->results[i]) != GRADCMP_OK) {
            GCMP_FAIL_MEMORY(error);
        }
    }
    evidence->verdict = worst == NULL ? "identical" : worst->verdict;
    evidence->exit_status = worst == NULL              ? 0
                            : badness(worst) == UNREAD ? 2
                                                       : badness(worst) >= LOST;
    if (evidence->summary == NULL) {
        evidence->summary = worst == NULL ? "nothing compared" : summarise(evidence, worst);
    }
    if (evidence->summary == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}
