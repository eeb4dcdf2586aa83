# One line: the file, the byte, what was expected and what was found.
. "$TESTS_CLI/lib.sh"
ln -s data/megatron/* .
copy_checkpoint tp2dp2 no_shard && rm no_shard/iter_0000001/__1_0.distcp
copy_checkpoint tp2dp2 cut_shard && truncate -s 3000 cut_shard/iter_0000001/__1_0.distcp
copy_checkpoint tp2dp2 empty_shard && : >empty_shard/iter_0000001/__1_0.distcp
copy_checkpoint tp2dp2 unfinished && rm unfinished/iter_0000001/.metadata
copy_checkpoint tp2dp2 cut_metadata && truncate -s 5000 cut_metadata/iter_0000001/.metadata
copy_checkpoint tp2dp2 no_metadata_json && rm no_metadata_json/iter_0000001/metadata.json
copy_checkpoint tp2dp2 no_common && rm no_common/iter_0000001/common.pt
for damaged in no_shard cut_shard empty_shard unfinished cut_metadata no_metadata_json no_common; do
    try -q s_base $damaged
    try -q $damaged s_base
done
