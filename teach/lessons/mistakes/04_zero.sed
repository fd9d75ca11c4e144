# expect: only values learn
s/ds\[i\] -= mean/ds[i] *= 0 * mean/
