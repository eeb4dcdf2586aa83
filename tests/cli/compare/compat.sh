# The one constant bound of Megatron-LM's script, 4 * 1.03^33 * 2^-7 whatever the type; a factor's
# tolerance is twice that eps. Types may be said in PyTorch's words.
. "$TESTS_CLI/lib.sh"
cp data/torch_save/tied.pt .
try --compat megatron data/torch_save/tied.pt tied.pt | grep -E '^(computed|bound|options)'
gradcmp --compat megatron --json - --quiet data/torch_save/tied.pt tied.pt |
    grep -oE '"bound": (0[.0-9]*|\{[^}]*})|"alpha_tolerance": [^,]*' | sort -u
try --dtype torch.half data/torch_save/tied.pt tied.pt | grep -E '^(computed|options)'
try --dtype float data/torch_save/tied.pt tied.pt | grep -E '^(computed|options)'
try --dtype torch.float8 data/torch_save/tied.pt tied.pt
