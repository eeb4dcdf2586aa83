. "$TESTS_CLI/lib.sh"
# Names come from the files: none writes a line of its own, or reaches the terminal's controls.
for name in 'loss\nMATCH: 5 metrics bit for bit' 'x\0033[31mred\0033[2J' 'a\0342\0200\0256b' \
    'a\0302\02331mb'; do
    printf 'step,"%b"\n1,1\n' "$name" >a.csv
    printf 'step,"%b"\n1,2\n' "$name" >b.csv
    try metrics --color always a.csv b.csv
done
