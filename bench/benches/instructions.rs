//! How many instructions arming and cancelling a timer takes, counted by callgrind.
//!
//! Each benchmark is 1000 pairs beside 10 000 pending timers; making them is not counted. Unlike a duration
//! the count is the same on a busy machine, so a change of a few instructions shows. It says nothing of
//! cache misses. Left out is what reads the system's clock, which takes another way under valgrind.

use iai_callgrind::{library_benchmark, library_benchmark_group, main};
use quietcore_bench::peers::adapters::baseline::Empty;
use quietcore_bench::peers::adapters::binary_heap::LazyHeap;
use quietcore_bench::peers::adapters::bitwheel::Bitwheel;
use quietcore_bench::peers::adapters::btree_map::OrderedMap;
use quietcore_bench::peers::adapters::delay_queue::Queue;
use quietcore_bench::peers::adapters::hash_wheel::HashWheel;
use quietcore_bench::peers::adapters::nexus::Nexus;
use quietcore_bench::peers::adapters::quietcore::{Intrusive, Keyed};
use quietcore_bench::peers::measure::Pairs;
use quietcore_bench::peers::peer::Peer;
use quietcore_bench::peers::plan;
use quietcore_bench::peers::plan::{Plan, Sizes, Workload};

const PAIRS: usize = 1_000;

/// A structure with its population, after enough pairs that nothing happens for the first time.
fn populated<P: Peer>() -> Pairs<P> {
    let sizes = Sizes { operations: PAIRS, ..plan::Sizes::FULL };
    let mut pairs = Pairs::new(&Plan::new(Workload::ArmCancelFew, &sizes, 1));
    pairs.run(PAIRS);
    pairs
}

/// One benchmark per peer: its structure goes back to the caller, so that freeing it is not counted.
macro_rules! arm_cancel {
    ($($name:ident: $peer:ty),* $(,)?) => {
        $(
            #[library_benchmark]
            #[bench::pairs_1000(populated::<$peer>())]
            fn $name(mut pairs: Pairs<$peer>) -> Pairs<$peer> {
                pairs.run(PAIRS);
                pairs
            }
        )*

        library_benchmark_group!(name = instructions; benchmarks = $($name),*);
    };
}

arm_cancel! {
    quietcore: Intrusive,
    quietcore_keyed: Keyed,
    nexus_timer: Nexus,
    hierarchical_hash_wheel: HashWheel,
    bitwheel: Bitwheel,
    tokio_util_delay_queue: Queue,
    std_binary_heap: LazyHeap,
    std_btree_map: OrderedMap,
    empty: Empty,
}

main!(library_benchmark_groups = instructions);
