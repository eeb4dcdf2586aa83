/* Decoders: what comes out, in memory and in temporary files, and every way in which encoded bytes
 * can lie. */
#include "temp_tools.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <zlib.h>
#include <zstd.h>
#if defined(GRADCMP_HAVE_BLOSC)
#include <blosc.h>
#endif

#include "formats/decode.h"

enum { SMALL = 1000, LARGE = GCMP_DECODED_MAX_MEMORY + 12345, BEFORE = 7 };

/* A file with encoded bytes in it, behind BEFORE others. */
struct sample {
    char *temp;
    struct gcmp_dir *dir;
    struct gcmp_bytes in, out;
    struct gradcmp_error error;
    enum gradcmp_status status;
};

static struct sample *open_sample(const void *bytes, size_t count) {
    struct sample *sample = calloc(1, sizeof *sample);
    unsigned char *file = calloc(1, BEFORE + count);
    uint32_t index;
    memcpy(file + BEFORE, bytes, count);
    sample->temp = temp_dir_make();
    temp_file(sample->temp, "f", file, BEFORE + count);
    free(file);
    assert_int_equal(gcmp_dir_open(sample->temp, &sample->dir, NULL), GRADCMP_OK);
    assert_int_equal(gcmp_dir_add(sample->dir, "f", 1, &index, NULL), GRADCMP_OK);
    sample->in = gcmp_bytes_of_file(sample->dir, index, BEFORE, count);
    return sample;
}

static void close_sample(struct sample *sample) {
    if (sample->status == GRADCMP_OK) {
        gcmp_bytes_free(&sample->out);
    }
    gcmp_dir_close(sample->dir);
    temp_dir_remove(sample->temp);
    free(sample);
}

static struct sample *decode(const void *bytes, size_t count, enum gcmp_codec codec, uint64_t min,
                             uint64_t max) {
    struct sample *sample = open_sample(bytes, count);
    sample->status = gcmp_decode(&sample->in, codec, min, max, &sample->out, &sample->error);
    return sample;
}

static void check_refused(struct sample *sample, enum gradcmp_status code, uint64_t at,
                          const char *message) {
    if (sample->status != code || strcmp(sample->error.message, message) != 0) {
        fail_msg("expected %d \"%s\", found %d \"%s\"", (int)code, message, (int)sample->status,
                 sample->error.message);
    }
    assert_int_equal(sample->error.offset_bytes, BEFORE + at);
    assert_text_contains(sample->error.path, "/f");
    close_sample(sample);
}

/* Bytes that compress somewhat, and not to the same anywhere. */
static unsigned char *make_content(size_t count) {
    unsigned char *content = malloc(count == 0 ? 1 : count);
    uint32_t state = 12345;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        content[i] = (unsigned char)(i % 4 == 3 ? state >> 24 : i / 256);
    }
    return content;
}

static unsigned char *encode_zlib(const unsigned char *content, size_t count, bool gzip,
                                  size_t *encoded_bytes) {
    z_stream stream;
    memset(&stream, 0, sizeof stream);
    assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, 15 + (gzip ? 16 : 0), 8, 0), Z_OK);
    size_t room = deflateBound(&stream, count);
    unsigned char *encoded = malloc(room);
    stream.next_in = (unsigned char *)(uintptr_t)content;
    stream.avail_in = (uInt)count;
    stream.next_out = encoded;
    stream.avail_out = (uInt)room;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    *encoded_bytes = room - stream.avail_out;
    deflateEnd(&stream);
    return encoded;
}

/* A frame that states its content's size, or, made by a stream, does not. */
static unsigned char *encode_zstd(const unsigned char *content, size_t count, bool stated,
                                  size_t *encoded_bytes) {
    size_t room = ZSTD_compressBound(count);
    unsigned char *encoded = malloc(room);
    ZSTD_CCtx *context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, stated);
    *encoded_bytes = ZSTD_compress2(context, encoded, room, content, count);
    assert_false(ZSTD_isError(*encoded_bytes));
    ZSTD_freeCCtx(context);
    return encoded;
}

static unsigned char *encode_blosc(const unsigned char *content, size_t count, bool shuffle,
                                   size_t *encoded_bytes) {
#if defined(GRADCMP_HAVE_BLOSC)
    size_t room = count + BLOSC_MAX_OVERHEAD;
    unsigned char *encoded = malloc(room);
    int made = blosc_compress_ctx(5, shuffle ? BLOSC_SHUFFLE : BLOSC_BITSHUFFLE, 4, count, content,
                                  encoded, room, "lz4", 0, 1);
    assert_true(made > 0);
    *encoded_bytes = (size_t)made;
    return encoded;
#else
    (void)content;
    (void)count;
    (void)shuffle;
    (void)encoded_bytes;
    skip();
    return NULL;
#endif
}

static unsigned char *encode(enum gcmp_codec codec, const unsigned char *content, size_t count,
                             bool variant, size_t *encoded_bytes) {
    switch (codec) {
    case GCMP_CODEC_GZIP:
        return encode_zlib(content, count, true, encoded_bytes);
    case GCMP_CODEC_ZLIB:
        return encode_zlib(content, count, false, encoded_bytes);
    case GCMP_CODEC_ZSTD:
        return encode_zstd(content, count, variant, encoded_bytes);
    case GCMP_CODEC_BLOSC:
        return encode_blosc(content, count, variant, encoded_bytes);
    default: {
        unsigned char *copy = malloc(count);
        memcpy(copy, content, count);
        *encoded_bytes = count;
        return copy;
    }
    }
}

static const enum gcmp_codec codecs[] = {GCMP_CODEC_NONE, GCMP_CODEC_GZIP, GCMP_CODEC_ZLIB,
                                         GCMP_CODEC_ZSTD,
#if defined(GRADCMP_HAVE_BLOSC)
                                         GCMP_CODEC_BLOSC
#endif
};
#define CODEC_COUNT (sizeof codecs / sizeof *codecs)

static void check_round_trip(enum gcmp_codec codec, size_t count, bool variant) {
    unsigned char *content = make_content(count);
    size_t encoded_bytes;
    unsigned char *encoded = encode(codec, content, count, variant, &encoded_bytes);
    struct sample *sample = decode(encoded, encoded_bytes, codec, count, count);
    if (sample->status != GRADCMP_OK) {
        fail_msg("codec %d, %zu bytes: %s", (int)codec, count, sample->error.message);
    }
    assert_int_equal(sample->out.length_bytes, count);
    assert_int_equal(sample->out.kind,
                     count > GCMP_DECODED_MAX_MEMORY ? GCMP_BYTES_TEMPORARY : GCMP_BYTES_MEMORY);
    unsigned char *found = malloc(count == 0 ? 1 : count);
    assert_int_equal(gcmp_bytes_read(&sample->out, 0, found, count, NULL), GRADCMP_OK);
    assert_memory_equal(found, content, count);
    if (count > 500) {
        assert_int_equal(gcmp_bytes_read(&sample->out, 400, found, 77, NULL), GRADCMP_OK);
        assert_memory_equal(found, content + 400, 77);
    }
    free(found);
    close_sample(sample);
    free(encoded);
    free(content);
}

static void test_decode__any_size_gives_the_content(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1, 3, SMALL, GCMP_DECODED_MAX_MEMORY, LARGE};
    for (size_t c = 0; c < CODEC_COUNT; c++) {
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            check_round_trip(codecs[c], sizes[s], false);
            check_round_trip(codecs[c], sizes[s], true);
        }
    }
}

static void test_decode__too_few_or_too_many_bytes_are_refused(void **state) {
    (void)state;
    unsigned char *content = make_content(SMALL);
    for (size_t c = 0; c < CODEC_COUNT; c++) {
        size_t encoded_bytes;
        unsigned char *encoded = encode(codecs[c], content, SMALL, false, &encoded_bytes);
        check_refused(decode(encoded, encoded_bytes, codecs[c], SMALL + 1, SMALL + 1),
                      GRADCMP_ERROR_CORRUPT, 0, "decodes to 1000 bytes, expected 1001");
        if (codecs[c] != GCMP_CODEC_BLOSC) {
            check_refused(decode(encoded, encoded_bytes, codecs[c], 1, SMALL - 1),
                          GRADCMP_ERROR_CORRUPT, 0, "decodes to more than the 999 bytes expected");
        }
        free(encoded);
    }
    free(content);
}

/* Cut at every length: never a success, never bytes that were not there. */
static void test_decode__every_truncation_is_refused(void **state) {
    (void)state;
    enum { COUNT = 300 };
    unsigned char *content = make_content(COUNT);
    for (size_t c = 1; c < CODEC_COUNT; c++) {
        size_t encoded_bytes;
        unsigned char *encoded = encode(codecs[c], content, COUNT, true, &encoded_bytes);
        for (size_t cut = 0; cut < encoded_bytes; cut += 1 + cut / 16) {
            struct sample *sample = decode(encoded, cut, codecs[c], COUNT, COUNT);
            assert_int_equal(sample->status, GRADCMP_ERROR_CORRUPT);
            assert_in_range(sample->error.offset_bytes, BEFORE, BEFORE + cut);
            close_sample(sample);
        }
        free(encoded);
    }
    free(content);
}

static void test_decode__truncation_is_told_at_the_end(void **state) {
    (void)state;
    unsigned char *content = make_content(SMALL);
    size_t count;
    unsigned char *zlib = encode(GCMP_CODEC_ZLIB, content, SMALL, false, &count);
    check_refused(decode(zlib, count - 1, GCMP_CODEC_ZLIB, SMALL, SMALL), GRADCMP_ERROR_CORRUPT,
                  count - 1, "zlib: the data ends early");
    unsigned char *zstd = encode(GCMP_CODEC_ZSTD, content, SMALL, false, &count);
    check_refused(decode(zstd, count - 1, GCMP_CODEC_ZSTD, SMALL, SMALL + 1), GRADCMP_ERROR_CORRUPT,
                  count - 1, "zstd: the frame ends early");
    free(zlib);
    free(zstd);
    free(content);
}

static void test_decode__bytes_behind_the_end_are_refused(void **state) {
    (void)state;
    static const enum gcmp_codec streams[] = {GCMP_CODEC_GZIP, GCMP_CODEC_ZLIB, GCMP_CODEC_ZSTD};
    static const char *const messages[] = {"zlib: 3 bytes behind the end of the data",
                                           "zlib: 3 bytes behind the end of the data",
                                           "zstd: 3 bytes behind the end of the frame"};
    unsigned char *content = make_content(SMALL);
    for (size_t c = 0; c < 3; c++) {
        size_t count;
        unsigned char *encoded = encode(streams[c], content, SMALL, false, &count);
        encoded = realloc(encoded, count + 3);
        memset(encoded + count, 0, 3);
        check_refused(decode(encoded, count + 3, streams[c], SMALL, SMALL), GRADCMP_ERROR_CORRUPT,
                      count, messages[c]);
        free(encoded);
    }
    free(content);
}

static void test_decode__other_bytes_are_refused(void **state) {
    (void)state;
    const char *text = "these are not compressed bytes at all";
    check_refused(decode(text, 37, GCMP_CODEC_GZIP, 1, 99), GRADCMP_ERROR_CORRUPT, 2,
                  "zlib: incorrect header check");
    check_refused(decode(text, 37, GCMP_CODEC_ZSTD, 1, 99), GRADCMP_ERROR_CORRUPT, 0,
                  "zstd: expected a frame (28 b5 2f fd), found other bytes");
    check_refused(decode(text, 2, GCMP_CODEC_ZSTD, 1, 99), GRADCMP_ERROR_CORRUPT, 0,
                  "zstd: expected a frame (28 b5 2f fd), found other bytes");
    /* A frame of zstd 0.7, which the library may still decode. */
    check_refused(decode("\x27\xb5\x2f\xfd\x40\x00\x00", 7, GCMP_CODEC_ZSTD, 1, 99),
                  GRADCMP_ERROR_CORRUPT, 0,
                  "zstd: expected a frame (28 b5 2f fd), found other bytes");
#if defined(GRADCMP_HAVE_BLOSC)
    check_refused(decode(text, 37, GCMP_CODEC_BLOSC, 1, 99), GRADCMP_ERROR_CORRUPT, 0,
                  "blosc: the buffer's header contradicts its 37 bytes");
#endif
}

static void test_decode__flipped_checksum_is_refused(void **state) {
    (void)state;
    unsigned char *content = make_content(SMALL);
    size_t count;
    unsigned char *encoded = encode(GCMP_CODEC_GZIP, content, SMALL, false, &count);
    encoded[count - 8] ^= 1; /* the CRC-32 of the content */
    struct sample *sample = decode(encoded, count, GCMP_CODEC_GZIP, SMALL, SMALL);
    assert_int_equal(sample->status, GRADCMP_ERROR_CORRUPT);
    assert_string_equal(sample->error.message, "zlib: incorrect data check");
    close_sample(sample);
    free(encoded);
    free(content);
}

/* 256 MiB of zeros in some ten thousand bytes: decoding stops one byte past what was expected. */
static void test_decode__bomb_stops_at_the_expected_size(void **state) {
    (void)state;
    size_t room = 1 << 20;
    unsigned char *encoded = malloc(room), *zeros = calloc(1, 1 << 20);
    ZSTD_CCtx *context = ZSTD_createCCtx();
    ZSTD_outBuffer out = {encoded, room, 0};
    for (int i = 0; i < 256; i++) {
        ZSTD_inBuffer in = {zeros, 1 << 20, 0};
        ZSTD_EndDirective end = i == 255 ? ZSTD_e_end : ZSTD_e_continue;
        while (ZSTD_compressStream2(context, &out, &in, end) != 0 && end == ZSTD_e_end) {
        }
    }
    check_refused(decode(encoded, out.pos, GCMP_CODEC_ZSTD, 24, 24), GRADCMP_ERROR_CORRUPT, 0,
                  "decodes to more than the 24 bytes expected");
    struct sample *sample = decode(encoded, out.pos, GCMP_CODEC_ZSTD, LARGE, LARGE);
    assert_int_equal(sample->status, GRADCMP_ERROR_CORRUPT);
    close_sample(sample);
    ZSTD_freeCCtx(context);
    free(encoded);
    free(zeros);
}

/* What says by its own length, or in its header, that it cannot be long enough is not decoded. */
static void test_decode__too_few_bytes_are_refused_at_once(void **state) {
    (void)state;
    unsigned char *zeros = calloc(1, 1 << 20);
    size_t count;
    unsigned char *encoded = encode(GCMP_CODEC_ZLIB, zeros, 1 << 20, false, &count);
    char message[100];
    uint64_t most = 1032 * (uint64_t)count;
    snprintf(message, sizeof message, "zlib: %zu bytes cannot be decoded to %llu", count,
             (unsigned long long)most + 1032);
    check_refused(decode(encoded, count, GCMP_CODEC_ZLIB, most + 1032, most + 1032),
                  GRADCMP_ERROR_CORRUPT, 0, message);
    snprintf(message, sizeof message, "decodes to 1048576 bytes, expected %llu",
             (unsigned long long)most);
    check_refused(decode(encoded, count, GCMP_CODEC_ZLIB, most, most), GRADCMP_ERROR_CORRUPT, 0,
                  message);
    free(encoded);
    encoded = malloc(ZSTD_compressBound(SMALL));
    count = ZSTD_compress(encoded, ZSTD_compressBound(SMALL), zeros, SMALL, 1);
    snprintf(message, sizeof message, "zstd: the frame states %d bytes, expected %d", SMALL,
             SMALL + 1);
    check_refused(decode(encoded, count, GCMP_CODEC_ZSTD, SMALL + 1, 2 * SMALL),
                  GRADCMP_ERROR_CORRUPT, 0, message);
    free(encoded);
    free(zeros);
}

/* Frame header: magic, descriptor (8-byte content size, no window), content size. */
static void test_decode_zstd__stated_size_that_lies_is_refused(void **state) {
    (void)state;
    const unsigned char frame[] = {0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0,
                                   0,    0,    0,    0,    0x10, 1, 0, 0};
    check_refused(decode(frame, sizeof frame, GCMP_CODEC_ZSTD, 24, 24), GRADCMP_ERROR_CORRUPT, 0,
                  "zstd: the frame states 1152921504606846976 bytes, expected 24");
}

/* A window descriptor of 2^31 bytes (exponent 21) in a frame without content size. */
static void test_decode_zstd__window_over_the_limit_is_refused(void **state) {
    (void)state;
    const unsigned char frame[] = {0x28, 0xb5, 0x2f, 0xfd, 0x00, 21 << 3, 0x01, 0, 0};
    struct sample *sample = decode(frame, sizeof frame, GCMP_CODEC_ZSTD, 0, 24);
    assert_int_equal(sample->status, GRADCMP_ERROR_CORRUPT);
    assert_text_contains(sample->error.message, "zstd: Frame requires too much memory");
    close_sample(sample);
}

#if defined(GRADCMP_HAVE_BLOSC)
static void test_decode_blosc__sizes_that_lie_are_refused(void **state) {
    (void)state;
    unsigned char *content = make_content(SMALL);
    size_t count;
    unsigned char *encoded = encode(GCMP_CODEC_BLOSC, content, SMALL, true, &count);
    check_refused(decode(encoded, count, GCMP_CODEC_BLOSC, 1, SMALL - 1), GRADCMP_ERROR_CORRUPT, 0,
                  "blosc: the header states 1000 bytes, expected 999");
    memset(encoded + 4, 0xff, 4); /* nbytes: 4 GiB */
    struct sample *sample = decode(encoded, count, GCMP_CODEC_BLOSC, SMALL, SMALL);
    assert_int_equal(sample->status, GRADCMP_ERROR_CORRUPT);
    close_sample(sample);
    check_refused(decode(encoded, count, GCMP_CODEC_BLOSC, 1, (256 << 20) + 1), GRADCMP_ERROR_LIMIT,
                  0, "blosc: a buffer of more than 256 MiB, which would be held in memory");
    free(encoded);
    free(content);
}

/* Every byte changed in turn: an error or the right number of bytes, and no memory error. */
static void test_decode_blosc__damage_is_survived(void **state) {
    (void)state;
    unsigned char *content = make_content(200);
    size_t count;
    unsigned char *encoded = encode(GCMP_CODEC_BLOSC, content, 200, true, &count);
    for (size_t i = 0; i < count; i++) {
        encoded[i] ^= 0x5a;
        struct sample *sample = decode(encoded, count, GCMP_CODEC_BLOSC, 200, 200);
        assert_true(sample->status == GRADCMP_OK ? sample->out.length_bytes == 200
                                                 : sample->status == GRADCMP_ERROR_CORRUPT);
        close_sample(sample);
        encoded[i] ^= 0x5a;
    }
    free(encoded);
    free(content);
}
#else
static void test_decode_blosc__not_built_says_so(void **state) {
    (void)state;
    check_refused(decode("x", 1, GCMP_CODEC_BLOSC, 1, 1), GRADCMP_ERROR_UNSUPPORTED, 0,
                  "blosc: this build of gradcmp has no decoder for it (GRADCMP_BLOSC)");
}
#endif

static void check_unshuffle(size_t count, size_t elem_bytes) {
    unsigned char *content = make_content(count), *shuffled = calloc(count + 1, 1);
    size_t total = count / elem_bytes, whole = total * elem_bytes;
    for (size_t i = 0; i < whole; i++) {
        shuffled[i % elem_bytes * total + i / elem_bytes] = content[i];
    }
    memcpy(shuffled + whole, content + whole, count - whole);
    struct sample *sample = open_sample(shuffled, count);
    sample->status = gcmp_unshuffle(&sample->in, elem_bytes, &sample->out, &sample->error);
    assert_int_equal(sample->status, GRADCMP_OK);
    assert_int_equal(sample->out.length_bytes, count);
    unsigned char *found = malloc(count + 1);
    assert_int_equal(gcmp_bytes_read(&sample->out, 0, found, count, NULL), GRADCMP_OK);
    assert_memory_equal(found, content, count);
    free(found);
    close_sample(sample);
    free(content);
    free(shuffled);
}

static void test_unshuffle__any_size_gives_the_elements(void **state) {
    (void)state;
    check_unshuffle(0, 4);
    check_unshuffle(4, 4);
    check_unshuffle(400, 1);
    check_unshuffle(403, 4); /* three bytes that are no element */
    check_unshuffle(8 * 70000, 8);
    check_unshuffle(LARGE, 2);
    struct sample *sample = open_sample("x", 1);
    sample->status = gcmp_unshuffle(&sample->in, 65, &sample->out, &sample->error);
    check_refused(sample, GRADCMP_ERROR_LIMIT, 0,
                  "shuffled elements of 65 bytes, at most 64 are read");
}

static int count_descriptors(void) {
    int count = 0;
    for (int fd = 0; fd < 256; fd++) {
        count += fcntl(fd, F_GETFD) >= 0;
    }
    return count;
}

static void test_bytes_give__extent_owns_what_was_decoded(void **state) {
    (void)state;
    for (size_t count = SMALL; count <= LARGE; count += LARGE - SMALL) {
        unsigned char *content = make_content(count);
        struct sample *sample = decode(content, count, GCMP_CODEC_NONE, count, count);
        struct gradcmp_extent extent;
        memset(&extent, 0, sizeof extent);
        assert_int_equal(sample->status, GRADCMP_OK);
        gcmp_bytes_give(&sample->out, &extent);
        close_sample(sample); /* leaves the extent's bytes alone */
        assert_int_equal(extent.length_bytes, count);
        if (count == SMALL) {
            assert_int_equal(extent.decoded_in_file, 0);
            assert_memory_equal(extent.decoded, content, count);
            free(extent.decoded);
        } else {
            unsigned char found[10];
            assert_null(extent.decoded);
            assert_int_equal(extent.decoded_in_file, 1);
            assert_int_equal(pread(extent.decoded_fd, found, 10, (off_t)count - 10), 10);
            assert_memory_equal(found, content + count - 10, 10);
            close(extent.decoded_fd);
        }
        free(content);
    }
}

static void test_decode__no_descriptor_and_no_name_is_left(void **state) {
    (void)state;
    unsigned char *content = make_content(LARGE);
    char *folder = temp_dir_make();
    size_t count;
    unsigned char *encoded = encode(GCMP_CODEC_ZLIB, content, LARGE, false, &count);
    struct sample *sample = open_sample(encoded, count);
    struct gcmp_bytes other;
    setenv("TMPDIR", folder, 1);
    sample->status =
        gcmp_decode(&sample->in, GCMP_CODEC_ZLIB, LARGE, LARGE, &sample->out, &sample->error);
    int after = count_descriptors();
    assert_int_equal(gcmp_decode(&sample->in, GCMP_CODEC_ZLIB, LARGE + 1, LARGE + 1, &other, NULL),
                     GRADCMP_ERROR_CORRUPT);
    unsetenv("TMPDIR");
    assert_int_equal(sample->status, GRADCMP_OK);
    assert_int_equal(count_descriptors(), after);
    assert_int_equal(rmdir(folder), 0); /* empty */
    gcmp_bytes_free(&sample->out);
    assert_int_equal(count_descriptors(), after - 1);
    close_sample(sample);
    free(folder);
    free(encoded);
    free(content);
}

/* No space: as good as a full disk. */
static void test_decode__temporary_file_that_cannot_grow_is_told(void **state) {
    (void)state;
    unsigned char *content = make_content(LARGE);
    struct rlimit limit, old;
    struct sample *sample = open_sample(content, LARGE);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    limit = old;
    limit.rlim_cur = 1 << 20;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    sample->status =
        gcmp_decode(&sample->in, GCMP_CODEC_NONE, LARGE, LARGE, &sample->out, &sample->error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(sample->status, GRADCMP_ERROR_IO);
    assert_string_equal(sample->error.message,
                        "temporary file for decoded bytes: cannot be written (set TMPDIR)");
    close_sample(sample);
    free(content);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decode__any_size_gives_the_content),
        cmocka_unit_test(test_decode__too_few_or_too_many_bytes_are_refused),
        cmocka_unit_test(test_decode__every_truncation_is_refused),
        cmocka_unit_test(test_decode__truncation_is_told_at_the_end),
        cmocka_unit_test(test_decode__bytes_behind_the_end_are_refused),
        cmocka_unit_test(test_decode__other_bytes_are_refused),
        cmocka_unit_test(test_decode__flipped_checksum_is_refused),
        cmocka_unit_test(test_decode__bomb_stops_at_the_expected_size),
        cmocka_unit_test(test_decode__too_few_bytes_are_refused_at_once),
        cmocka_unit_test(test_decode_zstd__stated_size_that_lies_is_refused),
        cmocka_unit_test(test_decode_zstd__window_over_the_limit_is_refused),
#if defined(GRADCMP_HAVE_BLOSC)
        cmocka_unit_test(test_decode_blosc__sizes_that_lie_are_refused),
        cmocka_unit_test(test_decode_blosc__damage_is_survived),
#else
        cmocka_unit_test(test_decode_blosc__not_built_says_so),
#endif
        cmocka_unit_test(test_unshuffle__any_size_gives_the_elements),
        cmocka_unit_test(test_bytes_give__extent_owns_what_was_decoded),
        cmocka_unit_test(test_decode__no_descriptor_and_no_name_is_left),
        cmocka_unit_test(test_decode__temporary_file_that_cannot_grow_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
