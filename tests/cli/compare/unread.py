"""Write pairs of gradients most of which are not read: sparse, complex, a NumPy array, a list; and one that is small."""
import struct

from torch_save_file import Array, Sparse, Tensor, save


def real(value, count=9):
    return Tensor("float32", [count], [value * (1 + i) for i in range(count)])


for side, by in (("a", 1.0), ("b", 2.0)):
    kinds = {
        "sparse": Sparse([40, 4], [[0, 7], [1, 2]], [by, by]),
        "complex": Tensor("complex64", [40], [complex(by, 1)] * 40),
        "array": Array([10, 4], struct.pack("<40f", *[by] * 40)),
        "list": [real(by, 40)],
        "small": Array([1], struct.pack("<f", by)),
    }
    for kind, most in kinds.items():
        save(f"{kind}_{side}.pt", {"layers.0.embedding": most, "layers.0.up": real(1.0)})
