//! A CPU whose priority rises while another CPU searches.

use super::{CpuPriorities, CpuPriority};
use crate::CpuId;
use crate::realtime::Priority;
use loom::sync::Arc;
use loom::thread;

fn realtime(number: u8) -> CpuPriority {
    CpuPriority::Realtime(Priority::new(number).expect("1 to 99"))
}

/// Goal: a CPU that rises from 1 to 2 to 3 is found by who looks below 4, whatever they see first. Method:
/// one thread sets, one looks, once.
#[test]
fn one_that_rises_is_found() {
    loom::model(|| {
        let priorities = Arc::new(CpuPriorities::with_slots(1, 4));
        let cpu = CpuId::default();
        priorities.set(cpu, realtime(1));
        let rising = Arc::clone(&priorities);
        let setter = thread::spawn(move || {
            rising.set(cpu, realtime(2));
            rising.set(cpu, realtime(3));
        });
        let task = Priority::new(4).expect("1 to 99");
        let found = priorities.find_map(task, |slot| slot.contains(cpu).then_some(()));
        assert_eq!(found, Some(()), "it was below 4 all the time");
        setter.join().expect("no panic");
    });
}
