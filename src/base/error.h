/* Error reporting shared by all folders: fills a caller-owned struct gradcmp_error, never prints.
 */
#ifndef GCMP_BASE_ERROR_H
#define GCMP_BASE_ERROR_H

#include <stdarg.h>

#include "gradcmp/gradcmp.h"

/* Fill `error` (NULL allowed) and return `code`. `path` may be NULL or "". */
enum gradcmp_status gcmp_error_fill(struct gradcmp_error *error, enum gradcmp_status code,
                                    const char *path, uint64_t offset_bytes, const char *format,
                                    ...) __attribute__((format(printf, 5, 6)));

/* Return the status of a failure, which is never GRADCMP_OK. Compilers and analyzers see it here,
 * and do not follow a failure as if it were a success. (clang's analyzer looks into functions that
 * lie deep only where they do not branch.) */
static inline enum gradcmp_status gcmp_failure(enum gradcmp_status status) {
#ifdef __clang_analyzer__
    __builtin_assume(status != GRADCMP_OK);
    return status;
#else
    return status != GRADCMP_OK ? status : GRADCMP_ERROR_USAGE;
#endif
}

/* gcmp_error_set(error, code, path, offset_bytes, format, ...) does both. */
#define gcmp_error_set(...) gcmp_failure(gcmp_error_fill(__VA_ARGS__))

/* Set the path of an error that has none yet; an upper layer adds context and never overwrites. */
void gcmp_error_add_path(struct gradcmp_error *error, const char *path);

/* Return from the function with the failure of `expr`, where nothing is owned. */
#define GCMP_TRY(expr)                                                                             \
    do {                                                                                           \
        enum gradcmp_status gcmp_try_status_ = (expr);                                             \
        if (gcmp_try_status_ != GRADCMP_OK) {                                                      \
            return gcmp_try_status_;                                                               \
        }                                                                                          \
    } while (0)

/* Jump to `out:` with `status` set to the failure of `expr`, where something is owned. */
#define GCMP_TRY_OUT(expr)                                                                         \
    do {                                                                                           \
        status = (expr);                                                                           \
        if (status != GRADCMP_OK) {                                                                \
            goto out;                                                                              \
        }                                                                                          \
    } while (0)

/* Fail without a file position: GCMP_FAIL(error, GRADCMP_ERROR_USAGE, "..."). */
#define GCMP_FAIL(error, code, ...)                                                                \
    return gcmp_error_set((error), (code), NULL, GRADCMP_NO_OFFSET, __VA_ARGS__)

/* Fail at a byte of a file. */
#define GCMP_FAIL_AT(error, code, path, offset, ...)                                               \
    return gcmp_error_set((error), (code), (path), (offset), __VA_ARGS__)

#define GCMP_FAIL_MEMORY(error) GCMP_FAIL((error), GRADCMP_ERROR_MEMORY, "out of memory")

#endif
