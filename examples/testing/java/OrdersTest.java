import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** A test with a broker of its own: `ottla` is on the PATH. As a program: javac -cp 'JARS/*' -d out *.java && java -cp 'out:JARS/*' OrdersTest */
public class OrdersTest {
    public static void main(String[] arguments) throws Exception {
        List<String> sent = List.of("order 0", "order 1", "order 2");
        List<String> seen = new ArrayList<>();
        try (OttlaBroker broker = OttlaBroker.start()) {
            Map<String, Object> producing = Map.of("bootstrap.servers", broker.bootstrapServers());
            StringSerializer texts = new StringSerializer();
            try (KafkaProducer<String, String> producer = new KafkaProducer<>(producing, texts, texts)) {
                for (String order : sent) {
                    producer.send(new ProducerRecord<>("orders", "customer-1", order)).get();
                }
            }
            Map<String, Object> consuming = Map.of(
                "bootstrap.servers", broker.bootstrapServers(), "group.id", "test", "auto.offset.reset", "earliest");
            StringDeserializer back = new StringDeserializer();
            try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(consuming, back, back)) {
                consumer.subscribe(List.of("orders"));
                while (seen.size() < sent.size()) {
                    consumer.poll(Duration.ofSeconds(10)).forEach(record -> seen.add(record.value()));
                }
            }
        }
        if (!seen.equals(sent)) {
            throw new AssertionError(seen);
        }
    }
}
