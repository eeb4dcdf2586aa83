# NaN or Inf in one copy of what ranks each hold: said so, whichever copy it is. Where the copies are
# apart in other elements too, it does not explain them.
. "$TESTS_CLI/lib.sh"
base=data/wgrads/base
# The norm before attention of layer 0 is 16 values at byte 4160 of each tensor-parallel rank's file.
put() { # FILE ELEMENT BYTES
    printf "$3" | dd of="spoilt/wgrads/iter_0000001/$1" bs=1 seek=$((4160 + 4 * $2)) conv=notrunc \
        2>/dev/null
}
fresh() {
    rm -rf spoilt
    cp -R data/wgrads/tp2pp2 spoilt
    chmod -R u+w spoilt
}
nan='\000\000\300\177' inf='\000\000\200\377' ten='\000\000\040\101'
show() {
    gradcmp --no-verify $base spoilt | sed -n '/^Failing/,$p'
    gradcmp check --no-verify spoilt || :
}
echo "== copy 0"
fresh
put mp_rank_00_000.pth 3 $nan
show
echo "== copy 1"
fresh
put mp_rank_01_000.pth 3 $inf
show
try -q --no-verify spoilt $base
echo "== both"
put mp_rank_00_000.pth 4 $nan
show
echo "== the whole copy"
fresh
for i in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
    put mp_rank_01_000.pth $i $nan
done
show
echo "== another element besides"
fresh
put mp_rank_01_000.pth 3 $nan
put mp_rank_01_000.pth 4 $ten
show
