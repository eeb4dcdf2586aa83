/* Writing HDF5 through the helper: what it cannot write to, helpers that fail or lie, a file that
 * is given up; and the broker, which starts the helper for a process that may start none. */
#include "formats/hdf5_tools.h"

#if defined(GCMP_TEST_H5HELPER)

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "formats/hdf5_broker.h"
#include "formats/hdf5_wire_write.h"
#include "formats/hdf5_writer.h"

static int open_new(const char *temp) {
    char *path = temp_path(temp, "made.h5");
    int descriptor = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(descriptor >= 0);
    free(path);
    return descriptor;
}

/* Write a tensor of [2, 3] as "a/b"; keep false gives it up. */
static enum gradcmp_status write_file(int descriptor, bool keep, struct gradcmp_error *error) {
    static const float elements[6] = {0.5f, 1.5f, 2.5f, 3.5f, 4.5f, 5.5f};
    static const uint64_t sizes[2] = {2, 3};
    static const char *const texts[1][2] = {{"note", "of this tensor"}};
    struct gcmp_h5_new dataset = {.path = "a/b",
                                  .dtype = GRADCMP_DTYPE_FLOAT32,
                                  .ndim = 2,
                                  .sizes = sizes,
                                  .layer = 1,
                                  .texts = texts,
                                  .text_count = 1};
    struct gcmp_h5_writer *writer;
    memset(error, 0, sizeof *error);
    GCMP_TRY(gcmp_h5_writer_start(descriptor, &writer, error));
    (void)gcmp_h5_writer_attribute(writer, "by", "a test");
    (void)gcmp_h5_writer_dataset(writer, &dataset);
    (void)gcmp_h5_writer_elements(writer, elements, sizeof elements);
    return gcmp_h5_writer_end(writer, keep, error);
}

/* The file is what write_file wrote, as our own reader sees it. */
static void check_made(const char *temp) {
    char *path = temp_path(temp, "made.h5");
    struct opened *opened = open_good(&gcmp_format_hdf5, path);
    assert_int_equal(opened->catalogue.stored_count, 1);
    const struct gradcmp_stored *stored = &opened->catalogue.stored[0];
    uint64_t count;
    assert_string_equal(stored->key, "a/b");
    float *values = gather_stored(opened, stored, &count, &opened->error);
    assert_non_null(values);
    assert_int_equal(count, 6);
    for (uint64_t i = 0; i < count; i++) {
        assert_true(values[i] >= 0.5f + (float)i && values[i] <= 0.5f + (float)i);
    }
    free(values);
    close_format(opened);
    free(path);
}

static void check_failure(int descriptor, enum gradcmp_status code, const char *message) {
    struct gradcmp_error error;
    enum gradcmp_status status = write_file(descriptor, true, &error);
    if (status != code || error.code != code || !is_message(error.message, message)) {
        fail_msg("expected %d \"%s\", found %d \"%s\"", (int)code, message, (int)status,
                 error.message);
    }
}

static void test_writer__types_are_those_with_elements(void **state) {
    (void)state;
    assert_false(gcmp_h5_writer_takes(GRADCMP_DTYPE_NONE));
    assert_true(gcmp_h5_writer_takes(GRADCMP_DTYPE_FLOAT32));
    assert_true(gcmp_h5_writer_takes(GRADCMP_DTYPE_BFLOAT16));
    assert_true(gcmp_h5_writer_takes(GRADCMP_DTYPE_BOOL));
    assert_false(gcmp_h5_writer_takes((enum gradcmp_dtype)(GRADCMP_DTYPE_BOOL + 1)));
}

static void test_writer__a_file_reads_as_it_was_written(void **state) {
    struct gradcmp_error error;
    use_real();
    int descriptor = open_new(*state);
    if (write_file(descriptor, true, &error) != GRADCMP_OK) {
        fail_msg("%s", error.message);
    }
    close(descriptor);
    check_made(*state);
}

static void test_writer__only_an_empty_file_is_written_to(void **state) {
    static const char message[] = "an HDF5 file can be written into an empty regular file only";
    int pair[2];
    use_real();
    assert_int_equal(pipe(pair), 0);
    check_failure(pair[1], GRADCMP_ERROR_UNSUPPORTED, message);
    close(pair[0]);
    close(pair[1]);
    check_failure(-1, GRADCMP_ERROR_UNSUPPORTED, message);
    int descriptor = open_new(*state);
    assert_int_equal(write(descriptor, "x", 1), 1);
    check_failure(descriptor, GRADCMP_ERROR_UNSUPPORTED, message);
    close(descriptor);
}

static void test_writer__every_end_but_the_right_one_is_told(void **state) {
    static const struct {
        const char *script, *message;
        enum gradcmp_status code;
    } rows[] = {
        {"exit 3", "hdf5: the helper program ended with status 3 before the file did",
         GRADCMP_ERROR_IO},
        {"true", "hdf5: the helper program ended with status 0 before the file did",
         GRADCMP_ERROR_IO},
        {"cat <&0 >/dev/null; kill -SEGV $$",
         "hdf5: the helper program ended by signal 11 before the file did", GRADCMP_ERROR_IO},
        /* the answer goes to descriptor 0: a status, and why */
        {"printf '\\024no room' >&0", "hdf5: no room", GRADCMP_ERROR_IO},
        {"printf '\\050not this' >&0", "hdf5: not this", GRADCMP_ERROR_UNSUPPORTED},
        {"printf '\\062too much' >&0", "hdf5: too much", GRADCMP_ERROR_LIMIT},
        {"printf '\\074none left' >&0", "hdf5: none left", GRADCMP_ERROR_MEMORY},
        {"printf '\\036damaged' >&0; exit 1", "hdf5: damaged", GRADCMP_ERROR_IO},
        {"printf '\\0' >&0; exit 1",
         "hdf5: the helper program ended with status 1 before the file did", GRADCMP_ERROR_IO},
        {"exec 3>&0; head -c 100000 /dev/zero | tr '\\0' '(' >&3", "hdf5: ((((*",
         GRADCMP_ERROR_UNSUPPORTED},
    };
    int descriptor = open_new(*state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        use_script(*state, rows[i].script);
        check_failure(descriptor, rows[i].code, rows[i].message);
    }
    setenv("GRADCMP_H5HELPER", "/nowhere/gradcmp-h5", 1);
    check_failure(descriptor, GRADCMP_ERROR_UNSUPPORTED,
                  "hdf5: the helper program gradcmp-h5 is not installed beside gradcmp");
    char *folder = temp_path(*state, "helper"); /* a program that the system cannot run */
    temp_file(*state, "helper",
              "\x7f"
              "ELF",
              4);
    assert_int_equal(chmod(folder, 0700), 0);
    setenv("GRADCMP_H5HELPER", folder, 1);
    check_failure(descriptor, GRADCMP_ERROR_IO, "hdf5: the helper program *");
    free(folder);
    close(descriptor);
    use_real();
}

static void test_writer__what_is_given_up_is_no_success(void **state) {
    struct gradcmp_error error;
    use_real();
    int descriptor = open_new(*state);
    assert_int_equal(write_file(descriptor, false, &error), GRADCMP_ERROR_CANCELLED);
    assert_string_equal(error.message, "the file was given up");
    close(descriptor);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
}

/* --- the broker: once a process, so that each test has a process of its own --- */

/* Run `check` in a process that has a broker, and wait for both. */
static void with_broker(const char *temp, void (*check)(const char *temp)) {
    char *folder = temp_path(temp, "of_broker");
    assert_int_equal(mkdir(folder, 0700), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct gradcmp_error error = {0};
        if (gcmp_h5_broker_start(folder, &error) != GRADCMP_OK || gcmp_h5_broker() < 0) {
            _exit(2);
        }
        check(temp);
        _exit(0); /* a failed assertion ends by another status */
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    for (unsigned tries = 0; access(folder, F_OK) == 0; tries++) { /* it removes it at its end */
        assert_true(tries < 2000);
        usleep(10000);
    }
    free(folder);
}

static void require(bool is_right) {
    if (!is_right) {
        _exit(1);
    }
}

static void write_and_read(const char *temp) {
    struct gradcmp_error error;
    int descriptor = open_new(temp);
    require(write_file(descriptor, true, &error) == GRADCMP_OK);
    close(descriptor);
    char *path = temp_path(temp, "made.h5");
    struct opened *opened = open_format(&gcmp_format_hdf5, path);
    require(opened->status == GRADCMP_OK && opened->catalogue.stored_count == 1);
    close_format(opened);
    free(path);
    descriptor = open_new(temp);
    require(write_file(descriptor, false, &error) == GRADCMP_ERROR_CANCELLED);
    close(descriptor);
}

/* It starts the one program with a number or "write", and nothing else. */
static void ask_for_others(const char *temp) {
    static const char *const arguments[] = {"", "-1", "12x", "/bin/sh", "writes"};
    int streams[2], ending;
    (void)temp;
    require(pipe2(streams, O_CLOEXEC) == 0);
    for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++) {
        require(gcmp_h5_broker_ask(arguments[i], streams, &ending) != 0);
    }
    require(gcmp_h5_broker_ask("4096", streams, &ending) == 0);
    int status = -1;
    require(gcmp_h5_broker_read(ending, &status) && status != -1);
    close(ending);
    close(streams[0]);
    close(streams[1]);
}

/* A message that is no request changes nothing. */
static void send_others(const char *temp) {
    require(send(gcmp_h5_broker(), "x", 1, 0) == 1);
    require(send(gcmp_h5_broker(),
                 "0123456789012345678901234567890123456789012345678901234567890123", 64, 0) == 64);
    write_and_read(temp);
}

static void test_broker__files_are_read_and_written_through_it(void **state) {
    use_real();
    with_broker(*state, write_and_read);
}

static void test_broker__nothing_else_is_started(void **state) {
    use_real();
    with_broker(*state, ask_for_others);
}

static void test_broker__other_messages_are_ignored(void **state) {
    use_real();
    with_broker(*state, send_others);
}

static void ask_for_none(const char *temp) {
    struct gradcmp_error error;
    int descriptor = open_new(temp);
    require(write_file(descriptor, true, &error) == GRADCMP_ERROR_UNSUPPORTED);
    close(descriptor);
    int streams[2] = {descriptor, descriptor}, ending;
    require(gcmp_h5_broker_ask("7", streams, &ending) != 0); /* closed descriptors */
}

static void test_broker__a_missing_helper_is_told(void **state) {
    setenv("GRADCMP_H5HELPER", "/nowhere/gradcmp-h5", 1);
    with_broker(*state, ask_for_none);
    use_real();
}

static int setup(void **state) {
    *state = temp_dir_make();
    return *state == NULL ? -1 : 0;
}

static int teardown(void **state) {
    temp_dir_remove(*state);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_writer__types_are_those_with_elements),
        TEMP_TEST(test_writer__a_file_reads_as_it_was_written),
        TEMP_TEST(test_writer__only_an_empty_file_is_written_to),
        TEMP_TEST(test_writer__every_end_but_the_right_one_is_told),
        TEMP_TEST(test_writer__what_is_given_up_is_no_success),
        TEMP_TEST(test_broker__files_are_read_and_written_through_it),
        TEMP_TEST(test_broker__nothing_else_is_started),
        TEMP_TEST(test_broker__other_messages_are_ignored),
        TEMP_TEST(test_broker__a_missing_helper_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void) {
    return 0;
}

#endif
