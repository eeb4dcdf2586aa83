# Another build of the same version may judge otherwise: what it judged is not taken over.
. "$TESTS_CLI/lib.sh"
mkdir runs
for name in s_base tp2dp2; do
    copy_checkpoint $name runs/$name
done
python3 "$TESTS_CLI/sweep/other_build.py" "$(readlink -f "$GRADCMP")" other
for folder in none other other none; do
    echo "- $folder"
    LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} gradcmp sweep --resume state runs |
        grep '^read\|^taken over\|^SWEEP'
done
