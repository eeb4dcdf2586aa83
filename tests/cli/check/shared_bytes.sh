# Tensors that are the same bytes of a file, and second moments below 0, are named; the weights and
# the moments of two names of one parameter are not.
. "$TESTS_CLI/lib.sh"
cp -r data/dcp/trainer2 items
chmod -R u+w items
cp -r items weight
PYTHONPATH=$TESTS_CLI/.. python3 - <<'EOF'
import struct
from torch_save_file import Tensor, save

def moved(folder, old, new):
    """Give an item of __0_0.distcp the place of another one of its size."""
    path = folder + "/.metadata"
    raw = open(path, "rb").read()
    old, new = (b"M" + struct.pack("<H", offset) for offset in (old, new))
    assert raw.count(old) == 1
    open(path, "wb").write(raw.replace(old, new))

moved("items", 18347, 16578)  # exp_avg_sq of tok.weight at its exp_avg
moved("weight", 11527, 16578)  # tok.weight at its exp_avg

def real(*values):
    return Tensor("float32", [2, 2], list(values))

def file(path, weights, states, key=int):
    keys = [key(i) for i in range(len(states))]
    save(path, {"model": {f"layers.{i}.weight": weight for i, weight in enumerate(weights)},
                "optimizer": {"state": {name: {"exp_avg": first, "exp_avg_sq": second}
                                        for name, (first, second) in zip(keys, states)},
                              "param_groups": [{"params": keys}]}})

weights = [real(1, 2, 3, 4), real(5, 6, 7, 8)]
first, second = real(1, -1, 1, -1), real(2, 3, 2, 3)
file("one_storage.pt", weights, [(first, second), (first, real(4, 3, 2, 1))])
file("below.pt", weights, [(first, second), (real(4, 3, 2, 1), real(1, -1, -0.0, 1))])
file("tied.pt", [weights[0]] * 2, [(first, second), (first, second)], key="layers.{}.weight".format)
EOF
for path in items weight one_storage.pt below.pt tied.pt; do
    try check $path
done
