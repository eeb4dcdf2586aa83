/* What a format reader finds: stored tensors, their pieces, the sources of their bytes, and what
 * the run says of itself. Metadata only; no tensor bytes are read to make it. Headers under sys/
 * serve those who add a format or a backend; they may change between versions. */
#ifndef GRADCMP_SYS_CATALOGUE_H
#define GRADCMP_SYS_CATALOGUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gradcmp/gradcmp.h"

#ifdef __cplusplus
extern "C" {
#endif

struct gcmp_arena;
struct gcmp_dir;
struct gradcmp_format;

/* Most axes of a tensor; more is GRADCMP_ERROR_LIMIT. PyTorch allows 64, no model uses over 8. */
enum { GRADCMP_MAX_NDIM = 16 };

/* How the bytes of a source are reached. */
enum gradcmp_source_kind {
    GRADCMP_SOURCE_RANGE, /* [offset, offset + length) of the file are the elements themselves */
    GRADCMP_SOURCE_ITEM   /* the range holds one encoded tensor; the format's resolve() finds its
                             elements */
};

/* Where bytes come from. Elements of a source are numbered from 0: of a RANGE, in file order; of an
 * ITEM, in row-major order of the encoded tensor, whose shape is that of its piece. */
struct gradcmp_source {
    uint64_t offset_bytes, length_bytes;
    uint32_t file;  /* index into the catalogue's gcmp_dir */
    uint32_t crc32; /* of the whole range, RANGE only; 0: none stored */
    uint32_t
        stored; /* index of the stored tensor and of the piece in it that this source belongs to; */
    uint32_t piece; /* with several, the first */
    uint8_t kind;   /* enum gradcmp_source_kind */
    uint8_t big_endian;
    uint8_t encoding; /* ITEM: what the format did to the bytes besides; 0: nothing */
    uint8_t reserved[5];
};

/* Coordinates of the rank that wrote a piece; -1 where not known or not applicable. */
struct gradcmp_coords {
    int32_t tp, pp, ep, dp, vp, etp;
};

/* A box of a stored tensor and where its elements lie. Arrays have the tensor's ndim entries. */
struct gradcmp_piece {
    const uint64_t *start, *extent; /* elements */
    const int64_t *stride; /* source elements per step on each axis; NULL: row-major, offset 0 */
    int64_t offset_elems;  /* source element of the first element of the box, with stride */
    uint32_t source;
    const struct gradcmp_coords *coords; /* NULL: not known */
};

/* What the axes of a stored tensor mean. */
enum gradcmp_layout {
    GRADCMP_LAYOUT_MODEL =
        0, /* boxes of the model's tensor, or flattened fragments: shapes tell which */
    GRADCMP_LAYOUT_LOCAL,       /* one rank's own shard under its local name; coords are set */
    GRADCMP_LAYOUT_BUCKET,      /* a flat buffer of many parameters */
    GRADCMP_LAYOUT_LOCAL_BUFFER /* one rank's flat buffer of its own shards, whose sizes and order
                                   are those of the rank's LOCAL tensors of state "param"; coords
                                   are set, its name is "[chained_<n>.]gbuf_idx_<n>" or that and
                                   ".bucket_idx_<n>" */
};

/* What the optimizer says of one parameter; NaN: not known. */
struct gradcmp_adam {
    double beta1, beta2, step;
};

/* One tensor as the file names it. */
struct gradcmp_stored {
    const char *key; /* as stored: "optimizer.state.exp_avg.decoder.layers.mlp.linear_fc1.weight" */
    const char *name;  /* the parameter's part of the key: "decoder.layers.mlp.linear_fc1.weight" */
    const char *state; /* "exp_avg", "exp_avg_sq", "main_grad", "param", "fp32_param", "step", ...;
                          NULL: an opaque object, listed only */
    const uint64_t *shape;
    const uint64_t
        *model_shape; /* stated shape of the model's tensor (model_ndim entries), or NULL */
    struct gradcmp_piece *pieces;
    size_t piece_count;
    uint8_t ndim, model_ndim;
    uint8_t dtype;         /* enum gradcmp_dtype */
    uint8_t layout;        /* enum gradcmp_layout */
    uint32_t stated_layer; /* 1 + l, where the file states it; 0: the name tells */
    /* Of a moment, where parameters differ in it; NULL: the settings hold for all of them. */
    const struct gradcmp_adam *adam;
    const char *type; /* dtype NONE: what the file calls it; NULL: not known */
    /* The state that it is of, where its elements cannot be read as one (`state` is NULL then), and
     * why; NULL for others. */
    const char *unread_state, *unread_why;
};

enum gradcmp_setting_kind {
    GRADCMP_SETTING_NONE,
    GRADCMP_SETTING_BOOL,
    GRADCMP_SETTING_INT,
    GRADCMP_SETTING_FLOAT,
    GRADCMP_SETTING_TEXT
};

/* One thing that the run says of itself, under Megatron's argument name ("clip_grad", "seed"). */
struct gradcmp_setting {
    const char *name;
    enum gradcmp_setting_kind kind;
    int64_t integer; /* INT, BOOL (0 or 1) */
    double number;   /* FLOAT */
    const char *text;
};

/* A parameter of an optimizer's group. */
struct gradcmp_listed {
    const char *name;
    uint32_t group;
};

/* Degrees of parallelism; 0 where not known. */
struct gradcmp_parallel {
    uint32_t tp, pp, vp, dp, cp, ep, etp, world;
};

struct gradcmp_catalogue {
    const struct gradcmp_format *format;
    struct gcmp_arena *arena; /* owns everything below; owned by the checkpoint */
    struct gcmp_dir *dir;     /* owned by the checkpoint */
    const char *layout_name;  /* "fully_sharded_model_space", ..., or NULL */
    const char *writer;       /* "megatron-core", "torch", ..., or NULL */
    const void *format_data;  /* what the format's resolve() needs, in the arena; or NULL */

    struct gradcmp_stored *stored;
    size_t stored_count, stored_capacity;
    struct gradcmp_source *sources;
    size_t source_count, source_capacity;
    struct gradcmp_setting *settings; /* in the order they were found */
    size_t setting_count, setting_capacity;
    const char **notes; /* one line each, for the reader of the report */
    size_t note_count, note_capacity;
    const char **contradictions; /* those of the notes that tell of files that contradict others */
    size_t contradiction_count, contradiction_capacity;
    /* Tensors of several real numbers that are in no model and in no state. A reader counts those
     * that it does not keep in `stored`. */
    size_t unclaimed_count;
    uint64_t passed_elems;       /* of those */
    const char *unclaimed_first; /* where one of them stands; NULL: there is none */
    bool unclaimed_is_least;     /* there may be more of them */

    struct gradcmp_parallel parallel;
    int64_t iteration;            /* -1: not known */
    bool iteration_is_count;      /* an optimizer counted it, which leaves out skipped updates */
    uint64_t layers;              /* 0: not known */
    uint64_t vocab, padded_vocab; /* rows; 0: not known */
    uint64_t experts;             /* 0: none or not known */
    /* Where the optimizer's states have numbers for names ("0", "1", ...) and nothing in the
     * checkpoint tells which parameters they are: the group of each number; else NULL. */
    const uint32_t *number_groups;
    size_t number_count;
    const char *number_optimizers;   /* names of several that number, in their order; or NULL */
    const char *const *number_names; /* names that the reports give to numbers; NULL: none */
    /* Where the files list the parameters in the order of the optimizer's groups: that list; else
     * NULL. */
    const struct gradcmp_listed *listed;
    size_t listed_count;
    bool is_list_cut;      /* groups of the list may be parts of one, that follow each other */
    bool is_named_by_list; /* its numbers were named by the list of another side */
    bool is_ordered;       /* stored tensors stand in the order of the model's state dict */
    enum gradcmp_dtype
        compute;  /* type of the run's arithmetic, from its arguments; NONE: not known */
    bool is_dump; /* gradients that a run wrote beside its checkpoints */
    enum gradcmp_dtype
        sibling_compute; /* of a checkpoint in the same save folder; NONE: not known */
};

#ifdef __cplusplus
}
#endif

#endif
