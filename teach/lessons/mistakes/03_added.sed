# expect: ds is assigned here
s/ds\[i\] = a/ds[i] += a/
