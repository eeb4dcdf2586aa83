# Bars beyond ASCII only where the locale has them; figures are the same in all.
ln -s data/megatron/* .; mv s_base modèle
for locale in C C.UTF-8; do
    LC_ALL=$locale gradcmp modèle tp2dp2 | sed -n '/^baseline/p; /^Layers/,$p'
done
