"""Write copies of a checkpoint in buckets, with one more weight in the model than the buckets have: told
has one that they have no room for, open one beside another of its size."""
import shutil

from metadata_file import changed


def add(folder, of, name):
    shutil.copytree("data/megatron/dr_dp2", folder)
    with changed(f"{folder}/iter_0000001/.metadata") as metadata:
        tensors, places = metadata.state["state_dict_metadata"], metadata.state["storage_data"]
        tensors[name] = tensors[of]
        for index in [index for index in places if index.state["fqn"] == of]:
            other = type(index)()
            other.__setstate__({**index.state, "fqn": name})
            places[other] = places[index]


add("told", "decoder.final_layernorm.weight", "binary_head.weight")
add("open", "embedding.word_embeddings.weight", "embedding.position_embeddings.weight")
