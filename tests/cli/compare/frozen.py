"""Write copies of a checkpoint in buckets, with one more weight in the model than the buckets have: told
has one that they have no room for, open one beside another of its size."""
import copyreg
import os
import pickle
import shutil
import sys
import types


class StandIn:
    """An object of the pickle: made by a call with arguments, or anew with a state."""

    def __new__(cls, *arguments):
        made = object.__new__(cls)
        made.arguments, made.state = arguments, None
        return made

    def __setstate__(self, state):
        self.state = state

    def __reduce__(self):
        if self.arguments:
            return type(self), self.arguments
        return (copyreg.__newobj__, (type(self),)) + ((self.state,) if self.state is not None else ())


class Unpickler(pickle.Unpickler):
    def find_class(self, module, name):
        parent = sys.modules.setdefault(module, types.ModuleType(module))
        return parent.__dict__.setdefault(name, type(name, (StandIn,), {"__module__": module, "__qualname__": name}))


def add(folder, of, name):
    shutil.copytree("data/megatron/dr_dp2", folder)
    path = f"{folder}/iter_0000001/.metadata"
    os.chmod(path, 0o644)
    with open(path, "rb") as file:
        metadata = Unpickler(file).load()
    tensors, places = metadata.state["state_dict_metadata"], metadata.state["storage_data"]
    tensors[name] = tensors[of]
    for index in [index for index in places if index.state["fqn"] == of]:
        other = type(index)()
        other.__setstate__({**index.state, "fqn": name})
        places[other] = places[index]
    with open(path, "wb") as file:
        pickle.dump(metadata, file, protocol=4)


add("told", "decoder.final_layernorm.weight", "binary_head.weight")
add("open", "embedding.word_embeddings.weight", "embedding.position_embeddings.weight")
