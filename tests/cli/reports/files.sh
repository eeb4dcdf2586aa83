# Several reports at once; nothing else than such a report is overwritten; - is standard output.
. "$TESTS_CLI/lib.sh"
ln -s data/megatron/* .
try -q --json r.json --html r.html --junit r.xml --markdown r.md s_base bug_double_layer1
ls r.*
for kind in html junit markdown; do
    gradcmp --$kind - s_base bug_double_layer1 >out.$kind || [ $? = 1 ]
done
cmp out.html r.html && cmp out.junit r.xml && cmp out.markdown r.md
# Each replaces its own kind, and no other.
try -q --html r.html --junit r.xml --markdown r.md s_base tp2dp2
head -n 3 r.md
try -q --html r.xml s_base tp2dp2
try -q --junit r.html s_base tp2dp2
try -q --markdown r.json s_base tp2dp2
try -q --json r.html s_base tp2dp2
echo '<?xml version="1.0"?><project/>' >pom.xml
try -q --junit pom.xml s_base tp2dp2
echo '{"weight_map": {}}' >model.safetensors.index.json
try -q --json model.safetensors.index.json s_base tp2dp2
cat pom.xml model.safetensors.index.json
# A failed check leaves all as it was.
cp r.md before.md
try -q --markdown r.md --html missing/r.html s_base bug_double_layer1
cmp r.md before.md
try --quiet --annotations github s_base bug_double_layer1
try check --quiet --annotations github s_base missing
find . -name '*.tmp'
