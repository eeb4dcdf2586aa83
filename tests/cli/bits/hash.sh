. "$TESTS_CLI/lib.sh"
try bits --hash file data/resume/together.pt
try bits --hash file data/resume/apart data/resume/together.pt
cat file
# Any sharding has the same.
try bits --hash tp2 data/npu/numpy_tp2
try bits --hash tp2 data/npu/tag_tp2pp2 | grep -v 'left out$'
try bits --hash tp2 data/npu/numpy_tp2
try bits --hash tp2 data/npu/base | tail -n 3
try bits --hash state data/resume/a.pt data/resume/same.pt data/resume/negzero.pt
# Damaged and foreign files are no answer.
sed 's/exp_avg/exp_avh/' file >changed
head -c 300 file >cut
echo '{}' >foreign
# Of another schema: paths were spelled otherwise.
sed 's/"schema": 3/"schema": 1/' file >schema1
sed 's/"schema": 3/"schema": -2/' file >schema2
mkdir folder
for name in changed cut foreign schema1 schema2 folder nowhere/file; do
    try bits --hash $name data/resume/together.pt
done
rm -rf data
ls
