. "$TESTS_CLI/lib.sh"
# States that another format's file lost are told, whatever else is kept elsewhere and left out.
gradcmp extract data/torch_save/numbers.pt -o all.safetensors >/dev/null
gradcmp extract --state exp_avg data/torch_save/numbers.pt -o averages.safetensors >/dev/null
for kept in all averages; do
    try bits data/torch_save/numbers.pt $kept.safetensors
done
# A trainer's folder whose optimizer is gone is read by what is left.
cp -R data/torch_save/trainer whole
cp -R whole lost
rm lost/checkpoint-1/optimizer.pt
try bits -q whole lost
try bits -q lost whole
