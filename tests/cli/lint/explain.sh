. "$TESTS_CLI/lib.sh"
try lint --explain MG02
try lint --explain mg11
try lint --explain XX01
