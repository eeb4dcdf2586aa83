/* Describes the elements of datasets. */
#include "formats/hdf5_wire_write.h"
#include "h5helper/helper.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void describe(struct type *type, const char *text) {
    type->class = GCMP_H5_OTHER;
    snprintf(type->description, sizeof type->description, "%s", text);
}

const char *type_class_name(int class) {
    switch (class) {
    case H5T_TIME:
        return "times";
    case H5T_STRING:
        return "texts";
    case H5T_BITFIELD:
        return "bit fields";
    case H5T_OPAQUE:
        return "opaque bytes";
    case H5T_COMPOUND:
        return "compound values";
    case H5T_REFERENCE:
        return "references";
    case H5T_ENUM:
        return "enumerated values";
    case H5T_VLEN:
        return "sequences of varying length";
    case H5T_ARRAY:
        return "arrays";
    default:
        return "values of a type that is not known";
    }
}

static void read_integer(hid_t id, struct type *type) {
    H5T_sign_t sign = H5Tget_sign(id);
    size_t bits = H5Tget_precision(id);
    snprintf(type->description, sizeof type->description, "integers of %zu bits", bits);
    if (sign == H5T_SGN_ERROR || bits != 8 * (size_t)type->size_bytes || H5Tget_offset(id) != 0) {
        return; /* padded: not read */
    }
    type->class = GCMP_H5_INTEGER;
    type->is_signed = sign == H5T_SGN_2;
}

/* A float that is read has its fields side by side, the sign on top, and a hidden first bit. */
static void read_float(hid_t id, struct type *type) {
    size_t sign_at, exponent_at, exponent_bits, mantissa_at, mantissa_bits, bits;
    bits = H5Tget_precision(id);
    snprintf(type->description, sizeof type->description, "floating-point numbers of %zu bits",
             bits);
    if (H5Tget_fields(id, &sign_at, &exponent_at, &exponent_bits, &mantissa_at, &mantissa_bits) <
            0 ||
        mantissa_at != 0 || exponent_at != mantissa_bits ||
        sign_at != exponent_at + exponent_bits || sign_at + 1 != bits ||
        bits != 8 * (size_t)type->size_bytes || H5Tget_offset(id) != 0 ||
        H5Tget_norm(id) != H5T_NORM_IMPLIED) {
        return;
    }
    type->class = GCMP_H5_FLOAT;
    type->precision = (uint32_t)bits;
    type->exponent_bits = (uint32_t)exponent_bits;
    type->mantissa_bits = (uint32_t)mantissa_bits;
    type->exponent_bias = H5Tget_ebias(id);
}

/* h5py stores truth values as an enumeration of FALSE and TRUE in one byte. */
static bool is_bool(hid_t id) {
    bool found = H5Tget_size(id) == 1 && H5Tget_nmembers(id) == 2;
    static const char *const names[] = {"FALSE", "TRUE"};
    for (unsigned i = 0; i < 2 && found; i++) {
        char *name = H5Tget_member_name(id, i);
        unsigned char value = 2;
        found = name != NULL && strcmp(name, names[i]) == 0 &&
                H5Tget_member_value(id, i, &value) >= 0 && value == i;
        H5free_memory(name);
    }
    return found;
}

/* Read a scalar text into `mark`; others leave it empty. */
static void read_text(hid_t attribute, hid_t id, char *mark) {
    hid_t space = H5Aget_space(attribute);
    bool scalar = space >= 0 && H5Sget_simple_extent_npoints(space) == 1;
    H5Sclose(space);
    if (!scalar || H5Tget_class(id) != H5T_STRING) {
        return;
    }
    if (H5Tis_variable_str(id) > 0) {
        char *text = NULL;
        if (H5Aread(attribute, id, &text) >= 0 && text != NULL) {
            snprintf(mark, MAX_MARK_BYTES, "%s", text);
        }
        H5free_memory(text);
    } else if (H5Tget_size(id) < MAX_MARK_BYTES) {
        char text[MAX_MARK_BYTES] = "";
        if (H5Aread(attribute, id, text) >= 0) {
            snprintf(mark, MAX_MARK_BYTES, "%s", text);
        }
    }
}

/* The attribute "dtype" tells bfloat16 in integers from integers. */
static bool read_mark(hid_t dataset, const char *path, char *mark) {
    htri_t exists = H5Aexists(dataset, "dtype");
    mark[0] = '\0';
    if (exists == 0) {
        return true;
    }
    hid_t attribute = exists < 0 ? -1 : H5Aopen(dataset, "dtype", H5P_DEFAULT);
    hid_t id = attribute < 0 ? -1 : H5Aget_type(attribute);
    if (id < 0) {
        return fail_part(path, "attributes");
    }
    read_text(attribute, id, mark);
    H5Tclose(id);
    H5Aclose(attribute);
    return true;
}

/* l of the layer, which extracted files state. */
static void read_layer(hid_t dataset, struct type *type) {
    long long value = -1;
    hid_t attribute =
        H5Aexists(dataset, GCMP_H5W_LAYER) > 0 ? H5Aopen(dataset, GCMP_H5W_LAYER, H5P_DEFAULT) : -1;
    if (attribute < 0) {
        return;
    }
    hid_t id = H5Aget_type(attribute), space = H5Aget_space(attribute);
    bool scalar = id >= 0 && space >= 0 && H5Tget_class(id) == H5T_INTEGER &&
                  H5Sget_simple_extent_npoints(space) == 1;
    if (scalar && H5Aread(attribute, H5T_NATIVE_LLONG, &value) >= 0 && value >= 0 &&
        value < GCMP_H5_MAX_LAYER) {
        type->stated_layer = (uint32_t)value + 1;
    }
    H5Sclose(space);
    H5Tclose(id);
    H5Aclose(attribute);
}

static void read_class(hid_t id, struct type *type) {
    H5T_class_t class = H5Tget_class(id);
    H5T_order_t order =
        class == H5T_INTEGER || class == H5T_FLOAT ? H5Tget_order(id) : H5T_ORDER_LE;
    type->size_bytes = (uint32_t)H5Tget_size(id);
    type->big_endian = order == H5T_ORDER_BE;
    if (order != H5T_ORDER_LE && order != H5T_ORDER_BE) {
        describe(type, "numbers in an order of bytes that is not read");
    } else if (class == H5T_INTEGER) {
        read_integer(id, type);
    } else if (class == H5T_FLOAT) {
        read_float(id, type);
    } else if (class == H5T_ENUM && is_bool(id)) {
        describe(type, "truth values");
        type->class = GCMP_H5_BOOL;
    } else {
        describe(type, type_class_name(class));
    }
}

bool read_type(hid_t dataset, const char *path, struct type *type) {
    *type = (struct type){0};
    hid_t id = H5Dget_type(dataset);
    if (id < 0) {
        return fail_part(path, "type");
    }
    read_class(id, type);
    H5Tclose(id);
    read_layer(dataset, type);
    return read_mark(dataset, path, type->mark);
}
