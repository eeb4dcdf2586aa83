/* Fuzz target: legacy Megatron checkpoints and gradient dumps, from files to parameters.
 *
 * Input: a byte of flags, then for each of two archives the length of the pickle (4 bytes,
 * little-endian), the pickle, the number of records data/0, data/1, ... (1 byte) and their lengths
 * (2 bytes each). Flags: 1: a dump, of the first pickle, else weights and distrib_optim.pt; 2: two
 * ranks with the same files.
 */
#include "formats/megatron_legacy.h"
#include "formats/megatron_wgrads.h"
#include "unshard/unshard.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/catalogue.h"
#include "base/cursor.h"
#include "base/dtype.h"

#include "archive.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_RECORDS = 64 };

struct input {
    uint8_t flags;
    const unsigned char *pickles[2];
    uint32_t pickle_bytes[2];
    uint16_t records[2][MOST_RECORDS];
    uint8_t record_counts[2];
};

static char folder[64];

/* Write an archive of one pickle; nothing where it has no bytes. */
static void write_archive(const struct input *input, unsigned pickle, const char *name) {
    char path[160];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    unlink(path);
    if (input->pickle_bytes[pickle] == 0) {
        return;
    }
    begin_archive();
    add_record("a/data.pkl", input->pickles[pickle], input->pickle_bytes[pickle]);
    for (size_t i = 0; i < input->record_counts[pickle]; i++) {
        char record[32];
        snprintf(record, sizeof record, "a/data/%zu", i);
        add_record(record, NULL, input->records[pickle][i]);
    }
    end_archive();
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, archive, archive_bytes) != (ssize_t)archive_bytes) {
        abort();
    }
    close(fd);
}

/* --- the folder, which serves all inputs of a process --- */

static const char *const names[] = {"mp_rank_00/model_optim_rng.pt",
                                    "mp_rank_00/distrib_optim.pt",
                                    "mp_rank_01/model_optim_rng.pt",
                                    "mp_rank_01/distrib_optim.pt",
                                    "mp_rank_00.pth",
                                    "mp_rank_01.pth"};
static const char *const ranks[] = {"mp_rank_00", "mp_rank_01"};

static void clear_folder(void) {
    char path[160];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, ranks[i]);
        rmdir(path);
    }
}

static void remove_folder(void) {
    clear_folder();
    rmdir(folder);
}

static void make_folder(const struct input *input) {
    if (folder[0] == '\0') {
        snprintf(folder, sizeof folder, "%s/gradcmp-fuzz-XXXXXX",
                 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        if (mkdtemp(folder) == NULL) {
            abort();
        }
        atexit(remove_folder);
    }
    clear_folder();
    for (size_t rank = 0; rank < ((input->flags & 2) != 0 ? 2 : 1); rank++) {
        char path[160];
        if ((input->flags & 1) != 0) {
            write_archive(input, 0, names[4 + rank]);
            continue;
        }
        snprintf(path, sizeof path, "%s/%s", folder, ranks[rank]);
        if (mkdir(path, 0700) != 0) {
            abort();
        }
        write_archive(input, 0, names[2 * rank]);
        write_archive(input, 1, names[2 * rank + 1]);
    }
}

/* --- what must hold of everything that is not refused --- */

static void check_slab(const struct gradcmp_catalogue *catalogue,
                       const struct gradcmp_parameter *parameter, const struct gradcmp_slab *slab) {
    const struct gradcmp_source *source = &catalogue->sources[slab->source];
    int64_t last = slab->offset_elems;
    if (slab->source >= catalogue->source_count) {
        abort();
    }
    for (unsigned d = 0; d < parameter->ndim; d++) {
        if (slab->extent[d] == 0 || slab->start[d] >= parameter->shape[d] ||
            slab->extent[d] > parameter->shape[d] - slab->start[d]) {
            abort();
        }
        last += (int64_t)(slab->extent[d] - 1) * slab->stride[d];
    }
    uint64_t elems = source->length_bytes / gcmp_dtype_bytes((enum gradcmp_dtype)parameter->dtype);
    if (source->kind == GRADCMP_SOURCE_RANGE &&
        (slab->offset_elems < 0 || last < slab->offset_elems || (uint64_t)last >= elems)) {
        abort();
    }
}

static void check_state(const struct gradcmp_catalogue *catalogue, const char *state) {
    struct gradcmp_model model;
    struct gradcmp_error error = {0};
    if (gcmp_unshard(catalogue, state, NULL, &model, &error) != GRADCMP_OK) {
        if (error.message[0] == '\0') {
            abort();
        }
        return;
    }
    for (size_t i = 0; i < model.count; i++) {
        const struct gradcmp_parameter *parameter = &model.parameters[i];
        for (size_t s = 0; s < parameter->slab_count; s++) {
            check_slab(catalogue, parameter, &parameter->slabs[s]);
        }
    }
    gcmp_model_free(&model);
}

static void check_catalogue(struct gradcmp_catalogue *catalogue) {
    const char **states;
    size_t count;
    if (gcmp_unshard_states(catalogue, catalogue->arena, &states, &count, NULL) == GRADCMP_OK) {
        for (size_t i = 0; i < count && i < 16; i++) {
            check_state(catalogue, states[i]);
        }
    }
    for (uint32_t i = 0; i < catalogue->source_count; i++) {
        struct gradcmp_extent extent = {0};
        if (catalogue->sources[i].kind == GRADCMP_SOURCE_ITEM &&
            catalogue->format->resolve(catalogue, i, &extent, NULL) == GRADCMP_OK) {
            free(extent.decoded);
        }
    }
}

static void read_folder(const struct gradcmp_format *format) {
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    struct gradcmp_error error = {0};
    struct gradcmp_catalogue catalogue = {.arena = &arena, .iteration = -1, .format = format};
    if (gcmp_dir_open(folder, &catalogue.dir, &error) != GRADCMP_OK) {
        abort();
    }
    if (format->probe(catalogue.dir) > 0) {
        if (format->open(&catalogue, &error) == GRADCMP_OK) {
            check_catalogue(&catalogue);
        } else if (error.message[0] == '\0') {
            abort();
        }
    }
    gcmp_catalogue_free(&catalogue);
    gcmp_dir_close(catalogue.dir);
    gcmp_arena_free(&arena);
}

static bool read_input(const uint8_t *data, size_t size, struct input *input) {
    struct gcmp_cursor cursor = gcmp_cursor_make(data, size, 0);
    *input = (struct input){.flags = 0};
    if (!gcmp_read_u8(&cursor, &input->flags)) {
        return false;
    }
    for (size_t i = 0; i < 2; i++) {
        if (!gcmp_read_u32le(&cursor, &input->pickle_bytes[i]) ||
            !gcmp_read_bytes(&cursor, input->pickle_bytes[i], &input->pickles[i]) ||
            !gcmp_read_u8(&cursor, &input->record_counts[i]) ||
            input->record_counts[i] > MOST_RECORDS) {
            return false;
        }
        for (size_t k = 0; k < input->record_counts[i]; k++) {
            if (!gcmp_read_u16le(&cursor, &input->records[i][k])) {
                return false;
            }
        }
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct input input;
    if (!read_input(data, size, &input)) {
        return 0;
    }
    make_folder(&input);
    read_folder((input.flags & 1) != 0 ? &gcmp_format_megatron_wgrads
                                       : &gcmp_format_megatron_legacy);
    return 0;
}
