# expect: this is the true gradient
s/float mean = 0/float mean = 0, average = 0/
s/mean += ds\[i\] \/ (float)n/average += a[i] * g[i]/
s/ds\[i\] -= mean/ds[i] = a[i] * (g[i] - average) - mean/
