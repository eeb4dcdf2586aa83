/* Fuzz target: a trace's file, and two of them side by side. The first byte chooses the layout and
 * the form, the rest is A and, behind the first line of "====", B. */
#include "trace/judge.h"

#include <string.h>

#include "memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct form {
    const struct gcmp_trace_layout *layout;
    const char *name; /* which decides between lines and a document */
} forms[] = {{&gcmp_layout_boundary, "rank_0.jsonl"},
             {&gcmp_layout_ops, "rank0_iter1.jsonl"},
             {&gcmp_layout_debugmode, "rank0_step1.jsonl"},
             {&gcmp_layout_debugmode, "rank0_step1.json"},
             {&gcmp_layout_msprobe, "dump.json"}};

static struct gcmp_trace_files open_files(const struct form *form, const uint8_t *data, size_t size,
                                          struct gcmp_trace_file *file) {
    const char *name;
    struct gcmp_trace_files files = {
        .folder = "", .layout = form->layout, .files = file, .count = 1};
    files.dir = memory_file_open(data, size);
    *file = (struct gcmp_trace_file){.rank = 0, .iteration = 1, .name = form->name};
    if (!gcmp_dir_is_file(files.dir, &name) ||
        gcmp_dir_add(files.dir, name, strlen(name), &file->file, NULL) != GRADCMP_OK) {
        abort();
    }
    return files;
}

/* What every result promises. */
static void check(const struct gcmp_trace_run *run, const struct gcmp_trace_result *result,
                  bool is_same) {
    const struct gcmp_rank_result *rank = &result->ranks[0];
    uint64_t least = rank->records_a < rank->records_b ? rank->records_a : rank->records_b;
    bool differs = rank->has_value || rank->has_structural;
    if (result->rank_count != 1 || rank->equal_prefix > least ||
        (result->verdict == GCMP_TRACE_MATCH && (differs || rank->is_damaged)) ||
        (result->verdict == GCMP_TRACE_DIVERGED && !differs) || (is_same && differs)) {
        abort();
    }
    if ((result->verdict == GCMP_TRACE_INVALID) != (run->first != NULL)) {
        abort();
    }
    for (const struct gcmp_trouble *trouble = run->first; trouble != NULL;
         trouble = trouble->next) {
        if (trouble->text[0] == '\0') {
            abort();
        }
    }
}

static void judge(const struct gcmp_trace_files *a, const struct gcmp_trace_files *b,
                  bool is_same) {
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    struct gcmp_trace_run run = {.arena = &arena, .seed = 1};
    struct gcmp_trace_result result = {.name = "trace"};
    run.last = &run.first;
    if (gcmp_judge_trace(&run, a, b, &result, NULL) == GRADCMP_OK) {
        check(&run, &result, is_same);
    }
    gcmp_arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) {
        return 0;
    }
    struct gcmp_trace_file file_a;
    struct gcmp_trace_file file_b;
    const struct form *form = &forms[data[0] % (sizeof forms / sizeof forms[0])];
    const uint8_t *marker = memmem(data + 1, size - 1, "====\n", 5);
    size_t first = marker == NULL ? size - 1 : (size_t)(marker - data) - 1;
    const uint8_t *second = marker == NULL ? data + 1 : marker + 5;
    struct gcmp_trace_files a = open_files(form, data + 1, first, &file_a);
    struct gcmp_trace_files b = open_files(form, second, size - (size_t)(second - data), &file_b);
    judge(&a, &a, true);
    judge(&a, &b, marker == NULL);
    gcmp_dir_close(a.dir);
    gcmp_dir_close(b.dir);
    return 0;
}
