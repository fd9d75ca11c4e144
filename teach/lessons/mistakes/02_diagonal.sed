# expect: this is the diagonal alone
s/a\[i\] \* ((i == j) - a\[j\])/a[i] * (i == j) * (1 - a[j])/
