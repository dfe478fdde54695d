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
# under_valgrind NAME ARGUMENT...: runs $work/NAME. Valgrind runs one thread at a time; only with fair scheduling every thread
# makes progress.
under_valgrind() {
  timeout 1500 valgrind --quiet --fair-sched=yes --error-exitcode=99 --suppressions="$work/glibc.supp" \
    --log-file="$work/$1.log" "${@:2}" "$work/$1" "$OTTLA_BOOTSTRAP" > "$work/$1.out" 2>&1
}
leaks=(--leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite)
# watched NAME: runs one program.
watched() {
  local name=$1 since=$SECONDS check=("${leaks[@]}")
  # A forked child has none of its parent's threads, so valgrind reports the memory of those threads as lost.
  case $name in robust | fork) check=(--leak-check=no) ;; esac
  cc "${flags[@]}" -o "$work/$name" "crates/capi/tests/c/$name.c" -lrdkafka -lpthread && under_valgrind "$name" "${check[@]}" ||
    fail "$name under valgrind: $(head -20 "$work/$name.out"; tail -5 "$work/$name.out"; head -40 "$work/$name.log")"
  echo "$name: no finding ($((SECONDS - since)) s)"
}
# At ten times the time on a busy machine, a limit of the library itself may pass, such as that of a close: a program that fails
# is run again alone, on new brokers.
watched_first() { (watched "$1") || echo "$1" >> "$work/again"; }
# together GROUP: runs the programs of a group one after the other in one process, which translates the library's code once. If
# something is found, each of them runs in a process of its own, which tells whose it is.
together() {
  local group=$1 name since=$SECONDS objects=()
  local -n members=$1
  {
    echo '#include <stdio.h>'
    printf 'int main_%s();\n' "${members[@]}"
    echo 'int main(int argc, char **argv) {'
    printf '  printf("%s\\n"); if (main_%s(argc, argv)) return 1;\n' $(printf '%s %s ' $(for name in "${members[@]}"; do echo "$name" "$name"; done))
    echo '  return 0;'
    echo '}'
  } > "$work/$group.c"
  for name in "${members[@]}"; do
    cc "${flags[@]}" -Dmain="main_$name" -c -o "$work/$name.o" "crates/capi/tests/c/$name.c" && objects+=("$work/$name.o")
  done
  if cc "${flags[@]}" -w -o "$work/$group" "$work/$group.c" "${objects[@]}" -lrdkafka -lpthread && under_valgrind "$group" "${leaks[@]}"; then
    echo "${members[*]}: no finding ($((SECONDS - since)) s)"
  else
    echo "one of ${members[*]}: $(tail -5 "$work/$group.out"; head -20 "$work/$group.log")"
    for name in "${members[@]}"; do watched_first "$name"; done
  fi
}

# These fork, start themselves again, change what belongs to the process, or need much time.
alone=(fork offset_file robust sigpipe stuck)
one=() two=() three=() four=() own=()
turn=0
for source in crates/capi/tests/c/${OTTLA_PROGRAM:-*}.c; do
  name=$(basename "$source" .c)
  if [ -n "${OTTLA_PROGRAM:-}" ] || [[ " ${alone[*]} " == *" $name "* ]]; then own+=("$name"); continue; fi
  case $((turn++ % 4)) in 0) one+=("$name") ;; 1) two+=("$name") ;; 2) three+=("$name") ;; 3) four+=("$name") ;; esac
done
run() { case $1 in one | two | three | four) together "$1" ;; *) watched_first "$1" ;; esac; }
groups=()
[ ${#one[@]} = 0 ] || groups=(one two three four)
side_by_side 4 run "${groups[@]}" "${own[@]}"
touch "$work/again"
for name in $(cat "$work/again"); do
  brokers=1 embedded_brokers --partitions 4 --super-user ANONYMOUS
  watched "$name"
done
echo "all: $SECONDS s"
