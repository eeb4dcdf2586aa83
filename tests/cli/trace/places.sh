# Every trace below a path is compared, however deep and however many, and what is a trace's by its
# name and is not read is told.
. "$TESTS_CLI/lib.sh"
. "$TESTS_CLI/trace/make.inc"
file=rank00000_iter000001.jsonl
pair() { # NAME FOLDER C, in a NAME: the same trace on both sides, but for what combine gives in b
    ops "$1/a/$2" 0 3 4 5
    ops "$1/b/$2" 0 "$3" 4 5
}

pair many t0 3
for i in $(seq 70); do
    cp -R many/a/t0 many/a/t$i
    cp -R many/b/t0 many/b/t$i
done
ops many/b/t70 0 6 4 5
try trace --quiet many/a many/b

pair deep top 3
pair deep x/y/ops 6
try trace deep/a deep/b
ln -s .. deep/a/x/up
try trace --quiet deep/a deep/a

pair beside . 3
pair beside ops 6
try trace beside/a beside/b
rm -r beside/b/ops
try trace --quiet beside/a beside/b

# The second rank's file in another form, alike on both sides.
for form in $file.gz $file.tmp rank00001_iter000001 rank_000001.jsonl.zst dump.json.gz; do
    rm -rf forms
    pair forms . 3
    for side in a b; do
        echo $side >forms/$side/$form
    done
    try trace --quiet forms/a forms/b
done
try trace --lenient --quiet forms/a forms/b

# Other files beside a trace, a profile among them, are nobody's business.
rm -r forms
pair forms . 3
for side in a b; do
    mkdir forms/$side/profile
    echo '{"schemaVersion": 1, "traceEvents": []}' >forms/$side/profile/rank0.json
    for name in rank0_trace.json.gz rank0.1700000000.pt.trace.json.gz rank0.json.gz; do
        echo $side >forms/$side/profile/$name
    done
    echo $side >forms/$side/rank0.log
    echo "{\"side\": \"$side\"}" >forms/$side/rank0_config.json
done
try trace --quiet forms/a forms/b

# A folder that leads out is told.
pair closed . 3
pair out ops 6
for side in a b; do
    ln -s "$PWD/out/$side/ops" closed/$side/ops
done
try trace closed/a closed/b

# Deep below, neither what cannot be opened nor another object under a trace's name is a trace.
for side in a b; do
    mkdir -p forms/$side/x/y
    ln -s /etc/hostname forms/$side/x/y/tokenizer.json
    mkfifo forms/$side/x/y/s.json
    echo '{"loss": 1.5}' >forms/$side/x/y/rank0_step5.json
done
try trace --quiet forms/a forms/b
for side in a b; do
    : >forms/$side/x/y/rank0_step5.json
done
try trace --quiet forms/a forms/b

# msprobe's folders: of a run without process groups, and without what was dumped.
dump single/a/step0/rank 1.0
dump single/b/step0/rank 2.0
try trace --quiet single/a single/b
for side in a b; do
    dump debug/$side/step0/rank 1.0
    cp debug/$side/step0/rank/dump.json debug/$side/step0/rank/debug.json
done
try trace --quiet debug/a debug/b
for side in a b; do
    dump ranks/$side/step0/rank0 1.0
    mkdir -p ranks/$side/step0/rank1
done
try trace --quiet ranks/a ranks/b
for side in a b; do
    dump ranks/$side/step0/rank1 1.0
    mkdir ranks/$side/step1
done
try trace --quiet ranks/a ranks/b
for side in a b; do
    rmdir ranks/$side/step1
    ops ranks/$side/step0/rank1 0 3 4 5
done
ops ranks/b/step0/rank1 0 6 4 5
try trace --quiet ranks/a ranks/b
