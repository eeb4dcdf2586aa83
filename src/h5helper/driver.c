/* A file driver of libhdf5 that reads descriptor 0 and nothing else. The process can open no files,
 * and whatever else libhdf5 would open (a virtual dataset's sources) is refused here as well. */
#include "h5helper/helper.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

enum { MAX_READ_BYTES = 1 << 30 };

/* The one open file. `base` must come first: libhdf5 sees only that. */
struct file {
    H5FD_t base;
    haddr_t allocated_end;
};

static uint64_t file_bytes;
static bool is_open;
static uint64_t last_offset = GRADCMP_NO_OFFSET;
static bool finding;
static struct place place;

static H5FD_t *driver_open(const char *name, unsigned flags, hid_t fapl, haddr_t max_address) {
    struct stat info;
    (void)name;
    (void)fapl;
    (void)max_address;
    if (is_open || (flags & H5F_ACC_RDWR) != 0 || fstat(STDIN_FILENO, &info) != 0 ||
        !S_ISREG(info.st_mode)) {
        return NULL;
    }
    struct file *file = calloc(1, sizeof *file);
    if (file != NULL) {
        file_bytes = (uint64_t)info.st_size;
        is_open = true;
    }
    return (H5FD_t *)file;
}

static herr_t driver_close(H5FD_t *file) {
    free(file);
    return 0;
}

static int driver_compare(const H5FD_t *a, const H5FD_t *b) {
    return a == b ? 0 : a < b ? -1 : 1;
}

static herr_t driver_query(const H5FD_t *file, unsigned long *flags) {
    (void)file;
    if (flags != NULL) {
        *flags = H5FD_FEAT_ACCUMULATE_METADATA_READ;
    }
    return 0;
}

static haddr_t driver_get_eoa(const H5FD_t *file, H5FD_mem_t type) {
    (void)type;
    return ((const struct file *)file)->allocated_end;
}

static herr_t driver_set_eoa(H5FD_t *file, H5FD_mem_t type, haddr_t address) {
    (void)type;
    ((struct file *)file)->allocated_end = address;
    return 0;
}

static haddr_t driver_get_eof(const H5FD_t *file, H5FD_mem_t type) {
    (void)file;
    (void)type;
    return file_bytes;
}

bool driver_read_at(uint64_t offset_bytes, void *buffer, size_t size) {
    last_offset = offset_bytes;
    if (offset_bytes > file_bytes || size > file_bytes - offset_bytes) {
        return false;
    }
    for (size_t got = 0; got < size;) {
        size_t want = size - got < MAX_READ_BYTES ? size - got : MAX_READ_BYTES;
        ssize_t done = pread(STDIN_FILENO, (char *)buffer + got, want, (off_t)(offset_bytes + got));
        if (done > 0) {
            got += (size_t)done;
        } else if (done == 0 || errno != EINTR) {
            return false;
        }
    }
    return true;
}

static herr_t driver_read(H5FD_t *file, H5FD_mem_t type, hid_t dxpl, haddr_t address, size_t size,
                          void *buffer) {
    (void)file;
    (void)dxpl;
    if (finding && type == H5FD_MEM_DRAW) {
        place = (struct place){address, size, true};
        return 0;
    }
    return driver_read_at(address, buffer, size) ? 0 : -1;
}

static herr_t driver_write(H5FD_t *file, H5FD_mem_t type, hid_t dxpl, haddr_t address, size_t size,
                           const void *buffer) {
    (void)file;
    (void)type;
    (void)dxpl;
    (void)address;
    (void)size;
    (void)buffer;
    return -1;
}

/* Each kind of memory has its own list of free space, as in libhdf5's own drivers. */
static const H5FD_class_t driver_class = {
#if H5_VERSION_GE(1, 13, 0)
    .version = H5FD_CLASS_VERSION,
    .value = (H5FD_class_value_t)256, /* the first that libhdf5 leaves to others */
#endif
    .name = "gradcmp",
    .maxaddr = INT64_MAX,
    .fc_degree = H5F_CLOSE_STRONG,
    .open = driver_open,
    .close = driver_close,
    .cmp = driver_compare,
    .query = driver_query,
    .get_eoa = driver_get_eoa,
    .set_eoa = driver_set_eoa,
    .get_eof = driver_get_eof,
    .read = driver_read,
    .write = driver_write,
    .fl_map = H5FD_FLMAP_SINGLE,
};

hid_t driver_properties(void) {
    hid_t driver = H5FDregister(&driver_class);
    hid_t properties = H5Pcreate(H5P_FILE_ACCESS);
    if (driver < 0 || properties < 0 || H5Pset_driver(properties, driver, NULL) < 0) {
        return -1;
    }
    return properties;
}

void driver_find_begin(void) {
    place = (struct place){0};
    finding = true;
}

struct place driver_find_end(void) {
    finding = false;
    return place;
}

uint64_t driver_last_offset(void) {
    return last_offset;
}

uint64_t driver_file_bytes(void) {
    return file_bytes;
}
