/* Global numbers of layers and experts.
 *
 * A rank's chunk numbers its layers from 0. The model's layers go through the chunks first of each
 * stage in order, then the second ones: global = local + layers of all chunks before it in the
 * order (chunk, stage); with n layers in each of pp stages that is local + chunk * pp * n + stage *
 * n. Experts are spread evenly: global = rank * experts of a rank + local. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/map.h"
#include "unshard/local_shards.h"
#include "unshard/name_parse.h"

/* Layers that one list of them (a family) has in one chunk of one stage, or experts that one layer
 * has on one rank: `count` of them, numbered from `first` on. */
struct run {
    struct run_key { /* without padding: its bytes are a map's key */
        uint64_t family;
        int32_t chunk, stage;
        int64_t rank; /* of experts; 0 for layers */
    } key;
    uint64_t count, first;
};

/* All runs of one kind. */
struct runs {
    struct gcmp_map families; /* text before the number -> family */
    struct gcmp_map by_key;
    struct run *list;
    uint32_t *of_shard; /* run of each shard; UINT32_MAX: none */
    size_t count;
};

static void free_runs(struct runs *runs) {
    gcmp_map_free(&runs->families);
    gcmp_map_free(&runs->by_key);
    free(runs->list);
    free(runs->of_shard);
}

static enum gradcmp_status make_runs(struct runs *runs, size_t shards,
                                     struct gradcmp_error *error) {
    *runs = (struct runs){.families = GCMP_MAP_INIT, .by_key = GCMP_MAP_INIT};
    runs->list = calloc(shards + 1, sizeof *runs->list);
    runs->of_shard = calloc(shards + 1, sizeof *runs->of_shard);
    if (runs->list == NULL || runs->of_shard == NULL || shards >= UINT32_MAX) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

/* A number in a shard's name, and the run it belongs to as far as ranks tell. */
struct counted {
    size_t prefix_bytes; /* of the text before it, which says the family */
    int64_t number;
    int64_t rank; /* of experts; 0 for layers */
};

/* Count a number into its run, whose index is returned in *index. */
static enum gradcmp_status count_number(struct runs *runs, const struct gcmp_shard *shard,
                                        struct counted counted, uint32_t *index,
                                        struct gradcmp_error *error) {
    size_t family, found;
    struct run *fresh = &runs->list[runs->count];
    if (gcmp_map_add(&runs->families, shard->local.text, counted.prefix_bytes, runs->families.count,
                     &family) == GCMP_MAP_NO_MEMORY) {
        GCMP_FAIL_MEMORY(error);
    }
    fresh->key.family = family;
    fresh->key.chunk = shard->coords->vp;
    fresh->key.stage = shard->coords->pp;
    fresh->key.rank = counted.rank;
    enum gcmp_map_result result =
        gcmp_map_add(&runs->by_key, &fresh->key, sizeof fresh->key, runs->count, &found);
    if (result == GCMP_MAP_NO_MEMORY) {
        GCMP_FAIL_MEMORY(error);
    }
    runs->count += result == GCMP_MAP_ADDED;
    *index = (uint32_t)found;
    uint64_t here = (uint64_t)counted.number + 1;
    if (here > runs->list[found].count) {
        runs->list[found].count = here;
    }
    return GRADCMP_OK;
}

static int compare_runs(const void *left, const void *right) {
    const struct run *a = *(struct run *const *)left, *b = *(struct run *const *)right;
    if (a->key.family != b->key.family) {
        return a->key.family < b->key.family ? -1 : 1;
    }
    const int64_t keys_a[] = {a->key.chunk, a->key.stage, a->key.rank};
    const int64_t keys_b[] = {b->key.chunk, b->key.stage, b->key.rank};
    for (size_t i = 0; i < 3; i++) {
        if (keys_a[i] != keys_b[i]) {
            return keys_a[i] < keys_b[i] ? -1 : 1;
        }
    }
    return 0;
}

/* The runs sorted by family, chunk, stage, rank; malloced, NULL without memory. */
static struct run **sort_runs(const struct runs *runs) {
    struct run **sorted = calloc(runs->count + 1, sizeof *sorted);
    for (size_t i = 0; sorted != NULL && i < runs->count; i++) {
        sorted[i] = &runs->list[i];
    }
    if (sorted != NULL) {
        qsort(sorted, runs->count, sizeof *sorted, compare_runs);
    }
    return sorted;
}

/* Where some layers are there in name only (MindSpeed's noop_layers), which is done so that chunks
 * are of one depth, a chunk may end with such: its depth follows from the number of all. */
static void count_noop_layers(const struct gradcmp_catalogue *catalogue, struct runs *runs) {
    const struct gradcmp_setting *noop = gcmp_catalogue_setting(catalogue, "noop_layers");
    uint64_t chunks = catalogue->parallel.pp;
    chunks *= catalogue->parallel.vp == 0 ? 1 : catalogue->parallel.vp; /* both below 2^32 */
    if (noop == NULL || noop->kind != GRADCMP_SETTING_TEXT || noop->text[0] == '\0' ||
        chunks == 0 || catalogue->layers % chunks != 0) {
        return;
    }
    for (size_t i = 0; i < runs->count; i++) {
        uint64_t depth = catalogue->layers / chunks;
        runs->list[i].count = runs->list[i].count < depth ? depth : runs->list[i].count;
    }
}

static enum gradcmp_status count_layers(const struct gradcmp_catalogue *catalogue,
                                        const struct gcmp_shards *shards, struct runs *runs,
                                        struct gradcmp_error *error) {
    for (size_t i = 0; i < shards->count; i++) {
        const struct gcmp_shard *shard = &shards->list[i];
        runs->of_shard[i] = UINT32_MAX;
        if (shard->local.layer >= 0) {
            struct counted layer = {shard->local.layer_digits_at, shard->local.layer, 0};
            GCMP_TRY(count_number(runs, shard, layer, &runs->of_shard[i], error));
        }
    }
    count_noop_layers(catalogue, runs);
    struct run **sorted = sort_runs(runs);
    if (sorted == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 1; i < runs->count; i++) {
        if (sorted[i]->key.family == sorted[i - 1]->key.family) {
            sorted[i]->first = sorted[i - 1]->first + sorted[i - 1]->count;
        }
    }
    free(sorted);
    return GRADCMP_OK;
}

/* The layers that the ranks hold must be as many as the run says, where they are of one list. */
static enum gradcmp_status check_layers(const struct gradcmp_catalogue *catalogue,
                                        const struct gcmp_shards *shards, const struct runs *runs,
                                        struct gradcmp_error *error) {
    size_t family = SIZE_MAX;
    uint64_t layers = 0;
    for (size_t i = 0; i < shards->count; i++) {
        if (shards->list[i].local.is_mtp || runs->of_shard[i] == UINT32_MAX) {
            continue;
        }
        const struct run *run = &runs->list[runs->of_shard[i]];
        if (family != SIZE_MAX && run->key.family != family) {
            return GRADCMP_OK;
        }
        family = run->key.family;
        layers = run->first + run->count > layers ? run->first + run->count : layers;
    }
    if (family != SIZE_MAX && catalogue->layers != 0 && catalogue->layers != layers) {
        GCMP_FAIL(error, GRADCMP_ERROR_CORRUPT,
                  "the ranks' files hold %" PRIu64 " layers, but the run has %" PRIu64, layers,
                  catalogue->layers);
    }
    return GRADCMP_OK;
}

/* Count each layer's experts on each rank. */
static enum gradcmp_status count_experts(const struct gcmp_shards *shards, uint32_t ranks,
                                         struct runs *runs, struct gradcmp_error *error) {
    for (size_t i = 0; i < shards->count; i++) {
        const struct gcmp_shard *shard = &shards->list[i];
        runs->of_shard[i] = UINT32_MAX;
        if (!shard->local.is_expert) {
            continue;
        }
        if (shard->local.expert < 0 && ranks > 1) {
            GCMP_FAIL(error, GRADCMP_ERROR_UNSUPPORTED,
                      "%s: experts of a rank in one tensor are not read", shard->key);
        }
        if (shard->local.expert >= 0) {
            struct counted expert = {shard->local.expert_digits_at, shard->local.expert,
                                     shard->coords->ep};
            GCMP_TRY(count_number(runs, shard, expert, &runs->of_shard[i], error));
        }
    }
    return GRADCMP_OK;
}

/* Every rank must have as many experts of a layer as the others. */
static enum gradcmp_status number_experts(const struct runs *runs, uint32_t ranks,
                                          uint64_t *experts, struct gradcmp_error *error) {
    struct run **sorted = sort_runs(runs);
    if (sorted == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < runs->count; i++) {
        const struct run *before = i == 0 ? NULL : sorted[i - 1];
        bool is_same = before != NULL && before->key.family == sorted[i]->key.family &&
                       before->key.chunk == sorted[i]->key.chunk &&
                       before->key.stage == sorted[i]->key.stage;
        if (is_same && before->count != sorted[i]->count) {
            uint64_t a = before->count, b = sorted[i]->count;
            free(sorted);
            GCMP_FAIL(error, GRADCMP_ERROR_CORRUPT,
                      "of one layer, ranks hold %" PRIu64 " and %" PRIu64 " experts", a, b);
        }
        sorted[i]->first = (uint64_t)sorted[i]->key.rank * sorted[i]->count;
        uint64_t all = ranks * sorted[i]->count;
        *experts = all > *experts ? all : *experts;
    }
    free(sorted);
    return GRADCMP_OK;
}

/* A number in a text that another takes the place of. */
struct place {
    size_t at;
    uint64_t number;
    bool is_there;
};

/* Write the text with other numbers at `places`, which are in order. */
static const char *replace(const char *text, const struct place places[2],
                           struct gcmp_arena *arena) {
    char made[2 * GCMP_MAX_NAME_BYTES + 128]; /* other spellings are not twice as long */
    size_t from = 0, to = 0;
    for (size_t i = 0; i < 2; i++) {
        if (!places[i].is_there) {
            continue;
        }
        memcpy(made + to, text + from, places[i].at - from);
        to += places[i].at - from;
        to += (size_t)snprintf(made + to, 24, "%" PRIu64, places[i].number);
        from = places[i].at + strspn(text + places[i].at, "0123456789");
    }
    size_t left = strlen(text + from);
    memcpy(made + to, text + from, left);
    return gcmp_arena_text(arena, made, to + left);
}

static const char *global_text(const struct gcmp_shard *shard, const struct run *layers,
                               const struct run *experts, struct gcmp_arena *arena) {
    struct place places[2] = {{0, 0, layers != NULL}, {0, 0, experts != NULL}};
    if (layers != NULL) {
        places[0].at = shard->local.layer_digits_at;
        places[0].number = layers->first + (uint64_t)shard->local.layer;
    }
    if (experts != NULL) {
        places[1].at = shard->local.expert_digits_at;
        places[1].number = experts->first + (uint64_t)shard->local.expert;
    }
    if (layers != NULL && experts != NULL && places[1].at < places[0].at) {
        struct place first = places[0];
        places[0] = places[1];
        places[1] = first;
    }
    return replace(shard->local.text, places, arena);
}

/* One call of gcmp_local_name. */
struct naming {
    const struct gradcmp_catalogue *catalogue;
    struct gcmp_shards *shards;
    struct gcmp_local_sizes *sizes;
    struct gcmp_arena *arena;
    struct runs layers, experts;
};

static enum gradcmp_status name_all(struct naming *naming, struct gradcmp_error *error) {
    struct runs *layers = &naming->layers, *experts = &naming->experts;
    struct gcmp_shards *shards = naming->shards;
    struct gcmp_local_sizes *sizes = naming->sizes;
    GCMP_TRY(make_runs(layers, shards->count, error));
    GCMP_TRY(make_runs(experts, shards->count, error));
    GCMP_TRY(count_layers(naming->catalogue, shards, layers, error));
    GCMP_TRY(check_layers(naming->catalogue, shards, layers, error));
    GCMP_TRY(count_experts(shards, sizes->ep, experts, error));
    GCMP_TRY(number_experts(experts, sizes->ep, &sizes->experts, error));
    for (size_t i = 0; i < shards->count; i++) {
        uint32_t layer = layers->of_shard[i], expert = experts->of_shard[i];
        shards->list[i].text =
            global_text(&shards->list[i], layer == UINT32_MAX ? NULL : &layers->list[layer],
                        expert == UINT32_MAX ? NULL : &experts->list[expert], naming->arena);
        if (shards->list[i].text == NULL) {
            GCMP_FAIL_MEMORY(error);
        }
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_local_name(const struct gradcmp_catalogue *catalogue,
                                    struct gcmp_shards *shards, struct gcmp_local_sizes *sizes,
                                    struct gcmp_arena *arena, struct gradcmp_error *error) {
    struct naming naming = {
        .catalogue = catalogue, .shards = shards, .sizes = sizes, .arena = arena};
    enum gradcmp_status status = GRADCMP_OK;
    for (size_t i = 0; i < shards->count && status == GRADCMP_OK; i++) {
        struct gcmp_shard *shard = &shards->list[i];
        status = gcmp_name_parse(shard->name, true, arena, &shard->local, error);
    }
    if (status == GRADCMP_OK) {
        status = name_all(&naming, error);
    }
    free_runs(&naming.layers);
    free_runs(&naming.experts);
    return status;
}
