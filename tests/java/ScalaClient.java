import java.util.Collections;
import java.util.Properties;

import kafka.api.FetchRequestBuilder;
import kafka.javaapi.FetchResponse;
import kafka.javaapi.consumer.SimpleConsumer;
import kafka.javaapi.producer.Producer;
import kafka.message.MessageAndOffset;
import kafka.producer.KeyedMessage;
import kafka.producer.ProducerConfig;

/**
 * Produces and reads with the Scala clients of Kafka 0.8: the first that spoke this protocol.
 *
 * <p>Arguments: host port topic count codec[,codec...]; lines as EveryClient's, without headers. The number is the
 * key that partitions go by: the partitioner takes its hash, the number itself, modulo the partitions.
 */
public class ScalaClient {
    private static final int PARTITIONS = 3;

    public static void main(String[] arguments) throws Exception {
        String host = arguments[0];
        int port = Integer.parseInt(arguments[1]);
        String topic = arguments[2];
        int count = Integer.parseInt(arguments[3]);
        for (String codec : arguments[4].split(",")) {
            produce(host + ":" + port, topic, count, codec);
        }
        SimpleConsumer consumer = new SimpleConsumer(host, port, 10_000, 1 << 20, "scala-client");
        for (int partition = 0; partition < PARTITIONS; partition++) {
            read(consumer, topic, partition);
        }
        consumer.close();
    }

    private static void produce(String brokers, String topic, int count, String codec) {
        Properties settings = new Properties();
        settings.put("metadata.broker.list", brokers);
        settings.put("request.required.acks", "-1");
        settings.put("serializer.class", "kafka.serializer.StringEncoder");
        settings.put("compression.codec", codec);
        Producer<String, String> producer = new Producer<>(new ProducerConfig(settings));
        for (int number = 0; number < count; number++) {
            producer.send(Collections.singletonList(
                new KeyedMessage<>(topic, "key-" + number, number, codec + "-" + number)));
        }
        producer.close();
    }

    private static void read(SimpleConsumer consumer, String topic, int partition) throws Exception {
        long offset = 0;
        while (true) {
            FetchResponse response = consumer.fetch(
                new FetchRequestBuilder().clientId("scala-client").addFetch(topic, partition, offset, 100_000).build());
            if (response.hasError()) {
                throw new IllegalStateException("fetch failed: " + response.errorCode(topic, partition));
            }
            int found = 0;
            for (MessageAndOffset each : response.messageSet(topic, partition)) {
                if (each.offset() < offset) {
                    continue;
                }
                found++;
                offset = each.nextOffset();
                System.out.println(partition + " " + each.offset() + " " + text(each.message().key()) + " "
                    + text(each.message().payload()) + " -");
            }
            if (found == 0) {
                return;
            }
        }
    }

    private static String text(java.nio.ByteBuffer buffer) throws Exception {
        byte[] bytes = new byte[buffer.limit()];
        buffer.get(bytes);
        return new String(bytes, "UTF-8");
    }
}
