/* Buffered output of a report. */
#include "report/out.h"

enum { DRAIN_BYTES = 64 * 1024 };

void gcmp_out_begin(struct gcmp_out *out, gradcmp_write_fn write, void *user) {
    *out = (struct gcmp_out){GCMP_TEXT_INIT, write, user, (locale_t)0, (locale_t)0, false};
    locale_t copy = duplocale(uselocale((locale_t)0));
    if (copy != (locale_t)0) {
        out->numeric = newlocale(LC_NUMERIC_MASK, "C", copy);
        if (out->numeric == (locale_t)0) {
            freelocale(copy);
        }
    }
    if (out->numeric == (locale_t)0) {
        out->text.failed = true;
        return;
    }
    out->before = uselocale(out->numeric);
}

static void pass_on(struct gcmp_out *out) {
    if (out->text.length_bytes > 0 && !out->text.failed && !out->write_failed) {
        uselocale(out->before);
        out->write_failed = out->write(out->user, out->text.bytes, out->text.length_bytes) != 0;
        uselocale(out->numeric);
    }
    gcmp_text_clear(&out->text);
}

void gcmp_out_drain(struct gcmp_out *out) {
    if (out->text.length_bytes >= DRAIN_BYTES) {
        pass_on(out);
    }
}

enum gradcmp_status gcmp_out_end(struct gcmp_out *out, struct gradcmp_error *error) {
    pass_on(out);
    bool no_memory = out->text.failed;
    gcmp_text_free(&out->text);
    if (out->numeric != (locale_t)0) {
        uselocale(out->before);
        freelocale(out->numeric);
    }
    if (out->write_failed) {
        GCMP_FAIL(error, GRADCMP_ERROR_IO, "the report could not be written");
    }
    if (no_memory) {
        GCMP_FAIL(error, GRADCMP_ERROR_MEMORY, "out of memory");
    }
    return GRADCMP_OK;
}
