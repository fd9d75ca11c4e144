# expect: this is the mistake as it was
s/ds\[i\] -= mean/ds[i] -= 0 * mean/
