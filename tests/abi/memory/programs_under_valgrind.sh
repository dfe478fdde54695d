# Runs the test programs in C under valgrind, which finds leaks and invalid accesses. Four run at a time, with longer
# timeouts for the slower machine (tests/c/test.h).
. "$(dirname "$0")/../../support.bash"
: "${OTTLA_PREFIX:?where the library is installed}"
# OTTLA_PROGRAM: only this program.
if ! command -v valgrind > /dev/null; then
  not_checked "the programs in C under valgrind" "it is not installed (on Debian: apt-get install valgrind)"
  exit 0
fi
brokers=1 embedded_brokers --partitions 4 --super-user ANONYMOUS
export LD_LIBRARY_PATH=$OTTLA_PREFIX/lib
flags=(-std=gnu90 -g -I "$OTTLA_PREFIX/include" -L "$OTTLA_PREFIX/lib")
# interceptors.c loads it from the folder of the program.
cc "${flags[@]}" -shared -fPIC -o "$work/plugin.so" crates/capi/tests/plugin.c -lrdkafka

# The C library keeps the contents of resolv.conf until a thread that resolved a host name ends. And the optimizer lets the embedded
# broker compare the value of an Option before it asks whether there is one; what follows does not depend on it.
cat > "$work/glibc.supp" <<'SUPPRESSION'
{
   resolv.conf of a thread that is still there at the end
   Memcheck:Leak
   ...
   fun:__resolv_conf_load
}
{
   value of an Option that is compared first
   Memcheck:Cond
   fun:*ottla_embedded_broker*read_partition*
}
SUPPRESSION

export OTTLA_SLOWNESS=10
# watched NAME: runs one program. Valgrind runs one thread at a time; only with fair scheduling every thread makes
# progress.
watched() {
  local name=$1 leaks=(--leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite) since=$SECONDS
  # A forked child has none of its parent's threads, so valgrind reports the memory of those threads as lost.
  case $name in robust | fork) leaks=(--leak-check=no) ;; esac
  cc "${flags[@]}" -o "$work/$name" "crates/capi/tests/c/$name.c" -lrdkafka -lpthread &&
    timeout 600 valgrind --quiet --fair-sched=yes --error-exitcode=99 --suppressions="$work/glibc.supp" \
      --log-file="$work/$name.log" "${leaks[@]}" "$work/$name" "$OTTLA_BOOTSTRAP" > "$work/$name.out" 2>&1 ||
    fail "$name under valgrind: $(head -20 "$work/$name.out"; tail -5 "$work/$name.out"; head -40 "$work/$name.log")"
  echo "$name: no finding ($((SECONDS - since)) s)"
}
# At ten times the time on a busy machine, a limit of the library itself may pass, such as that of a close: a program that fails
# is run again alone, on new brokers.
watched_first() { (watched "$1") || echo "$1" >> "$work/again"; }

programs=()
for source in crates/capi/tests/c/${OTTLA_PROGRAM:-*}.c; do programs+=("$(basename "$source" .c)"); done
side_by_side 4 watched_first "${programs[@]}"
touch "$work/again"
for name in $(cat "$work/again"); do
  brokers=1 embedded_brokers --partitions 4 --super-user ANONYMOUS
  watched "$name"
done
echo "all: $SECONDS s"
