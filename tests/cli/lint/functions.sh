gradcmp lint data/lint/functions.sh
