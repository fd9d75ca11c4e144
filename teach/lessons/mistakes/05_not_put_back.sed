# expect: keep x[i]
/x\[i\] = kept;/d
