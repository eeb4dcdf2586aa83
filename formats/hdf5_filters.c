/* Undoes HDF5's filters: deflate, shuffle, fletcher32, zstd and blosc. Numbers of filters: the HDF
 * Group's list of registered filters. */
#include <string.h>

#include "base/cursor.h"
#include "formats/hdf5_dataset.h"

enum filter_id {
    FILTER_DEFLATE = 1,
    FILTER_SHUFFLE = 2,
    FILTER_FLETCHER32 = 3,
    FILTER_BLOSC = 32001,
    FILTER_ZSTD = 32015
};

enum { CHECKSUM_BYTES = 4 };

static bool codec_of(uint32_t id, enum gcmp_codec *codec) {
    switch (id) {
    case FILTER_DEFLATE:
        *codec = GCMP_CODEC_ZLIB;
        return true;
    case FILTER_ZSTD:
        *codec = GCMP_CODEC_ZSTD;
        return true;
    case FILTER_BLOSC:
        *codec = GCMP_CODEC_BLOSC;
        return true;
    default:
        return false;
    }
}

bool gcmp_h5_knows_filter(uint32_t id) {
    enum gcmp_codec ignored;
    return id == FILTER_SHUFFLE || id == FILTER_FLETCHER32 || codec_of(id, &ignored);
}

/* --- fletcher32 --- */

/* Two sums of the big-endian 16-bit words, in ones' complement; an odd last byte is a word's upper
 * half (John Fletcher, 1982). */
struct fletcher {
    uint32_t sum, sum_of_sums;
    bool odd;
    unsigned char held; /* the first byte of a word whose second is to come */
};

/* Bring the carry round. Of two numbers below 2^16 the folded sum is below 2^16 again. */
static uint32_t fold(uint32_t sum) {
    return (sum & 0xffff) + (sum >> 16);
}

static void add_word(struct fletcher *fletcher, uint32_t word) {
    fletcher->sum = fold(fletcher->sum + word);
    fletcher->sum_of_sums = fold(fletcher->sum_of_sums + fletcher->sum);
}

static void add_bytes(struct fletcher *fletcher, const unsigned char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (fletcher->odd) {
            add_word(fletcher, (uint32_t)fletcher->held << 8 | bytes[i]);
        } else {
            fletcher->held = bytes[i];
        }
        fletcher->odd = !fletcher->odd;
    }
}

static uint32_t finish(struct fletcher *fletcher) {
    if (fletcher->odd) {
        add_word(fletcher, (uint32_t)fletcher->held << 8);
    }
    return fletcher->sum_of_sums << 16 | fletcher->sum;
}

static enum gradcmp_status sum_up(const struct gcmp_bytes *bytes, uint32_t *found,
                                  struct gradcmp_error *error) {
    struct fletcher fletcher = {0};
    struct gcmp_feed feed;
    enum gradcmp_status status = gcmp_feed_open(&feed, bytes, error);
    while (status == GRADCMP_OK && gcmp_feed_at(&feed) < bytes->length_bytes) {
        status = gcmp_feed_fill(&feed, error);
        if (status == GRADCMP_OK) {
            add_bytes(&fletcher, feed.buffer, feed.have);
            feed.used = feed.have;
        }
    }
    gcmp_feed_free(&feed);
    *found = finish(&fletcher);
    return status;
}

/* Take the checksum off the end of the run, and compare it. */
static enum gradcmp_status check_fletcher32(struct gcmp_bytes *bytes, struct gradcmp_error *error) {
    unsigned char stored[CHECKSUM_BYTES];
    uint32_t expected = 0, found;
    if (bytes->length_bytes < CHECKSUM_BYTES) {
        GCMP_BYTES_FAIL(bytes, bytes->length_bytes, error, GRADCMP_ERROR_CORRUPT,
                        "hdf5: chunk of %llu bytes, expected a checksum of 4",
                        (unsigned long long)bytes->length_bytes);
    }
    bytes->length_bytes -= CHECKSUM_BYTES;
    GCMP_TRY(gcmp_bytes_read(bytes, bytes->length_bytes, stored, sizeof stored, error));
    struct gcmp_cursor cursor = gcmp_cursor_make(stored, sizeof stored, 0);
    (void)gcmp_read_u32le(&cursor, &expected);
    GCMP_TRY(sum_up(bytes, &found, error));
    if (found != expected) {
        GCMP_BYTES_FAIL(bytes, 0, error, GRADCMP_ERROR_CORRUPT,
                        "hdf5: checksum: expected %08x, found %08x", expected, found);
    }
    return GRADCMP_OK;
}

/* --- the pipeline --- */

static bool is_skipped(uint32_t skipped, unsigned filter) {
    return (skipped >> filter & 1) != 0;
}

/* Bytes that went into a filter: the chunk's, and the checksums added before. False where it is not
 * known, behind a compressor. */
static bool bytes_before(const struct gcmp_h5_dataset *dataset, uint32_t skipped, unsigned filter,
                         uint64_t *bytes) {
    enum gcmp_codec ignored;
    *bytes = dataset->chunk_bytes;
    for (unsigned i = 0; i < filter; i++) {
        uint32_t id = dataset->filters[i].id;
        if (!is_skipped(skipped, i) && codec_of(id, &ignored)) {
            return false;
        }
        *bytes += !is_skipped(skipped, i) && id == FILTER_FLETCHER32 ? CHECKSUM_BYTES : 0;
    }
    return true;
}

/* Undo one filter: *bytes becomes what it was made of. */
static enum gradcmp_status undo(const struct gcmp_h5_dataset *dataset, uint32_t skipped,
                                unsigned filter, struct gcmp_bytes *bytes,
                                struct gradcmp_error *error) {
    const struct gcmp_h5_filter *what = &dataset->filters[filter];
    enum gcmp_codec codec = GCMP_CODEC_NONE;
    struct gcmp_bytes made;
    uint64_t before;
    if (what->id == FILTER_FLETCHER32) {
        return check_fletcher32(bytes, error);
    }
    if (!bytes_before(dataset, skipped, filter, &before)) {
        GCMP_BYTES_FAIL(bytes, 0, error, GRADCMP_ERROR_UNSUPPORTED,
                        "hdf5: a chunk that was compressed twice");
    }
    if (codec_of(what->id, &codec)) {
        GCMP_TRY(gcmp_decode(bytes, codec, before, before, &made, error));
    } else {
        GCMP_TRY(gcmp_unshuffle(bytes, what->values[0], &made, error));
    }
    gcmp_bytes_free(bytes);
    *bytes = made;
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_h5_undo_filters(const struct gcmp_h5_dataset *dataset,
                                         const struct gcmp_bytes *chunk, uint32_t skipped,
                                         struct gcmp_bytes *out, struct gradcmp_error *error) {
    struct gcmp_bytes bytes = *chunk; /* a range of the file: nothing of it is owned */
    enum gradcmp_status status = GRADCMP_OK;
    for (unsigned i = dataset->filter_count; i-- > 0 && status == GRADCMP_OK;) {
        if (!is_skipped(skipped, i)) {
            status = undo(dataset, skipped, i, &bytes, error);
        }
    }
    if (status == GRADCMP_OK && bytes.length_bytes != dataset->chunk_bytes) {
        status = gcmp_error_set(
            error, GRADCMP_ERROR_CORRUPT, gcmp_dir_file_path(chunk->dir, chunk->file),
            chunk->origin_bytes, "hdf5: chunk decodes to %llu bytes, expected %llu",
            (unsigned long long)bytes.length_bytes, (unsigned long long)dataset->chunk_bytes);
    }
    if (status == GRADCMP_OK && bytes.kind == GCMP_BYTES_FILE) { /* there was only a checksum */
        return gcmp_decode(&bytes, GCMP_CODEC_NONE, dataset->chunk_bytes, dataset->chunk_bytes, out,
                           error);
    }
    if (status != GRADCMP_OK) {
        gcmp_bytes_free(&bytes);
        return status;
    }
    *out = bytes;
    return GRADCMP_OK;
}
