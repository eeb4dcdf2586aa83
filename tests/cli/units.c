/* Small functions of the program, whose results the command line does not show: built by
 * usage/units.sh from the program's sources. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/number.h"
#include "cli/progress.h"
#include "cli/suggest.h"

static void show_sizes(void) {
    static const char *const texts[] = {"1",     "1b",   "2k",   "2K",          "2KiB", "2kib",
                                        "2kB",   "2KB",  "3MiB", "3MB",         "3M",   "4GiB",
                                        "4GB",   "5TiB", "5TB",  "16777216TiB", "1iB",  "1Mi",
                                        "1 MiB", "-1",   "+1",   "1.5GiB",      "",     "MiB"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        uint64_t bytes = 7;
        if (cli_parse_size(texts[i], &bytes)) {
            printf("size \"%s\": %" PRIu64 "\n", texts[i], bytes);
        } else {
            printf("size \"%s\": none (%" PRIu64 " stays)\n", texts[i], bytes);
        }
    }
}

static void show_counts(void) {
    static const char *const texts[] = {
        "0", "00", "18446744073709551615", "18446744073709551616", "1x", " 1", ""};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        uint64_t count = 7;
        bool is_one = cli_parse_count(texts[i], &count);
        printf("count \"%s\": %s%" PRIu64 "\n", texts[i], is_one ? "" : "none, ", count);
    }
}

static void show_suggestions(void) {
    static const char *const known[] = {"ls", "check", "compare", "extract", "json", "k", "C"};
    static const char *const words[] = {
        "sl",   "l", "chekc", "copmare", "comparison", "jsno",
        "json", "x", "",      "extrat",  "xtrct",      "a_word_that_is_longer_than_any_known_one"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        struct cli_suggestion suggestion = {words[i], NULL, 0};
        for (size_t j = 0; j < sizeof known / sizeof known[0]; j++) {
            cli_suggest(&suggestion, known[j]);
        }
        printf("\"%s\": %s\n", words[i], suggestion.nearest == NULL ? "-" : suggestion.nearest);
    }
}

static void show_progress(void) {
    static const struct {
        uint64_t done, total;
        double rate;
    } lines[] = {{0, 1000, 0.0},
                 {500, 1000, 100.0},
                 {1000, 1000, 100.0},
                 {0, 0, 0.0},
                 {1048575, 1073741824, 1048576.0},
                 {3u << 30, UINT64_C(56) << 30, 2.5e9},
                 {1, UINT64_C(14) << 40, 2.0e9},
                 {1, UINT64_MAX, 1.0}};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        char line[128];
        cli_progress_format(line, lines[i].done, lines[i].total, lines[i].rate);
        printf("%s\n", line);
    }
}

int main(void) {
    show_sizes();
    show_counts();
    show_suggestions();
    show_progress();
    return 0;
}
