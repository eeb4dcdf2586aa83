# --color, then NO_COLOR, then CLICOLOR_FORCE, then whether there is a terminal.
ln -s data/megatron/* .
has_color() {
    "$@" s_base tp2dp2 >out.txt
    if grep -q "$(printf '\033')" out.txt; then echo "$*: colours"; else echo "$*: plain"; fi
}
has_color gradcmp
has_color gradcmp --color auto
has_color gradcmp --color always
has_color gradcmp --color never
has_color env CLICOLOR_FORCE=1 gradcmp
has_color env CLICOLOR_FORCE=0 gradcmp
has_color env CLICOLOR_FORCE=1 gradcmp --color never
has_color env CLICOLOR_FORCE=1 NO_COLOR=1 gradcmp
has_color env NO_COLOR=1 gradcmp --color always
has_color env NO_COLOR= CLICOLOR_FORCE=1 gradcmp
terminal() {
    python3 "$TESTS_CLI/terminal.py" stdout "$@" s_base tp2dp2 >out.txt
    if grep -q "$(printf '\033')" out.txt; then
        echo "terminal, $*: colours"
    else
        echo "terminal, $*: plain"
    fi
}
terminal env TERM=xterm gradcmp
terminal env TERM=dumb gradcmp
terminal env TERM=xterm NO_COLOR=1 gradcmp
terminal env TERM=xterm gradcmp --color never
gradcmp --color always s_base bug_double_layer1 | sed -n '/^.\[1mLayers/,$p' | sed "s/$(printf '\033')/ESC/g"
