# That the same events came is a match only where the tensors of some were fingerprinted.
. "$TESTS_CLI/lib.sh"
. "$TESTS_CLI/trace/make.inc"
# dump FOLDER RANK LEVEL IN OUT, where the latter two are lists of tensors
dump() {
    mkdir -p "$1/step0/rank$2"
    printf '{"task":"statistics","level":"%s","data":{"Functional.linear.0.forward":' "$3" \
        >"$1/step0/rank$2/dump.json"
    printf '{"input_args":[%s],"input_kwargs":{"bias":null},"output":[%s]}}}\n' "$4" "$5" \
        >>"$1/step0/rank$2/dump.json"
}
# tensor MAX MD5
tensor() {
    printf '{"type":"torch.Tensor","dtype":"torch.float32","shape":[2],"Max":%s,"Min":%s,' "$1" "$1"
    printf '"Mean":%s,"Norm":%s,"requires_grad":false%s}' "$1" "$1" "$2"
}
good=$(tensor 1.5 '') null=$(tensor null '') both=$(tensor null ',"md5":null')
digest=$(tensor null ',"md5":"0a0b0c0d"')
dump none 0 L1 '' ''
dump null 0 L1 "$null" "$null"
dump both 0 L1 "$both" "$both"
dump half 0 L1 "$good" "$both"
dump digest 0 L1 "$digest" "$digest"
dump ranks 0 L1 "$good" "$good"
dump ranks 1 L1 '' ''
dump module 0 L0 "$good" "$good"
dump api 0 L1 "$good" "$good"
for name in none null both half digest ranks; do
    try trace $name $name
done
try trace --lenient none none
try trace module api
mkdir skipped
op 0 1 0 op embed 1 embedding forward 1 2 |
    sed 's/"digest":"[0-9]*"/"digest":"skipped_oversize"/g' >skipped/rank00000_iter000001.jsonl
try trace skipped skipped
