/* Catalogues made by hand over temporary files, for the engine's tests: tensors cut into boxes that
 * are stored in every way that a slab can describe. */
#ifndef GCMP_ENGINE_TOOLS_H
#define GCMP_ENGINE_TOOLS_H

#include <pthread.h>

#include "kernels/kernel_tools.h"
#include "temp_tools.h"

#include "base/arena.h"
#include "base/dir.h"
#include "engine/engine.h"
#include "engine/crc32.h"
#include "gradcmp/sys/format.h"

enum { WORLD_SOURCES = 512, WORLD_FILE_BYTES = 32 << 20 };

/* Whether this is built with the thread sanitizer, which makes a run take ten times as long. */
#if defined(__SANITIZE_THREAD__)
enum { RACES_ARE_SOUGHT = 1 };
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
enum { RACES_ARE_SOUGHT = 1 };
#else
enum { RACES_ARE_SOUGHT = 0 };
#endif
#else
enum { RACES_ARE_SOUGHT = 0 };
#endif

/* From one place of an injected fault to the next. Races do not depend on the place. */
enum { FAULT_STEP = RACES_ARE_SOUGHT ? 5 : 1 };

/* One checkpoint: a catalogue whose sources lie in one file that grows. */
struct world {
    struct gradcmp_catalogue catalogue;
    struct gcmp_arena arena;
    struct gradcmp_source sources[WORLD_SOURCES];
    struct gradcmp_extent extents[WORLD_SOURCES]; /* of ITEM sources */
    enum gradcmp_status resolve_fails[WORLD_SOURCES];
    unsigned resolve_calls[WORLD_SOURCES];
    pthread_t resolvers[WORLD_SOURCES]; /* the thread of the last call */
    useconds_t resolve_takes_us;
    char *temp, *name;
    unsigned char *bytes; /* of the file to be */
    size_t length_bytes;
    uint64_t random;
};

/* Stands for a format: extents were laid down beforehand; decoded ones are copied. */
static inline enum gradcmp_status world_resolve(const struct gradcmp_catalogue *catalogue,
                                                uint32_t source, struct gradcmp_extent *out,
                                                struct gradcmp_error *error) {
    struct world *world = (struct world *)(void *)catalogue; /* its first member */
    __atomic_fetch_add(&world->resolve_calls[source], 1, __ATOMIC_RELAXED);
    world->resolvers[source] = pthread_self();
    usleep(world->resolve_takes_us);
    if (world->resolve_fails[source] != GRADCMP_OK) {
        return gcmp_error_set(error, world->resolve_fails[source], NULL,
                              world->sources[source].offset_bytes, "item %u is not readable",
                              source);
    }
    *out = world->extents[source];
    if (out->decoded != NULL) {
        out->decoded = malloc(out->length_bytes + out->offset_bytes);
        assert_non_null(out->decoded);
        memcpy(out->decoded, world->extents[source].decoded, out->length_bytes + out->offset_bytes);
    } else if (out->decoded_in_file) {
        out->decoded_fd = dup(world->extents[source].decoded_fd);
    }
    return GRADCMP_OK;
}

static const struct gradcmp_format world_format = {.name = "test", .resolve = world_resolve};

static inline struct world *world_make(char *temp, const char *name, uint64_t seed) {
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    world->temp = temp;
    world->name = strdup(name);
    world->bytes = calloc(1, WORLD_FILE_BYTES);
    assert_non_null(world->bytes);
    world->random = seed;
    world->catalogue.arena = &world->arena;
    world->catalogue.format = &world_format;
    world->catalogue.sources = world->sources;
    return world;
}

static inline void world_free(struct world *world) {
    for (size_t i = 0; i < WORLD_SOURCES; i++) {
        free(world->extents[i].decoded);
        if (world->extents[i].decoded_in_file) {
            close(world->extents[i].decoded_fd);
        }
    }
    gcmp_dir_close(world->catalogue.dir);
    gcmp_arena_free(&world->arena);
    free(world->bytes);
    free(world->name);
    free(world);
}

/* Write the file and open it. */
static inline void world_open(struct world *world) {
    struct gradcmp_error error;
    uint32_t file;
    temp_file(world->temp, world->name, world->bytes, world->length_bytes);
    assert_int_equal(gcmp_dir_open(world->temp, &world->catalogue.dir, &error), GRADCMP_OK);
    assert_int_equal(
        gcmp_dir_add(world->catalogue.dir, world->name, strlen(world->name), &file, &error),
        GRADCMP_OK);
    assert_int_equal(file, 0);
}

static inline uint64_t world_random(struct world *world, uint64_t below) {
    return next_random(&world->random) % below;
}

/* A tensor as it is meant: what every layout must give back. */
struct tensor {
    struct gradcmp_parameter parameter;
    uint64_t shape[GRADCMP_MAX_NDIM];
    unsigned elem_bytes;
    unsigned char *elems; /* malloced */
};

static inline struct tensor tensor_make(enum gradcmp_dtype dtype, unsigned ndim,
                                        const uint64_t *shape) {
    struct tensor tensor;
    memset(&tensor, 0, sizeof tensor);
    memcpy(tensor.shape, shape, ndim * sizeof *shape);
    tensor.elem_bytes = gcmp_dtype_bytes(dtype);
    tensor.parameter.name = "weight";
    tensor.parameter.elem_count = 1;
    for (unsigned d = 0; d < ndim; d++) {
        tensor.parameter.elem_count *= shape[d];
    }
    tensor.parameter.ndim = (uint8_t)ndim;
    tensor.parameter.dtype = (uint8_t)dtype;
    tensor.parameter.copy_count = 1;
    tensor.elems = malloc(tensor.parameter.elem_count * tensor.elem_bytes + 1);
    assert_non_null(tensor.elems);
    return tensor;
}

/* How the boxes of a tensor are stored. */
enum storing {
    STORE_PLAIN,     /* row-major */
    STORE_PERMUTED,  /* axes in another order */
    STORE_REVERSED,  /* axes that run backwards, with gaps */
    STORE_BIG,       /* big-endian */
    STORE_ITEM,      /* row-major, behind resolve() */
    STORE_ITEM_VIEW, /* behind resolve(), itself with permuted strides */
    STORE_ITEM_ROWS, /* the same, with rows of another length and gaps between them: indices have to
                        be taken apart */
    STORE_DECODED,   /* in memory */
    STORE_DECODED_FILE,
    STORE_DECODED_BIG, /* in memory, big-endian */
    STORE_WAYS
};

/* A box of a tensor on its way into a record. */
struct boxed {
    struct world *world;
    const struct tensor *tensor;
    uint64_t start[GRADCMP_MAX_NDIM], extent[GRADCMP_MAX_NDIM];
    int64_t stride[GRADCMP_MAX_NDIM]; /* record elements */
    int64_t offset;
    uint64_t elems, record_elems;
    uint64_t row_elems; /* of STORE_ITEM_ROWS; else 0 */
};

enum { ROW_GAP = 3 };

static inline void set_strides(struct boxed *box, enum storing way) {
    unsigned ndim = box->tensor->parameter.ndim, order[GRADCMP_MAX_NDIM];
    for (unsigned d = 0; d < ndim; d++) {
        order[d] = d;
    }
    bool permute = way == STORE_PERMUTED || way == STORE_REVERSED || way == STORE_ITEM_VIEW;
    for (unsigned d = ndim; permute && d > 1; d--) {
        unsigned other = (unsigned)world_random(box->world, d), swap = order[d - 1];
        order[d - 1] = order[other];
        order[other] = swap;
    }
    uint64_t row = 1;
    box->offset = 0;
    for (unsigned k = ndim; k-- > 0;) {
        unsigned d = order[k];
        row *= way == STORE_REVERSED && world_random(box->world, 2) == 1 ? 2 : 1;
        box->stride[d] = (int64_t)row;
        if (way == STORE_REVERSED && world_random(box->world, 2) == 1) {
            box->offset += (int64_t)(row * (box->extent[d] - 1));
            box->stride[d] = -box->stride[d];
        }
        row *= box->extent[d];
    }
    box->record_elems = row;
}

/* Write the elements of a box to `record` by its strides. */
static inline void write_elems(const struct boxed *box, unsigned char *record, bool big_endian) {
    const struct tensor *tensor = box->tensor;
    unsigned ndim = tensor->parameter.ndim, width = tensor->elem_bytes;
    for (uint64_t r = 0; r < box->elems; r++) {
        uint64_t left = r, from = 0, step = 1, index[GRADCMP_MAX_NDIM];
        int64_t at = box->offset;
        for (unsigned d = ndim; d-- > 0;) {
            index[d] = left % box->extent[d];
            left /= box->extent[d];
            at += (int64_t)index[d] * box->stride[d];
            from += (box->start[d] + index[d]) * step;
            step *= tensor->shape[d];
        }
        at += box->row_elems == 0 ? 0 : at / (int64_t)box->row_elems * ROW_GAP;
        for (unsigned i = 0; i < width; i++) {
            record[(uint64_t)at * width + (big_endian ? width - 1 - i : i)] =
                tensor->elems[from * width + i];
        }
    }
}

/* Room for a record in the world's file, at an odd place. */
static inline unsigned char *new_record(struct world *world, uint64_t bytes, uint32_t *source) {
    *source = (uint32_t)world->catalogue.source_count++;
    assert_true(*source < WORLD_SOURCES);
    world->length_bytes += world_random(world, 9);
    world->sources[*source].offset_bytes = world->length_bytes;
    world->sources[*source].length_bytes = bytes;
    unsigned char *record = world->bytes + world->length_bytes;
    world->length_bytes += bytes;
    assert_true(world->length_bytes <= WORLD_FILE_BYTES);
    for (uint64_t i = 0; i < bytes; i++) {
        record[i] = (unsigned char)(0xa0 + i % 7); /* what gaps hold */
    }
    return record;
}

static inline void row_major(const struct boxed *box, int64_t *stride) {
    uint64_t row = 1;
    for (unsigned d = box->tensor->parameter.ndim; d-- > 0;) {
        stride[d] = (int64_t)row;
        row *= box->extent[d];
    }
}

static inline void move_to_memory(struct world *world, struct gradcmp_extent *extent,
                                  bool in_file) {
    const unsigned char *bytes = world->bytes + extent->offset_bytes;
    if (in_file) {
        FILE *file = tmpfile();
        assert_non_null(file);
        assert_int_equal(fwrite("###", 1, 3, file), 3);
        assert_int_equal(fwrite(bytes, 1, extent->length_bytes, file), extent->length_bytes);
        fflush(file);
        extent->decoded_fd = dup(fileno(file));
        extent->decoded_in_file = 1;
        fclose(file);
    } else {
        extent->decoded = malloc(extent->length_bytes + 3);
        assert_non_null(extent->decoded);
        memcpy((unsigned char *)extent->decoded + 3, bytes, extent->length_bytes);
    }
    memset(world->bytes + extent->offset_bytes, 0xdd, extent->length_bytes);
    extent->offset_bytes = 3;
}

/* The item behind a source, stored by the box's strides; the slab then counts in row-major order.
 */
static inline void make_item(struct boxed *box, uint32_t source, enum storing way) {
    struct world *world = box->world;
    struct gradcmp_extent *extent = &world->extents[source];
    unsigned ndim = box->tensor->parameter.ndim;
    world->sources[source].kind = GRADCMP_SOURCE_ITEM;
    extent->offset_bytes = world->sources[source].offset_bytes;
    extent->length_bytes = world->sources[source].length_bytes;
    extent->dtype = box->tensor->parameter.dtype;
    extent->offset_elems = box->offset;
    extent->ndim = (uint8_t)ndim;
    memcpy(extent->shape, box->extent, ndim * sizeof *box->extent);
    memcpy(extent->stride, box->stride, ndim * sizeof *box->stride);
    if (way == STORE_ITEM_ROWS) {
        extent->ndim = 2;
        extent->shape[0] = box->elems / box->row_elems;
        extent->shape[1] = box->row_elems;
        extent->stride[0] = (int64_t)box->row_elems + ROW_GAP;
        extent->stride[1] = 1;
    }
    extent->big_endian = way == STORE_DECODED_BIG;
    if (way >= STORE_DECODED) {
        move_to_memory(world, extent, way == STORE_DECODED_FILE);
    }
    row_major(box, box->stride);
    box->offset = 0;
}

/* Store a box; its slab is written to *slab. */
static inline void store_box(struct boxed *box, enum storing way, uint32_t copy,
                             struct gradcmp_slab *slab) {
    struct world *world = box->world;
    unsigned ndim = box->tensor->parameter.ndim, width = box->tensor->elem_bytes;
    set_strides(box, way);
    if (way == STORE_ITEM_ROWS) {
        uint64_t rows = box->elems == 1 ? 1 : 2;
        while (rows < box->elems && box->elems % rows != 0) {
            rows++;
        }
        box->row_elems = box->elems / rows;
        box->record_elems += rows * ROW_GAP;
    }
    unsigned char *record = new_record(world, box->record_elems * width, &slab->source);
    write_elems(box, record, way == STORE_BIG || way == STORE_DECODED_BIG);
    world->sources[slab->source].big_endian = way == STORE_BIG;
    if (way >= STORE_ITEM) {
        make_item(box, slab->source, way);
    }
    slab->start = gcmp_arena_alloc(&world->arena, ndim + 1, sizeof *slab->start);
    slab->extent = gcmp_arena_alloc(&world->arena, ndim + 1, sizeof *slab->extent);
    slab->stride = gcmp_arena_alloc(&world->arena, ndim + 1, sizeof *slab->stride);
    memcpy((void *)slab->start, box->start, ndim * sizeof *slab->start);
    memcpy((void *)slab->extent, box->extent, ndim * sizeof *slab->extent);
    memcpy((void *)slab->stride, box->stride, ndim * sizeof *slab->stride);
    slab->offset_elems = box->offset;
    slab->copy = copy;
}

static inline int order_slabs(const void *x, const void *y) {
    const struct gradcmp_slab *p = x, *q = y;
    if (p->copy != q->copy) {
        return p->copy < q->copy ? -1 : 1;
    }
    for (unsigned d = 0;; d++) { /* boxes of one copy are disjoint: some start differs */
        if (p->start[d] != q->start[d]) {
            return p->start[d] < q->start[d] ? -1 : 1;
        }
    }
}

/* Cut axis d of a tensor into parts[d] about equal pieces, and store each box in a way chosen by
 * `way`, or at random with STORE_WAYS. Appends to the parameter's slabs. */
static inline void store_grid(struct world *world, struct tensor *tensor, const uint64_t *parts,
                              enum storing way, uint32_t copy) {
    struct gradcmp_parameter *parameter = &tensor->parameter;
    size_t count = 1;
    for (unsigned d = 0; d < parameter->ndim; d++) {
        count *= parts[d];
    }
    struct gradcmp_slab *slabs =
        gcmp_arena_alloc(&world->arena, parameter->slab_count + count, sizeof *slabs);
    if (parameter->slab_count > 0) {
        memcpy(slabs, parameter->slabs, parameter->slab_count * sizeof *slabs);
    }
    for (size_t i = 0; i < count; i++) {
        struct boxed box = {.world = world, .tensor = tensor, .elems = 1};
        size_t left = i;
        for (unsigned d = parameter->ndim; d-- > 0;) {
            uint64_t k = left % parts[d], n = tensor->shape[d];
            left /= parts[d];
            box.start[d] = k * n / parts[d];
            box.extent[d] = (k + 1) * n / parts[d] - box.start[d];
            box.elems *= box.extent[d];
        }
        enum storing chosen =
            way == STORE_WAYS ? (enum storing)world_random(world, STORE_WAYS) : way;
        store_box(&box, chosen, copy, &slabs[parameter->slab_count++]);
    }
    qsort(slabs, parameter->slab_count, sizeof *slabs, order_slabs);
    uint64_t *shape = gcmp_arena_alloc(&world->arena, parameter->ndim + 1u, sizeof *shape);
    memcpy(shape, tensor->shape, parameter->ndim * sizeof *shape);
    parameter->shape = shape;
    parameter->slabs = slabs;
}

/* Store the checksums of all records as they are now. */
static inline void world_set_checksums(struct world *world) {
    for (size_t i = 0; i < world->catalogue.source_count; i++) {
        struct gradcmp_source *source = &world->sources[i];
        source->crc32 = gcmp_crc32(0, world->bytes + source->offset_bytes, source->length_bytes);
        world->extents[i].crc32 = source->crc32;
    }
}

static inline struct gcmp_side side_of(const struct world *world, const struct tensor *tensor,
                                       uint32_t owner) {
    struct gcmp_side side = {
        .catalogue = &world->catalogue, .parameter = &tensor->parameter, .owner = owner};
    return side;
}

/* The tally of two tensors' runs in memory. */
static inline struct gradcmp_tally span_of(const struct tensor *a, uint64_t first_a,
                                           const struct tensor *b, uint64_t first_b,
                                           uint64_t elems) {
    struct gradcmp_tally tally;
    gcmp_tally_span(gcmp_kernel_choose(), a->elems + first_a * a->elem_bytes,
                    (enum gradcmp_dtype)a->parameter.dtype, b->elems + first_b * b->elem_bytes,
                    (enum gradcmp_dtype)b->parameter.dtype, elems, &tally);
    return tally;
}

/* cmocka's setup and teardown of a folder for each test. */
static inline int setup(void **state) {
    *state = temp_dir_make();
    return *state == NULL ? -1 : 0;
}

static inline int teardown(void **state) {
    temp_dir_remove(*state);
    return 0;
}

#endif
