//! The program that the kernel runs at a tracepoint, as instructions of eBPF.
//!
//! Input: the layout of an event, and numbers of disks. Output: instructions. Pure.
//!
//! The program looks whether the event is of one of the disks, and copies the time and the event
//! into a ring. If the ring is full, it counts. It always returns 1, so that other observers of the
//! same tracepoint get their events too.
//!
//! Encoding: Documentation/bpf/standardization/instruction-set.rst of the Linux kernel.

use super::tracepoint::{EventLength, TracepointFormat};

/// An instruction of eBPF: `struct bpf_insn` of `linux/bpf.h`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BpfInstruction {
    code: u8,
    /// The register of the result and that of the source, in four bits each.
    registers: u8,
    offset: i16,
    value: i32,
}

/// Descriptors of what the program works with.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProgramMaps {
    /// The ring to which it copies events.
    pub(super) ring: i32,
    /// An array with one number: the events for which the ring had no space.
    pub(super) lost: i32,
}

/// Bytes of the time, at the beginning of a record in the ring. The event follows.
pub(super) const RECORD_TIME: usize = 8;

/// Bytes that every event begins with. A program may not read them.
const COMMON: usize = 8;

// Operations, of eight bytes where nothing else is said.
const ADD_VALUE: u8 = 0x07;
const MOVE_VALUE: u8 = 0xb7;
const MOVE_REGISTER: u8 = 0xbf;
const LOAD_MAP: u8 = 0x18;
const LOAD_FOUR_BYTES: u8 = 0x61;
const STORE_VALUE: u8 = 0x7a;
const STORE_REGISTER: u8 = 0x7b;
const ATOMIC_ADD: u8 = 0xdb;
const JUMP_IF_EQUAL: u8 = 0x15;
const JUMP_IF_FOUR_BYTES_EQUAL: u8 = 0x16;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;

/// A number of bytes, and the operations that load and store that number.
const PIECES: [(usize, u8, u8); 4] = [
    (8, 0x79, STORE_REGISTER),
    (4, LOAD_FOUR_BYTES, 0x63),
    (2, 0x69, 0x6b),
    (1, 0x71, 0x73),
];

// Functions of the kernel: `enum bpf_func_id`.
const TIME_NS: i32 = 5;
const RING_OUTPUT: i32 = 130;

/// Wakes nobody, because the ring is read on a timetable.
const NO_WAKEUP: i32 = 1;

/// What the value of [`LOAD_MAP`] means, in the place of the source register: a map, or the address
/// of its first element.
const MAP: u8 = 1;
const FIRST_ELEMENT: u8 = 2;

/// The register that has the frame's end, and that of the event.
const FRAME: u8 = 10;
const EVENT: u8 = 6;

/// Bytes of a program's frame.
const FRAME_BYTES: usize = 512;

/// Number of disks, at most: a jump over all tests must fit.
const DISKS_MAX: usize = 4096;

/// The bytes of a record in the ring: the time, and the event as far as it is needed.
fn record_bytes(format: &TracepointFormat) -> usize {
    RECORD_TIME + format.extent().needed.next_multiple_of(8)
}

/// The program for the events of `format`, of these disks; `None` if they are too many, or an event
/// too long.
pub(super) fn program(
    format: &TracepointFormat,
    disks: &[u32],
    maps: ProgramMaps,
) -> Option<Vec<BpfInstruction>> {
    let bytes = record_bytes(format);
    if bytes > FRAME_BYTES || disks.len() > DISKS_MAX {
        return None;
    }
    // The record is at the end of the frame, and the event follows the time.
    let record = -distance(bytes);
    let copy = record + distance(RECORD_TIME);
    let mut code = Code::default();
    code.push(MOVE_REGISTER, EVENT, 1, 0, 0);
    code.push(
        LOAD_FOUR_BYTES,
        2,
        EVENT,
        distance(format.place_of_disk()),
        0,
    );
    for (at, disk) in disks.iter().enumerate() {
        // Over the other tests and the end.
        let over = distance(disks.len() - 1 - at + END_LENGTH);
        code.push(JUMP_IF_FOUR_BYTES_EQUAL, 2, 0, over, disk.cast_signed());
    }
    code.end();
    code.call(TIME_NS);
    code.push(STORE_REGISTER, FRAME, 0, record, 0);
    // The kernel wants every byte of the record to be written.
    for word in (0..bytes - RECORD_TIME).step_by(8) {
        let value = if word == 0 { format.id.into() } else { 0 };
        code.push(STORE_VALUE, FRAME, 0, copy + distance(word), value);
    }
    for (place, load, store) in pieces(format.extent()) {
        code.push(load, 2, EVENT, distance(place), 0);
        code.push(store, FRAME, 2, copy + distance(place), 0);
    }
    code.load_map(1, MAP, maps.ring);
    code.push(MOVE_REGISTER, 2, FRAME, 0, 0);
    code.push(ADD_VALUE, 2, 0, 0, record.into());
    code.push(MOVE_VALUE, 3, 0, 0, (-record).into());
    code.push(MOVE_VALUE, 4, 0, 0, NO_WAKEUP);
    code.call(RING_OUTPUT);
    // Over what counts.
    code.push(JUMP_IF_EQUAL, 0, 0, 4, 0);
    code.load_map(1, FIRST_ELEMENT, maps.lost);
    code.push(MOVE_VALUE, 2, 0, 0, 1);
    code.push(ATOMIC_ADD, 1, 2, 0, 0);
    code.end();
    Some(code.0)
}

/// The copy of an event, piece by piece: place, load and store. A program may only load what the
/// event has for sure, in pieces whose place is a multiple of their size.
fn pieces(extent: EventLength) -> Vec<(usize, u8, u8)> {
    let mut pieces = Vec::new();
    let mut place = COMMON;
    while place < extent.needed {
        let fits = |(size, _, _): &&(usize, u8, u8)| {
            place.is_multiple_of(*size) && place + size <= extent.all
        };
        let Some((size, load, store)) = PIECES.iter().find(fits) else {
            break;
        };
        pieces.push((place, *load, *store));
        place += size;
    }
    pieces
}

/// A distance in bytes of the frame, or in instructions.
fn distance(of: usize) -> i16 {
    i16::try_from(of).expect("bounded by the frame and by the number of disks")
}

/// Number of instructions of [`Code::end`].
const END_LENGTH: usize = 2;

/// Instructions so far.
#[derive(Default)]
struct Code(Vec<BpfInstruction>);

impl Code {
    fn push(&mut self, code: u8, result: u8, source: u8, offset: i16, value: i32) {
        let registers = if cfg!(target_endian = "little") {
            source << 4 | result
        } else {
            result << 4 | source
        };
        self.0.push(BpfInstruction {
            code,
            registers,
            offset,
            value,
        });
    }

    fn call(&mut self, function: i32) {
        self.push(CALL, 0, 0, 0, function);
    }

    /// Loads a map. It takes two instructions.
    fn load_map(&mut self, result: u8, meaning: u8, map: i32) {
        self.push(LOAD_MAP, result, meaning, 0, map);
        self.push(0, 0, 0, 0, 0);
    }

    fn end(&mut self) {
        self.push(MOVE_VALUE, 0, 0, 0, 1);
        self.push(EXIT, 0, 0, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tracepoint::tests::completion;
    use super::*;

    const MAPS: ProgramMaps = ProgramMaps { ring: 3, lost: 4 };

    #[test]
    fn each_disk_jumps_to_the_copy() {
        let code = program(&completion(), &[8 << 20, 9 << 20 | 1], MAPS).unwrap();
        let tests: Vec<(usize, i16, i32)> = code
            .iter()
            .enumerate()
            .filter(|(_, one)| one.code == JUMP_IF_FOUR_BYTES_EQUAL)
            .map(|(at, one)| (at, one.offset, one.value))
            .collect();
        assert_eq!(tests, [(2, 3, 8 << 20), (3, 2, 9 << 20 | 1)]);
        // Where both arrive: behind the end of the program for other disks.
        assert_eq!((code[5].code, code[6].code), (EXIT, CALL));
        assert_eq!(code.last().map(|one| one.code), Some(EXIT));
    }

    #[test]
    fn what_no_program_can_do_is_not_tried() {
        let many: Vec<u32> = (0..=4096).collect();
        assert_eq!(program(&completion(), &many, MAPS), None);
        assert!(program(&completion(), &many[1..], MAPS).is_some());
    }

    #[test]
    fn nothing_behind_the_last_field_is_loaded() {
        let places = |needed, all| {
            let pieces = pieces(EventLength { needed, all });
            let size = |load| PIECES.iter().find(|piece| piece.1 == load).unwrap().0;
            pieces
                .iter()
                .map(|(place, load, _)| (*place, size(*load)))
                .collect::<Vec<_>>()
        };
        assert_eq!(places(24, 24), [(8, 8), (16, 8)]);
        assert_eq!(places(22, 24), [(8, 8), (16, 8)]);
        assert_eq!(places(22, 22), [(8, 8), (16, 4), (20, 2)]);
        assert_eq!(places(23, 23), [(8, 8), (16, 4), (20, 2), (22, 1)]);
    }
}
