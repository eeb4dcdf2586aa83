/* Names of files that accelerate, transformers, Lightning, verl and people give: "optimizer.bin",
 * "pytorch_model.bin", "pytorch_model-00001-of-00002.bin", "optimizer_0_rank1.bin",
 * "model_world_size_8_rank_0.pt".
 *
 * Limits: MAX_NAMES entries of a folder, MAX_RANKS ranks. */
#include "formats/torch_save_files.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "formats/rank_files.h"
#include "formats/torch_save_file.h"

enum { MAX_NAMES = 1 << 20, MAX_RANKS = 1 << 20 };

static const char *const suffixes[] = {".pt", ".pth", ".bin", ".ckpt"};
static const char WEIGHTS[] = "*.safetensors", SHARDED_WEIGHTS[] = "*rank*.safetensors";

/* The suffix of a name that torch.save's files have; NULL for other names. */
static const char *find_suffix(const char *name) {
    size_t bytes = strlen(name);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        size_t suffix = strlen(suffixes[i]);
        if (bytes > suffix && strcmp(name + bytes - suffix, suffixes[i]) == 0) {
            return name + bytes - suffix;
        }
    }
    return NULL;
}

/* Read the rank that a name ends with. */
static void read_rank(struct gcmp_pt_file *file) {
    const char *end = find_suffix(file->name);
    uint32_t rank;
    file->rank = -1;
    file->stem_bytes = strlen(file->name);
    if (end != NULL && gcmp_rank_name_ends(file->name, end, &rank, &file->stem_bytes)) {
        file->rank = (int32_t)rank;
    }
}

static bool is_optimizer_name(const char *name) {
    return strncmp(name, "optim", 5) == 0;
}

/* Digits are compared as numbers, so that part 10 comes behind part 9. */
static int compare_names(const char *a, const char *b) {
    while (*a != '\0' && *b != '\0') {
        size_t digits_a = strspn(a, "0123456789"), digits_b = strspn(b, "0123456789");
        if (digits_a > 0 && digits_b > 0) {
            size_t zeros_a = strspn(a, "0"), zeros_b = strspn(b, "0");
            size_t left_a = digits_a - (zeros_a < digits_a ? zeros_a : digits_a);
            size_t left_b = digits_b - (zeros_b < digits_b ? zeros_b : digits_b);
            int order = left_a != left_b
                            ? (left_a < left_b ? -1 : 1)
                            : memcmp(a + digits_a - left_a, b + digits_b - left_b, left_a);
            if (order != 0) {
                return order;
            }
            a += digits_a;
            b += digits_b;
        } else if (*a != *b) {
            return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
        } else {
            a++;
            b++;
        }
    }
    return (*a != '\0') - (*b != '\0');
}

static int compare_files(const void *left, const void *right) {
    const struct gcmp_pt_file *a = left, *b = right;
    if (a->rank != b->rank) {
        return a->rank < b->rank ? -1 : 1;
    }
    int order = compare_names(a->name, b->name);
    return order != 0 ? order : strcmp(a->name, b->name);
}

static bool same_stem(const struct gcmp_pt_file *a, const struct gcmp_pt_file *b) {
    return a->stem_bytes == b->stem_bytes && memcmp(a->name, b->name, a->stem_bytes) == 0;
}

/* --- completeness --- */

/* Of each rank's file, that of the rank before must be there. */
static enum gradcmp_status check_ranks(struct gcmp_dir *dir, const struct gcmp_pt_files *files,
                                       struct gradcmp_error *error) {
    for (size_t i = 0; i < files->count; i++) {
        const struct gcmp_pt_file *file = &files->items[i];
        bool found = file->rank <= 0;
        /* Sorted by rank: look back as far as the rank before goes. */
        for (size_t k = i; k-- > 0 && !found && files->items[k].rank >= file->rank - 1;) {
            found = files->items[k].rank == file->rank - 1 && same_stem(&files->items[k], file);
        }
        if (!found) {
            GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT, gcmp_dir_path(dir), GRADCMP_NO_OFFSET,
                         "incomplete: %.200s is there, but not the file of rank %d", file->name,
                         (int)file->rank - 1);
        }
    }
    return GRADCMP_OK;
}

/* A stated number of ranks: "model_world_size_8_rank_0.pt". */
static enum gradcmp_status check_world(struct gcmp_dir *dir, const struct gcmp_pt_files *files,
                                       struct gradcmp_error *error) {
    static const char mark[] = "world_size_";
    for (size_t i = 0; i < files->count; i++) {
        const struct gcmp_pt_file *file = &files->items[i];
        const char *at = file->rank < 0 ? NULL : strstr(file->name, mark);
        const char *digits = at == NULL ? "" : at + sizeof mark - 1;
        size_t count = strspn(digits, "0123456789");
        long world = count > 0 && count <= 7 ? strtol(digits, NULL, 10) : 0;
        long found = 0;
        for (size_t k = 0; file->rank == 0 && world > 0 && k < files->count; k++) {
            found += files->items[k].rank >= 0 && same_stem(&files->items[k], file);
        }
        if (found > 0 && found != world) {
            GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT, gcmp_dir_path(dir), GRADCMP_NO_OFFSET,
                         "incomplete: %.200s is one of %ld ranks' files, %ld are there", file->name,
                         world, found);
        }
    }
    return GRADCMP_OK;
}

/* Take "<base>-<k>-of-<n><suffix>" apart; false for other names. */
static bool read_part(const char *name, size_t *base_bytes, unsigned long *part,
                      unsigned long *of) {
    const char *mark = strstr(name, "-of-");
    const char *digits = mark;
    while (digits != NULL && digits > name && digits[-1] >= '0' && digits[-1] <= '9') {
        digits--;
    }
    if (digits == NULL || digits == mark || mark - digits > 7 || digits == name ||
        digits[-1] != '-') {
        return false;
    }
    char *end;
    *base_bytes = (size_t)(digits - name);
    *part = strtoul(digits, NULL, 10);
    *of = strtoul(mark + 4, &end, 10);
    return end > mark + 4 && end - mark <= 11 && *end == '.';
}

/* Parts of a series are sorted: each must come right behind the one before. */
static enum gradcmp_status check_parts(struct gcmp_dir *dir, const struct gcmp_pt_files *files,
                                       struct gradcmp_error *error) {
    size_t base_bytes, last_bytes = 0;
    unsigned long part, of, expected = 1, last_of = 0;
    const char *last = NULL;
    for (size_t i = 0; i <= files->count; i++) {
        const char *name = i < files->count ? files->items[i].name : NULL;
        bool is_part = name != NULL && read_part(name, &base_bytes, &part, &of);
        bool goes_on = is_part && last != NULL && base_bytes == last_bytes && of == last_of;
        /* cppcheck-suppress nullPointer; a part has a name */
        goes_on = goes_on && memcmp(name, last, base_bytes) == 0;
        if (last != NULL && !goes_on && expected <= last_of) {
            name = last;
            part = 0;
        } else if (is_part && part == (goes_on ? expected : 1)) {
            expected = part + 1;
            last = name;
            last_bytes = base_bytes;
            last_of = of;
            continue;
        } else if (!is_part) {
            last = NULL;
            continue;
        }
        GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT, gcmp_dir_path(dir), GRADCMP_NO_OFFSET,
                     "incomplete: %.200s is there, but not part %lu", name,
                     last != NULL ? expected : 1);
    }
    return GRADCMP_OK;
}

/* --- listing --- */

static enum gradcmp_status take_name(struct gcmp_dir *dir, const char *name,
                                     struct gcmp_pt_files *files, struct gradcmp_error *error) {
    struct gcmp_pt_file file = {.name = name, .rank = -1, .stem_bytes = strlen(name)};
    bool is_only = gcmp_dir_is_file(dir, NULL);
    const char *suffix = find_suffix(name);
    bool is_weights =
        !is_only && fnmatch(WEIGHTS, name, 0) == 0 && fnmatch(SHARDED_WEIGHTS, name, 0) != 0;
    if ((suffix == NULL && !is_only && !is_weights) ||
        (!is_only && gcmp_dir_kind(dir, name) == GCMP_DIR_FOLDER)) {
        return GRADCMP_OK;
    }
    if (!is_only && !is_weights && strcmp(suffix, ".bin") == 0 &&
        gcmp_torch_form(dir, name) == GCMP_TORCH_OTHER) {
        files->first_skipped = files->skipped++ == 0 ? name : files->first_skipped;
        return GRADCMP_OK;
    }
    (void)error;
    file.is_weights = is_weights;
    if (!is_only && !is_weights) {
        read_rank(&file);
    }
    files->items[files->count++] = file;
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_pt_list_files(struct gcmp_dir *dir, struct gcmp_pt_files *out,
                                       struct gradcmp_error *error) {
    *out = (struct gcmp_pt_files){.names = NULL};
    GCMP_TRY(gcmp_dir_list(dir, "", MAX_NAMES, &out->names, &out->name_count, error));
    out->items = calloc(out->name_count + 1, sizeof *out->items);
    if (out->items == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < out->name_count; i++) {
        GCMP_TRY(take_name(dir, out->names[i], out, error));
    }
    if (out->count == 0) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_UNSUPPORTED, gcmp_dir_path(dir), GRADCMP_NO_OFFSET,
                     "no file of torch.save");
    }
    qsort(out->items, out->count, sizeof *out->items, compare_files);
    if (out->items[out->count - 1].rank >= MAX_RANKS) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_LIMIT, gcmp_dir_path(dir), GRADCMP_NO_OFFSET,
                     "%.200s: at most %d ranks are read", out->items[out->count - 1].name,
                     MAX_RANKS);
    }
    GCMP_TRY(check_ranks(dir, out, error));
    GCMP_TRY(check_world(dir, out, error));
    return check_parts(dir, out, error);
}

void gcmp_pt_free_files(struct gcmp_pt_files *files) {
    gcmp_dir_free_names(files->names, files->name_count);
    free(files->items);
    *files = (struct gcmp_pt_files){.names = NULL};
}

static int probe_single(struct gcmp_dir *dir, const char *name) {
    if (gcmp_torch_form(dir, name) != GCMP_TORCH_OTHER) {
        return 2;
    }
    return find_suffix(name) != NULL ? 1 : 0;
}

int gcmp_pt_probe_files(struct gcmp_dir *dir) {
    const char *only;
    char **names;
    size_t count;
    int strength = 0;
    if (gcmp_dir_is_file(dir, &only)) {
        return probe_single(dir, only);
    }
    if (gcmp_dir_list(dir, "", MAX_NAMES, &names, &count, NULL) != GRADCMP_OK) {
        return 0;
    }
    for (size_t i = 0; i < count && strength < 2; i++) {
        if (find_suffix(names[i]) == NULL || gcmp_dir_kind(dir, names[i]) == GCMP_DIR_FOLDER) {
            continue;
        }
        bool is_torch =
            is_optimizer_name(names[i]) && gcmp_torch_form(dir, names[i]) != GCMP_TORCH_OTHER;
        strength = is_torch ? 2 : 1;
    }
    gcmp_dir_free_names(names, count);
    return strength;
}
