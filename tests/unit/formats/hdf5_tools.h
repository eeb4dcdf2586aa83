/* Writing HDF5 files with libhdf5, for tests of their reader. */
#ifndef GCMP_HDF5_TOOLS_H
#define GCMP_HDF5_TOOLS_H

#include "formats/sample_tools.h"

#include "formats/hdf5.h"

#if defined(GCMP_TEST_H5HELPER)

#include <hdf5.h>

/* A dataset to be written. Zeroed fields: float32, little-endian, contiguous. */
struct made {
    const char *name; /* "exp_avg.w" is the state exp_avg of w */
    int ndim;
    hsize_t sizes[4], max_sizes[4], chunk[4];
    bool growing; /* max_sizes count */
    H5D_layout_t layout;
    bool early; /* space is allocated at once */
    bool shuffle, deflate, fletcher32, plain_edges;
    int extra_filter; /* appended last; 0: none */
};

/* Stand in for the helper with a shell script, until use_real(). */
static inline void use_script(const char *temp, const char *script) {
    char *path = temp_path(temp, "helper"), text[600];
    snprintf(text, sizeof text, "#!/bin/sh\n%s\n", script);
    temp_file(temp, "helper", text, strlen(text));
    assert_int_equal(chmod(path, 0700), 0);
    setenv("GRADCMP_H5HELPER", path, 1);
    free(path);
}

static inline void use_real(void) {
    setenv("GRADCMP_H5HELPER", GCMP_TEST_H5HELPER, 1);
}

/* Element i of every dataset that is written: a small number with a fraction. */
static inline float made_value(uint64_t i) {
    return (float)(i % 1000) + 0.25f;
}

static inline hid_t made_properties(const struct made *made) {
    hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_layout(properties, made->layout);
    if (made->layout == H5D_CHUNKED) {
        H5Pset_chunk(properties, made->ndim, made->chunk);
        H5Pset_alloc_time(properties, made->early ? H5D_ALLOC_TIME_EARLY : H5D_ALLOC_TIME_INCR);
    }
    if (made->fletcher32 && made->shuffle) { /* in an order that is not h5py's */
        H5Pset_fletcher32(properties);
    }
    if (made->shuffle) {
        H5Pset_shuffle(properties);
    }
    if (made->deflate) {
        H5Pset_deflate(properties, 4);
    }
    if (made->fletcher32 && !made->shuffle) {
        H5Pset_fletcher32(properties);
    }
    if (made->extra_filter != 0) {
        H5Pset_filter(properties, made->extra_filter, 0, 0, NULL);
    }
    if (made->plain_edges) {
        H5Pset_chunk_opts(properties, H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS);
    }
    return properties;
}

static inline uint64_t made_count(const struct made *made) {
    uint64_t count = 1;
    for (int d = 0; d < made->ndim; d++) {
        count *= made->sizes[d];
    }
    return count;
}

/* Create a dataset of a type and write its values. Returns its id. */
static inline hid_t made_write(hid_t file, const struct made *made, hid_t type) {
    uint64_t count = made_count(made);
    hid_t properties = made_properties(made), links = H5Pcreate(H5P_LINK_CREATE);
    hid_t space = made->ndim == 0 ? H5Screate(H5S_SCALAR)
                                  : H5Screate_simple(made->ndim, made->sizes,
                                                     made->growing ? made->max_sizes : NULL);
    H5Pset_create_intermediate_group(links, 1);
    hid_t dataset = H5Dcreate2(file, made->name, type, space, links, properties, H5P_DEFAULT);
    assert_true(dataset >= 0);
    float *values = malloc(sizeof *values * (count + 1));
    for (uint64_t i = 0; i < count; i++) {
        values[i] = made_value(i);
    }
    assert_true(H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    free(values);
    H5Sclose(space);
    H5Pclose(links);
    H5Pclose(properties);
    return dataset;
}

/* Create a file; `latest`: in the latest format. */
static inline hid_t made_file(const char *path, bool latest, hsize_t user_block) {
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), creation = H5Pcreate(H5P_FILE_CREATE);
    H5Pset_libver_bounds(access, latest ? H5F_LIBVER_LATEST : H5F_LIBVER_EARLIEST,
                         H5F_LIBVER_LATEST);
    H5Pset_userblock(creation, user_block);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, creation, access);
    H5Pclose(access);
    H5Pclose(creation);
    assert_true(file >= 0);
    return file;
}

/* Check that a state of a tensor has the values that were written, and how its bytes are reached.
 */
static inline void made_check(const struct opened *opened, const char *name, uint64_t expected,
                              enum gradcmp_source_kind kind) {
    const struct gradcmp_stored *stored = find_stored(opened, name, "exp_avg");
    uint64_t count;
    if (stored == NULL) {
        fail_msg("no exp_avg of %s", name);
    }
    float *values = gather_stored(opened, stored, &count, NULL);
    assert_non_null(values);
    assert_int_equal(count, expected);
    for (uint64_t i = 0; i < count; i++) {
        if (values[i] != made_value(i)) {
            fail_msg("%s: element %llu is %g, expected %g", name, (unsigned long long)i,
                     (double)values[i], (double)made_value(i));
        }
    }
    for (size_t i = 0; i < stored->piece_count; i++) {
        assert_int_equal(opened->catalogue.sources[stored->pieces[i].source].kind, kind);
    }
    free(values);
}

#endif

#endif
