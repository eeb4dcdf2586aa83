. "$TESTS_CLI/lib.sh"
run=data/resume/run

# However deep a file lies, a resume may read it.
for side in a b; do
    mkdir -p $side/1/2/3/4/5/6/7/8/9
    cp ${run}_a/step_1.pt $side/model.pt
    cp ${run}_$side/step_3.pt $side/1/2/3/4/5/6/7/8/9/state.pt
done
try bits a b
try bits --quiet --hash prints.json a
try bits --quiet --hash prints.json b

# A folder that by a link lies in itself holds nothing else; one with two names is looked at twice.
mkdir loop
cp ${run}_a/step_1.pt loop/model.pt
cp -R loop plain
mkdir loop/below
ln -s .. loop/below/again
ln -s . loop/latest
try bits loop plain
mkdir loop/data plain/data
cp ${run}_a/step_2.pt loop/data/state.pt
cp ${run}_a/step_2.pt plain/data/state.pt
ln -s data loop/second
try bits loop plain

# A link that leads nowhere is told, and what no name reaches is not passed over.
mkdir long short
cp ${run}_a/step_1.pt long/model.pt
cp ${run}_a/step_1.pt short/model.pt
ln -s gone short/rng.state
try bits short long
rm short/rng.state
python3 -c '
import os
os.chdir("long")
for i in range(17):
    os.mkdir("0" * 250)
    os.chdir("0" * 250)'
try bits short long | sed 's/0\{50,250\}/LONG/g'
