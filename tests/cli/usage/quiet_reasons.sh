# --quiet keeps what was found to itself, not why there is no answer: each reason once.
. "$TESTS_CLI/lib.sh"
cp data/previous/usual_step3.pt whole.pt
head -c 1000 whole.pt >cut.pt
cp whole.pt third.pt
printf 'step,loss\n1,2.5\n2,2.4\n' >a.csv
printf 'step,loss\n1,2.5\n2,x\n' >b.csv
for json in '' '--json -'; do
    for command in 'bits whole.pt cut.pt' 'bits whole.pt nope cut.pt' 'bits cut.pt whole.pt' \
        'bits whole.pt third.pt nope' 'trace a.csv b.csv' 'trace nope b.csv' 'metrics a.csv b.csv' \
        'metrics nope b.csv' 'lint nope' 'lint cut.pt' 'check nope cut.pt' 'whole.pt cut.pt' \
        'whole.pt nope cut.pt'; do
        echo "\$ gradcmp $command --quiet $json"
        # shellcheck disable=SC2086
        gradcmp $command --quiet $json 2>&1 >/dev/null || echo "(exit $?)"
    done
done
