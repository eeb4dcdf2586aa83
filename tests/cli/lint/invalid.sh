. "$TESTS_CLI/lib.sh"
printf 'export A="1\n' >quote.sh
printf 'a: 1\na: 2\n' >twice.yaml
printf '{"seed": 1, "seed": 2}' >twice.json
: >empty.env
printf 'hello\n' >hello.txt
for file in quote.sh twice.yaml twice.json empty.env hello.txt missing data/safetensors; do
    gradcmp lint "$file" >out && echo "passed: $file"
    tail -1 out
done
try lint
try lint --pair data/lint/launch.sh
try lint --rules megatrn data/lint/launch.sh
