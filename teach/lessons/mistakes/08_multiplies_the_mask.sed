# expect: 0 times NaN, or 0 times infinity
s/keep\[i\] ? exp(s\[i\] - max) : 0/keep[i] * exp(s[i] - max)/
