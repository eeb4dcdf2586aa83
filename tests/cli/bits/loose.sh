. "$TESTS_CLI/lib.sh"

# A safetensors file: safetensors FILE HEADER BYTES
safetensors() {
    # shellcheck disable=SC2059  # octal digits of the length; bytes
    { printf "\\$(printf %o ${#2})\\0\\0\\0\\0\\0\\0\\0"; printf '%s' "$2"; printf "$3"; } >"$1"
}
header='{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'

# Weights in safetensors beside an optimizer of torch.save: as a trainer writes them.
for run in a same other; do
    mkdir $run
    cp data/torch_save/groups.pt $run/optimizer.pt
    safetensors $run/model.safetensors "$header" 'aaaabbbb'
done
safetensors other/model.safetensors "$header" 'aaaabbbc'
try bits a same
try bits a other
try bits --quiet --hash prints.json a
try bits --quiet --hash prints.json other

# Damage is told, not passed over.
mkdir cut
cp a/optimizer.pt cut/
safetensors cut/model.safetensors "$header" 'aaaab'
try bits --quiet a cut

# A file that the index does not name is no part of the checkpoint, and is named.
mkdir extra
cp data/safetensors/consolidated/model* extra/
safetensors extra/more.safetensors "$header" 'aaaabbbb'
try bits data/safetensors/consolidated extra

# Types that nobody reads: their bytes are compared, and compare says that it does not judge them.
odd='{"layers.0.v":{"dtype":"F8_E8M0","shape":[4],"data_offsets":[8,12]},'
odd=$odd'"layers.0.w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
safetensors odd1.safetensors "$odd" 'aaaabbbbcccc'
safetensors odd2.safetensors "$odd" 'aaaabbbbcccd'
try bits odd1.safetensors odd1.safetensors
try bits odd1.safetensors odd2.safetensors
try --state param odd1.safetensors odd2.safetensors
other_type=$(echo "$odd" | sed 's/F8_E8M0/F8_E4M3FNUZ/; s/,"data_offsets":\[8,12\]/ ,"data_offsets":[8,12]/')
safetensors odd3.safetensors "$other_type" 'aaaabbbbcccc'
try bits odd1.safetensors odd3.safetensors
