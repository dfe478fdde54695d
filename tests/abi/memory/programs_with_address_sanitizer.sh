# Runs the test programs in C and the examples in C++ with AddressSanitizer, which finds leaks and accesses to freed
# memory. The sanitizer replaces malloc in the whole process, so it covers the library's memory, too; it checks the
# accesses of the programs and of calls to the C runtime library.
. "$(dirname "$0")/../../support.bash"
: "${OTTLA_PREFIX:?where the library is installed}"
# OTTLA_PROGRAM: only this program.
flags=(-std=gnu90 -g -O1 -fno-omit-frame-pointer -fsanitize=address -I "$OTTLA_PREFIX/include" -L "$OTTLA_PREFIX/lib")
echo 'int main(void) { return 0; }' > "$work/nothing.c"
if ! { cc "${flags[@]}" -o "$work/nothing" "$work/nothing.c" && "$work/nothing"; } > "$work/log" 2>&1; then
  not_checked "the programs in C with AddressSanitizer" "they can't be built and run here: $(tail -1 "$work/log")"
  exit 0
fi
brokers=1 embedded_brokers --partitions 4 --super-user ANONYMOUS
# Ottla's library has no frame pointers, which the fast unwinder needs.
export LD_LIBRARY_PATH=$OTTLA_PREFIX/lib ASAN_OPTIONS=detect_leaks=1:fast_unwind_on_malloc=0
# interceptors.c loads it from the folder of the program.
cc "${flags[@]}" -shared -fPIC -o "$work/plugin.so" crates/capi/tests/plugin.c -lrdkafka

# Deliberate errors are found: an access to freed memory, and a handle that is not destroyed, with the call that created
# it.
cat > "$work/wrong.c" <<'C'
#include <librdkafka/rdkafka.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv) {
        char *text = strdup("freed");
        int i;
        (void)argv;
        free(text);
        /* The last one may still be named on the stack. */
        for (i = 0; argc > 1 && i < 10; i++)
                rd_kafka_conf_new();
        return argc > 1 ? 0 : text[0];
}
C
cc "${flags[@]}" -w -o "$work/wrong" "$work/wrong.c" -lrdkafka
if "$work/wrong" > "$work/log" 2>&1; then fail "use after free was not found"; fi
grep -q heap-use-after-free "$work/log" || fail "use after free: $(head -5 "$work/log")"
if "$work/wrong" leak > "$work/log" 2>&1; then fail "a leak was not found"; fi
grep -q 'in rd_kafka_conf_new' "$work/log" || fail "a configuration that is not destroyed: $(head -20 "$work/log")"

sanitized() {
  local name=$1 since=$SECONDS
  cc "${flags[@]}" -o "$work/$name" "crates/capi/tests/c/$name.c" -lrdkafka -lpthread
  timeout 120 "$work/$name" "$OTTLA_BOOTSTRAP" > "$work/$name.out" 2>&1 ||
    fail "$name with AddressSanitizer, exit status $?: $(grep -av '|TERMINATE|' "$work/$name.out" | head -60)"
  echo "$name: no finding ($((SECONDS - since)) s)"
}
programs=()
for source in crates/capi/tests/c/${OTTLA_PROGRAM:-*}.c; do
  # A child that is forked while another thread is inside the sanitizer's malloc waits for the sanitizer's lock for ever.
  [ "$(basename "$source")" = fork.c ] || programs+=("$(basename "$source" .c)")
done
side_by_side 8 sanitized "${programs[@]}"
echo "all: $SECONDS s"

# The examples of librdkafka++.
"$OTTLA" topics -b "$OTTLA_BOOTSTRAP" create xx --partitions 2 > "$work/log" 2>&1 || fail "$(cat "$work/log")"
for name in producer consumer; do
  c++ "${flags[@]:1}" -o "$work/$name" "examples/cpp/$name.cpp" -lrdkafka++ -lrdkafka
  timeout 60 "$work/$name" "$OTTLA_BOOTSTRAP" xx > "$work/$name.out" 2>&1 ||
    fail "examples/cpp/$name.cpp with AddressSanitizer: $(head -60 "$work/$name.out")"
  echo "examples/cpp/$name.cpp: no finding ($SECONDS s)"
done
