# expect: one NaN here reaches every weight
s/keep\[i\] ? a\[i\] \/ sum : 0/a[i] \/ sum/
