/* Lists files of tensors that belong to a folder and not to the format that was found in it: a
 * trainer keeps its weights in safetensors beside an optimizer that torch.save wrote. */
#include "bits/loose.h"

#include <fnmatch.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/map.h"
#include "bits/stored.h"
#include "formats/safetensors.h"
#include "formats/safetensors_set.h"

static const char SAFETENSORS[] = "*.safetensors";

struct gcmp_bits_loose {
    struct gradcmp_catalogue catalogue;
    struct gcmp_bits_loose *next;
};

bool gcmp_bits_holds_tensors(const char *name) {
    static const char *const endings[] = {SAFETENSORS, "*.distcp", "*.h5", "*.hdf5"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        if (fnmatch(endings[i], name, FNM_CASEFOLD) == 0) {
            return true;
        }
    }
    return false;
}

/* Names of the files that the checkpoint's pieces lie in. False without memory. */
static bool list_taken(const struct gradcmp_catalogue *catalogue, struct gcmp_map *taken) {
    for (size_t i = 0; catalogue != NULL && i < catalogue->source_count; i++) {
        const char *name = gcmp_dir_file_name(catalogue->dir, catalogue->sources[i].file);
        if (gcmp_map_add(taken, name, strlen(name), i, NULL) == GCMP_MAP_NO_MEMORY) {
            return false;
        }
    }
    return true;
}

static enum gradcmp_status add_file(struct gcmp_bits_side *side, const char *name,
                                    struct gradcmp_error *error) {
    const struct gcmp_map walked = GCMP_MAP_INIT;
    struct gcmp_bits_loose *loose = gcmp_arena_alloc(&side->arena, 1, sizeof *loose);
    const char *prefix =
        gcmp_arena_text(&side->arena, name, strlen(name) - strlen(strchr(SAFETENSORS, '.')));
    if (loose == NULL || prefix == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    *loose = (struct gcmp_bits_loose){.catalogue = {.format = &gcmp_format_safetensors,
                                                    .arena = &side->arena,
                                                    .dir = side->dir,
                                                    .iteration = -1},
                                      .next = side->loose};
    side->loose = loose;
    struct gcmp_st_set set = {0};
    enum gradcmp_status status = gcmp_st_set_add(&loose->catalogue, &set, name, error);
    if (status == GRADCMP_OK) {
        status = gcmp_st_join(&loose->catalogue, &set, error);
    }
    gcmp_st_set_close(&set);
    struct gcmp_bits_listing listing = {&loose->catalogue, &walked, prefix};
    return status == GRADCMP_OK ? gcmp_bits_add_catalogue(side, &listing, error) : status;
}

/* Files that are not taken: listed, or counted in *left with the name of the first. */
static enum gradcmp_status add_files(struct gcmp_bits_side *side, const char *const *names,
                                     size_t count, const struct gcmp_map *taken,
                                     struct gradcmp_error *error) {
    const struct gradcmp_catalogue *catalogue = gcmp_bits_side_catalogue(side);
    bool is_ours = catalogue != NULL && catalogue->format == &gcmp_format_safetensors;
    const char *first = NULL;
    size_t left = 0, ignored;
    for (size_t i = 0; i < count; i++) {
        if (gcmp_map_find(taken, names[i], strlen(names[i]), &ignored)) {
            continue;
        }
        if (!is_ours && fnmatch(SAFETENSORS, names[i], FNM_CASEFOLD) == 0) {
            GCMP_TRY(add_file(side, names[i], error));
        } else {
            first = left++ == 0 ? names[i] : first;
        }
    }
    return left == 0 ? GRADCMP_OK
                     : gcmp_bits_note(side, error,
                                      "not compared: %zu files of tensors that the checkpoint does "
                                      "not name (%.160s%s)",
                                      left, first, left > 1 ? ", ..." : "");
}

enum gradcmp_status gcmp_bits_add_loose(struct gcmp_bits_side *side, const char *const *names,
                                        size_t count, struct gradcmp_error *error) {
    struct gcmp_map taken = GCMP_MAP_INIT;
    enum gradcmp_status status =
        list_taken(gcmp_bits_side_catalogue(side), &taken)
            ? add_files(side, names, count, &taken, error)
            : gcmp_error_set(error, GRADCMP_ERROR_MEMORY, NULL, GRADCMP_NO_OFFSET, "out of memory");
    gcmp_map_free(&taken);
    return status;
}

void gcmp_bits_free_loose(struct gcmp_bits_side *side) {
    for (struct gcmp_bits_loose *at = side->loose; at != NULL; at = at->next) {
        gcmp_catalogue_free(&at->catalogue);
    }
    side->loose = NULL;
}
