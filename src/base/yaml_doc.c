/* Builds YAML documents from libyaml's events. */
#include "base/yaml_doc.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml.h>

#include "base/map.h"
#include "base/utf8.h"

enum {
    MAX_DEPTH = 64,
    MAX_NODES = 750000,           /* in the file; some 80 bytes each */
    MAX_EXPANDED_NODES = 4000000, /* with every alias written out */
    MAX_FILE_BYTES = 16 << 20
};

/* A collection being read; its nodes so far (a mapping: key, value, key, value). */
struct level {
    struct gcmp_yaml *node;
    const char *anchor;
    struct gcmp_yaml **nodes;
    size_t count, capacity;
};

struct reader {
    struct gcmp_arena *arena;
    const char *path;
    struct gradcmp_error *error;
    yaml_parser_t parser;
    struct gcmp_map anchors; /* name -> index in `named` */
    struct gcmp_yaml **named;
    size_t named_count, named_capacity;
    struct level levels[MAX_DEPTH];
    size_t depth, node_count;
    struct gcmp_yaml *root;
};

enum gradcmp_status gcmp_yaml_fill(struct gradcmp_error *error, const char *path,
                                   const struct gcmp_yaml *node, const char *format, ...) {
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return gcmp_error_fill(error, GRADCMP_ERROR_CORRUPT, path, GRADCMP_NO_OFFSET, "line %llu: %s",
                           node != NULL ? (unsigned long long)node->line : 1ULL, text);
}

static uint64_t line_of(const yaml_event_t *event) {
    return (uint64_t)event->start_mark.line + 1;
}

static enum gradcmp_status fail_line(struct reader *reader, enum gradcmp_status code, uint64_t line,
                                     const char *text) {
    return gcmp_error_set(reader->error, code, reader->path, GRADCMP_NO_OFFSET, "line %llu: %s",
                          (unsigned long long)line, text);
}

static bool grow(struct gcmp_yaml ***array, size_t count, size_t *capacity) {
    if (count < *capacity) {
        return true;
    }
    size_t wanted = *capacity == 0 ? 8 : 2 * *capacity;
    struct gcmp_yaml **grown = reallocarray(*array, wanted, sizeof(struct gcmp_yaml *));
    if (grown == NULL) {
        return false;
    }
    *array = grown;
    *capacity = wanted;
    return true;
}

/* Let aliases find a finished node; a name given again means the newer node from here on. */
static enum gradcmp_status name_node(struct reader *reader, const char *anchor,
                                     struct gcmp_yaml *node) {
    if (anchor == NULL) {
        return GRADCMP_OK;
    }
    size_t index;
    enum gcmp_map_result result =
        gcmp_map_add(&reader->anchors, anchor, strlen(anchor), reader->named_count, &index);
    if (result == GCMP_MAP_PRESENT) {
        reader->named[index] = node;
        return GRADCMP_OK;
    }
    if (result == GCMP_MAP_NO_MEMORY ||
        !grow(&reader->named, reader->named_count, &reader->named_capacity)) {
        GCMP_FAIL_MEMORY(reader->error);
    }
    reader->named[reader->named_count++] = node;
    return GRADCMP_OK;
}

static enum gradcmp_status copy_anchor(struct reader *reader, const yaml_char_t *anchor,
                                       const char **out) {
    *out = anchor == NULL ? NULL : gcmp_arena_dup(reader->arena, (const char *)anchor);
    if (anchor != NULL && *out == NULL) {
        GCMP_FAIL_MEMORY(reader->error);
    }
    return GRADCMP_OK;
}

/* Put a finished node where it belongs. */
static enum gradcmp_status place(struct reader *reader, struct gcmp_yaml *node, uint64_t line) {
    if (reader->depth == 0) {
        reader->root = node;
        return GRADCMP_OK;
    }
    struct level *level = &reader->levels[reader->depth - 1];
    if (level->node->kind == GCMP_YAML_MAPPING && level->count % 2 == 0 &&
        node->kind != GCMP_YAML_SCALAR) {
        return fail_line(reader, GRADCMP_ERROR_CORRUPT, line, "a key is expected to be text");
    }
    if (!grow(&level->nodes, level->count, &level->capacity)) {
        GCMP_FAIL_MEMORY(reader->error);
    }
    level->nodes[level->count++] = node;
    level->node->expanded_nodes += node->expanded_nodes; /* each is within the budget */
    if (level->node->expanded_nodes > MAX_EXPANDED_NODES) {
        return fail_line(reader, GRADCMP_ERROR_LIMIT, line, "aliases stand for too many nodes");
    }
    return GRADCMP_OK;
}

/* Make a node of so many bytes. */
static enum gradcmp_status new_node(struct reader *reader, size_t node_bytes, uint64_t line,
                                    struct gcmp_yaml **out) {
    if (++reader->node_count > MAX_NODES) {
        return fail_line(reader, GRADCMP_ERROR_LIMIT, line, "the document has too many nodes");
    }
    struct gcmp_yaml *node = gcmp_arena_alloc(reader->arena, 1, node_bytes);
    if (node == NULL) {
        GCMP_FAIL_MEMORY(reader->error);
    }
    node->line = (uint32_t)line; /* no more than bytes, which are 16 Mi */
    node->expanded_nodes = 1;
    *out = node;
    return GRADCMP_OK;
}

static enum gradcmp_status read_scalar(struct reader *reader, const yaml_event_t *event) {
    uint64_t line = line_of(event);
    const char *value = (const char *)event->data.scalar.value;
    if (memchr(value, 0, event->data.scalar.length) != NULL) {
        return fail_line(reader, GRADCMP_ERROR_CORRUPT, line, "a NUL inside text");
    }
    struct gcmp_yaml *node;
    const char *anchor;
    size_t head_bytes = offsetof(struct gcmp_yaml, count);
    GCMP_TRY(new_node(reader, head_bytes + event->data.scalar.length + 1, line, &node));
    char *text = (char *)node + head_bytes; /* ends with a zero of the arena's */
    memcpy(text, value, event->data.scalar.length);
    node->kind = GCMP_YAML_SCALAR;
    node->text = text;
    node->is_plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    GCMP_TRY(copy_anchor(reader, event->data.scalar.anchor, &anchor));
    GCMP_TRY(name_node(reader, anchor, node));
    return place(reader, node, line);
}

static enum gradcmp_status read_alias(struct reader *reader, const yaml_event_t *event) {
    const char *name = (const char *)event->data.alias.anchor;
    size_t index;
    if (!gcmp_map_find(&reader->anchors, name, strlen(name), &index)) {
        return fail_line(reader, GRADCMP_ERROR_CORRUPT, line_of(event),
                         "an alias names no finished node");
    }
    return place(reader, reader->named[index], line_of(event));
}

static enum gradcmp_status open_level(struct reader *reader, const yaml_event_t *event) {
    bool is_mapping = event->type == YAML_MAPPING_START_EVENT;
    if (reader->depth == MAX_DEPTH) {
        return fail_line(reader, GRADCMP_ERROR_LIMIT, line_of(event), "nested more than 64 deep");
    }
    struct gcmp_yaml *node;
    const char *anchor;
    GCMP_TRY(new_node(reader, sizeof *node, line_of(event), &node));
    node->kind = is_mapping ? GCMP_YAML_MAPPING : GCMP_YAML_SEQUENCE;
    GCMP_TRY(copy_anchor(
        reader, is_mapping ? event->data.mapping_start.anchor : event->data.sequence_start.anchor,
        &anchor));
    reader->levels[reader->depth++] = (struct level){.node = node, .anchor = anchor};
    return GRADCMP_OK;
}

static bool is_merge(const struct gcmp_yaml *key) {
    return key->is_plain && strcmp(key->text, "<<") == 0;
}

/* A mapping being put together: the keys that it holds by now. */
struct merge {
    struct reader *reader;
    struct gcmp_yaml *node;
    struct gcmp_map keys;
    size_t capacity;
};

static enum gradcmp_status add_pair(struct merge *merge, struct gcmp_yaml *key,
                                    struct gcmp_yaml *value, bool is_own) {
    enum gcmp_map_result result =
        gcmp_map_add(&merge->keys, key->text, strlen(key->text), merge->node->count, NULL);
    if (result == GCMP_MAP_NO_MEMORY) {
        GCMP_FAIL_MEMORY(merge->reader->error);
    }
    if (result == GCMP_MAP_ADDED) {
        merge->node->keys[merge->node->count] = key;
        merge->node->items[merge->node->count++] = value;
        return GRADCMP_OK;
    }
    return !is_own ? GRADCMP_OK
                   : gcmp_failure(gcmp_yaml_fill(merge->reader->error, merge->reader->path, key,
                                                 "key \"%s\" is there twice", key->text));
}

/* Call visit for each mapping that a merge key's value names; false where it is none. */
static bool merged_mapping(const struct gcmp_yaml *value, size_t index, struct gcmp_yaml **out) {
    if (value->kind == GCMP_YAML_SEQUENCE) {
        *out = index < value->count ? value->items[index] : NULL;
        return *out == NULL || (*out)->kind == GCMP_YAML_MAPPING;
    }
    *out = index == 0 ? (struct gcmp_yaml *)(uintptr_t)value : NULL;
    return value->kind == GCMP_YAML_MAPPING;
}

static enum gradcmp_status add_merged(struct merge *merge, const struct gcmp_yaml *key,
                                      const struct gcmp_yaml *value) {
    struct gcmp_yaml *from;
    for (size_t i = 0;; i++) {
        if (!merged_mapping(value, i, &from)) {
            GCMP_YAML_FAIL(merge->reader->error, merge->reader->path, key,
                           "<< is expected to name mappings");
        }
        if (from == NULL) {
            return GRADCMP_OK;
        }
        for (size_t k = 0; k < from->count; k++) {
            GCMP_TRY(add_pair(merge, from->keys[k], from->items[k], false));
        }
    }
}

static size_t count_pairs(const struct level *level) {
    size_t count = 0;
    struct gcmp_yaml *from;
    for (size_t i = 0; i + 1 < level->count; i += 2) {
        count++;
        for (size_t k = 0; is_merge(level->nodes[i]) &&
                           merged_mapping(level->nodes[i + 1], k, &from) && from != NULL;
             k++) {
            count += from->count;
        }
    }
    return count;
}

static enum gradcmp_status finish_mapping(struct reader *reader, const struct level *level) {
    struct merge merge = {.reader = reader, .node = level->node, .keys = GCMP_MAP_INIT};
    size_t capacity = count_pairs(level);
    reader->node_count += capacity; /* merged pairs take memory as written ones do */
    if (reader->node_count > MAX_NODES) {
        return fail_line(reader, GRADCMP_ERROR_LIMIT, level->node->line,
                         "the document has too many nodes");
    }
    level->node->keys = gcmp_arena_alloc(reader->arena, capacity, sizeof(struct gcmp_yaml *));
    level->node->items = gcmp_arena_alloc(reader->arena, capacity, sizeof(struct gcmp_yaml *));
    if (level->node->keys == NULL || level->node->items == NULL) {
        GCMP_FAIL_MEMORY(reader->error);
    }
    enum gradcmp_status status = GRADCMP_OK;
    for (int own = 1; own >= 0; own--) {
        for (size_t i = 0; i + 1 < level->count && status == GRADCMP_OK; i += 2) {
            struct gcmp_yaml *key = level->nodes[i], *value = level->nodes[i + 1];
            if (own == 1 && !is_merge(key)) {
                status = add_pair(&merge, key, value, true);
            } else if (own == 0 && is_merge(key)) {
                status = add_merged(&merge, key, value);
            }
        }
    }
    gcmp_map_free(&merge.keys);
    return status;
}

static enum gradcmp_status finish_sequence(struct reader *reader, const struct level *level) {
    level->node->items = gcmp_arena_alloc(reader->arena, level->count, sizeof(struct gcmp_yaml *));
    if (level->node->items == NULL) {
        GCMP_FAIL_MEMORY(reader->error);
    }
    if (level->count > 0) {
        memcpy(level->node->items, level->nodes, level->count * sizeof(struct gcmp_yaml *));
    }
    level->node->count = level->count;
    return GRADCMP_OK;
}

static enum gradcmp_status close_level(struct reader *reader) {
    struct level *level = &reader->levels[reader->depth - 1];
    struct gcmp_yaml *node = level->node;
    const char *anchor = level->anchor;
    GCMP_TRY(node->kind == GCMP_YAML_MAPPING ? finish_mapping(reader, level)
                                             : finish_sequence(reader, level));
    free(level->nodes);
    reader->depth--;
    GCMP_TRY(name_node(reader, anchor, node));
    return place(reader, node, node->line);
}

static enum gradcmp_status take_event(struct reader *reader, const yaml_event_t *event) {
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return read_scalar(reader, event);
    case YAML_ALIAS_EVENT:
        return read_alias(reader, event);
    case YAML_MAPPING_START_EVENT:
    case YAML_SEQUENCE_START_EVENT:
        return open_level(reader, event);
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
        return close_level(reader);
    case YAML_DOCUMENT_START_EVENT:
        return reader->root == NULL ? GRADCMP_OK
                                    : fail_line(reader, GRADCMP_ERROR_CORRUPT, line_of(event),
                                                "one document is expected, a second one starts");
    default:
        return GRADCMP_OK;
    }
}

/* The line of a fault; the bytes themselves are no text where libyaml gives an offset alone. */
static uint64_t fault_line(const yaml_parser_t *parser, const char *bytes, size_t length_bytes) {
    if (parser->error != YAML_READER_ERROR) {
        return (uint64_t)parser->problem_mark.line + 1;
    }
    uint64_t line = 1;
    for (size_t i = 0; i < parser->problem_offset && i < length_bytes; i++) {
        line += bytes[i] == '\n';
    }
    return line;
}

static enum gradcmp_status read_events(struct reader *reader, const char *bytes,
                                       size_t length_bytes) {
    for (bool ended = false; !ended;) {
        yaml_event_t event;
        if (!yaml_parser_parse(&reader->parser, &event)) {
            if (reader->parser.error == YAML_MEMORY_ERROR) {
                GCMP_FAIL_MEMORY(reader->error);
            }
            return fail_line(reader, GRADCMP_ERROR_CORRUPT,
                             fault_line(&reader->parser, bytes, length_bytes),
                             reader->parser.problem != NULL ? reader->parser.problem : "not YAML");
        }
        ended = event.type == YAML_STREAM_END_EVENT;
        enum gradcmp_status status = take_event(reader, &event);
        yaml_event_delete(&event);
        GCMP_TRY(status);
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_yaml_parse(struct gcmp_arena *arena, const char *path, const char *bytes,
                                    size_t length_bytes, struct gcmp_yaml **out,
                                    struct gradcmp_error *error) {
    *out = NULL;
    struct reader *reader = calloc(1, sizeof *reader);
    if (reader == NULL || !yaml_parser_initialize(&reader->parser)) {
        free(reader);
        GCMP_FAIL_MEMORY(error);
    }
    reader->arena = arena;
    reader->path = path;
    reader->error = error;
    /* To libyaml a mark of UTF-8 is a column of the first key, which the next is then left of. */
    size_t mark_bytes = gcmp_utf8_mark_bytes(bytes, length_bytes);
    yaml_parser_set_encoding(&reader->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&reader->parser, (const unsigned char *)bytes + mark_bytes,
                                 length_bytes - mark_bytes);
    enum gradcmp_status status = read_events(reader, bytes + mark_bytes, length_bytes - mark_bytes);
    if (status == GRADCMP_OK) {
        *out = reader->root;
    }
    while (reader->depth > 0) {
        free(reader->levels[--reader->depth].nodes);
    }
    free(reader->named);
    gcmp_map_free(&reader->anchors);
    yaml_parser_delete(&reader->parser);
    free(reader);
    return status;
}

static enum gradcmp_status read_whole(int descriptor, const char *path, char *bytes, size_t *length,
                                      struct gradcmp_error *error) {
    size_t done = 0;
    ssize_t got = 1;
    while (got != 0 && done <= MAX_FILE_BYTES) {
        got = read(descriptor, bytes + done, MAX_FILE_BYTES + 1 - done);
        if (got < 0 && errno != EINTR) {
            GCMP_FAIL_AT(error, GRADCMP_ERROR_IO, path, done, "read: %s", strerror(errno));
        }
        done += got > 0 ? (size_t)got : 0;
    }
    if (done > MAX_FILE_BYTES) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_LIMIT, path, GRADCMP_NO_OFFSET,
                     "YAML files of at most 16 MiB are read");
    }
    *length = done;
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_yaml_read(struct gcmp_arena *arena, const char *path,
                                   struct gcmp_yaml **out, struct gradcmp_error *error) {
    *out = NULL;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_IO, path, GRADCMP_NO_OFFSET, "open: %s", strerror(errno));
    }
    struct stat stat;
    size_t length = 0;
    char *bytes = NULL;
    enum gradcmp_status status = GRADCMP_OK;
    if (fstat(descriptor, &stat) != 0 || !S_ISREG(stat.st_mode)) {
        status = gcmp_error_set(error, GRADCMP_ERROR_IO, path, GRADCMP_NO_OFFSET,
                                "expected a regular file");
        goto out;
    }
    bytes = malloc(MAX_FILE_BYTES + 1);
    if (bytes == NULL) {
        status =
            gcmp_error_set(error, GRADCMP_ERROR_MEMORY, NULL, GRADCMP_NO_OFFSET, "out of memory");
        goto out;
    }
    GCMP_TRY_OUT(read_whole(descriptor, path, bytes, &length, error));
    GCMP_TRY_OUT(gcmp_yaml_parse(arena, path, bytes, length, out, error));
out:
    free(bytes);
    close(descriptor);
    return status;
}

const struct gcmp_yaml *gcmp_yaml_get(const struct gcmp_yaml *mapping, const char *key) {
    if (mapping == NULL || mapping->kind != GCMP_YAML_MAPPING) {
        return NULL;
    }
    for (size_t i = 0; i < mapping->count; i++) {
        if (strcmp(mapping->keys[i]->text, key) == 0) {
            return mapping->items[i];
        }
    }
    return NULL;
}

static bool is_plain(const struct gcmp_yaml *node) {
    return node != NULL && node->kind == GCMP_YAML_SCALAR && node->is_plain;
}

static bool is_one_of(const char *text, const char *const words[], size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (strcasecmp(text, words[i]) == 0) {
            return true;
        }
    }
    return false;
}

bool gcmp_yaml_is_null(const struct gcmp_yaml *node) {
    return is_plain(node) && is_one_of(node->text, (const char *const[]){"", "~", "null"}, 3);
}

bool gcmp_yaml_bool(const struct gcmp_yaml *node, bool *out) {
    if (!is_plain(node)) {
        return false;
    }
    *out = is_one_of(node->text, (const char *const[]){"true", "yes", "on"}, 3);
    return *out || is_one_of(node->text, (const char *const[]){"false", "no", "off"}, 3);
}

bool gcmp_yaml_count(const struct gcmp_yaml *node, uint64_t *out) {
    if (!is_plain(node) || node->text[0] == '\0') {
        return false;
    }
    uint64_t value = 0;
    bool after_digit = false;
    for (const char *at = node->text; *at != '\0'; at++) {
        bool is_digit = *at >= '0' && *at <= '9';
        if (!is_digit && !(*at == '_' && after_digit && at[1] != '\0')) {
            return false;
        }
        after_digit = is_digit;
        if (is_digit && (__builtin_mul_overflow(value, 10, &value) ||
                         __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value))) {
            return false;
        }
    }
    *out = value;
    return true;
}

bool gcmp_yaml_real(const struct gcmp_yaml *node, double *out) {
    if (!is_plain(node) || strspn(node->text, "0123456789+-.eE") != strlen(node->text)) {
        return false;
    }
    locale_t numeric = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    if (numeric == (locale_t)0) {
        return false;
    }
    char *end;
    *out = strtod_l(node->text, &end, numeric);
    freelocale(numeric);
    return end != node->text && *end == '\0' && isfinite(*out);
}

/* The number of insertions, deletions and substitutions between two short words. */
static size_t distance(const char *a, const char *b) {
    enum { LONGEST = 40 };
    size_t row[LONGEST + 1], width = strlen(b);
    if (width > LONGEST || strlen(a) > LONGEST) {
        return SIZE_MAX;
    }
    for (size_t j = 0; j <= width; j++) {
        row[j] = j;
    }
    for (size_t i = 1; a[i - 1] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= width; j++) {
            size_t above = row[j], best = diagonal + (a[i - 1] != b[j - 1]);
            best = above + 1 < best ? above + 1 : best;
            row[j] = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            diagonal = above;
        }
    }
    return row[width];
}

static enum gradcmp_status refuse_key(const struct gcmp_yaml *key, const char *path,
                                      const char *what, const char *const known[],
                                      struct gradcmp_error *error) {
    const char *nearest = NULL;
    size_t least = 3;
    for (size_t i = 0; known[i] != NULL; i++) {
        size_t far = distance(key->text, known[i]);
        if (far < least) {
            least = far;
            nearest = known[i];
        }
    }
    if (nearest != NULL) {
        GCMP_YAML_FAIL(error, path, key, "%s: unknown key \"%.80s\"; did you mean \"%s\"?", what,
                       key->text, nearest);
    }
    GCMP_YAML_FAIL(error, path, key, "%s: unknown key \"%.80s\"", what, key->text);
}

enum gradcmp_status gcmp_yaml_check_keys(const struct gcmp_yaml *node, const char *path,
                                         const char *what, const char *const known[],
                                         struct gradcmp_error *error) {
    if (node == NULL || node->kind != GCMP_YAML_MAPPING) {
        GCMP_YAML_FAIL(error, path, node, "%s: expected a mapping", what);
    }
    for (size_t i = 0; i < node->count; i++) {
        size_t k = 0;
        while (known[k] != NULL && strcmp(known[k], node->keys[i]->text) != 0) {
            k++;
        }
        if (known[k] == NULL) {
            return refuse_key(node->keys[i], path, what, known, error);
        }
    }
    return GRADCMP_OK;
}
