/* Fuzz target: what the program keeps for itself and others may have changed. By the first byte the
 * rest is a judged pair, the records of a file of `sweep --resume` (under a right checksum), or a
 * file of fingerprints. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <xxhash.h>

#include "base/catalogue.h"
#include "bits/hash_file.h"
#include "demand.h"
#include "resume.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int drop(void *user, const char *bytes, size_t length_bytes) {
    (void)user;
    (void)bytes;
    (void)length_bytes;
    return 0;
}

/* A failure says what and is one line. */
static void check_error(enum gradcmp_status status, const struct gradcmp_error *error) {
    demand(status == GRADCMP_OK || (error->code == status && error->message[0] != '\0' &&
                                    strchr(error->message, '\n') == NULL),
           "a failure is told in one line");
}

/* Print it in every way that prints pairs that were taken over. */
static void print(struct gcmp_arena *arena, struct gradcmp_pair_report *pair) {
    struct gradcmp_catalogue catalogue = {.arena = arena, .iteration = -1};
    struct gradcmp_report report = {.arena = arena,
                                    .baseline_path = "a",
                                    .baseline = &catalogue,
                                    .baseline_bound = pair->bound,
                                    .pairs = pair,
                                    .pair_count = 1,
                                    .state = "exp_avg",
                                    .options = GRADCMP_OPTIONS_INIT};
    struct gradcmp_text_options text = GRADCMP_TEXT_OPTIONS_INIT;
    struct gradcmp_document_options document = GRADCMP_DOCUMENT_OPTIONS_INIT;
    struct gradcmp_error error = {0};
    text.verbose = 1;
    pair->path = "b";
    pair->catalogue = &catalogue;
    pair->taken_over = true;
    demand(gradcmp_report_write_text(&report, &text, drop, NULL, &error) == GRADCMP_OK &&
               gradcmp_report_write_json(&report, drop, NULL, &error) == GRADCMP_OK &&
               gradcmp_report_write_html(&report, &document, drop, NULL, &error) == GRADCMP_OK &&
               gradcmp_report_write_junit(&report, &document, drop, NULL, &error) == GRADCMP_OK,
           "what was read can be printed");
}

/* What is written of a pair reads as the same pair. */
static void check_again(const struct gradcmp_pair_report *pair) {
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    struct gcmp_text first = GCMP_TEXT_INIT, second = GCMP_TEXT_INIT;
    struct gradcmp_pair_report again;
    bool no_memory;
    gcmp_resume_write_pair(&first, pair);
    struct gcmp_cursor in = gcmp_cursor_make(first.bytes, first.length_bytes, 0);
    demand(!first.failed && gcmp_resume_read_pair(&in, &arena, &again, &no_memory) &&
               gcmp_cursor_left(&in) == 0,
           "a pair can be written and read");
    gcmp_resume_write_pair(&second, &again);
    demand(first.length_bytes == second.length_bytes &&
               memcmp(first.bytes, second.bytes, first.length_bytes) == 0,
           "a pair is the same when it is read again");
    gcmp_text_free(&first);
    gcmp_text_free(&second);
    gcmp_arena_free(&arena);
}

static void read_pair(const uint8_t *data, size_t size) {
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    struct gcmp_cursor in = gcmp_cursor_make(data, size, 0);
    struct gradcmp_pair_report pair;
    bool no_memory = false;
    if (gcmp_resume_read_pair(&in, &arena, &pair, &no_memory)) {
        check_again(&pair);
        print(&arena, &pair);
    }
    demand(!no_memory, "no size is believed");
    gcmp_arena_free(&arena);
}

/* Name a file without a name. */
static int make_file(const void *head, size_t head_bytes, const void *bytes, size_t count,
                     char path[64]) {
    int fd = memfd_create("input", MFD_CLOEXEC);
    demand(fd >= 0 && write(fd, head, head_bytes) == (ssize_t)head_bytes &&
               write(fd, bytes, count) == (ssize_t)count,
           "the input can be stored");
    snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd;
}

static void read_resume(const uint8_t *data, size_t size) {
    char path[64];
    unsigned char head[26 + 8 + 16] = "gradcmp sweep --resume, 2\n";
    XXH128_canonical_t canonical;
    struct gcmp_resume *resume = NULL;
    struct gradcmp_error error = {0};
    for (unsigned i = 0; i < 8; i++) {
        head[26 + i] = (unsigned char)((uint64_t)size >> (8 * i));
    }
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(data, size));
    memcpy(head + 34, canonical.digest, 16);
    int fd = make_file(head, sizeof head, data, size, path);
    enum gradcmp_status status = gcmp_resume_open(path, &resume, &error);
    check_error(status, &error);
    demand((status == GRADCMP_OK) == (resume != NULL), "there is one or none");
    gcmp_resume_free(resume);
    close(fd);
}

static void read_hashes(const uint8_t *data, size_t size) {
    char path[64];
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    struct gcmp_bits_hashes hashes = {0};
    struct gradcmp_error error = {0};
    int fd = make_file("", 0, data, size, path);
    enum gradcmp_status status = gcmp_bits_hashes_read(path, &arena, &hashes, &error);
    check_error(status, &error);
    for (size_t i = 0; status == GRADCMP_OK && i < hashes.items.count; i++) {
        const struct gcmp_bits_item *item = &hashes.items.list[i];
        demand(item->path != NULL && item->type != NULL && item->length_bytes == 32,
               "a fingerprint is whole");
    }
    free(hashes.items.list);
    free(hashes.of_layout.list);
    gcmp_arena_free(&arena);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static void (*const readers[])(const uint8_t *, size_t) = {read_pair, read_resume, read_hashes};
    if (size > 0) {
        readers[data[0] % 3](data + 1, size - 1);
    }
    return 0;
}
