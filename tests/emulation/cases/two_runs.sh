# Two runs at once do not interfere.
"$gdr" emulate "$small" -- sh -c 'echo one; sleep 3' >one 2>&1 &
first=$!
"$gdr" emulate "$small" -- sh -c 'echo two; sleep 3' >two 2>&1 &
second=$!
folder_of() {
  for try in $(seq 100); do
    qemu=$(pgrep -P "$1" -x qemu-system-x86) && break
    sleep 0.2
  done
  tr '\0' '\n' <"/proc/$qemu/cmdline" | sed -n 's/^name=opt\/gdr\/guest,file=\(.*\)\/h0.settings$/\1/p'
}
a=$(folder_of $first) b=$(folder_of $second)
[ -d "$a" ] && [ -d "$b" ] && [ "$a" != "$b" ] || fail "folders '$a' and '$b'"
wait $first || fail "the first run: $(cat one)"
wait $second || fail "the second run: $(cat two)"
grep -q '^h0| one$' one && grep -q '^h0| two$' two || fail "said: $(cat one two)"
[ ! -e "$a" ] && [ ! -e "$b" ] || fail "$a or $b is left"

# Ctrl-C while a guest runs a command that does not end by itself, and nothing is left.
code=0
"$gdr" emulate "$small" -- sh -c 'echo up; sleep 1000' >out 2>&1 &
run=$!
for try in $(seq 1000); do
  ! grep -q '^h0| up$' out || break
  sleep 0.2
done
kill -INT $run
wait $run || code=$?
[ $code -eq 130 ] || fail "Ctrl-C: exit code $code, expected 130: $(cat out)"
no_run_left
