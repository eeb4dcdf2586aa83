# A JSON file is there whole or not at all, and nothing else is touched.
. "$TESTS_CLI/lib.sh"
ln -s data/megatron/* .
mkdir folder locked
echo 'precious' >notes.txt
try -q --json=folder s_base tp2dp2
try -q --json missing/report.json s_base tp2dp2
try -q --json notes.txt s_base tp2dp2
cat notes.txt
try -q --json notes.txt/report.json s_base tp2dp2
# A run that fails keeps the old report.
echo '{"schema": 1, "old": true}' >report.json
try -q --json report.json missing/baseline tp2dp2
cat report.json
# A good one replaces it, through a link, and keeps the mode.
mv report.json folder/report.json
chmod 640 folder/report.json
ln -s folder/report.json report.json
try -q --json report.json s_base tp2dp2
[ -L report.json ] && stat -c %a folder/report.json
head -n 4 folder/report.json
# Empty files and new ones are written; pipes and devices are written in place.
: >empty.json
try -q --json empty.json s_base tp2dp2
try -q --json new.json s_base tp2dp2
cmp empty.json new.json
cmp new.json folder/report.json
mkfifo pipe
cat pipe >from_pipe.json &
try -q --json pipe s_base tp2dp2
wait
cmp from_pipe.json new.json
try -q --json /dev/null s_base tp2dp2
[ -c /dev/null ] && [ -p pipe ]
# Even an unreadable candidate has its place in the document.
try -q --json error.json s_base missing/candidate
sed -n '/"candidates"/,$p' error.json
find . -name '*.tmp'
