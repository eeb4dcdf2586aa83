# Generators of random numbers have no meaning across layouts; a network that is called so has.
. "$TESTS_CLI/lib.sh"
python3 - <<'EOF'
from torch_save_file import Tensor, save

def run(path, ranks, lr, value, state):
    values = Tensor("float32", [2], [value, 2.0])
    save(path, {"generator": {"ema": [values], "lr": lr}, "random_features": {"scale": lr}, "world_size": ranks,
                "rng_state": state, "np_random": [state], "loader": {"generator": state}})

run("a.pt", 1, 0.001, 1.0, 5)
run("layout.pt", 2, 0.001, 1.0, 6)
run("lr.pt", 2, 0.005, 1.0, 6)
run("value.pt", 2, 0.001, 9.0, 6)
EOF
for other in layout lr value; do
    try bits a.pt $other.pt
done
