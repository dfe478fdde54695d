import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.Future;
import java.util.stream.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.*;

/** The Java client with Ottla's embedded broker: every produced record is consumed once and in order. */
public class EmbeddedBrokerCheck {
    static final int PARTITIONS = 3;
    static final int RECORDS = 3000;
    static String servers;

    public static void main(String[] arguments) throws Exception {
        servers = arguments[0];
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", servers))) {
            for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
                checkCodec(admin, codec);
            }
            checkGroup(admin, "java-lz4", "java-group", Map.of("heartbeat.interval.ms", 200, "session.timeout.ms", 6000));
            checkGroup(admin, "java-lz4", "java-consumer-group", Map.of("group.protocol", "consumer"));
            checkShareGroup(admin, "java-lz4");
            checkAdmin(admin);
        }
        System.out.println("the Java client agrees");
    }

    static void checkCodec(Admin admin, String codec) throws Exception {
        String topic = "java-" + codec;
        admin.createTopics(List.of(new NewTopic(topic, PARTITIONS, (short) 2))).all().get();
        Map<String, Object> settings = Map.of("bootstrap.servers", servers, "compression.type", codec, "linger.ms", 5);
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (int i = 0; i < RECORDS; i++) {
                var record = new ProducerRecord<>(topic, i % PARTITIONS, 1_600_000_000_000L + i, "" + i, codec + "-" + i);
                record.headers().add("h", "x".getBytes(StandardCharsets.UTF_8)).add("h", null);
                sent.add(producer.send(record));
            }
            producer.flush();
        }
        for (int i = 0; i < RECORDS; i++) {
            same(sent.get(i).get().offset(), (long) (i / PARTITIONS), "the offset that was reported");
        }
        try (var consumer = consumer(Map.of())) {
            List<TopicPartition> partitions = IntStream.range(0, PARTITIONS).mapToObj(p -> new TopicPartition(topic, p)).toList();
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            long[] next = new long[PARTITIONS];
            for (var record : read(consumer, RECORDS)) {
                same(record.offset(), next[record.partition()]++, "the offset");
                long number = record.offset() * PARTITIONS + record.partition();
                same(record.key(), "" + number, "the key");
                same(record.value(), codec + "-" + number, "the value");
                same(record.headers().toArray().length, 2, "the headers");
            }
            same(consumer.endOffsets(partitions).get(partitions.get(0)), (long) RECORDS / PARTITIONS, "the end");
            // Record 1501 is the 501st of partition 1.
            var found = consumer.offsetsForTimes(Map.of(partitions.get(1), 1_600_000_000_000L + 1500));
            same(found.get(partitions.get(1)).offset(), 500L, "the offset of a timestamp");
        }
    }

    static void checkGroup(Admin admin, String topic, String group, Map<String, Object> more) throws Exception {
        Map<String, Object> settings = new HashMap<>(more);
        settings.putAll(Map.of("group.id", group, "auto.offset.reset", "earliest", "enable.auto.commit", false));
        boolean isNew = more.containsKey("group.protocol");
        Set<String> seen = new HashSet<>();
        try (var first = consumer(settings); var second = consumer(settings)) {
            first.subscribe(List.of(topic));
            second.subscribe(List.of(topic));
            long end = System.currentTimeMillis() + 60_000;
            while (System.currentTimeMillis() < end
                && (seen.size() < RECORDS || first.assignment().isEmpty() || second.assignment().isEmpty())) {
                for (var consumer : List.of(first, second)) {
                    for (var record : consumer.poll(Duration.ofMillis(100))) {
                        seen.add(record.partition() + "/" + record.offset());
                    }
                }
            }
            same(seen.size(), RECORDS, "the records that a group read");
            same(first.assignment().size() + second.assignment().size(), PARTITIONS, "the partitions that were assigned");
            var described = admin.describeConsumerGroups(List.of(group)).all().get().get(group);
            same(described.type(), isNew ? GroupType.CONSUMER : GroupType.CLASSIC, "the group's type");
            same(described.groupState(), GroupState.STABLE, "the group's state");
            same(described.members().size(), 2, "the group's members");
            for (var consumer : List.of(first, second)) {
                consumer.commitSync(consumer.assignment().stream()
                    .collect(Collectors.toMap(p -> p, p -> new OffsetAndMetadata(900, "mine"))));
            }
        }
        try (var third = consumer(settings)) {
            if (isNew) {
                third.subscribe(new SubscriptionPattern(topic.replace('4', '.')));
            } else {
                third.subscribe(List.of(topic));
            }
            var rest = read(third, PARTITIONS * 100);
            same(rest.stream().mapToLong(ConsumerRecord::offset).min().getAsLong(), 900L, "where a third member goes on");
        }
        var committed = admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
        same(committed.size(), PARTITIONS, "the partitions with a committed offset");
        admin.deleteConsumerGroups(List.of(group)).all().get();
    }

    /** Two members of a share group: released records are delivered again, all others once. */
    static void checkShareGroup(Admin admin, String topic) throws Exception {
        String group = "java-share";
        var resource = new ConfigResource(ConfigResource.Type.GROUP, group);
        var earliest = new AlterConfigOp(new ConfigEntry("share.auto.offset.reset", "earliest"), AlterConfigOp.OpType.SET);
        admin.incrementalAlterConfigs(Map.of(resource, List.of(earliest))).all().get();
        Map<String, Object> settings = Map.of("bootstrap.servers", servers, "group.id", group,
            "share.acknowledgement.mode", "explicit", "max.poll.records", 100);
        Map<String, Integer> deliveries = new HashMap<>();
        int released = 0;
        int accepted = 0;
        try (var first = new KafkaShareConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
             var second = new KafkaShareConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            first.subscribe(List.of(topic));
            second.subscribe(List.of(topic));
            long end = System.currentTimeMillis() + 60_000;
            while (System.currentTimeMillis() < end && accepted < RECORDS) {
                for (var consumer : List.of(first, second)) {
                    for (var record : consumer.poll(Duration.ofMillis(100))) {
                        int times = deliveries.merge(record.partition() + "/" + record.offset(), 1, Integer::sum);
                        // A member may release records that the application has not received, so there can be more.
                        same(record.deliveryCount().get() >= times, true, "deliveries are counted");
                        boolean again = times == 1 && record.offset() % 10 == 0;
                        consumer.acknowledge(record, again ? AcknowledgeType.RELEASE : AcknowledgeType.ACCEPT);
                        released += again ? 1 : 0;
                        accepted += again ? 0 : 1;
                    }
                    consumer.commitSync().values().forEach(error -> same(error, Optional.empty(), "an acknowledgement"));
                }
            }
        }
        same(accepted, RECORDS, "the records that a share group accepted");
        same(released, RECORDS / 10, "the records that it released first");
        var description = admin.describeShareGroups(List.of(group)).all().get().get(group);
        same(description.members().size(), 0, "the members that are left");
        var offsets = admin.listShareGroupOffsets(Map.of(group, new ListShareGroupOffsetsSpec()))
            .partitionsToOffsetInfo(group).get();
        same(offsets.size(), PARTITIONS, "the share group's partitions");
        for (var offset : offsets.values()) {
            same(offset.startOffset(), (long) RECORDS / PARTITIONS, "the share group's offset");
        }
        var listed = admin.listGroups(ListGroupsOptions.forShareGroups()).all().get().stream().map(GroupListing::groupId);
        same(listed.anyMatch(group::equals), true, "the share group is listed");
        admin.deleteShareGroups(List.of(group)).all().get();
    }

    static void checkAdmin(Admin admin) throws Exception {
        String topic = "java-admin";
        admin.createTopics(List.of(new NewTopic(topic, 2, (short) 3).configs(Map.of("retention.ms", "1000")))).all().get();
        admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(5))).all().get();
        var description = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
        same(description.partitions().size(), 5, "the partitions");
        same(description.partitions().get(0).replicas().size(), 3, "the replicas");
        var resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        var change = new AlterConfigOp(new ConfigEntry("max.message.bytes", "200"), AlterConfigOp.OpType.SET);
        admin.incrementalAlterConfigs(Map.of(resource, List.of(change))).all().get();
        var config = admin.describeConfigs(List.of(resource)).all().get().get(resource);
        same(config.get("retention.ms").value(), "1000", "the retention");
        same(config.get("max.message.bytes").value(), "200", "the largest message");
        same(admin.describeCluster().nodes().get().size(), 3, "the brokers");
        var partition = new TopicPartition("java-zstd", 0);
        admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(10))).all().get();
        same(admin.listOffsets(Map.of(partition, OffsetSpec.earliest())).partitionResult(partition).get().offset(), 10L, "the start");
        same(admin.listOffsets(Map.of(partition, OffsetSpec.maxTimestamp())).partitionResult(partition).get().offset(),
            (long) RECORDS / PARTITIONS - 1, "the offset of the largest timestamp");
        admin.deleteTopics(List.of(topic)).all().get();
        same(admin.listTopics().names().get().contains(topic), false, "a deleted topic is listed");
    }

    static KafkaConsumer<String, String> consumer(Map<String, Object> more) {
        Map<String, Object> settings = new HashMap<>(Map.of("bootstrap.servers", servers));
        settings.putAll(more);
        return new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    }

    static List<ConsumerRecord<String, String>> read(Consumer<String, String> consumer, int count) {
        List<ConsumerRecord<String, String>> records = new ArrayList<>();
        long end = System.currentTimeMillis() + 60_000;
        while (records.size() < count && System.currentTimeMillis() < end) {
            consumer.poll(Duration.ofMillis(500)).forEach(records::add);
        }
        same(records.size(), count, "the records that came back");
        return records;
    }

    static void same(Object is, Object expected, String what) {
        if (!is.equals(expected)) {
            System.err.println(what + ": " + is + " instead of " + expected);
            System.exit(1);
        }
    }
}
