// Produces and consumes with both interfaces of @confluentinc/kafka-javascript: kafka_javascript.js BROKERS. Prints results in the form
// of TAP. `cargo xtask suites --only kafka-javascript` runs it on Ottla's C library.
const fs = require('fs');
const { KafkaJS, librdkafkaVersion, Producer } = require('@confluentinc/kafka-javascript');

const brokers = process.argv[2];
const topic = `javascript-${process.pid}`;
const many = 1000;
let number = 0;

function holds(what, is) {
  number += 1;
  console.log(`${is ? 'ok' : 'not ok'} ${number} ${what}`);
  if (!is) process.exitCode = 1;
}

async function withPromises() {
  const kafka = new KafkaJS.Kafka({ kafkaJS: { brokers: brokers.split(',') } });
  const admin = kafka.admin();
  await admin.connect();
  await admin.createTopics({ topics: [{ topic, numPartitions: 2, replicationFactor: 1 }] });
  await admin.disconnect();
  const producer = kafka.producer();
  await producer.connect();
  const messages = Array.from({ length: many }, (_, n) => ({ key: `${n % 7}`, value: `${n}` }));
  await producer.send({ topic, messages });
  await producer.disconnect();
  holds('the promised interface produces', true);

  const consumer = kafka.consumer({ kafkaJS: { groupId: topic, fromBeginning: true } });
  await consumer.connect();
  await consumer.subscribe({ topics: [topic] });
  const found = new Set();
  await new Promise((done) => {
    consumer.run({
      eachMessage: async ({ message }) => {
        found.add(message.value.toString());
        if (found.size === many) done();
      },
    });
  });
  await consumer.disconnect();
  holds('the promised interface consumes as a member of a group', found.size === many);
}

function withCallbacks() {
  return new Promise((done) => {
    const producer = new Producer({ 'bootstrap.servers': brokers, dr_cb: true });
    producer.setPollInterval(20);
    producer.on('delivery-report', (error, report) => {
      holds('the interface with callbacks reports the delivery', !error && report.topic === topic);
      producer.disconnect(done);
    });
    producer.on('ready', () => producer.produce(topic, 0, Buffer.from('one more')));
    producer.connect();
  });
}

async function main() {
  holds(`the library is Ottla's: ${librdkafkaVersion}`, librdkafkaVersion.includes('ottla'));
  const loaded = fs.readFileSync('/proc/self/maps', 'utf8').split('\n').filter((line) => line.includes('librdkafka.so'));
  holds('one library is loaded', new Set(loaded.map((line) => line.split(/\s+/).pop())).size === 1);
  await withPromises();
  await withCallbacks();
  console.log(`1..${number}`);
  process.exit(process.exitCode);
}

main().catch((error) => {
  holds(`no error: ${error.stack || error}`, false);
  process.exit(1);
});
