//! `quietcore netem tun`: two network namespaces, a TUN interface in each, and our devices between them.

use super::command::{Launcher, User, UserName};
use super::figures::{DeviceFigures, Figures, QueueFigures};
use super::privileges::{self, CommandOwner};
use super::script::Script;
use super::unprivileged;
use crate::args::value::PolicyArg;
use crate::error::CliError;
use crate::outcome::CommandOutcome;
use crate::output::{self, say};
use crate::signals::SignalFlag;
use crate::text::Page;
use clap::{Args, ValueEnum};
use quietcore_core::CpuSet;
use quietcore_net::Watchdog;
use quietcore_net::instance::{InstanceName, TunInstance, TunInstanceOptions};
use quietcore_net::tun::{Direction, Offload, TransmitMap};
use quietcore_trace::visible;
use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// How often a signal is looked for; one that comes while we wait ends the wait at once.
const LOOK: rustix::time::Timespec = rustix::time::Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
/// How long COMMAND has to end by itself.
const GRACE: Duration = Duration::from_secs(1);

const EXIT_CODES: &str = "\
The kernel picks a packet's queue by its flow; --xps says which CPU does a queue's work.

Exit codes: 130 after Ctrl-C or SIGTERM; with COMMAND, COMMAND's (128 and the number of the signal \
that ended it); 2 an error. Nothing is left behind (after a SIGKILL the next start tidies up), and no namespace of \
others is removed.

Needs /dev/net/tun, ip (iproute2), and root, or CAP_NET_ADMIN, CAP_SYS_ADMIN and CAP_DAC_OVERRIDE. It \
gives up every other privilege before it begins; COMMAND has the caller's. `quietcore netem relay` \
needs no privileges.

With --unprivileged no privileges either, where user namespaces are allowed and all users may open /dev/net/tun \
(0666): everything is in namespaces of this process's own, in which the caller is root, /run is empty, and there is no \
network but the wire. COMMAND is in them; `nsenter` gets other programs in.";

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct TunArgs {
    /// The instance's name; its network namespaces are NAME-a and NAME-b
    #[arg(long, value_name = "NAME", default_value = "qc")]
    name: InstanceName,
    /// Transmit queues of each device
    #[arg(long, value_name = "COUNT", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    queues: u16,
    /// The interface in NAME-a, and what `quietcore tc` calls the way from a to b
    #[arg(long, value_name = "NAME", default_value = "eth1", value_parser = interface)]
    dev: String,
    /// The interface in NAME-b, and the way from b to a
    #[arg(long, value_name = "NAME", default_value = "eth2", value_parser = interface)]
    peer: String,
    /// CPUs of queues, as 0=0-3,1=4-7; the first that is in --cpus does the work [default: in blocks]
    #[arg(long, value_name = "QUEUE=CPUS,...")]
    xps: Option<TransmitMap>,
    /// The CPUs that lanes drive [default: those that this process may run on]
    #[arg(long, value_name = "LIST")]
    cpus: Option<CpuSet>,
    /// Whether the timer of a queue that has to wait stays with the CPU that armed it
    #[arg(long, value_name = "WHETHER", default_value = "pinned")]
    watchdog: WatchdogName,
    /// Where timers go that may move
    #[arg(long, value_name = "POLICY", default_value = "pull")]
    policy: PolicyArg,
    /// Longest packet of the interfaces, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = clap::value_parser!(u16).range(1280..=65_535))]
    mtu: u16,
    /// Whether streams are cut into packets, and packets that leave together joined, in here: the same
    /// packets for the disciplines, fewer system calls
    #[arg(long, value_name = "WHETHER", default_value = "on")]
    offload: OffloadName,
    /// Bytes that disciplines count for each packet besides its own: a link's header, 14 as on Ethernet
    #[arg(long, value_name = "BYTES", default_value_t = 14)]
    link_header: u16,
    /// Most that the packets of one queue take, in MiB; more are dropped and counted
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    memory: u32,
    /// Where everything random begins: the same seed, the same losses for the same packets
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Lines of tc to begin with; `-` is standard input
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// As any user: in user, network and mount namespaces of its own
    #[arg(long, conflicts_with = "user")]
    unprivileged: bool,
    /// Run COMMAND as this user, without privileges [default: as the caller, with the caller's privileges]
    #[arg(long, value_name = "NAME|UID:GID", requires = "command")]
    user: Option<UserName>,
    /// Print the figures of the queues as JSON instead of text
    #[arg(long)]
    json: bool,
    /// Run this in NAME-a and end with it; the figures then go to standard error
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Where streams are cut into packets.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum OffloadName {
    /// We do: one system call for up to 64 KiB of a stream
    On,
    /// The kernel does: one system call to read each packet and one to write it
    Off,
}

impl OffloadName {
    const fn offload(self) -> Offload {
        match self {
            Self::On => Offload::On,
            Self::Off => Offload::Off,
        }
    }
}

/// Whether watchdogs stay where they are armed.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum WatchdogName {
    /// It does (since Linux 3.18)
    Pinned,
    /// It goes where --policy puts it
    Movable,
}

impl WatchdogName {
    const fn watchdog(self) -> Watchdog {
        match self {
            Self::Pinned => Watchdog::Pinned,
            Self::Movable => Watchdog::Movable,
        }
    }
}

/// Names that the kernel takes for interfaces, and that are one word for `ip`.
fn interface(text: &str) -> Result<String, String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let is_special = matches!(text, "" | "." | ".." | "lo" | "all" | "default") || text.starts_with('-');
    if text.len() <= 15 && text.bytes().all(allowed) && !is_special {
        return Ok(text.to_owned());
    }
    Err(format!("{text:?} is no name of an interface: 1 to 15 letters, digits, -, _ and ."))
}

pub(crate) fn run(args: &TunArgs) -> Result<CommandOutcome, CliError> {
    if args.dev == args.peer {
        let sentence = format!("--dev and --peer are both {}; tc could not tell them apart", args.dev);
        return Err(CliError::Usage(sentence));
    }
    let cpus = crate::host::lane_cpus(args.cpus.as_ref())?;
    let map = transmit_map(args, &cpus)?;
    let script = args.script.as_deref().map(Script::read).transpose()?;
    if args.unprivileged {
        unprivileged::enter()?;
    }
    let owner = if args.user.is_some() { CommandOwner::OtherUser } else { CommandOwner::Caller };
    privileges::check(owner)?;
    can_be(Path::new("/dev/net/tun"))?;
    let interrupt = SignalFlag::install()?;
    let launcher = launcher(args)?;
    privileges::give_up(owner)?;
    let instance = TunInstance::start(options(args, cpus, map))?;
    for name in instance.removed() {
        say(&format!("removed the network namespace {name} that a killed run left behind"));
    }
    let running = Running { args, instance };
    if let Some(script) = script {
        let printed = script.run(|_, line| Ok(running.instance.execute(line)))?;
        output::print(&printed)?;
    }
    let ended = if let Some(launcher) = launcher {
        running.run_command(launcher, &interrupt)?
    } else {
        if !args.json {
            output::print(&running.introduction())?;
        }
        while !interrupt.arrived() {
            let _ = rustix::event::poll(&mut [], Some(&LOOK));
        }
        CommandOutcome::Interrupted
    };
    running.print_figures()?;
    if let Err(error) = running.instance.end() {
        say(&error.to_string());
    }
    Ok(ended)
}

fn transmit_map(args: &TunArgs, cpus: &CpuSet) -> Result<Vec<CpuSet>, CliError> {
    let map = args.xps.clone().unwrap_or_default().cpus_of_queues(usize::from(args.queues), cpus);
    map.map_err(|error| CliError::Usage(format!("--xps: {error}")))
}

fn options(args: &TunArgs, cpus: CpuSet, transmit_map: Vec<CpuSet>) -> TunInstanceOptions {
    let mut options = TunInstanceOptions::new(args.name.clone(), cpus, transmit_map);
    options.devices = [args.dev.clone(), args.peer.clone()];
    (options.policy, options.watchdog) = (args.policy.policy(), args.watchdog.watchdog());
    (options.mtu, options.link_header) = (args.mtu, args.link_header);
    options.memory_max = u64::from(args.memory) << 20;
    (options.offload, options.seed) = (args.offload.offload(), args.seed);
    options
}

/// Whether the system has what it takes; if not, what is needed.
fn can_be(tun: &Path) -> Result<(), CliError> {
    if tun.exists() {
        return Ok(());
    }
    let remedy = "load the module (modprobe tun), or let the container have the device";
    let instead = "`quietcore netem relay` needs no privileges";
    Err(CliError::Live(format!("there is no {}: {remedy}; {instead}", tun.display())))
}

/// What starts COMMAND, if there is one, with the privileges of now.
fn launcher(args: &TunArgs) -> Result<Option<Launcher>, CliError> {
    if args.command.is_empty() {
        return Ok(None);
    }
    let user = args.user.as_ref().map(User::find).transpose();
    let user = user.map_err(|error| CliError::Usage(format!("--user: {error}")))?;
    let launcher = Launcher::new(&args.command, user);
    launcher.map(Some).map_err(|error| CliError::Live(format!("no thread for COMMAND: {error}")))
}

struct Running<'a> {
    args: &'a TunArgs,
    instance: TunInstance,
}

impl Running<'_> {
    /// Runs COMMAND in the first namespace until it ends. A signal that should end us is passed on to it
    /// after [`GRACE`]: Ctrl-C on a terminal reaches it by itself, and its last words should not be cut.
    fn run_command(&self, launcher: Launcher, interrupt: &SignalFlag) -> Result<CommandOutcome, CliError> {
        let shown = || visible(&self.args.command[0].to_string_lossy());
        let failed = |error: std::io::Error| CliError::Live(format!("{} cannot be run: {error}", shown()));
        let mut child = launcher.start(self.instance.namespaces()[0].as_fd()).map_err(failed)?;
        let ended = descriptor_of(&child);
        let mut handover = SignalHandover::default();
        loop {
            if let Some(status) = child.try_wait().map_err(failed)? {
                return Ok(CommandOutcome::Exited(exit_code(status)));
            }
            if interrupt.arrived() && handover.is_due(Instant::now()) {
                pass_on(&child);
            }
            wait_for(ended.as_ref());
        }
    }

    /// What is there, and what to do with it.
    fn introduction(&self) -> String {
        let namespaces = [0, 1].map(|end| self.instance.namespaces()[end].name());
        introduction(self.args, namespaces, self.instance.lanes())
    }

    fn figures(&self) -> Figures {
        let map = self.instance.transmit_map();
        let of_queue = |direction: &Direction, queue: usize| {
            let statistics = direction.device().statistics(queue);
            QueueFigures::new(queue, &map[queue], direction.refused(queue), &statistics)
        };
        let of_device = |direction: &Direction| {
            let queues = (0..direction.device().queues()).map(|queue| of_queue(direction, queue)).collect();
            let (lost_ahead, filtered) = (direction.device().lost_ahead(), direction.device().filtered());
            DeviceFigures { device: direction.name().to_owned(), lost_ahead, filtered, queues }
        };
        let devices = self.instance.directions().iter().map(of_device).collect();
        Figures { schema: 1, name: self.args.name.to_string(), devices }
    }

    /// To standard error if there is a COMMAND, whose standard output it is.
    fn print_figures(&self) -> Result<(), CliError> {
        let figures = self.figures();
        let text = if self.args.json {
            figures.warn();
            output::json(&figures)?
        } else {
            let mut page = if self.args.command.is_empty() { Page::for_stdout() } else { Page::plain() };
            figures.show(&mut page);
            page.into_text()
        };
        if self.args.command.is_empty() {
            return output::print(&text);
        }
        // If standard error is closed, COMMAND has ended all the same.
        output::say_as_it_is(&text);
        Ok(())
    }
}

fn introduction(args: &TunArgs, [a, b]: [&str; 2], lanes: &CpuSet) -> String {
    let TunArgs { dev, peer, queues, name, .. } = args;
    let pid = std::process::id();
    let way_in = if args.unprivileged {
        format!("get in first:    nsenter -t {pid} -U -n -m --preserve-credentials\n")
    } else {
        String::new()
    };
    format!(
        "{name}: {queues} queues each way, on CPUs {lanes}
  {a}  {dev}  10.77.0.1  fd77:7163::1
  {b}  {peer}  10.77.0.2  fd77:7163::2
{way_in}run programs:    ip netns exec {a} ping 10.77.0.2
shape a to b:    quietcore tc qdisc replace dev {dev} root netem delay 10ms
look:            quietcore tc -s qdisc show dev {dev}
end:             Ctrl-C\n"
    )
}

/// When a signal that should end us is passed on to COMMAND: once, [`GRACE`] after it was seen first.
#[derive(Debug, Default)]
struct SignalHandover {
    seen: Option<Instant>,
    is_told: bool,
}

impl SignalHandover {
    /// Asked as long as COMMAND runs, from when the signal has arrived.
    fn is_due(&mut self, now: Instant) -> bool {
        let seen = *self.seen.get_or_insert(now);
        now.saturating_duration_since(seen) >= GRACE && !std::mem::replace(&mut self.is_told, true)
    }
}

/// As a shell has it: of a program that a signal ended, 128 and its number.
fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// What is ready when `child` has ended, where the kernel has that.
fn descriptor_of(child: &Child) -> Option<OwnedFd> {
    let flags = rustix::process::PidfdFlags::empty();
    rustix::process::pidfd_open(rustix::process::Pid::from_child(child), flags).ok()
}

fn wait_for(ended: Option<&OwnedFd>) {
    use rustix::event::{PollFd, PollFlags, poll};
    // An early return (a signal) is what we want here; nothing else can fail.
    let _ = match ended {
        Some(ended) => poll(&mut [PollFd::new(ended, PollFlags::IN)], Some(&LOOK)),
        None => poll(&mut [], Some(&LOOK)),
    };
}

/// Asks `child` to end, as we were asked.
fn pass_on(child: &Child) {
    let child = rustix::process::Pid::from_child(child);
    // It may have ended meanwhile, or may have had the signal from the terminal as well.
    let _ = rustix::process::kill_process(child, rustix::process::Signal::TERM);
}

#[cfg(test)]
mod tests {
    use super::{GRACE, SignalHandover, TunArgs, can_be, exit_code, interface, introduction, transmit_map};
    use clap::{Args, FromArgMatches};
    use quietcore_core::place::Policy;
    use quietcore_net::Watchdog;
    use quietcore_net::instance::TunInstanceOptions;
    use quietcore_net::tun::Offload;
    use std::os::unix::process::ExitStatusExt;
    use std::path::Path;
    use std::process::ExitStatus;
    use std::time::{Duration, Instant};

    fn typed(words: &[&str]) -> TunArgs {
        let command = TunArgs::augment_args(clap::Command::new("tun"));
        let matches = command.try_get_matches_from([&["tun"], words].concat()).expect("options of tun");
        TunArgs::from_arg_matches(&matches).expect("options of tun")
    }

    /// Goal: COMMAND has its time to end by itself, and is then asked once. Method: moments around that.
    #[test]
    fn a_signal_is_passed_on_once() {
        let (mut handover, seen) = (SignalHandover::default(), Instant::now());
        let moments = [Duration::ZERO, GRACE - Duration::from_nanos(1), GRACE, 2 * GRACE];
        assert_eq!(moments.map(|span| handover.is_due(seen + span)), [false, false, true, false]);
    }

    /// Goal: COMMAND's exit code is handed on, and a signal that ended it. Method: raw states of both kinds.
    #[test]
    fn the_exit_code_is_that_of_the_command() {
        for (raw, code) in [(0, 0), (3 << 8, 3), (255 << 8, 255), (2, 130), (9, 137), (15, 143)] {
            assert_eq!(exit_code(ExitStatus::from_raw(raw)), code, "{raw:#x}");
        }
    }

    /// Goal: what is typed is what the instance has. Method: nothing, and each option with a value that no
    /// other has.
    #[test]
    fn an_instance_is_as_it_is_typed() {
        let options = |words: &[&str]| -> TunInstanceOptions {
            let map = ["0-1", "2-3"].map(|cpus| cpus.parse().expect("a list"));
            super::options(&typed(words), "0-3".parse().expect("a list"), map.into())
        };
        let usual = options(&[]);
        assert_eq!((usual.name.to_string(), usual.devices), ("qc".into(), ["eth1".into(), "eth2".into()]));
        assert_eq!((usual.policy, usual.watchdog), (Policy::Pull, Watchdog::Pinned));
        assert_eq!((usual.mtu, usual.link_header, usual.memory_max), (1500, 14, 64 << 20));
        assert_eq!((usual.offload, usual.seed), (Offload::On, 1));
        assert_eq!(
            (usual.lanes.to_string(), usual.transmit_map[1].to_string()),
            ("0-3".into(), "2-3".into())
        );
        let other = options(&[
            "--name=lab",
            "--dev=up",
            "--peer=down",
            "--policy=push",
            "--watchdog=movable",
            "--mtu=9000",
            "--link-header=18",
            "--memory=3",
            "--offload=off",
            "--seed=7",
        ]);
        assert_eq!((other.name.to_string(), other.devices), ("lab".into(), ["up".into(), "down".into()]));
        assert_eq!((other.policy, other.watchdog), (Policy::Push, Watchdog::Movable));
        assert_eq!((other.mtu, other.link_header, other.memory_max), (9000, 18, 3 << 20));
        assert_eq!((other.offload, other.seed), (Offload::Off, 7));
    }

    /// Goal: there are as many queues as are asked for, each with its CPUs. Method: one is named of three;
    /// one that is not there.
    #[test]
    fn queues_have_the_cpus_that_are_typed() {
        let map = |words: &[&str]| {
            let map = transmit_map(&typed(words), &"0-2".parse().expect("a list"));
            let map = map.map_err(|error| error.to_string())?;
            Ok::<_, String>(map.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        let refused = "--xps: there is no queue 3: there are 3, the first one is 0";
        assert_eq!(map(&["--queues=3"]), Ok(["0", "1", "2"].map(str::to_owned).into()));
        assert_eq!(map(&["--queues=3", "--xps=1=0-2"]), Ok(["0", "0-2", "2"].map(str::to_owned).into()));
        assert_eq!(map(&["--queues=3", "--xps=3=0"]), Err(refused.to_owned()));
    }

    /// Goal: devices that have one name are refused.
    #[test]
    fn two_devices_have_two_names() {
        let refused = super::run(&typed(&["--dev=x", "--peer=x"])).expect_err("they cannot be told apart");
        assert_eq!(refused.to_string(), "--dev and --peer are both x; tc could not tell them apart");
    }

    /// Goal: what can be typed next is about this instance. Method: no two words are the same.
    #[test]
    fn an_introduction_names_what_is_there() {
        let args = typed(&["--name=lab", "--queues=3", "--dev=up", "--peer=down"]);
        let expected = "\
lab: 3 queues each way, on CPUs 4-5
  lab-a  up  10.77.0.1  fd77:7163::1
  lab-b  down  10.77.0.2  fd77:7163::2
run programs:    ip netns exec lab-a ping 10.77.0.2
shape a to b:    quietcore tc qdisc replace dev up root netem delay 10ms
look:            quietcore tc -s qdisc show dev up
end:             Ctrl-C
";
        let shown = |args: &TunArgs| introduction(args, ["lab-a", "lab-b"], &"4-5".parse().expect("a list"));
        assert_eq!(shown(&args), expected);
        let hidden = shown(&typed(&["--unprivileged"]));
        let way_in =
            format!("nsenter -t {} -U -n -m --preserve-credentials\nrun programs:", std::process::id());
        assert!(hidden.contains(&way_in), "{hidden}");
    }

    /// Goal: names of interfaces are one word for `ip`, and the kernel takes them.
    #[test]
    fn interfaces_have_plain_names() {
        assert_eq!(interface("eth1.5"), Ok("eth1.5".to_owned()));
        for bad in ["", ".", "lo", "a b", "a/b", "a\nb", "-x", "sixteencharacter"] {
            assert!(interface(bad).is_err(), "{bad:?}");
        }
    }

    /// Goal: the error says what to do, and names the command that needs no privileges.
    #[test]
    fn what_is_needed_is_told() {
        let error = can_be(Path::new("/nowhere/tun")).unwrap_err().to_string();
        let expected = "there is no /nowhere/tun: load the module (modprobe tun), or let the container have \
                        the device; `quietcore netem relay` needs no privileges";
        assert_eq!(error, expected);
    }
}
