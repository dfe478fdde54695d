import java.nio.file.*;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.*;
import org.apache.kafka.common.serialization.*;

/**
 * The Java client with the TLS and SASL listeners of Ottla's embedded broker: FILE CLIENT_PEM. The file has the properties
 * that `ottla broker` prints for each listener, with empty lines between them.
 */
public class EmbeddedSecurityCheck {
    static final String MODULES = "org.apache.kafka.common.security.";
    static int checks = 0;

    public static void main(String[] arguments) throws Exception {
        for (String listener : Files.readString(Path.of(arguments[0])).trim().split("\n\n")) {
            Map<String, String> printed = new HashMap<>();
            for (String line : listener.split("\n")) {
                printed.put(line.substring(0, line.indexOf('=')), line.substring(line.indexOf('=') + 1));
            }
            Map<String, Object> client = new HashMap<>();
            client.put("bootstrap.servers", printed.get("bootstrap.servers"));
            client.put("security.protocol", printed.get("security.protocol").toUpperCase(Locale.ROOT));
            if (printed.containsKey("ssl.ca.location")) {
                client.put("ssl.truststore.type", "PEM");
                client.put("ssl.truststore.location", printed.get("ssl.ca.location"));
            }
            if (printed.containsKey("ssl.key.location")) {
                fails(client, Exception.class, "no client certificate");
                client.put("ssl.keystore.type", "PEM");
                client.put("ssl.keystore.location", arguments[1]);
            }
            if (!printed.containsKey("sasl.mechanisms")) {
                works(client, "certificates");
                continue;
            }
            for (String mechanism : List.of("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")) {
                client.put("sasl.mechanism", mechanism);
                String module = mechanism.equals("PLAIN") ? "plain.PlainLoginModule" : "scram.ScramLoginModule";
                String login = MODULES + module + " required username=\"alice\" password=\"%s\";";
                client.put("sasl.jaas.config", String.format(login, "alice-secret"));
                works(client, mechanism);
                client.put("sasl.jaas.config", String.format(login, "another"));
                fails(client, SaslAuthenticationException.class, mechanism + ", wrong password");
            }
            client.put("sasl.mechanism", "OAUTHBEARER");
            client.put("sasl.jaas.config", MODULES
                + "oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub=\"alice\";");
            works(client, "OAUTHBEARER");
        }
        System.out.println("the Java client: " + checks + " checks");
    }

    /** Records go back and forth until the session of the first connections has ended once. */
    static void works(Map<String, Object> client, String what) throws Exception {
        String topic = "java-" + checks;
        Map<String, Object> all = new HashMap<>(client);
        all.put("key.serializer", StringSerializer.class);
        all.put("value.serializer", StringSerializer.class);
        all.put("key.deserializer", StringDeserializer.class);
        all.put("value.deserializer", StringDeserializer.class);
        // Sessions are 2 s: the longest mechanism authenticates again.
        int rounds = what.equals("SCRAM-SHA-512") ? 25 : 1;
        try (var producer = new KafkaProducer<String, String>(all); var consumer = new KafkaConsumer<String, String>(all)) {
            var partition = new TopicPartition(topic, 0);
            producer.send(new ProducerRecord<>(topic, 0, "k", "0")).get(20, TimeUnit.SECONDS);
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            int received = 0;
            long end = System.currentTimeMillis() + 20_000;
            for (int sent = 1; received < sent && System.currentTimeMillis() < end; ) {
                received += consumer.poll(Duration.ofMillis(100)).count();
                if (sent < rounds) {
                    producer.send(new ProducerRecord<>(topic, 0, "k", "" + sent++)).get(20, TimeUnit.SECONDS);
                }
            }
            require(received == rounds, what + ": " + received + " of " + rounds + " records");
        }
        checks++;
    }

    static void fails(Map<String, Object> client, Class<?> expected, String what) throws Exception {
        Map<String, Object> all = new HashMap<>(client);
        all.put("default.api.timeout.ms", 5000);
        all.put("request.timeout.ms", 4000);
        try (Admin admin = Admin.create(all)) {
            admin.describeCluster().nodes().get(20, TimeUnit.SECONDS);
        } catch (ExecutionException error) {
            require(expected.isInstance(error.getCause()), what + ": " + error.getCause());
            checks++;
            return;
        }
        throw new AssertionError(what + ": it works");
    }

    static void require(boolean condition, String what) {
        if (!condition) {
            throw new AssertionError(what);
        }
    }
}
