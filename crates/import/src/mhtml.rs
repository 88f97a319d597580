//! The page in a file that a browser saved as MHTML, or in a mail: the entity of MIME that is HTML.
//!
//! Input: bytes. Output: the page's bytes, without the encoding for the transfer. Pictures and styles
//! beside it are left out.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rigel_model::{Error, failed};

/// Maximum length of the header lines. A mail's have some kilobytes.
const HEAD_MAX: usize = 1 << 16;

/// Maximum depth of entities in entities. Mails have three.
const DEPTH_MAX: usize = 8;

/// Header lines, in lower case but for their values, and what follows them.
struct Entity<'a> {
    head: String,
    body: &'a [u8],
}

/// The page of MHTML, or the plain text of a mail without one; `None` for another file.
///
/// # Errors
/// It is MHTML without a page, or a damaged one.
pub(super) fn page(name: &str, bytes: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    let Some(entity) = Entity::of(bytes) else {
        return Ok(None);
    };
    let is_mime =
        entity.header("mime-version").is_some() && entity.header("content-type").is_some();
    if !is_mime {
        return Ok(None);
    }
    let page = entity.decoded("text/html", 0);
    let page = page.or_else(|| entity.decoded("text/plain", 0));
    page.map(Some).ok_or_else(|| {
        failed!(
            "'{name}' is MHTML, and has no page that can be decoded",
            "save the page as HTML, and give that file"
        )
    })
}

impl<'a> Entity<'a> {
    /// `None` if no header lines with an empty line below them are there.
    fn of(bytes: &'a [u8]) -> Option<Self> {
        let mut end = 0;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            end += line.len();
            if end > HEAD_MAX {
                return None;
            }
            if line.trim_ascii().is_empty() {
                let head = String::from_utf8_lossy(&bytes[..end]).replace('\r', "");
                // A header is continued in lines that begin with a blank.
                let head = head.replace("\n ", " ").replace("\n\t", " ");
                let is_header = |line: &str| line.is_empty() || line.contains(':');
                let body = &bytes[end..];
                return (head.lines().all(is_header)).then_some(Self { head, body });
            }
        }
        None
    }

    /// The value of a header, whose name is given in lower case.
    fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.head.lines().filter_map(|line| line.split_once(':'));
        headers
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim())
    }

    /// The first entity of this type, decoded.
    fn decoded(&self, wanted: &str, depth: usize) -> Option<Vec<u8>> {
        let kind = self.header("content-type")?;
        let plain_kind = kind.to_ascii_lowercase();
        if plain_kind.starts_with("multipart/") && depth < DEPTH_MAX {
            let parts = parts(self.body, boundary(kind)?);
            let mut entities = parts.into_iter().filter_map(Entity::of);
            return entities.find_map(|entity| entity.decoded(wanted, depth + 1));
        }
        if !plain_kind.starts_with(wanted) {
            return None;
        }
        let encoding = self.header("content-transfer-encoding").unwrap_or("binary");
        match encoding.to_ascii_lowercase().as_str() {
            "quoted-printable" => Some(from_quoted_printable(self.body)),
            "base64" => {
                let is_letter = |byte: &u8| !byte.is_ascii_whitespace();
                let letters: Vec<u8> = self.body.iter().copied().filter(is_letter).collect();
                STANDARD.decode(letters).ok()
            }
            _ => Some(self.body.to_vec()),
        }
    }
}

/// The boundary that the type of an entity of several parts names.
fn boundary(kind: &str) -> Option<&str> {
    const NAME: &str = "boundary=";
    let at = kind.to_ascii_lowercase().find(NAME)? + NAME.len();
    let value = &kind[at..];
    let value = match value.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next()?,
        None => value.split([';', ' ']).next()?,
    };
    (!value.is_empty()).then_some(value)
}

/// The parts between the lines of this boundary.
fn parts<'a>(body: &'a [u8], boundary: &str) -> Vec<&'a [u8]> {
    let delimiter = format!("--{boundary}");
    let (mut parts, mut begun, mut at) = (Vec::new(), None, 0);
    for line in body.split_inclusive(|byte| *byte == b'\n') {
        let text = line.trim_ascii_end();
        if let Some(rest) = text.strip_prefix(delimiter.as_bytes())
            && matches!(rest, b"" | b"--")
        {
            parts.extend(begun.map(|begun: usize| &body[begun..at]));
            begun = rest.is_empty().then_some(at + line.len());
        }
        at += line.len();
    }
    // A file that was cut has no last boundary.
    parts.extend(begun.map(|begun| &body[begun..]));
    parts
}

/// Decodes quoted-printable: `=3D` is a byte, and a line that ends with `=` goes on in the next one.
fn from_quoted_printable(text: &[u8]) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        match (first, behind) {
            (b'=', [b'\n', rest_of @ ..] | [b'\r', b'\n', rest_of @ ..]) => rest = rest_of,
            (b'=', [high, low, rest_of @ ..]) => {
                let byte = digit(*high).zip(digit(*low));
                match byte.and_then(|(high, low)| u8::try_from(high * 16 + low).ok()) {
                    Some(byte) => {
                        decoded.push(byte);
                        rest = rest_of;
                    }
                    None => decoded.push(b'='),
                }
            }
            (byte, _) => decoded.push(*byte),
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEAD: &str = "From: <Saved by Blink>\r\nMIME-Version: 1.0\r\nContent-Type: multipart/related;\r\n\
                        \ttype=\"text/html\";\r\n\tboundary=\"--x--\"\r\n\r\n\r\n----x--\r\n";

    fn page_of(text: &str) -> Option<String> {
        let page = page("f", text.as_bytes()).unwrap();
        page.map(|page| String::from_utf8(page).unwrap())
    }

    #[test]
    fn the_page_is_decoded_whatever_its_encoding() {
        for (encoding, body) in [
            (
                "quoted-printable",
                "<td class=3D\"x\">1,2=\r\n34=C2=A0=</td>",
            ),
            ("Quoted-Printable", "<td class=3d\"x\">1,2=\n34=c2=a0=</td>"),
            ("base64", "PHRkIGNsYXNzPSJ4Ij4xLDIz\r\nNMKgPTwvdGQ+"),
            ("binary", "<td class=\"x\">1,234\u{a0}=</td>"),
        ] {
            let text = format!(
                "{HEAD}Content-Type: image/png\r\n\r\nx\r\n----x--\r\nContent-Type: text/html; \
                 charset=utf-8\r\nContent-Transfer-Encoding: {encoding}\r\n\r\n{body}\r\n----x----\r\n"
            );
            let page = page_of(&text).unwrap();
            assert_eq!(
                page.trim_end(),
                "<td class=\"x\">1,234\u{a0}=</td>",
                "{encoding}"
            );
        }
    }

    #[test]
    fn a_mail_has_its_page_further_inside() {
        let inner = "Content-Type: multipart/alternative; boundary=y\n\n--y\nContent-Type: \
                     text/plain\n\nno\n--y\nContent-Type: text/html\n\n<p>yes\n--y--\n";
        assert_eq!(
            page_of(&format!("{HEAD}{inner}----x----\n")).unwrap(),
            "<p>yes\n"
        );
        let plain = "MIME-Version: 1.0\nContent-Type: text/plain\n\nyes\n";
        assert_eq!(page_of(plain).unwrap(), "yes\n");
    }

    #[test]
    fn other_files_are_no_mhtml_and_one_without_a_page_is_refused() {
        for text in [
            "",
            "\n",
            "{\"a\": 1}\n\n",
            "time,value\n\n1,2\n",
            "A: b\n\nc\n",
        ] {
            assert_eq!(page_of(text), None, "{text}");
        }
        for part in ["Content-Type: image/png\n\nx\n", ""] {
            let text = format!("{HEAD}{part}----x----\n");
            let refused = page("f", text.as_bytes()).unwrap_err().to_string();
            assert!(
                refused.contains("'f' is MHTML, and has no page"),
                "{refused}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_bytes_break_it(bytes in prop::collection::vec(any::<u8>(), 0..200), depth in 0..20usize) {
            let _ = page("f", &bytes);
            let start = b"MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=a\n\n--a\n";
            let nested = [&start.repeat(depth)[..], &bytes].concat();
            let _ = page("f", &nested);
        }
    }
}
