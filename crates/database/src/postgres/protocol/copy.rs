//! Loading rows by COPY in the server's binary format.

use super::client::PostgresClient;
use super::error::PostgresError;
use super::outbox;
use super::socket::PostgresLink;

/// What every copy in binary format begins with: its signature, no flags, no extension.
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// What it ends with: a row of -1 columns.
const TRAILER: [u8; 2] = (-1i16).to_be_bytes();

/// Bytes to collect before they are sent.
const PIECE: usize = 64 * 1024;

impl<L: PostgresLink> PostgresClient<L> {
    /// Executes `statement`, a COPY … FROM STDIN in binary format, with `rows`. Each is appended by
    /// `fill`, in that format.
    ///
    /// # Errors
    /// The server refuses the statement or a row, or the connection is lost.
    pub(crate) fn copy_in<Row>(
        &mut self,
        statement: &str,
        rows: impl Iterator<Item = Row>,
        mut fill: impl FnMut(Row, &mut Vec<u8>),
    ) -> Result<(), PostgresError> {
        outbox::query(&mut self.out, statement);
        self.send_out()?;
        let frame = self.receive()?;
        match frame.tag {
            b'G' => (),
            b'E' => {
                let refused = self.refusal(&frame);
                // An error of the connection itself matters less than why.
                let _ = self.answer(b"", |_, _| Ok(()));
                return Err(refused);
            }
            tag => return Err(self.unexpected(tag)),
        }
        let mut rows = rows.fuse().peekable();
        let mut is_first = true;
        while rows.peek().is_some() || is_first {
            outbox::message(&mut self.out, b'd', |out| {
                if is_first {
                    out.extend_from_slice(HEADER);
                }
                for row in rows.by_ref() {
                    fill(row, out);
                    if out.len() >= PIECE {
                        break;
                    }
                }
            });
            is_first = false;
            self.send_out()?;
        }
        outbox::message(&mut self.out, b'd', |out| out.extend(TRAILER));
        outbox::message(&mut self.out, b'c', |_| ());
        self.send_out()?;
        // An error in a row is reported here: the server reads all the rest before.
        self.answer(b"C", |_, _| Ok(()))
    }
}

/// Appends the number of columns of a row.
pub(crate) fn columns(row: &mut Vec<u8>, number: usize) {
    let number = u16::try_from(number).expect("columns are few");
    row.extend(number.to_be_bytes());
}

/// Appends a value whose bytes are `length` in number.
pub(crate) fn column(row: &mut Vec<u8>, length: usize, value: impl Iterator<Item = u8>) {
    let length = u32::try_from(length).expect("values are short");
    row.extend(length.to_be_bytes());
    row.extend(value);
}
