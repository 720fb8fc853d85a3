//! `quietcore tc`: says to a running `quietcore netem` what `tc` would say to the kernel.
//!
//! A line that is no command is refused here. Others are sent to the instance that has the device.

use crate::error::CliError;
use crate::netem::script::Script;
use crate::outcome::CommandOutcome;
use crate::output;
use clap::Args;
use quietcore_net::instance::{self, InstanceRecord, ask};
use quietcore_qdisc::filter::{Ematch, EmatchMeta, EmatchOperand, EmatchTerm};
use quietcore_qdisc::tc::{Classifier, Command, TcVerb, parse};
use std::os::unix::net::UnixStream;
use std::path::Path;

const AFTER_HELP: &str = "\
The words are tc's: qdisc, class and filter, as in tc(8).
  quietcore tc qdisc add dev eth1 root netem delay 10ms
  quietcore tc -s qdisc show dev eth1
Before them:
  -b, -batch FILE   carry out the lines of FILE (`-`: standard input), if all of them are commands
  -n, -name NAME    ask the instance NAME, where several have such a device
  -s -d -j -p -g -iec -N   as tc's; -q, -quietcore: with what only quietcore counts
  -V                the version

Exit codes are tc's: 0 done; 1 or 255 a line that cannot be read (the word is
marked); 2 what was refused. The kernel's disciplines are never touched.";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct TcArgs {
    /// The words that tc would be given
    #[arg(value_name = "WORDS", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// What the words are, besides a line.
#[derive(Debug, Default, PartialEq, Eq)]
struct Request {
    /// The instance that is asked.
    name: Option<String>,
    batch: Option<String>,
    line: String,
}

impl Request {
    fn new(words: &[String]) -> Result<Self, CliError> {
        let mut request = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.as_slice().first() {
            let (option, value) = match word.as_str() {
                "-n" | "-name" | "--name" => (&mut request.name, "the name of an instance"),
                "-b" | "-batch" | "--batch" => (&mut request.batch, "the name of a file, or -"),
                _ => break,
            };
            words.next();
            let missing = || CliError::Usage(format!("tc {word} needs {value}"));
            *option = Some(words.next().ok_or_else(missing)?.clone());
        }
        request.line = words.as_slice().join(" ");
        if request.batch.is_some() && !request.line.is_empty() {
            let sentence = format!("tc -batch takes no other words; `{}` is one", request.line);
            return Err(CliError::Usage(sentence));
        }
        Ok(request)
    }
}

pub(crate) fn run(args: &TcArgs) -> Result<CommandOutcome, CliError> {
    let request = Request::new(&args.words)?;
    if let Some(file) = &request.batch {
        let script = Script::read(Path::new(file))?;
        let mut instances = None;
        let printed = script.run(|command, line| {
            let instances = instances.get_or_insert_with(instance::running);
            execute(instances, request.name.as_deref(), command, line)
        })?;
        output::print(&printed)?;
        return Ok(CommandOutcome::Fine);
    }
    if let Some(told) = about(&request.line) {
        told.tell()?;
        return Ok(CommandOutcome::Fine);
    }
    let command = match parse(&request.line) {
        Ok(command) => command,
        Err(error) => {
            output::say(&format!("this is no command of tc:\n{error}"));
            return Ok(CommandOutcome::Exited(error.exit_code()));
        }
    };
    match execute(&mut instance::running(), request.name.as_deref(), &command, &request.line)? {
        Ok(text) => output::print(&text)?,
        Err(why) => return Err(CliError::Live(why)),
    }
    Ok(CommandOutcome::Fine)
}

/// As tc warns: on standard error, and the line is carried out.
const NO_MARKS: &str = "Warning: packets bring no mark through a TUN interface or a socket, so this filter is for \
                        none of them; match addresses, ports or the DSCP field instead";

/// Whether a filter is made that looks at marks.
fn looks_at_marks(command: &Command) -> bool {
    fn any_mark(list: &[Ematch]) -> bool {
        let is_mark =
            |side: &EmatchOperand| matches!(side, EmatchOperand::Meta { what: EmatchMeta::Mark, .. });
        list.iter().any(|ematch| match &ematch.term {
            EmatchTerm::Meta(left, _, right) => is_mark(left) || is_mark(right),
            EmatchTerm::Group(list) => any_mark(list),
            _ => false,
        })
    }
    let Command::Filter(command) = command else { return false };
    let looks = match &command.classifier {
        Some(Classifier::Fw(_)) => true,
        Some(Classifier::U32(options)) => {
            options.selector.as_ref().is_some_and(|selector| selector.mark.is_some())
        }
        Some(Classifier::Basic(options)) => any_mark(&options.matches),
        _ => false,
    };
    looks && command.verb != TcVerb::Delete
}

/// What a line asks of the program itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    Version,
    Help,
}

impl About {
    fn tell(self) -> Result<(), CliError> {
        match self {
            Self::Version => {
                output::print(concat!("tc utility, quietcore-", env!("CARGO_PKG_VERSION"), "\n"))
            }
            // As tc, which keeps standard output for answers.
            Self::Help => {
                output::say_as_it_is(AFTER_HELP);
                Ok(())
            }
        }
    }
}

/// `-V`, `help`, `qdisc help`.
fn about(line: &str) -> Option<About> {
    let mut words = line.split_whitespace();
    let flag = words.by_ref().find(|word| !word.starts_with('-') || is_begin(word, "-Version"))?;
    let is_help = |word: &str| word == "help";
    match (flag, words.next()) {
        (flag, _) if is_begin(flag, "-Version") => Some(About::Version),
        (object, verb) if is_help(object) || verb.is_some_and(is_help) => Some(About::Help),
        _ => None,
    }
}

/// Whether a word is a flag, or a beginning of it.
fn is_begin(word: &str, flag: &str) -> bool {
    word.len() > 1 && flag.starts_with(word)
}

type Running = (InstanceRecord, UnixStream);

/// Asks the instance of that name that has the device; without either, the only instance.
fn execute(
    instances: &mut [Running],
    name: Option<&str>,
    command: &Command,
    line: &str,
) -> Result<Result<String, String>, CliError> {
    let records: Vec<&InstanceRecord> = instances.iter().map(|(record, _)| record).collect();
    let at = chosen(&records, name, device_of(command)).map_err(CliError::Live)?;
    let (record, stream) = &mut instances[at];
    let failed = |error| CliError::Live(format!("instance {} does not answer: {error}", record.name));
    let answer = ask(stream, line).map_err(failed)?;
    if answer.is_ok() && looks_at_marks(command) {
        output::say(NO_MARKS);
    }
    Ok(answer)
}

fn device_of(command: &Command) -> Option<&str> {
    match command {
        Command::Qdisc(command) => Some(&command.device),
        Command::Class(command) => Some(&command.device),
        Command::Filter(command) => Some(&command.device),
        Command::Show(command) => command.device.as_deref(),
        _ => None,
    }
}

/// Which of the instances is meant.
fn chosen(records: &[&InstanceRecord], name: Option<&str>, device: Option<&str>) -> Result<usize, String> {
    let is_named = |record: &InstanceRecord| name.is_none_or(|name| record.name == name);
    let has = |record: &InstanceRecord| {
        is_named(record) && device.is_none_or(|device| record.devices.iter().any(|name| name == device))
    };
    let found: Vec<usize> = (0..records.len()).filter(|&at| has(records[at])).collect();
    let names =
        |all: &[usize]| all.iter().map(|&at| records[at].name.as_str()).collect::<Vec<_>>().join(", ");
    match (found.as_slice(), device) {
        (&[at], _) => Ok(at),
        ([], _) if records.is_empty() => {
            let remedy = "start one: quietcore netem tun (root), or quietcore netem relay";
            Err(format!("no instance runs; {remedy}"))
        }
        ([], _) if !records.iter().any(|record| is_named(record)) => {
            let (name, known) = (name.unwrap_or_default(), names(&(0..records.len()).collect::<Vec<_>>()));
            Err(format!("no instance {name} runs; there are {known}"))
        }
        ([], device) => {
            let named = records.iter().filter(|record| is_named(record));
            let devices = named.flat_map(|record| record.devices.iter().map(String::as_str));
            let (device, known) = (device.unwrap_or_default(), devices.collect::<Vec<_>>().join(", "));
            Err(match name {
                Some(name) => format!("instance {name} has no device {device}; there are {known}"),
                None => format!("no running instance has a device {device}; there are {known}"),
            })
        }
        (several, Some(device)) => {
            let names = names(several);
            Err(format!("several instances have a device {device}: {names}; say which: tc -n NAME ..."))
        }
        (several, None) => {
            let names = names(several);
            Err(format!("several instances run: {names}; name a device, or say which: tc -n NAME ..."))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{About, Request, about, chosen, device_of, looks_at_marks};
    use quietcore_net::instance::InstanceRecord;
    use quietcore_qdisc::tc::parse;

    fn words(line: &str) -> Result<Request, String> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        Request::new(&words).map_err(|error| error.to_string())
    }

    /// Goal: our own options stand before tc's words, whose options are left alone.
    #[test]
    fn options_stand_before_the_words() {
        let request = words("-n lab -s qd show").unwrap();
        assert_eq!((request.name.as_deref(), request.line.as_str()), (Some("lab"), "-s qd show"));
        let request = words("-batch -").unwrap();
        assert_eq!((request.batch.as_deref(), request.line.as_str()), (Some("-"), ""));
        assert_eq!(words("-b f qd").unwrap_err(), "tc -batch takes no other words; `qd` is one");
        assert_eq!(words("-n").unwrap_err(), "tc -n needs the name of an instance");
    }

    /// Goal: what is asked of the program itself is told apart from lines. Method: both, alone and behind a
    /// flag or an object; lines in which the words mean something else.
    #[test]
    fn what_is_asked_of_the_program() {
        for (line, asked) in [
            ("-V", Some(About::Version)),
            ("-s -Version", Some(About::Version)),
            ("help", Some(About::Help)),
            ("qdisc help", Some(About::Help)),
            ("qdisc show dev help", None),
            ("-s qd show", None),
            ("", None),
        ] {
            assert_eq!(about(line), asked, "{line}");
        }
    }

    /// Goal: only filters of marks are warned of. Method: each kind, with and without.
    #[test]
    fn marks_are_warned_of() {
        let warned = |line: &str| looks_at_marks(&parse(&format!("filter {line}")).unwrap());
        assert!(warned("add dev eth1 protocol ip handle 6 fw flowid 1:1"));
        assert!(warned("add dev eth1 u32 match mark 6 0xff flowid 1:1"));
        assert!(warned("replace dev eth1 basic match (cmp(u8 at 0 eq 1) or meta(nf_mark eq 6)) flowid 1:1"));
        assert!(warned("add dev eth1 basic match meta(priority eq nf_mark) flowid 1:1"));
        assert!(!warned("del dev eth1 prio 1 handle 6 fw"));
        assert!(!warned("add dev eth1 u32 match u32 0 0 flowid 1:1"));
        assert!(!warned("add dev eth1 basic match meta(priority eq 6) flowid 1:1"));
        assert!(!warned("add dev eth1 matchall flowid 1:1"));
        assert!(!warned("show dev eth1"));
    }

    /// Goal: the instance that has the device is asked, and every other case names the remedy.
    #[test]
    fn who_has_the_device_is_asked() {
        let record = |name: &str, devices: &[&str]| InstanceRecord {
            name: name.to_owned(),
            devices: devices.iter().map(|&device| device.to_owned()).collect(),
            ..InstanceRecord::default()
        };
        let (one, two) = (record("one", &["eth1", "eth2"]), record("two", &["eth2", "eth3"]));
        let both = [&one, &two];
        let of = |name, line: &str| chosen(&both, name, device_of(&parse(line).unwrap()));
        let ask = |line: &str| of(None, line);
        assert_eq!(ask("qd add dev eth1 root fq"), Ok(0));
        assert_eq!(ask("class show dev eth3"), Ok(1));
        assert_eq!(of(Some("two"), "filter show dev eth2"), Ok(1));
        assert_eq!(ask("filter add dev eth3 parent 1: protocol ip prio 1 matchall classid 1:1"), Ok(1));
        assert_eq!(of(Some("one"), "qd show"), Ok(0));
        insta::assert_snapshot!(
            "refused",
            [
                ask("qd del dev eth2 root"),
                ask("qd del dev eth9 root"),
                ask("qd show"),
                of(Some("three"), "qd show"),
                of(Some("two"), "class del dev eth1 classid 1:1"),
                chosen(&[], Some("one"), Some("eth1")),
            ]
            .map(Result::unwrap_err)
            .join("\n")
        );
        assert_eq!(chosen(&[&one], None, None), Ok(0), "there is only one");
    }
}
