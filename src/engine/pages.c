/* Pages of files in a hash table with open addressing; they are read in runs, each one piece of
 * memory. */
#include "engine/pages.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Small, since a parameter of a few KiB is not to cost much more than itself. */
enum { PAGE_BYTES = 512 };

struct page {
    const struct gcmp_dir *dir; /* NULL: a free place */
    uint64_t index;             /* in its file */
    const unsigned char *bytes; /* in a run; the last page of a file may be short */
    uint32_t file;
};

/* Pages that were read together; their bytes follow. */
struct run {
    struct run *next;
    unsigned char bytes[];
};

struct gcmp_pages {
    uint64_t limit_bytes;
    bool keep;
    _Atomic uint64_t read_bytes;
    pthread_mutex_t lock; /* guards what follows */
    struct page *table;   /* NULL: nothing was kept yet */
    size_t mask;          /* places in the table, a power of two, less 1 */
    struct run *runs;
    uint64_t kept_bytes;
};

struct gcmp_pages *gcmp_pages_make(uint64_t limit_bytes) {
    struct gcmp_pages *pages = calloc(1, sizeof *pages);
    if (pages != NULL) {
        pages->limit_bytes = limit_bytes / PAGE_BYTES * PAGE_BYTES;
        pages->keep = true;
        pthread_mutex_init(&pages->lock, NULL);
    }
    return pages;
}

void gcmp_pages_clear(struct gcmp_pages *pages) {
    while (pages->runs != NULL) {
        struct run *next = pages->runs->next;
        free(pages->runs);
        pages->runs = next;
    }
    free(pages->table);
    pages->table = NULL;
    pages->kept_bytes = 0;
}

void gcmp_pages_free(struct gcmp_pages *pages) {
    if (pages != NULL) {
        gcmp_pages_clear(pages);
        pthread_mutex_destroy(&pages->lock);
        free(pages);
    }
}

void gcmp_pages_keep(struct gcmp_pages *pages, bool keep) {
    pages->keep = keep;
}

uint64_t gcmp_pages_kept_bytes(const struct gcmp_pages *pages) {
    return pages->kept_bytes;
}

uint64_t gcmp_pages_read_bytes(const struct gcmp_pages *pages) {
    return atomic_load_explicit(&pages->read_bytes, memory_order_relaxed);
}

static enum gradcmp_status read_file(struct gcmp_pages *pages, const struct gcmp_pages_at *at,
                                     void *buffer, size_t count, struct gradcmp_error *error) {
    atomic_fetch_add_explicit(&pages->read_bytes, count, memory_order_relaxed);
    return gcmp_dir_read(at->dir, at->file, at->offset_bytes, buffer, count, error);
}

/* --- the table; lock held --- */

/* The place of a page, or the free one where it would be. There are always free ones. */
static struct page *place_of(const struct gcmp_pages *pages, const struct gcmp_pages_at *at) {
    uint64_t index = at->offset_bytes / PAGE_BYTES;
    uint64_t key = (index ^ ((uint64_t)at->file << 40) ^ (uintptr_t)at->dir) *
                   UINT64_C(0x9e3779b97f4a7c15); /* Fibonacci hashing */
    size_t place = (size_t)(key >> 32) & pages->mask;
    for (;; place = (place + 1) & pages->mask) {
        struct page *page = &pages->table[place];
        if (page->dir == NULL ||
            (page->dir == at->dir && page->file == at->file && page->index == index)) {
            return page;
        }
    }
}

static const struct page *find(const struct gcmp_pages *pages, const struct gcmp_pages_at *at) {
    const struct page *page = pages->table == NULL ? NULL : place_of(pages, at);
    return page == NULL || page->dir == NULL ? NULL : page;
}

/* Make the table, at most half full. */
static bool make_table(struct gcmp_pages *pages) {
    size_t places = 64;
    while (places < 2 * (pages->limit_bytes / PAGE_BYTES)) {
        places *= 2;
    }
    pages->table = calloc(places, sizeof *pages->table);
    pages->mask = places - 1;
    return pages->table != NULL;
}

/* Bytes from `at` to the first page that is kept, or to `end`. */
static size_t missing_bytes(const struct gcmp_pages *pages, struct gcmp_pages_at at, uint64_t end) {
    uint64_t start = at.offset_bytes;
    do {
        at.offset_bytes = (at.offset_bytes / PAGE_BYTES + 1) * PAGE_BYTES;
    } while (at.offset_bytes < end && find(pages, &at) == NULL);
    return (size_t)((at.offset_bytes < end ? at.offset_bytes : end) - start);
}

/* Every page counts as a whole one, so that the table cannot fill up. */
static uint64_t whole_pages(uint64_t bytes) {
    return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

/* Bytes of the pages around `count` bytes at `at`; 0 where they are not to be kept. */
static size_t bytes_to_keep(const struct gcmp_pages *pages, const struct gcmp_pages_at *at,
                            size_t count) {
    uint64_t start = at->offset_bytes / PAGE_BYTES * PAGE_BYTES;
    uint64_t file_bytes = gcmp_dir_file_bytes(at->dir, at->file);
    uint64_t last = at->offset_bytes + count - 1;
    if (last >= file_bytes) {
        return 0; /* the file ends early: to be told as always */
    }
    uint64_t end = (last / PAGE_BYTES + 1) * PAGE_BYTES;
    uint64_t bytes = (end < file_bytes ? end : file_bytes) - start;
    return whole_pages(bytes) <= pages->limit_bytes - pages->kept_bytes ? (size_t)bytes : 0;
}

/* Read the pages of a run and keep them. False without memory. */
static bool keep_run(struct gcmp_pages *pages, struct gcmp_pages_at at, size_t bytes,
                     enum gradcmp_status *status, struct gradcmp_error *error) {
    struct run *run = malloc(sizeof *run + bytes);
    if (run == NULL || (pages->table == NULL && !make_table(pages))) {
        free(run);
        return false;
    }
    at.offset_bytes = at.offset_bytes / PAGE_BYTES * PAGE_BYTES;
    *status = read_file(pages, &at, run->bytes, bytes, error);
    if (*status != GRADCMP_OK) {
        free(run);
        return true;
    }
    run->next = pages->runs;
    pages->runs = run;
    pages->kept_bytes += whole_pages(bytes);
    for (size_t done = 0; done < bytes; done += PAGE_BYTES) {
        struct page *page = place_of(pages, &at);
        *page = (struct page){at.dir, at.offset_bytes / PAGE_BYTES, run->bytes + done, at.file};
        at.offset_bytes += PAGE_BYTES;
    }
    return true;
}

/* --- reading --- */

/* Copy from a page; returns how many bytes. */
static size_t copy_page(const struct page *page, const struct gcmp_pages_at *at,
                        unsigned char *buffer, size_t count) {
    size_t skip = (size_t)(at->offset_bytes % PAGE_BYTES), some = PAGE_BYTES - skip;
    some = some < count ? some : count;
    memcpy(buffer, page->bytes + skip, some);
    return some;
}

static enum gradcmp_status read_locked(struct gcmp_pages *pages, struct gcmp_pages_at at,
                                       unsigned char *buffer, size_t count,
                                       struct gradcmp_error *error) {
    uint64_t end = at.offset_bytes + count;
    while (at.offset_bytes < end) {
        size_t left = (size_t)(end - at.offset_bytes), some;
        const struct page *page = find(pages, &at);
        if (page != NULL) {
            some = copy_page(page, &at, buffer, left);
        } else {
            enum gradcmp_status status = GRADCMP_OK;
            some = missing_bytes(pages, at, end);
            size_t bytes = pages->keep ? bytes_to_keep(pages, &at, some) : 0;
            if (bytes > 0 && keep_run(pages, at, bytes, &status, error)) {
                GCMP_TRY(status);
                continue; /* now it is there */
            }
            GCMP_TRY(read_file(pages, &at, buffer, some, error));
        }
        at.offset_bytes += some;
        buffer += some;
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_pages_read(struct gcmp_pages *pages, struct gcmp_pages_at at, void *buffer,
                                    size_t count, struct gradcmp_error *error) {
    uint64_t end;
    if (!pages->keep || __builtin_add_overflow(at.offset_bytes, (uint64_t)count, &end)) {
        return read_file(pages, &at, buffer, count, error);
    }
    /* One reader at a time: what two threads want is read once. */
    pthread_mutex_lock(&pages->lock);
    enum gradcmp_status status = read_locked(pages, at, buffer, count, error);
    pthread_mutex_unlock(&pages->lock);
    return status;
}
