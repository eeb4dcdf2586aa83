/* The zip directory of torch.save archives. Facts of the format: APPNOTE.TXT 6.3.10, sections 4.3
 * and 4.5; what torch writes: everything stored, sizes only in the central directory (flag bit 3),
 * alignment padding as an extra field of the local header only, a zip64 end record always. */
#include "formats/zip_private.h"

#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "base/checked.h"

/* What is read at once: a whole small archive, else its ends. An item of a .distcp has about 700
 * bytes of directory and 900 bytes of other records in front of its data. */
enum { WHOLE_BYTES = 16 * 1024, END_BYTES = 4 * 1024 };

enum {
    DIRECTORY_SIGNATURE = 0x02014b50,
    LOCAL_BYTES_FIXED = 30,
    EXTRA_ZIP64 = 1,
    FLAG_ENCRYPTED = 1 << 0,
    FLAG_DESCRIPTOR = 1 << 3,
    FLAG_STRONG = 1 << 6,
    FLAG_MASKED = 1 << 13,
    FLAGS_SECRET = FLAG_ENCRYPTED | FLAG_STRONG | FLAG_MASKED,
    OUTER_DIRECTORY = 0x10 /* of the external attributes, as DOS has it */
};

/* The numbers that a directory entry and a local header begin with, and their bytes. */
enum {
    ENTRY_SIGNATURE,
    ENTRY_VERSIONS,
    ENTRY_FLAGS,
    ENTRY_METHOD,
    ENTRY_TIME,
    ENTRY_CRC32,
    ENTRY_STORED,
    ENTRY_BYTES,
    ENTRY_NAME,
    ENTRY_EXTRA,
    ENTRY_COMMENT,
    ENTRY_DISK,
    ENTRY_INNER,
    ENTRY_OUTER,
    ENTRY_HEADER,
    ENTRY_NUMBERS,
    LOCAL_NUMBERS = ENTRY_COMMENT
};
static const char ENTRY_WIDTHS[] = "442244442222244", LOCAL_WIDTHS[] = "4222444422";

/* One entry of the central directory. */
struct entry {
    const unsigned char *name; /* never NULL, however short the directory is */
    uint16_t name_bytes;
    uint16_t flags, method;
    uint32_t crc32;
    uint64_t stored_bytes, bytes, header_at;
    bool is_folder;  /* by its attributes or its name */
    uint64_t at;     /* of the entry itself */
    uint64_t end_at; /* of its data, once the local header is known */
};

/* Name of an entry in a message. */
#define NAME_FORMAT "record \"%.*s\""
#define NAME_ARGS(entry)                                                                           \
    (entry)->name_bytes > 120 ? 120 : (int)(entry)->name_bytes, (const char *)(entry)->name

static const unsigned char *find_in_window(const struct gcmp_zip_window *window, uint64_t offset,
                                           uint64_t count) {
    if (window->bytes == NULL || offset < window->offset_bytes) {
        return NULL;
    }
    uint64_t skip = offset - window->offset_bytes;
    return skip <= window->count && count <= window->count - skip ? window->bytes + skip : NULL;
}

/* Get bytes of the file, from a window or by a read into the arena. */
static enum gradcmp_status fetch(const struct gcmp_zip *zip, uint64_t offset, uint64_t count,
                                 struct gcmp_arena *arena, const unsigned char **bytes,
                                 struct gradcmp_error *error) {
    *bytes = find_in_window(&zip->tail, offset, count);
    if (*bytes == NULL) {
        *bytes = find_in_window(&zip->head, offset, count);
    }
    if (*bytes != NULL) {
        return GRADCMP_OK;
    }
    void *buffer = count <= SIZE_MAX ? gcmp_arena_alloc(arena, (size_t)count, 1) : NULL;
    if (buffer == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    GCMP_TRY(gcmp_dir_read(zip->dir, zip->file, offset, buffer, (size_t)count, error));
    *bytes = buffer;
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_zip_fetch(const struct gcmp_zip_archive *archive, uint64_t at,
                                   uint64_t count, struct gcmp_cursor *out) {
    const unsigned char *bytes;
    GCMP_TRY(fetch(archive->zip, archive->offset_bytes + at, count, archive->arena, &bytes,
                   archive->error));
    *out = gcmp_cursor_make(bytes, (size_t)count, archive->offset_bytes + at);
    return GRADCMP_OK;
}

static enum gradcmp_status read_window(const struct gcmp_zip_archive *archive, uint64_t at,
                                       uint64_t count, struct gcmp_zip_window *window) {
    struct gcmp_cursor cursor;
    GCMP_TRY(gcmp_zip_fetch(archive, at, count, &cursor));
    *window = (struct gcmp_zip_window){cursor.bytes, cursor.base_bytes, (size_t)count};
    return GRADCMP_OK;
}

static enum gradcmp_status read_windows(const struct gcmp_zip_archive *archive) {
    struct gcmp_zip *zip = archive->zip;
    if (archive->length_bytes <= WHOLE_BYTES) {
        return read_window(archive, 0, archive->length_bytes, &zip->tail);
    }
    GCMP_TRY(read_window(archive, archive->length_bytes - END_BYTES, END_BYTES, &zip->tail));
    return read_window(archive, 0, END_BYTES, &zip->head);
}

/* Replace each saturated number by the next one of the zip64 extra field. `numbers` are in the
 * order of the field. False where the extra fields are malformed or a number is not there. */
static bool read_zip64_extra(struct gcmp_cursor extra, uint64_t *const *numbers, unsigned count) {
    bool seen = false;
    while (gcmp_cursor_left(&extra) > 0) {
        uint16_t id = 0, bytes = 0;
        const unsigned char *field = NULL;
        if (!gcmp_read_u16le(&extra, &id) || !gcmp_read_u16le(&extra, &bytes) ||
            !gcmp_read_bytes(&extra, bytes, &field)) {
            return false;
        }
        if (id != EXTRA_ZIP64) {
            continue;
        }
        struct gcmp_cursor wide = gcmp_cursor_make(field, bytes, 0);
        for (unsigned i = 0; i < count; i++) {
            if (*numbers[i] == GCMP_ZIP_SATURATED_32 && !gcmp_read_u64le(&wide, numbers[i])) {
                return false;
            }
        }
        if (seen) {
            return false;
        }
        seen = true;
    }
    bool saturated = false;
    for (unsigned i = 0; i < count; i++) {
        saturated = saturated || *numbers[i] == GCMP_ZIP_SATURATED_32;
    }
    return seen || !saturated;
}

/* True for a record of code, which TorchScript compresses. */
static bool is_code(const struct entry *entry) {
    static const char folder[] = "/code/";
    const unsigned char *slash = memchr(entry->name, '/', entry->name_bytes);
    return slash != NULL &&
           (size_t)(entry->name + entry->name_bytes - slash) >= sizeof folder - 1 &&
           memcmp(slash, folder, sizeof folder - 1) == 0;
}

static enum gradcmp_status check_entry(const struct gcmp_zip_archive *archive,
                                       const struct entry *entry) {
    if (entry->name_bytes == 0 || memchr(entry->name, '\0', entry->name_bytes) != NULL) {
        GCMP_ZIP_FAIL(archive, GRADCMP_ERROR_CORRUPT, entry->at,
                      NAME_FORMAT ": a name that is empty or holds a NUL", NAME_ARGS(entry));
    }
    if ((entry->flags & FLAGS_SECRET) != 0) {
        GCMP_ZIP_FAIL(archive, GRADCMP_ERROR_UNSUPPORTED, entry->at, NAME_FORMAT " is encrypted",
                      NAME_ARGS(entry));
    }
    if (entry->method != 0 && is_code(entry)) {
        GCMP_ZIP_FAIL(archive, GRADCMP_ERROR_UNSUPPORTED, entry->at,
                      "a TorchScript archive (it has a " NAME_FORMAT "); save the state dict with "
                      "torch.save",
                      NAME_ARGS(entry));
    }
    if (entry->method != 0) {
        GCMP_ZIP_FAIL(archive, GRADCMP_ERROR_UNSUPPORTED, entry->at,
                      NAME_FORMAT
                      " is compressed (method %u); torch.save stores records as they are",
                      NAME_ARGS(entry), entry->method);
    }
    if (entry->stored_bytes != entry->bytes) {
        GCMP_ZIP_FAIL(archive, GRADCMP_ERROR_CORRUPT, entry->at,
                      NAME_FORMAT ": %llu bytes stored for %llu, though not compressed",
                      NAME_ARGS(entry), (unsigned long long)entry->stored_bytes,
                      (unsigned long long)entry->bytes);
    }
    if (entry->is_folder && entry->bytes > 0) { /* torch's reader (miniz) reads nothing of it */
        GCMP_ZIP_FAIL(archive, GRADCMP_ERROR_CORRUPT, entry->at,
                      NAME_FORMAT ": %llu bytes of what the directory says is a folder",
                      NAME_ARGS(entry), (unsigned long long)entry->bytes);
    }
    if (entry->header_at > archive->directory_at ||
        entry->bytes > archive->directory_at - entry->header_at ||
        LOCAL_BYTES_FIXED > archive->directory_at - entry->header_at - entry->bytes) {
        GCMP_ZIP_FAIL(archive, GRADCMP_ERROR_CORRUPT, entry->at,
                      NAME_FORMAT ": %llu bytes at byte %llu do not lie before the directory",
                      NAME_ARGS(entry), (unsigned long long)entry->bytes,
                      (unsigned long long)entry->header_at);
    }
    return GRADCMP_OK;
}

/* Read the next entry of the directory. */
static enum gradcmp_status read_entry(const struct gcmp_zip_archive *archive,
                                      struct gcmp_cursor *cursor, struct entry *entry) {
    *entry = (struct entry){.name = (const unsigned char *)"",
                            .at = gcmp_cursor_offset(cursor) - archive->offset_bytes};
    uint64_t fixed[ENTRY_NUMBERS] = {0};
    const unsigned char *extra = NULL;
    bool ok = gcmp_read_numbers(cursor, ENTRY_WIDTHS, fixed) &&
              gcmp_read_bytes(cursor, fixed[ENTRY_NAME], &entry->name) &&
              gcmp_read_bytes(cursor, fixed[ENTRY_EXTRA], &extra) &&
              gcmp_skip(cursor, fixed[ENTRY_COMMENT]);
    if (!ok || fixed[ENTRY_SIGNATURE] != DIRECTORY_SIGNATURE) {
        GCMP_ZIP_FAIL(archive, GRADCMP_ERROR_CORRUPT, entry->at,
                      "no directory entry where one is due");
    }
    entry->flags = (uint16_t)fixed[ENTRY_FLAGS];
    entry->method = (uint16_t)fixed[ENTRY_METHOD];
    entry->crc32 = (uint32_t)fixed[ENTRY_CRC32];
    entry->stored_bytes = fixed[ENTRY_STORED];
    entry->bytes = fixed[ENTRY_BYTES];
    entry->name_bytes = (uint16_t)fixed[ENTRY_NAME];
    entry->header_at = fixed[ENTRY_HEADER];
    entry->is_folder = (fixed[ENTRY_OUTER] & OUTER_DIRECTORY) != 0 ||
                       (entry->name_bytes > 0 && entry->name[entry->name_bytes - 1] == '/');
    uint64_t *const numbers[] = {&entry->bytes, &entry->stored_bytes, &entry->header_at};
    if (!read_zip64_extra(gcmp_cursor_make(extra, (size_t)fixed[ENTRY_EXTRA], 0), numbers, 3) ||
        (fixed[ENTRY_DISK] != 0 && fixed[ENTRY_DISK] != GCMP_ZIP_SATURATED_16)) {
        GCMP_ZIP_FAIL(archive, GRADCMP_ERROR_CORRUPT, entry->at,
                      NAME_FORMAT ": bad zip64 extra field", NAME_ARGS(entry));
    }
    return check_entry(archive, entry);
}

/* What a local header says. */
struct local {
    uint32_t signature, crc32;
    uint16_t flags, method, name_bytes, extra_bytes;
    uint64_t stored_bytes, bytes;
};

static struct local read_local_fixed(struct gcmp_cursor *cursor) {
    uint64_t fixed[LOCAL_NUMBERS] = {0};
    (void)gcmp_read_numbers(cursor, LOCAL_WIDTHS, fixed); /* all of them were fetched */
    return (struct local){.signature = (uint32_t)fixed[ENTRY_SIGNATURE],
                          .flags = (uint16_t)fixed[ENTRY_FLAGS],
                          .method = (uint16_t)fixed[ENTRY_METHOD],
                          .crc32 = (uint32_t)fixed[ENTRY_CRC32],
                          .stored_bytes = fixed[ENTRY_STORED],
                          .bytes = fixed[ENTRY_BYTES],
                          .name_bytes = (uint16_t)fixed[ENTRY_NAME],
                          .extra_bytes = (uint16_t)fixed[ENTRY_EXTRA]};
}

/* Where the local header states the sizes (no descriptor follows the data), they must be right. */
static bool local_sizes_agree(const struct entry *entry, struct local *local,
                              struct gcmp_cursor extra) {
    if ((local->flags & FLAG_DESCRIPTOR) != 0) {
        return true;
    }
    uint64_t *const numbers[] = {&local->bytes, &local->stored_bytes};
    return read_zip64_extra(extra, numbers, 2) && local->bytes == entry->bytes &&
           local->stored_bytes == entry->stored_bytes && local->crc32 == entry->crc32;
}

/* The data of a record begins behind its local header, whose extra field (torch's alignment
 * padding) the directory does not have. */
static enum gradcmp_status read_local(const struct gcmp_zip_archive *archive, struct entry *entry,
                                      uint64_t *data_at) {
    struct gcmp_cursor cursor;
    GCMP_TRY(
        gcmp_zip_fetch(archive, entry->header_at, LOCAL_BYTES_FIXED + entry->name_bytes, &cursor));
    const unsigned char *name = (const unsigned char *)"";
    struct local local = read_local_fixed(&cursor);
    (void)gcmp_read_bytes(&cursor, entry->name_bytes, &name);
    if (local.signature != GCMP_ZIP_LOCAL_SIGNATURE) {
        GCMP_ZIP_FAIL(archive, GRADCMP_ERROR_CORRUPT, entry->header_at,
                      NAME_FORMAT ": no local header where the directory says", NAME_ARGS(entry));
    }
    if (local.name_bytes != entry->name_bytes ||
        memcmp(name, entry->name, entry->name_bytes) != 0 || local.method != entry->method ||
        (local.flags & FLAGS_SECRET) != 0) {
        GCMP_ZIP_FAIL(archive, GRADCMP_ERROR_CORRUPT, entry->header_at,
                      NAME_FORMAT ": the local header disagrees with the directory",
                      NAME_ARGS(entry));
    }
    uint64_t header_end = entry->header_at + LOCAL_BYTES_FIXED + entry->name_bytes;
    *data_at = header_end + local.extra_bytes;
    entry->end_at = *data_at + entry->bytes;
    if (entry->end_at > archive->directory_at) {
        GCMP_ZIP_FAIL(archive, GRADCMP_ERROR_CORRUPT, entry->header_at,
                      NAME_FORMAT ": its data run into the directory", NAME_ARGS(entry));
    }
    struct gcmp_cursor extra = {0};
    if ((local.flags & FLAG_DESCRIPTOR) == 0) {
        GCMP_TRY(gcmp_zip_fetch(archive, header_end, local.extra_bytes, &extra));
    }
    if (!local_sizes_agree(entry, &local, extra)) {
        GCMP_ZIP_FAIL(archive, GRADCMP_ERROR_CORRUPT, entry->header_at,
                      NAME_FORMAT ": the local header states other sizes or another checksum",
                      NAME_ARGS(entry));
    }
    return GRADCMP_OK;
}

/* Make the record of an entry. All names must lie below the first one's folder. */
static enum gradcmp_status make_record(const struct gcmp_zip_archive *archive, struct entry *entry,
                                       const struct entry *first, struct gcmp_zip_record *record) {
    uint64_t data_at = 0;
    const unsigned char *slash = memchr(first->name, '/', first->name_bytes);
    size_t root_bytes = slash == NULL ? 0 : (size_t)(slash - first->name) + 1;
    if (root_bytes == 0 || entry->name_bytes <= root_bytes ||
        memcmp(entry->name, first->name, root_bytes) != 0) {
        GCMP_ZIP_FAIL(archive, GRADCMP_ERROR_CORRUPT, entry->at,
                      NAME_FORMAT " is not below the archive's one folder \"%.*s\"",
                      NAME_ARGS(entry), root_bytes > 100 ? 100 : (int)root_bytes,
                      (const char *)first->name);
    }
    GCMP_TRY(read_local(archive, entry, &data_at));
    record->name = gcmp_arena_text(archive->arena, (const char *)entry->name + root_bytes,
                                   entry->name_bytes - root_bytes);
    record->offset_bytes = archive->offset_bytes + data_at;
    record->length_bytes = entry->bytes;
    record->crc32 = entry->crc32;
    if (record->name == NULL) {
        GCMP_FAIL_MEMORY(archive->error);
    }
    return GRADCMP_OK;
}

/* An extent of the archive, for the search for overlaps. */
struct extent {
    uint64_t start, end;
    size_t record;
};

static int compare_extents(const void *a, const void *b) {
    const struct extent *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

/* No two records may share a byte, and the first one starts the archive: then the archive reads the
 * same for every reader. */
static enum gradcmp_status check_extents(const struct gcmp_zip_archive *archive,
                                         struct extent *extents) {
    const struct gcmp_zip *zip = archive->zip;
    bool sorted = true;
    for (size_t i = 1; i < zip->count; i++) {
        sorted = sorted && extents[i - 1].start < extents[i].start;
    }
    if (!sorted) {
        qsort(extents, zip->count, sizeof *extents, compare_extents);
    }
    if (extents[0].start != 0) {
        GCMP_ZIP_FAIL(archive, GRADCMP_ERROR_CORRUPT, 0, "%llu bytes in front of the first record",
                      (unsigned long long)extents[0].start);
    }
    for (size_t i = 1; i < zip->count; i++) {
        if (extents[i].start < extents[i - 1].end) {
            GCMP_ZIP_FAIL(archive, GRADCMP_ERROR_CORRUPT, extents[i].start,
                          "records \"%.120s\" and \"%.120s\" overlap",
                          zip->records[extents[i - 1].record].name,
                          zip->records[extents[i].record].name);
        }
    }
    return GRADCMP_OK;
}

static int fold(char c) {
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : (unsigned char)c;
}

static int compare_folded(const char *a, const char *b) {
    while (*a != '\0' && fold(*a) == fold(*b)) {
        a++;
        b++;
    }
    return fold(*a) - fold(*b);
}

static int compare_records(const void *a, const void *b, void *records) {
    const struct gcmp_zip_record *all = records;
    return compare_folded(all[*(const size_t *)a].name, all[*(const size_t *)b].name);
}

bool gcmp_zip_index(struct gcmp_zip *zip, struct gcmp_arena *arena) {
    zip->by_name = gcmp_arena_alloc(arena, zip->count, sizeof *zip->by_name);
    for (size_t i = 0; zip->by_name != NULL && i < zip->count; i++) {
        zip->by_name[i] = i;
    }
    if (zip->by_name != NULL && zip->count > 0) {
        qsort_r(zip->by_name, zip->count, sizeof *zip->by_name, compare_records, zip->records);
    }
    return zip->by_name != NULL;
}

/* Refuse two names alike: which one is meant depends on the reader. */
static enum gradcmp_status index_names(const struct gcmp_zip_archive *archive) {
    struct gcmp_zip *zip = archive->zip;
    if (!gcmp_zip_index(zip, archive->arena)) {
        GCMP_FAIL_MEMORY(archive->error);
    }
    for (size_t i = 1; i < zip->count; i++) {
        const char *name = zip->records[zip->by_name[i]].name;
        if (compare_folded(zip->records[zip->by_name[i - 1]].name, name) == 0) {
            GCMP_ZIP_FAIL(archive, GRADCMP_ERROR_CORRUPT, archive->directory_at,
                          "two records are named \"%.120s\"", name);
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_directory(const struct gcmp_zip_archive *archive) {
    struct gcmp_zip *zip = archive->zip;
    struct gcmp_cursor cursor;
    size_t count = (size_t)archive->entry_count;
    GCMP_TRY(gcmp_zip_fetch(archive, archive->directory_at, archive->directory_bytes, &cursor));
    zip->records = gcmp_arena_alloc(archive->arena, count, sizeof *zip->records);
    struct extent *extents = gcmp_arena_alloc(archive->arena, count, sizeof *extents);
    if (zip->records == NULL || extents == NULL) {
        GCMP_FAIL_MEMORY(archive->error);
    }
    struct entry first = {0}, entry;
    for (size_t i = 0; i < count; i++) {
        GCMP_TRY(read_entry(archive, &cursor, &entry));
        if (i == 0) {
            first = entry;
        }
        GCMP_TRY(make_record(archive, &entry, &first, &zip->records[i]));
        extents[i] = (struct extent){entry.header_at, entry.end_at, i};
        zip->count = i + 1;
    }
    if (gcmp_cursor_left(&cursor) != 0) {
        GCMP_ZIP_FAIL(archive, GRADCMP_ERROR_CORRUPT,
                      gcmp_cursor_offset(&cursor) - archive->offset_bytes,
                      "more in the directory than the %zu records announced", count);
    }
    GCMP_TRY(check_extents(archive, extents));
    return index_names(archive);
}

enum gradcmp_status gcmp_zip_open(struct gcmp_dir *dir, uint32_t file, uint64_t offset,
                                  uint64_t length, struct gcmp_arena *arena, struct gcmp_zip *out,
                                  struct gradcmp_error *error) {
    *out = (struct gcmp_zip){.dir = dir, .file = file};
    struct gcmp_zip_archive archive = {.zip = out,
                                       .offset_bytes = offset,
                                       .length_bytes = length,
                                       .arena = arena,
                                       .path = gcmp_dir_file_path(dir, file),
                                       .error = error};
    uint64_t end;
    if (!gcmp_add_u64(offset, length, &end) || end > gcmp_dir_file_bytes(dir, file)) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT, archive.path, gcmp_dir_file_bytes(dir, file),
                     "truncated: %llu bytes expected at byte %llu, the file ends at byte %llu",
                     (unsigned long long)length, (unsigned long long)offset,
                     (unsigned long long)gcmp_dir_file_bytes(dir, file));
    }
    GCMP_TRY(read_windows(&archive));
    GCMP_TRY(gcmp_zip_locate(&archive));
    return read_directory(&archive);
}

const struct gcmp_zip_record *gcmp_zip_find(const struct gcmp_zip *zip, const char *name) {
    size_t low = 0, high = zip->by_name == NULL ? 0 : zip->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct gcmp_zip_record *record = &zip->records[zip->by_name[middle]];
        int order = compare_folded(name, record->name);
        if (order == 0) {
            return record;
        }
        if (order < 0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return NULL;
}

enum gradcmp_status gcmp_zip_read_record(const struct gcmp_zip *zip,
                                         const struct gcmp_zip_record *record, uint64_t limit,
                                         struct gcmp_arena *arena, const unsigned char **bytes,
                                         struct gradcmp_error *error) {
    const char *path = gcmp_dir_file_path(zip->dir, zip->file);
    if (record->length_bytes > limit) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_LIMIT, path, record->offset_bytes,
                     "record \"%.120s\" of %llu bytes, at most %llu are read", record->name,
                     (unsigned long long)record->length_bytes, (unsigned long long)limit);
    }
    GCMP_TRY(fetch(zip, record->offset_bytes, record->length_bytes, arena, bytes, error));
    if (record->crc32 != 0) {
        uint32_t found = (uint32_t)crc32_z(0, *bytes, (size_t)record->length_bytes);
        if (found != record->crc32) {
            GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT, path, record->offset_bytes,
                         "record \"%.120s\": checksum %08x expected, %08x found", record->name,
                         record->crc32, found);
        }
    }
    return GRADCMP_OK;
}
