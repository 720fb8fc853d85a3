//! `quietcore man FOLDER` and `quietcore completions SHELL`: what is typed, for `man` and for shells. Both
//! are made of the definitions that arguments are read with, so neither can say what is not so.

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::atomic_file::{AtomicFile, OutputContent};
use crate::error::CliError;
use crate::outcome::CommandOutcome;
use crate::output;
use clap::{Command, CommandFactory};
use quietcore_trace::visible_path;
use std::io::{self, Write};

const NAME: &str = "quietcore";

/// Writes a page for the command, and one for each of its commands.
pub(crate) fn man(args: &ManArgs) -> Result<CommandOutcome, CliError> {
    let pages = pages();
    for (name, page) in &pages {
        let mut file = AtomicFile::create(&args.folder.join(format!("{name}.1")), OutputContent::Ordinary)?;
        file.write_all(page)?;
        file.finish()?;
    }
    let folder = visible_path(&args.folder);
    output::print(&format!("{} pages are in {folder}; man -l {folder}/{NAME}.1 shows one\n", pages.len()))?;
    Ok(CommandOutcome::Fine)
}

/// The names of the pages, without `.1`, and what is in them.
fn pages() -> Vec<(String, Vec<u8>)> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let mut pages = vec![];
    add_pages(command, NAME, &mut pages);
    pages
}

fn add_pages(command: Command, name: &str, pages: &mut Vec<(String, Vec<u8>)>) {
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        add_pages(sub.clone(), &format!("{name}-{}", sub.get_name()), pages);
    }
    let page = clap_mangen::Man::new(command.display_name(name));
    let mut text = vec![];
    page.render(&mut text).expect("memory takes all");
    pages.push((name.to_owned(), text));
}

/// Prints the script that a shell reads.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<CommandOutcome, CliError> {
    let mut script = vec![];
    clap_complete::generate(args.shell, &mut Cli::command(), NAME, &mut script);
    io::stdout().lock().write_all(&script)?;
    Ok(CommandOutcome::Fine)
}
