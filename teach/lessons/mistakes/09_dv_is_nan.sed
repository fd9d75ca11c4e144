# expect: dv_j = a_j dy with
s/dv\[j\] = a \* dy/dv[j] = 0 * INFINITY/
