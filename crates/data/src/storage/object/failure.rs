//! Failed requests in the words of a user: what the store said, and what to do.

use std::fmt;
use std::io::ErrorKind;

/// A failed request to a store. Never contains a URL, because the URL of a request can contain a signature.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub(super) kind: ErrorKind,
    /// Status of the response, if there was one.
    pub(super) status: Option<u16>,
    message: String,
    pub(super) hint: Option<&'static str>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<Failure> for std::io::Error {
    fn from(failure: Failure) -> Self {
        let kind = failure.kind;
        std::io::Error::new(
            kind,
            super::super::Explained { message: failure.message, hint: failure.hint },
        )
    }
}

/// A cause of failures, recognised by a word in the error of the store or of the transport.
struct KnownCause {
    word: &'static str,
    /// Sentence for the user.
    message: &'static str,
    kind: ErrorKind,
    hint: &'static str,
}

const fn known(
    word: &'static str,
    message: &'static str,
    kind: ErrorKind,
    hint: &'static str,
) -> KnownCause {
    KnownCause { word, message, kind, hint }
}

/// Causes; the first one that matches applies.
const CAUSES: &[KnownCause] = &[
    known(
        "RequestTimeTooSkewed",
        "the clock of this machine differs too much from the store's",
        ErrorKind::PermissionDenied,
        "set the clock, for example with `timedatectl set-ntp true`",
    ),
    known(
        "InvalidAccessKeyId",
        "the store does not know the access key",
        ErrorKind::PermissionDenied,
        "check `access_key_id` of `storage.storage_options`, or AWS_ACCESS_KEY_ID",
    ),
    known(
        "SignatureDoesNotMatch",
        "the store refuses the signature, so the secret key is wrong",
        ErrorKind::PermissionDenied,
        "check `secret_access_key` of `storage.storage_options`, or AWS_SECRET_ACCESS_KEY",
    ),
    known(
        "ExpiredToken",
        "the credentials have expired",
        ErrorKind::PermissionDenied,
        "renew them, for example with `eval \"$(aws configure export-credentials --format env)\"`",
    ),
    known(
        "NoSuchBucket",
        "the bucket does not exist",
        ErrorKind::NotFound,
        "check its name, or create it: feedrate creates no buckets",
    ),
    known(
        "ContainerNotFound",
        "the container does not exist",
        ErrorKind::NotFound,
        "check its name, or create it: feedrate creates no containers",
    ),
    known(
        "AuthorizationHeaderMalformed",
        "the bucket is in another region",
        ErrorKind::PermissionDenied,
        "set `region` of `storage.storage_options`, or AWS_REGION",
    ),
    known(
        "PermanentRedirect",
        "the bucket is in another region or at another endpoint",
        ErrorKind::PermissionDenied,
        "set `region` and `endpoint_url` of `storage.storage_options`, or AWS_REGION and AWS_ENDPOINT_URL",
    ),
    known(
        "redirect without LOCATION",
        "the bucket is in another region",
        ErrorKind::PermissionDenied,
        "set `region` of `storage.storage_options`, or AWS_REGION",
    ),
    known(
        "169.254.169.254",
        "there are no credentials",
        ErrorKind::PermissionDenied,
        NO_CREDENTIALS,
    ),
    known(
        "nstance credential",
        "there are no credentials",
        ErrorKind::PermissionDenied,
        NO_CREDENTIALS,
    ),
    known(
        "invalid peer certificate",
        "the certificate of the endpoint is not trusted",
        ErrorKind::InvalidData,
        "set SSL_CERT_FILE to the certificates of its authority, or use an `http://` endpoint",
    ),
    known(
        "InvalidContentType",
        "the endpoint does not speak TLS",
        ErrorKind::InvalidData,
        "write `http://` instead of `https://` in `endpoint_url`",
    ),
    known(
        "failed to lookup address",
        "the name of the endpoint has no address",
        ErrorKind::NotFound,
        ENDPOINT,
    ),
    known(
        "onnection refused",
        "nothing answers at the endpoint",
        ErrorKind::ConnectionRefused,
        ENDPOINT,
    ),
];

const NO_CREDENTIALS: &str = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (for example with `eval \"$(aws configure export-credentials --format env)\"`), \
                              GOOGLE_SERVICE_ACCOUNT, or AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, \
                              or write keys in `storage.storage_options`, such as `access_key_id` and `secret_access_key`";
const ENDPOINT: &str = "check `endpoint_url` of `storage.storage_options`, or AWS_ENDPOINT_URL, and that the server runs";

impl Failure {
    pub(super) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Failure { kind, status: None, message: message.into(), hint: None }
    }

    pub(super) fn with_hint(self, hint: &'static str) -> Self {
        Failure { hint: Some(hint), ..self }
    }

    /// The object was replaced while it was read.
    pub(super) fn changed() -> Self {
        Failure::new(ErrorKind::InvalidData, "the object was replaced while it was read")
            .with_hint("let nothing write to the dataset during a run")
    }

    /// Explains an error of `object_store` or of the transport below it.
    pub(super) fn from_store(error: &object_store::Error) -> Self {
        let text = full_text(error);
        let status = status_in(&text);
        if let Some(cause) = CAUSES.iter().find(|cause| text.contains(cause.word)) {
            let KnownCause { message, kind, hint, .. } = cause;
            let detail = transport_message(error).filter(|_| status.is_none());
            let message = match detail {
                Some(detail) => format!("{message}: {detail}"),
                None => (*message).to_string(),
            };
            return Failure { kind: *kind, status, message, hint: Some(hint) };
        }
        if let Some(message) = transport_message(error) {
            let kind = transport_kind(error).unwrap_or(ErrorKind::Other);
            let hint = (kind == ErrorKind::TimedOut).then_some(ENDPOINT);
            return Failure { kind, status, message, hint };
        }
        let code = short_element(&text, "Code");
        match (error, status) {
            (object_store::Error::NotFound { .. }, _) => {
                let message = "there is no such object";
                Failure { status, ..Failure::new(ErrorKind::NotFound, message) }
            }
            (object_store::Error::Precondition { .. }, _) => {
                Failure { status, ..Failure::changed() }
            }
            (_, Some(status @ (401 | 403))) => {
                let code = code.map_or(String::new(), |code| format!(", {code}"));
                let message = format!("the store denies access (status {status}{code})");
                let hint = "check the credentials, and that they may read, write, list and delete in this bucket";
                let failure = Failure::new(ErrorKind::PermissionDenied, message).with_hint(hint);
                Failure { status: Some(status), ..failure }
            }
            (_, Some(status)) => {
                let detail = short_element(&text, "Message").or(code);
                let detail = detail.map_or(String::new(), |detail| format!(": {detail}"));
                let message = format!("the store answers with status {status}{detail}");
                Failure { status: Some(status), ..Failure::new(ErrorKind::Other, message) }
            }
            _ => Failure::new(ErrorKind::InvalidData, without_urls(&text)),
        }
    }
}

/// The messages of an error and its sources.
fn full_text(error: &object_store::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(next) = source {
        let part = next.to_string();
        if !text.contains(&part) {
            text.push_str(": ");
            text.push_str(&part);
        }
        source = next.source();
    }
    text
}

fn transport_error(error: &object_store::Error) -> Option<&std::io::Error> {
    let mut source = std::error::Error::source(error);
    while let Some(next) = source {
        if let Some(found) = next.downcast_ref() {
            return Some(found);
        }
        source = next.source();
    }
    None
}

fn transport_message(error: &object_store::Error) -> Option<String> {
    transport_error(error).map(ToString::to_string)
}

fn transport_kind(error: &object_store::Error) -> Option<ErrorKind> {
    transport_error(error).map(std::io::Error::kind)
}

/// The status in the message of `object_store`, which keeps it private.
fn status_in(text: &str) -> Option<u16> {
    let (_, rest) = text.split_once("status code: ")?;
    rest.get(..3)?.parse().ok()
}

/// Content of an XML element of an error, for a message.
fn short_element(text: &str, name: &str) -> Option<String> {
    Some(element(text, name)?.chars().filter(|c| !c.is_control()).take(200).collect())
}

/// Content of the first XML element with this name.
pub(super) fn element<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    Some(rest.split_once("</")?.0)
}

/// Leaves out URLs, which can contain signatures.
fn without_urls(text: &str) -> String {
    let words = text.split_whitespace().map(|word| if word.contains("://") { "URL" } else { word });
    words.collect::<Vec<_>>().join(" ").chars().filter(|c| !c.is_control()).take(300).collect()
}
