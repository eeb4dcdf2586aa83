. "$TESTS_CLI/lib.sh"
# A file a rank, of two ranks and of four: what all ranks have alike is of no layout.
PYTHONPATH=$TESTS_CLI/.. python3 - <<'EOF2'
import os
from torch_save_file import Tensor, save

WEIGHT = Tensor("float32", [2, 2], [1.0, 2.0, 3.0, 4.0])

def write(folder, ranks, change=lambda rank, state: None):
    os.makedirs(folder)
    for rank in range(ranks):
        state = {"model": {"layers.0.w.weight": WEIGHT}, "iteration": 3,
                 "optimizer": {"param_groups": [{"lr": 0.5, "params": [rank]}]},
                 "scheduler": {"last_epoch": 7, "base_lrs": [0.5, 0.25]},
                 "rng_state": [rank], "note": f"rank {rank}",
                 "args": {"data_parallel_size": ranks, "rank": rank, "log_path": f"/{rank}", "lr": 0.5}}
        change(rank, state)
        save(f"{folder}/model_rank{rank}.pt", state)

def only_first(rank, state):
    if rank > 0:
        del state["scheduler"]

def lose(wanted, *keys):
    def change(rank, state):
        for key in keys[:-1]:
            state = state[key]
        if rank in wanted:
            del state[keys[-1]]
    return change

def give(wanted, value, *keys):
    def change(rank, state):
        for key in keys[:-1]:
            state = state[key]
        if rank in wanted:
            state[keys[-1]] = value
    return change

write("one", 1)
write("two", 2)
write("four", 4)
write("first", 4, only_first)
write("lost", 4, lose([3], "scheduler"))
write("lost_two", 2, lose([1], "iteration"))
write("lost_four", 4, lose([1, 2], "iteration"))
write("lost_all", 4, lose([0, 1, 2, 3], "iteration"))
write("lost_lr", 4, lose([0], "optimizer", "param_groups", 0, "lr"))
write("lost_args", 4, lose([2], "args", "lr"))
write("other", 4, give([3], 9, "scheduler", "last_epoch"))
write("other_list", 4, give([2], [0.5, 0.125], "scheduler", "base_lrs"))
write("other_args", 4, give([1], 0.25, "args", "lr"))
write("other_iteration", 4, give([1], 2, "iteration"))
EOF2
short() {
    try bits "$@" | grep -v '^  layout\|^A  \|^B  \|^$'
}
short two four
short one four
short one first
for name in lost lost_four lost_all lost_lr lost_args other other_list other_args other_iteration; do
    short two $name
    short one $name | tail -2
    short $name two | tail -2
    rm -f two.json
    gradcmp bits --hash two.json two >/dev/null
    short --hash two.json $name | tail -2
done
# Every rank against the first alone; both have lost it, and one has it nowhere.
short two first
short lost_two lost_four
short lost_two lost_all
try bits two lost --json - | grep '^    {"path": "model_\*/scheduler'
try bits two lost --ignore 'scheduler/*' | tail -4
# The path that a report names, of all below it.
try bits two lost --ignore 'model_*/scheduler' | tail -4
