/* Checkpoints of torch.save for tests: samples put together element by element, where pieces may be
 * copies, share records, or be flat ranges; and files written here. */
#ifndef GCMP_TORCH_SAVE_TOOLS_H
#define GCMP_TORCH_SAVE_TOOLS_H

#include "formats/sample_tools.h"
#include "formats/torch_save.h"
#include "formats/zip_writer.h"

/* --- samples --- */

static inline bool is_flat(const struct gradcmp_stored *stored) {
    return stored->model_shape != NULL;
}

/* Put the pieces into the whole, forwards or backwards: copies must not make a difference. */
static inline float *gather_pieces(const struct opened *opened, const struct gradcmp_stored *stored,
                                   bool backwards, uint64_t *count) {
    uint64_t covered = 0;
    *count = 1;
    for (unsigned d = 0; d < stored->ndim; d++) {
        *count *= stored->shape[d];
    }
    float *whole = calloc(*count + 1, sizeof *whole);
    for (size_t i = 0; i < stored->piece_count; i++) {
        size_t index = backwards ? stored->piece_count - 1 - i : i;
        struct looked_up found;
        struct gradcmp_error error = {0};
        assert_int_equal(look_up(opened, stored, &stored->pieces[index], &found, &error),
                         GRADCMP_OK);
        place_piece(stored, &stored->pieces[index], &found, false, whole, &covered);
        free(found.bytes);
    }
    assert_true(*count == 0 ? covered == 0 : covered > 0 && covered % *count == 0);
    return whole;
}

static inline void write_shape(const struct gradcmp_stored *stored, char *text) {
    unsigned ndim = is_flat(stored) ? stored->model_ndim : stored->ndim;
    const uint64_t *shape = is_flat(stored) ? stored->model_shape : stored->shape;
    text[0] = '\0';
    for (unsigned d = 0; d < ndim; d++) {
        sprintf(text + strlen(text), "%s%llu", d == 0 ? "" : "x", (unsigned long long)shape[d]);
    }
    if (ndim == 0) {
        strcpy(text, "-");
    }
}

/* A flat piece is a range of [1, .., 1, elements], and inside of it. */
static inline void check_flat(const struct gradcmp_stored *stored) {
    uint64_t elems = 1;
    if (!is_flat(stored)) {
        return;
    }
    assert_int_equal(stored->ndim, stored->model_ndim + 1);
    for (unsigned d = 0; d < stored->model_ndim; d++) {
        assert_int_equal(stored->shape[d], 1);
        elems *= stored->model_shape[d];
    }
    assert_int_equal(stored->shape[stored->model_ndim], elems);
}

static inline void check_line(const struct opened *opened, const char *state, const char *name,
                              const char *shape, const char *hash) {
    const struct gradcmp_stored *stored = find_stored(opened, name, state);
    char found_shape[128], found_hash[80];
    if (stored == NULL) {
        fail_msg("no %s of %s", state, name);
    }
    check_flat(stored);
    write_shape(stored, found_shape);
    assert_string_equal(found_shape, shape);
    for (int backwards = 0; backwards < 2; backwards++) {
        uint64_t count;
        float *values = gather_pieces(opened, stored, backwards == 1, &count);
        hash_floats(values, count, found_hash);
        if (strcmp(found_hash, hash) != 0) {
            fail_msg("%s of %s: other values than the writer had", state, name);
        }
        free(values);
    }
}

static inline size_t count_state(const struct opened *opened, const char *state) {
    size_t count = 0;
    for (size_t i = 0; i < opened->catalogue.stored_count; i++) {
        const char *found = opened->catalogue.stored[i].state;
        count += found != NULL && strcmp(found, state) == 0;
    }
    return count;
}

/* Compare every line of a truth file, "name 2x3 sha256" (a scalar has "-"), with the tensors of a
 * state; `others` more of that state may be there. */
static inline void check_state(const struct gradcmp_format *format, const char *path,
                               const char *state, const char *truth, size_t others) {
    struct opened *opened = open_good(format, path);
    FILE *file = fopen(truth, "r");
    char name[256], shape[64], hash[80];
    size_t lines = 0;
    assert_non_null(file);
    while (fscanf(file, "%255s %63s %79s", name, shape, hash) == 3) {
        check_line(opened, state, name, shape, hash);
        lines++;
    }
    fclose(file);
    assert_true(lines > 0);
    assert_int_equal(count_state(opened, state), lines + others);
    close_format(opened);
}

/* --- files made here --- */

/* Pieces of pickles in protocol 0, which is text: "t" closes the tuple that "(" opened, "R" calls,
 * "Q" makes a persistent id, "d" closes a dict and "l" a list. */
#define PT_STORAGE(class, key, count) "(Vstorage\nctorch\n" class "\nV" key "\nVcpu\nI" count "\ntQ"
#define PT_TENSOR(storage, offset, size, stride)                                                   \
    "ctorch._utils\n_rebuild_tensor_v2\n(" storage "I" offset "\n" size stride                     \
    "I00\nccollections\nOrderedDict\n)RtR"
#define PT_FLOATS       PT_STORAGE("FloatStorage", "0", "12") /* data/0 is 48 bytes */
#define PT_VECTOR(n)    PT_TENSOR(PT_FLOATS, "0", "(I" n "\nt", "(I1\nt")
#define PT_MATRIX(r, c) PT_TENSOR(PT_FLOATS, "0", "(I" r "\nI" c "\nt", "(I" c "\nI1\nt")
#define PT_SCALAR       PT_TENSOR(PT_FLOATS, "1", "(t", "(t")
#define PT_TEXT(text)   "V" text "\n"
#define PT_INT(number)  "I" number "\n"
#define PT_DICT(items)  "(" items "d"
#define PT_LIST(items)  "(" items "l"
/* {"state": {...}, "param_groups": [...]} */
#define PT_OPTIMIZER(state, groups)                                                                \
    PT_DICT(PT_TEXT("state") PT_DICT(state) PT_TEXT("param_groups") PT_LIST(groups))
#define PT_GROUP(params) PT_DICT(PT_TEXT("params") PT_LIST(params))

/* The floats 0.5, 1.5, 2.5, ... */
static inline void fill_floats(float *values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        values[i] = 0.5f + (float)i;
    }
}

/* Write an archive of a pickle and one record data/0 of twelve floats. */
static inline void write_pt_order(const char *temp, const char *name, const char *pickle,
                                  const char *byteorder) {
    struct zip_writer *writer = writer_make();
    float values[12];
    char *whole = malloc(strlen(pickle) + 2);
    sprintf(whole, "%s.", pickle);
    fill_floats(values, 12);
    put_record(writer, "archive/data.pkl", whole, strlen(whole));
    put_record(writer, "archive/byteorder", byteorder, strlen(byteorder));
    put_record(writer, "archive/data/0", values, sizeof values);
    put_end(writer);
    temp_file(temp, name, writer->bytes, writer->count);
    writer_free(writer);
    free(whole);
}

static inline void write_pt(const char *temp, const char *name, const char *pickle) {
    write_pt_order(temp, name, pickle, "little");
}

/* Write one file, file.pt, and open it. */
static inline struct opened *open_pickle(const char *temp, const char *pickle) {
    write_pt(temp, "file.pt", pickle);
    char *path = temp_path(temp, "file.pt");
    struct opened *opened = open_good(&gcmp_format_torch_save, path);
    free(path);
    return opened;
}

/* Write one file, file.pt, which is refused. */
static inline void check_pickle_refused(const char *temp, const char *pickle,
                                        enum gradcmp_status code, const char *message) {
    write_pt(temp, "file.pt", pickle);
    char *path = temp_path(temp, "file.pt");
    check_refused_open(&gcmp_format_torch_save, path, code, ANY_OFFSET, "file.pt", message);
    free(path);
}

#endif
