/* gradcmp_lint: reads the sources, text by itself and checkpoints through their settings, and has
 * them judged. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/decimal.h"
#include "base/text.h"
#include "checkpoint.h"
#include "formats/megatron_args.h"
#include "formats/torch_file.h"
#include "formats/value_text.h"
#include "lint/lint.h"
#include "lint/text.h"
#include "report/page.h"
#include "report/repeat.h"

enum { HEAD_BYTES = 4096, MAX_FILES = 100000 };
#define MAX_TEXT_BYTES ((uint64_t)16 << 20)

static const struct gradcmp_evidence_writers writers = {gcmp_lint_write_text, gcmp_lint_write_json,
                                                        NULL};

static void release(struct gradcmp_evidence *evidence) {
    struct gcmp_lint_content *content = evidence->content;
    for (size_t i = 0; i < content->run.source_count; i++) {
        gcmp_lint_source_free(&content->run.sources[i]);
    }
    free(content->findings);
}

/* --- checkpoints --- */

static enum gradcmp_status take_setting(struct gcmp_lint_source *source,
                                        const struct gradcmp_setting *setting,
                                        struct gradcmp_error *error) {
    char number[64];
    struct gcmp_lint_setting own = {.kind = GCMP_LINT_ARG, .name = setting->name};
    switch (setting->kind) {
    case GRADCMP_SETTING_BOOL:
        own.is_switch = true;
        own.text = setting->integer != 0 ? "true" : "false";
        break;
    case GRADCMP_SETTING_INT:
        snprintf(number, sizeof number, "%lld", (long long)setting->integer);
        own.text = number;
        break;
    case GRADCMP_SETTING_FLOAT:
        gcmp_decimal_write(setting->number, number);
        own.text = number;
        break;
    case GRADCMP_SETTING_TEXT:
        own.text = setting->text;
        own.is_partial = strstr(setting->text, GCMP_VALUE_NOT_READ) != NULL;
        break;
    default:
        break;
    }
    return gcmp_lint_set(source, &own, error);
}

static enum gradcmp_status take_settings(struct gcmp_lint_source *source,
                                         const struct gradcmp_catalogue *catalogue,
                                         struct gradcmp_error *error) {
    source->form = GCMP_LINT_CHECKPOINT;
    source->has_args = true;
    source->iteration = catalogue->iteration;
    for (size_t i = 0; i < catalogue->setting_count; i++) {
        GCMP_TRY(take_setting(source, &catalogue->settings[i], error));
    }
    if (source->count == 0) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_UNSUPPORTED, source->path, GRADCMP_NO_OFFSET,
                     "a checkpoint that holds no arguments of its run");
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_checkpoint(struct gcmp_lint_source *source,
                                           struct gradcmp_error *error) {
    struct gradcmp_options options = GRADCMP_OPTIONS_INIT;
    struct gradcmp_checkpoint *checkpoint = NULL;
    GCMP_TRY(gcmp_checkpoint_open_alone(source->path, &options, &checkpoint, error));
    enum gradcmp_status status = take_settings(source, &checkpoint->catalogue, error);
    gradcmp_checkpoint_free(checkpoint);
    return status;
}

/* A file of torch.save by itself: common.pt, or a rank's model_optim_rng.pt. */
static enum gradcmp_status read_torch_file(struct gcmp_dir *dir, uint32_t file,
                                           struct gcmp_lint_source *source,
                                           struct gradcmp_error *error) {
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    struct gcmp_torch_file torch;
    struct gradcmp_catalogue catalogue = {.arena = &arena, .dir = dir, .iteration = -1};
    enum gradcmp_status status =
        gcmp_torch_open(dir, file, 0, gcmp_dir_file_bytes(dir, file), &arena, &torch, error);
    if (status == GRADCMP_OK) {
        status = gcmp_megatron_read_run(&catalogue, torch.root, error);
    }
    if (status == GRADCMP_OK) {
        status = take_settings(source, &catalogue, error);
    }
    gcmp_catalogue_free(&catalogue);
    gcmp_arena_free(&arena);
    return status;
}

/* --- files --- */

/* Bytes that are neither text nor an environment with zero bytes between its entries. */
static bool is_binary(const unsigned char *head, size_t count) {
    const unsigned char *zero = memchr(head, 0, count);
    return zero != NULL && memchr(head, '=', (size_t)(zero - head)) == NULL;
}

static enum gradcmp_status read_file(struct gcmp_dir *dir, const char *name,
                                     struct gcmp_lint_source *source, struct gradcmp_error *error) {
    unsigned char head[HEAD_BYTES], *bytes;
    size_t length_bytes;
    uint32_t file;
    GCMP_TRY(gcmp_dir_add(dir, name, strlen(name), &file, error));
    uint64_t size = gcmp_dir_file_bytes(dir, file);
    size_t count = size < sizeof head ? (size_t)size : sizeof head;
    GCMP_TRY(gcmp_dir_read(dir, file, 0, head, count, error));
    if (count >= 4 && memcmp(head, "PK\003\004", 4) == 0) {
        return read_torch_file(dir, file, source, error);
    }
    if (is_binary(head, count)) {
        return read_checkpoint(source, error);
    }
    GCMP_TRY(gcmp_dir_slurp(dir, name, MAX_TEXT_BYTES, &bytes, &length_bytes, error));
    enum gradcmp_status status =
        gcmp_lint_read_text((const char *)bytes, length_bytes, source, error);
    free(bytes);
    return status;
}

static enum gradcmp_status read_source(struct gcmp_lint_source *source,
                                       struct gradcmp_error *error) {
    struct gcmp_dir *dir = NULL;
    const char *name;
    GCMP_TRY(gcmp_dir_open(source->path, &dir, error));
    enum gradcmp_status status = gcmp_dir_is_file(dir, &name) ? read_file(dir, name, source, error)
                                                              : read_checkpoint(source, error);
    gcmp_dir_close(dir);
    gcmp_error_add_path(error, source->path);
    return status;
}

/* --- summing up --- */

static size_t count_severity(const struct gcmp_lint_content *content,
                             enum gcmp_lint_severity severity) {
    size_t count = 0;
    for (size_t i = 0; i < content->count; i++) {
        count += content->findings[i].severity == severity;
    }
    return count;
}

static size_t count_rule(const struct gcmp_lint_content *content, const char *id) {
    size_t count = 0;
    for (size_t i = 0; i < content->count; i++) {
        count += strcmp(content->findings[i].rule->id, id) == 0;
    }
    return count;
}

static void conclude(struct gradcmp_evidence *evidence, const char *verdict, int exit_status,
                     const char *summary) {
    evidence->verdict = verdict;
    evidence->exit_status = exit_status;
    evidence->summary = summary == NULL ? verdict : summary;
}

static void sum_up(struct gradcmp_evidence *evidence) {
    const struct gcmp_lint_content *content = evidence->content;
    struct gcmp_arena *arena = evidence->arena;
    size_t errors = count_severity(content, GCMP_LINT_ERROR);
    size_t warnings = count_severity(content, GCMP_LINT_WARNING);
    size_t infos = count_severity(content, GCMP_LINT_INFO);
    if (content->error.code != GRADCMP_OK) {
        conclude(evidence, "invalid", 2,
                 gcmp_arena_format(arena, "INVALID: %s: %s", content->error.path,
                                   content->error.message));
        return;
    }
    if (content->evaluated == 0) {
        conclude(evidence, "invalid", 2,
                 content->is_pair ? "INVALID: the two tell of nothing in common"
                                  : "INVALID: no rule could be judged by these files");
        return;
    }
    const char *figures =
        gcmp_arena_format(arena, "%zu error%s, %zu warning%s, %zu to know", errors,
                          errors == 1 ? "" : "s", warnings, warnings == 1 ? "" : "s", infos);
    size_t unknown = count_rule(content, "PR05");
    const char *spoilt = !content->is_pair ? ""
                         : errors > 0      ? "; the comparison is spoilt"
                         : warnings > 0    ? "; the comparison holds but for these"
                         : unknown > 0     ? "; the comparison holds if these do no harm"
                                           : "; the comparison holds";
    const char *word = errors > 0 ? "FAIL" : warnings > 0 ? "WARN" : "PASS";
    conclude(evidence,
             errors > 0     ? "fail"
             : warnings > 0 ? "warn"
                            : "pass",
             errors > 0 || (warnings > 0 && content->is_strict),
             gcmp_arena_format(arena, "%s: %s%s", word, figures == NULL ? "" : figures, spoilt));
}

/* "NCCL_ALGO launch.sh:4"; what is not set stands in no line. NULL without memory. */
static const char *name_case(struct gcmp_arena *arena, const struct gcmp_lint_finding *finding) {
    if (finding->file == NULL) {
        return gcmp_arena_dup(arena, finding->subject);
    }
    if (finding->line == 0) {
        return gcmp_arena_format(arena, "%s %s", finding->subject, finding->file);
    }
    return gcmp_arena_format(arena, "%s %s:%llu", finding->subject, finding->file,
                             (unsigned long long)finding->line);
}

static enum gradcmp_status fill_cases(struct gradcmp_evidence *evidence,
                                      struct gradcmp_error *error) {
    const struct gcmp_lint_content *content = evidence->content;
    struct gcmp_arena *arena = evidence->arena;
    evidence->cases = gcmp_arena_alloc(arena, content->count, sizeof *evidence->cases);
    if (evidence->cases == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < content->count; i++) {
        const struct gcmp_lint_finding *finding = &content->findings[i];
        bool counts = finding->severity == GCMP_LINT_ERROR ||
                      (content->is_strict && finding->severity == GCMP_LINT_WARNING);
        struct gradcmp_case *one = &evidence->cases[evidence->case_count++];
        one->group = finding->rule->id;
        one->name = name_case(arena, finding);
        one->outcome = counts ? GRADCMP_CASE_FAIL : GRADCMP_CASE_PASS;
        one->text = gcmp_arena_format(
            arena, "%s: %s = %s; %s", gcmp_lint_severity_name(finding->severity), finding->subject,
            finding->value == NULL ? "(not set)" : finding->value, finding->fix);
        one->file = finding->file;
        one->line = finding->line;
        if (one->name == NULL || one->text == NULL) {
            GCMP_FAIL_MEMORY(error);
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status gather_notes(struct gradcmp_evidence *evidence,
                                        struct gradcmp_error *error) {
    const struct gcmp_lint_run *run = &((struct gcmp_lint_content *)evidence->content)->run;
    size_t count = 0;
    for (size_t i = 0; i < run->source_count; i++) {
        count += run->sources[i].note_count;
    }
    evidence->notes = gcmp_arena_alloc(evidence->arena, count, sizeof *evidence->notes);
    if (evidence->notes == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < run->source_count; i++) {
        for (size_t k = 0; k < run->sources[i].note_count; k++) {
            evidence->notes[evidence->note_count++] = run->sources[i].notes[k];
        }
    }
    return GRADCMP_OK;
}

/* Read all sources; one that cannot be read is kept as the content's error, which is a verdict. */
static enum gradcmp_status read_all(struct gcmp_lint_content *content,
                                    struct gradcmp_error *error) {
    for (size_t i = 0; i < content->run.source_count; i++) {
        struct gradcmp_error own = {0};
        enum gradcmp_status status = read_source(&content->run.sources[i], &own);
        if (status == GRADCMP_ERROR_MEMORY) {
            GCMP_FAIL_MEMORY(error);
        }
        if (status != GRADCMP_OK) {
            content->error = own;
            return GRADCMP_OK;
        }
    }
    return GRADCMP_OK;
}

/* Tell where both of a pair are the same file or folder. */
static enum gradcmp_status note_one(struct gcmp_lint_source *a, const struct gcmp_lint_source *b,
                                    struct gradcmp_error *error) {
    struct gcmp_dir *dir_a = NULL, *dir_b = NULL;
    enum gradcmp_status status = gcmp_dir_open(a->path, &dir_a, error);
    if (status == GRADCMP_OK) {
        status = gcmp_dir_open(b->path, &dir_b, error);
    }
    const char *note = status == GRADCMP_OK ? gcmp_dir_one_note(dir_a, dir_b) : NULL;
    if (note != NULL) {
        gcmp_lint_note(a, "%s", note);
    }
    gcmp_dir_close(dir_a);
    gcmp_dir_close(dir_b);
    return status;
}

static enum gradcmp_status look(struct gradcmp_evidence *evidence, struct gradcmp_error *error) {
    struct gcmp_lint_content *content = evidence->content;
    GCMP_TRY(read_all(content, error));
    if (content->error.code != GRADCMP_OK) {
        return GRADCMP_OK;
    }
    if (content->sets == 0) {
        content->sets = gcmp_lint_choose_sets(&content->run);
        if (content->sets == GCMP_LINT_MEGATRON && !content->is_pair) {
            gcmp_lint_note_trainer(&content->run);
        }
    }
    if (content->is_pair) {
        GCMP_TRY(gcmp_lint_judge_pair(content, evidence->arena, error));
        GCMP_TRY(note_one(&content->run.sources[0], &content->run.sources[1], error));
    } else {
        GCMP_TRY(gcmp_lint_judge(content, evidence->arena, error));
    }
    GCMP_TRY(gather_notes(evidence, error));
    return fill_cases(evidence, error);
}

static bool set_up(struct gradcmp_evidence *evidence, const char *const *paths, size_t count) {
    struct gcmp_arena *arena = evidence->arena;
    struct gcmp_lint_content *content = gcmp_arena_alloc(arena, 1, sizeof *content);
    const char **own = gcmp_arena_alloc(arena, count, sizeof *own);
    struct gcmp_lint_source *sources = gcmp_arena_alloc(arena, count, sizeof *sources);
    if (content == NULL || own == NULL || sources == NULL) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        own[i] = gcmp_arena_dup(arena, paths[i]);
        if (own[i] == NULL) {
            return false;
        }
        sources[i] = (struct gcmp_lint_source){.path = own[i], .arena = arena, .iteration = -1};
    }
    content->run = (struct gcmp_lint_run){sources, count};
    evidence->content = content;
    evidence->paths = own;
    evidence->path_count = count;
    evidence->subcommand = "lint";
    evidence->writers = &writers;
    evidence->release = release;
    return true;
}

static struct gradcmp_evidence *make_evidence(const char *const *paths, size_t count) {
    struct gcmp_arena *arena = calloc(1, sizeof *arena);
    if (arena == NULL) {
        return NULL;
    }
    struct gradcmp_evidence *evidence = gcmp_arena_alloc(arena, 1, sizeof *evidence);
    if (evidence != NULL) {
        evidence->arena = arena;
        if (set_up(evidence, paths, count)) {
            return evidence;
        }
    }
    gcmp_arena_free(arena);
    free(arena);
    return NULL;
}

/* What was asked for beside the files. */
static enum gradcmp_status keep_options(struct gradcmp_evidence *evidence,
                                        const struct gradcmp_lint_options *options,
                                        struct gradcmp_error *error) {
    struct gcmp_text text = GCMP_TEXT_INIT;
    if (options->rules != NULL && strcmp(options->rules, "auto") != 0) {
        gcmp_repeat_option(&text, "--rules", options->rules);
    }
    if (options->strict) {
        gcmp_repeat_option(&text, "--strict", NULL);
    }
    if (options->pair) {
        gcmp_repeat_option(&text, "--pair", NULL);
    }
    return gcmp_repeat_keep(&text, evidence->arena, &evidence->options, error);
}

enum gradcmp_status gradcmp_lint(const char *const *paths, size_t path_count,
                                 const struct gradcmp_lint_options *options,
                                 struct gradcmp_evidence **out, struct gradcmp_error *error) {
    static const struct gradcmp_lint_options defaults = GRADCMP_LINT_OPTIONS_INIT;
    const struct gradcmp_lint_options *own = options == NULL ? &defaults : options;
    unsigned sets;
    *out = NULL;
    if (own->struct_size != sizeof *own) {
        GCMP_FAIL(error, GRADCMP_ERROR_USAGE,
                  "struct gradcmp_lint_options of %zu bytes, expected %zu", own->struct_size,
                  sizeof *own);
    }
    if (path_count == 0 || path_count > MAX_FILES || (own->pair != 0 && path_count != 2)) {
        GCMP_FAIL(error, GRADCMP_ERROR_USAGE,
                  own->pair != 0 ? "a pair has two paths, found %zu"
                                 : "expected 1 to 100000 files, found %zu",
                  path_count);
    }
    GCMP_TRY(gcmp_lint_parse_sets(own->rules, &sets, error));
    struct gradcmp_evidence *evidence = make_evidence(paths, path_count);
    if (evidence == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    struct gcmp_lint_content *content = evidence->content;
    content->sets = sets;
    content->is_strict = own->strict != 0;
    content->is_pair = own->pair != 0;
    enum gradcmp_status status = keep_options(evidence, own, error);
    if (status == GRADCMP_OK) {
        status = look(evidence, error);
    }
    if (status != GRADCMP_OK) {
        gradcmp_evidence_free(evidence);
        return status;
    }
    sum_up(evidence);
    *out = evidence;
    return GRADCMP_OK;
}

enum gradcmp_status gradcmp_lint_explain(const char *id, gradcmp_write_fn write, void *user,
                                         struct gradcmp_error *error) {
    const struct gcmp_lint_rule *rule = gcmp_lint_rule_find(id);
    struct gcmp_page page;
    if (rule == NULL) {
        GCMP_FAIL(error, GRADCMP_ERROR_USAGE,
                  "no rule \"%.100s\": they are MG01 on (Megatron-LM), AS01 on (Ascend), GC01 on "
                  "(gradients), GN01 on (how settings are written), PR01 on (pairs)",
                  id);
    }
    gcmp_page_open(&page, NULL, 0);
    gcmp_out_begin(&page.out, write, user);
    for (const struct gcmp_lint_rule *one = rule; one->id != NULL; one++) {
        if (strcmp(one->id, rule->id) == 0) {
            gcmp_page_addf(&page, "%s  %s, %s: %s", one->id, gcmp_lint_severity_name(one->severity),
                           gcmp_lint_kind_name(one->kind), one->subject);
            gcmp_page_end_line(&page);
        }
    }
    const char *const parts[][2] = {{"accepted", rule->accepted},
                                    {"why", rule->why},
                                    {"instead", rule->fix},
                                    {"source", rule->source}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        gcmp_page_addf(&page, "  %-10s", parts[i][0]);
        gcmp_page_wrap(&page, 12, 12, parts[i][1]);
    }
    return gcmp_out_end(&page.out, error);
}
