/* How many threads this process may keep busy. */
#include "engine/cpus.h"

#include "engine/engine.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_CPUS = 8192, MOST_LINE = 4096 };

static unsigned affinity_cpus(void) {
    unsigned count = 0;
    cpu_set_t *set = CPU_ALLOC(MOST_CPUS);
    size_t bytes = CPU_ALLOC_SIZE(MOST_CPUS);
    if (set != NULL && sched_getaffinity(0, bytes, set) == 0) {
        count = (unsigned)CPU_COUNT_S(bytes, set);
    }
    CPU_FREE(set);
    long online = count == 0 ? sysconf(_SC_NPROCESSORS_ONLN) : 0;
    return online > 0 ? (unsigned)online : count == 0 ? 1 : count;
}

/* Read the first line of a file; false where it cannot be read. */
static bool read_line(const char *path, char line[MOST_LINE]) {
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    bool ok = fgets(line, MOST_LINE, file) != NULL;
    fclose(file);
    return ok;
}

/* Processors' worth of time per period, rounded up; 0: no limit. */
static unsigned quota_cpus(long long quota, long long period) {
    if (quota <= 0 || period <= 0) {
        return 0;
    }
    long long cpus = quota / period + (quota % period != 0);
    return cpus > MOST_CPUS ? MOST_CPUS : (unsigned)cpus;
}

/* cgroup v2: "<quota or max> <period>", both in microseconds. */
static unsigned quota_v2(const char *root, const char *folder) {
    char path[2 * MOST_LINE], line[MOST_LINE];
    long long quota, period;
    snprintf(path, sizeof path, "%s%s/cpu.max", root, folder);
    /* NOLINTNEXTLINE(cert-err34-c): what cannot be read is no limit */
    if (!read_line(path, line) || sscanf(line, "%lld %lld", &quota, &period) != 2) {
        return 0;
    }
    return quota_cpus(quota, period);
}

/* cgroup v1: two files; a quota of -1 is none. */
static unsigned quota_v1(const char *root, const char *folder) {
    char path[2 * MOST_LINE], line[MOST_LINE];
    snprintf(path, sizeof path, "%s/cpu%s/cpu.cfs_quota_us", root, folder);
    long long quota = read_line(path, line) ? strtoll(line, NULL, 10) : 0;
    snprintf(path, sizeof path, "%s/cpu%s/cpu.cfs_period_us", root, folder);
    long long period = read_line(path, line) ? strtoll(line, NULL, 10) : 0;
    return quota_cpus(quota, period);
}

typedef unsigned (*quota_fn)(const char *root, const char *folder);

/* The tightest limit of a cgroup and of all above it, but no more than `cpus`. The folder is used
 * up. */
static unsigned apply_quotas(const char *root, char *folder, quota_fn quota, unsigned cpus) {
    for (;;) {
        unsigned limit = quota(root, strcmp(folder, "/") == 0 ? "" : folder);
        cpus = limit != 0 && limit < cpus ? limit : cpus;
        char *slash = strrchr(folder, '/');
        if (slash == NULL || folder[0] == '\0') {
            return cpus;
        }
        *slash = '\0';
    }
}

/* Tell whether a comma-separated list of controllers has "cpu". */
static bool has_cpu(const char *controllers) {
    while (controllers != NULL) {
        if (strncmp(controllers, "cpu", 3) == 0 &&
            (controllers[3] == ',' || controllers[3] == '\0')) {
            return true;
        }
        controllers = strchr(controllers, ',');
        controllers = controllers == NULL ? NULL : controllers + 1;
    }
    return false;
}

/* A line is "id:controllers:folder"; version 2 has no controllers. */
unsigned gcmp_cpus_within_quota(unsigned cpus, const char *cgroup_file, const char *root) {
    char line[MOST_LINE];
    FILE *file = fopen(cgroup_file, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *folder = controllers == NULL ? NULL : strchr(controllers + 1, ':');
        if (folder == NULL) {
            continue;
        }
        *folder++ = '\0';
        controllers++;
        if (controllers[0] == '\0') {
            cpus = apply_quotas(root, folder, quota_v2, cpus);
        } else if (has_cpu(controllers)) {
            cpus = apply_quotas(root, folder, quota_v1, cpus);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return cpus;
}

unsigned gcmp_engine_default_threads(void) {
    return gcmp_cpus_within_quota(affinity_cpus(), "/proc/self/cgroup", "/sys/fs/cgroup");
}
