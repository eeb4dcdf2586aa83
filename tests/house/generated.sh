#!/bin/sh
# Check what is made from the table of options: the manual page names every command and option and
# is free of warnings; each shell offers exactly the options that --help-all lists. What this
# machine lacks (mandoc, zsh, fish) is said, and then checked by its text alone.
#   generated.sh PROGRAM FOLDER_OF_GENERATED_FILES
set -eu
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
complain() {
    echo "$*"
    failed=1
}

# What is installed is what the program prints now.
for item in man:gradcmp.1 bash:gradcmp zsh:_gradcmp fish:gradcmp.fish; do
    "$program" --generate "${item%%:*}" >"$work/${item#*:}"
    # The title line holds the day of the build.
    sed '/^\.TH /d' "$work/${item#*:}" >"$work/now"
    sed '/^\.TH /d' "$2/${item#*:}" | cmp -s - "$work/now" || complain "${item#*:} is not up to date"
done
code=0
"$program" --generate csh 2>/dev/null || code=$?
[ $code = 2 ] || complain "--generate csh: exit $code"

commands=$(sed -n 's/^        \([a-z]*\)) options=.*/\1/p' "$work/gradcmp")
[ "$(echo "$commands" | wc -l)" -ge 5 ] || complain "too few commands: $commands"

# list_table COMMAND: its options, one a line.
list_table() {
    "$program" "$1" --help-all 2>/dev/null | grep -E '^  (   |-[a-zA-Z],) --' | grep -o -- '--[a-zA-Z0-9-]*' | sort -u
}

# --- the manual page ---
for command in $commands; do
    grep -q "^\.SS $command\$" "$work/gradcmp.1" || complain "man: no command $command"
    list_table "$command" >"$work/table"
    [ -s "$work/table" ] || complain "$command --help-all lists nothing"
    while read -r option; do
        escaped=$(echo "$option" | sed 's/-/\\\\-/g')
        grep -q "^\(.*, \)\{0,1\}\\\\fB$escaped\\\\fR" "$work/gradcmp.1" || complain "man: no option $option"
    done <"$work/table"
done
if command -v mandoc >/dev/null 2>&1; then
    mandoc -Tlint -Wwarning "$work/gradcmp.1" || complain "man: mandoc has warnings"
else
    echo "skipped: mandoc is not installed"
fi
if command -v groff >/dev/null 2>&1; then
    groff -man -ww -Tascii "$work/gradcmp.1" 2>"$work/groff" >/dev/null
    [ ! -s "$work/groff" ] || { cat "$work/groff"; complain "man: groff has warnings"; }
else
    echo "skipped: groff is not installed"
fi

# --- bash ---
# complete_bash WORD...: what the last, unfinished word may become.
complete_bash() {
    (
        cd "$work/files"
        bash --norc -c 'file=$1; shift; . "$file"; COMP_WORDS=(gradcmp "$@"); COMP_CWORD=$#; _gradcmp 2>/dev/null
            printf "%s\n" "${COMPREPLY[@]}"' bash "$work/gradcmp" "$@" | sort -u
    )
}
mkdir "$work/files"
: >"$work/files/a checkpoint.pt"
expect() { # WHAT EXPECTED FOUND
    [ "$2" = "$3" ] || complain "$1: expected \"$2\", found \"$3\""
}
if command -v bash >/dev/null 2>&1; then
    for command in $commands; do
        expect "bash: options of $command" "$(list_table "$command")" "$(complete_bash "$command" --)"
    done
    expect "bash: options without a command" "$(list_table compare)" "$(complete_bash --)"
    expect "bash: a choice" "always auto never" "$(complete_bash ls --color "" | xargs)"
    expect "bash: an attached choice" "never" "$(complete_bash ls --color = n)"
    expect "bash: a file after an option" "a checkpoint.pt" "$(complete_bash --fit a)"
    expect "bash: a file" "a checkpoint.pt" "$(complete_bash ls a)"
    expect "bash: a command" "extract" "$(complete_bash ext)"
    expect "bash: no command in second place" "" "$(complete_bash ls ext)"
else
    echo "skipped: bash is not installed"
fi

# --- fish ---
if command -v fish >/dev/null 2>&1; then
    complete_fish() {
        (cd "$work/files" && HOME=$work XDG_CONFIG_HOME=$work fish --no-config -c "source $work/gradcmp.fish; complete -C '$1'" |
            cut -f1 | sort -u)
    }
    for command in $commands; do
        expect "fish: options of $command" "$(list_table "$command")" "$(complete_fish "gradcmp $command --" | grep '^--')"
    done
    expect "fish: a choice" "always auto never" "$(complete_fish "gradcmp ls --color " | xargs)"
    expect "fish: a command" "extract" "$(complete_fish "gradcmp ext")"
else
    echo "skipped: fish is not installed"
fi
# --- zsh: what it hands to _arguments ---
if command -v zsh >/dev/null 2>&1; then
    for command in $commands; do
        found=$(zsh -f -c 'compdef() { }; _describe() { }; _files() { }
            _arguments() { print -rl -- "$@" }
            source $1; words=(gradcmp $2 --); CURRENT=3; _gradcmp' zsh "$work/_gradcmp" "$command" |
            grep -o '^\(([^)]*)\)\{0,1\}\*\{0,1\}--[a-zA-Z0-9-]*' | sed 's/^([^)]*)//; s/^\*//' | sort -u)
        expect "zsh: options of $command" "$(list_table "$command")" "$found"
    done
else
    echo "skipped: zsh is not installed"
    for command in $commands; do
        found=$(sed -n "/^        $command)/,/;;/p" "$work/_gradcmp" | grep -o -- '--[a-zA-Z0-9-]*[=[}]' | sed 's/.$//' | sort -u)
        list_table "$command" >"$work/table"
        echo "$found" | cmp -s - "$work/table" || complain "zsh: options of $command differ from the table"
    done
fi
exit $failed
