/* Opcodes and the lengths of their arguments: CPython's Lib/pickletools.py, protocols 0 to 5. */
#include "formats/torch_legacy_skim.h"

#include <stdbool.h>

enum { WINDOW_BYTES = 64 * 1024, MAX_LINE_BYTES = 1 << 20 };

/* What follows an opcode. */
enum argument {
    ARGUMENT_UNKNOWN, /* no such opcode */
    ARGUMENT_FIXED,   /* `bytes` bytes */
    ARGUMENT_COUNTED, /* a length of `bytes` bytes, then as many */
    ARGUMENT_LINES    /* `bytes` lines */
};

struct opcode {
    unsigned char argument, bytes;
};

static const struct opcode opcodes[256] = {
    ['('] = {ARGUMENT_FIXED, 0},    ['.'] = {ARGUMENT_FIXED, 0},    ['0'] = {ARGUMENT_FIXED, 0},
    ['1'] = {ARGUMENT_FIXED, 0},    ['2'] = {ARGUMENT_FIXED, 0},    ['F'] = {ARGUMENT_LINES, 1},
    ['I'] = {ARGUMENT_LINES, 1},    ['J'] = {ARGUMENT_FIXED, 4},    ['K'] = {ARGUMENT_FIXED, 1},
    ['L'] = {ARGUMENT_LINES, 1},    ['M'] = {ARGUMENT_FIXED, 2},    ['N'] = {ARGUMENT_FIXED, 0},
    ['P'] = {ARGUMENT_LINES, 1},    ['Q'] = {ARGUMENT_FIXED, 0},    ['R'] = {ARGUMENT_FIXED, 0},
    ['S'] = {ARGUMENT_LINES, 1},    ['T'] = {ARGUMENT_COUNTED, 4},  ['U'] = {ARGUMENT_COUNTED, 1},
    ['V'] = {ARGUMENT_LINES, 1},    ['X'] = {ARGUMENT_COUNTED, 4},  ['a'] = {ARGUMENT_FIXED, 0},
    ['b'] = {ARGUMENT_FIXED, 0},    ['c'] = {ARGUMENT_LINES, 2},    ['d'] = {ARGUMENT_FIXED, 0},
    ['}'] = {ARGUMENT_FIXED, 0},    ['e'] = {ARGUMENT_FIXED, 0},    ['g'] = {ARGUMENT_LINES, 1},
    ['h'] = {ARGUMENT_FIXED, 1},    ['i'] = {ARGUMENT_LINES, 2},    ['j'] = {ARGUMENT_FIXED, 4},
    ['l'] = {ARGUMENT_FIXED, 0},    [']'] = {ARGUMENT_FIXED, 0},    ['o'] = {ARGUMENT_FIXED, 0},
    ['p'] = {ARGUMENT_LINES, 1},    ['q'] = {ARGUMENT_FIXED, 1},    ['r'] = {ARGUMENT_FIXED, 4},
    ['s'] = {ARGUMENT_FIXED, 0},    ['t'] = {ARGUMENT_FIXED, 0},    [')'] = {ARGUMENT_FIXED, 0},
    ['u'] = {ARGUMENT_FIXED, 0},    ['G'] = {ARGUMENT_FIXED, 8},    ['B'] = {ARGUMENT_COUNTED, 4},
    ['C'] = {ARGUMENT_COUNTED, 1},  [0x80] = {ARGUMENT_FIXED, 1},   [0x81] = {ARGUMENT_FIXED, 0},
    [0x82] = {ARGUMENT_FIXED, 1},   [0x83] = {ARGUMENT_FIXED, 2},   [0x84] = {ARGUMENT_FIXED, 4},
    [0x85] = {ARGUMENT_FIXED, 0},   [0x86] = {ARGUMENT_FIXED, 0},   [0x87] = {ARGUMENT_FIXED, 0},
    [0x88] = {ARGUMENT_FIXED, 0},   [0x89] = {ARGUMENT_FIXED, 0},   [0x8a] = {ARGUMENT_COUNTED, 1},
    [0x8b] = {ARGUMENT_COUNTED, 4}, [0x8c] = {ARGUMENT_COUNTED, 1}, [0x8d] = {ARGUMENT_COUNTED, 8},
    [0x8e] = {ARGUMENT_COUNTED, 8}, [0x8f] = {ARGUMENT_FIXED, 0},   [0x90] = {ARGUMENT_FIXED, 0},
    [0x91] = {ARGUMENT_FIXED, 0},   [0x92] = {ARGUMENT_FIXED, 0},   [0x93] = {ARGUMENT_FIXED, 0},
    [0x94] = {ARGUMENT_FIXED, 0},   [0x95] = {ARGUMENT_FIXED, 8},   [0x96] = {ARGUMENT_COUNTED, 8},
    [0x97] = {ARGUMENT_FIXED, 0},   [0x98] = {ARGUMENT_FIXED, 0},
};

struct skim {
    struct gcmp_dir *dir;
    uint32_t file;
    uint64_t at, end;   /* next byte; the end of what may be read */
    uint64_t opcode_at; /* of the opcode under way */
    uint64_t window_at; /* of the first byte in the window */
    size_t window_count;
    struct gradcmp_error *error;
    unsigned char window[WINDOW_BYTES];
};

static enum gradcmp_status fail(const struct skim *skim, const char *what) {
    GCMP_FAIL_AT(skim->error, GRADCMP_ERROR_CORRUPT, gcmp_dir_file_path(skim->dir, skim->file),
                 skim->opcode_at, "pickle: %s", what);
}

static enum gradcmp_status next_byte(struct skim *skim, unsigned char *out) {
    if (skim->at >= skim->end) {
        return fail(skim, "the file ends inside of it");
    }
    if (skim->at < skim->window_at || skim->at - skim->window_at >= skim->window_count) {
        uint64_t left = skim->end - skim->at;
        skim->window_at = skim->at;
        skim->window_count = left < WINDOW_BYTES ? (size_t)left : WINDOW_BYTES;
        GCMP_TRY(gcmp_dir_read(skim->dir, skim->file, skim->at, skim->window, skim->window_count,
                               skim->error));
    }
    *out = skim->window[skim->at - skim->window_at];
    skim->at++;
    return GRADCMP_OK;
}

static enum gradcmp_status skip(struct skim *skim, uint64_t count) {
    if (count > skim->end - skim->at) {
        return fail(skim, "an argument that reaches past the end of the file");
    }
    skim->at += count;
    return GRADCMP_OK;
}

static enum gradcmp_status skip_counted(struct skim *skim, unsigned bytes) {
    uint64_t count = 0;
    for (unsigned i = 0; i < bytes; i++) {
        unsigned char byte;
        GCMP_TRY(next_byte(skim, &byte));
        count |= (uint64_t)byte << (8 * i);
    }
    return skip(skim, count);
}

static enum gradcmp_status skip_line(struct skim *skim) {
    unsigned char byte = 0;
    for (size_t count = 0; byte != '\n'; count++) {
        if (count == MAX_LINE_BYTES) {
            return fail(skim, "a line without an end");
        }
        GCMP_TRY(next_byte(skim, &byte));
    }
    return GRADCMP_OK;
}

/* Step over one opcode; *stopped tells whether it was STOP. */
static enum gradcmp_status step(struct skim *skim, bool *stopped) {
    unsigned char code;
    skim->opcode_at = skim->at;
    GCMP_TRY(next_byte(skim, &code));
    *stopped = code == '.';
    const struct opcode *opcode = &opcodes[code];
    switch (opcode->argument) {
    case ARGUMENT_FIXED:
        return skip(skim, opcode->bytes);
    case ARGUMENT_COUNTED:
        return skip_counted(skim, opcode->bytes);
    case ARGUMENT_LINES:
        for (unsigned i = 0; i < opcode->bytes; i++) {
            GCMP_TRY(skip_line(skim));
        }
        return GRADCMP_OK;
    default:
        return fail(skim, "an opcode that is not known");
    }
}

enum gradcmp_status gcmp_legacy_skim(struct gcmp_dir *dir, uint32_t file, uint64_t offset,
                                     uint64_t limit, uint64_t *length,
                                     struct gradcmp_error *error) {
    struct skim skim; /* the window is filled when it is needed */
    skim.dir = dir;
    skim.file = file;
    skim.at = offset;
    skim.opcode_at = offset;
    skim.end = gcmp_dir_file_bytes(dir, file);
    skim.window_at = 0;
    skim.window_count = 0;
    skim.error = error;
    if (offset > skim.end) {
        return fail(&skim, "it begins behind the end of the file");
    }
    for (bool stopped = false; !stopped;) {
        GCMP_TRY(step(&skim, &stopped));
        if (skim.at - offset > limit) {
            GCMP_FAIL_AT(error, GRADCMP_ERROR_LIMIT, gcmp_dir_file_path(dir, file), offset,
                         "pickle: more than %llu bytes", (unsigned long long)limit);
        }
    }
    *length = skim.at - offset;
    return GRADCMP_OK;
}
