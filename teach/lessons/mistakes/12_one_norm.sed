# expect: one norm is used twice
s/&layers->forward_norm/\&layers->attention_norm/
