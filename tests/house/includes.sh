#!/bin/sh
# Check who includes whom: the layers of the source, as each folder's README states them.
#   includes.sh SOURCE_ROOT
set -eu
cd "$1"

# For each folder, the beginnings of the headers that its own files may quote. The program (cli) is
# a user of the library like any other.
rules='
include/gradcmp      gradcmp/
include/gradcmp/sys  gradcmp/
src/base             base/ gradcmp/
src/kernels          kernels/ base/ gradcmp/
src/engine           engine/ kernels/ base/ gradcmp/
src/report           report/ base/ gradcmp/
src/bits             bits/ engine/ report/ formats/ unshard/ base/ gradcmp/ checkpoint.h
src/trace            trace/ report/ base/ gradcmp/
formats              formats/ base/ gradcmp/
unshard              unshard/ base/ gradcmp/
bounds               bounds/ base/ gradcmp/
gpu                  gpu/ base/ gradcmp/ kernels/lane
src/lint             lint/ report/ base/ gradcmp/
src/metrics          metrics/ report/ base/ gradcmp/
src/cli              cli/ gradcmp/gradcmp.h base/utf8.h
src/mpi              base/ gradcmp/
src/h5helper         h5helper/ formats/hdf5_wire base/ gradcmp/
'

# shellcheck disable=SC2016  # awk.s own dollars
for folder in include src formats unshard bounds gpu; do
    [ ! -d $folder ] || find $folder -name '*.[ch]' -o -name '*.cu'
done | sort |
    RULES=$rules xargs awk '
    BEGIN {
        lines = split(ENVIRON["RULES"], line, "\n")
        for (i = 1; i <= lines; i++) {
            if (split(line[i], word, " ") > 1) {
                allowed[word[1]] = " " substr(line[i], length(word[1]) + 1) " "
            }
        }
    }
    FNR == 1 {
        files++
        folder = FILENAME
        sub("/[^/]*$", "", folder)
        if (!(folder in allowed) && folder != "src") {
            complain("no rule for folder " folder)
        }
    }
    function complain(text) {
        print FILENAME ":" FNR ": " text
        failed = 1
    }
    /^[ \t]*#[ \t]*include[ \t]*"/ {
        split($0, quoted, "\"")
        header = quoted[2]
        count = split(allowed[folder], word, " ")
        permitted = folder == "src" # joins the others
        for (i = 1; i <= count; i++) {
            permitted = permitted || index(header, word[i]) == 1
        }
        if (!permitted || header ~ /\.\./) {
            complain("may not include \"" header "\"")
        }
    }
    # Our own headers are quoted, or the rule above would not see them.
    /^[ \t]*#[ \t]*include[ \t]*<(gradcmp|base|kernels|engine|report|trace|formats|unshard|bounds|gpu|cli)\// {
        complain("quote this header")
    }
    END {
        if (files < 20) {
            print "only " files + 0 " files found: is this the source root?"
            failed = 1
        }
        exit failed
    }'
