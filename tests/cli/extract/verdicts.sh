. "$TESTS_CLI/lib.sh"
# An extracted checkpoint is judged like the one that it came from: with its layers, vocabulary, type
# of arithmetic, betas and step.
both() { # A B: the last line of A against B, and of each as extracted; FIRST: what to extract
    for ending in none safetensors h5; do
        candidate=$2
        if [ $ending != none ]; then
            rm -f b.*
            gradcmp extract "$2" -o b.$ending
            candidate=b.$ending
        fi
        code=0
        gradcmp "$1" "$candidate" >report 2>&1 || code=$?
        tail -n 1 report
        grep -E '^(computed in|bound)' report || :
        echo "(exit $code)"
    done
    echo
}
both data/megatron/s_base data/megatron/bug_double_layer1
both data/megatron/s_base data/megatron/tp2_pad_garbage
both data/betas/zero.pt data/betas/usual.pt
both data/previous/zero_step3.pt data/previous/usual_step3.pt
both data/megatron/tied_base data/megatron/tied_pp2
# An optimizer with numbers for names.
for ending in safetensors h5; do
    gradcmp extract data/previous/numbers.pt -o numbers.$ending
    gradcmp data/previous/numbers.pt numbers.$ending | tail -n 1
done
# A part of it: the layers that are not there count all the same.
gradcmp extract --match 'layers\.[01]\.' data/megatron/bug_double_layer1 -o part.h5
gradcmp --match 'layers\.[01]\.' data/megatron/s_base part.h5 | tail -n 1
gradcmp --match 'layers\.[01]\.' data/megatron/s_base data/megatron/bug_double_layer1 | tail -n 1
# The step before may be an extracted one.
gradcmp extract data/previous/usual_step2.pt -o before.h5
gradcmp extract data/previous/usual_step3.pt -o now.safetensors
gradcmp --previous-a before.h5 now.safetensors data/previous/zero_step3.pt | tail -n 1
# Layers that a map gave are kept.
printf '%s\n' 'rules:' '- layer: decoder\.layers\.2\..*' '  l: 4' '- layer: output_layer.*' '  l: embedding' >rules.yaml
for ending in safetensors h5; do
    gradcmp extract --state exp_avg --map rules.yaml data/megatron/s_base -o mapped.$ending
    gradcmp ls --match 'layers.2.mlp|output' mapped.$ending | sed -n '/^Tensors/,$p'
done
# Faulty metadata is damage.
for text in '"gradcmp.layers": "x"' '"gradcmp.compute": "int8"' '"gradcmp.settings": "[1]"' \
    '"gradcmp.numbers": "{}"' '"gradcmp.numbers": "[-1]"' '"gradcmp.tensor_layers": "{\"w\": -1}"' \
    '"gradcmp.settings": "{"'; do
    header="{\"__metadata__\": {\"gradcmp.version\": \"1\", $text}, \"w\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [0, 4]}}"
    # shellcheck disable=SC2059  # octal digits of the length
    { printf "\\$(printf %o ${#header})\\0\\0\\0\\0\\0\\0\\0"; printf '%s\0\0\0\0' "$header"; } >w.safetensors
    try ls w.safetensors
done
