/* What `gradcmp extract` writes of a run into the file that it makes, read back: so that an
 * extracted checkpoint is judged like the one that it came from. */
#ifndef GCMP_FORMATS_EXTRACTED_H
#define GCMP_FORMATS_EXTRACTED_H

#include "base/error.h"
#include "formats/dcp_keys.h"
#include "gradcmp/sys/catalogue.h"

/* Names of the texts; GCMP_EXTRACTED_TENSOR_LAYERS is of safetensors only (HDF5 has an attribute on
 * each dataset). */
#define GCMP_EXTRACTED_PREFIX        "gradcmp."
#define GCMP_EXTRACTED_VERSION       "gradcmp.version"
#define GCMP_EXTRACTED_ITERATION     "gradcmp.iteration"
#define GCMP_EXTRACTED_COUNTED       "gradcmp.counted" /* the iteration, by an optimizer */
#define GCMP_EXTRACTED_LAYERS        "gradcmp.layers"
#define GCMP_EXTRACTED_VOCAB         "gradcmp.vocab"
#define GCMP_EXTRACTED_PADDED_VOCAB  "gradcmp.padded_vocab"
#define GCMP_EXTRACTED_EXPERTS       "gradcmp.experts"
#define GCMP_EXTRACTED_COMPUTE       "gradcmp.compute"
#define GCMP_EXTRACTED_DUMP          "gradcmp.dump"     /* "1": a dump of gradients */
#define GCMP_EXTRACTED_NUMBERS       "gradcmp.numbers"  /* JSON list: the group of each number */
#define GCMP_EXTRACTED_SETTINGS      "gradcmp.settings" /* JSON object */
#define GCMP_EXTRACTED_TENSOR_LAYERS "gradcmp.tensor_layers" /* JSON object: l by key */

/* Take one text into the catalogue; names that are not among these are passed over. CORRUPT for a
 * text that is not of its kind; MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_extracted_take(struct gradcmp_catalogue *catalogue,
                                                         const char *name, const char *text,
                                                         struct gradcmp_error *error);

/* Set the layers of stored tensors from the text of that name. CORRUPT, MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_extracted_take_layers(struct gradcmp_catalogue *catalogue,
                                                                const char *text,
                                                                struct gradcmp_error *error);

/* How keys are composed: Megatron's way in extracted files, else torch's. */
enum gcmp_dcp_style gcmp_extracted_style(const struct gradcmp_catalogue *catalogue);

/* True where such a text was taken: `gradcmp extract` wrote the file. */
bool gcmp_is_extracted(const struct gradcmp_catalogue *catalogue);

/* Take the key of an extracted tensor apart: "optimizer.state.<state>.<name>", or the name of a
 * weight, whatever it looks like. '/' separates words like '.'. False without memory. */
bool gcmp_extracted_parse_key(struct gcmp_arena *arena, const char *key, struct gcmp_dcp_key *out);

#endif
