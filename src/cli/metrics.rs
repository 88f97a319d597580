//! The metrics of a run, served to Prometheus while it measures.
//!
//! Input: the header of the run's journal and its points in order. Output: an HTTP server until the
//! value is dropped. The rounds of a soak keep their numbers. In every other run a point counts as
//! a round, numbered in the order of the journal.

use super::outcome::OutcomeArgs;
use super::output::remark;
use crate::serve::{HttpServer, ListenAddress};
use rigel_analyse::demand::watch_request::WatchRequest;
use rigel_analyse::series::soak_request::SoakRequest;
use rigel_analyse::{SoakReader, numbered_round, round};
use rigel_model::record::journal::Header;
use rigel_model::record::{PointRecord, RankGroup, RankRecord, WatchedInterval};
use rigel_model::{Error, Objective};
use rigel_report::openmetrics::{About, Exposed, ExposedWatch};
use std::sync::{Arc, Mutex, PoisonError};

/// The conclusion of a soak is drawn again when its rounds have grown by one part of this many.
const CONCLUDE_EVERY: u32 = 50;

/// The metrics served to Prometheus.
pub(super) struct Metrics {
    state: Arc<Mutex<State>>,
    /// The server runs until it is dropped.
    _server: HttpServer,
}

/// What is served.
#[derive(Default)]
struct State {
    /// `None` until the header is known.
    exposed: Option<Exposed>,
    /// Number of points so far.
    points: u32,
    /// The rounds of a soak so far: a few hundred bytes each, for its conclusion.
    soak: Option<(SoakRequest, SoakReader)>,
    /// The number of rounds from which on the conclusion is drawn again.
    conclude_at: u32,
    /// The ranks of the run, if there are several.
    group: Option<Box<RankGroup>>,
}

impl Metrics {
    /// Serves metrics if the user asked for them.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub(super) fn of(outcome: &OutcomeArgs) -> Result<Option<Self>, Error> {
        outcome.metrics.map(Self::serve).transpose()
    }

    /// Starts listening, and prints the address.
    fn serve(address: ListenAddress) -> Result<Self, Error> {
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        let server = listen(address, move |accept| {
            let mut state = shared.lock().unwrap_or_else(PoisonError::into_inner);
            // Nothing is known before the target was examined.
            let nothing = || ("text/plain; charset=utf-8", Arc::from([]));
            state
                .exposed
                .as_mut()
                .map_or_else(nothing, |exposed| exposed.answer(accept))
        })?;
        Ok(Self {
            state,
            _server: server,
        })
    }

    /// Adds what each rank measured of a point.
    pub(super) fn add_ranks(&self, parts: &[RankRecord]) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { exposed, group, .. } = &mut *state;
        if let Some((exposed, group)) = exposed.as_mut().zip(group.as_ref()) {
            exposed.add_ranks(group, parts);
        }
    }

    /// Adds a point of the run with this header. Without a record, only the header becomes known.
    pub(super) fn add(&self, header: &Header, record: Option<&PointRecord>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State {
            exposed,
            points,
            soak,
            conclude_at,
            group,
        } = &mut *state;
        if exposed.is_none() {
            *exposed = about(header).map(Exposed::new);
            group.clone_from(&header.ranks);
            let request: Option<SoakRequest> = header.invocation.asked("soak");
            *soak = request.map(|request| {
                let reader = SoakReader::new(&request);
                (request, reader)
            });
        }
        let Some((exposed, record)) = exposed.as_mut().zip(record) else {
            return;
        };
        *points += 1;
        let round = if soak.is_some() {
            round(record, exposed.objectives())
        } else {
            numbered_round(*points, record, exposed.objectives())
        };
        if let Some(round) = round {
            exposed.add_round(&round, record);
        }
        if let Some((request, reader)) = soak {
            reader.add(record);
            // All rounds are evaluated, so of many not after each.
            if *points >= *conclude_at {
                *conclude_at = *points + (*points / CONCLUDE_EVERY).max(1);
                let result = reader.clone().result(request);
                exposed.conclude(result.conclusion(header).status);
            }
        }
    }
}

/// Serves what `answer` makes, and prints the address.
fn listen<A>(address: ListenAddress, answer: A) -> Result<HttpServer, Error>
where
    A: Fn(&str) -> (&'static str, Arc<[u8]>) + Send + Sync + 'static,
{
    let server = HttpServer::start(address, answer)?;
    remark(&format!(
        "metrics are served at http://{}/metrics\n",
        server.address()
    ));
    if let Some(who) = address.remark() {
        remark(&format!("{who}\n"));
    }
    Ok(server)
}

/// The metrics of a watch.
pub(super) struct WatchMetrics {
    exposed: Arc<Mutex<ExposedWatch>>,
    /// The server runs until it is dropped.
    _server: HttpServer,
}

impl WatchMetrics {
    /// Serves metrics of the watch with this header if the user asked for them.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub(super) fn of(
        outcome: &OutcomeArgs,
        header: &Header,
        request: &WatchRequest,
    ) -> Result<Option<Self>, Error> {
        let Some(address) = outcome.metrics else {
            return Ok(None);
        };
        let exposed = ExposedWatch::new(header.started.parse()?, request);
        let exposed = Arc::new(Mutex::new(exposed));
        let shared = Arc::clone(&exposed);
        let server = listen(address, move |accept| {
            let exposed = shared.lock().unwrap_or_else(PoisonError::into_inner);
            exposed.answer(accept)
        })?;
        Ok(Some(Self {
            exposed,
            _server: server,
        }))
    }

    /// Adds an interval.
    pub(super) fn add(&self, interval: &WatchedInterval) {
        let mut exposed = self.exposed.lock().unwrap_or_else(PoisonError::into_inner);
        exposed.add(interval);
    }
}

/// Constant facts about the run with this header; `None` if it does not say when it began.
fn about(header: &Header) -> Option<About> {
    let soak = header.invocation.asked::<SoakRequest>("soak");
    let verb = rigel_verbs::of(header).ok()?;
    Some(About {
        verb: verb.command().into(),
        target: header.facts.name.clone(),
        engine: header.engine.name.clone(),
        started: header.started.parse().ok()?,
        planned: soak.as_ref().map(|request| request.lasting),
        objectives: soak
            .as_ref()
            .map_or_else(Vec::<Objective>::new, |request| request.objectives.clone()),
        share: soak.as_ref().map_or(0.0, |request| request.share.get()),
    })
}
