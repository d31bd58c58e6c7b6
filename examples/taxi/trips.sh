#!/bin/sh
# trips.sh TRIPS.csv FOLDER: figures of a table of taxi trips, with kjit-run alone. The table is a CSV file with empty
# cells, or a Parquet file with nulls, if kjit-run was built with Arrow's C++ library. Results are files in FOLDER:
#   trips.csv     columns for each trip: cost with tip, speed in miles an hour (empty where it is unknown)
#   hours.csv     for each hour of the day: trips, income
#   prices.npy    dollars a mile in increasing order; infinite for trips without a fare or a distance
# KJIT_RUN is the program, KJIT_DEVICE the device.
set -eu
: "${KJIT_RUN:=kjit-run}" "${KJIT_DEVICE:=auto}"
run() { "$KJIT_RUN" --device "$KJIT_DEVICE" --quiet "$@"; }
table=$1 results=$2

# a row with a null gives null; fillna replaces nulls, and where leaves out what it does not choose
run --arg fare=@"$table":fare --arg tip=@"$table":tip --arg miles=@"$table":"trip distance" --arg minutes=@"$table":minutes \
  --formula 'cost = fare + fillna(tip, 0)' --formula 'speed = where(minutes > 0, miles / (minutes / 60), null)' \
  --save cost="$results"/trips.csv --save speed="$results"/trips.csv

# the trips of each hour, and their income
run --arg hour=@"$table":hour:as=i32 --arg cost=@"$results"/trips.csv:cost \
  --formula 'cost = fillna(cost, 0)' --call 'trips = bincount(hour, 24)' --call 'income = bincount(hour, 24, weights=cost)' \
  --save trips="$results"/hours.csv --save income="$results"/hours.csv

# a pipe: trips without a fare or a distance are infinite, and so last after the sort
run --arg fare=@"$table":fare --arg miles=@"$table":"trip distance" \
  --formula 'is_good = fillna(fare > 0 and miles > 0, False)' --formula 'price = where(is_good, fare / miles, inf)' \
  --call 'good = count_nonzero(is_good)' --save price=- --save good=- |
  run --arg price=@- --arg good=@- --call 's = sort(price)' --print good --print 's[:3]' --save s="$results"/prices.npy
