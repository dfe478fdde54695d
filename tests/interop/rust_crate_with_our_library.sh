# The Rust crate rdkafka with the feature dynamic-linking: pkg-config finds Ottla's library, and the crate's bindings
# match it. BaseConsumer and StreamConsumer share a group.
. "$(dirname "$0")/../support.bash"
: "${OTTLA_PREFIX:?where the library is installed}"
cp -r tests/interop/rdkafka-crate "$work/program"
cd "$work/program"
# The crate's dependencies stay compiled; its build script asks pkg-config again.
export CARGO_TARGET_DIR=$downloads/rdkafka-crate
PKG_CONFIG_PATH=$OTTLA_PREFIX/lib/pkgconfig cargo build --quiet 2> "$work/log" ||
  fail "the crate can't be built with Ottla's library: $(tail -20 "$work/log")"
check() {
  new_topics 1 "crate$suffix"
  new_topics 4 "crate$suffix"-{range,cooperative-sticky,consumer}
  LD_LIBRARY_PATH=$OTTLA_PREFIX/lib timeout 100 "$CARGO_TARGET_DIR/debug/rdkafka-crate" "$OTTLA_BOOTSTRAP" "crate$suffix"
}
everywhere check
secured_brokers
LD_LIBRARY_PATH=$OTTLA_PREFIX/lib timeout 100 "$CARGO_TARGET_DIR/debug/rdkafka-crate" --properties "$work/secured"
