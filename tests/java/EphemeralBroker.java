import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * A test as a Java project has it: starts `kavka broker --ephemeral`, sends and reads a record, ends the broker.
 *
 * <p>Arguments: the kavka command. Prints the record, then the broker's exit code.
 */
public class EphemeralBroker implements AutoCloseable {
    private final Process broker;
    final String bootstrap;

    /** A broker that lives until it is closed, or this process is gone. */
    EphemeralBroker(String command) throws Exception {
        broker = new ProcessBuilder(command, "broker", "--ephemeral")
            .redirectError(ProcessBuilder.Redirect.INHERIT).start();
        BufferedReader lines = new BufferedReader(new InputStreamReader(broker.getInputStream(), StandardCharsets.UTF_8));
        bootstrap = lines.readLine().replaceFirst(".*\"bootstrap_servers\": *\"([^\"]*)\".*", "$1");
    }

    @Override
    public void close() throws Exception {
        broker.getOutputStream().close();
        System.out.println(broker.waitFor());
    }

    public static void main(String[] arguments) throws Exception {
        try (EphemeralBroker kavka = new EphemeralBroker(arguments[0])) {
            Map<String, Object> common = Map.of("bootstrap.servers", kavka.bootstrap);
            try (KafkaProducer<String, String> producer =
                    new KafkaProducer<>(common, new StringSerializer(), new StringSerializer())) {
                producer.send(new ProducerRecord<>("orders", "java")).get();
            }
            Map<String, Object> settings =
                Map.of("bootstrap.servers", kavka.bootstrap, "group.id", "g", "auto.offset.reset", "earliest");
            try (KafkaConsumer<String, String> consumer =
                    new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
                consumer.subscribe(List.of("orders"));
                ConsumerRecords<String, String> found = ConsumerRecords.empty();
                while (found.isEmpty()) {
                    found = consumer.poll(Duration.ofSeconds(1));
                }
                for (ConsumerRecord<String, String> record : found) {
                    System.out.println(record.value());
                }
            }
        }
    }
}
