# Copies of one gradient on several ranks: of values whose squares leave the range of binary64, and of
# a tied output layer that one side alone stores.
. "$TESTS_CLI/lib.sh"
python3 "$TESTS_CLI/compare/copies.py"
for scale in 1 1e+200 1e-200; do
    try --dtype fp64 --quiet --allow-same whole_$scale whole_$scale
    try --dtype fp64 whole_$scale apart_$scale | sed -n '/^Failing/,/its copies/p; /^- /,$p'
done
try --dtype fp32 --quiet untied tied
try --dtype fp32 --quiet tied untied
try --dtype fp32 untied tied_apart | sed -n '/^Failing/,$p'
try --dtype fp32 tied_apart untied
