# The bound follows the type of the weights, which are not compared: what .metadata says of it must be
# what is stored.
. "$TESTS_CLI/lib.sh"
for name in a b; do cp -R data/dcp/numbers/one $name && chmod -R u+w $name; done
python3 - <<'EOF'
from metadata_file import changed, stand_in

with changed("b/.metadata") as metadata:
    for name, tensor in metadata.state["state_dict_metadata"].items():
        if name.startswith("model."):
            properties = tensor.state["properties"]
            narrow = stand_in("torch", "bfloat16")
            properties.__setstate__((narrow, *properties.state[1:]))
EOF
for option in '' '--dtype fp32'; do
    try -q $option a b
    try -q $option b a
done
