/* Reads the structure of one stored name: components between dots, and words among them. */
#include "unshard/name_parse.h"

#include <string.h>

#include "base/layer_word.h"
#include "base/word.h"

/* One component of a name. */
struct part {
    const char *at;
    size_t bytes;
    size_t offset; /* in the joined text */
};

struct parts {
    struct part list[GCMP_MAX_NAME_PARTS + 2]; /* room for what grouped experts insert */
    size_t count;
};

/* Modules that frameworks wrap around others anywhere, without adding parameters. */
static const char *const WRAPPERS[] = {"_orig_mod", "_fsdp_wrapped_module",
                                       "_checkpoint_wrapped_module", "_forward_module", NULL};
/* The same, but only in front: deeper inside they may be a model's own modules. */
static const char *const LEADING_WRAPPERS[] = {"module", "model", NULL};
/* Embeddings of words, positions, patches: l = 0; also what ends like one of these words
 * ("tok_embeddings", "patch_embed"), but for those of the head. */
static const char *const EMBEDDING_WORDS[] = {"emb",
                                              "embed",
                                              "embeds",
                                              "embedding",
                                              "embeddings",
                                              "embedder",
                                              "embed_tokens",
                                              "wte",
                                              "wpe",
                                              "embed_in",
                                              "word_embeddings_layernorm",
                                              "embed_positions",
                                              NULL};
/* Tables with one row for each word of the vocabulary. */
static const char *const VOCAB_WORDS[] = {"word_embeddings", "embed_tokens", "wte",
                                          "tok_embeddings",  "embed_in",     "output_layer",
                                          "lm_head",         "embed_out",    NULL};

static bool is_word(const struct part *part, const char *word) {
    return gcmp_is_word(part->at, part->bytes, word);
}

static bool is_among(const struct part *part, const char *const *words) {
    return gcmp_find_word(part->at, part->bytes, words) != NULL;
}

/* True for a word of the list, and for one that ends with "_" and such a word, unless it begins
 * like the output ("output_embeddings"). */
static bool ends_among(const struct part *part, const char *const *words) {
    bool is_output = part->bytes >= 3 && memcmp(part->at, "out", 3) == 0;
    for (; *words != NULL; words++) {
        size_t bytes = strlen(*words);
        if (is_word(part, *words) ||
            (!is_output && part->bytes > bytes && part->at[part->bytes - bytes - 1] == '_' &&
             memcmp(part->at + part->bytes - bytes, *words, bytes) == 0)) {
            return true;
        }
    }
    return false;
}

static bool is_number(const struct parts *parts, size_t index) {
    return index < parts->count &&
           gcmp_read_index(parts->list[index].at, parts->list[index].bytes) >= 0;
}

static bool split(const char *name, struct parts *parts) {
    parts->count = 0;
    for (const char *at = name;;) {
        size_t bytes = strcspn(at, ".");
        if (parts->count == GCMP_MAX_NAME_PARTS) {
            return false;
        }
        parts->list[parts->count++] = (struct part){at, bytes, (size_t)(at - name)};
        if (at[bytes] == '\0') {
            return true;
        }
        at += bytes + 1;
    }
}

/* Take wrappers off; the last component is never one. True if a leading one was. */
static bool take_wrappers_off(struct parts *parts, bool unwrap) {
    size_t kept = 0;
    bool was_leading = false;
    for (size_t i = 0; i < parts->count; i++) {
        bool is_last = i + 1 == parts->count;
        bool is_leading = unwrap && kept == 0 && is_among(&parts->list[i], LEADING_WRAPPERS);
        if (is_last || !(is_leading || is_among(&parts->list[i], WRAPPERS))) {
            parts->list[kept++] = parts->list[i];
        } else {
            was_leading = was_leading || is_leading;
        }
    }
    parts->count = kept;
    return was_leading;
}

/* experts.linear_fc1.weight3 (one module of grouped matrices) at `i`:
 * experts.experts.3.linear_fc1.weight. */
static void ungroup_experts(struct parts *parts, size_t i) {
    struct part *list = parts->list;
    struct part matrix = list[i + 1], tensor = list[i + 2];
    size_t word = strncmp(tensor.at, "bias", 4) == 0 ? 4 : 6;
    list[i + 1] = list[i];
    list[i + 2] = (struct part){tensor.at + word, tensor.bytes - word, 0};
    list[i + 3] = matrix;
    list[i + 4] = (struct part){tensor.at, word, 0};
    parts->count += 2;
}

static bool is_grouped(const struct parts *parts, size_t i) {
    if (i + 3 != parts->count || !(is_word(&parts->list[i + 1], "linear_fc1") ||
                                   is_word(&parts->list[i + 1], "linear_fc2"))) {
        return false;
    }
    const struct part *tensor = &parts->list[i + 2];
    return (tensor->bytes > 6 && memcmp(tensor->at, "weight", 6) == 0 &&
            gcmp_read_index(tensor->at + 6, tensor->bytes - 6) >= 0) ||
           (tensor->bytes > 4 && memcmp(tensor->at, "bias", 4) == 0 &&
            gcmp_read_index(tensor->at + 4, tensor->bytes - 4) >= 0);
}

/* Bring other spellings of the same module to the one that distributed checkpoints use; true where
 * there were any. */
static bool respell(struct parts *parts) {
    bool is_respelt = false;
    for (size_t i = 0; i + 1 < parts->count; i++) {
        struct part *part = &parts->list[i];
        if (is_word(part, "final_norm")) {
            *part = (struct part){"final_layernorm", strlen("final_layernorm"), 0};
            is_respelt = true;
        } else if (is_word(part, "experts") && is_word(part + 1, "local_experts") &&
                   is_number(parts, i + 2)) {
            part[1] = *part;
            is_respelt = true;
        } else if (is_word(part, "experts") && is_grouped(parts, i)) {
            ungroup_experts(parts, i);
            return true;
        }
    }
    return is_respelt;
}

static char *join(struct parts *parts, struct gcmp_arena *arena) {
    size_t bytes = 0;
    for (size_t i = 0; i < parts->count; i++) {
        parts->list[i].offset = bytes;
        bytes += parts->list[i].bytes + 1;
    }
    char *text = gcmp_arena_alloc(arena, bytes, 1);
    for (size_t i = 0; text != NULL && i < parts->count; i++) {
        struct part *part = &parts->list[i];
        memcpy(text + part->offset, part->at, part->bytes);
        text[part->offset + part->bytes] = i + 1 < parts->count ? '.' : '\0';
    }
    return text;
}

/* Find the first list of layers: its number, or the place of one. Only `layers` is also stacked. */
static void find_layer(const struct parts *parts, struct gcmp_name *out) {
    for (size_t i = 0; i + 1 < parts->count; i++) {
        const struct part *next = &parts->list[i + 1];
        if (gcmp_is_layer_word(parts->list[i].at, parts->list[i].bytes) &&
            is_number(parts, i + 1)) {
            out->layer = gcmp_read_index(next->at, next->bytes);
            out->layer_digits_at = (uint32_t)next->offset;
            return;
        }
        if (is_word(&parts->list[i], "layers")) {
            out->layer_at = (uint32_t)next->offset;
            return;
        }
    }
}

/* Find the place of an expert's index: behind the last `experts`, if none has one. */
static void find_expert(const struct parts *parts, struct gcmp_name *out) {
    for (size_t i = 0; i + 1 < parts->count; i++) {
        if (is_word(&parts->list[i], "experts")) {
            const struct part *next = &parts->list[i + 1];
            out->is_expert = true;
            out->expert_at = (uint32_t)next->offset;
            if (is_number(parts, i + 1)) {
                out->expert = gcmp_read_index(next->at, next->bytes);
                out->expert_digits_at = out->expert_at;
                out->expert_at = 0;
                return;
            }
        }
    }
    if (out->expert_at < out->layer_at) {
        out->expert_at = 0; /* an axis of experts before that of layers is not known */
    }
}

static bool contains(const struct part *part, const char *word) {
    size_t bytes = strlen(word);
    for (size_t i = 0; i + bytes <= part->bytes; i++) {
        if (memcmp(part->at + i, word, bytes) == 0) {
            return true;
        }
    }
    return false;
}

/* A gated weight's half: "...weight_w", "...weight_v", or a bias of that kind. */
static uint8_t read_half(const struct part *last) {
    struct part stem = {last->at, last->bytes < 2 ? 0 : last->bytes - 2, 0};
    if (!(is_word(&stem, "weight") || is_word(&stem, "bias")) || last->at[stem.bytes] != '_') {
        return GCMP_HALF_NONE;
    }
    char letter = last->at[stem.bytes + 1];
    return letter == 'w' ? GCMP_HALF_FIRST : letter == 'v' ? GCMP_HALF_SECOND : GCMP_HALF_NONE;
}

static void find_kind(const struct parts *parts, struct gcmp_name *out) {
    const struct part *last = &parts->list[parts->count - 1];
    out->half = read_half(last);
    out->is_vector = contains(last, "bias") || contains(last, "norm");
    for (size_t i = 0; i < parts->count; i++) {
        out->is_mtp = out->is_mtp || is_word(&parts->list[i], "mtp");
        out->is_embedding = out->is_embedding || ends_among(&parts->list[i], EMBEDDING_WORDS);
    }
    bool is_tensor = is_word(last, "weight") || is_word(last, "bias");
    if (is_tensor && parts->count > 1) {
        bool is_output = is_word(last - 1, "output") && out->layer < 0 && out->layer_at == 0;
        out->has_vocab_rows = is_output || is_among(last - 1, VOCAB_WORDS);
    }
}

enum gradcmp_status gcmp_name_parse(const char *stored_name, bool unwrap, struct gcmp_arena *arena,
                                    struct gcmp_name *out, struct gradcmp_error *error) {
    struct parts parts;
    if (strlen(stored_name) > GCMP_MAX_NAME_BYTES || !split(stored_name, &parts)) {
        GCMP_FAIL(
            error, GRADCMP_ERROR_LIMIT,
            "tensor name \"%.64s...\": %zu bytes, at most %d bytes and %d components are read",
            stored_name, strlen(stored_name), GCMP_MAX_NAME_BYTES, GCMP_MAX_NAME_PARTS);
    }
    *out = (struct gcmp_name){.layer = -1, .expert = -1};
    size_t count = parts.count;
    out->was_unwrapped = take_wrappers_off(&parts, unwrap);
    bool is_respelt = respell(&parts);
    out->text = stored_name;
    if (is_respelt || parts.count != count) {
        out->text = join(&parts, arena);
    }
    if (out->text == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    find_layer(&parts, out);
    find_expert(&parts, out);
    find_kind(&parts, out);
    return GRADCMP_OK;
}
