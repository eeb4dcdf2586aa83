/* Buckets and their keys:
 * [chained_<n>.]optimizer.distributed.dp_group_idx_<n>.gbuf_idx_<n>.dtype_<...>.bucket_idx_<n>.<state>
 * (megatron-core 0.14 and later, `dp_reshardable`), or without bucket_idx a whole buffer, gathered
 * on one rank (until 0.15, `dp_zero_gather_scatter`). */
#include "unshard/bucket_set.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/dtype.h"

/* The number behind a word of a key; -1 without. */
static int64_t number_behind(const char *key, const char *word) {
    const char *found = strstr(key, word);
    if (found == NULL) {
        return -1;
    }
    char *end;
    const char *digits = found + strlen(word);
    long long number = strtoll(digits, &end, 10);
    return end == digits || *end != '.' || number < 0 || number > INT32_MAX ? -1 : number;
}

static int compare_buckets(const void *left, const void *right) {
    const struct gcmp_bucket *a = left, *b = right;
    const int64_t keys_a[] = {a->chain, a->dtype, a->chunk, a->group, a->index};
    const int64_t keys_b[] = {b->chain, b->dtype, b->chunk, b->group, b->index};
    for (size_t i = 0; i < 5; i++) {
        if (keys_a[i] != keys_b[i]) {
            return keys_a[i] < keys_b[i] ? -1 : 1;
        }
    }
    return 0;
}

static int compare_pieces(const void *left, const void *right) {
    uint64_t a = (*(const struct gradcmp_piece *const *)left)->start[0];
    uint64_t b = (*(const struct gradcmp_piece *const *)right)->start[0];
    return a < b ? -1 : a > b;
}

/* Pieces of a bucket follow each other without a gap or an overlap. */
static enum gradcmp_status check_pieces(const struct gcmp_bucket *bucket,
                                        struct gradcmp_error *error) {
    uint64_t reached = 0;
    for (size_t i = 0; i < bucket->piece_count; i++) {
        const struct gradcmp_piece *piece = bucket->pieces[i];
        if (piece->start[0] != reached || !gcmp_add_u64(reached, piece->extent[0], &reached)) {
            GCMP_FAIL(error, GRADCMP_ERROR_CORRUPT,
                      "%s: a piece at element %" PRIu64 ", expected at %" PRIu64,
                      bucket->stored->key, piece->start[0], reached);
        }
    }
    if (reached != bucket->stored->shape[0]) {
        GCMP_FAIL(error, GRADCMP_ERROR_CORRUPT,
                  "%s: pieces end at element %" PRIu64 ", but the bucket has %" PRIu64,
                  bucket->stored->key, reached, bucket->stored->shape[0]);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_pieces(struct gcmp_bucket *bucket, struct gradcmp_error *error) {
    const struct gradcmp_stored *stored = bucket->stored;
    bucket->pieces = calloc(stored->piece_count + 1, sizeof *bucket->pieces);
    if (bucket->pieces == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < stored->piece_count; i++) {
        if (stored->pieces[i].extent[0] > 0) {
            bucket->pieces[bucket->piece_count++] = &stored->pieces[i];
        }
    }
    qsort(bucket->pieces, bucket->piece_count, sizeof *bucket->pieces, compare_pieces);
    return check_pieces(bucket, error);
}

/* The weights' type in "dtype_(torch.bfloat16, torch.float32)". */
static enum gradcmp_dtype read_dtype(const char *key) {
    static const char word[] = ".dtype_(torch.";
    const char *found = strstr(key, word);
    char name[32] = "";
    size_t bytes = found == NULL ? 0 : strcspn(found + strlen(word), ",)");
    if (bytes < sizeof name) {
        memcpy(name, found == NULL ? "" : found + strlen(word), bytes);
    }
    return gcmp_dtype_find(name);
}

static enum gradcmp_status read_bucket(const struct gradcmp_stored *stored,
                                       struct gcmp_bucket *bucket, struct gradcmp_error *error) {
    bool is_chained = strncmp(stored->key, "chained_", 8) == 0;
    bucket->stored = stored;
    bucket->chain = is_chained ? number_behind(stored->key, "chained_") : -1;
    bucket->group = number_behind(stored->key, ".dp_group_idx_");
    bucket->chunk = number_behind(stored->key, ".gbuf_idx_");
    bucket->index = number_behind(stored->key, ".bucket_idx_");
    bucket->dtype = read_dtype(stored->key);
    if (strstr(stored->key, ".bucket_idx_") == NULL) {
        bucket->index = 0;
        bucket->is_gathered = true;
    }
    if (bucket->group < 0 || bucket->chunk < 0 || bucket->index < 0 || stored->ndim != 1) {
        GCMP_FAIL(error, GRADCMP_ERROR_UNSUPPORTED,
                  "%s: the key does not say which bucket this is; save with "
                  "--dist-ckpt-optim-fully-reshardable",
                  stored->key);
    }
    return read_pieces(bucket, error);
}

static bool is_same_buffer(const struct gcmp_bucket *a, const struct gcmp_bucket *b) {
    return a->chain == b->chain && a->dtype == b->dtype && a->chunk == b->chunk &&
           a->group == b->group;
}

static enum gradcmp_status make_buffers(struct gcmp_bucket_set *set, struct gradcmp_error *error) {
    for (size_t i = 0; i < set->bucket_count; i++) {
        struct gcmp_bucket *bucket = &set->buckets[i];
        bool is_next = i > 0 && is_same_buffer(bucket - 1, bucket);
        int64_t expected = is_next ? bucket[-1].index + 1 : 0;
        bool is_alone = !bucket->is_gathered && !(is_next && bucket[-1].is_gathered);
        if (bucket->index != expected || !(is_alone || expected == 0)) {
            GCMP_FAIL(error, GRADCMP_ERROR_CORRUPT,
                      "%s: expected bucket %" PRId64 " of that buffer", bucket->stored->key,
                      expected);
        }
        if (!is_next) {
            set->buffers[set->buffer_count++] = (struct gcmp_buffer){bucket, 0};
        }
        set->buffers[set->buffer_count - 1].count++;
    }
    return GRADCMP_OK;
}

static bool is_bucket_of(const struct gradcmp_stored *stored, const char *state) {
    return stored->layout == GRADCMP_LAYOUT_BUCKET && stored->state != NULL &&
           strcmp(stored->state, state) == 0;
}

enum gradcmp_status gcmp_bucket_set_read(const struct gradcmp_catalogue *catalogue,
                                         const char *state, struct gcmp_bucket_set *set,
                                         struct gradcmp_error *error) {
    size_t count = 0;
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        count += is_bucket_of(&catalogue->stored[i], state);
    }
    *set = (struct gcmp_bucket_set){.buckets = calloc(count + 1, sizeof *set->buckets)};
    set->buffers = calloc(count + 1, sizeof *set->buffers);
    if (set->buckets == NULL || set->buffers == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        if (is_bucket_of(&catalogue->stored[i], state)) {
            struct gcmp_bucket *bucket = &set->buckets[set->bucket_count++];
            GCMP_TRY(read_bucket(&catalogue->stored[i], bucket, error));
        }
    }
    qsort(set->buckets, set->bucket_count, sizeof *set->buckets, compare_buckets);
    return make_buffers(set, error);
}

void gcmp_bucket_set_free(struct gcmp_bucket_set *set) {
    for (size_t i = 0; i < set->bucket_count; i++) {
        free(set->buckets[i].pieces);
    }
    free(set->buckets);
    free(set->buffers);
    *set = (struct gcmp_bucket_set){.buckets = NULL};
}

size_t gcmp_bucket_find(const struct gcmp_bucket *bucket, uint64_t elem) {
    size_t low = 0, high = bucket->piece_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct gradcmp_piece *piece = bucket->pieces[middle];
        if (piece->start[0] + piece->extent[0] <= elem) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool gcmp_bucket_has_edge(const struct gcmp_bucket *bucket, uint64_t elem) {
    size_t index = gcmp_bucket_find(bucket, elem);
    return index < bucket->piece_count ? bucket->pieces[index]->start[0] == elem
                                       : elem == bucket->stored->shape[0];
}
