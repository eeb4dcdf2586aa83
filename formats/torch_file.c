/* A torch.save archive: its records, its byte order and its pickle. */
#include "formats/torch_file.h"

#include <string.h>

#include "base/cursor.h"

/* "little" or "big", perhaps with a line end. */
enum { MAX_BYTEORDER_BYTES = 16 };

static enum gradcmp_status fail(const struct gcmp_torch_file *torch, enum gradcmp_status code,
                                uint64_t offset_bytes, struct gradcmp_error *error,
                                const char *text) {
    return gcmp_error_set(error, code, gcmp_dir_file_path(torch->dir, torch->file), offset_bytes,
                          "torch: %s", text);
}

/* torch before 2.1 wrote no record of it: little-endian. */
static enum gradcmp_status read_byteorder(struct gcmp_torch_file *torch, struct gcmp_arena *arena,
                                          struct gradcmp_error *error) {
    const struct gcmp_zip_record *record = gcmp_zip_find(&torch->zip, "byteorder");
    if (record == NULL) {
        return GRADCMP_OK;
    }
    const unsigned char *bytes;
    GCMP_TRY(gcmp_zip_read_record(&torch->zip, record, MAX_BYTEORDER_BYTES, arena, &bytes, error));
    if (record->length_bytes == 3 && memcmp(bytes, "big", 3) == 0) {
        torch->big_endian = true;
    } else if (record->length_bytes != 6 || memcmp(bytes, "little", 6) != 0) {
        return fail(torch, GRADCMP_ERROR_CORRUPT, record->offset_bytes, error,
                    "record byteorder: expected \"little\" or \"big\"");
    }
    return GRADCMP_OK;
}

/* TorchScript archives hold code beside their pickles, which mean something else. */
static enum gradcmp_status find_pickle(struct gcmp_torch_file *torch, uint64_t offset,
                                       struct gradcmp_error *error) {
    torch->pickle = gcmp_zip_find(&torch->zip, "data.pkl");
    if (gcmp_zip_find(&torch->zip, "constants.pkl") != NULL) {
        return fail(torch, GRADCMP_ERROR_UNSUPPORTED, offset, error,
                    "a TorchScript archive (it has a record constants.pkl); save the state dict "
                    "with torch.save");
    }
    if (torch->pickle == NULL) {
        return fail(torch, GRADCMP_ERROR_CORRUPT, offset, error,
                    "expected a record data.pkl, found none");
    }
    return GRADCMP_OK;
}

/* The pickle's bytes are needed only while it is interpreted: nodes hold copies. */
static enum gradcmp_status load_pickle(struct gcmp_torch_file *torch, struct gcmp_arena *arena,
                                       struct gradcmp_error *error) {
    struct gcmp_arena buffer = GCMP_ARENA_INIT;
    const struct gcmp_zip_record *record = torch->pickle;
    const unsigned char *bytes;
    enum gradcmp_status status =
        gcmp_zip_read_record(&torch->zip, record, GCMP_PICKLE_MAX_BYTES, &buffer, &bytes, error);
    if (status == GRADCMP_OK) {
        struct gcmp_cursor cursor =
            gcmp_cursor_make(bytes, (size_t)record->length_bytes, record->offset_bytes);
        status = gcmp_pickle_load(&cursor, arena, gcmp_dir_file_path(torch->dir, torch->file),
                                  &torch->root, error);
    }
    gcmp_arena_free(&buffer);
    return status;
}

enum gradcmp_status gcmp_torch_open(struct gcmp_dir *dir, uint32_t file, uint64_t offset,
                                    uint64_t length, struct gcmp_arena *arena,
                                    struct gcmp_torch_file *out, struct gradcmp_error *error) {
    *out = (struct gcmp_torch_file){.dir = dir, .file = file};
    GCMP_TRY(gcmp_zip_open(dir, file, offset, length, arena, &out->zip, error));
    GCMP_TRY(find_pickle(out, offset, error));
    GCMP_TRY(read_byteorder(out, arena, error));
    return load_pickle(out, arena, error);
}
