# Parts of a DeepSpeed checkpoint of another step: of the optimizer, and model files of further ranks.
. "$TESTS_CLI/lib.sh"
cp -r data/deepspeed/stage1_bf16 part
cp -r data/deepspeed/stage3 model
chmod -R u+w part model
python3 - <<'EOF'
import zipfile

def rewritten(path, end, change):
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, entry in entries.items():
            changed = change(entry) if name.endswith(end) else entry
            assert changed != entry or not name.endswith(end)
            archive.writestr(name, changed)

ONE, SEVEN = b"\x00\x00\x80\x3f", b"\x00\x00\xe0\x40"  # float32
rewritten("part/global_step1/bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt", "/data/0",
          lambda entry: entry.replace(ONE, SEVEN))
rewritten("model/global_step1/zero_pp_rank_1_mp_rank_00_model_states.pt", "/data.pkl",
          lambda entry: entry.replace(b"global_stepsq\xc6K\x01", b"global_stepsq\xc6K\x07"))
EOF
try check -q data/deepspeed/stage1_bf16
try check part
try -q data/deepspeed/stage3 model
