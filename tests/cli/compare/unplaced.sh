# Parameters whose names show no layer count as the head: that is said, and a map places them.
. "$TESTS_CLI/lib.sh"
python3 "$TESTS_CLI/compare/unplaced.py"
try --dtype bf16 a.safetensors b.safetensors | sed -n '/^Layers/,/^$/p; /^Notes/,$p'
cat >map.yaml <<'END'
layers: 4
rules:
  - layer: stage0\.unit([0-2])\..*
    index: \1
  - layer: stage1\.unit([0-2])\..*
    l: 4
END
try --dtype bf16 --map map.yaml a.safetensors b.safetensors | sed -n '/^Layers/,/^$/p; /^Notes/,$p'
