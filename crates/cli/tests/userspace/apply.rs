//! `shortlane apply`: devices get what a file says, and nothing happens to one that has it.

use std::fs;

use tempfile::TempDir;

use super::path::Path;

#[test]
fn devices_get_what_the_file_says_and_keep_what_they_have() {
    let Some(path) = Path::new() else { return };
    let before = path.state();
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("shortlane.toml");
    let file = file.to_str().unwrap();
    let write = |text: &str| fs::write(file, text).unwrap();
    let apply = || path.succeed(&format!("apply {file}")).output;

    write("[t0]\nrate = \"10mbit\"\nengine = \"userspace\"\n");
    let said = path.succeed(&format!("apply --dry-run {file}")).output;
    assert_eq!(said, "t0: attach, to send at 10mbit\n");
    assert_eq!(path.state(), before, "nothing is done");
    assert_eq!(apply(), "t0: attach, to send at 10mbit\n");
    let process = path.pid();
    assert_eq!(apply(), "t0: as it is\n");

    write(
        "[t0]\nrate = \"100mbit\"\nengine = \"userspace\"\noverhead = \"docsis\"\nburst-time = \"2ms\"\n",
    );
    let difference = "t0: change: send at 100mbit instead of 10mbit, overhead docsis instead of 0, \
                      burst time 2ms instead of 10ms\n";
    assert_eq!(path.succeed(&format!("apply --dry-run {file}")).output, difference);
    assert_eq!(apply(), difference);
    assert_eq!(apply(), "t0: as it is\n");
    assert_eq!(path.pid(), process, "changed as it runs");
    assert_eq!(path.status()[0]["rate_bps"], 100_000_000);

    write("[t0]\nrate = \"100mbit\"\ningress = \"50mbit\"\nengine = \"userspace\"\n");
    assert_eq!(apply(), "t0: replace, ingress is to be attached\n");
    assert_eq!(path.status().len(), 2);
    assert_ne!(path.pid(), process);
    write("[t0]\nrate = \"100mbit\"\ningress = \"50mbit\"\n");
    assert_eq!(apply(), "t0: as it is\n", "the engine that runs is as good as any");
    write(
        "[t0]\nrate = \"100mbit\"\ningress = \"50mbit\"\nscheduler = \"efd:threshold=9packets\"\n",
    );
    let difference = "t0: replace, efd:threshold=9packets instead of fq-lanes";
    let said = apply();
    assert!(said.starts_with(difference), "{said}");
    assert_eq!(apply(), "t0: as it is\n");

    let auto = |ceiling| {
        write(&format!(
            "[t0]\nrate = \"auto:2mbit..20mbit..{ceiling}\"\ningress = \"50mbit\"\nprobe = \"10.9.0.2\"\n"
        ));
        apply()
    };
    let said = auto("30mbit");
    assert!(
        said.contains("auto:2mbit..20mbit..30mbit by 10.9.0.2 instead of a fixed rate"),
        "{said}"
    );
    assert_eq!(auto("30mbit"), "t0: as it is\n", "whatever the rate is now");
    let said = auto("40mbit");
    assert!(said.contains("instead of auto:2mbit..20mbit..30mbit by 10.9.0.2"), "{said}");
    write(
        "[t0]\nrate = \"100mbit\"\ningress = \"50mbit\"\nscheduler = \"efd:threshold=9packets\"\n",
    );
    let said = apply();
    assert!(said.contains("a fixed rate instead of auto:2mbit..20mbit..40mbit"), "{said}");

    // One that fails does not keep the others from their due; and who is not named is left alone.
    write(
        "[nobody]\nrate = \"1mbit\"\n[t0]\nrate = \"20mbit\"\ningress = \"50mbit\"\nscheduler = \"efd:threshold=9packets\"\n",
    );
    let said = path.shortlane(&format!("apply {file}"));
    assert_ne!(said.status, Some(0));
    assert!(said.words.contains("no device 'nobody'"), "{}", said.words);
    assert_eq!(said.output, "t0: change: send at 20mbit instead of 100mbit\n");
    assert_eq!(path.status()[0]["rate_bps"], 20_000_000);
    write("");
    assert_eq!(apply(), format!("t0: left alone, it is not in {file}\n"));

    write("[t0]\nrate = \"fast\"\n");
    path.refused(&format!("apply {file}"), 2, &[":2:", "rate"]);
    path.refused("apply /no/such/file", 2, &["/no/such/file"]);
    path.succeed("detach t0");
    path.must_be_as_before(&before);
}
