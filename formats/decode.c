/* What all decoders share: choosing one, feeding it, and undoing byte shuffling. */
#include "formats/decode.h"

#include <stdlib.h>
#include <string.h>

/* Elements that are put together at a time. */
enum { SHUFFLE_ELEMS = 16 << 10, MAX_SHUFFLE_ELEM_BYTES = 64 };

enum gradcmp_status gcmp_feed_open(struct gcmp_feed *feed, const struct gcmp_bytes *in,
                                   struct gradcmp_error *error) {
    *feed = (struct gcmp_feed){.in = in, .buffer = malloc(GCMP_FEED_BYTES)};
    if (feed->buffer == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

void gcmp_feed_free(struct gcmp_feed *feed) {
    free(feed->buffer);
    feed->buffer = NULL;
}

enum gradcmp_status gcmp_feed_fill(struct gcmp_feed *feed, struct gradcmp_error *error) {
    uint64_t left = feed->in->length_bytes - feed->read_bytes;
    if (feed->used < feed->have || left == 0) {
        return GRADCMP_OK;
    }
    size_t count = left < GCMP_FEED_BYTES ? (size_t)left : GCMP_FEED_BYTES;
    GCMP_TRY(gcmp_bytes_read(feed->in, feed->read_bytes, feed->buffer, count, error));
    feed->read_bytes += count;
    feed->have = count;
    feed->used = 0;
    return GRADCMP_OK;
}

uint64_t gcmp_feed_at(const struct gcmp_feed *feed) {
    return feed->read_bytes - (feed->have - feed->used);
}

static enum gradcmp_status copy(const struct gcmp_bytes *in, struct gcmp_writer *writer,
                                struct gradcmp_error *error) {
    for (uint64_t at = 0; at < in->length_bytes;) {
        size_t room;
        unsigned char *to = gcmp_writer_room(writer, &room);
        uint64_t left = in->length_bytes - at;
        size_t count = left < room ? (size_t)left : room;
        GCMP_TRY(gcmp_bytes_read(in, at, to, count, error));
        GCMP_TRY(gcmp_writer_commit(writer, count, error));
        at += count;
    }
    return GRADCMP_OK;
}

static enum gradcmp_status run_decoder(const struct gcmp_bytes *in, enum gcmp_codec codec,
                                       struct gcmp_writer *writer, struct gradcmp_error *error) {
    switch (codec) {
    case GCMP_CODEC_GZIP:
        return gcmp_decode_zlib(in, true, writer, error);
    case GCMP_CODEC_ZLIB:
        return gcmp_decode_zlib(in, false, writer, error);
    case GCMP_CODEC_ZSTD:
        return gcmp_decode_zstd(in, writer, error);
    case GCMP_CODEC_BLOSC:
        return gcmp_decode_blosc(in, writer, error);
    default:
        return copy(in, writer, error);
    }
}

/* The most that deflate makes of a byte: 258 bytes of 2 bits (RFC 1951). */
enum { MAX_DEFLATE_RATIO = 1032 };

/* Refuse at once what cannot become long enough: otherwise a file of few bytes that claims many
 * would keep the decoder busy for nothing. */
static enum gradcmp_status check_ratio(const struct gcmp_bytes *in, enum gcmp_codec codec,
                                       uint64_t min_bytes, struct gradcmp_error *error) {
    bool is_deflate = codec == GCMP_CODEC_GZIP || codec == GCMP_CODEC_ZLIB;
    if (is_deflate && min_bytes / MAX_DEFLATE_RATIO > in->length_bytes) {
        GCMP_BYTES_FAIL(in, 0, error, GRADCMP_ERROR_CORRUPT,
                        "zlib: %llu bytes cannot be decoded to %llu",
                        (unsigned long long)in->length_bytes, (unsigned long long)min_bytes);
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_decode(const struct gcmp_bytes *in, enum gcmp_codec codec,
                                uint64_t min_bytes, uint64_t max_bytes, struct gcmp_bytes *out,
                                struct gradcmp_error *error) {
    struct gcmp_writer writer;
    GCMP_TRY(check_ratio(in, codec, min_bytes, error));
    enum gradcmp_status status = gcmp_writer_open(&writer, in, max_bytes, error);
    if (status == GRADCMP_OK) {
        writer.min_bytes = min_bytes;
        status = run_decoder(in, codec, &writer, error);
    }
    if (status == GRADCMP_OK) {
        status = gcmp_writer_finish(&writer, min_bytes, out, error);
    }
    gcmp_writer_free(&writer);
    return status;
}

/* A run of shuffled elements: byte k of element i lies at k * total + i. */
struct shuffled {
    const struct gcmp_bytes *in;
    size_t elem_bytes;
    uint64_t total;
    unsigned char *plane; /* room for one byte of each of SHUFFLE_ELEMS elements */
    unsigned char *elems; /* room for as many elements */
};

/* Put elements [first, first + count) together in `elems`. */
static enum gradcmp_status gather_elems(const struct shuffled *run, uint64_t first, size_t count,
                                        struct gradcmp_error *error) {
    for (size_t k = 0; k < run->elem_bytes; k++) {
        GCMP_TRY(gcmp_bytes_read(run->in, k * run->total + first, run->plane, count, error));
        for (size_t i = 0; i < count; i++) {
            run->elems[i * run->elem_bytes + k] = run->plane[i];
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status unshuffle(const struct gcmp_bytes *in, size_t elem_bytes,
                                     unsigned char *buffer, struct gcmp_writer *writer,
                                     struct gradcmp_error *error) {
    uint64_t total = in->length_bytes / elem_bytes;
    struct shuffled run = {in, elem_bytes, total, buffer, buffer + SHUFFLE_ELEMS};
    for (uint64_t first = 0; first < total; first += SHUFFLE_ELEMS) {
        size_t count = total - first < SHUFFLE_ELEMS ? (size_t)(total - first) : SHUFFLE_ELEMS;
        GCMP_TRY(gather_elems(&run, first, count, error));
        GCMP_TRY(gcmp_writer_add(writer, run.elems, count * elem_bytes, error));
    }
    size_t rest = (size_t)(in->length_bytes % elem_bytes);
    GCMP_TRY(gcmp_bytes_read(in, total * elem_bytes, run.elems, rest, error));
    return gcmp_writer_add(writer, run.elems, rest, error);
}

enum gradcmp_status gcmp_unshuffle(const struct gcmp_bytes *in, size_t elem_bytes,
                                   struct gcmp_bytes *out, struct gradcmp_error *error) {
    if (elem_bytes < 1 || elem_bytes > MAX_SHUFFLE_ELEM_BYTES) {
        GCMP_BYTES_FAIL(in, 0, error, GRADCMP_ERROR_LIMIT,
                        "shuffled elements of %zu bytes, at most %d are read", elem_bytes,
                        MAX_SHUFFLE_ELEM_BYTES);
    }
    unsigned char *buffer = malloc(SHUFFLE_ELEMS * (1 + elem_bytes));
    if (buffer == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    struct gcmp_writer writer;
    enum gradcmp_status status = gcmp_writer_open(&writer, in, in->length_bytes, error);
    if (status == GRADCMP_OK) {
        status = unshuffle(in, elem_bytes, buffer, &writer, error);
    }
    if (status == GRADCMP_OK) {
        status = gcmp_writer_finish(&writer, in->length_bytes, out, error);
    }
    gcmp_writer_free(&writer);
    free(buffer);
    return status;
}
