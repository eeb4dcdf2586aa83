/* Source: deepspeed/runtime/engine.py (_save_moe_checkpoint), moe/experts.py. */
#include "formats/deepspeed_experts.h"

#include <stdlib.h>
#include <string.h>

static const char MARK[] = ".deepspeed_experts.";

/* Find the number of an expert in a name: *prefix_bytes is what stands before it. NULL for names of
 * no expert. */
static const char *find_number(const char *name, size_t *prefix_bytes, size_t *digits) {
    const char *mark = strstr(name, MARK);
    if (mark == NULL) {
        return NULL;
    }
    const char *number = mark + sizeof MARK - 1;
    *prefix_bytes = (size_t)(number - name);
    *digits = strspn(number, "0123456789");
    return *digits > 0 && *digits <= 7 && number[*digits] == '.' ? number : NULL;
}

bool gcmp_ds_has_experts(const struct gcmp_ds_param *params, size_t count) {
    size_t prefix, digits;
    for (size_t i = 0; i < count; i++) {
        if (find_number(params[i].name, &prefix, &digits) == NULL) {
            return false;
        }
    }
    return count > 0;
}

/* Count the experts of each layer: the highest number and one. `layers` maps a name's prefix to an
 * index into `experts`. */
static enum gradcmp_status count_experts(const struct gcmp_ds_param *params, size_t count,
                                         struct gcmp_map *layers, size_t *experts,
                                         struct gradcmp_error *error) {
    for (size_t i = 0; i < count; i++) {
        size_t prefix, digits, layer;
        const char *number = find_number(params[i].name, &prefix, &digits);
        if (number == NULL) {
            GCMP_FAIL(
                error, GRADCMP_ERROR_UNSUPPORTED,
                "deepspeed: \"%.200s\" is in a group that only some ranks share, but belongs to "
                "no expert",
                params[i].name);
        }
        if (gcmp_map_add(layers, params[i].name, prefix, layers->count, &layer) ==
            GCMP_MAP_NO_MEMORY) {
            GCMP_FAIL_MEMORY(error);
        }
        size_t expert = strtoul(number, NULL, 10);
        experts[layer] = expert + 1 > experts[layer] ? expert + 1 : experts[layer];
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_ds_name_experts(struct gcmp_arena *arena,
                                         const struct gcmp_ds_param *params, size_t count,
                                         size_t rank, struct gcmp_ds_param *out,
                                         struct gradcmp_error *error) {
    struct gcmp_map layers = GCMP_MAP_INIT;
    size_t *experts = calloc(count + 1, sizeof *experts);
    enum gradcmp_status status =
        experts == NULL
            ? gcmp_error_set(error, GRADCMP_ERROR_MEMORY, NULL, GRADCMP_NO_OFFSET, "out of memory")
            : count_experts(params, count, &layers, experts, error);
    for (size_t i = 0; i < count && status == GRADCMP_OK; i++) {
        size_t prefix = 0, digits = 0, layer = 0;
        const char *number = find_number(params[i].name, &prefix, &digits);
        (void)gcmp_map_find(&layers, params[i].name, prefix, &layer); /* counted above */
        out[i] = params[i];
        out[i].name =
            gcmp_arena_format(arena, "%.*s%zu%s", (int)prefix, params[i].name,
                              rank * experts[layer] + strtoul(number, NULL, 10), number + digits);
        if (out[i].name == NULL) {
            status = gcmp_error_set(error, GRADCMP_ERROR_MEMORY, NULL, GRADCMP_NO_OFFSET,
                                    "out of memory");
        }
    }
    gcmp_map_free(&layers);
    free(experts);
    return status;
}
