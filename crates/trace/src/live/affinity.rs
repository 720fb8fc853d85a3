//! Where the recorder itself runs.

use quietcore_core::{CpuId, CpuSet};
use rustix::thread;
use std::io;

/// Moves the calling thread to those of `cpus` that it may use; threads it starts later inherit
/// that. Returns where it may run now, which is unchanged when it may use none of them.
///
/// # Errors
/// What the system said; the thread then runs where it ran.
pub fn run_on(cpus: &CpuSet) -> io::Result<CpuSet> {
    let allowed = thread::sched_getaffinity(None)?;
    let members = (0..thread::CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu));
    let allowed: CpuSet = members.filter_map(|cpu| CpuId::new(cpu as u64).ok()).collect();
    let chosen = allowed.intersection(cpus);
    if chosen.is_empty() {
        return Ok(allowed);
    }
    let mut mask = thread::CpuSet::new();
    for cpu in chosen.iter() {
        mask.set(cpu.index());
    }
    thread::sched_setaffinity(None, &mask)?;
    Ok(chosen)
}

/// Lets the calling thread go before others of normal priority, so that it empties the kernel's buffers in
/// time on CPUs that are busy; real-time tasks still go before it.
///
/// # Errors
/// What the system said; the thread then runs as it did.
pub fn go_before_others() -> io::Result<()> {
    rustix::process::setpriority_process(None, FIRST_OF_NORMAL)?;
    Ok(())
}

/// The kernel's scale ends there.
const FIRST_OF_NORMAL: i32 = -20;

#[cfg(test)]
mod tests {
    use super::{FIRST_OF_NORMAL, go_before_others, run_on};
    use quietcore_core::{CpuId, CpuSet};
    use std::thread;

    /// Goal: a thread that may goes before others, and only it does. Method: a thread of its own, as root or
    /// as another user.
    #[test]
    fn a_thread_goes_before_others() {
        let nice = || rustix::process::getpriority_process(None).expect("a thread has one");
        let before = nice();
        let seen = thread::spawn(move || (go_before_others().is_ok(), nice()));
        let expected = |went| if went { FIRST_OF_NORMAL } else { before };
        let (went, priority) = seen.join().expect("no panic");
        assert_eq!((priority, nice()), (expected(went), before));
    }

    /// Goal: a thread moves to those of the CPUs that it may use, and stays where it may use none. Method: in
    /// a thread of its own, no CPU, the first that it has and one that it has not, then the latter alone.
    #[test]
    fn a_thread_moves_where_it_may() {
        let seen = thread::spawn(|| {
            let all = run_on(&CpuSet::default()).expect("it runs somewhere");
            let first: CpuSet = all.iter().take(1).collect();
            let absent =
                (0..).map(|cpu| CpuId::new(cpu).expect("fewer than all")).find(|cpu| !all.contains(*cpu));
            let absent: CpuSet = absent.into_iter().collect();
            let asked: CpuSet = first.iter().chain(absent.iter()).collect();
            assert_eq!(run_on(&asked).expect("it may"), first);
            assert_eq!(run_on(&absent).expect("nothing is changed"), first);
            first
        });
        assert_eq!(seen.join().expect("no panic").iter().count(), 1);
    }
}
