//! `rigel compare`: runs side by side, with the interval of each difference and whether it is real.

use super::exit_status::exit_status;
use super::output::remark;
use super::outputs::{Kept, OutputFile};
use super::{output, page};
use clap::Args;
use rigel_analyse::Calibration;
use rigel_analyse::{
    self as analyse, BoundVerdict, ClaimBeside, Comparison, Scope, Side, Subject, Term,
};
use rigel_model::record::journal;
use rigel_model::record::journal::Run;
use rigel_model::{Error, Ratio, failed, shell_path, usage};
use rigel_report::document::{Document, Extent};
use rigel_report::{claimed, compare as comparison, text};
use rigel_verbs::Evaluated;
use std::path::{Path, PathBuf};

/// Compare runs: ratio of each figure to the baseline's, its interval, and whether they differ
///
/// Two runs are compared with each other. With -- between them, several runs a side are compared:
/// rigel compare A1 A2 A3 -- B1 B2 B3. Only several runs a side show how much the storage itself
/// varies between runs; measure the sides in turn, at least three times each.
///
/// Names differing conditions, the target before all others. Leaves out figures of other I/O
/// sizes, and refuses runs of another workload, because all their figures are of different work.
/// Compares soaks and imported series by their medians over rounds.
#[derive(Debug, Args)]
#[command(
    after_help = "--fail-if-slower has three answers, with 95 % confidence over all headline \
                  figures together: none is slower by more than the share, some rate is lower or \
                  some response time higher by more, or that is undecided, because an interval \
                  reaches beyond the share. With one run a side it needs --single-run, because \
                  then a difference may be the storage's own variation between runs.\n\nExit \
                  status: 0 compared, and none is slower than --fail-if-slower allows, 1 failed, 2 \
                  wrong usage or not comparable, 3 one is slower, 4 that is undecided."
)]
pub(super) struct CompareArgs {
    /// Directories of runs, or their journals. Without --, each is a side of its own, and the first
    /// is the baseline; with --, these are the runs of the baseline
    #[arg(value_name = "RUN", required = true, num_args = 1..)]
    runs: Vec<PathBuf>,
    /// The runs of the other side; another -- begins a third side
    #[arg(value_name = "RUN", last = true, num_args = 1..)]
    others: Vec<PathBuf>,
    /// Exit with status 3 if a headline figure is certainly slower than the baseline's by more
    /// than this share, with 4 if one may be
    #[arg(long, value_name = "SHARE")]
    fail_if_slower: Option<Ratio>,
    /// Let --fail-if-slower judge one run a side
    #[arg(long, requires = "fail_if_slower")]
    single_run: bool,
    /// Show all figures and findings, and not one screen of them
    #[arg(long, conflicts_with = "json")]
    verbose: bool,
    /// Print the comparison as JSON
    #[arg(long)]
    json: bool,
    /// Also write an HTML page, in one self-contained file; - prints it to stdout instead of the
    /// text
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    html: Option<PathBuf>,
}

impl CompareArgs {
    fn extent(&self) -> Extent {
        if self.verbose {
            Extent::Full
        } else {
            Extent::Screen
        }
    }

    /// The file of the page, if one is asked for.
    fn page(&self) -> Option<OutputFile<'static>> {
        self.html.as_deref().and_then(page::named)
    }

    /// Writes the page, if it is asked for.
    fn write_page(&self, document: &Document) -> Result<(), Error> {
        if self.html.is_none() {
            return Ok(());
        }
        page::write(document, self.page().as_ref(), &Kept::default())
    }
}

/// A run to compare. A soak may cover weeks, so only its rounds are read, not its records.
struct ComparedRun {
    name: String,
    evaluated: Evaluated,
}

impl ComparedRun {
    fn read(name: String, path: &Path) -> Result<Self, Error> {
        Ok(Self {
            name,
            evaluated: Evaluated::read(path)?,
        })
    }

    fn is_soak(&self) -> bool {
        self.evaluated.verb.name() == "soak"
    }

    fn subject(&self) -> Subject<'_> {
        self.evaluated.subject(&self.name)
    }
}

/// Compares, and shows the result.
pub(super) fn run(args: &CompareArgs) -> Result<u8, Error> {
    let sides = sides(args)?;
    args.page()
        .iter()
        .try_for_each(|file| file.refuse_other(&Kept::default()))?;
    tell_sides(args);
    let paths: Vec<PathBuf> = sides.concat();
    refuse_duplicates(&paths)?;
    let named = names(&paths).into_iter().zip(&paths);
    let members = named
        .map(|(name, path)| ComparedRun::read(name, path))
        .collect::<Result<Vec<ComparedRun>, Error>>()?;
    if let Some(found) = claimed_beside(&members) {
        return show_claim(args, &found?);
    }
    let subjects: Vec<Subject> = members.iter().map(ComparedRun::subject).collect();
    refuse_soak_among_loads(&members, &subjects)?;
    let sides = sides_of(&subjects, &sides);
    refuse_unlike(&sides)?;
    let comparison = analyse::compare_sides(&sides, args.fail_if_slower);
    refuse_incomparable(&comparison)?;
    refuse_nothing_in_common(&comparison, &subjects)?;
    let runs: Vec<(&Run, &Subject)> = members
        .iter()
        .map(|member| &member.evaluated.run)
        .zip(&subjects)
        .collect();
    let document = comparison::document(&runs, &comparison);
    if args.html.as_deref() != Some(Path::new("-")) {
        if args.json {
            output::json(&comparison::json(&comparison));
        } else {
            output::result(&text::render(&document, args.extent()));
        }
    }
    args.write_page(&document)?;
    status(&subjects, &comparison)
}

/// A calibration beside what Oracle's claims, if the two runs are that: the figures and the document.
fn claimed_beside(members: &[ComparedRun]) -> Option<Result<(ClaimBeside, Document), Error>> {
    let claims = |index: usize| members[index].evaluated.results.claims();
    let theirs = (0..members.len()).find(|index| !claims(*index).is_empty())?;
    let pair = |of: usize| match members {
        [_, _] => {
            let ours = &members[1 - of].evaluated.results;
            analyse::beside(claims(of), ours.downcast_ref::<Calibration>()?)
        }
        _ => None,
    };
    let result = pair(theirs).ok_or_else(|| {
        usage!(
            "{name} is what CALIBRATE_IO claims, and stands beside one calibration of Rigel's only",
            "rigel calibrate DATA_FILE --out OURS, then: rigel compare OURS THEIRS",
            name = members[theirs].name
        )
    });
    Some(result.map(|comparison| {
        let (ours, theirs) = (&members[1 - theirs].name, &members[theirs].name);
        let document = claimed::document(ours, theirs, &comparison);
        (comparison, document)
    }))
}

/// Shows a claim beside a calibration.
fn show_claim(
    args: &CompareArgs,
    (found, document): &(ClaimBeside, Document),
) -> Result<u8, Error> {
    if args.fail_if_slower.is_some() {
        return Err(usage!(
            "--fail-if-slower cannot judge what CALIBRATE_IO claims: it has no interval",
            "compare two calibrations of Rigel's"
        ));
    }
    if args.html.as_deref() != Some(Path::new("-")) {
        if args.json {
            output::json(&claimed::json(found));
        } else {
            output::result(&text::render(document, args.extent()));
        }
    }
    args.write_page(document)?;
    Ok(0)
}

/// Says how runs are put together to sides, if several were named that may belong to two sides.
fn tell_sides(args: &CompareArgs) {
    let runs: Vec<String> = args.runs.iter().map(|run| shell_path(run)).collect();
    if !args.others.is_empty() || runs.len() < 4 || !runs.len().is_multiple_of(2) {
        return;
    }
    let (baseline, others) = runs.split_at(runs.len() / 2);
    remark(&format!(
        "each of the {} runs is compared with the first; if they are two sides of {} runs:\n  rigel \
         compare {} -- {}\n",
        runs.len(),
        baseline.len(),
        baseline.join(" "),
        others.join(" ")
    ));
}

/// The runs of each side. Nothing is read before what was asked for is known to make sense.
fn sides(args: &CompareArgs) -> Result<Vec<Vec<PathBuf>>, Error> {
    const USAGE: &str =
        "rigel compare A B, or several runs a side: rigel compare A1 A2 A3 -- B1 B2 B3";
    let is_separator = |path: &PathBuf| path.as_os_str() == "--";
    let sides: Vec<Vec<PathBuf>> = if args.others.is_empty() {
        args.runs.iter().map(|run| vec![run.clone()]).collect()
    } else {
        let others = args.others.split(is_separator).map(<[PathBuf]>::to_vec);
        [args.runs.clone()].into_iter().chain(others).collect()
    };
    // The parser takes options after -- as names.
    if let Some(option) = args
        .others
        .iter()
        .find(|path| !is_separator(path) && path.as_os_str().as_encoded_bytes().starts_with(b"--"))
    {
        return Err(usage!(
            "'{option}' after -- is taken as a run",
            "give options before the runs",
            option = option.display()
        ));
    }
    if sides.len() < 2 {
        return Err(usage!("one run cannot be compared", USAGE));
    }
    let is_single = |side: &Vec<PathBuf>| side.len() == 1;
    if sides.iter().any(Vec::is_empty) {
        return Err(usage!("a side has no runs", USAGE));
    }
    let all_single = sides.iter().all(is_single);
    if let Some(single) = sides
        .iter()
        .find(|side| is_single(side))
        .filter(|_| !all_single)
    {
        return Err(usage!(
            "'{single}' is the only run of its side, and another side has several",
            "give at least two runs on each side, better three",
            single = single[0].display()
        ));
    }
    if args.fail_if_slower.is_some() && all_single && !args.single_run {
        return Err(usage!(
            "--fail-if-slower with one run a side cannot tell a slowdown from the storage's own \
             variation between runs",
            "give several runs a side, as in rigel compare A1 A2 A3 -- B1 B2 B3, or accept it with \
             --single-run"
        ));
    }
    if args.single_run && !all_single {
        return Err(usage!(
            "--single-run is for one run a side",
            "leave it out: several runs a side need no permission"
        ));
    }
    Ok(sides)
}

/// The sides with their runs, which `subjects` holds one after the other. Sides of several runs are
/// named by letters.
fn sides_of<'s, 'a>(subjects: &'s [Subject<'a>], sides: &[Vec<PathBuf>]) -> Vec<Side<'s, 'a>> {
    let mut rest = subjects;
    let mut letters = 'A'..;
    sides
        .iter()
        .map(|side| {
            let (runs, after) = rest.split_at(side.len());
            rest = after;
            let letter = letters.next().unwrap_or('Z').to_string();
            if let [run] = runs {
                Side::of(run)
            } else {
                Side { name: letter, runs }
            }
        })
        .collect()
}

/// Refuses sides whose runs were not asked for the same. How runs differ is the error of a side's
/// figures, so they must be repetitions.
fn refuse_unlike(sides: &[Side]) -> Result<(), Error> {
    if sides.iter().all(|side| side.runs.len() == 1) {
        return Ok(());
    }
    let verb = |run: &Subject| run.header.invocation.verb.clone();
    let mixed = |run: &Subject, first: &Subject| {
        Err(usage!(
            "{name} is a run of {verb}, and {first} is one of {first_verb}",
            "several runs a side are compared within one verb",
            name = run.name,
            verb = verb(run),
            first = first.name,
            first_verb = verb(first)
        ))
    };
    for side in sides {
        let (first, others) = (&side.runs[0], &side.runs[1..]);
        for run in others {
            if verb(run) != verb(first) {
                return mixed(run, first);
            }
            let unlike = |term: &&Term| {
                let mut same = first.terms.iter().filter(|one| one.name == term.name);
                same.any(|one| one.value != term.value)
            };
            if let Some(term) = run
                .terms
                .iter()
                .filter(|term| term.is_requested())
                .find(unlike)
            {
                let term_of_first = first.terms.iter().find(|one| one.name == term.name);
                return Err(usage!(
                    "{name} is no repetition of {first}: {term} {value} and {value_of_first}",
                    "the runs of a side are repetitions: measure again with the same options",
                    name = run.name,
                    first = first.name,
                    term = term.name,
                    value = term.value,
                    value_of_first = term_of_first.map_or("-", |one| one.value.as_str())
                ));
            }
        }
    }
    let (first, others) = (&sides[0].runs[0], &sides[1..]);
    let is_imported = |run: &Subject| run.imported.is_some();
    match others
        .iter()
        .map(|side| &side.runs[0])
        .find(|run| verb(run) != verb(first) && !is_imported(run) && !is_imported(first))
    {
        Some(run) => mixed(run, first),
        None => Ok(()),
    }
}

/// The exit status by what was found of the slowdown limit.
fn status(subjects: &[Subject], comparison: &Comparison) -> Result<u8, Error> {
    let Some(outcome) = comparison.outcome() else {
        return Ok(0);
    };
    if outcome == BoundVerdict::Broken {
        return Ok(exit_status(outcome));
    }
    if let Some(broken) = subjects
        .iter()
        .find(|subject| !subject.whole || subject.warnings.contains_key("failures"))
    {
        let (why, hint) = if broken.whole {
            (
                "has failed I/Os",
                "its report shows which, and why; mend that, and measure again",
            )
        } else {
            ("is incomplete", "resume it with --resume, or measure again")
        };
        return Err(failed!(
            "{name} {why}, so it cannot show that nothing is slower",
            hint,
            name = broken.name
        ));
    }
    Ok(exit_status(outcome))
}

/// Refuses a run that has nothing in common with the baseline. `subjects` are all runs, those of the
/// baseline first.
fn refuse_nothing_in_common(comparison: &Comparison, subjects: &[Subject]) -> Result<(), Error> {
    let name = |side: usize| &comparison.sides[side].runs[0].name;
    let Some(run) = (1..comparison.names.len()).find(|run| !comparison.has_common(*run)) else {
        return Ok(());
    };
    let other_work = comparison.is_of_other_work(run, Scope::Small)
        && comparison.is_of_other_work(run, Scope::Large);
    let of = |side: usize| {
        let mut subjects = subjects.iter();
        subjects.find(|subject| subject.name == *name(side))
    };
    let verb = |side: usize| of(side).map(|subject| subject.header.invocation.verb.as_str());
    let is_import = |side: usize| comparison.sides[side].runs[0].imported.is_some();
    let depths = of(run)
        .zip(of(0))
        .map(|(one, other)| (one.depths(), other.depths()));
    let depths = depths.filter(|(one, other)| !one.is_empty() && !other.is_empty());
    let hint = match &depths {
        _ if other_work => {
            "all figures are of different I/O sizes: measure again with the same --size".into()
        }
        Some((one, other)) => format!(
            "{} has depth {}, and {} has {}: `rigel curve TARGET --depth {}` measures those",
            name(run),
            listed(one),
            name(0),
            listed(other),
            one.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
        ),
        None if is_import(run) && is_import(0)
            || verb(run) == Some("watch") && verb(0) == verb(run) =>
        {
            "a demand has no loads of its own: `rigel fit REPORT TARGET` says which storage \
             carries it"
                .into()
        }
        None if comparison.rounds.is_empty() && verb(run) == verb(0) => {
            "measure both at the same loads: `rigel report RUN --verbose` shows those of each"
                .into()
        }
        None if comparison.rounds.is_empty() => {
            "compare runs of one verb with the same options".into()
        }
        None => "compare series of the same quantity: throughput, p50, p99 or max, or series of \
                 the same name; `rigel report` shows each"
            .into(),
    };
    Err(usage!(
        "{other} and {first} have no figure and no load in common",
        hint,
        other = name(run),
        first = name(0)
    ))
}

/// `1, 2, 4`: the first depths, and how many more there are.
fn listed(depths: &[u32]) -> String {
    const NAMED_MAX: usize = 8;
    let mut named: Vec<String> = depths.iter().take(NAMED_MAX).map(u32::to_string).collect();
    if depths.len() > NAMED_MAX {
        named.push(format!("and {} more", depths.len() - NAMED_MAX));
    }
    named.join(", ")
}

/// Refuses to compare a soak, which has rounds and no points, with a run at loads.
fn refuse_soak_among_loads(members: &[ComparedRun], subjects: &[Subject]) -> Result<(), Error> {
    let soak = members.iter().find(|member| member.is_soak());
    let is_at_loads = |(member, subject): &(&ComparedRun, &Subject)| {
        !member.is_soak() && subject.over_time.courses.is_empty()
    };
    let (Some(soak), Some((other, _))) = (soak, members.iter().zip(subjects).find(is_at_loads))
    else {
        return Ok(());
    };
    Err(usage!(
        "{soak} is a soak, and {name} has no rounds to compare with its rounds",
        "compare a soak with another soak, or with an imported series: rigel import FILE",
        soak = soak.name,
        name = other.name
    ))
}

/// Refuses a run that is given twice: compared with itself it shows nothing.
fn refuse_duplicates(paths: &[PathBuf]) -> Result<(), Error> {
    let place = |path: &Path| journal::file_of(path).canonicalize().ok();
    for (index, path) in paths.iter().enumerate() {
        if place(path).is_some()
            && paths[..index]
                .iter()
                .any(|before| place(before) == place(path))
        {
            return Err(usage!(
                "'{path}' is given twice",
                "give every run once",
                path = path.display()
            ));
        }
    }
    Ok(())
}

/// Names of the runs: their directories' names, or the full path if two have the same name.
fn names(paths: &[PathBuf]) -> Vec<String> {
    let directory = |path: &PathBuf| match path.file_name() {
        Some(name) if name == journal::FILE_NAME => {
            path.parent().map_or_else(PathBuf::new, Path::to_path_buf)
        }
        _ => path.clone(),
    };
    let directories: Vec<PathBuf> = paths.iter().map(directory).collect();
    let short = |path: &PathBuf| {
        let name = path.file_name().map_or_else(
            || path.display().to_string(),
            |name| name.to_string_lossy().into(),
        );
        name.strip_suffix(".rigel")
            .map_or(name.clone(), str::to_string)
    };
    let names: Vec<String> = directories.iter().map(short).collect();
    let is_alone = |name: &String| names.iter().filter(|other| *other == name).count() == 1;
    let whole = |(name, path): (&String, &PathBuf)| {
        if is_alone(name) {
            name.clone()
        } else {
            path.display().to_string()
        }
    };
    names.iter().zip(&directories).map(whole).collect()
}

fn refuse_incomparable(
    Comparison {
        sides, conditions, ..
    }: &Comparison,
) -> Result<(), Error> {
    let different: Vec<String> = conditions
        .iter()
        .filter(|condition| condition.not_compared == Some(Scope::All))
        .map(|it| {
            format!(
                "{} {} in {} and {} in {}",
                it.name, it.before, sides[0].runs[0].name, it.after, sides[it.run].runs[0].name
            )
        })
        .collect();
    if different.is_empty() {
        return Ok(());
    }
    Err(usage!(
        "the runs did different work: {different}",
        "measure again with the same options",
        different = different.join("; ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_called_by_their_directories() {
        let named = |paths: &[&str]| names(&paths.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(named(&["runs/a.rigel", "b/journal.jsonl"]), ["a", "b"]);
        assert_eq!(
            named(&["monday/run", "tuesday/run", "run2"]),
            ["monday/run", "tuesday/run", "run2"]
        );
    }
}
