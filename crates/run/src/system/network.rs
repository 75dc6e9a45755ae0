//! Lists the network interfaces of the machine.

use super::mount::read_line;
use feedrate_measure::record::Network;
use feedrate_measure::record::file::read_folder;
use std::fs;
use std::path::Path;

/// Returns the interfaces in `class` (`/sys/class/net`) that are up, by name, without the loopback.
pub(super) fn networks(class: &Path) -> Vec<Network> {
    let Ok(entries) = read_folder(class) else { return Vec::new() };
    let mut networks: Vec<Network> =
        entries.flatten().filter_map(|entry| network(&entry.path())).collect();
    networks.sort_by(|a, b| a.name.cmp(&b.name));
    networks
}

fn network(folder: &Path) -> Option<Network> {
    // ARPHRD_LOOPBACK of if_arp.h.
    if read_line(&folder.join("operstate"))? != "up" || read_line(&folder.join("type"))? == "772" {
        return None;
    }
    let driver = fs::read_link(folder.join("device/driver")).ok();
    let driver = driver.as_deref().and_then(Path::file_name);
    // An unknown speed is -1 or cannot be read.
    let speed = read_line(&folder.join("speed"))
        .and_then(|speed| speed.parse().ok())
        .filter(|speed| *speed > 0);
    Some(Network {
        name: folder.file_name()?.to_string_lossy().into_owned(),
        speed_mbit_per_second: speed,
        driver: driver.map(|driver| driver.to_string_lossy().into_owned()),
        mtu_bytes: read_line(&folder.join("mtu")).and_then(|mtu| mtu.parse().ok()),
    })
}

/// Formats the interfaces: `eth0 (25 Gbit/s), ib0`.
pub(super) fn network_text(networks: &[Network]) -> String {
    if networks.is_empty() {
        return "none".into();
    }
    let all = networks.iter().map(|network| match network.speed_mbit_per_second {
        Some(speed) if speed % 1000 == 0 => format!("{} ({} Gbit/s)", network.name, speed / 1000),
        Some(speed) => format!("{} ({speed} Mbit/s)", network.name),
        None => network.name.clone(),
    });
    all.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_that_are_up_are_found_with_their_speed() {
        let class = tempfile::tempdir().unwrap();
        let interface = |name: &str, state: &str, kind: &str, speed: &str| {
            let folder = class.path().join(name);
            fs::create_dir_all(&folder).unwrap();
            for (file, value) in
                [("operstate", state), ("type", kind), ("speed", speed), ("mtu", "9000")]
            {
                fs::write(folder.join(file), format!("{value}\n")).unwrap();
            }
        };
        interface("ib0", "up", "32", "200000");
        interface("eth0", "up", "1", "-1");
        interface("eth1", "down", "1", "1000");
        interface("eth2", "up", "1", "2500");
        interface("lo", "up", "772", "");
        let found = networks(class.path());
        assert_eq!(network_text(&found), "eth0, eth2 (2500 Mbit/s), ib0 (200 Gbit/s)");
        assert_eq!((found[0].mtu_bytes, &found[0].driver), (Some(9000), &None));
        assert_eq!(networks(&class.path().join("nothing")), []);
    }
}
