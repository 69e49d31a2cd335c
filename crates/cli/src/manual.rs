//! `5spot man`: the manual pages, from the definitions of commands and flags.

use crate::args::{Args as TopArgs, Outcome};
use crate::output::{complain, show};
use anyhow::Context as _;
use clap::builder::Resettable;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use std::fs;
use std::path::{Path, PathBuf};

/// Write manual pages
///
/// Writes the pages of 5spot and its commands, of 5spot-controller and of 5spot-reclaim-agent into a directory.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// The directory; it is created if it does not exist
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  5spot man ~/.local/share/man/man1 && man 5spot-preview
  5spot man pages && man -l pages/5spot-controller.1";

/// An empty argument of the title. Without the quotes the version would become the date.
const NO_DATE: &str = "\"\"";

/// Writes the pages.
pub fn run(args: &Args) -> Outcome {
    let written = write(&args.directory)
        .and_then(|count| Ok(show(&format!("wrote {count} pages to {}\n", args.directory.display()))?));
    match written {
        Ok(()) => Outcome::Fine,
        Err(error) => {
            complain(&format!("error: {error:#}"));
            Outcome::Failed
        }
    }
}

/// The number of pages written.
fn write(directory: &Path) -> anyhow::Result<usize> {
    fs::create_dir_all(directory).with_context(|| format!("failed to create {}", directory.display()))?;
    let programs = [
        TopArgs::command(),
        five_spot_controller::args::Args::command(),
        five_spot_agent::args::Args::command(),
    ];
    let mut count = 0;
    for mut program in programs {
        program = program.disable_help_subcommand(true);
        program.build();
        count += write_pages(&program, directory)?;
    }
    Ok(count)
}

/// Writes the page of a command and those of its commands.
fn write_pages(command: &Command, directory: &Path) -> anyhow::Result<usize> {
    let (name, text) = page(command)?;
    let file = directory.join(name);
    fs::write(&file, text).with_context(|| format!("failed to write {}", file.display()))?;
    let mut count = 1;
    for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        count += write_pages(command, directory)?;
    }
    Ok(count)
}

/// The name and the text of a page. Examples keep their lines.
fn page(command: &Command) -> anyhow::Result<(String, Vec<u8>)> {
    let notes = command.get_after_long_help().or(command.get_after_help()).map(ToString::to_string);
    let bare = command.clone().after_help(Resettable::Reset).after_long_help(Resettable::Reset);
    let page =
        Man::new(bare).date(NO_DATE).source(concat!("5-Spot ", env!("CARGO_PKG_VERSION"))).manual("5-Spot");
    let mut text = Vec::new();
    page.render(&mut text)?;
    if let Some(notes) = notes {
        let mut section = Roff::new();
        section.control("SH", ["NOTES"]).control("nf", []).text([roman(notes)]).control("fi", []);
        text.extend(section.to_roff().into_bytes());
    }
    Ok((page.get_filename(), text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_name_the_version_and_the_manual_and_no_date() {
        let (name, text) = page(&Command::new("5spot-why")).expect("a page");
        assert_eq!(name, "5spot-why.1");
        let text = String::from_utf8(text).expect("text");
        let title = text.lines().find(|line| line.starts_with(".TH ")).expect("a title");
        assert_eq!(title, concat!(".TH 5spot-why 1 \"\" \"5-Spot ", env!("CARGO_PKG_VERSION"), "\" 5-Spot"));
    }
}
