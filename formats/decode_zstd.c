/* Decoder of one zstd frame. Formats before zstd 0.8, which the library may know too, are not
 * accepted: the frame must begin with the one magic number.
 *
 * Limit: MAX_WINDOW_LOG, memory that the frame's header asks for. */
#include <zstd.h>

#include "base/cursor.h"
#include "formats/decode.h"

enum { MAX_WINDOW_LOG = 27, MAGIC_BYTES = 4 };

/* The frame's header may state how much comes out. */
static enum gradcmp_status check_header(const struct gcmp_feed *feed,
                                        const struct gcmp_writer *writer,
                                        struct gradcmp_error *error) {
    struct gcmp_cursor cursor = gcmp_cursor_make(feed->buffer, feed->have, 0);
    uint32_t magic = 0;
    if (!gcmp_read_u32le(&cursor, &magic) || magic != ZSTD_MAGICNUMBER) {
        GCMP_BYTES_FAIL(feed->in, 0, error, GRADCMP_ERROR_CORRUPT,
                        "zstd: expected a frame (28 b5 2f fd), found other bytes");
    }
    unsigned long long stated = ZSTD_getFrameContentSize(feed->buffer, feed->have);
    if (stated != ZSTD_CONTENTSIZE_UNKNOWN && stated != ZSTD_CONTENTSIZE_ERROR &&
        (stated > writer->max_bytes || stated < writer->min_bytes)) {
        GCMP_BYTES_FAIL(feed->in, 0, error, GRADCMP_ERROR_CORRUPT,
                        "zstd: the frame states %llu bytes, expected %llu", stated,
                        (unsigned long long)(stated > writer->max_bytes ? writer->max_bytes
                                                                        : writer->min_bytes));
    }
    return GRADCMP_OK;
}

/* Decode as far as input and room go. */
static enum gradcmp_status step(ZSTD_DStream *stream, struct gcmp_feed *feed,
                                struct gcmp_writer *writer, bool *ended,
                                struct gradcmp_error *error) {
    ZSTD_outBuffer out = {NULL, 0, 0};
    out.dst = gcmp_writer_room(writer, &out.size);
    ZSTD_inBuffer in = {feed->buffer, feed->have, feed->used};
    size_t result = ZSTD_decompressStream(stream, &out, &in);
    feed->used = in.pos;
    if (ZSTD_isError(result)) {
        GCMP_BYTES_FAIL(feed->in, gcmp_feed_at(feed), error, GRADCMP_ERROR_CORRUPT, "zstd: %s",
                        ZSTD_getErrorName(result));
    }
    GCMP_TRY(gcmp_writer_commit(writer, out.pos, error));
    *ended = result == 0;
    if (!*ended && in.pos == in.size && out.pos < out.size &&
        feed->read_bytes == feed->in->length_bytes) {
        GCMP_BYTES_FAIL(feed->in, gcmp_feed_at(feed), error, GRADCMP_ERROR_CORRUPT,
                        "zstd: the frame ends early");
    }
    return GRADCMP_OK;
}

static enum gradcmp_status decode_all(ZSTD_DStream *stream, struct gcmp_feed *feed,
                                      struct gcmp_writer *writer, struct gradcmp_error *error) {
    GCMP_TRY(gcmp_feed_fill(feed, error));
    GCMP_TRY(check_header(feed, writer, error));
    for (bool ended = false; !ended;) {
        GCMP_TRY(gcmp_feed_fill(feed, error));
        GCMP_TRY(step(stream, feed, writer, &ended, error));
    }
    if (gcmp_feed_at(feed) != feed->in->length_bytes) {
        GCMP_BYTES_FAIL(feed->in, gcmp_feed_at(feed), error, GRADCMP_ERROR_CORRUPT,
                        "zstd: %llu bytes behind the end of the frame",
                        (unsigned long long)(feed->in->length_bytes - gcmp_feed_at(feed)));
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_decode_zstd(const struct gcmp_bytes *in, struct gcmp_writer *writer,
                                     struct gradcmp_error *error) {
    struct gcmp_feed feed = {0};
    ZSTD_DStream *stream = ZSTD_createDStream();
    enum gradcmp_status status = GRADCMP_OK;
    if (stream == NULL ||
        ZSTD_isError(ZSTD_DCtx_setParameter(stream, ZSTD_d_windowLogMax, MAX_WINDOW_LOG))) {
        status =
            gcmp_error_set(error, GRADCMP_ERROR_MEMORY, NULL, GRADCMP_NO_OFFSET, "out of memory");
    }
    if (status == GRADCMP_OK) {
        status = gcmp_feed_open(&feed, in, error);
    }
    if (status == GRADCMP_OK) {
        status = decode_all(stream, &feed, writer, error);
    }
    gcmp_feed_free(&feed);
    ZSTD_freeDStream(stream);
    return status;
}
