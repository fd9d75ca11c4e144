# expect: pass over the blocked ones in both loops
s/average += keep\[i\] ? a\[i\] \* g\[i\] : 0/average += a[i] * g[i]/
