/* What a pair's verdict depends on, as a digest. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "base/dir.h"
#include "base/grow.h"
#include "base/search.h"
#include "build_id.h"
#include "resume.h"

/* A checkpoint of more files is judged anew each time. */
enum { MAX_ENTRIES = 1000000 };

/* A digest while it is made. Everything is added with its length or in full width, so that no two
 * lists run together. */
struct digest {
    XXH3_state_t *state;
    bool failed; /* something could not be looked at */
};

static void add_word(struct digest *digest, uint64_t value) {
    XXH3_128bits_update(digest->state, &value, sizeof value);
}

static void add_text(struct digest *digest, const char *text) {
    size_t length = text == NULL ? 0 : strlen(text);
    add_word(digest, text == NULL ? UINT64_MAX : length);
    XXH3_128bits_update(digest->state, text == NULL ? "" : text, length);
}

static void add_real(struct digest *digest, double value) {
    uint64_t word;
    memcpy(&word, &value, sizeof word);
    add_word(digest, word);
}

/* Size, times and inode: the time of change is one that no program can set back. */
static void add_stat(struct digest *digest, const char *path) {
    struct stat info;
    add_text(digest, path);
    if (stat(path, &info) != 0 && lstat(path, &info) != 0) { /* a link may lead nowhere */
        digest->failed = true;
        return;
    }
    add_word(digest, (uint64_t)info.st_mode & S_IFMT);
    if (S_ISREG(info.st_mode)) { /* a folder's own times change with what is of no interest */
        add_word(digest, (uint64_t)info.st_size);
        add_word(digest, (uint64_t)info.st_ino);
        add_word(digest, (uint64_t)info.st_mtim.tv_sec);
        add_word(digest, (uint64_t)info.st_mtim.tv_nsec);
        add_word(digest, (uint64_t)info.st_ctim.tv_sec);
        add_word(digest, (uint64_t)info.st_ctim.tv_nsec);
    }
}

/* --- the files of a checkpoint --- */

/* Names of folders that are still to be looked at, in the order in which they were found. */
struct queue {
    char **names;
    size_t first, count, capacity;
};

static bool queue_add(struct queue *queue, char *name) {
    if (!gcmp_grow(&queue->names, queue->count, &queue->capacity, sizeof *queue->names)) {
        return false;
    }
    queue->names[queue->count++] = name;
    return true;
}

static void add_entry(struct digest *digest, struct gcmp_dir *dir, struct queue *queue,
                      char *name) {
    char *path = name == NULL ? NULL : gcmp_join_names(gcmp_dir_path(dir), name);
    if (path == NULL) {
        digest->failed = true;
        free(name);
        return;
    }
    add_stat(digest, path);
    free(path);
    bool is_kept = gcmp_dir_has_dir(dir, name) && queue_add(queue, name);
    if (!is_kept) {
        free(name);
    }
}

/* Add all files below a checkpoint's folder, whether its reader looks at them or not. */
static void add_folder(struct digest *digest, struct gcmp_dir *dir) {
    struct queue queue = {0};
    size_t seen = 0;
    for (bool is_top = true; is_top || queue.first < queue.count; is_top = false) {
        char *folder = is_top ? NULL : queue.names[queue.first++];
        char **names = NULL;
        size_t count = 0;
        if (gcmp_dir_list(dir, is_top ? "" : folder, MAX_ENTRIES - seen, &names, &count, NULL) !=
            GRADCMP_OK) {
            digest->failed = true;
            count = 0;
        }
        seen += count;
        for (size_t i = 0; i < count; i++) {
            add_entry(digest, dir, &queue,
                      is_top ? strdup(names[i]) : gcmp_join_names(folder, names[i]));
        }
        if (names != NULL) {
            gcmp_dir_free_names(names, count);
        }
        free(folder);
    }
    free(queue.names);
}

/* Betas, clipping and what else the run's arguments say. */
static void add_settings(struct digest *digest, const struct gradcmp_catalogue *catalogue) {
    add_word(digest, catalogue->setting_count);
    for (size_t i = 0; i < catalogue->setting_count; i++) {
        const struct gradcmp_setting *setting = &catalogue->settings[i];
        add_text(digest, setting->name);
        add_word(digest, setting->kind);
        add_word(digest, (uint64_t)setting->integer);
        add_real(digest, setting->number);
        add_text(digest, setting->text);
    }
}

/* What a reader took from neighbours of the checkpoint stands in the catalogue. */
static void add_catalogue(struct digest *digest, const struct gradcmp_catalogue *catalogue) {
    const struct gradcmp_parallel *parallel = &catalogue->parallel;
    const uint64_t words[] = {(uint64_t)catalogue->iteration,
                              catalogue->layers,
                              catalogue->vocab,
                              catalogue->padded_vocab,
                              catalogue->experts,
                              catalogue->compute,
                              catalogue->sibling_compute,
                              catalogue->is_dump,
                              catalogue->stored_count,
                              parallel->tp,
                              parallel->pp,
                              parallel->vp,
                              parallel->dp,
                              parallel->cp,
                              parallel->ep,
                              parallel->etp,
                              parallel->world};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        add_word(digest, words[i]);
    }
    add_settings(digest, catalogue);
    add_word(digest, catalogue->note_count);
    for (size_t i = 0; i < catalogue->note_count; i++) {
        add_text(digest, catalogue->notes[i]);
    }
}

static void add_checkpoint(struct digest *digest, const struct gradcmp_checkpoint *checkpoint) {
    struct gcmp_dir *dir = checkpoint->catalogue.dir;
    const char *name;
    add_text(digest, checkpoint->path);
    add_stat(digest, checkpoint->path);
    for (uint32_t i = 0; i < gcmp_dir_file_count(dir); i++) {
        add_stat(digest, gcmp_dir_file_path(dir, i));
    }
    if (!gcmp_dir_is_file(checkpoint->dir, &name)) {
        add_folder(digest, checkpoint->dir);
    }
    add_catalogue(digest, &checkpoint->catalogue);
}

/* --- options --- */

static void add_contents(struct digest *digest, const char *path) {
    struct gcmp_dir *dir = NULL;
    unsigned char *bytes = NULL;
    size_t count = 0;
    const char *name;
    add_text(digest, path);
    if (path == NULL) {
        return;
    }
    if (gcmp_dir_open(path, &dir, NULL) == GRADCMP_OK && gcmp_dir_is_file(dir, &name) &&
        gcmp_dir_slurp(dir, name, UINT64_C(1) << 30, &bytes, &count, NULL) == GRADCMP_OK) {
        add_word(digest, count);
        XXH3_128bits_update(digest->state, bytes, count);
    } else {
        digest->failed = true;
    }
    free(bytes);
    gcmp_dir_close(dir);
}

/* All that judges; what only says how to read and to print is left out. A state that is named means
 * less than the same one by default, for which others may stand in. */
static void add_options(struct digest *digest, const struct gradcmp_options *options) {
    add_text(digest, options->state);
    add_text(digest, options->match);
    add_text(digest, options->exclude);
    add_word(digest, options->dtype);
    add_real(digest, options->k);
    add_real(digest, options->C);
    add_real(digest, options->max_bound);
    add_word(digest, options->vocab);
    add_word(digest, options->layers);
    add_word(digest, options->compat_megatron != 0);
    add_word(digest, options->strict != 0);
    add_word(digest, (uint64_t)(int64_t)options->verify);
    add_word(digest, options->allow_same != 0);
    add_word(digest, options->allow_iterations != 0);
    add_word(digest, options->allow_routing != 0);
    add_contents(digest, options->map);
    add_contents(digest, options->fit);
}

/* Two builds of one version may judge differently. */
static void add_build(struct digest *digest) {
    struct gcmp_build_id id;
    digest->failed = digest->failed || !gcmp_build_id_find(&id);
    add_text(digest, gradcmp_version());
    add_word(digest, id.count);
    XXH3_128bits_update(digest->state, id.bytes, id.count);
}

struct gcmp_resume_key gcmp_resume_key_of(const struct gcmp_comparison *comparison, size_t index) {
    struct gcmp_resume_key key = {{0}, false};
    const struct gradcmp_checkpoint *a = comparison->baseline.checkpoint;
    const struct gradcmp_checkpoint *b = comparison->candidates[index].checkpoint;
    struct digest digest = {XXH3_createState(), false};
    if (digest.state == NULL || b == NULL) {
        XXH3_freeState(digest.state);
        return key;
    }
    XXH3_128bits_reset(digest.state);
    add_build(&digest);
    add_text(&digest, comparison->report->state);
    add_options(&digest, comparison->options);
    add_checkpoint(&digest, a);
    add_checkpoint(&digest, b);
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(digest.state));
    memcpy(key.bytes, canonical.digest, sizeof key.bytes);
    XXH3_freeState(digest.state);
    /* A baseline that only numbers its parameters takes names from whichever candidate has some. */
    key.is_known = !digest.failed && a->catalogue.number_groups == NULL;
    return key;
}
