//! A program as C, for a case of `tests/abi/side_by_side`.

use std::fmt::Write as _;

use super::{
    program::{Program, Step},
    table::{Function, Table},
};

/// Formats a program as a case.
pub fn as_c(table: &Table, program: &Program) -> String {
    let mut text = String::new();
    for block in program.blocks.iter().skip(1) {
        let name = block.header.split(' ').nth(1).unwrap_or_default();
        let _ =
            writeln!(text, "/* {}: the arguments are cb_client, cb_message, cb_list ... */", block.header);
        let _ = writeln!(text, "static void {name}_steps(void) {{");
        block.steps.iter().for_each(|step| text += &statement(table, step));
        text += "}\n";
    }
    text += "CASE(generated) {\n";
    for step in program.blocks.iter().take(1).flat_map(|block| &block.steps) {
        text += &statement(table, step);
    }
    text + "}\n"
}

fn statement(table: &Table, step: &Step) -> String {
    // The entries of rd_kafka_producev are not parameters of the table.
    let is_known = |it: &&Function| !it.parameters.is_empty() || step.words.len() == 1;
    let Some(function) = table.functions.get(step.function()).filter(is_known) else {
        return format!("        /* {} {} */\n", step.names.join(","), step.words.join(" "));
    };
    let (declarations, arguments) = arguments(function, step);
    let call = format!("{}({})", function.name, arguments.join(", "));
    let result = function.prototype.split(&function.name).next().unwrap_or_default().trim();
    let name = step.names.first().filter(|name| *name != "_").map_or("result", String::as_str);
    let line = match function.result.trim_end_matches('~') {
        "v" => format!("{call};"),
        "err" => format!("say(\"{}: %s\", err({call}));", function.name),
        "conf" => format!("say(\"{}: %s\", conf_res({call}));", function.name),
        "i" | "ierr" => format!("say(\"{}: %d\", {call});", function.name),
        "i64" | "batch" => format!("say(\"{}: %lld\", (long long){call});", function.name),
        "s" => format!("say(\"{}: %s\", quoted({call}));", function.name),
        "E" => format!("say_error(\"{}\", {call});", function.name),
        _ if result.ends_with('*') => format!("{result}{name} = {call};"),
        _ => format!("{result} {name} = {call};"),
    };
    format!("{}        {line}\n", declarations.concat())
}

/// Returns declarations that the arguments need, and the arguments.
fn arguments(function: &Function, step: &Step) -> (Vec<String>, Vec<String>) {
    let (mut declarations, mut arguments) = (Vec::new(), Vec::new());
    let mut words = step.words.iter().skip(1);
    let mut names =
        step.names.iter().skip(usize::from(!["v", "err", "conf"].contains(&function.result.as_str())));
    for parameter in &function.parameters {
        let code = parameter.code.trim_end_matches('~');
        if let Some(kind) = code.strip_prefix("oh:").or_else(|| code.strip_prefix("ob:")) {
            let name = names.next().map_or("out", String::as_str);
            declarations.push(format!("        rd_kafka_{kind}_t *{name} = NULL;\n"));
            arguments.push(format!("&{name}"));
            continue;
        }
        if !parameter.is_word() {
            let of = if code == "oi32" {
                "int32_t"
            } else if code == "cnt" {
                "size_t"
            } else {
                "int64_t"
            };
            if code == "file" {
                arguments.push("stdout".to_owned());
            } else {
                declarations.push(format!("        {of} {} = 0;\n", parameter.name));
                arguments.push(format!("&{}", parameter.name));
            }
            continue;
        }
        let word = words.next().map_or("NULL", String::as_str);
        let length = word.trim_matches('"').len();
        match code {
            "b" if word == "NULL" => arguments.push("NULL, 0".to_owned()),
            "b" => arguments.push(format!("(void *){word}, {length}")),
            "e" if word == "NULL" => arguments.push("NULL, 0".to_owned()),
            "e" => arguments.push(format!("(char[512]){{0}}, {word}")),
            "d" => arguments.push(format!("(char[512]){{0}}, &(size_t){{{word}}}")),
            "p" => arguments.push(format!("(void *){word}")),
            _ if word.starts_with('[') => {
                let elements: Vec<&str> =
                    word.trim_matches(['[', ']']).split(',').filter(|it| !it.is_empty()).collect();
                arguments.push(format!("(void *[]){{{}}}, {}", elements.join(", "), elements.len()));
            }
            _ => arguments.push(word.to_owned()),
        }
    }
    (declarations, arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_becomes_statements() {
        let program = Program::parse(
            "c1 = rd_kafka_conf_new\nrd_kafka_conf_set c1 \"acks\" \"all\" 512\nk1 = rd_kafka_new 0 c1 NULL\nrd_kafka_destroy k1\n",
        )
        .unwrap();
        let text = as_c(&Table::read().unwrap(), &program);
        assert!(text.contains("say(\"rd_kafka_conf_set: %s\", conf_res(rd_kafka_conf_set(c1, \"acks\", \"all\", (char[512]){0}, 512)));"));
        assert!(text.contains("rd_kafka_conf_t *c1 = rd_kafka_conf_new();"), "{text}");
        assert!(text.contains("rd_kafka_t *k1 = rd_kafka_new(0, c1, NULL, 0);"), "{text}");
    }
}
