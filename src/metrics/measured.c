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
        "gb",       "tb",       "gib",        "img",     "imgs",      NULL};
    take_any(&rest, each);
    bool is_by_time = take_any(&rest, seconds);
    take_any(&rest, each); /* "tokens per gpu per second" */
    return is_by_time && ends_with_any(&rest, counted);
}

/* "sec/step", "ms per iteration": the time that one of a thing takes. */
static bool is_time_of_each(struct rest rest) {
    static const char *const each_of[] = {"step",   "iter",  "iteration", "it", "batch",
                                          "sample", "token", "epoch",     NULL};
    static const char *const times[] = {"s/",      "ms/",      "sec/",        "secs/",
                                        "second/", "seconds/", "s per",       "ms per",
                                        "sec per", "secs per", "seconds per", NULL};
    return take_any(&rest, each_of) && ends_with_any(&rest, times);
}

/* Take a unit in brackets off the end, or a unit of time without them; *unit is what stood in the
 * brackets. */
static void take_unit(struct rest *rest, struct rest *unit) {
    static const char *const bare[] = {", s",    ", ms",       ", sec", "in s", "in ms",
                                       "in sec", "in seconds", "s",     "ms",   "sec",
                                       "secs",   "seconds",    NULL};
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
                                        "communication",
                                        "gpu",
                                        "val",
                                        "update",
                                        "evaluate",
                                        "persistent",
                                        "first token",
                                        NULL};
    bool is_time = take(&rest, "time");
    take(&rest, "time"); /* "interval-time-time" */
    return is_time && ends_with_any(&rest, parts);
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

static bool holds_any(const char *name, const char *const words[]) {
    for (size_t i = 0; words[i] != NULL; i++) {
        if (holds(name, words[i])) {
            return true;
        }
    }
    return false;
}

/* True for names of what a run is judged by, whatever else stands in them. */
static bool is_judged(const char *name) {
    static const char *const words[] = {"loss",    "losses",    "perplexity", "ppl",  "accuracy",
                                        "acc",     "mae",       "mse",        "rmse", "score",
                                        "reward",  "rewards",   "penalty",    "norm", "error",
                                        "student", "attention", NULL};
    return holds_any(name, words);
}

/* Find the next word at or behind `at`; its length is 0 at the end of the name. */
static struct rest next_word(const char *at) {
    while (*at != '\0' && !is_word_byte(*at)) {
        at++;
    }
    size_t length = 0;
    while (is_word_byte(at[length])) {
        length++;
    }
    return (struct rest){at, length};
}

static bool is_one_of(const struct rest *word, const char *const words[]) {
    for (size_t i = 0; words[i] != NULL; i++) {
        if (word->length == strlen(words[i]) && memcmp(word->name, words[i], word->length) == 0) {
            return true;
        }
    }
    return false;
}

/* What tells which of many values it is: "tokens_per_sec_avg". */
static const char *const statistics[] = {"avg", "average", "mean", "median", "max", "min",
                                         "p50", "p90",     "p95",  "p99",    NULL};

/* "power", "gpu_energy", "total power": of the machine, where it stands alone or says so beside. */
static bool is_power_drawn(const char *name) {
    static const char *const power[] = {"power", "energy", NULL};
    static const char *const beside[] = {"gpu", "system", "watts", "monitor", "total", NULL};
    struct rest before = {"", 0};
    struct rest word = next_word(name);
    while (word.length > 0) {
        struct rest after = next_word(word.name + word.length);
        bool is_alone = before.length == 0 && (after.length == 0 || is_one_of(&after, statistics));
        if (is_one_of(&word, power) &&
            (is_alone || is_one_of(&before, beside) || is_one_of(&after, beside))) {
            return true;
        }
        before = word;
        word = after;
    }
    return false;
}

/* "mfu" as the last word, but for statistics: the share of a machine's rate. */
static bool is_share_of_rate(const char *name) {
    static const char *const share[] = {"mfu", NULL};
    struct rest word = next_word(name), last = word;
    while (word.length > 0) {
        last = is_one_of(&word, statistics) ? last : word;
        word = next_word(word.name + word.length);
    }
    return is_one_of(&last, share);
}

/* Take the words of statistics off the end. */
static void take_statistics(struct rest *rest) {
    while (take_any(rest, statistics)) {
        while (rest->length > 0 && (rest->name[rest->length - 1] & 0x80) == 0 &&
               strchr("/.:", rest->name[rest->length - 1]) != NULL) {
            rest->length--;
        }
    }
}

/* True where the end of a name tells a time or a rate. */
static bool ends_measured(struct rest rest) {
    struct rest unit;
    if (is_rate(rest) || is_time_of_each(rest)) {
        return true;
    }
    take_unit(&rest, &unit);
    if (is_rate(unit) || is_time_of_each(unit) || is_rate(rest) || is_energy(rest, &unit)) {
        return true;
    }
    take_any(&rest, each);
    return ends_with(&rest, "runtime") || is_time_of_part(rest);
}

bool gcmp_metric_is_measured(const char *name) {
    static const char *const words[] = {"throughput", "tflops",       "tflop",      "timing",
                                        "latency",    "elapsed time", "powerwatts", NULL};
    struct rest rest = {name, strlen(name)};
    if (starts_with(name, "timing s/") || starts_with(name, "timing per token ms/")) {
        return true; /* verl's, of the part that gives the rewards too */
    }
    take(&rest, "vs samples");
    take_statistics(&rest);
    return !is_judged(name) && (holds_any(name, words) || is_power_drawn(name) ||
                                is_share_of_rate(name) || ends_measured(rest));
}
