/* One checkpoint, as items. */
#ifndef GCMP_BITS_SIDE_H
#define GCMP_BITS_SIDE_H

#include "base/dir.h"
#include "bits/item.h"
#include "checkpoint.h"
#include "formats/rank_tensors.h"

/* Where a tensor of the model or the optimizer lies in a file. */
struct gcmp_bits_range {
    uint64_t begin, end; /* bytes */
    uint32_t file, stored;
};

struct gcmp_bits_side {
    const char *path;                      /* as given */
    struct gradcmp_checkpoint *checkpoint; /* NULL: only its objects could be opened */
    struct gcmp_dir *dir;                  /* the checkpoint's, or owned where that is NULL */
    char *found;                           /* malloced path of what was opened without one */
    struct gcmp_arena arena;
    struct gradcmp_catalogue extra; /* sources of tensors inside of objects; in the arena */
    struct gcmp_rank_arrays *arrays;
    struct gcmp_bits_range *ranges; /* sorted by file and begin */
    size_t range_count;
    struct gcmp_bits_loose *loose; /* catalogues of files beside the checkpoint's; or NULL */
    struct gcmp_bits_items items;
    uint64_t memory_left; /* bytes of elements that may still be taken into memory */
    const char **notes;   /* in the arena */
    size_t note_count, note_capacity;
};

/* Open a checkpoint and list all that it holds; tensors of many bytes are not read. Zeroed memory
 * before; gcmp_bits_side_close in any case. Errors: those of opening; CORRUPT, IO, LIMIT, MEMORY.
 */
GRADCMP_MUST_USE enum gradcmp_status gcmp_bits_side_open(struct gcmp_bits_side *side,
                                                         const char *path,
                                                         const struct gradcmp_options *options,
                                                         struct gradcmp_error *error);
void gcmp_bits_side_close(struct gcmp_bits_side *side);

/* The catalogue of the checkpoint's reader, or NULL. */
const struct gradcmp_catalogue *gcmp_bits_side_catalogue(const struct gcmp_bits_side *side);

/* The tensor of the model or the optimizer whose elements lie in these bytes of a file; NULL: none.
 */
const struct gradcmp_stored *gcmp_bits_stored_at(const struct gcmp_bits_side *side, uint32_t file,
                                                 uint64_t begin, uint64_t end);
/* True for a flat buffer of an optimizer, of which writers leave some as memory held it. */
bool gcmp_bits_is_flat(const struct gradcmp_catalogue *catalogue,
                       const struct gradcmp_stored *stored);

/* Read the elements of a tensor into `arena`: the item becomes an array in memory. */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_bits_fetch(struct gcmp_arena *arena, struct gcmp_bits_item *item, struct gradcmp_error *error);

/* Add one line for people. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_bits_note(struct gcmp_bits_side *side,
                                                    struct gradcmp_error *error, const char *format,
                                                    ...) __attribute__((format(printf, 3, 4)));

#endif
