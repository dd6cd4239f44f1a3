//! What a look at every TCP socket of this network namespace costs: `bench/sampling.sh` compares
//! that with `ss -tin`.
#![allow(clippy::print_stdout, reason = "an example prints")]

use fullpipe_host::watch::{Namespaces, Watch};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let looks: u32 = std::env::args().nth(1).map_or(Ok(10), |text| text.parse())?;
    let mut watch = Watch::open(Namespaces::Own)?;
    for _ in 0..looks {
        watch.look()?;
    }
    println!(
        "{looks} looks at {} connections, {} of them busy",
        watch.connections(),
        watch.busy().len()
    );
    Ok(())
}
