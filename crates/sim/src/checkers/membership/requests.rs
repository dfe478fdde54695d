//! What a member may send, as its memberships and the targets of its coordinator allow.

use super::*;

impl Member {
    pub(super) fn check(
        &mut self,
        now: Instant,
        made: Instant,
        key: (u64, i32),
        request: &GroupRequest,
        names: &SortedMap<Uuid, String>,
    ) -> Result<(), String> {
        let link = key.0;
        let asked = match request {
            GroupRequest::Join(request) => {
                if !self.doubtful.contains(&request.member_id) {
                    self.check_id(now, &request.member_id)?;
                }
                // The member has given the one before up, and ignores its response.
                self.open.retain(|_, open| open.asked != Asked::Join);
                // Without an assignment there is nothing that heartbeats would keep while the coordinator holds the
                // request back.
                if self.is_between {
                    self.is_member = false;
                }
                Asked::Join
            }
            GroupRequest::Sync(request) => {
                self.check_id(now, &request.member_id)?;
                let joined = self.joined.as_ref().map(|(id, generation, _)| (&**id, *generation));
                if joined != Some((&*request.member_id, request.generation_id)) {
                    return Err(format!("it joined {joined:?}"));
                }
                Asked::Sync
            }
            GroupRequest::Heartbeat(request) => {
                self.check_id(now, &request.member_id)?;
                self.check_generation(now, link, &request.member_id, request.generation_id)?;
                Asked::Heartbeat
            }
            GroupRequest::Commit(request) => {
                let generation = request.generation_id_or_member_epoch;
                if request.member_id.is_empty() || generation < 0 {
                    return Err("a subscribed consumer commits without being a member".to_owned());
                }
                self.check_id(now, &request.member_id)?;
                match (&self.joined, self.epoch) {
                    (Some((_, joined, _)), _) => {
                        let is_current = *joined == generation;
                        self.check_generation(now, link, &request.member_id, generation)?;
                        if is_current {
                            self.check_committed(request, names)?;
                        }
                    }
                    (None, Some(epoch)) if generation > epoch => {
                        return Err(format!("the coordinator reported epoch {epoch}"));
                    }
                    (None, Some(epoch)) if generation == epoch => self.check_reported(request, names)?,
                    (None, None) if self.ended.is_none_or(|at| at + OUTDATED < now) => {
                        return Err("the coordinator does not count the member".to_owned());
                    }
                    _ => {}
                }
                Asked::Commit
            }
            GroupRequest::Leave(request) => {
                if self.terms.is_static {
                    return Err("a static member leaves that only closes".to_owned());
                }
                self.dead.extend(request.members.iter().map(|member| (member.member_id.clone(), now)));
                self.is_member = false;
                Asked::Other
            }
            GroupRequest::ConsumerHeartbeat(request) => {
                self.check_consumer_heartbeat(now, made, link, request)?;
                Asked::ConsumerHeartbeat
            }
            GroupRequest::Fetch(_) => {
                let open =
                    self.open.iter().filter(|((of, _), open)| *of == link && open.asked == Asked::Fetch);
                if open.count() >= FETCHES {
                    return Err("too many requests of this kind at once".to_owned());
                }
                Asked::Fetch
            }
        };
        if !matches!(asked, Asked::Other | Asked::Commit | Asked::Fetch) {
            self.spoke = Some(now);
        }
        let (id, round) = (request.member_id().to_owned(), self.round);
        self.open.insert(key, Open { asked, id, round, sent: now });
        Ok(())
    }

    fn check_consumer_heartbeat(
        &mut self,
        now: Instant,
        made: Instant,
        link: u64,
        request: &ConsumerGroupHeartbeatRequest,
    ) -> Result<(), String> {
        if request.member_epoch < 0 && made < now && self.has_joined_elsewhere(link) {
            self.is_member = false;
        } else {
            self.check_epoch(now, request.member_epoch)?;
        }
        if request.member_epoch == 0 {
            self.joined_on = Some(link);
        }
        if let Some(owned) = &request.topic_partitions {
            let owned = owned
                .iter()
                .flat_map(|topic| topic.partitions.iter().map(|number| (topic.topic_id, *number)));
            self.reported = (owned.collect(), now);
            self.offered.clone_from(&self.target);
        }
        Ok(())
    }

    /// A member that joins has responses to the commits that were made before: the coordinator would refuse them in the
    /// next generation. Those that were made meanwhile are sent when it joins.
    pub(super) fn check_settled(&mut self, made: Instant, request: &GroupRequest) -> Result<(), String> {
        let GroupRequest::Join(_) = request else { return Ok(()) };
        // If the coordinator refuses to join, the next request follows without another wait for commits.
        let is_first = std::mem::take(&mut self.is_stable);
        if !is_first || !self.is_member || self.terms.has_faults {
            return Ok(());
        }
        let is_earlier = |open: &&Open| open.asked == Asked::Commit && open.sent + MEANWHILE < made;
        let commits = self.open.values().filter(is_earlier).count();
        if commits == 0 { Ok(()) } else { Err(format!("it joins while {commits} commits have no response")) }
    }

    /// A consumer outside its group does not ask for committed offsets: another member may commit more meanwhile. A
    /// request from before may have waited until the coordinator was found.
    pub(super) fn check_asks(&mut self, made: Instant, request: &GroupRequest) -> Result<(), String> {
        let GroupRequest::Fetch(_) = request else { return Ok(()) };
        let has_waited = std::mem::take(&mut self.has_looked_up);
        match self.outside.filter(|since| !has_waited && *since + MEANWHILE < made) {
            Some(since) => Err(format!("it is outside its group since {since:?}")),
            None => Ok(()),
        }
    }

    fn check_id(&self, now: Instant, id: &str) -> Result<(), String> {
        match self.dead.get(id) {
            Some(at) if *at + OUTDATED < now => {
                Err(format!("the membership of {id} ended {:?} before", now - *at))
            }
            _ => Ok(()),
        }
    }

    /// The generation is the one that the member joined, and it never falls on a connection.
    fn check_generation(&mut self, now: Instant, link: u64, id: &str, generation: i32) -> Result<(), String> {
        let Some((joined, current, since)) = &self.joined else {
            return Err("the member never joined".to_owned());
        };
        let is_current = joined == id && *current == generation;
        let is_unknown = generation > *current && self.joined_before != Some(generation);
        if !is_current && *since + OUTDATED < now || joined == id && is_unknown {
            return Err(format!("it joined generation {current} as {joined} at {since:?}"));
        }
        if joined == id
            && generation <= *current
            && let Some(before) = self.sent.insert(link, generation)
            && before > generation
        {
            return Err(format!("generation {generation} after {before}"));
        }
        Ok(())
    }

    /// A classic member commits only what its generation assigned or, in a cooperative group, the one before.
    fn check_committed(
        &self,
        request: &OffsetCommitRequest,
        names: &SortedMap<Uuid, String>,
    ) -> Result<(), String> {
        for topic in &request.topics {
            // From version 10 on, topics have IDs instead of names.
            let name = if topic.name.is_empty() { names.get(&topic.topic_id) } else { Some(&topic.name) };
            let name = name.ok_or_else(|| format!("no topic has the ID {}", topic.topic_id))?;
            for partition in &topic.partitions {
                let key = (name.clone(), partition.partition_index);
                if !self.assigned.0.contains(&key) && !self.assigned.1.contains(&key) {
                    return Err(format!("{key:?} is not assigned to the member"));
                }
            }
        }
        Ok(())
    }

    /// A member of the consumer protocol commits only what it reported last as its own, or was assigned since.
    fn check_reported(
        &self,
        request: &OffsetCommitRequest,
        names: &SortedMap<Uuid, String>,
    ) -> Result<(), String> {
        let is_of = |topic: &Topic, id: Uuid| topic.topic_id == id || names.get(&id) == Some(&topic.name);
        let own = || self.reported.0.iter().chain(&self.offered);
        for topic in &request.topics {
            for number in topic.partitions.iter().map(|partition| partition.partition_index) {
                if !own().any(|(id, own)| *own == number && is_of(topic, *id)) {
                    let name = names.get(&topic.topic_id).unwrap_or(&topic.name);
                    return Err(format!("the member gave {name} [{number}] up"));
                }
            }
        }
        Ok(())
    }

    /// Returns true if the member joined on another connection, which is still open. A heartbeat that leaves the previous
    /// coordinator may have waited for its connection, and is written after the member joined at the next one.
    fn has_joined_elsewhere(&self, link: u64) -> bool {
        self.joined_on.is_some_and(|on| on != link)
    }

    fn check_epoch(&mut self, now: Instant, epoch: i32) -> Result<(), String> {
        if epoch > 0 {
            if self.epoch != Some(epoch) {
                return Err(format!("the coordinator reported epoch {:?}", self.epoch));
            }
            return Ok(());
        }
        if epoch == -1 && self.terms.is_static {
            return Err("a static member leaves for good that only closes".to_owned());
        }
        if epoch == -2 && !self.terms.is_static {
            return Err("a dynamic member leaves as a static one".to_owned());
        }
        self.round += 1;
        self.end_epoch(now);
        Ok(())
    }

    pub(super) fn end_epoch(&mut self, now: Instant) {
        if self.epoch.take().is_some() {
            self.ended = Some(now);
        }
        (self.target, self.gives_up) = (SortedSet::new(), None);
        self.offered.clear();
        self.is_member = false;
    }
}
