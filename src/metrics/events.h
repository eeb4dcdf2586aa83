/* TensorBoard event files: TFRecord framing with masked CRC-32C, and in each record one protobuf
 * Event whose Summary holds scalars as simple_value or as a tensor of one element. */
#ifndef GCMP_METRICS_EVENTS_H
#define GCMP_METRICS_EVENTS_H

#include "base/dir.h"
#include "metrics/series.h"

/* A record beyond this is refused; scalars take some hundred bytes. */
enum { GCMP_EVENTS_MAX_RECORD_BYTES = 64 << 20 };

/* True where the first bytes of a file are the framing of a record: a length with its checksum. */
bool gcmp_events_probe(const unsigned char *bytes, size_t length_bytes);

/* Read one file of `dir`. What stops the reading early (a cut record, a checksum, a broken message)
 * is kept in source->damage and is no failure; what was read before stays. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_events_read(struct gcmp_dir *dir, uint32_t file,
                                                      struct gcmp_metric_source *source,
                                                      struct gradcmp_error *error);

/* Read the time (seconds since 1970) of the first record; 0 where there is none. */
double gcmp_events_first_time(struct gcmp_dir *dir, uint32_t file);

#endif
