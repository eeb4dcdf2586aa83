# Names from files, and paths, stay text in every report.
. "$TESTS_CLI/lib.sh"
python3 "$TESTS_CLI/reports/hostile.py"
path="x</script><script>alert(2)</script>'\"&|/b.safetensors" # a path with slashes of its own
mkdir -p "$(dirname "$path")"
mv b.safetensors "$path"
try -q --dtype bf16 --html x.html --junit x.xml --markdown x.md --annotations github a.safetensors "$path"
python3 "$TESTS_CLI/reports/markup.py" text x.html '<script>alert(1)<.script>' '</script><script>alert(2)</script>' \
    '"><img src=x' '&lt;b&gt; &amp;' '\x0a' '\xe2\x80\xae'
python3 "$TESTS_CLI/reports/markup.py" junit x.xml
cat x.md
