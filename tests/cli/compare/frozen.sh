# Buckets hold no state of frozen weights: where sizes tell which these are, they are told as such.
. "$TESTS_CLI/lib.sh"
python3 "$TESTS_CLI/compare/frozen.py"
try told data/megatron/dr_dp2 | sed -n '/^Notes/,$p'
cp -R told again
try again told | sed -n '/^Notes/,$p'
# Other names do not hide that.
printf "rules:\n- rename: decoder\\.final_layernorm\\.weight\n  to: decoder.norm.weight\n" >rules.yaml
try --map rules.yaml again told | sed -n '/^- not/,/keeps none/p'
try open data/megatron/dr_dp2
