//! `cargo xtask install`: the C library and the program `ottla` in the folders where others look for them.
//!
//! Stripped libraries with separate debug information, headers, the files for pkg-config and cmake, the program, licences
//! and reference pages. The tests call [`install`] too; `make install` runs this command.

use std::{
    env, fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::Duration,
};

use crate::{
    Result, archive, debug_files, profiled,
    shell::{self, cargo, root},
    test::target_folder,
};

/// Builds and installs the C library, its headers, the files for pkg-config and cmake, the program and documents.
///
/// LIBDIR/librdkafka.so.1, librdkafka.a       the C library, stripped
/// PREFIX/include/librdkafka/*.h              its headers
/// LIBDIR/pkgconfig, LIBDIR/cmake             rdkafka.pc, rdkafka-static.pc; find_package(RdKafka) with the targets
///                                            RdKafka::rdkafka and RdKafka::rdkafka-static
/// PREFIX/bin/ottla                           the command line, stripped
/// PREFIX/share/doc/ottla                     licences, CONFIGURATION.md, STATISTICS.md
/// PREFIX/lib/debug/.build-id                 the debug information, with links in .debug beside the stripped files;
///                                            remove both to save space
///
/// If there is a C++ compiler (c++, or the variable CXX), librdkafka++ is installed too: its libraries, rdkafkacpp.h, rdkafkacpp_ottla.h, rdkafka++.pc,
/// rdkafka++-static.pc, and the targets RdKafka::rdkafka++ and RdKafka::rdkafka++-static.
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Options {
    /// The folder of the installation.
    #[arg(long, default_value = "/usr/local", value_name = "FOLDER")]
    prefix: PathBuf,
    /// The folder of the libraries, absolute or under the prefix.
    #[arg(long, default_value = "lib", value_name = "FOLDER")]
    libdir: PathBuf,
    /// Write all files under this folder instead of /, to build a package.
    #[arg(long, value_name = "FOLDER")]
    destdir: Option<String>,
    /// The profile of cargo: packaged, dev, or release: what README's commands and the tests build, the same code without line
    /// numbers, and the program without schemas and filters.
    #[arg(long, default_value = profiled::PROFILE, value_name = "NAME")]
    profile: String,
    /// Optimize the library with a profile of its own work: two builds instead of one, and less CPU for every message
    /// (docs/internals/where-the-time-goes.md has the figures); needs llvm-profdata of rustc's LLVM.
    #[arg(long)]
    profiled: bool,
}

/// The version of the interface, which programs ask pkg-config and cmake for.
pub const VERSION: &str = "2.16.0";
/// The folder with the sources of librdkafka++.
const CPP: &str = "crates/capi/cpp";
const HEADERS: [&str; 3] = ["rdkafka.h", "rdkafka_mock.h", "rdkafka_ottla.h"];
/// The licences, and the pages that error texts and headers refer to.
const DOCUMENTS: [&str; 4] = ["LICENSE-APACHE", "LICENSE-MIT", "CONFIGURATION.md", "STATISTICS.md"];
/// The folder of the documents under the prefix.
const DOCUMENT_FOLDER: &str = "share/doc/ottla";
/// The system libraries that the static library needs. The part of the compiler that unwinds is static, so that `-static` works.
const SYSTEM_LIBRARIES: &str = "-lgcc_eh -lutil -lrt -lpthread -lm -ldl -lc";

/// The folders of an installation.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    prefix: PathBuf,
    libdir: PathBuf,
    destdir: Option<PathBuf>,
}

impl Layout {
    /// Returns the folders of a package: of files that belong under `prefix`, written under `destdir`.
    pub fn new(prefix: &Path, libdir: &str, destdir: &Path) -> Self {
        Self {
            prefix: prefix.to_path_buf(),
            libdir: prefix.join(libdir),
            destdir: Some(destdir.to_path_buf()),
        }
    }

    /// Returns the default folders under a prefix.
    pub fn under(prefix: PathBuf) -> Self {
        Self { libdir: prefix.join("lib"), prefix, destdir: None }
    }

    fn of(options: &Options) -> Result<(Self, Build)> {
        let mut layout = Self::under(options.prefix.clone());
        // An empty one is a variable of a Makefile that is not set.
        layout.destdir = options.destdir.as_ref().filter(|path| !path.is_empty()).map(PathBuf::from);
        for path in [Some(&layout.prefix), layout.destdir.as_ref()].into_iter().flatten() {
            if !path.is_absolute() {
                return Err(format!("{} is not an absolute path: name the full path", path.display()).into());
            }
        }
        layout.libdir = layout.prefix.join(&options.libdir);
        match (options.profiled, options.profile.as_str()) {
            (false, profile) => Ok((layout, Build::Plain(profile.to_owned()))),
            (true, profiled::PROFILE) => Ok((layout, Build::Profiled)),
            (true, other) => Err(format!("--profiled is a packaged build, not `{other}`").into()),
        }
    }

    /// Returns the path to write a file to that belongs at this path: under the destdir if there is one.
    fn place(&self, path: &Path) -> PathBuf {
        match &self.destdir {
            Some(destdir) => destdir.join(path.strip_prefix("/").unwrap_or(path)),
            None => path.to_path_buf(),
        }
    }
}

pub fn main(options: &Options) -> Result<ExitCode> {
    let (layout, build) = Layout::of(options)?;
    for path in install(&layout, &build)? {
        println!("{}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// How the C library is compiled.
#[derive(Clone, Debug, PartialEq)]
pub enum Build {
    /// With this profile of cargo.
    Plain(String),
    /// For a package, with a profile of its own work.
    Profiled,
}

impl Build {
    /// Returns the profile of cargo.
    fn profile(&self) -> &str {
        match self {
            Self::Plain(profile) => profile,
            Self::Profiled => profiled::PROFILE,
        }
    }

    /// Builds the library, and returns the folder that it is in.
    fn run(&self) -> Result<PathBuf> {
        let Self::Plain(profile) = self else { return profiled::build() };
        let mut build = build_of("ottla-capi", profile);
        let done = shell::run(build.arg("--lib"), Duration::from_secs(40 * 60), true)?;
        if !done.success {
            return Err(format!("the library can't be built ({})", done.ending).into());
        }
        folder_of(profile)
    }
}

/// Returns the command that builds a package with a profile of cargo.
///
/// Dependencies are compiled with the features of all packages that one command names. For tests the library and the program are
/// built together, or both the core and the dependencies would be compiled twice. A release of the program for tests and for
/// README's first command has no schemas and no filters, which are a third of its build, so that it adds no features either. A
/// package's library is built alone: features that only the program needs would make it larger.
pub fn build_of(package: &str, profile: &str) -> Command {
    let mut build = cargo();
    build.args(["build", "--profile", profile]);
    match profile {
        "dev" => build.args(["--package", "ottla-capi", "--package", "ottla-cli"]),
        "release" => {
            build.args(["--package", "ottla-capi", "--package", "ottla-cli", "--no-default-features"])
        }
        _ => build.args(["--package", package]),
    };
    build
}

/// Returns the folder that programs and libraries of a profile of cargo are in.
fn folder_of(profile: &str) -> Result<PathBuf> {
    Ok(target_folder()?.join(if profile == "dev" { "debug" } else { profile }))
}

/// What was built, and the tool chain of its platform.
pub struct Built {
    /// The folder of the libraries.
    pub library: PathBuf,
    /// The program `ottla`.
    pub program: PathBuf,
    /// The C++ compiler.
    pub compiler: String,
    /// What the names of binutils begin with.
    pub tools: String,
}

/// Builds and installs everything; returns the files.
pub fn install(layout: &Layout, build: &Build) -> Result<Vec<PathBuf>> {
    let (library, program) = (build.run()?, ottla(build.profile())?);
    let compiler = env::var("CXX").unwrap_or_else(|_| "c++".into());
    place(layout, &Built { library, program, compiler, tools: String::new() })
}

/// Installs what was built; returns the files.
pub fn place(layout: &Layout, made: &Built) -> Result<Vec<PathBuf>> {
    let Built { library: built, program, compiler, tools } = made;
    let stripped = built.join("stripped");
    let mut tree = Tree { layout, tools, files: Vec::new() };
    let (lib, include) = (&layout.libdir, layout.prefix.join("include/librdkafka"));
    tree.split(&built.join("librdkafka.so"), &lib.join("librdkafka.so.1"), &stripped)?;
    tree.link("librdkafka.so.1", &lib.join("librdkafka.so"))?;
    let archive =
        archive::one_object(tools, &built.join("librdkafka.a"), &built.join("librdkafka.so"), &stripped)?;
    tree.copy(&archive, &lib.join("librdkafka.a"), 0o644)?;
    tree.split(program, &layout.prefix.join("bin/ottla"), &stripped)?;
    for document in DOCUMENTS {
        tree.copy(&root().join(document), &layout.prefix.join(DOCUMENT_FOLDER).join(document), 0o644)?;
    }
    for header in HEADERS {
        let from = root().join("crates/capi/include/librdkafka").join(header);
        tree.copy(&from, &include.join(header), 0o644)?;
    }
    tree.write(&lib.join("pkgconfig/rdkafka.pc"), &pkg_config(layout, Linking::Shared))?;
    tree.write(&lib.join("pkgconfig/rdkafka-static.pc"), &pkg_config(layout, Linking::Static))?;
    if shell::installed(compiler) || Path::new(compiler).is_file() {
        let folder = built.join("librdkafka++");
        plus_plus(compiler, built, &folder)?;
        tree.split(&folder.join("librdkafka++.so.1"), &lib.join("librdkafka++.so.1"), &stripped)?;
        tree.link("librdkafka++.so.1", &lib.join("librdkafka++.so"))?;
        tree.archive(&folder.join("librdkafka++.a"), &lib.join("librdkafka++.a"), &stripped)?;
        for header in ["rdkafkacpp.h", "rdkafkacpp_ottla.h"] {
            tree.copy(&root().join(CPP).join(header), &include.join(header), 0o644)?;
        }
        tree.write(&lib.join("pkgconfig/rdkafka++.pc"), &pkg_config(layout, Linking::SharedPlusPlus))?;
        tree.write(&lib.join("pkgconfig/rdkafka++-static.pc"), &pkg_config(layout, Linking::StaticPlusPlus))?;
    } else {
        println!(
            "LEFT OUT: librdkafka++, because there is no C++ compiler `{compiler}`; set CXX to use another one"
        );
    }
    tree.write(&lib.join("cmake/RdKafka/RdKafkaConfig.cmake"), &cmake_config(layout))?;
    tree.write(&lib.join("cmake/RdKafka/RdKafkaConfigVersion.cmake"), &cmake_version())?;
    Ok(tree.files)
}

/// Compiles librdkafka++ into a folder, on the C library that was built.
fn plus_plus(compiler: &str, built: &Path, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    let (object, source) = (folder.join("rdkafkacpp.o"), root().join(CPP).join("rdkafkacpp.cpp"));
    let mut compile = Command::new(compiler);
    compile.args(["-std=c++11", "-O2", "-g", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-c", "-o"]);
    compile.arg(&object).arg(source).arg("-I").arg(root().join("crates/capi/include"));
    let mut link = Command::new(compiler);
    link.args(["-shared", "-Wl,-soname,librdkafka++.so.1", "-Wl,-z,defs,-z,now", "-Wl,--build-id"]);
    // A program's run path does not apply to indirect dependencies, so this library has its own.
    link.args(["-Wl,--enable-new-dtags", "-Wl,-rpath,$ORIGIN", "-o"]);
    link.arg(folder.join("librdkafka++.so.1")).arg(&object).arg(built.join("librdkafka.so"));
    let archive = folder.join("librdkafka++.a");
    let _ = fs::remove_file(&archive);
    let mut ar = Command::new("ar");
    ar.arg("rcs").arg(archive).arg(&object);
    for mut command in [compile, link, ar] {
        let done = shell::run(&mut command, Duration::from_secs(600), true)?;
        if !done.success {
            return Err(format!("librdkafka++ can't be built ({})", done.ending).into());
        }
    }
    Ok(())
}

/// The tree of files during the installation.
struct Tree<'a> {
    layout: &'a Layout,
    tools: &'a str,
    files: Vec<PathBuf>,
}

impl Tree<'_> {
    /// Removes the old file, so that a program that has it open keeps it.
    fn room(&mut self, path: &Path) -> Result<PathBuf> {
        let place = self.layout.place(path);
        let says = |error| format!("{}: {error}", place.display());
        fs::create_dir_all(place.parent().unwrap_or(&place)).map_err(says)?;
        match fs::remove_file(&place) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(says(error).into()),
            _ => {}
        }
        self.files.push(place.clone());
        Ok(place)
    }

    fn copy(&mut self, from: &Path, to: &Path, mode: u32) -> Result<()> {
        let place = self.room(to)?;
        fs::copy(from, &place).map_err(|error| format!("{}: {error}", from.display()))?;
        fs::set_permissions(&place, fs::Permissions::from_mode(mode))?;
        Ok(())
    }

    /// Installs a linked file without debug information, and the debug information for debuggers.
    fn split(&mut self, from: &Path, to: &Path, folder: &Path) -> Result<()> {
        let name = to.file_name().unwrap_or_default().to_string_lossy();
        let file = debug_files::split(self.tools, from, &name, folder)?;
        self.copy(&file.stripped, to, 0o755)?;
        let debug = self.layout.prefix.join("lib/debug").join(&file.by_build_id);
        self.copy(&file.debug, &debug, 0o644)?;
        let beside = to.parent().unwrap_or(to).join(".debug");
        let relative = way(&beside, &debug);
        // The debug information of the replaced version has another build ID and is not used by anything else.
        if let Ok(old) = fs::read_link(self.layout.place(&beside.join(&file.debug_name)))
            && old != Path::new(&relative)
        {
            let _ = fs::remove_file(self.layout.place(&beside).join(old));
        }
        self.link(&relative, &beside.join(&file.debug_name))
    }

    /// Installs a static library without debug information.
    fn archive(&mut self, from: &Path, to: &Path, folder: &Path) -> Result<()> {
        self.copy(&debug_files::strip_archive(self.tools, from, folder)?, to, 0o644)
    }

    fn link(&mut self, to: &str, at: &Path) -> Result<()> {
        let place = self.room(at)?;
        symlink(to, place)?;
        Ok(())
    }

    fn write(&mut self, to: &Path, text: &str) -> Result<()> {
        let place = self.room(to)?;
        fs::write(&place, text)?;
        fs::set_permissions(&place, fs::Permissions::from_mode(0o644))?;
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Linking {
    Shared,
    Static,
    SharedPlusPlus,
    StaticPlusPlus,
}

fn pkg_config(layout: &Layout, linking: Linking) -> String {
    let (prefix, libdir) = (layout.prefix.display(), layout.libdir.display());
    let (name, what, libs) = match linking {
        Linking::Shared => ("librdkafka", "Kafka client library", "Libs: -L${libdir} -lrdkafka".to_owned()),
        Linking::Static => (
            "librdkafka-static",
            "Kafka client library, linked into the program",
            format!("Libs: ${{libdir}}/librdkafka.a {SYSTEM_LIBRARIES}"),
        ),
        Linking::SharedPlusPlus => (
            "librdkafka++",
            "Kafka client library for C++",
            "Libs: -L${libdir} -lrdkafka++ -lrdkafka".to_owned(),
        ),
        Linking::StaticPlusPlus => (
            "librdkafka++-static",
            "Kafka client library for C++, linked into the program",
            format!("Libs: ${{libdir}}/librdkafka++.a ${{libdir}}/librdkafka.a -lstdc++ {SYSTEM_LIBRARIES}"),
        ),
    };
    let private = if linking == Linking::Shared {
        format!("Libs.private: {SYSTEM_LIBRARIES}\n")
    } else {
        String::new()
    };
    format!(
        "prefix={prefix}\nlibdir={libdir}\nincludedir=${{prefix}}/include\n\nName: {name}\nDescription: {what}\n\
         Version: {VERSION}\nCflags: -I${{includedir}}\n{libs}\n{private}"
    )
}

/// The paths are relative to the file itself, because a package's tree is prefixed by DESTDIR, and trees are moved.
fn cmake_config(layout: &Layout) -> String {
    let here = layout.libdir.join("cmake/RdKafka");
    let (libdir, include) = (way(&here, &layout.libdir), way(&here, &layout.prefix.join("include")));
    let system = SYSTEM_LIBRARIES.replace("-l", "").replace(' ', ";");
    format!(
        r#"# RdKafka::rdkafka is the shared library, RdKafka::rdkafka-static the other one; RdKafka::rdkafka++ and
# RdKafka::rdkafka++-static are those of C++.
get_filename_component(_rdkafka_here "${{CMAKE_CURRENT_LIST_DIR}}" REALPATH)
get_filename_component(RdKafka_LIBRARY_DIR "${{_rdkafka_here}}/{libdir}" ABSOLUTE)
get_filename_component(RdKafka_INCLUDE_DIR "${{_rdkafka_here}}/{include}" ABSOLUTE)
unset(_rdkafka_here)
set(RdKafka_VERSION "{VERSION}")
if(NOT TARGET RdKafka::rdkafka)
  add_library(RdKafka::rdkafka SHARED IMPORTED)
  set_target_properties(RdKafka::rdkafka PROPERTIES
    IMPORTED_LOCATION "${{RdKafka_LIBRARY_DIR}}/librdkafka.so.1"
    IMPORTED_SONAME "librdkafka.so.1"
    INTERFACE_INCLUDE_DIRECTORIES "${{RdKafka_INCLUDE_DIR}}")
  add_library(RdKafka::rdkafka-static STATIC IMPORTED)
  set_target_properties(RdKafka::rdkafka-static PROPERTIES
    IMPORTED_LOCATION "${{RdKafka_LIBRARY_DIR}}/librdkafka.a"
    IMPORTED_LINK_INTERFACE_LANGUAGES "C"
    INTERFACE_INCLUDE_DIRECTORIES "${{RdKafka_INCLUDE_DIR}}"
    INTERFACE_LINK_LIBRARIES "{system}")
  if(EXISTS "${{RdKafka_LIBRARY_DIR}}/librdkafka++.so.1")
    add_library(RdKafka::rdkafka++ SHARED IMPORTED)
    set_target_properties(RdKafka::rdkafka++ PROPERTIES
      IMPORTED_LOCATION "${{RdKafka_LIBRARY_DIR}}/librdkafka++.so.1"
      IMPORTED_SONAME "librdkafka++.so.1"
      INTERFACE_INCLUDE_DIRECTORIES "${{RdKafka_INCLUDE_DIR}}"
      INTERFACE_LINK_LIBRARIES "RdKafka::rdkafka")
    add_library(RdKafka::rdkafka++-static STATIC IMPORTED)
    set_target_properties(RdKafka::rdkafka++-static PROPERTIES
      IMPORTED_LOCATION "${{RdKafka_LIBRARY_DIR}}/librdkafka++.a"
      IMPORTED_LINK_INTERFACE_LANGUAGES "CXX"
      INTERFACE_INCLUDE_DIRECTORIES "${{RdKafka_INCLUDE_DIR}}"
      INTERFACE_LINK_LIBRARIES "RdKafka::rdkafka-static")
  endif()
endif()
"#
    )
}

/// Returns the relative path from one folder to another path.
fn way(from: &Path, to: &Path) -> String {
    let (from, to): (Vec<_>, Vec<_>) = (from.components().collect(), to.components().collect());
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = from[common..].iter().map(|_| "..".to_owned());
    let down = to[common..].iter().map(|folder| folder.as_os_str().to_string_lossy().into_owned());
    up.chain(down).collect::<Vec<_>>().join("/")
}

fn cmake_version() -> String {
    format!(
        r#"set(PACKAGE_VERSION "{VERSION}")
if(PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
else()
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
  if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
    set(PACKAGE_VERSION_EXACT TRUE)
  endif()
endif()
"#
    )
}

/// Builds the program `ottla` and returns its path.
pub fn ottla(profile: &str) -> Result<PathBuf> {
    let mut build = build_of("ottla-cli", profile);
    let done = shell::run(build.args(["--bin", "ottla"]), Duration::from_secs(40 * 60), true)?;
    if !done.success {
        return Err(format!("ottla can't be built ({})", done.ending).into());
    }
    Ok(folder_of(profile)?.join("ottla"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser)]
    struct Program {
        #[command(flatten)]
        options: Options,
    }

    fn of(args: &[&str]) -> Result<(Layout, Build)> {
        use clap::Parser as _;
        Layout::of(&Program::try_parse_from([&["install"], args].concat())?.options)
    }

    #[test]
    fn destdir_is_not_part_of_file_contents() {
        let (layout, build) = of(&["--prefix", "/usr", "--libdir", "lib64", "--destdir", "/tmp/x"]).unwrap();
        assert_eq!(build, Build::Plain("packaged".into()));
        assert_eq!(
            layout.place(Path::new("/usr/lib64/librdkafka.a")),
            Path::new("/tmp/x/usr/lib64/librdkafka.a")
        );
        let text = pkg_config(&layout, Linking::Shared);
        assert!(text.contains("prefix=/usr\nlibdir=/usr/lib64\n") && !text.contains("/tmp/x"), "{text}");
    }

    #[test]
    fn cmake_files_use_paths_relative_to_themselves() {
        let config = |args: &[&str]| cmake_config(&of(args).unwrap().0);
        let text = config(&["--prefix", "/opt/kafka", "--destdir", "/tmp/x"]);
        assert!(!text.contains("/opt") && !text.contains("/tmp"), "{text}");
        assert!(text.contains("RdKafka_LIBRARY_DIR \"${_rdkafka_here}/../..\" ABSOLUTE"), "{text}");
        assert!(
            text.contains("RdKafka_INCLUDE_DIR \"${_rdkafka_here}/../../../include\" ABSOLUTE"),
            "{text}"
        );
        let text = config(&["--prefix", "/usr", "--libdir", "lib/x86_64-linux-gnu"]);
        assert!(text.contains("/../../../../include\" ABSOLUTE"), "{text}");
        let text = config(&["--prefix", "/usr", "--libdir", "/lib64"]);
        assert!(text.contains("/../../../usr/include\" ABSOLUTE"), "{text}");
    }

    #[test]
    fn empty_destdir_counts_as_unset() {
        assert_eq!(of(&["--destdir", ""]).unwrap().0, Layout::under("/usr/local".into()));
    }

    #[test]
    fn relative_prefix_and_unknown_options_are_refused() {
        assert!(of(&["--prefix", "here"]).unwrap_err().to_string().contains("is not an absolute path"));
        assert!(of(&["--perfix", "/usr"]).is_err());
        assert_eq!(of(&["--profiled"]).unwrap().1, Build::Profiled);
        assert!(of(&["--profiled", "--profile", "dev"]).unwrap_err().to_string().contains("not `dev`"));
        assert!(of(&["--prefix"]).unwrap_err().to_string().contains("a value is required"));
    }
}
