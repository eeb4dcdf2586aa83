/* Random work through the public interface in one process, for as long as asked: memory must stay
 * flat and every answer be the first one again.
 *
 *   soak SECONDS FOLDER_OF_CHECKPOINTS
 *
 * Prints resident memory now and then; exit 1 where it grew by more than MAX_GROWTH_KIB after the
 * first pass over everything, or an answer changed. tests/bench/soak.sh builds and runs it. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gradcmp/gradcmp.h"

enum { MAX_CHECKPOINTS = 32, KINDS = 4, MAX_GROWTH_KIB = 4096, WARM_UP_SHARE = 4 };

struct soak {
    char paths[MAX_CHECKPOINTS][512];
    unsigned count;
    int answers[KINDS][MAX_CHECKPOINTS][MAX_CHECKPOINTS]; /* plus 1; 0: not asked yet */
    unsigned long runs, wrong;
};

static long resident_kib(void) {
    long pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%ld %ld", &pages, &resident) != 2) {
        resident = 0;
    }
    if (file != NULL) {
        fclose(file);
    }
    return resident * 4;
}

static int drop(void *user, const char *bytes, size_t count) {
    (void)bytes;
    *(unsigned long *)user += count;
    return 0;
}

static int compare(const char *a, const char *b, const struct gradcmp_options *options) {
    struct gradcmp_report *report;
    struct gradcmp_error error = {0};
    unsigned long written = 0;
    const char *candidates[] = {b};
    if (gradcmp_compare(a, candidates, 1, options, &report, &error) != GRADCMP_OK) {
        return 100 + (int)error.code;
    }
    int status = gradcmp_report_exit_status(report);
    if (gradcmp_report_write_json(report, drop, &written, &error) != GRADCMP_OK ||
        gradcmp_report_write_html(report, NULL, drop, &written, &error) != GRADCMP_OK) {
        status = 99;
    }
    gradcmp_report_free(report);
    return status;
}

static int bits(const char *a, const char *b, const struct gradcmp_options *options) {
    struct gradcmp_evidence *evidence;
    struct gradcmp_error error = {0};
    const char *paths[] = {a, b};
    if (gradcmp_bits(paths, 2, options, NULL, &evidence, &error) != GRADCMP_OK) {
        return 100 + (int)error.code;
    }
    int status = gradcmp_evidence_exit_status(evidence);
    gradcmp_evidence_free(evidence);
    return status;
}

static int check(const char *a, const struct gradcmp_options *options) {
    struct gradcmp_findings *findings;
    struct gradcmp_error error = {0};
    if (gradcmp_check(&a, 1, options, &findings, &error) != GRADCMP_OK) {
        return 100 + (int)error.code;
    }
    int status = gradcmp_findings_exit_status(findings);
    gradcmp_findings_free(findings);
    return status;
}

static int list(const char *a, const struct gradcmp_options *options) {
    struct gradcmp_checkpoint *checkpoint;
    struct gradcmp_error error = {0};
    struct gradcmp_ls_options how = GRADCMP_LS_OPTIONS_INIT;
    unsigned long written = 0;
    how.stats = 1;
    if (gradcmp_checkpoint_open(a, options, &checkpoint, &error) != GRADCMP_OK) {
        return 100 + (int)error.code;
    }
    int status = gradcmp_checkpoint_list(checkpoint, options, &how, drop, &written, &error);
    gradcmp_checkpoint_free(checkpoint);
    return status == GRADCMP_OK ? (int)(written % 90) : 100 + status;
}

static void one(struct soak *soak) {
    unsigned kind = (unsigned)rand() % KINDS, a = (unsigned)rand() % soak->count,
             b = kind < 2 ? (unsigned)rand() % soak->count : 0;
    struct gradcmp_options options = GRADCMP_OPTIONS_INIT;
    options.allow_same = 1;
    options.threads = 1 + (unsigned)rand() % 4;
    const char *path = soak->paths[a];
    int answer = kind == 0   ? compare(path, soak->paths[b], &options)
                 : kind == 1 ? bits(path, soak->paths[b], &options)
                 : kind == 2 ? check(path, &options)
                             : list(path, &options);
    int *first = &soak->answers[kind][a][b];
    if (*first != 0 && *first != answer + 1) {
        printf("kind %u of %s and %s: %d, first %d\n", kind, path, soak->paths[b], answer,
               *first - 1);
        soak->wrong++;
    }
    *first = answer + 1;
    soak->runs++;
}

static void find(struct soak *soak, const char *folder) {
    DIR *stream = opendir(folder);
    const struct dirent *entry;
    while (stream != NULL && soak->count < MAX_CHECKPOINTS && (entry = readdir(stream)) != NULL) {
        if (entry->d_name[0] != '.') {
            snprintf(soak->paths[soak->count++], sizeof soak->paths[0], "%s/%s", folder,
                     entry->d_name);
        }
    }
    if (stream != NULL) {
        closedir(stream);
    }
}

int main(int argc, char **argv) {
    static struct soak soak;
    long seconds = argc > 1 ? strtol(argv[1], NULL, 10) : 0, warm = 0, most = 0;
    for (int i = 2; i < argc; i++) {
        find(&soak, argv[i]);
    }
    if (seconds < 1 || soak.count == 0) {
        fputs("usage: soak SECONDS FOLDER_OF_CHECKPOINTS...\n", stderr);
        return 2;
    }
    time_t start = time(NULL), told = start;
    while (time(NULL) - start < seconds) {
        one(&soak);
        long now = resident_kib();
        if ((time(NULL) - start) * WARM_UP_SHARE < seconds) {
            warm = now > warm ? now : warm;
        }
        most = now > most ? now : most;
        if (time(NULL) - told >= 10) {
            told = time(NULL);
            printf("%ld s: %lu runs, %ld KiB\n", (long)(told - start), soak.runs, now);
            fflush(stdout);
        }
    }
    printf("%lu runs, %lu answers that changed; at most %ld KiB in the first quarter, %ld in all\n",
           soak.runs, soak.wrong, warm, most);
    return soak.wrong > 0 || most > warm + MAX_GROWTH_KIB;
}
