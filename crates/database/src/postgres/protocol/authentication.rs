//! Logging in to a `PostgreSQL` server: no password, clear text, MD5, or SCRAM-SHA-256, which over
//! TLS is bound to the server's certificate.

use super::client::PostgresClient;
use super::error::PostgresError;
use super::outbox;
use super::socket::PostgresLink;
use crate::access::{AuthMethod, AuthMethods, Binding};
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{
    ChannelBinding, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256,
};

/// Who logs in, and where.
pub(super) struct PostgresLogin<'a> {
    pub(super) user: &'a str,
    pub(super) database: &'a str,
    /// Name of the session in the server's views.
    pub(super) application: &'a str,
    pub(super) password: Option<&'a str>,
    /// Hash of the server's certificate, if the connection is encrypted and a hash is defined.
    pub(super) certificate: Option<Vec<u8>>,
    /// The ways of logging in that are accepted.
    pub(super) methods: AuthMethods,
    /// Whether SCRAM is bound to the certificate.
    pub(super) binding: Binding,
}

impl PostgresLogin<'_> {
    /// Refuses a way of logging in that is not accepted. `is_bound` if the certificate is part of it.
    fn accept(&self, method: AuthMethod, is_bound: bool) -> Result<(), PostgresError> {
        let name = match method {
            AuthMethod::None => "no password",
            AuthMethod::Password => "the password in clear text",
            AuthMethod::Md5 => "an MD5 hash of the password",
            AuthMethod::Scram => "SCRAM",
        };
        if !self.methods.contains(method) {
            return Err(PostgresError::NotAccepted(format!(
                "it asks for {name}, which is not accepted here"
            )));
        }
        if self.binding == Binding::Require && !is_bound {
            return Err(PostgresError::NotAccepted(format!(
                "it asks for {name} without a binding to its certificate, and \
                 channel_binding=require is given"
            )));
        }
        Ok(())
    }
}

/// What a server wants to know before it lets a user in.
enum PostgresDemand {
    Nothing,
    ClearText,
    Md5([u8; 4]),
    /// Names of methods, each with a zero at its end.
    Sasl(Vec<u8>),
    SaslContinue(Vec<u8>),
    SaslFinal(Vec<u8>),
}

impl<L: PostgresLink> PostgresClient<L> {
    /// Logs in. Afterwards the server waits for statements.
    ///
    /// # Errors
    /// The server refuses, wants a password and there is none, or does not prove that it knows the
    /// password; or the connection is lost.
    pub(super) fn log_in(&mut self, login: &PostgresLogin) -> Result<(), PostgresError> {
        let settings = [
            ("user", login.user),
            ("database", login.database),
            ("application_name", login.application),
            ("client_encoding", "UTF8"),
            // Otherwise a user who may create functions could have his own run with our rights: an
            // operator in a schema of the path is preferred if its types fit better. So all our
            // objects are named with their schema.
            ("search_path", "pg_catalog, pg_temp"),
        ];
        outbox::startup(&mut self.out, &settings);
        self.send_out()?;
        let password = || login.password.ok_or(PostgresError::NoPassword);
        match self.demand()? {
            PostgresDemand::Nothing => login.accept(AuthMethod::None, false)?,
            PostgresDemand::ClearText => {
                login.accept(AuthMethod::Password, false)?;
                self.give(password()?)?;
            }
            PostgresDemand::Md5(salt) => {
                login.accept(AuthMethod::Md5, false)?;
                let hash = md5_hash(login.user.as_bytes(), password()?.as_bytes(), salt);
                self.give(&hash)?;
            }
            PostgresDemand::Sasl(methods) => {
                self.scram(&methods, password()?, login)?;
            }
            PostgresDemand::SaslContinue(_) | PostgresDemand::SaslFinal(_) => {
                return Err(self.broken("the end of an authentication that never began".into()));
            }
        }
        self.answer(b"K", |_, _| Ok(()))
    }

    /// Sends a password or its hash, which the server must accept.
    fn give(&mut self, password: &str) -> Result<(), PostgresError> {
        outbox::message(&mut self.out, b'p', |out| {
            out.extend_from_slice(password.as_bytes());
            out.push(0);
        });
        self.send_out()?;
        self.accepted()
    }

    fn accepted(&mut self) -> Result<(), PostgresError> {
        match self.demand()? {
            PostgresDemand::Nothing => Ok(()),
            _ => Err(self.broken("a second authentication".into())),
        }
    }

    /// Proves to the server that we know the password, and requires the same proof of it.
    fn scram(
        &mut self,
        methods: &[u8],
        password: &str,
        login: &PostgresLogin,
    ) -> Result<(), PostgresError> {
        let offers = |method: &str| {
            methods
                .split(|byte| *byte == 0)
                .any(|m| m == method.as_bytes())
        };
        // What is said of the binding is part of what both prove: nobody in between can remove a
        // method from the server's list.
        let certificate = login.certificate.as_deref();
        let certificate = certificate.filter(|_| login.binding != Binding::Disable);
        let (method, binding) = match certificate {
            Some(hash) if offers(SCRAM_SHA_256_PLUS) => (
                SCRAM_SHA_256_PLUS,
                ChannelBinding::tls_server_end_point(hash.to_vec()),
            ),
            Some(_) => (SCRAM_SHA_256, ChannelBinding::unrequested()),
            None => (SCRAM_SHA_256, ChannelBinding::unsupported()),
        };
        if !offers(method) {
            return Err(self.broken("no known method of authentication".into()));
        }
        login.accept(AuthMethod::Scram, method == SCRAM_SHA_256_PLUS)?;
        let odd = |error: &dyn std::fmt::Display| {
            PostgresError::protocol(format!("its proof in {method} is not valid: {error}"))
        };
        let mut scram = ScramSha256::new(password.as_bytes(), binding);
        outbox::message(&mut self.out, b'p', |out| {
            out.extend_from_slice(method.as_bytes());
            out.push(0);
            let first = scram.message();
            let length = u32::try_from(first.len()).expect("a few bytes");
            out.extend(length.to_be_bytes());
            out.extend_from_slice(first);
        });
        self.send_out()?;
        let PostgresDemand::SaslContinue(challenge) = self.demand()? else {
            return Err(self.broken(format!("no challenge of {method}")));
        };
        scram.update(&challenge).map_err(|error| odd(&error))?;
        outbox::message(&mut self.out, b'p', |out| {
            out.extend_from_slice(scram.message());
        });
        self.send_out()?;
        let PostgresDemand::SaslFinal(proof) = self.demand()? else {
            return Err(self.broken(format!("no proof that it knows the password, in {method}")));
        };
        scram.finish(&proof).map_err(|error| odd(&error))?;
        self.accepted()
    }

    /// The next message of an authentication.
    fn demand(&mut self) -> Result<PostgresDemand, PostgresError> {
        let frame = self.receive()?;
        match frame.tag {
            b'R' => (),
            b'E' => return Err(self.refusal(&frame)),
            tag => return Err(self.unexpected(tag)),
        }
        let body = self.body(&frame);
        let Some((kind, rest)) = body.split_first_chunk() else {
            return Err(self.broken("an authentication without a method".into()));
        };
        Ok(match (u32::from_be_bytes(*kind), rest) {
            (0, _) => PostgresDemand::Nothing,
            (3, _) => PostgresDemand::ClearText,
            (5, &[a, b, c, d]) => PostgresDemand::Md5([a, b, c, d]),
            (10, methods) => PostgresDemand::Sasl(methods.to_vec()),
            (11, challenge) => PostgresDemand::SaslContinue(challenge.to_vec()),
            (12, proof) => PostgresDemand::SaslFinal(proof.to_vec()),
            (other, _) => {
                let name = match other {
                    2 => "Kerberos",
                    7 | 8 => "GSSAPI",
                    9 => "SSPI",
                    _ => "unknown",
                };
                return Err(PostgresError::Lost(format!(
                    "the server wants an authentication that is not supported ({name}, number \
                     {other})"
                )));
            }
        })
    }
}
