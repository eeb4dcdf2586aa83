/* The words that reports use, and the version. */
#include "report/names.h"

#define STRINGIFY(value)                  #value
#define VERSION_TEXT(major, minor, patch) STRINGIFY(major) "." STRINGIFY(minor) "." STRINGIFY(patch)

const char *gradcmp_version(void) {
    return VERSION_TEXT(GRADCMP_VERSION_MAJOR, GRADCMP_VERSION_MINOR, GRADCMP_VERSION_PATCH);
}

const char *gradcmp_verdict_name(enum gradcmp_verdict verdict) {
    static const char *const names[] = {[GRADCMP_VERDICT_SHAPE] = "shape",
                                        [GRADCMP_VERDICT_MISSING] = "missing",
                                        [GRADCMP_VERDICT_EXTRA] = "extra",
                                        [GRADCMP_VERDICT_CONFLICT] = "conflict",
                                        [GRADCMP_VERDICT_NONFINITE] = "nonfinite",
                                        [GRADCMP_VERDICT_UNJUDGED] = "unjudged",
                                        [GRADCMP_VERDICT_FAIL] = "fail",
                                        [GRADCMP_VERDICT_SCALE] = "scale",
                                        [GRADCMP_VERDICT_PASS] = "pass"};
    unsigned index = (unsigned)verdict;
    return index >= GRADCMP_VERDICT_SHAPE && index <= GRADCMP_VERDICT_PASS ? names[index]
                                                                           : "unknown";
}

const char *gradcmp_outcome_name(enum gradcmp_outcome outcome) {
    static const char *const names[] = {[GRADCMP_OUTCOME_CONSISTENT] = "consistent",
                                        [GRADCMP_OUTCOME_INCONSISTENT] = "inconsistent",
                                        [GRADCMP_OUTCOME_UNDECIDED] = "undecided",
                                        [GRADCMP_OUTCOME_VACUOUS] = "vacuous",
                                        [GRADCMP_OUTCOME_ERROR] = "error"};
    return (unsigned)outcome <= GRADCMP_OUTCOME_ERROR ? names[(unsigned)outcome] : "unknown";
}

struct dtype_source_words {
    const char *key, *text;
};

static const struct dtype_source_words source_words[] = {
    [0] = {NULL, NULL},
    [GRADCMP_DTYPE_FROM_OPTION] = {"option", "from --dtype"},
    [GRADCMP_DTYPE_FROM_ARGS] = {"args", "from the arguments in the checkpoint"},
    [GRADCMP_DTYPE_FROM_WEIGHTS] = {"weights", "the type of the weights in the checkpoint"},
    [GRADCMP_DTYPE_FROM_SIBLING] = {"sibling", "from a checkpoint in the same save folder"},
    [GRADCMP_DTYPE_FROM_STATE] = {"state", "the type of the compared tensors"},
    [GRADCMP_DTYPE_ASSUMED_DUMP] = {"assumed_dump",
                                    "ASSUMED, as is usual for gradient dumps; --dtype decides"},
    [GRADCMP_DTYPE_ASSUMED_STATE] = {
        "assumed_state", "ASSUMED from the type of the compared tensors; --dtype decides"}};

static const struct dtype_source_words *words_of(enum gradcmp_dtype_source source) {
    return &source_words[(unsigned)source <= GRADCMP_DTYPE_ASSUMED_STATE ? (unsigned)source : 0];
}

const char *gcmp_dtype_source_key(enum gradcmp_dtype_source source) {
    return words_of(source)->key;
}

const char *gcmp_dtype_source_text(enum gradcmp_dtype_source source) {
    const char *text = words_of(source)->text;
    return text == NULL ? "source not known" : text;
}
