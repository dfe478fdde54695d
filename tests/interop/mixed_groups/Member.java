// A member of a group, by Apache Kafka's client: SERVERS GROUP TOPIC PROTOCOL. What it prints is described in driver.py.

import java.time.Duration;
import java.util.*;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;

public class Member {
    static final TreeSet<Integer> held = new TreeSet<>();

    static synchronized void say(String words) {
        System.out.println(System.currentTimeMillis() + " " + words);
        System.out.flush();
    }

    static void sayHeld() {
        say("held " + (held.isEmpty() ? "-" : held.stream().map(String::valueOf).collect(Collectors.joining(","))));
    }

    public static void main(String[] args) throws Exception {
        Map<String, Object> settings = new HashMap<>(Map.of(
            "bootstrap.servers", args[0], "group.id", args[1], "auto.offset.reset", "earliest",
            "enable.auto.commit", "false", "max.poll.records", "50",
            "key.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer",
            "value.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer"));
        if (args[3].equals("consumer")) {
            settings.put("group.protocol", "consumer");
        } else {
            settings.put("session.timeout.ms", "6000");
            settings.put("heartbeat.interval.ms", "500");
            settings.put("partition.assignment.strategy", "org.apache.kafka.clients.consumer."
                + (args[3].equals("range") ? "RangeAssignor" : "CooperativeStickyAssignor"));
        }
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings);
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            consumer.wakeup();
            try {
                main.join(20_000);
            } catch (InterruptedException ignored) {
                // The process ends.
            }
        }));
        consumer.subscribe(List.of(args[2]), new ConsumerRebalanceListener() {
            public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                partitions.forEach(partition -> held.add(partition.partition()));
                sayHeld();
            }

            public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                partitions.forEach(partition -> held.remove(partition.partition()));
                sayHeld();
            }
        });
        try {
            while (true) {
                ConsumerRecords<byte[], byte[]> records;
                try {
                    records = consumer.poll(Duration.ofMillis(100));
                } catch (WakeupException ended) {
                    throw ended;
                } catch (KafkaException error) {
                    // In the consumer protocol the commit of a member that was stopped for too long fails here.
                    say("error " + error);
                    continue;
                }
                Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                for (ConsumerRecord<byte[], byte[]> record : records) {
                    say("got " + record.partition() + " " + record.offset());
                    offsets.put(new TopicPartition(record.topic(), record.partition()),
                        new OffsetAndMetadata(record.offset() + 1));
                }
                if (offsets.isEmpty()) {
                    continue;
                }
                try {
                    consumer.commitSync(offsets);
                    offsets.forEach((key, offset) -> say("commit " + key.partition() + " " + offset.offset()));
                } catch (WakeupException ended) {
                    consumer.commitSync(offsets);
                    offsets.forEach((key, offset) -> say("commit " + key.partition() + " " + offset.offset()));
                    throw ended;
                } catch (KafkaException error) {
                    say("error " + error);
                }
            }
        } catch (WakeupException ended) {
            consumer.close();
        }
    }
}
