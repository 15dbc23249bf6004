# Ctrl-C at any moment gives exit code 130 and leaves nothing: while a guest starts, runs its
# command, has ended it, is removed. The guest is a script in place of QEMU that acts as a guest on its
# control channel and sends SIGINT to gdr at the moment that the file `moment` names. After the signal
# it writes the file `sent`: without it there was no signal, since gdr may have killed the script before.
mkdir bin
cat >bin/qemu-system-x86_64 <<'END'
#!/bin/bash
read -r wanted <moment
moment() {
  [ "$wanted" = "$1" ] || return 0
  kill -INT "$gdr" && : >sent
  [ "$2" ] || sleep 1000 # what was to come after it does not come
}
case "$*" in *opt/gdr/guest*) ;; *) exit 1 ;; esac
gdr=$PPID
moment start
echo ready >&3
moment ready
read -r word rest <&3
moment command
moment late-output go-on
echo done >&4
echo 'exit 0' >&3
moment exit go-on
exec sleep 1000
END
chmod +x bin/qemu-system-x86_64
# The script's descriptors 3, 4 and 5 are the channels; nothing else about it resembles a guest.
at() { # at MOMENT EXPECTED_CODE ARGUMENT...: 130 unless gdr was done before the signal was sent
  local moment=$1 expected=$2 code=0
  shift 2
  rm -f sent
  echo "$moment" >moment
  PATH=$work/bin:$PATH timeout -s KILL 60 "$gdr" emulate "$@" >out 2>&1 || code=$?
  [ ! -e sent ] || expected=130
  [ $code -eq "$expected" ] || { [ "$moment" = exit ] && [ $code -eq 130 ]; } ||
    fail "SIGINT at $moment: gdr emulate $*: exit code $code, expected $expected: $(cat out)"
}
emulate 0 "$small" --dry-run # what guests boot is made now, not within the time of the first
at never 0 --accelerator tcg "$small" -- true
said '^h0| done$'
for try in 1 2 3 4 5; do
  for moment in start ready command; do at $moment 130 --accelerator tcg "$small" -- true; done
done
# Chance decides whether the signal or the end of the command comes first; both happen many times.
for try in $(seq 20); do
  at late-output 130 --accelerator tcg "$small" -- true
  at exit 0 --accelerator tcg "$small" -- true
done
# In the background of a script SIGINT is ignored from the start, and again after gdr's last check
# for it.
trap '' INT
for try in $(seq 10); do
  at late-output 130 --accelerator tcg "$small" -- true
  at exit 0 --accelerator tcg "$small" -- true
done
trap - INT
for moment in start ready command; do at $moment 130 --accelerator tcg "$two" --compare --size 4KiB; done
# Also before any guest is up, from the first millisecond on. This guest never becomes ready.
cat >bin/qemu-system-x86_64 <<'END'
#!/bin/sh
exec sleep 1000
END
for hundredth in 01 02 03 05 08 13 21 34 55 89; do
  code=0
  PATH=$work/bin:$PATH timeout -s INT --preserve-status 0.$hundredth "$gdr" emulate --accelerator tcg "$small" -- true >out 2>&1 || code=$?
  [ $code -eq 130 ] || fail "SIGINT after 0.$hundredth s: exit code $code, expected 130: $(cat out)"
done
# up, in and down end the guests, or leave them as they are.
name=any-moment-$$
at_end=("$gdr emulate down $name")
code=0
PATH=$work/bin:$PATH timeout -s INT --preserve-status 1 "$gdr" emulate up --accelerator tcg $name "$small" >out 2>&1 || code=$?
[ $code -eq 130 ] || fail "SIGINT while guests start to stay: exit code $code, expected 130: $(cat out)"
kept 0 list
! grep -q "^$name " out || fail "in the list: $(cat out)"
no_run_left
