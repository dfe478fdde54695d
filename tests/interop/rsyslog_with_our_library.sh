# Debian's rsyslog with Ottla's library: imkafka reads a topic as a group member, omkafka writes the messages to another
# one. After a restart it continues at the committed offsets.
. "$(dirname "$0")/../support.bash"
: "${OTTLA_PREFIX:?where the library is installed}"
original rsyslog rsyslog-kafka libestr0 libfastjson4 || exit 0
libraries=$OTTLA_PREFIX/lib:$ORIGINAL/usr/lib/x86_64-linux-gnu:$ORIGINAL/lib/x86_64-linux-gnu

# rsyslog_reads FIRST LAST: produces these lines, and runs rsyslog until it has read and written them.
rsyslog_reads() {
  seq -f 'line-%g' "$1" "$2" | "$OTTLA" produce -X "bootstrap.servers=$OTTLA_BOOTSTRAP" -t "logs$suffix"
  touch "$work/lines"
  LD_LIBRARY_PATH=$libraries "$ORIGINAL/usr/sbin/rsyslogd" -n -f "$work/rsyslog.conf" -i "$work/pid" \
    -M "$ORIGINAL/usr/lib/x86_64-linux-gnu/rsyslog" > "$work/errors" 2>&1 &
  local rsyslog=$!
  started+=("$rsyslog")
  for _ in $(seq 300); do
    [ "$(grep -c '^line-' "$work/lines")" -lt "$2" ] || break
    kill -0 "$rsyslog" || fail "rsyslog ended: $(cat "$work/errors")"
    sleep 0.1
  done
  kill "$rsyslog"
  wait "$rsyslog" || fail "rsyslog: $(cat "$work/errors")"
  seq -f 'line-%g' "$2" | LC_ALL=C sort > "$work/expected"
  grep '^line-' "$work/lines" | LC_ALL=C sort | cmp - "$work/expected" || fail "lines up to $2: $(cat "$work/errors")"
  echo "lines up to $2, each once"
}

check() {
  new_topics 3 "logs$suffix" "copied$suffix"
  rm -f "$work/lines"
  cat > "$work/rsyslog.conf" <<CONF
module(load="imkafka")
module(load="omkafka")
global(workDirectory="$work")
template(name="raw" type="string" string="%rawmsg%\n")
template(name="message" type="string" string="%rawmsg%")
input(type="imkafka" topic="logs$suffix" broker="$OTTLA_BOOTSTRAP" consumergroup="rsyslog$suffix"
  confParam=["auto.offset.reset=earliest"] ruleset="in")
ruleset(name="in") {
  action(type="omfile" file="$work/lines" template="raw")
  action(type="omkafka" topic="copied$suffix" broker="$OTTLA_BOOTSTRAP" template="message")
}
CONF
  rsyslog_reads 1 1000
  rsyslog_reads 1001 1500
  "$OTTLA" consume -X "bootstrap.servers=$OTTLA_BOOTSTRAP" -t "copied$suffix" -o beginning -e -f '%s\n' |
    grep '^line-' | LC_ALL=C sort > "$work/copied"
  cmp "$work/copied" "$work/expected" || fail "omkafka wrote $(wc -l < "$work/copied") lines"
  echo "omkafka: the same $(wc -l < "$work/copied") lines"
}
everywhere check
