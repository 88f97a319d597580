//! What is expected of a run, as options of the verbs that have it, and the other formats of the answers.

use super::output;
use super::outputs::{Kept, OutputFile, OutputKind};
use clap::{Args, ValueEnum};
use rigel_model::{Bytes, Error, Expectation, Provisioned, usage};
use rigel_report::answers::CiSystem;
use rigel_verbs::Evaluated;
use rigel_verbs::expect::{Baseline, Expected, Profile, ProfileUsed};
use std::path::PathBuf;

/// What is expected of a run whose verb measures something else.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct ExpectedArgs {
    /// Also decide whether this is kept, as rigel expect does: 'iops>=3000', or a profile; may be
    /// repeated. Exit status: 3 one is not met; else 5 one was not measured, 4 one is undecided
    #[arg(long, value_name = "CONDITION")]
    expect: Vec<String>,
}

impl ExpectedArgs {
    /// The expectations, with those of profiles.
    /// `sold` is what the volume was sold with, if that is known.
    pub(super) fn expectations(
        &self,
        sold: Option<Provisioned>,
    ) -> Result<Vec<Expectation>, Error> {
        let mut asked = ExpectationsAsked {
            sold,
            ..ExpectationsAsked::default()
        };
        for text in &self.expect {
            if !asked.include(text)? {
                return Err(neither(text, "a known profile"));
            }
        }
        check_list(&asked.expectations)?;
        Ok(asked.expectations)
    }

    /// The same for a run that may be resumed, and then has those that it was begun with.
    pub(super) fn expectations_of_new(
        &self,
        is_resumed: bool,
        sold: Option<Provisioned>,
    ) -> Result<Vec<Expectation>, Error> {
        match self.expect.first() {
            Some(first) if is_resumed => Err(resumed(first)),
            _ => self.expectations(sold),
        }
    }
}

/// Formats of the answers besides the report.
#[derive(Debug, Args)]
pub(super) struct AnswerArgs {
    /// Also write the answers to this file, as JUnit XML for build servers
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Also add the answers to this file, a line each, the worst first; Kubernetes shows those in
    /// /dev/termination-log
    #[arg(long, value_name = "FILE")]
    message: Option<PathBuf>,
    /// Also print what is not met as annotations of this CI system
    #[arg(long, value_name = "SYSTEM", value_enum)]
    annotations: Option<AnnotatedBy>,
}

/// A CI system that shows annotations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AnnotatedBy {
    /// GitHub Actions
    Github,
    /// Azure Pipelines
    Azure,
}

impl AnnotatedBy {
    fn system(self) -> CiSystem {
        match self {
            Self::Github => CiSystem::Github,
            Self::Azure => CiSystem::Azure,
        }
    }
}

/// Refuses what is expected of a resumed run.
pub(super) fn resumed(expected: &str) -> Error {
    usage!(
        "'{expected}' is given with --resume",
        "a resumed run has its own expectations: leave them out, or start another run"
    )
}

/// Refuses what is neither an expectation nor what else it could be.
pub(super) fn neither(text: &str, nor: &str) -> Error {
    let nearest = Profile::nearest(text).map_or_else(String::new, |name| {
        format!("the nearest profile is {name}; ")
    });
    usage!(
        "'{text}' is neither an expectation, nor {nor}",
        "{nearest}rigel expect list shows all profiles"
    )
}

/// Refuses a list that is too long, or that says something twice.
pub(super) fn check_list(expectations: &[Expectation]) -> Result<(), Error> {
    let most = Expectation::MOST;
    if expectations.len() > most {
        return Err(usage!(
            "{count} expectations are too many for one run",
            "give at most {most}",
            count = expectations.len()
        ));
    }
    for (at, one) in expectations.iter().enumerate() {
        if expectations[..at].contains(one) {
            return Err(usage!(
                "'{one}' is given twice",
                "give every expectation once"
            ));
        }
    }
    Ok(())
}

/// What is expected by arguments of a command line.
#[derive(Debug, Default)]
pub(super) struct ExpectationsAsked {
    pub(super) expectations: Vec<Expectation>,
    /// What the volume was sold with, if that is known.
    pub(super) sold: Option<Provisioned>,
    pub(super) profiles: Vec<ProfileUsed>,
    /// Size of an I/O by a profile, and that profile's name.
    pub(super) size: Option<(Bytes, String)>,
}

impl ExpectationsAsked {
    /// Adds what an argument expects; false if it is neither an expectation nor a profile.
    pub(super) fn include(&mut self, argument: &str) -> Result<bool, Error> {
        if Provisioned::is_meant(argument) {
            let sold = self.sold.ok_or_else(|| {
                usage!(
                    "'{argument}' is a share of what the volume was sold with, and that is not given",
                    "add --provisioned, such as --provisioned 3000iops,125MiB/s"
                )
            })?;
            self.expectations.extend(sold.expected(argument)?);
        } else if let Some(baseline) = Baseline::named(argument)? {
            let measured = Evaluated::read(&baseline.path)?;
            let points = measured.results.points();
            self.add(baseline.expected(&measured.run.header, points)?)?;
        } else if Expectation::is_meant(argument) {
            self.expectations.push(argument.parse()?);
        } else if let Some(expected) = Profile::named(argument)? {
            self.add(expected)?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Adds what a profile expects.
    fn add(&mut self, expected: Expected) -> Result<(), Error> {
        let name = &expected.from.name;
        match (&self.size, expected.size) {
            (Some((size, other)), Some(its)) if *size != its => {
                return Err(usage!(
                    "'{name}' is about I/Os of {its}, and '{other}' about {size}",
                    "ask for each in a run of its own"
                ));
            }
            (None, Some(its)) => self.size = Some((its, name.clone())),
            _ => {}
        }
        // What two profiles expect is one line.
        for one in expected.expectations {
            if !self.expectations.contains(&one) {
                self.expectations.push(one);
            }
        }
        self.profiles.push(expected.from);
        Ok(())
    }
}

impl AnswerArgs {
    /// True if any form is asked for.
    pub(super) fn is_any(&self) -> bool {
        self.annotations.is_some() || self.junit.is_some() || self.message.is_some()
    }

    /// Refuses files that must not be written, before anything is measured.
    pub(super) fn refuse_others(&self, kept: &Kept) -> Result<(), Error> {
        [self.junit_file(), self.message_file()]
            .iter()
            .flatten()
            .try_for_each(|file| file.refuse_other(kept))
    }

    /// Tells the answers of a run in the forms that are asked for besides the report.
    pub(super) fn tell(&self, measured: &Evaluated, kept: &Kept) -> Result<(), Error> {
        let Some(found) = measured.answers() else {
            return Ok(());
        };
        let target = &measured.run.header.facts.name;
        if let Some(system) = self.annotations {
            output::raw(&found.annotations(system.system()));
        }
        if let Some(file) = self.junit_file() {
            file.write(found.junit(target).as_bytes(), kept)?;
        }
        if let Some(file) = self.message_file() {
            file.write(found.message().as_bytes(), kept)?;
        }
        Ok(())
    }

    fn junit_file(&self) -> Option<OutputFile<'static>> {
        let path = self.junit.as_ref()?;
        Some(OutputFile::named("--junit", path, OutputKind::Junit))
    }

    fn message_file(&self) -> Option<OutputFile<'static>> {
        let path = self.message.as_ref()?;
        Some(OutputFile::named("--message", path, OutputKind::Message))
    }
}
