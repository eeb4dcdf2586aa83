"""Write a.safetensors and b.safetensors of float64: in b one element of 1e170; a second parameter of
1e-200 against 1e200; a third that is the same on both sides."""
from safetensors_file import write_gradients

VALUES = [0.5 + i % 7 for i in range(64)]

write_gradients("a.safetensors",
                {"one": VALUES, "all": [1e-200 * x for x in VALUES], "same": VALUES}, dtype="F64")
write_gradients("b.safetensors",
                {"one": VALUES[:-1] + [1e170], "all": [1e200 * x for x in VALUES], "same": VALUES}, dtype="F64")
