. "$TESTS_CLI/lib.sh"
cd data/resume
# One state, saved in other ways.
try bits a.pt same.pt
try bits a.pt stream.pt
try bits together.pt apart
# One difference each.
for name in flip negzero nan_payload weight_all lr step dtype lost rng; do
    try bits a.pt "$name.pt"
done
try bits --verbose a.pt zoo.pt
try bits --top 1 a.pt zoo.pt
try bits -q a.pt flip.pt
