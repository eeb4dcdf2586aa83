# Megatron-FSDP (fsdp_dtensor): arguments and iteration are objects of the checkpoint, options of the
# optimizer stand by parameter, halves of gated weights under names of their own.
. "$TESTS_CLI/lib.sh"
d=data/dcp/fsdp
gradcmp ls $d/two
try -q $d/two $d/mixed
gradcmp --exclude linear_fc1 $d/two $d/mixed | tail -n 1
# Arguments that cannot be read are noted.
cp -R $d/two spoilt
chmod -R u+w spoilt
for file in spoilt/*.distcp; do
    for at in $(grep -abo 'argparse' "$file" | cut -d: -f1); do
        printf 'xxxxxxxx\377' | dd of="$file" bs=1 seek="$at" conv=notrunc 2>/dev/null
    done
done
gradcmp $d/two spoilt | sed -n '/^Notes/,$p'
