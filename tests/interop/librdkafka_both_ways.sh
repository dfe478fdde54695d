# kcat (librdkafka) reads the records of Ottla, and Ottla those of kcat, in every codec, with keys.
source "$(dirname "$0")/../support.bash"
embedded_brokers
seq 10001 12000 | sed 's/.*/key-&:value & that repeats, and repeats/' > "$work/lines"
for codec in none gzip snappy lz4 zstd; do
  "$OTTLA" produce -X "bootstrap.servers=$OTTLA_BOOTSTRAP" -t "ours-$codec" -p 0 -K : -z "$codec" < "$work/lines"
  kcat -C -q -e -b "$OTTLA_BOOTSTRAP" -t "ours-$codec" -p 0 -o beginning -K : > "$work/read"
  cmp "$work/lines" "$work/read" || fail "$codec: kcat read different records"
  kcat -P -b "$OTTLA_BOOTSTRAP" -t "theirs-$codec" -p 0 -K : -z "$codec" < "$work/lines"
  "$OTTLA" consume -X "bootstrap.servers=$OTTLA_BOOTSTRAP" -t "theirs-$codec" -p 0 -o beginning -e -f '%k:%s\n' > "$work/read"
  cmp "$work/lines" "$work/read" || fail "$codec: ottla read different records"
  echo "$codec: the same 2000 records in both directions"
done
