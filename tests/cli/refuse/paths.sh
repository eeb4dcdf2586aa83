. "$TESTS_CLI/lib.sh"
ln -s data/megatron/* .
mkdir empty
echo text >file
try s_base missing/checkpoint
try missing/checkpoint s_base
try s_base empty
try empty s_base
try s_base file
try s_base s_base
try s_base s_base/iter_0000001
# Hard links are the same bytes under another name.
copy_checkpoint s_base original
cp -al original linked
try original linked
try --iteration 7 s_base tp2dp2
try ls missing/checkpoint
try ls empty
try ls ''
try ''
try ls s_base/iter_0000001/__0_0.distcp
try s_base s_base/iter_0000001/common.pt
