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
# Names that say no iteration: what the checkpoints say counts, in every command.
mkdir self
cp -RL s_base/iter_0000001 self/tp1
cp -RL tp2dp2/iter_0000001 self/tp2
chmod -R u+w self
try --quiet --iteration 1 self/tp1 self/tp2
try --iteration 5 self/tp1 self/tp2
try check --iteration 7 self/tp1
try ls --iteration 7 self/tp1
try bits --iteration 7 self/tp1 self/tp2
try bits --quiet --iteration 7 --hash prints.json self/tp1
try extract --iteration 7 -o out.safetensors self/tp1
try sweep --iteration 7 self
# So where a name says another one than the checkpoint itself; the number of an epoch is none.
mkdir saves
cp data/previous/usual_step3.pt saves/step_7.pt
cp data/previous/usual_step3.pt saves/epoch_7.pt
try check --quiet --iteration 7 saves/step_7.pt
try check --quiet --iteration 7 saves/epoch_7.pt
try check --quiet --iteration 3 saves/step_7.pt
try ls missing/checkpoint
try ls empty
try ls ''
try ''
try ls s_base/iter_0000001/__0_0.distcp
try s_base s_base/iter_0000001/common.pt
