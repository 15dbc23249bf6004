# Same seed, same drops: datagram-like writes (UC) of 1000 numbered frames per direction, of which
# 5 % are lost. Not one may differ. Another seed: other drops.
compile verbs_write
run() { # run SEED FILE
  emulate 0 "$two" --seed "$1" --fault '*.tx:loss=5%,only=roce' --on h0 './verbs_write server; gdr-barrier turn; ./verbs_write client h1 uc 0 0 1000' \
    --on h1 './verbs_write client h0 uc 0 0 1000; gdr-barrier turn; ./verbs_write server'
  grep missing out | sort >"$2"
}
run 7 first
run 7 second
run 8 other
[ "$(wc -l <first)" = 2 ] || fail "two lines of missing writes are expected: $(cat first)"
cmp first second || fail "the same seed gave other drops: $(cat first second)"
lost=$(sed -n 's/^h0| missing://p' first | wc -w)
[ "$lost" -gt 20 ] && [ "$lost" -lt 100 ] || fail "$lost of 1000 were lost, about 50 are expected"
[ "$(wc -l <other)" = 2 ] || fail "two lines of missing writes are expected: $(cat other)"
for host in h0 h1; do
  cmp -s <(grep $host first) <(grep $host other) && fail "another seed gave the same drops on $host: $(cat other)"
done
# Links have their own chances: the two directions do not lose the same frames.
[ "$(sed -n 's/^h0| //p' first)" != "$(sed -n 's/^h1| //p' first)" ] || fail "both directions lost the same frames: $(cat first)"
