//! Manual pages and shell completions, from the same definition as the help.

use super::outputs::{Kept, OutputFile, OutputKind};
use super::{orion_args, output};
use clap::Args;
use clap_complete::Shell;
use rigel_model::files::Directory;
use rigel_model::{Error, failed};
use std::path::PathBuf;

/// Write the manual pages into a directory
#[derive(Debug, Args)]
pub(super) struct ManArgs {
    /// Directory for the pages
    directory: PathBuf,
}

/// Print completions for a shell
#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Writes a page for the program, and one for each verb.
pub(super) fn man(args: &ManArgs, command: &clap::Command) -> Result<u8, Error> {
    let failed = |error: std::io::Error| {
        failed!(
            "cannot write manual pages to '{directory}': {error}",
            "give a directory that you may write to",
            directory = args.directory.display()
        )
    };
    Directory::make(&args.directory).map_err(failed)?;
    let mut pages = vec![("rigel".to_string(), command.clone())];
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        let name = format!("rigel-{}", verb.get_name());
        // The page's title is the name of the verb's command, which must have a static lifetime.
        let title: &'static str = name.clone().leak();
        pages.push((name, verb.clone().name(title)));
    }
    for (name, command) in pages {
        let mut page = Vec::new();
        clap_mangen::Man::new(command)
            .render(&mut page)
            .map_err(failed)?;
        let page = if name == "rigel-orion" {
            orion_args::single_dash_roff(&page)
        } else {
            page
        };
        let file = args.directory.join(format!("{name}.1"));
        OutputFile::beside(file, OutputKind::Manual).write(&page, &Kept::default())?;
    }
    Ok(0)
}

/// Prints the completions of a shell.
pub(super) fn completions(args: &CompletionsArgs, mut command: clap::Command) {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut command, "rigel", &mut text);
    output::raw(&String::from_utf8_lossy(&text));
}
