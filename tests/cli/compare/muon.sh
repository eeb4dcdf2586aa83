# Muon keeps a momentum of the matrices, AdamW a first moment of the others: both are compared.
. "$TESTS_CLI/lib.sh"
d=data/torch_save
gradcmp $d/muon.pt $d/muon_two.pt | sed -n '/^compared/p;/^Notes/,$p'
try $d/muon.pt $d/muon_bug.pt | tail -n 2
# A state that was asked for is that state; what it leaves out is told.
gradcmp --state exp_avg $d/muon.pt $d/muon_bug.pt | sed -n '/^compared/p;/^Notes/,$p'
gradcmp --state exp_avg_sq $d/muon.pt $d/muon_bug.pt | sed -n '/^compared/p;/^- not/,$p'
try --state momentum_buffer $d/muon.pt $d/muon_bug.pt | tail -n 2
