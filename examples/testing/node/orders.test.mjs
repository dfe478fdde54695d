// A test with a broker of its own: `ottla` is on the PATH, and `npm install kafkajs`. Run by `node --test`.
import assert from 'node:assert';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import test from 'node:test';

import { Kafka, logLevel } from 'kafkajs';

// Starts a broker on a free port. Returns its address, and a function that ends it.
async function startBroker(...options) {
  const broker = spawn('ottla', ['broker', '--port', '0', ...options], { stdio: ['ignore', 'pipe', 'inherit'] });
  for await (const line of createInterface({ input: broker.stdout })) {
    const [name, value] = line.split('=');
    if (name === 'bootstrap.servers') {
      const stop = async () => {
        broker.kill();
        await once(broker, 'exit');
      };
      return { servers: value, stop };
    }
  }
  throw new Error('the broker ended');
}

test('orders come back in their order', async () => {
  const { servers, stop } = await startBroker();
  const kafka = new Kafka({ brokers: servers.split(','), logLevel: logLevel.ERROR });
  const producer = kafka.producer();
  const consumer = kafka.consumer({ groupId: 'test' });
  try {
    await producer.connect();
    const messages = [0, 1, 2].map((number) => ({ key: 'customer-1', value: `order ${number}` }));
    await producer.send({ topic: 'orders', messages });

    await consumer.connect();
    await consumer.subscribe({ topics: ['orders'], fromBeginning: true });
    const seen = [];
    await new Promise((resolve, reject) => {
      const eachMessage = async ({ message }) => {
        seen.push(message.value.toString());
        if (seen.length === 3) resolve();
      };
      consumer.run({ eachMessage }).catch(reject);
    });
    assert.deepEqual(seen, ['order 0', 'order 1', 'order 2']);
  } finally {
    await consumer.disconnect();
    await producer.disconnect();
    await stop();
  }
});
