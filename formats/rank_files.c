/* Names of ranks' files, and the proof that none is missing.
 *
 * Limits: MAX_NAMES names in the folder, MAX_RANK in a number. */
#include "formats/rank_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/checked.h"

enum { MAX_NAMES = 1 << 20, MAX_RANK = 999999 };

static const char PREFIX[] = "mp_rank_";

/* Read a number of at least `digits` digits, as "%02d" prints it; the end, or NULL. */
static const char *read_number(const char *at, size_t digits, uint32_t *out) {
    size_t count = strspn(at, "0123456789");
    if (count < digits || count > 6 || (count > digits && at[0] == '0')) {
        return NULL;
    }
    *out = (uint32_t)strtoul(at, NULL, 10);
    return at + count;
}

bool gcmp_rank_name_read(const char *name, const char *suffix, uint32_t numbers[3],
                         unsigned *number_count) {
    unsigned count = 0;
    if (strncmp(name, PREFIX, sizeof PREFIX - 1) != 0) {
        return false;
    }
    numbers[0] = numbers[1] = numbers[2] = 0;
    const char *at = read_number(name + sizeof PREFIX - 1, 2, &numbers[count++]);
    while (at != NULL && *at == '_' && count < 3) {
        at = read_number(at + 1, 3, &numbers[count++]);
    }
    *number_count = count;
    return at != NULL && strcmp(at, suffix) == 0;
}

bool gcmp_rank_name_ends(const char *name, const char *end, uint32_t *rank, size_t *stem_bytes) {
    const char *digits = end;
    while (digits > name && digits[-1] >= '0' && digits[-1] <= '9') {
        digits--;
    }
    if (digits == end || end - digits > 7) {
        return false;
    }
    bool is_joined = digits > name && (digits[-1] == '_' || digits[-1] == '-');
    const char *word = is_joined ? digits - 1 : digits;
    if (word - name < 4 || strncmp(word - 4, "rank", 4) != 0) {
        return false;
    }
    *rank = (uint32_t)strtoul(digits, NULL, 10);
    *stem_bytes = (size_t)(word - 4 - name);
    return true;
}

enum gradcmp_status gcmp_rank_tell_swaps(struct gradcmp_catalogue *catalogue,
                                         const struct gcmp_rank_swaps *swaps,
                                         struct gradcmp_error *error) {
    char line[480];
    if (swaps->count == 0) {
        return GRADCMP_OK;
    }
    snprintf(line, sizeof line,
             "%zu files hold what another rank wrote than their names say, first %.200s with rank "
             "%llu's: pieces are put where the contents say, but a resume takes a rank's file by "
             "its name",
             swaps->count, swaps->first, (unsigned long long)swaps->first_rank);
    return gcmp_catalogue_contradict(catalogue, error, line);
}

static int compare_numbers(const void *left, const void *right) {
    const struct gcmp_rank_file *a = left, *b = right;
    for (unsigned i = 0; i < 3; i++) {
        if (a->numbers[i] != b->numbers[i]) {
            return a->numbers[i] < b->numbers[i] ? -1 : 1;
        }
    }
    return 0;
}

enum gradcmp_status gcmp_rank_files_list(struct gcmp_dir *dir, const char *suffix,
                                         struct gcmp_rank_files *files,
                                         struct gradcmp_error *error) {
    *files = (struct gcmp_rank_files){.count = 0};
    GCMP_TRY(gcmp_dir_list(dir, "", MAX_NAMES, &files->names, &files->name_count, error));
    files->list = calloc(files->name_count + 1, sizeof *files->list);
    if (files->list == NULL) {
        gcmp_dir_note_memory(dir); /* who only looks for ranks does not hear of this */
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < files->name_count; i++) {
        struct gcmp_rank_file *file = &files->list[files->count];
        unsigned count;
        if (!gcmp_rank_name_read(files->names[i], suffix, file->numbers, &count)) {
            continue;
        }
        file->name = files->names[i];
        if (files->count > 0 && count != files->number_count) {
            GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT, gcmp_dir_path(dir), GRADCMP_NO_OFFSET,
                         "%s and %s are of two different saves", files->list[0].name, file->name);
        }
        files->number_count = count;
        files->count++;
    }
    qsort(files->list, files->count, sizeof *files->list, compare_numbers);
    for (size_t i = 0; i < files->count; i++) {
        files->list[i].listed = i;
    }
    return GRADCMP_OK;
}

void gcmp_rank_files_free(struct gcmp_rank_files *files) {
    free(files->list);
    gcmp_dir_free_names(files->names, files->name_count);
    *files = (struct gcmp_rank_files){.count = 0};
}

static uint32_t at_least(uint32_t size, uint32_t rank) {
    return rank >= size ? rank + 1 : size;
}

static int compare_ranks(const void *left, const void *right) {
    const struct gcmp_rank_file *a = left, *b = right;
    const uint32_t keys_a[] = {a->pp, a->tp, a->ep}, keys_b[] = {b->pp, b->tp, b->ep};
    for (unsigned i = 0; i < 3; i++) {
        if (keys_a[i] != keys_b[i]) {
            return keys_a[i] < keys_b[i] ? -1 : 1;
        }
    }
    return 0;
}

/* Say which file it is that is missing. */
static enum gradcmp_status fail_missing(const struct gcmp_rank_files *files, uint32_t pp,
                                        uint32_t tp, uint32_t ep, const struct gcmp_dir *dir,
                                        struct gradcmp_error *error) {
    char stage[16] = "", experts[16] = "";
    if (files->pp > 1) {
        snprintf(stage, sizeof stage, "_%03u", pp);
    }
    if (files->ep > 1) {
        snprintf(experts, sizeof experts, "_%03u", ep);
    }
    GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT, gcmp_dir_path(dir), GRADCMP_NO_OFFSET,
                 "incomplete: %s%02u%s%s is missing (%zu files; tensor-parallel %u, pipeline %u, "
                 "expert-parallel %u, expert-tensor-parallel %u)",
                 PREFIX, tp, stage, experts, files->count, files->tp, files->pp, files->ep,
                 files->etp);
}

/* Each stage must have the files of ranks r < etp * ep, and no others. */
static enum gradcmp_status check_set(struct gcmp_rank_files *files, const struct gcmp_dir *dir,
                                     struct gradcmp_error *error) {
    uint64_t ranks = (uint64_t)files->etp * files->ep, found = 0;
    for (uint32_t pp = 0; pp < files->pp; pp++) {
        for (uint64_t r = 0; r < ranks; r++) {
            struct gcmp_rank_file key = {.tp = (uint32_t)(r % files->tp), .pp = pp};
            key.ep = (uint32_t)(r / files->etp % files->ep);
            struct gcmp_rank_file *file =
                bsearch(&key, files->list, files->count, sizeof *files->list, compare_ranks);
            if (file == NULL) {
                return fail_missing(files, pp, key.tp, key.ep, dir, error);
            }
            file->etp = (uint32_t)(r % files->etp);
            found++; /* ends early: a file is missing before there are more ranks than files */
        }
    }
    if (found != files->count) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT, gcmp_dir_path(dir), GRADCMP_NO_OFFSET,
                     "%zu ranks' files (%s ... %s), but tensor-parallel %u, pipeline %u, "
                     "expert-parallel %u and expert-tensor-parallel %u make %llu",
                     files->count, files->list[0].name, files->list[files->count - 1].name,
                     files->tp, files->pp, files->ep, files->etp, (unsigned long long)found);
    }
    return GRADCMP_OK;
}

/* Ranks whose files would have one name overwrote each other; ranks that have none lack their part
 * of what is not an expert. */
static enum gradcmp_status check_sizes(const struct gcmp_rank_files *files,
                                       const struct gcmp_dir *dir, struct gradcmp_error *error) {
    uint64_t ranks = (uint64_t)files->etp * files->ep;
    if (ranks < files->tp) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT, gcmp_dir_path(dir), GRADCMP_NO_OFFSET,
                     "incomplete: with tensor-parallel %u, but expert-parallel %u times "
                     "expert-tensor-parallel %u, ranks from %llu on wrote no file, so that their "
                     "part of what is not an expert is missing",
                     files->tp, files->ep, files->etp, (unsigned long long)ranks);
    }
    if (files->etp > files->tp) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT, gcmp_dir_path(dir), GRADCMP_NO_OFFSET,
                     "incomplete: with tensor-parallel %u, but expert-tensor-parallel %u, ranks "
                     "overwrote each other's files",
                     files->tp, files->etp);
    }
    return GRADCMP_OK;
}

static void read_sizes(struct gcmp_rank_files *files, enum gcmp_rank_second second,
                       const struct gradcmp_parallel *stated) {
    unsigned stage_at = files->number_count == 3 || second == GCMP_SECOND_IS_STAGE ? 1 : 2;
    files->tp = files->pp = files->ep = 1;
    for (size_t i = 0; i < files->count; i++) {
        struct gcmp_rank_file *file = &files->list[i];
        file->tp = file->numbers[0];
        file->pp = stage_at == 1 ? file->numbers[1] : 0;
        file->ep = stage_at == 1 ? file->numbers[2] : file->numbers[1];
        files->tp = at_least(files->tp, file->tp);
        files->pp = at_least(files->pp, file->pp);
        files->ep = at_least(files->ep, file->ep);
    }
    files->tp = stated->tp != 0 ? stated->tp : files->tp;
    files->pp = stated->pp != 0 ? stated->pp : files->pp;
    files->ep = stated->ep != 0 ? stated->ep : files->ep;
}

enum gradcmp_status gcmp_rank_files_place(struct gcmp_rank_files *files,
                                          enum gcmp_rank_second second,
                                          const struct gradcmp_parallel *stated,
                                          const struct gcmp_dir *dir, struct gradcmp_error *error) {
    read_sizes(files, second, stated);
    uint64_t domains = (uint64_t)files->pp * files->ep;
    files->etp = stated->etp != 0 ? stated->etp : stated->tp; /* older runs know no other size */
    if (files->etp == 0) {                                    /* as many as there are files for */
        files->etp = (uint32_t)((files->count + domains - 1) / domains);
    }
    qsort(files->list, files->count, sizeof *files->list, compare_ranks);
    if (stated->tp != 0) {
        GCMP_TRY(check_sizes(files, dir, error));
    }
    return check_set(files, dir, error);
}

int64_t gcmp_rank_files_iteration(const char *path) {
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    size_t digits = strncmp(name, "iter_", 5) == 0 ? strspn(name + 5, "0123456789") : 0;
    return digits > 0 && digits <= 18 && name[5 + digits] == '\0' ? strtoll(name + 5, NULL, 10)
                                                                  : -1;
}
