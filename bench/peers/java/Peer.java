// The Java client (kafka-clients): the same jobs as the other peers.

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.AppInfoParser;

public class Peer {
    static final Map<String, String> values = new HashMap<>();
    static final Properties properties = new Properties();

    public static void main(String[] args) throws Exception {
        for (int i = 1; i + 1 < args.length; i += 2) {
            if (args[i].equals("--set")) {
                String[] pair = args[i + 1].split("=", 2);
                properties.put(pair[0], pair[1]);
            } else {
                values.put(args[i].substring(2), args[i + 1]);
            }
        }
        properties.put("bootstrap.servers", values.get("bootstrap"));
        switch (args[0]) {
            case "produce" -> produce();
            case "latency" -> latency();
            case "consume" -> consume();
            case "steady" -> steady();
            default -> throw new IllegalArgumentException("there is no job " + args[0]);
        }
    }

    static int number(String name) {
        return Integer.parseInt(values.get(name));
    }

    static int number(String name, int otherwise) {
        return values.containsKey(name) ? number(name) : otherwise;
    }

    static KafkaProducer<byte[], byte[]> producer() {
        properties.put("compression.type", values.get("codec"));
        properties.put("acks", values.get("acks"));
        if (number("transaction", 0) > 0) {
            properties.put("transactional.id", "bench-" + ProcessHandle.current().pid());
        } else if (number("flush", 0) == 0) {
            properties.put("enable.idempotence", "false");
        }
        return new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer());
    }

    static List<byte[]> payloads() throws Exception {
        byte[] bytes = Files.readAllBytes(Path.of(values.get("payloads")));
        int size = number("size");
        List<byte[]> payloads = new ArrayList<>();
        for (int start = 0; start + size <= bytes.length; start += size) {
            payloads.add(Arrays.copyOfRange(bytes, start, start + size));
        }
        return payloads;
    }

    static void report(long began, long messages, long errors, long bytes) {
        System.out.printf("{\"version\":\"%s\",\"messages\":%d,\"errors\":%d,\"bytes\":%d,\"seconds\":%.6f%s}%n",
            AppInfoParser.getVersion(), messages, errors, bytes, (System.nanoTime() - began) / 1e9, percentiles());
    }

    /** The durations of commits or flushes, in microseconds. */
    static final List<Double> ends = new ArrayList<>();

    static String percentiles() {
        if (ends.isEmpty()) return "";
        ends.sort(null);
        int last = ends.size() - 1;
        return String.format(",\"p50_us\":%.1f,\"p99_us\":%.1f,\"p999_us\":%.1f", ends.get((int) (last * 0.5)),
            ends.get((int) (last * 0.99)), ends.get((int) (last * 0.999)));
    }

    /** Ends a transaction, or flushes, and begins the next one. */
    static void endPart(KafkaProducer<byte[], byte[]> producer, int number, int messages, boolean transactional) {
        long began = System.nanoTime();
        if (number > 0) {
            if (transactional) producer.commitTransaction();
            else producer.flush();
            ends.add((System.nanoTime() - began) / 1000.0);
        }
        if (transactional && number < messages) producer.beginTransaction();
    }

    static void produce() throws Exception {
        KafkaProducer<byte[], byte[]> producer = producer();
        List<byte[]> payloads = payloads();
        String topic = values.get("topic");
        int messages = number("messages"), partitions = number("partitions");
        boolean roundRobin = "round-robin".equals(values.get("spread"));
        AtomicLong delivered = new AtomicLong(), errors = new AtomicLong();
        Callback done = (metadata, error) -> {
            delivered.incrementAndGet();
            if (error != null) errors.incrementAndGet();
        };
        boolean transactional = number("transaction", 0) > 0;
        int part = Math.max(number("transaction", 0), number("flush", 0));
        if (transactional) producer.initTransactions();
        long began = System.nanoTime();
        for (int i = 0, next = 0; i < messages; i++, next = next + 1 == payloads.size() ? 0 : next + 1) {
            if (part > 0 && i % part == 0) endPart(producer, i, messages, transactional);
            Integer partition = roundRobin ? i % partitions : null;
            producer.send(new ProducerRecord<>(topic, partition, null, payloads.get(next)), done);
        }
        if (part > 0) endPart(producer, messages, messages, transactional);
        producer.flush();
        report(began, delivered.get(), errors.get(), 0);
        producer.close(Duration.ZERO);
    }

    static void latency() throws Exception {
        properties.put("linger.ms", "0");
        KafkaProducer<byte[], byte[]> producer = producer();
        List<byte[]> payloads = payloads();
        int messages = number("messages"), warm = messages / 10;
        double[] times = new double[messages];
        for (int i = 0; i < messages + warm; i++) {
            long began = System.nanoTime();
            producer.send(new ProducerRecord<>(values.get("topic"), 0, null, payloads.get(i % payloads.size()))).get();
            if (i >= warm) times[i - warm] = (System.nanoTime() - began) / 1000.0;
        }
        Arrays.sort(times);
        System.out.printf("{\"version\":\"%s\",\"messages\":%d,\"errors\":0,\"p50_us\":%.1f,\"p99_us\":%.1f,\"p999_us\":%.1f}%n",
            AppInfoParser.getVersion(), messages, times[(int) ((messages - 1) * 0.5)], times[(int) ((messages - 1) * 0.99)],
            times[(int) ((messages - 1) * 0.999)]);
        producer.close(Duration.ZERO);
    }

    /** The given number of records per second, each timed from send to its callback. */
    static void steady() throws Exception {
        properties.put("compression.type", values.get("codec"));
        properties.put("acks", values.get("acks"));
        KafkaProducer<byte[], byte[]> producer =
            new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer());
        List<byte[]> payloads = payloads();
        int rate = number("rate"), warm = number("warm") * rate, partitions = number("partitions");
        int messages = warm + number("seconds") * rate;
        double[] times = new double[messages];
        AtomicLong errors = new AtomicLong();
        long began = System.nanoTime();
        for (int i = 0; i < messages; i++) {
            long wait = i * 1_000_000_000L / rate - (System.nanoTime() - began);
            if (wait > 0) Thread.sleep(wait / 1_000_000, (int) (wait % 1_000_000));
            int number = i;
            long sent = System.nanoTime();
            producer.send(new ProducerRecord<>(values.get("topic"), i % partitions, null, payloads.get(i % payloads.size())),
                (metadata, error) -> {
                    times[number] = (System.nanoTime() - sent) / 1000.0;
                    if (error != null) errors.incrementAndGet();
                });
        }
        producer.flush();
        double[] counted = Arrays.copyOfRange(times, warm, messages);
        Arrays.sort(counted);
        int last = counted.length - 1;
        System.out.printf("{\"version\":\"%s\",\"messages\":%d,\"errors\":%d,\"p50_us\":%.1f,\"p99_us\":%.1f,\"p999_us\":%.1f,\"max_us\":%.1f}%n",
            AppInfoParser.getVersion(), counted.length, errors.get(), counted[(int) (last * 0.5)], counted[(int) (last * 0.99)],
            counted[(int) (last * 0.999)], counted[last]);
        producer.close(Duration.ZERO);
    }

    static void consume() {
        properties.put("auto.offset.reset", "earliest");
        properties.put("enable.auto.commit", "false");
        properties.put("isolation.level", values.getOrDefault("isolation", "read_uncommitted"));
        KafkaConsumer<byte[], byte[]> consumer =
            new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        List<TopicPartition> partitions = new ArrayList<>();
        for (int partition = 0; partition < number("partitions"); partition++) {
            partitions.add(new TopicPartition(values.get("topic"), partition));
        }
        long began = System.nanoTime(), received = 0, bytes = 0, check = 0;
        consumer.assign(partitions);
        consumer.seekToBeginning(partitions);
        while (received < number("messages") && System.nanoTime() - began < 60_000_000_000L) {
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofSeconds(1))) {
                received++;
                bytes += record.value().length;
                if (record.value().length > 0) check += record.value()[0];
            }
        }
        report(began, received, 0, bytes);
        Runtime.getRuntime().halt(check == -1 ? 1 : 0);
    }
}
