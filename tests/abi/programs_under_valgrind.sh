# The test programs in C under valgrind: nothing is lost, nothing is used that is not there. events.c is not among them: it
# needs a broker that throttles when the test tells it to, which is in crates/capi/tests/abi.rs. Nor is life.c, which is about
# seconds, and those of valgrind are long.
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

# watched NAME FLAGS...: one program; valgrind runs one thread at a time, and only fairly does every one get its turn.
watched() {
  local name=$1
  shift
  cc "${flags[@]}" -o "$work/$name" "crates/capi/tests/c/$name.c" -lrdkafka -lpthread
  timeout 300 valgrind --quiet --fair-sched=yes --error-exitcode=99 --suppressions="$work/glibc.supp" \
    --log-file="$work/$name.log" "$@" "$work/$name" "$OTTLA_BOOTSTRAP" > "$work/$name.out" 2>&1 ||
    fail "$name under valgrind: $(tail -3 "$work/$name.out"; head -40 "$work/$name.log")"
  echo "$name: no finding ($SECONDS s)"
}

for source in crates/capi/tests/c/*.c; do
  name=$(basename "$source" .c)
  case $name in
    events | life) ;;
    # A forked child has none of its parent's threads, so that what was theirs is nobody's.
    robust) watched robust --leak-check=no ;;
    *) watched "$name" --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite ;;
  esac
done
