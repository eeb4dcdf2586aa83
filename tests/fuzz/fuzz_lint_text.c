/* Any bytes as a text of settings, in the form that it looks like and as a launch script. */
#include "lint/text.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef enum gradcmp_status (*reader)(const char *bytes, size_t length_bytes,
                                      struct gcmp_lint_source *source, struct gradcmp_error *error);

static void read_with(reader read, const char *text, size_t size) {
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    struct gradcmp_error error = {0};
    struct gcmp_lint_source source = {.path = "fuzz", .arena = &arena};
    enum gradcmp_status status = read(text, size, &source, &error);
    if ((status == GRADCMP_OK) != (error.code == GRADCMP_OK)) {
        abort(); /* a failure without a word, or a word without a failure */
    }
    gcmp_lint_source_free(&source);
    gcmp_arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    if (text == NULL) {
        abort();
    }
    memcpy(text, data, size);
    text[size] = '\0';
    read_with(gcmp_lint_read_text, text, size);
    read_with(gcmp_lint_read_script, text, size);
    free(text);
    return 0;
}
