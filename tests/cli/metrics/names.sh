. "$TESTS_CLI/lib.sh"
# Names come from the files: none writes a line of its own, or reaches the terminal's controls.
for name in 'loss\nMATCH: 5 metrics bit for bit' 'x\033[31mred\033[2J' 'a\342\200\256b' 'a\302\2331mb'; do
    printf "step,\"$name\"\\n1,1\\n" >a.csv
    printf "step,\"$name\"\\n1,2\\n" >b.csv
    try metrics --color always a.csv b.csv
done
