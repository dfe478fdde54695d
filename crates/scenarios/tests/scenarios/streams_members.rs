//! Members of streams groups (KIP-1071): tasks, statuses, and commits with a member's identity.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use ottla::{
    Admin, AdminOptions, ConfigResource, Consumer, ErrorCode, ErrorKind, GroupOffset, GroupState, Producer,
    Result,
    streams::{
        GlobalStore, InternalTopic, RevocationReason, StoredDescription, StreamsEvent, StreamsMember,
        StreamsStatusKind, StreamsTask, Subtopology, SubtopologyDescription, TaskOffsets, Topology,
        TopologyDescription, TopologyNode, TopologyNodeKind,
    },
};
use ottla_protocol::api::ApiKey;
use ottla_scenarios::{Backend, TIMEOUT, eventually, not_checked, unused_topic_name};

ottla_scenarios::run_on_all!(
    tasks_move_to_a_second_member_and_back,
    missing_topics_are_reported_and_internal_ones_created,
    offsets_of_a_task_are_committed_with_the_members_epoch,
    shutdown_of_the_application_reaches_all_members,
    topology_is_described_by_the_nodes_that_a_member_sent,
    wrong_topologies_and_groups_are_refused_with_their_kind,
);

ottla_scenarios::run_on_embedded!(brokers_without_streams_groups_are_an_unsupported_version);

/// Makes embedded brokers ask for heartbeats as often as a test wants them.
fn hurry(backend: &Backend) {
    if !backend.is_shared() {
        backend.control(|control| {
            control.options().group_streams_heartbeat_interval = Duration::from_millis(50)
        });
    }
}

fn reads(topics: &[&str]) -> Topology {
    let source_topics = topics.iter().map(|topic| (*topic).to_owned()).collect();
    let part = Subtopology { id: "0".to_owned(), source_topics, ..Subtopology::default() };
    Topology { epoch: 0, subtopologies: vec![part] }
}

/// A member with its application, which has the tasks that the member was assigned.
struct Application {
    member: StreamsMember,
    active: BTreeSet<i32>,
    statuses: Vec<StreamsStatusKind>,
}

impl Application {
    fn join(backend: &Backend, group: &str, topology: Topology) -> Self {
        let member = StreamsMember::new(&backend.config(&[("group.id", group)]), topology);
        Self::of(member.expect("the configuration is right"))
    }

    fn of(member: StreamsMember) -> Self {
        member.join().expect("it is open");
        Self { member, active: BTreeSet::new(), statuses: Vec::new() }
    }

    /// Handles the events that come within this time.
    fn run(&mut self, time: Duration) -> Result<()> {
        let until = Instant::now() + time;
        while let Some(event) = self.member.poll(until.saturating_duration_since(Instant::now()))? {
            match event {
                StreamsEvent::Assigned(tasks) => {
                    for task in tasks.active {
                        assert!(self.active.insert(task.partition), "{task:?} is assigned twice");
                    }
                }
                StreamsEvent::Revoked(revocation) => {
                    assert_eq!(revocation.reason, RevocationReason::Reassigned);
                    for task in &revocation.tasks.active {
                        assert!(self.active.remove(&task.partition), "{task:?} is not there");
                    }
                    self.member.acknowledge(revocation)?;
                }
                StreamsEvent::Status(list) => self.statuses = list.iter().map(|status| status.kind).collect(),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Runs applications until this holds.
fn run_until(applications: &mut [&mut Application], mut holds: impl FnMut(&[&mut Application]) -> bool) {
    let until = Instant::now() + TIMEOUT * 2;
    while !holds(applications) {
        assert!(Instant::now() < until, "{:?}", applications.iter().map(|it| &it.active).collect::<Vec<_>>());
        for application in applications.iter_mut() {
            application.run(Duration::from_millis(20)).expect("the member goes on");
        }
        let mut seen = BTreeSet::new();
        let mut tasks = applications.iter().flat_map(|application| &application.active);
        assert!(tasks.all(|task| seen.insert(*task)), "two members have a task");
    }
}

fn tasks_move_to_a_second_member_and_back(backend: &Backend) {
    hurry(backend);
    let topic = backend.topic(4);
    let mut first = Application::join(backend, &topic, reads(&[&topic]));
    run_until(&mut [&mut first], |all| all[0].active.len() == 4);
    let mut second = Application::join(backend, &topic, reads(&[&topic]));
    run_until(&mut [&mut first, &mut second], |all| all[0].active.len() == 2 && all[1].active.len() == 2);

    let described =
        first.member.admin().describe_streams_groups(&[&topic], TIMEOUT).expect("the call succeeds");
    let group = described[0].1.as_ref().expect("the group exists");
    assert_eq!(group.members.len(), 2);
    let id = first.member.membership().member_id;
    let described = group.members.iter().find(|member| member.member_id == id).expect("it is a member");
    let tasks: BTreeSet<i32> = described.assignment.active.iter().map(|task| task.partition).collect();
    assert_eq!(tasks, first.active);

    second.member.close(TIMEOUT).expect("it leaves in time");
    second.active.clear();
    run_until(&mut [&mut first], |all| all[0].active.len() == 4);
    first.member.close(TIMEOUT).expect("it leaves in time");
    assert_eq!(first.member.poll(TIMEOUT).map_err(|error| error.kind()), Err(ErrorKind::Closed));
    let admin = Admin::new(&backend.config(&[])).expect("the configuration is right");
    assert!(eventually(|| {
        let described = admin.describe_streams_groups(&[&topic], TIMEOUT).expect("the call succeeds");
        described[0].1.as_ref().is_ok_and(|group| group.state == GroupState::Empty)
    }));
}

fn missing_topics_are_reported_and_internal_ones_created(backend: &Backend) {
    hurry(backend);
    let topic = unused_topic_name();
    let mut topology = reads(&[&topic]);
    let changelog = InternalTopic {
        name: format!("{topic}-counts-changelog"),
        replication_factor: Some(1),
        configs: [("cleanup.policy".to_owned(), "compact".to_owned())].into(),
        ..InternalTopic::default()
    };
    topology.subtopologies[0].changelog_topics = vec![changelog.clone()];
    let mut application = Application::join(backend, &topic, topology);
    run_until(&mut [&mut application], |all| {
        all[0].statuses.contains(&StreamsStatusKind::MissingSourceTopics)
    });
    assert!(application.active.is_empty());
    let admin = application.member.admin();
    let created =
        admin.create_topics(&[ottla::NewTopic::new(&*topic, 2, 1)], TIMEOUT).expect("the call succeeds");
    created[0].1.as_ref().expect("it is created");
    run_until(&mut [&mut application], |all| all[0].active.len() == 2 && all[0].statuses.is_empty());
    let described = admin.describe_topics(&[&*changelog.name], TIMEOUT).expect("the call succeeds");
    assert_eq!((described[0].error.clone(), described[0].partitions.len()), (None, 2));
    application.member.close(TIMEOUT).expect("it leaves in time");
}

fn offsets_of_a_task_are_committed_with_the_members_epoch(backend: &Backend) {
    hurry(backend);
    let topic = backend.topic(1);
    let mut application = Application::join(backend, &topic, reads(&[&topic]));
    run_until(&mut [&mut application], |all| all[0].active.len() == 1);
    let metadata = application.member.group_metadata();
    assert_eq!(metadata.member_id, application.member.membership().member_id);
    let config = backend.config(&[("transactional.id", &topic)]);
    let producer = Producer::new(&config).expect("the configuration is right");
    producer.init_transactions(TIMEOUT).expect("the coordinator responds");
    let transaction = producer.begin().expect("none is open");
    let offsets = [GroupOffset::new(&*topic, 0, 5)];
    transaction.send_offsets_of(metadata.clone(), &offsets, TIMEOUT).expect("it is a member");
    transaction.commit(TIMEOUT).expect("it is committed");
    let admin = Admin::new(&backend.config(&[])).expect("the configuration is right");
    let committed = || {
        let listed = admin.list_group_offsets(&topic, None, TIMEOUT).expect("the call succeeds");
        listed.first().and_then(|(_, offset)| offset.as_ref().ok()?.as_ref().map(|offset| offset.offset))
    };
    assert!(eventually(|| committed() == Some(5)), "{:?}", committed());

    let task = StreamsTask { subtopology_id: "0".to_owned(), partition: 0 };
    let offsets = TaskOffsets { offsets: [(task, 5)].into(), ..TaskOffsets::default() };
    application.member.report_offsets(offsets).expect("it is open");
    application.member.close(TIMEOUT).expect("it leaves in time");
    let transaction = producer.begin().expect("none is open");
    let offsets = [GroupOffset::new(&*topic, 0, 6)];
    let refused = transaction.send_offsets_of(metadata, &offsets, TIMEOUT);
    assert!(refused.is_err(), "the member has left");
    transaction.abort(TIMEOUT).expect("it is aborted");
    assert_eq!(committed(), Some(5));
}

fn shutdown_of_the_application_reaches_all_members(backend: &Backend) {
    hurry(backend);
    let topic = backend.topic(2);
    let mut first = Application::join(backend, &topic, reads(&[&topic]));
    let mut second = Application::join(backend, &topic, reads(&[&topic]));
    run_until(&mut [&mut first, &mut second], |all| all.iter().all(|it| it.active.len() == 1));
    first.member.shut_down_application().expect("it is open");
    let is_told = |it: &&mut Application| it.statuses.contains(&StreamsStatusKind::ShutdownApplication);
    run_until(&mut [&mut first, &mut second], |all| all.iter().all(is_told));
    second.member.close(TIMEOUT).expect("it leaves in time");
    first.member.close(TIMEOUT).expect("it leaves in time");
}

fn description(topic: &str) -> TopologyDescription {
    let node = |name: &str, kind, next: &[&str]| TopologyNode {
        name: name.to_owned(),
        kind,
        successors: next.iter().map(|name| (*name).to_owned()).collect(),
    };
    let source = || TopologyNodeKind::Source { topics: vec![topic.to_owned()] };
    let processor = |store: &str| TopologyNodeKind::Processor { stores: vec![store.to_owned()] };
    let sink = TopologyNodeKind::Sink { topic: Some("counts".to_owned()) };
    let nodes = vec![
        node("clicks", source(), &["count"]),
        node("count", processor("counts"), &["written"]),
        node("written", sink, &[]),
    ];
    let store = GlobalStore {
        source: node("pages", source(), &["keep"]),
        processor: node("keep", processor("pages"), &[]),
    };
    TopologyDescription {
        subtopologies: vec![SubtopologyDescription { id: "0".to_owned(), nodes }],
        global_stores: vec![store],
    }
}

/// Returns true if the brokers store descriptions of topologies. Embedded ones begin to.
fn stores_descriptions(backend: &Backend) -> bool {
    const PLUG_IN: &str = "group.streams.topology.description.plugin.class";
    if !backend.is_shared() {
        backend.control(|control| {
            control.options().group_streams_description_interval = Some(Duration::from_secs(30));
        });
        return true;
    }
    let admin = Admin::new(&backend.config(&[])).expect("the configuration is right");
    let described = admin.describe_configs(&[ConfigResource::broker(1)], TIMEOUT).expect("the call succeeds");
    let mut entries = described.into_iter().flat_map(|(_, entries)| entries.expect("broker 1 is there"));
    entries.any(|entry| entry.name == PLUG_IN && entry.value.is_some_and(|class| !class.is_empty()))
}

fn topology_is_described_by_the_nodes_that_a_member_sent(backend: &Backend) {
    hurry(backend);
    if !stores_descriptions(backend) {
        return not_checked("descriptions of topologies", "the brokers have no plug-in that stores them");
    }
    let topic = backend.topic(1);
    let expected = description(&topic);
    let mut wrong = expected.clone();
    wrong.subtopologies[0].nodes.pop();
    let config = backend.config(&[("group.id", &topic)]);
    let builder = || StreamsMember::builder(&config, reads(&[&topic]));
    let refused = builder().topology_description(wrong).build().expect_err("a successor is missing");
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);

    let member = builder().topology_description(expected.clone()).build();
    let mut application = Application::of(member.expect("the configuration is right"));
    let admin = application.member.admin();
    let stored = |options: AdminOptions| {
        let described = admin.describe_streams_groups(&[&topic], options).expect("the call succeeds");
        described.into_iter().next().and_then(|(_, group)| Some(group.ok()?.topology_description))
    };
    let asked = AdminOptions::new(TIMEOUT).topology_description(true);
    run_until(&mut [&mut application], |_| {
        stored(asked) == Some(StoredDescription::Available(expected.clone()))
    });
    assert_eq!(stored(TIMEOUT.into()), Some(StoredDescription::NotRequested));
    run_until(&mut [&mut application], |all| !all[0].member.membership().wants_topology_description);
    application.member.close(TIMEOUT).expect("it leaves in time");
}

/// Returns the kind of the error that ends a member.
fn refusal(backend: &Backend, group: &str, topology: Topology) -> ErrorKind {
    let mut application = Application::join(backend, group, topology);
    let refused = application.run(TIMEOUT).expect_err("it is refused");
    application.member.close(TIMEOUT).expect("there is nothing to leave");
    refused.kind()
}

fn wrong_topologies_and_groups_are_refused_with_their_kind(backend: &Backend) {
    hurry(backend);
    let (topic, other) = (backend.topic(1), backend.topic(1));
    let config = backend.config(&[("group.id", &topic)]);
    let error = StreamsMember::new(&config, Topology::default()).expect_err("it has no subtopology");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);

    let mut first = Application::join(backend, &topic, reads(&[&topic]));
    run_until(&mut [&mut first], |all| all[0].active.len() == 1);
    let kind = refusal(backend, &topic, reads(&[&topic, &other]));
    assert_eq!(kind, ErrorKind::Broker(ErrorCode::INVALID_REQUEST));
    first.member.close(TIMEOUT).expect("it leaves in time");

    let consumer =
        Consumer::new(&backend.config(&[("group.id", &other)])).expect("the configuration is right");
    consumer.subscribe(&[&*other]).expect("it can subscribe");
    assert!(eventually(|| {
        let _ = consumer.poll(Duration::from_millis(10));
        !consumer.assignment().is_empty()
    }));
    let kind = refusal(backend, &other, reads(&[&other]));
    assert!(
        matches!(
            kind,
            ErrorKind::Broker(ErrorCode::GROUP_ID_NOT_FOUND | ErrorCode::INCONSISTENT_GROUP_PROTOCOL)
        ),
        "{kind:?}"
    );
    consumer.close(TIMEOUT).expect("it leaves in time");
}

fn brokers_without_streams_groups_are_an_unsupported_version(backend: &Backend) {
    backend.control(|control| control.set_api_versions(None, ApiKey::StreamsGroupHeartbeat, 1, 0));
    assert_eq!(refusal(backend, "g", reads(&["t"])), ErrorKind::UnsupportedVersion);
}
