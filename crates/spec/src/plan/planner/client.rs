//! Plans the client: a profile found by its name, with the costs that the workload overrides.

use super::Builder;
use crate::plan::client::{ClientCost, cost_max_s};
use crate::plan::{CLIENT_PROFILES, ClientPlan, ClientProfile, DatasetPlan, LoaderPlan};
use crate::workload::client_costs;

/// Costs of the exchange between workers and the training process.
const BETWEEN_PROCESSES: &[&str] = &[
    "client.handover_bytes_per_second",
    "client.shared_bytes_per_second",
    "client.pin_bytes_per_second",
    "client.receive_per_batch",
    "client.receive_per_byte",
    "client.receive_wait_share",
    "client.start_per_epoch",
];

impl Builder<'_> {
    /// Returns the client; `None` for an ideal client, which takes no time.
    pub(super) fn client(&mut self) -> Option<ClientPlan> {
        let w = self.w;
        let profile = w.client_name.as_deref().and_then(|name| {
            let profile = ClientProfile::find(name);
            if profile.is_none() {
                let names: Vec<&str> = CLIENT_PROFILES.iter().map(|profile| profile.name).collect();
                let hint = format!(
                    "available clients: {}; or give costs such as `client.per_sample`, which `feedrate calibrate` measures",
                    names.join(", ")
                );
                self.error("client.name", format!("there is no client `{name}`"), &hint);
            }
            profile
        });
        let is_changed = client_costs().any(|key| w.is_given(&format!("client.{key}")));
        let profile_costs = profile.map(ClientProfile::plan).unwrap_or_default();
        let complete_client = ClientPlan {
            per_sample_s: w.client_per_sample.unwrap_or(profile_costs.per_sample_s),
            per_byte_s: w.client_per_byte.unwrap_or(profile_costs.per_byte_s),
            per_batch_s: w.client_per_batch.unwrap_or(profile_costs.per_batch_s),
            handover_bytes_per_second: w
                .client_handover_bytes_per_second
                .or(profile_costs.handover_bytes_per_second),
            shared_bytes_per_second: w
                .client_shared_bytes_per_second
                .or(profile_costs.shared_bytes_per_second),
            pin_bytes_per_second: w
                .client_pin_bytes_per_second
                .or(profile_costs.pin_bytes_per_second),
            receive_per_batch_s: w
                .client_receive_per_batch
                .unwrap_or(profile_costs.receive_per_batch_s),
            receive_per_byte_s: w
                .client_receive_per_byte
                .unwrap_or(profile_costs.receive_per_byte_s),
            receive_wait_share: w
                .client_receive_wait_share
                .unwrap_or(profile_costs.receive_wait_share),
            start_per_epoch_s: w.client_start_per_epoch.unwrap_or(profile_costs.start_per_epoch_s),
            name: if is_changed { None } else { profile_costs.name },
        };
        let has_workers = w.reader_read_threads > 0;
        let client = if has_workers { complete_client } else { complete_client.without_workers() };
        for key in if has_workers { &[] } else { BETWEEN_PROCESSES } {
            self.warn_unused(
                key,
                "without workers (`reader.read_threads=0`) there is no exchange between processes",
            );
        }
        (!client.is_ideal()).then_some(client)
    }

    /// Refuses costs above the limits. Refuses clients if one accelerator reads for other accelerators.
    pub(super) fn check_client_costs(
        &mut self,
        dataset: &DatasetPlan,
        loader: &LoaderPlan,
        steps: u64,
    ) {
        let Some(client) = &loader.client else { return };
        if loader.group_accelerators > 1 {
            let message = format!(
                "the workers of one accelerator read for {} accelerators, and would do the client's work for all of them",
                loader.group_accelerators
            );
            self.error(
                "reader.file_access",
                message,
                "use `shared`, `same` or `multi`, or `client=null`",
            );
        }
        let cost_max_s = cost_max_s(steps);
        for ClientCost { key, seconds } in client.costs(loader, dataset.record_bytes) {
            if seconds > cost_max_s {
                let unit =
                    if key.ends_with("epoch") { "the workers of an epoch" } else { "a batch" };
                let message = format!("`{seconds}` seconds of processor time for {unit}");
                self.error(key, message, &format!("reduce it to at most {cost_max_s:.3}"));
            }
        }
    }
}
