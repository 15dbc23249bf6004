#!/usr/bin/env bash
# Installs, moves what was installed, builds examples/consumer against it and runs both programs from there.
#   install_test.sh SOURCE BUILD CXX CXX_FLAGS
set -euo pipefail
source=$1 build=$2 cxx=$3 flags=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset GDR_DATA_DIR

cmake --install "$build" --prefix "$work/first" >"$work/install.log"
mv "$work/first" "$work/moved"
cmake -S "$source/examples/consumer" -B "$work/consumer" -D CMAKE_PREFIX_PATH="$work/moved" -D CMAKE_CXX_COMPILER="$cxx" \
  -D CMAKE_CXX_FLAGS="$flags" >"$work/configure.log" || { cat "$work/configure.log"; exit 1; }
cmake --build "$work/consumer" >"$work/build.log" || { cat "$work/build.log"; exit 1; }

# Beside the installed tool, a program must take the data that was installed with it, although the source tree is there, too.
cp "$work/consumer/consumer" "$work/moved/bin/"
found=$("$work/moved/bin/consumer" "$source/tests/data/small.json")
expected="small: 1 GPUs, 1 NICs; models in $work/moved/share/gdr"
[ "$found" = "$expected" ] || { printf 'found:    %s\nexpected: %s\n' "$found" "$expected"; exit 1; }
"$work/moved/bin/gdr" show "$source/tests/data/small.json" | grep -q 'gpu0' || { echo "the installed gdr does not show a topology"; exit 1; }

# Every installed header compiles alone.
for header in $(cd "$work/moved/include/gdr" && find . -name '*.hpp' | sort); do
  echo "#include \"$header\"" | "$cxx" -std=c++20 -fsyntax-only -x c++ -I "$work/moved/include/gdr" - || { echo "$header does not compile alone"; exit 1; }
done
