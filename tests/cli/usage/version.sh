# What the build can do differs from machine to machine; the form does not.
gradcmp --version >version.txt
head -n 1 version.txt
grep -c -E '^(formats: .*torch_dist|kernels: scalar)' version.txt
awk 'length > 80' version.txt
gradcmp -V >first.txt
gradcmp ls --version >second.txt
cmp version.txt first.txt
cmp first.txt second.txt
