# expect: it sees what comes after it
s/{.mask = sb_mask_causal()}/{.mask = NULL}/
