//! Which CPUs each transmit queue belongs to, as `--xps` says it: `0=0-3,1=4-7`.
//!
//! What stands behind a comma is another queue if it has a `=`, else more CPUs of the queue before. Queues
//! that are not named are dealt over the lanes in blocks: of eight queues on two lanes the first lane has
//! queues 0 to 3.

use core::fmt;
use quietcore_live::{CpuError, CpuSet};

/// The CPUs of some transmit queues by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransmitMap(Vec<(usize, CpuSet)>);

/// Why text is no [`TransmitMap`], or does not fit a device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransmitMapError {
    /// A part that has no `=`, and no queue before it.
    NoQueue(String),
    /// A queue that is no number.
    NotANumber(String),
    /// A queue is named twice.
    Twice(usize),
    /// A queue has no CPU.
    NoCpus(usize),
    /// A queue's CPUs are no list of CPUs.
    Cpus {
        /// The queue.
        queue: usize,
        /// Why.
        error: CpuError,
    },
    /// A queue that the device does not have.
    UnknownQueue {
        /// The queue.
        queue: usize,
        /// How many there are.
        queues: usize,
    },
    /// None of a queue's CPUs has a lane.
    NotLanes {
        /// The queue.
        queue: usize,
        /// Its CPUs.
        cpus: CpuSet,
        /// Those that have lanes.
        lanes: CpuSet,
    },
}

impl fmt::Display for TransmitMapError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoQueue(part) => write!(out, "{part:?}: write QUEUE=CPUS, as 0=0-3,1=4-7"),
            Self::NotANumber(text) => write!(out, "{text:?} is no number of a queue"),
            Self::Twice(queue) => write!(out, "queue {queue} is named twice"),
            Self::NoCpus(queue) => write!(out, "queue {queue} has no CPU"),
            Self::Cpus { queue, error } => write!(out, "the CPUs of queue {queue}: {error}"),
            Self::UnknownQueue { queue, queues } => {
                write!(out, "there is no queue {queue}: there are {queues}, the first one is 0")
            }
            Self::NotLanes { queue, cpus, lanes } => {
                write!(out, "queue {queue}={cpus}: none of them is one of the lanes' CPUs {lanes}")
            }
        }
    }
}

impl core::error::Error for TransmitMapError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        if let Self::Cpus { error, .. } = self { Some(error) } else { None }
    }
}

impl core::str::FromStr for TransmitMap {
    type Err = TransmitMapError;

    fn from_str(text: &str) -> Result<Self, TransmitMapError> {
        let mut entries: Vec<(usize, String)> = Vec::new();
        for part in text.split(',') {
            match (part.split_once('='), entries.last_mut()) {
                (Some((queue, cpus)), _) => {
                    let number = queue.trim().parse::<usize>();
                    let number = number.map_err(|_| TransmitMapError::NotANumber(queue.to_owned()))?;
                    if entries.iter().any(|(known, _)| *known == number) {
                        return Err(TransmitMapError::Twice(number));
                    }
                    entries.push((number, cpus.to_owned()));
                }
                (None, Some((_, cpus))) => {
                    cpus.push(',');
                    cpus.push_str(part);
                }
                (None, None) => return Err(TransmitMapError::NoQueue(part.to_owned())),
            }
        }
        let read = |(queue, cpus): (usize, String)| match cpus.parse::<CpuSet>() {
            Ok(set) if set.first().is_some() => Ok((queue, set)),
            Ok(_) => Err(TransmitMapError::NoCpus(queue)),
            Err(error) => Err(TransmitMapError::Cpus { queue, error }),
        };
        entries.into_iter().map(read).collect::<Result<_, _>>().map(Self)
    }
}

impl TransmitMap {
    /// The CPUs of each of `queues` queues on `lanes`, as
    /// [`DeviceOptions::transmit_map`](crate::DeviceOptions::transmit_map) takes them.
    ///
    /// # Errors
    /// [`TransmitMapError::UnknownQueue`] and [`TransmitMapError::NotLanes`].
    pub fn cpus_of_queues(&self, queues: usize, lanes: &CpuSet) -> Result<Vec<CpuSet>, TransmitMapError> {
        let mut map = blocks(queues, lanes);
        for (queue, cpus) in &self.0 {
            let queue = *queue;
            let entry = map.get_mut(queue).ok_or(TransmitMapError::UnknownQueue { queue, queues })?;
            if cpus.intersection(lanes).first().is_none() {
                let (cpus, lanes) = (cpus.clone(), lanes.clone());
                return Err(TransmitMapError::NotLanes { queue, cpus, lanes });
            }
            entry.clone_from(cpus);
        }
        Ok(map)
    }
}

/// Queue after queue to lane after lane, as many to each as to the others, or one more.
fn blocks(queues: usize, lanes: &CpuSet) -> Vec<CpuSet> {
    let lanes: Vec<_> = lanes.iter().collect();
    (0..queues).map(|queue| [lanes[queue * lanes.len() / queues]].into_iter().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::TransmitMap;
    use quietcore_live::CpuSet;

    fn set(list: &str) -> CpuSet {
        list.parse().unwrap()
    }

    fn map(xps: &str, queues: usize, lanes: &str) -> Result<String, String> {
        let map = xps.parse::<TransmitMap>().and_then(|map| map.cpus_of_queues(queues, &set(lanes)));
        let map = map.map_err(|error| error.to_string())?;
        Ok(map.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
    }

    /// Goal: queues are dealt in blocks. Method: more, as many, and fewer queues than lanes.
    #[test]
    fn queues_are_dealt_in_blocks() {
        let dealt = |queues, lanes| {
            let map = TransmitMap::default().cpus_of_queues(queues, &set(lanes)).unwrap();
            map.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(dealt(8, "0-1"), "0 0 0 0 1 1 1 1");
        assert_eq!(dealt(3, "2,5"), "2 2 5");
        assert_eq!(dealt(2, "0-3"), "0 2");
        assert_eq!(dealt(1, "7"), "7");
    }

    /// Goal: named queues have their CPUs, the others keep what they are dealt.
    #[test]
    fn named_queues_have_their_cpus() {
        assert_eq!(map("0=0-3,1=4-7", 2, "0-7").as_deref(), Ok("0-3 4-7"));
        assert_eq!(map("1=0,2-3", 2, "0-3").as_deref(), Ok("0 0,2-3"));
        assert_eq!(map("3=0", 4, "0-1").as_deref(), Ok("0 0 1 0"));
    }

    /// Goal: what cannot be is refused, with the remedy.
    #[test]
    fn what_cannot_be_is_refused() {
        let refused = |xps, queues| map(xps, queues, "0-1").unwrap_err();
        assert_eq!(refused("0-3", 2), "\"0-3\": write QUEUE=CPUS, as 0=0-3,1=4-7");
        assert_eq!(refused("x=0", 2), "\"x\" is no number of a queue");
        assert_eq!(refused("0=0,0=1", 2), "queue 0 is named twice");
        assert_eq!(refused("5=0", 2), "there is no queue 5: there are 2, the first one is 0");
        assert_eq!(refused("1=5", 2), "queue 1=5: none of them is one of the lanes' CPUs 0-1");
        assert!(refused("0=", 2).contains("queue 0"));
        let error = "3-1".parse::<CpuSet>().unwrap_err();
        assert_eq!(refused("0=3-1", 2), format!("the CPUs of queue 0: {error}"));
    }
}
