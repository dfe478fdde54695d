# confluent-kafka-go, built with the tag `dynamic`: pkg-config finds Ottla's library, and members of groups share a topic.
. "$(dirname "$0")/../support.bash"
: "${OTTLA_PREFIX:?where the library is installed}"
command -v go > /dev/null || { not_checked "confluent-kafka-go" "go is not installed"; exit 0; }
go -C tests/interop/confluent-kafka-go mod download > "$work/log" 2>&1 ||
  { not_checked "confluent-kafka-go" "its modules can't be fetched: $(tail -1 "$work/log")"; exit 0; }
# Go keeps the flags of an earlier pkg-config in its cache; the flag makes a folder with another library another build.
CGO_LDFLAGS=-L$OTTLA_PREFIX/lib PKG_CONFIG_PATH=$OTTLA_PREFIX/lib/pkgconfig \
  go -C tests/interop/confluent-kafka-go build -tags dynamic -o "$work/members" . \
  > "$work/log" 2>&1 || fail "it can't be built with Ottla's library: $(tail -20 "$work/log")"
check() {
  new_topics 4 "go$suffix"-{range,cooperative-sticky,consumer,transactions}
  LD_LIBRARY_PATH=$OTTLA_PREFIX/lib timeout 100 "$work/members" "$OTTLA_BOOTSTRAP" "go$suffix"
}
everywhere check
