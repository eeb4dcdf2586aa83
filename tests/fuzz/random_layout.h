/* Makes distributed checkpoints of random layouts for the fuzz targets that check meaning: a set of
 * tensors with random elements, cut into boxes as tensor, pipeline and data parallelism and
 * fragments would cut them, each box a torch.save archive in one of several shard files. Written
 * with nothing of the program that is tested. */
#ifndef GCMP_FUZZ_RANDOM_LAYOUT_H
#define GCMP_FUZZ_RANDOM_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#include "demand.h"

enum { MAX_TENSORS = 5, MAX_NDIM = 3, MAX_DIM = 9, MAX_BOXES = 24, MAX_FILES = 6, PADDING = 4 };
enum { MAX_ELEMS = MAX_DIM * MAX_DIM * MAX_DIM };

/* --- numbers --- */

struct input {
    const uint8_t *bytes;
    size_t left;
    uint64_t random; /* goes on where the bytes end, and fills the tensors */
};

static inline uint64_t next_random(struct input *input) {
    input->random ^= input->random << 13; /* xorshift64, G. Marsaglia */
    input->random ^= input->random >> 7;
    input->random ^= input->random << 17;
    return input->random;
}

/* A number below `limit`, which is at least 1. */
static inline unsigned next_below(struct input *input, unsigned limit) {
    if (limit == 0) {
        return 0;
    }
    if (input->left == 0) {
        return (unsigned)(next_random(input) >> 32) % limit;
    }
    input->left--;
    return *input->bytes++ % limit;
}

static inline struct input make_input(const uint8_t *data, size_t size) {
    struct input input = {data, size, 0x9E3779B97F4A7C15U};
    for (size_t i = 0; i < size; i++) {
        input.random = (input.random ^ data[i]) * 0x100000001B3U; /* every byte counts */
    }
    input.random |= 1;
    return input;
}

/* --- the oracle: whole tensors --- */

struct whole {
    char name[64];
    unsigned ndim;
    unsigned shape[MAX_NDIM];
    unsigned elem_bytes; /* 2: bfloat16, 4: float32 */
    unsigned elems;
    uint8_t bytes[4 * MAX_ELEMS];
};

struct set {
    struct whole tensors[MAX_TENSORS];
    unsigned count;
};

/* Finite elements around 1 of both signs: a sign, an exponent in a small range, any fraction. */
static inline void fill(struct input *input, struct whole *whole) {
    for (unsigned i = 0; i < whole->elems; i++) {
        uint64_t random = next_random(input);
        uint32_t bits = (uint32_t)(random & 0x807FFFFF) | (uint32_t)(120 + random % 13) << 23;
        if (whole->elem_bytes == 2) {
            bits >>= 16;
        }
        for (unsigned b = 0; b < whole->elem_bytes; b++) {
            whole->bytes[i * whole->elem_bytes + b] = (uint8_t)(bits >> (8 * b));
        }
    }
}

static inline void make_set(struct input *input, struct set *set) {
    static const char *const kinds[] = {"self_attention.linear_proj.weight",
                                        "mlp.linear_fc2.weight", "input_layernorm.weight",
                                        "mlp.router.weight", "self_attention.linear_proj.bias"};
    set->count = 1 + next_below(input, MAX_TENSORS);
    for (unsigned t = 0; t < set->count; t++) {
        struct whole *whole = &set->tensors[t];
        snprintf(whole->name, sizeof whole->name, "decoder.layers.%u.%s", t / 2, kinds[t]);
        whole->ndim = 1 + next_below(input, MAX_NDIM);
        whole->elem_bytes = next_below(input, 3) == 0 ? 2 : 4;
        whole->elems = 1;
        for (unsigned d = 0; d < whole->ndim; d++) {
            whole->shape[d] = 1 + next_below(input, MAX_DIM);
            whole->elems *= whole->shape[d];
        }
        fill(input, whole);
    }
}

/* --- cutting --- */

struct box {
    unsigned start[MAX_NDIM], extent[MAX_NDIM];
    unsigned file;
    long offset, length; /* of its archive within the file */
    long data;           /* of its first element's byte within the file */
};

struct cut {
    struct box boxes[MAX_BOXES];
    unsigned count;
};

/* Cut every box along an axis into `parts` pieces, equal ones or at random places. */
static inline void cut_along(struct input *input, struct cut *cut, unsigned axis, unsigned parts) {
    bool equal = next_below(input, 2) == 0;
    for (unsigned p = 1; p < parts; p++) {
        unsigned count = cut->count;
        for (unsigned i = 0; i < count && cut->count < MAX_BOXES; i++) {
            struct box *box = &cut->boxes[i], *other;
            unsigned extent = box->extent[axis];
            if (extent < 2) {
                continue;
            }
            unsigned first = equal ? extent / 2 : 1 + next_below(input, extent - 1);
            other = &cut->boxes[cut->count++];
            *other = *box;
            box->extent[axis] = first;
            other->start[axis] += first;
            other->extent[axis] -= first;
        }
    }
}

/* Tensor parallelism along one axis, then fragments of data parallelism along the first and
 * others; boxes in random order in random files of the tensor's pipeline stage. */
static inline void make_cut(struct input *input, const struct whole *whole, struct cut *cut) {
    memset(cut, 0, sizeof *cut);
    cut->count = 1;
    memcpy(cut->boxes[0].extent, whole->shape, sizeof whole->shape);
    cut_along(input, cut, next_below(input, whole->ndim), 1 + next_below(input, 3));
    cut_along(input, cut, 0, 1 + next_below(input, 3));
    cut_along(input, cut, next_below(input, whole->ndim), 1 + next_below(input, 2));
    for (unsigned i = cut->count; i-- > 1;) {
        unsigned other = next_below(input, i + 1);
        struct box kept = cut->boxes[i];
        cut->boxes[i] = cut->boxes[other];
        cut->boxes[other] = kept;
    }
    unsigned stage = next_below(input, 2) * (MAX_FILES / 2);
    for (unsigned i = 0; i < cut->count; i++) {
        cut->boxes[i].file = stage + next_below(input, MAX_FILES / 2);
    }
}

/* --- bytes --- */

struct out {
    uint8_t bytes[1 << 18];
    size_t count;
};

static inline void put(struct out *out, const void *bytes, size_t count) {
    demand(count <= sizeof out->bytes - out->count, "room for what is written");
    memcpy(out->bytes + out->count, bytes, count);
    out->count += count;
}
static inline void put_raw(struct out *out, const char *text) {
    put(out, text, strlen(text));
}
static inline void put_le(struct out *out, uint64_t value, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        uint8_t byte = i < sizeof value ? (uint8_t)(value >> (8 * i)) : 0;
        put(out, &byte, 1);
    }
}
static inline void put_text(struct out *out, const char *text) {
    put_raw(out, "X");
    put_le(out, strlen(text), 4);
    put_raw(out, text);
}
static inline void put_number(struct out *out, uint64_t value) {
    put_raw(out, "J");
    put_le(out, value, 4);
}
static inline void put_numbers(struct out *out, unsigned ndim, const unsigned *numbers) {
    put_raw(out, "(");
    for (unsigned d = 0; d < ndim; d++) {
        put_number(out, numbers[d]);
    }
    put_raw(out, "t");
}

/* --- one box: a zip archive of stored records, as torch.save makes it --- */

struct record {
    char name[32];
    size_t at, bytes;
    uint32_t crc;
};

/* Returns where the record's bytes lie. */
static inline size_t put_record(struct out *out, struct record *record, const char *name,
                                const void *bytes, size_t count) {
    snprintf(record->name, sizeof record->name, "%s", name);
    record->at = out->count;
    record->bytes = count;
    record->crc = (uint32_t)crc32(0, bytes, (uInt)count);
    put_raw(out, "PK\3\4");
    put_le(out, 0, 10); /* version, flags, method, time, date */
    put_le(out, record->crc, 4);
    put_le(out, count, 4);
    put_le(out, count, 4);
    put_le(out, strlen(name), 2);
    put_le(out, 0, 2);
    put_raw(out, name);
    put(out, bytes, count);
    return out->count - count;
}

static inline void put_directory(struct out *out, const struct record *records, unsigned count,
                                 size_t base) {
    size_t start = out->count;
    for (unsigned i = 0; i < count; i++) {
        put_raw(out, "PK\1\2");
        put_le(out, 0, 12); /* versions, flags, method, time, date */
        put_le(out, records[i].crc, 4);
        put_le(out, records[i].bytes, 4);
        put_le(out, records[i].bytes, 4);
        put_le(out, strlen(records[i].name), 2);
        put_le(out, 0, 12); /* extra, comment, disk, attributes */
        put_le(out, records[i].at - base, 4);
        put_raw(out, records[i].name);
    }
    size_t bytes = out->count - start;
    put_raw(out, "PK\5\6");
    put_le(out, 0, 4);
    put_le(out, count, 2);
    put_le(out, count, 2);
    put_le(out, bytes, 4);
    put_le(out, start - base, 4);
    put_le(out, 0, 2);
}

/* The elements of a box in row-major order, behind `padding` elements that belong to nobody. */
static inline size_t gather(const struct whole *whole, const struct box *box, unsigned padding,
                            uint8_t *to) {
    unsigned index[MAX_NDIM] = {0};
    size_t count = (size_t)padding * whole->elem_bytes;
    memset(to, 0xA5, count);
    for (bool more = true; more;) {
        size_t at = 0;
        for (unsigned d = 0; d < whole->ndim; d++) {
            at = at * whole->shape[d] + box->start[d] + index[d];
        }
        memcpy(to + count, whole->bytes + at * whole->elem_bytes, whole->elem_bytes);
        count += whole->elem_bytes;
        more = false;
        for (unsigned d = whole->ndim; d-- > 0 && !more;) {
            more = ++index[d] < box->extent[d];
            index[d] = more ? index[d] : 0;
        }
    }
    return count;
}

static inline void put_pickle(struct out *out, const struct whole *whole, const struct box *box,
                              unsigned padding, size_t elems) {
    unsigned strides[MAX_NDIM], stride = 1;
    for (unsigned d = whole->ndim; d-- > 0;) {
        strides[d] = stride;
        stride *= box->extent[d];
    }
    put_raw(out, "\x80\x02"
                 "ctorch._utils\n_rebuild_tensor_v2\n((");
    put_text(out, "storage");
    put_raw(out, whole->elem_bytes == 2 ? "ctorch\nBFloat16Storage\n" : "ctorch\nFloatStorage\n");
    put_text(out, "0");
    put_text(out, "cpu");
    put_number(out, elems);
    put_raw(out, "tQ");
    put_number(out, padding);
    put_numbers(out, whole->ndim, box->extent);
    put_numbers(out, whole->ndim, strides);
    put_raw(out, "\x89"
                 "ccollections\nOrderedDict\n)RtR.");
}

static inline void put_box(struct input *input, struct out *out, const struct whole *whole,
                           struct box *box) {
    static struct out pickle;
    static uint8_t elements[4 * (MAX_ELEMS + PADDING)];
    struct record records[4];
    unsigned padding = next_below(input, 3) == 0 ? 1 + next_below(input, PADDING) : 0;
    size_t bytes = gather(whole, box, padding, elements), base = out->count;
    pickle.count = 0;
    put_pickle(&pickle, whole, box, padding, bytes / whole->elem_bytes);
    put_record(out, &records[0], "archive/data.pkl", pickle.bytes, pickle.count);
    put_record(out, &records[1], "archive/byteorder", "little", 6);
    size_t data = put_record(out, &records[2], "archive/data/0", elements, bytes);
    put_record(out, &records[3], "archive/version", "3\n", 2);
    put_directory(out, records, 4, base);
    box->offset = (long)base;
    box->length = (long)(out->count - base);
    box->data = (long)(data + (size_t)padding * whole->elem_bytes);
}

/* --- the metadata --- */

#define METADATA_MODULE "torch.distributed.checkpoint.metadata"

static inline void put_object(struct out *out, const char *module, const char *name) {
    put_raw(out, "c");
    put_raw(out, module);
    put_raw(out, "\n");
    put_raw(out, name);
    put_raw(out, "\n)\x81}(");
}
static inline void put_size(struct out *out, unsigned ndim, const unsigned *numbers) {
    put_raw(out, "ctorch\nSize\n");
    put_numbers(out, ndim, numbers);
    put_raw(out, "\x85R");
}

static inline void key_of(const struct whole *whole, char key[128]) {
    snprintf(key, 128, "optimizer.state.exp_avg.%s", whole->name);
}

static inline void put_tensor(struct out *out, const struct whole *whole, const struct cut *cut) {
    char key[128];
    key_of(whole, key);
    put_text(out, key);
    put_object(out, METADATA_MODULE, "TensorStorageMetadata");
    put_text(out, "properties");
    put_raw(out, "ctorch.distributed._shard.sharded_tensor.metadata\nTensorProperties\n)\x81(");
    put_raw(out, whole->elem_bytes == 2 ? "ctorch\nbfloat16\n" : "ctorch\nfloat32\n");
    put_raw(out, "ctorch.serialization\n_get_layout\n");
    put_text(out, "torch.strided");
    put_raw(out, "\x85R\x89NNtb");
    put_text(out, "size");
    put_size(out, whole->ndim, whole->shape);
    put_text(out, "chunks");
    put_raw(out, "](");
    for (unsigned i = 0; i < cut->count; i++) {
        put_object(out, METADATA_MODULE, "ChunkStorageMetadata");
        put_text(out, "offsets");
        put_size(out, whole->ndim, cut->boxes[i].start);
        put_text(out, "sizes");
        put_size(out, whole->ndim, cut->boxes[i].extent);
        put_raw(out, "ub");
    }
    put_raw(out, "eub");
}

static inline void put_place(struct out *out, const struct whole *whole, const struct box *box) {
    char text[128];
    key_of(whole, text);
    put_object(out, METADATA_MODULE, "MetadataIndex");
    put_text(out, "fqn");
    put_text(out, text);
    put_text(out, "offset");
    put_size(out, whole->ndim, box->start);
    put_text(out, "index");
    put_raw(out, "Nub");
    put_object(out, "torch.distributed.checkpoint.filesystem", "_StorageInfo");
    snprintf(text, sizeof text, "__%u_0.distcp", box->file);
    put_text(out, "relative_path");
    put_text(out, text);
    put_text(out, "offset");
    put_number(out, (uint64_t)box->offset);
    put_text(out, "length");
    put_number(out, (uint64_t)box->length);
    put_raw(out, "ub");
}

/* --- the folder --- */

static inline void write_file(const char *folder, const char *name, const struct out *out) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    demand(file != NULL && fwrite(out->bytes, 1, out->count, file) == out->count &&
               fclose(file) == 0,
           "a file can be written");
}

/* Write the set into a folder in a random layout, and tell where everything went. */
static inline void write_layout(struct input *input, const struct set *set, const char *folder,
                                struct cut cuts[MAX_TENSORS]) {
    static struct out files[MAX_FILES], metadata;
    char name[32];
    for (unsigned f = 0; f < MAX_FILES; f++) {
        files[f].count = 0;
    }
    for (unsigned t = 0; t < set->count; t++) {
        make_cut(input, &set->tensors[t], &cuts[t]);
        for (unsigned i = 0; i < cuts[t].count; i++) {
            struct box *box = &cuts[t].boxes[i];
            put_box(input, &files[box->file], &set->tensors[t], box);
        }
    }
    metadata.count = 0;
    put_raw(&metadata, "\x80\x02");
    put_object(&metadata, METADATA_MODULE, "Metadata");
    put_text(&metadata, "state_dict_metadata");
    put_raw(&metadata, "}(");
    for (unsigned t = 0; t < set->count; t++) {
        put_tensor(&metadata, &set->tensors[t], &cuts[t]);
    }
    put_raw(&metadata, "u");
    put_text(&metadata, "storage_data");
    put_raw(&metadata, "}(");
    for (unsigned t = 0; t < set->count; t++) {
        for (unsigned i = 0; i < cuts[t].count; i++) {
            put_place(&metadata, &set->tensors[t], &cuts[t].boxes[i]);
        }
    }
    put_raw(&metadata, "uub.");
    for (unsigned f = 0; f < MAX_FILES; f++) {
        snprintf(name, sizeof name, "__%u_0.distcp", f);
        write_file(folder, name, &files[f]);
    }
    write_file(folder, ".metadata", &metadata);
}

/* --- two folders of this process --- */

static char layout_folders[2][64];

static inline void remove_folders(void) {
    char path[256];
    for (int i = 0; i < 2; i++) {
        for (unsigned f = 0; f < MAX_FILES; f++) {
            snprintf(path, sizeof path, "%s/__%u_0.distcp", layout_folders[i], f);
            unlink(path);
        }
        snprintf(path, sizeof path, "%s/.metadata", layout_folders[i]);
        unlink(path);
        rmdir(layout_folders[i]);
    }
}

/* In memory where there is such a file system. */
static inline void make_folders(void) {
    if (layout_folders[0][0] != '\0') {
        return;
    }
    for (int i = 0; i < 2; i++) {
        snprintf(layout_folders[i], sizeof layout_folders[i], "%s/gradcmp-layout-XXXXXX",
                 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        demand(mkdtemp(layout_folders[i]) != NULL, "a folder can be made");
    }
    atexit(remove_folders);
}

#endif
