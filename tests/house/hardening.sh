#!/bin/sh
# Check what the compiler and the linker put into the program, the library and the helper against
# being taken over: position-independent, relocations read-only from the start, no executable stack,
# stack protector, checked C library calls; on x86-64 the marks for control-flow enforcement, where
# the compiler makes them.
#   hardening.sh yes|no FILE...          yes: an optimised build, which has the checked calls
set -eu
optimised=$1
shift
if ! command -v readelf >/dev/null 2>&1; then
    echo "hardening: no readelf here"
    exit 77
fi
failed=0
complain() {
    echo "$*"
    failed=1
}
for file; do
    readelf -hW "$file" | grep -q 'Type: *DYN' || complain "$file: not position-independent"
    readelf -lW "$file" | grep -q 'GNU_RELRO' || complain "$file: no GNU_RELRO"
    readelf -dW "$file" | grep -q 'FLAGS_1.*NOW' || complain "$file: relocations are not resolved at the start"
    readelf -lW "$file" | grep 'GNU_STACK' | grep -q 'RWE' && complain "$file: the stack is executable"
    readelf -lW "$file" | grep 'LOAD' | grep -q 'RWE' && complain "$file: a segment is writable and executable"
    symbols=$(readelf -W --dyn-syms "$file")
    echo "$symbols" | grep -q '__stack_chk_fail' || complain "$file: no stack protector"
    if [ "$optimised" = yes ]; then
        echo "$symbols" | grep -q '__[a-z]*printf_chk' || complain "$file: no checked calls (_FORTIFY_SOURCE)"
    fi
    # Every function that another one may jump to through a pointer begins with endbr64.
    case $(readelf -hW "$file" | sed -n 's/.*Machine: *//p') in
    *X86-64*)
        if command -v objdump >/dev/null 2>&1; then
            [ "$(objdump -d --no-show-raw-insn "$file" | grep -c 'endbr64')" -gt 10 ] ||
                complain "$file: no control-flow enforcement"
        fi
        ;;
    esac
done
exit $failed
