import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.protocol.Errors;

/**
 * What tests/support/faulted_clients.py asks of a client, a line each: `produce TOPIC VALUE`, exactly once however often
 * it takes; `once TOPIC VALUE`, without a second try; `consume TOPIC GROUP COUNT`, as a member that commits.
 *
 * <p>Answers: `ok`, `error CODE` or `read VALUE,VALUE`. Argument: bootstrap.
 */
public class FaultedClient {
    private static final Duration POLL = Duration.ofMillis(100);

    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0];
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        try (KafkaProducer<String, String> producer = producer(bootstrap, Map.of())) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String[] words = line.split(" ");
                if (words[0].equals("produce")) {
                    System.out.println(send(producer, words[1], words[2]));
                } else if (words[0].equals("once")) {
                    Map<String, String> strict = Map.of(
                        "retries", "0", "enable.idempotence", "false", "request.timeout.ms", "60000");
                    try (KafkaProducer<String, String> single = producer(bootstrap, strict)) {
                        System.out.println(send(single, words[1], words[2]));
                    }
                } else {
                    System.out.println(consume(bootstrap, words[1], words[2], Integer.parseInt(words[3])));
                }
            }
        }
    }

    private static KafkaProducer<String, String> producer(String bootstrap, Map<String, String> others) {
        Properties settings = common(bootstrap);
        settings.put("enable.idempotence", "true");
        settings.put("acks", "all");
        settings.put("delivery.timeout.ms", "120000");
        settings.put("max.block.ms", "120000");
        settings.put("linger.ms", "0");
        settings.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        settings.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        settings.putAll(others);
        return new KafkaProducer<>(settings);
    }

    private static Properties common(String bootstrap) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("client.id", "java");
        settings.put("request.timeout.ms", "1500");
        settings.put("retry.backoff.ms", "50");
        settings.put("reconnect.backoff.ms", "20");
        return settings;
    }

    private static String send(KafkaProducer<String, String> producer, String topic, String value) throws Exception {
        try {
            producer.send(new ProducerRecord<>(topic, value)).get();
            return "ok";
        } catch (ExecutionException failure) {
            return "error " + Errors.forException(failure.getCause()).code();
        }
    }

    private static String consume(String bootstrap, String topic, String group, int count) {
        Properties settings = common(bootstrap);
        settings.put("group.id", group);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("default.api.timeout.ms", "120000");
        settings.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        settings.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        List<String> read = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings)) {
            consumer.subscribe(List.of(topic));
            while (read.size() < count) {
                for (ConsumerRecord<String, String> record : consumer.poll(POLL)) {
                    read.add(record.value());
                }
            }
            consumer.commitSync();
        }
        return "read " + String.join(",", read);
    }
}
