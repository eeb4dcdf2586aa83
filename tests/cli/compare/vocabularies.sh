# The size of the vocabulary is that of the run's own tables: those of another vocabulary are compared
# whole, and where they cannot be told apart, rows that one side lacks must be nothing.
. "$TESTS_CLI/lib.sh"
python3 "$TESTS_CLI/compare/vocabularies.py"
compared() {
    try --dtype fp32 --vocab 70 "$@" | sed -n '/^compared/p; /^Notes/,/^$/p; /^[A-Z]*: /p'
}
compared more_a.safetensors more_b.safetensors
compared more_a.safetensors more_off.safetensors
compared more_b.safetensors longer_b.safetensors
compared fewer_a.safetensors fewer_b.safetensors
# Every copy of the padding is looked at.
compared whole nan
