/* Decoder of c-blosc 1 buffers. Their blocks can be decoded in any order only with the whole buffer
 * at hand, so that both sides are held in memory.
 *
 * Limit: MAX_BLOSC_BYTES of either side. */
#include "formats/decode.h"

#if defined(GRADCMP_HAVE_BLOSC)

#include <blosc.h>
#include <stdlib.h>

enum { MAX_BLOSC_BYTES = 256 << 20 };

static enum gradcmp_status decode_buffer(const struct gcmp_bytes *in, const unsigned char *encoded,
                                         struct gcmp_writer *writer, struct gradcmp_error *error) {
    size_t stated = 0;
    if (blosc_cbuffer_validate(encoded, (size_t)in->length_bytes, &stated) != 0) {
        GCMP_BYTES_FAIL(in, 0, error, GRADCMP_ERROR_CORRUPT,
                        "blosc: the buffer's header contradicts its %llu bytes",
                        (unsigned long long)in->length_bytes);
    }
    if (stated > writer->max_bytes) {
        GCMP_BYTES_FAIL(in, 0, error, GRADCMP_ERROR_CORRUPT,
                        "blosc: the header states %zu bytes, expected %llu", stated,
                        (unsigned long long)writer->max_bytes);
    }
    unsigned char *decoded = malloc(stated == 0 ? 1 : stated);
    if (decoded == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    int made = blosc_decompress_ctx(encoded, decoded, stated, 1);
    enum gradcmp_status status =
        made >= 0 && (size_t)made == stated
            ? gcmp_writer_add(writer, decoded, stated, error)
            : gcmp_error_set(error, GRADCMP_ERROR_CORRUPT, gcmp_dir_file_path(in->dir, in->file),
                             in->origin_bytes, "blosc: damaged data");
    free(decoded);
    return status;
}

enum gradcmp_status gcmp_decode_blosc(const struct gcmp_bytes *in, struct gcmp_writer *writer,
                                      struct gradcmp_error *error) {
    if (in->length_bytes > MAX_BLOSC_BYTES || writer->max_bytes > MAX_BLOSC_BYTES) {
        GCMP_BYTES_FAIL(in, 0, error, GRADCMP_ERROR_LIMIT,
                        "blosc: a buffer of more than %d MiB, which would be held in memory",
                        MAX_BLOSC_BYTES >> 20);
    }
    unsigned char *encoded = malloc(in->length_bytes == 0 ? 1 : (size_t)in->length_bytes);
    if (encoded == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    enum gradcmp_status status = gcmp_bytes_read(in, 0, encoded, (size_t)in->length_bytes, error);
    if (status == GRADCMP_OK) {
        status = decode_buffer(in, encoded, writer, error);
    }
    free(encoded);
    return status;
}

#else

enum gradcmp_status gcmp_decode_blosc(const struct gcmp_bytes *in, struct gcmp_writer *writer,
                                      struct gradcmp_error *error) {
    (void)writer;
    GCMP_BYTES_FAIL(in, 0, error, GRADCMP_ERROR_UNSUPPORTED,
                    "blosc: this build of gradcmp has no decoder for it (GRADCMP_BLOSC)");
}

#endif
