# What is missing is reported before anything is started.
mkdir empty
for program in env sh id; do ln -s "$(command -v $program)" empty/; done
code=0
PATH=$work/empty "$gdr" emulate "$small" -- true >out 2>&1 || code=$?
[ $code -eq 2 ] || fail "without QEMU: exit code $code, expected 2"
said 'qemu-system-x86_64 is not installed; install the package qemu-system-x86'

# No network for the package: a port where no server answers.
cat >apt.conf <<END2
Acquire::http::Proxy "http://127.0.0.1:9";
Acquire::https::Proxy "http://127.0.0.1:9";
Acquire::Retries "0";
END2
APT_CONFIG=$work/apt.conf XDG_CACHE_HOME=$work/cache kept 2 "$small" -- true
grep -qi 'could not connect\|connection refused\|failed to fetch\|unable to connect' out || fail "the reason is not named: $(cat out)"
! ls cache/gdr | grep -v '^lock$' || fail "parts are left in the cache"

# A kernel of the user's own.
kept 2 "$small" --kernel /no/kernel --modules /no/modules -- true
said '^gdr: --kernel /no/kernel: there is no such file$'
kept 2 "$small" --kernel "$small" -- true
said 'give both'
kept 2 "$small" --kernel "$small" --modules . -- true
said '^gdr: --modules .: it has no modules.dep'
printf 'kernel/virtio_pci.ko:\n' >modules.dep
kept 2 "$small" --kernel "$small" --modules . -- true
said 'rdma_rxe'

# Invalid faults and files.
kept 2 "$small" --fault 'h0/nic9:loss=1%' -- true
said 'found "h0/nic9", allowed h0/nic0'
kept 2 "$small" --fault 'h0/nic0:loss=2' -- true
said 'a share of the frames from 0% to 100%'
kept 2 "$small" --pcap /no/folder/x.pcap -- true
said '^gdr: --pcap /no/folder/x.pcap: the folder /no/folder is not there$'
kept 2 "$small" --counters . -- true
kept 2 in "a/b" -- true
kept 2 "$two" --native -- true
said '^gdr: two: --native runs a topology of one host, this has 2'
if [ ! -e /sys/module/rdma_rxe ] && [ ! -e "/lib/modules/$(uname -r)/modules.dep" ]; then
  kept 2 "$small" --native -- true
  said 'has no module rdma_rxe'
fi
no_run_left
