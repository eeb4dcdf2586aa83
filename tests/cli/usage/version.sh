gradcmp --version | sed 's/: [a-z].*/: .../'
gradcmp -V >first.txt
gradcmp ls --version >second.txt
cmp first.txt second.txt
gradcmp --version | grep -c -E '^(formats: .*torch_dist|kernels: scalar)'
