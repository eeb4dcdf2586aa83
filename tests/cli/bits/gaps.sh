# What lies between the parameters of flat buffers is memory that nobody wrote: it is told, and not
# judged. One byte of a parameter is.
. "$TESTS_CLI/lib.sh"
spoil() { # FILE BYTE: a byte that the samples do not have
    printf '\245' | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}
copy() { # NAME AS
    rm -rf "$2"
    cp -R "data/$1" "$2"
    chmod -R u+w "$2"
}
ln -s data/gathered/tp1 a
# The record of the masters begins at byte 960, the first gap in it behind 136 elements.
for byte in 1503 1504 1727 1728; do
    copy gathered/tp1 b
    spoil b/iter_0000001/__0_0.distcp $byte
    try bits --no-verify a b
done
# Masters that have nothing to do with the weights prove no layout: then all counts.
head -c 3000 /dev/zero | tr '\0' A | dd of=b/iter_0000001/__0_0.distcp bs=1 seek=1000 \
    conv=notrunc 2>/dev/null
try bits --no-verify b a
# A rank's own buffers, in files of torch.save.
ln -s data/legacy/bucket_views c
for byte in 1056 1136; do
    copy legacy/bucket_views d
    spoil d/iter_0000001/mp_rank_00/distrib_optim.pt $byte
    try bits --no-verify c d
done
# A distributed checkpoint, whose buckets have records of their own for what aligns parameters.
ln -s data/megatron/dr_dp2 dr
for byte in 120000 127872; do
    copy megatron/dr_dp2 dr_spoilt
    spoil dr_spoilt/iter_0000001/__0_0.distcp $byte
    try bits --no-verify dr dr_spoilt
done
# The last rank's part of each weight, of ZeRO stage 3: the masters' record begins at byte 3648.
ln -s data/deepspeed/stage3 e
for byte in 3875 3876 3880; do
    copy deepspeed/stage3 f
    spoil f/global_step1/zero_pp_rank_1_mp_rank_00_optim_states.pt $byte
    try bits --no-verify e f
done
