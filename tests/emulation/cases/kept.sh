# Three hosts that are kept: commands one after another, barriers, names, what stops and what does not.
cluster three h0 h1 h2
name=kept-$$
at_end=("$gdr emulate down $name")
kept 0 up $name three.json
said "^gdr: $name is up"
kept 2 up $name three.json
said "$name is in use; gdr emulate down $name ends it"
kept 0 list
said "^$name  *[0-9][0-9]*  *3  *three  *three.json$"

kept 5 in $name --on h1 'exit 5' -- true
kept 2 in $name --on h7 true
said 'no such host; hosts: h0, h1, h2'
# All wait for the last host; host names resolve on the management network.
kept 0 in $name --on h2 'sleep 2; echo late >late; gdr-barrier go' -- sh -c 'gdr-barrier go; cat late; [ "$GDR_PEERS" ]; for peer in $GDR_PEERS; do grep -q "^${peer#*=} ${peer%%=*}$" /etc/hosts || exit 9; done'
for host in h0 h1; do said "^$host| late$"; done
# Three NICs are on one switch.
kept 0 in $name --on h0 'ib_send_lat -d rxe0 -x 1 -n 10' --on h2 'until ib_send_lat -d rxe0 -x 1 -n 10 $GDR_PEER_h0_NIC_0; do sleep 1; done'
# A host whose command has ended never arrives at a barrier.
kept 1 in $name --on h0 'gdr-barrier never' --on h1 'sleep 1' --on h2 true
said '^h0| gdr-barrier: never: the command of h. has ended$'
kept 2 in $name --on h0 'gdr-barrier alone; gdr-barrier ../x; [ $? = 2 ] && gdr-barrier' --on h1 'gdr-barrier alone; sleep 2'
said 'a name may only have letters'

# Ctrl-C stops the command with all of its processes, and nothing else.
code=0
timeout -s INT --preserve-status 3 "$gdr" emulate in $name --on h0 'echo begun; setsid sleep 77 & sleep 1000' >out 2>&1 || code=$?
[ $code -eq 130 ] || fail "Ctrl-C: exit code $code, expected 130: $(cat out)"
kept 1 in $name --on h0 'ps axo args | grep "[s]leep 1000"'
# Each command reads files outside the folder of `up` anew: changed, removed, new.
outside=$(mktemp -d)
at_end+=("rm -rf $outside")
echo one >"$outside/changed"; echo one >"$outside/gone"
kept 0 in $name --on h0 "cd $outside; cat changed gone; [ ! -e new ]"
echo two >"$outside/changed"; rm "$outside/gone"; echo new >"$outside/new"
kept 0 in $name --on h0 "cd $outside; cat changed new; [ ! -e gone ]"
said '^h0| two$'
said '^h0| new$'
# Two at once: one waits.
"$gdr" emulate in $name -- sh -c 'sleep 2; echo first' >first 2>&1 &
sleep 1
kept 0 in $name --on h1 'echo second'
said 'another command runs in these guests: waiting for its end'
wait $!
grep -q first first || fail "the first command said: $(cat first)"

# A guest that dies takes the others along, and its last words are remembered.
kept 125 in $name --on h1 'echo c >/proc/sysrq-trigger; sleep 100'
said 'h1: the guest.s kernel gave up: Kernel panic'
sleep 1
kept 2 in $name -- true
said "$name is not up any more: h1: the guest.s kernel gave up"
kept 0 list
! grep -q "^$name " out || fail "still in the list: $(cat out)"
kept 0 down $name
kept 0 down $name
said "^gdr: $name is not up$"

# Replace running guests.
kept 0 up $name "$small"
kept 0 up $name "$small" --replace
said "^gdr: $name is down$"
# An owner that is killed: its guests go with it, and the next command clears up.
owner=$("$gdr" emulate list | sed -n "s/^$name  *\([0-9]*\) .*/\1/p")
qemu=$(pgrep -P "$owner" -x qemu-system-x86)
kill -KILL "$owner"
sleep 1
[ ! -d "/proc/$qemu" ] || grep -q Z "/proc/$qemu/stat" || fail "the QEMU of a killed owner is left"
kept 2 in $name -- true
said 'the process that kept its guests was killed'

# Guests that are not up in time, and guests taken down while they start.
kept 124 up $name "$small" --timeout 1s
said '^gdr: h0: not up after 1s (--timeout): stopped$'
"$gdr" emulate up $name "$small" >first 2>&1 &
sleep 2
kept 0 down $name
wait $! && fail "up says that all is well: $(cat first)"
grep -q "^gdr: $name was taken down before its guests were up$" first || fail "up said: $(cat first)"
no_run_left
