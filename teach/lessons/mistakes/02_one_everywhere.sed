# expect: the 1 in every place
s/(i == j) - a/1 - a/
