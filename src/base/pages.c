/* Asks the kernel for large pages. */
#include "base/pages.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HUGE_FROM_BYTES = 4 * 1024 * 1024 }; /* from here on pages of 2 MiB are asked for */

void gcmp_ask_for_huge_pages(void *memory, size_t bytes) {
#ifdef MADV_HUGEPAGE
    if (memory != NULL && bytes >= HUGE_FROM_BYTES) {
        uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
        uintptr_t start = (uintptr_t)memory, end = start + bytes;
        start = start / page * page; /* all of the mapping: realloc moves a split one by copying */
        end = (end + page - 1) / page * page;
        (void)madvise((void *)start, end - start, MADV_HUGEPAGE);
    }
#else
    (void)memory;
    (void)bytes;
#endif
}
