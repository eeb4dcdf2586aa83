/* The directory of a zip archive: any bytes as a file, and as a range inside of one. */
#include "formats/zip.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Open the range as an archive and read every record of it. */
static void read_archive(struct gcmp_dir *dir, uint32_t file, uint64_t offset, uint64_t length) {
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    struct gradcmp_error error = {0};
    struct gcmp_zip zip;
    if (gcmp_zip_open(dir, file, offset, length, &arena, &zip, &error) == GRADCMP_OK) {
        for (size_t i = 0; i < zip.count; i++) {
            const unsigned char *bytes;
            const struct gcmp_zip_record *record = gcmp_zip_find(&zip, zip.records[i].name);
            if (record != &zip.records[i] || record->offset_bytes < offset ||
                record->length_bytes > length ||
                record->offset_bytes - offset > length - record->length_bytes) {
                abort(); /* a record outside of its archive, or one that is not found */
            }
            (void)!gcmp_zip_read_record(&zip, record, 1 << 20, &arena, &bytes, &error);
        }
    }
    gcmp_arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[64];
    const char *name;
    uint32_t file;
    struct gcmp_dir *dir = NULL;
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) {
        abort();
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (gcmp_dir_open(path, &dir, NULL) != GRADCMP_OK || !gcmp_dir_is_file(dir, &name) ||
        gcmp_dir_add(dir, name, strlen(name), &file, NULL) != GRADCMP_OK) {
        abort();
    }
    read_archive(dir, file, 0, size);
    read_archive(dir, file, size / 3, size - size / 3);
    gcmp_dir_close(dir);
    close(fd);
    return 0;
}
