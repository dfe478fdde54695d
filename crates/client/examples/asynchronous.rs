//! Async code: any executor runs the futures. This example has one of a few lines; with tokio, `main` would be
//! `#[tokio::main] async fn`.
//!
//!     cargo run --package ottla --example asynchronous

mod support;

use std::{
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake},
    thread::{self, Thread},
    time::Duration,
};

use ottla::{Admin, Consumer, NewTopic, Offset, Producer, Record};

const TIMEOUT: Duration = Duration::from_secs(10);

async fn run() -> support::Result {
    let brokers = support::Brokers::find()?;
    let config = brokers.config()?;

    let admin = Admin::new(&config)?;
    let created = admin.create_topics_async(&[NewTopic::new("example-asynchronous", 2, 1)], TIMEOUT).await?;
    println!("{created:?}");

    let producer = Producer::new(&config)?;
    let topic = producer.topic("example-asynchronous");
    // Waits for room in the queue, then for the brokers.
    let written = topic.deliver_async(Record::new().value("first").partition(0)).await?;
    println!("offset {:?}", written.offset);
    // Many records in flight at the same time.
    let mut deliveries = Vec::new();
    for value in ["second", "third"] {
        deliveries.push(topic.send_tracked(Record::new().value(value).partition(0))?);
    }
    for delivery in deliveries {
        delivery.await?;
    }
    producer.flush_async().await;

    let consumer = Consumer::new(&config)?;
    consumer.assign(&[("example-asynchronous", 0, Offset::Beginning)])?;
    for expected in ["first", "second", "third"] {
        let message = consumer.next_async().await?;
        assert_eq!(message.value(), Some(expected.as_bytes()));
    }
    Ok(())
}

/// Runs the example.
pub fn main() -> support::Result {
    block_on(run())
}

/// An executor of one future: parks the thread until the future can continue.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(thread::current())).into();
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
