/* Numbers the layers of stacks that feed one another. */
#include "unshard/towers.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/word.h"

/* What a component of a name is to what stands beside it under the same prefix. */
enum role {
    ROLE_NONE,
    ROLE_ENCODER, /* feeds the decoder */
    ROLE_DECODER,
    ROLE_TOWER,  /* feeds the bridge and the language model */
    ROLE_BRIDGE, /* between both; alone it says nothing */
    ROLE_LANGUAGE,
    ROLE_TEXT,   /* a language model beside a bridge, else a tower of its own (CLIP) */
    ROLE_PAIRED, /* what only a tower of text has that is trained beside another (CLAP) */
    ROLE_LAYERS, /* layers themselves: a language model where no other is */
    ROLE_COUNT
};

/* Stacks are fed at most by a tower, a bridge and an encoder: so many rounds number all. Of a name,
 * so many components play a role: what a hostile one costs is bounded. */
enum { ROUNDS = 4, MAX_STEPS = 16 };

/* Towers, and what only models with a tower have. */
static const char *const TOWER_WORDS[] = {"vision_model",
                                          "vision_tower",
                                          "vision_encoder",
                                          "vision_backbone",
                                          "vision_embed_tokens",
                                          "vision",
                                          "visual",
                                          "visual_encoder",
                                          "vpm",
                                          "image_encoder",
                                          "image_tower",
                                          "video_tower",
                                          "audio_tower",
                                          "audio_encoder",
                                          "audio_model",
                                          "speech_encoder",
                                          "modality_submodules",
                                          "embed_tokens_extend",
                                          "vision_projection",
                                          "vision_projector",
                                          "vision_language_adapter",
                                          "multi_modal_projector",
                                          "multimodal_projector",
                                          "mm_projector",
                                          NULL};
static const char *const BRIDGE_WORDS[] = {"connector",
                                           "qformer",
                                           "Qformer",
                                           "query_tokens",
                                           "resampler",
                                           "perceiver",
                                           "projector",
                                           "aligner",
                                           "mlp1",
                                           "patch_merger",
                                           "image_projection",
                                           "image_proj_norm",
                                           "language_projection",
                                           "audio_projection",
                                           "image_newline",
                                           NULL};
static const char *const LANGUAGE_WORDS[] = {"language_model", "language",     "llm", "llm_model",
                                             "llama_model",    "lang_encoder", NULL};
static const char *const PAIRED_WORDS[] = {"text_projection", "text_proj", "logit_scale",
                                           "logit_scale_t", NULL};
/* Modules at the input of an encoder or a tower, beside its embeddings. */
static const char *const INPUT_WORDS[] = {"conv1",
                                          "conv2",
                                          "class_token",
                                          "cls_token",
                                          "mask_token",
                                          "register_tokens",
                                          "ln_pre",
                                          "pre_layrnorm", /* so spelt by transformers' CLIP */
                                          "pre_layernorm",
                                          "layernorm_pre",
                                          "patch_conv",
                                          "patch_embed",
                                          "patch_embedding",
                                          "patch_embedder",
                                          "pos_embed",
                                          "feature_extractor",
                                          "feature_projection",
                                          NULL};

/* A prefix, and the stacks below the components behind it. */
struct gcmp_tower_site {
    bool is_there[ROLE_COUNT], has_layers[ROLE_COUNT];
    uint64_t end[ROLE_COUNT]; /* l of the last layer */
};

struct gcmp_tower_stack {
    const char *text;
    size_t bytes;
    uint64_t layers; /* by indices */
    uint64_t axis;   /* by axes of layers; where these disagree they are none */
    bool has_axis, is_mixed;
    uint64_t before;
};

/* The components of a name in front of a layer's index, or all of one without a layer. */
struct walk {
    const char *text;
    size_t bytes, at; /* where the next component begins */
    bool is_stack;
    unsigned steps; /* taken */
};

struct step {
    size_t prefix_bytes, end; /* of the component */
    enum role role;
};

static enum role role_of(const char *at, size_t bytes) {
    return gcmp_is_word(at, bytes, "encoder")                  ? ROLE_ENCODER
           : gcmp_is_word(at, bytes, "decoder")                ? ROLE_DECODER
           : gcmp_is_word(at, bytes, "text_model")             ? ROLE_TEXT
           : gcmp_find_word(at, bytes, TOWER_WORDS) != NULL    ? ROLE_TOWER
           : gcmp_find_word(at, bytes, BRIDGE_WORDS) != NULL   ? ROLE_BRIDGE
           : gcmp_find_word(at, bytes, LANGUAGE_WORDS) != NULL ? ROLE_LANGUAGE
           : gcmp_find_word(at, bytes, PAIRED_WORDS) != NULL   ? ROLE_PAIRED
                                                               : ROLE_NONE;
}

static struct walk walk_of(const struct gcmp_name *name) {
    size_t before = name->layer >= 0 ? name->layer_digits_at : name->layer_at;
    bool is_stack = before > 0;
    return (struct walk){name->text, is_stack ? before - 1 : strlen(name->text), 0, is_stack, 0};
}

/* Take the next component that plays a role; false behind the last. */
static bool next_step(struct walk *walk, struct step *step) {
    while (walk->at < walk->bytes && walk->steps < MAX_STEPS) {
        const char *at = walk->text + walk->at;
        size_t left = walk->bytes - walk->at;
        const char *dot = memchr(at, '.', left);
        size_t bytes = dot == NULL ? left : (size_t)(dot - at);
        *step = (struct step){walk->at, walk->at + bytes, role_of(at, bytes)};
        walk->at += bytes + 1;
        bool is_last = walk->is_stack && step->end == walk->bytes;
        bool wraps_last = walk->is_stack && step->end < walk->bytes &&
                          gcmp_is_word(at, bytes, "model") &&
                          memchr(dot + 1, '.', walk->bytes - walk->at) == NULL;
        step->role = is_last || wraps_last ? ROLE_LAYERS : step->role;
        if (step->role != ROLE_NONE) {
            walk->steps++;
            return true;
        }
    }
    return false;
}

bool gcmp_towers_may_feed(const char *name) {
    struct walk walk = {.text = name, .bytes = strlen(name)};
    struct step step;
    bool found = false;
    while (!found && next_step(&walk, &step)) {
        found = step.role == ROLE_ENCODER || step.role == ROLE_TOWER;
    }
    return found;
}

static struct gcmp_tower_site *find_site(const struct gcmp_towers *towers, const struct walk *walk,
                                         const struct step *step) {
    size_t index;
    return gcmp_map_find(&towers->sites_by_text, walk->text, step->prefix_bytes, &index)
               ? &towers->sites[index]
               : NULL;
}

static struct gcmp_tower_stack *find_stack(const struct gcmp_towers *towers,
                                           const struct walk *walk) {
    size_t index;
    return walk->is_stack && gcmp_map_find(&towers->stacks_by_text, walk->text, walk->bytes, &index)
               ? &towers->stacks[index]
               : NULL;
}

static enum gradcmp_status add_stack(struct gcmp_towers *towers, const struct walk *walk,
                                     struct gradcmp_error *error) {
    enum gcmp_map_result result =
        gcmp_map_add(&towers->stacks_by_text, walk->text, walk->bytes, towers->stack_count, NULL);
    if (result == GCMP_MAP_NO_MEMORY ||
        !gcmp_grow(&towers->stacks, towers->stack_count, &towers->stack_capacity,
                   sizeof *towers->stacks)) {
        GCMP_FAIL_MEMORY(error);
    }
    if (result == GCMP_MAP_ADDED) {
        towers->stacks[towers->stack_count++] =
            (struct gcmp_tower_stack){.text = walk->text, .bytes = walk->bytes};
    }
    return GRADCMP_OK;
}

static enum gradcmp_status add_sites(struct gcmp_towers *towers, struct walk walk,
                                     struct gradcmp_error *error) {
    struct step step;
    while (next_step(&walk, &step)) {
        enum gcmp_map_result result = gcmp_map_add(&towers->sites_by_text, walk.text,
                                                   step.prefix_bytes, towers->site_count, NULL);
        if (result == GCMP_MAP_NO_MEMORY ||
            !gcmp_grow(&towers->sites, towers->site_count, &towers->site_capacity,
                       sizeof *towers->sites)) {
            GCMP_FAIL_MEMORY(error);
        }
        if (result == GCMP_MAP_ADDED) {
            memset(&towers->sites[towers->site_count++], 0, sizeof *towers->sites);
        }
        struct gcmp_tower_site *site = find_site(towers, &walk, &step);
        site->is_there[step.role] = true;
        site->has_layers[step.role] = site->has_layers[step.role] || walk.is_stack;
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_towers_add(struct gcmp_towers *towers, const struct gcmp_name *name,
                                    uint64_t layers, struct gradcmp_error *error) {
    struct walk walk = walk_of(name);
    if (name->is_mtp) {
        return GRADCMP_OK;
    }
    if (layers == 0) { /* an axis that counts something else */
        walk.bytes = strlen(name->text);
        walk.is_stack = false;
    }
    if (walk.is_stack) {
        GCMP_TRY(add_stack(towers, &walk, error));
        struct gcmp_tower_stack *stack = find_stack(towers, &walk);
        if (name->layer >= 0) {
            stack->layers = layers > stack->layers ? layers : stack->layers;
        } else {
            stack->is_mixed = stack->is_mixed || (stack->has_axis && stack->axis != layers);
            stack->axis = layers;
            stack->has_axis = true;
        }
    }
    return add_sites(towers, walk, error);
}

/* Which of its stacks a tower feeds. */
static enum role language_of(const struct gcmp_tower_site *site) {
    if (!site->is_there[ROLE_TOWER]) {
        return ROLE_NONE;
    }
    bool text_is_fed =
        site->has_layers[ROLE_TEXT] && site->is_there[ROLE_BRIDGE] && !site->is_there[ROLE_PAIRED];
    return site->has_layers[ROLE_LANGUAGE] ? ROLE_LANGUAGE
           : text_is_fed                   ? ROLE_TEXT
           : site->has_layers[ROLE_LAYERS] ? ROLE_LAYERS
                                           : ROLE_NONE;
}

static bool feeds_decoder(const struct gcmp_tower_site *site) {
    return site->has_layers[ROLE_ENCODER] && site->has_layers[ROLE_DECODER];
}

static uint64_t greater(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/* The last of the layers that feed what plays the role. */
static uint64_t fed_by(const struct gcmp_tower_site *site, enum role role) {
    enum role language = language_of(site);
    if (role == ROLE_DECODER && feeds_decoder(site)) {
        return site->end[ROLE_ENCODER];
    }
    if (language != ROLE_NONE && role == ROLE_BRIDGE) {
        return site->end[ROLE_TOWER];
    }
    return language != ROLE_NONE && role == language
               ? greater(site->end[ROLE_TOWER], site->end[ROLE_BRIDGE])
               : 0;
}

/* Whether what plays the role feeds a stack; *end is then the last of its layers. */
static bool feeds(const struct gcmp_tower_site *site, enum role role, uint64_t *end) {
    bool has_language = language_of(site) != ROLE_NONE;
    *end = role == ROLE_BRIDGE ? greater(site->end[ROLE_TOWER], site->end[ROLE_BRIDGE])
                               : site->end[role];
    return role == ROLE_ENCODER ? feeds_decoder(site)
                                : (role == ROLE_TOWER || role == ROLE_BRIDGE) && has_language;
}

static uint64_t layers_of(const struct gcmp_tower_stack *stack) {
    return greater(stack->layers, stack->has_axis && !stack->is_mixed ? stack->axis : 0);
}

static void number_stack(struct gcmp_towers *towers, struct gcmp_tower_stack *stack) {
    struct walk walk = {.text = stack->text, .bytes = stack->bytes, .is_stack = true};
    struct walk again = walk;
    struct step step;
    while (next_step(&walk, &step)) {
        stack->before = greater(stack->before, fed_by(find_site(towers, &walk, &step), step.role));
    }
    while (next_step(&again, &step)) {
        uint64_t *end = &find_site(towers, &again, &step)->end[step.role];
        *end = greater(*end, stack->before + layers_of(stack));
    }
}

bool gcmp_towers_number(struct gcmp_towers *towers) {
    bool found = false;
    for (size_t i = 0; i < towers->site_count; i++) {
        found = found || feeds_decoder(&towers->sites[i]) ||
                language_of(&towers->sites[i]) != ROLE_NONE;
    }
    for (size_t round = 0; round < ROUNDS && found; round++) {
        for (size_t i = 0; i < towers->stack_count; i++) {
            number_stack(towers, &towers->stacks[i]);
        }
    }
    return found;
}

uint64_t gcmp_towers_before(const struct gcmp_towers *towers, const struct gcmp_name *name) {
    struct walk walk = walk_of(name);
    const struct gcmp_tower_stack *stack = find_stack(towers, &walk);
    return stack == NULL || name->is_mtp ? 0 : stack->before;
}

/* Whether what stands at `from`, or inside one module more, is a module of the input. */
static bool is_input(const struct walk *walk, size_t from) {
    for (unsigned depth = 0; depth < 2 && from < walk->bytes; depth++) {
        size_t bytes = strcspn(walk->text + from, ".");
        if (gcmp_find_word(walk->text + from, bytes, INPUT_WORDS) != NULL) {
            return true;
        }
        if (strcspn(walk->text + from, "0123456789") < bytes) {
            return false; /* a block */
        }
        from += bytes + 1;
    }
    return false;
}

/* Where embeddings stand: in front of the layers that they feed. */
static int64_t place_embedding(const struct gcmp_towers *towers, const struct gcmp_name *name) {
    struct walk walk = {.text = name->text, .bytes = strlen(name->text)};
    uint64_t before = 0;
    for (unsigned i = 0; i < MAX_STEPS && walk.at < walk.bytes; i++) {
        size_t bytes = strcspn(name->text + walk.at, ".");
        enum role role = role_of(name->text + walk.at, bytes);
        struct step step = {walk.at, walk.at + bytes, role == ROLE_NONE ? ROLE_LAYERS : role};
        const struct gcmp_tower_site *site = find_site(towers, &walk, &step);
        before = site == NULL ? before : greater(before, fed_by(site, step.role));
        walk.at += bytes + 1;
    }
    return (int64_t)before;
}

int64_t gcmp_towers_place(const struct gcmp_towers *towers, const struct gcmp_name *name) {
    struct walk walk = {.text = name->text, .bytes = strlen(name->text)};
    struct step step;
    int64_t place = -1;
    if (name->is_embedding && !name->is_mtp) {
        return place_embedding(towers, name);
    }
    while (!name->is_mtp && next_step(&walk, &step)) {
        const struct gcmp_tower_site *site = find_site(towers, &walk, &step);
        uint64_t end;
        if (site != NULL && feeds(site, step.role, &end)) {
            bool is_first = step.role != ROLE_BRIDGE && is_input(&walk, step.end + 1);
            place = is_first ? 0 : (int64_t)end;
        }
    }
    return place;
}

uint64_t gcmp_towers_total(const struct gcmp_towers *towers) {
    uint64_t total = 0;
    for (size_t i = 0; i < towers->stack_count; i++) {
        total = greater(total, towers->stacks[i].before + layers_of(&towers->stacks[i]));
    }
    return total;
}

void gcmp_towers_free(struct gcmp_towers *towers) {
    gcmp_map_free(&towers->stacks_by_text);
    gcmp_map_free(&towers->sites_by_text);
    free(towers->stacks);
    free(towers->sites);
    *towers = (struct gcmp_towers){.stacks = NULL};
}
