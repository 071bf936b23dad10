import java.io.FileReader;
import java.time.Duration;
import java.util.Collections;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/** Arguments: a file of properties, a topic, a count. Produces so many records, one every 100 ms, and reads them back. */
public class SaslRoundTrip {
    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        try (FileReader file = new FileReader(arguments[0])) {
            properties.load(file);
        }
        String text = "org.apache.kafka.common.serialization.String";
        properties.put("key.serializer", text + "Serializer");
        properties.put("value.serializer", text + "Serializer");
        properties.put("key.deserializer", text + "Deserializer");
        properties.put("value.deserializer", text + "Deserializer");
        String topic = arguments[1];
        long count = Long.parseLong(arguments[2]);
        long first = -1;
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(properties)) {
            for (long number = 0; number < count; number++) {
                if (number > 0) {
                    Thread.sleep(100);
                }
                long offset = producer.send(new ProducerRecord<>(topic, 0, null, "record " + number)).get().offset();
                first = first < 0 ? offset : first;
            }
        } catch (Exception failure) {
            Throwable cause = failure.getCause() == null ? failure : failure.getCause();
            System.out.println(cause.getClass().getSimpleName() + ": " + cause.getMessage());
            return;
        }
        TopicPartition partition = new TopicPartition(topic, 0);
        long seen = 0;
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(properties)) {
            consumer.assign(Collections.singletonList(partition));
            consumer.seek(partition, first);
            while (seen < count) {
                ConsumerRecords<String, String> records = poll(consumer);
                for (ConsumerRecord<String, String> record : records) {
                    if (!record.value().equals("record " + seen++)) {
                        throw new IllegalStateException("out of order: " + record.value());
                    }
                }
            }
        }
        System.out.println("records: " + count);
    }

    /** Before 2.0 it took a number, and since 4.0 only a duration. */
    @SuppressWarnings("unchecked")
    private static ConsumerRecords<String, String> poll(KafkaConsumer<String, String> consumer) throws Exception {
        try {
            return (ConsumerRecords<String, String>)
                KafkaConsumer.class.getMethod("poll", Duration.class).invoke(consumer, Duration.ofMillis(500));
        } catch (NoSuchMethodException old) {
            return (ConsumerRecords<String, String>)
                KafkaConsumer.class.getMethod("poll", long.class).invoke(consumer, 500L);
        }
    }
}
