# Help fits a screen of 24 lines of 80 columns, and is there without reading anything else.
. "$TESTS_CLI/lib.sh"
for command in "" compare ls check extract; do
    gradcmp $command --help >help.txt
    [ "$(wc -l <help.txt)" -le 24 ]
    awk 'length > 80 { print; exit 1 }' help.txt
    sed '/^Formats: /,/^$/c\
(formats)\n' help.txt
done
gradcmp --help >first.txt
gradcmp compare -h missing --k >second.txt # what follows is not looked at
cmp first.txt second.txt
