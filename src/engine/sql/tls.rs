//! TLS to a database: one provider, and the five levels of trust that libpq has.

use super::access::{Address, Tls};
use crate::model::Error;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::sync::Arc;

/// What rustls needs to speak to `address`.
///
/// # Errors
/// The certificates of the authorities cannot be read, or there are none.
pub(super) fn config(address: &Address) -> Result<ClientConfig, Error> {
    let provider = Arc::new(ring::default_provider());
    let wants_authority = matches!(address.tls, Tls::VerifyCa | Tls::VerifyFull);
    // As libpq has it: naming a file of authorities asks for a certificate of theirs.
    let verifier: Arc<dyn ServerCertVerifier> = if wants_authority || address.authorities.is_some() {
        let roots = Arc::new(roots(address)?);
        let full = WebPkiServerVerifier::builder_with_provider(roots, provider.clone()).build();
        let inner = full.map_err(|error| {
            Error::failed(
                format!("the certificates of the authorities are of no use: {error}"),
                "see that the file named by sslrootcert holds them in PEM",
            )
        })?;
        if address.tls == Tls::VerifyFull { inner } else { Arc::new(AnyName(inner)) }
    } else {
        Arc::new(AnyCertificate(provider.clone()))
    };
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = versions.expect("the provider has the default versions");
    Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

fn roots(address: &Address) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    let Some(path) = &address.authorities else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return if roots.is_empty() {
            Err(Error::failed(
                "this system has no list of certificate authorities",
                "install ca-certificates, or name a file of them by sslrootcert",
            ))
        } else {
            Ok(roots)
        };
    };
    let unusable = |why: String| {
        Error::asked(
            format!("sslrootcert '{}' cannot be used: {why}", path.display()),
            "name a file of certificates in PEM",
        )
    };
    let certificates = CertificateDer::pem_file_iter(path).map_err(|error| unusable(error.to_string()))?;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| unusable(error.to_string()))?;
        roots.add(certificate).map_err(|error| unusable(error.to_string()))?;
    }
    if roots.is_empty() { Err(unusable("it holds no certificate".into())) } else { Ok(roots) }
}

/// Takes any certificate: the connection is encrypted, and nobody knows to whom.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
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
            &self.0.signature_verification_algorithms,
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
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Wants a certificate of a known authority, made out to whomever.
#[derive(Debug)]
struct AnyName(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match self.0.verify_server_cert(certificate, chain, name, ocsp, now) {
            // The name is looked at last, after the chain was found good.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
