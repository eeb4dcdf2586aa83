/* Values of arguments that are no scalars, as texts to be compared. */
#ifndef GCMP_VALUE_TEXT_H
#define GCMP_VALUE_TEXT_H

#include "base/text.h"
#include "formats/pickle.h"

/* Stands for what the text does not tell: tensors, what lies too deep, what is too long. */
#define GCMP_VALUE_NOT_READ "<not read>"

/* Add the value to an empty text of at most `most` bytes and the mark: lists, tuples and sets as
 * [a,"b"], dicts as {"a":1}, objects as their class, arguments and attributes, integers beyond 64
 * bits and bytes that are no text in hexadecimal digits. */
void gcmp_value_text(struct gcmp_text *text, const struct gcmp_node *value, size_t most);

#endif
