# Files of ranks under each other's names: contents say where pieces belong, names what a resume takes.
. "$TESTS_CLI/lib.sh"
cp -R data/torch_save/fsdp2 data/torch_save/fsdp1_sharded data/torch_save/replicas \
    data/torch_save/tensor_parallel data/safetensors/per_rank .
chmod -R u+w .
for whole in fsdp2 fsdp1_sharded replicas tensor_parallel per_rank; do
    try check -q $whole
done
exchange() {
    mv "$1" other
    mv "$2" "$1"
    mv other "$2"
}
exchange fsdp2/optim_world_size_3_rank_0.pt fsdp2/optim_world_size_3_rank_1.pt
exchange fsdp1_sharded/optimizer_0_rank0.bin fsdp1_sharded/optimizer_0_rank1.bin
exchange replicas/optim_world_size_4_rank_1.pt replicas/optim_world_size_4_rank_3.pt
exchange tensor_parallel/model_world_size_4_rank_2.pt tensor_parallel/model_world_size_4_rank_3.pt
exchange per_rank/optimizer_rank0.safetensors per_rank/optimizer_rank1.safetensors
try check fsdp2 fsdp1_sharded replicas tensor_parallel per_rank
try --dtype bf16 data/torch_save/fsdp2 fsdp2 | sed -n '/Notes/,$p'
# Names that number something else tell nothing.
mv per_rank/optimizer_rank0.safetensors per_rank/optimizer_rank2.safetensors
try check -q per_rank
