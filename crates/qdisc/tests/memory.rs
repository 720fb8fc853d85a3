//! What a packet costs in memory: nothing, once a discipline has held as many as it holds.

mod common;

use common::{Parcel, id, rate};
use quietcore_core::Nanos;
use quietcore_qdisc::action::{
    ControlAction, Gact, GactChoice, GactRandom, Police, PoliceRate, PoliceSettings,
};
use quietcore_qdisc::filter::{
    Ematch, EmatchCompare, EmatchLayer, EmatchOperator, EmatchTerm, FlowerKeys, U32Address, U32Hash, U32Rule,
    U32Selector, U32Tables, are_met,
};
use quietcore_qdisc::{
    Cake, CakeSettings, CakeTins, ClassId, Codel, CodelLaw, CodelSettings, Dequeued, Distribution, Drr, Ets,
    EtsSettings, Fifo, FifoLimit, Fq, FqCodel, FqCodelSettings, FqSettings, Hfsc, HfscClass, Htb, HtbClass,
    HtbSettings, IdleDamping, InnerQdisc, IpPacket, Multiq, Netem, NetemDelay, NetemSettings, Noqueue,
    Packet, PfifoFast, Probability, Qdisc, Red, RedCurve, RedSettings, ServiceCurve, Sfq, SfqSettings, Tbf,
    TbfLimit, TbfSettings,
};
use quietcore_testing::{CountingAllocator, allocations};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// A parcel whose class is its flow, too.
#[derive(Debug)]
struct Flowing(Parcel);

impl Packet for Flowing {
    fn len(&self) -> u32 {
        self.0.bytes
    }

    fn flow(&self) -> u64 {
        u64::from(self.0.class.0).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn priority(&self) -> u32 {
        self.0.class.0
    }
}

/// Numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn draw(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) as u32
    }
}

/// Packets of 40 classes come and go, at 0 to 999 ns from one another; `most` are held at most, and twice as
/// many before it counts. It is full and empty by turns. Says how often memory was asked for.
fn pass(qdisc: &mut dyn Qdisc<Flowing>, most: u64) -> u64 {
    let (mut now, mut numbers) = (Nanos(1 << 40), Numbers(0x2545_f491_4f6c_dd1d));
    let mut before = 0;
    let steps = 60_000;
    for step in 0..2 * steps {
        if step == steps {
            before = allocations();
        }
        now.0 += u64::from(numbers.draw() % 1_000);
        let class = id(0x10 + (numbers.draw() % 40) as u16);
        let is_filled = (step / 3_000) % 2 == 0;
        let most = if step < steps { 2 * most } else { most };
        if is_filled || numbers.draw() % 4 == 0 {
            let bytes = 60 + numbers.draw() % 1_400;
            let _ = qdisc.enqueue(now, Flowing(Parcel { number: step, class, bytes }));
        }
        if !is_filled || qdisc.statistics().qlen >= most {
            while let Dequeued::Packet(packet) = qdisc.dequeue(now) {
                assert!(packet.0.number <= step);
                if qdisc.statistics().qlen % 3 == 0 {
                    break;
                }
            }
        }
    }
    let asked = allocations() - before;
    assert!(qdisc.statistics().sent_packets > 25_000, "{:?}", qdisc.statistics());
    asked
}

fn netem(jitter: u64, distribution: Option<Distribution>) -> impl Qdisc<Flowing> {
    let mut numbers = Numbers(77);
    let delay = NetemDelay {
        latency: Nanos(200_000),
        jitter: Nanos(jitter),
        distribution,
        correlation: Probability::NEVER,
    };
    let settings = NetemSettings { delay, limit: 500, ..NetemSettings::default() };
    Netem::new(settings, move || numbers.draw(), Nanos(0)).expect("they go together")
}

fn classes() -> impl Iterator<Item = ClassId> {
    (0..40).map(|number| id(0x10 + number))
}

/// Goal: the test would see an allocation. Method: one.
#[test]
fn an_allocation_is_counted() {
    let before = allocations();
    drop(vec![1_u8]);
    assert_eq!(allocations(), before + 1);
}

/// Goal: nothing is allocated for a packet. Method: an allocator that counts, each discipline filled and
/// emptied twenty times; the first ten, with twice as many packets, do not count.
#[test]
fn no_packet_allocates() {
    assert_eq!(pass(&mut Fifo::new(FifoLimit::Packets(400)), 300), 0);
    assert_eq!(pass(&mut netem(0, None), 300), 0);
    assert_eq!(pass(&mut netem(150_000, None), 300), 0);
    assert_eq!(pass(&mut netem(50_000, Some(Distribution::normal())), 300), 0);
    let tbf = TbfSettings::new(rate(1_000_000_000), 3_000, TbfLimit::Bytes(1_000_000));
    assert_eq!(pass(&mut Tbf::new(tbf, Nanos(0)).expect("they go together"), 300), 0);
    for maxrate in [None, Some(100_000_000)] {
        let settings = FqSettings { maxrate, flow_limit: 20, ..FqSettings::default() };
        assert_eq!(pass(&mut Fq::new(settings).expect("they go together"), 300), 0);
    }
}

/// Goal: the same where packets are dropped as they leave, or for want of room. Method: as above; delays
/// that are soon too long, limits that are reached.
#[test]
fn no_packet_of_a_controlled_queue_allocates() {
    let law = CodelLaw { target: Nanos(50_000), interval: Nanos(300_000), ..CodelLaw::default() };
    let mut codel = Codel::new(CodelSettings { law, ..CodelSettings::default() });
    assert_eq!(pass(&mut codel, 300), 0);
    assert!(codel.statistics().dropped > 100, "{:?}", codel.statistics());
    let settings = FqCodelSettings { law, limit: 450, drop_batch: 5, ..FqCodelSettings::default() };
    let mut fq_codel = FqCodel::new(settings).expect("they go together");
    assert_eq!(pass(&mut fq_codel, 300), 0);
    assert!(fq_codel.fq_codel_statistics().limit_drops > 1_000, "{:?}", fq_codel.fq_codel_statistics());
    let settings = SfqSettings { limit: 400, depth: 8, perturb: Nanos(900_000), ..SfqSettings::default() };
    let mut numbers = Numbers(78);
    let mut sfq = Sfq::new(settings, move || numbers.draw(), Nanos(1 << 40)).expect("they go together");
    assert_eq!(pass(&mut sfq, 300), 0);
    assert!(sfq.statistics().dropped > 1_000, "{:?}", sfq.statistics());
    let idle = IdleDamping::new(4, 1_000, 1_250_000).expect("a usual link");
    let curve = RedCurve { min: 50_000, max: 150_000, weight_log: 4, probability: 1 << 28, idle };
    let (ecn, harddrop, nodrop, adaptive) = (false, false, false, true);
    let settings = RedSettings { limit: 1_000_000, curve, ecn, harddrop, nodrop, adaptive };
    let mut numbers = Numbers(79);
    let mut red = Red::new(settings, move || numbers.draw(), Nanos(1 << 40)).expect("they go together");
    assert_eq!(pass(&mut red, 150), 0);
    assert!(red.statistics().dropped > 1_000, "{:?}", red.statistics());
}

/// Goal: the same where a shaper, tins and hosts come on top, and a heap of the longest queues. Method: as
/// above; with a rate that packets wait for, and without one; memory that is soon used up.
#[test]
fn no_packet_of_a_cake_allocates() {
    for (bandwidth, memory_limit) in [(None, None), (Some(3_000_000_000), Some(540_000))] {
        let interval = Nanos(30_000_000);
        let tins = CakeTins::Diffserv4;
        let settings = CakeSettings { bandwidth, interval, memory_limit, tins, ..CakeSettings::default() };
        let mut numbers = Numbers(80);
        let mut cake = Cake::new(settings, move || numbers.draw()).expect("they go together");
        assert_eq!(pass(&mut cake, 300), 0);
        let unresponsive = cake.cake_statistics().tins.iter().any(|tin| tin.unresponsive_flows > 0);
        assert_eq!(unresponsive, memory_limit.is_some());
        assert_eq!(cake.statistics().dropped > 1_000, memory_limit.is_some(), "{:?}", cake.statistics());
    }
}

/// Goal: the same for bands, and for classes that take turns. Method: as above, 40 classes, or four bands.
#[test]
fn no_packet_of_a_band_allocates() {
    let mut drr = Drr::new(1);
    for class in classes() {
        drr.add_class(class, 1_000).expect("a new one");
        drr.set_inner(class, InnerQdisc::new(Fifo::new(FifoLimit::Packets(16)))).expect("it is there");
    }
    assert_eq!(pass(&mut drr, 300), 0);
    // Of another discipline's classes, all are in the band of priority 0: one that shares, one that is
    // strict.
    for strict in 0..2 {
        let ets = EtsSettings { major: 2, ..EtsSettings::new(1, strict) };
        assert_eq!(pass(&mut Ets::new(ets).expect("it can be"), 300), 0);
    }
    assert_eq!(pass(&mut Multiq::new(1, 4.try_into().expect("not 0")), 300), 0);
    assert_eq!(pass(&mut PfifoFast::new(), 300), 0);
    assert_eq!(pass(&mut Noqueue::new(), 300), 0);
}

/// Goal: the same for classes that borrow, wait for their ceil, and share. Method: as above, 40 classes.
#[test]
fn no_packet_of_a_class_allocates() {
    let mut htb = Htb::new(HtbSettings::default());
    htb.add_class(None, id(1), HtbClass::new(rate(2_000_000_000))).expect("the first");
    for class in classes() {
        let told = HtbClass { ceil: rate(300_000_000), ..HtbClass::new(rate(40_000_000)) };
        htb.add_class(Some(id(1)), class, told).expect("below the first");
        htb.set_inner(class, InnerQdisc::new(Fifo::new(FifoLimit::Packets(16)))).expect("a leaf");
    }
    assert_eq!(pass(&mut htb, 300), 0);
    let mut hfsc = Hfsc::new();
    let curve = |bytes| Some(ServiceCurve::linear(bytes));
    let link = HfscClass { link_share: curve(2_000_000_000), ..HfscClass::default() };
    hfsc.add_class(None, id(1), link).expect("the first");
    for class in classes() {
        let (realtime, link_share) = (curve(30_000_000), curve(50_000_000));
        let upper_limit = if class.minor() % 2 == 0 { curve(400_000_000) } else { None };
        let told = HfscClass { realtime, link_share, upper_limit };
        hfsc.add_class(Some(id(1)), class, told).expect("below the first");
        hfsc.set_leaf(Nanos(0), class, Box::new(Fifo::new(FifoLimit::Packets(16)))).expect("a leaf");
    }
    assert_eq!(pass(&mut hfsc, 300), 0);
}

/// Goal: a packet that goes through filters and actions asks for no memory. Method: tables that are linked, a
/// flower and extended matches, a police and a gact, 1,000 packets.
#[test]
fn filters_ask_for_no_memory() {
    let mut tables = U32Tables::default();
    let hash = Some(U32Hash { mask: 0xff, offset: 20 });
    let to = |link, flow| U32Rule::new(U32Selector { hash, ..U32Selector::default() }, link, flow);
    assert_eq!((tables.add_root(5), tables.add_table(Some(2), 5, 256)), (Ok(0x800), Ok(2)));
    tables.add_rule(5, None, None, to(Some(2), None)).expect("a rule");
    for bucket in 0..=u8::MAX {
        let place = U32Address { table: 2, bucket, rule: 0 };
        tables.add_rule(5, Some(place), None, to(None, Some(id(bucket.into())))).expect("a rule");
    }
    let keys = FlowerKeys { ip_protocol: Some(17), ..FlowerKeys::default() };
    let compare = EmatchCompare {
        bytes: 2,
        at: 2,
        layer: EmatchLayer::Transport,
        mask: 0,
        swapped: false,
        operator: EmatchOperator::Equal,
        value: 7,
    };
    let inside = Ematch { is_negated: false, term: EmatchTerm::Compare(compare), join: None };
    let list = [Ematch { is_negated: true, term: EmatchTerm::Group(vec![inside]), join: None }];
    let mut bytes = vec![0; 28];
    (bytes[0], bytes[3], bytes[9]) = (0x45, 28, 17);
    let mut packet = IpPacket::new(bytes);
    let rate = PoliceRate { rate: rate(1_000_000), burst: Nanos(5_000_000) };
    let (conform, exceed) = (ControlAction::Pass, ControlAction::Drop);
    let mut police =
        Police::new(PoliceSettings { rate: Some(rate), peak: None, mtu: 99, conform, exceed }, Nanos(0));
    let one_in_ten = GactRandom { choice: GactChoice::Counted, control: ControlAction::Drop, one_in: 10 };
    let mut gact = Gact::new(ControlAction::Continue, Some(one_in_ten));
    let (mut exceeding, mut dropped) = (0, 0);
    let before = allocations();
    for number in 0..1_000_u32 {
        exceeding += u32::from(police.ask(Nanos(u64::from(number) * 14_000), 28, 28).exceeds);
        dropped += u32::from(gact.ask(|| 0) == ControlAction::Drop);
        packet.corrupt(23, number % 8);
        let port = packet.bytes()[23];
        assert_eq!(tables.search(5, packet.bytes(), 0), Some(id(port.into())));
        assert!(keys.is_met(packet.bytes()));
        assert_eq!(are_met(&list, &packet), port != 7);
    }
    assert!((300..500).contains(&exceeding) && dropped == 100, "{exceeding} exceed half the rate");
    assert_eq!(allocations() - before, 0);
}
