//! TLS to a database: one provider, and libpq's five levels of trust.

use super::access::{Address, Tls};
use rigel_model::{Error, failed, usage};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use std::path::Path;
use std::sync::Arc;

/// TLS configuration for `address`.
///
/// # Errors
/// The certificates of the authorities cannot be read, or there are none.
pub(super) fn config(address: &Address) -> Result<ClientConfig, Error> {
    let provider = Arc::new(ring::default_provider());
    let wants_authority = matches!(address.tls, Tls::VerifyCa | Tls::VerifyFull);
    // As in libpq: a named file of authorities requires a certificate from one of them.
    let trusted = if wants_authority || address.authorities.is_some() {
        let authorities = certificates(address)?;
        let roots = Arc::new(roots(address, &authorities)?);
        let full = WebPkiServerVerifier::builder_with_provider(roots, provider.clone()).build();
        let inner = full.map_err(|error| {
            failed!(
                "the certificates of the authorities cannot be used: {error}",
                "check that the file of sslrootcert contains certificates in PEM format"
            )
        })?;
        Some(Trusted {
            inner,
            known: authorities,
            any_name: address.tls != Tls::VerifyFull,
        })
    } else {
        None
    };
    let verifier = Arc::new(Verifier {
        provider: provider.clone(),
        trusted,
    });
    let versions =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = versions.expect("the provider has the default versions");
    Ok(builder
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth())
}

/// The certificates in the file named by the user; empty if no file was named.
fn certificates(address: &Address) -> Result<Vec<CertificateDer<'static>>, Error> {
    let Some(path) = &address.authorities else {
        return Ok(Vec::new());
    };
    let unusable = |why: String| unusable(path, &why);
    let certificates =
        CertificateDer::pem_file_iter(path).map_err(|error| unusable(error.to_string()))?;
    let certificates: Vec<_> = certificates
        .collect::<Result<_, _>>()
        .map_err(|error| unusable(error.to_string()))?;
    if certificates.is_empty() {
        Err(unusable("it contains no certificate".into()))
    } else {
        Ok(certificates)
    }
}

fn unusable(path: &Path, why: &str) -> Error {
    usage!(
        "sslrootcert '{path}' cannot be used: {why}",
        "give a file of certificates in PEM format",
        path = path.display()
    )
}

fn roots(address: &Address, known: &[CertificateDer<'static>]) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    let Some(path) = &address.authorities else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return if roots.is_empty() {
            Err(failed!(
                "this system has no certificates of authorities",
                "install ca-certificates, or give a file of certificates with sslrootcert"
            ))
        } else {
            Ok(roots)
        };
    };
    for certificate in known {
        roots
            .add(certificate.clone())
            .map_err(|error| unusable(path, &error.to_string()))?;
    }
    Ok(roots)
}

/// Checks the server's certificate, and in any case that the server has its key.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    /// `None` accepts any certificate: the connection is encrypted, but the server is not
    /// authenticated.
    trusted: Option<Trusted>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match &self.trusted {
            Some(trusted) => trusted.verify(certificate, chain, name, ocsp, now),
            None => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// Requires a certificate of a known authority, or one that is itself in the file of authorities,
/// such as a server's self-signed certificate.
#[derive(Debug)]
struct Trusted {
    inner: Arc<WebPkiServerVerifier>,
    known: Vec<CertificateDer<'static>>,
    /// Accepts a certificate for any name.
    any_name: bool,
}

impl Trusted {
    fn verify(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        // Otherwise a CA certificate, as made by `openssl req -x509`, would be refused as a
        // server's certificate.
        if self.known.iter().any(|known| known == certificate) {
            if !self.any_name {
                verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
            }
            return Ok(ServerCertVerified::assertion());
        }
        match self
            .inner
            .verify_server_cert(certificate, chain, name, ocsp, now)
        {
            // The name is checked last, after the chain was found valid.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.any_name => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }
}
