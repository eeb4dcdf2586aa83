# Float32 masters in flat buffers must have to do with the weights, or the layout is not proved.
. "$TESTS_CLI/lib.sh"
cp -R data/gathered/tp1 spoilt
chmod -R u+w spoilt
ln -s data/gathered/tp2 tp2
shard=iter_0000001/__0_0.distcp
# The record of the masters begins at byte 960: letters in place of most of it.
head -c 3000 /dev/zero | tr '\0' A | dd of=spoilt/$shard bs=1 seek=1000 conv=notrunc 2>/dev/null
try -q tp2 spoilt
try check spoilt
try ls spoilt
