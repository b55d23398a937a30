# Draws the costs of the servers on one core with an empty log: gnuplot -e "data='chart.tsv'" chart.gnuplot >chart.svg
set terminal svg size 900,420 font "sans-serif,13" background "white"
set datafile separator "\t"
set style data histograms
set style histogram clustered gap 1
set style fill solid noborder
set grid ytics lc rgb "#dddddd"
set border 3
set xtics nomirror
set ytics nomirror
set key outside right top Left reverse
set ylabel "CPU µs for a request"
set yrange [0:*]
rows(server) = sprintf("< awk -F '\\t' '$3 == 1 && $4 ~ /^%s/ && $1 ~ /^seen token, 2,000|^fresh token, 24/ && !seen[$1]++' %s", server, data)
plot for [server in "HAProxy Countersign go rust node python"] rows(server) using 5:xtic(1) title server
