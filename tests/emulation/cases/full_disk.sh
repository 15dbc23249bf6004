# A full disk: under the capture, under the GPUs' memory, under the cache. The kernel and folders of a test are not to blame.
[ "$(id -u)" = 0 ] || skip "mounts small disks: needs root"
mkdir disk
mount -t tmpfs -o size=64k tmpfs disk 2>/dev/null || skip "cannot mount a tmpfs here"
at_end=("umount disk")

emulate 0 "$two" --pcap disk/capture.pcap --on h0 'ib_write_bw -d rxe0 -x 1 -n 20' \
  --on h1 'until ib_write_bw -d rxe0 -x 1 -n 20 $GDR_PEER_h0_NIC_0; do sleep 1; done'
said '^gdr: the capture ends early: .*No space left on device'
rm -f disk/*
compile fill_gpu
emulate 125 "$small" --gpu-files disk -- ./fill_gpu
said 'disk, where the memory of its GPUs is, is full'
rm -f disk/*
kept 2 "$small" --pcap /dev/full -- true
said '^gdr: /dev/full: cannot write it: No space left on device'
XDG_CACHE_HOME=$work/disk kept 2 "$small" -- true
grep -qi 'no space left\|not enough free space\|write error' out || fail "the reason is not named: $(cat out)"
! ls disk/gdr | grep -v '^lock$' || fail "parts are left in the cache"
no_run_left
