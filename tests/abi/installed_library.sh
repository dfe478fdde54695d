# Builds the examples with the files that `cargo xtask install` installed, as a user would: through pkg-config, with the
# shared and the static library, and through cmake. With Debian's original, if it can be fetched, they print the same.
. "$(dirname "$0")/../support.bash"
: "${OTTLA_PREFIX:?where the library is installed}"
embedded_brokers
export PKG_CONFIG_PATH=$OTTLA_PREFIX/lib/pkgconfig
flags=(-std=gnu90 -Wall -Wextra -pedantic -Werror)

# examples NAME: runs the programs in $work/NAME and compares their output.
examples() {
  local expected
  equal "$1: producer" "1000 delivered, 0 failed, 0 left" "$("$work/$1/producer" "$OTTLA_BOOTSTRAP" "by-$1" 1000)"
  expected=$(for number in $(seq 0 999); do echo "$number: message $number"; done | sha256sum)
  # Each partition has its own offsets; with one partition they equal the numbers.
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
for name in shared static static-alone cmake cmake-static original; do topic "by-$name"; done

equal "pkg-config's version" 2.16.0 "$(pkg-config --modversion rdkafka)"
built shared $(pkg-config --cflags --libs rdkafka)
LD_LIBRARY_PATH=$OTTLA_PREFIX/lib examples shared
built static $(pkg-config --cflags --libs rdkafka-static)
equal "a static program needs no librdkafka.so" "" "$(ldd "$work/static/producer" | grep rdkafka || true)"
examples static
# glibc warns of functions that look for its own libraries at run time.
built static-alone -static $(pkg-config --cflags --libs rdkafka-static) 2> "$work/log" || fail "$(cat "$work/log")"
equal "a program linked with -static needs no library" "" "$(readelf -d "$work/static-alone/producer" | grep NEEDED || true)"
examples static-alone

archive=$OTTLA_PREFIX/lib/librdkafka.a
exported() { nm --defined-only --format=posix "$@" | awk '$2 ~ /^[A-Z]$/ { print $1 }' | LC_ALL=C sort; }
equal "global symbols of the archive and of the shared library that differ" "" \
  "$(LC_ALL=C comm -3 <(exported -D "$OTTLA_PREFIX/lib/librdkafka.so.1") <(exported -g "$archive"))"
size=$(stat -c %s "$archive")
[ "$size" -lt 25000000 ] || [ "$(basename "$OTTLA_PREFIX")" = dev ] || fail "the static library has $size bytes"
for file in "$OTTLA_PREFIX"/lib/librdkafka.so.1 "$OTTLA_PREFIX"/lib/librdkafka++.so.1 "$OTTLA_PREFIX/bin/ottla"; do
  readelf -lW "$file" | contains 'GNU_STACK.* RW ' || fail "$file has an executable stack"
  readelf -dW "$file" | contains 'BIND_NOW\|FLAGS_1.*NOW' || fail "$file is bound lazily"
done

# The static library has the tables to unwind its functions with.
cat > "$work/frames.c" << 'C'
#include <execinfo.h>
#include <librdkafka/rdkafka.h>
#include <stdlib.h>
#include <string.h>

static int main_found;

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
        void *frames[64];
        int at, count = backtrace(frames, 64);
        char **names = backtrace_symbols(frames, count);
        (void)rk;
        (void)message;
        (void)opaque;
        for (at = 0; names && at < count; at++)
                main_found |= strstr(names[at], "(main+") != NULL;
        free(names);
}

int main(void) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_t *rk;
        char text[] = "m";
        rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
        rd_kafka_conf_set(conf, "message.timeout.ms", "1", NULL, 0);
        rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, NULL, 0);
        rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_VALUE(text, 1), RD_KAFKA_V_END);
        rd_kafka_flush(rk, 60000);
        rd_kafka_destroy(rk);
        return !main_found;
}
C
cc -rdynamic -o "$work/frames" "$work/frames.c" $(pkg-config --cflags --libs rdkafka-static)
"$work/frames" > "$work/log" 2>&1 || fail "a callback of the static library can't be traced back to main"

if command -v cmake > /dev/null; then
  # Like a package's tree under a DESTDIR, at another path than the one that it was installed for: cmake has to find
  # everything in it.
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
  not_checked "programs built with cmake" "cmake is not installed"
fi

if original librdkafka1 librdkafka-dev; then
  lib=$ORIGINAL/usr/lib/x86_64-linux-gnu
  built original -isystem "$ORIGINAL/usr/include" -L "$lib" -lrdkafka
  LD_LIBRARY_PATH=$lib examples original
  # Built against the original's header, run with our library.
  equal "the original's program with our library" "10 delivered, 0 failed, 0 left" \
    "$(LD_LIBRARY_PATH=$OTTLA_PREFIX/lib "$work/original/producer" "$OTTLA_BOOTSTRAP" by-original 10)"
fi

# The other files that `cargo xtask install` installs, and the same as a package's tree under a DESTDIR. has_debug FILE:
# whether it holds debug information itself.
has_debug() { readelf -SW "$1" 2> /dev/null | contains '\.debug_info'; }

# complete_tree ROOT PREFIX: checks the tree at ROOT that will be installed at PREFIX.
complete_tree() {
  local tree=$1$2 file id debug
  for file in lib/librdkafka.so.1 lib/librdkafka++.so.1 bin/ottla; do
    ! has_debug "$tree/$file" || fail "$tree/$file is not stripped"
    id=$(readelf -n "$tree/$file" | sed -n 's/.*Build ID: //p')
    debug=$tree/lib/debug/.build-id/${id:0:2}/${id:2}.debug
    has_debug "$debug" || fail "$debug has no debug information of $file"
    equal "debug link of $file" "$(basename "$file").debug" \
      "$(readelf --string-dump=.gnu_debuglink "$tree/$file" | sed -n 's/^ *\[ *0\] *//p')"
    equal "$file's .debug leads to the same file" "$(realpath "$debug")" \
      "$(realpath "$(dirname "$tree/$file")/.debug/$(basename "$file").debug")"
  done
  equal "one debug file per stripped file" 3 "$(find "$tree/lib/debug" -type f | wc -l)"
  ! has_debug "$tree/lib/librdkafka.a" || fail "$tree/lib/librdkafka.a is not stripped"
  # binutils use the debug link to look up a line, as debuggers do.
  local address
  address=$(readelf --dyn-syms -W "$tree/lib/librdkafka.so.1" | awk '{ sub(/@.*/, "", $8) } $8 == "rd_kafka_conf_new" { print $2 }')
  addr2line -e "$tree/lib/librdkafka.so.1" "0x$address" | contains '\.rs:[0-9]' || fail "rd_kafka_conf_new has no line information"
  for file in LICENSE-APACHE LICENSE-MIT CONFIGURATION.md STATISTICS.md; do
    cmp "$file" "$tree/share/doc/ottla/$file" || fail "$tree/share/doc/ottla/$file"
  done
  "$tree/bin/ottla" --version > "$work/version"
  # The error of an unknown property names the pages at their installed location.
  "$tree/bin/ottla" metadata -X qqqqqqqq=1 > "$work/unknown" 2>&1 && fail "an unknown property is accepted"
  grep -q 'CONFIGURATION.md (installed in share/doc/ottla)' "$work/unknown" || fail "$(cat "$work/unknown")"
}

complete_tree "" "$OTTLA_PREFIX"
xtask install --profile "$(basename "$OTTLA_PREFIX")" --prefix /usr --destdir "$work/stage" > "$work/log" 2>&1 ||
  fail "$(cat "$work/log")"
complete_tree "$work/stage" /usr
equal "nothing is outside of the prefix" usr "$(ls "$work/stage")"
grep -q '^prefix=/usr$' "$work/stage/usr/lib/pkgconfig/rdkafka.pc" || fail "rdkafka.pc names the stage"
