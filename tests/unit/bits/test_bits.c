/* The call: every byte of every tensor counts, in files with and without checksums. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/dir.h"
#include "formats/zip.h"
#include "formats/zip_writer.h"
#include "gradcmp/gradcmp.h"

static const char sample[] = GCMP_TEST_DATA "/resume/together.pt";

struct spoilt {
    unsigned char *bytes;
    size_t count;
    char path[64];
};

static void load(struct spoilt *file) {
    FILE *from = fopen(sample, "rb");
    assert_non_null(from);
    assert_int_equal(fseek(from, 0, SEEK_END), 0);
    file->count = (size_t)ftell(from);
    rewind(from);
    file->bytes = malloc(file->count);
    assert_non_null(file->bytes);
    assert_int_equal(fread(file->bytes, 1, file->count, from), file->count);
    fclose(from);
    snprintf(file->path, sizeof file->path, "/tmp/gradcmp-bits-XXXXXX");
    int fd = mkstemp(file->path);
    assert_true(fd >= 0);
    close(fd);
}

static void save(const struct spoilt *file) {
    FILE *to = fopen(file->path, "wb");
    assert_non_null(to);
    assert_int_equal(fwrite(file->bytes, 1, file->count, to), file->count);
    assert_int_equal(fclose(to), 0);
}

static int judge_pair(const char *a, const char *b, int verify) {
    const char *paths[] = {a, b};
    struct gradcmp_options options = GRADCMP_OPTIONS_INIT;
    struct gradcmp_evidence *evidence = NULL;
    struct gradcmp_error error = {0};
    options.verify = verify;
    options.threads = 1;
    assert_int_equal(gradcmp_bits(paths, 2, &options, NULL, &evidence, &error), GRADCMP_OK);
    int status = gradcmp_evidence_exit_status(evidence);
    gradcmp_evidence_free(evidence);
    return status;
}

/* Exit status of the sample against the spoilt file. */
static int judge(const struct spoilt *file, int verify) {
    return judge_pair(sample, file->path, verify);
}

/* Make a file of a pickle; `path` ends in XXXXXX. */
static void put_pickle(char *path, const char *pickle, size_t count) {
    struct zip_writer *writer = writer_make();
    put_record(writer, "archive/data.pkl", pickle, count);
    put_end(writer);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, writer->bytes, writer->count), (ssize_t)writer->count);
    close(fd);
    writer_free(writer);
}

/* Records of tensors in the sample. */
static size_t find_records(struct gcmp_arena *arena, struct gcmp_zip *zip) {
    struct gcmp_dir *dir;
    uint32_t index;
    assert_int_equal(gcmp_dir_open(sample, &dir, NULL), GRADCMP_OK);
    assert_int_equal(gcmp_dir_add(dir, "together.pt", 11, &index, NULL), GRADCMP_OK);
    assert_int_equal(
        gcmp_zip_open(dir, index, 0, gcmp_dir_file_bytes(dir, index), arena, zip, NULL),
        GRADCMP_OK);
    gcmp_dir_close(dir);
    return zip->count;
}

static void test_bits__every_byte_of_every_tensor_is_found(void **state) {
    (void)state;
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    struct gcmp_zip zip;
    struct spoilt file;
    size_t spoilt = 0;
    load(&file);
    save(&file);
    assert_int_equal(judge(&file, -1), 0);
    for (size_t i = 0, count = find_records(&arena, &zip); i < count; i++) {
        const struct gcmp_zip_record *record = &zip.records[i];
        for (uint64_t at = 0; strncmp(record->name, "data/", 5) == 0 && at < record->length_bytes;
             at++) {
            file.bytes[record->offset_bytes + at] ^= (unsigned char)(1 << at % 8);
            save(&file);
            assert_int_equal(judge(&file, -1), 1);
            assert_int_equal(judge(&file, 0), 2); /* its checksum says so before */
            file.bytes[record->offset_bytes + at] ^= (unsigned char)(1 << at % 8);
            spoilt++;
        }
    }
    assert_int_equal(spoilt, 27 * 2 + 2 * 27 * 4 + 3 * 4);
    unlink(file.path);
    free(file.bytes);
    gcmp_arena_free(&arena);
}

/* A list of None in hundreds of places, and a text that pays for the visits: each place makes items
 * anew, and memory is what ends it. */
static void test_bits__objects_in_many_places_meet_the_memory_set_aside(void **state) {
    (void)state;
    enum { NONES = 4000, PLACES = 400, TEXT = 100000 };
    char path[] = "/tmp/gradcmp-bits-XXXXXX", *pickle = malloc(NONES + 3 * PLACES + TEXT + 64);
    size_t count = 0;
    pickle[count++] = '(';
    count += (size_t)sprintf(pickle + count, "V%0*d\n", TEXT, 0);
    pickle[count++] = '(';
    memset(pickle + count, 'N', NONES);
    count += NONES;
    count += (size_t)sprintf(pickle + count, "lp0\n");
    for (size_t i = 0; i < PLACES; i++) {
        memcpy(pickle + count, "h\0", 2);
        count += 2;
    }
    count += (size_t)sprintf(pickle + count, "l.");
    put_pickle(path, pickle, count);
    const char *paths[] = {sample, path};
    struct gradcmp_evidence *evidence = NULL;
    struct gradcmp_case first;
    assert_int_equal(gradcmp_bits(paths, 2, NULL, NULL, &evidence, NULL), GRADCMP_OK);
    gradcmp_evidence_case(evidence, 0, &first);
    assert_int_equal(first.outcome, GRADCMP_CASE_ERROR);
    assert_non_null(strstr(first.text, "make more items than memory is set aside for"));
    gradcmp_evidence_free(evidence);
    unlink(path);
    free(pickle);
}

/* Two keys that would read the same: with their values exchanged the dict is another. `%d` stand
 * for the values. */
static void test_bits__keys_that_look_alike_are_told_apart(void **state) {
    (void)state;
    static const char *const pickles[] = {
        "(dVa/b\nI%d\nsVa\n(dVb\nI%d\nss.",                       /* 'a/b', 'a' 'b' */
        "(dI0\nI%d\nsV0\nI%d\ns.",                                /* 0, '0' */
        "(dI-7\nI%d\nsV-7\nI%d\ns.",                              /* -7, '-7' */
        "(dF1.5\nI%d\nsV0x1.8p+0\nI%d\ns.",                       /* 1.5, '0x1.8p+0' */
        "(dNI%d\nsVNone\nI%d\ns.",                                /* None, 'None' */
        "(dI01\nI%d\nsVTrue\nI%d\ns.",                            /* True, 'True' */
        "(d(I1\nI2\ntI%d\nsV(1, 2)\nI%d\ns.",                     /* (1, 2), '(1, 2)' */
        "(dC\1aI%d\nsVb'a'\nI%d\ns.",                             /* b'a', "b'a'" */
        "(dV'a/b'\nI%d\nsVa/b\nI%d\ns.",                          /* "'a/b'", 'a/b' */
        "(dV\n(dVx\nI%d\nssV/x\nI%d\ns.",                         /* '' 'x', '/x' */
        "(dVa\\u0000\nI%d\nsVa\\u005c0\nI%d\ns.",                 /* 'a\0', 'a\\0' */
        "(dL1944431222027710587489L\nI%d\nsC\11abcdefghiI%d\ns.", /* a long number, bytes */
        "(dctorch\nfloat32\nI%d\nsVtorch float32\nI%d\ns.",       /* a class and its name */
        "cmine\nBox\n(tR(dVx\nI%d\nsbVx\nI%d\ns.",                /* an attribute and an item */
    };
    for (size_t i = 0; i < sizeof pickles / sizeof *pickles; i++) {
        char paths[2][32] = {"/tmp/gradcmp-bits-XXXXXX", "/tmp/gradcmp-bits-XXXXXX"};
        for (int side = 0; side < 2; side++) {
            char pickle[128];
            int count = snprintf(pickle, sizeof pickle, pickles[i], 1 + side, 2 - side);
            put_pickle(paths[side], pickle, (size_t)count);
        }
        assert_int_equal(judge_pair(paths[0], paths[0], -1), 0);
        assert_int_equal(judge_pair(paths[0], paths[1], -1), 1);
        unlink(paths[0]);
        unlink(paths[1]);
    }
}

static void test_bits__usage_and_errors_are_told(void **state) {
    (void)state;
    const char *paths[] = {sample, "/nonexistent/gradcmp"};
    struct gradcmp_evidence *evidence = NULL;
    struct gradcmp_error error = {0};
    assert_int_equal(gradcmp_bits(paths, 1, NULL, NULL, &evidence, &error), GRADCMP_ERROR_USAGE);
    assert_null(evidence);
    assert_int_equal(gradcmp_bits(paths, 2, NULL, NULL, &evidence, &error), GRADCMP_OK);
    assert_int_equal(gradcmp_evidence_exit_status(evidence), 2);
    assert_string_equal(gradcmp_evidence_verdict(evidence), "error");
    struct gradcmp_case first;
    gradcmp_evidence_case(evidence, 0, &first);
    assert_int_equal(first.outcome, GRADCMP_CASE_ERROR);
    gradcmp_evidence_free(evidence);
    assert_string_equal(gradcmp_bits_default_ignore(0), "save");
    assert_null(gradcmp_bits_default_ignore(1000));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits__every_byte_of_every_tensor_is_found),
        cmocka_unit_test(test_bits__objects_in_many_places_meet_the_memory_set_aside),
        cmocka_unit_test(test_bits__keys_that_look_alike_are_told_apart),
        cmocka_unit_test(test_bits__usage_and_errors_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
