/* Runs files through a fuzz target without libFuzzer: each argument is a file or a folder of files.
 * So a corpus is a test on every compiler, and a crash can be looked at in a debugger. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Run one file in a buffer of its exact size, so that a memory checker sees one byte too many. */
static int run_file(const char *path) {
    FILE *file = fopen(path, "rb");
    struct stat info;
    if (file == NULL || fstat(fileno(file), &info) != 0) {
        perror(path);
        if (file != NULL) {
            fclose(file);
        }
        return -1;
    }
    size_t size = (size_t)info.st_size;
    uint8_t *data = malloc(size > 0 ? size : 1);
    int result = -1;
    if (data == NULL || fread(data, 1, size, file) != size) {
        perror(path);
    } else {
        LLVMFuzzerTestOneInput(data, size);
        result = 0;
    }
    free(data);
    fclose(file);
    return result;
}

/* Run every file of a folder; returns how many, or -1. */
static long run_folder(const char *path) {
    struct dirent **entries;
    int count = scandir(path, &entries, NULL, alphasort);
    if (count < 0) {
        perror(path);
        return -1;
    }
    long ran = 0;
    for (int i = 0; i < count; i++) {
        if (ran >= 0 && entries[i]->d_name[0] != '.') {
            char name[4096];
            snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name);
            ran = run_file(name) == 0 ? ran + 1 : -1;
        }
        free(entries[i]);
    }
    free(entries);
    return ran;
}

int main(int argc, char **argv) {
    long total = 0;
    for (int i = 1; i < argc; i++) {
        struct stat info;
        long ran = -1;
        if (stat(argv[i], &info) == 0 && S_ISDIR(info.st_mode)) {
            ran = run_folder(argv[i]);
        } else {
            ran = run_file(argv[i]) == 0 ? 1 : -1;
        }
        if (ran < 0) {
            return 1;
        }
        total += ran;
    }
    printf("%ld inputs\n", total);
    return total > 0 ? 0 : 1; /* an empty corpus tests nothing */
}
