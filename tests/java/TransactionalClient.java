import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;

import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;

/**
 * Transactional producers that take one step at a time.
 *
 * <p>Argument: bootstrap. Each line of standard input is a step, `PRODUCER VERB WORDS...`, and is answered by one line:
 * `ok`, or `failed ExceptionName message`. Several producers live side by side by their names.
 *
 * <p>open TRANSACTIONAL_ID [setting=value...] | init | begin | send TOPIC PARTITION VALUE... | flush |
 * offsets GROUP TOPIC PARTITION OFFSET | commit | abort | close
 */
public class TransactionalClient {
    private final String bootstrap;
    private final Map<String, KafkaProducer<String, String>> producers = new HashMap<>();
    private final Map<String, List<Future<RecordMetadata>>> sent = new HashMap<>();

    private TransactionalClient(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    public static void main(String[] arguments) throws Exception {
        TransactionalClient client = new TransactionalClient(arguments[0]);
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            System.out.println(client.answer(line.split(" ")));
            System.out.flush();
        }
        System.exit(0);
    }

    private String answer(String[] words) {
        try {
            step(words[0], words[1], Arrays.copyOfRange(words, 2, words.length));
            return "ok";
        } catch (Exception error) {
            Throwable cause = error instanceof ExecutionException ? error.getCause() : error;
            return "failed " + cause.getClass().getSimpleName() + " " + String.valueOf(cause.getMessage()).replace('\n', ' ');
        }
    }

    private void step(String name, String verb, String[] words) throws Exception {
        if (verb.equals("open")) {
            producers.put(name, open(words));
            sent.put(name, new ArrayList<>());
            return;
        }
        KafkaProducer<String, String> producer = producers.get(name);
        switch (verb) {
            case "init" -> producer.initTransactions();
            case "begin" -> producer.beginTransaction();
            case "send" -> send(name, words);
            case "flush" -> flush(name);
            case "offsets" -> producer.sendOffsetsToTransaction(
                Map.of(new TopicPartition(words[1], Integer.parseInt(words[2])), new OffsetAndMetadata(Long.parseLong(words[3]))),
                new ConsumerGroupMetadata(words[0]));
            case "commit" -> producer.commitTransaction();
            case "abort" -> producer.abortTransaction();
            case "close" -> producer.close();
            default -> throw new IllegalArgumentException(verb);
        }
    }

    private KafkaProducer<String, String> open(String[] words) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("transactional.id", words[0]);
        settings.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        settings.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        // A broker that was killed is back within a second.
        settings.put("reconnect.backoff.max.ms", "100");
        for (int place = 1; place < words.length; place++) {
            String[] setting = words[place].split("=", 2);
            settings.put(setting[0], setting[1]);
        }
        return new KafkaProducer<>(settings);
    }

    private void send(String name, String[] words) {
        for (int place = 2; place < words.length; place++) {
            ProducerRecord<String, String> record =
                new ProducerRecord<>(words[0], Integer.parseInt(words[1]), null, words[place]);
            sent.get(name).add(producers.get(name).send(record));
        }
    }

    /** Fails with the reason of the first record that was not acknowledged. */
    private void flush(String name) throws Exception {
        List<Future<RecordMetadata>> waiting = new ArrayList<>(sent.get(name));
        sent.get(name).clear();
        producers.get(name).flush();
        for (Future<RecordMetadata> each : waiting) {
            each.get();
        }
    }
}
