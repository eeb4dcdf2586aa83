/* Decoder of gzip and zlib streams. */
#include <string.h>
#include <zlib.h>

#include "formats/decode.h"

enum { MAX_WINDOW_BITS = 15, GZIP_WRAPPER = 16 };

/* Inflate as far as input and room go. */
static enum gradcmp_status step(z_stream *stream, struct gcmp_feed *feed,
                                struct gcmp_writer *writer, bool *ended,
                                struct gradcmp_error *error) {
    size_t room;
    stream->next_out = gcmp_writer_room(writer, &room);
    stream->avail_out = room < UINT32_MAX ? (uInt)room : UINT32_MAX;
    room = stream->avail_out;
    stream->next_in = feed->buffer + feed->used;
    stream->avail_in = (uInt)(feed->have - feed->used);
    int result = inflate(stream, Z_NO_FLUSH);
    feed->used = feed->have - stream->avail_in;
    GCMP_TRY(gcmp_writer_commit(writer, room - stream->avail_out, error));
    *ended = result == Z_STREAM_END;
    if (result == Z_MEM_ERROR) {
        GCMP_FAIL_MEMORY(error);
    }
    if (*ended || result == Z_OK) {
        return GRADCMP_OK;
    }
    GCMP_BYTES_FAIL(feed->in, gcmp_feed_at(feed), error, GRADCMP_ERROR_CORRUPT, "zlib: %s",
                    result == Z_BUF_ERROR ? "the data ends early"
                    : stream->msg == NULL ? "damaged data"
                                          : stream->msg);
}

static enum gradcmp_status inflate_all(z_stream *stream, struct gcmp_feed *feed,
                                       struct gcmp_writer *writer, struct gradcmp_error *error) {
    for (bool ended = false; !ended;) {
        GCMP_TRY(gcmp_feed_fill(feed, error));
        GCMP_TRY(step(stream, feed, writer, &ended, error));
    }
    if (gcmp_feed_at(feed) != feed->in->length_bytes) {
        GCMP_BYTES_FAIL(feed->in, gcmp_feed_at(feed), error, GRADCMP_ERROR_CORRUPT,
                        "zlib: %llu bytes behind the end of the data",
                        (unsigned long long)(feed->in->length_bytes - gcmp_feed_at(feed)));
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_decode_zlib(const struct gcmp_bytes *in, bool gzip,
                                     struct gcmp_writer *writer, struct gradcmp_error *error) {
    struct gcmp_feed feed;
    z_stream stream;
    memset(&stream, 0, sizeof stream);
    if (inflateInit2(&stream, MAX_WINDOW_BITS + (gzip ? GZIP_WRAPPER : 0)) != Z_OK) {
        GCMP_FAIL_MEMORY(error);
    }
    enum gradcmp_status status = gcmp_feed_open(&feed, in, error);
    if (status == GRADCMP_OK) {
        status = inflate_all(&stream, &feed, writer, error);
    }
    gcmp_feed_free(&feed);
    inflateEnd(&stream);
    return status;
}
