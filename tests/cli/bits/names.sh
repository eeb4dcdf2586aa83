. "$TESTS_CLI/lib.sh"
# Paths of what has unusual keys, and of files of one name.
python3 - <<'END'
import os, pickle, zipfile

def save(path, value):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("archive/data.pkl", pickle.dumps(value, 2))

for name, x, y in (("a", 1, 2), ("b", 2, 1)):
    save(name + ".pt", {"log": {"train/loss": x, "train": {"loss": y}, 0: x, "0": y, "it's": 1,
                                None: x, "None": y, "": 1, "layers.0.weight": 1, "0.weight": 1}})
    save(f"files_{name}/a.pt", x)
    save(f"files_{name}/a.bin", y)
    save(f"mixed_{name}/a.pt", {"b": x})
    save(f"mixed_{name}/a/b.pt", y)
save("lost.pt", {"log": {}})
END
try bits a.pt a.pt
try bits --verbose a.pt b.pt
try bits --ignore train/loss --ignore 0 --ignore None a.pt b.pt
try bits --ignore "'train/loss'" --verbose a.pt b.pt
try bits --verbose a.pt lost.pt
try bits --verbose files_a files_b
try bits mixed_a mixed_b
