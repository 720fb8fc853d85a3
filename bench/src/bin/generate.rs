//! `generate KIND --size MIB`: writes input that is hard to read to standard output.

use clap::Parser;
use quietcore_bench::lines::{Kind, write};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::process::ExitCode;

/// Writes a trace, or what only looks like one, to standard output. The same bytes every time.
#[derive(Debug, Parser)]
struct Args {
    /// What to write
    kind: Kind,
    /// How much, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 1024)]
    size: u64,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let mut out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    let written = write(args.kind, args.size * quietcore_bench::MIB, &mut out).and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            eprintln!("generate: {error}");
            ExitCode::from(2)
        }
        _ => ExitCode::SUCCESS,
    }
}
