/* Fuzz target: the helper's own reader of objects that are too new for libhdf5. The input is a file
 * whose object header begins at byte 48; checksums in it need not be right (see driver_read_at). */
#include "h5helper/newer.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEADER_AT = 48 };

/* The rest of the helper, without a process around it. */
static const uint8_t *file_bytes;
static size_t file_size;
static bool failed;

bool driver_read_at(uint64_t offset_bytes, void *buffer, size_t size) {
    if (offset_bytes > file_size || size > file_size - offset_bytes) {
        return false;
    }
    memcpy(buffer, file_bytes + offset_bytes, size);
    return true;
}

uint64_t driver_file_bytes(void) {
    return file_size;
}

uint64_t driver_last_offset(void) {
    return 0;
}

void put_u8(unsigned value) {
    (void)value;
}

void put_u32(uint32_t value) {
    (void)value;
}

void put_u64(uint64_t value) {
    (void)value;
}

void put_text(const char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        (void)*(const volatile char *)(bytes + i); /* all of it is there */
    }
}

bool put_flush(void) {
    return true;
}

void helper_fail(enum gradcmp_status status, const char *format, ...) {
    (void)status;
    (void)format;
    failed = true;
}

void helper_fail_at(enum gradcmp_status status, uint64_t offset_bytes, const char *format, ...) {
    (void)status;
    (void)offset_bytes;
    (void)format;
    failed = true;
}

void helper_fail_hdf5(const char *what) {
    (void)what;
    failed = true;
}

bool helper_has_failed(void) {
    return failed;
}

const char *type_class_name(int class) {
    (void)class;
    return "values";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    file_bytes = data;
    file_size = size;
    failed = false;
    enum newer told = newer_tell(0, HEADER_AT, "w");
    if ((told == NEWER_TOLD && failed) || (told == NEWER_FAILED && !failed)) {
        abort();
    }
    return 0;
}
