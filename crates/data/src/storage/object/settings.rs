//! The stores of this process: their settings from the workload and the environment, and their connections.
//!
//! Secrets stay here: they are in no plan, record, message or log.
//!
//! Long because each service has its own names for the same settings.

use super::block_on;
use super::failure::Failure;
use super::http::HttpPool;
use super::profile::{self, Profile};
use super::sending::SentBytes;
use super::service::{Counts, Patience, Transport, lock};
use feedrate_spec::object_url::ObjectUrl;
use feedrate_spec::plan::ObjectPlan;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::list::PaginatedListStore;
use object_store::multipart::MultipartStore;
use object_store::path::Path;
use object_store::signer::Signer;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, RetryConfig};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::io::ErrorKind;
use std::str::FromStr;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Options of a bucket, with its secrets. Serialised only to be sent to the other processes of a run.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreSettings {
    bucket_url: String,
    options: Vec<(String, String)>,
    /// Why the profile cannot be used.
    profile_problem: Option<String>,
}

impl fmt::Debug for StoreSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreSettings")
            .field("bucket_url", &self.bucket_url)
            .finish_non_exhaustive()
    }
}

/// A bucket with its connections.
pub(super) struct Store {
    pub(super) objects: Arc<dyn ObjectStore>,
    pub(super) pages: Arc<dyn PaginatedListStore>,
    pub(super) parts: Arc<dyn MultipartStore>,
    /// Signs requests that `object_store` does not send; only S3's are needed.
    pub(super) signer: Option<Arc<dyn Signer>>,
    pub(super) transport: Transport,
    /// Length of the object that was opened last.
    pub(super) last_length: AtomicU64,
    pub(super) sent_bytes: Arc<SentBytes>,
}

impl Store {
    /// Asks for the length and the version of an object; `None` if it does not exist.
    pub(super) fn head(&self, key: &Path) -> Result<Option<ObjectMeta>, Failure> {
        match block_on(self.objects.head(key)) {
            Ok(found) => Ok(Some(found)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(Failure::from_store(&error)),
        }
    }
}

struct Registered {
    settings: StoreSettings,
    store: Option<Arc<Store>>,
}

// Connections and credentials belong to the process: all storages of a bucket share them.
static STORES: Mutex<BTreeMap<String, Registered>> = Mutex::new(BTreeMap::new());

/// Sets the options (`storage.storage_options`) with which the bucket of `url` is opened from now on. Those that neither `options` nor the
/// environment have are those of a profile. `variable` reads the environment.
pub fn configure(
    url: &ObjectUrl,
    options: &[(String, String)],
    variable: &dyn Fn(&str) -> Option<String>,
) {
    let bucket_url = url.bucket_url();
    let mut options = options.to_vec();
    let mut profile_problem = None;
    let found = profile_settings(url, &Options::new(&options), variable);
    match found {
        Ok(found) => options
            .extend(found.into_iter().map(|(option, setting)| (option.to_string(), setting.value))),
        Err(failure) => profile_problem = Some(failure.to_string()),
    }
    adopt_settings(vec![StoreSettings { bucket_url, options, profile_problem }]);
}

/// The settings of all buckets, for the other processes of a run.
pub fn all_settings() -> Vec<StoreSettings> {
    lock(&STORES).values().map(|registered| registered.settings.clone()).collect()
}

/// Takes over settings of another process.
pub fn adopt_settings(all: Vec<StoreSettings>) {
    let mut stores = lock(&STORES);
    for settings in all {
        let is_known =
            stores.get(&settings.bucket_url).is_some_and(|known| known.settings == settings);
        if !is_known {
            stores.insert(settings.bucket_url.clone(), Registered { settings, store: None });
        }
    }
}

/// The store of a bucket.
pub(super) fn store(url: &ObjectUrl) -> Result<Arc<Store>, Failure> {
    let mut stores = lock(&STORES);
    let registered = stores.entry(url.bucket_url()).or_insert_with(|| Registered {
        settings: StoreSettings { bucket_url: url.bucket_url(), ..StoreSettings::default() },
        store: None,
    });
    if let Some(store) = &registered.store {
        return Ok(Arc::clone(store));
    }
    let store = Arc::new(build(url, &registered.settings, Patience::RUN)?);
    registered.store = Some(Arc::clone(&store));
    Ok(store)
}

/// A separate store of the same bucket that gives up early, to check it.
pub(super) fn store_to_check(url: &ObjectUrl) -> Result<Store, Failure> {
    let stores = lock(&STORES);
    let settings = stores.get(&url.bucket_url()).map(|known| known.settings.clone());
    drop(stores);
    build(url, &settings.unwrap_or_default(), Patience::CHECK)
}

fn build(
    url: &ObjectUrl,
    settings: &StoreSettings,
    mut patience: Patience,
) -> Result<Store, Failure> {
    if let Some(problem) = &settings.profile_problem {
        let failure = Failure::new(ErrorKind::PermissionDenied, problem.clone());
        return Err(failure.with_hint(profile::HINT));
    }
    let options = Options::new(&settings.options);
    if let Some(attempts) = options.get("s3_max_attempts").and_then(|text| text.parse().ok()) {
        patience.attempts_max = patience.attempts_max.min(attempts);
    }
    for (name, timeout) in [
        ("connect_timeout", &mut patience.timeouts.connect),
        ("read_timeout", &mut patience.timeouts.idle),
    ] {
        if let Some(text) = options.get(name) {
            *timeout = seconds(text).ok_or_else(|| {
                let message = format!("`{name}` is no time in seconds: `{text}`");
                Failure::new(ErrorKind::InvalidInput, message)
                    .with_hint("write, for example, `30` or `30s`")
            })?;
        }
    }
    let transport =
        Transport { pool: HttpPool::new(), counts: Arc::new(Counts::default()), patience };
    let built = match url.storage {
        "gcs" => build_gcs(url, &options, &transport),
        "azure" => build_azure(url, &options, &transport),
        _ => build_s3(url, &options, &transport),
    };
    let Clients { objects, pages, parts, signer } = built.map_err(|error| {
        Failure::new(ErrorKind::InvalidInput, Failure::from_store(&error).to_string())
            .with_hint("check `storage.storage_options` and the environment variables of the store")
    })?;
    Ok(Store {
        objects,
        pages,
        parts,
        signer,
        transport,
        last_length: AtomicU64::new(0),
        sent_bytes: Arc::default(),
    })
}

/// A client of `object_store` by its interfaces.
struct Clients {
    objects: Arc<dyn ObjectStore>,
    pages: Arc<dyn PaginatedListStore>,
    parts: Arc<dyn MultipartStore>,
    signer: Option<Arc<dyn Signer>>,
}

fn no_repetition() -> RetryConfig {
    RetryConfig { max_retries: 0, ..RetryConfig::default() }
}

fn build_s3(
    url: &ObjectUrl,
    options: &Options<'_>,
    transport: &Transport,
) -> object_store::Result<Clients> {
    let mut builder = AmazonS3Builder::from_env();
    for (key, value) in options.keys::<AmazonS3ConfigKey>() {
        builder = builder.with_config(key, value);
    }
    let endpoint = options.endpoint().map(str::to_string).or_else(|| {
        let keys = [AmazonS3ConfigKey::S3Endpoint, AmazonS3ConfigKey::Endpoint];
        keys.iter().find_map(|key| builder.get_config_value(key))
    });
    if let Some(mut endpoint) = endpoint {
        if options.path_style() == Some(false)
            && let Some(hosted) = virtual_hosted(&endpoint, &url.bucket)
        {
            builder = builder.with_virtual_hosted_style_request(true);
            endpoint = hosted;
        }
        builder = builder.with_config(AmazonS3ConfigKey::S3Endpoint, endpoint);
    } else if let Some(path_style) = options.path_style() {
        builder = builder.with_virtual_hosted_style_request(!path_style);
    }
    let unsigned = builder.get_config_value(&AmazonS3ConfigKey::SkipSignature);
    let is_signed = unsigned.is_none_or(|value| value.eq_ignore_ascii_case("false"));
    let store = builder
        .with_bucket_name(&url.bucket)
        .with_retry(no_repetition())
        .with_disable_bulk_delete(true)
        .with_http_connector(transport.clone())
        .build()?;
    let store = Arc::new(store);
    Ok(Clients {
        objects: Arc::clone(&store) as _,
        pages: Arc::clone(&store) as _,
        parts: Arc::clone(&store) as _,
        signer: is_signed.then_some(store as _),
    })
}

/// The endpoint with the bucket in its name; `None` for an address or a local name, which has no subdomains.
fn virtual_hosted(endpoint: &str, bucket: &str) -> Option<String> {
    let (scheme, host) = endpoint.split_once("://")?;
    let name = host.split(['/', ':']).next()?;
    let has_subdomains = name.contains('.') && name.parse::<std::net::IpAddr>().is_err();
    has_subdomains.then(|| format!("{scheme}://{bucket}.{host}"))
}

fn build_gcs(
    url: &ObjectUrl,
    options: &Options<'_>,
    transport: &Transport,
) -> object_store::Result<Clients> {
    let mut builder = GoogleCloudStorageBuilder::from_env();
    for (key, value) in options.keys::<GoogleConfigKey>() {
        builder = builder.with_config(key, value);
    }
    let base_url = || builder.get_config_value(&GoogleConfigKey::BaseUrl);
    if let Some(endpoint) = options.endpoint().map(str::to_string).or_else(base_url) {
        builder = builder.with_base_url(&endpoint);
        let keys = [
            GoogleConfigKey::ServiceAccount,
            GoogleConfigKey::ServiceAccountKey,
            GoogleConfigKey::ApplicationCredentials,
            GoogleConfigKey::BearerToken,
        ];
        let has_account = keys.iter().any(|key| builder.get_config_value(key).is_some());
        if !has_account {
            // Emulators have no accounts. `object_store` asks for a token to write even without signatures.
            builder = builder.with_skip_signature(true).with_bearer_token("");
        }
    }
    let store = builder
        .with_bucket_name(&url.bucket)
        .with_retry(no_repetition())
        .with_http_connector(transport.clone())
        .build()?;
    let store = Arc::new(store);
    Ok(Clients {
        objects: Arc::clone(&store) as _,
        pages: Arc::clone(&store) as _,
        parts: store,
        signer: None,
    })
}

fn build_azure(
    url: &ObjectUrl,
    options: &Options<'_>,
    transport: &Transport,
) -> object_store::Result<Clients> {
    let mut builder = MicrosoftAzureBuilder::from_env();
    for (key, value) in options.keys::<AzureConfigKey>() {
        builder = builder.with_config(key, value);
    }
    if let Some(endpoint) = options.endpoint() {
        builder = builder.with_endpoint(endpoint.to_string());
    }
    let store = builder
        .with_container_name(&url.bucket)
        .with_retry(no_repetition())
        .with_http_connector(transport.clone())
        .build()?;
    let store = Arc::new(store);
    Ok(Clients {
        objects: Arc::clone(&store) as _,
        pages: Arc::clone(&store) as _,
        parts: store,
        signer: None,
    })
}

/// Options that are not empty.
struct Options<'o>(Vec<(&'o str, &'o str)>);

impl<'o> Options<'o> {
    fn new(options: &'o [(String, String)]) -> Self {
        let given = options.iter().filter(|(_, value)| !value.is_empty());
        Options(given.map(|(name, value)| (name.as_str(), value.as_str())).collect())
    }

    fn get(&self, wanted: &str) -> Option<&'o str> {
        self.0.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value)
    }

    /// Whether an option is given, with or without a prefix such as `aws_`.
    fn has(&self, wanted: &str) -> bool {
        self.0.iter().any(|(name, _)| name.ends_with(wanted))
    }

    fn endpoint(&self) -> Option<&'o str> {
        self.get("endpoint_url").or_else(|| self.get("endpoint"))
    }

    /// DLIO's `s3_force_path_style`, a boolean or its text.
    fn path_style(&self) -> Option<bool> {
        let value = self.get("s3_force_path_style").or_else(|| self.get("force_path_style"))?;
        value.to_ascii_lowercase().parse().ok()
    }

    fn keys<K: FromStr>(&self) -> impl Iterator<Item = (K, &'o str)> {
        self.0.iter().filter_map(|(name, value)| Some((name.parse().ok()?, *value)))
    }
}

/// Parses a positive number of seconds, with or without the unit.
fn seconds(text: &str) -> Option<Duration> {
    let seconds: f64 = text.strip_suffix('s').unwrap_or(text).trim().parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero())
}

/// Options that are applied here or in the plan, besides those of `object_store`.
const HANDLED: [&str; 9] = [
    "endpoint_url",
    "endpoint",
    "s3_force_path_style",
    "force_path_style",
    "s3_max_attempts",
    "connect_timeout",
    "read_timeout",
    "prefetch_window",
    "storage_library",
];

/// Whether an option changes how the store is accessed. The settings of `object_store`'s usual transport do not, because another one is used.
fn has_effect(storage: &str, name: &str) -> bool {
    HANDLED.contains(&name)
        || match storage {
            "gcs" => GoogleConfigKey::from_str(name)
                .is_ok_and(|key| !matches!(key, GoogleConfigKey::Client(_))),
            "azure" => AzureConfigKey::from_str(name)
                .is_ok_and(|key| !matches!(key, AzureConfigKey::Client(_))),
            _ => AmazonS3ConfigKey::from_str(name)
                .is_ok_and(|key| !matches!(key, AmazonS3ConfigKey::Client(_))),
        }
}

/// Where the credentials of a storage can come from, in the order in which they apply.
struct CredentialSources {
    storage: &'static str,
    options: &'static [&'static str],
    variables: &'static [&'static str],
    /// The source without these options and variables.
    otherwise: &'static str,
}

const CREDENTIALS: &[CredentialSources] = &[
    CredentialSources {
        storage: "s3",
        options: &["access_key_id", "aws_access_key_id", "secret_access_key", "skip_signature"],
        variables: &[
            "AWS_ACCESS_KEY_ID",
            "AWS_WEB_IDENTITY_TOKEN_FILE",
            "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
            "AWS_CONTAINER_CREDENTIALS_FULL_URI",
            "AWS_SKIP_SIGNATURE",
        ],
        otherwise: "the instance's metadata",
    },
    CredentialSources {
        storage: "gcs",
        options: &[
            "service_account",
            "service_account_path",
            "service_account_key",
            "bearer_token",
        ],
        variables: &[
            "GOOGLE_SERVICE_ACCOUNT",
            "GOOGLE_SERVICE_ACCOUNT_PATH",
            "GOOGLE_SERVICE_ACCOUNT_KEY",
            "GOOGLE_APPLICATION_CREDENTIALS",
        ],
        otherwise: "application default credentials, or the instance's metadata",
    },
    CredentialSources {
        storage: "azure",
        options: &["account_key", "access_key", "sas_token", "client_secret", "bearer_token"],
        variables: &[
            "AZURE_STORAGE_ACCOUNT_KEY",
            "AZURE_STORAGE_ACCESS_KEY",
            "AZURE_STORAGE_SAS_TOKEN",
            "AZURE_CLIENT_SECRET",
            "AZURE_FEDERATED_TOKEN_FILE",
        ],
        otherwise: "the instance's managed identity",
    },
];

const S3_ENDPOINTS: &[&str] = &["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"];
const S3_REGIONS: &[&str] = &["AWS_REGION", "AWS_DEFAULT_REGION"];

type Variables<'v> = &'v dyn Fn(&str) -> Option<String>;

/// A setting and where it is from.
struct SourcedSetting {
    value: String,
    source: String,
}

/// The first of the variables that is set.
fn from_variables(names: &[&str], variable: Variables<'_>) -> Option<SourcedSetting> {
    names.iter().find_map(|name| {
        let value = variable(name).filter(|value| !value.is_empty())?;
        Some(SourcedSetting { value, source: format!("environment: {name}") })
    })
}

/// The settings of S3 that only the profile sets, by the names of options: neither the options nor the environment have them.
fn profile_settings(
    url: &ObjectUrl,
    options: &Options<'_>,
    variable: Variables<'_>,
) -> Result<Vec<(&'static str, SourcedSetting)>, Failure> {
    if url.storage != "s3" {
        return Ok(Vec::new());
    }
    let profile = Profile::read(variable)?;
    let mut found = Vec::new();
    let mut add = |option, key| {
        let setting = profile.get(key);
        found.extend(
            setting.map(|(value, source)| (option, SourcedSetting { value: value.into(), source })),
        );
    };
    if options.endpoint().is_none() && from_variables(S3_ENDPOINTS, variable).is_none() {
        add("endpoint", "endpoint_url");
    }
    if !options.has("region") && from_variables(S3_REGIONS, variable).is_none() {
        add("region", "region");
    }
    let CredentialSources { options: names, variables, .. } = &CREDENTIALS[0];
    let has_keys =
        names.iter().any(|name| options.has(name)) || from_variables(variables, variable).is_some();
    if !has_keys && let Some(keys) = profile.keys()? {
        let sourced = |value| SourcedSetting { value, source: keys.source.clone() };
        found.extend(keys.options.into_iter().map(|(option, value)| (option, sourced(value))));
    }
    Ok(found)
}

/// Describes how a store is reached, for the plan: sources of its settings, and no secret. `variable` reads the environment. Also returns the
/// names of options without effect.
pub fn describe(
    url: &ObjectUrl,
    options: &[(String, String)],
    variable: &dyn Fn(&str) -> Option<String>,
) -> (ObjectPlan, Vec<String>) {
    let given = Options::new(options);
    let profile = profile_settings(url, &given, variable);
    let from_profile = |wanted: &str| {
        let found = profile.as_ref().ok()?.iter().find(|(option, _)| *option == wanted)?;
        let SourcedSetting { value, source } = &found.1;
        Some(SourcedSetting { value: value.clone(), source: source.clone() })
    };
    let from_options = |value: Option<&str>| {
        let source = "storage.storage_options".to_string();
        value.map(|value| SourcedSetting { value: value.to_string(), source })
    };
    let endpoints: &[&str] = match url.storage {
        "s3" => S3_ENDPOINTS,
        "azure" => &["AZURE_STORAGE_ENDPOINT"],
        _ => &["GOOGLE_BASE_URL"],
    };
    let endpoint = from_options(given.endpoint())
        .or_else(|| from_variables(endpoints, variable))
        .or_else(|| from_profile("endpoint"));
    let region = from_options(given.get("region"))
        .or_else(|| from_variables(S3_REGIONS, variable))
        .or_else(|| from_profile("region"))
        .filter(|_| url.storage == "s3");
    let sources = CREDENTIALS.iter().find(|sources| sources.storage == url.storage);
    let credentials = sources.map(|CredentialSources { options, variables, otherwise, .. }| {
        if options.iter().any(|name| given.has(name)) {
            return "storage.storage_options".to_string();
        }
        let found = from_variables(variables, variable).or_else(|| from_profile(profile::KEY_ID));
        match (found, &profile) {
            (Some(found), _) => found.source,
            (None, Err(failure)) => format!("no source: {failure}"),
            (None, Ok(_)) => (*otherwise).into(),
        }
    });
    let without_user = |text: String| match text.split_once("://") {
        Some((scheme, rest)) => {
            format!("{scheme}://{}", rest.rsplit_once('@').map_or(rest, |(_, host)| host))
        }
        None => text,
    };
    let unused = options.iter().map(|(name, _)| name);
    let unused = unused.filter(|name| !has_effect(url.storage, name)).cloned().collect();
    let (endpoint, endpoint_source) =
        endpoint.map(|endpoint| (endpoint.value, endpoint.source)).unzip();
    let plan = ObjectPlan {
        bucket: url.bucket_url(),
        endpoint: endpoint.map(without_user),
        endpoint_source,
        region: region.map(|region| region.value),
        credentials_source: credentials.unwrap_or_default(),
    };
    (plan, unused)
}
