# expect: learns these few by heart
s/bool ok = true;/bool ok = true; const sb_batch *batch = sb_data_next(data);/
s/model, sb_data_next(data)/model, batch/
