# Arguments in a checkpoint that are no scalars, and lists that a script spells otherwise.
. "$TESTS_CLI/lib.sh"
cat >make.py <<'EOF'
import argparse, pickle, sys, zipfile
def save(name, **values):
    with zipfile.ZipFile(name, "w") as archive:
        run = {"args": argparse.Namespace(seed=1, num_layers=2, **values), "iteration": 1}
        archive.writestr("archive/data.pkl", pickle.dumps(run, protocol=2))
        archive.writestr("archive/version", "3\n")
deep = lambda value: [[[[[[[[[value]]]]]]]]]
save("a.pt", data_path=["0.5", "a"], split=(1, 2.5), extra={"k": 1}, large=2**70, lr=3e-4)
save("b.pt", data_path=["0.5", "b"], split=(1, 2.5), extra={"k": 2}, large=2**70 + 1, lr=2e-4)
save("c.pt", data_path=["0.5", "a"], odd=deep(1))
save("d.pt", data_path=["0.5", "a"], odd=deep(2))
EOF
python3 make.py
pair() { # ONE TWO: the findings and the last line
    echo "\$ gradcmp lint --pair $1 $2"
    { gradcmp lint --pair "$1" "$2" || :; } | grep -E '^  (error|warning|info)|^(PASS|WARN|FAIL)'
    echo
}
pair a.pt a.pt
pair a.pt b.pt
pair c.pt d.pt
echo 'torchrun pretrain_gpt.py --seed 1 --num-layers 2 --data-path 0.5 a' >run.sh
echo 'torchrun pretrain_gpt.py --seed 1 --num-layers 2 --data-path 0.5 b' >other.sh
echo '{"seed": 1, "num_layers": 2, "data_path": ["0.5", "a"]}' >run.json
pair run.sh c.pt
pair run.sh run.json
pair other.sh run.json
