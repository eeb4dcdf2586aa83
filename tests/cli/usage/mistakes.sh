# Every mistake is one line that says what was expected, and exit 2.
. "$TESTS_CLI/lib.sh"
mkdir a
try
try a
try compare
try compare a
try ls
try ls a b
try frobnicate a b
try lss a
try comapre a b
try -v ls a
try --jsn x a b
try --max-bund 1 a b
try --wholly-unknown a b
try ls --top 3 a
try -z a b
try -vz a b
try --k 4x a b
try --k= a b
try --k nan a b
try --k 0 a b
try --C -1 a b
try --max-bound 0x1p3 a b
try --max-bound 1e999 a b
try --top 0 a b
try --top 1.5 a b
try --threads 99999999999 a b
try --vocab 18446744073709551616 a b
try --iteration -1 a b
try --buffers 4Mib2 a b
try --buffers 0 a b
try --buffers 99999999TiB a b
try --dtype int8 a b
try --compat torch a b
try --color sometimes a b
try --strict=yes a b
try --match
try --match= a b
try ls --as int8 a
# What would take too long to compile or to match is refused before.
cp data/betas/zero.pt one.pt
cp data/betas/zero.pt two.pt
try --match 'a{1,255}{1,255}{1,255}' one.pt two.pt
try --exclude '((a|b)?){1,9999}' one.pt two.pt
try metrics --match '(a*)*\1' data/metrics/golden.json data/metrics/golden_outside.json
# What steers a terminal is spelled out.
try "$(printf 'no\033[31m\nsuch')" b | tail -n 3
try "$(printf 'no\302\23331m \233 \342\200\256 \377\303\274')" b | tail -n 3
# What decides is never dropped silently: not the first of two, not a directory meant as a file.
try --k 3 --k 4 a b
try --match x --match y a b
try --json one --json two a b
try --verify --no-verify a b
try a a --json a
try check a --json a
try --html= a b
try --html
try --junit-level row a b
try --annotations gitlab a b
try --html - --junit - a b
try --html same --markdown same a b
try --html same --markdown ./same a b
try --html a a a
# The same twice is one; the last of --color, --threads, --top and the like holds.
try --k 3 --k 3 --color never --color always --threads 1 --threads 2 a b 2>&1 | tail -n 3
# The report's file is the next argument, which may have been meant for a checkpoint.
echo x >a.pt; echo x >b.pt
try --json a.pt b.pt
# What says how to do something that was not asked for.
try ls --side baseline a
try check --side candidate a
try extract --side baseline a -o b.safetensors
try ls --as float32 a
try extract --format hdf5 a -o b.safetensors
try extract --format safetensors a -o b.hdf5
