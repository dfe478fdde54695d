//! The name, type, pointer and configuration of a client, and `rd_kafka_brokers_add`.

use std::{
    ffi::{c_char, c_int},
    ptr,
};

use crate::{
    client::{conf::Conf, core::Core, handle::Client, topic_conf::TopicConf},
    ffi::{
        argument::{Ref, Text},
        export,
    },
};

export!(
    #[local(ptr::null())]
    fn rd_kafka_name(rk: Ref<Client>) -> *const c_char {
        rk.get().map_or(ptr::null(), |client| client.public_name().as_ptr())
    }
);

export!(
    #[local(0)]
    fn rd_kafka_type(rk: Ref<Client>) -> c_int {
        rk.get().map_or(0, |client| (!client.is_producer()).into())
    }
);

export!(
    #[local(ptr::null_mut())]
    fn rd_kafka_opaque(rk: Ref<Client>) -> *mut std::ffi::c_void {
        rk.get().map_or(ptr::null_mut(), |client| client.conf.opaque.0)
    }
);

export!(
    #[local(ptr::null())]
    fn rd_kafka_conf(rk: Ref<Client>) -> *const Conf {
        rk.get().map_or(ptr::null(), |client| client.conf.as_ptr().cast_const())
    }
);

export!(
    #[on(rk, 0)]
    fn rd_kafka_brokers_add(rk: Ref<Client>, brokerlist: Text) -> c_int {
        let (Some(client), Some(list)) = (rk.get(), brokerlist.get()) else { return 0 };
        let mut raw = client.raw.lock();
        let known = raw.get("bootstrap.servers").unwrap_or("").to_owned();
        let mut servers: Vec<&str> = known.split(',').filter(|server| !server.is_empty()).collect();
        let mut count = 0;
        for server in list.split(',').map(str::trim).filter(|server| !server.is_empty()) {
            servers.push(server);
            match raw.set("bootstrap.servers", &servers.join(",")) {
                Ok(()) => count += 1,
                Err(_) => {
                    servers.pop();
                }
            }
        }
        drop(raw);
        if count > 0 {
            let list = servers.join(",");
            let _ = match client.core() {
                Ok(Core::Producer(producer, _)) => producer.add_bootstrap_servers(&list),
                Ok(Core::Consumer(consumer)) => consumer.add_bootstrap_servers(&list),
                Ok(Core::Share(consumer)) => consumer.add_bootstrap_servers(&list),
                Err(_) => Ok(()),
            };
        }
        count
    }
);

export!(
    #[local(ptr::null_mut())]
    fn rd_kafka_default_topic_conf_dup(rk: Ref<Client>) -> *mut TopicConf {
        rk.get().map_or(ptr::null_mut(), |client| {
            Box::into_raw(Box::new(client.default_topic_conf().duplicate()))
        })
    }
);
