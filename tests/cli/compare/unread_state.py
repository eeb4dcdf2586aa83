"""Write pairs of files in which the moments of one parameter are complex (complex), sparse (sparse), or those of all are sparse
(all), and twice as large in the second."""
from torch_save_file import Sparse, Tensor, save


def real(value, count):
    return Tensor("float32", [count], [value * (1 + i) for i in range(count)])


def spectrum(value):
    return Tensor("complex64", [4], [complex(value * (1 + i), value) for i in range(4)])


def sparse(value):
    return Sparse([4], [[0, 2]], [value, 2 * value])


def optimizer(*moments):
    return {"state": {i: {"exp_avg": moment} for i, moment in enumerate(moments)},
            "param_groups": [{"params": list(range(len(moments)))}]}


NAMES = ["layers.0.spectrum", "layers.0.up", "layers.0.down"]
for side, factor in (("a", 1.0), ("b", 2.0)):
    reals = {"layers.0.up": real(1.0, 6), "layers.0.down": real(1.0, 3)}
    save(f"complex_{side}.pt", {"model": {"layers.0.spectrum": spectrum(1.0), **reals},
                                "optimizer": optimizer(spectrum(factor), *reals.values())})
    save(f"sparse_{side}.pt", {"model": {"layers.0.spectrum": real(1.0, 4), **reals},
                               "optimizer": optimizer(sparse(factor), *reals.values())})
    save(f"all_{side}.pt", {"model": {"layers.0.spectrum": real(1.0, 4)}, "optimizer": optimizer(sparse(factor))})
