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
    options.buffer_bytes = 1; /* as little as there can be: nothing here is large */
    options.verify = verify;
    if (gradcmp_bits(paths, 2, &options, NULL, &evidence, &error) != GRADCMP_OK) {
        return 2;
    }
    int status = gradcmp_evidence_exit_status(evidence);
    gradcmp_evidence_free(evidence);
    return status;
}

/* Change one byte of an element of a random box, in place. */
static void corrupt(struct input *input, const struct layout *layout, const char *folder) {
    const struct box *box = &layout->boxes[next_random(input) % layout->box_count];
    long at = (long)(box->data + next_random(input) % box->data_bytes);
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
    static struct layout layout;
    struct input input = make_input(data, size);
    make_set(&input, &set);
    write_layouts(&input, &set, &layout);
    demand(bits_status(0) == 0, "what was not changed is the same");
    corrupt(&input, &layout, layout_folders[1]);
    demand(bits_status(-1) == 1, "a changed byte is a difference");
    demand(bits_status(1) != 0, "a changed byte is found by checksums too");
    return 0;
}
