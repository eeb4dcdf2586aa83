/* The records of raw elements behind a run's sources: resolved once, when first needed, and given
 * back after their last use, when a stored checksum is compared. */
#ifndef GCMP_ENGINE_RECORDS_H
#define GCMP_ENGINE_RECORDS_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/error.h"
#include "engine/pages.h"
#include "gradcmp/sys/format.h"

/* The table of one catalogue's records. */
struct gcmp_records;

enum gcmp_record_state {
    GCMP_RECORD_UNKNOWN,
    GCMP_RECORD_BUSY,
    GCMP_RECORD_READY,
    GCMP_RECORD_FAILED
};

/* Where a source's elements lie. */
struct gcmp_record {
    uint64_t offset_bytes, length_bytes; /* in the source's file, or in what was decoded */
    unsigned char *decoded;              /* owned; NULL: in a file */
    int decoded_fd;                      /* owned, only if decoded_in_file */
    bool decoded_in_file;
    uint32_t crc32; /* 0: none stored, or none to be checked */
    uint8_t dtype;  /* NONE: the source says nothing of it */
    bool big_endian;
    /* Elements of an item are numbered in row-major order. Where it is stored in that order,
     * element s lies at record element offset_elems + s and ndim is 0; else the index s is taken
     * apart by `shape` and put together by `stride`. */
    unsigned ndim;
    uint64_t *shape; /* owned, with stride in the same allocation */
    int64_t *stride;
    int64_t offset_elems;

    /* Private to records.c. */
    struct gcmp_records *table;
    uint32_t source, holders;
    enum gcmp_record_state state;
    struct gradcmp_error *error;       /* owned; with FAILED */
    struct gcmp_record *newer, *older; /* decoded records, by last use */
    uint64_t decoded_cost;             /* bytes that keeping it counts for; 0: not decoded */
    _Atomic uint64_t used_bytes, checked_bytes;
    _Atomic uint32_t checked_crc32;
};

/* Make the table of a catalogue. `decoded_limit_bytes` bounds the decoded records that are kept
 * although nobody holds them. verify: as in struct gradcmp_options. NULL without memory. */
struct gcmp_records *gcmp_records_make(const struct gradcmp_catalogue *catalogue,
                                       uint64_t decoded_limit_bytes, int verify);
/* Free the table and what is left in it; nothing may be held. NULL is allowed. */
void gcmp_records_free(struct gcmp_records *records);

/* Read files through pages. */
void gcmp_records_use_pages(struct gcmp_records *records, struct gcmp_pages *pages);

/* Announce that job `job` will use a source; to be called before any thread runs, with rising jobs.
 * False without memory. */
GRADCMP_MUST_USE bool gcmp_records_announce(struct gcmp_records *records, uint32_t source,
                                            size_t job);

/* Have the ends of a source's item read ahead, where resolve() will look first: the directory of an
 * archive is at its end, what describes the tensor at its beginning. */
void gcmp_records_hint(struct gcmp_records *records, uint32_t source);

/* Hold the record of a source, looking at the encoded item if this was not done yet. Thread-safe.
 * Status: what resolve() returns; CORRUPT where the extent contradicts itself; MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_records_hold(struct gcmp_records *records,
                                                       uint32_t source, struct gcmp_record **record,
                                                       struct gradcmp_error *error);
void gcmp_record_release(struct gcmp_record *record);

/* Bytes to be read from a held record, inside of which they lie. */
struct gcmp_record_bytes {
    uint64_t at; /* from the record's first byte */
    size_t count;
    unsigned char *buffer;      /* room for `count` bytes */
    const unsigned char *bytes; /* where they are then: buffer, or memory of the record itself */
};

/* Read, and set bytes->bytes. Status: IO; CORRUPT where the file ends early. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_record_read(const struct gcmp_record *record,
                                                      struct gcmp_record_bytes *bytes,
                                                      struct gradcmp_error *error);

/* Tell where in a file the bytes of a held record lie: what may be read in other ways than
 * gcmp_record_read. False where they lie elsewhere, or are read through pages. */
bool gcmp_record_in_file(const struct gcmp_record *record, uint64_t at, struct gcmp_pages_at *out);

/* Read whole pieces past the page cache where the file system allows it. */
void gcmp_records_use_direct(struct gcmp_records *records);
/* Tell whether the record's bytes in a file are to be read so now. */
bool gcmp_record_is_direct(const struct gcmp_record *record);

/* Take note that bytes of a held record were used: what decides whether it was read whole. */
void gcmp_record_note_used(struct gcmp_record *record, uint64_t bytes);

/* Add bytes that were just read to the record's checksum. */
void gcmp_record_note_read(struct gcmp_record *record, const struct gcmp_record_bytes *bytes);

/* Fail at the first byte of a held record. */
enum gradcmp_status gcmp_record_fail(const struct gcmp_record *record, enum gradcmp_status code,
                                     struct gradcmp_error *error, const char *message);

/* End a use that was announced. True after the last one: the caller then owns *record, which is
 * NULL where nobody ever held it, and *last_job is the last job that was announced. */
bool gcmp_records_end_use(struct gcmp_records *records, uint32_t source,
                          struct gcmp_record **record, size_t *last_job);

/* Compare the checksum of a record that has one and was read whole: that of the bytes noted, where
 * they are as many as the record has; else, if as many were used or verify is 1, the record is read
 * once more. Status: CORRUPT, at the record's first byte; IO; MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_record_check(const struct gcmp_record *record,
                                                       struct gradcmp_error *error);

/* --- records that several ranks read --- */

/* Which ranks use a source, and the last job that does, on any of them. */
struct gcmp_record_span {
    uint32_t lowest, highest;
    size_t last_job;
};

/* Take note that ranks lowest to highest use a source in job `job`; jobs rise. False without
 * memory. */
bool gcmp_records_note_ranks(struct gcmp_records *records, uint32_t source,
                             const struct gcmp_record_span *span);
/* Who uses a source; NULL where nothing was noted of it. */
const struct gcmp_record_span *gcmp_records_span(const struct gcmp_records *records,
                                                 uint32_t source);

/* What one rank knows of a record's checksum. */
struct gcmp_record_part {
    uint64_t length_bytes, used_bytes, checked_bytes;
    uint32_t crc32, checked_crc32;
};

/* True where a record has a checksum; *part is then what is known here. */
bool gcmp_record_part(const struct gcmp_record *record, struct gcmp_record_part *part);

enum gcmp_record_judgement { GCMP_RECORD_GOOD, GCMP_RECORD_UNSEEN, GCMP_RECORD_DOUBTED };
/* Judge by the parts of all ranks put together, as gcmp_record_check does by what is known here:
 * GOOD, or not read whole (UNSEEN), or to be read once more (DOUBTED). */
enum gcmp_record_judgement gcmp_records_judge(const struct gcmp_records *records,
                                              const struct gcmp_record_part *whole);
/* Read a record once more for its checksum. Status as gcmp_record_check. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_records_check_again(struct gcmp_records *records,
                                                              uint32_t source,
                                                              struct gradcmp_error *error);

/* NULL is allowed. */
void gcmp_record_free(struct gcmp_record *record);

#endif
