/* The table that each format reader fills in. Adding a format: one file under formats/ with one
 * such table, and one line in formats/registry.c. */
#ifndef GRADCMP_SYS_FORMAT_H
#define GRADCMP_SYS_FORMAT_H

#include "gradcmp/sys/catalogue.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where the elements of a source really lie, after the encoded item was looked at. */
struct gradcmp_extent {
    uint64_t offset_bytes, length_bytes; /* the record of raw elements in the source's file */
    uint32_t crc32;                      /* of the whole record; 0: none stored */
    uint8_t dtype;                       /* enum gradcmp_dtype */
    uint8_t big_endian;
    uint8_t ndim;
    uint64_t shape[GRADCMP_MAX_NDIM];
    int64_t stride[GRADCMP_MAX_NDIM]; /* elements of the record per step */
    int64_t offset_elems;             /* record element of the tensor's first element */
    void *decoded;           /* malloced bytes of the record where it had to be decoded, else NULL;
                                offset_bytes then counts from its start. The caller frees it. */
    int decoded_fd;          /* the same in a file without a name, where there are many; only if */
    uint8_t decoded_in_file; /* nonzero. The caller closes it. */
};

struct gradcmp_format {
    const char *name;        /* "torch_dist", as reports print it */
    const char *description; /* one line for --help and the README's table */

    /* Tell by content whether `dir` holds this format. Returns a strength: 0 no, 1 maybe (a last
     * resort), 2 yes. Must not fail and must read little. */
    int (*probe)(struct gcmp_dir *dir);

    /* Fill the catalogue (zeroed, with arena, dir and format set; iteration -1). On failure the
     * caller frees everything. Status: IO, CORRUPT, UNSUPPORTED, LIMIT, MEMORY. */
    enum gradcmp_status (*open)(struct gradcmp_catalogue *catalogue, struct gradcmp_error *error);

    /* Look at the encoded item of sources[source]. Called from several threads at once; must not
     * change the catalogue. NULL where the format makes no ITEM sources. */
    enum gradcmp_status (*resolve)(const struct gradcmp_catalogue *catalogue, uint32_t source,
                                   struct gradcmp_extent *out, struct gradcmp_error *error);
};

/* Return the table of all formats, NULL-terminated, the more specific first. */
const struct gradcmp_format *const *gcmp_formats(void);

#ifdef __cplusplus
}
#endif

#endif
