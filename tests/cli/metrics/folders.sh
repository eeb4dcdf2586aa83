# Event files in folders below those of a run are of the run, as TensorBoard's add_scalars makes them.
. "$TESTS_CLI/lib.sh"
run() { # FOLDER OF-ITSELF [PART OF-PART]...
    mkdir -p "$1"
    cp data/metrics/$2/events* "$1"
    folder=$1
    shift 2
    while [ $# -gt 0 ]; do
        mkdir "$folder/$1"
        cp data/metrics/$2/events* "$folder/$1"
        shift 2
    done
}
run a a loss_train a
run b a loss_train ulp
try metrics a b
try metrics --quiet a a
try metrics --match '^loss_train//lm' a b

# Folders that are named by the time are on one side each, and are told.
run c a 1700000000.5 ulp
run d a 1800000000.5 ulp
try metrics c d
try metrics --quiet c a

# The same one level down, where a folder of runs holds one.
mkdir e f
cp -R a e/run1
cp -R b f/run7
try metrics --quiet e f
try metrics --quiet a e
cp -R a e/run2
try metrics --quiet e f

# Beside another kind of source.
try metrics b data/metrics/run.log

# What is damaged in a folder counts where the folder is judged.
run g a
run h a
mkdir g/bad
head -c 100 data/metrics/a/events* >g/bad/events.out.tfevents.1.x
try metrics g h
cp -R g/bad h/bad
try metrics --quiet g h

# What is empty, leads out or lies deeper is told.
rm -r g/bad h/bad
for side in g h; do
    mkdir -p $side/x out/$side/z $side/val/losses
    : >$side/x/events.out.tfevents.1.x
    ln -s "$PWD/out/$side/z" $side/validation
done
cp data/metrics/a/events* out/g/z
cp data/metrics/ulp/events* out/h/z
cp data/metrics/a/events* g/val/losses
cp data/metrics/ulp/events* h/val/losses
try metrics g h
