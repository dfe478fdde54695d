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
for name in shared static cmake cmake-static original; do topic "by-$name"; done

equal "pkg-config's version" 2.15.0 "$(pkg-config --modversion rdkafka)"
built shared $(pkg-config --cflags --libs rdkafka)
LD_LIBRARY_PATH=$OTTLA_PREFIX/lib examples shared
built static $(pkg-config --cflags --libs rdkafka-static)
equal "a static program needs no librdkafka.so" "" "$(ldd "$work/static/producer" | grep rdkafka || true)"
examples static

if command -v cmake > /dev/null; then
  # As a package's tree under a DESTDIR, and not where it was installed: cmake has to find everything in here.
  cp -r "$OTTLA_PREFIX" "$work/moved"
  mkdir -p "$work/project"
  cat > "$work/project/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.10)
project(examples C CXX)
find_package(RdKafka 2.0 REQUIRED)
message("found in \${RdKafka_LIBRARY_DIR} and \${RdKafka_INCLUDE_DIR}")
foreach(linking "" -static)
  foreach(program producer consumer)
    add_executable(\${program}\${linking} $PWD/examples/c/\${program}.c)
    target_link_libraries(\${program}\${linking} RdKafka::rdkafka\${linking})
    set_target_properties(\${program}\${linking} PROPERTIES OUTPUT_NAME \${program} RUNTIME_OUTPUT_DIRECTORY c\${linking})
  endforeach()
  add_executable(xx\${linking} $PWD/examples/cpp/producer.cpp)
  target_link_libraries(xx\${linking} RdKafka::rdkafka++\${linking})
endforeach()
CMAKE
  cmake -S "$work/project" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/moved" > "$work/log" 2>&1 || fail "$(cat "$work/log")"
  equal "cmake" "found in $work/moved/lib and $work/moved/include" "$(grep '^found' "$work/log")"
  cmake --build "$work/build" > "$work/log" 2>&1 || fail "$(cat "$work/log")"
  ln -s build/c "$work/cmake"
  ln -s build/c-static "$work/cmake-static"
  for linking in "" -static; do
    examples "cmake$linking"
    equal "C++ with cmake$linking" "10 delivered, 0 failed, 0 left" "$("$work/build/xx$linking" "$OTTLA_BOOTSTRAP" by-cmake 10)"
  done
  equal "cmake's static programs need no librdkafka.so" "" \
    "$(ldd "$work/cmake-static/producer" "$work/build/xx-static" | grep rdkafka || true)"
  equal "cmake's shared programs have it from the moved tree" "$work/moved/lib/librdkafka.so.1" \
    "$(ldd "$work/cmake/producer" | sed -n 's/.*librdkafka.so.1 => \([^ ]*\) .*/\1/p')"
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
