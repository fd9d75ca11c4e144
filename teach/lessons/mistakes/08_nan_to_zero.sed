# expect: hides that the model is broken
s/keep\[i\] ? a\[i\] \/ sum : 0/isnan(a[i] \/ sum) ? 0 : a[i] \/ sum/
