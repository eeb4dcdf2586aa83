/* gradcmp-h5 write: makes an HDF5 file on descriptor 1 of the stream on descriptor 0
 * (formats/hdf5_wire_write.h), chunk by chunk, under zstd.
 *
 * Elements come in row-major order, so chunks are runs of it: whole rows of the axes behind, as
 * many as MAX_CHUNK_BYTES hold, and one element of the axes before. */
#include "h5helper/writer.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zstd.h>

#include "base/checked.h"
#include "formats/hdf5_wire_write.h"
#include "h5helper/helper.h"

enum { MAX_CHUNK_BYTES = 1 << 20, ZSTD_LEVEL = 3, MAX_MESSAGE_BYTES = 400, SHUFFLED_BYTES = 2 };

/* What is being written. */
struct writer {
    hid_t file, links; /* the property list that makes groups on the way */
    unsigned char *chunk;
};

/* A dataset of the stream. */
struct incoming {
    char *path;
    enum gradcmp_dtype dtype;
    int ndim;
    hsize_t sizes[H5S_MAX_RANK], chunk[H5S_MAX_RANK];
    unsigned elem_bytes;
    uint64_t text_bytes;         /* of each text, in a dataset of texts; else 0 */
    uint64_t elems, chunk_elems; /* chunk_elems 0: not chunked */
    uint64_t layer;
};

/* --- the answer --- */

static void answer(unsigned status, const char *message) {
    unsigned char code = (unsigned char)status;
    size_t left = strlen(message);
    if (write(STDIN_FILENO, &code, 1) != 1) {
        return;
    }
    while (left > 0) {
        ssize_t done = write(STDIN_FILENO, message, left);
        if (done < 0 && errno != EINTR) {
            return;
        }
        message += done < 0 ? 0 : done;
        left -= done < 0 ? 0 : (size_t)done;
    }
}

/* Tell what went wrong, and end: libhdf5 closes nothing any more, which after a write that failed
 * writes again, and then crashes. That it seems to return lets it stand behind "||". */
static bool fail(unsigned status, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));
static bool fail(unsigned status, const char *format, ...) {
    char message[MAX_MESSAGE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    answer(status, message);
    _exit(EXIT_FAILURE);
}

static herr_t keep_first(unsigned depth, const H5E_error2_t *error, void *user) {
    (void)depth;
    const char **text = user;
    if (*text == NULL && error->desc != NULL && error->desc[0] != '\0') {
        *text = error->desc;
    }
    return 0;
}

/* The system's reason in the text of libhdf5's driver, or 0. */
static int system_reason(const char *text) {
    static const char mark[] = "errno = ";
    const char *at = text == NULL ? NULL : strstr(text, mark);
    return at == NULL ? 0 : (int)strtol(at + sizeof mark - 1, NULL, 10);
}

/* Fail with what the system says, or else libhdf5. */
static bool fail_hdf5(const char *what) {
    const char *text = NULL;
    (void)H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, &text);
    int reason = system_reason(text);
    if (reason != 0) {
        return fail(GCMP_H5W_SYSTEM, "%s", strerror(reason));
    }
    return fail(GRADCMP_ERROR_IO, "%.200s: %.160s", what, text == NULL ? "failed" : text);
}

/* --- the stream --- */

static bool read_bytes(void *bytes, size_t count) {
    unsigned char *to = bytes;
    while (count > 0) {
        ssize_t done = read(STDIN_FILENO, to, count);
        if (done == 0 || (done < 0 && errno != EINTR)) {
            return fail(GRADCMP_ERROR_IO, "the stream ended early");
        }
        to += done < 0 ? 0 : done;
        count -= done < 0 ? 0 : (size_t)done;
    }
    return true;
}

static bool read_number(unsigned count, uint64_t *value) {
    unsigned char bytes[8];
    if (!read_bytes(bytes, count)) {
        return false;
    }
    *value = 0;
    for (unsigned i = count; i-- > 0;) {
        *value = *value << 8 | bytes[i];
    }
    return true;
}

/* Read a text into malloced memory. */
static bool read_text(char **text) {
    uint64_t count;
    *text = NULL;
    if (!read_number(4, &count)) {
        return false;
    }
    if (count > GCMP_H5W_MAX_TEXT || (*text = calloc(1, (size_t)count + 1)) == NULL) {
        return fail(GRADCMP_ERROR_MEMORY, "out of memory");
    }
    return read_bytes(*text, (size_t)count);
}

/* --- zstd --- */

/* The filter 32015: its one value is the level. Buffers are libhdf5's. */
static size_t zstd_filter(unsigned flags, size_t value_count, const unsigned values[], size_t bytes,
                          size_t *capacity, void **buffer) {
    bool decodes = (flags & H5Z_FLAG_REVERSE) != 0;
    unsigned long long whole =
        decodes ? ZSTD_getFrameContentSize(*buffer, bytes) : ZSTD_compressBound(bytes);
    if (whole == ZSTD_CONTENTSIZE_ERROR || whole == ZSTD_CONTENTSIZE_UNKNOWN) {
        return 0;
    }
    void *made = H5allocate_memory((size_t)whole + 1, false);
    int level = value_count > 0 ? (int)values[0] : ZSTD_LEVEL;
    size_t done = made == NULL ? 0
                  : decodes    ? ZSTD_decompress(made, (size_t)whole, *buffer, bytes)
                               : ZSTD_compress(made, (size_t)whole, *buffer, bytes, level);
    if (made == NULL || ZSTD_isError(done)) {
        H5free_memory(made);
        return 0;
    }
    H5free_memory(*buffer);
    *buffer = made;
    *capacity = (size_t)whole + 1;
    return done;
}

static const H5Z_class2_t zstd_class = {
    .version = H5Z_CLASS_T_VERS,
    .id = GCMP_H5W_ZSTD,
    .encoder_present = 1,
    .decoder_present = 1,
    .name = "zstd",
    .filter = zstd_filter,
};

/* --- types --- */

static hid_t float_type(hid_t base, size_t size, const size_t fields[5], size_t bias) {
    hid_t type = H5Tcopy(base);
    if (type < 0 ||
        H5Tset_fields(type, fields[0], fields[1], fields[2], fields[3], fields[4]) < 0 ||
        H5Tset_precision(type, 8 * size) < 0 || H5Tset_ebias(type, bias) < 0 ||
        H5Tset_size(type, size) < 0) {
        return -1;
    }
    return type;
}

/* h5py's form of truth values. */
static hid_t bool_type(void) {
    static const char *const names[] = {"FALSE", "TRUE"};
    hid_t type = H5Tenum_create(H5T_STD_I8LE);
    for (signed char value = 0; type >= 0 && value < 2; value++) {
        if (H5Tenum_insert(type, names[value], &value) < 0) {
            return -1;
        }
    }
    return type;
}

/* Texts of one length, the rest of it NUL. */
static hid_t text_type(uint64_t bytes) {
    hid_t type = H5Tcopy(H5T_C_S1);
    bool good = type >= 0 && H5Tset_size(type, (size_t)bytes) >= 0 &&
                H5Tset_strpad(type, H5T_STR_NULLPAD) >= 0 && H5Tset_cset(type, H5T_CSET_UTF8) >= 0;
    return good ? type : -1;
}

/* The type of a file's elements, and of those in memory; < 0: none. */
static hid_t make_type(enum gradcmp_dtype dtype) {
    static const size_t half[5] = {15, 10, 5, 0, 10}, brain[5] = {15, 7, 8, 0, 7};
    switch (dtype) {
    case GRADCMP_DTYPE_FLOAT64:
        return H5Tcopy(H5T_IEEE_F64LE);
    case GRADCMP_DTYPE_FLOAT32:
        return H5Tcopy(H5T_IEEE_F32LE);
    case GRADCMP_DTYPE_FLOAT16:
        return float_type(H5T_IEEE_F32LE, 2, half, 15);
    case GRADCMP_DTYPE_BFLOAT16:
        return float_type(H5T_IEEE_F32LE, 2, brain, 127);
    case GRADCMP_DTYPE_INT64:
        return H5Tcopy(H5T_STD_I64LE);
    case GRADCMP_DTYPE_INT32:
        return H5Tcopy(H5T_STD_I32LE);
    case GRADCMP_DTYPE_INT16:
        return H5Tcopy(H5T_STD_I16LE);
    case GRADCMP_DTYPE_INT8:
        return H5Tcopy(H5T_STD_I8LE);
    case GRADCMP_DTYPE_UINT64:
        return H5Tcopy(H5T_STD_U64LE);
    case GRADCMP_DTYPE_UINT32:
        return H5Tcopy(H5T_STD_U32LE);
    case GRADCMP_DTYPE_UINT16:
        return H5Tcopy(H5T_STD_U16LE);
    case GRADCMP_DTYPE_BOOL:
        return bool_type();
    case GRADCMP_DTYPE_UINT8:
    case GRADCMP_DTYPE_FLOAT8_E4M3FN: /* an attribute "dtype" tells what the bits are */
    case GRADCMP_DTYPE_FLOAT8_E5M2:
        return H5Tcopy(H5T_STD_U8LE);
    default:
        return -1;
    }
}

/* --- attributes --- */

static bool write_text(hid_t object, const char *name, const char *value) {
    hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR), attribute = -1;
    bool good = type >= 0 && space >= 0 && H5Tset_size(type, H5T_VARIABLE) >= 0 &&
                H5Tset_cset(type, H5T_CSET_UTF8) >= 0;
    if (good) {
        attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    }
    good = attribute >= 0 && H5Awrite(attribute, type, &value) >= 0;
    H5Aclose(attribute);
    H5Sclose(space);
    H5Tclose(type);
    return good || fail_hdf5(name);
}

static bool write_layer(hid_t dataset, uint64_t layer) {
    hid_t space = H5Screate(H5S_SCALAR), attribute = -1;
    int64_t value = (int64_t)layer;
    if (space >= 0) {
        attribute =
            H5Acreate2(dataset, GCMP_H5W_LAYER, H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT);
    }
    bool good = attribute >= 0 && H5Awrite(attribute, H5T_NATIVE_INT64, &value) >= 0;
    H5Aclose(attribute);
    H5Sclose(space);
    return good || fail_hdf5(GCMP_H5W_LAYER);
}

/* Read a name and a value and write them as an attribute. */
static bool pass_text(hid_t object) {
    char *name, *value = NULL;
    bool good = read_text(&name) && read_text(&value) && write_text(object, name, value);
    free(name);
    free(value);
    return good;
}

/* --- datasets --- */

/* Choose chunks that are runs of the row-major order. */
static void choose_chunk(struct incoming *in) {
    uint64_t room = MAX_CHUNK_BYTES / in->elem_bytes;
    in->chunk_elems = in->ndim > 0 && in->elems > 0 ? 1 : 0;
    for (int d = in->ndim; d-- > 0;) {
        in->chunk[d] = in->sizes[d] < room ? in->sizes[d] : room;
        in->chunk[d] = in->chunk[d] == 0 ? 1 : in->chunk[d];
        room = in->chunk[d] < in->sizes[d] ? 1 : room / in->chunk[d];
        in->chunk_elems *= in->chunk[d];
    }
}

static hid_t creation_properties(const struct incoming *in) {
    const unsigned level = ZSTD_LEVEL;
    hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    bool good = properties >= 0 && H5Pset_obj_track_times(properties, false) >= 0 &&
                H5Pset_fill_time(properties, H5D_FILL_TIME_NEVER) >= 0;
    if (good && in->chunk_elems > 0 && in->text_bytes == 0) { /* texts: any reader can read them */
        good = H5Pset_chunk(properties, in->ndim, in->chunk) >= 0 &&
               (in->elem_bytes < SHUFFLED_BYTES || H5Pset_shuffle(properties) >= 0) &&
               H5Pset_filter(properties, GCMP_H5W_ZSTD, H5Z_FLAG_MANDATORY, 1, &level) >= 0;
    }
    return good ? properties : -1;
}

static hid_t create_dataset(const struct writer *writer, const struct incoming *in, hid_t type) {
    hid_t space =
        in->ndim == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(in->ndim, in->sizes, NULL);
    hid_t properties = creation_properties(in);
    hid_t dataset = space < 0 || properties < 0
                        ? -1
                        : H5Dcreate2(writer->file, in->path, type, space, writer->links, properties,
                                     H5P_DEFAULT);
    H5Pclose(properties);
    H5Sclose(space);
    return dataset;
}

/* Write the run of a chunk's rows that begins at `at`; false after a failure was told. */
static bool write_run(const struct writer *writer, const struct incoming *in, hid_t dataset,
                      hid_t type, const hsize_t *at) {
    hsize_t extent[H5S_MAX_RANK];
    hsize_t elems = 1;
    for (int d = 0; d < in->ndim; d++) {
        hsize_t left = in->sizes[d] - at[d];
        extent[d] = left < in->chunk[d] ? left : in->chunk[d];
        elems *= extent[d];
    }
    if (!read_bytes(writer->chunk, (size_t)elems * in->elem_bytes)) {
        return false;
    }
    hid_t file_space = H5Dget_space(dataset), memory = H5Screate_simple(1, &elems, NULL);
    bool good = file_space >= 0 && memory >= 0 &&
                H5Sselect_hyperslab(file_space, H5S_SELECT_SET, at, NULL, extent, NULL) >= 0 &&
                H5Dwrite(dataset, type, memory, file_space, H5P_DEFAULT, writer->chunk) >= 0;
    H5Sclose(memory);
    H5Sclose(file_space);
    return good || fail_hdf5(in->path);
}

/* Go on to the next chunk; false after the last. */
static bool next_chunk_of(const struct incoming *in, hsize_t *at) {
    for (int d = in->ndim; d-- > 0;) {
        if (in->sizes[d] - at[d] > in->chunk[d]) {
            at[d] += in->chunk[d];
            return true;
        }
        at[d] = 0;
    }
    return false;
}

static bool write_elements(const struct writer *writer, const struct incoming *in, hid_t dataset,
                           hid_t type) {
    hsize_t at[H5S_MAX_RANK] = {0};
    if (in->elems == 0) {
        return true;
    }
    if (in->ndim == 0) {
        return read_bytes(writer->chunk, in->elem_bytes) &&
               (H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, writer->chunk) >= 0 ||
                fail_hdf5(in->path));
    }
    do {
        if (!write_run(writer, in, dataset, type, at)) {
            return false;
        }
    } while (next_chunk_of(in, at));
    return true;
}

/* Of texts, the last axis is their length. */
static bool take_text_axis(struct incoming *in) {
    if (in->dtype != GRADCMP_DTYPE_NONE) {
        return true;
    }
    if (in->ndim == 0 || in->sizes[in->ndim - 1] == 0 ||
        in->sizes[in->ndim - 1] > GCMP_H5W_MAX_LENGTH) {
        return fail(GRADCMP_ERROR_LIMIT, "%.200s: texts of no length, or too long", in->path);
    }
    in->text_bytes = in->sizes[--in->ndim];
    in->elems /= in->text_bytes;
    return true;
}

static bool read_incoming(struct incoming *in) {
    uint64_t dtype, ndim, bytes, size;
    *in = (struct incoming){.elems = 1};
    if (!read_text(&in->path) || !read_number(1, &dtype) || !read_number(1, &ndim)) {
        return false;
    }
    if (ndim > H5S_MAX_RANK) {
        return fail(GRADCMP_ERROR_LIMIT, "%.200s: %u axes", in->path, (unsigned)ndim);
    }
    in->dtype = (enum gradcmp_dtype)dtype;
    in->ndim = (int)ndim;
    for (int d = 0; d < in->ndim; d++) {
        if (!read_number(8, &size)) {
            return false;
        }
        in->sizes[d] = size;
        if (!gcmp_mul_u64(in->elems, size, &in->elems)) {
            return fail(GRADCMP_ERROR_LIMIT, "%.200s: too many elements", in->path);
        }
    }
    if (!gcmp_mul_u64(in->elems, 16, &bytes)) {
        return fail(GRADCMP_ERROR_LIMIT, "%.200s: too many elements", in->path);
    }
    return take_text_axis(in) && read_number(8, &in->layer);
}

/* Write a dataset that was made, with its attributes. */
static bool fill_dataset(const struct writer *writer, const struct incoming *in, hid_t dataset,
                         hid_t type) {
    uint64_t texts;
    bool good = read_number(1, &texts) &&
                (in->layer == GCMP_H5W_NO_LAYER || write_layer(dataset, in->layer));
    for (uint64_t i = 0; good && i < texts; i++) {
        good = pass_text(dataset);
    }
    return good && write_elements(writer, in, dataset, type);
}

static bool pass_dataset(const struct writer *writer) {
    struct incoming in;
    bool good = read_incoming(&in);
    hid_t type = !good ? -1 : in.text_bytes > 0 ? text_type(in.text_bytes) : make_type(in.dtype);
    hid_t dataset = -1;
    if (good && type < 0) {
        good =
            fail(GRADCMP_ERROR_UNSUPPORTED, "%.200s: HDF5 has no type for its elements", in.path);
    }
    if (good) {
        in.elem_bytes = (unsigned)H5Tget_size(type);
        choose_chunk(&in);
        dataset = create_dataset(writer, &in, type);
        good = (dataset >= 0 || fail_hdf5(in.path)) && fill_dataset(writer, &in, dataset, type);
    }
    if (dataset >= 0 && H5Dclose(dataset) < 0 && good) {
        good = fail_hdf5(in.path); /* the last chunks are written here */
    }
    H5Tclose(type);
    free(in.path);
    return good;
}

/* --- the file --- */

/* Make the file that descriptor 1 has open. Nothing else looks at it, so it takes no locks, which
 * some file systems do not have. */
static bool make_file(struct writer *writer) {
    setenv("HDF5_USE_FILE_LOCKING", "FALSE", 1);
    if (H5open() < 0 || H5Eset_auto2(H5E_DEFAULT, NULL, NULL) < 0 || H5PLset_loading_state(0) < 0 ||
        H5Zregister(&zstd_class) < 0) {
        return fail(GRADCMP_ERROR_IO, "libhdf5 does not start");
    }
    writer->chunk = malloc(MAX_CHUNK_BYTES);
    writer->links = H5Pcreate(H5P_LINK_CREATE);
    if (writer->chunk == NULL || writer->links < 0 ||
        H5Pset_create_intermediate_group(writer->links, 1) < 0) {
        return fail(GRADCMP_ERROR_MEMORY, "out of memory");
    }
    writer->file = H5Fcreate("/proc/self/fd/1", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    return writer->file >= 0 || fail_hdf5("the file cannot be made");
}

static bool pass_records(const struct writer *writer) {
    char magic[sizeof GCMP_H5W_MAGIC - 1];
    uint64_t tag;
    if (!read_bytes(magic, sizeof magic)) {
        return false;
    }
    if (memcmp(magic, GCMP_H5W_MAGIC, sizeof magic) != 0) {
        return fail(GRADCMP_ERROR_IO, "the helper program is of another version");
    }
    hid_t root = H5Gopen2(writer->file, "/", H5P_DEFAULT);
    bool good = root >= 0 || fail_hdf5("root group");
    while (good && (good = read_number(1, &tag)) && tag != GCMP_H5W_END) {
        if (tag != GCMP_H5W_ATTRIBUTE && tag != GCMP_H5W_DATASET) {
            good = fail(GRADCMP_ERROR_IO, "the helper program is of another version");
        } else {
            good = tag == GCMP_H5W_ATTRIBUTE ? pass_text(root) : pass_dataset(writer);
        }
    }
    H5Gclose(root);
    return good;
}

int writer_main(void) {
    (void)signal(SIGXFSZ, SIG_IGN); /* a file that may grow no more is told of as any other */
    struct writer writer = {.file = -1, .links = -1};
    bool good = make_file(&writer) &&
                (sandbox_enter_writer() || fail(GRADCMP_ERROR_IO, "cannot give up its rights")) &&
                pass_records(&writer);
    if (good && H5Fclose(writer.file) < 0) {
        good = fail_hdf5("the end of the file");
    }
    if (good) {
        answer(GRADCMP_OK, "");
    }
    free(writer.chunk);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
