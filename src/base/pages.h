/* Large memory in large pages. */
#ifndef GCMP_BASE_PAGES_H
#define GCMP_BASE_PAGES_H

#include <stddef.h>

/* Ask for pages of 2 MiB where `bytes` is large: a quarter of the time of opening metadata of a
 * large run went to faults of small ones. To be called before the memory is touched; being refused
 * costs nothing but that. */
void gcmp_ask_for_huge_pages(void *memory, size_t bytes);

#endif
