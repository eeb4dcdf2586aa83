# The file of --resume: damaged and foreign ones are one line and stay as they are; what is finished
# when the sweep is interrupted is in it.
. "$TESTS_CLI/lib.sh"
mkdir runs
for name in s_base tp2dp2 fr_pp2dp2; do
    copy_checkpoint $name runs/$name
done
try sweep -q --resume state runs
cp state whole
# A byte less, a byte changed, a byte more, only the head, an empty file.
size=$(wc -c <whole)
head -c "$((size - 1))" whole >state
try sweep -q --resume state runs
{ head -c 3000 whole && printf 'X' && tail -c +3002 whole; } >state
try sweep -q --resume state runs
{ cat whole && printf 'X'; } >state
try sweep -q --resume state runs
head -c 30 whole >state
try sweep -q --resume state runs
: >state
try sweep -q --resume state runs
cmp state whole && echo the same file again
# Not ours: never overwritten.
echo '{"schema": 1}' >state
try sweep -q --resume state runs
cat state
try sweep -q --resume runs runs
try sweep -q --resume none/state runs
mkfifo pipe
try sweep -q --resume pipe runs
try sweep -q --resume - runs
try sweep -q --resume '' runs
try sweep --resume same --json same runs
try sweep --resume
try --resume state runs/s_base runs/tp2dp2
try sweep --resume state2 --previous-a runs/s_base runs
# A link is followed, and stays one.
ln -s real link
try sweep -q --resume link runs
[ -L link ] && [ -s real ] && echo link and file
# An interrupt: what is there stays usable.
make_shim
cp whole state
rm -r runs/fr_pp2dp2
copy_checkpoint dr_dp2 runs/dr_dp2
code=0
shimmed SHIM_SIGNAL=2 "$GRADCMP" sweep --resume state --json report.json runs 2>&1 || code=$?
echo "exit $code"
grep '"unfinished"\|"taken_over"\|"label"' report.json
cmp state whole && echo as it was
try sweep --resume state runs
ls -A | grep -i 'tmp\|state\.' || echo nothing else
