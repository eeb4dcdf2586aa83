/* Many checkpoints open beside one another: what they keep open together, and that what was closed
 * meanwhile is opened again as what it was. */
#include "temp_tools.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>

#include "base/dir.h"

enum { DIRS = 100, FEW = 48, THREADS = 4, ROUNDS = 2000 };

struct fixture {
    char *root;
    struct rlimit old;
    unsigned before;
    struct gcmp_dir *dirs[DIRS];
};

static unsigned count_descriptors(void) {
    unsigned count = 0;
    for (int fd = 0; fd < 1024; fd++) {
        count += fcntl(fd, F_GETFD) >= 0;
    }
    return count;
}

/* Folders d0, d1, ... of one file each, that holds the folder's number. */
static int setup(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    fixture->root = temp_dir_make();
    assert_non_null(fixture->root);
    for (int i = 0; i < DIRS; i++) {
        char name[32], content[8];
        snprintf(name, sizeof name, "d%d", i);
        temp_folder(fixture->root, name);
        snprintf(name, sizeof name, "d%d/file", i);
        snprintf(content, sizeof content, "%06d", i);
        temp_file(fixture->root, name, content, 6);
    }
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &fixture->old), 0);
    struct rlimit few = fixture->old;
    few.rlim_cur = FEW;
    fixture->before = count_descriptors();
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    *state = fixture;
    return 0;
}

static int teardown(void **state) {
    struct fixture *fixture = *state;
    for (int i = 0; i < DIRS; i++) {
        gcmp_dir_close(fixture->dirs[i]);
    }
    int leaked = count_descriptors() != fixture->before;
    setrlimit(RLIMIT_NOFILE, &fixture->old);
    temp_dir_remove(fixture->root);
    free(fixture);
    return leaked;
}

/* Open all of them, by `suffix` the folders or their files; each has its file as number 0. */
static void open_all(struct fixture *fixture, const char *suffix) {
    for (int i = 0; i < DIRS; i++) {
        char name[32];
        uint32_t file = 1;
        struct gradcmp_error error = {0};
        snprintf(name, sizeof name, "d%d%s", i, suffix);
        char *path = temp_path(fixture->root, name);
        assert_int_equal(gcmp_dir_open(path, &fixture->dirs[i], &error), GRADCMP_OK);
        assert_int_equal(gcmp_dir_add(fixture->dirs[i], "file", 4, &file, &error), GRADCMP_OK);
        assert_int_equal(file, 0);
        free(path);
    }
}

static void read_expect(struct gcmp_dir *dir, int number) {
    char bytes[7] = "";
    struct gradcmp_error error = {0};
    assert_int_equal(gcmp_dir_read(dir, 0, 0, bytes, 6, &error), GRADCMP_OK);
    assert_int_equal(strtol(bytes, NULL, 10), number);
}

static void read_all(struct fixture *fixture) {
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < DIRS; i++) {
            read_expect(fixture->dirs[i], i);
        }
    }
    assert_true(count_descriptors() <= fixture->before + FEW / 2);
}

static void test_room__more_folders_than_descriptors_are_read(void **state) {
    open_all(*state, "");
    read_all(*state);
}

static void test_room__more_files_than_descriptors_are_read(void **state) {
    open_all(*state, "/file");
    read_all(*state);
}

static void test_room__relative_paths_hold_wherever_the_process_goes(void **state) {
    struct fixture *fixture = *state;
    char *absolute = fixture->root;
    int here = open(".", O_RDONLY | O_DIRECTORY);
    assert_int_equal(chdir(absolute), 0);
    fixture->root = ".";
    open_all(fixture, "");
    fixture->root = absolute;
    assert_int_equal(fchdir(here), 0);
    close(here);
    read_all(fixture);
}

/* The first folder was closed for the sake of the others. */
static void test_room__folder_replaced_meanwhile_is_noticed(void **state) {
    struct fixture *fixture = *state;
    struct gcmp_dir *dir;
    struct gradcmp_error error = {0};
    uint32_t file;
    open_all(fixture, "");
    dir = fixture->dirs[0];
    char *old = temp_path(fixture->root, "d0"), *aside = temp_path(fixture->root, "aside");
    assert_int_equal(rename(old, aside), 0);
    assert_int_equal(gcmp_dir_add(dir, "new", 3, &file, &error), GRADCMP_ERROR_IO);
    assert_string_equal(error.message, "changed while being read");
    temp_folder(fixture->root, "d0");
    temp_file(fixture->root, "d0/file", "000000", 6);
    temp_file(fixture->root, "d0/new", "000000", 6);
    assert_int_equal(gcmp_dir_add(dir, "new", 3, &file, &error), GRADCMP_ERROR_IO);
    assert_string_equal(error.message, "changed while being read");
    assert_false(gcmp_dir_has_file(dir, "new"));
    assert_int_equal(gcmp_dir_check(dir, &error), GRADCMP_ERROR_IO); /* it was not just absent */
    assert_string_equal(error.path, old);
    free(old);
    free(aside);
}

static void test_room__pins_leave_some_for_those_who_read(void **state) {
    struct fixture *fixture = *state;
    bool pinned[DIRS];
    int fd;
    open_all(fixture, "");
    for (int i = 0; i < DIRS; i++) {
        pinned[i] = gcmp_dir_pin(fixture->dirs[i], 0, false, &fd);
    }
    assert_true(pinned[0]);
    assert_false(pinned[DIRS - 1]);
    read_all(fixture);
    for (int i = 0; i < DIRS; i++) {
        if (pinned[i]) {
            gcmp_dir_unpin(fixture->dirs[i], 0);
        }
    }
    assert_true(gcmp_dir_pin(fixture->dirs[DIRS - 1], 0, false, &fd));
    gcmp_dir_unpin(fixture->dirs[DIRS - 1], 0);
}

static void *pin_often(void *user) {
    struct fixture *fixture = user;
    for (int i = 0; i < ROUNDS; i++) {
        int fd;
        struct gcmp_dir *dir = fixture->dirs[i % DIRS];
        if (gcmp_dir_pin(dir, 0, false, &fd)) {
            gcmp_dir_unpin(dir, 0);
        }
    }
    return NULL;
}

/* One that is opened while another thread opens it would be lost; teardown counts. */
static void test_room__threads_that_pin_one_file_open_it_once(void **state) {
    pthread_t threads[THREADS];
    open_all(*state, "");
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, pin_often, *state), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    read_all(*state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEMP_TEST(test_room__more_folders_than_descriptors_are_read),
        TEMP_TEST(test_room__more_files_than_descriptors_are_read),
        TEMP_TEST(test_room__relative_paths_hold_wherever_the_process_goes),
        TEMP_TEST(test_room__folder_replaced_meanwhile_is_noticed),
        TEMP_TEST(test_room__pins_leave_some_for_those_who_read),
        TEMP_TEST(test_room__threads_that_pin_one_file_open_it_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
