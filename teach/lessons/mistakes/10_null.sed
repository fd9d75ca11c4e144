# expect: a crash means that dw was NULL
s/if (to_w)/if (O > 0)/
