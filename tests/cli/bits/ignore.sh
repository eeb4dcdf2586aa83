. "$TESTS_CLI/lib.sh"
cd data/resume
try bits --ignore args.lr a.pt lr.pt
try bits --ignore args.lr --ignore 'param_groups/*/lr' a.pt lr.pt
try bits --ignore exp_avg a.pt flip.pt
try bits --ignore 'zoo.*' a.pt zoo.pt
try bits --no-ignore a.pt same.pt
try bits --no-ignore --ignore save --ignore 'load' --ignore 'save_*' a.pt same.pt
