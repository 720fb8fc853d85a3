//! The driver of a device: what takes the packets that disciplines let go.

use std::collections::VecDeque;

/// What transmits a device's packets.
pub trait Driver<P>: Send + Sync + 'static {
    /// Sends a packet of queue `queue`, in the order of the calls. On a lane, in its NET_TX softirq, or by
    /// the thread that sends; of one queue by one thread at a time.
    ///
    /// # Errors
    /// The packet, if there is no room for it: the device tries again after a millisecond, or when
    /// [`Device::wake_queue`](crate::Device::wake_queue) is called.
    fn transmit(&self, queue: usize, packet: P) -> Result<(), P>;

    /// Sends packets of queue `queue`, from the front; those for which there is no room stay. For drivers
    /// that do better with several at a time; else they are sent one by one.
    fn transmit_batch(&self, queue: usize, batch: &mut VecDeque<P>) {
        while let Some(packet) = batch.pop_front() {
            if let Err(packet) = self.transmit(queue, packet) {
                batch.push_front(packet);
                break;
            }
        }
    }
}

impl<P, F: Fn(usize, P) -> Result<(), P> + Send + Sync + 'static> Driver<P> for F {
    fn transmit(&self, queue: usize, packet: P) -> Result<(), P> {
        self(queue, packet)
    }
}
