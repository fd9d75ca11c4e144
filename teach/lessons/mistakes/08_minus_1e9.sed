# expect: -1e9 is not -infinity
s/if (keep\[i\])/if (n > 0)/
s/max = fmax(max, s\[i\])/max = fmax(max, keep[i] ? s[i] : -1e9)/
s/keep\[i\] ? exp(s\[i\] - max) : 0/exp((keep[i] ? s[i] : -1e9) - max)/
s/keep\[i\] ? a\[i\] \/ sum : 0/a[i] \/ sum/
