/* Branches of a script. A variable that a branch assigns is remembered as it was before; when the
 * branch ends, the words that are new get a mark, which goes with them through expansions. */
#include "lint/flow.h"

#include <string.h>

#include "base/grow.h"

/* A variable before it was assigned. */
struct gcmp_shell_touch {
    size_t index;
    struct gcmp_shell_variable before;
};

static enum gradcmp_status push(struct gcmp_shell *shell, struct gcmp_shell_touches *touches,
                                const struct gcmp_shell_variable *variable) {
    if (!gcmp_grow(&touches->items, touches->count, &touches->capacity, sizeof *touches->items)) {
        GCMP_FAIL_MEMORY(shell->error);
    }
    touches->items[touches->count++] =
        (struct gcmp_shell_touch){(size_t)(variable - shell->variables), *variable};
    return GRADCMP_OK;
}

static void take_back(struct gcmp_shell *shell, struct gcmp_shell_touches *touches, size_t count) {
    while (touches->count > count) {
        const struct gcmp_shell_touch *touch = &touches->items[--touches->count];
        shell->variables[touch->index] = touch->before;
    }
}

/* --- marks --- */

/* Mark the words of text[from, to), a word that begins before `from` from there on. */
static enum gradcmp_status mark_range(struct gcmp_shell *shell, const char **value, size_t from,
                                      size_t to, bool is_replaced) {
    struct gcmp_text out = GCMP_TEXT_INIT;
    const char *text = *value;
    size_t length = strlen(text);
    GCMP_TRY(gcmp_shell_charge(shell, length, 0));
    static const char marks[] = {GCMP_SHELL_CONDITIONAL, GCMP_SHELL_REPLACED};
    if (is_replaced) {
        gcmp_text_add_bytes(&out, &marks[1], 1);
    }
    bool is_start = true, is_blank_next;
    for (size_t i = 0; i < length || (i == 0 && length == 0); i++) {
        is_blank_next = length > 0 && strchr(" \t\n", text[i]) != NULL;
        is_start = is_start || i == from;
        if (i >= from && (i < to || length == 0) && is_start && !is_blank_next &&
            text[i] != GCMP_SHELL_CONDITIONAL) {
            gcmp_text_add_bytes(&out, &marks[0], 1);
        }
        is_start = is_blank_next;
        gcmp_text_add_bytes(&out, text + i, length > 0);
    }
    *value = out.failed || out.bytes == NULL
                 ? NULL
                 : gcmp_arena_text(shell->arena, out.bytes, out.length_bytes);
    gcmp_text_free(&out);
    if (*value == NULL) {
        GCMP_FAIL_MEMORY(shell->error);
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_flow_mark(struct gcmp_shell *shell, const char **value) {
    return mark_range(shell, value, 0, strlen(*value), false);
}

/* Mark what of a value is not in the old one. */
static enum gradcmp_status mark_new(struct gcmp_shell *shell, const char *old, const char **value) {
    if (old == *value || (old != NULL && strcmp(old, *value) == 0)) {
        return GRADCMP_OK;
    }
    size_t length = strlen(*value), old_length = old == NULL ? 0 : strlen(old);
    if (old != NULL && old_length < length && strncmp(*value, old, old_length) == 0) {
        return mark_range(shell, value, old_length, length, false);
    }
    if (old != NULL && old_length < length && strcmp(*value + length - old_length, old) == 0) {
        return mark_range(shell, value, 0, length - old_length, false);
    }
    bool is_marked = **value == GCMP_SHELL_REPLACED;
    return mark_range(shell, value, 0, length, old != NULL && !is_marked);
}

/* Mark what a branch did to a variable. */
static enum gradcmp_status mark_variable(struct gcmp_shell *shell,
                                         const struct gcmp_shell_touch *touch) {
    struct gcmp_shell_variable *variable = &shell->variables[touch->index];
    const struct gcmp_shell_variable *before = &touch->before;
    if (variable->is_exported != before->is_exported) {
        variable->is_exported = variable->is_export_conditional = true;
    }
    size_t old_count = before->is_set ? before->count : 0;
    if (!variable->is_set && before->is_set) { /* it may still be there */
        variable->is_set = true;
        variable->values = before->values;
        variable->lines = before->lines;
        variable->count = before->count;
        old_count = 0;
    }
    if (!variable->is_set) {
        return GRADCMP_OK;
    }
    size_t count = variable->count > 0 ? variable->count : old_count > 0;
    const char **values;
    uint64_t *lines;
    GCMP_TRY(gcmp_shell_make_values(shell, count, &values, &lines, variable->line));
    for (size_t i = 0; i < count; i++) {
        values[i] = i < variable->count ? variable->values[i] : "";
        lines[i] = i < variable->count ? variable->lines[i] : variable->line;
        GCMP_TRY(mark_new(shell, i < old_count ? before->values[i] : NULL, &values[i]));
    }
    if (count < old_count && count > 0 && values[0][0] != GCMP_SHELL_REPLACED) {
        GCMP_TRY(mark_range(shell, &values[0], 0, 0, true));
    }
    variable->values = values;
    variable->lines = lines;
    variable->count = count;
    variable->room = NULL;
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_flow_flag_word(struct gcmp_shell *shell, struct gcmp_shell_word *word) {
    if (word->value == NULL || (strchr(word->value, GCMP_SHELL_CONDITIONAL) == NULL &&
                                strchr(word->value, GCMP_SHELL_REPLACED) == NULL)) {
        return GRADCMP_OK;
    }
    char *own = gcmp_arena_dup(shell->arena, word->value);
    if (own == NULL) {
        GCMP_FAIL_MEMORY(shell->error);
    }
    size_t at = 0;
    for (const char *byte = word->value; *byte != '\0'; byte++) {
        word->is_conditional = word->is_conditional || *byte == GCMP_SHELL_CONDITIONAL;
        word->is_replaced = word->is_replaced || *byte == GCMP_SHELL_REPLACED;
        if (*byte != GCMP_SHELL_CONDITIONAL && *byte != GCMP_SHELL_REPLACED) {
            own[at++] = *byte;
        }
    }
    own[at] = '\0';
    word->value = own;
    return GRADCMP_OK;
}

/* --- what contains commands --- */

enum gcmp_flow_kind gcmp_flow_top(const struct gcmp_shell *shell) {
    return shell->frame_count > shell->frame_base
               ? (enum gcmp_flow_kind)shell->frames[shell->frame_count - 1].kind
               : 0;
}

enum gradcmp_status gcmp_flow_open(struct gcmp_shell *shell, enum gcmp_flow_kind kind) {
    if (shell->frame_count == GCMP_SHELL_MAX_FRAMES) {
        GCMP_FAIL_AT(shell->error, GRADCMP_ERROR_LIMIT, shell->source->path, GRADCMP_NO_OFFSET,
                     "commands nest more than %d deep", GCMP_SHELL_MAX_FRAMES);
    }
    shell->frames[shell->frame_count++] =
        (struct gcmp_shell_frame){kind, ++shell->frame_serial, shell->touches.count};
    return GRADCMP_OK;
}

static enum gradcmp_status close_top(struct gcmp_shell *shell) {
    struct gcmp_shell_frame frame = shell->frames[--shell->frame_count];
    if (frame.kind == GCMP_FLOW_SUBSHELL) {
        take_back(shell, &shell->touches, frame.touch_count);
    } else if (frame.kind <= GCMP_FLOW_LIST) {
        for (size_t i = frame.touch_count; i < shell->touches.count; i++) {
            GCMP_TRY(mark_variable(shell, &shell->touches.items[i]));
        }
    }
    if (shell->frame_count == 0) {
        shell->touches.count = 0;
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_flow_close_to(struct gcmp_shell *shell, size_t count) {
    while (shell->frame_count > count) {
        GCMP_TRY(close_top(shell));
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_flow_close(struct gcmp_shell *shell, enum gcmp_flow_kind kind) {
    for (size_t i = shell->frame_count; i > shell->frame_base; i--) {
        if (shell->frames[i - 1].kind == kind) {
            return gcmp_flow_close_to(shell, i - 1);
        }
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_flow_next(struct gcmp_shell *shell, enum gcmp_flow_kind kind) {
    size_t before = shell->frame_count;
    GCMP_TRY(gcmp_flow_close(shell, kind));
    return shell->frame_count < before ? gcmp_flow_open(shell, kind) : GRADCMP_OK;
}

enum gradcmp_status gcmp_flow_touch(struct gcmp_shell *shell,
                                    struct gcmp_shell_variable *variable) {
    if (shell->frame_count == 0) {
        variable->is_export_conditional = variable->is_export_conditional && variable->is_exported;
        return GRADCMP_OK;
    }
    uint64_t serial = shell->frames[shell->frame_count - 1].serial;
    if (variable->frame_serial == serial) {
        return GRADCMP_OK;
    }
    GCMP_TRY(push(shell, &shell->touches, variable));
    variable->frame_serial = serial;
    return GRADCMP_OK;
}

/* --- functions --- */

enum gradcmp_status gcmp_flow_local(struct gcmp_shell *shell, const char *name) {
    struct gcmp_shell_variable *variable;
    GCMP_TRY(gcmp_shell_make(shell, name, &variable));
    return push(shell, &shell->locals, variable);
}

void gcmp_flow_restore_locals(struct gcmp_shell *shell, size_t count) {
    take_back(shell, &shell->locals, count);
}
