//! The image of `ottla` for containers, from nothing but the program without libraries, made by umoci.

use std::{fs, path::PathBuf};

use super::{Workshop, archive, trees};
use crate::{Result, install, shell::read};

/// What runs if the container's command says nothing else. `OTTLA_ADVERTISED_HOST` names the host that clients reach.
pub const COMMAND: [&str; 3] = ["broker", "--host", "0.0.0.0"];

pub fn make(workshop: &Workshop) -> Result<Vec<PathBuf>> {
    install::debian("umoci", "umoci")?;
    let (program, content) = (archive::alone_program(workshop)?, workshop.empty("image-content")?);
    trees::copy_program(&program, &content.join("usr/bin/ottla"))?;
    fs::create_dir_all(content.join("tmp"))?;
    let layout = workshop.empty("image")?;
    fs::remove_dir(&layout)?;
    let created = &workshop.time()?;
    trees::date(workshop, &content)?;
    let tagged = format!("{}:latest", layout.display());
    let umoci = |arguments: &[&str]| read(workshop.command("umoci").args(arguments));
    umoci(&["init", "--layout", &layout.to_string_lossy()])?;
    umoci(&["new", "--image", &tagged])?;
    for part in ["usr", "tmp"] {
        let history = ["--history.created", created, "--history.created_by", "cargo xtask package"];
        let from = content.join(part);
        let insert = ["insert", "--rootless", "--image", &tagged];
        umoci(&[&insert[..], &history[..], &[&*from.to_string_lossy(), &format!("/{part}")]].concat())?;
    }
    let mut settings = vec![
        "config",
        "--image",
        &tagged,
        "--created",
        created,
        "--no-history",
        "--architecture",
        "amd64",
        "--os",
        "linux",
        "--config.entrypoint",
        "/usr/bin/ottla",
        "--config.exposedports",
        "9092/tcp",
        "--config.stopsignal",
        "SIGTERM",
        "--config.env",
        "PATH=/usr/bin",
        "--config.workingdir",
        "/",
    ];
    for word in &COMMAND {
        settings.extend(["--config.cmd", word]);
    }
    umoci(&settings)?;
    umoci(&["gc", "--layout", &layout.to_string_lossy()])?;
    let packed = workshop.folder.join(format!("ottla-{}-image.tar", workshop.version));
    let mut tar = workshop.command("tar");
    tar.args([
        "--sort=name",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        &format!("--mtime=@{}", workshop.epoch),
    ]);
    read(tar.arg("-cf").arg(&packed).arg("-C").arg(&layout).arg("."))?;
    Ok(vec![packed])
}
