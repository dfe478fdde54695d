// A copier, by Apache Kafka's clients: SERVERS GROUP INPUT OUTPUT TRANSACTIONAL-ID. What it prints is described in driver.py.

import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.*;
import org.apache.kafka.common.serialization.*;

public class Copier {
    static final int RECORDS = 750;
    static final Map<Integer, List<ConsumerRecord<byte[], byte[]>>> waiting = new TreeMap<>();
    static volatile boolean stops = false;

    static synchronized void say(String words) {
        System.out.println(System.currentTimeMillis() + " " + words);
        System.out.flush();
    }

    static int count() {
        return waiting.values().stream().mapToInt(List::size).sum();
    }

    public static void main(String[] args) throws Exception {
        String source = args[2], target = args[3];
        KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(Map.of(
            "bootstrap.servers", args[0], "transactional.id", args[4], "transaction.timeout.ms", "20000", "linger.ms", "5",
            "delivery.timeout.ms", "15000", "request.timeout.ms", "10000"), new ByteArraySerializer(), new ByteArraySerializer());
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(Map.of(
            "bootstrap.servers", args[0], "group.id", args[1], "auto.offset.reset", "earliest", "enable.auto.commit", "false",
            "isolation.level", "read_committed", "session.timeout.ms", "6000", "heartbeat.interval.ms", "500",
            "max.poll.records", "750", "partition.assignment.strategy", "org.apache.kafka.clients.consumer.RangeAssignor"),
            new ByteArrayDeserializer(), new ByteArrayDeserializer());
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            stops = true;
            try {
                main.join(20_000);
            } catch (InterruptedException ignored) {
                // The process ends.
            }
        }));
        producer.initTransactions();
        consumer.subscribe(List.of(source), new ConsumerRebalanceListener() {
            public void onPartitionsAssigned(Collection<TopicPartition> partitions) {}

            public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                partitions.forEach(partition -> waiting.remove(partition.partition()));
            }
        });
        Random random = new Random();
        while (!stops) {
            long end = System.currentTimeMillis() + 2000;
            while (!stops && count() < RECORDS && System.currentTimeMillis() < end) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                    waiting.computeIfAbsent(record.partition(), partition -> new ArrayList<>()).add(record);
                }
            }
            if (count() == 0) {
                continue;
            }
            try {
                copy(producer, consumer, source, target, random.nextDouble() < 0.1);
            } catch (ProducerFencedException | OutOfOrderSequenceException | AuthorizationException error) {
                say("error " + error);
                System.exit(3);
            } catch (KafkaException error) {
                say("error " + error);
                try {
                    producer.abortTransaction();
                } catch (KafkaException second) {
                    say("error " + second);
                    Runtime.getRuntime().halt(3);
                }
                say("aborted " + error.getClass().getSimpleName());
                rewind(consumer);
            }
        }
        consumer.close();
        producer.close();
    }

    static void copy(KafkaProducer<byte[], byte[]> producer, KafkaConsumer<byte[], byte[]> consumer, String source, String target,
        boolean aborts) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        int count = count();
        producer.beginTransaction();
        for (List<ConsumerRecord<byte[], byte[]>> records : waiting.values()) {
            for (ConsumerRecord<byte[], byte[]> record : records) {
                String value = new String(record.value());
                byte[] copy = (record.partition() + ":" + record.offset() + ":" + value).getBytes();
                producer.send(new ProducerRecord<>(target, Integer.parseInt(value) % 3, null, copy));
                offsets.put(new TopicPartition(source, record.partition()), new OffsetAndMetadata(record.offset() + 1));
            }
        }
        producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
        if (aborts) {
            producer.abortTransaction();
            say("aborted on-purpose");
            rewind(consumer);
            return;
        }
        producer.commitTransaction();
        waiting.clear();
        say("committed " + count);
    }

    /** Reads again from what is committed. */
    static void rewind(KafkaConsumer<byte[], byte[]> consumer) {
        waiting.clear();
        Set<TopicPartition> assigned = consumer.assignment();
        Map<TopicPartition, OffsetAndMetadata> committed = consumer.committed(assigned);
        for (TopicPartition partition : assigned) {
            OffsetAndMetadata offset = committed.get(partition);
            if (offset == null) {
                consumer.seekToBeginning(List.of(partition));
            } else {
                consumer.seek(partition, offset.offset());
            }
        }
    }
}
