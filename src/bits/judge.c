/* From entries to what is told: figures of groups, findings, the verdict. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bits/compare.h"

static bool is_different(const struct gcmp_bits_entry *entry) {
    return entry->how != GCMP_BITS_SAME;
}

/* --- findings --- */

static const char *shown(struct gcmp_arena *arena, const struct gcmp_bits_item *item) {
    struct gcmp_text text = GCMP_TEXT_INIT;
    gcmp_bits_show(&text, item);
    char *out = text.failed ? NULL : gcmp_arena_text(arena, text.bytes, text.length_bytes);
    gcmp_text_free(&text);
    return out;
}

static char json_kind(const struct gcmp_bits_item *item) {
    if (item == NULL || strcmp(item->type, "None") == 0) {
        return '0';
    }
    if (strcmp(item->type, "str") == 0) {
        return 's';
    }
    bool is_int = strcmp(item->type, "int") == 0;
    return is_int || strcmp(item->type, "float") == 0 ? 'n' : 't';
}

/* One of Python's numbers out of a list. */
static char *shown_number(struct gcmp_arena *arena, const struct gcmp_bits_item *list,
                          const unsigned char *element) {
    char digits[32];
    int64_t integer;
    memcpy(&integer, element, sizeof integer);
    bool is_int = list->dtype == GRADCMP_DTYPE_INT64;
    struct gcmp_bits_item item = {.kind = GCMP_BITS_VALUE, .type = is_int ? "int" : "float"};
    snprintf(digits, sizeof digits, "%lld", (long long)integer);
    item.bytes = is_int ? (const unsigned char *)digits : element;
    item.length_bytes = is_int ? strlen(digits) : 8;
    return (char *)(uintptr_t)shown(arena, &item);
}

/* The first element that differs. */
static bool tell_element(struct gcmp_arena *arena, const struct gcmp_bits_entry *entry,
                         struct gcmp_bits_finding *out) {
    const struct gcmp_bits_difference *difference = entry->difference;
    uint64_t *index = gcmp_arena_alloc(arena, difference->ndim + 1U, sizeof *index);
    uint64_t element = difference->first;
    for (unsigned d = difference->ndim; index != NULL && d-- > 0;) {
        index[d] = element % difference->shape[d];
        element /= difference->shape[d];
    }
    char a[2 + 2 * GCMP_BITS_MAX_ELEM_BYTES + 1], b[sizeof a];
    gcmp_bits_hex(difference->a, difference->elem_bytes, a);
    gcmp_bits_hex(difference->b, difference->elem_bytes, b);
    out->is_pattern = !entry->a->python;
    out->a =
        out->is_pattern ? gcmp_arena_dup(arena, a) : shown_number(arena, entry->a, difference->a);
    out->b =
        out->is_pattern ? gcmp_arena_dup(arena, b) : shown_number(arena, entry->b, difference->b);
    out->a_kind = out->b_kind = out->is_pattern ? 't' : 'n';
    out->index = index;
    out->ndim = difference->ndim;
    out->elems = difference->elems;
    out->different = difference->different;
    out->has_ulp =
        gcmp_bits_ulp((enum gradcmp_dtype)entry->a->dtype, difference->a, difference->b, &out->ulp);
    out->look = gcmp_bits_look(difference, entry->a->parameter, entry->b->parameter);
    return index != NULL && out->a != NULL && out->b != NULL;
}

static bool tell(struct gcmp_arena *arena, const struct gcmp_bits_entry *entry,
                 struct gcmp_bits_finding *out) {
    *out = (struct gcmp_bits_finding){.path = gcmp_arena_dup(arena, entry->path),
                                      .group = entry->group,
                                      .how = entry->how,
                                      .a_kind = json_kind(entry->a),
                                      .b_kind = json_kind(entry->b)};
    if (entry->difference != NULL && entry->difference->different > 0 &&
        entry->how != GCMP_BITS_LEFT_OUT) {
        return out->path != NULL && tell_element(arena, entry, out);
    }
    out->a = entry->a == NULL ? NULL : shown(arena, entry->a);
    out->b = entry->b == NULL ? NULL : shown(arena, entry->b);
    return out->path != NULL && (entry->a == NULL || out->a != NULL) &&
           (entry->b == NULL || out->b != NULL);
}

/* --- groups --- */

/* True where all differences of a group are in one rank's file, and another rank's has none. */
static bool is_one_rank(const struct gcmp_bits_match *match, enum gcmp_bits_group group) {
    const char *rank = NULL;
    size_t bytes = 0;
    bool others_same = false;
    for (size_t pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < match->count; i++) {
            const struct gcmp_bits_entry *entry = &match->entries[i];
            size_t here = entry->group == group ? gcmp_bits_rank_bytes(entry->path) : 0;
            if (entry->group != group) {
                continue;
            }
            if (is_different(entry) && rank == NULL) {
                rank = entry->path;
                bytes = here;
            }
            bool same_rank =
                /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): entries have paths */
                rank != NULL && here == bytes && strncmp(rank, entry->path, bytes) == 0;
            if (here == 0 || (pass == 1 && is_different(entry) && !same_rank)) {
                return false;
            }
            others_same = others_same || (pass == 1 && !same_rank);
        }
    }
    return others_same;
}

/* What all differences of a group look like together. */
static const char *group_look(const struct gcmp_bits_match *match, enum gcmp_bits_group group,
                              const struct gcmp_bits_group_result *result) {
    size_t shards = 0, tensors = 0;
    const char *only = NULL;
    for (size_t i = 0; i < match->count; i++) {
        const struct gcmp_bits_entry *entry = &match->entries[i];
        if (entry->group != group || entry->difference == NULL ||
            entry->difference->different == 0) {
            continue;
        }
        only = gcmp_bits_look(entry->difference, entry->a->parameter, entry->b->parameter);
        tensors++;
        shards += strcmp(only, "one shard") == 0;
    }
    if (tensors == 0 || (tensors == 1 && result->different == 1 && strcmp(only, "scattered") != 0 &&
                         strcmp(only, "all") != 0)) {
        return only;
    }
    if (result->different_elems == result->elems) {
        return "all";
    }
    return is_one_rank(match, group) || shards == tensors ? "one shard" : "scattered";
}

static void count(struct gcmp_bits_result *out, const struct gcmp_bits_entry *entry) {
    struct gcmp_bits_group_result *group = &out->groups[entry->group];
    group->items++;
    group->different += is_different(entry);
    if (entry->difference != NULL && entry->how != GCMP_BITS_LEFT_OUT) {
        group->elems += entry->difference->elems;
        group->different_elems += entry->difference->different;
    }
}

static enum gradcmp_status copy_words(struct gcmp_arena *arena, const char *const *words,
                                      size_t count, const char ***out,
                                      struct gradcmp_error *error) {
    *out = gcmp_arena_alloc(arena, count, sizeof **out);
    bool ok = *out != NULL;
    for (size_t i = 0; ok && i < count; i++) {
        (*out)[i] = gcmp_arena_dup(arena, words[i]);
        ok = (*out)[i] != NULL;
    }
    if (!ok) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

static int compare_paths(const void *left, const void *right) {
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* Ignored paths, sorted, each once. */
static enum gradcmp_status tell_ignored(const struct gcmp_bits_match *match,
                                        struct gcmp_arena *arena, struct gcmp_bits_result *out,
                                        struct gradcmp_error *error) {
    GCMP_TRY(copy_words(arena, match->ignored, match->ignored_count, &out->ignored, error));
    if (match->ignored_count == 0) {
        return GRADCMP_OK;
    }
    qsort(out->ignored, match->ignored_count, sizeof *out->ignored, compare_paths);
    for (size_t i = 0; i < match->ignored_count; i++) {
        if (i == 0 || strcmp(out->ignored[i], out->ignored[i - 1]) != 0) {
            out->ignored[out->ignored_count++] = out->ignored[i];
        }
    }
    return GRADCMP_OK;
}

/* Say what of flat buffers was not judged, or why all of it was. */
static enum gradcmp_status tell_gaps(const struct gcmp_bits_match *match, struct gcmp_arena *arena,
                                     struct gcmp_bits_result *out, struct gradcmp_error *error) {
    uint64_t elems = 0, whole = 0;
    const char *note = "";
    for (size_t i = 0; i < match->count; i++) {
        const struct gcmp_bits_entry *entry = &match->entries[i];
        bool is_first_copy = entry->how == GCMP_BITS_SAME || entry->how == GCMP_BITS_BY_VALUE;
        elems += entry->owned != NULL && is_first_copy ? entry->owned->gaps->different : 0;
        whole += entry->owned == NULL && entry->how == GCMP_BITS_BY_VALUE && entry->a->is_flat &&
                 entry->b->is_flat;
    }
    if (elems > 0) {
        note = gcmp_arena_format(arena,
                                 "elements of flat buffers that belong to no parameter differ "
                                 "(%llu) and are not judged: writers leave there what memory held",
                                 (unsigned long long)elems);
        out->notes[out->note_count++] = note;
    }
    if (whole > 0 && note != NULL && match->why_whole != NULL) {
        note = gcmp_arena_format(arena,
                                 "flat buffers are compared with what lies between their "
                                 "parameters, which writers leave as memory held it: %s",
                                 match->why_whole);
        out->notes[out->note_count++] = note;
    }
    if (note == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

/* Say what became of rows of the vocabulary that one side lacks, where they are not zero. */
static enum gradcmp_status tell_rows(const struct gcmp_bits_match *match, struct gcmp_arena *arena,
                                     struct gcmp_bits_result *out, struct gradcmp_error *error) {
    char others[40] = "";
    if (match->odd_count == 0) {
        return GRADCMP_OK;
    }
    if (match->odd_count > 1) {
        snprintf(others, sizeof others, " (and of %zu others)", match->odd_count - 1);
    }
    const char *note =
        match->vocab != 0
            ? gcmp_arena_format(arena,
                                "rows %llu and on of %s%s, which one side lacks, are not zero; the "
                                "vocabulary has %llu words, so they are padding",
                                (unsigned long long)match->odd_row, match->odd_rows, others,
                                (unsigned long long)match->vocab)
            : gcmp_arena_format(arena,
                                "rows %llu and on of %s%s, which one side lacks, are not zero, and "
                                "the size of the vocabulary is not known; if they are padding, say "
                                "--ignore '<padding>'",
                                (unsigned long long)match->odd_row, match->odd_rows, others);
    if (note == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    out->notes[out->note_count++] = note;
    return GRADCMP_OK;
}

static bool has_group(const struct gcmp_bits_match *match, size_t side, unsigned group) {
    const struct gcmp_bits_items *const lists[] = {&match->reduced[side], &match->ranked[side]};
    for (size_t list = 0; list < 2; list++) {
        for (size_t i = 0; i < lists[list]->count; i++) {
            if (lists[list]->list[i].group == group) {
                return true;
            }
        }
    }
    return false;
}

/* Name the groups of objects that one side lacks altogether and that were not judged for it. */
static enum gradcmp_status tell_lacking(const struct gcmp_bits_match *match,
                                        struct gcmp_arena *arena, struct gcmp_bits_result *out,
                                        struct gradcmp_error *error) {
    static const uint8_t groups[] = {GCMP_BITS_OPT_STEP, GCMP_BITS_OPT_HYPER, GCMP_BITS_SCHEDULER,
                                     GCMP_BITS_RNG,      GCMP_BITS_DATA,      GCMP_BITS_SCALER,
                                     GCMP_BITS_ARGS};
    for (size_t side = 0; match->layouts_differ && side < 2; side++) {
        struct gcmp_text text = GCMP_TEXT_INIT;
        for (size_t i = 0; i < sizeof groups; i++) {
            if (has_group(match, side, groups[i]) && !has_group(match, 1 - side, groups[i]) &&
                (match->left_out[side] >> groups[i] & 1U) != 0) {
                gcmp_text_addf(&text, "%s%s", text.length_bytes > 0 ? ", " : "",
                               gcmp_bits_group_name((enum gcmp_bits_group)groups[i]));
            }
        }
        bool has_some = text.length_bytes > 0;
        const char *note =
            text.failed || !has_some
                ? NULL
                : gcmp_arena_format(arena,
                                    "only in %c, and not judged, as the %s "
                                    "differ: %s",
                                    side == 0 ? 'A' : 'B',
                                    match->formats_differ ? "formats" : "layouts", text.bytes);
        bool failed = text.failed || (has_some && note == NULL);
        gcmp_text_free(&text);
        if (failed) {
            GCMP_FAIL_MEMORY(error);
        }
        if (has_some) {
            out->notes[out->note_count++] = note;
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status tell_notes(const struct gcmp_bits_match *match, struct gcmp_arena *arena,
                                      struct gcmp_bits_result *out, struct gradcmp_error *error) {
    const struct gcmp_bits_side *sides[] = {match->a, match->b};
    size_t total = match->a->note_count + match->b->note_count + 5;
    out->notes = gcmp_arena_alloc(arena, total, sizeof *out->notes);
    for (size_t side = 0; out->notes != NULL && side < 2; side++) {
        for (size_t i = 0; i < sides[side]->note_count; i++) {
            const char *note =
                gcmp_arena_format(arena, "%s: %s", sides[side]->path, sides[side]->notes[i]);
            if (note == NULL) {
                GCMP_FAIL_MEMORY(error);
            }
            out->notes[out->note_count++] = note;
        }
    }
    if (out->notes == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    GCMP_TRY(tell_lacking(match, arena, out, error));
    GCMP_TRY(tell_rows(match, arena, out, error));
    return tell_gaps(match, arena, out, error);
}

/* The first findings of each group, in the order of groups. */
static enum gradcmp_status tell_findings(const struct gcmp_bits_match *match,
                                         struct gcmp_arena *arena, struct gcmp_bits_result *out,
                                         struct gradcmp_error *error) {
    out->findings = gcmp_arena_alloc(arena, GCMP_BITS_MAX_FINDINGS, sizeof *out->findings);
    if (out->findings == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (unsigned group = 0; group < GCMP_BITS_GROUPS; group++) {
        size_t first = out->finding_count;
        for (size_t i = 0; i < match->count && out->groups[group].different > 0; i++) {
            const struct gcmp_bits_entry *entry = &match->entries[i];
            bool has_room =
                out->finding_count + (GCMP_BITS_GROUPS - group) < GCMP_BITS_MAX_FINDINGS ||
                out->finding_count == first;
            if (entry->group != group || !is_different(entry) || !has_room) {
                continue;
            }
            if (!tell(arena, entry, &out->findings[out->finding_count])) {
                GCMP_FAIL_MEMORY(error);
            }
            out->finding_count++;
        }
        if (out->finding_count > first) {
            out->groups[group].first = &out->findings[first];
            out->groups[group].look =
                group_look(match, (enum gcmp_bits_group)group, &out->groups[group]);
        }
    }
    return GRADCMP_OK;
}

static int compare_entries(const void *left, const void *right) {
    const struct gcmp_bits_entry *a = left, *b = right;
    int order = strcmp(a->path, b->path);
    return order != 0 ? order : (int)a->how - (int)b->how;
}

enum gradcmp_status gcmp_bits_judge(const struct gcmp_bits_match *match, struct gcmp_arena *arena,
                                    struct gcmp_bits_result *out, struct gradcmp_error *error) {
    bool differs = false;
    if (match->count > 0) {
        qsort(match->entries, match->count, sizeof *match->entries, compare_entries);
    }
    for (size_t i = 0; i < match->count; i++) {
        count(out, &match->entries[i]);
        differs = differs ||
                  (is_different(&match->entries[i]) && match->entries[i].group != GCMP_BITS_LAYOUT);
    }
    out->verdict = differs                 ? "differs"
                   : match->layouts_differ ? "identical_except_layout"
                                           : "identical";
    GCMP_TRY(tell_findings(match, arena, out, error));
    GCMP_TRY(tell_ignored(match, arena, out, error));
    return tell_notes(match, arena, out, error);
}
