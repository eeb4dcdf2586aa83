. "$TESTS_CLI/lib.sh"
cd data/resume
gradcmp bits --json - a.pt flip.pt || true
gradcmp bits --json - a.pt zoo.pt || true
gradcmp bits --json - --ignore 'x*' a.pt same.pt lr.pt
