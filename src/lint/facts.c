/* Settings of a run, gathered. */
#include "lint/facts.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

enum { MAX_NOTES = 50, MAX_DOUBTS = 50, MAX_KEY_BYTES = 4096 };

/* The key of the map: the kind, then the name. */
static size_t make_key(char out[MAX_KEY_BYTES], enum gcmp_lint_kind kind, const char *name) {
    int length = snprintf(out, MAX_KEY_BYTES, "%c%s", (char)('0' + (int)kind), name);
    return length < 0 || length >= MAX_KEY_BYTES ? 0 : (size_t)length;
}

static enum gradcmp_status copy(struct gcmp_arena *arena, const char **text,
                                struct gradcmp_error *error) {
    if (*text != NULL && (*text = gcmp_arena_dup(arena, *text)) == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status add(struct gcmp_lint_source *source, const char *key, size_t key_bytes,
                               size_t *index, struct gradcmp_error *error) {
    if (source->count >= GCMP_LINT_MAX_SETTINGS) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_LIMIT, source->path, GRADCMP_NO_OFFSET,
                     "more than %d settings", GCMP_LINT_MAX_SETTINGS);
    }
    if (!gcmp_grow(&source->settings, source->count, &source->capacity, sizeof *source->settings)) {
        GCMP_FAIL_MEMORY(error);
    }
    char *own = gcmp_arena_text(source->arena, key, key_bytes);
    if (own == NULL ||
        gcmp_map_add(&source->names, own, key_bytes, source->count, NULL) != GCMP_MAP_ADDED) {
        GCMP_FAIL_MEMORY(error);
    }
    *index = source->count++;
    source->settings[*index] = (struct gcmp_lint_setting){0};
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_lint_set(struct gcmp_lint_source *source,
                                  const struct gcmp_lint_setting *setting,
                                  struct gradcmp_error *error) {
    char key[MAX_KEY_BYTES];
    size_t index, key_bytes = make_key(key, setting->kind, setting->name);
    if (key_bytes == 0) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_LIMIT, source->path, GRADCMP_NO_OFFSET,
                     "line %llu: a name of more than %d bytes", (unsigned long long)setting->line,
                     MAX_KEY_BYTES - 2);
    }
    if (!gcmp_map_find(&source->names, key, key_bytes, &index)) {
        GCMP_TRY(add(source, key, key_bytes, &index, error));
    }
    struct gcmp_lint_setting own = *setting;
    GCMP_TRY(copy(source->arena, &own.name, error));
    GCMP_TRY(copy(source->arena, &own.text, error));
    GCMP_TRY(copy(source->arena, &own.more, error));
    GCMP_TRY(copy(source->arena, &own.raw, error));
    GCMP_TRY(copy(source->arena, &own.path, error));
    unsigned times = own.times > 0 ? own.times : 1;
    own.times = source->settings[index].times + (own.is_unset ? 0 : times);
    source->settings[index] = own;
    return GRADCMP_OK;
}

const struct gcmp_lint_setting *gcmp_lint_find(const struct gcmp_lint_source *source,
                                               enum gcmp_lint_kind kind, const char *name) {
    char key[MAX_KEY_BYTES];
    size_t index, key_bytes = make_key(key, kind, name);
    if (key_bytes == 0 || !gcmp_map_find(&source->names, key, key_bytes, &index) ||
        source->settings[index].is_unset) {
        return NULL;
    }
    return &source->settings[index];
}

/* The name of an argument, from its spelling; its length. */
static size_t write_name(char name[MAX_KEY_BYTES], const char *spelling) {
    size_t at = 0;
    spelling += strspn(spelling, "-");
    for (; spelling[at] != '\0' && at + 1 < MAX_KEY_BYTES; at++) {
        name[at] = spelling[at] == '-' ? '_' : spelling[at];
    }
    name[at] = '\0';
    return at;
}

const char *gcmp_lint_argument_name(struct gcmp_arena *arena, const char *spelling) {
    char name[MAX_KEY_BYTES];
    (void)write_name(name, spelling);
    return gcmp_arena_dup(arena, name);
}

enum gradcmp_status gcmp_lint_set_argument(struct gcmp_lint_source *source, const char *spelling,
                                           struct gcmp_lint_setting setting,
                                           struct gradcmp_error *error) {
    char name[MAX_KEY_BYTES];
    size_t at = write_name(name, spelling);
    setting.kind = GCMP_LINT_ARG;
    setting.name = name;
    if (setting.text == NULL && setting.is_switch) {
        setting.text = "true";
    }
    return at == 0 ? GRADCMP_OK : gcmp_lint_set(source, &setting, error);
}

const char *gcmp_lint_shown(const struct gcmp_lint_setting *setting) {
    return setting == NULL ? "(not set)" : setting->text == NULL ? "(none)" : setting->text;
}

bool gcmp_lint_is_true(const struct gcmp_lint_setting *setting) {
    static const char *const words[] = {"true", "yes", "on", "y", "t"};
    if (setting == NULL || setting->text == NULL || setting->is_unresolved) {
        return false;
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcasecmp(setting->text, words[i]) == 0) {
            return true;
        }
    }
    size_t digits = strspn(setting->text, "0123456789");
    return digits > 0 && setting->text[digits] == '\0' && strspn(setting->text, "0") < digits;
}

void gcmp_lint_note(struct gcmp_lint_source *source, const char *format, ...) {
    char text[500];
    if (source->note_count >= MAX_NOTES) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (source->notes == NULL) {
        source->notes = gcmp_arena_alloc(source->arena, MAX_NOTES, sizeof *source->notes);
    }
    const char *own = gcmp_arena_dup(source->arena, text);
    if (source->notes != NULL && own != NULL) {
        source->notes[source->note_count++] = own;
    }
}

void gcmp_lint_doubt(struct gcmp_lint_source *source, const struct gcmp_lint_doubt *doubt) {
    if (source->doubts == NULL) {
        source->doubts = gcmp_arena_alloc(source->arena, MAX_DOUBTS, sizeof *source->doubts);
    }
    for (size_t i = 0; i < source->doubt_count; i++) { /* a function that is called again */
        if (source->doubts[i].line == doubt->line &&
            strcmp(source->doubts[i].subject, doubt->subject) == 0) {
            return;
        }
    }
    const char *value = gcmp_arena_dup(source->arena, doubt->value);
    if (source->doubts != NULL && value != NULL && source->doubt_count < MAX_DOUBTS) {
        source->doubts[source->doubt_count] = *doubt;
        source->doubts[source->doubt_count++].value = value;
    }
}

void gcmp_lint_source_free(struct gcmp_lint_source *source) {
    free(source->settings);
    source->settings = NULL;
    source->count = source->capacity = 0;
    gcmp_map_free(&source->names);
}
