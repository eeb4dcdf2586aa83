/* Ranks as the public interface has them: joining, agreeing, leaving. */
#include "ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dir.h"
#include "engine/plugin.h"
#include "gradcmp/sys/format.h"
#include "gradcmp/sys/tally.h"

#define PLUGIN "libgradcmp_mpi.so"

enum {
    MOST_SAMPLED = 256, /* files of a checkpoint of which bytes are compared */
    SAMPLES = 3,        /* places in each */
    SAMPLE_BYTES = 1024,
    PATIENCE_MS = 800,       /* after an interrupt, of a rank that is interrupted too */
    LONG_PATIENCE_MS = 10000 /* of one that is done, and waits for others' reports */
};

/* --- the launcher --- */

/* A number that a launcher put into the environment; false where there is none. */
static bool read_number(const char *name, unsigned *out) {
    const char *text = getenv(name);
    char *end;
    if (text == NULL || text[0] < '0' || text[0] > '9') {
        return false;
    }
    unsigned long number = strtoul(text, &end, 10);
    *out = (unsigned)number;
    return *end == '\0' && number <= 1u << 30;
}

int gradcmp_ranks_launched(unsigned *index, unsigned *count) {
    /* Open MPI; MPICH, Intel MPI and srun with PMI; srun with any plug-in or none. */
    static const char *const names[][2] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                           {"PMI_RANK", "PMI_SIZE"},
                                           {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};
    const char *wish = getenv("GRADCMP_RANKS");
    if (wish != NULL && strcmp(wish, "off") == 0) {
        return 0; /* started by a rank of another program, whose environment this is */
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (read_number(names[i][0], index) && read_number(names[i][1], count)) {
            return *count > 1;
        }
    }
    *count = 0; /* PMIx tells the number of ranks to those who ask it */
    return read_number("PMIX_RANK", index);
}

/* --- joining --- */

static enum gradcmp_status load(const struct gradcmp_ranks_table **out,
                                struct gradcmp_error *error) {
    char path[PATH_MAX];
    void *library, *symbol;
    gradcmp_ranks_table_fn table;
    if (!gcmp_plugin_find(PLUGIN, path)) {
        GCMP_FAIL(error, GRADCMP_ERROR_DEVICE,
                  "a launcher started several processes, and there is no MPI plug-in (" PLUGIN
                  ") beside the library: build it where Open MPI is installed, or start one "
                  "process (with GRADCMP_RANKS=off each works alone)");
    }
    GCMP_TRY(gcmp_plugin_load(path, GRADCMP_RANKS_SYMBOL, &library, &symbol, error));
    memcpy(&table, &symbol, sizeof table); /* how POSIX makes a function of a symbol */
    if (symbol == NULL || table()->version != GRADCMP_RANKS_VERSION) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_DEVICE, path, GRADCMP_NO_OFFSET,
                     "expected the plug-in of version %d of the interface, found another",
                     GRADCMP_RANKS_VERSION);
    }
    *out = table();
    return GRADCMP_OK;
}

/* Ranks exchange structs as they are: all must be of one program. */
static enum gradcmp_status greet(struct gradcmp_ranks *ranks, struct gradcmp_error *error) {
    struct gcmp_digest digest;
    struct gcmp_ranks_card card;
    struct gcmp_ranks_waiting waiting = {0};
    memset(&card, 0, sizeof card);
    card.step = GCMP_STEP_JOIN;
    gcmp_digest_begin(&digest);
    gcmp_digest_text(&digest, gradcmp_version());
    gcmp_digest_number(&digest, sizeof(struct gradcmp_tally));
    gcmp_digest_number(&digest, sizeof(void *));
    gcmp_digest_number(&digest, sizeof(struct gradcmp_options));
    GCMP_TRY(gcmp_digest_end(&digest, card.digest, error));
    GCMP_TRY(gcmp_ranks_meet(ranks, &card, &waiting, error));
    unsigned other = gcmp_ranks_dissenter(ranks);
    if (other != 0) {
        GCMP_FAIL(error, GRADCMP_ERROR_USAGE, "rank %u runs another version of gradcmp than rank 0",
                  other);
    }
    return GRADCMP_OK;
}

enum gradcmp_status gradcmp_ranks_join(struct gradcmp_ranks **out, struct gradcmp_error *error) {
    unsigned index, count;
    const struct gradcmp_ranks_table *table;
    *out = NULL;
    if (!gradcmp_ranks_launched(&index, &count)) {
        return GRADCMP_OK;
    }
    GCMP_TRY(load(&table, error));
    struct gradcmp_ranks *ranks = calloc(1, sizeof *ranks);
    if (ranks == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    enum gradcmp_status status = gcmp_ranks_open(ranks, table, error);
    if (status == GRADCMP_OK && count != 0 && ranks->count != count) {
        status = gcmp_error_set(error, GRADCMP_ERROR_DEVICE, NULL, GRADCMP_NO_OFFSET,
                                "the launcher started %u processes, and MPI knows of %u: start "
                                "them with the mpirun of the Open MPI that gradcmp was built "
                                "with, or with srun --mpi=pmix",
                                count, ranks->count);
    }
    if (status == GRADCMP_OK && ranks->count > 1) {
        status = greet(ranks, error);
    }
    if (status != GRADCMP_OK || ranks->count == 1) {
        gcmp_ranks_free(ranks);
        free(ranks);
        return status;
    }
    *out = ranks;
    return GRADCMP_OK;
}

unsigned gradcmp_ranks_index(const struct gradcmp_ranks *ranks) {
    return ranks == NULL ? 0 : ranks->index;
}

unsigned gradcmp_ranks_count(const struct gradcmp_ranks *ranks) {
    return ranks == NULL ? 1 : ranks->count;
}

/* --- agreeing --- */

void gcmp_view_begin(struct gcmp_view *view) {
    memset(view, 0, sizeof *view);
    view->has_sample = true;
    gcmp_digest_begin(&view->whole);
    gcmp_digest_begin(&view->sample);
}

static void add_settings(struct gcmp_digest *digest, const struct gradcmp_catalogue *catalogue) {
    gcmp_digest_number(digest, catalogue->setting_count);
    for (size_t i = 0; i < catalogue->setting_count; i++) {
        const struct gradcmp_setting *setting = &catalogue->settings[i];
        gcmp_digest_text(digest, setting->name);
        gcmp_digest_number(digest, (uint64_t)setting->kind);
        gcmp_digest_number(digest, (uint64_t)setting->integer);
        gcmp_digest_bytes(digest, &setting->number, sizeof setting->number);
        gcmp_digest_text(digest, setting->text);
    }
}

static void add_sources(struct gcmp_digest *digest, const struct gradcmp_catalogue *catalogue) {
    gcmp_digest_number(digest, catalogue->source_count);
    for (size_t i = 0; i < catalogue->source_count; i++) {
        const struct gradcmp_source *source = &catalogue->sources[i];
        gcmp_digest_number(digest, source->offset_bytes);
        gcmp_digest_number(digest, source->length_bytes);
        gcmp_digest_number(digest, (uint64_t)source->file << 32 | source->crc32);
        gcmp_digest_number(digest, (uint64_t)source->kind << 8 | source->encoding);
    }
}

/* Files of the same names and sizes may still be of another run: a node's own copy, say. */
static void add_sample(struct gcmp_view *view, struct gcmp_dir *dir, uint32_t file) {
    unsigned char bytes[SAMPLE_BYTES];
    uint64_t size = gcmp_dir_file_bytes(dir, file);
    for (unsigned i = 1; i <= SAMPLES; i++) {
        uint64_t at = size / (SAMPLES + 1) * i;
        size_t count = size - at < sizeof bytes ? (size_t)(size - at) : sizeof bytes;
        if (gcmp_dir_read(dir, file, at, bytes, count, NULL) != GRADCMP_OK) {
            view->has_sample = false; /* whoever needs these bytes will say what is wrong */
            return;
        }
        gcmp_digest_bytes(&view->sample, bytes, count);
    }
}

void gcmp_view_add(struct gcmp_view *view, const struct gradcmp_catalogue *catalogue) {
    uint32_t files = gcmp_dir_file_count(catalogue->dir);
    gcmp_digest_text(&view->whole, catalogue->format->name);
    gcmp_digest_text(&view->whole, catalogue->layout_name);
    gcmp_digest_number(&view->whole, (uint64_t)catalogue->iteration);
    gcmp_digest_number(&view->whole, files);
    for (uint32_t i = 0; i < files; i++) {
        gcmp_digest_text(&view->whole, gcmp_dir_file_name(catalogue->dir, i));
        gcmp_digest_number(&view->whole, gcmp_dir_file_bytes(catalogue->dir, i));
    }
    add_settings(&view->whole, catalogue);
    add_sources(&view->whole, catalogue);
    uint32_t step = files / MOST_SAMPLED + 1;
    for (uint32_t i = 0; i < files && view->has_sample; i += step) {
        add_sample(view, catalogue->dir, i);
    }
}

void gcmp_view_add_error(struct gcmp_view *view, const struct gradcmp_error *error) {
    gcmp_digest_number(&view->whole, error->code);
    gcmp_digest_text(&view->whole, error->message);
    if (view->first.code == GRADCMP_OK) {
        view->first = *error;
    }
}

/* Say how a rank differs: by what it cannot open, or by what it sees there. */
static enum gradcmp_status tell_dissent(const struct gradcmp_ranks *ranks, unsigned other,
                                        struct gradcmp_error *error) {
    const struct gradcmp_error *here = &ranks->cards[0].error;
    const struct gradcmp_error *there = &ranks->cards[other].error;
    if (there->code != here->code || strcmp(there->message, here->message) != 0) {
        bool is_there = there->code != GRADCMP_OK;
        const struct gradcmp_error *which = is_there ? there : here;
        GCMP_FAIL_AT(error, which->code, which->path, which->offset_bytes,
                     "%.300s (on rank %u, not on rank %u: all must see the same files)",
                     which->message, is_there ? other : 0, is_there ? 0 : other);
    }
    GCMP_FAIL(error, GRADCMP_ERROR_IO,
              "rank %u sees other files than rank 0 under the same paths: checkpoints must lie on "
              "storage that all nodes share, or be the same on each",
              other);
}

enum gradcmp_status gcmp_view_agree(struct gcmp_view *view, const struct gradcmp_options *options,
                                    struct gradcmp_error *error) {
    struct gradcmp_ranks *ranks = options->ranks;
    struct gcmp_ranks_card card;
    struct gcmp_ranks_waiting waiting = {
        .progress = options->progress, .user = options->progress_user, .patience_ms = PATIENCE_MS};
    memset(&card, 0, sizeof card);
    card.step = GCMP_STEP_AGREE;
    card.has_sample = view->has_sample;
    card.error = view->first;
    enum gradcmp_status whole = gcmp_digest_end(&view->whole, card.digest, error);
    enum gradcmp_status sample = gcmp_digest_end(&view->sample, card.sample, error);
    GCMP_TRY(whole);
    GCMP_TRY(sample);
    GCMP_TRY(gcmp_ranks_meet(ranks, &card, &waiting, error));
    unsigned other = gcmp_ranks_dissenter(ranks);
    if (other == 0) {
        return GRADCMP_OK;
    }
    ranks->is_stopped = true; /* nothing that follows can be common work */
    enum gradcmp_status status = tell_dissent(ranks, other, &ranks->dissent);
    if (error != NULL) {
        *error = ranks->dissent;
    }
    return status;
}

/* --- leaving --- */

/* Why the ranks end: rank 0 says what it knows itself; else what another complains of. */
static void find_reason(const struct gradcmp_ranks *ranks, struct gradcmp_farewell *farewell) {
    int mine = farewell->exit_status, highest = mine;
    bool is_cut_short = mine >= 128;
    if (mine == 2) {
        return;
    }
    for (unsigned r = 0; r < ranks->count; r++) {
        const struct gcmp_ranks_card *card = &ranks->cards[r];
        highest = card->exit_status > highest ? card->exit_status : highest;
        bool is_reason = r != ranks->index && card->exit_status != 0 && card->exit_status < 128;
        if (is_reason) {
            farewell->exit_status = card->exit_status;
            snprintf(farewell->text, sizeof farewell->text, "%.400s (on rank %u)",
                     card->error.message[0] == '\0' ? "failed without a message"
                                                    : card->error.message,
                     r);
            return;
        }
    }
    if (is_cut_short && ranks->dissent.code != GRADCMP_OK) {
        farewell->exit_status = 2;
        snprintf(farewell->text, sizeof farewell->text, "%.500s", ranks->dissent.message);
    } else if (highest >= 128) {
        farewell->exit_status = highest;
        snprintf(farewell->text, sizeof farewell->text, "interrupted");
    }
}

enum gradcmp_status gradcmp_ranks_leave(struct gradcmp_ranks *ranks,
                                        struct gradcmp_farewell *farewell,
                                        struct gradcmp_error *error) {
    struct gcmp_ranks_card card;
    bool is_early = farewell->exit_status >= 2;
    struct gcmp_ranks_waiting waiting = {
        .progress = farewell->progress,
        .user = farewell->progress_user,
        .patience_ms = is_early || ranks->index == 0 ? PATIENCE_MS : LONG_PATIENCE_MS};
    memset(&card, 0, sizeof card);
    card.step = GCMP_STEP_LEAVE;
    card.exit_status = farewell->exit_status;
    snprintf(card.error.message, sizeof card.error.message, "%.500s", farewell->text);
    farewell->text[0] = '\0';
    if (is_early) {
        gcmp_ranks_tell(ranks, GCMP_WORD_STOP);
    }
    enum gradcmp_status status = gcmp_ranks_meet_last(ranks, &card, &waiting, error);
    if (status == GRADCMP_OK) {
        find_reason(ranks, farewell);
    }
    gcmp_ranks_free(ranks);
    free(ranks);
    return status;
}
