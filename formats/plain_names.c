/* Brings plain names into the forms that torch's and Megatron's checkpoints use, whose grammar is
 * in dcp_keys.c. */
#include "formats/plain_names.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/checked.h"
#include "base/dir.h"
#include "base/word.h"
#include "formats/dcp_names.h"
#include "formats/extracted.h"

/* Words that mean a state behind "optimizer.". */
static const char *const optimizer_words[] = {"step",         "param",      "fp32", "sum",
                                              "master_param", "square_avg", NULL};
/* Words for a gradient in front of a name or behind it ("x.weight.grad"). */
static const char *const gradient_words[] = {"grad", "grads", "gradient", "gradients", NULL};

static const char *const optimizer_prefixes[] = {"optimizer.", "optim.", "opt.",
                                                 "optimizer_state."};

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static bool is_among(const char *const *words, const char *text, size_t bytes) {
    return gcmp_find_word(text, bytes, words) != NULL;
}

/* True where the first or the last of several words means a state wherever it begins or ends a
 * name, or in an optimizer. */
static bool has_state(const char *text, bool in_optimizer) {
    const char *last = strrchr(text, '.');
    if (last == NULL) {
        return false;
    }
    size_t first_bytes = strcspn(text, "."), last_bytes = strlen(last + 1);
    return gcmp_dcp_is_clear_state(text, first_bytes) ||
           gcmp_dcp_is_clear_state(last + 1, last_bytes) ||
           (in_optimizer && (is_among(optimizer_words, text, first_bytes) ||
                             is_among(optimizer_words, last + 1, last_bytes)));
}

/* What is behind the prefix of an optimizer's name; NULL where there is none. */
static const char *behind_prefix(const char *text) {
    for (size_t i = 0; i < COUNT_OF(optimizer_prefixes); i++) {
        size_t bytes = strlen(optimizer_prefixes[i]);
        if (strncmp(text, optimizer_prefixes[i], bytes) == 0) {
            return text + bytes;
        }
    }
    return NULL;
}

/* Rewrite a name to the form that the grammar knows; the name itself where it is in one already.
 * NULL without memory. */
static const char *canonical_form(struct gcmp_arena *arena, const char *text) {
    const char *rest = behind_prefix(text);
    bool in_optimizer = rest != NULL;
    const char *states = in_optimizer ? rest : text;
    states += strncmp(states, "state.", 6) == 0 ? 6 : 0;
    if (has_state(states, in_optimizer)) {
        return gcmp_arena_format(arena, "optimizer.state.%s", states);
    }
    size_t first = strcspn(text, ".");
    if (text[first] == '.' && is_among(gradient_words, text, first)) {
        return gcmp_arena_format(arena, "optimizer.state.main_grad%s", text + first);
    }
    const char *last = strrchr(text, '.');
    if (last != NULL && last != text && last - text <= INT_MAX &&
        is_among(gradient_words, last + 1, strlen(last + 1))) {
        return gcmp_arena_format(arena, "optimizer.state.main_grad.%.*s", (int)(last - text), text);
    }
    return text;
}

bool gcmp_plain_parse_name(struct gcmp_arena *arena, const char *name, enum gcmp_dcp_style style,
                           struct gcmp_dcp_key *out) {
    char *text = gcmp_arena_dup(arena, name);
    if (text == NULL) {
        return false;
    }
    for (char *at = strchr(text, '/'); at != NULL; at = strchr(at, '/')) {
        *at = '.';
    }
    const char *form = canonical_form(arena, text);
    if (form == NULL || !gcmp_dcp_parse_key(arena, form, NULL, style, out)) {
        return false;
    }
    if (out->name == form) { /* no name of a parameter: the whole key */
        out->name = text;
    }
    return true;
}

static enum gradcmp_status check_type(const struct gradcmp_catalogue *catalogue, size_t index,
                                      const struct gcmp_dcp_key *key, const char *type,
                                      struct gradcmp_error *error) {
    if (key->kind != GCMP_DCP_STATE ||
        catalogue->stored[index].dtype != (uint8_t)GRADCMP_DTYPE_NONE) {
        return GRADCMP_OK;
    }
    GCMP_FAIL_AT(error, GRADCMP_ERROR_UNSUPPORTED, gcmp_dir_path(catalogue->dir), GRADCMP_NO_OFFSET,
                 "\"%.160s\": expected a tensor of numbers for the state %.40s, found %.120s",
                 catalogue->stored[index].key, key->state,
                 type == NULL ? "a type that is not read" : type);
}

/* Say which tensors nobody reads: a verdict says nothing of them. */
static enum gradcmp_status note_unread(struct gradcmp_catalogue *catalogue,
                                       const char *const *types, struct gradcmp_error *error) {
    size_t count = 0, first = 0;
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        uint64_t elems;
        bool is_empty =
            gcmp_product(catalogue->stored[i].shape, catalogue->stored[i].ndim, &elems) &&
            elems == 0;
        if (catalogue->stored[i].dtype == (uint8_t)GRADCMP_DTYPE_NONE && !is_empty) {
            first = count++ == 0 ? i : first;
        }
    }
    const char *type = count == 0 || types == NULL ? NULL : types[first];
    return count == 0 ? GRADCMP_OK
                      : gcmp_catalogue_note(catalogue, error,
                                            "%zu tensors are listed, not read: %.160s (%.60s)%s",
                                            count, catalogue->stored[first].key,
                                            type == NULL ? "a type that is not read" : type,
                                            count > 1 ? " ..." : "");
}

enum gradcmp_status gcmp_plain_assign_names(struct gradcmp_catalogue *catalogue,
                                            enum gcmp_dcp_style style, const char *const *types,
                                            struct gradcmp_error *error) {
    struct gcmp_dcp_key *keys = calloc(catalogue->stored_count + 1, sizeof *keys);
    if (keys == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    enum gradcmp_status status = GRADCMP_OK;
    bool is_extracted = gcmp_is_extracted(catalogue);
    for (size_t i = 0; i < catalogue->stored_count && status == GRADCMP_OK; i++) {
        const char *key = catalogue->stored[i].key;
        if (!(is_extracted ? gcmp_extracted_parse_key(catalogue->arena, key, &keys[i])
                           : gcmp_plain_parse_name(catalogue->arena, key, style, &keys[i]))) {
            status = gcmp_error_set(error, GRADCMP_ERROR_MEMORY, NULL, GRADCMP_NO_OFFSET,
                                    "out of memory");
        } else {
            status = check_type(catalogue, i, &keys[i], types == NULL ? NULL : types[i], error);
        }
    }
    if (status == GRADCMP_OK) {
        status = gcmp_dcp_assign_names(catalogue, keys, error);
    }
    free(keys);
    return status == GRADCMP_OK ? note_unread(catalogue, types, error) : status;
}
