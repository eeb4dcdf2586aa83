# Betas that are none are told: 1, below 0, NaN.
. "$TESTS_CLI/lib.sh"
python3 - <<'P'
import struct, zipfile

for name, beta in ("one", 1.0), ("negative", -3.0), ("nan", float("nan")):
    with zipfile.ZipFile("data/betas/usual.pt") as old, zipfile.ZipFile(name + ".pt", "w") as new:
        for item in old.namelist():
            content = old.read(item)
            if item.endswith("data.pkl"):
                content = content.replace(struct.pack(">d", 0.9), struct.pack(">d", beta))
            new.writestr(item, content)
P
for file in one negative nan; do
    echo $file
    gradcmp ls $file.pt | grep 'beta. of'
done
gradcmp ls data/betas/usual.pt | grep -c 'beta. of' || true
try data/betas/usual.pt one.pt
