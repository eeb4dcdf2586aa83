/* Reads and writes files of fingerprints.
 *
 * Limits: MAX_FILE_BYTES; those of json_text.c. */
#include "bits/hash_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "base/json_text.h"
#include "report/json.h"

/* Schema 1 spelled the paths of keys with slashes, and of texts that read as numbers, otherwise;
 * schema 2 those of hyperparameters that are kept for each group of ranks. */
enum { MAX_FILE_BYTES = 1 << 30, DIGEST_DIGITS = 32, SCHEMA = 3 };
static const char KIND[] = "gradcmp bits fingerprints";

static const char *const list_names[] = {"entries", "of_layout"};

static const struct gcmp_bits_items *list_of(const struct gcmp_bits_hashes *hashes, size_t list) {
    return list == 0 ? &hashes->items : &hashes->of_layout;
}

static void add_line(XXH3_state_t *state, const char *text) {
    XXH3_128bits_update(state, text, strlen(text) + 1);
}

/* The checksum of all that the file says. */
static bool checksum(const struct gcmp_bits_hashes *hashes, char out[DIGEST_DIGITS + 1]) {
    XXH3_state_t *state = XXH3_createState();
    if (state == NULL) {
        return false;
    }
    XXH3_128bits_reset(state);
    add_line(state, hashes->layout);
    for (size_t list = 0; list < 2; list++) {
        const struct gcmp_bits_items *items = list_of(hashes, list);
        add_line(state, list_names[list]);
        for (size_t i = 0; i < items->count; i++) {
            const struct gcmp_bits_item *item = &items->list[i];
            add_line(state, gcmp_bits_group_name((enum gcmp_bits_group)item->group));
            add_line(state, item->path);
            add_line(state, item->type);
            XXH3_128bits_update(state, item->bytes, item->length_bytes);
        }
    }
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state));
    for (size_t i = 0; i < sizeof canonical.digest; i++) {
        snprintf(out + 2 * i, 3, "%02x", canonical.digest[i]);
    }
    XXH3_freeState(state);
    return true;
}

/* --- writing --- */

static int write_bytes(void *user, const char *bytes, size_t count) {
    return fwrite(bytes, 1, count, user) == count ? 0 : 1;
}

static void emit_list(struct gcmp_emitter *json, const struct gcmp_bits_hashes *hashes,
                      size_t list) {
    const struct gcmp_bits_items *items = list_of(hashes, list);
    gcmp_emit_open_array(json, list_names[list], true);
    for (size_t i = 0; i < items->count; i++) {
        const struct gcmp_bits_item *item = &items->list[i];
        gcmp_emit_open_object(json, NULL, false);
        gcmp_emit_text(json, "group", gcmp_bits_group_name((enum gcmp_bits_group)item->group));
        gcmp_emit_text(json, "path", item->path);
        gcmp_emit_text(json, "type", item->type);
        gcmp_emit_text(json, "xxh3", (const char *)item->bytes);
        gcmp_emit_close(json);
        gcmp_out_drain(json->out);
    }
    gcmp_emit_close(json);
}

static enum gradcmp_status write_document(FILE *file, const struct gcmp_bits_hashes *hashes,
                                          struct gradcmp_error *error) {
    char own[DIGEST_DIGITS + 1];
    struct gcmp_out out;
    if (!checksum(hashes, own)) {
        GCMP_FAIL_MEMORY(error);
    }
    gcmp_out_begin(&out, write_bytes, file);
    struct gcmp_emitter json = {.out = &out};
    gcmp_emit_open_object(&json, NULL, true);
    gcmp_emit_integer(&json, "schema", SCHEMA);
    gcmp_emit_text(&json, "kind", KIND);
    gcmp_emit_text(&json, "version", gradcmp_version());
    gcmp_emit_text(&json, "layout", hashes->layout);
    emit_list(&json, hashes, 0);
    emit_list(&json, hashes, 1);
    gcmp_emit_text(&json, "checksum", own);
    gcmp_emit_close(&json);
    return gcmp_out_end(&out, error);
}

static enum gradcmp_status fail_io(const char *path, const char *what,
                                   struct gradcmp_error *error) {
    char reason[128];
    const char *text = strerror_r(errno, reason, sizeof reason);
    return gcmp_error_set(error, GRADCMP_ERROR_IO, path, GRADCMP_NO_OFFSET, "cannot %s: %s", what,
                          text);
}

static enum gradcmp_status write_temporary(int descriptor, const char *path,
                                           const struct gcmp_bits_hashes *hashes,
                                           struct gradcmp_error *error) {
    FILE *file = fdopen(descriptor, "w");
    if (file == NULL) {
        close(descriptor);
        return fail_io(path, "write", error);
    }
    enum gradcmp_status status = write_document(file, hashes, error);
    /* EINVAL, EROFS: what cannot be flushed. */
    if (status == GRADCMP_OK &&
        (fflush(file) != 0 || (fsync(descriptor) != 0 && errno != EINVAL && errno != EROFS))) {
        status = fail_io(path, "write", error);
    }
    if (fclose(file) != 0 && status == GRADCMP_OK) {
        status = fail_io(path, "write", error);
    }
    return status;
}

/* Make a new file beside `path`, only to be written; its name goes into `temporary`. */
static int open_temporary(const char *path, char *temporary, size_t capacity) {
    enum { ATTEMPTS = 100 };
    int descriptor = -1;
    for (unsigned attempt = 0; attempt < ATTEMPTS && descriptor < 0; attempt++) {
        snprintf(temporary, capacity, "%s.%ld-%u.tmp", path, (long)getpid(), attempt);
        descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (descriptor < 0 && errno != EEXIST) {
            break;
        }
    }
    return descriptor;
}

enum gradcmp_status gcmp_bits_hashes_write(const char *path, struct gcmp_bits_hashes *hashes,
                                           struct gradcmp_error *error) {
    enum { ENDING_BYTES = 64 };
    size_t bytes = strlen(path) + ENDING_BYTES;
    char *temporary = malloc(bytes);
    if (temporary == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    int descriptor = open_temporary(path, temporary, bytes);
    if (descriptor < 0) {
        free(temporary);
        return fail_io(path, "write", error);
    }
    enum gradcmp_status status = write_temporary(descriptor, path, hashes, error);
    if (status == GRADCMP_OK && rename(temporary, path) != 0) {
        status = fail_io(path, "write", error);
    }
    if (status != GRADCMP_OK) {
        unlink(temporary);
    }
    free(temporary);
    gcmp_error_add_path(status == GRADCMP_OK ? NULL : error, path);
    return status;
}

/* --- reading --- */

static enum gradcmp_status fail_foreign(const char *path, const char *what,
                                        struct gradcmp_error *error) {
    return gcmp_error_set(error, GRADCMP_ERROR_CORRUPT, path, GRADCMP_NO_OFFSET,
                          "is no whole file of fingerprints that gradcmp bits --hash wrote: %s",
                          what);
}

static const char *text_in(const json_t *object, const char *key) {
    return json_string_value(json_object_get(object, key));
}

static bool find_group(const char *name, uint8_t *group) {
    for (unsigned i = 0; name != NULL && i < GCMP_BITS_GROUPS; i++) {
        if (strcmp(gcmp_bits_group_name((enum gcmp_bits_group)i), name) == 0) {
            *group = (uint8_t)i;
            return true;
        }
    }
    return false;
}

static enum gradcmp_status take_entry(const json_t *entry, const char *path,
                                      struct gcmp_arena *arena, struct gcmp_bits_items *out,
                                      struct gradcmp_error *error) {
    const char *name = text_in(entry, "path"), *type = text_in(entry, "type");
    const char *digest = text_in(entry, "xxh3");
    struct gcmp_bits_item item = {.kind = GCMP_BITS_VALUE};
    if (name == NULL || type == NULL || digest == NULL || strlen(digest) != DIGEST_DIGITS ||
        !find_group(text_in(entry, "group"), &item.group)) {
        return fail_foreign(path, "an entry without group, path, type or fingerprint", error);
    }
    item.path = gcmp_arena_dup(arena, name);
    item.type = gcmp_arena_dup(arena, type);
    item.bytes = (const unsigned char *)gcmp_arena_dup(arena, digest);
    item.length_bytes = DIGEST_DIGITS;
    if (item.path == NULL || item.type == NULL || item.bytes == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    return gcmp_bits_add(out, &item, error);
}

/* A file while it is read. */
struct reader {
    const char *path;
    struct gcmp_arena *arena;
    struct gcmp_bits_hashes *out;
    char *checksum;    /* as the file states it; NULL: not yet */
    json_int_t schema; /* 0: none */
    bool has_kind, has_list[2];
    struct gradcmp_error *error;
};

/* What is wrong as JSON is no file of ours: that says more than the place. */
static enum gradcmp_status reword(const struct reader *reader, enum gradcmp_status status) {
    return status == GRADCMP_ERROR_CORRUPT ? fail_foreign(reader->path, "no JSON", reader->error)
                                           : status;
}

static enum gradcmp_status walk_entries(struct reader *reader, struct gcmp_json_parts *entries,
                                        struct gcmp_bits_items *items) {
    for (;;) {
        bool found;
        json_t *entry;
        GCMP_TRY(reword(reader, gcmp_json_parts_next(entries, &found, reader->error)));
        if (!found) {
            return GRADCMP_OK;
        }
        GCMP_TRY(reword(reader, gcmp_json_parts_value(entries, &entry, reader->error)));
        enum gradcmp_status status =
            take_entry(entry, reader->path, reader->arena, items, reader->error);
        json_decref(entry);
        GCMP_TRY(status);
    }
}

/* Read the list that is the value of the member at hand. */
static enum gradcmp_status take_list(struct reader *reader, struct gcmp_json_parts *members,
                                     size_t list) {
    struct gcmp_json_parts entries;
    if (!gcmp_json_begins(members->text, members->at, '[')) {
        return fail_foreign(reader->path, list_names[list], reader->error);
    }
    enum gradcmp_status status =
        gcmp_json_parts_open(&entries, members->text, members->at, UINT32_MAX, reader->error);
    if (status == GRADCMP_OK) {
        status = walk_entries(reader, &entries,
                              list == 0 ? &reader->out->items : &reader->out->of_layout);
    }
    members->at = entries.at;
    gcmp_json_parts_close(&entries);
    reader->has_list[list] = true;
    return status;
}

static enum gradcmp_status take_text(const struct reader *reader, const json_t *value,
                                     char **text) {
    if (json_is_string(value)) {
        *text = gcmp_arena_dup(reader->arena, json_string_value(value));
        if (*text == NULL) {
            GCMP_FAIL_MEMORY(reader->error);
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status take_member(struct reader *reader, struct gcmp_json_parts *members) {
    const char *name = members->name;
    for (size_t list = 0; list < 2; list++) {
        if (strcmp(name, list_names[list]) == 0) {
            return take_list(reader, members, list);
        }
    }
    json_t *value;
    enum gradcmp_status status = GRADCMP_OK;
    GCMP_TRY(reword(reader, gcmp_json_parts_value(members, &value, reader->error)));
    if (strcmp(name, "schema") == 0) {
        reader->schema = json_integer_value(value);
    } else if (strcmp(name, "kind") == 0) {
        reader->has_kind = json_is_string(value) && strcmp(json_string_value(value), KIND) == 0;
    } else if (strcmp(name, "layout") == 0) {
        char *layout = NULL;
        status = take_text(reader, value, &layout);
        reader->out->layout = layout;
    } else if (strcmp(name, "checksum") == 0) {
        status = take_text(reader, value, &reader->checksum);
    }
    json_decref(value);
    return status;
}

static enum gradcmp_status walk_members(struct reader *reader, struct gcmp_json_parts *members) {
    for (;;) {
        bool found;
        GCMP_TRY(reword(reader, gcmp_json_parts_next(members, &found, reader->error)));
        if (!found) {
            return reword(reader, gcmp_json_parts_end(members, reader->error));
        }
        GCMP_TRY(take_member(reader, members));
    }
}

/* Check what was read against what has to be there. */
static enum gradcmp_status check_document(const struct reader *reader) {
    char own[DIGEST_DIGITS + 1];
    if (reader->has_kind && reader->schema > 0 && reader->schema != SCHEMA) {
        return gcmp_error_set(reader->error, GRADCMP_ERROR_UNSUPPORTED, reader->path,
                              GRADCMP_NO_OFFSET,
                              "fingerprints of schema %lld, where this program spells paths by "
                              "schema %d: write them again, or use the version that wrote them",
                              (long long)reader->schema, SCHEMA);
    }
    if (!reader->has_kind || reader->schema != SCHEMA || reader->out->layout == NULL ||
        reader->checksum == NULL) {
        return fail_foreign(reader->path, "kind, schema, layout or checksum", reader->error);
    }
    for (size_t list = 0; list < 2; list++) {
        if (!reader->has_list[list]) {
            return fail_foreign(reader->path, list_names[list], reader->error);
        }
    }
    if (!checksum(reader->out, own)) {
        GCMP_FAIL_MEMORY(reader->error);
    }
    return strcmp(own, reader->checksum) == 0
               ? GRADCMP_OK
               : fail_foreign(reader->path, "its checksum differs: it was changed or is damaged",
                              reader->error);
}

/* Entry by entry: as one document, the file would take many times its size. */
static enum gradcmp_status take_document(struct reader *reader, const struct gcmp_json_text *text) {
    struct gcmp_json_parts members;
    if (!gcmp_json_begins(text, 0, '{')) {
        return fail_foreign(reader->path, "no JSON object", reader->error);
    }
    enum gradcmp_status status = gcmp_json_parts_open(&members, text, 0, UINT32_MAX, reader->error);
    if (status == GRADCMP_OK) {
        status = walk_members(reader, &members);
    }
    gcmp_json_parts_close(&members);
    GCMP_TRY(status);
    return check_document(reader);
}

static enum gradcmp_status slurp(const char *path, char **bytes, size_t *count,
                                 struct gradcmp_error *error) {
    struct stat info;
    int descriptor = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "rb");
    if (file == NULL) {
        if (descriptor >= 0) {
            close(descriptor);
        }
        return fail_io(path, "read", error);
    }
    enum gradcmp_status status = GRADCMP_OK;
    if (fstat(fileno(file), &info) != 0 || !S_ISREG(info.st_mode)) {
        status = fail_foreign(path, "not a regular file", error);
    } else if (info.st_size > MAX_FILE_BYTES) {
        status = gcmp_error_set(error, GRADCMP_ERROR_LIMIT, path, GRADCMP_NO_OFFSET,
                                "a file of fingerprints of more than 1 GiB");
    } else {
        *count = (size_t)info.st_size;
        *bytes = malloc(*count + 1);
        if (*bytes == NULL) {
            status = gcmp_error_set(error, GRADCMP_ERROR_MEMORY, NULL, GRADCMP_NO_OFFSET,
                                    "out of memory");
        } else if (fread(*bytes, 1, *count, file) != *count) {
            status = fail_foreign(path, "it became shorter", error);
        }
    }
    fclose(file);
    return status;
}

enum gradcmp_status gcmp_bits_hashes_read(const char *path, struct gcmp_arena *arena,
                                          struct gcmp_bits_hashes *out,
                                          struct gradcmp_error *error) {
    char *bytes = NULL;
    size_t count = 0;
    enum gradcmp_status status = slurp(path, &bytes, &count, error);
    if (status == GRADCMP_OK) {
        struct gcmp_json_text text = {bytes, count, path, 0};
        struct reader reader = {.path = path, .arena = arena, .out = out, .error = error};
        status = take_document(&reader, &text);
    }
    free(bytes);
    gcmp_error_add_path(status == GRADCMP_OK ? NULL : error, path);
    return status;
}
