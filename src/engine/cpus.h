/* Limits on processor time. */
#ifndef GCMP_ENGINE_CPUS_H
#define GCMP_ENGINE_CPUS_H

/* Lower a number of processors to what the cgroups named in `cgroup_file` (/proc/self/cgroup) and
 * all above them allow; their folders are below `root` (/sys/fs/cgroup). Not below 1. */
unsigned gcmp_cpus_within_quota(unsigned cpus, const char *cgroup_file, const char *root);

#endif
