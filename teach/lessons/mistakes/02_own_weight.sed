# expect: a_i in place of a_j
s/- a\[j\]/- a[i]/
