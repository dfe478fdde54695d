//! Clusters of a client: created with its handle, or by its configuration.

use std::{ffi::c_int, ptr, sync::Arc};

use super::cluster::MockCluster;
use crate::{
    client::handle::Client,
    ffi::{argument::Ref, export},
};

export!(
    #[on(rk, ptr::null())]
    fn rd_kafka_mock_cluster_new(rk: Ref<Client>, broker_cnt: c_int) -> *const MockCluster {
        let Some(client) = rk.get() else { return ptr::null() };
        MockCluster::start(client.as_c(), Some(Arc::clone(client.logging())), broker_cnt)
            .map_or(ptr::null(), |cluster| Box::into_raw(Box::new(cluster)))
    }
);

export!(
    #[local(ptr::null())]
    fn rd_kafka_handle_mock_cluster(rk: Ref<Client>) -> *const MockCluster {
        rk.get().map_or(ptr::null(), Client::mock)
    }
);
