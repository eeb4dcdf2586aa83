/* What the nodes of a pickle are to Python, and what they hold. */
#ifndef GCMP_BITS_PARTS_H
#define GCMP_BITS_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "formats/pickle.h"

/* A part of a container. */
struct gcmp_bits_part {
    const struct gcmp_node *key; /* NULL: `name` */
    const char *name;
    size_t number; /* where name has a %zu */
    const struct gcmp_node *value;
    bool is_item; /* under a key of an object that has attributes too */
};

/* A dict, or an object of a class that is one. */
bool gcmp_bits_is_dict(const struct gcmp_node *node);

/* The members of a set, whichever way it was written; NULL for other nodes. */
const struct gcmp_node *gcmp_bits_set_of(const struct gcmp_node *node);

/* The tuple of a torch.Size; otherwise the node itself. */
const struct gcmp_node *gcmp_bits_without_size(const struct gcmp_node *node);

/* A storage of torch that stands for itself, in no tensor. */
bool gcmp_bits_is_storage(const struct gcmp_node *node);

/* The class of an object, whichever way its call makes it. */
const struct gcmp_node *gcmp_bits_class_of(const struct gcmp_node *call);

/* Part `index` of a container: of an object its arguments, attributes, what was set on it or
 * appended; false behind the last. */
bool gcmp_bits_part_of(const struct gcmp_node *node, size_t index, struct gcmp_bits_part *part);

#endif
