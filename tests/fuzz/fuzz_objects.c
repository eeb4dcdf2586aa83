/* Fuzz target of meaning: `bits` walks any object that torch.save wrote, and finds it equal to a
 * copy of itself, or refuses it. Input: the length of the pickle (4 bytes, little-endian), the
 * pickle, the number of records data/0, data/1, ... (1 byte), their lengths (2 bytes each), and
 * their bytes, as far as there are any. */
#include "gradcmp/gradcmp.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "archive.h"
#include "base/cursor.h"
#include "demand.h"

enum { MOST_RECORDS = 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void add_records(struct gcmp_cursor *cursor) {
    uint16_t lengths[MOST_RECORDS] = {0};
    uint8_t count = 0;
    (void)gcmp_read_u8(cursor, &count);
    count %= MOST_RECORDS + 1;
    for (unsigned i = 0; i < count; i++) {
        (void)gcmp_read_u16le(cursor, &lengths[i]);
    }
    for (unsigned i = 0; i < count; i++) {
        const unsigned char *bytes = NULL;
        char name[32];
        snprintf(name, sizeof name, "a/data/%u", i);
        (void)gcmp_read_bytes(cursor, lengths[i], &bytes);
        add_record(name, bytes, lengths[i]);
    }
}

static int store_archive(void) {
    int fd = memfd_create("fuzz.pt", MFD_CLOEXEC);
    demand(fd >= 0 && write(fd, archive, archive_bytes) == (ssize_t)archive_bytes,
           "an archive can be stored");
    return fd;
}

static void compare(const char *a, const char *b) {
    struct gradcmp_options options = GRADCMP_OPTIONS_INIT;
    struct gradcmp_evidence *evidence = NULL;
    struct gradcmp_error error = {0};
    const char *paths[] = {a, b};
    options.threads = 1;
    if (gradcmp_bits(paths, 2, &options, NULL, &evidence, &error) == GRADCMP_OK) {
        demand(gradcmp_evidence_exit_status(evidence) != 1, "a copy is no difference");
    } else {
        demand(error.message[0] != '\0', "a failure is told");
    }
    gradcmp_evidence_free(evidence);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct gcmp_cursor cursor = gcmp_cursor_make(data, size, 0);
    const unsigned char *pickle;
    uint32_t pickle_bytes;
    char paths[2][64];
    if (!gcmp_read_u32le(&cursor, &pickle_bytes) ||
        !gcmp_read_bytes(&cursor, pickle_bytes, &pickle)) {
        return 0;
    }
    begin_archive();
    add_record("a/data.pkl", pickle, pickle_bytes);
    add_records(&cursor);
    end_archive();
    int fds[] = {store_archive(), store_archive()};
    for (size_t i = 0; i < 2; i++) {
        snprintf(paths[i], sizeof paths[i], "/proc/self/fd/%d", fds[i]);
    }
    compare(paths[0], paths[1]);
    close(fds[0]);
    close(fds[1]);
    return 0;
}
