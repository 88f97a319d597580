//! The plan of `layers`: the same blocks of the same files through each layer in turn, from raw I/O
//! to a row.
//!
//! All points are known in advance. Each round measures every layer once; every second round goes
//! backwards, so that a device that drifts favours no layer.

use super::request::LayersRequest;
use rigel_analyse::PointSummary;
use rigel_analyse::plan::Plan;
use rigel_analyse::plan::search::{SMALL, WINDOW, seed_of};
use rigel_model::{Coordinates, Layer, Load, Mix, Pattern, Point, ReadWay, SqlWork, Stream, Until};

impl Plan for LayersRequest {
    fn name(&self) -> &'static str {
        "layers"
    }

    fn work(&self) -> Option<SqlWork> {
        Some(self.work)
    }

    fn is_known_beforehand(&self) -> bool {
        true
    }

    fn sizes(&self) -> Vec<u32> {
        vec![self.block()]
    }

    /// The next point after those in `done`; `None` if all are done.
    fn next(&self, _: u64, seed: u64, done: &[PointSummary]) -> Option<Point> {
        let is_done = |wanted: &Coordinates| done.iter().any(|point| point.coordinates == *wanted);
        self.coordinates()
            .into_iter()
            .find(|wanted| !is_done(wanted))
            .map(|wanted| self.point(wanted, seed))
    }

    /// The points of every layer with the maximum number of outstanding I/Os.
    fn extremes(&self, _: u64, seed: u64) -> Vec<Point> {
        self.layers()
            .into_iter()
            .flat_map(|layer| self.extremes_of(layer, seed))
            .collect()
    }

    /// Number of points.
    fn points_expected(&self) -> usize {
        self.coordinates().len()
    }

    /// Maximum time of a point in seconds.
    fn point_seconds(&self) -> f64 {
        self.point_time.plus(self.warm_up.most).as_secs_f64()
    }
}

impl LayersRequest {
    /// The measured layers, from storage upwards.
    pub fn layers(&self) -> Vec<Layer> {
        Layer::ALL
            .into_iter()
            .filter(|layer| self.single || *layer != Layer::Single)
            .filter(|layer| self.prefetch || *layer != Layer::Prefetch)
            .collect()
    }

    /// The work of database sessions at `layer`; `None` for raw I/O.
    pub fn work_of(&self, layer: Layer) -> Option<SqlWork> {
        let (way, read_rows) = match layer {
            Layer::Async | Layer::Sync => return None,
            Layer::File => (ReadWay::File, self.work.read_rows),
            Layer::Row => (ReadWay::Row, self.work.read_rows),
            Layer::Prefetch => (ReadWay::Prefetch, self.work.read_rows),
            Layer::Single => (ReadWay::Row, 1),
        };
        Some(SqlWork {
            read_rows,
            way,
            ..self.work
        })
    }

    /// Bytes of a block.
    pub fn block(&self) -> u32 {
        self.work.tables.block
    }

    /// All points, in measuring order.
    fn coordinates(&self) -> Vec<Coordinates> {
        let mut all = Vec::new();
        for sessions in &self.sessions {
            for round in 1..=self.rounds {
                let mut layers = self.layers();
                if round % 2 == 0 {
                    layers.reverse();
                }
                let of = |layer| Coordinates::Layer {
                    layer,
                    sessions: *sessions,
                    round,
                };
                all.extend(layers.into_iter().map(of));
            }
        }
        all
    }

    fn point(&self, coordinates: Coordinates, seed: u64) -> Point {
        let sql = if let Coordinates::Layer { layer, .. } = coordinates {
            self.work_of(layer)
        } else {
            None
        };
        let stream = Stream {
            objective: None,
            name: SMALL.into(),
            load: Load::Closed {
                depth: coordinates.outstanding(),
            },
            mix: Mix::READS,
            pattern: Pattern::Uniform,
            length: self.block(),
            sql,
            rank: None,
            log: None,
        };
        Point {
            coordinates,
            streams: vec![stream],
            warm_up: self.warm_up,
            until: Until::Elapsed(self.point_time),
            seed: seed_of(seed, coordinates),
            window: Until::Elapsed(self.point_time).window(WINDOW),
        }
    }

    /// The points of `layer` with the maximum number of outstanding I/Os.
    pub fn extremes_of(&self, layer: Layer, seed: u64) -> Vec<Point> {
        let most = self.sessions.iter().copied().max().unwrap_or(1);
        vec![self.point(
            Coordinates::Layer {
                layer,
                sessions: most,
                round: 1,
            },
            seed,
        )]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_model::{Nanos, Tables, WarmUp};

    fn request(all: bool) -> LayersRequest {
        let tables = Tables {
            schemas: 1,
            scale: 10_000,
            scan_blocks: 128,
            block: 8192,
        };
        LayersRequest {
            sessions: vec![2, 16],
            rounds: 2,
            point_time: Nanos::from_secs(5),
            warm_up: WarmUp::NONE,
            work: SqlWork::reads(tables),
            prefetch: all,
            single: all,
            asynchronous: "uring".into(),
        }
    }

    #[test]
    fn every_layer_comes_once_a_round_and_every_second_round_backwards() {
        let names: Vec<String> = request(false)
            .coordinates()
            .iter()
            .map(Coordinates::name)
            .collect();
        let of_two = [
            "async:1", "sync:1", "file:1", "row:1", "row:2", "file:2", "sync:2", "async:2",
        ];
        let of = |sessions: u32| {
            of_two
                .iter()
                .map(move |name| format!("layer:{name}:{sessions}"))
        };
        assert_eq!(names, of(2).chain(of(16)).collect::<Vec<_>>());
        assert_eq!(request(true).points_expected(), 24);
    }

    #[test]
    fn layers_differ_in_their_way_and_in_nothing_else() {
        let request = request(true);
        let points: Vec<Point> = request.extremes(0, 7);
        assert!(
            points
                .iter()
                .all(|point| point.streams.len() == 1 && point.streams[0].load.slots() == 16)
        );
        assert!(
            points
                .iter()
                .all(|point| point.streams[0].length == 8192 && point.until == points[0].until)
        );
        let works: Vec<_> = points
            .iter()
            .map(|point| point.streams[0].sql.map(|work| (work.way, work.read_rows)))
            .collect();
        let row = |rows| Some((ReadWay::Row, rows));
        assert_eq!(
            works,
            [
                None,
                None,
                Some((ReadWay::File, 64)),
                row(64),
                Some((ReadWay::Prefetch, 64)),
                row(1)
            ]
        );
    }
}
