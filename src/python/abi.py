"""Makes gradcmp/_abi.py from the public header: what ctypes must know of it.

    abi.py HEADER OUTPUT

Structs, enumerators, _INIT values and prototypes are read from gradcmp.h itself, so a field that is
added there is an option of the Python functions too. Anything that is not understood is an error.
"""

import re
import sys

SCALARS = {
    "int": "c_int",
    "unsigned": "c_uint",
    "size_t": "c_size_t",
    "int64_t": "c_int64",
    "uint64_t": "c_uint64",
    "uint32_t": "c_uint32",
    "double": "c_double",
}


class HeaderError(Exception):
    pass


def strip(text):
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    return text.replace("\\\n", " ")


def c_type(text, structs, callbacks):
    """The ctypes expression of a C type without the name that it declares; None for void."""
    words = text.replace("*", " * ").split()
    stars = words.count("*")
    words = [word for word in words if word not in ("const", "*")]
    base = " ".join(words)
    if base == "void" and stars == 0:
        return None
    if base == "char" and stars > 0:
        return "c_char_p" if stars == 1 else "POINTER(c_char_p)"
    if base == "void":
        return "c_void_p" if stars == 1 else "POINTER(c_void_p)"
    if base.startswith("struct "):
        name = base.split()[1]
        known = "POINTER(%s)" % name if name in structs else "c_void_p"
        if stars == 1:
            return known
        if stars == 2:
            return "POINTER(%s)" % known
    if base.startswith("enum "):
        base = "int"
    if base in callbacks and stars == 0:
        return base
    if base in SCALARS and stars <= 1:
        return "POINTER(%s)" % SCALARS[base] if stars else SCALARS[base]
    raise HeaderError("type not understood: %s" % text)


def split_declarator(text):
    """ "const uint64_t *shape" -> ("const uint64_t *", "shape", None)"""
    match = re.fullmatch(r"(.*?)(\w+)\s*(?:\[(\d+)\])?", text.strip(), flags=re.S)
    if match is None:
        raise HeaderError("declaration not understood: %s" % text)
    return match.group(1).strip(), match.group(2), match.group(3)


def read_enums(text):
    values = {}
    for name, body in re.findall(r"\benum (\w+)\s*\{([^}]*)\}", text):
        del name
        following = 0
        for item in filter(None, (part.strip() for part in body.split(","))):
            key, _, value = (part.strip() for part in item.partition("="))
            following = int(value, 0) if value else following
            values[key] = following
            following += 1
    return values


def read_fields(body, structs, callbacks):
    fields = []
    for line in filter(None, (part.strip() for part in body.split(";"))):
        first, *more = line.split(",")
        kind, name, count = split_declarator(first)
        declared = [(kind, name, count)]
        for item in more:
            stars, name, count = split_declarator(item)
            declared.append((kind.rstrip("* ") + " " + stars, name, count))
        for kind_of, name, count in declared:
            if kind_of.strip() == "char" and count:
                fields.append((name, "c_char * %s" % count))
            else:
                fields.append((name, c_type(kind_of, structs, callbacks)))
    return fields


def read_inits(text, enums):
    inits = {}
    for name, body in re.findall(r"#define (GRADCMP_\w+_INIT)\s*\{([^}]*)\}", text):
        values = []
        for item in (part.strip() for part in body.split(",")):
            if item.startswith("sizeof"):
                target = re.search(r"struct (\w+)", item).group(1)
                values.append(None)
            elif item == "NULL":
                values.append(None)
            elif item in enums:
                values.append(enums[item])
            else:
                values.append(float(item) if "." in item else int(item, 0))
        inits[target] = values
    return inits


def read_prototypes(text, structs, callbacks):
    prototypes = []
    pattern = r"GRADCMP_API\s+(?:GRADCMP_MUST_USE\s+)?([\w\s*]+?)(gradcmp_\w+)\s*\(([^)]*)\)\s*;"
    for result, name, parameters in re.findall(pattern, text):
        kinds = []
        for parameter in parameters.split(","):
            if parameter.strip() != "void":
                kinds.append(c_type(split_declarator(parameter)[0], structs, callbacks))
        prototypes.append((name, c_type(result, structs, callbacks), kinds))
    if len(prototypes) != len(re.findall(r"GRADCMP_API\s+(?!__attribute__)[a-zA-Z]", text)):
        raise HeaderError("some prototypes were not understood")
    return prototypes


def read_callbacks(text):
    found = {}
    for result, name, parameters in re.findall(r"typedef (\w+) \(\*(\w+)\)\(([^)]*)\);", text):
        kinds = []
        for parameter in parameters.split(","):
            kind = c_type(split_declarator(parameter)[0], {}, {})
            # Bytes that need not end with a NUL come as an address.
            kinds.append("c_void_p" if kind == "c_char_p" and "bytes" in parameter else kind)
        found[name] = (c_type(result, {}, {}), kinds)
    return found


def generate(header):
    text = strip(header)
    enums = read_enums(text)
    callbacks = read_callbacks(text)
    bodies = re.findall(r"\bstruct (\w+)\s*\{([^}]*)\}", text)
    inits = read_inits(text, enums)
    out = ['"""Made by abi.py from gradcmp.h; do not edit."""', "",
           "from ctypes import (CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_double, c_int,",
           "                    c_int64, c_size_t, c_uint, c_uint32, c_uint64, c_void_p)",
           "from typing import Any, Dict", ""]
    for key in sorted(enums, key=list(enums).index):
        out.append("%s = %d" % (key, enums[key]))
    for name, (result, kinds) in callbacks.items():
        out.append("%s = CFUNCTYPE(%s)" % (name, ", ".join([str(result)] + kinds)))
    structs = {}
    for name, body in bodies:
        fields = read_fields(body, structs, callbacks)
        structs[name] = fields
        out += ["", "", "class %s(Structure):" % name, "    _fields_ = ["]
        out += ['        ("%s", %s),' % field for field in fields]
        out.append("    ]")
    out += ["", "", "INIT: Dict[Any, Dict[str, Any]] = {"]
    for name, values in inits.items():
        names = [field for field, _ in structs[name]]
        if len(names) != len(values):
            raise HeaderError("%s: %d fields, %d initial values" % (name, len(names), len(values)))
        pairs = ", ".join('"%s": %r' % pair for pair in zip(names, values) if pair[0] != "struct_size")
        out.append("    %s: {%s}," % (name, pairs))
    out += ["}", "", "PROTOTYPES = {"]
    for name, result, kinds in read_prototypes(text, structs, callbacks):
        out.append('    "%s": (%s, [%s]),' % (name, result, ", ".join(kinds)))
    out += ["}", ""]
    return "\n".join(out)


def main(arguments):
    if len(arguments) != 2:
        sys.exit("usage: abi.py HEADER OUTPUT")
    with open(arguments[0], encoding="utf-8") as file:
        text = generate(file.read())
    with open(arguments[1], "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main(sys.argv[1:])
