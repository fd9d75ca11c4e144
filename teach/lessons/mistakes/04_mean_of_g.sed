# expect: you subtracted the mean of g
s/mean += ds\[i\]/mean += g[i]/
s/ds\[i\] -= mean/ds[i] = a[i] * (1 - a[i]) * (g[i] - mean)/
