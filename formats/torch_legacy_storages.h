/* The storages that the object of an older torch.save stream refers to. */
#ifndef GCMP_FORMATS_TORCH_LEGACY_STORAGES_H
#define GCMP_FORMATS_TORCH_LEGACY_STORAGES_H

#include "base/map.h"
#include "formats/torch_file.h"

struct gcmp_legacy_storage {
    const char *key;
    uint64_t elem_count;
    unsigned elem_bytes;
    const struct gcmp_node *class; /* a GLOBAL */
    bool is_placed;
    uint64_t offset_bytes; /* of the first element in the file, once it is placed */
};

/* A storage that is a part of another one, as torch before 0.4 had them: its persistent id ends
 * with (key, first element, number of elements). */
struct gcmp_legacy_view {
    struct gcmp_node *holder; /* PERSID */
    const char *key;          /* of its own, unlike all storages' */
    size_t storage;           /* that it is a part of */
    uint64_t first, elem_count;
};

struct gcmp_legacy_storages {
    struct gcmp_legacy_storage *items; /* in the order in which they were met */
    size_t count, capacity;
    struct gcmp_legacy_view *views;
    size_t view_count, view_capacity;
    struct gcmp_map by_key, views_by_key;
};

/* Find the storages of all persistent ids in the object. Errors: CORRUPT for an id of another form,
 * and for two ids of one key, a storage's or a view's, that disagree; UNSUPPORTED for a class whose
 * elements are of unknown size, and for a module with its source. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_legacy_collect(const struct gcmp_torch_file *torch,
                                                         struct gcmp_legacy_storages *storages,
                                                         struct gradcmp_error *error);

/* Find a storage; NULL for a key that is not there or NULL. */
struct gcmp_legacy_storage *gcmp_legacy_find_storage(const struct gcmp_legacy_storages *storages,
                                                     const char *key);

/* Make a record of each storage, and of each view, whose persistent id is then exchanged for one
 * that names its record. All storages must be placed. Errors: CORRUPT for a view that is not inside
 * of its storage, and for keys that differ in letter case alone; MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_legacy_add_records(struct gcmp_torch_file *torch,
                                                             struct gcmp_legacy_storages *storages,
                                                             struct gcmp_arena *arena,
                                                             struct gradcmp_error *error);

void gcmp_legacy_free_storages(struct gcmp_legacy_storages *storages);

#endif
