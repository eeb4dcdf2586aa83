gradcmp lint data/lint/launch.sh
