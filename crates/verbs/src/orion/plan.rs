//! The plan of Orion: a matrix of small loads (columns) by large loads (rows); each cell is a data
//! point.
//!
//! Input: [`OrionRequest`], which holds Orion's options with their defaults filled in, and the
//! shape of the volume. Output: levels, cells in running order, estimates and [`Point`]s. Opens no
//! file. `docs/methods/orion.md` has the source of each rule.

use super::request::{LargeType, Matrix, OrionRequest, RunLevel};
use rigel_analyse::plan::search::{LARGE, SMALL};
use rigel_analyse::plan::{Plan, VolumeShape, least_common_multiple};
use rigel_model::{
    Bytes, Coordinates, Error, KIB, Layout, Load, MIB, Mix, Nanos, Pattern, Point, Ratio, Stream,
    Until, WarmUp, usage,
};
use std::ops::RangeInclusive;

/// Orion's default size of a small I/O.
pub const SIZE_SMALL: u32 = 8 * 1024;
/// Orion's default size of a large I/O.
pub const SIZE_LARGE: u32 = 1024 * 1024;
/// Default number of outstanding I/Os of a sequential stream.
pub const NUM_STREAM_IO: u32 = 4;
/// Default duration of a data point in seconds.
pub const DURATION: u32 = 60;

/// Maximum number of outstanding I/Os of a cell. Far more than any storage benefits from, and a
/// ring can still hold it.
pub const OUTSTANDING_MAX: u64 = 16_384;
/// Maximum number of data points of a run: a week at a minute each.
pub const POINTS_MAX: u32 = 10_000;
impl Matrix {
    /// True if the small load is only that of `-num_small`, not a range.
    fn fixes_small(self) -> bool {
        matches!(self, Self::Point | Self::Col | Self::Max)
    }

    /// True if the large load is only that of `-num_large`, not a range.
    fn fixes_large(self) -> bool {
        matches!(self, Self::Point | Self::Row | Self::Max)
    }
}

/// The loads of a range up to `max`, without the idle level 0: 1, 2, … up to a step of a twentieth
/// of the range, then every multiple of the step, and `max` itself.
pub fn levels(max: u32) -> Vec<u32> {
    let step = (max / 20).max(1);
    let mut levels: Vec<u32> = (1..=step.min(max)).collect();
    levels.extend((2..=max / step).map(|times| times * step));
    if levels.last().is_some_and(|last| *last < max) {
        levels.push(max);
    }
    levels
}

impl Plan for OrionRequest {
    fn name(&self) -> &'static str {
        "orion"
    }

    fn prepared(&self, volume: VolumeShape<'_>, seed: u64) -> Vec<Point> {
        // The reads that warm caches are no point of the matrix.
        let mut points = self.points(volume, seed);
        points.extend(self.warming(IDLE, volume.usable, seed));
        points
    }

    fn points_expected(&self) -> usize {
        self.cells().len()
    }

    fn is_known_beforehand(&self) -> bool {
        true
    }

    fn lists_points(&self) -> bool {
        true
    }

    fn largest(&self) -> u64 {
        self.largest_io()
    }

    fn check_values(&self) -> Result<(), Error> {
        self.check_ranges()?;
        let matrix = self.matrix();
        let needs = |needed: bool, value: Option<u32>, option: &str| match value {
            None if needed => {
                let example = format!("give {option} N");
                Err(usage!(
                    "-matrix {matrix} needs {option}",
                    example,
                    matrix = matrix.name()
                ))
            }
            _ => Ok(()),
        };
        needs(matrix.fixes_small(), self.num_small, "-num_small")?;
        needs(matrix.fixes_large(), self.num_large, "-num_large")?;
        if self.small_max() == 0 && self.large_max() == 0 {
            return Err(usage!(
                "-run {run} -matrix {matrix} has no data point: small and large load are both 0",
                "give -num_small or -num_large of at least 1",
                run = self.run.name(),
                matrix = matrix.name()
            ));
        }
        self.check_outstanding()?;
        let points = self.total_data_points();
        if points > POINTS_MAX {
            return Err(usage!(
                "-matrix {matrix} has {points} data points; the maximum is {POINTS_MAX}",
                "lower -num_disks, -num_small or -num_large, or choose another -matrix",
                matrix = matrix.name()
            ));
        }
        self.check_stripe()
    }

    fn writes(&self) -> bool {
        self.write > 0
    }

    /// Seconds of a point with the minimum warm-up.
    fn point_seconds(&self) -> f64 {
        f64::from(self.duration) + self.warm_up().least.as_secs_f64()
    }

    /// The unit in which members of a volume are cut, so that no I/O spans two of them: the least
    /// common multiple of the used sizes.
    fn grain(&self) -> u64 {
        self.sizes()
            .into_iter()
            .reduce(least_common_multiple)
            .unwrap_or(u64::from(self.size_small))
    }

    /// The load before the point of `cell` with `-cache_size`: this many MiB of random large reads.
    /// Its coordinates are those of the idle cell, which no recorded point has. `None` if
    /// nothing is to be warmed.
    ///
    /// It only reads, whatever `-write` says: warming must not change the data.
    fn warming(&self, cell: Coordinates, _: u64, seed: u64) -> Option<Point> {
        let mib = self.cache_size.filter(|mib| *mib > 0)?;
        let ops = (u64::from(mib) * MIB).div_ceil(self.size_large.max(1).into());
        Some(Point {
            coordinates: IDLE,
            streams: vec![Stream {
                objective: None,
                sql: None,
                name: LARGE.into(),
                load: Load::Closed {
                    depth: self.num_disks.saturating_mul(2).clamp(4, 64),
                },
                mix: Mix::READS,
                pattern: Pattern::Uniform,
                length: self.size_large,
                rank: None,
                log: None,
            }],
            warm_up: WarmUp::NONE,
            until: Until::Ops(ops),
            // Different blocks from those of the point's own large I/O.
            seed: !seed_of(seed, cell),
            window: Point::second(),
        })
    }
}

impl OrionRequest {
    /// The request of `-run` alone, for one disk.
    pub fn new(run: RunLevel) -> Self {
        Self {
            run,
            testname: "orion".into(),
            num_disks: 1,
            size_small: SIZE_SMALL,
            size_large: SIZE_LARGE,
            large_type: LargeType::Rand,
            num_stream_io: NUM_STREAM_IO,
            simulate: Layout::Concat,
            write: 0,
            cache_size: None,
            duration: DURATION,
            matrix: None,
            num_small: None,
            num_large: None,
            verbose: false,
            given: Vec::new(),
        }
    }

    /// The matrix that is used: the one given, or the run level's default.
    pub fn matrix(&self) -> Matrix {
        self.matrix.unwrap_or(match self.run {
            RunLevel::Normal => Matrix::Detailed,
            _ => Matrix::Basic,
        })
    }

    /// Maximum small and large load of the run level.
    fn level_max(&self) -> (u32, u32) {
        let (small, large) = match self.run {
            RunLevel::Oltp => (20, 0),
            RunLevel::Dss => (0, 15),
            RunLevel::Simple | RunLevel::Normal | RunLevel::Advanced => (5, 2),
        };
        (
            self.num_disks.saturating_mul(small),
            self.num_disks.saturating_mul(large),
        )
    }

    /// Maximum small load of any cell.
    fn small_max(&self) -> u32 {
        self.num_small.unwrap_or(if self.matrix().fixes_small() {
            0
        } else {
            self.level_max().0
        })
    }

    /// Maximum large load of any cell.
    fn large_max(&self) -> u32 {
        self.num_large.unwrap_or(if self.matrix().fixes_large() {
            0
        } else {
            self.level_max().1
        })
    }

    /// The columns of the matrix: small loads, ascending. 0, if present, is the idle column.
    pub fn small_columns(&self) -> Vec<u32> {
        axis(self.matrix().fixes_small(), self.small_max())
    }

    /// The rows of the matrix: large loads, ascending. 0, if present, is the idle row.
    pub fn large_rows(&self) -> Vec<u32> {
        axis(self.matrix().fixes_large(), self.large_max())
    }

    /// Every cell of the matrix, in running order, with the idle cell if Orion counts it.
    ///
    /// Row by row, from the smallest large load. Orion calls Small=1, Large=0 "Point 2", so the
    /// idle cell is its first and the idle row comes before the others.
    fn counted_cells(&self) -> impl Iterator<Item = Coordinates> {
        let columns = self.small_columns();
        let basic = self.matrix() == Matrix::Basic;
        self.large_rows().into_iter().flat_map(move |large| {
            let columns = columns.clone();
            columns
                .into_iter()
                .filter(move |small| !basic || *small == 0 || large == 0)
                .map(move |small| Coordinates::cell(small, large))
        })
    }

    /// The cells that are run, in running order: row by row, the idle row first. The idle cell is
    /// not included.
    pub fn cells(&self) -> Vec<Coordinates> {
        self.counted_cells().filter(|cell| *cell != IDLE).collect()
    }

    /// Orion's "Total Data Points": the cells, and the idle cell if the matrix has one.
    pub fn total_data_points(&self) -> u32 {
        u32::try_from(self.counted_cells().count()).unwrap_or(u32::MAX)
    }

    /// The number of a cell in Orion's count, from 1, where the idle cell is the first; `None` for
    /// a cell of another matrix.
    pub fn number_of(&self, cell: Coordinates) -> Option<u32> {
        let index = self.counted_cells().position(|counted| counted == cell)?;
        u32::try_from(index + 1).ok()
    }

    /// Orion's estimate, which counts the idle cell and no warm-up.
    pub fn estimate_minutes(&self) -> u64 {
        (u64::from(self.total_data_points()) * u64::from(self.duration)).div_ceil(60) + 1
    }

    /// Duration of the run in seconds: the minimum, and the maximum if every point needs its whole
    /// warm-up. Reading for `-cache_size` is not included, because its speed is unknown in
    /// advance.
    pub fn estimate_seconds(&self) -> RangeInclusive<u64> {
        let (points, warm_up) = (self.cells().len() as u64, self.warm_up());
        let duration = Nanos::from_secs(self.duration.into());
        let seconds =
            |warm_up: Nanos| points.saturating_mul(duration.plus(warm_up).0) / 1_000_000_000;
        seconds(warm_up.least)..=seconds(warm_up.most)
    }

    /// The warm-up before each measurement: the point's own load until it is steady. Minimum: a
    /// quarter of the duration, at most a second. Maximum: half the duration, at least a second
    /// and at most 10 seconds.
    pub fn warm_up(&self) -> WarmUp {
        if self.cache_size == Some(0) {
            return WarmUp::NONE;
        }
        let duration = Nanos::from_secs(self.duration.into());
        let second = Nanos::from_secs(1);
        WarmUp {
            least: second.min(Nanos(duration.0 / 4)),
            most: Nanos::from_secs(10).min(second.max(Nanos(duration.0 / 2))),
        }
    }

    /// True if any cell, or the warming of caches, makes large I/O.
    pub fn uses_large(&self) -> bool {
        self.warms_cache() || self.large_max() > 0
    }

    /// True if any cell makes small I/O.
    pub fn uses_small(&self) -> bool {
        self.small_max() > 0
    }

    fn warms_cache(&self) -> bool {
        self.cache_size.is_some_and(|mib| mib > 0)
    }

    /// Bytes of this request's largest I/O.
    pub fn largest_io(&self) -> u64 {
        self.sizes()
            .into_iter()
            .max()
            .unwrap_or(u64::from(self.size_small))
    }

    /// The used sizes.
    fn sizes(&self) -> Vec<u64> {
        let small = self.uses_small().then_some(self.size_small);
        let large = self.uses_large().then_some(self.size_large);
        small.into_iter().chain(large).map(u64::from).collect()
    }

    /// The default of `-stripe`: 1 MiB as in Orion, rounded up to a whole number of grains.
    pub fn default_stripe(&self) -> Bytes {
        Bytes(MIB.next_multiple_of(self.grain().max(1)))
    }

    fn mix(&self) -> Mix {
        Mix {
            writes: Ratio::from_percent(self.write.into()).unwrap_or(Ratio::ONE),
            durable: false,
        }
    }

    /// One point for each of [`cells`](Self::cells), in the same order.
    pub fn points(&self, volume: VolumeShape<'_>, seed: u64) -> Vec<Point> {
        let until = Until::Elapsed(Nanos::from_secs(self.duration.into()));
        let point = |cell: Coordinates| Point {
            coordinates: cell,
            streams: self.streams(cell, volume),
            warm_up: self.warm_up(),
            until,
            seed: seed_of(seed, cell),
            window: until.window(Point::second()),
        };
        self.cells().into_iter().map(point).collect()
    }

    fn streams(&self, cell: Coordinates, volume: VolumeShape<'_>) -> Vec<Stream> {
        let stream = |name: &str, depth, pattern, length| Stream {
            objective: None,
            sql: None,
            name: name.into(),
            load: Load::Closed { depth },
            mix: self.mix(),
            pattern,
            length,
            rank: None,
            log: None,
        };
        let mut streams = Vec::new();
        let (small, large) = cell.small_and_large();
        if small > 0 {
            streams.push(stream(SMALL, small, Pattern::Uniform, self.size_small));
        }
        match self.large_type {
            LargeType::Rand if large > 0 => {
                streams.push(stream(LARGE, large, Pattern::Uniform, self.size_large));
            }
            LargeType::Rand => {}
            LargeType::Seq => streams.extend((0..large).map(|index| {
                let start = self.stream_start(index, large, volume);
                stream(
                    LARGE,
                    self.num_stream_io,
                    Pattern::Sequential { start },
                    self.size_large,
                )
            })),
        }
        streams
    }

    /// The first block of sequential stream `index` of `count`.
    ///
    /// In a stripe set the streams begin at equal distances. In a concatenation they are assigned
    /// to the members in turn and begin at the member's start; streams that share a member
    /// begin at equal distances on it.
    fn stream_start(&self, index: u32, count: u32, volume: VolumeShape<'_>) -> u64 {
        let (index, count) = (u64::from(index), u64::from(count));
        let members = volume.member_starts.len().max(1) as u64;
        let offset = match self.simulate {
            Layout::Stripe { .. } => part(volume.usable, index, count),
            Layout::Concat => {
                let member = index % members;
                let start_of = |member: u64| {
                    usize::try_from(member)
                        .ok()
                        .and_then(|at| volume.member_starts.get(at))
                };
                let start = start_of(member).copied().unwrap_or(0);
                let end = start_of(member + 1).copied().unwrap_or(volume.usable);
                let sharing = (count - member).div_ceil(members);
                start + part(end.saturating_sub(start), index / members, sharing)
            }
        };
        let (length, extent) = (
            u64::from(self.size_large.max(1)),
            volume.usable / u64::from(self.size_large.max(1)),
        );
        // Rounded up to a whole block: rounding down would begin on the previous member.
        offset.div_ceil(length) % extent.max(1)
    }

    fn check_ranges(&self) -> Result<(), Error> {
        let least_one = [
            ("-num_disks", self.num_disks),
            ("-num_streamIO", self.num_stream_io),
            ("-duration", self.duration),
            ("-size_small", self.size_small),
            ("-size_large", self.size_large),
        ];
        if let Some((option, _)) = least_one.into_iter().find(|(_, value)| *value == 0) {
            return Err(usage!(
                "{option} 0 would measure nothing",
                "give a whole number of at least 1"
            ));
        }
        if self.write > 100 {
            return Err(usage!(
                "-write {write} is more than 100 %",
                "give a whole number from 0 to 100: the percentage of I/Os that are writes",
                write = self.write
            ));
        }
        if self.testname.is_empty() || self.testname.ends_with('/') {
            return Err(usage!(
                "-testname '{testname}' contains no name for the files",
                "give a name, which may include a path, such as /tmp/mytest",
                testname = self.testname
            ));
        }
        Ok(())
    }

    /// Checks that no cell needs more outstanding I/Os than an engine can hold.
    fn check_outstanding(&self) -> Result<(), Error> {
        let small = u64::from(self.small_max());
        let each = if self.large_type == LargeType::Seq {
            self.num_stream_io
        } else {
            1
        };
        let large = u64::from(self.large_max()) * u64::from(each);
        // In the basic matrix, small and large I/O never run together.
        let most = if self.matrix() == Matrix::Basic {
            small.max(large)
        } else {
            small + large
        };
        if most > OUTSTANDING_MAX {
            return Err(usage!(
                "a data point would have {most} I/Os outstanding; the maximum is {OUTSTANDING_MAX}",
                "lower -num_disks, -num_small, -num_large or -num_streamIO"
            ));
        }
        Ok(())
    }

    fn check_stripe(&self) -> Result<(), Error> {
        let (grain, Layout::Stripe { stripe }) = (self.grain(), self.simulate) else {
            return Ok(());
        };
        if stripe.0 == 0 || !stripe.0.is_multiple_of(grain) {
            return Err(usage!(
                "-stripe {stripe_kib} would split I/Os",
                "give a multiple of {grain_kib} KB",
                stripe_kib = stripe.0 / KIB,
                grain_kib = grain / KIB
            ));
        }
        Ok(())
    }

    fn gave(&self, option: &str) -> bool {
        self.given.iter().any(|given| given == option)
    }

    /// One sentence for each given option that overrides a default of the run level, or that has no
    /// effect.
    pub fn overrides(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        if self.run != RunLevel::Advanced {
            self.overrides_of_level(&mut sentences);
        }
        self.overrides_of_range(&mut sentences);
        self.without_effect(&mut sentences);
        sentences
    }

    fn overrides_of_level(&self, sentences: &mut Vec<String>) {
        let own = Self {
            num_disks: self.num_disks,
            ..Self::new(self.run)
        };
        let level = self.run.name();
        let mut instead = |option: &str, ours: String, theirs: String| {
            if self.gave(option) && ours != theirs {
                sentences.push(format!(
                    "-{option}: {ours} instead of the default of -run {level}, {theirs}"
                ));
            }
        };
        let kib = |bytes: u32| format!("{} KB", u64::from(bytes) / KIB);
        let type_of = |request: &Self| format!("large I/Os of type {}", request.large_type.name());
        let simulate = |request: &Self| match request.simulate {
            Layout::Concat => "concat".to_string(),
            Layout::Stripe { .. } => "raid0".to_string(),
        };
        instead("size_small", kib(self.size_small), kib(own.size_small));
        instead("size_large", kib(self.size_large), kib(own.size_large));
        instead("type", type_of(self), type_of(&own));
        instead("simulate", simulate(self), simulate(&own));
        instead(
            "write",
            format!("{} % writes", self.write),
            "no writes".into(),
        );
        instead(
            "duration",
            format!("{} s", self.duration),
            format!("{} s", own.duration),
        );
        instead(
            "matrix",
            self.matrix().name().into(),
            own.matrix().name().into(),
        );
    }

    fn overrides_of_range(&self, sentences: &mut Vec<String>) {
        let (small, large) = self.level_max();
        let mut range = |option: &str, fixed: bool, ours: Option<u32>, own: u32| match ours {
            Some(ours) if !fixed && ours != own => {
                sentences.push(format!(
                    "-{option}: loads up to {ours} instead of the default maximum, {own}"
                ));
            }
            _ => {}
        };
        range(
            "num_small",
            self.matrix().fixes_small(),
            self.num_small,
            small,
        );
        range(
            "num_large",
            self.matrix().fixes_large(),
            self.num_large,
            large,
        );
    }

    fn without_effect(&self, sentences: &mut Vec<String>) {
        let fixed = self.matrix().fixes_small() && self.matrix().fixes_large();
        let reasons = [
            (
                "num_streamIO",
                self.large_type == LargeType::Rand,
                "it is for -type seq",
            ),
            (
                "stripe",
                self.simulate == Layout::Concat,
                "it is for -simulate raid0",
            ),
            ("size_small", !self.uses_small(), "there is no small I/O"),
            ("size_large", !self.uses_large(), "there is no large I/O"),
            (
                "type",
                self.large_max() == 0,
                "there is no large I/O, and small I/O is always random",
            ),
            ("num_disks", fixed, "-num_small and -num_large set the load"),
        ];
        let idle = reasons
            .into_iter()
            .filter(|(option, applies, _)| *applies && self.gave(option));
        sentences
            .extend(idle.map(|(option, _, why)| format!("-{option} has no effect here: {why}")));
    }
}

/// The idle cell.
const IDLE: Coordinates = Coordinates::cell(0, 0);

/// The loads along one axis of the matrix: only `max` if it is `fixed`, else idle and a range up to
/// it.
fn axis(fixed: bool, max: u32) -> Vec<u32> {
    if fixed {
        return vec![max];
    }
    let mut loads = vec![0];
    loads.extend(levels(max));
    loads
}

/// `whole · index / count`, exactly.
fn part(whole: u64, index: u64, count: u64) -> u64 {
    let part = u128::from(whole) * u128::from(index) / u128::from(count.max(1));
    u64::try_from(part).unwrap_or(u64::MAX)
}

/// The seed of a cell, the same in every matrix that has the cell. The factor is odd, so that no
/// two cells share a seed. It is not the increment of the generator's own seeding; otherwise two
/// cells could draw the same numbers with a small shift.
fn seed_of(seed: u64, cell: Coordinates) -> u64 {
    let (small, large) = cell.small_and_large();
    let packed = u64::from(small) << 32 | u64::from(large);
    seed ^ packed.wrapping_mul(0xda94_2042_e4dd_58b5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ONE: VolumeShape<'_> = VolumeShape {
        member_starts: &[0],
        usable: 64 * MIB,
    };

    fn request(run: RunLevel, num_disks: u32) -> OrionRequest {
        OrionRequest {
            num_disks,
            ..OrionRequest::new(run)
        }
    }

    fn matrix(matrix: Matrix, num_small: Option<u32>, num_large: Option<u32>) -> OrionRequest {
        OrionRequest {
            matrix: Some(matrix),
            num_small,
            num_large,
            ..OrionRequest::new(RunLevel::Advanced)
        }
    }

    fn cells(request: &OrionRequest) -> Vec<(u32, u32)> {
        request
            .cells()
            .into_iter()
            .map(Coordinates::small_and_large)
            .collect()
    }

    #[test]
    fn the_number_of_points_is_the_one_orion_prints() {
        for (run, num_disks, points) in [
            (RunLevel::Simple, 1, 8),
            (RunLevel::Simple, 4, 29),
            (RunLevel::Simple, 8, 38),
            (RunLevel::Normal, 1, 18),
            (RunLevel::Oltp, 1, 21),
            (RunLevel::Oltp, 3, 23),
        ] {
            assert_eq!(
                request(run, num_disks).total_data_points(),
                points,
                "{run:?} {num_disks}"
            );
        }
        assert_eq!(request(RunLevel::Dss, 1).total_data_points(), 16);
    }

    #[test]
    fn loads_are_thinned_to_a_twentieth_of_the_range() {
        assert!(levels(0).is_empty());
        assert_eq!(levels(1), [1]);
        assert_eq!(levels(5), [1, 2, 3, 4, 5]);
        assert_eq!(levels(39), (1..=39).collect::<Vec<_>>());
        assert_eq!(levels(45)[..4], [1, 2, 4, 6]);
        assert_eq!(levels(45)[20..], [40, 42, 44, 45]);
        assert_eq!(levels(60)[..5], [1, 2, 3, 6, 9]);
    }

    #[test]
    fn the_estimate_is_orions() {
        assert_eq!(request(RunLevel::Normal, 1).estimate_minutes(), 19);
        let short = OrionRequest {
            duration: 10,
            ..request(RunLevel::Simple, 1)
        };
        assert_eq!(short.estimate_minutes(), 3);
        assert_eq!(short.estimate_seconds(), 77..=105);
    }

    #[test]
    fn cells_run_row_by_row_and_the_idle_cell_counts_first() {
        let simple = request(RunLevel::Simple, 1);
        assert_eq!(
            cells(&simple),
            [(1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (0, 1), (0, 2)]
        );
        assert_eq!(simple.number_of(Coordinates::cell(1, 0)), Some(2));
        assert_eq!(simple.number_of(Coordinates::cell(0, 2)), Some(8));
        assert_eq!(simple.number_of(Coordinates::cell(1, 1)), None);
        assert_eq!(
            cells(&request(RunLevel::Normal, 1))[5..8],
            [(0, 1), (1, 1), (2, 1)]
        );
    }

    #[test]
    fn a_matrix_of_one_row_column_or_cell_runs_just_that() {
        assert_eq!(
            cells(&matrix(Matrix::Row, None, Some(7))),
            [(0, 7), (1, 7), (2, 7), (3, 7), (4, 7), (5, 7)]
        );
        assert_eq!(
            cells(&matrix(Matrix::Row, None, Some(0))),
            [(1, 0), (2, 0), (3, 0), (4, 0), (5, 0)]
        );
        assert_eq!(
            cells(&matrix(Matrix::Col, Some(3), None)),
            [(3, 0), (3, 1), (3, 2)]
        );
        assert_eq!(cells(&matrix(Matrix::Point, Some(3), Some(2))), [(3, 2)]);
        assert_eq!(cells(&matrix(Matrix::Max, Some(3), Some(2))), [(3, 2)]);
        assert_eq!(
            matrix(Matrix::Point, Some(3), Some(2)).total_data_points(),
            1
        );
    }

    #[test]
    fn a_number_of_small_or_large_replaces_the_end_of_a_range() {
        let mut oltp = request(RunLevel::Oltp, 1);
        oltp.num_large = Some(2);
        assert_eq!(cells(&oltp)[19..], [(20, 0), (0, 1), (0, 2)]);
        assert_eq!(
            oltp.overrides(),
            ["-num_large: loads up to 2 instead of the default maximum, 0"]
        );
    }

    #[test]
    fn invalid_requests_are_refused_with_the_option_named() {
        let base = || OrionRequest::new(RunLevel::Advanced);
        let cases = [
            (matrix(Matrix::Point, Some(1), None), "-num_large"),
            (matrix(Matrix::Max, None, Some(1)), "-num_small"),
            (matrix(Matrix::Row, None, None), "-num_large"),
            (matrix(Matrix::Col, None, None), "-num_small"),
            (matrix(Matrix::Point, Some(0), Some(0)), "both 0"),
            (
                OrionRequest {
                    duration: 0,
                    ..base()
                },
                "-duration",
            ),
            (
                OrionRequest {
                    write: 101,
                    ..base()
                },
                "-write",
            ),
            (
                OrionRequest {
                    num_disks: 0,
                    ..base()
                },
                "-num_disks",
            ),
            (
                OrionRequest {
                    num_disks: 1_000_000,
                    ..base()
                },
                "-num_disks",
            ),
            (
                OrionRequest {
                    num_disks: 2_000,
                    ..matrix(Matrix::Detailed, None, None)
                },
                "-matrix detailed",
            ),
            (
                OrionRequest {
                    num_stream_io: 0,
                    ..base()
                },
                "-num_streamIO",
            ),
            (
                OrionRequest {
                    testname: "dir/".into(),
                    ..base()
                },
                "-testname",
            ),
            (
                OrionRequest {
                    simulate: Layout::Stripe {
                        stripe: Bytes(100 * KIB),
                    },
                    ..base()
                },
                "-stripe",
            ),
        ];
        for (request, option) in cases {
            let error = request.check_values().unwrap_err();
            assert_eq!(error.exit_status(), 2);
            assert!(error.to_string().contains(option), "{error}");
        }
        for run in RunLevel::ALL {
            assert_eq!(request(run, 3).check_values(), Ok(()));
        }
    }

    #[test]
    fn a_point_has_a_stream_for_each_class_that_runs() {
        let request = OrionRequest {
            write: 25,
            ..matrix(Matrix::Point, Some(4), Some(3))
        };
        let points = request.points(ONE, 1);
        let [small, large] = &points[0].streams[..] else {
            panic!("{points:?}")
        };
        assert_eq!(
            (small.name.as_str(), small.load, small.length),
            (SMALL, Load::Closed { depth: 4 }, SIZE_SMALL)
        );
        assert_eq!(
            (large.name.as_str(), large.load, large.length),
            (LARGE, Load::Closed { depth: 3 }, SIZE_LARGE)
        );
        assert!(
            points[0]
                .streams
                .iter()
                .all(|s| s.pattern == Pattern::Uniform && (s.mix.writes.get() - 0.25).abs() < 1e-9)
        );
        assert_eq!(points[0].until, Until::Elapsed(Nanos::from_secs(60)));
        assert_eq!(
            points[0].warm_up,
            WarmUp {
                least: Nanos::from_secs(1),
                most: Nanos::from_secs(10)
            }
        );
    }

    fn starts(request: &OrionRequest, volume: VolumeShape<'_>) -> Vec<u64> {
        let start = |stream: &Stream| match stream.pattern {
            Pattern::Sequential { start } => start,
            _ => panic!("{stream:?}"),
        };
        request.points(volume, 1)[0]
            .streams
            .iter()
            .map(start)
            .collect()
    }

    #[test]
    fn sequential_streams_are_spread_over_a_stripe_set_and_take_turns_on_members() {
        let mut request = matrix(Matrix::Point, Some(0), Some(5));
        request.large_type = LargeType::Seq;
        let volume = VolumeShape {
            member_starts: &[0, 40 * MIB],
            usable: 100 * MIB,
        };
        // Members of 40 and 60 blocks: three streams on the first, two on the second.
        assert_eq!(starts(&request, volume), [0, 40, 14, 70, 27]);
        request.simulate = Layout::Stripe { stripe: Bytes(MIB) };
        assert_eq!(starts(&request, volume), [0, 20, 40, 60, 80]);
        let streams = &request.points(volume, 1)[0].streams;
        assert!(
            streams
                .iter()
                .all(|s| s.name == LARGE && s.load == Load::Closed { depth: 4 })
        );
    }

    #[test]
    fn warming_only_reads_and_only_if_requested() {
        let cell = Coordinates::cell(1, 0);
        let mut request = OrionRequest {
            write: 50,
            ..request(RunLevel::Oltp, 1)
        };
        assert_eq!(request.warming(cell, 0, 1), None);
        assert_eq!((request.largest_io(), request.grain()), (8192, 8192));
        request.cache_size = Some(0);
        assert_eq!(request.warming(cell, 0, 1), None);
        assert_eq!(request.points(ONE, 1)[0].warm_up, WarmUp::NONE);
        request.cache_size = Some(100);
        let warming = request.warming(cell, 0, 1).unwrap();
        assert_eq!(warming.until, Until::Ops(100));
        assert_eq!(warming.streams[0].mix, Mix::READS);
        assert_eq!(request.largest_io(), MIB);
    }

    #[test]
    fn every_cell_has_a_seed_of_its_own() {
        let points = request(RunLevel::Normal, 8).points(ONE, 7);
        let seeds: std::collections::BTreeSet<u64> =
            points.iter().map(|point| point.seed).collect();
        assert_eq!(seeds.len(), points.len());
    }

    #[test]
    fn a_stripe_is_never_smaller_than_an_io() {
        let mut request = OrionRequest::new(RunLevel::Simple);
        assert_eq!(request.default_stripe(), Bytes(MIB));
        request.size_large = 768 * 1024;
        assert_eq!(request.default_stripe(), Bytes(1536 * KIB));
    }

    #[test]
    fn overrides_and_ignored_options_are_reported() {
        let mut request = OrionRequest {
            size_small: 4096,
            write: 10,
            ..request(RunLevel::Oltp, 1)
        };
        request.given = [
            "size_small",
            "write",
            "size_large",
            "num_streamIO",
            "duration",
        ]
        .map(String::from)
        .to_vec();
        assert_eq!(
            request.overrides(),
            [
                "-size_small: 4 KB instead of the default of -run oltp, 8 KB",
                "-write: 10 % writes instead of the default of -run oltp, no writes",
                "-num_streamIO has no effect here: it is for -type seq",
                "-size_large has no effect here: there is no large I/O",
            ]
        );
    }

    #[test]
    fn a_request_comes_back_from_json() {
        let request = OrionRequest {
            cache_size: Some(5),
            ..matrix(Matrix::Max, Some(1), Some(2))
        };
        let text = serde_json::to_string(&request).unwrap();
        assert_eq!(
            serde_json::from_str::<OrionRequest>(&text).unwrap(),
            request
        );
    }

    proptest! {
        #[test]
        fn levels_ascend_from_1_to_the_end(max in 1u32..) {
            let levels = levels(max.min(100_000));
            prop_assert_eq!(levels[0], 1);
            prop_assert_eq!(*levels.last().unwrap(), max.min(100_000));
            prop_assert!(levels.windows(2).all(|two| two[0] < two[1]));
        }

        #[test]
        fn streams_begin_inside_the_volume_and_apart(
            sizes in prop::collection::vec(1u64..50, 1..6), count in 1u32..40, striped in any::<bool>()
        ) {
            let starts_of: Vec<u64> = sizes.iter().scan(0, |end, size| {
                let start = *end;
                *end += size * MIB;
                Some(start)
            }).collect();
            let volume = VolumeShape { member_starts: &starts_of, usable: sizes.iter().sum::<u64>() * MIB };
            let mut request = matrix(Matrix::Point, Some(0), Some(count));
            request.large_type = LargeType::Seq;
            if striped {
                request.simulate = Layout::Stripe { stripe: Bytes(MIB) };
            }
            let starts = starts(&request, volume);
            prop_assert!(starts.iter().all(|start| start * MIB < volume.usable), "{starts:?}");
            if !striped && sizes.len() >= count as usize {
                let firsts: Vec<u64> = starts_of[..count as usize].iter().map(|start| start / MIB).collect();
                prop_assert_eq!(starts, firsts);
            }
        }
    }
}
