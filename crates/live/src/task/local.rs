//! The end of tasks that never leave their thread.

use super::live::LiveTasks;
use crate::machine::Machine;
use quietcore_core::CpuId;

/// Ends the tasks of a lane's thread; by that thread, which still drives the lane.
pub(crate) fn end_local_tasks(machine: &'static Machine, cpu: CpuId, tasks: &LiveTasks) {
    // A task that is woken while its future is dropped comes back to the queue; one that another thread has
    // just woken is on its way there.
    while tasks.count() > 0 {
        tasks.wake_all();
        let items = machine.lanes.take_of_thread(cpu);
        if items.is_empty() {
            std::thread::yield_now();
        }
        items.into_iter().for_each(|item| machine.dismiss(item));
    }
}
