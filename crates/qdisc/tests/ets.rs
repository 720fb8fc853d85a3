//! Strict bands before bands that share: against lists and the paper's round, and where the kernel's rules
//! have corners.

mod common;

use common::round::{PaperRound, Sharer};
use common::{Gate, Parcel, id as class, throttled};
use quietcore_core::Nanos;
use quietcore_qdisc::{
    ClassId, Classful, Dequeued, Ets, EtsError, EtsSettings, Fifo, FifoLimit, FqCodel, FqCodelSettings,
    Qdisc, Statistics,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

const NOW: Nanos = Nanos(0);

fn parcel(number: u32, priority: u32, bytes: u32) -> Parcel {
    Parcel { number, class: ClassId(priority), bytes }
}

/// Strict bands are lists; the others are in the paper's round.
struct Model {
    round: PaperRound,
    settings: EtsSettings,
    sent: Statistics,
    dropped: u64,
}

impl Model {
    fn new(settings: EtsSettings) -> Self {
        let mut round = PaperRound::default();
        round.sharers.resize_with(16, Sharer::default);
        let mut model = Self { round, settings, sent: Statistics::default(), dropped: 0 };
        model.tell(settings);
        model
    }

    fn tell(&mut self, settings: EtsSettings) {
        self.settings = settings;
        for band in 0..16 {
            self.round.sharers[band].quantum = u64::from(settings.quanta[band]);
            if band >= usize::from(settings.bands) {
                self.clear(band);
            } else if band >= usize::from(settings.strict) {
                self.round.look(band);
            }
        }
    }

    fn clear(&mut self, band: usize) {
        self.dropped += std::mem::take(&mut self.round.sharers[band].packets).len() as u64;
        self.round.look(band);
    }

    fn band(&self, priority: u32, filtered: Option<u16>) -> usize {
        let minor = match (priority >> 16, filtered) {
            (1, _) => priority & 0xffff,
            (_, Some(minor)) => u32::from(minor),
            (0, None) => return self.settings.priomap[(priority & 15) as usize].into(),
            (_, None) => return self.settings.priomap[0].into(),
        };
        match minor {
            1.. if minor <= u32::from(self.settings.bands) => minor as usize - 1,
            _ => self.settings.priomap[0].into(),
        }
    }

    fn arrive(&mut self, band: usize, packet: Parcel) {
        if band < usize::from(self.settings.strict) {
            self.round.sharers[band].packets.push_back(packet);
        } else {
            self.round.arrive(band, packet);
        }
    }

    fn leave(&mut self) -> Option<Parcel> {
        let strict = &mut self.round.sharers[..usize::from(self.settings.strict)];
        let packet = strict.iter_mut().find_map(|band| band.packets.pop_front());
        let packet = packet.or_else(|| self.round.leave());
        self.sent.sent_bytes += packet.map_or(0, |packet| u64::from(packet.bytes));
        self.sent.sent_packets += u64::from(packet.is_some());
        packet
    }

    fn statistics(&self) -> Statistics {
        let mut all = self.sent;
        all.dropped = self.dropped;
        let held = self.round.sharers.iter().flat_map(|band| &band.packets);
        held.for_each(|packet| all.arrived(packet.bytes));
        all
    }
}

fn settings(below: &mut impl FnMut(u32) -> u32) -> EtsSettings {
    let bands = 1 + below(16) as u8;
    EtsSettings {
        quanta: std::array::from_fn(|_| 1 + below(3_000)),
        priomap: std::array::from_fn(|_| below(bands.into()) as u8),
        ..EtsSettings::new(bands, below(u32::from(bands) + 1) as u8)
    }
}

/// Goal: packets leave from strict bands in order, then in the paper's, whatever names the band; bands come,
/// go and become others with what they hold. Method: random steps, and every count after each; bands are told
/// something else while none that shares has a packet, as a deficit that has been given is no list's.
#[test]
fn packets_leave_as_the_model_says() {
    for seed in 0..300 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut below = |most: u32| random.next_u32() % most;
        let told = settings(&mut below);
        let (mut queue, mut model) = (Ets::new(told).expect("they can be"), Model::new(told));
        for number in 0..500 {
            match below(24) {
                0..=9 => {
                    let majors = [0, 0, 0, 1 << 16, 7 << 16];
                    let priority = majors[below(5) as usize] + below(20);
                    let filtered = (below(3) == 0).then(|| below(20) as u16);
                    let packet = parcel(number, priority, 1 + below(1_500));
                    let verdict = match filtered {
                        Some(minor) => queue.enqueue_filtered(NOW, class(minor), packet),
                        None => queue.enqueue(NOW, packet),
                    };
                    assert!(verdict.is_accepted());
                    model.arrive(model.band(priority, filtered), packet);
                }
                10..=21 => {
                    assert_eq!(queue.dequeue(NOW).packet(), model.leave(), "seed {seed}, step {number}");
                }
                22 if (0..16).all(|band| !model.round.is_active(band)) => {
                    let told = settings(&mut below);
                    assert_eq!(queue.change(told), Ok(()));
                    model.tell(told);
                }
                _ => {
                    let minor = 1 + below(16) as u16;
                    let is_there = minor <= u16::from(model.settings.bands);
                    assert_eq!(queue.graft_inner(NOW, class(minor), None), is_there);
                    if is_there {
                        model.clear(usize::from(minor) - 1);
                    }
                }
            }
            assert_eq!(queue.statistics(), model.statistics(), "seed {seed}, step {number}");
            assert_eq!(queue.is_empty(), model.statistics().qlen == 0);
        }
    }
}

/// Two bands that share behind one that is strict, with three packets of 400 each, but for the strict one.
fn shared() -> Ets<Parcel> {
    let mut quanta = [1_000; 16];
    quanta[2] = 500;
    let mut queue = Ets::new(EtsSettings { quanta, ..EtsSettings::new(3, 1) }).expect("they can be");
    for number in 0..6 {
        let band = 2 + (number % 2) as u16;
        assert!(queue.enqueue_to(NOW, class(band), parcel(number, 0, 400)).is_accepted());
    }
    queue
}

fn leave(queue: &mut Ets<Parcel>, count: usize) -> Vec<u32> {
    (0..count).filter_map(|_| queue.dequeue(NOW).packet()).map(|packet| packet.number).collect()
}

/// Goal: a band keeps its turn through a change that leaves it sharing; one that becomes strict goes first,
/// and one that begins to share gets a whole quantum behind the others. Method: by hand, from the middle of a
/// turn.
#[test]
fn changes_in_a_turn() {
    let mut queue = shared();
    assert_eq!(leave(&mut queue, 1), [0]);
    // 600 of band 1's turn are left: one more packet, whatever its next quantum is.
    queue.set_quantum(1, 400).expect("it shares");
    assert_eq!(leave(&mut queue, 5), [2, 1, 4, 3, 5]);
    let mut queue = shared();
    assert_eq!(leave(&mut queue, 1), [0]);
    let told = *queue.settings();
    queue.change(EtsSettings { strict: 2, ..told }).expect("they can be");
    assert_eq!(leave(&mut queue, 2), [2, 4], "band 1 is strict");
    let mut queue = shared();
    assert!(queue.enqueue_to(NOW, class(1), parcel(9, 0, 400)).is_accepted());
    queue.change(EtsSettings { strict: 0, ..told }).expect("they can be");
    assert_eq!(leave(&mut queue, 7), [0, 2, 1, 9, 4, 3, 5], "band 0 is the last of three");
}

/// Goal: a strict band that waits holds back itself only, one that shares holds back all that share; the
/// moment that comes first is told. Method: gates in a strict band and in one that shares.
#[test]
fn bands_that_wait() {
    let mut queue = Ets::new(EtsSettings::new(4, 2)).expect("they can be");
    for (band, at) in [(1, 900), (3, 700)] {
        assert!(queue.graft_inner(NOW, class(band), Some(Box::new(Gate::new(Nanos(at), 0, 0)))));
    }
    for (number, band) in [(0, 1), (1, 2), (2, 3), (3, 4)] {
        assert!(queue.enqueue_to(NOW, class(band), parcel(number, 0, 100)).is_accepted());
    }
    assert_eq!(leave(&mut queue, 1), [1], "band 2 is strict, too");
    assert_eq!(throttled(queue.dequeue(NOW)), Nanos(700));
    let mut at = |at| queue.dequeue(Nanos(at)).packet().map(|packet| packet.number);
    assert_eq!([at(700), at(700)], [Some(2), Some(3)]);
    assert_eq!(throttled(queue.dequeue(Nanos(700))), Nanos(900));
    queue.reset(Nanos(700));
    assert_eq!((queue.dequeue(Nanos(900)), queue.is_empty()), (Dequeued::Empty, true));
}

/// Goal: a band that is emptied or filled where it is takes part as it has to. Method: one that shares, and
/// another discipline in its place.
#[test]
fn a_band_that_is_changed_takes_part() {
    let mut queue = shared();
    queue.change_inner(NOW, class(2), &mut |inner| inner.reset(NOW));
    assert_eq!(leave(&mut queue, 3), [1, 3, 5]);
    queue.change_inner(NOW, class(2), &mut |inner| {
        assert!(inner.enqueue(NOW, parcel(7, 0, 100)).is_accepted());
    });
    assert_eq!(leave(&mut queue, 2), [7]);
    let mut queue = shared();
    assert!(queue.graft_inner(NOW, class(2), Some(Box::new(Fifo::new(FifoLimit::Packets(1))))));
    assert_eq!(leave(&mut queue, 4), [1, 3, 5]);
    assert_eq!((queue.statistics().dropped, queue.statistics().qlen), (3, 0));
}

/// Goal: settings that cannot be are refused, and change nothing. Method: both sides of each limit, with
/// texts.
#[test]
fn settings_that_cannot_be() {
    let least = EtsSettings::new(1, 1);
    let mut queue = Ets::<Parcel>::new(least).expect("the least");
    for (bands, strict, text) in [
        (0, 0, "0 bands: there are 1 to 16"),
        (17, 0, "17 bands: there are 1 to 16"),
        (2, 3, "3 strict bands of 2"),
    ] {
        let refused = queue.change(EtsSettings::new(bands, strict)).map_err(|error| error.to_string());
        assert_eq!(refused, Err(text.into()));
    }
    let with = |band, quantum| EtsSettings {
        quanta: std::array::from_fn(|at| if at == band { quantum } else { 1 }),
        ..EtsSettings::new(3, 1)
    };
    assert_eq!(queue.change(with(2, 0)), Err(EtsError::Quantum { band: 2 }));
    let band = |band| EtsSettings { priomap: [band; 16], ..least };
    assert_eq!(queue.change(band(1)), Err(EtsError::Band { priority: 0, band: 1 }));
    assert_eq!(queue.set_quantum(0, 5), Err(EtsError::NotSharing { band: 0 }));
    assert_eq!(queue.settings(), &least);
    assert_eq!(queue.change(with(0, 0)), Ok(()), "a strict band needs none");
    assert_eq!(queue.set_quantum(2, 0), Err(EtsError::Quantum { band: 2 }));
    assert_eq!(queue.set_quantum(3, 5), Err(EtsError::NotSharing { band: 3 }));
    assert_eq!(queue.change(EtsSettings::new(16, 16)), Ok(()));
    assert_eq!(queue.classes().last(), Some(&class(16)));
    assert!(Classful::remove_class(&mut queue, class(16)).is_err());
}

/// Goal: a band whose queue drops all that it held to make room has no turn, and begins anew behind the
/// others. Method: an fq_codel for one packet, which drops both when a longer one comes.
#[test]
fn a_band_that_drops_all_has_no_turn() {
    let now = Nanos(0);
    let mut queue = Ets::new(EtsSettings::new(2, 0)).expect("settings");
    let one = FqCodel::new(FqCodelSettings { limit: 1, ..FqCodelSettings::default() }).expect("settings");
    assert!(queue.graft_inner(now, class(1), Some(Box::new(one))));
    for (number, band, bytes) in [(0, 1, 100), (1, 2, 1_500), (2, 1, 1_000), (3, 1, 100)] {
        let _ = queue.enqueue(now, parcel(number, 1 << 16 | band, bytes));
    }
    assert_eq!(queue.statistics().dropped, 2);
    let order =
        [queue.dequeue(now), queue.dequeue(now)].map(|left| left.packet().expect("two are left").number);
    assert_eq!(order, [1, 3]);
}
