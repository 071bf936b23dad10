import java.io.PrintStream;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/**
 * What tests/support/numbered_producer.py does, with the producer as Java has it: idempotent, five requests under way.
 *
 * <p>Arguments: bootstrap topic name rate. Messages `name:partition:number`, numbered from 0 in each partition, until
 * SIGTERM; a line `partition number offset` for each that is acknowledged, `ERROR ...` for each that is given up.
 * Nothing lingers, so that there are many small batches.
 */
public class NumberedProducer {
    private static final int PARTITIONS = 6;
    private static final long TICK_MS = 10;

    private static final CountDownLatch stopping = new CountDownLatch(1);

    private static final PrintStream told = new PrintStream(System.out, false);

    public static void main(String[] arguments) throws Exception {
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            stopping.countDown();
            try {
                main.join();
            } catch (InterruptedException cut) {
                Thread.currentThread().interrupt();
            }
        }));
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("linger.ms", "0");
        settings.put("batch.size", "256");
        settings.put("request.timeout.ms", "5000");
        settings.put("delivery.timeout.ms", "600000");
        settings.put("max.block.ms", "600000");
        settings.put("reconnect.backoff.ms", "10");
        settings.put("reconnect.backoff.max.ms", "100");
        settings.put("retry.backoff.ms", "20");
        settings.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        settings.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        KafkaProducer<String, String> producer = new KafkaProducer<>(settings);
        int sent = produce(producer, arguments[1], arguments[2], Integer.parseInt(arguments[3]));
        producer.close();
        told.println("END " + sent);
        told.flush();
    }

    private static int produce(KafkaProducer<String, String> producer, String topic, String name, int rate)
            throws InterruptedException {
        int[] numbers = new int[PARTITIONS];
        int sent = 0;
        long startedNs = System.nanoTime();
        while (!stopping.await(TICK_MS, TimeUnit.MILLISECONDS)) {
            long due = (System.nanoTime() - startedNs) * rate / 1_000_000_000;
            for (; sent < due && stopping.getCount() > 0; sent++) {
                int partition = sent % PARTITIONS;
                int number = numbers[partition]++;
                String value = name + ":" + partition + ":" + number;
                producer.send(new ProducerRecord<>(topic, partition, null, value), (placed, failure) -> told.println(
                    failure == null
                        ? partition + " " + number + " " + placed.offset()
                        : "ERROR " + partition + " " + number + " " + failure));
            }
            told.flush();
        }
        return sent;
    }
}
