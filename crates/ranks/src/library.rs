//! Real MPI, from the library of a site: who this rank is, barriers, and one text from rank 0 to all.
//!
//! Only with the cargo feature `mpi`. It does what the client of PMI-1 does without a library
//! (`pmi`), for launchers that offer nothing else, such as Open MPI's. Everything else goes through
//! the connections of `star`, with both: docs/decisions/0037-mpi-starts-and-the-star-carries.md.
//!
//! Libraries spin while they wait. So nothing here waits within the library: collectives are
//! non-blocking, and between two looks the thread sleeps.

use super::manager::{BarrierTimes, ProcessManager};
use mpi::Threading;
use mpi::collective::{CommunicatorCollectives, Root};
use mpi::environment::Universe;
use mpi::request::{Request, StaticScope};
use mpi::topology::Communicator;
use rigel_device::clock::Clock;
use rigel_model::{Error, Nanos, failed, usage};

/// Sleep between two looks at an operation. It makes the bounds of clocks wider, never wrong.
const PAUSE: Nanos = Nanos::from_micros(200);
/// Bytes that rank 0 sends to all: two with the length of a text, and the text.
const ANNOUNCEMENT: usize = 1024;

/// The library of MPI, initialised.
pub struct MpiLibrary {
    /// `None` once it was finalized.
    universe: Option<Universe>,
    rank: usize,
    size: usize,
}

impl std::fmt::Debug for MpiLibrary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MpiLibrary({} of {})", self.rank, self.size)
    }
}

impl MpiLibrary {
    /// Initialises the library, which waits until all ranks are started. `processes` says how many a
    /// launcher has started, in words.
    ///
    /// # Errors
    /// The library does not allow threads, or it sees one process although several were started.
    pub fn begin(processes: &str) -> Result<Self, Error> {
        let begun = mpi::initialize_with_threading(Threading::Serialized);
        let (universe, threading) =
            begun.ok_or_else(|| failed!("MPI was initialised before", ""))?;
        if threading < Threading::Serialized {
            return Err(failed!(
                "this library of MPI allows no calls from several threads",
                "use one that has MPI_THREAD_SERIALIZED, or a rigel built without MPI"
            ));
        }
        let world = universe.world();
        let number = |of_world: i32| usize::try_from(of_world).unwrap_or(0);
        let (rank, size) = (number(world.rank()), number(world.size()));
        if size < 2 {
            // Each would believe itself alone on the same target.
            return Err(usage!(
                "a launcher started {processes}, but this library of MPI sees one",
                "use the launcher of the library that this rigel was built with; if independent \
                 runs are wanted, --alone"
            ));
        }
        Ok(Self {
            universe: Some(universe),
            rank,
            size,
        })
    }

    fn universe(&self) -> Result<&Universe, Error> {
        let gone = || failed!("MPI is finalized already", "");
        self.universe.as_ref().ok_or_else(gone)
    }

    /// Sends the bytes of rank 0 to all; every rank calls it.
    fn broadcast(
        &self,
        bytes: Vec<u8>,
        clock: &Clock,
        within: Nanos,
    ) -> Result<&'static [u8], Error> {
        let world = self.universe()?.world();
        // The library may write there for ever if the others do not come.
        let buffer: &'static mut [u8] = bytes.leak();
        let root = world.process_at_rank(0);
        completed(
            root.immediate_broadcast_into(StaticScope, buffer),
            clock,
            within,
        )
    }
}

/// Waits until an operation is completed, asleep; what it was about.
fn completed<Data: ?Sized>(
    mut request: Request<'static, Data, StaticScope>,
    clock: &Clock,
    within: Nanos,
) -> Result<&'static Data, Error> {
    let due = clock.now().plus(within);
    loop {
        match request.test_with_data() {
            Ok((_, data)) => return Ok(data),
            Err(unfinished) => request = unfinished,
        }
        if clock.now() >= due {
            // It cannot be taken back. The job is ended because of this error.
            std::mem::forget(request);
            return Err(failed!(
                "not all ranks came to a barrier of MPI in {within}",
                "see the launcher's lines above; slow starts need --join TIME",
                within = within.exact()
            ));
        }
        clock.wait_until(clock.now().plus(PAUSE));
    }
}

impl ProcessManager for MpiLibrary {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn barrier(&mut self, clock: &Clock, within: Nanos) -> Result<BarrierTimes, Error> {
        let world = self.universe()?.world();
        let enter = clock.now();
        completed(world.immediate_barrier(), clock, within)?;
        Ok(BarrierTimes {
            enter,
            leave: clock.now(),
        })
    }

    fn room(&self) -> usize {
        ANNOUNCEMENT - 2
    }

    fn announce(
        &mut self,
        text: &str,
        clock: &Clock,
        within: Nanos,
    ) -> Result<BarrierTimes, Error> {
        let length = u16::try_from(text.len()).ok();
        let length = length
            .filter(|_| text.len() <= self.room())
            .ok_or_else(|| {
                failed!(
                    "{count} bytes are too many to announce",
                    "",
                    count = text.len()
                )
            })?;
        let mut bytes = [&length.to_be_bytes()[..], text.as_bytes()].concat();
        bytes.resize(ANNOUNCEMENT, 0);
        self.broadcast(bytes, clock, within)?;
        self.barrier(clock, within)
    }

    fn announced(&mut self, clock: &Clock, within: Nanos) -> Result<(String, BarrierTimes), Error> {
        let bytes = self.broadcast(vec![0; ANNOUNCEMENT], clock, within)?;
        let times = self.barrier(clock, within)?;
        let text = bytes.split_first_chunk().and_then(|(length, rest)| {
            let text = rest.get(..u16::from_be_bytes(*length).into())?;
            String::from_utf8(text.to_vec()).ok()
        });
        let damaged = || failed!("MPI returned rank 0's announcement damaged", "");
        Ok((text.ok_or_else(damaged)?, times))
    }

    fn finalize(&mut self) -> Result<(), Error> {
        // Finalizes the library.
        drop(self.universe.take());
        Ok(())
    }

    fn abort(&mut self, status: u8) -> Result<(), Error> {
        self.universe()?.world().abort(status.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Channel, LaunchedAs};
    use std::ffi::OsString;

    fn decide(variables: &[(&str, &str)], alone: bool) -> Result<LaunchedAs, Error> {
        let environment = |name: &str| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| OsString::from(value))
        };
        LaunchedAs::decide(&environment, alone, false)
    }

    #[test]
    fn several_processes_ask_the_library_and_one_is_alone() {
        let signs: [&[(&str, &str)]; 3] = [
            &[("PMI_FD", "11"), ("PMI_SIZE", "3"), ("PMI_RANK", "2")],
            &[("OMPI_COMM_WORLD_SIZE", "3"), ("PMIX_RANK", "0")],
            &[("SLURM_STEP_NUM_TASKS", "3"), ("PMIX_NAMESPACE", "x")],
        ];
        for variables in signs {
            let processes = "3 processes".into();
            let library = LaunchedAs::Rank(Channel::Library { processes });
            assert_eq!(decide(variables, false), Ok(library));
            assert_eq!(decide(variables, true), Ok(LaunchedAs::Alone));
        }
        let one = [("OMPI_COMM_WORLD_SIZE", "1"), ("PMIX_RANK", "0")];
        for variables in [&one[..], &[("SLURM_NTASKS", "4")], &[]] {
            assert_eq!(decide(variables, false), Ok(LaunchedAs::Alone));
        }
    }

    #[test]
    fn a_library_that_sees_one_of_several_processes_is_refused() {
        let refused = MpiLibrary::begin("3 processes").unwrap_err();
        assert_eq!(refused.exit_status(), 2);
        let said = refused.to_string();
        assert!(
            said.contains("started 3 processes, but this library of MPI sees one"),
            "{said}"
        );
    }
}
