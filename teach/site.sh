#!/bin/sh
# Makes a static site of the live page, the book and a report, for any host: teach/site.sh FOLDER PAGE
# REPORT, where PAGE is teach/playground.html and REPORT a page of `softback report`. Needs pandoc.
set -eu
cd "$(dirname "$0")/.."
site=$1
mkdir -p "$site"
cp "$2" "$site/live.html"
cp "$3" "$site/report.html"
cp teach/pictures/playground.png "$site"
SOFTBACK_LINKS=none teach/book.sh "$site/book.html"
cat >"$site/index.html" <<END
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>softback: backward through softmax</title>
<style>
$(cat teach/book.css)
</style>
</head>
<body>
<main>
<h1>Backward through softmax</h1>
<p><a href="live.html"><img src="playground.png" width="1280" height="800" alt="Two models that learn
side by side: with the correct gradient nearly all digits are right, with a wrong one hardly any"></a></p>
<ul>
<li><a href="live.html">The live page</a>: two transformers learn in your browser, one with a wrong gradient</li>
<li><a href="book.html">The book</a>: lessons from one row of softmax to a trained model</li>
<li><a href="report.html">A report</a> of a model that learnt to read dates</li>
</ul>
<p>Made by softback $(sed -n "s/.*version : '\([0-9.]*\)'.*/\1/p" meson.build | head -n 1), a small autograd tensor library for transformers in C.</p>
</main>
</body>
</html>
END
