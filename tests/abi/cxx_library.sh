# librdkafka++ is source and binary compatible: classes and vtables have the recorded layout, the examples run when
# built through pkg-config, and programs built with Debian's header and library run with ours.
. "$(dirname "$0")/../support.bash"
: "${OTTLA_PREFIX:?where the library is installed}"
embedded_brokers --partitions 2
export PKG_CONFIG_PATH=$OTTLA_PREFIX/lib/pkgconfig

for standard in c++98 c++11 c++17; do
  echo '#include <librdkafka/rdkafkacpp_ottla.h>' | c++ -std=$standard -Wall -Wextra -pedantic -Werror -Wno-long-long -fsyntax-only \
    -I "$OTTLA_PREFIX/include" -x c++ - || fail "the header does not compile as $standard"
done

# The compiler prints the layout of the classes.
cp "$OTTLA_PREFIX/include/librdkafka/rdkafkacpp.h" "$work/layout.h"
(cd "$work" && c++ -fdump-lang-class -fsyntax-only -x c++ layout.h)
layout() {
  awk '/^Class /{ on = $2 ~ /^RdKafka::/ } /^Vtable for /{ on = $3 ~ /^RdKafka::/ } /^VTT for /{ on = 0 } on && NF' |
    sed -E 's/\(0x[0-9a-fx]*\)/(0x)/g; s/ +$//'
}
layout < "$work"/*.class | grep -v '^$' | LC_ALL=C sort > "$work/ours"
layout < tests/golden/cxx-layout.txt | LC_ALL=C sort > "$work/facts"
diff "$work/facts" "$work/ours" > "$work/difference" || fail "the layout of the classes differs: $(head -20 "$work/difference")"
equal "classes and vtables, lines that are the same" "$(wc -l < "$work/facts")" "$(wc -l < "$work/ours")"

built() {
  local into=$work/$1 program
  shift
  mkdir -p "$into"
  for program in examples/cpp/{producer,consumer} crates/capi/tests/cpp/{callbacks,secured}; do
    c++ -Wall -Wextra -o "$into/$(basename "$program")" "$program.cpp" "$@"
  done
}
run() {
  "$OTTLA" topics -b "$OTTLA_BOOTSTRAP" create "$1" --partitions 2 > "$work/topics" 2>&1 || fail "$(cat "$work/topics")"
  equal "$1: producer" "100 delivered, 0 failed, 0 left" "$("$work/$2/producer" "$OTTLA_BOOTSTRAP" "$1" 100)"
  "$work/$2/consumer" "$OTTLA_BOOTSTRAP" "$1" > "$work/$1.out"
  equal "$1: lines" 103 "$(wc -l < "$work/$1.out")"
  mkdir "$work/$1-offsets"
  "$OTTLA" topics -b "$OTTLA_BOOTSTRAP" create "$1-callbacks" > "$work/topics" 2>&1 || fail "$(cat "$work/topics")"
  "$work/$2/callbacks" "$OTTLA_BOOTSTRAP" "$1-callbacks" "$work/$1-offsets" >> "$work/$1.out" 2> "$work/errors" ||
    fail "$1-callbacks: $(cat "$work/errors")"
  equal "$1: callbacks, lines that say no" 0 "$(grep -c ': no$' "$work/$1.out")"
  equal "$1: callbacks, places" "round 0 begins at 0 round 1 begins at 3" "$(grep '^round' "$work/$1.out" | paste -sd' ')"
}
same() { cmp "$work/$1.out" "$work/$2.out" || fail "$1 and $2 print different things: $(diff "$work/$1.out" "$work/$2.out" | head -5)"; echo "$1 prints the same as $2"; }

built shared $(pkg-config --cflags --libs rdkafka++)
LD_LIBRARY_PATH=$OTTLA_PREFIX/lib run xx-shared shared
grep -q '^xx 0 0 0: message 0 number=0$' "$work/xx-shared.out" || fail "$(head -3 "$work/xx-shared.out")"
built static $(pkg-config --cflags --libs rdkafka++-static)
run xx-static static
same xx-static xx-shared
if [ -n "$real_brokers" ]; then
  embedded=$OTTLA_BOOTSTRAP OTTLA_BOOTSTRAP=$real_brokers
  LD_LIBRARY_PATH=$OTTLA_PREFIX/lib run "xx-kafka-$$" shared
  same "xx-kafka-$$" xx-shared
  OTTLA_BOOTSTRAP=$embedded
else
  not_checked "the examples of librdkafka++ on Apache Kafka" "OTTLA_BOOTSTRAP is not set"
fi

# The administrative calls that the original does not have, by the header that is only over the C library.
c++ -Wall -Wextra -Werror -o "$work/ottla" crates/capi/tests/cpp/ottla.cpp $(pkg-config --cflags --libs rdkafka++)
LD_LIBRARY_PATH=$OTTLA_PREFIX/lib "$work/ottla" "$OTTLA_BOOTSTRAP" > "$work/ottla.out" || fail "$(cat "$work/ottla.out")"
equal "administrative calls in C++: lines that say yes" 11 "$(grep -c ': yes$' "$work/ottla.out")"
equal "administrative calls in C++: lines that say no" "" "$(grep ': no$' "$work/ottla.out" || true)"

if original librdkafka1 librdkafka-dev librdkafka++1; then
  lib=$ORIGINAL/usr/lib/x86_64-linux-gnu
  built original -isystem "$ORIGINAL/usr/include" -L "$lib" -lrdkafka++ -lrdkafka
  LD_LIBRARY_PATH=$lib run xx-original original
  same xx-original xx-shared
  LD_LIBRARY_PATH=$OTTLA_PREFIX/lib run xx-exchanged original
  same xx-exchanged xx-shared
  symbols() { nm -DC --defined-only "$1" | cut -c20- | grep '^RdKafka::' | grep -v 'Impl\|trampoline\|std::' | LC_ALL=C sort -u; }
  equal "symbols of the original that are missing" "" \
    "$(LC_ALL=C comm -23 <(symbols "$lib/librdkafka++.so.1") <(symbols "$OTTLA_PREFIX/lib/librdkafka++.so.1"))"
fi

# TLS and SASL, with certificates as bytes, the program's check of certificates, and credentials that are replaced.
secured_brokers
secure() {
  "$work/$1/secured" "$work/secured" > "$work/secured.out" 2> "$work/errors" || fail "SASL_SSL, $1: $(cat "$work/errors")"
  equal "SASL_SSL, $1: lines that say yes" 8 "$(grep -c ': yes$' "$work/secured.out")"
  equal "SASL_SSL, $1: lines that say no" "" "$(grep ': no$' "$work/secured.out" || true)"
}
LD_LIBRARY_PATH=$OTTLA_PREFIX/lib secure shared
secure static
