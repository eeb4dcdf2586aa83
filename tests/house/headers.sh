#!/bin/sh
# Check that each public header compiles alone, as strict C99 and as C++.
#   headers.sh INCLUDE_FOLDER C_COMPILER CXX_COMPILER
set -eu
include=$1 cc=$2 cxx=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
checked=0
for header in $(cd "$include" && find gradcmp -name '*.h' | sort); do
    printf '#include <%s>\n#include <%s>\n' "$header" "$header" >"$work/unit.c"
    cp "$work/unit.c" "$work/unit.cpp"
    $cc -std=c99 -Wall -Wextra -pedantic -Werror -I "$include" -fsyntax-only "$work/unit.c"
    $cxx -std=c++11 -Wall -Wextra -pedantic -Werror -I "$include" -fsyntax-only "$work/unit.cpp"
    checked=$((checked + 1))
done
[ $checked -gt 0 ] || { echo "no header below $include"; exit 1; }
