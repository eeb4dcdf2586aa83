# The table fills the terminal, between the least that holds it together and what can still be read.
ln -s data/megatron/* .
for columns in 20 80 100 300; do
    TERMINAL_COLUMNS=$columns python3 "$TESTS_CLI/terminal.py" stdout \
        gradcmp --color never s_base tp2dp2 >out.txt
    printf '%s columns: a title of ' $columns
    awk '/^ *l layer/ { print length }' out.txt
    grep -v -e '^CONSISTENT' -e '^baseline' -e '^candidate' out.txt | awk -v columns=$columns '
        columns >= 80 && length > columns { print "too long: " $0 }'
done
