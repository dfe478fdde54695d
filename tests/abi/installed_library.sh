# The examples are built with what `cargo xtask install` laid out, as anybody would build them: through pkg-config, with the
# shared and the static library, and through cmake. Debian's original, where it can be had, is beside them and says the same.
. "$(dirname "$0")/../support.bash"
: "${OTTLA_PREFIX:?where the library is installed}"
embedded_brokers
export PKG_CONFIG_PATH=$OTTLA_PREFIX/lib/pkgconfig
flags=(-std=gnu90 -Wall -Wextra -pedantic -Werror)

# examples NAME: runs the programs in $work/NAME, and compares what they say.
examples() {
  local expected
  equal "$1: producer" "1000 delivered, 0 failed, 0 left" "$("$work/$1/producer" "$OTTLA_BOOTSTRAP" "by-$1" 1000)"
  expected=$(for number in $(seq 0 999); do echo "$number: message $number"; done | sha256sum)
  # Each partition has offsets of its own; with one partition they are the numbers.
  equal "$1: consumer" "$expected" "$("$work/$1/consumer" "$OTTLA_BOOTSTRAP" "by-$1" | sha256sum)"
}

# built NAME FLAGS...: compiles the examples into $work/NAME.
built() {
  local into=$work/$1 program
  shift
  mkdir -p "$into"
  for program in producer consumer; do
    cc "${flags[@]}" -o "$into/$program" "examples/c/$program.c" "$@"
  done
}

topic() { "$OTTLA" topics -b "$OTTLA_BOOTSTRAP" create "$1" --partitions 1 > "$work/topics" 2>&1 || fail "$(cat "$work/topics")"; }
for name in shared static cmake original; do topic "by-$name"; done

equal "pkg-config's version" 2.15.0 "$(pkg-config --modversion rdkafka)"
built shared $(pkg-config --cflags --libs rdkafka)
LD_LIBRARY_PATH=$OTTLA_PREFIX/lib examples shared
built static $(pkg-config --cflags --libs rdkafka-static)
equal "a static program needs no librdkafka.so" "" "$(ldd "$work/static/producer" | grep rdkafka || true)"
examples static

if command -v cmake > /dev/null; then
  mkdir -p "$work/project"
  cat > "$work/project/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.10)
project(examples C)
find_package(RdKafka 2.0 REQUIRED)
foreach(program producer consumer)
  add_executable(\${program} $PWD/examples/c/\${program}.c)
  target_link_libraries(\${program} RdKafka::rdkafka)
endforeach()
CMAKE
  cmake -S "$work/project" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$OTTLA_PREFIX" > "$work/log" 2>&1 || fail "$(cat "$work/log")"
  cmake --build "$work/cmake" > "$work/log" 2>&1 || fail "$(cat "$work/log")"
  examples cmake
else
  echo "NOT CHECKED: there is no cmake"
fi

if original librdkafka1 librdkafka-dev; then
  lib=$ORIGINAL/usr/lib/x86_64-linux-gnu
  built original -isystem "$ORIGINAL/usr/include" -L "$lib" -lrdkafka
  LD_LIBRARY_PATH=$lib examples original
  # Built against the original's header, run with our library.
  equal "the original's program with our library" "10 delivered, 0 failed, 0 left" \
    "$(LD_LIBRARY_PATH=$OTTLA_PREFIX/lib "$work/original/producer" "$OTTLA_BOOTSTRAP" by-original 10)"
fi
