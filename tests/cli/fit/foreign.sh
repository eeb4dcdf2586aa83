# A fit that does not apply is refused or noted; one that is damaged is refused with its line.
. "$TESTS_CLI/lib.sh"
gradcmp fit -q -o noise.yaml data/megatron/s_base data/megatron/tp2dp2
try -q --fit noise.yaml --dtype fp32 data/megatron/s_base data/megatron/tp2dp2
try -q --fit noise.yaml data/megatron/moe_base data/megatron/moe_tp2ep2
try -q --fit noise.yaml --state exp_avg_sq data/megatron/s_base data/megatron/tp2dp2
try --fit noise.yaml data/megatron/tied_base data/megatron/tied_pp2 | grep -A1 -i 'fit'
try -q --fit noise.yaml --k 2 data/megatron/s_base data/megatron/tp2dp2
try -q --fit no_such.yaml data/megatron/s_base data/megatron/tp2dp2
spoil() {
    sed "$1" noise.yaml >spoilt.yaml
    try -q --fit spoilt.yaml data/megatron/s_base data/megatron/tp2dp2
}
spoil 's/^k:.*/k: many/'
spoil 's/^k:.*/k: -1/'
spoil 's/^k:.*/k: 1e99/'
spoil 's/^C:.*/C: 0.9/'
spoil 's/^k:/kk:/'
spoil '/^k:/d'
spoil 's/^layers:/k: 1\nlayers:/'
spoil 's/^gradcmp_fit: 1/gradcmp_fit: 2/'
spoil 's/^dtype:.*/dtype: int32/'
spoil 's/^names_sha256: "./names_sha256: "x/'
spoil 's/^looser_than_theory:.*/looser_than_theory: maybe/'
spoil 's/^  5: .*/  5: 3/'
spoil 's/^  5: /  five: /'
spoil 's/^\(  "decoder.final_layernorm.weight"\): .*/\1: "0.1"/'
spoil 's/^\(  "decoder.final_layernorm.weight"\): .*/\1: .inf/'
spoil 's/^good:/good: []/; /^  - /d'
spoil '1,$d'
