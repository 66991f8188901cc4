//! Queues beyond the machine's memory are refused, with nothing left behind and nobody killed.

use anyhow::{Result, bail, ensure};

use super::bench::register;
use super::census::{Census, kernel_memory};

pub(crate) fn run(_: &[String]) -> Result<()> {
    // What the kernel keeps from the first use of a discipline is no leak.
    let room = || -> Result<()> {
        drop(register("shortlane", "efd:limit=100000packets", None, 2)?);
        drop(register("shortlane", "fq-lanes:flows=100000", None, 2)?);
        Ok(())
    };
    let census = Census::now();
    room()?;
    census.wait_for_return()?;
    let before = kernel_memory()?;
    for (spec, instances) in
        [("efd:limit=4194304packets", 16), ("run2c:limit=300packets,flows=8388608", 16)]
    {
        let Err(error) = register("shortlane", spec, None, instances) else {
            bail!("{spec}, {instances} times: it was accepted");
        };
        println!("memory: {spec}, {instances} times: {error}");
        ensure!(error.to_string().contains("no memory"), "{error}");
    }
    for instances in [0, 17, u32::MAX] {
        ensure!(register("shortlane", "efd", None, instances).is_err(), "{instances} instances");
    }
    census.wait_for_return()?;
    // What the machine has room for goes as before.
    room()?;
    census.wait_for_return()?;
    let after = kernel_memory()?;
    println!("memory: {before} kB before, {after} after");
    ensure!(after < before + 4096, "the kernel has {after} kB, {before} before");
    Ok(())
}
