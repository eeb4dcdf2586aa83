# Codes of quantised weights are no values: equal codes with other scales are other weights.
. "$TESTS_CLI/lib.sh"
write() { # FILE HEADER BYTES: one tensor's data of zeros, behind a header padded to 256 bytes
    { printf '\000\001\000\000\000\000\000\000%-256s' "$2"; head -c "$3" /dev/zero; } >"$1"
}
mkdir fp8 fp8b mxfp4 mxfp4b
fp8='{"a.weight":{"dtype":"F8_E4M3","shape":[2,2],"data_offsets":[0,4]},"a.weight_scale_inv":{"dtype":"F32","shape":[1,1],"data_offsets":[4,8]}}'
mxfp4='{"a_blocks":{"dtype":"U8","shape":[1,4],"data_offsets":[0,4]},"a_scales":{"dtype":"U8","shape":[4],"data_offsets":[4,8]},"norm":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}}'
for folder in fp8 fp8b; do write $folder/model.safetensors "$fp8" 8; done
for folder in mxfp4 mxfp4b; do write $folder/model.safetensors "$mxfp4" 16; done
printf x | dd of=fp8b/model.safetensors bs=1 seek=264 conv=notrunc 2>/dev/null
printf x | dd of=mxfp4b/model.safetensors bs=1 seek=264 conv=notrunc 2>/dev/null
try -q --state param fp8 fp8b
try -q --state param mxfp4 mxfp4b
try ls mxfp4
