import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Consume, transform, produce, exactly once, until killed.
 *
 * <p>Arguments: bootstrap input output group transactional-id [consumer-setting=value...]. Every record of a poll goes to
 * the partition it came from, with `!` behind its value; offsets go with the transaction. A failed transaction is aborted
 * and its records are read again; after a failure that is final the producer is made anew.
 */
public class ExactlyOnceCopy {
    private final String[] arguments;
    private final KafkaConsumer<String, String> consumer;
    private KafkaProducer<String, String> producer;

    private ExactlyOnceCopy(String[] arguments) {
        this.arguments = arguments;
        this.consumer = consumer();
        this.producer = producer();
    }

    public static void main(String[] arguments) {
        new ExactlyOnceCopy(arguments).run();
    }

    private void run() {
        consumer.subscribe(List.of(arguments[1]));
        System.out.println("STARTED");
        System.out.flush();
        while (true) {
            ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(200));
            if (records.isEmpty()) {
                continue;
            }
            try {
                copy(records);
                System.out.println("COPIED " + records.count());
                System.out.flush();
            } catch (KafkaException error) {
                System.err.println("RETRY " + error);
                recover(error);
                rewind(records);
            }
        }
    }

    private void copy(ConsumerRecords<String, String> records) {
        producer.beginTransaction();
        Map<TopicPartition, OffsetAndMetadata> next = new HashMap<>();
        for (ConsumerRecord<String, String> record : records) {
            producer.send(new ProducerRecord<>(arguments[2], record.partition(), record.key(), record.value() + "!"));
            next.put(new TopicPartition(record.topic(), record.partition()), new OffsetAndMetadata(record.offset() + 1));
        }
        producer.sendOffsetsToTransaction(next, consumer.groupMetadata());
        producer.commitTransaction();
    }

    private void recover(KafkaException error) {
        try {
            if (error instanceof ProducerFencedException || error instanceof InvalidProducerEpochException) {
                throw error;
            }
            producer.abortTransaction();
        } catch (KafkaException hopeless) {
            producer.close(Duration.ZERO);
            producer = producer();
        }
    }

    /** Back to what is committed, for the partitions that are still ours. */
    private void rewind(ConsumerRecords<String, String> records) {
        while (true) {
            try {
                Map<TopicPartition, OffsetAndMetadata> committed = consumer.committed(consumer.assignment());
                for (TopicPartition partition : consumer.assignment()) {
                    OffsetAndMetadata found = committed.get(partition);
                    if (found == null) {
                        consumer.seekToBeginning(List.of(partition));
                    } else {
                        consumer.seek(partition, found.offset());
                    }
                }
                return;
            } catch (KafkaException error) {
                System.err.println("REWIND " + error);
            }
        }
    }

    private KafkaConsumer<String, String> consumer() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("group.id", arguments[3]);
        settings.put("isolation.level", "read_committed");
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        settings.put("max.poll.records", "200");
        settings.put("reconnect.backoff.max.ms", "100");
        for (int place = 5; place < arguments.length; place++) {
            String[] setting = arguments[place].split("=", 2);
            settings.put(setting[0], setting[1]);
        }
        return new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    }

    private KafkaProducer<String, String> producer() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("transactional.id", arguments[4]);
        settings.put("transaction.timeout.ms", "10000");
        settings.put("reconnect.backoff.max.ms", "100");
        while (true) {
            KafkaProducer<String, String> made = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
            try {
                made.initTransactions();
                return made;
            } catch (KafkaException error) {
                System.err.println("INIT " + error);
                made.close(Duration.ZERO);
            }
        }
    }
}
