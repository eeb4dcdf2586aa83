/* gradcmp_report_write_hdf5: all figures of a report as datasets, streamed to the helper program.
 * A candidate is a group of columns, one entry a parameter; each heat map is a dataset of its own.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "formats/hdf5_wire_write.h"
#include "formats/hdf5_writer.h"
#include "gradcmp/sys/result.h"
#include "report/facts.h"
#include "report/repeat.h"

enum { MAX_PATH_BYTES = 128, MAX_TEXTS = 12 };

/* One report on its way. */
struct sender {
    struct gcmp_h5_writer *writer;
    const struct gradcmp_pair_report *pair;
    size_t index; /* of the candidate */
    struct gcmp_arena arena;
    bool failed; /* the helper listens no more, or memory lacked */
};

static void send_dataset(struct sender *sender, const struct gcmp_h5_new *dataset,
                         const void *bytes, size_t count) {
    sender->failed = sender->failed || !gcmp_h5_writer_dataset(sender->writer, dataset) ||
                     !gcmp_h5_writer_elements(sender->writer, bytes, count);
}

/* Little-endian words, whatever the host's order. */
static unsigned char *make_words(struct sender *sender, size_t count) {
    unsigned char *words = gcmp_arena_alloc(&sender->arena, count, 8);
    sender->failed = sender->failed || words == NULL;
    return words;
}

static void put_word(unsigned char *words, size_t at, uint64_t value) {
    for (unsigned i = 0; i < 8; i++) {
        words[8 * at + i] = (unsigned char)(value >> (8 * i));
    }
}

static uint64_t bits_of(double value) {
    uint64_t word;
    memcpy(&word, &value, sizeof word);
    return word;
}

/* --- columns --- */

/* Figures that are real numbers, and those that count; NAN and 0 where they do not exist. */
struct real_column {
    const char *name;
    size_t offset; /* in struct gradcmp_parameter_report */
};

#define REAL(member)                                                                               \
    { #member, offsetof(struct gradcmp_parameter_report, member) }
#define COUNT(name, member)                                                                        \
    { name, offsetof(struct gradcmp_parameter_report, member) }

static const struct real_column reals[] = {
    REAL(rel), REAL(rel_common), REAL(bound),  REAL(ratio), REAL(alpha), REAL(alpha_tolerance),
    REAL(rho), REAL(cosine),     REAL(norm_a), REAL(norm_b)};
static const struct real_column counts[] = {
    COUNT("elements", compared_elems),       COUNT("max_index", tally.max_d_index),
    COUNT("max_ulp", tally.max_ulp),         COUNT("equal_bits", tally.equal_bits),
    COUNT("zeros_a", tally.zeros_a),         COUNT("zeros_b", tally.zeros_b),
    COUNT("nonfinite_a", tally.nonfinite_a), COUNT("nonfinite_b", tally.nonfinite_b)};

static void send_column(struct sender *sender, const char *name, enum gradcmp_dtype dtype,
                        const unsigned char *words) {
    char path[MAX_PATH_BYTES];
    const uint64_t size = sender->pair->parameter_count;
    snprintf(path, sizeof path, "candidates/%zu/%s", sender->index, name);
    const struct gcmp_h5_new dataset = {
        .path = path, .dtype = dtype, .ndim = 1, .sizes = &size, .layer = GCMP_H5W_NO_LAYER};
    if (!sender->failed) {
        send_dataset(sender, &dataset, words, (size_t)size * 8);
    }
}

static void send_numbers(struct sender *sender) {
    const struct gradcmp_pair_report *pair = sender->pair;
    unsigned char *words = make_words(sender, pair->parameter_count);
    for (size_t c = 0; c < sizeof reals / sizeof reals[0] && words != NULL; c++) {
        for (size_t i = 0; i < pair->parameter_count; i++) {
            double value;
            memcpy(&value, (const char *)&pair->parameters[i] + reals[c].offset, sizeof value);
            put_word(words, i, bits_of(value));
        }
        send_column(sender, reals[c].name, GRADCMP_DTYPE_FLOAT64, words);
    }
    for (size_t c = 0; c < sizeof counts / sizeof counts[0] && words != NULL; c++) {
        for (size_t i = 0; i < pair->parameter_count; i++) {
            uint64_t value;
            memcpy(&value, (const char *)&pair->parameters[i] + counts[c].offset, sizeof value);
            put_word(words, i, value);
        }
        send_column(sender, counts[c].name, GRADCMP_DTYPE_UINT64, words);
    }
    for (size_t i = 0; i < pair->parameter_count && words != NULL; i++) {
        put_word(words, i, (uint64_t)pair->parameters[i].layer);
    }
    send_column(sender, "layer", GRADCMP_DTYPE_INT64, words);
    for (size_t i = 0; i < pair->parameter_count && words != NULL; i++) {
        const struct gradcmp_parameter_report *parameter = &pair->parameters[i];
        put_word(words, i,
                 bits_of(ldexp(parameter->tally.max_d, -(int)gradcmp_difference_log2(parameter))));
    }
    send_column(sender, "max_abs", GRADCMP_DTYPE_FLOAT64, words);
}

/* The cause that explains most of a parameter: its factor and what it leaves. */
static void send_causes(struct sender *sender) {
    const struct gradcmp_pair_report *pair = sender->pair;
    unsigned char *factors = make_words(sender, pair->parameter_count);
    unsigned char *residuals = make_words(sender, pair->parameter_count);
    for (size_t i = 0; i < pair->parameter_count && factors != NULL && residuals != NULL; i++) {
        const struct gradcmp_parameter_report *parameter = &pair->parameters[i];
        bool has = parameter->cause_count > 0;
        put_word(factors, i, bits_of(has ? parameter->causes[0].factor : (double)NAN));
        put_word(residuals, i, bits_of(has ? parameter->causes[0].residual : (double)NAN));
    }
    send_column(sender, "cause_factor", GRADCMP_DTYPE_FLOAT64, factors);
    send_column(sender, "cause_residual", GRADCMP_DTYPE_FLOAT64, residuals);
}

/* --- texts --- */

typedef const char *(*text_of)(const struct gradcmp_parameter_report *parameter);

static const char *name_of(const struct gradcmp_parameter_report *parameter) {
    return parameter->name;
}
static const char *verdict_of(const struct gradcmp_parameter_report *parameter) {
    return gradcmp_verdict_name(parameter->verdict);
}
static const char *cause_of(const struct gradcmp_parameter_report *parameter) {
    return parameter->cause_count > 0 && parameter->causes[0].kind != NULL
               ? parameter->causes[0].kind
               : "";
}

/* A column of texts, with what is known of the candidate as its attributes. */
static void send_texts(struct sender *sender, const char *column, text_of text,
                       const char *const (*attributes)[2], unsigned attribute_count) {
    const struct gradcmp_pair_report *pair = sender->pair;
    char path[MAX_PATH_BYTES];
    uint64_t sizes[2] = {pair->parameter_count, 1};
    for (size_t i = 0; i < pair->parameter_count; i++) {
        size_t length = strlen(text(&pair->parameters[i]));
        length = length < GCMP_H5W_MAX_LENGTH ? length : GCMP_H5W_MAX_LENGTH;
        sizes[1] = length > sizes[1] ? length : sizes[1];
    }
    char *bytes = gcmp_arena_alloc(&sender->arena, (size_t)sizes[0], (size_t)sizes[1]);
    if (bytes == NULL) {
        sender->failed = true;
        return;
    }
    for (size_t i = 0; i < pair->parameter_count; i++) {
        const char *from = text(&pair->parameters[i]);
        memcpy(bytes + i * (size_t)sizes[1], from, strnlen(from, (size_t)sizes[1]));
    }
    snprintf(path, sizeof path, "candidates/%zu/%s", sender->index, column);
    const struct gcmp_h5_new dataset = {.path = path,
                                        .dtype = GRADCMP_DTYPE_NONE,
                                        .ndim = 2,
                                        .sizes = sizes,
                                        .layer = GCMP_H5W_NO_LAYER,
                                        .texts = attributes,
                                        .text_count = attribute_count};
    send_dataset(sender, &dataset, bytes, (size_t)sizes[0] * (size_t)sizes[1]);
}

static void send_names(struct sender *sender) {
    const struct gradcmp_pair_report *pair = sender->pair;
    char onset[32], common[32];
    snprintf(onset, sizeof onset, "%lld", (long long)pair->onset_layer);
    snprintf(common, sizeof common, "%.17g", pair->common_factor);
    const char *const attributes[MAX_TEXTS][2] = {
        {"path", pair->path},
        {"verdict", gradcmp_outcome_name(pair->outcome)},
        {"onset", pair->onset_layer < 0 ? "" : onset},
        {"common_factor", isnan(pair->common_factor) ? "" : common},
        {"cause", pair->cause.kind == NULL ? "" : pair->cause.kind},
        {"cause_text", pair->cause.text == NULL ? "" : pair->cause.text},
        {"error", pair->outcome == GRADCMP_OUTCOME_ERROR ? pair->error.message : ""},
        {"taken_over", pair->taken_over ? "yes" : "no"}};
    send_texts(sender, "name", name_of, attributes, 8);
    send_texts(sender, "verdict", verdict_of, NULL, 0);
    send_texts(sender, "cause", cause_of, NULL, 0);
}

/* --- heat maps --- */

static void send_heat(struct sender *sender, size_t index) {
    const struct gradcmp_parameter_report *parameter = &sender->pair->parameters[index];
    const struct gradcmp_heat *heat = &parameter->heat;
    char path[MAX_PATH_BYTES], at[32];
    size_t cells = (size_t)heat->rows * heat->columns;
    const uint64_t sizes[2] = {heat->rows, heat->columns};
    unsigned char *words = make_words(sender, cells);
    for (size_t i = 0; i < cells && words != NULL; i++) {
        put_word(words, i, bits_of(heat->cells[i]));
    }
    snprintf(path, sizeof path, "candidates/%zu/heat/%06zu", sender->index, index);
    snprintf(at, sizeof at, "%zu", index);
    const char *const attributes[][2] = {{"name", parameter->name}, {"parameter", at}};
    const struct gcmp_h5_new dataset = {.path = path,
                                        .dtype = GRADCMP_DTYPE_FLOAT64,
                                        .ndim = 2,
                                        .sizes = sizes,
                                        .layer = (uint64_t)parameter->layer,
                                        .texts = attributes,
                                        .text_count = 2};
    if (!sender->failed) {
        send_dataset(sender, &dataset, words, 8 * cells);
    }
}

static void send_pair(struct sender *sender) {
    send_names(sender);
    send_numbers(sender);
    send_causes(sender);
    for (size_t i = 0; i < sender->pair->parameter_count && !sender->failed; i++) {
        if (sender->pair->parameters[i].heat.rows > 0) {
            send_heat(sender, i);
            gcmp_arena_free(&sender->arena);
            sender->arena = (struct gcmp_arena)GCMP_ARENA_INIT;
        }
    }
}

static void send_head(struct sender *sender, const struct gradcmp_report *report) {
    struct gcmp_h5_writer *writer = sender->writer;
    struct gcmp_text options = GCMP_TEXT_INIT;
    gcmp_repeat_options(&options, &report->options);
    (void)gcmp_h5_writer_attribute(writer, "gradcmp.report", "1"); /* first: it marks the file */
    (void)gcmp_h5_writer_attribute(writer, "version", gradcmp_version());
    (void)gcmp_h5_writer_attribute(writer, "baseline", report->baseline_path);
    (void)gcmp_h5_writer_attribute(writer, "state", report->state);
    (void)gcmp_h5_writer_attribute(writer, "options", options.bytes == NULL ? "" : options.bytes);
    sender->failed = sender->failed || options.failed;
    gcmp_text_free(&options);
}

enum gradcmp_status gradcmp_report_write_hdf5(const struct gradcmp_report *report, int descriptor,
                                              struct gradcmp_error *error) {
    struct sender sender = {.arena = GCMP_ARENA_INIT};
    GCMP_TRY(gcmp_h5_writer_start(descriptor, &sender.writer, error));
    send_head(&sender, report);
    for (sender.index = 0; sender.index < report->pair_count && !sender.failed; sender.index++) {
        sender.pair = &report->pairs[sender.index];
        send_pair(&sender);
        gcmp_arena_free(&sender.arena);
        sender.arena = (struct gcmp_arena)GCMP_ARENA_INIT;
    }
    /* Where the helper listens no more, it says why. */
    enum gradcmp_status status = gcmp_h5_writer_end(sender.writer, true, error);
    if (status == GRADCMP_OK && sender.failed) {
        GCMP_FAIL_MEMORY(error);
    }
    return status;
}
