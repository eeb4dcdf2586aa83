/* gradcmp-h5: reads the HDF5 file on descriptor 0 and writes what it holds to descriptor 1 (see
 * formats/hdf5_wire.h); or, as `gradcmp-h5 write`, makes one on descriptor 1 (writer.c). Started by
 * libgradcmp with those two descriptors; of use to nobody else. */
#include "formats/hdf5_wire_write.h"
#include "h5helper/helper.h"
#include "h5helper/writer.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { EXIT_TOLD = 0, EXIT_USAGE = 2, MAX_CPU_SECONDS = 86400 };

/* Keep only the descriptors that are ours: the program that started us may have leaked others. */
static void close_others(void) {
#if defined(SYS_close_range)
    if (syscall(SYS_close_range, 3u, ~0u, 0u) == 0) {
        return;
    }
#endif
    for (int fd = 3; fd < 65536; fd++) {
        (void)close(fd);
    }
}

/* Everything that libhdf5 opens or looks up by itself has to happen before the sandbox. */
static hid_t start_hdf5(void) {
    if (H5open() < 0 || H5Eset_auto2(H5E_DEFAULT, NULL, NULL) < 0 || H5PLset_loading_state(0) < 0) {
        return -1;
    }
    return driver_properties();
}

static void tell_file(hid_t properties) {
    hid_t file = H5Fopen("the file on descriptor 0", H5F_ACC_RDONLY, properties);
    if (file < 0) {
        helper_fail_hdf5("not a readable HDF5 file");
        return;
    }
    if (walk_file(file)) {
        put_u8(GCMP_H5_END);
    }
}

int main(int argc, char **argv) {
    char *end;
    if (argc == 2 && strcmp(argv[1], GCMP_H5W_ARGUMENT) == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        close_others();
        _exit(writer_main()); /* as below */
    }
    unsigned long cpu_seconds = argc == 2 ? strtoul(argv[1], &end, 10) : 0;
    if (cpu_seconds < 1 || cpu_seconds > MAX_CPU_SECONDS || *end != '\0') {
        fputs("gradcmp-h5 is started by gradcmp to read and write HDF5 files\n", stderr);
        return EXIT_USAGE;
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    close_others();
    hid_t properties = start_hdf5();
    put_bytes(GCMP_H5_MAGIC, sizeof GCMP_H5_MAGIC - 1);
    if (properties < 0) {
        helper_fail_hdf5("libhdf5 does not start");
    } else if (!sandbox_enter(cpu_seconds)) {
        helper_fail(GRADCMP_ERROR_IO, "cannot give up its rights");
    } else {
        tell_file(properties);
    }
    (void)put_flush();
    _exit(EXIT_TOLD); /* libhdf5's own ending would look at everything once more */
}
