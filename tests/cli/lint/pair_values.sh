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
# Lists that are written in other ways, and mean the same or not.
verdict() { # FORM ONE TWO
    printf '%s\n' "$2" >one.$1
    printf '%s\n' "$3" >two.$1
    printf '%s\n%s\n' "$2" "$3"
    pair one.$1 two.$1 | sed 1d
}
verdict yaml 'data_path: [0.5, a, 0.50, b]' 'data_path: [0.50, a, 0.5, b]'
verdict yaml 'data_path: [é, 0x10, 1_000, ~, yes, .5, +1]' 'data_path: [é, 16, 1000, null, true, 0.5, 1]'
verdict yaml 'data_path: [1, 2, 3]' 'data_path: [1, 23]'
verdict yaml 'data_path: [[1, 2], 3]' 'data_path: [1, [2, 3]]'
verdict yaml 'data_path: ["a b"]' 'data_path: [a, b]'
verdict yaml "data_path: ['a\",\"b']" 'data_path: [a, b]'
verdict yaml 'data_path: [{a: 1, b: 2}]' 'data_path: [{b: 2, a: 1.0}]'
verdict yaml 'data_path: [{a: 1, b: 2}]' 'data_path: [{b: 1, a: 2}]'
verdict json '{"data_path": [{"a": 1, "b": 0.5}]}' '{"data_path": [{"b": 0.50, "a": 1}]}'
verdict sh 'torchrun pretrain_gpt.py --adam-betas 0.9 0.95 --data-path 0.5 a 0.5 b' \
    'torchrun pretrain_gpt.py --adam-betas 0.90 0.950 --data-path 0.50 a .5 b'
verdict sh 'torchrun pretrain_gpt.py --data-path a,b c' 'torchrun pretrain_gpt.py --data-path a b,c'
verdict sh 'torchrun pretrain_gpt.py --moe-layer-freq "([0]*1+[1]*3)"' \
    'torchrun pretrain_gpt.py --moe-layer-freq "[0, 1, 1, 1]"'
verdict sh 'torchrun pretrain_gpt.py --moe-layer-freq "([0]*1+[1]*3)"' \
    'torchrun pretrain_gpt.py --moe-layer-freq "([0]*1+[1]*2)"'
cat >run.sh <<'END'
torchrun pretrain_gpt.py --moe-layer-freq "([0]*1+[1]*3)" --window-size 128,0 --rampup-batch-size 16 8 1000
END
echo '{"moe_layer_freq": [0, 1, 1, 1], "window_size": [128, 0], "rampup_batch_size": ["16", "8", "1000"]}' >run.json
printf '%s\n' 'moe_layer_freq: ([0]*1+[1]*3)' 'window_size: (128,0)' 'rampup_batch_size: [16, 8, 1000]' >run.yaml
pair run.sh run.json
pair run.yaml run.json
verdict sh 'torchrun pretrain_gpt.py --moe-layer-freq "([0]*1+[1])*2"' \
    'torchrun pretrain_gpt.py --moe-layer-freq "[0, 1, 0, 1]"'
