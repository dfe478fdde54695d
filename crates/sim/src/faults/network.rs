//! Faults of links, name resolution, hosts and clocks.

use super::{FaultKind, Heal, Strike};
use crate::world::{Direction, Resolver};

impl Strike<'_> {
    /// Injects a fault of these kinds; returns false if it is of another kind.
    pub(super) fn strike_network(&mut self, kind: FaultKind) -> bool {
        match kind {
            FaultKind::ResetLink => self.reset_link(),
            FaultKind::StallLink => self.stall_link(),
            FaultKind::PartitionNetwork => self.partition_network(),
            FaultKind::StopResolver => self.stop_resolver(),
            FaultKind::CutOneWay => self.cut_one_way(),
            FaultKind::HalfOpenLink => self.half_open_link(),
            FaultKind::MisdirectResolver => self.misdirect_resolver(),
            FaultKind::SuspendHost => self.suspend_host(),
            FaultKind::MoveWallClocks => self.move_wall_clocks(),
            _ => return false,
        }
        true
    }

    /// Breaks a connection.
    fn reset_link(&mut self) {
        self.world.reset_a_link();
    }

    /// Stalls a connection in one direction or both.
    fn stall_link(&mut self) {
        self.world.stall_a_link(self.for_a_while);
    }

    /// Drops all packets between a client and a broker.
    fn partition_network(&mut self) {
        let (now, broker, until) = (self.world.now, self.broker, self.until);
        let client = self.rng.below(self.world.clients.len() as u64) as usize;
        self.world.trace.note(now, format_args!("client {client} can't reach broker {}", broker.0));
        self.world.partitioned.insert((client, broker));
        self.heals.push((until, Heal::Connect(client, broker)));
    }

    /// Resolves no name.
    fn stop_resolver(&mut self) {
        let (now, until) = (self.world.now, self.until);
        self.world.trace.note(now, format_args!("no name is resolved"));
        self.world.resolver = Resolver::Down;
        self.heals.push((until, Heal::Resolver));
    }

    /// Drops packets between a client and a broker in one direction.
    fn cut_one_way(&mut self) {
        let (now, broker, until) = (self.world.now, self.broker, self.until);
        let client = self.rng.below(self.world.clients.len() as u64) as usize;
        let direction = [Direction::ToBroker, Direction::ToClient][self.rng.below(2) as usize];
        self.world
            .trace
            .note(now, format_args!("client {client}, broker {}: no bytes pass {direction:?}", broker.0));
        self.world.one_way.insert((client, broker, direction));
        self.heals.push((until, Heal::TwoWays(client, broker, direction)));
    }

    /// Drops a connection at the broker without notifying the client.
    fn half_open_link(&mut self) {
        self.world.half_open_a_link();
    }

    /// Resolves names to no, several or wrong addresses.
    fn misdirect_resolver(&mut self) {
        let (now, until) = (self.world.now, self.until);
        let responses = [Resolver::Empty, Resolver::Several, Resolver::Several, Resolver::Wrong];
        self.world.resolver = responses[self.rng.below(responses.len() as u64) as usize];
        self.world.trace.note(now, format_args!("the resolver's results are {:?}", self.world.resolver));
        self.heals.push((until, Heal::Resolver));
    }

    /// Suspends the host of a client.
    fn suspend_host(&mut self) {
        let (now, for_a_while, until) = (self.world.now, self.for_a_while, self.until);
        let client = self.rng.below(self.world.clients.len() as u64) as usize;
        self.world.trace.note(now, format_args!("client {client} sleeps for {for_a_while:?}"));
        self.world.suspend(client, until);
    }

    /// Moves the wall clocks of the clients.
    fn move_wall_clocks(&mut self) {
        let now = self.world.now;
        self.world.wall_skew_ms = self.rng.below(7_200_000) as i64 - 3_600_000;
        self.world.trace.note(now, format_args!("the wall clocks jump to {} ms", self.world.wall_skew_ms));
    }
}
