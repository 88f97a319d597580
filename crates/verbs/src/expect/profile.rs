//! Profiles: expectations under a name, with the source of their figures. Those that Rigel knows are data,
//! and the files of users have the same form.

use rigel_model::{Bytes, Error, Expectation, Moment, files, letters_changed, usage};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;

/// The profiles that Rigel knows.
const KNOWN: &str = include_str!("profiles.json");

/// A name in which more letters than this differ is not taken for a misspelt one.
const CHANGED_MOST: usize = 2;

/// How a file of a user is recognised.
const ENDING: &str = ".json";

/// Expectations under a name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// What is given in place of the expectations.
    pub name: String,
    /// What it is about, in a few words.
    pub about: String,
    /// Where its figures come from: the address of a page, or of the people who decided them.
    pub source: String,
    /// The day on which they stood there, as `2026-11-25`.
    pub date: String,
    /// Bytes of a small I/O, as `16KiB`; 8 KiB if it is absent.
    #[serde(default)]
    pub size: Option<String>,
    /// Names of figures that may follow the profile's name, as in `gp3:16000,1000`, each with what
    /// holds where it is left out.
    #[serde(default)]
    pub values: Vec<(String, Option<f64>)>,
    /// What is expected; `{iops}` stands for the figure of that name.
    pub expect: Vec<String>,
}

/// Where the expectations of a run come from. Kept in the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileUsed {
    /// The name as it was given, with its figures.
    pub name: String,
    /// The source of its figures.
    pub source: String,
    /// The day on which they stood there.
    pub date: String,
}

impl ProfileUsed {
    /// True if it is about a volume that is sold with these figures.
    pub(super) fn is_sold(&self) -> bool {
        let (name, _) = self.name.split_once(':').unwrap_or((&self.name, ""));
        let mut known = Profile::known().into_iter();
        known.any(|one| one.name == name && !one.values.is_empty())
    }
}

/// What a profile expects, for the figures that were given with its name.
#[derive(Debug, Clone, PartialEq)]
pub struct Expected {
    /// Where it comes from.
    pub from: ProfileUsed,
    /// Bytes of a small I/O, if the profile says it.
    pub size: Option<Bytes>,
    /// The expectations.
    pub expectations: Vec<Expectation>,
}

impl Profile {
    /// The profiles that Rigel knows, by name.
    ///
    /// # Panics
    /// Never: a test reads them.
    pub fn known() -> Vec<Self> {
        serde_json::from_str(KNOWN).expect("the known profiles can be read")
    }

    /// A profile as users write it.
    ///
    /// # Errors
    /// It is no profile; `file` is named.
    pub fn parse(text: &str, file: &str) -> Result<Self, Error> {
        let profile: Self = serde_json::from_str(text).map_err(|error| {
            usage!(
                "'{file}' is not a profile: {error}",
                "it is an object with name, about, source, date and expect, and may have size and \
                 values: rigel expect list shows those that are known, --json in this form"
            )
        })?;
        let is_date = profile.date.len() == 10 && profile.date.parse::<Moment>().is_ok();
        if !is_date || profile.source.trim().is_empty() {
            return Err(usage!(
                "'{file}' does not say where and when its figures were found",
                "give a source, and a date such as 2026-11-25"
            ));
        }
        Ok(profile)
    }

    /// What an argument of a command line expects; `None` if it is not meant to be a profile.
    ///
    /// # Errors
    /// The file cannot be read, or is no profile; or its figures are not those of the profile.
    pub fn named(argument: &str) -> Result<Option<Expected>, Error> {
        if argument.ends_with(ENDING) {
            let text = files::read_text(Path::new(argument), files::HAND_WRITTEN_MAX);
            let text = text.map_err(|error| {
                usage!(
                    "cannot read the profile '{argument}': {error}",
                    "a path that ends in .json is that of a profile of yours"
                )
            })?;
            return Self::parse(&text, argument)?.with("").map(Some);
        }
        let (name, figures) = argument.split_once(':').unwrap_or((argument, ""));
        let known = Self::known().into_iter().find(|one| one.name == name);
        known.map(|one| one.with(figures)).transpose()
    }

    /// The known name that is nearest to one that is none; `None` if none is near.
    pub fn nearest(name: &str) -> Option<String> {
        let (name, _) = name.split_once(':').unwrap_or((name, ""));
        let known = Self::known().into_iter().map(|one| one.name);
        let near = known
            .map(|known| (letters_changed(name, &known), known))
            .min();
        near.filter(|(changed, _)| *changed <= CHANGED_MOST)
            .map(|(_, name)| name)
    }

    /// What is expected with these figures behind the name.
    fn with(&self, figures: &str) -> Result<Expected, Error> {
        let given: Vec<&str> = figures.split(',').filter(|one| !one.is_empty()).collect();
        let name = if given.is_empty() {
            self.name.clone()
        } else {
            format!("{}:{}", self.name, given.join(","))
        };
        let wrong = |why: String| usage!("'{name}': {why}", "write it as {self}");
        if given.len() > self.values.len() {
            return Err(wrong(format!(
                "it has {} figures, and {} are given",
                self.values.len(),
                given.len()
            )));
        }
        let mut expect = self.expect.clone();
        for (at, (value, usual)) in self.values.iter().enumerate() {
            let figure = match given.get(at) {
                Some(text) => text.replace('_', "").parse().ok(),
                None => *usual,
            };
            let figure = figure
                .filter(|figure: &f64| figure.is_finite() && *figure > 0.0)
                .ok_or_else(|| wrong(format!("{value} is missing, or is not a number above 0")))?;
            let place = format!("{{{value}}}");
            for one in &mut expect {
                *one = one.replace(&place, &figure.to_string());
            }
        }
        let expectations = expect.iter().map(|one| one.parse());
        Ok(Expected {
            size: self.size.as_deref().map(str::parse).transpose()?,
            expectations: expectations.collect::<Result<_, Error>>()?,
            from: ProfileUsed {
                name,
                source: self.source.clone(),
                date: self.date.clone(),
            },
        })
    }
}

impl fmt::Display for Profile {
    /// How it is given: `gp3[:IOPS[,MIBPS]]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        for (at, (value, usual)) in self.values.iter().enumerate() {
            let sign = if at == 0 { ':' } else { ',' };
            let value = value.to_uppercase();
            match usual {
                Some(_) => write!(f, "[{sign}{value}")?,
                None => write!(f, "{sign}{value}")?,
            }
        }
        let left_out = self.values.iter().filter(|(_, usual)| usual.is_some());
        f.write_str(&"]".repeat(left_out.count()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(argument: &str) -> Vec<String> {
        let found = Profile::named(argument).unwrap().unwrap();
        let texts = found.expectations.iter().map(ToString::to_string);
        texts.collect()
    }

    #[test]
    fn known_profiles_are_read_with_and_without_their_figures() {
        for profile in Profile::known() {
            let text = serde_json::to_string(&profile).unwrap();
            assert_eq!(Profile::parse(&text, "again").unwrap(), profile);
            let figures = vec!["5000"; profile.values.len()].join(",");
            profile.with(&figures).unwrap();
            let has_all = profile.values.iter().all(|(_, usual)| usual.is_some());
            assert_eq!(profile.with("").is_ok(), has_all, "{profile}");
        }
        assert_eq!(
            expected("gp3"),
            ["iops>=3000±5%", "mbps>=131.072±5%", "mean<10ms@depth:1"]
        );
        assert_eq!(
            expected("premium-v2:16_000,500"),
            ["iops>=16000±5%", "mbps>=500±5%", "mean<1ms@depth:1"]
        );
        assert_eq!(Profile::named("gp4").unwrap(), None);
        assert_eq!(Profile::nearest("gp4:100").as_deref(), Some("gp3"));
        assert_eq!(Profile::nearest("list"), None);
    }

    #[test]
    fn figures_that_a_profile_does_not_have_are_refused() {
        for (argument, why) in [
            ("io2", "iops is missing"),
            ("io2:x", "not a number"),
            ("gp3:-1", "not a number"),
            ("gp3:1,2,3", "it has 2 figures, and 3 are given"),
            ("/nowhere/ours.json", "cannot read the profile"),
        ] {
            let refused = Profile::named(argument).unwrap_err().to_string();
            assert!(refused.contains(why), "{argument}: {refused}");
        }
        let said = |text: &str| Profile::parse(text, "ours.json").unwrap_err().to_string();
        assert!(said("{}").contains("missing field"));
        assert!(said("[]").contains("'ours.json' is not a profile"));
        let undated = r#"{"name":"a","about":"b","source":"c","date":"today","expect":[]}"#;
        assert!(said(undated).contains("where and when"));
    }

    #[test]
    fn a_profile_says_how_it_is_given() {
        let shown: Vec<String> = Profile::known().iter().map(ToString::to_string).collect();
        assert!(shown.contains(&"gp3[:IOPS[,MIBPS]]".into()), "{shown:?}");
        assert!(shown.contains(&"io2:IOPS".into()), "{shown:?}");
    }
}
