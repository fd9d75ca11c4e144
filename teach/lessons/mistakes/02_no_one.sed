# expect: lacks the 1
s/(i == j) - a/-a/
