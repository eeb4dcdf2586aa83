cli=$TESTS_CLI/../../src/cli
${CC:-cc} -std=c11 -D_GNU_SOURCE -I"$TESTS_CLI/../../src" -I"$TESTS_CLI/../../include" -o units \
    "$TESTS_CLI/units.c" \
    "$cli/number.c" "$cli/suggest.c" "$cli/progress.c" "$cli/interrupt.c" "$cli/message.c" -lm
./units
