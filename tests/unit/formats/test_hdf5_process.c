/* The helper process: what happens when it is not there, crashes, lies, or is stopped; and what the
 * real one can no longer do once it reads a file. */
#include "formats/hdf5_tools.h"

#if defined(GCMP_TEST_H5HELPER)

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "formats/hdf5_process.h"
#include "formats/hdf5_wire.h"

/* With a sanitizer in it the helper has no sandbox, see sandbox.c. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define SANITIZED
#endif
#endif

static const struct gradcmp_format *const format = &gcmp_format_hdf5;

static void check_script(const char *temp, const char *script, enum gradcmp_status code,
                         const char *message) {
    char *path = temp_path(temp, "a.h5");
    use_script(temp, script);
    check_refused_open(format, path, code, ANY_OFFSET, "/a.h5", message);
    use_real();
    free(path);
}

static void test_run__missing_helper_is_told(void **state) {
    char *path = temp_path(*state, "a.h5");
    temp_file(*state, "a.h5", "x", 1);
    setenv("GRADCMP_H5HELPER", "/nowhere/gradcmp-h5", 1);
    check_refused_open(format, path, GRADCMP_ERROR_UNSUPPORTED, GRADCMP_NO_OFFSET, "/a.h5",
                       "hdf5: the helper program gradcmp-h5 is not installed beside gradcmp");
    setenv("GRADCMP_H5HELPER", *state, 1); /* a folder */
    check_refused_open(format, path, GRADCMP_ERROR_UNSUPPORTED, GRADCMP_NO_OFFSET, "/a.h5",
                       "hdf5: the helper program gradcmp-h5 is not installed beside gradcmp");
    use_real();
    free(path);
}

static void test_run__every_end_but_the_right_one_is_told(void **state) {
    const char *temp = *state;
    temp_file(temp, "a.h5", "x", 1);
    check_script(temp, "kill -SEGV $$", GRADCMP_ERROR_CORRUPT,
                 "hdf5: libhdf5 crashed (signal 11) over this file: it is damaged");
    check_script(temp, "kill -XCPU $$", GRADCMP_ERROR_LIMIT,
                 "hdf5: not read after 5 s of processor time: a damaged file?");
    check_script(temp, "exit 127", GRADCMP_ERROR_IO,
                 "hdf5: the helper program failed (status 127)");
    check_script(temp, "true", GRADCMP_ERROR_IO,
                 "hdf5: the helper program is of another version, or cannot run here");
    check_script(temp, "echo hello, world", GRADCMP_ERROR_IO,
                 "hdf5: the helper program is of another version, or cannot run here");
}

/* Streams of a helper that the file has taken over. "\1" ends the magic. */
#define MAGIC "printf 'gcmp-h5\\001"
static void test_run__streams_that_lie_are_refused(void **state) {
    static const char stopped[] =
        "hdf5: the helper stopped in the middle of this file: it is damaged";
    const char *temp = *state;
    temp_file(temp, "a.h5", "x", 1);
    check_script(temp, MAGIC "'", GRADCMP_ERROR_CORRUPT, stopped);
    check_script(temp, MAGIC "Q'", GRADCMP_ERROR_CORRUPT, stopped);
    check_script(temp, MAGIC "D'", GRADCMP_ERROR_CORRUPT, stopped);
    /* A text of 4 GiB. */
    check_script(temp, MAGIC "L\\377\\377\\377\\377abc'", GRADCMP_ERROR_CORRUPT, stopped);
    /* An error that is none, and one with its message cut off. */
    check_script(temp, MAGIC "E\\000\\0\\0\\0\\0\\0\\0\\0\\0\\1\\0\\0\\0x'", GRADCMP_ERROR_CORRUPT,
                 stopped);
    check_script(temp, MAGIC "E\\036\\0\\0\\0\\0\\0\\0\\0\\0\\9\\0\\0\\0x'", GRADCMP_ERROR_CORRUPT,
                 stopped);
    check_script(temp, MAGIC "E\\036\\7\\0\\0\\0\\0\\0\\0\\0\\1\\0\\0\\0x'", GRADCMP_ERROR_CORRUPT,
                 "hdf5: x");
}

/* A stream that is written number by number. */
struct stream {
    unsigned char bytes[4096];
    size_t count;
};

static void put(struct stream *stream, uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; i++) {
        stream->bytes[stream->count++] = (unsigned char)(value >> (8 * i));
    }
}

static void put_name(struct stream *stream, const char *text) {
    put(stream, strlen(text), 4);
    memcpy(stream->bytes + stream->count, text, strlen(text));
    stream->count += strlen(text);
}

/* Begin a stream with a dataset of float32 up to its layout. */
static struct stream begin_dataset(const char *name, unsigned ndim, uint64_t size,
                                   enum gcmp_h5_layout layout) {
    struct stream stream = {.count = 0};
    memcpy(stream.bytes, GCMP_H5_MAGIC, sizeof GCMP_H5_MAGIC - 1);
    stream.count = sizeof GCMP_H5_MAGIC - 1;
    put(&stream, GCMP_H5_DATASET, 1);
    put_name(&stream, name);
    put(&stream, GCMP_H5_FLOAT, 1);
    put(&stream, 0, 2);
    put(&stream, 4, 4);
    put(&stream, 32, 4);
    put(&stream, 8, 4);
    put(&stream, 23, 4);
    put(&stream, 127, 8);
    put_name(&stream, "floats");
    put_name(&stream, "");
    put(&stream, ndim, 1);
    for (unsigned d = 0; d < ndim; d++) {
        put(&stream, size, 8);
    }
    put(&stream, layout, 1);
    return stream;
}

static void check_stream(const char *temp, struct stream stream, enum gradcmp_status code,
                         const char *message) {
    put(&stream, GCMP_H5_END, 1);
    temp_file(temp, "stream", stream.bytes, stream.count);
    check_script(temp, "cat \"${0%helper}stream\"", code, message);
}

static void put_chunk_shape(struct stream *stream, uint64_t size, uint64_t chunks) {
    put(stream, size, 8);
    put(stream, 0, 1); /* no filters */
    put(stream, chunks, 8);
}

static void put_one_chunk(struct stream *stream, uint64_t offset, uint64_t bytes) {
    put(stream, GCMP_H5_CHUNK, 1);
    put(stream, offset, 8);
    put(stream, bytes, 8);
    put(stream, 0, 4);
}

#define STOPPED "hdf5: the helper stopped in the middle of this file: it is damaged"

static void test_run__places_that_lie_are_refused(void **state) {
    const char *temp = *state;
    temp_file(temp, "a.h5", "0123456789012345", 16);
    struct stream stream = begin_dataset("w", 1, 4, GCMP_H5_CONTIGUOUS);
    put(&stream, 8, 8);
    check_stream(temp, stream, GRADCMP_ERROR_CORRUPT,
                 "hdf5: truncated: \"w\" takes 16 bytes from byte 8, the file has 16");
    stream = begin_dataset("w", 1, 4, GCMP_H5_CONTIGUOUS);
    put(&stream, UINT64_MAX - 3, 8);
    check_stream(temp, stream, GRADCMP_ERROR_CORRUPT,
                 "hdf5: truncated: \"w\" takes 16 bytes from byte 18446744073709551612, the file "
                 "has 16");
    stream = begin_dataset("w", 17, 1, GCMP_H5_NO_DATA);
    check_stream(temp, stream, GRADCMP_ERROR_LIMIT, "hdf5: \"w\": 17 axes, at most 16 are read");
    stream = begin_dataset("w", 2, UINT64_C(1) << 40, GCMP_H5_NO_DATA);
    check_stream(temp, stream, GRADCMP_ERROR_CORRUPT,
                 "hdf5: \"w\": a dataset of more than 2^63 bytes");
    stream = begin_dataset("w", 1, 4, GCMP_H5_COMPACT);
    put_name(&stream, "twelve bytes");
    check_stream(temp, stream, GRADCMP_ERROR_CORRUPT, STOPPED);
    stream = begin_dataset("w", 1, 4, (enum gcmp_h5_layout)9);
    check_stream(temp, stream, GRADCMP_ERROR_CORRUPT, STOPPED);
}

static void test_run__chunks_that_lie_are_refused(void **state) {
    const char *temp = *state;
    temp_file(temp, "a.h5", "0123456789012345", 16);
    struct stream stream = begin_dataset("w", 1, 4, GCMP_H5_CHUNKED);
    put_chunk_shape(&stream, 2, 2);
    put_one_chunk(&stream, 0, 8);
    put_one_chunk(&stream, 12, 8);
    check_stream(temp, stream, GRADCMP_ERROR_CORRUPT,
                 "hdf5: truncated: \"w\" takes 8 bytes from byte 12, the file has 16");
    stream = begin_dataset("w", 1, 4, GCMP_H5_CHUNKED);
    put_chunk_shape(&stream, 2, 2);
    put_one_chunk(&stream, 0, 12);
    check_stream(temp, stream, GRADCMP_ERROR_CORRUPT, "hdf5: \"w\": chunk of 12 bytes, expected 8");
    /* More than the grid has, fewer than it has, fewer than announced. */
    for (uint64_t announced = 1; announced <= 3; announced += 2) {
        stream = begin_dataset("w", 1, 4, GCMP_H5_CHUNKED);
        put_chunk_shape(&stream, 2, announced);
        for (uint64_t i = 0; i < announced; i++) {
            put_one_chunk(&stream, 0, 8);
        }
        check_stream(temp, stream, GRADCMP_ERROR_CORRUPT, STOPPED);
    }
    stream = begin_dataset("w", 1, 4, GCMP_H5_CHUNKED);
    put_chunk_shape(&stream, 2, UINT64_MAX);
    put_one_chunk(&stream, 0, 8);
    check_stream(temp, stream, GRADCMP_ERROR_CORRUPT, STOPPED);
    stream = begin_dataset("w", 1, 4, GCMP_H5_CHUNKED);
    put_chunk_shape(&stream, 0, 1);
    check_stream(temp, stream, GRADCMP_ERROR_CORRUPT,
                 "hdf5: \"w\": chunks without elements, or of more than 2^63 bytes");
}

/* It is stopped when it has written more than the file can account for. */
static void test_run__endless_output_is_stopped(void **state) {
    temp_file(*state, "a.h5", "x", 1);
    check_script(*state, "yes", GRADCMP_ERROR_LIMIT,
                 "hdf5: a catalogue of more than 1048584 bytes, which a file of 1 cannot account "
                 "for");
}

static int count_descriptors(void) {
    int count = 0;
    for (int fd = 0; fd < 256; fd++) {
        count += fcntl(fd, F_GETFD) >= 0;
    }
    return count;
}

static void test_run__nothing_is_left_over(void **state) {
    const char *temp = *state;
    temp_file(temp, "a.h5", "x", 1);
    int before = count_descriptors();
    check_script(temp, "kill -SEGV $$", GRADCMP_ERROR_CORRUPT, "hdf5: libhdf5 crashed*");
    check_script(temp, "yes", GRADCMP_ERROR_LIMIT, "hdf5: a catalogue*");
    assert_int_equal(count_descriptors(), before);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child */
}

/* What the helper gets: the file, one argument, and no environment to speak of. The script tells
 * what it sees in its error. */
static void test_run__helper_gets_the_file_and_no_environment(void **state) {
    const char *temp = *state;
    temp_file(temp, "a.h5", "0123456789", 10);
    setenv("GRADCMP_SECRET", "x", 1);
    check_script(temp,
                 "text=$(cat; echo ${GRADCMP_SECRET-none} $#)\n"
                 "printf 'gcmp-h5\\001E\\036\\0\\0\\0\\0\\0\\0\\0\\0'\n"
                 "printf \"\\\\$(printf %o ${#text})\\\\000\\\\000\\\\000\"\n"
                 "printf %s \"$text\"",
                 GRADCMP_ERROR_CORRUPT, "hdf5: 0123456789none 1");
    unsetenv("GRADCMP_SECRET");
}

#if !defined(SANITIZED)

/* Run the real helper on a file, with a library that is loaded into it and that tries to do, at the
 * moment libhdf5 walks the root group, what only a taken-over helper would do. */
static void test_sandbox__helper_can_do_nothing_else(void **state) {
    char *path = temp_path(*state, "a.h5"), *escaped = temp_path(*state, "escaped");
    hid_t file = made_file(path, false, 0);
    H5Fclose(file);
    int input = open(path, O_RDONLY), ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(input, 0);
        dup2(ends[1], 1);
        setenv("LD_PRELOAD", GCMP_TEST_H5ESCAPE, 1);
        setenv("GRADCMP_ESCAPE", escaped, 1);
        execl(GCMP_TEST_H5HELPER, "gradcmp-h5", "5", (char *)NULL);
        _exit(99);
    }
    close(ends[1]);
    char text[4096] = "";
    size_t count = 0;
    for (ssize_t done = 1; done > 0 && count < sizeof text - 1;) {
        done = read(ends[0], text + count, sizeof text - 1 - count);
        count += done > 0 ? (size_t)done : 0;
    }
    close(ends[0]);
    close(input);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    /* The library writes one letter for each attempt: lower case where it was refused. */
    if (memmem(text, count, "tried:", 6) == NULL) {
        fail_msg("the library was not called");
    }
    assert_non_null(memmem(text, count, "tried:orwsfxkmp.", 16));
    assert_int_equal(access(escaped, F_OK), -1);
    free(path);
    free(escaped);
}

#endif

static int setup(void **state) {
    *state = temp_dir_make();
    return *state == NULL;
}

static int teardown(void **state) {
    temp_dir_remove(*state);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEMP_TEST(test_run__missing_helper_is_told),
        TEMP_TEST(test_run__every_end_but_the_right_one_is_told),
        TEMP_TEST(test_run__streams_that_lie_are_refused),
        TEMP_TEST(test_run__places_that_lie_are_refused),
        TEMP_TEST(test_run__chunks_that_lie_are_refused),
        TEMP_TEST(test_run__endless_output_is_stopped),
        TEMP_TEST(test_run__nothing_is_left_over),
        TEMP_TEST(test_run__helper_gets_the_file_and_no_environment),
#if !defined(SANITIZED)
        TEMP_TEST(test_sandbox__helper_can_do_nothing_else),
#endif
    };
    use_real();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void) {
    return 0; /* this build has no libhdf5 */
}

#endif
