# The test programs in C under valgrind: nothing is lost, nothing is used that is not there. Two at a time, and time is measured
# on a machine that is so much slower (tests/c/test.h).
. "$(dirname "$0")/../support.bash"
: "${OTTLA_PREFIX:?where the library is installed}"
if ! command -v valgrind > /dev/null; then
  echo "NOT CHECKED: there is no valgrind (on Debian: apt-get install valgrind)"
  exit 0
fi
brokers=1 embedded_brokers --partitions 4
export LD_LIBRARY_PATH=$OTTLA_PREFIX/lib
flags=(-std=gnu90 -g -I "$OTTLA_PREFIX/include" -L "$OTTLA_PREFIX/lib")
# interceptors.c loads it from the folder in which the program lies.
cc "${flags[@]}" -shared -fPIC -o "$work/plugin.so" crates/capi/tests/plugin.c -lrdkafka

# The C library keeps what it read of resolv.conf until a thread ends that asked for a host name.
cat > "$work/glibc.supp" <<'SUPPRESSION'
{
   resolv.conf of a thread that is still there at the end
   Memcheck:Leak
   ...
   fun:__resolv_conf_load
}
SUPPRESSION

export OTTLA_SLOWNESS=10
# watched NAME: one program; valgrind runs one thread at a time, and only fairly does every one get its turn.
watched() {
  local name=$1 leaks=(--leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite) since=$SECONDS
  # A forked child has none of its parent's threads, so that what was theirs is nobody's.
  [ "$name" != robust ] || leaks=(--leak-check=no)
  cc "${flags[@]}" -o "$work/$name" "crates/capi/tests/c/$name.c" -lrdkafka -lpthread &&
    timeout 600 valgrind --quiet --fair-sched=yes --error-exitcode=99 --suppressions="$work/glibc.supp" \
      --log-file="$work/$name.log" "${leaks[@]}" "$work/$name" "$OTTLA_BOOTSTRAP" > "$work/$name.out" 2>&1 ||
    { echo "FAILED: $name under valgrind: $(tail -3 "$work/$name.out"; head -40 "$work/$name.log")"; return 1; }
  echo "$name: no finding ($((SECONDS - since)) s)"
}

running=0 failed=0
for source in crates/capi/tests/c/*.c; do
  if [ $((running += 1)) -gt 2 ]; then wait -n || failed=1; fi
  watched "$(basename "$source" .c)" &
done
wait -n || failed=1
wait -n || failed=1
[ $failed = 0 ] || fail "valgrind has findings"
echo "all: $SECONDS s"
