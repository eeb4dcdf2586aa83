# A closed standard output is no place for a report; a reader that has seen enough is no trouble.
ln -s data/megatron/* .
closed() {
    code=0
    gradcmp "$@" 2>&1 >&- || code=$?
    echo "$*: exit $code"
}
closed s_base tp2dp2
closed --json - s_base tp2dp2
closed ls s_base
closed -q s_base tp2dp2
# Into a pipe that nobody reads: the reader is gone before the program starts.
python3 - "$GRADCMP" <<'END'
import os, subprocess, sys
for arguments in (["s_base", "bug_double_layer1"], ["--json", "-", "s_base", "bug_double_layer1"],
                  ["ls", "s_base"], ["ls", "--json", "s_base"], ["--help"]):
    reader, writer = os.pipe()
    os.close(reader)
    run = subprocess.run([sys.argv[1], *arguments], stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    print(" ".join(arguments) + ": exit", run.returncode, run.stderr.decode().strip())
END
