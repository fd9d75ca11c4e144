# expect: the plain mean
s/average += a\[i\] \* g\[i\]/average += g[i] \/ (double)n/
