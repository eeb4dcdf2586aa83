# How many digits a value is known to: JSON and many writers of CSV leave zeros at the end out.
. "$TESTS_CLI/lib.sh"
golden() { # FILE METRIC VALUE...
    file=$1 metric=$2 step=0
    shift 2
    for value in "$@"; do
        step=$((step + 1))
        printf '%s"%s": %s' "$([ $step = 1 ] || printf ', ')" $step "$value"
    done >values
    printf '{"%s": {%s}}\n' "$metric" "$(cat values)" >"$file"
}
csv() { # FILE METRIC VALUE...
    file=$1 step=0
    printf 'step,%s\n' "$2" >"$file"
    shift 2
    for value in "$@"; do
        step=$((step + 1))
        printf '%s,%s\n' $step "$value" >>"$file"
    done
}

# Golden values were rounded at five decimals, however few are left.
golden a.json grad-norm 0.0 0.0
csv b.csv grad-norm 0.4321234 0.3
try metrics a.json b.csv
try metrics --quiet b.csv a.json
golden a.json learning-rate 0.0003 0.0003
csv b.csv learning-rate 3.4E-04 3.4E-04
try metrics --quiet a.json b.csv
golden a.json loss-scale 1.0 1.0
csv b.csv loss-scale 1.00000001 1.4
try metrics --quiet a.json b.csv
golden a.json loss 2.34568 2.0
csv b.csv loss 2.345678 2.000004
try metrics a.json b.csv

# A short value in a column of longer ones.
csv a.csv loss 2.3456789 2.0 1.9876543
golden b.json loss 2.3456789 2.0499 1.9876543
try metrics a.csv b.json
golden b.json loss 2.34567892 2.00000001 1.98765434
try metrics a.csv b.json
csv a.csv loss 3 2
golden b.json loss 3.4 2.3
try metrics a.csv b.json

# Six digits of each value, wherever they stand.
csv a.csv loss 2.34568 12.3457 1.5 1200 1e-05
golden b.json loss 2.3456789 12.345678 1.5000012 1200.0012 0.000010000001
try metrics a.csv b.json

# As many digits as a float32 needs, for some values one more than for others.
csv a.csv loss 0.1 0.123456791
golden b.json loss 0.10000000149011612 0.12345679104328156
try metrics a.csv b.json

# Rows that were printed at four decimals, before a last one in full.
four="2.3457 2.1235 1.9877 1.8766 1.7655 1.6544 1.5433 1.4322 1.3211 1.2346"
csv a.csv loss $four 1.0123456789
golden b.json loss 2.34567 2.12346 1.98767 1.87657 1.76547 1.65437 1.54327 1.43217 1.32114 1.23456 \
    1.0123456789
try metrics --quiet a.csv b.json
csv a.csv loss 2.3400 2.1235 1.0123456789
golden b.json loss 2.34003 2.12346 1.0123456789
try metrics --quiet a.csv b.json
golden b.json loss 2.34007 2.12346 1.0123456789
try metrics --quiet a.csv b.json

# The same value all along has its zeros left out.
csv a.csv lr 0.00012345 0.0003 0.0003 0.0003 0.0003 0.0003 0.0003 0.0003 0.0003 0.0003 0.0003 0.0003
golden b.json lr 0.00012345 0.0003 0.0003 0.0003 0.0003 0.0003 0.0003 0.0003 0.0003 0.0003 0.00034 \
    0.0003
try metrics --quiet a.csv b.json
