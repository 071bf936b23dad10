import java.util.Arrays;
import java.util.Properties;

import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * One transaction after the other, of records of 100 bytes.
 *
 * <p>Arguments: bootstrap topic partitions transactions records-per-transaction warm-up-transactions abort-every (0: none).
 * Prints transactions per second after the warm-up, and the percentiles 50 and 99 of their milliseconds.
 */
public class TransactionLoad {
    private static final int SIZE_BYTES = 100;

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
        byte[] value = new byte[SIZE_BYTES];
        long[] nanos = new long[transactions];
        try (KafkaProducer<byte[], byte[]> producer =
                 new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            producer.initTransactions();
            long startedAt = 0;
            for (int number = -warmUp; number < transactions; number++) {
                long begunAt = System.nanoTime();
                if (number == 0) {
                    startedAt = begunAt;
                }
                producer.beginTransaction();
                for (int record = 0; record < records; record++) {
                    producer.send(new ProducerRecord<>(topic, record % partitions, null, value));
                }
                if (abortEvery > 0 && number % abortEvery == abortEvery - 1) {
                    producer.flush();
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                }
                if (number >= 0) {
                    nanos[number] = System.nanoTime() - begunAt;
                }
            }
            double seconds = (System.nanoTime() - startedAt) / 1e9;
            Arrays.sort(nanos);
            System.out.printf("%.3f %.3f %.3f%n", transactions / seconds, nanos[transactions / 2] / 1e6,
                nanos[transactions * 99 / 100] / 1e6);
        }
    }
}
