# A QEMU that ends before COMMAND is started once more, with a message. A second time it is an
# error.
qemu=$(command -v qemu-system-x86_64)
mkdir bin
cat >bin/qemu-system-x86_64 <<END2
#!/bin/sh
case "\$*" in
  *opt/gdr/guest*) if [ ! -e "$work/died" ] || [ -e "$work/always" ]; then echo it was me; : >"$work/died"; exit 9; fi ;;
esac
exec "$qemu" "\$@"
END2
chmod +x bin/qemu-system-x86_64
PATH=$work/bin:$PATH emulate 3 "$small" -- sh -c 'echo alive; exit 3'
said '^gdr: h0: QEMU ended with exit code 9; last it said: it was me'
said '^gdr: starting the guests once more$'
said '^h0| alive$'
: >always
PATH=$work/bin:$PATH emulate 125 "$small" -- true
name=early-death-$$
PATH=$work/bin:$PATH kept 125 up $name "$small"
said 'it was me'
kept 0 list
! grep -q $name out || fail "in the list: $(cat out)"
no_run_left
