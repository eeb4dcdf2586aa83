/* Files of one checkpoint: names, kinds, links, the pool of descriptors, reads. */
#include "temp_tools.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/beneath.h"
#include "base/dir.h"

static int setup(void **state) {
    *state = temp_dir_make();
    return *state == NULL;
}

static int teardown(void **state) {
    temp_dir_remove(*state);
    return 0;
}

static struct gcmp_dir *open_dir(const char *path) {
    struct gcmp_dir *dir = NULL;
    struct gradcmp_error error = {0};
    assert_int_equal(gcmp_dir_open(path, &dir, &error), GRADCMP_OK);
    assert_non_null(dir);
    return dir;
}

static void add_expect(struct gcmp_dir *dir, const char *name, enum gradcmp_status code,
                       const char *message) {
    struct gradcmp_error error = {0};
    uint32_t file = 0;
    assert_int_equal(gcmp_dir_add(dir, name, strlen(name), &file, &error), code);
    assert_int_equal(error.code, code);
    assert_text_contains(error.message, message);
    assert_int_equal(gcmp_dir_file_count(dir), 0);
}

static void test_open__absent_path_is_io(void **state) {
    struct gradcmp_error error = {0};
    struct gcmp_dir *dir = NULL;
    char *path = temp_path(*state, "nothing");
    assert_int_equal(gcmp_dir_open(path, &dir, &error), GRADCMP_ERROR_IO);
    assert_null(dir);
    assert_string_equal(error.message, "no such file or directory");
    assert_string_equal(error.path, path);
    free(path);
}

static void test_open__fifo_is_refused_without_waiting(void **state) {
    struct gradcmp_error error = {0};
    struct gcmp_dir *dir = NULL;
    char *path = temp_path(*state, "fifo");
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(gcmp_dir_open(path, &dir, &error), GRADCMP_ERROR_USAGE);
    assert_text_contains(error.message, "a FIFO");
    free(path);
}

static void test_open__trailing_slashes_are_dropped(void **state) {
    char path[512];
    snprintf(path, sizeof path, "%s///", (const char *)*state);
    struct gcmp_dir *dir = open_dir(path);
    assert_string_equal(gcmp_dir_path(dir), *state);
    assert_false(gcmp_dir_is_file(dir, NULL));
    gcmp_dir_close(dir);
}

static void test_open__single_file_gives_only_itself(void **state) {
    temp_file(*state, "a.pt", "0123456789", 10);
    temp_file(*state, "b.pt", "x", 1);
    char *path = temp_path(*state, "a.pt");
    struct gcmp_dir *dir = open_dir(path);
    const char *name = NULL;
    assert_true(gcmp_dir_is_file(dir, &name));
    assert_string_equal(name, "a.pt");
    assert_true(gcmp_dir_has_file(dir, "a.pt"));
    assert_false(gcmp_dir_has_file(dir, "b.pt"));
    add_expect(dir, "b.pt", GRADCMP_ERROR_IO, "no such file");
    uint32_t file = 7;
    assert_int_equal(gcmp_dir_add(dir, "a.pt", 4, &file, NULL), GRADCMP_OK);
    assert_int_equal(file, 0);
    assert_int_equal(gcmp_dir_file_bytes(dir, file), 10);
    assert_string_equal(gcmp_dir_file_path(dir, file), path);
    char bytes[4] = "";
    assert_int_equal(gcmp_dir_read(dir, file, 3, bytes, 3, NULL), GRADCMP_OK);
    assert_string_equal(bytes, "345");
    char **names;
    size_t count;
    assert_int_equal(gcmp_dir_list(dir, "", 10, &names, &count, NULL), GRADCMP_OK);
    assert_int_equal(count, 1);
    assert_string_equal(names[0], "a.pt");
    gcmp_dir_free_names(names, count);
    gcmp_dir_close(dir);
    free(path);
}

static void test_add__same_name_gives_same_index(void **state) {
    temp_file(*state, "a", "12", 2);
    temp_folder(*state, "sub");
    temp_file(*state, "sub/b", "3", 1);
    struct gcmp_dir *dir = open_dir(*state);
    uint32_t a, b, again;
    assert_int_equal(gcmp_dir_add(dir, "a", 1, &a, NULL), GRADCMP_OK);
    assert_int_equal(gcmp_dir_add(dir, "sub/b", 5, &b, NULL), GRADCMP_OK);
    assert_int_equal(gcmp_dir_add(dir, "a", 1, &again, NULL), GRADCMP_OK);
    assert_int_equal(a, again);
    assert_int_not_equal(a, b);
    assert_int_equal(gcmp_dir_file_count(dir), 2);
    assert_string_equal(gcmp_dir_file_name(dir, b), "sub/b");
    gcmp_dir_close(dir);
}

static void test_add__bad_names_are_corrupt(void **state) {
    struct gcmp_dir *dir = open_dir(*state);
    add_expect(dir, "", GRADCMP_ERROR_CORRUPT, "is empty");
    add_expect(dir, "/etc/passwd", GRADCMP_ERROR_CORRUPT, "is absolute");
    add_expect(dir, "..", GRADCMP_ERROR_CORRUPT, "leads out of the checkpoint");
    add_expect(dir, "a/../../b", GRADCMP_ERROR_CORRUPT, "leads out of the checkpoint");
    add_expect(dir, ".", GRADCMP_ERROR_CORRUPT, "is not a plain path");
    add_expect(dir, "a//b", GRADCMP_ERROR_CORRUPT, "is not a plain path");
    add_expect(dir, "a/", GRADCMP_ERROR_CORRUPT, "is not a plain path");
    add_expect(dir, "missing", GRADCMP_ERROR_IO, "no such file");
    char *name = malloc(5001);
    memset(name, 'x', 5000);
    name[5000] = '\0';
    add_expect(dir, name, GRADCMP_ERROR_CORRUPT, "is too long");
    name[300] = '\0'; /* fits a path, not a file system's component */
    add_expect(dir, name, GRADCMP_ERROR_CORRUPT, "the name is too long");
    free(name);
    struct gradcmp_error error = {0};
    uint32_t file;
    assert_int_equal(gcmp_dir_add(dir, "a\0b", 3, &file, &error), GRADCMP_ERROR_CORRUPT);
    assert_text_contains(error.message, "holds a NUL");
    gcmp_dir_close(dir);
}

static void test_add__only_regular_files(void **state) {
    temp_folder(*state, "folder");
    char *fifo = temp_path(*state, "fifo");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", (const char *)*state);
    int sock = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(sock, (struct sockaddr *)&address, sizeof address), 0);
    struct gcmp_dir *dir = open_dir(*state);
    add_expect(dir, "folder", GRADCMP_ERROR_CORRUPT, "not a regular file but a directory");
    add_expect(dir, "fifo", GRADCMP_ERROR_CORRUPT, "not a regular file but a FIFO");
    add_expect(dir, "socket", GRADCMP_ERROR_CORRUPT, "not a regular file but a socket");
    assert_int_equal(gcmp_dir_kind(dir, "fifo"), GCMP_DIR_OTHER);
    assert_int_equal(gcmp_dir_kind(dir, "folder"), GCMP_DIR_FOLDER);
    assert_int_equal(gcmp_dir_kind(dir, "nothing"), GCMP_DIR_ABSENT);
    assert_int_equal(gcmp_dir_kind(dir, "../x"), GCMP_DIR_ABSENT);
    assert_true(gcmp_dir_has_dir(dir, "folder"));
    assert_false(gcmp_dir_has_file(dir, "folder"));
    gcmp_dir_close(dir);
    close(sock);
    free(fifo);
}

/* Each way of opening must treat links alike. */
typedef int (*open_fn)(int root, const char *name);

static void check_links(const char *top, open_fn open_beneath) {
    int root = open(top, O_PATH | O_DIRECTORY);
    assert_true(root >= 0);
    static const struct {
        const char *name;
        int code; /* 0: opens and holds "inside" */
    } cases[] = {
        {"in/target", 0},
        {"in/same", 0},
        {"in/up", 0},
        {"folderlink/same", 0},
        {"in/out", EXDEV},
        {"in/absolute", EXDEV},
        {"in/loop", ELOOP},
        {"in/dangling", ENOENT},
        {"in/none", ENOENT},
        {"in/target/x", ENOTDIR},
        {"upfolder/secret", EXDEV},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        errno = 0;
        int fd = open_beneath(root, cases[i].name);
        if (cases[i].code != 0) {
            assert_int_equal(fd, -1);
            assert_int_equal(errno, cases[i].code);
            continue;
        }
        char bytes[16] = "";
        assert_true(fd >= 0);
        assert_int_equal(read(fd, bytes, sizeof bytes - 1), 6);
        assert_string_equal(bytes, "inside");
        assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
        close(fd);
    }
    int folder = open_beneath(root, ".");
    assert_true(folder >= 0);
    close(folder);
    close(root);
}

static void make_links(const char *temp) {
    temp_folder(temp, "top");
    temp_folder(temp, "top/in");
    temp_file(temp, "secret", "secret", 6);
    temp_file(temp, "top/in/target", "inside", 6);
    temp_link(temp, "top/in/same", "target");
    temp_link(temp, "top/in/up", "../in/./target");
    temp_link(temp, "top/in/out", "../../secret");
    temp_link(temp, "top/in/absolute", "/etc/passwd");
    temp_link(temp, "top/in/loop", "loop");
    temp_link(temp, "top/in/dangling", "nowhere");
    temp_link(temp, "top/folderlink", "in/");
    temp_link(temp, "top/upfolder", "..");
}

static void test_beneath__links_stay_inside(void **state) {
    make_links(*state);
    char *top = temp_path(*state, "top");
    check_links(top, gcmp_beneath_open_by_hand);
    int root = open(top, O_PATH | O_DIRECTORY);
    if (gcmp_beneath_by_kernel(root)) {
        check_links(top, gcmp_beneath_open_by_kernel);
    }
    close(root);
    free(top);
}

static void test_add__links_that_lead_out_are_corrupt(void **state) {
    make_links(*state);
    char *top = temp_path(*state, "top");
    struct gcmp_dir *dir = open_dir(top);
    add_expect(dir, "in/out", GRADCMP_ERROR_CORRUPT, "leads out of the checkpoint");
    add_expect(dir, "in/absolute", GRADCMP_ERROR_CORRUPT, "leads out of the checkpoint");
    add_expect(dir, "in/loop", GRADCMP_ERROR_CORRUPT, "a loop of symbolic links");
    uint32_t file;
    assert_int_equal(gcmp_dir_add(dir, "in/up", 5, &file, NULL), GRADCMP_OK);
    gcmp_dir_close(dir);
    free(top);
}

static void test_read__past_the_end_is_corrupt_at_the_first_missing_byte(void **state) {
    temp_file(*state, "a", "0123456789", 10);
    struct gcmp_dir *dir = open_dir(*state);
    uint32_t file;
    char bytes[16];
    struct gradcmp_error error = {0};
    assert_int_equal(gcmp_dir_add(dir, "a", 1, &file, NULL), GRADCMP_OK);
    assert_int_equal(gcmp_dir_read(dir, file, 8, bytes, 4, &error), GRADCMP_ERROR_CORRUPT);
    assert_int_equal(error.offset_bytes, 10);
    assert_text_contains(error.message, "the file ends at byte 10");
    assert_text_contains(error.path, "/a");
    assert_int_equal(gcmp_dir_read(dir, file, UINT64_MAX - 1, bytes, 4, &error),
                     GRADCMP_ERROR_CORRUPT);
    assert_int_equal(error.offset_bytes, UINT64_MAX - 1);
    assert_int_equal(gcmp_dir_read(dir, file, 10, bytes, 0, &error), GRADCMP_OK);
    gcmp_dir_close(dir);
}

static void test_read__file_shortened_meanwhile_is_corrupt(void **state) {
    temp_file(*state, "a", "0123456789", 10);
    struct gcmp_dir *dir = open_dir(*state);
    uint32_t file;
    char bytes[16];
    struct gradcmp_error error = {0};
    assert_int_equal(gcmp_dir_add(dir, "a", 1, &file, NULL), GRADCMP_OK);
    assert_int_equal(gcmp_dir_read(dir, file, 0, bytes, 10, &error), GRADCMP_OK);
    char *path = temp_path(*state, "a");
    assert_int_equal(truncate(path, 4), 0);
    assert_int_equal(gcmp_dir_read(dir, file, 2, bytes, 8, &error), GRADCMP_ERROR_CORRUPT);
    assert_int_equal(error.offset_bytes, 4);
    assert_text_contains(error.message, "truncated while being read");
    free(path);
    gcmp_dir_close(dir);
}

static void test_read__file_replaced_meanwhile_is_noticed(void **state) {
    temp_file(*state, "a", "0123456789", 10);
    temp_file(*state, "b", "abcdefghij", 10);
    struct gcmp_dir *dir = open_dir(*state);
    uint32_t file;
    char bytes[16];
    struct gradcmp_error error = {0};
    assert_int_equal(gcmp_dir_add(dir, "a", 1, &file, NULL), GRADCMP_OK);
    char *a = temp_path(*state, "a"), *b = temp_path(*state, "b");
    assert_int_equal(rename(b, a), 0);
    assert_int_equal(gcmp_dir_read(dir, file, 0, bytes, 10, &error), GRADCMP_ERROR_IO);
    assert_string_equal(error.message, "changed while being read");
    assert_string_equal(error.path, a);
    free(a);
    free(b);
    gcmp_dir_close(dir);
}

enum { POOL_FILES = 200, POOL_THREADS = 8 };

static unsigned count_descriptors(void) {
    unsigned count = 0;
    for (int fd = 0; fd < 1024; fd++) {
        count += fcntl(fd, F_GETFD) >= 0;
    }
    return count;
}

static struct gcmp_dir *open_many(void *state) {
    struct gcmp_dir *dir = open_dir(state);
    for (int i = 0; i < POOL_FILES; i++) {
        char name[32], content[32];
        snprintf(name, sizeof name, "f%d", i);
        snprintf(content, sizeof content, "%06d", i);
        temp_file(state, name, content, 6);
        uint32_t file;
        assert_int_equal(gcmp_dir_add(dir, name, strlen(name), &file, NULL), GRADCMP_OK);
        assert_int_equal(file, i);
    }
    return dir;
}

static bool read_number(struct gcmp_dir *dir, uint32_t file) {
    char bytes[7] = "";
    return gcmp_dir_read(dir, file, 0, bytes, 6, NULL) == GRADCMP_OK &&
           strtoul(bytes, NULL, 10) == file;
}

static void *read_all(void *user) {
    struct gcmp_dir *dir = user;
    for (uint32_t i = 0; i < 10 * POOL_FILES; i++) {
        if (!read_number(dir, i * 7 % POOL_FILES)) {
            return dir;
        }
    }
    return NULL;
}

static void test_pool__threads_share_a_bounded_number(void **state) {
    unsigned before = count_descriptors();
    struct gcmp_dir *dir = open_many(*state);
    pthread_t threads[POOL_THREADS];
    for (int i = 0; i < POOL_THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, read_all, dir), 0);
    }
    for (int i = 0; i < POOL_THREADS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_true(count_descriptors() - before <= 65); /* the pool and the directory */
    assert_true(count_descriptors() - before > 4);   /* it does keep files open */
    gcmp_dir_close(dir);
    assert_int_equal(count_descriptors(), before);
}

static void test_pool__lives_with_few_descriptors(void **state) {
    struct gcmp_dir *dir = open_many(*state);
    struct rlimit old, few;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    few = old;
    few.rlim_cur = 12; /* after the pool took its limit: the system refuses from now on */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    bool all = true;
    for (uint32_t i = 0; i < POOL_FILES; i++) {
        all = all && read_number(dir, i);
    }
    setrlimit(RLIMIT_NOFILE, &old);
    assert_true(all);
    gcmp_dir_close(dir);
}

static void test_list__sorted_and_limited(void **state) {
    temp_folder(*state, "sub");
    temp_file(*state, "b", "", 0);
    temp_file(*state, "B", "", 0);
    temp_file(*state, "a", "", 0);
    temp_file(*state, "sub/x", "", 0);
    struct gcmp_dir *dir = open_dir(*state);
    char **names;
    size_t count;
    struct gradcmp_error error = {0};
    assert_int_equal(gcmp_dir_list(dir, "", 4, &names, &count, &error), GRADCMP_OK);
    assert_int_equal(count, 4);
    assert_string_equal(names[0], "B");
    assert_string_equal(names[1], "a");
    assert_string_equal(names[2], "b");
    assert_string_equal(names[3], "sub");
    gcmp_dir_free_names(names, count);
    assert_int_equal(gcmp_dir_list(dir, "", 3, &names, &count, &error), GRADCMP_ERROR_LIMIT);
    assert_null(names);
    assert_int_equal(gcmp_dir_list(dir, "sub", 3, &names, &count, &error), GRADCMP_OK);
    assert_int_equal(count, 1);
    gcmp_dir_free_names(names, count);
    assert_int_equal(gcmp_dir_list(dir, "gone", 3, &names, &count, &error), GRADCMP_ERROR_IO);
    assert_int_equal(gcmp_dir_list(dir, "..", 3, &names, &count, &error), GRADCMP_ERROR_CORRUPT);
    gcmp_dir_close(dir);
}

static void test_slurp__whole_file_or_limit(void **state) {
    temp_file(*state, "a", "hello", 5);
    temp_file(*state, "empty", "", 0);
    struct gcmp_dir *dir = open_dir(*state);
    unsigned char *bytes = NULL;
    size_t count = 0;
    struct gradcmp_error error = {0};
    assert_int_equal(gcmp_dir_slurp(dir, "a", 5, &bytes, &count, &error), GRADCMP_OK);
    assert_int_equal(count, 5);
    assert_string_equal((char *)bytes, "hello");
    free(bytes);
    assert_int_equal(gcmp_dir_slurp(dir, "empty", 5, &bytes, &count, &error), GRADCMP_OK);
    assert_int_equal(count, 0);
    free(bytes);
    assert_int_equal(gcmp_dir_slurp(dir, "a", 4, &bytes, &count, &error), GRADCMP_ERROR_LIMIT);
    assert_text_contains(error.message, "5 bytes, at most 4");
    assert_int_equal(gcmp_dir_slurp(dir, "none", 4, &bytes, &count, &error), GRADCMP_ERROR_IO);
    assert_string_equal(error.message, "no such file");
    gcmp_dir_close(dir);
}

/* A file that is open and has no name. */
static void test_adopt__open_file_is_a_directory_of_one(void **state) {
    char *path = temp_path(*state, "gone"), bytes[4] = "";
    struct gcmp_dir *dir;
    struct gradcmp_error error = {0};
    const char *name = NULL;
    uint32_t file;
    temp_file(*state, "gone", "0123456789", 10);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(gcmp_dir_adopt(fd, "some/where/item", &dir, &error), GRADCMP_OK);
    assert_true(gcmp_dir_is_file(dir, &name));
    assert_string_equal(name, "item");
    assert_int_equal(gcmp_dir_add(dir, "item", 4, &file, &error), GRADCMP_OK);
    assert_int_equal(gcmp_dir_file_bytes(dir, file), 10);
    assert_int_equal(gcmp_dir_read(dir, file, 3, bytes, 3, &error), GRADCMP_OK);
    assert_string_equal(bytes, "345");
    assert_int_equal(gcmp_dir_read(dir, file, 8, bytes, 3, &error), GRADCMP_ERROR_CORRUPT);
    assert_string_equal(error.path, "some/where/item");
    assert_int_equal(gcmp_dir_add(dir, "other", 5, &file, &error), GRADCMP_ERROR_IO);
    gcmp_dir_close(dir);
    assert_int_equal(fcntl(fd, F_GETFD), -1); /* it was taken over */
    free(path);
}

static void test_open_fd__only_the_file_that_was_registered(void **state) {
    struct gcmp_dir *dir = open_dir(*state);
    struct gradcmp_error error = {0};
    char bytes[4] = "";
    uint32_t file;
    int fd;
    temp_file(*state, "a", "abc", 3);
    assert_int_equal(gcmp_dir_add(dir, "a", 1, &file, &error), GRADCMP_OK);
    assert_int_equal(gcmp_dir_open_fd(dir, file, &fd, &error), GRADCMP_OK);
    assert_int_equal(pread(fd, bytes, 3, 0), 3);
    assert_string_equal(bytes, "abc");
    assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    close(fd);
    temp_file(*state, "b", "xyz", 3);
    char *old = temp_path(*state, "a"), *new = temp_path(*state, "b");
    assert_int_equal(rename(new, old), 0);
    assert_int_equal(gcmp_dir_open_fd(dir, file, &fd, &error), GRADCMP_ERROR_IO);
    assert_string_equal(error.message, "changed while being read");
    assert_int_equal(fd, -1);
    gcmp_dir_close(dir);
    free(old);
    free(new);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEMP_TEST(test_open__absent_path_is_io),
        TEMP_TEST(test_open__fifo_is_refused_without_waiting),
        TEMP_TEST(test_open__trailing_slashes_are_dropped),
        TEMP_TEST(test_open__single_file_gives_only_itself),
        TEMP_TEST(test_add__same_name_gives_same_index),
        TEMP_TEST(test_add__bad_names_are_corrupt),
        TEMP_TEST(test_add__only_regular_files),
        TEMP_TEST(test_beneath__links_stay_inside),
        TEMP_TEST(test_add__links_that_lead_out_are_corrupt),
        TEMP_TEST(test_read__past_the_end_is_corrupt_at_the_first_missing_byte),
        TEMP_TEST(test_read__file_shortened_meanwhile_is_corrupt),
        TEMP_TEST(test_read__file_replaced_meanwhile_is_noticed),
        TEMP_TEST(test_pool__threads_share_a_bounded_number),
        TEMP_TEST(test_pool__lives_with_few_descriptors),
        TEMP_TEST(test_list__sorted_and_limited),
        TEMP_TEST(test_slurp__whole_file_or_limit),
        TEMP_TEST(test_adopt__open_file_is_a_directory_of_one),
        TEMP_TEST(test_open_fd__only_the_file_that_was_registered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
