# expect: the feed-forward layer gets its input without the norm
s/h = sb_norm_layer_forward(&layers->forward_norm, x);/h = x;/
