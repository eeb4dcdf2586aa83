# One line on standard error while a terminal is there, taken away at the end; else nothing.
. "$TESTS_CLI/lib.sh"
ln -s data/megatron/* .
make_shim
show() {
    sed "s/$(printf '\033')/ESC/g; s/$(printf '\r')/CR/g"
    echo
}
shimmed TERM=xterm SHIM_CLOCK=1 python3 "$TESTS_CLI/terminal.py" stderr \
    "$GRADCMP" --threads 1 s_base tp2dp2 >line.txt
# How much is done at each look is up to the engine; the form of the line is not.
show <line.txt | sed -E 's/(CRESC\[K[0-9.]+ [KMGi]*B of [0-9.]+ KiB, [0-9]+ %, [0-9.]+ [KMGi]*B\/s(, [0-9.]+ (s|min|h) left)?)+/LINE/'
for arguments in "TERM=dumb SHIM_CLOCK=1 stderr" "TERM=xterm SHIM_CLOCK=1 quiet"; do
    set -- $arguments
    quiet=
    [ "$3" = stderr ] || quiet=--quiet
    shimmed "$1" "$2" python3 "$TESTS_CLI/terminal.py" stderr "$GRADCMP" $quiet s_base tp2dp2 | show
done
shimmed TERM=xterm SHIM_CLOCK=1 "$GRADCMP" s_base tp2dp2 2>&1 >/dev/null | show
