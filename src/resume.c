/* The file of `gradcmp sweep --resume`: a mark, the length and a checksum of the rest, then one
 * record a pair: key, both paths, and the pair as bytes. It is replaced as a whole. */
#include "resume.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/grow.h"

/* The number is that of the layout, but for pairs: how these lie belongs to the build in their
 * keys. */
static const char MARK[] = "gradcmp sweep --resume, 2\n";
enum { MARK_BYTES = sizeof MARK - 1, CHECKSUM_BYTES = 16, HEAD_BYTES = MARK_BYTES + 8 + 16 };
static const off_t MAX_FILE_BYTES = (off_t)4 << 30;

struct record {
    unsigned char key[16];
    char *baseline, *candidate, *bytes; /* malloced */
    size_t length_bytes;
};

struct gcmp_resume {
    char *path, *real; /* as given, for messages; and without links */
    struct record *records;
    size_t count, capacity;
};

static enum gradcmp_status fail_io(const char *path, const char *what,
                                   struct gradcmp_error *error) {
    char reason[128];
    const char *text = strerror_r(errno, reason, sizeof reason);
    return gcmp_error_set(error, GRADCMP_ERROR_IO, path, GRADCMP_NO_OFFSET, "cannot %s: %s", what,
                          text);
}

static enum gradcmp_status fail_damaged(const char *path, struct gradcmp_error *error) {
    return gcmp_error_set(error, GRADCMP_ERROR_CORRUPT, path, GRADCMP_NO_OFFSET,
                          "a damaged file of gradcmp sweep --resume: its checksum differs; remove "
                          "it to judge all pairs anew");
}

static void free_record(struct record *record) {
    free(record->baseline);
    free(record->candidate);
    free(record->bytes);
    *record = (struct record){0};
}

void gcmp_resume_free(struct gcmp_resume *resume) {
    if (resume == NULL) {
        return;
    }
    for (size_t i = 0; i < resume->count; i++) {
        free_record(&resume->records[i]);
    }
    free(resume->records);
    free(resume->path);
    free(resume->real);
    free(resume);
}

const char *gcmp_resume_path(const struct gcmp_resume *resume) {
    return resume->path;
}

/* --- reading --- */

/* Make room for one more record; NULL without memory. */
static struct record *add_record(struct gcmp_resume *resume) {
    if (!gcmp_grow(&resume->records, resume->count, &resume->capacity, sizeof *resume->records)) {
        return NULL;
    }
    resume->records[resume->count] = (struct record){0};
    return &resume->records[resume->count++];
}

/* A counted run of bytes, malloced with a NUL behind it; NULL where it is not whole. */
static char *take_bytes(struct gcmp_cursor *in, size_t *length, bool *no_memory) {
    uint64_t count;
    const unsigned char *bytes;
    if (!gcmp_read_u64le(in, &count) || !gcmp_read_bytes(in, count, &bytes)) {
        return NULL;
    }
    char *copy = malloc((size_t)count + 1);
    *no_memory = *no_memory || copy == NULL;
    if (copy != NULL) {
        memcpy(copy, bytes, (size_t)count);
        copy[count] = '\0';
        *length = (size_t)count;
    }
    return copy;
}

static enum gradcmp_status take_record(struct gcmp_resume *resume, struct gcmp_cursor *in,
                                       struct gradcmp_error *error) {
    struct record *record = add_record(resume);
    bool no_memory = record == NULL;
    const unsigned char *key = NULL;
    size_t ignored;
    if (record != NULL && gcmp_read_bytes(in, sizeof record->key, &key)) {
        memcpy(record->key, key, sizeof record->key);
        record->baseline = take_bytes(in, &ignored, &no_memory);
        record->candidate = take_bytes(in, &ignored, &no_memory);
        record->bytes = take_bytes(in, &record->length_bytes, &no_memory);
    }
    if (no_memory) {
        GCMP_FAIL_MEMORY(error);
    }
    return record->baseline == NULL || record->candidate == NULL || record->bytes == NULL
               ? fail_damaged(resume->path, error)
               : GRADCMP_OK;
}

static void checksum_of(const void *bytes, size_t count, unsigned char *out) {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes, count));
    memcpy(out, canonical.digest, CHECKSUM_BYTES);
}

static enum gradcmp_status parse(struct gcmp_resume *resume, const char *bytes, size_t count,
                                 struct gradcmp_error *error) {
    unsigned char own[CHECKSUM_BYTES];
    uint64_t length = 0;
    if (count < MARK_BYTES || memcmp(bytes, MARK, MARK_BYTES) != 0) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT, resume->path, GRADCMP_NO_OFFSET,
                     "is no file that this version's gradcmp sweep --resume wrote, and is not "
                     "overwritten; name another, or remove it");
    }
    struct gcmp_cursor in =
        gcmp_cursor_make(bytes + MARK_BYTES, count - MARK_BYTES, (uint64_t)MARK_BYTES);
    const unsigned char *stated = NULL;
    if (!gcmp_read_u64le(&in, &length) || !gcmp_read_bytes(&in, CHECKSUM_BYTES, &stated) ||
        length != gcmp_cursor_left(&in)) {
        return fail_damaged(resume->path, error);
    }
    checksum_of(bytes + HEAD_BYTES, count - HEAD_BYTES, own);
    if (memcmp(own, stated, sizeof own) != 0) {
        return fail_damaged(resume->path, error);
    }
    while (gcmp_cursor_left(&in) > 0) {
        GCMP_TRY(take_record(resume, &in, error));
    }
    return GRADCMP_OK;
}

static enum gradcmp_status slurp(int descriptor, const char *path, char **bytes, size_t *count,
                                 struct gradcmp_error *error) {
    struct stat info;
    if (fstat(descriptor, &info) != 0) {
        return fail_io(path, "read", error);
    }
    if (!S_ISREG(info.st_mode)) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_USAGE, path, GRADCMP_NO_OFFSET,
                     "--resume: expected a regular file, or a name that is not taken yet");
    }
    if (info.st_size > MAX_FILE_BYTES) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_LIMIT, path, GRADCMP_NO_OFFSET,
                     "%lld bytes, at most %lld are read", (long long)info.st_size,
                     (long long)MAX_FILE_BYTES);
    }
    *bytes = malloc((size_t)info.st_size + 1);
    if (*bytes == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    while (*count < (size_t)info.st_size) {
        ssize_t got = read(descriptor, *bytes + *count, (size_t)info.st_size - *count);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return fail_io(path, "read", error);
        }
        if (got == 0) {
            break; /* it became shorter: the length will tell */
        }
        *count += (size_t)got;
    }
    return GRADCMP_OK;
}

/* Hours of work should not end at a folder that cannot be written. */
static enum gradcmp_status check_folder(const char *path, struct gradcmp_error *error) {
    const char *slash = strrchr(path, '/');
    char *folder = slash == NULL ? strdup(".") : strndup(path, (size_t)(slash - path) + 1);
    if (folder == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    enum gradcmp_status status =
        access(folder, W_OK | X_OK) == 0 ? GRADCMP_OK : fail_io(path, "write", error);
    free(folder);
    return status;
}

static enum gradcmp_status read_file(struct gcmp_resume *resume, struct gradcmp_error *error) {
    char *bytes = NULL;
    size_t count = 0;
    int descriptor = open(resume->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) {
        return errno == ENOENT ? GRADCMP_OK : fail_io(resume->path, "read", error);
    }
    enum gradcmp_status status = slurp(descriptor, resume->path, &bytes, &count, error);
    if (status == GRADCMP_OK && count > 0) { /* an empty file is one to begin with */
        status = parse(resume, bytes, count, error);
    }
    close(descriptor);
    free(bytes);
    return status;
}

enum gradcmp_status gcmp_resume_open(const char *path, struct gcmp_resume **out,
                                     struct gradcmp_error *error) {
    *out = NULL;
    struct gcmp_resume *resume = calloc(1, sizeof *resume);
    if (resume != NULL) {
        resume->path = strdup(path);
        resume->real = realpath(path, NULL); /* what a link leads to is replaced, not the link */
        resume->real = resume->real != NULL ? resume->real : strdup(path);
    }
    if (resume == NULL || resume->path == NULL || resume->real == NULL) {
        gcmp_resume_free(resume);
        GCMP_FAIL_MEMORY(error);
    }
    enum gradcmp_status status = read_file(resume, error);
    if (status == GRADCMP_OK) {
        status = check_folder(resume->real, error);
    }
    if (status != GRADCMP_OK) {
        gcmp_resume_free(resume);
        return status;
    }
    *out = resume;
    return GRADCMP_OK;
}

/* --- looking up and keeping --- */

enum gradcmp_status gcmp_resume_find(const struct gcmp_resume *resume,
                                     const struct gcmp_resume_key *key, struct gcmp_arena *arena,
                                     struct gradcmp_pair_report *pair, bool *found,
                                     struct gradcmp_error *error) {
    *found = false;
    for (size_t i = 0; key->is_known && i < resume->count; i++) {
        const struct record *record = &resume->records[i];
        if (memcmp(record->key, key->bytes, sizeof record->key) != 0) {
            continue;
        }
        struct gcmp_cursor in = gcmp_cursor_make(record->bytes, record->length_bytes, 0);
        bool no_memory;
        if (!gcmp_resume_read_pair(&in, arena, pair, &no_memory)) {
            return no_memory ? gcmp_error_set(error, GRADCMP_ERROR_MEMORY, NULL, GRADCMP_NO_OFFSET,
                                              "out of memory")
                             : fail_damaged(resume->path, error);
        }
        *found = true;
        return GRADCMP_OK;
    }
    return GRADCMP_OK;
}

static struct record *record_of(struct gcmp_resume *resume, const char *baseline,
                                const char *candidate) {
    for (size_t i = 0; i < resume->count; i++) {
        struct record *record = &resume->records[i];
        if (strcmp(record->baseline, baseline) == 0 && strcmp(record->candidate, candidate) == 0) {
            free_record(record);
            return record;
        }
    }
    return add_record(resume);
}

enum gradcmp_status gcmp_resume_put(struct gcmp_resume *resume, const struct gcmp_resume_key *key,
                                    const char *baseline, const struct gradcmp_pair_report *pair,
                                    struct gradcmp_error *error) {
    struct gcmp_text text = GCMP_TEXT_INIT;
    gcmp_resume_write_pair(&text, pair);
    struct record made = {.baseline = strdup(baseline),
                          .candidate = strdup(pair->path),
                          .bytes = text.bytes,
                          .length_bytes = text.length_bytes};
    memcpy(made.key, key->bytes, sizeof made.key);
    bool is_made = !text.failed && made.baseline != NULL && made.candidate != NULL;
    struct record *record = is_made ? record_of(resume, baseline, pair->path) : NULL;
    if (record == NULL) {
        free_record(&made);
        GCMP_FAIL_MEMORY(error);
    }
    *record = made;
    return GRADCMP_OK;
}

/* --- writing --- */

static void add_word(struct gcmp_text *text, uint64_t value) {
    char bytes[8];
    for (unsigned i = 0; i < 8; i++) {
        bytes[i] = (char)(unsigned char)(value >> (8 * i));
    }
    gcmp_text_add_bytes(text, bytes, sizeof bytes);
}

static void add_counted(struct gcmp_text *text, const char *bytes, size_t count) {
    add_word(text, count);
    gcmp_text_add_bytes(text, bytes, count);
}

static void add_records(struct gcmp_text *text, const struct gcmp_resume *resume) {
    for (size_t i = 0; i < resume->count; i++) {
        const struct record *record = &resume->records[i];
        if (record->bytes == NULL) {
            continue; /* one that could not be replaced */
        }
        gcmp_text_add_bytes(text, (const char *)record->key, sizeof record->key);
        add_counted(text, record->baseline, strlen(record->baseline));
        add_counted(text, record->candidate, strlen(record->candidate));
        add_counted(text, record->bytes, record->length_bytes);
    }
}

static bool write_all(int descriptor, const char *bytes, size_t count) {
    while (count > 0) {
        ssize_t written = write(descriptor, bytes, count);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written < 0) {
            return false;
        }
        bytes += written;
        count -= (size_t)written;
    }
    return true;
}

/* Make a file of a new name beside `path`, which a process that may not read there can do as well;
 * -1 without one. */
static int make_temporary(const char *path, char *temporary, size_t room) {
    enum { ATTEMPTS = 100, HOW = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW };
    for (unsigned attempt = 0; attempt < ATTEMPTS; attempt++) {
        snprintf(temporary, room, "%s.%ld-%u.tmp", path, (long)getpid(), attempt);
        int descriptor = open(temporary, HOW, 0666);
        if (descriptor >= 0 || errno != EEXIST) {
            return descriptor;
        }
    }
    return -1;
}

static enum gradcmp_status replace(const char *path, const struct gcmp_text *head,
                                   const struct gcmp_text *body, struct gradcmp_error *error) {
    size_t room = strlen(path) + 64;
    char *temporary = malloc(room);
    if (temporary == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    int descriptor = make_temporary(path, temporary, room);
    if (descriptor < 0) {
        free(temporary);
        return fail_io(path, "write", error);
    }
    bool is_written = write_all(descriptor, head->bytes, head->length_bytes) &&
                      write_all(descriptor, body->bytes, body->length_bytes) &&
                      (fsync(descriptor) == 0 || errno != EIO);
    is_written = close(descriptor) == 0 && is_written;
    enum gradcmp_status status = GRADCMP_OK;
    if (!is_written || rename(temporary, path) != 0) {
        status = fail_io(path, "write", error);
        unlink(temporary);
    }
    free(temporary);
    return status;
}

enum gradcmp_status gcmp_resume_save(const struct gcmp_resume *resume,
                                     struct gradcmp_error *error) {
    struct gcmp_text head = GCMP_TEXT_INIT, body = GCMP_TEXT_INIT;
    unsigned char checksum[CHECKSUM_BYTES];
    add_records(&body, resume);
    checksum_of(body.bytes == NULL ? "" : body.bytes, body.length_bytes, checksum);
    gcmp_text_add_bytes(&head, MARK, MARK_BYTES);
    add_word(&head, body.length_bytes);
    gcmp_text_add_bytes(&head, (const char *)checksum, sizeof checksum);
    enum gradcmp_status status =
        head.failed || body.failed
            ? gcmp_error_set(error, GRADCMP_ERROR_MEMORY, NULL, GRADCMP_NO_OFFSET, "out of memory")
            : replace(resume->real, &head, &body, error);
    gcmp_text_free(&head);
    gcmp_text_free(&body);
    return status;
}
