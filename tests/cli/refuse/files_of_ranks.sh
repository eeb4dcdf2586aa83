# What a rank's missing or damaged file takes away, and what it does not.
. "$TESTS_CLI/lib.sh"
cp -R data/safetensors/sharded data/deepspeed/stage3 .
chmod -R u+w sharded stage3
cp -R sharded without_last && rm without_last/shard-00002-*
try -q --state exp_avg sharded without_last
try -q --state exp_avg without_last sharded
truncate -s 900 stage3/global_step1/zero_pp_rank_1_mp_rank_00_model_states.pt
try --allow-same stage3 stage3 | sed -n '/Notes/,$p'
# Cut off behind the header, in it, and before.
cp data/safetensors/consolidated/model.safetensors whole.safetensors 2>/dev/null ||
    cp data/safetensors/consolidated/model-*1-of-*.safetensors whole.safetensors
for bytes in 3000 600 8 4; do
    head -c $bytes whole.safetensors >cut.safetensors
    try -q --allow-same cut.safetensors cut.safetensors
done
