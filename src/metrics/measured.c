/* Names of measured times and rates, by whole words at the end of a name and by units. Sources:
 * what Megatron-LM (training.py, timers.py), NeMo, DeepSpeed, Lightning, the trainers of Hugging
 * Face, torchtitan and verl write. */
#include "metrics/measured.h"

#include <stddef.h>
#include <string.h>

/* A name, of which the end moves forward as its parts are understood. */
struct rest {
    const char *name;
    size_t length;
};

static bool is_word_byte(char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || (byte & 0x80) != 0;
}

/* True where the rest ends with the words, which begin where a word begins. */
static bool ends_with(const struct rest *rest, const char *words) {
    size_t length = strlen(words);
    if (length > rest->length || memcmp(rest->name + rest->length - length, words, length) != 0) {
        return false;
    }
    size_t before = rest->length - length;
    return before == 0 || !is_word_byte(words[0]) || !is_word_byte(rest->name[before - 1]);
}

static bool ends_with_any(const struct rest *rest, const char *const words[]) {
    for (size_t i = 0; words[i] != NULL; i++) {
        if (ends_with(rest, words[i])) {
            return true;
        }
    }
    return false;
}

/* Take the words off the end, and the spaces before them. */
static bool take(struct rest *rest, const char *words) {
    if (!ends_with(rest, words)) {
        return false;
    }
    rest->length -= strlen(words);
    while (rest->length > 0 && rest->name[rest->length - 1] == ' ') {
        rest->length--;
    }
    return true;
}

static bool take_any(struct rest *rest, const char *const words[]) {
    for (size_t i = 0; words[i] != NULL; i++) {
        if (take(rest, words[i])) {
            return true;
        }
    }
    return false;
}

static const char *const each[] = {"/gpu",       "/device",  "/rank",    "/chip", "per gpu",
                                   "per device", "per rank", "per chip", NULL};

/* "tokens/s", "tflop/s/gpu", "samples per second": so many of a thing that is counted. */
static bool is_rate(struct rest rest) {
    static const char *const seconds[] = {"/s",    "/sec",    "/second",    "/seconds",
                                          "per s", "per sec", "per second", NULL};
    static const char *const counted[] = {
        "tokens",   "token",    "tok",        "samples", "sample",    "sequences", "sequence",
        "seqs",     "steps",    "step",       "iter",    "iters",     "its",       "it",
        "batch",    "batches",  "iterations", "images",  "iteration", "frames",    "words",
        "examples", "requests", "episodes",   "flops",   "flop",      "tflops",    "tflop",
        "gflops",   "gflop",    "pflops",     "pflop",   "bytes",     "kb",        "mb",
        "gb",       "tb",       "gib",        NULL};
    take_any(&rest, each);
    bool is_by_time = take_any(&rest, seconds);
    take_any(&rest, each); /* "tokens per gpu per second" */
    return is_by_time && ends_with_any(&rest, counted);
}

/* Take a unit in brackets off the end, or a unit of time without them; *unit is what stood in the
 * brackets. */
static void take_unit(struct rest *rest, struct rest *unit) {
    static const char *const bare[] = {"in s", "in ms", "in sec", "in seconds", "s",
                                       "ms",   "sec",   "secs",   "seconds",    NULL};
    *unit = (struct rest){"", 0};
    if (rest->length == 0 || rest->name[rest->length - 1] != ')') {
        take_any(rest, bare);
        return;
    }
    size_t open = rest->length - 1;
    while (open > 0 && rest->name[open] != '(') {
        open--;
    }
    *unit = (struct rest){rest->name + open + 1, rest->length - open - 2};
    rest->length = open;
    while (rest->length > 0 && rest->name[rest->length - 1] == ' ') {
        rest->length--;
    }
}

/* "forward compute time": the word before says that it is a part of the run that takes time. */
static bool is_time_of_part(struct rest rest) {
    static const char *const parts[] = {"iteration",
                                        "iter",
                                        "step",
                                        "batch",
                                        "epoch",
                                        "elapsed",
                                        "interval",
                                        "forward",
                                        "backward",
                                        "compute",
                                        "generator",
                                        "recv",
                                        "send",
                                        "reduce",
                                        "sync",
                                        "gather",
                                        "scatter",
                                        "grad",
                                        "params",
                                        "inf",
                                        "zeros",
                                        "optimizer",
                                        "setup",
                                        "checkpoint",
                                        "eval",
                                        "train",
                                        "training",
                                        "validation",
                                        "data",
                                        "loading",
                                        "load",
                                        "save",
                                        "wall",
                                        "total",
                                        "fwd",
                                        "bwd",
                                        "generation",
                                        "inference",
                                        "rollout",
                                        "comm",
                                        "allreduce",
                                        "evaluation",
                                        "run",
                                        "sampling",
                                        "dataloader",
                                        "wait",
                                        "iteration per gpu",
                                        NULL};
    return take(&rest, "time") && ends_with_any(&rest, parts);
}

static bool is_energy(struct rest rest, const struct rest *unit) {
    static const char *const units[] = {"j", "w", "kw", "j/iter", NULL};
    struct rest bare = *unit;
    take_any(&bare, each);
    bool is_each = take_any(&rest, each) || (bare.length > 0 && ends_with_any(&bare, units));
    return is_each && (ends_with(&rest, "energy") || ends_with(&rest, "power"));
}

static bool starts_with(const char *name, const char *start) {
    return strncmp(name, start, strlen(start)) == 0;
}

/* True where the words stand anywhere in the name, as whole words. */
static bool holds(const char *name, const char *words) {
    size_t length = strlen(words);
    for (const char *at = strstr(name, words); at != NULL; at = strstr(at + 1, words)) {
        if ((at == name || !is_word_byte(at[-1])) && !is_word_byte(at[length])) {
            return true;
        }
    }
    return false;
}

bool gcmp_metric_is_measured(const char *name) {
    static const char *const measured[] = {"throughput", "tflops",  "tflop", "timing",
                                           "latency",    "runtime", NULL};
    struct rest rest = {name, strlen(name)}, unit;
    take(&rest, "vs samples");
    if (is_rate(rest)) {
        return true;
    }
    take_unit(&rest, &unit);
    if (is_rate(unit) || is_rate(rest) || is_energy(rest, &unit)) {
        return true;
    }
    take_any(&rest, each);
    return ends_with_any(&rest, measured) || is_time_of_part(rest) || holds(name, "elapsed time") ||
           starts_with(name, "timing s/") || starts_with(name, "timing per token ms/");
}
