/* Ways to damage a valid file: each value of a pickle or of a JSON text replaced by one of another
 * kind, and bytes of what a zip archive says of itself. A damaged file stays a pickle, a JSON text
 * or nearly an archive, so that the reader comes as far as to what it makes of the value. */
#ifndef GCMP_DAMAGE_TOOLS_H
#define GCMP_DAMAGE_TOOLS_H

#include "formats/zip_writer.h"

#include "base/arena.h"
#include "base/dir.h"
#include "formats/zip.h"

struct bytes {
    unsigned char *at;
    size_t count;
};

static inline struct bytes bytes_read(const char *path) {
    struct bytes bytes = {NULL, 0};
    FILE *file = fopen(path, "rb");
    struct stat info;
    assert_non_null(file);
    assert_int_equal(fstat(fileno(file), &info), 0);
    bytes.count = (size_t)info.st_size;
    bytes.at = malloc(bytes.count + 1);
    assert_int_equal(fread(bytes.at, 1, bytes.count, file), bytes.count);
    assert_int_equal(fclose(file), 0);
    return bytes;
}

/* A place of a text at which one thing is replaced. */
struct place {
    size_t at, end; /* what is replaced; at == end: something is inserted */
};

struct places {
    struct place *list;
    size_t count, capacity;
};

static inline void places_add(struct places *places, size_t at, size_t end) {
    if (places->count == places->capacity) {
        places->capacity = places->capacity == 0 ? 256 : 2 * places->capacity;
        places->list = realloc(places->list, places->capacity * sizeof *places->list);
        assert_non_null(places->list);
    }
    places->list[places->count++] = (struct place){at, end};
}

struct replacement {
    const char *text;
    size_t count;
};
#define REPLACEMENT(text)                                                                          \
    { (text), sizeof(text) - 1 }

static inline struct bytes replace(struct bytes whole, struct place place,
                                   struct replacement with) {
    struct bytes made = {malloc(whole.count + with.count + 1), 0};
    memcpy(made.at, whole.at, place.at);
    memcpy(made.at + place.at, with.text, with.count);
    memcpy(made.at + place.at + with.count, whole.at + place.end, whole.count - place.end);
    made.count = whole.count - (place.end - place.at) + with.count;
    return made;
}

/* --- pickles --- */

/* "0" takes the value away that stands before it; then another is put there. */
static const struct replacement pickle_values[] = {
    REPLACEMENT("0N"),          REPLACEMENT("0K\x07"),
    REPLACEMENT("0X\1\0\0\0x"), REPLACEMENT("0J\xff\xff\xff\xff"),
    REPLACEMENT("0]"),          REPLACEMENT("0\x8a\x08\0\0\0\0\0\0\0\x40"),
    REPLACEMENT("0}"),          REPLACEMENT("0G\x3f\xe0\0\0\0\0\0\0"),
    REPLACEMENT("0)"),          REPLACEMENT("0\x88"),
    REPLACEMENT("0K\x00"),
};

static inline uint64_t little(const unsigned char *at, unsigned count) {
    uint64_t value = 0;
    for (unsigned i = 0; i < count; i++) {
        value |= (uint64_t)at[i] << (8 * i);
    }
    return value;
}

static inline bool is_one_of(unsigned char byte, const char *set) {
    return byte != '\0' && strchr(set, byte) != NULL;
}

/* Bytes of an opcode and what belongs to it; 0 for one that torch does not write. */
static inline size_t opcode_bytes(struct bytes pickle, size_t at) {
    const unsigned char *op = pickle.at + at;
    size_t left = pickle.count - at;
    const unsigned char *line = left < 2 ? NULL : memchr(op, '\n', left);
    if (is_one_of(*op, "KqhCU") || *op == 0x80 || *op == 0x8a || *op == 0x8c) {
        bool has_length = *op == 'C' || *op == 'U' || *op == 0x8a || *op == 0x8c;
        return left < 2 ? 0 : 2 + (has_length ? (size_t)op[1] : 0);
    }
    if (*op == 'M') {
        return 3;
    }
    if (is_one_of(*op, "JrjXBT")) {
        bool has_length = *op == 'X' || *op == 'B' || *op == 'T';
        return left < 5 ? 0 : 5 + (has_length ? (size_t)little(op + 1, 4) : 0);
    }
    if (*op == 'G' || *op == 0x95) {
        return 9;
    }
    if (*op == 'c' && line != NULL) {
        line = memchr(line + 1, '\n', left - (size_t)(line + 1 - op));
    }
    if (is_one_of(*op, "cILFSVgp")) {
        return line == NULL ? 0 : (size_t)(line - op) + 1;
    }
    return 1;
}

static inline bool leaves_value(unsigned char op) {
    return is_one_of(op, "KMJGXBTCUNtRQbcusaejhILFSV)]}") || op == 0x8a || op == 0x8c ||
           op == 0x81 || op == 0x93 || (op >= 0x85 && op <= 0x89);
}

static inline bool keeps_value(unsigned char op) {
    return op == 'q' || op == 'r' || op == 'p' || op == 0x94;
}

/* Find where values are complete in the first `pickles` pickles of a text. */
static inline void pickle_places(struct bytes text, unsigned pickles, struct places *places) {
    size_t at = 0;
    while (pickles > 0 && at < text.count) {
        size_t next = at + opcode_bytes(text, at);
        bool is_value = leaves_value(text.at[at]);
        pickles -= text.at[at] == '.';
        assert_true(next > at && next <= text.count);
        at = next;
        if (is_value && at < text.count && keeps_value(text.at[at])) {
            at += opcode_bytes(text, at);
        }
        if (is_value) {
            places_add(places, at, at);
        }
    }
    assert_int_equal(pickles, 0);
}

/* --- archives --- */

struct archive {
    struct gcmp_dir *dir;
    struct gcmp_arena arena;
    struct gcmp_zip zip;
    size_t pickle; /* record */
};

static inline void archive_open(struct archive *archive, const char *path) {
    struct gradcmp_error error = {0};
    uint32_t file;
    const char *name = strrchr(path, '/') + 1;
    char *folder = strndup(path, (size_t)(name - path));
    memset(archive, 0, sizeof *archive);
    assert_int_equal(gcmp_dir_open(folder, &archive->dir, &error), GRADCMP_OK);
    assert_int_equal(gcmp_dir_add(archive->dir, name, strlen(name), &file, &error), GRADCMP_OK);
    assert_int_equal(gcmp_zip_open(archive->dir, file, 0, gcmp_dir_file_bytes(archive->dir, file),
                                   &archive->arena, &archive->zip, &error),
                     GRADCMP_OK);
    const struct gcmp_zip_record *record = gcmp_zip_find(&archive->zip, "data.pkl");
    assert_non_null(record);
    archive->pickle = (size_t)(record - archive->zip.records);
    free(folder);
}

static inline void archive_close(struct archive *archive) {
    gcmp_arena_free(&archive->arena);
    gcmp_dir_close(archive->dir);
}

/* The archive with another pickle in it. */
static inline struct bytes archive_write(const struct archive *archive, struct bytes whole,
                                         struct bytes pickle) {
    struct zip_writer *writer = writer_make();
    for (size_t i = 0; i < archive->zip.count; i++) {
        const struct gcmp_zip_record *record = &archive->zip.records[i];
        bool is_pickle = i == archive->pickle;
        char name[64];
        snprintf(name, sizeof name, "a/%s", record->name);
        put_record(writer, name, is_pickle ? pickle.at : whole.at + record->offset_bytes,
                   is_pickle ? pickle.count : (size_t)record->length_bytes);
    }
    put_end(writer);
    struct bytes made = {writer->bytes, writer->count};
    writer->bytes = NULL;
    writer_free(writer);
    return made;
}

/* Bytes of the directory, of the end records, and of the first local header. */
static inline void zip_places(struct bytes whole, struct places *places) {
    size_t directory = (size_t)little(whole.at + whole.count - 6, 4);
    assert_true(directory < whole.count);
    for (size_t at = 0; at < whole.count; at++) {
        if (at < 30 || at >= directory) {
            places_add(places, at, at + 1);
        }
    }
}

static const struct replacement zip_values[] = {
    REPLACEMENT("\0"), REPLACEMENT("\xff"), REPLACEMENT("\x01"), REPLACEMENT("\x7f"),
    REPLACEMENT("/"),  REPLACEMENT("\x08"), REPLACEMENT(""),
};

/* --- JSON --- */

static const struct replacement json_values[] = {
    REPLACEMENT("null"), REPLACEMENT("-1"),   REPLACEMENT("\"x\""),
    REPLACEMENT("[]"),   REPLACEMENT("1.5"),  REPLACEMENT("4611686018427387904"),
    REPLACEMENT("{}"),   REPLACEMENT("true"), REPLACEMENT("[0]"),
    REPLACEMENT("0"),
};

static inline size_t json_string_end(struct bytes text, size_t at) {
    for (at++; text.at[at] != '"'; at++) {
        at += text.at[at] == '\\';
    }
    return at + 1;
}

/* Find the values, names of members among them, in [from, to) of a text. */
static inline void json_places(struct bytes text, size_t from, size_t to, struct places *places) {
    size_t open[64], depth = 0;
    for (size_t at = from; at < to;) {
        unsigned char byte = text.at[at];
        size_t end = at + 1;
        if (byte == '"') {
            end = json_string_end(text, at);
            places_add(places, at, end);
        } else if (byte == '{' || byte == '[') {
            assert_true(depth < sizeof open / sizeof *open);
            open[depth++] = at;
        } else if (byte == '}' || byte == ']') {
            assert_true(depth > 0);
            places_add(places, open[--depth], end);
        } else if (!is_one_of(byte, " \t\r\n,:")) {
            while (end < to && !is_one_of(text.at[end], " \t\r\n,:]}")) {
                end++;
            }
            places_add(places, at, end);
        }
        at = end;
    }
    assert_int_equal(depth, 0);
}

#endif
