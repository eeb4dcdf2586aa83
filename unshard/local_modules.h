/* Parameters of one state by module: what stands beside what in the names, and the hidden size of
 * each stack of layers. Shared by local_split.c and local_chain.c. */
#ifndef GCMP_UNSHARD_LOCAL_MODULES_H
#define GCMP_UNSHARD_LOCAL_MODULES_H

#include "base/map.h"
#include "unshard/local_shards.h"

/* "decoder.layers.0.mlp.linear_fc1.weight": parent "decoder.layers.0.mlp", module "linear_fc1",
 * leaf "weight". */
struct gcmp_name_parts {
    size_t parent_bytes;
    const char *module;
    size_t module_bytes;
    const char *leaf;
};

struct gcmp_name_parts gcmp_name_split(const char *text);

/* The matrices called "weight" of the modules in one parent. */
struct gcmp_local_module {
    size_t first;       /* parameter; the others follow in gcmp_local_modules.next */
    uint64_t hidden;    /* size of what goes into the module and comes out; 0: cannot be told */
    bool is_attention;  /* a word of the parent's name says so */
    uint32_t ranks;     /* of the tensor-parallel group */
    uint64_t rest_rows; /* of all matrices but the last in the chain; set by gcmp_local_chain */
};

struct gcmp_local_modules {
    const struct gradcmp_catalogue *catalogue;
    const struct gcmp_local_sizes *sizes;
    struct gcmp_local_parameter *parameters; /* sorted by name */
    size_t count;
    size_t *next; /* the next matrix of the same module; SIZE_MAX: none */
    struct gcmp_local_module *list;
    size_t module_count;
    uint32_t *family; /* stack of layers of each parameter; UINT32_MAX: none */
    uint64_t *hidden; /* of each stack; 0: cannot be told */
    struct gcmp_map by_parent, families;
};

GRADCMP_MUST_USE enum gradcmp_status gcmp_local_modules_make(struct gcmp_local_modules *modules,
                                                             struct gradcmp_error *error);
void gcmp_local_modules_free(struct gcmp_local_modules *modules);

static inline const char *gcmp_local_text(const struct gcmp_local_parameter *parameter) {
    return parameter->shards->text;
}
static inline uint64_t gcmp_local_rows(const struct gcmp_local_parameter *matrix) {
    return matrix->shards->shape[0];
}
static inline uint64_t gcmp_local_columns(const struct gcmp_local_parameter *matrix) {
    return matrix->shards->shape[1];
}

/* A size that the run's arguments state; 0 where they do not. */
uint64_t gcmp_local_argument(const struct gcmp_local_modules *modules, const char *name);

/* True for a number of rows that no rank shares out: one, or one for each expert (gates, routers).
 */
bool gcmp_local_is_gate(const struct gcmp_local_modules *modules, uint64_t rows);

/* Refuse: nothing tells how the parameter is split. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_local_refuse(const struct gcmp_local_parameter *parameter,
                                                       const char *why,
                                                       struct gradcmp_error *error);

/* Decide the split of the matrices of a module. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_local_chain(const struct gcmp_local_modules *modules,
                                                      struct gcmp_local_module *module,
                                                      struct gradcmp_error *error);

#endif
