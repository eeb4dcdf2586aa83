/* Any bytes as the message of an event record whose framing and checksums are right. */
#include "metrics/crc32c.h"
#include "metrics/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put(int fd, const void *bytes, size_t count) {
    if (write(fd, bytes, count) != (ssize_t)count) {
        abort();
    }
}

static void put_record(int fd, const void *data, size_t size) {
    unsigned char header[12], footer[4];
    for (unsigned i = 0; i < 8; i++) {
        header[i] = (unsigned char)((uint64_t)size >> (8 * i));
    }
    uint32_t length_crc = gcmp_crc32c_masked(header, 8), data_crc = gcmp_crc32c_masked(data, size);
    for (unsigned i = 0; i < 4; i++) {
        header[8 + i] = (unsigned char)(length_crc >> (8 * i));
        footer[i] = (unsigned char)(data_crc >> (8 * i));
    }
    put(fd, header, sizeof header);
    put(fd, data, size);
    put(fd, footer, sizeof footer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char version[] = "\x1a\x0d"
                                  "brain.Event:2";
    char path[64];
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    struct gcmp_metric_source source = {0};
    struct gradcmp_error error = {0};
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0) {
        abort();
    }
    put_record(fd, version, sizeof version - 1);
    put_record(fd, data, size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    enum gradcmp_status status = gcmp_metric_open(path, &arena, &source, &error);
    if (status == GRADCMP_OK && source.is_damaged && source.damage.message[0] == '\0') {
        abort(); /* damage without a word */
    }
    gcmp_metric_source_free(&source);
    gcmp_arena_free(&arena);
    close(fd);
    return 0;
}
