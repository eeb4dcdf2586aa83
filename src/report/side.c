/* What a checkpoint says of itself, as rows of a table. */
#include "report/side.h"

#include <inttypes.h>
#include <string.h>

#include "gradcmp/sys/format.h"

static void add_format(struct gcmp_text *text, const struct gradcmp_catalogue *catalogue,
                       bool utf8) {
    gcmp_printable_add(text, catalogue->format == NULL ? "" : catalogue->format->name, utf8);
}

static void add_layout(struct gcmp_text *text, const struct gradcmp_catalogue *catalogue,
                       bool utf8) {
    gcmp_printable_add(text, catalogue->layout_name == NULL ? "" : catalogue->layout_name, utf8);
}

static void add_writer(struct gcmp_text *text, const struct gradcmp_catalogue *catalogue,
                       bool utf8) {
    gcmp_printable_add(text, catalogue->writer == NULL ? "" : catalogue->writer, utf8);
}

/* "TP 2 PP 1 DP 1, 2 ranks": TP, PP and DP are shown even where they are 1, the others where they
 * split something. */
static void add_parallel(struct gcmp_text *text, const struct gradcmp_catalogue *catalogue,
                         bool utf8) {
    (void)utf8;
    const struct gradcmp_parallel *parallel = &catalogue->parallel;
    const struct {
        const char *name;
        uint32_t size, least;
    } degrees[] = {{"TP", parallel->tp, 1},  {"PP", parallel->pp, 1}, {"VP", parallel->vp, 2},
                   {"DP", parallel->dp, 1},  {"CP", parallel->cp, 2}, {"EP", parallel->ep, 2},
                   {"ETP", parallel->etp, 2}};
    const char *separator = "";
    for (size_t i = 0; i < sizeof degrees / sizeof degrees[0]; i++) {
        if (degrees[i].size >= degrees[i].least) {
            gcmp_text_addf(text, "%s%s %" PRIu32, separator, degrees[i].name, degrees[i].size);
            separator = " ";
        }
    }
    if (parallel->world > 0) {
        gcmp_text_addf(text, "%s%" PRIu32 " rank%s", separator[0] == '\0' ? "" : ", ",
                       parallel->world, parallel->world == 1 ? "" : "s");
    }
}

static void add_layers(struct gcmp_text *text, const struct gradcmp_catalogue *catalogue,
                       bool utf8) {
    (void)utf8;
    if (catalogue->layers != 0) {
        gcmp_text_addf(text, "%" PRIu64, catalogue->layers);
    }
    if (catalogue->experts != 0) {
        gcmp_text_addf(text, "%s%" PRIu64 " experts", catalogue->layers != 0 ? ", " : "",
                       catalogue->experts);
    }
}

static void add_vocabulary(struct gcmp_text *text, const struct gradcmp_catalogue *catalogue,
                           bool utf8) {
    (void)utf8;
    if (catalogue->vocab != 0) {
        gcmp_text_addf(text, "%" PRIu64 " words", catalogue->vocab);
    }
}

/* Padding depends on how the table is split. */
static void add_padding(struct gcmp_text *text, const struct gradcmp_catalogue *catalogue,
                        bool utf8) {
    (void)utf8;
    if (catalogue->padded_vocab != 0) {
        gcmp_text_addf(text, "%" PRIu64 " rows", catalogue->padded_vocab);
    }
}

static void add_iteration(struct gcmp_text *text, const struct gradcmp_catalogue *catalogue,
                          bool utf8) {
    (void)utf8;
    if (catalogue->iteration >= 0) {
        gcmp_text_addf(text, "%" PRId64, catalogue->iteration);
    }
}

static const struct gradcmp_setting *find_setting(const struct gradcmp_catalogue *catalogue,
                                                  const char *name) {
    for (size_t i = 0; i < catalogue->setting_count; i++) {
        if (strcmp(catalogue->settings[i].name, name) == 0 &&
            catalogue->settings[i].kind != GRADCMP_SETTING_NONE) {
            return &catalogue->settings[i];
        }
    }
    return NULL;
}

void gcmp_text_add_setting(struct gcmp_text *text, const struct gradcmp_setting *setting,
                           bool utf8) {
    char figure[GCMP_FIGURE_BYTES];
    switch (setting->kind) {
    case GRADCMP_SETTING_BOOL:
        gcmp_text_add(text, setting->integer != 0 ? "yes" : "no");
        break;
    case GRADCMP_SETTING_INT:
        gcmp_text_addf(text, "%" PRId64, setting->integer);
        break;
    case GRADCMP_SETTING_FLOAT:
        gcmp_text_add(text, gcmp_figure_setting(figure, setting->number));
        break;
    case GRADCMP_SETTING_TEXT:
        gcmp_printable_add(text, setting->text == NULL ? "" : setting->text, utf8);
        break;
    case GRADCMP_SETTING_NONE:
        break;
    }
}

/* Add the settings of these names (at most two) that are known: "0.9, 0.95". */
static void add_settings(struct gcmp_text *text, const struct gradcmp_catalogue *catalogue,
                         const char *const names[2], bool utf8) {
    const char *separator = "";
    for (size_t i = 0; i < 2 && names[i] != NULL; i++) {
        const struct gradcmp_setting *setting = find_setting(catalogue, names[i]);
        if (setting != NULL) {
            gcmp_text_add(text, separator);
            gcmp_text_add_setting(text, setting, utf8);
            separator = ", ";
        }
    }
}

static void add_betas(struct gcmp_text *text, const struct gradcmp_catalogue *catalogue,
                      bool utf8) {
    add_settings(text, catalogue, (const char *const[2]){"adam_beta1", "adam_beta2"}, utf8);
}

static void add_clipping(struct gcmp_text *text, const struct gradcmp_catalogue *catalogue,
                         bool utf8) {
    add_settings(text, catalogue, (const char *const[2]){"clip_grad", NULL}, utf8);
}

static void add_dropout(struct gcmp_text *text, const struct gradcmp_catalogue *catalogue,
                        bool utf8) {
    add_settings(text, catalogue, (const char *const[2]){"hidden_dropout", "attention_dropout"},
                 utf8);
}

static void add_seed(struct gcmp_text *text, const struct gradcmp_catalogue *catalogue, bool utf8) {
    add_settings(text, catalogue, (const char *const[2]){"seed", NULL}, utf8);
}

static void add_batch(struct gcmp_text *text, const struct gradcmp_catalogue *catalogue,
                      bool utf8) {
    add_settings(text, catalogue, (const char *const[2]){"global_batch_size", NULL}, utf8);
}

static void add_samples(struct gcmp_text *text, const struct gradcmp_catalogue *catalogue,
                        bool utf8) {
    add_settings(text, catalogue, (const char *const[2]){"consumed_train_samples", NULL}, utf8);
}

const struct gcmp_side_row gcmp_side_rows[] = {{"format", add_format, false},
                                               {"layout", add_layout, false},
                                               {"written by", add_writer, false},
                                               {"split over", add_parallel, false},
                                               {"layers", add_layers, true},
                                               {"vocabulary", add_vocabulary, true},
                                               {"padded to", add_padding, false},
                                               {"iteration", add_iteration, true},
                                               {"Adam betas", add_betas, true},
                                               {"gradient clip", add_clipping, true},
                                               {"dropout", add_dropout, true},
                                               {"seed", add_seed, true},
                                               {"global batch", add_batch, true},
                                               {"samples seen", add_samples, true},
                                               {NULL, NULL, false}};
