# The page is well-formed, loads nothing, and holds each parameter once, a dot and a row.
. "$TESTS_CLI/lib.sh"
ln -s data/megatron/* .
show() {
    python3 "$TESTS_CLI/reports/markup.py" html "$1"
}
try -q --html good.html s_base tp2dp2
show good.html
try -q --html bad.html --k 3.5 --exclude 'no such|"name'"'" s_base bug_double_layer1
show bad.html
# The command that the page shows makes the same page.
python3 - <<'END' >again.sh
import html
import re
text = open("bad.html", encoding="utf-8").read()
print(html.unescape(re.search(r'<pre id="command">(.*?)</pre>', text, re.S)[1]), "--html again.html -q")
END
sh ./again.sh || [ $? = 1 ]
cmp bad.html again.html
try -q --html several.html s_base tp2dp2 missing bug_double_layer1 bug_nan_fc2_2
show several.html
try check -q --html check.html s_base missing
show check.html
# The same bytes for any threads and locale.
gradcmp -q --threads 1 --html one.html --junit one.xml --markdown one.md s_base bug_double_layer1 || true
LC_ALL=C.UTF-8 gradcmp -q --threads 3 --html three.html --junit three.xml --markdown three.md s_base bug_double_layer1 || true
cmp one.html three.html && cmp one.xml three.xml && cmp one.md three.md
