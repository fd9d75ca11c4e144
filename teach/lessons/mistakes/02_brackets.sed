# expect: the brackets are missing
s/((i == j) - a\[j\])/(i == j) - a[j]/
