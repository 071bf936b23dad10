import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;

/**
 * Reads with kafka-clients of any version from 0.10 on; what they do not share goes by reflection.
 *
 * <p>Arguments: bootstrap topic count. All partitions are read from their beginning by assign and seek, one line a
 * record: partition offset key value header (`-` without one).
 */
public class EveryConsumer {
    private static final int PARTITIONS = 3;

    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0];
        String topic = arguments[1];
        int count = Integer.parseInt(arguments[2]);
        read(bootstrap, topic, count);
    }

    private static String headerOf(ConsumerRecord<String, String> record) throws Exception {
        try {
            Object headers = ConsumerRecord.class.getMethod("headers").invoke(record);
            Class<?> type = Class.forName("org.apache.kafka.common.header.Headers");
            Object header = type.getMethod("lastHeader", String.class).invoke(headers, "codec");
            Class<?> one = Class.forName("org.apache.kafka.common.header.Header");
            return header == null ? "-" : new String((byte[]) one.getMethod("value").invoke(header), "UTF-8");
        } catch (NoSuchMethodException beforeHeaders) {
            return "-";
        }
    }

    private static void read(String bootstrap, String topic, int count) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "none");
        settings.put("group.id", "every-client");
        settings.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        settings.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings);
        List<TopicPartition> partitions = new ArrayList<>();
        for (int index = 0; index < PARTITIONS; index++) {
            partitions.add(new TopicPartition(topic, index));
        }
        consumer.assign(partitions);
        for (TopicPartition partition : partitions) {
            consumer.seek(partition, 0);
        }
        int read = 0;
        long deadline = System.currentTimeMillis() + 20_000;
        while (read < count && System.currentTimeMillis() < deadline) {
            for (ConsumerRecord<String, String> record : poll(consumer)) {
                read++;
                System.out.println(record.partition() + " " + record.offset() + " " + record.key() + " "
                    + record.value() + " " + headerOf(record));
            }
        }
        consumer.close();
    }

    @SuppressWarnings("unchecked")
    private static ConsumerRecords<String, String> poll(KafkaConsumer<String, String> consumer) throws Exception {
        try {
            return (ConsumerRecords<String, String>)
                KafkaConsumer.class.getMethod("poll", Duration.class).invoke(consumer, Duration.ofMillis(500));
        } catch (NoSuchMethodException beforeDurations) {
            return (ConsumerRecords<String, String>)
                KafkaConsumer.class.getMethod("poll", long.class).invoke(consumer, 500L);
        }
    }
}
