// The Java client's part in bench/tails.sh: the time from send to the record's return by poll, at a fixed rate.
//
//   java -cp JARS Tails.java SERVERS TOPIC PARTITIONS RATE WARM-UP SECONDS

import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Arrays;
import java.util.Map;
import java.util.stream.IntStream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class Tails {
    public static void main(String[] args) throws Exception {
        String servers = args[0], topic = args[1];
        int partitions = Integer.parseInt(args[2]), rate = Integer.parseInt(args[3]);
        int warm = rate * Integer.parseInt(args[4]), total = warm + rate * Integer.parseInt(args[5]);
        double[] times = new double[total - warm];
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(
            Map.of("bootstrap.servers", servers), new ByteArrayDeserializer(), new ByteArrayDeserializer());
        var all = IntStream.range(0, partitions).mapToObj(p -> new TopicPartition(topic, p)).toList();
        consumer.assign(all);
        consumer.seekToBeginning(all);
        consumer.poll(Duration.ofSeconds(2));
        Thread producing = new Thread(() -> produce(servers, topic, partitions, rate, total));
        producing.start();
        for (int received = 0; received < total; ) {
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofSeconds(10))) {
                long sent = ByteBuffer.wrap(record.value()).getLong();
                if (received++ >= warm) times[received - 1 - warm] = (System.nanoTime() - sent) / 1000.0;
            }
        }
        producing.join();
        var system = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        Arrays.sort(times);
        int count = times.length;
        System.out.printf("%.0f %.0f %.0f %.0f %.0f%n", times[count / 2], times[(int) (count * 0.99)],
            times[(int) (count * 0.999)], times[count - 1], system.getProcessCpuTime() / (double) total);
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    static void produce(String servers, String topic, int partitions, int rate, int total) {
        KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(
            Map.of("bootstrap.servers", servers, "linger.ms", "0"), new ByteArraySerializer(), new ByteArraySerializer());
        long began = System.nanoTime();
        for (int i = 0; i < total; i++) {
            long due = began + i * 1_000_000_000L / rate;
            for (long wait = due - System.nanoTime(); wait > 0; wait = due - System.nanoTime()) {
                java.util.concurrent.locks.LockSupport.parkNanos(wait);
            }
            byte[] value = new byte[100];
            ByteBuffer.wrap(value).putLong(System.nanoTime());
            producer.send(new ProducerRecord<>(topic, i % partitions, null, value));
        }
        producer.flush();
    }
}
