import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Future;

import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;

/**
 * Produces with kafka-clients of any version from 0.8.2 on.
 *
 * <p>Arguments: bootstrap topic count codec[,codec...] [transactional.id]. Message n of a codec goes to partition n % 3
 * with key `key-n`, value `codec-n` and, where the version has headers, the header codec=codec.
 *
 * <p>With a transactional id (0.11 and later) the same messages come once more, in a transaction, with values `committed-n`,
 * of which every fifth is null, every seventh key too; those of one before it, `aborted-n`, are aborted.
 */
public class EveryProducer {
    private static final int PARTITIONS = 3;

    public static void main(String[] arguments) throws Exception {
        for (String codec : arguments[3].split(",")) {
            int count = Integer.parseInt(arguments[2]);
            produce(arguments[0], arguments[1], count, codec);
            if (arguments.length > 4) {
                inTransactions(arguments[0], arguments[1], count, codec, arguments[4] + "-" + codec);
            }
        }
    }

    private static void inTransactions(String bootstrap, String topic, int count, String codec, String id)
        throws Exception {
        Properties settings = settings(bootstrap, codec);
        settings.put("transactional.id", id);
        KafkaProducer<String, String> producer = new KafkaProducer<>(settings);
        call(producer, "initTransactions");
        for (String end : new String[] {"aborted", "committed"}) {
            call(producer, "beginTransaction");
            for (int number = 0; number < count; number++) {
                String key = number % 7 == 0 ? null : "key-" + number;
                String value = number % 5 == 0 ? null : end + "-" + number;
                ProducerRecord<String, String> record = new ProducerRecord<>(topic, number % PARTITIONS, key, value);
                addHeader(record, codec);
                producer.send(record);
            }
            call(producer, "flush");
            call(producer, end.equals("aborted") ? "abortTransaction" : "commitTransaction");
        }
        producer.close();
    }

    private static void call(KafkaProducer<String, String> producer, String method) throws Exception {
        KafkaProducer.class.getMethod(method).invoke(producer);
    }

    private static Properties settings(String bootstrap, String codec) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("acks", "all");
        settings.put("linger.ms", "20");
        settings.put("compression.type", codec);
        settings.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        settings.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        return settings;
    }

    private static void produce(String bootstrap, String topic, int count, String codec) throws Exception {
        KafkaProducer<String, String> producer = new KafkaProducer<>(settings(bootstrap, codec));
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (int number = 0; number < count; number++) {
            ProducerRecord<String, String> record =
                new ProducerRecord<>(topic, number % PARTITIONS, "key-" + number, codec + "-" + number);
            addHeader(record, codec);
            sent.add(producer.send(record));
        }
        for (Future<RecordMetadata> each : sent) {
            each.get();
        }
        producer.close();
    }

    private static void addHeader(ProducerRecord<String, String> record, String codec) throws Exception {
        try {
            Object headers = ProducerRecord.class.getMethod("headers").invoke(record);
            Class<?> type = Class.forName("org.apache.kafka.common.header.Headers");
            type.getMethod("add", String.class, byte[].class).invoke(headers, "codec", codec.getBytes("UTF-8"));
        } catch (NoSuchMethodException beforeHeaders) {
            return;
        }
    }
}
