gradcmp lint --json - data/lint/launch.sh
