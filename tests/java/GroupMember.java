import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.regex.Pattern;

import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/**
 * A group member with kafka-clients of any version from 0.9 on: tests/support/group_member.py in Java, with the same
 * arguments, orders and events. What the versions do not share goes by reflection. `member.re2` is a pattern that the
 * broker shall resolve.
 */
public class GroupMember {
    private static final long POLL_MS = 100;
    private static final Map<String, String> ASSIGNORS = new HashMap<>();

    static {
        String folder = "org.apache.kafka.clients.consumer.";
        ASSIGNORS.put("range", folder + "RangeAssignor");
        ASSIGNORS.put("roundrobin", folder + "RoundRobinAssignor");
        ASSIGNORS.put("sticky", folder + "StickyAssignor");
        ASSIGNORS.put("cooperative-sticky", folder + "CooperativeStickyAssignor");
    }

    private final LinkedBlockingQueue<String> orders = new LinkedBlockingQueue<>();
    private final Map<TopicPartition, OffsetAndMetadata> delivered = new HashMap<>();
    private final Properties settings;
    private final KafkaConsumer<byte[], byte[]> consumer;
    /** Null, or what the next batch is processed until. */
    private volatile CountDownLatch held = null;

    private GroupMember(Properties settings) {
        this.settings = settings;
        this.consumer = new KafkaConsumer<>(settings);
    }

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        settings.put("max.poll.records", "50");
        settings.put("key.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        settings.put("value.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        for (String word : arguments) {
            String[] parts = word.split("=", 2);
            settings.put(parts[0], parts[1]);
        }
        if (settings.getProperty("member.commit", "").equals("auto")) {
            settings.put("enable.auto.commit", "true");
        }
        String assignors = settings.getProperty("partition.assignment.strategy");
        if (assignors != null) {
            List<String> classes = new ArrayList<>();
            for (String name : assignors.split(",")) {
                classes.add(ASSIGNORS.get(name));
            }
            settings.put("partition.assignment.strategy", String.join(",", classes));
        }
        new GroupMember(settings).run();
    }

    private void run() throws Exception {
        Thread reader = new Thread(this::readOrders);
        reader.setDaemon(true);
        reader.start();
        subscribe();
        while (obey()) {
            Map<TopicPartition, OffsetAndMetadata> batch;
            try {
                batch = report(poll());
            } catch (Exception error) {
                note("error", "\"error\": " + quoted(error.getClass().getSimpleName() + ": " + error.getMessage()));
                if (error.getClass().getSimpleName().contains("Fenced")) {
                    break;
                }
                continue;
            }
            if (batch.isEmpty()) {
                continue;
            }
            if (held != null) {
                held.await();
                held = null;
            }
            Thread.sleep(Long.parseLong(settings.getProperty("member.process.ms", "0")));
            delivered.putAll(batch);
            String mode = settings.getProperty("member.commit", "sync");
            if (mode.equals("sync")) {
                commit(batch);
            } else if (mode.equals("async")) {
                consumer.commitAsync(batch, (offsets, error) -> committed(offsets, error));
            }
        }
        note("closing", "");
        consumer.close();
        note("closed", "");
        System.exit(0);
    }

    private boolean obey() throws Exception {
        String order;
        while ((order = orders.poll()) != null) {
            String[] words = order.split(" ");
            switch (words[0]) {
                case "close":
                    return false;
                case "pause":
                    onAssignment("pause");
                    break;
                case "resume":
                    onAssignment("resume");
                    break;
                case "seek":
                    int dash = words[1].lastIndexOf('-');
                    int number = Integer.parseInt(words[1].substring(dash + 1));
                    consumer.seek(new TopicPartition(words[1].substring(0, dash), number), Long.parseLong(words[2]));
                    note("sought", "\"partition\": " + quoted(words[1]) + ", \"offset\": " + words[2]);
                    break;
                case "hold":
                    held = new CountDownLatch(1);
                    break;
                case "commit":
                    commit(new HashMap<>(delivered));
                    break;
                case "unsubscribe":
                    consumer.unsubscribe();
                    break;
                default:
                    throw new IllegalArgumentException(order);
            }
            note("obeyed", "\"order\": " + quoted(order));
        }
        return true;
    }

    private void onAssignment(String method) throws Exception {
        Collection<TopicPartition> all = new ArrayList<>(consumer.assignment());
        try {
            KafkaConsumer.class.getMethod(method, Collection.class).invoke(consumer, all);
        } catch (NoSuchMethodException before010) {
            Object array = all.toArray(new TopicPartition[0]);
            KafkaConsumer.class.getMethod(method, TopicPartition[].class).invoke(consumer, array);
        }
    }

    private void subscribe() throws Exception {
        ConsumerRebalanceListener listener = listener();
        String pattern = settings.getProperty("member.pattern");
        String re2 = settings.getProperty("member.re2");
        if (re2 != null) {
            Class<?> type = Class.forName("org.apache.kafka.clients.consumer.SubscriptionPattern");
            Object asked = type.getConstructor(String.class).newInstance(re2);
            KafkaConsumer.class.getMethod("subscribe", type, ConsumerRebalanceListener.class)
                .invoke(consumer, asked, listener);
        } else if (pattern != null) {
            consumer.subscribe(Pattern.compile(pattern), listener);
        } else {
            consumer.subscribe(Arrays.asList(settings.getProperty("member.topics").split(",")), listener);
        }
    }

    private ConsumerRebalanceListener listener() {
        return new ConsumerRebalanceListener() {
            @Override
            public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                noteAll("revoked", partitions, "");
            }

            @Override
            public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                noteAll("assigned", partitions, ", \"generation\": " + generation());
            }

            // No @Override: it came with 2.4.
            public void onPartitionsLost(Collection<TopicPartition> partitions) {
                noteAll("lost", partitions, "");
            }
        };
    }

    @SuppressWarnings("unchecked")
    private ConsumerRecords<byte[], byte[]> poll() throws Exception {
        try {
            Class<?> duration = Class.forName("java.time.Duration");
            Object asked = duration.getMethod("ofMillis", long.class).invoke(null, POLL_MS);
            return (ConsumerRecords<byte[], byte[]>)
                unwrapped(KafkaConsumer.class.getMethod("poll", duration), asked);
        } catch (NoSuchMethodException beforeDurations) {
            return (ConsumerRecords<byte[], byte[]>)
                unwrapped(KafkaConsumer.class.getMethod("poll", long.class), POLL_MS);
        }
    }

    private Object unwrapped(Method method, Object argument) throws Exception {
        try {
            return method.invoke(consumer, argument);
        } catch (java.lang.reflect.InvocationTargetException thrown) {
            throw (Exception) thrown.getCause();
        }
    }

    private Map<TopicPartition, OffsetAndMetadata> report(ConsumerRecords<byte[], byte[]> records) {
        Map<TopicPartition, List<long[]>> found = new LinkedHashMap<>();
        for (ConsumerRecord<byte[], byte[]> record : records) {
            TopicPartition partition = new TopicPartition(record.topic(), record.partition());
            List<long[]> runs = found.computeIfAbsent(partition, any -> new ArrayList<>());
            if (!runs.isEmpty() && runs.get(runs.size() - 1)[1] == record.offset()) {
                runs.get(runs.size() - 1)[1] = record.offset() + 1;
            } else {
                runs.add(new long[] {record.offset(), record.offset() + 1});
            }
        }
        Map<TopicPartition, OffsetAndMetadata> next = new HashMap<>();
        for (Map.Entry<TopicPartition, List<long[]>> entry : found.entrySet()) {
            for (long[] run : entry.getValue()) {
                note("delivered", "\"partition\": " + quoted(entry.getKey().toString()) + ", \"first\": " + run[0]
                    + ", \"next\": " + run[1] + ", \"generation\": " + generation());
                next.put(entry.getKey(), new OffsetAndMetadata(run[1]));
            }
        }
        return next;
    }

    private String generation() {
        try {
            Object group = KafkaConsumer.class.getMethod("groupMetadata").invoke(consumer);
            return group.getClass().getMethod("generationId").invoke(group).toString();
        } catch (ReflectiveOperationException notTold) {
            return "null";
        }
    }

    private void commit(Map<TopicPartition, OffsetAndMetadata> offsets) {
        try {
            consumer.commitSync(offsets);
            committed(offsets, null);
        } catch (RuntimeException error) {
            committed(offsets, error);
        }
    }

    private void committed(Map<TopicPartition, OffsetAndMetadata> offsets, Exception error) {
        if (error != null) {
            String text = error.getClass().getSimpleName() + ": " + error.getMessage();
            note("commit_failed", "\"error\": " + quoted(text));
            return;
        }
        List<String> parts = new ArrayList<>();
        for (Map.Entry<TopicPartition, OffsetAndMetadata> entry : offsets.entrySet()) {
            parts.add(quoted(entry.getKey().toString()) + ": " + entry.getValue().offset());
        }
        note("committed", "\"offsets\": {" + String.join(", ", parts) + "}");
    }

    private static void noteAll(String event, Collection<TopicPartition> partitions, String more) {
        TreeSet<String> names = new TreeSet<>();
        for (TopicPartition partition : partitions) {
            names.add(quoted(partition.toString()));
        }
        note(event, "\"partitions\": [" + String.join(", ", names) + "]" + more);
    }

    private static synchronized void note(String event, String facts) {
        System.out.println("{\"event\": \"" + event + "\", \"at_ns\": " + System.nanoTime()
            + (facts.isEmpty() ? "" : ", " + facts) + "}");
        System.out.flush();
    }

    private static String quoted(String text) {
        return "\"" + text.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", " ") + "\"";
    }

    private void readOrders() {
        try (BufferedReader reader = new BufferedReader(new InputStreamReader(System.in))) {
            String line;
            while ((line = reader.readLine()) != null) {
                CountDownLatch latch = held;
                if (line.equals("release") && latch != null) {
                    // Here: the loop that obeys the others is what is held.
                    latch.countDown();
                    note("obeyed", "\"order\": " + quoted(line));
                } else {
                    orders.add(line);
                }
            }
        } catch (java.io.IOException gone) {
            System.err.println("orders: " + gone);
        }
        Runtime.getRuntime().halt(0);
    }
}
