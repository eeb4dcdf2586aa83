. "$TESTS_CLI/lib.sh"
# One state in two layouts of a format: what both of them keep may not be lost.
copy_checkpoint fr_pp2dp2 groups
copy_checkpoint dr_dp2 buckets
cat >lose.py <<'EOF2'
import pickle, sys, zipfile
from torch_save_file import save, stand_in

class Loader(pickle.Unpickler):
    def find_class(self, module, name):
        plain = module in ("argparse", "builtins", "collections")
        return super().find_class(module, name) if plain else stand_in(module, name)

def common(checkpoint):
    with zipfile.ZipFile(f"{checkpoint}/iter_0000001/common.pt") as archive:
        name = next(n for n in archive.namelist() if n.endswith("/data.pkl"))
        return Loader(archive.open(name)).load()

def lose(state, keys):
    *above, last = keys.split("/")
    for key in above:
        state = state[int(key)] if isinstance(state, list) else state[key]
    del state[last]

state = common(sys.argv[1])
for keys in sys.argv[2:]:
    lose(state, keys)
save(f"{sys.argv[1]}/iter_0000001/common.pt", state)
EOF2
lose() {
    PYTHONPATH=$TESTS_CLI/.. python3 lose.py "$@"
}
summary() {
    try bits "$@" | grep -v '^  layout\|^  *left out'
}
lose groups
lose buckets
summary groups buckets

i=0
for keys in opt_param_scheduler opt_param_scheduler/num_steps iteration checkpoint_version; do
    i=$((i + 1))
    cp -R buckets lost$i
    lose lost$i $keys
    try bits groups lost$i | sed -n 's/^  keys  *common/common/p; $p; /^differs/p; /^identical/p'
done
# Hyperparameters, which one of the layouts keeps for each group of ranks.
for keys in optimizer/optimizer/param_groups/0/lr optimizer/optimizer/param_groups/1/step optimizer; do
    i=$((i + 1))
    cp -R groups lost$i
    lose lost$i $keys
    try bits lost$i buckets | sed -n 's/^  keys  *common/common/p; $p; /^differs/p; /^identical/p'
done
# Fingerprints say the same.
gradcmp bits --hash groups.json groups >/dev/null
summary --hash groups.json buckets
summary --hash groups.json lost1
gradcmp bits --hash buckets.json buckets >/dev/null
summary --hash buckets.json groups
summary --hash buckets.json lost5

# Of two formats, objects lie in other places: what one side alone has is named.
gradcmp extract --state param groups -o weights.h5
try bits groups weights.h5
