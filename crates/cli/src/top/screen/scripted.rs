//! Tests of the screen: keys and samples in, pictures out.

use std::time::Duration;

use ratatui::style::Color;
use ratatui::{Terminal, backend::TestBackend, buffer::Buffer};

use super::columns::Column;
use super::frame::draw;
use super::messages::{Line, Messages, Source};
use super::samples;
use super::state::{Action, Key, State};
use super::theme::Theme;
use crate::top::model::Model;
use crate::top::update::{EndsSample, Update};

const THEME: Theme = Theme { has_colours: true, is_ascii: false };

fn buffer(state: &mut State, model: &Model, width: u16, height: u16, theme: Theme) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(state, model, theme, frame.buffer_mut())).unwrap();
    terminal.backend().buffer().clone()
}

fn lines_of(buffer: &Buffer) -> Vec<String> {
    let cells: Vec<&str> = buffer.content().iter().map(|cell| cell.symbol()).collect();
    cells.chunks(buffer.area.width.into()).map(|row| row.concat().trim_end().to_owned()).collect()
}

fn lines(state: &mut State, model: &Model) -> Vec<String> {
    lines_of(&buffer(state, model, 80, 24, THEME))
}

fn press(state: &mut State, model: &Model, keys: &str) -> Action {
    keys.chars().fold(Action::Nothing, |_, letter| {
        let key = match letter {
            '\n' => Key::Enter,
            '\x1b' => Key::Escape,
            letter => Key::Char(letter),
        };
        state.press(key, model)
    })
}

#[test]
fn topics_are_ordered_by_their_rate() {
    let (model, mut state) = (samples::model(), State::default());
    let lines = lines(&mut state, &model);
    assert_eq!(lines.len(), 24);
    assert!(lines[0].starts_with("ottla top 3 brokers, 7 topics, 32 partitions, 3 groups"), "{}", lines[0]);
    assert!(lines[0].ends_with("rec/s"), "{}", lines[0]);
    assert!(lines[1].starts_with(" 1 topics  2 brokers  3 partitions  4 groups"), "{}", lines[1]);
    assert!(lines[1].ends_with("under-replicated"), "{}", lines[1]);
    assert!(lines[2].starts_with("TOPIC ") && lines[2].contains("REC/S▾"), "{}", lines[2]);
    let names: Vec<&str> = lines[3..10].iter().map(|line| line.split(' ').next().unwrap()).collect();
    let expected = ["clicks", "orders", "payments", "shipments", "inventory", "audit", "orders.dead-letters"];
    assert_eq!(names, expected);
    assert!(lines[3].contains('█') && lines[3].contains("60.5k"), "{}", lines[3]);
    assert!(lines[23].contains("? help  q quit"), "{}", lines[23]);
}

#[test]
fn enter_opens_partitions_and_escape_goes_back() {
    let (model, mut state) = (samples::model(), State::default());
    press(&mut state, &model, "j\n");
    let shown = lines(&mut state, &model);
    assert!(shown[3].starts_with("orders ") && shown[3].contains("lacks 3"), "{}", shown[3]);
    assert!(shown[23].starts_with("topic orders "), "{}", shown[23]);
    let action = press(&mut state, &model, "\n");
    assert!(matches!(action, Action::Read(Source { partition: Some(_), .. })), "{action:?}");
    assert!(lines(&mut state, &model)[3].starts_with("reading"));
    press(&mut state, &model, "\x1b\x1b");
    assert_eq!(press(&mut state, &model, "\x1b"), Action::Nothing, "there is nothing to go back to");
    assert!(lines(&mut state, &model)[2].starts_with("TOPIC"));
}

#[test]
fn slow_member_of_a_group_is_named() {
    let (model, mut state) = (samples::model(), State::default());
    press(&mut state, &model, "4");
    let shown = lines(&mut state, &model);
    let billing = shown.iter().find(|line| line.starts_with("billing ")).unwrap();
    assert!(billing.ends_with("billing-3"), "{billing}");
    assert!(billing.contains("+220"), "{billing}");
    press(&mut state, &model, "/bill\n\n");
    let shown = lines(&mut state, &model);
    assert!(shown[3].starts_with("billing-3 ") && shown[3].ends_with("slow"), "{}", shown[3]);
    assert!(shown[23].starts_with("group billing "), "{}", shown[23]);
}

#[test]
fn problems_are_one_key_away() {
    let (model, mut state) = (samples::model(), State::default());
    press(&mut state, &model, "p");
    let shown = lines(&mut state, &model);
    let rows: Vec<_> = shown[3..23].iter().filter(|line| !line.is_empty()).collect();
    assert!(rows.iter().all(|row| row.ends_with("lacks 3")), "{rows:?}");
    assert!(shown[23].starts_with("partitions with problems"), "{}", shown[23]);
    assert!(shown[2].ends_with("STATE▾"), "{}", shown[2]);
    press(&mut state, &model, "pr");
    assert!(lines(&mut state, &model)[4..23].iter().any(|row| row.ends_with("ok")));
}

#[test]
fn filter_is_kept_or_dropped() {
    let (model, mut state) = (samples::model(), State::default());
    press(&mut state, &model, "/ORDERS");
    let shown = lines(&mut state, &model);
    assert!(shown[23].starts_with("/ORDERS"), "{}", shown[23]);
    assert!(shown[3].starts_with("orders ") && shown[4].starts_with("orders.dead") && shown[5].is_empty());
    // While the user types, q is a letter.
    assert_eq!(press(&mut state, &model, "q"), Action::Draw);
    assert_eq!(lines(&mut state, &model)[3], "no row matches the filter");
    state.press(Key::Backspace, &model);
    press(&mut state, &model, "\n");
    assert!(lines(&mut state, &model)[23].starts_with("/ORDERS ? help"));
    press(&mut state, &model, "\x1b");
    assert!(lines(&mut state, &model)[3].starts_with("clicks"));
    press(&mut state, &model, "/x\x1b");
    assert!(lines(&mut state, &model)[3].starts_with("clicks"), "Escape drops what was typed");
}

#[test]
fn order_changes_by_column_and_direction() {
    let (model, mut state) = (samples::model(), State::default());
    press(&mut state, &model, "S");
    assert_eq!(state.page().sort, Column::Partitions);
    press(&mut state, &model, "S");
    assert_eq!(state.page().sort, Column::Name);
    assert!(lines(&mut state, &model)[3].starts_with("audit"));
    press(&mut state, &model, "r");
    let shown = lines(&mut state, &model);
    assert!(shown[3].starts_with("shipments") && shown[2].starts_with("TOPIC▾"), "{}", shown[2]);
}

#[test]
fn selection_follows_its_row() {
    let (mut model, mut state) = (samples::model(), State::default());
    press(&mut state, &model, "j");
    let selected = |state: &mut State, model: &Model| {
        let buffer = buffer(state, model, 80, 24, THEME);
        let reversed = |y: &u16| buffer[(0, *y)].modifier.contains(ratatui::style::Modifier::REVERSED);
        let y = (3..23).find(reversed).unwrap();
        lines_of(&buffer)[usize::from(y)].split(' ').next().unwrap().to_owned()
    };
    assert_eq!(selected(&mut state, &model), "orders");
    // From now on the other topics are quicker.
    let mut ends = samples::ends(82);
    for (key, end) in &mut ends.ends {
        *end += if &*key.topic == "orders" { 0 } else { 1_000_000 };
    }
    model.apply(Update::Ends(ends));
    assert_eq!(selected(&mut state, &model), "orders");
    assert!(!lines(&mut state, &model)[4].starts_with("orders "), "the row has moved");
    press(&mut state, &model, "g");
    assert_eq!(selected(&mut state, &model), "clicks");
}

#[test]
fn lost_cluster_is_grey_until_it_is_back() {
    let (mut model, mut state) = (samples::model(), State::default());
    let colour = |state: &mut State, model: &Model| buffer(state, model, 80, 24, THEME)[(0, 4)].fg;
    assert_eq!(colour(&mut state, &model), Color::Reset);
    model.apply(Update::Trouble("connection refused by kafka-1:9092; retrying".into()));
    assert_eq!(colour(&mut state, &model), Color::DarkGray);
    assert_eq!(lines(&mut state, &model)[23], "connection refused by kafka-1:9092; retrying");
    model.apply(Update::Ends(samples::ends(90)));
    assert_eq!(colour(&mut state, &model), Color::Reset);
    assert!(lines(&mut state, &model)[23].contains("? help"));
}

#[test]
fn only_partitions_of_the_lost_broker_are_grey() {
    let (mut model, mut state) = (samples::model(), State::default());
    let mut ends = samples::ends(82);
    let lost = ends.ends.extract_if(.., |(key, _)| &*key.topic == "clicks");
    ends.missing = lost.map(|(key, _)| key).collect();
    model.apply(Update::Ends(EndsSample {
        failure: Some("broker 2 does not respond; retrying".into()),
        ..ends
    }));
    let picture = buffer(&mut state, &model, 80, 24, THEME);
    let shown = lines_of(&picture);
    let colours: Vec<Color> = ["clicks", "orders"]
        .iter()
        .map(|name| picture[(0, shown.iter().position(|line| line.starts_with(name)).unwrap() as u16)].fg)
        .collect();
    assert_eq!(colours, [Color::DarkGray, Color::Reset]);
    assert_eq!(shown[23], "broker 2 does not respond; retrying");
}

#[test]
fn escape_sequences_of_a_message_are_not_drawn() {
    let (model, mut state) = (samples::model(), State::default());
    let Action::Read(source) = press(&mut state, &model, "m") else { panic!("m reads messages") };
    let line = Line {
        time_ms: 1_795_228_947_708,
        partition: 0,
        offset: 7,
        key: "k\x1b]0;title\x07".into(),
        value: "\x1b[31mred\r\n\u{9b}2J\u{202e}".into(),
    };
    let other = Messages::awaited(Source { partition: Some(5), ..source.clone() });
    assert!(!state.take_messages(other), "these messages are not awaited any more");
    assert!(state.take_messages(Messages { source: Some(source), lines: vec![line], ..Messages::default() }));
    let shown = lines(&mut state, &model);
    assert!(shown[3].contains("·[31mred···2J·"), "{}", shown[3]);
    assert!(shown.iter().all(|line| !line.chars().any(char::is_control)));
}

#[test]
fn newest_message_is_at_the_top() {
    let (model, mut state) = (samples::model(), State::default());
    press(&mut state, &model, "jm");
    assert!(state.take_messages(samples::messages()));
    let shown = lines(&mut state, &model);
    assert!(shown[3].contains("{\"order\": 39,"), "{}", shown[3]);
    assert!(matches!(press(&mut state, &model, "m"), Action::Read(_)), "m reads anew");
}

#[test]
fn twenty_columns_show_names_and_the_main_figure() {
    let (model, mut state) = (samples::model(), State::default());
    let shown = lines_of(&buffer(&mut state, &model, 20, 10, THEME));
    assert!(shown[3].starts_with("clicks") && shown[3].ends_with("60.5k"), "{shown:?}");
    press(&mut state, &model, "4");
    let shown = lines_of(&buffer(&mut state, &model, 20, 10, THEME));
    assert!(shown[3].starts_with("nightly-repo"), "{shown:?}");
}

#[test]
fn ascii_theme_draws_ascii_only() {
    let (model, mut state) = (samples::model(), State::default());
    let theme = Theme { has_colours: false, is_ascii: true };
    for view in ["1", "2", "3", "4", "p", "?"] {
        press(&mut state, &model, view);
        let picture = buffer(&mut state, &model, 100, 24, theme);
        assert!(picture.content().iter().all(|cell| cell.symbol().is_ascii()), "{:?}", lines_of(&picture));
        assert!(picture.content().iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
        state.is_help = false;
    }
}

#[test]
fn any_keys_in_any_window_do_no_harm() {
    let keys = [
        Key::Char('1'),
        Key::Char('2'),
        Key::Char('3'),
        Key::Char('4'),
        Key::Char('s'),
        Key::Char('r'),
        Key::Char('/'),
        Key::Char('e'),
        Key::Char('p'),
        Key::Char('m'),
        Key::Char('?'),
        Key::Enter,
        Key::Escape,
        Key::Backspace,
        Key::Tab,
        Key::Up,
        Key::Down,
        Key::PageDown,
        Key::PageUp,
        Key::End,
        Key::Home,
    ];
    let (full, empty) = (samples::model(), Model::default());
    let mut state = State::default();
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    for step in 0..3000 {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        // The cluster vanishes and comes back.
        let model = if step / 100 % 3 == 2 { &empty } else { &full };
        if let Action::Read(source) = state.press(keys[random as usize % keys.len()], model) {
            state.take_messages(Messages { source: Some(source), ..samples::messages() });
        }
        let (width, height) = ((random >> 16) as u16 % 100 + 1, (random >> 32) as u16 % 30 + 1);
        buffer(&mut state, model, width, height, THEME);
    }
}

#[test]
fn reports_of_a_cluster_without_topics_are_drawn() {
    let (mut model, mut state) = (Model::default(), State::default());
    assert_eq!(lines(&mut state, &model)[3], "reading ...");
    let mut cluster = samples::cluster(&[]);
    cluster.topics.clear();
    model.apply(Update::Cluster(cluster));
    model.apply(Update::Ends(EndsSample { at: Duration::from_secs(1), ..EndsSample::default() }));
    assert_eq!(lines(&mut state, &model)[3], "no topics");
    press(&mut state, &model, "2");
    assert!(lines(&mut state, &model)[3].contains("kafka-1.example:9092"));
}
