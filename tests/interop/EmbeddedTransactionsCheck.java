import java.time.Duration;
import java.util.*;
import java.util.stream.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.*;
import org.apache.kafka.common.serialization.*;

/** The Java client's transactions with Ottla's embedded broker: SERVERS. */
public class EmbeddedTransactionsCheck {
    static final int PARTITIONS = 3;
    static final int RECORDS = 600;
    static final int BATCH = 20;
    static String servers;

    public static void main(String[] arguments) throws Exception {
        servers = arguments[0];
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", servers))) {
            checkCommitAndAbort(admin);
            checkFencing(admin);
            checkCopy(admin, "classic", Map.of("heartbeat.interval.ms", 200, "session.timeout.ms", 6000));
            checkCopy(admin, "consumer", Map.of("group.protocol", "consumer"));
            checkAdmin(admin);
        }
        System.out.println("the Java client's transactions agree");
    }

    static void checkCommitAndAbort(Admin admin) throws Exception {
        String topic = newTopic(admin, "java-txn-ends");
        List<String> expected = new ArrayList<>();
        try (var producer = producer("java-ends")) {
            producer.initTransactions();
            for (int i = 0; i < 60; i++) {
                boolean commits = i % 3 != 1;
                producer.beginTransaction();
                for (int partition = 0; partition < PARTITIONS; partition++) {
                    producer.send(new ProducerRecord<>(topic, partition, "" + i, (commits ? "good " : "bad ") + i));
                }
                if (commits) {
                    producer.commitTransaction();
                    expected.add("good " + i);
                } else {
                    if (i % 2 == 0) {
                        producer.flush();
                    }
                    producer.abortTransaction();
                }
            }
        }
        for (int partition = 0; partition < PARTITIONS; partition++) {
            same(values(topic, partition, "read_committed"), expected, "committed records");
        }
        long all = values(topic, 0, "read_uncommitted").size();
        require(all > expected.size(), "aborted records are in the log: " + all);
    }

    static void checkFencing(Admin admin) throws Exception {
        String topic = newTopic(admin, "java-txn-fencing");
        try (var first = producer("java-fencing"); var second = producer("java-fencing")) {
            first.initTransactions();
            first.beginTransaction();
            first.send(new ProducerRecord<>(topic, 0, "k", "of the first")).get();
            second.initTransactions();
            try {
                first.commitTransaction();
                throw new IllegalStateException("the first producer was not fenced");
            } catch (ProducerFencedException | InvalidProducerEpochException expected) {
            }
            second.beginTransaction();
            second.send(new ProducerRecord<>(topic, 0, "k", "of the second"));
            second.commitTransaction();
        }
        same(values(topic, 0, "read_committed"), List.of("of the second"), "the records of the second producer");
    }

    /** Copies records with their offsets; every third transaction aborts and is done again. */
    static void checkCopy(Admin admin, String protocol, Map<String, Object> more) throws Exception {
        String from = newTopic(admin, "java-txn-from-" + protocol), to = newTopic(admin, "java-txn-to-" + protocol);
        try (var producer = new KafkaProducer<>(
                Map.<String, Object>of("bootstrap.servers", servers), new StringSerializer(), new StringSerializer())) {
            for (int i = 0; i < RECORDS; i++) {
                producer.send(new ProducerRecord<>(from, i % PARTITIONS, "" + i, "value " + i));
            }
        }
        Map<String, Object> settings = new HashMap<>(more);
        settings.putAll(Map.of("group.id", "java-copy-" + protocol, "max.poll.records", BATCH));
        int copied = 0, transactions = 0;
        try (var producer = producer("java-copy-" + protocol); var consumer = consumer("read_committed", settings)) {
            consumer.subscribe(List.of(from));
            producer.initTransactions();
            long end = System.currentTimeMillis() + 60_000;
            while (copied < RECORDS && System.currentTimeMillis() < end) {
                var records = consumer.poll(Duration.ofMillis(100));
                if (records.isEmpty()) {
                    continue;
                }
                producer.beginTransaction();
                Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                for (var record : records) {
                    producer.send(new ProducerRecord<>(to, record.partition(), record.key(), record.value()));
                    offsets.put(new TopicPartition(from, record.partition()), new OffsetAndMetadata(record.offset() + 1));
                }
                producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                if (transactions++ % 3 == 2) {
                    producer.abortTransaction();
                    var committed = consumer.committed(consumer.assignment());
                    committed.forEach((partition, offset) -> consumer.seek(partition, offset == null ? 0 : offset.offset()));
                } else {
                    producer.commitTransaction();
                    copied += records.count();
                }
            }
            same(copied, RECORDS, "copied records");
            // The client leaves out partitions whose offset still waits for its marker.
            var done = Set.of((long) RECORDS / PARTITIONS);
            var stable = new ListConsumerGroupOffsetsOptions().requireStable(true);
            Map<TopicPartition, OffsetAndMetadata> committed = Map.of();
            while (committed.size() < PARTITIONS && System.currentTimeMillis() < end) {
                committed = admin.listConsumerGroupOffsets("java-copy-" + protocol, stable)
                    .partitionsToOffsetAndMetadata().get();
            }
            same(committed.size(), PARTITIONS, "the partitions with offsets");
            var offsets = committed.values().stream().map(OffsetAndMetadata::offset).collect(Collectors.toSet());
            same(offsets, done, "the offsets");
        }
        for (int p = 0; p < PARTITIONS; p++) {
            int partition = p;
            var expected = IntStream.range(0, RECORDS).filter(i -> i % PARTITIONS == partition).mapToObj(i -> "value " + i);
            same(values(to, partition, "read_committed"), expected.toList(), "the copies");
        }
    }

    static void checkAdmin(Admin admin) throws Exception {
        String topic = newTopic(admin, "java-txn-admin");
        var partition = new TopicPartition(topic, 0);
        try (var producer = producer("java-admin")) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, 0, "k", "open")).get();
            var described = admin.describeTransactions(List.of("java-admin")).description("java-admin").get();
            same(described.state(), TransactionState.ONGOING, "the state");
            same(described.topicPartitions(), Set.of(partition), "the partitions");
            var listed = admin.listTransactions().all().get().stream()
                .filter(one -> one.transactionalId().equals("java-admin")).toList();
            same(listed.size(), 1, "the listed transactions");
            same(listed.get(0).producerId(), described.producerId(), "the producer ID");
            var active = admin.describeProducers(List.of(partition)).partitionResult(partition).get().activeProducers();
            same(active.get(0).currentTransactionStartOffset(), OptionalLong.of(0), "the start of the transaction");
            same(end(topic, "read_committed"), 0L, "the last stable offset");
            same(end(topic, "read_uncommitted"), 1L, "the high watermark");
            // An administrator ends it.
            var state = active.get(0);
            admin.abortTransaction(new AbortTransactionSpec(partition, state.producerId(),
                (short) (state.producerEpoch()), state.coordinatorEpoch().orElse(0))).all().get();
            same(end(topic, "read_committed"), 2L, "the last stable offset after the abort");
            admin.fenceProducers(List.of("java-admin")).all().get();
            try {
                producer.commitTransaction();
                throw new IllegalStateException("a fenced producer has committed");
            } catch (ProducerFencedException | InvalidProducerEpochException expected) {
            }
        }
    }

    static long end(String topic, String isolation) {
        var partition = new TopicPartition(topic, 0);
        try (var consumer = consumer(isolation, Map.of())) {
            return consumer.endOffsets(List.of(partition)).get(partition);
        }
    }

    static List<String> values(String topic, int number, String isolation) {
        var partition = new TopicPartition(topic, number);
        List<String> values = new ArrayList<>();
        try (var consumer = consumer(isolation, Map.of())) {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            long end = consumer.endOffsets(List.of(partition)).get(partition);
            long deadline = System.currentTimeMillis() + 60_000;
            while (consumer.position(partition) < end) {
                require(System.currentTimeMillis() < deadline, "the consumer is stuck at " + consumer.position(partition));
                consumer.poll(Duration.ofMillis(100)).forEach(record -> values.add(record.value()));
            }
        }
        return values;
    }

    static String newTopic(Admin admin, String name) throws Exception {
        admin.createTopics(List.of(new NewTopic(name, PARTITIONS, (short) 3))).all().get();
        return name;
    }

    static KafkaProducer<String, String> producer(String id) {
        Map<String, Object> settings = Map.of("bootstrap.servers", servers, "transactional.id", id, "linger.ms", 5);
        return new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
    }

    static KafkaConsumer<String, String> consumer(String isolation, Map<String, Object> more) {
        Map<String, Object> settings = new HashMap<>(more);
        settings.putAll(Map.of("bootstrap.servers", servers, "isolation.level", isolation,
            "auto.offset.reset", "earliest", "enable.auto.commit", false));
        return new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    }

    static void require(boolean holds, String what) {
        if (!holds) {
            throw new IllegalStateException(what);
        }
    }

    static void same(Object is, Object expected, String what) {
        require(Objects.equals(is, expected), what + ": " + is + " instead of " + expected);
    }
}
