//! Alone, a rank, or neither: what the environment says of how this process was started.
//!
//! Input: environment variables. Output: [`LaunchedAs`], or a refusal. The most dangerous case is a
//! launcher that starts many processes and gives them no channel to each other: each would believe
//! itself alone on the same target. It is found by the launcher's own variables, and refused.

use rigel_model::{Error, usage};
use std::ffi::OsString;

/// How this process stands to others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaunchedAs {
    /// It measures alone.
    Alone,
    /// It is one of several, and this leads to their process manager.
    Rank(Channel),
}

/// How the process manager is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Channel {
    /// By an inherited descriptor (`PMI_FD`); rank and size are in the environment.
    Inherited {
        /// Number of the descriptor.
        descriptor: i32,
        /// `PMI_RANK`.
        rank: usize,
        /// `PMI_SIZE`.
        size: usize,
    },
    /// By a connection to an address (`PMI_PORT`); the server says rank and size.
    Port {
        /// `host:port`.
        address: String,
        /// `PMI_ID`.
        id: String,
    },
    /// By the library of MPI, which knows rank and size.
    #[cfg(feature = "mpi")]
    Library {
        /// How many processes a launcher has started, in words.
        processes: String,
    },
}

/// Reads environment variables.
pub type Environment<'a> = dyn Fn(&str) -> Option<OsString> + 'a;

impl LaunchedAs {
    /// Decides by the environment. `alone` is the user's word that independent runs are wanted;
    /// `destroys` says that they would overwrite a target.
    ///
    /// # Errors
    /// It is one of many without a channel to the others, or the variables contradict each other;
    /// or `alone` was given for runs that would overwrite one target several times.
    pub fn decide(environment: &Environment, alone: bool, destroys: bool) -> Result<Self, Error> {
        let signs = Signs { environment };
        if alone {
            return match signs.processes() {
                Some(many) if destroys => Err(usage!(
                    "--alone with --destroy: {many} would overwrite the same target",
                    "leave --alone out, so that the ranks share the work; or start one process"
                )),
                _ => Ok(Self::Alone),
            };
        }
        let channel = signs.channel()?;
        // A library speaks to the process manager itself, by whatever way there is.
        #[cfg(feature = "mpi")]
        if let Some(processes) = signs.processes() {
            return Ok(Self::Rank(Channel::Library { processes }));
        }
        match channel {
            Some(channel) => Ok(Self::Rank(channel)),
            None => signs.refuse_many().map(|()| Self::Alone),
        }
    }
}

/// What launchers leave in the environment.
struct Signs<'a> {
    environment: &'a Environment<'a>,
}

impl Signs<'_> {
    fn text(&self, name: &str) -> Option<String> {
        (self.environment)(name)
            .map(|value| value.to_string_lossy().into_owned())
            .filter(|value| !value.is_empty())
    }

    fn has(&self, name: &str) -> bool {
        self.text(name).is_some()
    }

    /// The number in a variable; `None` if it is not set.
    fn number(&self, name: &str) -> Result<Option<usize>, Error> {
        self.text(name)
            .map(|text| {
                text.trim().parse().map_err(|_| {
                    usage!(
                        "{name}={text} is not a number",
                        "a launcher sets it; otherwise unset {name}"
                    )
                })
            })
            .transpose()
    }

    /// A number greater than one in a variable.
    fn many(&self, name: &str) -> Option<usize> {
        self.number(name).ok().flatten().filter(|count| *count > 1)
    }

    /// The channel to the process manager, if there is one and it has several ranks.
    fn channel(&self) -> Result<Option<Channel>, Error> {
        let channel = if let Some(address) = self.text("PMI_PORT") {
            let id = self.text("PMI_ID").ok_or_else(|| {
                usage!(
                    "PMI_PORT={address} is set, but not PMI_ID",
                    "start it by mpiexec, or unset PMI_PORT"
                )
            })?;
            Channel::Port { address, id }
        } else if let Some(descriptor) = self.text("PMI_FD") {
            let size = self.number("PMI_SIZE")?.unwrap_or(1);
            if size <= 1 {
                return Ok(None);
            }
            let rank = self.number("PMI_RANK")?.filter(|rank| *rank < size);
            let rank = rank.ok_or_else(|| {
                usage!(
                    "PMI_SIZE={size} is set, but PMI_RANK is not a number below it",
                    "start it by mpiexec, or unset PMI_FD PMI_RANK PMI_SIZE"
                )
            })?;
            let descriptor = descriptor.trim().parse().map_err(|_| {
                usage!(
                    "PMI_FD={descriptor} is not the number of a descriptor",
                    "start it by mpiexec, or unset PMI_FD PMI_RANK PMI_SIZE"
                )
            })?;
            Channel::Inherited {
                descriptor,
                rank,
                size,
            }
        } else {
            return Ok(None);
        };
        if self
            .text("PMI_SPAWNED")
            .is_some_and(|spawned| spawned != "0")
        {
            return Err(usage!(
                "PMI_SPAWNED is set: this process was started by an MPI program",
                "start rigel by mpiexec or srun itself"
            ));
        }
        Ok(Some(channel))
    }

    /// Several processes, in words, if any launcher says so.
    fn processes(&self) -> Option<String> {
        let counts = ["PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"];
        counts
            .iter()
            .find_map(|name| self.many(name))
            .map(|count| format!("{count} processes"))
            .or_else(|| {
                let is_one = self.is_one();
                let is_started = self.has("PMI_PORT") || self.is_by_pmix();
                (is_started && !is_one).then(|| "several processes".into())
            })
    }

    /// True if a launcher says that it started one process.
    fn is_one(&self) -> bool {
        ["OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "PMI_SIZE"]
            .iter()
            .any(|name| matches!(self.number(name), Ok(Some(1))))
    }

    fn is_by_pmix(&self) -> bool {
        ["PMIX_RANK", "PMIX_NAMESPACE", "PRTE_LAUNCHED"]
            .iter()
            .any(|name| self.has(name))
    }

    /// Refuses one of many processes that have no channel to each other. `SLURM_NTASKS` is no
    /// sign: a batch script has it for its single process.
    fn refuse_many(&self) -> Result<(), Error> {
        let apart = "each would measure alone on the same target";
        let independent = "if independent runs are wanted, --alone";
        let by_slurm = self.many("SLURM_STEP_NUM_TASKS");
        let by_open_mpi = self.many("OMPI_COMM_WORLD_SIZE");
        if by_open_mpi.is_some() || (self.is_by_pmix() && !self.is_one()) {
            let many = by_open_mpi.or(by_slurm);
            let times = many.map_or_else(String::new, |count| format!(" {count} times"));
            return Err(usage!(
                "started{times} through PMIx, which needs its C library: {apart}",
                "use `srun --mpi=pmi2`, or mpiexec of MPICH or Intel MPI (`apt install mpich`: \
                 mpiexec.hydra); Open MPI's mpirun cannot start ranks of Rigel; {independent}"
            ));
        }
        if let Some(count) = self.many("PMI_SIZE") {
            let (by, hint) = if self.has("PALS_RANKID") {
                (
                    "PALS gives no PMI-1 channel",
                    "use `srun --mpi=pmi2` or mpiexec.hydra",
                )
            } else {
                (
                    "neither PMI_FD nor PMI_PORT is set",
                    "use mpiexec.hydra, or `srun --mpi=pmi2`; if no launcher started this, unset \
                     PMI_SIZE",
                )
            };
            return Err(usage!(
                "PMI_SIZE={count}, but {by}: {apart}",
                "{hint}; {independent}"
            ));
        }
        if let Some(count) = by_slurm {
            return Err(usage!(
                "started {count} times by srun without PMI: {apart}",
                "use `srun --mpi=pmi2 …` (or SLURM_MPI_TYPE=pmi2), or one task: `-n1`; \
                 {independent}"
            ));
        }
        Ok(())
    }
}

// With a library of MPI every sign of several processes leads to it: its tests are in `library`.
#[cfg(not(feature = "mpi"))]
#[cfg(test)]
mod tests {
    use super::*;

    fn decide(variables: &[(&str, &str)]) -> Result<LaunchedAs, Error> {
        with(variables, false, false)
    }

    fn with(variables: &[(&str, &str)], alone: bool, destroys: bool) -> Result<LaunchedAs, Error> {
        let environment = |name: &str| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| OsString::from(value))
        };
        LaunchedAs::decide(&environment, alone, destroys)
    }

    fn refusal(variables: &[(&str, &str)]) -> String {
        let error = decide(variables).expect_err("it is one of many");
        assert_eq!(error.exit_status(), 2);
        error.to_string()
    }

    #[test]
    fn a_process_without_a_launcher_is_alone() {
        assert_eq!(decide(&[]), Ok(LaunchedAs::Alone));
        // A batch script and `salloc` have it for their single process.
        assert_eq!(decide(&[("SLURM_NTASKS", "4")]), Ok(LaunchedAs::Alone));
        assert_eq!(
            decide(&[("PMI_FD", "11"), ("PMI_SIZE", "1"), ("PMI_RANK", "0")]),
            Ok(LaunchedAs::Alone)
        );
        let one = [("OMPI_COMM_WORLD_SIZE", "1"), ("PMIX_RANK", "0")];
        assert_eq!(decide(&one), Ok(LaunchedAs::Alone));
        let one = [("SLURM_STEP_NUM_TASKS", "1"), ("PMIX_NAMESPACE", "x")];
        assert_eq!(decide(&one), Ok(LaunchedAs::Alone));
    }

    #[test]
    fn a_rank_has_a_channel() {
        let inherited = [("PMI_FD", "11"), ("PMI_SIZE", "3"), ("PMI_RANK", "2")];
        assert_eq!(
            decide(&inherited),
            Ok(LaunchedAs::Rank(Channel::Inherited {
                descriptor: 11,
                rank: 2,
                size: 3
            }))
        );
        // Within an allocation of Slurm or below Open MPI the channel still counts.
        let within = [&inherited[..], &[("SLURM_STEP_NUM_TASKS", "3")]].concat();
        assert!(matches!(decide(&within), Ok(LaunchedAs::Rank(_))));
        assert_eq!(
            decide(&[("PMI_PORT", "h1:38433"), ("PMI_ID", "2")]),
            Ok(LaunchedAs::Rank(Channel::Port {
                address: "h1:38433".into(),
                id: "2".into()
            }))
        );
    }

    #[test]
    fn one_of_many_without_a_channel_is_refused_with_what_to_do() {
        let slurm = refusal(&[("SLURM_STEP_NUM_TASKS", "3"), ("SLURM_PROCID", "0")]);
        assert!(
            slurm.contains("started 3 times by srun without PMI"),
            "{slurm}"
        );
        assert!(slurm.contains("`srun --mpi=pmi2 …`"), "{slurm}");
        let open_mpi = refusal(&[("OMPI_COMM_WORLD_SIZE", "4"), ("PMIX_RANK", "1")]);
        assert!(open_mpi.contains("4 times through PMIx"), "{open_mpi}");
        assert!(
            open_mpi.contains("cannot start ranks of Rigel"),
            "{open_mpi}"
        );
        let pmix = refusal(&[("PMIX_NAMESPACE", "job"), ("SLURM_STEP_NUM_TASKS", "3")]);
        assert!(pmix.contains("3 times through PMIx"), "{pmix}");
        let prrte = refusal(&[("PRTE_LAUNCHED", "1")]);
        assert!(prrte.contains("started through PMIx"), "{prrte}");
        let cray = refusal(&[("PMI_SIZE", "8"), ("PMI_RANK", "0"), ("PALS_RANKID", "0")]);
        assert!(cray.contains("PALS gives no PMI-1 channel"), "{cray}");
        let lost = refusal(&[("PMI_SIZE", "8"), ("PMI_RANK", "0")]);
        assert!(lost.contains("neither PMI_FD nor PMI_PORT"), "{lost}");
    }

    #[test]
    fn contradictions_are_refused() {
        let spawned = refusal(&[
            ("PMI_FD", "11"),
            ("PMI_SIZE", "3"),
            ("PMI_RANK", "0"),
            ("PMI_SPAWNED", "1"),
        ]);
        assert!(spawned.contains("PMI_SPAWNED"), "{spawned}");
        for (name, value) in [("PMI_FD", "x"), ("PMI_SIZE", "many"), ("PMI_RANK", "3")] {
            let mut usual = vec![("PMI_FD", "11"), ("PMI_SIZE", "3"), ("PMI_RANK", "0")];
            usual.retain(|(key, _)| *key != name);
            usual.push((name, value));
            assert!(refusal(&usual).contains(name), "{name}={value}");
        }
        assert!(refusal(&[("PMI_PORT", "h1:1")]).contains("PMI_ID"));
    }

    #[test]
    fn independent_runs_must_be_asked_for_and_never_overwrite() {
        let slurm = [("SLURM_STEP_NUM_TASKS", "3")];
        assert_eq!(with(&slurm, true, false), Ok(LaunchedAs::Alone));
        let refused = with(&slurm, true, true).unwrap_err().to_string();
        assert!(refused.contains("3 processes would overwrite"), "{refused}");
        assert_eq!(
            with(&[], true, true),
            Ok(LaunchedAs::Alone),
            "it is one process"
        );
        let ranks = [("PMI_FD", "11"), ("PMI_SIZE", "3"), ("PMI_RANK", "2")];
        assert_eq!(with(&ranks, true, false), Ok(LaunchedAs::Alone));
        assert!(with(&ranks, true, true).is_err());
        assert!(with(&[("PRTE_LAUNCHED", "1")], true, true).is_err());
    }
}
