# expect: the sign is wrong
s/a\[i\] \* ((i == j) - a\[j\])/i == j ? a[i] * (1 - a[i]) : a[i] * a[j]/
