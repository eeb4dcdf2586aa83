# The embedding of a language model that a vision tower feeds is behind the tower's layers, and an
# embedding all the same: what ties the output layer to it holds. A bias of the output layer is no table.
. "$TESTS_CLI/lib.sh"
PYTHONPATH=$TESTS_CLI/.. python3 - <<'EOF'
import os
from argparse import Namespace
from safetensors_file import write_gradients
from torch_save_file import Tensor, save

TABLE = [float(i % 7 - 3) for i in range(64)]
LAYER = "decoder.layers.{}.mlp.linear_fc1.weight"

def model(towers, **heads):
    names = [tower + LAYER.format(i) for tower in towers for i in range(2)]
    lead = "language_model." if len(towers) > 1 else ""
    values = {lead + "embedding.word_embeddings.weight": TABLE, **{name: TABLE for name in names}}
    return values | {lead + "output_layer." + head: table for head, table in heads.items()}

def megatron(path, values):
    os.makedirs(path + "/iter_0000001/mp_rank_00")
    args = Namespace(num_layers=2, untie_embeddings_and_output_weights=False, padded_vocab_size=8)
    tensors = {name: Tensor("float32", [len(v) // 8, 8] if len(v) > 8 else [8], v) for name, v in values.items()}
    save(path + "/iter_0000001/mp_rank_00/model_optim_rng.pt",
         {"args": args, "model": tensors, "iteration": 1, "checkpoint_version": 3.0})

TEXT, BOTH = [""], ["language_model.", "vision_model."]
for name, towers in ("text", TEXT), ("both", BOTH):
    megatron(name + "_tied", model(towers, weight=TABLE, bias=TABLE[:8]))
    megatron(name + "_torn", model(towers, weight=[x + 1 for x in TABLE]))
    write_gradients(name + ".safetensors", model(towers), columns=8)
    write_gradients(name + "_output.safetensors", model(towers, weight=TABLE), columns=8)
EOF
try check -q text_tied both_tied
try check text_torn
try check both_torn
for name in text both; do
    try --dtype fp32 $name.safetensors ${name}_output.safetensors
done
