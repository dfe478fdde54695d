// A member of a share group, by Apache Kafka's client: SERVERS GROUP TOPIC. It prints the value of each record
// before it accepts it, and again once the acceptance is confirmed, until the end of its input.

import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.serialization.StringDeserializer;

public class ShareMember {
    private static volatile boolean hasEnded;

    private static void readInput() {
        try {
            System.in.readAllBytes();
        } catch (java.io.IOException error) {
            System.err.println(error);
        }
        hasEnded = true;
    }

    public static void main(String[] args) throws Exception {
        Map<String, Object> settings = new HashMap<>(Map.of(
            "bootstrap.servers", args[0], "group.id", args[1], "max.poll.records", "20",
            "share.acknowledgement.mode", "explicit",
            "key.deserializer", StringDeserializer.class, "value.deserializer", StringDeserializer.class));
        new Thread(ShareMember::readInput).start();
        try (KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(settings)) {
            consumer.subscribe(List.of(args[2]));
            while (!hasEnded) {
                List<String> accepted = new ArrayList<>();
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    System.out.println("unsure " + record.value());
                    consumer.acknowledge(record, AcknowledgeType.ACCEPT);
                    accepted.add(record.value());
                }
                System.out.flush();
                boolean failed = consumer.commitSync().values().stream().anyMatch(Optional::isPresent);
                if (!failed) {
                    accepted.forEach(value -> System.out.println("accepted " + value));
                }
                System.out.flush();
            }
        }
    }
}
