# Makes a finished study `my.csv`, and the results `before` and `after` of two numbers of accelerators.
. "$CHECKOUT/crates/feedrate/tests/docs/small.sh"
feedrate study new --design full-factorial --model small.yaml --factor processes=1,2 \
    --factor reader.read_threads=1,2 --replicates 2 --seed 1 -o my.csv
feedrate study run my.csv --quiet
for n in 1 2; do
    feedrate run small.yaml -n $n --results before --quiet
    feedrate run small.yaml -n $n --results after --quiet
done
