//! The hash of a server's certificate that binds a login to the encrypted connection
//! (`tls-server-end-point`, RFC 5929, section 4.1).

use ring::digest::{Algorithm, SHA256, SHA384, SHA512, digest};

/// Signature algorithms by their object identifier in DER, and the hash that each uses. RFC 5929
/// has SHA-256 in the place of MD5 and SHA-1.
const SIGNATURES: [(&[u8], &Algorithm); 9] = [
    // 1.2.840.113549.1.1: RSA with MD5, SHA-1, SHA-256, SHA-384, SHA-512.
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 4], &SHA256),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 5], &SHA256),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 11], &SHA256),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 12], &SHA384),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 13], &SHA512),
    // 1.2.840.10045.4: ECDSA with SHA-1, SHA-256, SHA-384, SHA-512.
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 1], &SHA256),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2], &SHA256),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3], &SHA384),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 4], &SHA512),
];

/// Tags of DER.
const SEQUENCE: u8 = 0x30;
const OBJECT_IDENTIFIER: u8 = 0x06;

/// The hash of `certificate` in DER. `None` for an algorithm whose hash the RFC does not define,
/// such as Ed25519: then the login is not bound.
pub(super) fn certificate_hash(certificate: &[u8]) -> Option<Vec<u8>> {
    // Certificate ::= SEQUENCE { what is signed, SEQUENCE { algorithm, … }, signature }
    let (within, _) = element(certificate, SEQUENCE)?;
    let (_, after_signed) = element(within, SEQUENCE)?;
    let (algorithm, _) = element(after_signed, SEQUENCE)?;
    let (identifier, _) = element(algorithm, OBJECT_IDENTIFIER)?;
    let signature = SIGNATURES.iter().find(|(known, _)| *known == identifier);
    signature.map(|(_, hash)| digest(hash, certificate).as_ref().to_vec())
}

/// The content of the first element of DER, which must have this tag, and what follows it.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&[found, short], rest) = der.split_first_chunk()?;
    if found != tag {
        return None;
    }
    let (length, rest) = if short < 0x80 {
        (usize::from(short), rest)
    } else {
        let (digits, rest) = rest.split_at_checked(usize::from(short & 0x7f))?;
        if digits.len() > 4 {
            return None;
        }
        let length = digits
            .iter()
            .fold(0, |sum, digit| sum << 8 | usize::from(*digit));
        (length, rest)
    };
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The frame of a certificate with this algorithm.
    fn certificate(algorithm: &[u8]) -> Vec<u8> {
        let wrapped = |tag: u8, content: &[u8]| {
            let length = u16::try_from(content.len()).unwrap().to_be_bytes();
            [&[tag, 0x82], &length[..], content].concat()
        };
        let signed = wrapped(SEQUENCE, &[0; 500]);
        let algorithm = wrapped(SEQUENCE, &wrapped(OBJECT_IDENTIFIER, algorithm));
        wrapped(SEQUENCE, &[&signed[..], &algorithm, &[3, 2, 0, 0]].concat())
    }

    #[test]
    fn the_hash_is_that_of_the_signature() {
        for (algorithm, hash) in SIGNATURES {
            let certificate = certificate(algorithm);
            let wanted = digest(hash, &certificate).as_ref().to_vec();
            assert_eq!(certificate_hash(&certificate), Some(wanted));
        }
        // Ed25519.
        assert_eq!(certificate_hash(&certificate(&[0x2b, 0x65, 0x70])), None);
    }

    proptest! {
        #[test]
        fn a_certificate_that_is_cut_or_no_certificate_has_no_hash_and_no_panic(
            cut in 0usize..530,
            bytes in prop::collection::vec(any::<u8>(), 0..100),
        ) {
            let whole = certificate(SIGNATURES[2].0);
            prop_assert_eq!(certificate_hash(&whole[..cut.min(whole.len() - 1)]), None);
            let _ = certificate_hash(&bytes);
        }
    }
}
