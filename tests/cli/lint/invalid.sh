. "$TESTS_CLI/lib.sh"
printf 'export A="1\n' >quote.sh
printf 'a: 1\na: 2\n' >twice.yaml
printf '{"seed": 1, "seed": 2}' >twice.json
: >empty.env
printf 'hello\n' >hello.txt
awk 'BEGIN { for (i = 0; i < 65537; i++) print "key" i ": 1" }' >many.yaml
for file in many.yaml quote.sh twice.yaml twice.json empty.env hello.txt missing data/safetensors; do
    gradcmp lint "$file" >out && echo "passed: $file"
    tail -1 out
done
try lint
try lint --pair data/lint/launch.sh
try lint --rules megatrn data/lint/launch.sh
