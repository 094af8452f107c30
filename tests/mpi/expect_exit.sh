#!/bin/sh
# expect_exit.sh CODE command…: succeeds if the command ends with that exit code.
expected=$1
shift
"$@"
code=$?
[ "$code" -eq "$expected" ] && exit 0
[ "$code" -eq 77 ] && exit 77  # skipped
echo "exit code $code, expected $expected: $*" >&2
exit 1
