/* Finds the identity of the build: a note that the linker made of all that is in the file. */
#include "build_id.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

/* Names and descriptions of notes begin and end at whole multiples. */
static size_t round_up(size_t bytes, size_t alignment) {
    return (bytes + alignment - 1) / alignment * alignment;
}

bool gcmp_build_id_take(const unsigned char *notes, size_t byte_count, size_t alignment,
                        struct gcmp_build_id *id) {
    ElfW(Nhdr) note;
    for (size_t at = 0; at <= byte_count && byte_count - at >= sizeof note;) {
        memcpy(&note, notes + at, sizeof note);
        size_t left = byte_count - at - sizeof note;
        if (note.n_namesz > left || note.n_descsz > left) {
            return false;
        }
        const size_t name = at + sizeof note;
        const size_t text = at + round_up(sizeof note + note.n_namesz, alignment);
        if (text > byte_count || note.n_descsz > byte_count - text) {
            return false;
        }
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof ELF_NOTE_GNU &&
            memcmp(notes + name, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) == 0 && note.n_descsz > 0 &&
            note.n_descsz <= GCMP_BUILD_ID_BYTES) {
            memcpy(id->bytes, notes + text, note.n_descsz);
            id->count = note.n_descsz;
            return true;
        }
        at = round_up(text + note.n_descsz, alignment);
    }
    return false;
}

/* A file of the process, while it is looked for. */
struct look {
    uintptr_t address; /* of code of the library */
    struct gcmp_build_id *id;
    bool is_known;
};

static bool is_inside(const struct dl_phdr_info *info, uintptr_t address) {
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD &&
            address - (info->dlpi_addr + part->p_vaddr) < part->p_memsz) {
            return true;
        }
    }
    return false;
}

static bool take_notes(const struct dl_phdr_info *info, struct gcmp_build_id *id) {
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        const unsigned char *notes =
            (const unsigned char *)(uintptr_t)(info->dlpi_addr + part->p_vaddr);
        if (part->p_type == PT_NOTE &&
            gcmp_build_id_take(notes, part->p_memsz, part->p_align == 8 ? 8 : 4, id)) {
            return true;
        }
    }
    return false;
}

/* The file's size, inode and times: of another build they are others. */
static bool take_file(const char *path, struct gcmp_build_id *id) {
    struct stat info;
    if (stat(path, &info) != 0) {
        return false;
    }
    const uint64_t words[] = {(uint64_t)info.st_size,        (uint64_t)info.st_ino,
                              (uint64_t)info.st_mtim.tv_sec, (uint64_t)info.st_mtim.tv_nsec,
                              (uint64_t)info.st_ctim.tv_sec, (uint64_t)info.st_ctim.tv_nsec};
    _Static_assert(sizeof words <= GCMP_BUILD_ID_BYTES, "the words are an identity");
    memcpy(id->bytes, words, sizeof words);
    id->count = sizeof words;
    return true;
}

/* Called for each file of the process, until it returns another number than 0. */
static int look_at(struct dl_phdr_info *info, size_t size, void *user) {
    struct look *look = user;
    (void)size;
    if (!is_inside(info, look->address)) {
        return 0;
    }
    const char *path = info->dlpi_name;
    bool is_program = path == NULL || path[0] == '\0';
    look->is_known =
        take_notes(info, look->id) || take_file(is_program ? "/proc/self/exe" : path, look->id);
    return 1;
}

bool gcmp_build_id_find(struct gcmp_build_id *id) {
    struct look look = {.address = (uintptr_t)gcmp_build_id_find, .id = id};
    *id = (struct gcmp_build_id){{0}, 0};
    (void)dl_iterate_phdr(look_at, &look);
    return look.is_known;
}
