//! Profiles: expectations under a name, with the source of their figures. Those that Rigel knows are data,
//! and the files of users have the same form.

use rigel_model::{Bytes, Error, Expectation, Moment, files, letters_changed, usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::path::Path;

/// The profiles that Rigel knows.
const KNOWN: &str = include_str!("profiles.json");

/// A name in which more letters than this differ is not taken for a misspelt one.
const CHANGED_MOST: usize = 2;

/// How a file of a user is recognised.
const ENDING: &str = ".json";

/// Expectations under a name.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Profile {
    /// What is given in place of the expectations.
    pub name: String,
    /// What it is about, in a few words; may be empty.
    pub about: String,
    /// Where its figures come from: the address of a page, or of the people who decided them; may be
    /// empty.
    pub source: String,
    /// The day on which they stood there, as `2026-11-25`; may be empty.
    pub date: String,
    /// Bytes of a small I/O, as `16KiB`; 8 KiB if it is absent.
    pub size: Option<String>,
    /// Names of figures that may follow the profile's name, as in `gp3:16000,1000`, each with what
    /// holds where it is left out.
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
        profiles(KNOWN).expect("the known profiles can be read")
    }

    /// The profile in a file of a user: one, or a list of one.
    ///
    /// # Errors
    /// It is no profile; `file` is named.
    pub fn parse(text: &str, file: &str) -> Result<Self, Error> {
        let wrong = |why: String| {
            usage!(
                "'{file}' is not a profile: {why}",
                "write it as {EXAMPLE}; 'size' and 'values' may be added, and 'rigel expect list --json' shows \
                 those that are known"
            )
        };
        let mut all = profiles(text).map_err(wrong)?;
        match (all.pop(), all.len()) {
            (Some(profile), 0) => Ok(profile),
            (_, others) => Err(wrong(match others {
                0 => "its list is empty".into(),
                _ => format!("it has {} of them, and one is expected", others + 1),
            })),
        }
    }

    /// What an argument of a command line expects; `None` if it is not meant to be a profile.
    ///
    /// # Errors
    /// The file cannot be read, or is no profile; or its figures are not those of the profile.
    pub fn named(argument: &str) -> Result<Option<Expected>, Error> {
        if let Some((path, figures)) = in_file(argument) {
            let text = files::read_text(Path::new(path), files::HAND_WRITTEN_MAX);
            let text = text.map_err(|error| {
                usage!(
                    "cannot read the profile '{path}': {error}",
                    "a path that ends in .json is that of a profile of yours"
                )
            })?;
            return Self::parse(&text, path)?.with(path, figures).map(Some);
        }
        let (name, figures) = argument.split_once(':').unwrap_or((argument, ""));
        let known = Self::known().into_iter().find(|one| one.name == name);
        known.map(|one| one.with(name, figures)).transpose()
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

    /// What is expected with these figures, where the profile was given by `given_as`, its name or its file.
    fn with(&self, given_as: &str, figures: &str) -> Result<Expected, Error> {
        let given: Vec<&str> = figures.split(',').filter(|one| !one.is_empty()).collect();
        let name = if given.is_empty() {
            self.name.clone()
        } else {
            format!("{}:{}", self.name, given.join(","))
        };
        let usage = self.usage(given_as);
        let wrong = |why: String| usage!("'{name}': {why}", "write it as {usage}");
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

/// A profile as users write it.
const EXAMPLE: &str = r#"{"name": "ours", "expect": ["iops>=3000", "p99<2ms@3000/s"]}"#;

/// The members of a profile.
const MEMBERS: [&str; 7] = [
    "name", "about", "source", "date", "size", "values", "expect",
];

/// The file of a user's profile, and the figures behind it: `./ours.json:2500`.
fn in_file(argument: &str) -> Option<(&str, &str)> {
    if argument.ends_with(ENDING) {
        return Some((argument, ""));
    }
    let (path, figures) = argument.rsplit_once(':')?;
    path.ends_with(ENDING).then_some((path, figures))
}

/// The profiles of a text: a list of them, or one. Else what is wrong with it, in words that do not ask for
/// knowledge of the program.
fn profiles(text: &str) -> Result<Vec<Profile>, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| {
        format!(
            "it is no JSON, as of line {}, column {}",
            error.line(),
            error.column()
        )
    })?;
    match value {
        Value::Array(all) => all.iter().map(profile).collect(),
        one => Ok(vec![profile(&one)?]),
    }
}

fn profile(value: &Value) -> Result<Profile, String> {
    let Some(members) = value.as_object() else {
        return Err(format!("{value} stands where an object is expected"));
    };
    if let Some(unknown) = members
        .keys()
        .find(|name| !MEMBERS.contains(&name.as_str()))
    {
        let known = MEMBERS.join(", ");
        return Err(format!("it has '{unknown}', and a profile has {known}"));
    }
    let text = |name: &str| match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(format!("its '{name}' is {other}, and not a text")),
    };
    let list = |name: &str| match members.get(name) {
        None | Some(Value::Null) => Ok(&[][..]),
        Some(Value::Array(all)) => Ok(&all[..]),
        Some(other) => Err(format!("its '{name}' is {other}, and not a list")),
    };
    let expect = list("expect")?.iter().map(|one| {
        let text = one.as_str().map(str::to_string);
        text.ok_or_else(|| format!("{one} in its 'expect' is not a text such as \"iops>=3000\""))
    });
    let value = |pair: &Value| {
        let pair = serde_json::from_value::<(String, Option<f64>)>(pair.clone());
        pair.map_err(|_| {
            "its 'values' are not pairs such as [\"iops\", 3000], with null where none is usual"
                .to_string()
        })
    };
    let profile = Profile {
        name: text("name")?.ok_or("it has no 'name'")?,
        about: text("about")?.unwrap_or_default(),
        source: text("source")?.unwrap_or_default(),
        date: text("date")?.unwrap_or_default(),
        size: text("size")?,
        values: list("values")?
            .iter()
            .map(value)
            .collect::<Result<_, _>>()?,
        expect: expect.collect::<Result<_, _>>()?,
    };
    if profile.expect.is_empty() {
        return Err("it has no 'expect', or nothing in it".into());
    }
    let is_date = profile.date.len() == 10 && profile.date.parse::<Moment>().is_ok();
    if !profile.date.is_empty() && !is_date {
        return Err(format!(
            "its 'date' is '{}', and not a day such as 2026-11-25",
            profile.date
        ));
    }
    Ok(profile)
}

impl Profile {
    /// How it is given by its name or file: `gp3[:IOPS[,MIBPS]]`.
    fn usage(&self, given_as: &str) -> String {
        let mut text = given_as.to_string();
        for (at, (value, usual)) in self.values.iter().enumerate() {
            let sign = if at == 0 { ':' } else { ',' };
            if usual.is_some() {
                text.push('[');
            }
            text.push(sign);
            text += &value.to_uppercase();
        }
        let left_out = self.values.iter().filter(|(_, usual)| usual.is_some());
        text + &"]".repeat(left_out.count())
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.usage(&self.name))
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
            profile.with(&profile.name, &figures).unwrap();
            let has_all = profile.values.iter().all(|(_, usual)| usual.is_some());
            assert_eq!(profile.with("it", "").is_ok(), has_all, "{profile}");
        }
        assert_eq!(
            expected("gp3"),
            ["iops>=3000±5%", "mibps>=125±5%", "mean<10ms@depth:1"]
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
    }

    #[test]
    fn a_profile_of_ones_own_is_what_the_list_shows_and_says_what_it_lacks() {
        let read = |text: &str| Profile::parse(text, "ours.json");
        // The list as it is printed, with one of its profiles.
        let shown = serde_json::to_string_pretty(&Profile::known()[..1]).unwrap();
        assert_eq!(read(&shown).unwrap(), Profile::known()[0]);
        assert_eq!(read(EXAMPLE).unwrap().expect.len(), 2);
        let ours = r#"{"name": "orders", "expect": ["iops>={rate}"], "values": [["rate", null]]}"#;
        let ours = read(ours).unwrap();
        let expected = ours.with("./ours.json", "2500").unwrap();
        assert_eq!(expected.expectations[0].to_string(), "iops>=2500");
        let hint = ours.with("./ours.json", "").unwrap_err();
        assert_eq!(hint.hint(), "write it as ./ours.json:RATE");
        assert_eq!(in_file("./ours.json:2500"), Some(("./ours.json", "2500")));
        assert_eq!(in_file("gp3:2500"), None);
        for (text, why) in [
            ("{}", "it has no 'name'"),
            ("[]", "its list is empty"),
            ("[1]", "1 stands where an object is expected"),
            ("{\"name\": 1}", "its 'name' is 1, and not a text"),
            ("{\"name\": \"a\"}", "it has no 'expect'"),
            ("{\"name\": \"a\",\n", "no JSON, as of line 2"),
            (
                "{\"expects\": []}",
                "it has 'expects', and a profile has name",
            ),
            (
                r#"{"name": "a", "expect": ["b"], "date": "today"}"#,
                "not a day such as",
            ),
            (
                r#"{"name": "a", "expect": [3]}"#,
                "3 in its 'expect' is not a text",
            ),
            (
                r#"{"name": "a", "expect": ["b"], "values": ["c"]}"#,
                "are not pairs such as",
            ),
        ] {
            let said = read(text).unwrap_err().to_string();
            assert!(
                said.contains(why) && said.contains("ours.json"),
                "{text}: {said}"
            );
        }
        let two = serde_json::to_string(&Profile::known()[..2]).unwrap();
        assert!(
            read(&two)
                .unwrap_err()
                .to_string()
                .contains("it has 2 of them")
        );
    }

    #[test]
    fn a_profile_says_how_it_is_given() {
        let shown: Vec<String> = Profile::known().iter().map(ToString::to_string).collect();
        assert!(shown.contains(&"gp3[:IOPS[,MIBPS]]".into()), "{shown:?}");
        assert!(shown.contains(&"io2:IOPS".into()), "{shown:?}");
    }
}
