/* Pairs made from numbers: parameters with given figures or given values, and their judgement. */
#ifndef GCMP_TEST_PAIR_MAKER_H
#define GCMP_TEST_PAIR_MAKER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bounds/bounds.h"

enum { MAX_PARAMETERS = 256, LAYERS = 4 };

#define EPS_BF16 0x1p-7
#define EPS_FP32 0x1p-23

struct maker {
    struct gradcmp_parameter_report parameters[MAX_PARAMETERS];
    struct gradcmp_pair_report pair;
    struct gradcmp_options options;
    struct gcmp_arena arena;
    char names[MAX_PARAMETERS][64];
};

/* An empty pair of a model of LAYERS layers in bfloat16, of which the arguments say so. */
static inline void maker_start(struct maker *maker) {
    memset(maker, 0, sizeof *maker);
    maker->options = (struct gradcmp_options)GRADCMP_OPTIONS_INIT;
    maker->arena = (struct gcmp_arena)GCMP_ARENA_INIT;
    maker->pair.parameters = maker->parameters;
    maker->pair.bound.layers = LAYERS;
    maker->pair.bound.dtype = GRADCMP_DTYPE_BFLOAT16;
    maker->pair.bound.dtype_source = GRADCMP_DTYPE_FROM_ARGS;
}

static inline struct gradcmp_parameter_report *maker_add(struct maker *maker, const char *name,
                                                         int64_t layer) {
    size_t index = maker->pair.parameter_count++;
    assert_true(index < MAX_PARAMETERS && strlen(name) < sizeof maker->names[0]);
    struct gradcmp_parameter_report *parameter = &maker->parameters[index];
    snprintf(maker->names[index], sizeof maker->names[index], "%s", name);
    parameter->name = maker->names[index];
    parameter->layer = layer;
    parameter->in_a = parameter->in_b = parameter->shapes_agree = true;
    return parameter;
}

/* What the sums are of `elems` baseline values with this root mean square, and a candidate alpha
 * times them plus an orthogonal rest of rho times their norm. */
struct wanted {
    uint64_t elems;
    double rms, alpha, rho;
};

static inline void maker_set(struct gradcmp_parameter_report *parameter, struct wanted wanted) {
    double a2 = (double)wanted.elems * wanted.rms * wanted.rms, off = wanted.alpha - 1.0;
    struct gradcmp_tally *tally = &parameter->tally;
    *tally = (struct gradcmp_tally){.a2 = a2, .ad = off * a2, .elems = wanted.elems};
    tally->d2 = a2 * (off * off + wanted.rho * wanted.rho);
    tally->b2 = a2 * (wanted.alpha * wanted.alpha + wanted.rho * wanted.rho);
    tally->max_a = 3.0 * wanted.rms;
    tally->max_b = tally->b2 > 0.0 ? 3.0 * wanted.rms * fmax(fabs(wanted.alpha), wanted.rho) : 0.0;
    tally->max_d = tally->d2 > 0.0 ? 3.0 * sqrt(tally->d2 / (double)wanted.elems) : 0.0;
    parameter->compared_elems = wanted.elems;
}

/* A parameter of 4096 elements of size 1. */
static inline struct gradcmp_parameter_report *maker_put(struct maker *maker, const char *name,
                                                         int64_t layer, double alpha, double rho) {
    struct gradcmp_parameter_report *parameter = maker_add(maker, name, layer);
    maker_set(parameter, (struct wanted){4096, 1.0, alpha, rho});
    return parameter;
}

/* The sums over values, as the engine would count them. */
static inline void maker_count(struct gradcmp_parameter_report *parameter, const double *a,
                               const double *b, size_t elems) {
    struct gradcmp_tally tally = {.elems = elems};
    for (size_t i = 0; i < elems; i++) {
        tally.nonfinite_a += isfinite(a[i]) ? 0 : 1;
        tally.nonfinite_b += isfinite(b[i]) ? 0 : 1;
        if (!isfinite(a[i]) || !isfinite(b[i])) {
            tally.nonfinite_any++;
            continue;
        }
        double d = b[i] - a[i];
        tally.d2 += d * d;
        tally.ad += a[i] * d;
        tally.a2 += a[i] * a[i];
        tally.b2 += b[i] * b[i];
        tally.max_d = fmax(tally.max_d, fabs(d));
        tally.max_a = fmax(tally.max_a, fabs(a[i]));
        tally.max_b = fmax(tally.max_b, fabs(b[i]));
    }
    parameter->tally = tally;
    parameter->compared_elems = elems;
}

/* A model of LAYERS layers with six parameters each, an embedding and a head; alpha wavers by
 * `waver` up and down from 1, rho is given. */
static inline void maker_fill_model(struct maker *maker, double waver, double rho) {
    static const char *const kinds[] = {"attention.norm", "attention.qkv", "attention.proj",
                                        "mlp.norm",       "mlp.fc1",       "mlp.fc2"};
    char name[64];
    for (int layer = 0; layer < LAYERS; layer++) {
        for (int kind = 0; kind < 6; kind++) {
            snprintf(name, sizeof name, "layers.%d.%s", layer, kinds[kind]);
            double sign = (layer + kind) % 3 - 1;
            maker_put(maker, name, layer + 1, 1.0 + waver * sign, rho);
        }
    }
    maker_put(maker, "embedding", 0, 1.0 + waver, rho);
    maker_put(maker, "final_norm", LAYERS + 1, 1.0 - waver, rho);
    maker_put(maker, "output", LAYERS + 1, 1.0, rho);
}

/* Multiply the candidate of a parameter by `factor`. */
static inline void maker_scale(struct gradcmp_parameter_report *parameter, double factor) {
    struct gradcmp_tally *tally = &parameter->tally;
    double e = factor - 1.0, ab = tally->a2 + tally->ad;
    tally->d2 = fmax(0.0, tally->d2 + 2 * e * (tally->b2 - ab) + e * e * tally->b2);
    tally->ad += e * ab;
    tally->b2 *= factor * factor;
    tally->max_b *= fabs(factor);
    tally->max_d = fmax(tally->max_d, fabs(e) * tally->max_a);
}

static inline struct gradcmp_parameter_report *maker_find(struct maker *maker, const char *name) {
    for (size_t i = 0; i < maker->pair.parameter_count; i++) {
        if (strcmp(maker->parameters[i].name, name) == 0) {
            return &maker->parameters[i];
        }
    }
    fail_msg("no parameter %s", name);
    return NULL;
}

static inline enum gradcmp_outcome maker_judge(struct maker *maker) {
    struct gradcmp_error error = {0};
    gcmp_bound_init(&maker->pair.bound, &maker->options);
    assert_int_equal(gcmp_judge_pair(&maker->pair, &maker->options, &maker->arena, &error),
                     GRADCMP_OK);
    return maker->pair.outcome;
}

static inline void maker_end(struct maker *maker) {
    gcmp_arena_free(&maker->arena);
}

static inline void assert_near(double value, double expected, double tolerance) {
    if (!(fabs(value - expected) <= tolerance)) {
        fail_msg("%.17g, expected %.17g +- %g", value, expected, tolerance);
    }
}

#endif
