/* The table of records: resolving, holding, checking and freeing them. */
#include "engine/records.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/dir.h"
#include "base/dtype.h"
#include "engine/crc32.h"

enum { CHECK_BUFFER_BYTES = 256 * 1024, HINT_BYTES = 4096 };
/* Descriptors of decoded records that are kept although nobody holds them. */
enum { IDLE_DESCRIPTORS = 32 };
/* Sources are kept in groups, made when one of them is first named: a run over one tensor of a
 * catalogue of a million costs no more than a run over one of ten. */
enum { GROUP_SOURCES = 256 };

/* What is known of a source. */
struct entry {
    struct gcmp_record *record; /* NULL: not looked at */
    uint32_t left, last_job;    /* uses still to come; the last job that was announced */
};

struct gcmp_records {
    const struct gradcmp_catalogue *catalogue;
    int verify;
    uint64_t decoded_limit_bytes;
    struct gcmp_pages *pages; /* NULL: files are read as they are */
    bool direct;              /* past the page cache, where that is allowed */
    pthread_mutex_t lock;     /* guards what follows, and the records' state, holders and list */
    pthread_cond_t changed;
    struct entry **groups;          /* of GROUP_SOURCES entries each; NULL: none is named so far */
    struct gcmp_record_span *spans; /* by source; NULL: there are no ranks */
    struct gcmp_record *newest, *oldest;
    uint64_t decoded_bytes;
};

static size_t group_count(const struct gcmp_records *records) {
    return records->catalogue->source_count / GROUP_SOURCES + 1;
}

/* The entry of a source that is there; NULL without memory. */
static struct entry *find_entry(struct gcmp_records *records, uint32_t source) {
    struct entry **group = &records->groups[source / GROUP_SOURCES];
    if (*group == NULL) {
        *group = calloc(GROUP_SOURCES, sizeof **group);
    }
    return *group == NULL ? NULL : &(*group)[source % GROUP_SOURCES];
}

struct gcmp_records *gcmp_records_make(const struct gradcmp_catalogue *catalogue,
                                       uint64_t decoded_limit_bytes, int verify) {
    struct gcmp_records *records = calloc(1, sizeof *records);
    if (records == NULL) {
        return NULL;
    }
    records->catalogue = catalogue;
    records->verify = verify;
    records->decoded_limit_bytes = decoded_limit_bytes;
    pthread_mutex_init(&records->lock, NULL);
    pthread_cond_init(&records->changed, NULL);
    records->groups = calloc(group_count(records), sizeof(struct entry *));
    if (records->groups == NULL) {
        gcmp_records_free(records);
        return NULL;
    }
    return records;
}

/* Free what resolving gave. */
static void forget_resolved(struct gcmp_record *record) {
    free(record->decoded);
    free(record->shape);
    if (record->decoded_in_file) {
        close(record->decoded_fd);
    }
    record->decoded = NULL;
    record->shape = NULL;
    record->ndim = 0;
    record->decoded_in_file = false;
    record->decoded_cost = 0;
}

void gcmp_record_free(struct gcmp_record *record) {
    if (record != NULL) {
        forget_resolved(record);
        free(record->error);
        free(record);
    }
}

void gcmp_records_free(struct gcmp_records *records) {
    if (records == NULL) {
        return;
    }
    for (size_t i = 0; records->groups != NULL && i < group_count(records); i++) {
        for (size_t k = 0; records->groups[i] != NULL && k < GROUP_SOURCES; k++) {
            gcmp_record_free(records->groups[i][k].record);
        }
        free(records->groups[i]);
    }
    free(records->groups);
    free(records->spans);
    pthread_cond_destroy(&records->changed);
    pthread_mutex_destroy(&records->lock);
    free(records);
}

void gcmp_records_use_pages(struct gcmp_records *records, struct gcmp_pages *pages) {
    records->pages = pages;
}

void gcmp_records_use_direct(struct gcmp_records *records) {
    records->direct = true;
    gcmp_dir_use_direct(records->catalogue->dir);
}

bool gcmp_records_announce(struct gcmp_records *records, uint32_t source, size_t job) {
    if (source >= records->catalogue->source_count) {
        return true; /* it cannot be held either */
    }
    struct entry *entry = find_entry(records, source);
    if (entry != NULL) {
        entry->left++;
        entry->last_job = (uint32_t)job;
    }
    return entry != NULL;
}

void gcmp_records_hint(struct gcmp_records *records, uint32_t index) {
    const struct gradcmp_catalogue *catalogue = records->catalogue;
    if (index >= catalogue->source_count || catalogue->sources[index].kind != GRADCMP_SOURCE_ITEM) {
        return;
    }
    const struct gradcmp_source *source = &catalogue->sources[index];
    uint64_t end;
    gcmp_dir_hint(catalogue->dir, source->file, source->offset_bytes, HINT_BYTES);
    if (source->length_bytes > HINT_BYTES &&
        gcmp_add_u64(source->offset_bytes, source->length_bytes, &end)) {
        gcmp_dir_hint(catalogue->dir, source->file, end - HINT_BYTES, HINT_BYTES);
    }
}

static const struct gradcmp_source *source_of(const struct gcmp_record *record) {
    return &record->table->catalogue->sources[record->source];
}

static const char *path_of(const struct gcmp_record *record) {
    return gcmp_dir_file_path(record->table->catalogue->dir, source_of(record)->file);
}

enum gradcmp_status gcmp_record_fail(const struct gcmp_record *record, enum gradcmp_status code,
                                     struct gradcmp_error *error, const char *message) {
    bool is_decoded = record->decoded != NULL || record->decoded_in_file;
    uint64_t at = is_decoded ? source_of(record)->offset_bytes : record->offset_bytes;
    GCMP_FAIL_AT(error, code, path_of(record), at, "%s", message);
}

/* --- resolving --- */

static bool is_row_major(const struct gradcmp_extent *extent) {
    uint64_t row = 1;
    for (unsigned d = extent->ndim; d-- > 0;) {
        if (extent->shape[d] != 1 && extent->stride[d] != (int64_t)row) {
            return false;
        }
        row *= extent->shape[d];
    }
    return true;
}

/* Tell whether every element of the item lies inside of the record. */
static bool extent_is_inside(const struct gradcmp_extent *extent) {
    unsigned bytes = gcmp_dtype_bytes((enum gradcmp_dtype)extent->dtype);
    int64_t low = extent->offset_elems, high = low, reach;
    for (unsigned d = 0; d < extent->ndim; d++) {
        if (extent->shape[d] > INT64_MAX ||
            __builtin_mul_overflow((int64_t)(extent->shape[d] - 1), extent->stride[d], &reach) ||
            __builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high)) {
            return false;
        }
    }
    return low >= 0 && (uint64_t)high < extent->length_bytes / bytes;
}

static enum gradcmp_status keep_strides(struct gcmp_record *record,
                                        const struct gradcmp_extent *extent,
                                        struct gradcmp_error *error) {
    record->shape = malloc(extent->ndim * (sizeof *record->shape + sizeof *record->stride));
    if (record->shape == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    record->ndim = extent->ndim;
    record->stride = (int64_t *)(record->shape + extent->ndim);
    memcpy(record->shape, extent->shape, extent->ndim * sizeof *record->shape);
    memcpy(record->stride, extent->stride, extent->ndim * sizeof *record->stride);
    return GRADCMP_OK;
}

/* Check what resolve() found and take it over; record->decoded is set already. */
static enum gradcmp_status take_extent(struct gcmp_record *record,
                                       const struct gradcmp_extent *extent,
                                       struct gradcmp_error *error) {
    uint64_t elems, end;
    record->offset_bytes = extent->offset_bytes;
    record->length_bytes = extent->length_bytes;
    record->crc32 = extent->crc32;
    record->dtype = extent->dtype;
    record->big_endian = extent->big_endian != 0;
    record->offset_elems = extent->offset_elems;
    if (extent->ndim > GRADCMP_MAX_NDIM ||
        gcmp_dtype_bytes((enum gradcmp_dtype)extent->dtype) == 0 ||
        !gcmp_product(extent->shape, extent->ndim, &elems) ||
        !gcmp_add_u64(extent->offset_bytes, extent->length_bytes, &end)) {
        return gcmp_record_fail(record, GRADCMP_ERROR_CORRUPT, error, "stored tensor is too large");
    }
    if (elems == 0) {
        record->length_bytes = 0;
        record->crc32 = 0;
        return GRADCMP_OK;
    }
    if (!extent_is_inside(extent)) {
        return gcmp_record_fail(record, GRADCMP_ERROR_CORRUPT, error,
                                "stored tensor reaches outside of its record");
    }
    return is_row_major(extent) ? GRADCMP_OK : keep_strides(record, extent, error);
}

static enum gradcmp_status compare_crc32(const struct gcmp_record *record, uint32_t found,
                                         struct gradcmp_error *error) {
    char message[80];
    if (found == record->crc32) {
        return GRADCMP_OK;
    }
    snprintf(message, sizeof message, "checksum: expected %08x, found %08x", record->crc32, found);
    return gcmp_record_fail(record, GRADCMP_ERROR_CORRUPT, error, message);
}

static enum gradcmp_status resolve_item(struct gcmp_record *record, struct gradcmp_error *error) {
    const struct gradcmp_catalogue *catalogue = record->table->catalogue;
    struct gradcmp_extent extent;
    memset(&extent, 0, sizeof extent);
    GCMP_TRY(catalogue->format->resolve(catalogue, record->source, &extent, error));
    record->decoded = extent.decoded;
    record->decoded_in_file = extent.decoded_in_file != 0;
    record->decoded_fd = extent.decoded_fd;
    GCMP_TRY(take_extent(record, &extent, error));
    if (record->decoded_in_file) {
        record->decoded_cost = 1 + record->table->decoded_limit_bytes / IDLE_DESCRIPTORS;
    } else if (record->decoded != NULL) {
        record->decoded_cost = 1 + record->length_bytes;
    }
    if (record->table->verify < 0) {
        record->crc32 = 0;
    }
    return GRADCMP_OK;
}

static enum gradcmp_status resolve(struct gcmp_record *record, struct gradcmp_error *error) {
    const struct gradcmp_source *source = source_of(record);
    uint64_t end;
    if (source->kind == GRADCMP_SOURCE_ITEM) {
        return resolve_item(record, error);
    }
    record->offset_bytes = source->offset_bytes;
    record->length_bytes = source->length_bytes;
    record->crc32 = record->table->verify < 0 ? 0 : source->crc32;
    record->big_endian = source->big_endian != 0;
    if (!gcmp_add_u64(source->offset_bytes, source->length_bytes, &end)) {
        return gcmp_record_fail(record, GRADCMP_ERROR_CORRUPT, error, "record is too long");
    }
    return GRADCMP_OK;
}

/* --- the list of decoded records --- */

static void unlink_decoded(struct gcmp_record *record) {
    struct gcmp_records *records = record->table;
    *(record->newer == NULL ? &records->newest : &record->newer->older) = record->older;
    *(record->older == NULL ? &records->oldest : &record->older->newer) = record->newer;
    records->decoded_bytes -= record->decoded_cost;
    record->newer = record->older = NULL;
}

static void link_newest(struct gcmp_record *record) {
    struct gcmp_records *records = record->table;
    record->older = records->newest;
    *(records->newest == NULL ? &records->oldest : &records->newest->newer) = record;
    records->newest = record;
    records->decoded_bytes += record->decoded_cost;
}

/* Forget decoded bytes that nobody holds, the longest unused first, down to the limit. */
static void drop_decoded(struct gcmp_records *records) {
    struct gcmp_record *record = records->oldest;
    while (record != NULL && records->decoded_bytes > records->decoded_limit_bytes) {
        struct gcmp_record *newer = record->newer;
        if (record->holders == 0) {
            unlink_decoded(record);
            forget_resolved(record);
            record->state = GCMP_RECORD_UNKNOWN;
        }
        record = newer;
    }
}

/* --- holding --- */

/* Get the record, new or not; NULL without memory. Lock held. */
static struct gcmp_record *find_record(struct gcmp_records *records, uint32_t source) {
    struct entry *entry = find_entry(records, source);
    if (entry != NULL && entry->record == NULL) {
        entry->record = calloc(1, sizeof *entry->record);
        if (entry->record != NULL) {
            entry->record->table = records;
            entry->record->source = source;
        }
    }
    return entry == NULL ? NULL : entry->record;
}

/* Resolve a record that is BUSY, without the lock during the work. Lock held on entry and return.
 */
static void resolve_busy(struct gcmp_record *record) {
    struct gcmp_records *records = record->table;
    struct gradcmp_error error;
    memset(&error, 0, sizeof error);
    pthread_mutex_unlock(&records->lock);
    enum gradcmp_status status = resolve(record, &error);
    if (status != GRADCMP_OK) {
        gcmp_error_add_path(&error, path_of(record));
        record->error = malloc(sizeof error);
        if (record->error != NULL) {
            *record->error = error;
        }
    }
    pthread_mutex_lock(&records->lock);
    record->state = status == GRADCMP_OK ? GCMP_RECORD_READY : GCMP_RECORD_FAILED;
    if (record->state == GCMP_RECORD_READY && record->decoded_cost != 0) {
        link_newest(record);
    }
    pthread_cond_broadcast(&records->changed);
}

static enum gradcmp_status hold_locked(struct gcmp_records *records, struct gcmp_record *record,
                                       struct gradcmp_error *error) {
    while (record->state == GCMP_RECORD_BUSY) {
        pthread_cond_wait(&records->changed, &records->lock);
    }
    if (record->state == GCMP_RECORD_UNKNOWN) {
        record->state = GCMP_RECORD_BUSY;
        resolve_busy(record);
    }
    if (record->state == GCMP_RECORD_FAILED) {
        if (record->error == NULL) {
            GCMP_FAIL_MEMORY(error);
        }
        if (error != NULL) {
            *error = *record->error;
        }
        return record->error->code;
    }
    record->holders++;
    if (record->decoded_cost != 0) {
        unlink_decoded(record);
        link_newest(record);
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_records_hold(struct gcmp_records *records, uint32_t source,
                                      struct gcmp_record **record, struct gradcmp_error *error) {
    if (source >= records->catalogue->source_count) {
        GCMP_FAIL(error, GRADCMP_ERROR_CORRUPT, "slab names source %u of %zu", source,
                  records->catalogue->source_count);
    }
    pthread_mutex_lock(&records->lock);
    *record = find_record(records, source);
    enum gradcmp_status status =
        *record == NULL
            ? gcmp_error_set(error, GRADCMP_ERROR_MEMORY, NULL, GRADCMP_NO_OFFSET, "out of memory")
            : hold_locked(records, *record, error);
    pthread_mutex_unlock(&records->lock);
    return status;
}

void gcmp_record_release(struct gcmp_record *record) {
    struct gcmp_records *records = record->table;
    pthread_mutex_lock(&records->lock);
    record->holders--;
    if (record->decoded_cost != 0) {
        drop_decoded(records);
    }
    pthread_mutex_unlock(&records->lock);
}

/* --- reading and checking --- */

/* Read from a file without a name that a format decoded into; it is ours alone, and as long as the
 * format said. */
static enum gradcmp_status read_decoded(const struct gcmp_record *record,
                                        const struct gcmp_record_bytes *bytes,
                                        struct gradcmp_error *error) {
    size_t got = 0;
    while (got < bytes->count) {
        ssize_t done = pread(record->decoded_fd, bytes->buffer + got, bytes->count - got,
                             (off_t)(record->offset_bytes + bytes->at + got));
        if (done <= 0 && !(done < 0 && errno == EINTR)) {
            return gcmp_record_fail(record, GRADCMP_ERROR_IO, error, "decoded record: read failed");
        }
        got += done < 0 ? 0 : (size_t)done;
    }
    return GRADCMP_OK;
}

bool gcmp_record_in_file(const struct gcmp_record *record, uint64_t at, struct gcmp_pages_at *out) {
    out->dir = record->table->catalogue->dir;
    out->file = source_of(record)->file;
    out->offset_bytes = record->offset_bytes + at;
    return record->decoded == NULL && !record->decoded_in_file && record->table->pages == NULL;
}

bool gcmp_record_is_direct(const struct gcmp_record *record) {
    return record->table->direct &&
           gcmp_dir_direct(record->table->catalogue->dir) == GCMP_DIR_DIRECT;
}

enum gradcmp_status gcmp_record_read(const struct gcmp_record *record,
                                     struct gcmp_record_bytes *bytes, struct gradcmp_error *error) {
    if (record->decoded != NULL) {
        bytes->bytes = record->decoded + record->offset_bytes + bytes->at;
        return GRADCMP_OK;
    }
    bytes->bytes = bytes->buffer;
    if (record->decoded_in_file) {
        return read_decoded(record, bytes, error);
    }
    struct gcmp_pages *pages = record->table->pages;
    const struct gcmp_pages_at at = {record->table->catalogue->dir, source_of(record)->file,
                                     record->offset_bytes + bytes->at};
    return pages != NULL ? gcmp_pages_read(pages, at, bytes->buffer, bytes->count, error)
                         : gcmp_dir_read(at.dir, at.file, at.offset_bytes, bytes->buffer,
                                         bytes->count, error);
}

void gcmp_record_note_used(struct gcmp_record *record, uint64_t bytes) {
    atomic_fetch_add_explicit(&record->used_bytes, bytes, memory_order_relaxed);
}

void gcmp_record_note_read(struct gcmp_record *record, const struct gcmp_record_bytes *bytes) {
    if (record->crc32 != 0) {
        uint32_t piece = gcmp_crc32(0, bytes->bytes, bytes->count);
        piece = gcmp_crc32_shift(piece, record->length_bytes - bytes->at - bytes->count);
        atomic_fetch_xor_explicit(&record->checked_crc32, piece, memory_order_relaxed);
        atomic_fetch_add_explicit(&record->checked_bytes, bytes->count, memory_order_relaxed);
    }
}

/* Read a whole record for its checksum. */
static enum gradcmp_status check_again(const struct gcmp_record *record,
                                       struct gradcmp_error *error) {
    unsigned char *buffer = malloc(CHECK_BUFFER_BYTES);
    if (buffer == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    uint32_t crc32 = 0;
    enum gradcmp_status status = GRADCMP_OK;
    struct gcmp_record_bytes piece = {.buffer = buffer};
    for (; piece.at < record->length_bytes && status == GRADCMP_OK; piece.at += piece.count) {
        uint64_t left = record->length_bytes - piece.at;
        piece.count = left < CHECK_BUFFER_BYTES ? (size_t)left : CHECK_BUFFER_BYTES;
        status = gcmp_record_read(record, &piece, error);
        if (status == GRADCMP_OK) {
            crc32 = gcmp_crc32(crc32, piece.bytes, piece.count);
        }
    }
    free(buffer);
    GCMP_TRY(status);
    return compare_crc32(record, crc32, error);
}

bool gcmp_record_part(const struct gcmp_record *record, struct gcmp_record_part *part) {
    memset(part, 0, sizeof *part);
    if (record->state != GCMP_RECORD_READY || record->crc32 == 0) {
        return false;
    }
    part->length_bytes = record->length_bytes;
    part->used_bytes = atomic_load(&record->used_bytes);
    part->checked_bytes = atomic_load(&record->checked_bytes);
    part->crc32 = record->crc32;
    part->checked_crc32 = atomic_load(&record->checked_crc32);
    return true;
}

/* What was noted may overlap and still be as many bytes as the record has, so that only equality
 * is final. */
enum gcmp_record_judgement gcmp_records_judge(const struct gcmp_records *records,
                                              const struct gcmp_record_part *whole) {
    if (whole->checked_bytes == whole->length_bytes && whole->checked_crc32 == whole->crc32) {
        return GCMP_RECORD_GOOD;
    }
    return records->verify > 0 || whole->used_bytes >= whole->length_bytes ? GCMP_RECORD_DOUBTED
                                                                           : GCMP_RECORD_UNSEEN;
}

enum gradcmp_status gcmp_record_check(const struct gcmp_record *record,
                                      struct gradcmp_error *error) {
    struct gcmp_record_part part;
    return gcmp_record_part(record, &part) &&
                   gcmp_records_judge(record->table, &part) == GCMP_RECORD_DOUBTED
               ? check_again(record, error)
               : GRADCMP_OK;
}

enum gradcmp_status gcmp_records_check_again(struct gcmp_records *records, uint32_t source,
                                             struct gradcmp_error *error) {
    struct gcmp_record *record;
    GCMP_TRY(gcmp_records_hold(records, source, &record, error));
    enum gradcmp_status status = check_again(record, error);
    gcmp_record_release(record);
    return status;
}

bool gcmp_records_note_ranks(struct gcmp_records *records, uint32_t source,
                             const struct gcmp_record_span *span) {
    if (records->spans == NULL) {
        records->spans = calloc(records->catalogue->source_count + 1, sizeof *records->spans);
        for (size_t i = 0; records->spans != NULL && i < records->catalogue->source_count; i++) {
            records->spans[i].lowest = UINT32_MAX;
        }
    }
    if (records->spans != NULL && source < records->catalogue->source_count) {
        struct gcmp_record_span *noted = &records->spans[source];
        noted->lowest = span->lowest < noted->lowest ? span->lowest : noted->lowest;
        noted->highest = span->highest > noted->highest ? span->highest : noted->highest;
        noted->last_job = span->last_job;
    }
    return records->spans != NULL;
}

const struct gcmp_record_span *gcmp_records_span(const struct gcmp_records *records,
                                                 uint32_t source) {
    bool is_noted = records->spans != NULL && source < records->catalogue->source_count &&
                    records->spans[source].lowest != UINT32_MAX;
    return is_noted ? &records->spans[source] : NULL;
}

bool gcmp_records_end_use(struct gcmp_records *records, uint32_t source,
                          struct gcmp_record **record, size_t *last_job) {
    if (source >= records->catalogue->source_count) {
        return false; /* it could never be held */
    }
    pthread_mutex_lock(&records->lock);
    struct entry *entry = &records->groups[source / GROUP_SOURCES][source % GROUP_SOURCES];
    bool last = --entry->left == 0;
    if (last) {
        *record = entry->record;
        *last_job = entry->last_job;
        entry->record = NULL;
        if (*record != NULL && (*record)->state == GCMP_RECORD_READY &&
            (*record)->decoded_cost != 0) {
            unlink_decoded(*record);
        }
    }
    pthread_mutex_unlock(&records->lock);
    return last;
}
