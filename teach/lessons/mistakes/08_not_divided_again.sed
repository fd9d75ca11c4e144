# expect: divided by the sum over the kept ones
s/if (keep\[i\])/if (n > 0)/
s/sum += a\[i\] = keep\[i\] ? exp(s\[i\] - max) : 0/sum += a[i] = exp(s[i] - max)/
