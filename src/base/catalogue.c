/* Building a catalogue. */
#include "base/catalogue.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

uint64_t *gcmp_catalogue_dims(struct gradcmp_catalogue *catalogue, unsigned ndim,
                              const uint64_t *dims) {
    uint64_t *copy = gcmp_arena_alloc(catalogue->arena, ndim, sizeof *copy);
    if (copy != NULL && ndim > 0) {
        memcpy(copy, dims, ndim * sizeof *copy);
    }
    return copy;
}

enum gradcmp_status gcmp_catalogue_add_stored(struct gradcmp_catalogue *catalogue, const char *key,
                                              unsigned ndim, const uint64_t *shape,
                                              size_t piece_count, struct gradcmp_stored **out,
                                              struct gradcmp_error *error) {
    if (ndim > GRADCMP_MAX_NDIM) {
        GCMP_FAIL(error, GRADCMP_ERROR_LIMIT, "tensor \"%s\": %u axes, at most %d are read", key,
                  ndim, GRADCMP_MAX_NDIM);
    }
    if (!gcmp_grow(&catalogue->stored, catalogue->stored_count, &catalogue->stored_capacity,
                   sizeof *catalogue->stored)) {
        GCMP_FAIL_MEMORY(error);
    }
    struct gradcmp_stored *stored = &catalogue->stored[catalogue->stored_count];
    memset(stored, 0, sizeof *stored);
    stored->key = key;
    stored->name = key;
    stored->ndim = (uint8_t)ndim;
    stored->shape = gcmp_catalogue_dims(catalogue, ndim, shape);
    stored->pieces = gcmp_arena_alloc(catalogue->arena, piece_count, sizeof *stored->pieces);
    stored->piece_count = piece_count;
    if (stored->shape == NULL || stored->pieces == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    catalogue->stored_count++;
    *out = stored;
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_catalogue_add_source(struct gradcmp_catalogue *catalogue,
                                              const struct gradcmp_source *source, uint32_t *index,
                                              struct gradcmp_error *error) {
    if (catalogue->source_count >= UINT32_MAX) {
        GCMP_FAIL(error, GRADCMP_ERROR_LIMIT, "more than %u pieces", UINT32_MAX);
    }
    if (!gcmp_grow(&catalogue->sources, catalogue->source_count, &catalogue->source_capacity,
                   sizeof *source)) {
        GCMP_FAIL_MEMORY(error);
    }
    *index = (uint32_t)catalogue->source_count;
    catalogue->sources[catalogue->source_count++] = *source;
    return GRADCMP_OK;
}

const struct gradcmp_setting *gcmp_catalogue_setting(const struct gradcmp_catalogue *catalogue,
                                                     const char *name) {
    for (size_t i = 0; i < catalogue->setting_count; i++) {
        if (strcmp(catalogue->settings[i].name, name) == 0) {
            return &catalogue->settings[i];
        }
    }
    return NULL;
}

bool gcmp_says_tied(const struct gradcmp_catalogue *catalogue, bool tied) {
    const struct gradcmp_setting *untie =
        gcmp_catalogue_setting(catalogue, "untie_embeddings_and_output_weights");
    return untie != NULL && untie->kind == GRADCMP_SETTING_BOOL && (untie->integer == 0) == tied;
}

bool gcmp_masters_stand_for_weights(const struct gradcmp_catalogue *catalogue) {
    return catalogue->layout_name != NULL && strcmp(catalogue->layout_name, "universal") == 0;
}

enum gradcmp_status gcmp_catalogue_set(struct gradcmp_catalogue *catalogue,
                                       const struct gradcmp_setting *setting,
                                       struct gradcmp_error *error) {
    if (gcmp_catalogue_setting(catalogue, setting->name) != NULL) {
        return GRADCMP_OK;
    }
    if (!gcmp_grow(&catalogue->settings, catalogue->setting_count, &catalogue->setting_capacity,
                   sizeof *setting)) {
        GCMP_FAIL_MEMORY(error);
    }
    struct gradcmp_setting copy = *setting;
    copy.name = gcmp_arena_dup(catalogue->arena, setting->name);
    if (setting->text != NULL) {
        copy.text = gcmp_arena_dup(catalogue->arena, setting->text);
    }
    if (copy.name == NULL || (setting->text != NULL && copy.text == NULL)) {
        GCMP_FAIL_MEMORY(error);
    }
    catalogue->settings[catalogue->setting_count++] = copy;
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_catalogue_note(struct gradcmp_catalogue *catalogue,
                                        struct gradcmp_error *error, const char *format, ...) {
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (!gcmp_grow(&catalogue->notes, catalogue->note_count, &catalogue->note_capacity,
                   sizeof *catalogue->notes)) {
        GCMP_FAIL_MEMORY(error);
    }
    const char *copy = gcmp_arena_dup(catalogue->arena, line);
    if (copy == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    catalogue->notes[catalogue->note_count++] = copy;
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_catalogue_contradict(struct gradcmp_catalogue *catalogue,
                                              struct gradcmp_error *error, const char *line) {
    if (!gcmp_grow(&catalogue->contradictions, catalogue->contradiction_count,
                   &catalogue->contradiction_capacity, sizeof *catalogue->contradictions)) {
        GCMP_FAIL_MEMORY(error);
    }
    GCMP_TRY(gcmp_catalogue_note(catalogue, error, "%s", line));
    catalogue->contradictions[catalogue->contradiction_count++] =
        catalogue->notes[catalogue->note_count - 1];
    return GRADCMP_OK;
}

void gcmp_catalogue_free(struct gradcmp_catalogue *catalogue) {
    free(catalogue->stored);
    free(catalogue->sources);
    free(catalogue->settings);
    free(catalogue->notes);
    free(catalogue->contradictions);
    catalogue->stored = NULL;
    catalogue->sources = NULL;
    catalogue->settings = NULL;
    catalogue->notes = NULL;
    catalogue->contradictions = NULL;
}

/* NaN is one value here: not known on both sides. */
static bool same_number(double a, double b) {
    return isnan(a) ? isnan(b) : a >= b && a <= b;
}

bool gcmp_same_adam(const struct gradcmp_adam *a, const struct gradcmp_adam *b) {
    return a == b || (a != NULL && b != NULL && same_number(a->beta1, b->beta1) &&
                      same_number(a->beta2, b->beta2) && same_number(a->step, b->step));
}
