/* Decoders of compressed bytes. All are bounded: by what the metadata says that comes out, and by
 * limits of their own; what is left over on either side is an error. */
#ifndef GCMP_FORMATS_DECODE_H
#define GCMP_FORMATS_DECODE_H

#include "formats/decoded.h"

enum gcmp_codec {
    GCMP_CODEC_NONE, /* stored as it is */
    GCMP_CODEC_GZIP, /* RFC 1952, one member */
    GCMP_CODEC_ZLIB, /* RFC 1950: HDF5's deflate, numcodecs' zlib */
    GCMP_CODEC_ZSTD, /* RFC 8878, one frame; windows up to 128 MiB, no dictionary */
    GCMP_CODEC_BLOSC /* c-blosc 1, as numcodecs writes it; both sides up to 256 MiB */
};

/* Decode the whole run to min_bytes or more and max_bytes or fewer; on success *out is owned by the
 * caller (gcmp_bytes_free). `in` is left as it is. Errors: CORRUPT at the byte of the file where
 * the encoded data stops making sense, ends early or goes on behind its end, and for too few or too
 * many bytes; UNSUPPORTED where this build lacks the decoder; LIMIT; IO; MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_decode(const struct gcmp_bytes *in, enum gcmp_codec codec,
                                                 uint64_t min_bytes, uint64_t max_bytes,
                                                 struct gcmp_bytes *out,
                                                 struct gradcmp_error *error);

/* Undo byte shuffling: byte k of element i lies at k * n + i, for the n whole elements of the run;
 * the rest follows as it is (numcodecs.Shuffle, HDF5's filter 2). elem_bytes >= 1. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_unshuffle(const struct gcmp_bytes *in, size_t elem_bytes,
                                                    struct gcmp_bytes *out,
                                                    struct gradcmp_error *error);

/* The decoders behind gcmp_decode, each in its file: decode the run into the writer. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_decode_zlib(const struct gcmp_bytes *in, bool gzip,
                                                      struct gcmp_writer *writer,
                                                      struct gradcmp_error *error);
GRADCMP_MUST_USE enum gradcmp_status gcmp_decode_zstd(const struct gcmp_bytes *in,
                                                      struct gcmp_writer *writer,
                                                      struct gradcmp_error *error);
GRADCMP_MUST_USE enum gradcmp_status gcmp_decode_blosc(const struct gcmp_bytes *in,
                                                       struct gcmp_writer *writer,
                                                       struct gradcmp_error *error);

/* A decoder's input, read piece by piece. */
struct gcmp_feed {
    const struct gcmp_bytes *in;
    unsigned char *buffer; /* GCMP_FEED_BYTES, owned */
    size_t have, used;     /* bytes in the buffer, and of these those that the decoder took */
    uint64_t read_bytes;   /* of the run */
};
enum { GCMP_FEED_BYTES = 128 << 10 };

GRADCMP_MUST_USE enum gradcmp_status
gcmp_feed_open(struct gcmp_feed *feed, const struct gcmp_bytes *in, struct gradcmp_error *error);
void gcmp_feed_free(struct gcmp_feed *feed);
/* Have bytes in the buffer while there are any. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_feed_fill(struct gcmp_feed *feed,
                                                    struct gradcmp_error *error);
/* Byte of the run that the decoder takes next. */
uint64_t gcmp_feed_at(const struct gcmp_feed *feed);

#endif
