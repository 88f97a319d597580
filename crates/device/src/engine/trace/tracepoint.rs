//! Tracepoints of the block layer: the layout of their events, and what an event says.
//!
//! Input: the text of a tracepoint's `format` file, and the bytes of an event. Output:
//! [`RequestEvent`]s. Pure. The layout is read, never assumed: it differs between kernels.

use std::ops::Range;

/// What happened to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RequestStep {
    /// The kernel put it into a queue before the disk (`block_rq_insert`).
    Queued,
    /// The disk's driver got it (`block_rq_issue`).
    Issued,
    /// The driver could not take it yet, and it waits to be issued again (`block_rq_requeue`).
    PutBack,
    /// All or a part of it ended (`block_rq_complete`).
    Completed,
}

impl RequestStep {
    /// Every step, in the order in which a request takes them.
    pub const ALL: [RequestStep; 4] = [Self::Queued, Self::Issued, Self::PutBack, Self::Completed];

    /// The tracepoint's name.
    pub fn tracepoint(self) -> &'static str {
        match self {
            Self::Queued => "block_rq_insert",
            Self::Issued => "block_rq_issue",
            Self::PutBack => "block_rq_requeue",
            Self::Completed => "block_rq_complete",
        }
    }

    /// True for a step without which the others can be understood: its tracepoint may be missing.
    pub fn is_optional(self) -> bool {
        self == Self::PutBack
    }
}

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RequestAction {
    /// Reads data.
    Read,
    /// Writes data.
    Write,
    /// Writes the disk's cache to the medium.
    Flush,
    /// Anything else: discards, commands of the driver.
    Other,
}

/// An event of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestEvent {
    /// Nanoseconds on the machine's monotonic clock.
    pub at: u64,
    /// What happened.
    pub step: RequestStep,
    /// The disk, as the kernel encodes its number: major << 20 | minor.
    pub disk: u32,
    /// First sector of 512 bytes.
    pub sector: u64,
    /// Number of sectors; of a completion, those that ended.
    pub sectors: u32,
    /// What the request does.
    pub action: RequestAction,
    /// True if the data must be on the medium before the write ends.
    pub forced: bool,
    /// True if the disk's cache must be flushed before the write begins.
    pub after_flush: bool,
    /// True if it ended with an error.
    pub failed: bool,
}

/// Where the fields of one tracepoint's events are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracepointFormat {
    /// The number that its events begin with.
    pub id: u16,
    /// What its events say.
    pub step: RequestStep,
    disk: Range<usize>,
    sector: Range<usize>,
    sectors: Range<usize>,
    flags: Range<usize>,
    /// Only of completions.
    error: Option<Range<usize>>,
    /// Where the last of all fields ends, also of those that are not needed.
    end: usize,
}

impl TracepointFormat {
    /// Reads a `format` file of tracefs.
    ///
    /// # Errors
    /// The name of the field that is missing or has another size than expected.
    pub fn parse(step: RequestStep, text: &str) -> Result<Self, &'static str> {
        let id = text
            .lines()
            .find_map(|line| line.strip_prefix("ID:")?.trim().parse().ok())
            .ok_or("ID")?;
        let sized = |name: &'static str, sizes: &[usize]| {
            field(text, name)
                .filter(|range| sizes.contains(&range.len()))
                .ok_or(name)
        };
        let flags = field(text, "rwbs").ok_or("rwbs")?;
        Ok(Self {
            id,
            step,
            disk: sized("dev", &[4])?,
            sector: sized("sector", &[8])?,
            sectors: sized("nr_sector", &[4])?,
            flags,
            error: sized("error", &[4]).ok(),
            end: text
                .lines()
                .filter_map(place)
                .map(|range| range.end)
                .max()
                .unwrap_or(0),
        })
    }

    /// Where the disk's number is, in the bytes of an event.
    pub fn place_of_disk(&self) -> usize {
        self.disk.start
    }

    /// How much of an event is needed.
    pub fn extent(&self) -> EventLength {
        let all = [&self.disk, &self.sector, &self.sectors, &self.flags];
        let ends = all.into_iter().chain(&self.error).map(|range| range.end);
        EventLength {
            needed: ends.max().unwrap_or(0),
            all: self.end,
        }
    }

    /// The event in `raw`, at the time `at`; `None` if it is too short.
    pub fn event(&self, at: u64, raw: &[u8]) -> Option<RequestEvent> {
        let flags = raw.get(self.flags.clone())?;
        let end = flags.iter().position(|byte| *byte == 0);
        let meaning = meaning(&flags[..end.unwrap_or(flags.len())]);
        let error = match &self.error {
            Some(range) => u32_at(raw, range)?,
            None => 0,
        };
        Some(RequestEvent {
            at,
            step: self.step,
            disk: u32_at(raw, &self.disk)?,
            sector: u64::from_ne_bytes(raw.get(self.sector.clone())?.try_into().ok()?),
            sectors: u32_at(raw, &self.sectors)?,
            action: meaning.action,
            forced: meaning.forced,
            after_flush: meaning.after_flush,
            failed: error != 0,
        })
    }
}

/// The length of an event in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventLength {
    /// To the end of the last field that is needed.
    pub needed: usize,
    /// To the end of the last field.
    pub all: usize,
}

/// The number at the beginning of an event, which says of which tracepoint it is.
pub fn id_of(raw: &[u8]) -> Option<u16> {
    Some(u16::from_ne_bytes(raw.get(..2)?.try_into().ok()?))
}

fn u32_at(raw: &[u8], range: &Range<usize>) -> Option<u32> {
    Some(u32::from_ne_bytes(raw.get(range.clone())?.try_into().ok()?))
}

/// Largest offset or size of a field that can be real: an event fits into a page.
const FIELD_MAX: usize = 1 << 16;

/// The bytes of the field `name`, from a line such as
/// `field:sector_t sector; offset:16; size:8; signed:0;`, with tabs between.
fn field(text: &str, name: &str) -> Option<Range<usize>> {
    text.lines().find_map(|line| {
        let declaration = line.trim().strip_prefix("field:")?.split(';').next()?;
        let declared = declaration.trim().rsplit([' ', '*']).next()?;
        (declared.split('[').next()? == name).then_some(())?;
        place(line)
    })
}

/// The bytes of the field that this line declares.
fn place(line: &str) -> Option<Range<usize>> {
    let mut parts = line
        .trim()
        .strip_prefix("field:")?
        .split(';')
        .map(str::trim)
        .skip(1);
    let number = |part: &str, key: &str| {
        let value = part.strip_prefix(key)?.parse::<usize>().ok()?;
        (value < FIELD_MAX).then_some(value)
    };
    let offset = number(parts.next()?, "offset:")?;
    let size = number(parts.next()?, "size:")?;
    Some(offset..offset + size)
}

/// What the letters of an event say.
struct Meaning {
    action: RequestAction,
    forced: bool,
    after_flush: bool,
}

/// Reads the letters that `blk_fill_rwbs` of the kernel writes: `F` for a flush before, one letter
/// for the action, then `F` for forced unit access and others.
fn meaning(letters: &[u8]) -> Meaning {
    let after_flush = letters.len() > 1 && letters[0] == b'F';
    let rest = if after_flush { &letters[1..] } else { letters };
    let action = match rest.first() {
        Some(b'R') => RequestAction::Read,
        Some(b'W') => RequestAction::Write,
        Some(b'F') => RequestAction::Flush,
        _ => RequestAction::Other,
    };
    Meaning {
        action,
        forced: action == RequestAction::Write && rest.get(1) == Some(&b'F'),
        after_flush: after_flush && action != RequestAction::Flush,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As Linux 6.18 prints it.
    const ISSUE: &str = "name: block_rq_issue
ID: 2104
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:dev_t dev;	offset:8;	size:4;	signed:0;
	field:sector_t sector;	offset:16;	size:8;	signed:0;
	field:unsigned int nr_sector;	offset:24;	size:4;	signed:0;
	field:unsigned int bytes;	offset:28;	size:4;	signed:0;
	field:unsigned short ioprio;	offset:32;	size:2;	signed:0;
	field:char rwbs[10];	offset:34;	size:10;	signed:0;
	field:char comm[16];	offset:44;	size:16;	signed:0;
	field:__data_loc char[] cmd;	offset:60;	size:4;	signed:0;
";

    /// A completion of an older kernel, with shorter flags at another place.
    const COMPLETE: &str = "ID: 1099
	field:dev_t dev;	offset:8;	size:4;	signed:0;
	field:sector_t sector;	offset:16;	size:8;	signed:0;
	field:unsigned int nr_sector;	offset:24;	size:4;	signed:0;
	field:int error;	offset:28;	size:4;	signed:1;
	field:char rwbs[8];	offset:32;	size:8;	signed:0;
";

    /// The layout of a completion.
    pub(in crate::engine::trace) fn completion() -> TracepointFormat {
        TracepointFormat::parse(RequestStep::Completed, COMPLETE).unwrap()
    }

    fn raw(length: usize, fields: &[(usize, &[u8])]) -> Vec<u8> {
        let mut raw = vec![0; length];
        for (at, bytes) in fields {
            raw[*at..*at + bytes.len()].copy_from_slice(bytes);
        }
        raw
    }

    #[test]
    fn an_event_is_read_where_the_kernel_says_that_its_fields_are() {
        let format = TracepointFormat::parse(RequestStep::Issued, ISSUE).unwrap();
        assert_eq!(format.id, 2104);
        let bytes = raw(
            64,
            &[
                (0, &2104u16.to_ne_bytes()),
                (8, &((254u32 << 20) | 3).to_ne_bytes()),
                (16, &123_456u64.to_ne_bytes()),
                (24, &16u32.to_ne_bytes()),
                (34, b"WFS"),
            ],
        );
        assert_eq!(id_of(&bytes), Some(2104));
        let event = format.event(77, &bytes).unwrap();
        let wanted = RequestEvent {
            at: 77,
            step: RequestStep::Issued,
            disk: (254 << 20) | 3,
            sector: 123_456,
            sectors: 16,
            action: RequestAction::Write,
            forced: true,
            after_flush: false,
            failed: false,
        };
        assert_eq!(event, wanted);
        assert_eq!(format.event(77, &bytes[..40]), None);
        let (needed, all) = (44, 64);
        assert_eq!(format.extent(), EventLength { needed, all });
        let format = TracepointFormat::parse(RequestStep::Completed, COMPLETE).unwrap();
        let bytes = raw(40, &[(28, &(-5i32).to_ne_bytes()), (32, b"R")]);
        let event = format.event(1, &bytes).unwrap();
        assert!(event.failed && event.action == RequestAction::Read);
    }

    #[test]
    fn a_format_without_a_field_is_refused_by_the_fields_name() {
        let without = ISSUE.replace("sector_t sector;", "sector_t place;");
        let parsed = TracepointFormat::parse(RequestStep::Issued, &without);
        assert_eq!(parsed, Err("sector"));
        let narrow = ISSUE.replace("offset:16;	size:8", "offset:16;	size:4");
        let parsed = TracepointFormat::parse(RequestStep::Issued, &narrow);
        assert_eq!(parsed, Err("sector"));
        assert_eq!(TracepointFormat::parse(RequestStep::Issued, ""), Err("ID"));
    }

    #[test]
    fn only_the_way_back_may_be_missing() {
        let optional = RequestStep::ALL.map(RequestStep::is_optional);
        assert_eq!(optional, [false, false, true, false]);
        let text = ISSUE.replace("block_rq_issue", RequestStep::PutBack.tracepoint());
        assert!(TracepointFormat::parse(RequestStep::PutBack, &text).is_ok());
    }

    #[test]
    fn the_letters_of_the_kernel_are_understood() {
        use RequestAction::{Flush, Other, Read, Write};
        for (letters, wanted) in [
            ("R", (Read, false, false)),
            ("RA", (Read, false, false)),
            ("RSM", (Read, false, false)),
            ("W", (Write, false, false)),
            ("WS", (Write, false, false)),
            ("WFS", (Write, true, false)),
            ("FWS", (Write, false, true)),
            ("FWFSM", (Write, true, true)),
            ("F", (Flush, false, false)),
            ("FF", (Flush, false, false)),
            ("D", (Other, false, false)),
            ("DE", (Other, false, false)),
            ("N", (Other, false, false)),
            ("", (Other, false, false)),
        ] {
            let found = meaning(letters.as_bytes());
            let found = (found.action, found.forced, found.after_flush);
            assert_eq!(found, wanted, "{letters}");
        }
    }

    proptest! {
        #[test]
        fn no_format_makes_the_parser_panic(text in "(ID: |field:|dev_t dev;|sector_t sector;|unsigned int nr_sector;|char rwbs\\[8\\];|offset:|size:|;|[0-9]{1,6}|\n|\t|.){0,60}") {
            for step in RequestStep::ALL {
                let _ = TracepointFormat::parse(step, &text);
            }
        }

        #[test]
        fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let format = TracepointFormat::parse(RequestStep::Issued, ISSUE).unwrap();
            let event = format.event(1, &bytes);
            prop_assert_eq!(event.is_some(), bytes.len() >= 44);
            let _ = id_of(&bytes);
        }
    }
}
