# Help fits a screen of 24 lines of 80 columns, and is there without reading anything else.
. "$TESTS_CLI/lib.sh"
for command in "" compare sweep ls check extract fit metrics bits lint trace; do
    gradcmp $command --help >help.txt
    [ "$(wc -l <help.txt)" -le 24 ]
    awk 'length > 80 { print; exit 1 }' help.txt
    sed '/^Formats: /,/^$/c\
(formats)\n' help.txt
done
# All options are there in full, also those that the screen has no room for.
for command in compare sweep ls check extract fit metrics bits lint trace; do
    gradcmp $command --help-all >all.txt
    awk 'length > 80 { print; exit 1 }' all.txt
    gradcmp $command --help | grep -o -- ' --[a-z0-9-]*' | sort -u >short.txt
    grep -o -- '^ .* --[a-zA-Z0-9-]*' all.txt | grep -o -- ' --.*' | sort -u >long.txt
    comm -23 short.txt long.txt
    echo "$command: $(wc -l <short.txt) of $(wc -l <long.txt) options on the screen"
done
gradcmp --help >first.txt
gradcmp compare -h missing --k >second.txt # what follows is not looked at
cmp first.txt second.txt
