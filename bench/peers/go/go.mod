module quietcore/bench/peers/go

go 1.23
