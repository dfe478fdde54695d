//! The dials of worlds of consumer groups.

use super::Setup;
use crate::dials::dials;

dials! {
    /// The dials, those that save most time first.
    pub(super) DIALS: Setup;
    "suffers-ms" 0 ms pace.suffers;
    "records-of-a-send" 1 number pace.records;
    "send-every" 100 number pace.send_every;
    "brokers" 1 number brokers;
    "topics" 1 topics topics;
    "partitions" 1 partitions topics;
    "static" 0 flag is_static;
    "commits" 0 number manners.commits;
    "stops-polling" 0 number manners.stops_polling;
    "thinks-ms" 0 ms manners.thinks;
    "in-parts" 0 flag manners.in_parts;
    "polls-while-asked" 0 flag manners.polls_while_asked;
    "initial-delay-ms" 0 ms initial_delay;
    "latency-us" 1000 us network.latency;
    "jitter-us" 0 us network.jitter;
    "window" 1048576 number network.window;
    "cut-percent" 0 number network.cut_percent;
}
