/* Files that ranks wrote without offsets: {"rank": "0", "world_size": "2"} in the metadata, and
 * tensors of which each rank has its part of axis 0 (FSDP2's Shard(0), written with to_local()).
 *
 * Whole copies, or parts of axis 1 (tensor parallelism), would look the same in most headers. That
 * the parts are of axis 0 is taken as proved when all of this holds:
 *   - the files are those of all ranks, and each holds every tensor, of the same type and axes;
 *   - rows are dealt out as FSDP2 does: ceil(rows / ranks) each, the last ranks less or none;
 *   - no tensor begins with the same bytes (other than zeros) on the first two ranks: no copies, as
 *     norms have with tensor parallelism;
 *   - and either some tensor has an uneven number of rows, which only a cut of axis 0 makes so;
 *     or every vector (a norm, a bias) is as long as matrices are wide only when it is put
 *     together: axis 1 is whole, and what tensor parallelism never cuts is cut. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/map.h"
#include "formats/rank_files.h"
#include "formats/safetensors_set.h"

enum { MAX_RANKS = 1 << 20, COMPARED_BYTES = 4096 };

/* One tensor of all ranks. */
struct row {
    const struct gcmp_st_tensor *first; /* of rank 0 */
    uint64_t rows;                      /* of all ranks together */
};

struct ranks {
    struct gradcmp_catalogue *catalogue;
    struct gcmp_st_set *set; /* by rank, once sorted */
    struct row *rows;        /* one for each tensor of rank 0 */
    struct gcmp_map by_name; /* name -> index into rows */
    struct gcmp_map widths;  /* sizes of axis 1 of matrices */
    bool uneven;             /* some tensor has more rows on one rank than on another */
    struct gradcmp_error *error;
};

static enum gradcmp_status refuse(const struct ranks *ranks, const struct gcmp_st_tensor *tensor,
                                  const char *why) {
    GCMP_FAIL_AT(ranks->error, GRADCMP_ERROR_UNSUPPORTED, gcmp_dir_path(ranks->catalogue->dir),
                 GRADCMP_NO_OFFSET,
                 "safetensors files of %zu ranks without offsets: cannot prove that they are "
                 "shards of axis 0: \"%.100s\" %s; save with torch.distributed.checkpoint",
                 ranks->set->count, tensor->name, why);
}

/* Read a decimal number from a file's metadata; false where there is none below `limit`. */
static bool read_number(const struct gcmp_st_image *image, const char *name, size_t limit,
                        size_t *out) {
    const char *text = gcmp_st_metadata(image, name);
    if (text == NULL || text[0] == '\0' || strlen(text) > 9 ||
        strspn(text, "0123456789") != strlen(text)) {
        return false;
    }
    *out = strtoul(text, NULL, 10);
    return *out < limit;
}

/* Bring the files into the order of their ranks: every rank once. */
static enum gradcmp_status sort_files(struct ranks *ranks) {
    size_t count = ranks->set->count;
    struct gcmp_st_image *sorted = calloc(count, sizeof *sorted);
    bool *seen = calloc(count, sizeof *seen);
    enum gradcmp_status status = GRADCMP_OK;
    if (sorted == NULL || seen == NULL) {
        free(sorted);
        free(seen);
        GCMP_FAIL_MEMORY(ranks->error);
    }
    for (size_t i = 0; i < count && status == GRADCMP_OK; i++) {
        size_t rank = 0, world = 0;
        const struct gcmp_st_image *image = &ranks->set->images[i];
        if (!read_number(image, "world_size", MAX_RANKS, &world) || world != count ||
            !read_number(image, "rank", count, &rank) || seen[rank]) {
            status = gcmp_error_set(
                ranks->error, GRADCMP_ERROR_CORRUPT,
                gcmp_dir_file_path(ranks->catalogue->dir, image->file), GRADCMP_NO_OFFSET,
                "safetensors: rank %.20s of %.20s, expected each rank of %zu files once",
                gcmp_st_metadata(image, "rank"), gcmp_st_metadata(image, "world_size"), count);
        } else {
            seen[rank] = true;
            sorted[rank] = *image;
        }
    }
    if (status == GRADCMP_OK) {
        memcpy(ranks->set->images, sorted, count * sizeof *sorted);
    }
    free(sorted);
    free(seen);
    return status;
}

/* Two shards of one tensor differ in axis 0 only. */
static bool goes_with(const struct gcmp_st_tensor *a, const struct gcmp_st_tensor *b) {
    return a->type == b->type && a->ndim == b->ndim && a->ndim > 0 &&
           memcmp(a->shape + 1, b->shape + 1, (a->ndim - 1) * sizeof *a->shape) == 0;
}

/* Give each shard of one rank its place behind those of the ranks before. */
static enum gradcmp_status place_rank(struct ranks *ranks, struct gcmp_st_image *image) {
    const struct gcmp_st_image *first = &ranks->set->images[0];
    for (size_t i = 0; i < image->count; i++) {
        struct gcmp_st_tensor *tensor = &image->tensors[i];
        size_t index;
        if (!gcmp_map_find(&ranks->by_name, tensor->name, strlen(tensor->name), &index) ||
            image->count != first->count) {
            return refuse(ranks, tensor, "is not in every file");
        }
        struct row *row = &ranks->rows[index];
        if (!goes_with(row->first, tensor)) {
            return refuse(ranks, tensor, "differs in more than axis 0");
        }
        uint64_t *start = gcmp_arena_alloc(ranks->catalogue->arena, tensor->ndim, sizeof *start);
        if (start == NULL) {
            GCMP_FAIL_MEMORY(ranks->error);
        }
        start[0] = row->rows;
        tensor->start = start;
        if (!gcmp_add_u64(row->rows, tensor->shape[0], &row->rows) || row->rows > INT64_MAX) {
            return refuse(ranks, tensor, "has too many rows");
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status list_rows(struct ranks *ranks) {
    const struct gcmp_st_image *first = &ranks->set->images[0];
    ranks->rows = calloc(first->count + 1, sizeof *ranks->rows);
    bool has_memory = ranks->rows != NULL;
    for (size_t i = 0; i < first->count && has_memory; i++) {
        const char *name = first->tensors[i].name;
        ranks->rows[i].first = &first->tensors[i];
        has_memory =
            gcmp_map_add(&ranks->by_name, name, strlen(name), i, NULL) != GCMP_MAP_NO_MEMORY;
    }
    if (!has_memory) {
        GCMP_FAIL_MEMORY(ranks->error);
    }
    return GRADCMP_OK;
}

/* The rule by which FSDP2 deals out rows. */
static enum gradcmp_status check_rows(struct ranks *ranks, const struct gcmp_st_image *image) {
    uint64_t count = ranks->set->count;
    for (size_t i = 0; i < image->count; i++) {
        const struct gcmp_st_tensor *tensor = &image->tensors[i];
        size_t index = 0;
        (void)gcmp_map_find(&ranks->by_name, tensor->name, strlen(tensor->name), &index);
        uint64_t rows = ranks->rows[index].rows, share = rows / count + (rows % count != 0);
        uint64_t left = rows - tensor->start[0];
        if (tensor->shape[0] != (left < share ? left : share)) {
            return refuse(ranks, tensor, "is not dealt out as FSDP2 does");
        }
        ranks->uneven = ranks->uneven || rows % count != 0;
    }
    return GRADCMP_OK;
}

static bool has_other_than_zeros(const unsigned char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] != 0) {
            return true;
        }
    }
    return false;
}

/* Compare the first bytes of a tensor on the first two ranks. */
static enum gradcmp_status check_not_copied(const struct ranks *ranks,
                                            const struct gcmp_st_tensor *second) {
    unsigned char a[COMPARED_BYTES], b[COMPARED_BYTES];
    struct gcmp_dir *dir = ranks->catalogue->dir;
    size_t index = 0;
    (void)gcmp_map_find(&ranks->by_name, second->name, strlen(second->name), &index);
    const struct gcmp_st_tensor *first = ranks->rows[index].first;
    if (first->length_bytes != second->length_bytes) {
        return GRADCMP_OK;
    }
    size_t count =
        first->length_bytes < COMPARED_BYTES ? (size_t)first->length_bytes : (size_t)COMPARED_BYTES;
    GCMP_TRY(gcmp_dir_read(dir, ranks->set->images[0].file, first->offset_bytes, a, count,
                           ranks->error));
    GCMP_TRY(gcmp_dir_read(dir, ranks->set->images[1].file, second->offset_bytes, b, count,
                           ranks->error));
    if (memcmp(a, b, count) == 0 && has_other_than_zeros(a, count)) {
        return refuse(ranks, second, "is the same on two ranks");
    }
    return GRADCMP_OK;
}

static enum gradcmp_status list_widths(struct ranks *ranks) {
    const struct gcmp_st_image *first = &ranks->set->images[0];
    for (size_t i = 0; i < first->count; i++) {
        const struct gcmp_st_tensor *tensor = &first->tensors[i];
        if (tensor->ndim >= 2 &&
            gcmp_map_add(&ranks->widths, &tensor->shape[1], sizeof tensor->shape[1], 0, NULL) ==
                GCMP_MAP_NO_MEMORY) {
            GCMP_FAIL_MEMORY(ranks->error);
        }
    }
    return GRADCMP_OK;
}

static bool is_width(const struct ranks *ranks, uint64_t size) {
    size_t ignored;
    return gcmp_map_find(&ranks->widths, &size, sizeof size, &ignored);
}

/* Where all rows are dealt out evenly: look at the vectors. */
static enum gradcmp_status check_vectors(struct ranks *ranks) {
    const struct gcmp_st_image *first = &ranks->set->images[0];
    const struct gcmp_st_tensor *vector = NULL;
    GCMP_TRY(list_widths(ranks));
    for (size_t i = 0; i < first->count; i++) {
        const struct gcmp_st_tensor *tensor = &first->tensors[i];
        if (tensor->ndim != 1) {
            continue;
        }
        if (is_width(ranks, tensor->shape[0]) || !is_width(ranks, ranks->rows[i].rows)) {
            return refuse(ranks, tensor, "may be whole on each rank");
        }
        vector = tensor;
    }
    return vector == NULL && first->count > 0
               ? refuse(ranks, &first->tensors[0], "has as many rows on each rank")
               : GRADCMP_OK;
}

/* The rank in a file's name; false where it has none below `count`. */
static bool named_rank(const char *name, size_t count, uint32_t *rank) {
    const char *end = strstr(name, ".safetensors");
    size_t stem_bytes;
    return end != NULL && gcmp_rank_name_ends(name, end, rank, &stem_bytes) && *rank < count;
}

/* Names that number all ranks from 0 are of the ranks that they say. */
static enum gradcmp_status tell_swaps(const struct ranks *ranks) {
    struct gradcmp_catalogue *catalogue = ranks->catalogue;
    size_t count = ranks->set->count;
    struct gcmp_rank_swaps swaps = {0};
    bool *seen = calloc(count, sizeof *seen);
    bool are_ranks = true;
    if (seen == NULL) {
        GCMP_FAIL_MEMORY(ranks->error);
    }
    for (size_t i = 0; i < count; i++) { /* sorted by what is in them */
        const char *name = gcmp_dir_file_name(catalogue->dir, ranks->set->images[i].file);
        uint32_t rank = 0;
        are_ranks = named_rank(name, count, &rank) && !seen[rank];
        if (!are_ranks) {
            break;
        }
        seen[rank] = true;
        if (rank != i && swaps.count++ == 0) {
            swaps.first = name;
            swaps.first_rank = i;
        }
    }
    free(seen);
    return are_ranks ? gcmp_rank_tell_swaps(catalogue, &swaps, ranks->error) : GRADCMP_OK;
}

static enum gradcmp_status place(struct ranks *ranks) {
    GCMP_TRY(sort_files(ranks));
    GCMP_TRY(list_rows(ranks));
    for (size_t i = 0; i < ranks->set->count; i++) {
        GCMP_TRY(place_rank(ranks, &ranks->set->images[i]));
    }
    for (size_t i = 0; i < ranks->set->count; i++) {
        GCMP_TRY(check_rows(ranks, &ranks->set->images[i]));
    }
    for (size_t i = 0; i < ranks->set->images[1].count; i++) {
        GCMP_TRY(check_not_copied(ranks, &ranks->set->images[1].tensors[i]));
    }
    GCMP_TRY(ranks->uneven ? GRADCMP_OK : check_vectors(ranks));
    return tell_swaps(ranks);
}

enum gradcmp_status gcmp_st_place_ranks(struct gradcmp_catalogue *catalogue,
                                        struct gcmp_st_set *set, struct gradcmp_error *error) {
    struct ranks ranks = {.catalogue = catalogue,
                          .set = set,
                          .by_name = GCMP_MAP_INIT,
                          .widths = GCMP_MAP_INIT,
                          .error = error};
    if (set->count < 2) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_UNSUPPORTED, gcmp_dir_path(catalogue->dir),
                     GRADCMP_NO_OFFSET,
                     "safetensors: one rank's file of several (world_size %.20s); name the folder "
                     "of all",
                     gcmp_st_metadata(&set->images[0], "world_size"));
    }
    enum gradcmp_status status = place(&ranks);
    gcmp_map_free(&ranks.by_name);
    gcmp_map_free(&ranks.widths);
    free(ranks.rows);
    return status;
}
