import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;

import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * One transaction after the other, of records of 100 bytes.
 *
 * <p>Arguments: bootstrap topic partitions transactions records-per-transaction warm-up-transactions abort-every (0: none).
 * Prints transactions per second after the warm-up, and the percentiles 50 and 99 of their milliseconds.
 */
public class TransactionLoad {
    private static final byte[] VALUE = new byte[100];
    private static final int MOST_FAILURES = 3;

    public static void main(String[] arguments) {
        String topic = arguments[1];
        int partitions = Integer.parseInt(arguments[2]);
        int transactions = Integer.parseInt(arguments[3]);
        int records = Integer.parseInt(arguments[4]);
        int warmUp = Integer.parseInt(arguments[5]);
        int abortEvery = Integer.parseInt(arguments[6]);
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("transactional.id", topic);
        settings.put("linger.ms", records > 1000 ? "5" : "0");
        settings.put("batch.size", "65536");
        long[] nanos = new long[transactions];
        KafkaProducer<byte[], byte[]> producer = open(settings);
        long startedAt = 0;
        int failures = 0;
        for (int number = -warmUp; number < transactions; number++) {
            long begunAt = System.nanoTime();
            if (number == 0) {
                startedAt = begunAt;
            }
            boolean aborts = abortEvery > 0 && number % abortEvery == abortEvery - 1;
            try {
                transact(producer, topic, partitions, records, aborts);
            } catch (KafkaException error) {
                // Seen with Apache Kafka 4.3.1: InvalidTxnStateException. A round of many seconds is not given up for it.
                if (++failures > MOST_FAILURES) {
                    throw error;
                }
                producer.close(Duration.ZERO);
                producer = open(settings);
                number--;
                continue;
            }
            if (number >= 0) {
                nanos[number] = System.nanoTime() - begunAt;
            }
        }
        double seconds = (System.nanoTime() - startedAt) / 1e9;
        producer.close();
        Arrays.sort(nanos);
        System.out.printf("%.3f %.3f %.3f%n", transactions / seconds, nanos[transactions / 2] / 1e6,
            nanos[transactions * 99 / 100] / 1e6);
    }

    private static void transact(
            KafkaProducer<byte[], byte[]> producer, String topic, int partitions, int records, boolean aborts) {
        producer.beginTransaction();
        for (int record = 0; record < records; record++) {
            producer.send(new ProducerRecord<>(topic, record % partitions, null, VALUE));
        }
        if (aborts) {
            producer.flush();
            producer.abortTransaction();
        } else {
            producer.commitTransaction();
        }
    }

    private static KafkaProducer<byte[], byte[]> open(Properties settings) {
        KafkaProducer<byte[], byte[]> producer =
            new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
        producer.initTransactions();
        return producer;
    }
}
