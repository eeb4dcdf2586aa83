/* Fuzz target: the decoders of compressed chunks. Input: the codec and whether bytes are shuffled
 * (1 byte), bytes of an element (1), the fewest and the most bytes that may come out (2 each,
 * little-endian), and the encoded data. */
#include "formats/decode.h"

#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "demand.h"
#include "memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    enum gcmp_codec codec;
    bool shuffled;
    uint8_t elem_bytes;
    uint16_t min_bytes, max_bytes;
    const unsigned char *encoded;
    size_t encoded_bytes;
};

static bool read_input(const uint8_t *data, size_t size, struct input *input) {
    struct gcmp_cursor cursor = gcmp_cursor_make(data, size, 0);
    uint8_t flags;
    if (!gcmp_read_u8(&cursor, &flags) || !gcmp_read_u8(&cursor, &input->elem_bytes) ||
        !gcmp_read_u16le(&cursor, &input->min_bytes) ||
        !gcmp_read_u16le(&cursor, &input->max_bytes)) {
        return false;
    }
    input->codec = (enum gcmp_codec)(flags % (GCMP_CODEC_BLOSC + 1));
    input->shuffled = (flags & 128) != 0;
    input->encoded_bytes = gcmp_cursor_left(&cursor);
    return input->min_bytes <= input->max_bytes &&
           gcmp_read_bytes(&cursor, input->encoded_bytes, &input->encoded);
}

/* All bytes that were made can be read, and none behind them. */
static void check(const struct gcmp_bytes *made, const struct input *input) {
    unsigned char *bytes = malloc(made->length_bytes + 1U);
    demand(made->length_bytes >= input->min_bytes && made->length_bytes <= input->max_bytes,
           "as many bytes as were asked for");
    demand(bytes != NULL &&
               gcmp_bytes_read(made, 0, bytes, (size_t)made->length_bytes, NULL) == GRADCMP_OK,
           "what was decoded can be read");
    free(bytes);
}

static void decode(const struct gcmp_bytes *in, const struct input *input) {
    struct gcmp_bytes out = {.fd = -1}, plain = {.fd = -1};
    struct gradcmp_error error = {0};
    enum gradcmp_status status =
        gcmp_decode(in, input->codec, input->min_bytes, input->max_bytes, &out, &error);
    if (status != GRADCMP_OK) {
        demand(error.code == status && error.message[0] != '\0', "a failure is told");
        return;
    }
    check(&out, input);
    if (input->shuffled && input->elem_bytes > 0 &&
        gcmp_unshuffle(&out, input->elem_bytes, &plain, &error) == GRADCMP_OK) {
        demand(plain.length_bytes == out.length_bytes, "shuffling keeps all bytes");
        check(&plain, input);
        gcmp_bytes_free(&plain);
    }
    gcmp_bytes_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct input input;
    if (!read_input(data, size, &input)) {
        return 0;
    }
    struct gcmp_dir *dir = memory_file_open(input.encoded, input.encoded_bytes);
    const char *name = "";
    uint32_t file = 0;
    demand(gcmp_dir_is_file(dir, &name) &&
               gcmp_dir_add(dir, name, strlen(name), &file, NULL) == GRADCMP_OK,
           "the input is a file");
    struct gcmp_bytes in = gcmp_bytes_of_file(dir, file, 0, input.encoded_bytes);
    decode(&in, &input);
    gcmp_bytes_free(&in);
    gcmp_dir_close(dir);
    return 0;
}
