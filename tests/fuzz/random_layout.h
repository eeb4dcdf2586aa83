/* Makes distributed checkpoints of random layouts for the fuzz targets that check meaning: a set of
 * tensors, stacked by layers and experts or not, gated matrices whole or in halves, as boxes or as
 * grids of flattened fragments, cut as tensor, pipeline and data parallelism cut, even or not, each
 * piece a torch.save archive in one of several shard files. */
#ifndef GCMP_FUZZ_RANDOM_LAYOUT_H
#define GCMP_FUZZ_RANDOM_LAYOUT_H

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "random_set.h"
#include "torch_bytes.h"

enum { MAX_AXES = MAX_NDIM + 3, MAX_BOXES = 12, MAX_ALL_BOXES = 2048, MAX_FILES = 6, PADDING = 4 };

/* --- one tensor as it is stored --- */

struct stored {
    char name[128];
    const struct element *element;
    unsigned ndim, elems, shape[MAX_AXES];
    uint8_t bytes[8 * MAX_SLOTS * MAX_ELEMS];
};

/* How the tensors of a kind are put together. */
struct form {
    bool by_layer, by_expert; /* an axis of its own */
    bool in_halves;
    const char *text; /* the kind's spelling */
};

/* Which part of a kind one stored tensor is. */
struct part {
    unsigned layer, expert; /* the first; all of them where the form has the axis */
    unsigned half;          /* with in_halves: 0 or 1 */
};

static inline void name_part(const struct kind *kind, const struct form *form, struct part part,
                             char name[128]) {
    char layer[16] = "", expert[16] = "";
    if (!form->by_layer) {
        snprintf(layer, sizeof layer, "%u.", part.layer);
    }
    if (kind->experts > 0 && !form->by_expert) {
        snprintf(expert, sizeof expert, ".%u", part.expert);
    }
    snprintf(name, 128, "decoder.layers.%s%s%s%s%s%s", layer, form->text, expert,
             kind->experts > 0 ? "." : "", kind->experts > 0 ? kind->name->below_expert : "",
             !form->in_halves ? ""
             : part.half == 0 ? "_w"
                              : "_v");
}

/* Make the stored tensor of a part: rows of wholes, one after the other. */
static inline void join(const struct set *set, const struct kind *kind, const struct form *form,
                        struct part part, bool weight, struct stored *out) {
    unsigned experts = kind->experts > 0 ? kind->experts : 1, halves = form->in_halves ? 2 : 1;
    unsigned layer_count = form->by_layer ? kind->layers : 1;
    unsigned expert_count = form->by_expert ? experts : 1;
    out->element = weight ? kind->weight : kind->gradient;
    out->ndim = out->elems = 0;
    if (form->by_layer) {
        out->shape[out->ndim++] = layer_count;
    }
    if (form->by_expert) {
        out->shape[out->ndim++] = expert_count;
    }
    for (unsigned d = 0; d < kind->ndim; d++) {
        out->shape[out->ndim++] = d == 0 ? kind->shape[0] / halves : kind->shape[d];
    }
    unsigned elems = kind->elems / halves, bytes = elems * out->element->bytes;
    for (unsigned l = 0; l < layer_count; l++) {
        for (unsigned e = 0; e < expert_count; e++) {
            const struct whole *whole =
                &set->wholes[kind->first + (part.layer + l) * experts + part.expert + e];
            const uint8_t *from = weight ? whole->weight : whole->gradient;
            memcpy(out->bytes + out->elems * out->element->bytes, from + part.half * bytes, bytes);
            out->elems += elems;
        }
    }
    name_part(kind, form, part, out->name);
}

/* Count up an index within extents, the last of `order` fastest; false at the end. */
static inline bool count_up(unsigned ndim, const unsigned *order, const unsigned *extent,
                            unsigned *index) {
    for (unsigned i = ndim; i-- > 0;) {
        if (++index[order[i]] < extent[order[i]]) {
            return true;
        }
        index[order[i]] = 0;
    }
    return false;
}

static const unsigned row_major[MAX_AXES] = {0, 1, 2, 3, 4, 5};

/* Store the tensor as a grid of flattened fragments: [X/x, Y/y, x*y]. */
static inline void flatten(struct input *input, struct stored *stored) {
    static uint8_t bytes[sizeof stored->bytes];
    unsigned cells[MAX_AXES], local[MAX_AXES], cell[MAX_AXES] = {0}, inner = 1;
    unsigned elem_bytes = stored->element->bytes, ndim = stored->ndim;
    size_t count = 0;
    for (unsigned d = 0; d < ndim; d++) {
        cells[d] = 1 + next_below(input, stored->shape[d]);
        while (stored->shape[d] % cells[d] != 0) {
            cells[d]--;
        }
        local[d] = stored->shape[d] / cells[d];
        inner *= local[d];
    }
    do {
        unsigned index[MAX_AXES] = {0};
        do {
            size_t at = 0;
            for (unsigned d = 0; d < ndim; d++) {
                at = at * stored->shape[d] + cell[d] * local[d] + index[d];
            }
            memcpy(bytes + count, stored->bytes + at * elem_bytes, elem_bytes);
            count += elem_bytes;
        } while (count_up(ndim, row_major, local, index));
    } while (count_up(ndim, row_major, cells, cell));
    memcpy(stored->bytes, bytes, count);
    memcpy(stored->shape, cells, sizeof cells);
    stored->shape[stored->ndim++] = inner;
}

/* --- cutting --- */

struct box {
    unsigned start[MAX_AXES], extent[MAX_AXES];
    unsigned file;
    size_t offset, length;   /* of its archive within the file */
    size_t data, data_bytes; /* of its elements within the file */
};

struct cut {
    struct box boxes[MAX_BOXES + 1];
    unsigned count;
};

/* Cut every box along an axis into `parts` pieces, equal ones or at random places. */
static inline void cut_along(struct input *input, struct cut *cut, unsigned axis, unsigned parts) {
    bool equal = one_in(input, 2);
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

/* Tensor parallelism along one axis, fragments of data parallelism along others, sometimes a rank
 * that got nothing; in random order in random files of the tensor's pipeline stage. */
static inline void make_cut(struct input *input, const struct stored *stored, struct cut *cut) {
    cut->count = 1;
    memset(&cut->boxes[0], 0, sizeof cut->boxes[0]);
    memcpy(cut->boxes[0].extent, stored->shape, sizeof stored->shape);
    for (unsigned cuts = next_below(input, 1 + next_below(input, 4)); cuts > 0; cuts--) {
        cut_along(input, cut, next_below(input, stored->ndim), 2 + next_below(input, 2));
    }
    if (one_in(input, 8)) {
        struct box *empty = &cut->boxes[cut->count++];
        *empty = cut->boxes[0];
        memset(empty->start, 0, sizeof empty->start);
        empty->start[0] = stored->shape[0];
        empty->extent[0] = 0;
    }
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

/* --- one box: a tensor as torch.save makes it --- */

/* The elements of a box with axes in some order, behind `padding` that belong to nobody. */
static inline size_t gather(const struct stored *stored, const struct box *box,
                            const unsigned *order, unsigned padding, uint8_t *to) {
    unsigned index[MAX_AXES] = {0}, elem_bytes = stored->element->bytes;
    size_t count = (size_t)padding * elem_bytes;
    memset(to, 0xA5, count);
    for (unsigned d = 0; d < stored->ndim; d++) {
        if (box->extent[d] == 0) {
            return count;
        }
    }
    do {
        size_t at = 0;
        for (unsigned d = 0; d < stored->ndim; d++) {
            at = at * stored->shape[d] + box->start[d] + index[d];
        }
        memcpy(to + count, stored->bytes + at * elem_bytes, elem_bytes);
        count += elem_bytes;
    } while (count_up(stored->ndim, order, box->extent, index));
    return count;
}

static inline void put_view(struct out *out, const struct stored *stored, const struct box *box,
                            const unsigned *order, unsigned padding, size_t elems) {
    unsigned strides[MAX_AXES], stride = 1;
    for (unsigned i = stored->ndim; i-- > 0;) {
        strides[order[i]] = stride;
        stride *= box->extent[order[i]];
    }
    put_raw(out, "\x80\x02"
                 "ctorch._utils\n_rebuild_tensor_v2\n((");
    put_text(out, "storage");
    put_raw(out, "ctorch\n");
    put_raw(out, stored->element->storage);
    put_raw(out, "\n");
    put_text(out, "0");
    put_text(out, "cpu");
    put_number(out, elems);
    put_raw(out, "tQ");
    put_number(out, padding);
    put_numbers(out, stored->ndim, box->extent);
    put_numbers(out, stored->ndim, strides);
    put_raw(out, "\x89"
                 "ccollections\nOrderedDict\n)RtR.");
}

static inline void put_box(struct input *input, struct out *out, const struct stored *stored,
                           struct box *box) {
    static struct out pickle;
    static uint8_t bytes[sizeof stored->bytes + 8 * PADDING];
    struct record records[4];
    unsigned padding = one_in(input, 4) ? 1 + next_below(input, PADDING) : 0;
    unsigned order[MAX_AXES], elem_bytes = stored->element->bytes;
    memcpy(order, row_major, sizeof order);
    if (one_in(input, 4)) { /* stored transposed */
        unsigned a = next_below(input, stored->ndim), b = next_below(input, stored->ndim);
        order[a] = b;
        order[b] = a;
    }
    size_t count = gather(stored, box, order, padding, bytes), base = out->count;
    pickle.count = 0;
    put_view(&pickle, stored, box, order, padding, count / elem_bytes);
    put_record(out, &records[0], "archive/data.pkl", pickle.bytes, pickle.count);
    put_record(out, &records[1], "archive/byteorder", "little", 6);
    size_t data = put_record(out, &records[2], "archive/data/0", bytes, count);
    put_record(out, &records[3], "archive/version", "3\n", 2);
    put_directory(out, records, 4, base);
    box->offset = base;
    box->length = out->count - base;
    box->data = data + (size_t)padding * elem_bytes;
    box->data_bytes = count - (size_t)padding * elem_bytes;
}

/* --- the metadata --- */

static inline void put_tensor(struct out *out, const char *key, const struct stored *stored,
                              const struct cut *cut) {
    put_text(out, key);
    put_object(out, METADATA_MODULE, "TensorStorageMetadata");
    put_text(out, "properties");
    put_raw(out, "ctorch.distributed._shard.sharded_tensor.metadata\nTensorProperties\n)\x81(");
    put_raw(out, "ctorch\n");
    put_raw(out, stored->element->name);
    put_raw(out, "\nctorch.serialization\n_get_layout\n");
    put_text(out, "torch.strided");
    put_raw(out, "\x85R\x89NNtb");
    put_text(out, "size");
    put_size(out, stored->ndim, stored->shape);
    put_text(out, "chunks");
    put_raw(out, "](");
    for (unsigned i = 0; i < cut->count; i++) {
        put_object(out, METADATA_MODULE, "ChunkStorageMetadata");
        put_text(out, "offsets");
        put_size(out, stored->ndim, cut->boxes[i].start);
        put_text(out, "sizes");
        put_size(out, stored->ndim, cut->boxes[i].extent);
        put_raw(out, "ub");
    }
    put_raw(out, "eub");
}

static inline void put_place(struct out *out, const char *key, unsigned ndim,
                             const struct box *box) {
    char name[32];
    put_object(out, METADATA_MODULE, "MetadataIndex");
    put_text(out, "fqn");
    put_text(out, key);
    put_text(out, "offset");
    put_size(out, ndim, box->start);
    put_text(out, "index");
    put_raw(out, "Nub");
    put_object(out, "torch.distributed.checkpoint.filesystem", "_StorageInfo");
    snprintf(name, sizeof name, "__%u_0.distcp", box->file);
    put_text(out, "relative_path");
    put_text(out, name);
    put_text(out, "offset");
    put_number(out, box->offset);
    put_text(out, "length");
    put_number(out, box->length);
    put_raw(out, "ub");
}

/* --- the folder --- */

/* What is written, and what was: all boxes that hold something. */
struct layout {
    struct out files[MAX_FILES], tensors, places;
    struct box boxes[MAX_ALL_BOXES];
    unsigned box_count;
    struct input scheme; /* decides how tensors are put together; boxes are the input's matter */
    unsigned writer;     /* whose keys: Megatron's, of chained optimizers too; torch's, flat too */
};

static inline void make_key(struct layout *layout, const char *name, bool weight, char key[256]) {
    char chain[24] = "";
    if (weight) {
        snprintf(key, 256, "%s%s", layout->writer == 2 ? "model." : "", name);
    } else if (layout->writer >= 2) {
        snprintf(key, 256, "%sstate.%s.exp_avg", layout->writer == 2 ? "optim." : "", name);
    } else {
        if (layout->writer == 1) {
            snprintf(chain, sizeof chain, "chained_%u.", next_below(&layout->scheme, 2));
        }
        snprintf(key, 256, "%soptimizer.state.exp_avg.%s", chain, name);
    }
}

static inline void add_stored(struct input *input, struct layout *layout,
                              const struct stored *stored, bool weight) {
    static struct cut cut;
    char key[256];
    make_key(layout, stored->name, weight, key);
    make_cut(input, stored, &cut);
    for (unsigned i = 0; i < cut.count; i++) {
        struct box *box = &cut.boxes[i];
        put_box(input, &layout->files[box->file], stored, box);
        put_place(&layout->places, key, stored->ndim, box);
        if (box->data_bytes > 0) {
            demand(layout->box_count < MAX_ALL_BOXES, "room for boxes");
            layout->boxes[layout->box_count++] = *box;
        }
    }
    put_tensor(&layout->tensors, key, stored, &cut);
}

static inline void add_part(struct input *input, const struct set *set, const struct kind *kind,
                            const struct form *form, struct part part, struct layout *layout) {
    static struct stored stored;
    if (set->has_weights) {
        join(set, kind, form, part, true, &stored);
        add_stored(input, layout, &stored, true);
    }
    join(set, kind, form, part, false, &stored);
    if (set->has_weights && one_in(&layout->scheme, 2)) { /* the weights tell what is flattened */
        flatten(&layout->scheme, &stored);
    }
    add_stored(input, layout, &stored, false);
}

static inline void add_kind(struct input *input, const struct set *set, const struct kind *kind,
                            const struct form *form, struct layout *layout) {
    struct part part = {0, 0, 0};
    unsigned layers = form->by_layer ? 1 : kind->layers;
    unsigned experts = form->by_expert || kind->experts == 0 ? 1 : kind->experts;
    for (part.layer = 0; part.layer < layers; part.layer++) {
        for (part.expert = 0; part.expert < experts; part.expert++) {
            for (part.half = 0; part.half < (form->in_halves ? 2U : 1U); part.half++) {
                add_part(input, set, kind, form, part, layout);
            }
        }
    }
}

/* A norm has its second name only beside the matrix that it is fused with, in the same form. */
static inline struct form make_form(struct input *input, const struct kind *kind,
                                    const struct form *before) {
    struct form form = {.by_layer = one_in(input, 2), .text = kind->name->text};
    form.by_expert = kind->experts > 0 && (form.by_layer || one_in(input, 2));
    form.in_halves = kind->name->is_gated && kind->shape[0] % 2 == 0 && one_in(input, 2);
    if (kind->name->other != NULL && before != NULL && before->by_layer == form.by_layer &&
        one_in(input, 2)) {
        form.text = kind->name->other;
    }
    return form;
}

static inline void write_file(const char *folder, const char *name, const struct out *out) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    demand(file != NULL && fwrite(out->bytes, 1, out->count, file) == out->count &&
               fclose(file) == 0,
           "a file can be written");
}

static inline void write_metadata(const struct layout *layout, const char *folder) {
    static struct out metadata;
    metadata.count = 0;
    put_raw(&metadata, "\x80\x02");
    put_object(&metadata, METADATA_MODULE, "Metadata");
    put_text(&metadata, "state_dict_metadata");
    put_raw(&metadata, "}(");
    put(&metadata, layout->tensors.bytes, layout->tensors.count);
    put_raw(&metadata, "u");
    put_text(&metadata, "storage_data");
    put_raw(&metadata, "}(");
    put(&metadata, layout->places.bytes, layout->places.count);
    put_raw(&metadata, "uub.");
    write_file(folder, ".metadata", &metadata);
}

/* The arguments of a run, as Megatron keeps them; they tell the number of layers, and that layouts
 * differ. */
static inline void write_arguments(const struct set *set, const char *folder, unsigned tp) {
    static struct out pickle, file;
    struct record records[3];
    pickle.count = file.count = 0;
    put_raw(&pickle, "\x80\x02}");
    put_text(&pickle, "args");
    put_raw(&pickle, "cargparse\nNamespace\n)\x81}(");
    put_text(&pickle, "tensor_model_parallel_size");
    put_number(&pickle, tp);
    put_text(&pickle, "num_layers");
    put_number(&pickle, set->kinds[0].layers);
    put_raw(&pickle, "ubs.");
    put_record(&file, &records[0], "archive/data.pkl", pickle.bytes, pickle.count);
    put_record(&file, &records[1], "archive/byteorder", "little", 6);
    put_record(&file, &records[2], "archive/version", "3\n", 2);
    put_directory(&file, records, 3, 0);
    write_file(folder, "common.pt", &file);
}

/* Write the set into a folder in a random layout, and tell where everything went. */
static inline void write_layout(struct input *input, const struct set *set, const char *folder,
                                struct layout *layout) {
    struct form form, before;
    char name[32];
    layout->tensors.count = layout->places.count = layout->box_count = 0;
    layout->writer = next_below(&layout->scheme, 4);
    for (unsigned f = 0; f < MAX_FILES; f++) {
        layout->files[f].count = 0;
    }
    for (unsigned k = 0; k < set->kind_count; k++) {
        form = make_form(&layout->scheme, &set->kinds[k], k > 0 ? &before : NULL);
        add_kind(input, set, &set->kinds[k], &form, layout);
        before = form;
    }
    for (unsigned f = 0; f < MAX_FILES; f++) {
        snprintf(name, sizeof name, "__%u_0.distcp", f);
        write_file(folder, name, &layout->files[f]);
    }
    write_metadata(layout, folder);
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
        snprintf(path, sizeof path, "%s/common.pt", layout_folders[i]);
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

/* Write both: as tensors put together alike, or each in its own way, which the arguments of the
 * runs then tell. `layout` is left as that of the second. */
static inline void write_layouts(struct input *input, const struct set *set,
                                 struct layout *layout) {
    uint64_t seed = next_random(input);
    bool alike = one_in(input, 3);
    make_folders();
    for (unsigned i = 0; i < 2; i++) {
        seed = i == 0 || alike ? seed : next_random(input);
        layout->scheme = (struct input){NULL, 0, seed | 1};
        write_layout(input, set, layout_folders[i], layout);
        write_arguments(set, layout_folders[i], alike ? 1 : 1 + i);
    }
}

#endif
