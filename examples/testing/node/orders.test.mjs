// A test with a broker of its own: `ottla` is on the PATH, and `npm install kafkajs`. Run by `node --test`.
import assert from 'node:assert';
import test from 'node:test';

import { Kafka, logLevel } from 'kafkajs';

import { OttlaBroker } from './ottla-broker.mjs';

test('orders come back in their order', async () => {
  const broker = await OttlaBroker.start();
  const kafka = new Kafka({ brokers: broker.bootstrapServers.split(','), logLevel: logLevel.ERROR });
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
    await broker.stop();
  }
});
