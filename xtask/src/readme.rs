//! The commands of README.md, which a test runs.

/// Returns the lines of the ```sh blocks, each a command, without comments and empty lines.
pub fn commands(text: &str) -> Vec<String> {
    let mut inside = false;
    let mut commands = Vec::new();
    let mut continued = String::new();
    for line in text.lines() {
        match line.trim() {
            "```sh" => inside = true,
            "```" => inside = false,
            command if inside && !command.is_empty() && !command.starts_with('#') => {
                let (part, more) = command.strip_suffix('\\').map_or((command, false), |part| (part, true));
                continued += part;
                if !more {
                    commands.push(std::mem::take(&mut continued));
                }
            }
            _ => {}
        }
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sh_blocks_are_commands_and_a_backslash_joins_lines() {
        let text =
            "```sh\n# a comment\ncargo a\n\ncargo b \\\n  --c\n```\n```console\nnot this\n```\nnor this\n";
        assert_eq!(commands(text), ["cargo a", "cargo b --c"]);
    }
}
