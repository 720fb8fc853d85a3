//! `--xps`: which CPUs each transmit queue belongs to.
//!
//! `0=0-3,1=4-7`: what stands behind a comma is another queue if it has a `=`, else more CPUs of the queue
//! before. Queues that are not named, and all without `--xps`, are dealt over the lanes in blocks: of eight
//! queues on two lanes four are the first one's.

use quietcore_core::CpuSet;

/// The CPUs of each named queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Xps(Vec<(usize, CpuSet)>);

impl std::str::FromStr for Xps {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut entries: Vec<(usize, String)> = Vec::new();
        for part in text.split(',') {
            match (part.split_once('='), entries.last_mut()) {
                (Some((queue, cpus)), _) => {
                    let number = queue.trim().parse::<usize>();
                    let number = number.map_err(|_| format!("{queue:?} is no number of a queue"))?;
                    if entries.iter().any(|(known, _)| *known == number) {
                        return Err(format!("queue {number} is named twice"));
                    }
                    entries.push((number, cpus.to_owned()));
                }
                (None, Some((_, cpus))) => {
                    cpus.push(',');
                    cpus.push_str(part);
                }
                (None, None) => return Err(format!("{part:?}: write QUEUE=CPUS, as 0=0-3,1=4-7")),
            }
        }
        let read = |(queue, cpus): (usize, String)| match cpus.parse::<CpuSet>() {
            Ok(set) if set.first().is_some() => Ok((queue, set)),
            Ok(_) => Err(format!("queue {queue} has no CPU")),
            Err(error) => Err(format!("the CPUs of queue {queue}: {error}")),
        };
        entries.into_iter().map(read).collect::<Result<_, _>>().map(Self)
    }
}

impl Xps {
    /// The CPUs of `queues` queues on `lanes`.
    pub(crate) fn map(&self, queues: usize, lanes: &CpuSet) -> Result<Vec<CpuSet>, String> {
        let mut map = blocks(queues, lanes);
        for (queue, cpus) in &self.0 {
            let Some(entry) = map.get_mut(*queue) else {
                return Err(format!("--xps names queue {queue}; there are {queues}, the first one is 0"));
            };
            if cpus.intersection(lanes).first().is_none() {
                return Err(format!("--xps {queue}={cpus}: none of them is one of --cpus {lanes}"));
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
    use super::Xps;
    use quietcore_core::CpuSet;

    fn set(list: &str) -> CpuSet {
        list.parse().unwrap()
    }

    fn map(xps: &str, queues: usize, lanes: &str) -> Result<String, String> {
        let map = xps.parse::<Xps>()?.map(queues, &set(lanes))?;
        Ok(map.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
    }

    /// Goal: queues are dealt in blocks. Method: more, as many, and fewer queues than lanes.
    #[test]
    fn queues_are_dealt_in_blocks() {
        let dealt = |queues, lanes| {
            let map = Xps::default().map(queues, &set(lanes)).unwrap();
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

    /// Goal: what cannot be is told, with the remedy.
    #[test]
    fn what_cannot_be_is_told() {
        let refused = |xps, queues| map(xps, queues, "0-1").unwrap_err();
        assert_eq!(refused("0-3", 2), "\"0-3\": write QUEUE=CPUS, as 0=0-3,1=4-7");
        assert_eq!(refused("x=0", 2), "\"x\" is no number of a queue");
        assert_eq!(refused("0=0,0=1", 2), "queue 0 is named twice");
        assert_eq!(refused("2=0", 2), "--xps names queue 2; there are 2, the first one is 0");
        assert_eq!(refused("1=5", 2), "--xps 1=5: none of them is one of --cpus 0-1");
        assert!(refused("0=", 2).contains("queue 0"));
        assert!(refused("0=3-1", 2).starts_with("the CPUs of queue 0: "));
    }
}
