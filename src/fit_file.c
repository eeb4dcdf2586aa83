/* A fit as a small YAML file: written and read. */
#include "fit_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/yaml_doc.h"
#include "report/out.h"

/* A fit file that this version writes. */
#define FIT_VERSION 1

enum {
    MAX_KEY_BYTES = 900, /* libyaml takes keys of up to 1024 characters */
    SHA256_DIGITS = 64
};

/* ------------------------------------------------------------------------------------- writing */

static bool is_plain_text(const char *text) {
    const char *at = text;
    while (*at >= ' ' && *at <= '~') {
        at++;
    }
    return *at == '\0';
}

/* A text between double quotes. Bytes beyond printable ASCII become '?', so that any reader takes
 * the line: only paths hold them here, and paths are for people. */
static void add_quoted(struct gcmp_text *text, const char *value) {
    gcmp_text_add(text, "\"");
    for (const char *at = value; *at != '\0'; at++) {
        char shown = *at >= ' ' && *at <= '~' ? *at : '?';
        gcmp_text_addf(text, "%s%c", shown == '"' || shown == '\\' ? "\\" : "", shown);
    }
    gcmp_text_add(text, "\"");
}

static void write_terms(struct gcmp_out *out, const struct gradcmp_fit *fit) {
    struct gcmp_text *text = &out->text;
    gcmp_text_add(text, "# Rounding noise of known-good runs, measured by `gradcmp fit`; `gradcmp "
                        "compare --fit FILE`\n# judges by it: bound(l) = min(k * C^(L+1-l) * eps, "
                        "cap), or a parameter's floor where that is more.\n");
    gcmp_text_addf(text, "gradcmp_fit: %d\n", FIT_VERSION);
    gcmp_text_addf(text, "dtype: %s\nstate: ", gradcmp_dtype_name(fit->dtype));
    add_quoted(text, fit->state);
    gcmp_text_addf(text, "\nlayers: %llu\nparameters: %llu\n", (unsigned long long)fit->layer_count,
                   (unsigned long long)fit->parameter_count);
    gcmp_text_addf(text, "names_sha256: \"%s\"\n", fit->names_sha256);
    gcmp_text_addf(text, "k: %.17g\nC: %.17g\n", fit->k, fit->C);
    if (fit->is_tightened || fit->is_looser) {
        gcmp_text_addf(text, "margin: %.17g\n", fit->margin);
    } else {
        gcmp_text_add(text,
                      "margin: null # the good pairs were too quiet: k and C of the theory\n");
    }
    gcmp_text_addf(text, "looser_than_theory: %s\n", fit->is_looser ? "true" : "false");
}

static void write_pairs(struct gcmp_out *out, const struct gradcmp_fit *fit) {
    gcmp_text_add(&out->text, "baseline: ");
    add_quoted(&out->text, fit->baseline_path);
    gcmp_text_add(&out->text, "\ngood:\n");
    for (size_t i = 0; i < fit->pair_count; i++) {
        gcmp_text_add(&out->text, "  - ");
        add_quoted(&out->text, fit->pairs[i].path);
        gcmp_text_add(&out->text, "\n");
        gcmp_out_drain(out);
    }
}

static void write_layers(struct gcmp_out *out, const struct gradcmp_fit *fit) {
    gcmp_text_add(&out->text, "# layer: [median, most] of what was measured, in multiples of eps\n"
                              "noise:\n");
    for (size_t i = 0; i < fit->layer_row_count; i++) {
        const struct gradcmp_fit_layer *row = &fit->layers[i];
        gcmp_text_addf(&out->text, "  %lld: [%.6g, %.6g]\n", (long long)row->layer, row->median,
                       row->worst);
        gcmp_out_drain(out);
    }
}

/* A name that no plain key can hold goes without a floor, which only makes the judgement tighter.
 */
static bool may_be_key(const char *name) {
    return strlen(name) <= MAX_KEY_BYTES && is_plain_text(name);
}

static void write_floors(struct gcmp_out *out, const struct gradcmp_fit *fit) {
    bool is_empty = true;
    gcmp_text_add(&out->text, "# rms of the error that rounding alone makes, over the rms of the "
                              "layer's gradients\nfloors:");
    for (size_t i = 0; i < fit->floor_count; i++) {
        if (may_be_key(fit->floors[i].name)) {
            gcmp_text_add(&out->text, is_empty ? "\n  " : "  ");
            add_quoted(&out->text, fit->floors[i].name);
            gcmp_text_addf(&out->text, ": %.17g\n", fit->floors[i].floor);
            is_empty = false;
        }
        gcmp_out_drain(out);
    }
    gcmp_text_add(&out->text, is_empty ? " {}\n" : "");
}

enum gradcmp_status gradcmp_fit_write_yaml(const struct gradcmp_fit *fit, gradcmp_write_fn write,
                                           void *user, struct gradcmp_error *error) {
    if (gradcmp_fit_exit_status(fit) != 0) {
        GCMP_FAIL(error, GRADCMP_ERROR_USAGE,
                  "the pairs do not make a fit, so there is nothing to write");
    }
    struct gcmp_out out;
    gcmp_out_begin(&out, write, user);
    write_terms(&out, fit);
    write_pairs(&out, fit);
    write_layers(&out, fit);
    write_floors(&out, fit);
    return gcmp_out_end(&out, error);
}

/* ------------------------------------------------------------------------------------- reading */

/* The file being read. */
struct reading {
    const char *path;
    struct gcmp_arena *arena;
    const struct gcmp_yaml *root;
    struct gradcmp_fit *fit;
};

/* Find a key that must be there. */
static enum gradcmp_status need(const struct reading *reading, const char *key,
                                const struct gcmp_yaml **out, struct gradcmp_error *error) {
    *out = gcmp_yaml_get(reading->root, key);
    if (*out == NULL) {
        GCMP_YAML_FAIL(error, reading->path, reading->root, "no key \"%s\"", key);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_count(const struct reading *reading, const char *key, uint64_t *out,
                                      struct gradcmp_error *error) {
    const struct gcmp_yaml *node;
    GCMP_TRY(need(reading, key, &node, error));
    if (!gcmp_yaml_count(node, out)) {
        GCMP_YAML_FAIL(error, reading->path, node, "%s: expected a whole number", key);
    }
    return GRADCMP_OK;
}

/* What a number means, and the range that it must be in. */
struct number {
    const char *what;
    double least, most;
};

static enum gradcmp_status take_real(const struct reading *reading, const struct gcmp_yaml *node,
                                     struct number number, double *out,
                                     struct gradcmp_error *error) {
    if (!gcmp_yaml_real(node, out) || !(*out >= number.least && *out <= number.most)) {
        GCMP_YAML_FAIL(error, reading->path, node, "%.100s: expected a number from %g to %g",
                       number.what, number.least, number.most);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_real(const struct reading *reading, struct number number,
                                     double *out, struct gradcmp_error *error) {
    const struct gcmp_yaml *node;
    GCMP_TRY(need(reading, number.what, &node, error));
    return take_real(reading, node, number, out, error);
}

static enum gradcmp_status read_text(const struct reading *reading, const char *key,
                                     const char **out, struct gradcmp_error *error) {
    const struct gcmp_yaml *node;
    GCMP_TRY(need(reading, key, &node, error));
    if (node->kind != GCMP_YAML_SCALAR || gcmp_yaml_is_null(node)) {
        GCMP_YAML_FAIL(error, reading->path, node, "%s: expected a text", key);
    }
    *out = gcmp_arena_dup(reading->arena, node->text);
    if (*out == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_dtype(const struct reading *reading, struct gradcmp_error *error) {
    const char *name = NULL;
    GCMP_TRY(read_text(reading, "dtype", &name, error));
    reading->fit->dtype = gcmp_dtype_find(name);
    if (!gcmp_dtype_is_float(reading->fit->dtype)) {
        GCMP_YAML_FAIL(error, reading->path, gcmp_yaml_get(reading->root, "dtype"),
                       "dtype: \"%.40s\" is no floating type", name);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_digest(const struct reading *reading, struct gradcmp_error *error) {
    const char *digest = NULL;
    GCMP_TRY(read_text(reading, "names_sha256", &digest, error));
    if (strlen(digest) != SHA256_DIGITS || strspn(digest, "0123456789abcdef") != SHA256_DIGITS) {
        GCMP_YAML_FAIL(error, reading->path, gcmp_yaml_get(reading->root, "names_sha256"),
                       "names_sha256: expected 64 hexadecimal digits");
    }
    memcpy(reading->fit->names_sha256, digest, SHA256_DIGITS + 1);
    return GRADCMP_OK;
}

/* What the fit was made from. */
static enum gradcmp_status read_origin(const struct reading *reading, struct gradcmp_error *error) {
    uint64_t version;
    GCMP_TRY(read_count(reading, "gradcmp_fit", &version, error));
    if (version != FIT_VERSION) {
        GCMP_YAML_FAIL(error, reading->path, gcmp_yaml_get(reading->root, "gradcmp_fit"),
                       "gradcmp_fit: version %llu, this program reads %d",
                       (unsigned long long)version, FIT_VERSION);
    }
    GCMP_TRY(read_dtype(reading, error));
    GCMP_TRY(read_text(reading, "state", &reading->fit->state, error));
    GCMP_TRY(read_count(reading, "layers", &reading->fit->layer_count, error));
    GCMP_TRY(read_count(reading, "parameters", &reading->fit->parameter_count, error));
    GCMP_TRY(read_text(reading, "baseline", &reading->fit->baseline_path, error));
    return read_digest(reading, error);
}

static enum gradcmp_status read_pairs(const struct reading *reading, struct gradcmp_error *error) {
    const struct gcmp_yaml *node;
    GCMP_TRY(need(reading, "good", &node, error));
    if (node->kind != GCMP_YAML_SEQUENCE || node->count == 0) {
        GCMP_YAML_FAIL(error, reading->path, node, "good: expected a list of at least one path");
    }
    struct gradcmp_fit *fit = reading->fit;
    fit->pairs = gcmp_arena_alloc(reading->arena, node->count, sizeof *fit->pairs);
    if (fit->pairs == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < node->count; i++) {
        const struct gcmp_yaml *item = node->items[i];
        if (item->kind != GCMP_YAML_SCALAR) {
            GCMP_YAML_FAIL(error, reading->path, item, "good: expected a path");
        }
        fit->pairs[i].path = gcmp_arena_dup(reading->arena, item->text);
        if (fit->pairs[i].path == NULL) {
            GCMP_FAIL_MEMORY(error);
        }
    }
    fit->pair_count = node->count;
    return GRADCMP_OK;
}

static enum gradcmp_status read_terms(const struct reading *reading, struct gradcmp_error *error) {
    const struct gcmp_yaml *node;
    struct gradcmp_fit *fit = reading->fit;
    GCMP_TRY(read_real(reading, (struct number){"k", 1e-6, 1e6}, &fit->k, error));
    GCMP_TRY(read_real(reading, (struct number){"C", 1.0, 2.0}, &fit->C, error));
    GCMP_TRY(need(reading, "margin", &node, error));
    fit->margin = NAN;
    fit->is_tightened = !gcmp_yaml_is_null(node);
    if (fit->is_tightened) {
        GCMP_TRY(
            take_real(reading, node, (struct number){"margin", 1.0, 1e6}, &fit->margin, error));
    }
    GCMP_TRY(need(reading, "looser_than_theory", &node, error));
    if (!gcmp_yaml_bool(node, &fit->is_looser)) {
        GCMP_YAML_FAIL(error, reading->path, node, "looser_than_theory: expected true or false");
    }
    return GRADCMP_OK;
}

/* A layer's number: digits only, so that the same layer cannot be written in two ways. */
static bool take_layer(const struct gcmp_yaml *key, int64_t *layer) {
    uint64_t count;
    if (!gcmp_yaml_count(key, &count) || count > INT64_MAX) {
        return false;
    }
    *layer = (int64_t)count;
    return true;
}

static enum gradcmp_status read_layer(const struct reading *reading, const struct gcmp_yaml *noise,
                                      size_t index, struct gradcmp_error *error) {
    const struct number number = {"noise", 0.0, 1e30};
    const struct gcmp_yaml *key = noise->keys[index], *value = noise->items[index];
    struct gradcmp_fit_layer *row = &reading->fit->layers[index];
    if (!take_layer(key, &row->layer)) {
        GCMP_YAML_FAIL(error, reading->path, key, "noise: \"%.40s\" is no layer", key->text);
    }
    if (value->kind != GCMP_YAML_SEQUENCE || value->count != 2) {
        GCMP_YAML_FAIL(error, reading->path, value, "noise: expected [median, most]");
    }
    GCMP_TRY(take_real(reading, value->items[0], number, &row->median, error));
    return take_real(reading, value->items[1], number, &row->worst, error);
}

static enum gradcmp_status read_layers(const struct reading *reading, struct gradcmp_error *error) {
    const struct gcmp_yaml *node;
    GCMP_TRY(need(reading, "noise", &node, error));
    if (node->kind != GCMP_YAML_MAPPING) {
        GCMP_YAML_FAIL(error, reading->path, node, "noise: expected layers with their noise");
    }
    struct gradcmp_fit *fit = reading->fit;
    fit->layers = gcmp_arena_alloc(reading->arena, node->count, sizeof *fit->layers);
    if (fit->layers == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    fit->layer_row_count = node->count;
    for (size_t i = 0; i < node->count; i++) {
        GCMP_TRY(read_layer(reading, node, i, error));
    }
    return GRADCMP_OK;
}

static int compare_floors(const void *left, const void *right) {
    return strcmp(((const struct gradcmp_fit_floor *)left)->name,
                  ((const struct gradcmp_fit_floor *)right)->name);
}

static enum gradcmp_status read_floors(const struct reading *reading, struct gradcmp_error *error) {
    const struct gcmp_yaml *node;
    GCMP_TRY(need(reading, "floors", &node, error));
    if (node->kind != GCMP_YAML_MAPPING) {
        GCMP_YAML_FAIL(error, reading->path, node, "floors: expected names with a number each");
    }
    struct gradcmp_fit *fit = reading->fit;
    fit->floors = gcmp_arena_alloc(reading->arena, node->count, sizeof *fit->floors);
    if (fit->floors == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    fit->floor_count = node->count;
    for (size_t i = 0; i < node->count; i++) {
        fit->floors[i].name = gcmp_arena_dup(reading->arena, node->keys[i]->text);
        if (fit->floors[i].name == NULL) {
            GCMP_FAIL_MEMORY(error);
        }
        struct number number = {node->keys[i]->text, 0.0, 1e6};
        GCMP_TRY(take_real(reading, node->items[i], number, &fit->floors[i].floor, error));
    }
    qsort(fit->floors, fit->floor_count, sizeof *fit->floors, compare_floors);
    return GRADCMP_OK;
}

static enum gradcmp_status read_document(const struct reading *reading,
                                         struct gradcmp_error *error) {
    static const char *const known[] = {
        "gradcmp_fit", "dtype",  "state", "layers",   "parameters", "names_sha256",
        "k",           "C",      "good",  "baseline", "margin",     "looser_than_theory",
        "noise",       "floors", NULL};
    GCMP_TRY(gcmp_yaml_check_keys(reading->root, reading->path, "a fit", known, error));
    GCMP_TRY(read_origin(reading, error));
    GCMP_TRY(read_pairs(reading, error));
    GCMP_TRY(read_terms(reading, error));
    GCMP_TRY(read_layers(reading, error));
    return read_floors(reading, error);
}

enum gradcmp_status gcmp_fit_read(struct gcmp_arena *arena, const char *path,
                                  struct gradcmp_fit *fit, struct gradcmp_error *error) {
    struct gcmp_arena scratch = GCMP_ARENA_INIT;
    struct gcmp_yaml *root = NULL;
    *fit = (struct gradcmp_fit){.path = path};
    enum gradcmp_status status = gcmp_yaml_read(&scratch, path, &root, error);
    if (status == GRADCMP_OK && root == NULL) {
        status = gcmp_error_set(error, GRADCMP_ERROR_CORRUPT, path, GRADCMP_NO_OFFSET,
                                "line 1: empty, expected what gradcmp fit wrote");
    } else if (status == GRADCMP_OK) {
        struct reading reading = {path, arena, root, fit};
        status = read_document(&reading, error);
    }
    gcmp_arena_free(&scratch);
    return status;
}
