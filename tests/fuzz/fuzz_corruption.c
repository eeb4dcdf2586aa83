/* Fuzz target of meaning: of two random layouts of the same tensors, one byte of one payload is
 * changed. `bits` must find it: as a difference where checksums are not looked at, and never as
 * equal where they are. */
#include "random_layout.h"

#include "gradcmp/gradcmp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int bits_status(int verify) {
    struct gradcmp_options options = GRADCMP_OPTIONS_INIT;
    struct gradcmp_evidence *evidence;
    struct gradcmp_error error = {0};
    const char *paths[] = {layout_folders[0], layout_folders[1]};
    options.threads = 1;
    options.verify = verify;
    if (gradcmp_bits(paths, 2, &options, NULL, &evidence, &error) != GRADCMP_OK) {
        return 2;
    }
    int status = gradcmp_evidence_exit_status(evidence);
    gradcmp_evidence_free(evidence);
    return status;
}

/* Change one byte of an element of a random box, in place. */
static void corrupt(struct input *input, const struct set *set, const struct cut *cuts,
                    const char *folder) {
    unsigned t = next_below(input, set->count);
    const struct whole *whole = &set->tensors[t];
    const struct box *box = &cuts[t].boxes[next_below(input, cuts[t].count)];
    unsigned long bytes = whole->elem_bytes;
    for (unsigned d = 0; d < whole->ndim; d++) {
        bytes *= box->extent[d];
    }
    long at = box->data + (long)(next_random(input) % bytes);
    char path[256];
    snprintf(path, sizeof path, "%s/__%u_0.distcp", folder, box->file);
    FILE *file = fopen(path, "r+b");
    demand(file != NULL && fseek(file, at, SEEK_SET) == 0, "the byte is there");
    int byte = fgetc(file) ^ (int)(1 + next_below(input, 255));
    demand(fseek(file, at, SEEK_SET) == 0 && fputc(byte, file) != EOF && fclose(file) == 0,
           "the byte can be changed");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct set set;
    static struct cut cuts[MAX_TENSORS];
    struct input input = make_input(data, size);
    make_folders();
    make_set(&input, &set);
    write_layout(&input, &set, layout_folders[0], cuts);
    write_layout(&input, &set, layout_folders[1], cuts);
    demand(bits_status(0) == 0, "what was not changed is the same");
    corrupt(&input, &set, cuts, layout_folders[1]);
    demand(bits_status(-1) == 1, "a changed byte is a difference");
    demand(bits_status(1) != 0, "a changed byte is found by checksums too");
    return 0;
}
