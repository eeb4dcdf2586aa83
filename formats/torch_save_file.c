/* Tells the forms of torch.save apart by their first bytes. */
#include "formats/torch_save_file.h"

#include <string.h>

#include "formats/torch_legacy.h"

/* A tar archive says so behind its first member's name and numbers. */
enum { TAR_MARK_AT = 257, TAR_MARK_BYTES = 5, PROBE_BYTES = TAR_MARK_AT + TAR_MARK_BYTES };

static enum gcmp_torch_form form_of(const unsigned char *bytes, size_t count) {
    if (count >= 4 && memcmp(bytes, "PK\3\4", 4) == 0) {
        return GCMP_TORCH_ZIP;
    }
    if (gcmp_legacy_probe(bytes, count)) {
        return GCMP_TORCH_STREAM;
    }
    if (count == PROBE_BYTES && memcmp(bytes + TAR_MARK_AT, "ustar", TAR_MARK_BYTES) == 0) {
        return GCMP_TORCH_TAR;
    }
    return GCMP_TORCH_OTHER;
}

enum gcmp_torch_form gcmp_torch_form(struct gcmp_dir *dir, const char *name) {
    unsigned char bytes[PROBE_BYTES];
    uint32_t file;
    if (gcmp_dir_add(dir, name, strlen(name), &file, NULL) != GRADCMP_OK) {
        return GCMP_TORCH_OTHER;
    }
    uint64_t size = gcmp_dir_file_bytes(dir, file);
    size_t count = size < sizeof bytes ? (size_t)size : sizeof bytes;
    if (gcmp_dir_read(dir, file, 0, bytes, count, NULL) != GRADCMP_OK) {
        return GCMP_TORCH_OTHER;
    }
    return form_of(bytes, count);
}

enum gradcmp_status gcmp_torch_open_any(struct gcmp_dir *dir, const char *name,
                                        struct gcmp_arena *arena, struct gcmp_torch_file *out,
                                        struct gradcmp_error *error) {
    uint32_t file;
    GCMP_TRY(gcmp_dir_add(dir, name, strlen(name), &file, error));
    const char *path = gcmp_dir_file_path(dir, file);
    switch (gcmp_torch_form(dir, name)) {
    case GCMP_TORCH_ZIP:
        return gcmp_torch_open(dir, file, 0, gcmp_dir_file_bytes(dir, file), arena, out, error);
    case GCMP_TORCH_STREAM:
        return gcmp_legacy_open(dir, file, arena, out, error);
    case GCMP_TORCH_TAR:
        GCMP_FAIL_AT(
            error, GRADCMP_ERROR_UNSUPPORTED, path, 0,
            "torch: a tar archive, as torch before 0.1.10 wrote them; load it with a torch "
            "of today and save it again");
    default:
        GCMP_TRY(gcmp_dir_check(dir, error)); /* its head was perhaps not read */
        GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT, path, 0,
                     "torch: expected a zip archive or a stream that begins with torch's magic "
                     "number, found something else");
    }
}
