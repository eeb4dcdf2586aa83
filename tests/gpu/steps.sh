#!/bin/sh
# Runs check.sh on the emulated device: each way in which it can end has to be told.
#   steps.sh CHECK PROGRAM LIBRARY PLUGIN FOLDER
set -u
here=$(dirname -- "$0")
failed=0

# A kind of device, and the exit status and the last line that belong to it.
expect() {
    output=$(EMULATED_CUDA=$1 sh "$here/check.sh" --emulated "$check" "$program" "$library" "$plugin" "$folder" 2>&1)
    found=$?
    last=$(echo "$output" | tail -n 1)
    if [ "$found" -ne "$2" ] || [ "$last" != "gpu/check: $3" ]; then
        printf '%s: expected exit %d and "%s", found exit %d:\n%s\n' "$1" "$2" "$3" "$found" "$output"
        failed=1
    fi
}

check=$1 program=$2 library=$3 plugin=$4 folder=$5
expect right 0 "right, and as fast as it should be"
expect wrong 1 "WRONG: the device's figures are not the processor's"
expect slow 3 "right, but the kernel of float32 misses its aim"
expect none 77 "skipped: no device"
check=/nonexistent
expect right 2 "failed: the comparison of bits ended with 127"
exit $failed
