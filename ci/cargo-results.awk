# SPDX-License-Identifier: GPL-2.0
# cargo test's output as "ok NAME" and "not ok NAME: why" lines; everything else goes to stderr.
/^test .* \.\.\. ok$/ { sub(/^test /, ""); sub(/ \.\.\. ok$/, ""); print "ok " prefix ": " unit $0; fflush(); next }
/^test .* \.\.\. FAILED$/ { sub(/^test /, ""); sub(/ \.\.\. FAILED$/, ""); print "not ok " prefix ": " unit $0 ": see above"; bad++; next }
/^test .* \.\.\. ignored/ { sub(/^test /, ""); print "not ok " prefix ": " unit $0 ": a skipped test is no test"; bad++; next }
/^ +Running / { unit = $NF; gsub(/^\(.*\/|-[0-9a-f]+\)$/, "", unit); unit = unit "::" }
/^ +Doc-tests / { unit = $2 "::doc::" }
/^error(\[|:)/ { if (!bad) { print "not ok " prefix ": cargo: " $0; bad++ } }
{ print > "/dev/stderr" }
