# A link that goes down: a queue pair with a retry count gets its error in time; ib_write_bw, which retries for ever, is stopped.
compile verbs_write
name=link-down-$$
at_end=("$gdr emulate down $name")
kept 0 up $name "$two" --fault 'h1/nic0.tx:down-after=50,only=roce'
timeout=14 retry=6
kept 0 in $name --timeout 60s --on h0 './verbs_write server' --on h1 "./verbs_write client h0 rc $timeout $retry 100"
read -r number status ms < <(sed -n 's/^h1| write \([0-9]*\) failed: status \([0-9]*\) after \([0-9]*\) ms$/\1 \2 \3/p' out) || true
# Each write is one frame, unless it had to be sent again.
[ "${number:-0}" -le 50 ] && [ "${number:-0}" -gt 25 ] || fail "the write after about 50 frames did not fail: $(cat out)"
[ "${status:-}" = 12 ] || fail "not IBV_WC_RETRY_EXC_ERR: $(cat out)"
# 4.096 us x 2^timeout x 4 x (retry + 1), in ms
limit=$((4096 * (1 << timeout) * 4 * (retry + 1) / 1000000))
[ "${ms:-99999}" -le $limit ] || fail "the error took $ms ms; at most $limit are allowed"
echo "error after $ms ms, at most $limit"
# ib_write_bw connects by TCP, which passes.
kept 124 in $name --timeout 10s --on h0 'ib_write_bw -d rxe0 -x 1 -n 100' --on h1 'until ib_write_bw -d rxe0 -x 1 -n 100 $GDR_PEER_h0_NIC_0; do sleep 1; done'
said '^gdr: h0, h1: not finished after 10s (--timeout): stopped$'
# The guests still work.
kept 0 in $name -- true
kept 0 down $name
