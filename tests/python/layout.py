"""Compare every struct that ctypes knows with what a C compiler makes of the header.

    layout.py INCLUDE_FOLDER C_COMPILER WORK_FOLDER
"""

import ctypes
import subprocess
import sys

from gradcmp import _abi


def structs():
    found = {name: value for name, value in vars(_abi).items()
             if isinstance(value, type) and issubclass(value, ctypes.Structure)
             and value is not ctypes.Structure}
    assert len(found) >= 8, found
    return found


def expected():
    """ "struct field offset" lines, and "struct size" """
    lines = []
    for name, struct in sorted(structs().items()):
        lines.append(f"{name} {ctypes.sizeof(struct)}")
        for field, _ in struct._fields_:
            column = getattr(struct, field)
            lines.append(f"{name}.{field} {column.offset} {column.size}")
    return lines


def source():
    code = ["#include <stddef.h>", "#include <stdio.h>", "#include <gradcmp/gradcmp.h>",
            "int main(void) {"]
    for name, struct in sorted(structs().items()):
        code.append(f'printf("{name} %zu\\n", sizeof(struct {name}));')
        for field, _ in struct._fields_:
            code.append(f'printf("{name}.{field} %zu %zu\\n", offsetof(struct {name}, {field}), '
                        f"sizeof(((struct {name} *)0)->{field}));")
    # The initial values too: zero bytes where the table says nothing else.
    for struct, values in _abi.INIT.items():
        macro = struct.__name__.upper() + "_INIT"
        code.append(f"{{ struct {struct.__name__} init = {macro};")
        code += [f"if (init.{field} != {value!r}) {{ puts(\"{macro}.{field}\"); }}"
                 for field, value in values.items() if value is not None]
        code.append("(void)init; }")
    return "\n".join([*code, "return 0;", "}"])


def main(include, compiler, work):
    with open(f"{work}/layout.c", "w", encoding="utf-8") as file:
        file.write(source())
    subprocess.run([compiler, "-I", include, f"{work}/layout.c", "-o", f"{work}/layout"], check=True)
    found = subprocess.run([f"{work}/layout"], check=True, stdout=subprocess.PIPE,
                           universal_newlines=True).stdout.split("\n")[:-1]
    wrong = [pair for pair in zip(expected(), found) if pair[0] != pair[1]]
    if wrong or len(found) != len(expected()):
        sys.exit(f"layout: ctypes and the compiler differ: {wrong or found}")
    print(f"layout: {len(structs())} structs as the compiler has them")


main(*sys.argv[1:])
