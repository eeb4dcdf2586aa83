#!/bin/sh
# Run the built program over the whole sample corpus and print "N passed, N failed" for each set.
#
#   tests/corpus.sh [CORPUS_DIR] [--program PATH] [--set NAME]... [--verbose]
#
# CORPUS_DIR: where the samples are; by default ../shared/corpus beside the checkout. Without one
# there is nothing to do, and that is no failure. The program: build/gradcmp, or $GRADCMP.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)

corpus=$root/../shared/corpus
case ${1-} in
'' | -*) ;;
*)
    corpus=$1
    shift
    if [ ! -d "$corpus" ]; then
        echo "corpus.sh: $corpus: no such folder" >&2
        exit 2
    fi
    ;;
esac
if [ ! -d "$corpus" ]; then
    echo "corpus.sh: no corpus at $corpus: nothing to run"
    exit 0
fi

# The manifests are YAML. A Python of another prefix may lack the module that the system's has.
python=
for candidate in "${PYTHON-}" python3 /usr/bin/python3; do
    if [ -n "$candidate" ] && "$candidate" -c 'import yaml' 2>/dev/null; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ]; then
    . "$root/tests/packages.sh"
    install_packages python3-yaml
    python=/usr/bin/python3
fi
exec "$python" "$root/tests/corpus.py" --program "${GRADCMP:-$root/build/gradcmp}" --corpus "$corpus" "$@"
